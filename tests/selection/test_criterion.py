"""Tests of selection/criterion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pnuauc.selection import criterion as _counts
from pnuauc.selection.criterion import (
    Criterion,
    FoldCounts,
    count_below,
    held_out_covariance,
    validation_risks,
    with_next_above,
)
from tests.conftest import wins


def folds_of(seed=0, n_candidates=3, sizes=((4, 6, 30), (5, 6, 31)), digits=1):
    """Held-out scores of some candidates by fold: lists of (P, N, U), with ties."""
    rng = np.random.default_rng(seed)
    return [
        [np.round(rng.normal(m, 1.0, (n_candidates, n)), digits) for m, n in zip((1, 0, 0.3), size)]
        for size in sizes
    ]


def counts_of(folds):
    out = []
    for p, n, u in folds:
        counts = FoldCounts.from_labeled(p, n)
        marks, ranked = counts.marks, np.sort(u, axis=1)
        sides = (
            np.array([r.searchsorted(m, side=side) for r, m in zip(ranked, marks)])
            for side in ("left", "right")
        )
        out.append(counts.with_unlabeled(np.concatenate(list(sides), axis=1), u.shape[1]))
    return out


def test_risks_of_a_fold_are_sums_over_pairs():
    prior = 0.3
    for (p, n, u), counts in zip(folds_of(), counts_of(folds_of())):
        risks = counts.risks(prior)
        for c in range(3):
            pn, pu, un = (1 - wins(a[c], b[c]).mean() for a, b in ((p, n), (p, u), (u, n)))
            assert risks["PN"][c] == pytest.approx(pn)
            assert risks["PU"][c] == pytest.approx((pu - prior / 2) / (1 - prior))
            assert risks["NU"][c] == pytest.approx((un - (1 - prior) / 2) / prior)
    assert np.isnan(counts.risks(None)["PU"]).all()


def test_covariance_is_that_of_the_projections():
    """Placements of each role's rows, pooled over folds; mean over candidates."""
    prior, folds = 0.3, folds_of()
    expected = np.zeros((3, 3))
    n_candidates = 3
    for c in range(n_candidates):
        on_p, on_n, on_u = [], [], []
        for p, n, u in ([part[c] for part in fold] for fold in folds):
            zeros = [np.zeros(len(part)) for part in (p, n, u)]
            pn, pu, un = wins(p, n), wins(p, u), wins(u, n)
            on_p.append([pn.mean(1), pu.mean(1) / (1 - prior), zeros[0]])
            on_n.append([pn.mean(0), zeros[1], un.mean(0) / prior])
            on_u.append([zeros[2], pu.mean(0) / (1 - prior), un.mean(1) / prior])
        for rows in (on_p, on_n):
            pooled = np.concatenate(rows, axis=1)
            expected += np.cov(pooled) / pooled.shape[1] / n_candidates
        total = sum(part[0].shape[0] for part in on_u)
        spread = np.mean([np.cov(part, bias=True) for part in on_u], axis=0)
        expected += spread / total / n_candidates
    np.testing.assert_allclose(held_out_covariance(counts_of(folds), prior), expected, atol=1e-12)
    labeled = held_out_covariance(counts_of(folds), None)
    assert labeled[0, 0] == pytest.approx(expected[0, 0])
    assert np.count_nonzero(labeled) == 1


def test_unusable_candidates_have_no_say():
    prior, counts = 0.3, counts_of(folds_of())
    usable = np.array([True, False, True])
    some = [c.of(usable) for c in counts]
    etas = np.array([0.0, 0.5, 0.5])
    found = validation_risks(counts, etas, "PNU", prior, "combined", usable)
    alone = validation_risks(some, etas[usable], "PNU", prior, "combined")
    assert np.isnan(found.fold_risks[:, 1]).all()
    np.testing.assert_allclose(found.fold_risks[:, usable], alone.fold_risks)
    assert found.noise == pytest.approx(alone.noise)


@pytest.mark.parametrize(("setting", "part"), [("PN", "PN"), ("PU", "PU"), ("NU", "NU")])
def test_two_roles_leave_no_choice_of_weights(setting, part):
    counts = counts_of(folds_of())
    prior = None if setting == "PN" else 0.3
    found = validation_risks(counts, np.zeros(3), setting, prior, "combined")
    for k, fold in enumerate(counts):
        np.testing.assert_allclose(found.fold_risks[k], fold.risks(prior)[part])


def test_mean_and_error_over_the_folds_that_have_a_value():
    risks = np.array([[0.1, 0.4, np.nan], [0.3, np.nan, np.nan], [0.8, 0.6, np.nan]])
    found = Criterion("simple", risks, {}, 0.1)
    np.testing.assert_allclose(found.mean, [0.4, 0.5, np.nan])
    np.testing.assert_allclose(found.std[:2], [np.std(risks[:, 0]), 0.1])
    expected = [np.std(risks[:, 0], ddof=1) / np.sqrt(3), np.std([0.4, 0.6], ddof=1) / np.sqrt(2)]
    np.testing.assert_allclose(found.std_error[:2], expected)


def test_a_fold_without_unlabeled_rows_leaves_labeled_pairs():
    folds = folds_of(sizes=((4, 6, 30), (5, 6, 0)))
    found = held_out_covariance(counts_of(folds), 0.3)
    np.testing.assert_allclose(found, held_out_covariance(counts_of(folds), None))
    assert found[0, 0] > 0


def counts_of_marks(positive, negative, unlabeled, n_marks=None):
    with pytest.MonkeyPatch.context() as patch:
        if n_marks is not None:
            patch.setattr(_counts, "MARKS", n_marks)
        counts = _counts.FoldCounts.from_labeled(positive, negative)
        marks = _counts.Marks.of(counts)
        assert marks.wanted.shape[1] <= 4 * (n_marks or 10**9)
        found = _counts.count_below(marks.wanted, unlabeled.copy())
        return counts.with_unlabeled(marks.spread(found), unlabeled.shape[1])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from([1, 3, 50]))
