"""Tests of core/losses."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from scipy import optimize

from pnuauc.core.risks import pn_risk
from pnuauc.core.solvers import minimize
from pnuauc.losses import (
    LOSSES,
    Absolute,
    Hinge,
    Loss,
    PiecewisePolynomial,
    SmoothedAbsolute,
    SmoothedHinge,
    SmoothLoss,
    get_loss,
)
from tests.core.test_solvers import draw_rows, objective_of

WIDTHS = (1e-3, 0.1, 0.7)

ALL = [
    *LOSSES.values(),
    *(SmoothedHinge(width) for width in WIDTHS),
    *(SmoothedAbsolute(width) for width in WIDTHS),
]

WITH_DERIVATIVE = [loss for loss in ALL if loss.has_derivative]

DIFFERENTIABLE = [loss for loss in ALL if loss.differentiable]


def margins_away_from_corners(loss: Loss, distance: float = 1e-4) -> np.ndarray:
    m = np.random.default_rng(0).uniform(-6.0, 6.0, 4000)
    if isinstance(loss, PiecewisePolynomial):
        m = np.concatenate(
            [m, *(term.knot + 10.0 * distance * np.linspace(-1, 1, 8) for term in loss.terms)]
        )
        for k in {term.knot for term in loss.terms}:
            m = m[np.abs(m - k) > distance]
    return m


def formula(loss: Loss):
    """The docstring's first line, as a function of m."""
    first = (type(loss).__doc__ or "").split("\n")[0]
    text = re.fullmatch(r"l\(m\) = (.*?)(, a tie counts 1/2)?\.", first)
    assert text is not None, f"{loss.name}: the docstring must begin with 'l(m) = ...'"
    scope = {"exp": np.exp, "log": np.log, "max": np.maximum, "abs": np.abs, "sign": np.sign}
    if dataclasses.is_dataclass(loss):
        scope |= {field.name: getattr(loss, field.name) for field in dataclasses.fields(loss)}
    code = re.sub(r"(\d) (width)", r"\1 * \2", text[1].replace("^", "**"))
    parts = re.fullmatch(r"(.*) for (.*), else (.*)", code)
    if parts is None:
        return lambda m: eval(code, scope | {"m": m})
    inside, condition, outside = parts.groups()
    return lambda m: np.where(
        *(eval(part, scope | {"m": m}) for part in (condition, inside, outside))
    )


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_value_is_the_docstring_formula(loss):
    m = np.concatenate([np.linspace(-20, 20, 801), margins_away_from_corners(loss)])
    np.testing.assert_allclose(loss.value(m), formula(loss)(m), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("loss", WITH_DERIVATIVE, ids=repr)
def test_derivative_is_the_slope_of_the_value(loss):
    m, h = margins_away_from_corners(loss), 1e-5
    slope = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    scale = np.maximum(1.0, np.abs(loss.derivative(m)))
    np.testing.assert_allclose(loss.derivative(m) / scale, slope / scale, atol=1e-8)


@pytest.mark.parametrize("loss", DIFFERENTIABLE, ids=repr)
def test_differentiable_means_a_derivative_without_jumps(loss):
    knots = [term.knot for term in getattr(loss, "terms", ())]
    for k in knots or [0.0, 1.0]:
        left, at, right = loss.derivative([k - 1e-9, k, k + 1e-9])
        assert abs(right - left) < 1e-5
        assert min(left, right) - 1e-12 <= at <= max(left, right) + 1e-12


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_convex_flag(loss):
    rng = np.random.default_rng(1)
    left, right = rng.uniform(-5, 5, (2, 5000))
    excess = loss.value((left + right) / 2) - (loss.value(left) + loss.value(right)) / 2
    assert (excess.max() <= 1e-12) == loss.convex


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_lipschitz_flag(loss):
    m = np.linspace(-30.0, 30.0, 60001)
    steepest = np.max(np.abs(np.diff(loss.value(m))) / np.diff(m))
    if np.isinf(loss.lipschitz):
        assert steepest > 50.0
    else:
        assert 0.999 * loss.lipschitz < steepest <= loss.lipschitz * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=repr)
def test_consistent_flag(loss):
    """Gao and Zhou (2015): convex, differentiable, non-increasing with l'(0) < 0 suffices; squared
    and zero-one loss are consistent by other arguments, hinge and absolute loss are not."""
    m = np.linspace(-20.0, 20.0, 4001)
    falls = loss.has_derivative and loss.derivative(0.0) < 0 and (loss.derivative(m) <= 0).all()
    proved = loss.convex and loss.differentiable and falls
    assert loss.consistent == (proved or loss.name in {"squared", "zero_one"})


