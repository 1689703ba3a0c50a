"""Means of a margin loss over all pairs of two score vectors, and gradients; no pair is formed.

between:  mean_ij l(a_i - b_j);   within:  mean_{i != j} l(a_i - a_j), ordered pairs.

Frequency weights: a row of weight 2 counts exactly as that row twice. Four engines, chosen by what
the loss declares about its shape, n = len(a) + len(b):

==================== ================================ ===========================================
squared              O(n)                             mean and variance
exponential          O(n)                             the double sum factorises; log-sum-exp
piecewise polynomial O(n log n), exact                sort, then running sums of *distances*
smooth (logistic)    O(n log n) + Chebyshev panels    the many scores of a panel stand as few
                                                      weighted nodes; sparse panels stay as they are
==================== ================================ ===========================================

Accuracy: 1e-9 relative to the sum over pairs; gradient entries relative to the largest sum
of abs(l') over a row or column of pairs (a within-gradient is a difference of two such sums).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._arrays import Floats
from pnuauc._pairs._closed_form import (
    exponential_mean,
    exponential_slopes,
    exponential_within,
    squared_mean,
    squared_slopes,
    squared_within,
)
from pnuauc._pairs._panels import smooth_mean, smooth_slopes
from pnuauc._pairs._piecewise import piecewise_mean, piecewise_slopes
from pnuauc._pairs._samples import (
    Sample,
    Slopes,
    WithinSlopes,
    read,
    require_derivative,
    require_pairs,
)
from pnuauc.losses import Exponential, Loss, PiecewisePolynomial, SmoothLoss, Squared, get_loss

__all__ = ["between", "between_gradient", "within", "within_gradient"]


def between(
    loss: str | Loss,
    a: ArrayLike,
    b: ArrayLike,
    weight_a: ArrayLike | None = None,
    weight_b: ArrayLike | None = None,
) -> float:
    """sum_ij v_i w_j l(a_i - b_j) / (sum_i v_i sum_j w_j), without forming pairs.

    Parameters
    ----------
    loss : str or Loss
    a, b : array-like of shape (n_a,), (n_b,)
        Finite scores.
    weight_a, weight_b : array-like of the same shapes, optional
        Non-negative frequency weights v and w; ones if not given.

    Examples
    --------
    >>> between("zero_one", [3.0, 1.0], [1.0, 0.0])  # one tie among four pairs
    0.125
    """
    sums, loss = _sums_of(loss)
    left, right = read(a, weight_a, "a"), read(b, weight_b, "b")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return sums.mean(loss, left, right)


def between_gradient(
    loss: str | Loss,
    a: ArrayLike,
    b: ArrayLike,
    weight_a: ArrayLike | None = None,
    weight_b: ArrayLike | None = None,
) -> Slopes:
    """(R, dR/da, dR/db) of R = :func:`between`; shapes (), (n_a,), (n_b,).

    Examples
    --------
    >>> value, grad_a, grad_b = between_gradient("hinge", [2.0, 0.0], [0.0])
    >>> value, grad_a.tolist(), grad_b.tolist()
    (0.5, [0.0, -0.5], [0.5])
    """
    sums, loss = _sums_of(loss)
    require_derivative(loss)
    left, right = read(a, weight_a, "a"), read(b, weight_b, "b")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        value, rows, columns = sums.slopes(loss, left, right)
        return value, _product(left.weight, rows), -_product(right.weight, columns)


def within(loss: str | Loss, a: ArrayLike, weight: ArrayLike | None = None) -> float:
    """(sum_ij w_i w_j l(a_i - a_j) - sum_i w_i l(0)) / (W (W - 1)), W = sum_i w_i.

    The mean over ordered pairs of two different rows, where weight 2 means the row twice.

    Examples
    --------
    >>> within("squared", [0.0, 1.0])  # l(-1) = 4 and l(1) = 0
    2.0
    """
    sums, loss = _sums_of(loss)
    sample = read(a, weight, "a")
    require_pairs(sample)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return _leave_out_self(loss, sums.mean(loss, sample, sample), sample.size)


def within_gradient(
    loss: str | Loss, a: ArrayLike, weight: ArrayLike | None = None
) -> WithinSlopes:
    """(R, dR/da) of R = :func:`within`; shapes (), (n_a,).

    Examples
    --------
    >>> value, gradient = within_gradient("squared", [0.0, 1.0])
    >>> value, gradient.tolist()
    (2.0, [-2.0, 2.0])
    """
    sums, loss = _sums_of(loss)
    require_derivative(loss)
    sample = read(a, weight, "a")
    require_pairs(sample)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # The pair (i, i) adds l'(0) to both sums and so leaves their difference by itself.
        value, slope = sums.within_slopes(loss, sample)
        gradient = _product(sample.weight * (sample.size / (sample.size - 1.0)), slope)
        return _leave_out_self(loss, value, sample.size), gradient


def _leave_out_self(loss: Loss, mean: float, size: float) -> float:
    return float((mean - float(loss.value(0.0)) / size) * (size / (size - 1.0)))


def _product(weight: Floats, slope: Floats) -> Floats:
    """weight * slope where a weight of 0 silences even an overflowed slope."""
    return np.where(weight > 0.0, weight * slope, 0.0)


# --- how each loss is summed --------------------------------------------------------------------


@dataclass(frozen=True)
class _PairSums:
    """How one family of losses is averaged over pairs.

    ``mean(loss, a, b)`` is mean_ij l(a_i - b_j); ``slopes`` adds the weighted sums of l'(a_i - b_j)
    over j (per row i) and over i (per column j); ``within_slopes(loss, a)`` is the mean with b = a
    and the difference of the two sums, by ``within`` where that loses digits.
    """

    mean: Callable[[Loss, Sample, Sample], float]
    slopes: Callable[[Loss, Sample, Sample], Slopes]
    within: Callable[[Loss, Sample], WithinSlopes] | None = None

    def within_slopes(self, loss: Loss, a: Sample) -> WithinSlopes:
        if self.within is not None:
            return self.within(loss, a)
        value, rows, columns = self.slopes(loss, a, a)
        return value, rows - columns


_FAMILIES: dict[Any, _PairSums] = {
    Squared: _PairSums(squared_mean, squared_slopes, squared_within),
    Exponential: _PairSums(exponential_mean, exponential_slopes, exponential_within),
    PiecewisePolynomial: _PairSums(piecewise_mean, piecewise_slopes),
    SmoothLoss: _PairSums(smooth_mean, smooth_slopes),
}


def _sums_of(loss: str | Loss) -> tuple[_PairSums, Loss]:
    loss = get_loss(loss)
    for family, sums in _FAMILIES.items():
        if isinstance(loss, family):
            return sums, loss
    raise TypeError(
        f"No way to sum the loss {loss.name!r} over pairs; derive it from PiecewisePolynomial or"
        " SmoothLoss."
    )
