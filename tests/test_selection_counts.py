"""Counts of held-out rows by brute force: weights are repeated rows; the edges of a choice."""

from __future__ import annotations

import numpy as np
import pytest

from pnuauc._basis import MultiscaleBasis
from pnuauc._linear import LinearModel
from pnuauc.selection import TrainedGrid, _counts, deal_folds
from pnuauc.selection._choice import Candidates, Choice, average, explain
from pnuauc.selection._counts import FoldCounts, Marks, count_below, with_next_above
from pnuauc.selection._criterion import (
    Criterion,
    _least_variance,
    _least_variance_simplex,
    held_out_covariance,
    validation_risks,
)
from pnuauc.selection._folds import FoldedRows, read_cv
from pnuauc.selection._grid import _Meter
from pnuauc.selection._heldout import _add_counts
from pnuauc.selection._trainers import Fitted
from tests.conftest import wins

SIZES = (5, 7, 40)


def drawn(seed=0, n_candidates=3, sizes=SIZES):
    """Scores of P, N and U under some candidates, with ties, and whole weights of the rows."""
    rng = np.random.default_rng(seed)
    scores = [np.round(rng.normal(m, 1, (n_candidates, n)), 1) for m, n in zip((1, 0, 0.3), sizes)]
    return scores, [rng.integers(1, 4, n).astype(float) for n in sizes]


def counted(scores, weights=(None, None, None)):
    p, n, u = scores
    counts = FoldCounts.from_labelled(p, n, weights[0], weights[1])
    found = count_below(with_next_above(counts.marks), u.copy(), weights[2])
    mass = u.shape[1] if weights[2] is None else weights[2].sum()
    return counts.with_unlabelled(found, mass)


def repeated(scores, weights):
    return [np.repeat(part, w.astype(int), axis=1) for part, w in zip(scores, weights)]


# --- one fold -------------------------------------------------------------------------------------


def test_how_many_scores_lie_below_a_mark():
    (p, _, u), (_, _, weight) = drawn()
    for c in range(3):
        plain = [(u[c] < mark).sum() for mark in p[c]]
        heavy = [weight[u[c] < mark].sum() for mark in p[c]]
        assert count_below(p, u.copy())[c].tolist() == plain
        assert count_below(p, u.copy(), weight)[c].tolist() == heavy
        at_most = [(u[c] <= mark).sum() for mark in p[c]]
        assert count_below(with_next_above(p), u.copy())[c].tolist() == plain + at_most


@pytest.mark.parametrize("seed", range(4))
def test_a_weight_of_two_is_a_row_twice(seed):
    scores, weights = drawn(seed)
    heavy, long = counted(scores, weights), counted(repeated(scores, weights))
    for prior in (0.3, None):
        for name, risk in heavy.risks(prior).items():
            np.testing.assert_allclose(risk, long.risks(prior)[name])
    np.testing.assert_allclose(heavy.unlabeled_spread(), long.unlabeled_spread(), atol=1e-12)
    for name, k in (("pn_placements", 0), ("np_placements", 1)):
        each = getattr(heavy, name)()
        rows = np.repeat(each, weights[k].astype(int), axis=1)
        np.testing.assert_allclose(rows, getattr(long, name)())
    for prior in (0.3, None):
        np.testing.assert_allclose(
            held_out_covariance([heavy], prior), held_out_covariance([long], prior), atol=1e-12
        )


def test_placements_are_shares_of_the_other_class():
    scores, _ = drawn(1)
    counts = counted(scores)
    for c in range(3):
        won = wins(scores[0][c], scores[1][c])
        np.testing.assert_allclose(counts.pn_placements()[c], won.mean(axis=1))
        np.testing.assert_allclose(counts.np_placements()[c], won.mean(axis=0))


@pytest.mark.parametrize("sizes", [SIZES, (5, 0, 40), (0, 7, 40), (1, 1, 9)])
def test_the_spread_over_unlabelled_rows(sizes):
    """Covariance of the shares of P above and of N below each row of U; 0 without the class."""
    scores, _ = drawn(2, sizes=sizes)
    found = counted(scores).unlabeled_spread()
    for c in range(3):
        p, n, u = (part[c] for part in scores)
        above = wins(p, u).mean(axis=0) if len(p) else np.zeros(len(u))
        below = wins(u, n).mean(axis=1) if len(n) else np.zeros(len(u))
        np.testing.assert_allclose(found[c], np.cov([above, below], bias=True), atol=1e-12)


def test_some_candidates_alone():
    scores, weights = drawn()
    kept = np.array([True, False, True])
    some = counted(scores, weights).of(kept)
    own = counted([part[kept] for part in scores], weights)
    for name, risk in some.risks(0.2).items():
        np.testing.assert_array_equal(risk, own.risks(0.2)[name])
    np.testing.assert_array_equal(some.unlabeled_below, own.unlabeled_below)


