"""Tests of core/theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pnuauc.losses import LOSSES
from pnuauc.theory import (
    BoundConstants,
    bound_constants,
    confidence_term,
    gamma_bar,
    generalization_bound,
    h_delta,
    printed_variance,
    risk_covariance,
    variance_ratio,
)

SIZES = {"n_positive": 10, "n_negative": 8, "n_unlabeled": 30}


def population(m=400, shift=1.0):
    """Midpoint quantiles of two unit Gaussians; taken as the whole population, so no error."""
    base = stats.norm.ppf((np.arange(m) + 0.5) / m)
    return base + shift, base


def simulated(p, n, prior, loss, draws, seed=0):
    """Covariance of the three U-statistic risks over fresh samples from the finite population."""
    rng = np.random.default_rng(seed)
    f = LOSSES[loss].value

    def within(a):
        pairs = f(a[:, None] - a)
        return (pairs.sum() - np.trace(pairs)) / (len(a) * (len(a) - 1))

    out = np.empty((draws, 3))
    for i in range(draws):
        a, b = rng.choice(p, SIZES["n_positive"]), rng.choice(n, SIZES["n_negative"])
        positive = rng.random(SIZES["n_unlabeled"]) < prior
        u = np.where(positive, rng.choice(p, len(positive)), rng.choice(n, len(positive)))
        out[i] = (
            f(a[:, None] - b).mean(),
            (f(a[:, None] - u).mean() - prior * within(a)) / (1 - prior),
            (f(u[:, None] - b).mean() - (1 - prior) * within(b)) / prior,
        )
    return np.cov(out.T)


@pytest.mark.parametrize("loss", ["squared", "logistic", "exponential", "zero_one"])
@pytest.mark.slow
def test_right_variances_equal_simulated_ones(loss):
    """12,000 draws: every entry within 6% of the geometric mean of its variances.

    A variance from 12,000 draws is known to about 1.3 to 2% (the losses are skewed).
    """
    p, n = population()
    exact = risk_covariance(p, n, prior=0.3, loss=loss, **SIZES).matrix
    found = simulated(p, n, 0.3, loss, 12_000)
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.max(np.abs(exact - found) / scale) < 0.06


def test_the_example_where_the_printed_formula_fails():
    """Unit Gaussians one apart, 10 and 10: Var R_PN = 0.44, printed 0.08.

    Exactly: projections (1 - p)^2 + 1 have variance 2, so 2/10 + 2/10 + (8 - 4)/100.
    """
    p, n = population(3000)
    sizes = {"n_positive": 10, "n_negative": 10, "prior": 0.5}
    right = risk_covariance(p, n, n_unlabeled=100, **sizes).matrix[0, 0]
    printed = printed_variance(p, n, **sizes).psi_pn
    assert right == pytest.approx(0.44, rel=0.01)
    assert printed == pytest.approx(0.08, rel=0.01)


def test_ratio_and_gamma_are_those_of_the_matrix():
    p, n = population()
    covariance = risk_covariance(p, n, prior=0.2, **SIZES)
    grid = np.linspace(-1, 1, 2001)
    variance = covariance.variance(grid)
    direct = [
        np.array([1 - abs(e), max(e, 0), max(-e, 0)])
        @ covariance.matrix
        @ np.array([1 - abs(e), max(e, 0), max(-e, 0)])
        for e in grid
    ]
    np.testing.assert_allclose(variance, direct)
    assert covariance.ratio(0.0) == pytest.approx(1.0)
    np.testing.assert_allclose(
        covariance.ratio(grid), variance_ratio(grid, p, n, prior=0.2, **SIZES)
    )
    upper = grid[grid >= 0]
    best = upper[np.argmin(covariance.variance(upper))]
    assert best == pytest.approx(np.clip(covariance.gamma_pnpu, 0, 1), abs=1e-3)
    lower = -grid[grid <= 0]
    best = lower[np.argmin(covariance.variance(-lower))]
    assert best == pytest.approx(np.clip(covariance.gamma_pnnu, 0, 1), abs=1e-3)


def test_more_unlabeled_rows_never_hurt():
    p, n = population()
    sizes = {"n_positive": 10, "n_negative": 8, "prior": 0.2}
    values = [
        np.diag(risk_covariance(p, n, n_unlabeled=k, **sizes).matrix)
        for k in (10, 100, 1000, np.inf)
    ]
    assert np.all(np.diff(values, axis=0)[:, 1:] < 0)
    assert np.ptp([v[0] for v in values]) < 1e-12


def test_classes_swap():
    """Mirroring scores and classes swaps PU with NU."""
    p, n = population(300, 0.7)
    one = risk_covariance(p, n, n_positive=9, n_negative=14, n_unlabeled=50, prior=0.2).matrix
    other = risk_covariance(-n, -p, n_positive=14, n_negative=9, n_unlabeled=50, prior=0.8).matrix
    np.testing.assert_allclose(one, other[np.ix_([0, 2, 1], [0, 2, 1])], rtol=1e-10)


def test_printed_formula_term_by_term():
    """psi's from brute-force moments over triples of a three-point population."""
    p, n = np.array([0.0, 1.0, 2.0]), np.array([-1.0, 0.5])
    prior, n_p, n_n = 0.3, 4, 6
    f = LOSSES["squared"].value
    u, mass = np.concatenate([p, n]), np.array([0.1, 0.1, 0.1, 0.35, 0.35])

    def cov(pairs):
        w, a, b = (np.array(v) for v in zip(*pairs, strict=True))
        return w @ (a * b) - (w @ a) * (w @ b)

    t = [(1 / 3 / 2 / 3, f(x - z), f(x - q)) for x in p for z in n for q in p]
    tau_pnpp = cov(t)
    tau_pnpu = cov(
        [(m / 6, f(x - z), f(x - v)) for x in p for z in n for v, m in zip(u, mass, strict=True)]
    )
    tau_pupp = cov(
        [(m / 9, f(x - v), f(x - q)) for x in p for q in p for v, m in zip(u, mass, strict=True)]
    )
    var_pp = np.var([f(x - q) for x in p for q in p])
    printed = printed_variance(p, n, n_positive=n_p, n_negative=n_n, prior=prior)
    assert printed.psi_pn == pytest.approx(np.var([f(x - z) for x in p for z in n]) / (n_p * n_n))
    assert printed.psi_pu == pytest.approx(
        prior**2 / (0.7**2 * n_p**2) * var_pp - prior / (0.7**2 * n_p) * tau_pupp
    )
    assert printed.psi_pp == pytest.approx((tau_pnpu - prior * tau_pnpp) / (0.7 * n_p))
    g = printed.gamma_pnpu
    slope = 2 * g * printed.psi_pu - 2 * (1 - g) * printed.psi_pn + (1 - 2 * g) * printed.psi_pp
    assert slope == pytest.approx(0, abs=1e-10)
    assert printed.variance(0.0) == printed.psi_pn
    assert printed.variance(-1.0) == pytest.approx(printed.psi_nu)
    assert np.isfinite(printed.gamma_pnnu)


