"""Counts on cells -> the three AUC estimates and their covariance matrix.

With H(a, b) = 1[a > b] + 1[a = b]/2 and placements F_R(s) = mean over r in R of H(s, r):

- PN:  mean over P of F_N
- PU:  (mean over P of F_U - prior/2) / (1 - prior);   the within-P term is exactly 1/2
- NU:  (mean over U of F_N - (1 - prior)/2) / prior;   likewise within N

Each is a two-sample U-statistic, so its variance is the sum over roles of the sample variance of
the Hoeffding projections, divided by the number of rows (for PN: DeLong, DeLong, Clarke-Pearson
1988). Rows that two estimates share give their covariance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pnuauc._arrays import Floats
from pnuauc.metrics._counts import Counts, ScoreCounts

__all__ = ["SINGLES", "PairShares", "moments_of", "placements", "raw_to_auc", "role_covariance"]

SINGLES = ("pn", "pu", "nu")


@dataclass(frozen=True, eq=False)
class PairShares:
    """Raw pair means of (P over N, P over U, U over N), and their covariance by role.

    Attributes
    ----------
    raw : ndarray, shape (3,)
        Pair means; NaN where a role has no rows.
    by_role : ndarray, shape (3, 3, 3)
        ``by_role[r]`` is role r's (P, N, U) part of the covariance matrix of ``raw``.
    n : tuple of int
        Rows of P, N and U.
    """

    raw: Floats
    by_role: Floats
    n: tuple[int, int, int]


def placements(role: Counts) -> Floats:
    """F of every cell against one role, shape (2K + 1,): midranks from cumulative counts."""
    below = np.cumsum(role) - role
    return (below + 0.5 * role) / max(int(role.sum()), 1)


def moments_of(counts: ScoreCounts) -> PairShares:
    """All first and second moments of the three estimates, O(K)."""
    roles = (counts.positive, counts.negative, counts.unlabeled)
    n = (counts.n_positive, counts.n_negative, counts.n_unlabeled)
    f_p, f_n, f_u = (placements(role) for role in roles)
    zero = np.zeros_like(f_p)
    # projections of (PN, PU, NU) on one row of P, N, U; a positive wins with F, others lose 1 - F
    projections = (
        np.stack([f_n, f_u, zero]),
        np.stack([1.0 - f_p, zero, 1.0 - f_u]),
        np.stack([zero, 1.0 - f_p, f_n]),
    )
    raw = np.full(3, np.nan)
    for k, (winner, loser) in enumerate(((0, 1), (0, 2), (2, 1))):
        if n[winner] and n[loser]:
            raw[k] = roles[winner] @ projections[winner][k] / n[winner]
    uses = ([0, 1], [0, 2], [1, 2])
    by_role = np.stack(
        [_covariance(c, x, raw, k) for c, x, k in zip(roles, projections, uses, strict=True)]
    )
    return PairShares(raw, by_role, n)


def role_covariance(role: Counts, projections: Floats) -> Floats:
    """Covariance of the mean projections over one role's n >= 2 rows, shape (3, 3)."""
    n = int(role.sum())
    centred = projections - ((projections @ role) / n)[:, None]
    return np.asarray((centred * role) @ centred.T / (n - 1) / n)


def _covariance(role: Counts, projections: Floats, raw: Floats, used: list[int]) -> Floats:
    """As :func:`role_covariance`, for any number of rows.

    A role of one row shows no spread; A (1 - A), the largest variance a placement with mean A can
    have, stands in for it, so that the interval is too wide rather than absent.
    """
    n = int(role.sum())
    if n >= 2:
        return role_covariance(role, projections)
    spread = np.zeros(3)
    if n == 1:
        spread[used] = np.sqrt(np.clip(np.nan_to_num(raw * (1.0 - raw)), 0.0, None))[used]
    return np.outer(spread, spread)


def raw_to_auc(prior: float | Floats | None) -> tuple[Floats, Floats]:
    """Slopes and offsets: AUC_k = slope_k * raw_k - offset_k for k in (PN, PU, NU).

    ``prior`` is the share of positives inside U; each result has the shape (*shape of prior, 3).
    NaN where the prior leaves an estimate undefined: PU needs prior < 1, NU needs prior > 0.
    """
    t = np.asarray(np.nan if prior is None else prior, dtype=float)
    below, above = (np.where(kept, t, np.nan) for kept in (t < 1.0, t > 0.0))
    slope = np.stack([np.ones(t.shape), 1.0 / (1.0 - below), 1.0 / above], axis=-1)
    offset = np.stack(
        [np.zeros(t.shape), 0.5 * below / (1.0 - below), 0.5 * (1.0 - above) / above], axis=-1
    )
    return slope, offset