def test_thinned_marks_stay_within_their_bound(seed, n_marks, n_values):
    """Any scores, also with many ties: shares of U below a class, and order of the counts."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, n_values, (2, n)) * rng.random() for n in (90, 60, 400)]
    exact, thin = counts_of_marks(*rows), counts_of_marks(*rows, n_marks)
    for part in (slice(0, 90), slice(90, 150)):
        error = (thin.unlabeled_below - exact.unlabeled_below)[:, part].mean(axis=1)
        assert np.abs(error).max() <= 1 / (n_marks - 1) + 1e-12
    assert (thin.below <= thin.upto + 1e-9).all()
    order = np.argsort(thin.marks, axis=1, kind="stable")
    ranked = np.take_along_axis(thin.unlabeled_below, order, axis=1)
    assert (np.diff(ranked, axis=1) >= -1e-12).all()


def test_thinned_marks_of_smooth_scores_are_far_closer():
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal((3, n)) + shift for n, shift in ((3000, 1), (5000, 0), (50_000, 0))]
    exact, thin = counts_of_marks(*rows), counts_of_marks(*rows, 400)
    for name, risk in exact.risks(0.1).items():
        np.testing.assert_allclose(thin.risks(0.1)[name], risk, atol=1e-4)
    np.testing.assert_allclose(thin.unlabeled_spread(), exact.unlabeled_spread(), atol=1e-5)


def half_tied(a, b):
    """Share of pairs a > b, ties half."""
    return np.mean((a[:, None] > b[None]) + 0.5 * (a[:, None] == b[None]))


@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 30)),
    values=st.integers(1, 50),
    seed=st.integers(0, 99),
)
def test_counts_are_exact_with_ties(sizes, values, seed):
    rng = np.random.default_rng(seed)
    p, n, u = (rng.integers(0, values, (3, size)).astype(float) for size in sizes)
    cut = sizes[2] // 2
    marks = with_next_above(np.c_[p, n])
    total = count_below(marks, u[:, :cut].copy()) + count_below(marks, u[:, cut:].copy())
    counts = FoldCounts(p, n, *np.split(total, 2, axis=1), sizes[2])
    risks = counts.risks(0.3)
    spread = counts.unlabeled_spread()
    for c in range(3):
        assert risks["PN"][c] == pytest.approx(1 - half_tied(p[c], n[c]))
        assert risks["PU"][c] == pytest.approx((1 - half_tied(p[c], u[c]) - 0.15) / 0.7)
        assert risks["NU"][c] == pytest.approx((1 - half_tied(u[c], n[c]) - 0.35) / 0.3)
        above = [half_tied(p[c], x[None]) for x in u[c]]
        below = [half_tied(x[None], n[c]) for x in u[c]]
        np.testing.assert_allclose(spread[c], np.cov(above, below, bias=True), atol=1e-12)


def test_held_out_covariance_is_that_of_repeated_draws():
    """400 draws of one candidate; variances agree within 25%, correlations within 0.15."""
    rng = np.random.default_rng(0)
    prior, sizes = 0.2, (20, 40, 300)
    found, estimated = [], []
    for _ in range(400):
        p, n = rng.normal(1, 1, (1, sizes[0])), rng.normal(0, 1, (1, sizes[1]))
        u = rng.normal(rng.random((1, sizes[2])) < prior, 1)
        total = count_below(with_next_above(np.c_[p, n]), u)
        counts = FoldCounts(p, n, *np.split(total, 2, axis=1), sizes[2])
        risks = counts.risks(prior)
        found.append([risks[part][0] for part in ("PN", "PU", "NU")])
        estimated.append(held_out_covariance([counts], prior))
    simulated, mean = np.cov(np.array(found).T), np.mean(estimated, axis=0)
    np.testing.assert_allclose(np.diag(mean), np.diag(simulated), rtol=0.25)
    scale = np.sqrt(np.outer(np.diag(simulated), np.diag(simulated)))
    np.testing.assert_allclose(mean / scale, simulated / scale, atol=0.15)


SIZES = (5, 7, 40)


def drawn(seed=0, n_candidates=3, sizes=SIZES):
    """Scores of P, N and U under some candidates, with ties, and whole weights of the rows."""
    rng = np.random.default_rng(seed)
    scores = [np.round(rng.normal(m, 1, (n_candidates, n)), 1) for m, n in zip((1, 0, 0.3), sizes)]
    return scores, [rng.integers(1, 4, n).astype(float) for n in sizes]


def counted(scores, weights=(None, None, None)):
    p, n, u = scores
    counts = FoldCounts.from_labeled(p, n, weights[0], weights[1])
    found = count_below(with_next_above(counts.marks), u.copy(), weights[2])
    mass = u.shape[1] if weights[2] is None else weights[2].sum()
    return counts.with_unlabeled(found, mass)


def repeated(scores, weights):
    return [np.repeat(part, w.astype(int), axis=1) for part, w in zip(scores, weights)]


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
def test_the_spread_over_unlabeled_rows(sizes):
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


def test_one_fold_has_no_error_and_is_judged_alone():
    criterion = Criterion("simple", np.array([[0.2, 0.4]]), {}, 0.1)
    assert criterion.std_error.tolist() == [0.0, 0.0]
    assert criterion.without(0).noise == pytest.approx(0.1)
    among = criterion.among(np.array([False, True]))
    np.testing.assert_array_equal(among.fold_risks, [[np.nan, 0.4]])
    assert among.noise == 0.1
