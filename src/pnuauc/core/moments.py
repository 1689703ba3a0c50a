"""Count, mean and scatter of feature rows: all that the squared loss ever needs of them.

Moments add up over rows, so blocks, folds, threads and machines merge by ``+``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from pnuauc._utils.arrays import Floats


@dataclass(frozen=True, eq=False)
class Moments:
    """n = sum_i w_i, mean = sum_i w_i phi_i / n, scatter = sum_i w_i (phi_i-mean)(phi_i-mean)'.

    Centred from the start: raw sums of squares lose the variance when the mean is large.
    Weights are frequencies: a weight of 2 equals the row twice.

    Parameters
    ----------
    n : float
        Number of rows, or the sum of their weights.
    mean : ndarray, shape (b,)
    scatter : ndarray, shape (b, b), or LinearOperator of that shape
        The operator form never builds the b x b matrix; it cannot be merged.
    mean_low : ndarray, shape (b,), or 0
        What rounding cut off the mean. Merging needs differences of means to full precision, and
        at an offset of 1e8 a double alone leaves them eight digits.
    """

    n: float
    mean: Floats
    scatter: Any
    mean_low: Floats | float = 0.0

    @classmethod
    def zero(cls, b: int) -> Moments:
        """The moments of no rows: the neutral element of ``+``."""
        return cls(0.0, np.zeros(b), np.zeros((b, b)))

    @classmethod
    def from_rows(cls, rows: Any, weight: NDArray[Any] | None = None) -> Moments:
        """Moments of feature rows, shape (n, b), dense or CSR.

        CSR rows are not shifted by their mean (that would densify them): with columns of large
        offset and small variance, give dense rows.
        """
        n = float(rows.shape[0] if weight is None else np.sum(weight, dtype=np.float64))
        if n == 0:
            return cls.zero(rows.shape[1])
        if sparse.issparse(rows):
            mean = _weighted_sum(rows, weight) / n
            if weight is not None:
                rows = rows.multiply(np.sqrt(weight)[:, None]).tocsr()
            gram = np.asarray((rows.T @ rows).toarray(), dtype=np.float64)
            return cls(n, mean, gram - n * np.outer(mean, mean))
        # A block's mean in its own precision can be off by rounding; the residual mean corrects
        # it, in the mean as in the scatter (the two-pass corrected algorithm).
        rough = np.average(rows, axis=0, weights=weight)
        centered = rows - rough
        residual = _weighted_sum(centered, weight) / n
        if weight is not None:
            centered *= np.sqrt(weight)[:, None].astype(centered.dtype)
        scatter = np.asarray(centered.T @ centered, dtype=np.float64)
        scatter -= n * np.outer(residual, residual)
        return cls(n, *_two_sum(rough.astype(np.float64), residual, scatter))

    @classmethod
    def from_bounded_rows(cls, rows: NDArray[Any]) -> Moments:
        """Moments of dense rows with entries in [0, 1], by sums about a fixed point.

        In double the point is zero, two passes fewer: entries of size one lose n * eps at most.
        In single that would be all of a small variance (4e-4 of the scatter at twice the median
        width, and a negative eigenvalue), so the point is the mean of the first rows. Never for
        free columns.
        """
        n = rows.shape[0]
        shift = np.zeros(rows.shape[1])
        if rows.dtype != np.float64:
            about = rows[:64].mean(axis=0)
            rows, shift = rows - about, about.astype(np.float64)
        total = np.asarray(np.ones(n, dtype=rows.dtype) @ rows, dtype=np.float64)
        scatter = np.asarray(rows.T @ rows, dtype=np.float64)
        root = total / np.sqrt(n)  # so that the product is symmetric to the last bit
        scatter -= np.outer(root, root)
        return cls(float(n), shift + total / n, scatter)

    @classmethod
    def matrix_free(cls, rows: Any, weight: NDArray[Any] | None = None) -> Moments:
        """Moments whose scatter is only ever applied to vectors: v -> sum w_i c_i (c_i'v).

        Keeps the rows (dense or CSR) instead of a b x b matrix; for b too large to square.
        """
        n = float(rows.shape[0] if weight is None else np.sum(weight, dtype=np.float64))
        mean = _weighted_sum(rows, weight) / n

        def apply(v: NDArray[Any]) -> NDArray[Any]:
            v = np.ravel(v)
            s = rows @ v - mean @ v
            if weight is not None:
                s = s * weight
            return np.asarray(rows.T @ s - mean * s.sum())

        b = rows.shape[1]
        operator = LinearOperator((b, b), matvec=apply, rmatvec=apply, dtype=np.float64)
        return cls(n, mean, operator)

    def __add__(self, other: Moments) -> Moments:
        if self.n == 0:
            return other
        if other.n == 0:
            return self
        n = self.n + other.n
        step = (other.mean - self.mean) + (other.mean_low - self.mean_low)
        # in place on a fresh array: one b x b temporary less on every merge
        root = step * np.sqrt(self.n * other.n / n)
        scatter = np.outer(root, root)
        scatter += self.scatter
        scatter += other.scatter
        return Moments(n, *_two_sum(self.mean, self.mean_low + step * (other.n / n), scatter))

    @property
    def covariance(self) -> Any:
        """C = scatter / n."""
        return self.scatter * (1.0 / self.n)


def moments_of(features: Any, weight: NDArray[Any] | None, basis: Any) -> Moments:
    """Moments of features that ``basis`` has made, the fast way where they are in [0, 1]."""
    if weight is None and basis.bounded:
        return Moments.from_bounded_rows(features)
    return Moments.from_rows(features, weight)


def _two_sum(high: Floats, low: Floats, scatter: Floats) -> tuple[Floats, Floats, Floats]:
    """(mean, scatter, mean_low) with mean + mean_low = high + low exactly (Knuth's two-sum)."""
    mean = high + low
    shadow = mean - high
    return mean, scatter, (high - (mean - shadow)) + (low - shadow)


def _weighted_sum(rows: Any, weight: NDArray[Any] | None) -> Floats:
    if weight is None:
        return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()
    return np.asarray(rows.T @ weight, dtype=np.float64).ravel()