def test_classes_of_more_than_four_hundred_rows_are_thinned():
    assert _counts.MARKS == 400
    rng = np.random.default_rng(0)
    for n_p, n_n in ((400, 400), (3, 400)):
        whole = FoldCounts.from_labelled(rng.normal(size=(2, n_p)), rng.normal(size=(2, n_n)))
        assert Marks.of(whole).kept is None
    p, n = np.sort(rng.normal(size=(2, 802)), axis=1), rng.normal(size=(2, 30))
    marks = Marks.of(FoldCounts.from_labelled(rng.permuted(p, axis=1), n))
    places = np.round(np.arange(400) * 801 / 399).astype(int)
    assert (places[0], places[-1]) == (0, 801)
    expected = np.sort(np.concatenate([p[:, places], n], axis=1), axis=1)
    np.testing.assert_array_equal(marks.kept, expected)


def test_counts_of_blocks_add_up():
    a = {0: (np.ones((2, 3)), 4.0), 1: (np.zeros((2, 3)), 1.0)}
    b = {0: (np.full((2, 3), 2.0), 5.0), 2: (np.full((2, 3), 7.0), 2.0)}
    found = _add_counts(a, b)
    assert {k: (v[0][0, 0], v[1]) for k, v in found.items()} == {
        0: (3.0, 9.0), 1: (0.0, 1.0), 2: (7.0, 2.0)
    }  # fmt: skip
    assert set(a) == {0, 1}


# --- the criterion --------------------------------------------------------------------------------


def test_folds_without_a_class_leave_its_pairs_out():
    """Placements of the folds that have both classes; those against U from all of them."""
    first, second = drawn(0)[0], drawn(1, sizes=(4, 0, 30))[0]
    prior = 0.25
    found = held_out_covariance([counted(first), counted(second)], prior)
    expected = np.zeros((3, 3))
    for c in range(3):
        p, n, u = (part[c] for part in first)
        rest, _, more = (part[c] for part in second)
        pn, un = wins(p, n), wins(u, n)
        expected[0, 0] += pn.mean(1).var(ddof=1) / 5 + pn.mean(0).var(ddof=1) / 7
        below = np.r_[wins(p, u).mean(1), wins(rest, more).mean(1)] / (1 - prior)
        expected[1, 1] += below.var(ddof=1) / 9
        on_n = np.array([pn.mean(0), un.mean(0) / prior])
        both = np.cov(on_n) / 7
        expected[2, 2] += both[1, 1]
        expected[0, 2] += both[0, 1]
        spread = np.cov([wins(p, u).mean(0) / (1 - prior), un.mean(1) / prior], bias=True)
        other = np.zeros((2, 2))
        other[0, 0] = (wins(rest, more).mean(0) / (1 - prior)).var()
        expected[1:, 1:] += (spread + other) / 2 / 70
    expected[2, 0] = expected[0, 2]
    np.testing.assert_allclose(found, expected / 3, atol=1e-12)


def test_one_row_of_a_class_shows_no_spread():
    scores, _ = drawn(3, sizes=(1, 6, 30))
    found = held_out_covariance([counted(scores)], None)
    variance = np.mean([wins(p, n).mean(0).var(ddof=1) for p, n in zip(scores[0], scores[1])])
    assert found[0, 0] == pytest.approx(variance / 6)


def test_no_candidate_that_is_usable_leaves_nothing_to_judge():
    scores, _ = drawn()
    counts = [counted(scores)] * 2
    found = validation_risks(counts, np.zeros(3), "PNU", 0.3, "simple", np.zeros(3, dtype=bool))
    assert np.isnan(found.fold_risks).all()
    with pytest.raises(ValueError, match="validation must be one of 'simple'"):
        validation_risks(counts, np.zeros(3), "PNU", 0.3, "auc")


def test_weights_stay_between_zero_and_one():
    """The best weight beyond an end is the end."""
    beyond = np.array([[1.0, 1.5, 0.0], [1.5, 4.0, 0.0], [0.0, 0.0, 1.0]])
    assert _least_variance(beyond, 1) == 0.0
    assert _least_variance(beyond[[1, 0, 2]][:, [1, 0, 2]], 1) == 1.0
    assert _least_variance(np.diag([1.0, 3.0, 1.0]), 1) == pytest.approx(0.25)
    assert _least_variance(np.diag([1.0, 3.0, 1.0]), 2) == pytest.approx(0.5)
    assert _least_variance_simplex(np.diag([1.0, 2.0, 4.0])) == pytest.approx(
        (4 / 7, 2 / 7, 1 / 7), abs=1e-3
    )
    tiny = _least_variance_simplex(1e-9 * np.diag([1.0, 2.0, 4.0]))
    assert tiny == pytest.approx((4 / 7, 2 / 7, 1 / 7), abs=1e-3)


