"""Margin losses l(m) and their registry (:mod:`pnuauc.core.losses`)."""

from pnuauc.core.losses import (
    LOSSES,
    Absolute,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    PiecewisePolynomial,
    SmoothedAbsolute,
    SmoothedHinge,
    SmoothLoss,
    Squared,
    SquaredHinge,
    ZeroOne,
    get_loss,
)

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