def test_h_and_terms_as_printed():
    c = BoundConstants(2.0, 3.0, 0.5, 0.7)
    h = 2 * np.sqrt(2) * 2 * 3 * 0.5 * 0.7 + 1.5 * np.sqrt(2 * np.log(2 / 0.05))
    assert h_delta(0.05, c) == pytest.approx(h)
    rows = {"n_positive": 20, "n_negative": 80, "n_unlabeled": 50, "prior": 0.2}
    bracket_pu = 1 / (0.8 * np.sqrt(20)) + 0.2 / (0.8 * np.sqrt(20))
    bracket_nu = 1 / (0.2 * np.sqrt(50)) + 0.8 / (0.2 * np.sqrt(80))
    assert confidence_term("pu", c, **rows) == pytest.approx(h_delta(0.025, c) * bracket_pu)
    assert confidence_term("nu", c, **rows) == pytest.approx(h_delta(0.025, c) * bracket_nu)
    for setting, bracket in (("pnpu", bracket_pu), ("pnnu", bracket_nu)):
        expected = h_delta(0.05 / 3, c) * (0.7 / np.sqrt(20) + 0.3 * bracket)
        assert confidence_term(setting, c, gamma=0.3, **rows) == pytest.approx(expected)
    bound = generalization_bound(0.1, "pu", c, **rows)
    assert bound == pytest.approx(0.1 + confidence_term("pu", c, **rows))


