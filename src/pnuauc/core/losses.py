"""Margin losses l(m), m = g(x) - g(x'), their derivatives, and the registry ``LOSSES``.

A loss knows one margin at a time. How it is summed over all pairs of two score vectors is the
business of :mod:`pnuauc.core.pairs`, which reads what a loss declares about its shape: a
:class:`PiecewisePolynomial` gives its breakpoints and pieces as data, a :class:`SmoothLoss` its
tails. A new loss is one class here and one line in ``LOSSES``.

One rule holds for every loss with corners or jumps: **at a breakpoint the answer is the mean of
the two sides.** So a tie costs 1/2 under the zero-one loss, and the (sub)derivative of the hinge
at m = 1 is -1/2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from pnuauc._utils.arrays import Floats

__all__ = [
    "LOSSES",
    "Absolute",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "PiecewisePolynomial",
    "SmoothLoss",
    "SmoothedAbsolute",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "ZeroOne",
    "get_loss",
]

Pieces: TypeAlias = tuple[tuple[float, ...], ...]


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
    consistent: ClassVar[bool]
    lipschitz: ClassVar[float]

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
    consistent = True
    lipschitz = np.inf

    def value(self, margins: ArrayLike) -> Floats:
        return (1.0 - _floats(margins)) ** 2

    def derivative(self, margins: ArrayLike) -> Floats:
        return -2.0 * (1.0 - _floats(margins))


@dataclass(frozen=True)
class Exponential(Loss):
    """l(m) = exp(-m)."""

    name = "exponential"
    consistent = True
    lipschitz = np.inf

    def value(self, margins: ArrayLike) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(-_floats(margins))

    def derivative(self, margins: ArrayLike) -> Floats:
        return -self.value(margins)


class SmoothLoss(Loss):
    """An analytic loss with simple tails.

    To the left of ``-linear_below`` it equals ``-m`` to rounding (relative 1e-15); to the right
    it lies between c exp(-m) and exp(-m) for some c of order one; its nearest singularity is at
    least a distance 3 from the real line, so that polynomials of low degree follow it over a unit.
    """

    linear_below: ClassVar[float]


@dataclass(frozen=True)
class Logistic(SmoothLoss):
    """l(m) = log(1 + exp(-m))."""

    name = "logistic"
    consistent = True
    lipschitz = 1.0
    linear_below = 32.0  # exp(-32) / 32 = 4e-16

    def value(self, margins: ArrayLike) -> Floats:
        m = _floats(margins)
        with np.errstate(under="ignore"):
            return np.log1p(np.exp(-np.abs(m))) + np.maximum(-m, 0.0)

    def derivative(self, margins: ArrayLike) -> Floats:
        with np.errstate(under="ignore"):
            slope: Floats = -expit(-_floats(margins))
            return slope

    def value_and_derivative(self, margins: ArrayLike) -> tuple[Floats, Floats]:
        m = _floats(margins)
        with np.errstate(under="ignore"):
            decay = np.exp(-np.abs(m))
            value = np.log1p(decay) + np.maximum(-m, 0.0)
            return value, -np.where(m > 0.0, decay, 1.0) / (1.0 + decay)


class PiecewisePolynomial(Loss):
    """l(m) = sum_q pieces[i][q] u^q on the i-th interval between breakpoints, degree at most 2.

    ``u`` >= 0 is the distance to the breakpoint that ends the interval on the right,
    u = breakpoints[i] - m; on the last interval, which has none, u = m - breakpoints[-1].
    Distances rather than powers of m: sums of them have no cancellation to lose digits by.

    Attributes
    ----------
    breakpoints : tuple of float, length r >= 1, increasing
    pieces : tuple of coefficient tuples, length r + 1
    """

    breakpoints: tuple[float, ...]
    pieces: Pieces

    @property
    def derivative_pieces(self) -> Pieces:
        """The pieces of l', in the same form."""
        if not self.has_derivative:
            raise ValueError(f"The {self.name} loss has no derivative; {_FITTING_HINT}")
        return _differentiate(self.pieces)

    def value(self, margins: ArrayLike) -> Floats:
        return _evaluate(self.breakpoints, self.pieces, _floats(margins))

    def derivative(self, margins: ArrayLike) -> Floats:
        return _evaluate(self.breakpoints, self.derivative_pieces, _floats(margins))


