"""Margin losses l(m), m = g(x) - g(x'), their derivatives, and the registry ``LOSSES``.

A loss knows one margin at a time. How it is summed over all pairs of two score vectors is the
business of :mod:`pnuauc.core.pairs`, which reads what a loss declares about its shape: a
:class:`PiecewisePolynomial` its terms, a :class:`SmoothLoss` its tails. A new loss is one class
here and one line in ``LOSSES``.

One rule holds for every loss with corners or jumps: **at a breakpoint the answer is the mean of
the two sides.** So a tie costs 1/2 under the zero-one loss, and the (sub)derivative of the hinge
at m = 1 is -1/2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._utils.arrays import Floats

__all__ = [
    "LOSSES",
    "Absolute",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "PiecewisePolynomial",
    "Power",
    "SmoothLoss",
    "SmoothedAbsolute",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "ZeroOne",
    "get_loss",
]


def _floats(margins: ArrayLike) -> Floats:
    return np.asarray(margins, dtype=np.float64)


class Loss(ABC):
    """A margin loss l(m).

    Attributes
    ----------
    name : str
        Its key in ``LOSSES``.
    has_derivative : bool
        ``derivative`` answers; at a corner with the mean of the two sides, a subgradient.
    differentiable : bool
        l' exists and is continuous everywhere, so that Newton and L-BFGS may be used as they are.
    convex : bool
    consistent : bool
        Minimising it maximises the AUC in the limit (Gao and Zhou, IJCAI 2015: convex,
        differentiable, non-increasing with l'(0) < 0 suffices; squared, see there).
    lipschitz : float
        Smallest L with abs(l(m) - l(m')) <= L abs(m - m'); infinite where there is none.
    """

    name: ClassVar[str]
    has_derivative: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    consistent: ClassVar[bool] = True
    lipschitz: ClassVar[float] = np.inf

    @abstractmethod
    def value(self, margins: ArrayLike) -> Floats:
        """l(m), elementwise; any shape."""

    @abstractmethod
    def derivative(self, margins: ArrayLike) -> Floats:
        """l'(m), elementwise; any shape."""

    def value_and_derivative(self, margins: ArrayLike) -> tuple[Floats, Floats]:
        """(l(m), l'(m)); a loss whose two parts share work overrides this."""
        return self.value(margins), self.derivative(margins)

    def smoothed(self, width: float) -> Loss:
        """A differentiable stand-in that differs only within ``width`` of a corner.

        The loss itself where it is differentiable already.
        """
        if self.differentiable:
            return self
        raise ValueError(f"The {self.name} loss has no smoothed version; {_FITTING_HINT}")


@dataclass(frozen=True)
class Squared(Loss):
    """l(m) = (1 - m)^2."""

    name = "squared"

    def value(self, margins: ArrayLike) -> Floats:
        return (1.0 - _floats(margins)) ** 2

    def derivative(self, margins: ArrayLike) -> Floats:
        return -2.0 * (1.0 - _floats(margins))


@dataclass(frozen=True)
class Exponential(Loss):
    """l(m) = exp(-m)."""

    name = "exponential"

    def value(self, margins: ArrayLike) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(-_floats(margins))

    def derivative(self, margins: ArrayLike) -> Floats:
        return -self.value(margins)


class SmoothLoss(Loss):
    """An analytic loss that vanishes as exp(-m), with l(-m) = l(m) + ``line`` * m.

    Its nearest singularity is at least a distance 3 from the real line, so that polynomials of low
    degree follow it over a unit.
    """

    line: ClassVar[float] = 1.0

    def value(self, margins: ArrayLike) -> Floats:
        return self.value_and_derivative(margins)[0]

    def derivative(self, margins: ArrayLike) -> Floats:
        return self.value_and_derivative(margins)[1]

    @abstractmethod
    def value_and_derivative(self, margins: ArrayLike) -> tuple[Floats, Floats]:
        """(l(m), l'(m)), elementwise; any shape."""


@dataclass(frozen=True)
class Logistic(SmoothLoss):
    """l(m) = log(1 + exp(-m))."""

    name = "logistic"
    lipschitz = 1.0

    def value_and_derivative(self, margins: ArrayLike) -> tuple[Floats, Floats]:
        m = _floats(margins)
        with np.errstate(under="ignore"):
            decay = np.exp(-np.abs(m))
            value = np.log1p(decay) + np.maximum(-m, 0.0)
            return value, -np.where(m > 0.0, decay, 1.0) / (1.0 + decay)


class Power(NamedTuple):
    """coefficient * max(0, side * (knot - m))^power; power 0 is a step, one half at the knot."""

    coefficient: float
    knot: float
    power: int
    side: int = 1

    def at(self, m: Floats) -> Floats:
        u = self.side * (self.knot - m)
        step = np.heaviside(u, 0.5) if self.power == 0 else np.maximum(u, 0.0) ** self.power
        return np.asarray(self.coefficient * step)


class PiecewisePolynomial(Loss):
    """l(m) = a sum of truncated powers c max(0, s (k - m))^q, q = 0, 1 or 2 and s = 1 or -1.

    Attributes
    ----------
    terms : tuple of Power
    """

    terms: tuple[Power, ...]

    @property
    def slope_terms(self) -> tuple[Power, ...]:
        """The terms of l'."""
        if not self.has_derivative:
            raise ValueError(f"The {self.name} loss has no derivative; {_FITTING_HINT}")
        return tuple(Power(-s * q * c, k, q - 1, s) for c, k, q, s in self.terms)

    def value(self, margins: ArrayLike) -> Floats:
        m = _floats(margins)
        return np.asarray(sum(term.at(m) for term in self.terms))

    def derivative(self, margins: ArrayLike) -> Floats:
        m = _floats(margins)
        return np.asarray(sum(term.at(m) for term in self.slope_terms))


@dataclass(frozen=True)
class Hinge(PiecewisePolynomial):
    """l(m) = max(0, 1 - m)."""

    name = "hinge"
    differentiable = False
    consistent = False
    lipschitz = 1.0
    terms = (Power(1.0, 1.0, 1),)

    def smoothed(self, width: float) -> SmoothedHinge:
        return SmoothedHinge(width)


@dataclass(frozen=True)
class SquaredHinge(PiecewisePolynomial):
    """l(m) = max(0, 1 - m)^2."""

    name = "squared_hinge"
    terms = (Power(1.0, 1.0, 2),)


@dataclass(frozen=True)
class Absolute(PiecewisePolynomial):
    """l(m) = abs(1 - m)."""

    name = "absolute"
    differentiable = False
    consistent = False
    lipschitz = 1.0
    terms = (Power(1.0, 1.0, 1), Power(1.0, 1.0, 1, side=-1))

    def smoothed(self, width: float) -> SmoothedAbsolute:
        return SmoothedAbsolute(width)


@dataclass(frozen=True)
class ZeroOne(PiecewisePolynomial):
    """l(m) = (1 - sign(m)) / 2, a tie counts 1/2."""

    name = "zero_one"
    has_derivative = False
    differentiable = False
    convex = False
    terms = (Power(1.0, 0.0, 0),)


@dataclass(frozen=True)
class _Smoothed(PiecewisePolynomial):
    """A loss with its corner at m = 1 rounded off within ``width`` of it.

    max(0, u) becomes (max(0, u + w)^2 - max(0, u - w)^2) / (4 w), w the width.
    """

    width: float = 1e-2
    lipschitz = 1.0
    sides: ClassVar[tuple[int, ...]] = (1,)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and 0.0 < self.width < 1.0):
            raise ValueError(
                f"The smoothing width must lie strictly between 0 and 1, got {self.width!r}."
            )

    @property
    def terms(self) -> tuple[Power, ...]:  # type: ignore[override]
        """Two truncated squares for each side that the corner has."""
        w = self.width
        return tuple(
            Power(sign * 0.25 / w, 1.0 + sign * s * w, 2, s) for s in self.sides for sign in (1, -1)
        )

    def value(self, margins: ArrayLike) -> Floats:
        # the corner and a bump: far from it the difference of the squares would lose digits
        u = 1.0 - _floats(margins)
        bump = np.maximum(self.width - np.abs(u), 0.0) ** 2 / (4.0 * self.width)
        return np.asarray(sum(np.maximum(s * u, 0.0) + bump for s in self.sides))

    def derivative(self, margins: ArrayLike) -> Floats:
        u = 1.0 - _floats(margins)
        return np.asarray(
            sum(-s * np.clip(0.5 + s * u / (2.0 * self.width), 0.0, 1.0) for s in self.sides)
        )


@dataclass(frozen=True)
class SmoothedHinge(_Smoothed):
    """l(m) = (1 + width - m)^2 / (4 width) for abs(1 - m) <= width, else max(0, 1 - m).

    Never below the hinge, and above it by at most width / 4.
    """

    name = "smoothed_hinge"


@dataclass(frozen=True)
class SmoothedAbsolute(_Smoothed):
    """l(m) = ((1 - m)^2 + width^2) / (2 width) for abs(1 - m) <= width, else abs(1 - m).

    Never below the absolute loss, and above it by at most width / 2.
    """

    name = "smoothed_absolute"
    consistent = False
    sides = (1, -1)


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Squared(),
        Exponential(),
        Logistic(),
        Hinge(),
        SquaredHinge(),
        Absolute(),
        ZeroOne(),
        SmoothedHinge(),
        SmoothedAbsolute(),
    )
}

_FITTING_HINT = "to fit, use one of " + ", ".join(
    repr(name) for name, loss in LOSSES.items() if loss.has_derivative
)


def get_loss(loss: str | Loss) -> Loss:
    """The registered loss of that name; a ``Loss`` is handed back as it is.

    Examples
    --------
    >>> get_loss("hinge").value([0.0, 1.0, 2.0]).tolist()
    [1.0, 0.0, 0.0]
    >>> get_loss("absolute").smoothed(0.1)
    SmoothedAbsolute(width=0.1)
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    raise ValueError(f"Unknown loss {loss!r}; choose one of {', '.join(map(repr, LOSSES))}.")
