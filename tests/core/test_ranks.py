"""Tests of core/ranks."""

from __future__ import annotations

import numpy as np
import pytest

from pnuauc.core.ranks import (
    check_scores,
    count_cells,
    moments_of,
    pairs_won,
    placements,
    raw_to_auc,
)
from pnuauc.metrics import (
    ScoreCounts,
)
from tests.conftest import gaussian_scores, wins


@pytest.mark.parametrize("role", [1, 0])
@pytest.mark.parametrize("off", [0.5, 1.5, 2.5, 3.5])
def test_a_labeled_score_off_the_anchors_is_refused(role, off):
    for others in ([1, 0], [1 - role] * 2):
        y, scores = [*others, role, None], [1.0, 2.0, off, 0.7]
        with pytest.raises(ValueError, match="not among the anchors"):
            ScoreCounts.from_block(y, scores, [1.0, 2.0, 3.0])
    free = ScoreCounts.from_block([1, 0, None], [1.0, 2.0, off], [3.0, 1.0, 2.0, 1.0])
    assert free.anchors.tolist() == [1.0, 2.0, 3.0]
    assert free.unlabeled.tolist() == [int(2 * off - 1 == k) for k in range(7)]
    with pytest.raises(ValueError, match="anchors holds NaN"):
        ScoreCounts.from_block([1, 0], [1.0, 2.0], [1.0, 2.0, np.nan])


def test_scores_behind_a_mask():
    plain = np.ma.MaskedArray([1.0, 2.0], mask=[False, False])
    assert check_scores(plain).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="masked"):
        check_scores(np.ma.MaskedArray([1.0, 2.0], mask=[False, True]))
    large = 2**53
    with pytest.raises(ValueError, match="floats cannot distinguish"):
        check_scores(np.array([-large, -large - 1, large]))
    assert check_scores(np.array([0, large, large + 2])).tolist() == [0.0, 2.0**53, 2.0**53 + 2]
    assert check_scores(np.array([True, False])).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match=r"NaN \(first in row 2\)"):
        check_scores([1, 2, None])


PARTS = ((0, 1), (0, 2), (2, 1))  # winner and loser of PN, PU, NU


def drawn(sizes, seed=0, prior=0.3):
    y, scores, _ = gaussian_scores(seed, sizes, prior, 1.0, digits=1)
    ends = np.cumsum(sizes)[:-1]
    return y, scores, np.split(scores, ends)


@pytest.mark.parametrize(
    "sizes", [(1, 6, 9), (6, 1, 9), (6, 9, 1), (1, 1, 9), (2, 1, 1), (1, 1, 1), (3, 0, 1)]
)
def test_moments_of_roles_with_single_rows(sizes):
    """Pair means and the covariance of row means; sqrt(A (1 - A)) of a single row."""
    y, scores, rows = drawn(sizes)
    codes = {"positive_label": 1.0} if sizes[1] == 0 else {}
    found = moments_of(ScoreCounts.from_rows(y, scores, **codes))
    raw = np.full(3, np.nan)
    for k, (winner, loser) in enumerate(PARTS):
        if sizes[winner] and sizes[loser]:
            raw[k] = wins(rows[winner], rows[loser]).mean()
    np.testing.assert_allclose(found.raw, raw)
    for role, n in enumerate(sizes):
        projections = np.zeros((3, n))
        for k, (winner, loser) in enumerate(PARTS):
            if role in (winner, loser) and sizes[winner] and sizes[loser]:
                pairs = wins(rows[winner], rows[loser])
                projections[k] = pairs.mean(axis=1 if role == winner else 0)
        if n >= 2:
            expected = np.cov(projections) / n
            known = [k for k in range(3) if np.isfinite(raw[k])]
            expected = np.atleast_2d(expected)[np.ix_(known, known)]
            np.testing.assert_allclose(found.by_role[role][np.ix_(known, known)], expected)
        elif n == 1:
            spread = np.array([np.sqrt(a * (1 - a)) if role in part and np.isfinite(a) else 0.0
                               for a, part in zip(raw, PARTS)])  # fmt: skip
            np.testing.assert_allclose(found.by_role[role], np.outer(spread, spread), atol=1e-12)
        else:
            assert not found.by_role[role].any()


def test_placements_are_midranks():
    role = np.array([1, 2, 0, 3, 1])
    rows = np.repeat(np.arange(5), role)
    expected = [((rows < k).sum() + 0.5 * (rows == k).sum()) / 7 for k in range(5)]
    np.testing.assert_allclose(placements(role), expected)
    assert placements(np.zeros(3, dtype=int)).tolist() == [0.0, 0.0, 0.0]


