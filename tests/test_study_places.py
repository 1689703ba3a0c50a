"""Places on one scale, cells of all rows, near copies: both sides of every limit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtri

from pnuauc._sources import Batch, MemorySource, RowKeys
from pnuauc._study import LabelCodes, _importance, _reference
from pnuauc._study._census import read_source_labels
from pnuauc._study._copies import Copies, find_copies
from pnuauc._study._crossfit import CrossFit, Reference, common_scale, cross_fit
from pnuauc._study._everywhere import _Count, nothing_counted
from pnuauc.labels import Roles
from pnuauc.metrics import RoleStratifiedKFold
from tests.conftest import FirstColumn, Scored, roles_of

# --- places ---------------------------------------------------------------------------------------


def test_two_different_unlabelled_scores_are_a_reference():
    """One is none, nor are two that are equal: then all scores are centred and scaled."""
    roles = roles_of(1, 1, 2)
    found = common_scale(np.array([0.35, 0.3, 0.3, 0.4]), roles)
    np.testing.assert_allclose(found, [0.0, ndtri(0.25), ndtri(0.25), ndtri(0.75)], atol=1e-9)
    for scores, own in (([0.1, 0.3, 0.2], roles_of(1, 1, 1)), ([0.1, 0.3, 0.2, 0.2], roles)):
        scores = np.array(scores)
        scaled = (scores - scores.mean()) / scores.std()
        np.testing.assert_allclose(common_scale(scores, own), scaled)


@pytest.mark.parametrize(
    ("u", "unit"),
    [
        ([1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 6.0], 5.0),  # the middle half has no extent: all of them
        ([0.0, 1.0, 2.0, 3.0, 4.0], 2.0),
        ([5.0, 7.0], 1.0),
    ],
)
def test_beyond_the_last_score_a_place_goes_on_in_units_of_the_middle_half(u, unit):
    u = np.array(u)
    scale = Reference.of(u)
    ends = scale(np.array([u.min(), u.max()]))
    for step in (0.3, 0.9, 1.0, 4.0):
        found = scale(np.array([u.min() - step * unit, u.max() + step * unit]))
        np.testing.assert_allclose(found - ends, 0.5 * np.array([-1, 1]) * min(step, 1.0))


def test_points_beyond_all_counted_rows_stand_half_a_row_from_the_end():
    """Eight rows between two points: 0 and 1 are moved to 1/16 and 15/16."""
    points, cells = np.array([-3.0, 4.0]), np.array([0, 0, 8, 0, 0])
    scale = Reference.counted(points, cells, -1.0, 2.0, np.array([-1.0, 0.0, 0.0, 2.0]))
    np.testing.assert_allclose(scale.z, ndtri([1 / 16, 15 / 16]))
    # the middle half of the four that tell the spread: from -0.25 to 0.5
    np.testing.assert_allclose(scale(points), [scale.z[0] - 0.5, scale.z[1] + 0.5])
    np.testing.assert_allclose(scale(np.array([2.0 + 0.15])) - scale(np.array([2.0])),
                               0.1 + 0.15 / 7 * (scale.z[1] - scale.z[0]))  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_counted_places_by_a_loop_over_the_points(seed):
    """Rows below and half of those at a point; points without rows keep their order between."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 3, 17) * (rng.random(17) < 0.4)
    cells[:4] = [4, 0, 0, 3]  # nothing between the first two points, rows at the second
    points, n = np.arange(8.0), cells.sum()
    below = [int(cells[: 2 * k + 1].sum()) for k in range(8)]
    place = []
    for k in range(8):
        at = cells[2 * k + 1]
        same = [j for j in range(8) if below[j] == below[k]]
        among = 0.0 if at else (same.index(k) + 1) / (len(same) + 1) - 0.5
        place.append((below[k] + at / 2 + among) / n)
    found = Reference.counted(points, cells, -1.0, 8.0, points).z
    np.testing.assert_allclose(found, ndtri(np.clip(place, 0.5 / n, 1 - 0.5 / n)))


def test_no_rows_that_tell_the_spread_leave_the_extent_of_all_or_one():
    points, cells = np.array([0.0]), np.array([1, 0, 1])
    wide = Reference.counted(points, cells, -1.0, 3.0, np.empty(0))
    assert wide(np.array([4.0]))[0] - wide(np.array([3.0]))[0] == pytest.approx(0.5 / 4)
    single = Reference.counted(points, cells, 2.0, 2.0, np.empty(0))
    assert single(np.array([2.4]))[0] - single(np.array([2.0]))[0] == pytest.approx(0.2)


