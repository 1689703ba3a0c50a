"""Tests of core/solvers."""

from __future__ import annotations

import numpy as np
import pytest

from pnuauc.core.basis import MultiscaleBasis
from pnuauc.core.moments import Moments
from pnuauc.core.risks import QuadraticForm, nu_risk, pn_risk, pu_risk
from pnuauc.core.solvers import LinearModel, check_alpha, minimize, solve_ridge
from pnuauc.losses import LOSSES, get_loss
from pnuauc.selection import TrainedGrid, deal_folds


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


ALPHAS = [1e-3, 1e-2, 0.1, 1.0, 10.0]


def random_form(seed, b=6, convex=True):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((b, b))
    quadratic = root @ root.T if convex else (root + root.T) / 2
    return QuadraticForm(1.0, rng.standard_normal(b), quadratic, convex)


@pytest.mark.parametrize("convex", [True, False])
@pytest.mark.parametrize("n_alphas", [1, 5])
def test_the_gradient_vanishes_at_the_solution(convex, n_alphas):
    form = random_form(0, convex=convex)
    minima = solve_ridge(form, ALPHAS[:n_alphas])
    values, vectors = np.linalg.eigh(form.quadratic)
    lifted = np.maximum(values, max(-values.min(), 0))
    projected = vectors @ np.diag(lifted) @ vectors.T
    for alpha, found in zip(ALPHAS, minima, strict=False):
        residual = (projected + alpha * np.eye(6)) @ found.coef - form.linear
        assert np.abs(residual).max() < 1e-10
        assert bool(found.correction) is not convex


def test_a_saddle_is_never_returned():
    """An indefinite form: the linear system has a solution, but it is no minimum."""
    form = QuadraticForm(1.0, np.array([1.0, 1.0]), np.diag([1.0, -0.5]))
    (solution,) = solve_ridge(form, [0.1])
    assert solution.correction.kind == "eigenvalue_floor"
    assert solution.correction.n_negative == 1
    assert solution.correction.lowest == pytest.approx(-0.5)
    np.testing.assert_allclose(solution.coef, [1 / 1.1, 1 / 0.6])


def test_singular_forms_without_ridge_give_the_least_norm():
    form = QuadraticForm(1.0, np.array([2.0, 0.0]), np.diag([4.0, 0.0]), True)
    np.testing.assert_allclose(solve_ridge(form, [0.0])[0].coef, [0.5, 0.0])


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "1", None, True])
def test_bad_ridges_are_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        check_alpha(alpha)


def objective_of(risk, loss, rows):
    """Value and gradient of a risk as a function of w, for rows kept by role."""
    stage = get_loss(loss)

    def parts_at(w):
        found = risk.part_gradients(stage, {r: x @ w for r, x in rows.items()})
        return [(p, v, sum(rows[r].T @ g for r, g in grad.items())) for p, v, grad in found]

    return parts_at


def draw_rows(seed, sizes=(6, 8, 20), b=3):
    rng = np.random.default_rng(seed)
    shift = {"P": 0.5, "N": -0.5, "U": 0.0}
    return {r: rng.standard_normal((n, b)) + shift[r] for r, n in zip("PNU", sizes, strict=True)}


@pytest.mark.parametrize("loss", [n for n, loss in LOSSES.items() if loss.differentiable])
def test_lbfgs_reaches_a_point_of_zero_gradient(loss):
    rows = draw_rows(0)
    parts_at = objective_of(pn_risk(), loss, rows)
    minimum = minimize(parts_at, np.zeros(3), alpha=0.05, tol=1e-9)
    ((_, _, gradient),) = parts_at(minimum.coef)
    assert np.abs(gradient + 0.1 * minimum.coef).max() < 1e-6
    assert minimum.converged
    assert not minimum.correction


def test_squared_loss_by_both_roads():
    rows = draw_rows(1)
    form = pu_risk(0.2).quadratic_form({r: Moments.from_rows(x) for r, x in rows.items()})
    closed = solve_ridge(form, [0.1])[0].coef
    found = minimize(objective_of(pu_risk(0.2), "squared", rows), np.zeros(3), 0.1, tol=1e-10)
    # the floor bends the objective by 2.5e-7 / risk: the minimiser moves that much at most
    np.testing.assert_allclose(found.coef, closed, atol=1e-4)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_unbounded_risks_are_held_at_the_floor(loss):
    """One unlabelled row far below all: without a floor the NU risk falls for ever."""
    rows = {"N": np.array([[-3.0], [3.0], [0.0]]), "U": np.array([[0.1], [0.2]])}
    parts_at = objective_of(nu_risk(0.1), loss, rows)
    minimum = minimize(parts_at, np.array([0.1]), alpha=1e-3)
    assert np.isfinite(minimum.coef).all()
    assert minimum.correction.kind == "non_negative"
    assert minimum.correction.lowest < 1e-3
