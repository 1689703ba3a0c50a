"""Priors from one labelled class and U by matching: optimality, brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.priors import PearsonPrior, PenalizedL1Prior, PlacementPrior, _matching

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


@pytest.mark.parametrize("n_iterations", [1, 2, 3, 4, 9])
def test_every_step_is_one_of_accelerated_projected_gradients(n_iterations) -> None:
    """x_k+1 = max(0, y_k + gradient / L), y_k+1 = x_k+1 + (m_k - 1) / m_k+1 (x_k+1 - x_k)."""
    mean_p, u = features()
    alpha = 0.05
    answer = PearsonPrior(n_iterations=n_iterations)._solve(mean_p, u, SHARES, alpha)
    largest = np.linalg.eigvalsh(u.T @ u / len(u)).max() + alpha
    for coef, share in zip(answer.T, SHARES, strict=True):
        x = y = np.zeros(len(mean_p))
        m = 1.0
        for _ in range(n_iterations):
            slope = np.where(u @ y < 1, u @ y, 1.0)  # 1 + min(r, 0)
            gradient = share * mean_p - (slope[:, None] * u).mean(axis=0) - alpha * y
            new = np.maximum(y + gradient / largest, 0.0)
            following = (1 + np.sqrt(1 + 4 * m * m)) / 2
            x, y, m = new, new + (m - 1) / following * (new - x), following
        np.testing.assert_allclose(coef, x, atol=1e-12)


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


def test_held_out_values_are_those_of_the_best_candidate_for_each_share() -> None:
    """Every row by coefficients of the other folds; for each t the (width, alpha) that reaches
    most."""
    rng = np.random.default_rng(3)
    P, U = rng.normal(1, 1, (14, 2)), rng.normal(0, 1, (25, 2))
    model = PenalizedL1Prior(n_centers=6, widths=(0.4, 1.0), alphas=(0.05, 0.5), n_folds=4)
    value_p, value_u, chosen = model._held_out_values(P, U, SHARES, np.random.RandomState(1))
    again, both = np.random.RandomState(1), np.vstack([P, U])
    centers = both[again.permutation(39)[:6]]
    picked = both[again.permutation(39)[:300]]
    median = np.median(cdist(picked, picked)[np.triu_indices(39, 1)])
    folds = [again.permutation(np.arange(n) % 4) for n in (14, 25)]
    for k, t in enumerate(SHARES):
        best = None
        for width in (0.4, 1.0):
            p, u = (np.exp(-(cdist(X, centers) ** 2) / (2 * (width * median) ** 2)) for X in (P, U))
            for alpha in (0.05, 0.5):
                new_p, new_u = np.empty(14), np.empty(25)
                for fold in range(4):
                    out = [f == fold for f in folds]
                    beta = t * p[~out[0]].mean(axis=0) - u[~out[1]].mean(axis=0)
                    coef = np.maximum(beta, 0) / alpha
                    new_p[out[0]] = t * (p[out[0]] @ coef - 1)
                    new_u[out[1]] = u[out[1]] @ coef - 1
                reached = new_p.mean() - new_u.mean()
                if best is None or reached > best[0]:
                    best = reached, new_p, new_u, (width * median, alpha)
        np.testing.assert_allclose(value_p[:, k], best[1])
        np.testing.assert_allclose(value_u[:, k], best[2])
        assert chosen[k] == pytest.approx(best[3])


@pytest.mark.parametrize("level", [0.9, 0.5])
def test_share_interval_and_rise_from_held_out_values(level, monkeypatch) -> None:
    """The lowest point of the curve, quantiles of resampled curves, and the rise to t = 1."""
    rng = np.random.default_rng(4)
    shares = np.linspace(0, 1, 11)[1:]
    p = rng.normal(0, 0.1, (30, 10)) + (shares - 0.4) ** 2
    u = rng.normal(0, 0.1, (50, 10)) - (shares - 0.4) ** 2
    chosen = [(float(k), 0.1 * k) for k in range(10)]
    monkeypatch.setattr(PenalizedL1Prior, "_held_out_values", lambda *_: (p, u, chosen))
    model = PenalizedL1Prior(n_shares=10, n_bootstrap=60, level=level, random_state=0)
    estimate, told = model._share(rng.normal(size=(30, 2)), rng.normal(size=(50, 2)))
    curve = p.mean(axis=0) - u.mean(axis=0)
    lowest = int(curve.argmin())
    assert estimate.value == shares[lowest]
    again, drawn = np.random.RandomState(0), []
    for _ in range(60):
        weights = [again.multinomial(n, np.full(n, 1 / n)) / n for n in (30, 50)]
        drawn.append(shares[np.argmin(weights[0] @ p - weights[1] @ u)])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    assert estimate.interval == (min(low, estimate.value), max(high, estimate.value))
    assert estimate.std_error == pytest.approx(np.std(drawn, ddof=1))
    rise = [values[:, -1] - values[:, lowest] for values in (p, u)]
    error = np.sqrt(sum(r.var(ddof=1) / len(r) for r in rise))
    assert told["rise_z"] == pytest.approx((rise[0].mean() - rise[1].mean()) / error)
    assert (told["width"], told["alpha"]) == chosen[lowest]
    assert estimate.doubt is None
    assert _matching._rise_to_one(p, u, 9) == 0.0  # no variance, no rise


@pytest.mark.parametrize("rise", [1.6, 1.7])
def test_all_of_u_may_be_of_the_labelled_class(rise, monkeypatch) -> None:
    """Below 1.645 errors of a rise to t = 1 there is a doubt."""
    monkeypatch.setattr(_matching, "_rise_to_one", lambda *_: rise)
    rng = np.random.default_rng(5)
    model = PenalizedL1Prior(n_bootstrap=2, n_centers=5, random_state=0)
    estimate, _ = model._share(rng.normal(size=(20, 2)), rng.normal(size=(30, 2)))
    assert (estimate.doubt is None) is (rise > 1.645)


def test_pearson_centres_are_labelled_rows() -> None:
    known, rows = np.arange(20.0)[:, None], np.arange(100.0)[:, None]
    found = PearsonPrior(n_centers=7)._centers(known, rows, np.random.RandomState(0))
    assert len(found) == 7
    assert found.max() < 20
    every = PenalizedL1Prior(n_centers=70)._centers(known, rows, np.random.RandomState(0))
    assert len(np.unique(every)) == 70