@pytest.mark.parametrize("given", [False, True])
def test_folds_are_drawn_by_the_seed_and_keep_copies_together(given):
    rng = np.random.default_rng(0)
    X, roles = rng.normal(size=(60, 2)), roles_of(12, 18, 30)
    X[1], X[13] = X[0], X[12]
    groups = np.arange(60) // 2 if given else find_copies(X, roles).groups
    copies = Copies(groups, 0, 0) if given else None
    rows = np.arange(60)
    dealt = []
    for seed in (3, 4):
        fit = cross_fit(FirstColumn(), X, roles, rows, n_folds=3, seed=seed, copies=copies)
        splitter = RoleStratifiedKFold(3, shuffle=True, random_state=seed)
        for (test, _), (_, expected) in zip(fit.folds, splitter.split(rows, roles, groups)):
            np.testing.assert_array_equal(test, expected)
            assert not set(groups[test]) & set(np.delete(groups, test))
        dealt.append([test.tolist() for test, _ in fit.folds])
    assert dealt[0] != dealt[1]


# --- all rows -------------------------------------------------------------------------------------


def test_counts_of_a_batch_begin_with_nothing_and_keep_both_ends():
    """One refit, all rows in its fold: cells, lowest and highest of the unlabelled scores."""
    scores = np.array([0.5, -2.0, 7.0, 3.0, 9.0])
    codes = np.array([-1, -1, -1, -1, 1])
    keys = SimpleNamespace(order=lambda table: np.arange(5, dtype=np.uint64))
    encoder = SimpleNamespace(encode=lambda table, first_row, view: scores[:, None])
    anchors = (np.array([0.5, 4.0]),)
    count = _Count(lambda table: codes, keys, encoder, ("kernels",), (FirstColumn(),), anchors)
    empty = nothing_counted(anchors)
    assert (empty.folds[0].low, empty.folds[0].high) == (np.inf, -np.inf)
    found = (empty + count(Batch(pa.table({"s": scores})))).folds[0]
    assert (found.low, found.high) == (-2.0, 7.0)
    assert found.cells.tolist() == [1, 1, 1, 0, 1]


@pytest.mark.parametrize("n_top", [2, 4])
def test_batches_of_labelled_rows_alone_change_nothing(n_top):
    """Before, between and after the others; rows are numbered within their file."""
    codes = np.repeat([1, -1, 1, -1, 1], 3)
    scores = np.array([9, 9, 9, 1, 5, 3, 9, 9, 9, 4, 2, 6, 9, 9, 9.0])
    table = pa.table({"s": scores, "y": codes})
    keys = SimpleNamespace(order=lambda t: np.asarray(t.column("s")).astype(np.uint64))
    found = None
    for k, start in enumerate(range(0, 15, 3)):
        batch = Batch(table.slice(start, 3).to_batches()[0], "f", 100 + start, k)
        part = _reference._place(
            batch, Scored(), lambda t: np.asarray(t.column("y")), keys, np.array([3.5]), n_top
        )
        assert (part is None) is (k % 2 == 0)
        found = _reference._join(found, part, n_top)
    assert (found.counts.tolist(), found.low, found.high) == ([3, 3], 1.0, 6.0)
    best = [11, 4, 9, 5][:n_top]
    assert found.leaders.row.tolist() == [100 + i for i in best]
    assert found.leaders.part.tolist() == [i // 3 for i in best]
    assert found.leaders.score.tolist() == scores[best].tolist()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.95])
def test_threshold_and_quantiles_of_a_few_rows_by_hand(monkeypatch, share):
    """Eight scores, all of them drawn: half way between neighbours stand whole rows.

    The last two share a cell, as no point is asked for between them.
    """
    u = np.array([0.0, 1.0, 3.0, 4.0, 8.0, 9.0, 11.0, 16.0])
    table = pa.table({"s": np.r_[50.0, u[::-1], -50.0], "i": list("abcdefghij"),
                      "y": pa.array([1, *[None] * 8, 0], pa.int8())})  # fmt: skip
    source = MemorySource(table, batch_rows=3)
    reader, _ = read_source_labels(source, "y", LabelCodes())
    origin = SimpleNamespace(
        labels=reader, keys=RowKeys(("i",), 0, True), source=source,
        everything=lambda encoder: SimpleNamespace(source=source),
    )  # fmt: skip
    model = Scored()
    model.encoder, model.threshold = None, 2.5
    monkeypatch.setattr(_reference, "replace", lambda thing, **new: _with(thing, new))
    leaders = _reference.place_among_all(model, origin, u, share, 3, ["i"])
    points = [0.0, 0.5, 2.0, 3.5, 6.0, 8.5, 10.0, 16.0]
    below = [0, 1 / 8, 2 / 8, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 1]
    step = np.interp(1 - share, below, points)
    assert model.threshold == pytest.approx(2.5 + step)
    expected = np.interp(np.linspace(0, 1, len(model.quantiles)), below, points) - step
    np.testing.assert_allclose(model.quantiles, expected)
    np.testing.assert_allclose(leaders.score, np.array([16.0, 11.0, 9.0]) - step)
    assert leaders.table.column("i").to_pylist() == ["b", "c", "d"]


