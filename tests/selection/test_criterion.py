"""Tests of selection/criterion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pnuauc.selection import criterion
from pnuauc.selection.criterion import (
    Criterion,
    FoldCounts,
    count_below,
    held_out_covariance,
    validation_risks,
)
from tests.conftest import wins


def drawn(seed=0, n_candidates=3, sizes=(5, 7, 40)):
    """Scores of P, N and U under some candidates, with ties, and whole weights of the rows."""
    rng = np.random.default_rng(seed)
    scores = [np.round(rng.normal(m, 1, (n_candidates, n)), 1) for m, n in zip((1, 0, 0.3), sizes)]
    return scores, [rng.integers(1, 4, n).astype(float) for n in sizes]


def counted(scores, weights=(None, None, None)):
    """The counts, unlabelled rows in two blocks."""
    p, n, u = scores
    counts = FoldCounts.from_labeled(p, n, weights[0], weights[1])
    cut, w = u.shape[1] // 2, weights[2]
    halves = (None, None) if w is None else (w[:cut], w[cut:])
    found = count_below(counts.marks, u[:, :cut].copy(), halves[0])
    found += count_below(counts.marks, u[:, cut:].copy(), halves[1])
    mass = u.shape[1] if w is None else w.sum()
    return counts.with_unlabeled(np.c_[found, np.full(len(u), mass)])


def repeated(scores, weights):
    return [np.repeat(part, w.astype(int), axis=1) for part, w in zip(scores, weights)]


def folds_of():
    return [drawn(seed, sizes=sizes)[0] for seed, sizes in enumerate([(4, 6, 30), (5, 6, 31)])]


def counts_of(folds):
    return [counted(fold) for fold in folds]


def brute_force(scores, prior):
    """(R_PN, R_PU, R_NU) of every candidate, shape (3, c)."""
    found = []
    for p, n, u in zip(*scores):
        pn, pu, un = (1 - wins(a, b).mean() for a, b in ((p, n), (p, u), (u, n)))
        found.append([pn, (pu - prior / 2) / (1 - prior), (un - (1 - prior) / 2) / prior])
    return np.transpose(found)


@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 30)),
    values=st.integers(1, 50),
    seed=st.integers(0, 99),
)
def test_risks_of_a_fold_are_sums_over_pairs(sizes, values, seed):
    rng = np.random.default_rng(seed)
    scores = [rng.integers(0, values, (3, size)).astype(float) for size in sizes]
    np.testing.assert_allclose(counted(scores).risks(0.3), brute_force(scores, 0.3), atol=1e-12)
    assert np.isnan(counted(scores).risks(None)[1:]).all()


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


@pytest.mark.parametrize(("setting", "part"), [("PN", 0), ("PU", 1), ("NU", 2)])
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


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from([1, 3, 50, 10**6]))
def test_of_many_labeled_rows_only_some_scores_are_anchors(seed, n_anchors, n_values):
    """Any scores, also with many ties: all rows are counted, and pairs of one cell are tied."""
    rng = np.random.default_rng(seed)
    scores = [rng.integers(0, n_values, (2, n)) * rng.random() for n in (90, 60, 400)]
    exact = counted(scores).risks(0.1)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(criterion, "ANCHORS", n_anchors)
        thin = counted(scores)
    assert thin.anchors.shape[1] <= n_anchors
    assert thin.masses.tolist() == [90, 60, 400]
    tied = (thin.positive * thin.negative)[:, ::2].sum(axis=1) / (90 * 60)
    assert (np.abs(thin.risks(0.1)[0] - exact) <= tied / 2 + 1e-12).all()


def test_few_anchors_serve_smooth_scores():
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal((3, n)) + shift for n, shift in ((3000, 1), (5000, 0), (20_000, 0))]
    found = counted(rows)
    np.testing.assert_allclose(found.risks(0.1), brute_force(rows, 0.1), atol=2e-4)


def test_held_out_covariance_is_that_of_repeated_draws():
    """400 draws of one candidate; variances agree within 25%, correlations within 0.15."""
    rng = np.random.default_rng(0)
    prior, sizes = 0.2, (20, 40, 300)
    found, estimated = [], []
    for _ in range(400):
        p, n = rng.normal(1, 1, (1, sizes[0])), rng.normal(0, 1, (1, sizes[1]))
        u = rng.normal(rng.random((1, sizes[2])) < prior, 1)
        counts = counted((p, n, u))
        found.append(counts.risks(prior)[:, 0])
        estimated.append(held_out_covariance([counts], prior))
    simulated, mean = np.cov(np.array(found).T), np.mean(estimated, axis=0)
    np.testing.assert_allclose(np.diag(mean), np.diag(simulated), rtol=0.25)
    scale = np.sqrt(np.outer(np.diag(simulated), np.diag(simulated)))
    np.testing.assert_allclose(mean / scale, simulated / scale, atol=0.15)


@pytest.mark.parametrize("seed", range(4))
def test_a_weight_of_two_is_a_row_twice(seed):
    scores, weights = drawn(seed)
    heavy, long = counted(scores, weights), counted(repeated(scores, weights))
    np.testing.assert_allclose(heavy.risks(0.3), long.risks(0.3))
    for prior in (0.3, None):
        np.testing.assert_allclose(
            held_out_covariance([heavy], prior), held_out_covariance([long], prior), atol=1e-12
        )


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


def test_a_fold_without_unlabeled_rows_leaves_labeled_pairs():
    folds = [drawn(0)[0], drawn(1, sizes=(5, 6, 0))[0]]
    found = held_out_covariance(counts_of(folds), 0.3)
    np.testing.assert_allclose(found, held_out_covariance(counts_of(folds), None))
    assert found[0, 0] > 0