@pytest.mark.parametrize("loss", [x for x in ALL if isinstance(x, SmoothLoss)], ids=repr)
def test_smooth_losses_have_the_tails_they_declare(loss):
    m = np.linspace(0.0, 700.0, 701)
    assert (loss.value(m) * np.exp(m)).max() <= 1.0 + 1e-12
    np.testing.assert_allclose(loss.value(-m) - m, loss.value(m), atol=1e-12)


@pytest.mark.parametrize("loss", [x for x in ALL if isinstance(x, PiecewisePolynomial)], ids=repr)
def test_terms_add_up_to_the_value(loss):
    m = np.linspace(-5.0, 5.0, 501)
    np.testing.assert_allclose(sum(term.at(m) for term in loss.terms), loss.value(m), atol=1e-11)
    if loss.has_derivative:
        slope = sum(term.at(m) for term in loss.slope_terms)
        np.testing.assert_allclose(slope, loss.derivative(m), atol=1e-11)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_huge_margins_give_no_warning_and_no_nan(loss):
    m = np.array([-1e300, -1e6, -800.0, 800.0, 1e6])
    with np.errstate(over="ignore"):  # (1 - m)^2 of 1e300 is infinite, and says so by itself
        assert not np.isnan(loss.value(m)).any()
        if loss.has_derivative:
            assert not np.isnan(loss.derivative(m)).any()


def test_corners_answer_with_the_mean_of_both_sides():
    assert get_loss("zero_one").value([-1.0, 0.0, 1.0]).tolist() == [1.0, 0.5, 0.0]
    assert get_loss("hinge").derivative([0.0, 1.0, 2.0]).tolist() == [-1.0, -0.5, 0.0]
    assert get_loss("absolute").derivative([0.0, 1.0, 2.0]).tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("corner", "share"), [(Hinge(), 0.25), (Absolute(), 0.5)])
def test_smoothing_is_exact_outside_and_bounded_inside(corner, share, width):
    smooth = corner.smoothed(width)
    assert smooth.differentiable
    assert smooth.width == width
    m = np.linspace(-3.0, 5.0, 4001)
    gap = smooth.value(m) - corner.value(m)
    assert gap.min() >= -1e-12
    assert smooth.value(1.0) - corner.value(1.0) == pytest.approx(share * width)
    assert gap.max() <= share * width + 1e-12
    np.testing.assert_allclose(gap[np.abs(m - 1.0) >= width], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "ask",
    [
        lambda loss: loss.derivative(0.5),
        lambda loss: loss.smoothed(0.1),
    ],
)
def test_zero_one_says_that_it_has_no_derivative(ask):
    with pytest.raises(ValueError, match="The zero_one loss has no"):
        ask(get_loss("zero_one"))


@pytest.mark.parametrize("width", [0.0, -1.0, 1.0, np.nan, np.inf])
@pytest.mark.parametrize("family", [SmoothedHinge, SmoothedAbsolute])
def test_smoothing_width_is_checked(family, width):
    with pytest.raises(ValueError, match="smoothing width"):
        family(width)


@pytest.mark.parametrize(("loss", "box"), [("hinge", (0.0, 1.0)), ("absolute", (-1.0, 1.0))])
def test_smoothed_losses_reach_the_exact_optimum(loss, box):
    """Against the dual quadratic program, solved as a box-constrained problem of its own:

    max_beta sum beta - |sum beta_ij (x_i - x_j)|^2 / (4 alpha), beta_ij in box / (n_P n_N).
    """
    rows, alpha = draw_rows(2), 0.05
    differences = (rows["P"][:, None] - rows["N"][None]).reshape(-1, 3)
    n = len(differences)

    def negative_dual(beta):
        w = differences.T @ beta / (2 * alpha)
        return alpha * w @ w - beta.sum(), differences @ w - 1.0

    bounds = [(box[0] / n, box[1] / n)] * n
    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000, "maxfun": 50000}
    dual = optimize.minimize(
        negative_dual, np.zeros(n), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    w = np.zeros(3)
    for width in (0.5, 0.1, 0.01, 0.001):
        stage = get_loss(loss).smoothed(width)
        w = minimize(objective_of(pn_risk(), stage, rows), w, alpha, tol=1e-9).coef
    primal = LOSSES[loss].value(differences @ w).mean() + alpha * w @ w
    gap = primal + dual.fun
    assert -1e-9 < gap < 1e-3  # weak duality below; above, the width of the smoothing
    np.testing.assert_allclose(w, differences.T @ dual.x / (2 * alpha), atol=5e-3)