def _differentiate(pieces: Pieces) -> Pieces:
    # u falls as m grows on every interval but the last.
    signs = [-1.0] * (len(pieces) - 1) + [1.0]
    return tuple(
        tuple(sign * q * c for q, c in enumerate(piece) if q > 0) or (0.0,)
        for sign, piece in zip(signs, pieces, strict=True)
    )


def _evaluate(breakpoints: Sequence[float], pieces: Pieces, m: Floats) -> Floats:
    edges = [-np.inf, *breakpoints, np.inf]
    anchors = [*breakpoints, breakpoints[-1]]
    out = np.zeros_like(m)
    for (low, high), anchor, piece in zip(pairwise(edges), anchors, pieces, strict=True):
        # 1 inside, 1/2 on an edge: the two neighbours share a breakpoint equally.
        share = 0.5 * ((m > low) & (m <= high)) + 0.5 * ((m >= low) & (m < high))
        u = np.abs(np.clip(m, low, high) - anchor)
        out += share * np.polynomial.polynomial.polyval(u, piece)
    return out


@dataclass(frozen=True)
class Hinge(PiecewisePolynomial):
    """l(m) = max(0, 1 - m)."""

    name = "hinge"
    differentiable = False
    consistent = False
    lipschitz = 1.0
    breakpoints = (1.0,)
    pieces = ((0.0, 1.0), (0.0,))

    def smoothed(self, width: float) -> SmoothedHinge:
        return SmoothedHinge(width)


@dataclass(frozen=True)
class SquaredHinge(PiecewisePolynomial):
    """l(m) = max(0, 1 - m)^2."""

    name = "squared_hinge"
    consistent = True
    lipschitz = np.inf
    breakpoints = (1.0,)
    pieces = ((0.0, 0.0, 1.0), (0.0,))


@dataclass(frozen=True)
class Absolute(PiecewisePolynomial):
    """l(m) = abs(1 - m)."""

    name = "absolute"
    differentiable = False
    consistent = False
    lipschitz = 1.0
    breakpoints = (1.0,)
    pieces = ((0.0, 1.0), (0.0, 1.0))

    def smoothed(self, width: float) -> SmoothedAbsolute:
        return SmoothedAbsolute(width)


@dataclass(frozen=True)
class ZeroOne(PiecewisePolynomial):
    """l(m) = (1 - sign(m)) / 2, a tie counts 1/2."""

    name = "zero_one"
    has_derivative = False
    differentiable = False
    convex = False
    consistent = True
    lipschitz = np.inf
    breakpoints = (0.0,)
    pieces = ((1.0,), (0.0,))


@dataclass(frozen=True)
class _Smoothed(PiecewisePolynomial):
    """A loss with its corner at m = 1 rounded off within ``width`` of it."""

    width: float = 1e-2

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and 0.0 < self.width < 1.0):
            raise ValueError(
                f"The smoothing width must lie strictly between 0 and 1, got {self.width!r}."
            )

    @property
    def breakpoints(self) -> tuple[float, ...]:  # type: ignore[override]
        """1 - width and 1 + width."""
        return (1.0 - self.width, 1.0 + self.width)


@dataclass(frozen=True)
class SmoothedHinge(_Smoothed):
    """l(m) = (1 + width - m)^2 / (4 width) for abs(1 - m) <= width, else max(0, 1 - m).

    Never below the hinge, and above it by at most width / 4.
    """

    name = "smoothed_hinge"
    consistent = True
    lipschitz = 1.0

    @property
    def pieces(self) -> Pieces:  # type: ignore[override]
        """Linear, quadratic, zero."""
        return ((self.width, 1.0), (0.0, 0.0, 0.25 / self.width), (0.0,))


@dataclass(frozen=True)
class SmoothedAbsolute(_Smoothed):
    """l(m) = ((1 - m)^2 + width^2) / (2 width) for abs(1 - m) <= width, else abs(1 - m).

    Never below the absolute loss, and above it by at most width / 2.
    """

    name = "smoothed_absolute"
    consistent = False
    lipschitz = 1.0

    @property
    def pieces(self) -> Pieces:  # type: ignore[override]
        """Linear, quadratic, linear."""
        return ((self.width, 1.0), (self.width, -1.0, 0.5 / self.width), (self.width, 1.0))


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
