"""The prior as metrics need it: known, with its error, or a sentence that says what is missing."""

from __future__ import annotations

from typing import Any

from pnuauc._prior import ClassPrior, read_prior
from pnuauc.exceptions import PriorNotIdentifiedError

__all__ = ["known_prior", "missing_prior"]


def known_prior(prior: Any, level: float = 0.95) -> ClassPrior | None:
    """As :func:`pnuauc._prior.read_prior`, but "auto" is refused: scores alone do not tell it."""
    if isinstance(prior, str) and prior == "auto":
        raise ValueError(
            'prior="auto" needs rows to estimate it from, and a metric sees scores only: fit an '
            "estimator of pnuauc.priors and pass it as prior."
        )
    return read_prior(prior, level)


def missing_prior(purpose: str) -> PriorNotIdentifiedError:
    """The error for a request that needs a prior and got none."""
    return PriorNotIdentifiedError(
        f"{purpose} needs the share of positives among the unlabelled rows: give the prior as a "
        "number or an interval, or have it estimated (pnuauc.priors). To rank or compare models "
        "no prior is needed: method 'pu_raw' does without.",
        about="prior",
    )
