"""What is believed of the prior before the data speak: a Beta distribution, or a blend of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import betainc, ndtri

from pnuauc._arrays import Floats

__all__ = ["Belief", "Beta", "Blend", "read_belief"]


_EXPECTED = "belief must be None, an interval (low, high) inside [0, 1], or a Beta"


@dataclass(frozen=True)
class Beta:
    """Beta distribution of the share of positives inside U: density t^(a - 1) (1 - t)^(b - 1).

    It is worth a + b rows of U drawn at random, a of them positive.

    Examples
    --------
    >>> Beta(1, 3).mean
    0.25
    >>> Beta(2, 5).mirrored
    Beta(a=5, b=2)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        if not (self.a > 0 and self.b > 0 and np.isfinite(self.a + self.b)):
            raise ValueError(f"{_EXPECTED}: a and b are positive numbers, got {self}.")

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def mirrored(self) -> Beta:
        """The same belief about the share of negatives."""
        return Beta(self.b, self.a)

    def masses(self, edges: Floats) -> Floats:
        """Probabilities of the cells between ``edges`` (n + 1,), shape (n,)."""
        below: Floats = np.asarray(betainc(self.a, self.b, np.clip(edges, 0.0, 1.0)))
        return np.diff(below)


@dataclass(frozen=True)
class Blend:
    """Beta distributions with weights that sum to one.

    parts : pairs of weight and Beta
    """

    parts: tuple[tuple[float, Beta], ...]

    @property
    def mean(self) -> float:
        return sum(weight * part.mean for weight, part in self.parts)

    @property
    def mirrored(self) -> Blend:
        """The same belief about the share of negatives."""
        return Blend(tuple((weight, part.mirrored) for weight, part in self.parts))

    def masses(self, edges: Floats) -> Floats:
        """Probabilities of the cells between ``edges`` (n + 1,), shape (n,)."""
        return np.asarray(np.sum([w * part.masses(edges) for w, part in self.parts], axis=0))


Belief: TypeAlias = Beta | Blend

#: Without better knowledge: the positives are more likely the smaller part of U, which is worth
#: 4.5 rows and does not keep it from zero; but one time in ten anything goes, or a U of mostly
#: positives would be refused.
DEFAULT = Blend(((0.9, Beta(1, 3.5)), (0.1, Beta(1, 1))))


def read_belief(belief: Any) -> Belief:
    """None, (low, high) or Beta -> what has ``masses``.

    A pair is read as a 95% interval: the Beta distribution with its midpoint as mean and a quarter
    of its width (more exactly width / 3.92) as standard deviation.

    Examples
    --------
    >>> read_belief((0.05, 0.15)).mean
    0.1
    """
    if belief is None:
        return DEFAULT
    if isinstance(belief, Beta):
        return belief
    try:
        low, high = (float(end) for end in belief)
    except (TypeError, ValueError):
        raise ValueError(f"{_EXPECTED}, got {belief!r}.") from None
    if not 0 <= low < high <= 1:
        raise ValueError(f"{_EXPECTED}: 0 <= low < high <= 1, got {belief!r}.")
    mean, deviation = (low + high) / 2, (high - low) / (2 * float(ndtri(0.975)))
    rows = mean * (1 - mean) / deviation**2 - 1
    return Beta(mean * rows, (1 - mean) * rows)
