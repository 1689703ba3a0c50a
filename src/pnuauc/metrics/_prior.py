"""What a caller may pass as ``prior`` -> a value and its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from pnuauc.exceptions import PriorNotIdentifiedError

__all__ = ["PriorValue", "missing_prior", "read_prior"]

_NEAR = 1e-9


@dataclass(frozen=True)
class PriorValue:
    """Share of positives inside U, with its standard error (0 when taken as known)."""

    value: float
    std_error: float = 0.0


def read_prior(prior: Any, level: float = 0.95) -> PriorValue | None:
    """Read ``prior``, the share of positives inside the unlabelled rows.

    Parameters
    ----------
    prior : None, float, (low, high), or object
        A float is taken as known. A pair is an interval of confidence ``level``: its midpoint is
        the value, its width over twice the normal quantile the standard error. An object needs
        ``prior_`` and ``std_error_`` or ``interval_`` (read like a pair, around ``prior_``).
    level : float
        Confidence of an interval given as ``prior``.
    """
    if prior is None or isinstance(prior, PriorValue):
        return prior
    quantile = float(special.ndtri(0.5 + level / 2.0))
    if hasattr(prior, "prior_"):
        value = float(prior.prior_)
        error = getattr(prior, "std_error_", None)
        interval = getattr(prior, "interval_", None)
        if error is None and interval is not None:
            low, high = (float(v) for v in interval)
            error = (high - low) / (2.0 * quantile)
        return PriorValue(_checked(value), 0.0 if error is None else max(float(error), 0.0))
    try:
        values = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            "prior must be a number in [0, 1], a pair (low, high), or a fitted estimator with "
            f"prior_, got {type(prior).__name__}."
        ) from None
    if values.ndim == 0:
        return PriorValue(_checked(float(values)))
    if values.shape != (2,) or not values[0] <= values[1]:
        raise ValueError(f"A prior interval is a pair (low, high) with low <= high, got {prior!r}.")
    low, high = _checked(float(values[0])), _checked(float(values[1]))
    return PriorValue((low + high) / 2.0, (high - low) / (2.0 * quantile))


def _checked(value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(
            f"prior is the share of positives among the unlabelled rows and must lie in [0, 1], "
            f"got {value}."
        )
    # 1/prior must stay a number: what is nearer to an end than one row in a billion is the end
    if value < _NEAR:
        return 0.0
    return 1.0 if value > 1.0 - _NEAR else value


def missing_prior(purpose: str) -> PriorNotIdentifiedError:
    """The error for a request that needs a prior and got none."""
    return PriorNotIdentifiedError(
        f"{purpose} needs the share of positives among the unlabelled rows: pass prior=0.1, an "
        "interval prior=(0.05, 0.15), or a fitted estimator of pnuauc.priors. To rank or compare "
        "models no prior is needed: use compare_auc, or method='pu_raw'."
    )
