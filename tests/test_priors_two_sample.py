"""Priors from one labelled class and U by matching: optimality, brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.priors import PearsonPrior, PenalizedL1Prior, PlacementPrior

SHARES = np.array([0.1, 0.4, 0.9])


def features(seed=0, n_p=40, n_u=120, b=9):
    rng = np.random.default_rng(seed)
    p, u = rng.uniform(0.2, 1, size=(n_p, b)), rng.uniform(0, 0.9, size=(n_u, b))
    return p.mean(axis=0), u


def objective(coef, mean_p, u, share, alpha, conjugate):
    r = u @ coef - 1
    return share * (mean_p @ coef - 1) - conjugate(r).mean() - alpha * coef @ coef / 2


@pytest.mark.parametrize("alpha", [0.01, 0.3])
@pytest.mark.parametrize("model", [PenalizedL1Prior(), PearsonPrior(n_iterations=4000)])
def test_coefficients_maximise_the_penalised_divergence(model, alpha) -> None:
    """A bounded quasi-Newton search from the answer and from 0 finds nothing better."""
    mean_p, u = features()
    answer = model._solve(mean_p, u, SHARES, alpha)
    assert answer.min() >= 0
    for coef, share in zip(answer.T, SHARES, strict=True):

        def loss(a, share=share):
            return -objective(a, mean_p, u, share, alpha, model._conjugate)

        for start in (coef, np.zeros_like(coef)):
            found = minimize(loss, start, method="L-BFGS-B", bounds=[(0, None)] * len(coef))
            assert loss(coef) <= found.fun + 1e-6 * (1 + abs(found.fun))


def test_penalised_l1_equals_the_printed_formula() -> None:
    """sum_l max(0, beta_l) beta_l / alpha - t + 1 on the rows that were fitted."""
    mean_p, u = features()
    model, alpha = PenalizedL1Prior(), 0.02
    coef = model._solve(mean_p, u, SHARES, alpha)
    for a, t in zip(coef.T, SHARES, strict=True):
        beta = t * mean_p - u.mean(axis=0)
        printed = (np.maximum(beta, 0) * beta).sum() / alpha - t + 1
        ours = t * (mean_p @ a - 1) - model._conjugate(u @ a - 1).mean()
        assert ours == pytest.approx(printed)


@pytest.mark.parametrize("model", [PenalizedL1Prior(), PearsonPrior()])
def test_conjugate_is_the_supremum_over_ratios_up_to_one(model) -> None:
    ratio = np.linspace(0, 1, 10_001)
    f = 1 - ratio if isinstance(model, PenalizedL1Prior) else (ratio - 1) ** 2 / 2
    for r in (-1, -0.6, 0, 0.5, 3):
        assert model._conjugate(np.array(r)) == pytest.approx((ratio * r - f).max(), abs=1e-6)


def test_separated_classes_are_counted() -> None:
    """No overlap: matching and placement find the share up to the noise of P (nP = 150)."""
    X, y = make_twonorm(6000, random_state=0)
    X = X + 3 * (2 * y[:, None] - 1)
    s = sample_pnu(X, y, 150, 0, 800, 0.35, 0)
    for model in (PenalizedL1Prior, PearsonPrior, PlacementPrior):
        fitted = model(unlabeled_label=-1, random_state=0).fit(s.X, s.y)
        assert abs(fitted.prior_ - 0.35) < 0.1
