"""Tests of priors/matching."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from pnuauc.priors import PenalizedL1Prior

SHARES = np.array([0.1, 0.4, 0.9])


def test_held_out_values_are_those_of_the_best_candidate_for_each_share() -> None:
    """Every row by coefficients of the other folds; for each t the (width, alpha) that reaches
    most."""
    rng = np.random.default_rng(3)
    P, U = rng.normal(1, 1, (14, 2)), rng.normal(0, 1, (25, 2))
    model = PenalizedL1Prior(n_centers=6, widths=(0.4, 1.0), alphas=(0.05, 0.5), n_folds=4)
    value_p, value_u, chosen = model._held_out_values(P, U, SHARES, np.random.RandomState(1))
    again, both = np.random.RandomState(1), np.vstack([P, U])
    centers = both[again.permutation(39)[:6]]
    median = np.median(cdist(both, both)[np.triu_indices(39, 1)])
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
