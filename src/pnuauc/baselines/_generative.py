"""Generative models of the two classes for :class:`GenerativeAUC`: log p(x|+) - log p(x|-)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from pnuauc._arrays import Floats

__all__ = ["GENERATIVE_MODELS", "MultinomialClasses", "SphericalGaussians"]


def _total(X: Any) -> Floats:
    return np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()


class SphericalGaussians:
    """Each class N(mu, I/tau), with mu ~ N(mu0, I/(rho tau)) and tau ~ Gamma(a, b); MAP estimates.

    mu = (n m + rho mu0)/(n + rho),
    tau = ((n+1) d/2 + a - 1) / (b + S/2 + n rho |m - mu0|^2 / (2 (n + rho))),
    m and S the class's mean and sum of squared distances to it. The hyper-parameters are set from
    all rows, labelled or not, so that the prior weighs as much as one row: mu0 their mean,
    rho = 1, a - 1 = d/2 and b = d v/2 with v their mean variance (mode of tau at 1/v).

    ``log_ratio`` gives log p(x|+) - log p(x|-). CSR rows are never shifted.
    """

    rho = 1.0

    def fit(self, X: Any, positive: Any, negative: Any) -> SphericalGaussians:
        """Estimate from all rows X and the rows of each class."""
        n, d = X.shape
        self.centre = centre = _total(X) / n
        # mean of |x - centre|^2 over rows and columns
        variance = (float(row_norms(X, squared=True).mean()) - float(centre @ centre)) / d
        self.variance = max(variance, np.finfo(float).tiny)
        self.classes = [self._summary(X) for X in (positive, negative)]
        return self

    def _summary(self, X: Any) -> tuple[int, Floats, float]:
        """n, m - mu0 and S."""
        step = _total(X) / X.shape[0] - self.centre
        around = self._norms(X)
        return X.shape[0], step, float(around.sum()) - X.shape[0] * float(step @ step)

    def _norms(self, X: Any) -> Floats:
        """|x - mu0|^2."""
        c = self.centre
        if not sparse.issparse(X):
            return np.asarray(row_norms(X - c, squared=True))
        return np.asarray(row_norms(X, squared=True) - 2.0 * (X @ c) + float(c @ c))

    def _products(self, X: Any, step: Floats) -> Floats:
        """(x - mu0)'(m - mu0)."""
        return np.asarray(safe_sparse_dot(X, step)).ravel() - float(self.centre @ step)

    def _log_density(self, X: Any, summary: tuple[int, Floats, float]) -> Floats:
        n, step, scatter = summary
        square, half, rho = float(step @ step), len(step) / 2.0, self.rho
        rate = half * rho * self.variance + max(scatter, 0.0) / 2.0
        rate = rate + n * rho * square / (2.0 * (n + rho))
        share, tau = n / (n + rho), ((n + 1.0) * half + half * rho) / rate
        distance = self._norms(X) - 2 * share * self._products(X, step) + share**2 * square
        return np.asarray(0.5 * len(step) * np.log(tau) - 0.5 * tau * distance)

    def log_ratio(self, X: Any) -> Floats:
        positive, negative = self.classes
        return self._log_density(X, positive) - self._log_density(X, negative)


class MultinomialClasses:
    """Each class a multinomial over columns with a Dirichlet(2) prior; MAP.

    theta_j = (c_j + 1) / sum_k (c_k + 1), c the class's column totals (Laplace's rule), and
    log p(x|+) - log p(x|-) = sum_j x_j (log theta+_j - log theta-_j). For counts or other
    non-negative weights.
    """

    def fit(self, X: Any, positive: Any, negative: Any) -> MultinomialClasses:
        """Estimate from the rows of each class; of all rows X only the sign is checked."""
        lowest = X.data.min(initial=0.0) if sparse.issparse(X) else X.min(initial=0.0)
        if lowest < 0:
            raise ValueError(
                "The multinomial model needs counts or other non-negative weights, and X has "
                f"negative values (lowest {float(lowest):g}): use the Gaussian model."
            )
        smoothed = [_total(rows) + 1.0 for rows in (positive, negative)]
        self.log_theta = [np.log(totals) - np.log(totals.sum()) for totals in smoothed]
        return self

    def log_ratio(self, X: Any) -> Floats:
        log_p = [np.asarray(safe_sparse_dot(X, theta)).ravel() for theta in self.log_theta]
        return np.asarray(log_p[0] - log_p[1])


GENERATIVE_MODELS: dict[str, Any] = {
    "gaussian": SphericalGaussians,
    "multinomial": MultinomialClasses,
}
