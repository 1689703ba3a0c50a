"""Tests of core/risks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

from pnuauc.core.moments import Moments
from pnuauc.core.risks import (
    Part,
    QuadraticForm,
    Term,
    gamma_bar,
    nu_risk,
    pn_risk,
    pnu_risk,
    pu_risk,
)
from pnuauc.core.solvers import solve_ridge
from pnuauc.exceptions import MissingRoleError
from pnuauc.losses import LOSSES
from tests.core.test_solvers import random_form

PRIOR = 0.3


@pytest.mark.parametrize("loss", LOSSES)
def test_pu_and_nu_average_to_pn(loss):
    """400 draws; the mean difference lies within four standard errors of zero."""
    rng = np.random.default_rng(2)
    differences = []
    for _ in range(400):
        p, n = rng.normal(0.5, 1, 12), rng.normal(-0.5, 1, 15)
        u = rng.normal(np.where(rng.random(40) < PRIOR, 0.5, -0.5), 1)
        s = {"P": p, "N": n, "U": u}
        pn = pn_risk().value(loss, s)
        differences.append([pu_risk(PRIOR).value(loss, s) - pn, nu_risk(PRIOR).value(loss, s) - pn])
    mean = np.mean(differences, axis=0)
    error = np.std(differences, axis=0, ddof=1) / np.sqrt(len(differences))
    assert (np.abs(mean) < 4 * error).all()


def test_eta_is_the_two_sided_weight():
    s = {role: np.random.default_rng(5).standard_normal(7) for role in "PNU"}
    pn, pu, nu = (r.value("logistic", s) for r in (pn_risk(), pu_risk(PRIOR), nu_risk(PRIOR)))
    for eta in (0.3, 0.9, 1.0):
        assert pnu_risk(eta, PRIOR).value("logistic", s) == pytest.approx((1 - eta) * pn + eta * pu)
        assert pnu_risk(-eta, PRIOR).value("logistic", s) == pytest.approx(
            (1 - eta) * pn + eta * nu
        )
    assert pnu_risk(0.0).value("logistic", s) == pytest.approx(pn)
    assert pnu_risk(1.0, PRIOR).roles == "PU"
    assert pnu_risk(-1.0, PRIOR).roles == "NU"
    assert pnu_risk(0.0).roles == "PN"


def test_signs_tell_when_the_form_is_certainly_convex():
    rng = np.random.default_rng(6)
    m = {role: Moments.from_rows(rng.standard_normal((n, 3))) for role, n in zip("PNU", (9, 9, 30))}
    assert pn_risk().quadratic_form(m).convex
    assert pu_risk(0.2).quadratic_form(m).convex  # 2 prior < (n_P - 1) / n_P
    assert not pu_risk(0.6).quadratic_form(m).convex
    assert not nu_risk(0.2).quadratic_form(m).convex
    for risk in (pn_risk(), pu_risk(0.2)):
        assert np.linalg.eigvalsh(risk.quadratic_form(m).quadratic).min() > -1e-12


def test_gamma_bar_formula():
    pnpu, pnnu = gamma_bar(0.1, 5, 45)
    assert pnpu == pytest.approx(1 / (1 + 0.01 * 45 / (0.81 * 5)))
    assert pnnu == pytest.approx(1 / (1 + 0.81 * 5 / (0.01 * 45)))


@pytest.mark.parametrize("prior", [0, 1, -0.1, 1.5, np.nan, np.inf, "0.3", None, True])
def test_bad_priors_are_refused(prior):
    for make in (pu_risk, nu_risk):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            make(prior)


@pytest.mark.parametrize("eta", [-1.1, 1.1, np.nan, "a", None])
def test_bad_weights_are_refused(eta):
    with pytest.raises(ValueError, match="eta must be"):
        pnu_risk(eta, PRIOR)


def test_missing_roles_are_named():
    s = {"P": np.array([1.0]), "U": np.array([0.0, 1.0])}
    with pytest.raises(MissingRoleError, match="at least 2 positive rows and there is only 1"):
        pu_risk(PRIOR).value("squared", s)
    with pytest.raises(MissingRoleError, match="negative row and there is none"):
        pn_risk().value("squared", s)
    with pytest.raises(
        MissingRoleError, match=r"\(present: 1 positive, 0 negative, 2 unlabelled\)"
    ):
        pn_risk().value("squared", s)


def test_only_a_subtracted_term_makes_a_part_unbounded():
    bounded = {
        c: Part("x", 1.0, (Term(1.0, "P", "N"), Term(c, "P", "P"))).bounded
        for c in (-0.1, 0.0, 0.1)
    }
    assert bounded == {-0.1: False, 0.0: True, 0.1: True}


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_semidefinite_to_rounding_whatever_the_scale(scale):
    """Eigenvalues of known sign: a hair below zero is rounding, more is not."""
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    for lowest, expected in ((0.5, True), (0.0, True), (-1e-12, True), (-1e-7, False)):
        values = np.array([lowest, 1.0, 1.2, 1.5, 2.0, 3.0])
        quadratic = scale * (vectors * values) @ vectors.T
        form = QuadraticForm(0.0, np.zeros(6), (quadratic + quadratic.T) / 2)
        assert form.is_semidefinite() is expected
    # all of the diagonal is lifted, not some of it
    singular = QuadraticForm(0.0, np.zeros(4), scale * np.diag([1.0, 0.0, 0.0, 0.0]))
    assert singular.is_semidefinite()


def test_matrix_free_equals_dense():
    form = random_form(1, b=40)
    lazy = QuadraticForm(1.0, form.linear, aslinearoperator(form.quadratic), True)
    dense, free = (solve_ridge(f, [0.1, 1.0]) for f in (form, lazy))
    for a, b in zip(free, dense):
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-6, atol=1e-7)
        assert a.n_iter > 1 == b.n_iter


def test_matrix_free_raises_the_ridge_of_indefinite_forms():
    form = random_form(1, b=40, convex=False)
    lowest = np.linalg.eigvalsh(form.quadratic).min()
    lazy = QuadraticForm(1.0, form.linear, aslinearoperator(form.quadratic))
    (solution,) = solve_ridge(lazy, [0.5])
    assert solution.correction.kind == "raised_ridge"
    assert solution.correction.lowest == pytest.approx(lowest, rel=1e-3)
    expected = np.linalg.solve(form.quadratic + (0.5 - lowest) * np.eye(40), form.linear)
    np.testing.assert_allclose(solution.coef, expected, rtol=1e-2, atol=1e-3)


MAKERS = {
    "pn": pn_risk,
    "pu": lambda: pu_risk(PRIOR),
    "nu": lambda: nu_risk(PRIOR),
    "pnu+": lambda: pnu_risk(0.7, PRIOR),
    "pnu-": lambda: pnu_risk(-0.7, PRIOR),
    "pnu0": lambda: pnu_risk(0.0),
}


def over_pairs(loss, a, b):
    return LOSSES[loss].value(a[:, None] - b[None, :]).mean()


def over_own_pairs(loss, a):
    margins = (a[:, None] - a[None, :])[~np.eye(len(a), dtype=bool)]
    return LOSSES[loss].value(margins).mean()


def brute_force(name, loss, s):
    """The definitions of the paper, pair by pair."""
    rest = 1 - PRIOR
    pn = over_pairs(loss, s["P"], s["N"])
    pu = (over_pairs(loss, s["P"], s["U"]) - PRIOR * over_own_pairs(loss, s["P"])) / rest
    nu = (over_pairs(loss, s["U"], s["N"]) - rest * over_own_pairs(loss, s["N"])) / PRIOR
    return {
        "pn": pn,
        "pu": pu,
        "nu": nu,
        "pnpu": 0.6 * pn + 0.4 * pu,
        "pnnu": 0.6 * pn + 0.4 * nu,
        "pnu+": 0.3 * pn + 0.7 * pu,
        "pnu-": 0.3 * pn + 0.7 * nu,
        "pnu0": pn,
    }[name]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=15)
@given(
    sizes=st.tuples(st.integers(2, 9), st.integers(2, 9), st.integers(1, 9)),
    scale=st.sampled_from([0.0, 1e-6, 1.0, 5.0]),
    decimals=st.sampled_from([0, 8]),
)
def test_scores_path_equals_all_pairs(loss, name, sizes, scale, decimals):
    rng = np.random.default_rng(sum(sizes))
    s = {r: scale * np.round(rng.standard_normal(n), decimals) for r, n in zip("PNU", sizes)}
    expected = brute_force(name, loss, s)
    assert MAKERS[name]().value(loss, s) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.differentiable])
@pytest.mark.parametrize("name", MAKERS)
def test_gradient_is_the_slope(loss, name):
    rng = np.random.default_rng(1)
    risk = MAKERS[name]()
    s = {role: rng.standard_normal(5) for role in "PNU"}
    parts = risk.part_gradients(loss, s)
    total = sum(part.weight * value for part, value, _ in parts)
    assert total == pytest.approx(risk.value(loss, s), rel=1e-12)
    gradient = {role: sum(part.weight * g[role] for part, _, g in parts) for role in risk.roles}
    step = 1e-6
    for role, g in gradient.items():
        for i in range(5):
            up, down = ({**s, role: s[role] + d * np.eye(5)[i]} for d in (step, -step))
            slope = (risk.value(loss, up) - risk.value(loss, down)) / (2 * step)
            assert g[i] == pytest.approx(slope, rel=1e-5, abs=1e-8)
