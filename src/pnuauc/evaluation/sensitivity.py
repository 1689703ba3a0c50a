"""The same AUC under many priors, and under labels that are no fair sample of their class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable
from pnuauc.core.ranks import ScoreCounts
from pnuauc.evaluation.estimate import auc_from_counts
from pnuauc.exceptions import PriorRefutedError


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

    def __repr__(self) -> str:
        lines = [f"{name}: {value}" for name, value in self._shown()]
        return "\n".join([f"PriorSensitivity({self.method}, level={self.level:g})", *lines])

    def _shown(self) -> list[tuple[str, Any]]:
        return [
            (f"prior {p:.3g}", f"{v:.3f} ({a:.3f} to {b:.3f})")
            for p, v, a, b in zip(self.priors, self.value, self.low, self.high, strict=True)
        ]


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
    # one method along the curve: "auto" would change it where the interval happens to be narrower
    roles = (counts.n_positive, counts.n_negative, counts.n_unlabeled)
    method = "combined" if method == "auto" and min(roles) > 0 else method
    found = np.full((4, len(grid)), np.nan)
    for k, prior in enumerate(grid.tolist()):
        try:
            one = auc_from_counts(counts, prior, method, level, variance_factor=variance_factor)
        except PriorRefutedError:
            continue
        found[:, k] = one.value, one.std_error, one.low, one.high
        method = one.method
    value, std_error, low, high = found
    return PriorSensitivity(grid, value, std_error, low, high, method, level)


def odds_bounds(values: ArrayLike, odds: float) -> tuple[float, float]:
    """Range of a class mean if its labelled rows were picked with odds that differ.

    The mean over the whole class is sum v_i f_i / sum v_i, where v_i is one over the odds with
    which row i was labelled. If these odds differ by at most a factor g, then 1 <= v_i <= g up to
    scale, and the largest mean has v = g on the k largest values for some k, 1 on the others:

        high = max_k (g S_k + S_n - S_k) / (g k + n - k),   S_k the sum of the k largest,

    likewise the smallest. With f_i the share of negatives that score lower than positive i the
    mean is the AUC; with f_i = 1 where a positive scores above a cut, 0 elsewhere, it is the
    recall at the cut, and c / recall the number of positives if c of them score above the cut.

    Parameters
    ----------
    values : shape (n,), one for each labelled row of the class
    odds : g, at least 1

    Examples
    --------
    >>> odds_bounds([0.5, 1.0], 1.0)
    (0.75, 0.75)
    >>> odds_bounds([0, 1, 1, 1], 3.0)  # a recall of 75%
    (0.5, 0.9)
    """
    f, g = _class_values(values), odds
    if not 1.0 <= g < np.inf:
        raise ValueError(f"odds must be a number of at least 1, got {odds}.")
    k = np.arange(len(f) + 1)
    first = (np.append(0.0, np.cumsum(part)) for part in (f, f[::-1]))
    low, high = ((g * s + s[-1] - s) / (g * k + len(f) - k) for s in first)
    return float(low.min()), float(high.max())


def breaking_odds(values: ArrayLike, limit: float) -> float:
    """The factor g at which :func:`odds_bounds` attains ``limit``; infinite where none does.

    "The AUC is above 0.8, unless some positives were g times as likely to be labelled as others".

    Examples
    --------
    >>> breaking_odds([0, 1, 1, 1], 0.5)
    3.0
    """
    f = _class_values(values)
    if limit > f.mean():  # the same from above
        f, limit = -f[::-1], -limit
    n, k = len(f), np.arange(1, len(f))
    first = np.cumsum(f)[:-1]
    room = limit * k - first  # g (limit k - S_k) >= S_n - S_k - limit (n - k) attains the limit
    with np.errstate(divide="ignore", invalid="ignore"):
        g = np.where(room > 0, (f.sum() - first - limit * (n - k)) / room, np.inf)
    return 1.0 if limit == f.mean() else float(max(g.min(initial=np.inf), 1.0))


def _class_values(values: ArrayLike) -> Floats:
    """In ascending order."""
    f = np.sort(np.asarray(values, dtype=np.float64))
    if f.ndim != 1 or not len(f) or not np.isfinite(f).all():
        raise ValueError("values must be a one-dimensional list of at least one finite number.")
    return f
