"""Squared and exponential loss over all pairs, O(n)."""

from __future__ import annotations

import numpy as np

from pnuauc._arrays import Floats
from pnuauc._pairs._samples import Sample, Slopes, WithinSlopes
from pnuauc.losses import Loss

# --- squared: mean and variance ----------------------------------------------------------------


def squared_mean(loss: Loss, a: Sample, b: Sample) -> float:
    """(1 - (mean a - mean b))^2 + var a + var b."""
    deviation_a, deviation_b, gap = _centre(a, b)
    spread = np.dot(a.weight, deviation_a**2) + np.dot(b.weight, deviation_b**2)
    return float((1.0 - gap) ** 2 + spread)


def squared_slopes(loss: Loss, a: Sample, b: Sample) -> Slopes:
    deviation_a, deviation_b, gap = _centre(a, b)
    rows = -2.0 * ((1.0 - gap) - deviation_a)
    columns = -2.0 * ((1.0 - gap) + deviation_b)
    return squared_mean(loss, a, b), rows, columns


def squared_within(loss: Loss, a: Sample) -> WithinSlopes:
    deviation, _, _ = _centre(a, a)
    return squared_mean(loss, a, a), 4.0 * deviation


def _centre(a: Sample, b: Sample) -> tuple[Floats, Floats, float]:
    """Deviations from each sample's own mean, and the difference of the means.

    Taken from each sample's first score on: a large offset then goes away without rounding, and
    constant scores are treated exactly.
    """
    from_a, from_b = a.scores - a.scores[0], b.scores - b.scores[0]
    mean_a, mean_b = np.dot(a.weight, from_a), np.dot(b.weight, from_b)
    gap = (a.scores[0] - b.scores[0]) + (mean_a - mean_b)
    return from_a - mean_a, from_b - mean_b, gap


# --- exponential: the double sum factorises ----------------------------------------------------


def exponential_mean(loss: Loss, a: Sample, b: Sample) -> float:
    """exp(log sum_i v_i e^-a_i + log sum_j w_j e^b_j), both sums about their largest term."""
    return _factors(a, b)[0]


def exponential_slopes(loss: Loss, a: Sample, b: Sample) -> Slopes:
    value, rows, columns = _factors(a, b)
    return value, -np.exp(rows), -np.exp(columns)


def exponential_within(loss: Loss, a: Sample) -> WithinSlopes:
    """e^s_i - e^r_i by way of expm1, so that two overflows still differ with the right sign."""
    value, rows, columns = _factors(a, a)
    share = -np.expm1(-np.abs(columns - rows))
    size = np.where(share > 0.0, np.exp(np.maximum(rows, columns)) * share, 0.0)
    return value, np.sign(columns - rows) * size


def _factors(a: Sample, b: Sample) -> Slopes:
    """The mean, and the logarithms of the sums over a row and over a column of pairs."""
    low, log_a = _log_sum(-a.scores, a.weight)
    high, log_b = _log_sum(b.scores, b.weight)
    value = float(np.exp((low + high) + (log_a + log_b)))
    return value, (high - a.scores) + log_b, (low + b.scores) + log_a


def _log_sum(exponents: Floats, weight: Floats) -> tuple[float, float]:
    top = float(exponents[weight > 0.0].max())
    return top, float(np.log(np.dot(weight, np.exp(np.minimum(exponents - top, 0.0)))))
