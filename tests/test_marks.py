"""Unlabelled rows counted at some of the labelled scores, and grids without a minimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pnuauc._basis import MultiscaleBasis
from pnuauc._moments import Moments
from pnuauc._risks import pnu_risk, quadratic_forms
from pnuauc.selection import TrainedGrid, _counts, deal_folds
from pnuauc.selection._trainers import _share_within, _with_minimum


def counts_of(positive, negative, unlabeled, n_marks=None):
    with pytest.MonkeyPatch.context() as patch:
        if n_marks is not None:
            patch.setattr(_counts, "MARKS", n_marks)
        counts = _counts.FoldCounts.from_labelled(positive, negative)
        marks = _counts.Marks.of(counts)
        assert marks.wanted.shape[1] <= 4 * (n_marks or 10**9)
        found = _counts.count_below(marks.wanted, unlabeled.copy())
        return counts.with_unlabelled(marks.spread(found), unlabeled.shape[1])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from([1, 3, 50]))
def test_thinned_marks_stay_within_their_bound(seed, n_marks, n_values):
    """Any scores, also with many ties: shares of U below a class, and order of the counts."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, n_values, (2, n)) * rng.random() for n in (90, 60, 400)]
    exact, thin = counts_of(*rows), counts_of(*rows, n_marks)
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
    exact, thin = counts_of(*rows), counts_of(*rows, 400)
    for name, risk in exact.risks(0.1).items():
        np.testing.assert_allclose(thin.risks(0.1)[name], risk, atol=1e-4)
    np.testing.assert_allclose(thin.unlabeled_spread(), exact.unlabeled_spread(), atol=1e-5)


def test_few_marks_are_not_thinned():
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal((2, n)) for n in (400, 30, 500)]
    exact, same = counts_of(*rows, 10**6), counts_of(*rows, 400)
    np.testing.assert_array_equal(exact.below, same.below)
    np.testing.assert_array_equal(exact.upto, same.upto)


def test_counts_between_marks_lie_on_a_line():
    """At a mark as counted; between two from the upper count of one to the lower of the next."""
    marks, rows = np.array([[0.0, 1.0, 3.0]]), np.array([[0.0, 0.5, 1.0, 2.5, 3.0]])
    below, upto = np.array([0.0, 4.0, 9.0]), np.array([2.0, 5.0, 9.5])
    found = _counts.Marks(rows, marks).spread(np.concatenate([below, upto])[None])
    line = [2 + 0.5 * (4 - 2), 5 + 0.75 * (9 - 5)]
    expected = [0, line[0], 4, line[1], 9, 2, line[0], 5, line[1], 9.5]
    np.testing.assert_allclose(found[0], expected)
    whole = _counts.Marks(rows, None)
    assert whole.spread(below[None]) is not None
    np.testing.assert_array_equal(whole.spread(below[None])[0], below)


# --- risks without a minimum ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_candidates_with_a_minimum_are_those_whose_form_is_semidefinite(seed):
    """Found by bisection along each sign of eta; here by every eigenvalue."""
    rng = np.random.default_rng(seed)
    rows = {
        "P": rng.normal(size=(4, 5)) * 2,
        "N": rng.normal(size=(6, 5)),
        "U": rng.normal(size=(40, 5)),
    }
    moments = {role: Moments.from_rows(part) for role, part in rows.items()}
    risks = [pnu_risk(round(eta, 1), 0.3) for eta in np.linspace(-0.9, 0.9, 19)]
    lowest = [np.linalg.eigvalsh(form.quadratic)[0] for form in quadratic_forms(risks, moments)]
    found = _with_minimum(risks, moments)
    assert sorted(found) == [i for i, value in enumerate(lowest) if value > -1e-10]
    assert 0 < len(found) < 19
    assert all(form.convex for form in found.values())


def test_pairs_within_a_role_that_a_risk_subtracts():
    """eta > 0: eta prior / (1 - prior) of pairs of positives; eta < 0 mirrors it."""
    assert _share_within(pnu_risk(0.5, 0.3), "P") == pytest.approx(0.5 * 0.3 / 0.7)
    assert _share_within(pnu_risk(0.5, 0.3), "N") == 0
    assert _share_within(pnu_risk(-0.5, 0.3), "N") == pytest.approx(0.5 * 0.7 / 0.3)
    assert _share_within(pnu_risk(0.0, 0.3), "P") == 0


def test_the_table_of_a_choice():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) + (np.arange(120) < 20)[:, None]
    rows = {"P": np.arange(20), "N": np.arange(20, 50), "U": np.arange(50, 120)}
    basis = MultiscaleBasis(8, ("median", "2*median"), random_state=0).fit(X)
    folds = deal_folds(rows, 3, random_state=0)
    grid = TrainedGrid.from_arrays(X, folds, basis, (-0.3, 0.0, 0.6), (0.1, 1.0), 0.2).train()
    chosen = grid.choose("average", "combined", 1.0)
    table, criterion = chosen.table(), chosen.criterion
    np.testing.assert_allclose(table["mean_test_score"], 1 - criterion.mean)
    values = np.where(np.isnan(criterion.mean), np.inf, criterion.mean)
    np.testing.assert_array_equal(table["rank_test_risk"], stats.rankdata(values, method="min"))
    for k in range(3):
        np.testing.assert_array_equal(table[f"split{k}_test_risk"], criterion.fold_risks[k])
    assert table["weight"].sum() == pytest.approx(1)
    np.testing.assert_allclose(table["weight"][chosen.choice.kept], chosen.choice.weights)
    assert table["params"][0] == {"width": table["param_width"][0], "eta": -0.3, "alpha": 0.1}