def test_one_fold_has_no_error_and_is_judged_alone():
    criterion = Criterion("simple", np.array([[0.2, 0.4]]), {}, 0.1)
    assert criterion.std_error.tolist() == [0.0, 0.0]
    assert criterion.without(0).noise == pytest.approx(0.1)
    among = criterion.among(np.array([False, True]))
    np.testing.assert_array_equal(among.fold_risks, [[np.nan, 0.4]])
    assert among.noise == 0.1


# --- the choice -----------------------------------------------------------------------------------


def test_candidates_of_a_thousandth_of_the_best_weight_are_cut():
    candidates = Candidates.from_grid([1.0], [0.0], [0.1, 1.0, 10.0])
    for share, kept in ((1.01e-3, 3), (0.99e-3, 2)):
        excess = -np.log([1.0, 0.5, share]) * 0.02
        found = average(Criterion("simple", 0.1 + excess[None], {}, 0.04), candidates, 0.5)
        assert len(found.kept) == kept
        assert found.weights.sum() == pytest.approx(1.0)
        assert found.weights[1] / found.weights[0] == pytest.approx(0.5)


def test_etas_within_one_error_of_the_best():
    """Risks .30, .31, .33 with an error of .02 of the best: the first two."""
    candidates = Candidates.from_grid([1.0], [-0.5, 0.0, 0.5], [1.0])
    risks = np.array([[0.28, 0.31, 0.33], [0.32, 0.31, 0.33]])
    criterion = Criterion("simple", risks, {}, 0.1)
    assert criterion.std_error[0] == pytest.approx(0.02)
    choice = Choice(np.array([0]), np.ones(1))
    report = explain(criterion, candidates, choice, None)
    assert (report.eta_low, report.eta_high, report.eta_mean) == (-0.5, 0.0, -0.5)
    assert (report.n_dropped, report.gain, report.gain_std_error) == (0, None, None)
    assert "without a minimum" not in report.message


def test_the_longest_of_several_fits():
    parts = [Fitted(np.ones((2, 3)) * k, np.ones(2) * k, np.array([k > 1, False]), k)
             for k in (1, 3, 2)]  # fmt: skip
    joined = Fitted.joined(parts)
    assert joined.n_iter == 3
    assert joined.coef[:, 0].tolist() == [1, 1, 3, 3, 2, 2]
    assert joined.spread.tolist() == [1, 1, 3, 3, 2, 2]
    assert joined.corrected.tolist() == [False, False, True, False, True, False]
    taken = joined.take(np.array([4, 0]))
    assert (taken.coef[:, 0].tolist(), taken.corrected.tolist(), taken.n_iter) == (
        [2, 1], [True, False], 3
    )  # fmt: skip


# --- folds and rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [2, 7, np.int64(3)])
def test_numbers_of_folds(cv):
    assert read_cv(cv) == cv
    assert type(read_cv(cv)) is int
    for wrong in (1, 0, -2, True, 2.5, "5", None, object()):
        with pytest.raises(ValueError, match="cv must be"):
            read_cv(wrong)
    pairs = [(np.arange(3), np.arange(3, 6))]
    assert read_cv(pairs) is pairs


def test_a_role_dealt_anew_leaves_the_others():
    one, two = ([np.array([k]), np.array([k + 1])] for k in (0, 2))
    folds = FoldedRows({"P": one, "U": two}, 2)
    dealt = folds.refolded("U", np.array([7, 8, 9]), np.array([1, 0, 1]))
    assert [part.tolist() for part in dealt.rows["U"]] == [[8], [7, 9]]
    assert [part.tolist() for part in dealt.rows["P"]] == [[0], [1]]
    assert (dealt.size("U"), folds.size("U"), folds.size("N")) == (3, 2, 0)
    assert repr(folds) == "FoldedRows(2 folds of P=2, U=2)"


def test_the_meter_tells_shares_of_two_visits():
    told = []
    meter = _Meter(10, lambda stage, share: told.append((stage, share)))
    for n in (5, 10, 5, 1):
        meter(n)
    assert told == [("rows", 0.25), ("rows", 0.75), ("rows", 1.0)]


def test_the_threshold_is_what_the_share_of_positives_exceeds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    rows = {"P": np.arange(20), "N": np.arange(20, 40), "U": np.arange(40, 240)}
    basis = MultiscaleBasis(5, ("median",), random_state=0).fit(X)
    folds = deal_folds(rows, 2, random_state=0)
    model = LinearModel(basis.keep([0]), rng.normal(size=5), {})
    for prior in (0.1, 0.35):
        grid = TrainedGrid.from_arrays(X, folds, basis, (0.0,), (1.0,), prior)
        above = model.score(X[40:]) > grid.threshold(model)
        assert above.mean() == pytest.approx(prior, abs=1 / 200)
        assert grid.shape == (1, 1, 1)
        assert grid.setting == "PNU"
