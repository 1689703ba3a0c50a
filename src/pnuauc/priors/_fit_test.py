"""Do P, N and U fit together? A test of what the estimate of the prior rests on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from pnuauc._arrays import Floats, Indices
from pnuauc.priors._binormal import RankCounts, Shape, bin_shares

__all__ = ["FitTest", "fit_test"]


#: Labelled rows that a bin should hold, and bins at most.
_ROWS_A_BIN = 6
_MOST_BINS = 8
#: Level of the words, with both classes and with one. The second test also rejects where the
#: classes are merely not quite normal: at .01 on one draw in ten of the benchmark sets.
_LEVELS = (0.01, 0.001)


class FitTest(NamedTuple):
    """``p_value`` is None where there are too few rows to test anything."""

    p_value: float | None
    words: str
    failed: bool = False


def fit_test(counts: RankCounts, best: Shape) -> FitTest:
    """Test that U is a mixture of the classes that the labelled rows show.

    With P and N: bins of the ranks in which u = t p + (1 - t) q is compared with the counts,

        X^2 = min_t sum_b (u_b - t p_b - (1 - t) q_b)^2 / v_b(t),

    v_b the binomial variance of that difference; about chi-square with n_bins - 2 degrees of
    freedom. No form of the classes is assumed. With one class: Pearson's X^2 of the two
    roles' counts under the binormal law ``best``, with n_bins - 3 degrees of freedom (share and
    shift are fitted; the spread hardly is, its law being narrow).
    """
    both = counts.has_both
    labelled = [role for role in (counts.positive, counts.negative) if role.sum()]
    n_bins = int(min(_MOST_BINS, min(role.sum() for role in labelled) // _ROWS_A_BIN))
    group = _groups(sum(role / role.sum() for role in labelled), n_bins) if n_bins else None
    needed = 3 if both else 5
    if group is None or group.max() + 1 < needed:
        return FitTest(None, "Too few labelled rows to test whether they are like those in U.")
    statistic, freedom = (
        _mixture_statistic(counts, group) if both else _binormal_statistic(counts, best, group)
    )
    p_value = float(chi2.sf(statistic, freedom))
    failed = p_value < _LEVELS[0 if both else 1]
    return FitTest(p_value, _words(p_value, both, failed), failed)


def _groups(mass: Floats, n_bins: int) -> Indices:
    """Neighbouring fine bins joined so that each part has about the same labelled rows."""
    below = (np.cumsum(mass) - mass / 2) / mass.sum()
    group = np.minimum((below * n_bins).astype(np.intp), n_bins - 1)
    return np.unique(group, return_inverse=True)[1].astype(np.intp)


def _joined(values: Floats, group: Indices) -> Floats:
    return np.bincount(group, values).astype(np.float64)


def _mixture_statistic(counts: RankCounts, group: Indices) -> tuple[float, int]:
    sizes = [role.sum() for role in counts[1:]]
    # half a row in every bin: an empty bin has no variance otherwise
    shares = [
        (_joined(role, group) + 0.5) / (n + 0.5 * (group.max() + 1))
        for role, n in zip(counts[1:], sizes, strict=True)
    ]
    p, q, u = shares
    noise = [s * (1 - s) / n for s, n in zip(shares, sizes, strict=True)]

    def statistic(t: float) -> float:
        gap = u - t * p - (1 - t) * q
        return float((gap**2 / (t**2 * noise[0] + (1 - t) ** 2 * noise[1] + noise[2])).sum())

    # the variance depends on t, so there may be two minima: look on a grid first
    grid = np.linspace(0, 1, 101)
    start = float(grid[np.argmin([statistic(t) for t in grid])])
    near = minimize_scalar(
        statistic, bounds=(max(start - 0.01, 0.0), min(start + 0.01, 1.0)), method="bounded"
    )
    return min(float(near.fun), statistic(start)), int(group.max() + 1) - 2


def _binormal_statistic(counts: RankCounts, best: Shape, group: Indices) -> tuple[float, int]:
    share = np.array([best.share])
    p, q = bin_shares(
        counts.edges,
        counts.pooled_share(share),
        np.array([best.shift]),
        np.array([best.log_spread]),
    )
    known, other = p.ravel(), q.ravel()
    total = 0.0
    for role, law in (
        (counts.positive, known),
        (counts.unlabeled, best.share * known + (1 - best.share) * other),
    ):
        expected = role.sum() * _joined(law, group)
        total += float(((_joined(role, group) - expected) ** 2 / np.maximum(expected, 0.5)).sum())
    return total, int(group.max() + 1) - 3


def _words(p_value: float, both: bool, failed: bool) -> str:
    if not failed:
        return f"The labelled rows are in keeping with those in U (p = {p_value:.2g})."
    if both:
        return (
            "The unlabelled rows are not a mixture of rows like the labelled positives and rows "
            f"like the labelled negatives (p = {p_value:.2g}): one of them was not labelled "
            "like a random draw of its class, and the share may be off by more than its interval."
        )
    return (
        "The scores do not have the form that the estimate assumes (p = "
        f"{p_value:.2g}): the labelled rows may be unlike those of their class among the "
        "unlabelled ones, and the share may be off by more than its interval."
    )
