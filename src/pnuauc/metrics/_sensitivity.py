"""The same AUC under many priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._arrays import Floats
from pnuauc._shown import ShownAsTable
from pnuauc.exceptions import PriorRefutedError
from pnuauc.metrics._counts import ScoreCounts
from pnuauc.metrics._estimate import AUCEstimate, auc_from_counts

__all__ = ["PriorSensitivity", "prior_sensitivity"]


@dataclass(frozen=True, eq=False, repr=False)
class PriorSensitivity(ShownAsTable):
    """The same AUC under many priors; arrays of one length, in the order of ``priors``.

    NaN where the scores refute the prior.
    """

    priors: Floats
    value: Floats
    std_error: Floats
    low: Floats
    high: Floats
    method: str
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Lists and plain values: ready for JSON or a data frame."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}


def prior_sensitivity(
    y: Any,
    scores: ArrayLike,
    priors: ArrayLike | None = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    variance_factor: float = 1.0,
    **label_codes: Any,
) -> PriorSensitivity:
    """:func:`auc_estimate` as a function of the prior: value and band, scores sorted once.

    Parameters
    ----------
    y, scores, method, level, variance_factor, **label_codes
        As in :func:`auc_estimate`; "auto" is "combined" where P, N and U are there.
    priors : array-like, shape (m,), optional
        Shares of positives **inside the unlabelled rows**; 0.02, 0.04, ..., 0.5 by default.
    """
    counts = ScoreCounts.from_rows(y, scores, **label_codes)
    return sensitivity_from_counts(counts, priors, method, level, variance_factor=variance_factor)


def sensitivity_from_counts(
    counts: ScoreCounts,
    priors: ArrayLike | None = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    variance_factor: float = 1.0,
) -> PriorSensitivity:
    """As :func:`prior_sensitivity`, from the merged counts of blocks or shards."""
    grid = np.linspace(0.02, 0.5, 25) if priors is None else np.asarray(priors, dtype=float)
    if grid.ndim != 1 or len(grid) == 0:
        raise ValueError("priors must be a one-dimensional list of at least one prior.")
    results = [_one_prior(counts, float(prior), method, level, variance_factor) for prior in grid]
    columns = {
        name: np.array([np.nan if r is None else getattr(r, name) for r in results])
        for name in ("value", "std_error", "low", "high")
    }
    used = next((r.method for r in results if r is not None), method)
    return PriorSensitivity(priors=grid, method=used, level=level, **columns)


def _one_prior(
    counts: ScoreCounts, prior: float, method: str, level: float, variance_factor: float
) -> AUCEstimate | None:
    """The estimate as if the prior were known; None where the scores refute it."""
    # one method along the curve: "auto" would change it where the interval happens to be narrower
    several = method == "auto" and min(counts.n_positive, counts.n_negative) > 0
    chosen = "combined" if several and counts.n_unlabeled else method
    try:
        return auc_from_counts(counts, prior, chosen, level, variance_factor=variance_factor)
    except PriorRefutedError:
        return None
