"""Intervals for proportions and for simple functions of two independent ones.

Wilson's interval for one proportion; for a difference or a ratio of two, MOVER ("method of variance
estimates recovery", Zou and Donner 2008, Donner and Zou 2012): the two Wilson intervals are put
together so that skewness survives, which matters at few positives and rates near 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from pnuauc._arrays import Floats

__all__ = ["Interval", "mover_difference", "mover_ratio", "wilson"]


@dataclass(frozen=True)
class Interval:
    """A value with confidence limits."""

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def wilson(rate: Floats, n: int, level: float) -> tuple[Floats, Floats]:
    """Limits of a proportion seen in n rows, any shape."""
    rate = np.asarray(rate, dtype=float)
    z2 = float(special.ndtri(0.5 + level / 2.0)) ** 2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low = np.where(rate <= 0, 0.0, centre - half)
    high = np.where(rate >= 1, 1.0, centre + half)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def mover_difference(
    first: tuple[Floats, Floats, Floats], second: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats]:
    """Limits of x - y from (value, low, high) of independent x and y."""
    (x, lx, ux), (y, ly, uy) = first, second
    return (
        x - y - np.sqrt((x - lx) ** 2 + (uy - y) ** 2),
        x - y + np.sqrt((ux - x) ** 2 + (y - ly) ** 2),
    )


def mover_ratio(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> tuple[float, float]:
    """Limits of x / y from (value, low, high) of independent x >= 0 and y > 0."""
    (x, lx, ux), (y, ly, uy) = first, second
    down = np.sqrt(max((x * y) ** 2 - lx * uy * (2 * x - lx) * (2 * y - uy), 0.0))
    up = np.sqrt(max((x * y) ** 2 - ux * ly * (2 * x - ux) * (2 * y - ly), 0.0))
    # uy may reach 2 y where y rests on a handful of rows: then nothing bounds the ratio from 0
    low = (x * y - down) / (uy * (2 * y - uy)) if uy < 2 * y else 0.0
    high = (x * y + up) / (ly * (2 * y - ly)) if ly > 0 else np.inf
    return max(float(low), 0.0), float(high)