def test_shapes_of_scores():
    assert check_scores(np.array([[1.0], [2.0]])).tolist() == [1.0, 2.0]
    assert check_scores(["1", "2.5"]).tolist() == [1.0, 2.5]
    for wrong in (np.ones((2, 2)), np.ones((1, 2)), np.ones((2, 1, 1)), np.float64(1.0)):
        with pytest.raises(ValueError, match="one-dimensional"):
            check_scores(wrong)
    with pytest.raises(ValueError, match="first in row 1"):
        check_scores([0.0, np.nan, np.nan])
    with pytest.raises(ValueError, match="has 2 rows but y has 3"):
        check_scores([0.0, 1.0], 3)


@pytest.mark.parametrize("prior", [0.0, 0.25, 1.0, None])
def test_pair_shares_become_aucs(prior):
    """P(P > U) = prior / 2 + (1 - prior) AUC, P(U > N) = prior AUC + (1 - prior) / 2."""
    auc = 0.9
    slope, offset = raw_to_auc(prior)
    t = 0.5 if prior is None else prior
    raw = np.array([auc, t / 2 + (1 - t) * auc, t * auc + (1 - t) / 2])
    expected = [auc, auc, auc]
    if prior in (1.0, None):
        expected[1] = np.nan
    if prior in (0.0, None):
        expected[2] = np.nan
    np.testing.assert_allclose(slope * raw - offset, expected)


@pytest.fixture
def counts():
    y, scores, _ = gaussian_scores(0, (20, 30, 120), 0.3, digits=1)
    return ScoreCounts.from_rows(y, scores)


def test_counts_are_added_to_counts_alone(counts):
    with pytest.raises(TypeError):
        counts + 3
    with pytest.raises(ValueError, match="same anchors"):
        counts + ScoreCounts.from_rows([1, 0], [0.123, 0.456])
    twice = counts + counts
    for name in ("positive", "negative", "unlabeled"):
        np.testing.assert_array_equal(getattr(twice, name), 2 * getattr(counts, name))
    assert (twice.n_positive, twice.n_negative, twice.n_unlabeled) == (40, 60, 240)


@pytest.mark.parametrize("n_anchors", [0, 1, 40])
def test_cells_count_every_value_once(n_anchors):
    rng = np.random.default_rng(7)
    values = np.r_[rng.integers(0, 50, 1000) * 0.1, np.inf, -np.inf]
    anchors = np.unique(rng.choice(values, n_anchors))
    cells = count_cells(values, anchors)
    assert cells.sum() == len(values)
    assert cells[1::2].tolist() == [(values == a).sum() for a in anchors]
    assert np.cumsum(cells)[:-1:2].tolist() == [(values < a).sum() for a in anchors]


@pytest.mark.parametrize("sizes", [(30, 400), (400, 30), (50, 50), (1, 1)])
def test_pairs_won_are_those_of_the_table(sizes):
    rng = np.random.default_rng(0)
    a, b = (np.sort(np.round(rng.normal(size=n), 1)) for n in sizes)
    assert pairs_won(a, b) == pytest.approx(wins(a, b).mean())
    assert pairs_won(a, b) + pairs_won(b, a) == pytest.approx(1.0)


def test_weighted_counts_are_weighted_means_of_pairs():
    rng = np.random.default_rng(5)
    y = np.repeat([1, 0, -1], [12, 9, 30])
    scores = np.round(rng.normal(size=51) + (y == 1), 1)
    weights = np.where(y >= 0, rng.uniform(0.2, 3.0, 51), np.nan)  # those of U are not used
    counts = ScoreCounts.from_rows(y, scores, weights)
    p, n, u = (scores[y == code] for code in (1, 0, -1))
    w_p, w_n = (weights[y == code] / weights[y == code].sum() for code in (1, 0))
    expected = [
        w_p @ wins(p, n) @ w_n,
        (w_p @ wins(p, u)).mean(),
        (wins(u, n) @ w_n).mean(),
    ]
    assert moments_of(counts).raw == pytest.approx(expected)
    worth = weights[y == 1].sum() ** 2 / (weights[y == 1] ** 2).sum()
    assert counts.n_positive == int(worth)
    plain = ScoreCounts.from_rows(y, scores)
    for same in (np.ones(51), np.full(51, 7.0)):
        found = ScoreCounts.from_rows(y, scores, same)
        assert found.positive == pytest.approx(plain.positive)
        assert found.n_negative == plain.n_negative


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, -1.0, 1.0], [0.0, 1.0, 1.0]])
def test_weights_that_cannot_be_used_are_refused(weights):
    with pytest.raises(ValueError, match="sample_weight"):
        ScoreCounts.from_rows([1, 0, None], [1.0, 2.0, 3.0], weights)