def _with(thing, new):
    for name, value in new.items():
        object.__setattr__(thing, name, value)
    return thing


# --- some unlabelled rows in place of all ---------------------------------------------------------


def two_folds(n_u):
    rng = np.random.default_rng(0)
    roles = Roles(rng.permutation(roles_of(8, 10, n_u).codes))
    n = len(roles)
    folds = [(np.flatnonzero(np.arange(n) % 2 == k), FirstColumn()) for k in range(2)]
    return CrossFit(5 + np.arange(n), roles, rng.normal(size=n), folds, Copies(np.arange(n), 0, 0))


def test_all_rows_are_shuffled_up_to_five_hundred_unlabelled_ones():
    fit = two_folds(500)
    assert _importance._thinned(fit, np.random.default_rng(1)) is fit
    fit = two_folds(501)
    thin = _importance._thinned(fit, np.random.default_rng(1))
    assert thin.roles.counts == (8, 10, 500)
    kept = thin.rows - 5
    assert set(fit.roles.positive) | set(fit.roles.negative) <= set(kept.tolist())
    np.testing.assert_array_equal(thin.roles.codes, fit.roles.codes[kept])
    for (test, _), (own, _) in zip(fit.folds, thin.folds, strict=True):
        stays = np.intersect1d(test, kept)
        np.testing.assert_array_equal(kept[own], stays)
        expected = common_scale(fit.scores[stays], fit.roles.take(stays))
        np.testing.assert_allclose(thin.scores[own], expected)


def test_three_shuffles_unless_told():
    fit = two_folds(40)
    X = np.random.default_rng(2).normal(size=(70, 2))
    found = [
        _importance.permutation_importance(fit, X, {"a": [0], "b": [1]}, None, "pn", seed=9, **more)
        for more in ({}, {"repeats": 3}, {"repeats": 4})
    ]
    assert found[0] == found[1] != found[2]


# --- near copies ----------------------------------------------------------------------------------


def in_pairs(sizes):
    """Pairs of rows on a line, far from each other; within a pair just so far. Two columns."""
    first = 1000.0 * np.arange(len(sizes))
    line = np.concatenate([np.column_stack([first, first + sizes]).ravel(), [-5000.0]])
    return np.column_stack([line, np.ones(len(line))])


@pytest.mark.parametrize(("apart", "near"), [(0.096, 4), (0.104, 0)])
@pytest.mark.parametrize("seed", range(4))
def test_near_is_a_twentieth_of_the_usual_distance(apart, near, seed):
    """Of 200 rows half are at most 1 and half 3 from the next: the median of all is 2."""
    X = in_pairs([apart] * 2 + [1.0] * 48 + [3.0] * 50)[:-1]
    assert find_copies(X, roles_of(2, 2, 196), seed).n_near == near


def test_two_hundred_rows_tell_the_usual_distance():
    """Of 201 one is left out: without one of the 101 far ones the median is 2, else 3."""
    X = in_pairs([0.12] * 2 + [1.0] * 48 + [3.0] * 50)
    found = [find_copies(X, roles_of(2, 2, 197), seed).n_near for seed in range(8)]
    assert set(found) == {0, 4}


def test_labelled_rows_that_are_asked_are_different_ones():
    """400 of 401, of which 200 have a near copy."""
    X = np.random.default_rng(0).normal(size=(1001, 3))
    X[601:801] = X[:200] + 1e-6
    for seed in range(3):
        assert find_copies(X, roles_of(200, 201, 600), seed).n_near in (199, 200)
        assert find_copies(X[1:], roles_of(199, 201, 600), seed).n_near == 199


def test_four_thousand_rows_are_looked_at():
    """All of 4,000; of 4,001 one is left out, at times the near copy of a labelled row."""
    X = np.random.default_rng(0).normal(size=(4001, 2))
    X[2000:2400] = X[:400] + 1e-7
    found = [find_copies(X, roles_of(400, 0, 3601), seed).n_near for seed in range(12)]
    assert set(found) == {399, 400}
    assert all(find_copies(X[:-1], roles_of(400, 0, 3600), s).n_near == 400 for s in range(6))
