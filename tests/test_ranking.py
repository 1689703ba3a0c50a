"""Refits of a committee: the scores alone, weighed without the rows that they lack."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.base import clone

from pnuauc import AutoAUCClassifier
from pnuauc._basis import MultiscaleBasis
from pnuauc._committee import RankingOnly
from pnuauc._committee._models import Gaussians
from pnuauc._committee._processes import KernelSum, average_processes
from pnuauc._committee._views import Look, SparseView, fit_view
from pnuauc._linear import LinearModel
from pnuauc._study._committee import labelled_only, quietly
from pnuauc._study._crossfit import cross_fit
from pnuauc.datasets import make_thresholds, make_twonorm, sample_pnu
from pnuauc.labels import read_roles


def committee(prior=0.2, members=None):
    return AutoAUCClassifier(
        prior=prior, members=members, unlabeled_label=-1, verbose=False, random_state=0
    )


def drawn(sizes):
    X, y = make_twonorm(2000, n_features=4, random_state=0)
    return sample_pnu(X, y, *sizes, 0.2, 0, n_test=300)


@pytest.mark.parametrize("sizes", [(6, 30, 200), (8, 0, 200), (8, 40, 0)])
def test_with_fixed_weights_it_is_the_committee(sizes):
    sample = drawn(sizes)
    whole = committee().fit(sample.X, sample.y)
    alone = RankingOnly(committee()).fit(sample.X, sample.y)
    assert alone.weights_ == {m.name: m.weight for m in whole.members_}
    # the same folds, seeds and members; mean and spread come from the same rows
    np.testing.assert_allclose(
        alone.decision_function(sample.X_test),
        whole.decision_function(sample.X_test) + whole.threshold_,
        atol=1e-10,
    )


def test_members_on_trial_are_weighed_anew():
    X, y = make_thresholds(3000, table=7, random_state=0)
    sample = sample_pnu(X, y, 40, 120, 200, 0.3, 0, n_test=300)
    model = committee(0.3, ["kernels", "boosting"])
    whole, alone = (m.fit(sample.X, sample.y) for m in (clone(model), RankingOnly(model)))
    weights = {m.name: m.weight for m in whole.members_}
    assert set(alone.weights_) == set(weights)
    # three folds instead of five, and fewer rows: the AUCs behind a weight scatter by some .03,
    # and .05 are a factor e
    ratio = alone.weights_["boosting"] / weights["boosting"]
    assert abs(np.log(ratio)) < 2 * 0.03 / 0.05
    both = alone.decision_function(sample.X_test), whole.decision_function(sample.X_test)
    assert spearmanr(*both).statistic > 0.95


def test_given_weights_are_kept_and_members_without_one_left_out():
    sample = drawn((6, 30, 100))
    given = {"kernels": 2.0, "processes": 0.5}
    found = clone(RankingOnly(committee(), given)).fit(sample.X, sample.y)
    assert found.weights_ == given
    seats = {seat.name: seat for seat in found.scorer_.seats}
    assert list(seats) == ["kernels", "processes"]


def test_folds_are_told_as_they_are_done():
    sample = drawn((9, 40, 60))
    roles = read_roles(sample.y, unlabeled_label=-1)
    told = []
    cross_fit(
        quietly(committee(members=["trees"])),
        sample.X,
        roles,
        np.arange(len(roles)),
        n_folds=3,
        seed=0,
        tick=lambda name, share: told.append((name, share)),
    )
    assert told == [("held-out folds", pytest.approx(k / 3)) for k in range(4)]


def test_without_unlabelled_rows_members_and_weights_stay_by_fold():
    sample = drawn((9, 40, 120))
    roles = read_roles(sample.y, unlabeled_label=-1)
    quiet = quietly(committee(members=["kernels", "trees"]))
    rows = np.arange(len(roles))
    held_out = cross_fit(quiet, sample.X, roles, rows, n_folds=3, seed=0)
    weights = [{"kernels": 1.0, "trees": float(k)} for k in range(3)]
    for (_, fitted), own in zip(held_out.folds, weights, strict=True):
        fitted.weights_ = own
    alone = cross_fit(labelled_only(quiet, held_out), sample.X, roles, rows, n_folds=3, seed=0)
    assert [sorted(f.weights_.items()) for _, f in alone.folds] == [
        [("kernels", 1.0)],
        [("kernels", 1.0), ("trees", 1.0)],
        [("kernels", 1.0), ("trees", 2.0)],
    ]
    assert [f.committee.max_unlabeled for _, f in alone.folds] == [0, 0, 0]
    for (test, _), (again, _) in zip(held_out.folds, alone.folds, strict=True):
        np.testing.assert_array_equal(test, again)


def test_distances_to_labelled_rows_are_exact_at_them():
    """However many rows are scored together; far from 0 as well."""
    rng = np.random.RandomState(0)
    X, positive = rng.standard_normal((30, 3)) + 1e3, np.arange(30) < 9
    model = average_processes({"filled": X}, positive)["filled"]
    assert len(model.widths)
    together = model.score(X)
    by_hand = X @ model.slope
    for width, power, coef in zip(model.widths, model.powers, model.coef, strict=True):
        distance = np.linalg.norm(X[:, None] - X, axis=2)
        by_hand += np.exp(-((distance / width) ** power) / power) @ coef
    np.testing.assert_allclose(together, by_hand, atol=1e-5)  # kernels are float32
    np.testing.assert_allclose(
        [model.score(X[i : i + 1])[0] for i in range(30)], together, atol=1e-11
    )


def test_text_is_turned_in_one_product_or_two(monkeypatch):
    X = sparse.random_array((60, 40), density=0.2, format="csr", random_state=0)
    view = fit_view(X, 0)
    quick = view.components(X)
    monkeypatch.setattr("pnuauc._committee._views._AXES_CELLS", 0)
    again = SparseView(view.centers, view.turn)
    np.testing.assert_allclose(again.components(X), quick, atol=1e-12)
    # with all rows as centres they are the right singular vectors, signs aside
    _, _, axes = np.linalg.svd(X.toarray(), full_matrices=False)
    expected = X.toarray() @ axes[: quick.shape[1]].T
    expected /= np.linalg.norm(expected, axis=1)[:, None]
    np.testing.assert_allclose(np.abs(quick), np.abs(expected), atol=1e-8)


def test_rows_taken_after_a_look_are_as_before():
    X = np.random.RandomState(0).standard_normal((20, 3))
    view, rows = fit_view(X, 0), np.array([7, 2, 2])
    look = Look(X, view)
    before = look.take(rows)
    seen = {name: getattr(look, name) for name in ("squashed", "components", "trees")}
    after = look.take(rows)
    for name, values in seen.items():
        np.testing.assert_array_equal(vars(after)[name], values[rows])
        np.testing.assert_allclose(getattr(before, name), values[rows], atol=1e-14)


def test_fast_kernels_are_the_formula():
    """Both kernel models against their formulas in double precision; equal rows tie."""
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((3000, 7)), rng.standard_normal((90, 7))
    X[::3] = X[0]
    X[1] = centers[4]
    distance = cdist(X, centers)
    coef, slope = rng.standard_normal((4, 90)), rng.standard_normal(7)
    widths, powers = np.array([8.0, 4.0, 1.0, 3.0]), np.array([2, 2, 2, 1])
    model = KernelSum(centers, widths, powers, coef, slope)
    exact = X @ slope
    for width, power, c in zip(widths, powers, coef):
        exact += np.exp(-((distance / width) ** power) / power) @ c
    basis = MultiscaleBasis.from_parts(centers, widths)
    sums = Gaussians(LinearModel(basis, coef.ravel()))
    plain = sum(np.exp(-((distance / w) ** 2) / 2) @ c for w, c in zip(widths, coef))
    for found, wanted in ((model.score(X), exact), (sums.score(X), plain)):
        np.testing.assert_allclose(found, wanted, atol=2e-4)  # 360 terms of 1e-6 each at most
        assert np.corrcoef(found, wanted)[0, 1] > 1 - 1e-10
        assert np.ptp(found[::3]) < 1e-12