@given(st.integers(1, 4), st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_corrected_constant_where_the_basis_has_signs(dimension, seed):
    """|a - b|^2 <= 2 C^2 needs a'b >= 0; 4 C^2 always holds, and 2 sqrt 2 becomes 4."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, dimension))
    c2 = max(a @ a, b @ b)
    d2 = (a - b) @ (a - b)
    assert d2 <= 4 * c2 + 1e-12
    if a @ b >= 0:
        assert d2 <= 2 * c2 + 1e-12
    signed = BoundConstants(1.0, 1.0, 1.0, 1.0, basis="any")
    printed = BoundConstants(1.0, 1.0, 1.0, 1.0)
    assert h_delta(0.1, signed) - h_delta(0.1, printed) == pytest.approx(4 - 2 * np.sqrt(2))


@pytest.mark.parametrize("basis", ["non-negative", "any"])
@pytest.mark.parametrize("loss", ["squared", "exponential", "logistic"])
def test_loss_constants_bound_the_loss(loss, basis):
    c = bound_constants(loss, 1.3, 0.9, basis)
    reach = 1.3 * 0.9 * (np.sqrt(2) if basis == "non-negative" else 2)
    m = np.linspace(-reach, reach, 20_001)
    values = LOSSES[loss].value(m)
    assert values.max() == pytest.approx(c.loss_bound)
    assert np.abs(np.diff(values) / np.diff(m)).max() == pytest.approx(c.lipschitz, rel=1e-3)
    assert np.all(LOSSES["zero_one"].value(m) <= c.zero_one_factor * values + 1e-12)


def test_the_bound_holds_on_data():
    """1 - AUC of a known score stays below the bound in 200 draws (it is loose: never close)."""
    rng = np.random.default_rng(0)
    c = bound_constants("squared", 1.0, 1.0)
    truth = stats.norm.sf(1 / np.sqrt(2))
    for _ in range(200):
        p, u = rng.normal(1, 1, 30), rng.normal(rng.random(100) < 0.2, 1.0)
        risk = (((1 - p[:, None] + u) ** 2).mean() - 0.2 * (1 + 2 * p.var(ddof=1))) / 0.8
        sizes = {"n_positive": 30, "n_unlabeled": 100, "prior": 0.2}
        assert truth <= generalization_bound(risk, "pu", c, **sizes)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda c: h_delta(1.0, c), "delta"),
        (lambda c: confidence_term("pn", c, prior=0.2), "setting"),
        (lambda c: confidence_term("pu", c, prior=0.2, n_positive=5), "unlabelled row"),
        (lambda c: confidence_term("pu", c, prior=0.2, n_unlabeled=5), "positive row"),
        (lambda c: confidence_term("nu", c, prior=0.2, n_unlabeled=5), "negative row"),
        (lambda c: confidence_term("pu", c, prior=1.0), "prior"),
        (lambda c: confidence_term("pnpu", c, prior=0.2, gamma=2), "gamma"),
        (lambda c: bound_constants("hinge", 1, 1), "loss must be"),
        (lambda c: BoundConstants(1, 1, 1, 1, basis="odd"), "basis"),
        (lambda c: BoundConstants(0, 1, 1, 1), "lipschitz"),
        (lambda c: risk_covariance([1, 2], [0, 1], prior=0.0, **SIZES), "prior"),
        (lambda c: risk_covariance([1], [0, 1], prior=0.1, **SIZES), "positive must be"),
        (lambda c: risk_covariance([1, 2], [0, 1], prior=0.1, loss="x", **SIZES), "loss"),
        (lambda c: gamma_bar(0.5, 0, 1), "gamma_bar"),
        (
            lambda c: risk_covariance(
                [1, 2], [0, 1], prior=0.1, n_positive=1, n_negative=5, n_unlabeled=5
            ),
            "two positives",
        ),
        (lambda c: risk_covariance([1, 2], [0, 1], prior=0.1, **SIZES).ratio(2.0), "eta"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call(BoundConstants(1.0, 1.0, 1.0, 1.0))
