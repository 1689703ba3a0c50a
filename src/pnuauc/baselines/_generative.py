"""Generative models of the two classes for :class:`GenerativeAUC`: log p(x|+) - log p(x|-)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

__all__ = ["GENERATIVE_MODELS", "MultinomialClasses", "SphericalGaussians"]

Vector = NDArray[np.float64]


def _total(X: Any) -> Vector:
    return np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()


@dataclass(frozen=True)
class SphericalGaussians:
    """Each class N(mu, I/tau), with mu ~ N(mu0, I/(rho tau)) and tau ~ Gamma(a, b); MAP estimates.

    mu = (n m + rho mu0)/(n + rho),
    tau = ((n+1) d/2 + a - 1) / (b + S/2 + n rho |m - mu0|^2 / (2 (n + rho))),
    m and S the class's mean and sum of squared distances to it. The hyper-parameters are set from
    all rows, labelled or not, so that the prior weighs as much as one row: mu0 their mean,
    rho = 1, a - 1 = d/2 and b = d v/2 with v their mean variance (mode of tau at 1/v).

    ``log_ratio`` gives log p(x|+) - log p(x|-).
    """

    pseudo_rows: float = 1.0

    def fit(self, X: Any, positive: Any, negative: Any) -> FittedGaussians:
        """Estimate from all rows X and the rows of each class."""
        n, d = X.shape
        centre = _total(X) / n
        # mean of |x - centre|^2 over rows and columns; CSR rows are never shifted
        variance = (float(row_norms(X, squared=True).mean()) - float(centre @ centre)) / d
        variance = max(variance, np.finfo(float).tiny)
        prior = _GaussianPrior(centre, self.pseudo_rows, d, variance)
        return FittedGaussians(prior, positive, negative)


@dataclass(frozen=True, eq=False)
class _GaussianPrior:
    centre: Vector
    rho: float
    d: int
    variance: float

    def estimate(self, n: Any, step2: Any, scatter: Any) -> tuple[Any, Any]:
        """(weight of the class mean in mu, tau) from n, |m - mu0|^2 and S; elementwise."""
        half = self.d / 2.0
        rate = half * self.rho * self.variance + scatter / 2.0
        rate = rate + n * self.rho * step2 / (2.0 * (n + self.rho))
        return n / (n + self.rho), ((n + 1.0) * half + half * self.rho) / rate


class FittedGaussians:
    """Two Gaussians by n, m - mu0 and S; CSR rows are never shifted."""

    def __init__(self, prior: _GaussianPrior, positive: Any, negative: Any) -> None:
        self.prior = prior
        self.classes = [self._summary(X) for X in (positive, negative)]

    def _summary(self, X: Any) -> tuple[int, Vector, float]:
        """n, m - mu0 and S."""
        step = _total(X) / X.shape[0] - self.prior.centre
        around = self._norms(X)
        return X.shape[0], step, float(around.sum()) - X.shape[0] * float(step @ step)

    def _norms(self, X: Any) -> Vector:
        """|x - mu0|^2."""
        c = self.prior.centre
        if not sparse.issparse(X):
            return np.asarray(row_norms(X - c, squared=True))
        return np.asarray(row_norms(X, squared=True) - 2.0 * (X @ c) + float(c @ c))

    def _products(self, X: Any, step: Vector) -> Vector:
        """(x - mu0)'(m - mu0)."""
        return np.asarray(safe_sparse_dot(X, step)).ravel() - float(self.prior.centre @ step)

    def _log_density(self, X: Any, summary: tuple[int, Vector, float]) -> Vector:
        n, step, scatter = summary
        square = float(step @ step)
        share, tau = self.prior.estimate(n, square, max(scatter, 0.0))
        distance = self._norms(X) - 2 * share * self._products(X, step) + share**2 * square
        density: NDArray[np.float64] = 0.5 * self.prior.d * np.log(tau) - 0.5 * tau * distance
        return density

    def log_ratio(self, X: Any) -> Vector:
        positive, negative = self.classes
        return self._log_density(X, positive) - self._log_density(X, negative)


@dataclass(frozen=True)
class MultinomialClasses:
    """Each class a multinomial over columns with a Dirichlet(1 + pseudo_counts) prior; MAP.

    theta_j = (c_j + pseudo_counts) / sum_k (c_k + pseudo_counts), c the class's column totals, and
    log p(x|+) - log p(x|-) = sum_j x_j (log theta+_j - log theta-_j). For counts or other
    non-negative weights; pseudo_counts = 1 is Laplace's rule.
    """

    pseudo_counts: float = 1.0

    def fit(self, X: Any, positive: Any, negative: Any) -> FittedMultinomials:
        """Estimate from the rows of each class; of all rows X only the sign is checked."""
        lowest = X.data.min(initial=0.0) if sparse.issparse(X) else X.min(initial=0.0)
        if lowest < 0:
            raise ValueError(
                "The multinomial model needs counts or other non-negative weights, and X has "
                f"negative values (lowest {float(lowest):g}): use the Gaussian model."
            )
        return FittedMultinomials(self.pseudo_counts, positive, negative)


class FittedMultinomials:
    """Two multinomials by their column totals."""

    def __init__(self, pseudo: float, positive: Any, negative: Any) -> None:
        self.pseudo = pseudo
        self.log_theta = [self._log_theta(_total(X)) for X in (positive, negative)]

    def _log_theta(self, totals: Vector) -> Vector:
        smoothed = totals + self.pseudo
        logs: NDArray[np.float64] = np.log(smoothed) - np.log(smoothed.sum())
        return logs

    def _log_likelihood(self, X: Any, side: int) -> Vector:
        return np.asarray(safe_sparse_dot(X, self.log_theta[side])).ravel()

    def log_ratio(self, X: Any) -> Vector:
        return self._log_likelihood(X, 0) - self._log_likelihood(X, 1)


GENERATIVE_MODELS: dict[str, Any] = {
    "gaussian": SphericalGaussians,
    "multinomial": MultinomialClasses,
}
