"""Ranks of P, N and U: counts, the three AUC estimates and their covariance matrix.

With H(a, b) = 1[a > b] + 1[a = b]/2 and placements F_R(s) = mean over r in R of H(s, r):

- PN:  mean over P of F_N
- PU:  (mean over P of F_U - prior/2) / (1 - prior);   the within-P term is exactly 1/2
- NU:  (mean over U of F_N - (1 - prior)/2) / prior;   likewise within N

Each is a two-sample U-statistic, so its variance is the sum over roles of the sample variance of
the Hoeffding projections, divided by the number of rows (for PN: DeLong, DeLong, Clarke-Pearson
1988). Rows that two estimates share give their covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable
from pnuauc.labels import UNLABELED, Roles, read_roles

Counts: TypeAlias = NDArray[Any]  # whole numbers, or weights that sum to one


def check_scores(scores: ArrayLike, n_rows: int | None = None, name: str = "scores") -> Floats:
    """One-dimensional float scores without NaN; infinities are allowed, only order counts."""
    if isinstance(scores, np.ma.MaskedArray) and np.ma.is_masked(scores):
        raise ValueError(f"{name} holds masked values; drop or score these rows first.")
    values = np.asarray(scores)
    if values.dtype == object or values.dtype.kind not in "biuf":
        try:
            values = values.astype(float)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be numbers, one per row of y.") from None
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one number per row of y, but has shape "
            f"{values.shape}; pass the column of the positive class."
        )
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} rows but y has {n_rows}; they must match.")
    if values.dtype.kind == "f" and np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise ValueError(f"{name} holds NaN (first in row {row}); drop or score these rows first.")
    floats = values.astype(np.float64, copy=False)
    # above 2**53 two whole numbers may become one float, and what was ranked would be tied
    large = values.dtype.kind in "iu" and len(values) and np.abs(floats).max() >= 2.0**53
    if large and len(np.unique(floats)) < len(np.unique(values)):
        raise ValueError(
            f"{name} holds whole numbers above 2**53 that floats cannot distinguish; pass their "
            "ranks, as only the order counts."
        )
    return floats


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCounts(ShownAsTable):
    """How many rows of each role lie in each of the 2K + 1 cells cut by K anchors.

    Mergeable: ``a + b`` are the counts of both blocks' rows together, exactly. All blocks must
    share the same anchors, the distinct scores of all labelled rows; these are few, so gather
    them first and broadcast them.

    Attributes
    ----------
    anchors : ndarray of float, shape (K,)
        Distinct scores of the labelled rows, ascending.
    positive, negative, unlabeled : ndarray, shape (2K + 1,)
        Cell 2k + 1 is the point ``anchors[k]``, cell 2k the open interval below it. Labelled rows
        with weights are counted by them, on the scale of as many rows as they are worth.

    Examples
    --------
    >>> counts = ScoreCounts.from_rows([1, 0, None, None], [0.9, 0.2, 0.4, 0.9])
    >>> counts.anchors, counts.unlabeled
    (array([0.2, 0.9]), array([0, 0, 1, 1, 0]))
    """

    anchors: Floats
    positive: Counts
    negative: Counts
    unlabeled: Counts

    @classmethod
    def from_rows(
        cls, y: Any, scores: ArrayLike, sample_weight: Any = None, **label_codes: Any
    ) -> ScoreCounts:
        """Counts of one table; the anchors are its own labelled scores."""
        roles = read_roles(y, **label_codes)
        values = check_scores(scores, len(roles))
        found = cls.from_roles(roles, values)
        return found if sample_weight is None else found._weighted(roles, values, sample_weight)

    def _weighted(self, roles: Roles, values: Floats, sample_weight: Any) -> ScoreCounts:
        """Labelled rows counted by weight: (sum w)^2 / sum w^2 rows of each class, rounded down."""
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != values.shape:
            raise ValueError(
                f"sample_weight has shape {weights.shape}, but there are {len(values)} rows."
            )
        counted: dict[str, Any] = {}
        for name, rows in (("positive", roles.positive), ("negative", roles.negative)):
            own = weights[rows]
            if not (np.isfinite(own).all() and (own >= 0.0).all()):
                raise ValueError("sample_weight must be finite and not negative for labelled rows.")
            if len(own) and not own.any():
                raise ValueError(f"sample_weight is zero for all {name} rows.")
            if len(own):
                own = own / own.max()
                worth = max(np.floor(own.sum() ** 2 / (own @ own) + 1e-9), 1.0)
                cells = 2 * np.searchsorted(self.anchors, values[rows]) + 1
                counted[name] = np.bincount(
                    cells, own * (worth / own.sum()), minlength=len(self.positive)
                )
        return replace(self, **counted)

    @classmethod
    def from_roles(cls, roles: Roles, values: Floats, anchors: Floats | None = None) -> ScoreCounts:
        """As :meth:`from_rows`, from labels already read and scores already checked."""
        p, n = values[roles.positive], values[roles.negative]
        if anchors is None:
            anchors = np.unique(np.concatenate([p, n]))
        positive, negative = count_cells(p, anchors), count_cells(n, anchors)
        n_labeled = len(p) + len(n)
        if 2 * n_labeled < len(values):  # all rows less the labelled ones: no copy of U is needed
            return cls(
                anchors, positive, negative, count_cells(values, anchors) - positive - negative
            )
        u = values[roles.codes == UNLABELED] if n_labeled < len(values) else values[:0]
        return cls(anchors, positive, negative, count_cells(u, anchors))

    @classmethod
    def from_block(
        cls, y: Any, scores: ArrayLike, anchors: ArrayLike, **label_codes: Any
    ) -> ScoreCounts:
        """Counts of one block on given anchors, which must hold its labelled scores.

        Parameters
        ----------
        y : array-like, shape (n,), or Roles
        scores : array-like, shape (n,)
        anchors : array-like, shape (K,)
            Labelled scores of *all* blocks, in any order, repeats allowed.
        **label_codes
            ``positive_label``, ``negative_label``, ``unlabeled_label``. A block may hold one role
            only, so name the codes, or pass ``Roles``, where the block alone would be ambiguous.
        """
        roles = read_roles(y, **label_codes)
        values = check_scores(scores, len(roles))
        points = np.unique(check_scores(anchors, name="anchors"))
        counts = cls.from_roles(roles, values, points)
        if counts.positive[::2].any() or counts.negative[::2].any():
            raise ValueError(
                "The block holds a labelled score that is not among the anchors; gather the "
                "labelled scores of all blocks first and pass them as anchors to each block."
            )
        return counts

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        if not np.array_equal(self.anchors, other.anchors):
            raise ValueError("Only counts on the same anchors can be added.")
        return ScoreCounts(
            self.anchors,
            self.positive + other.positive,
            self.negative + other.negative,
            self.unlabeled + other.unlabeled,
        )

    @property
    def n_positive(self) -> int:
        return n_rows(self.positive)

    @property
    def n_negative(self) -> int:
        return n_rows(self.negative)

    @property
    def n_unlabeled(self) -> int:
        return n_rows(self.unlabeled)


def n_rows(role: Counts) -> int:
    """Rows of one role; weighted ones sum to a whole number but for rounding."""
    return round(float(role.sum()))


def count_cells(values: Floats, anchors: Floats) -> Counts:
    """Rows per cell, shape (2K + 1,): one sort and two searches of the anchors."""
    ordered = np.sort(values)
    edges: Counts = np.empty(2 * len(anchors) + 2, dtype=np.int64)
    edges[0], edges[-1] = 0, len(ordered)
    edges[1:-1:2] = np.searchsorted(ordered, anchors, side="left")
    edges[2:-1:2] = np.searchsorted(ordered, anchors, side="right")
    return np.diff(edges)


SINGLES = ("pn", "pu", "nu")
#: Numbers of the roles (P, N, U) that win and lose in each of them.
PAIRS = ((0, 1), (0, 2), (2, 1))
#: Which of them rows of P, of N and of U take part in.
USES = ([0, 1], [0, 2], [1, 2])


@dataclass(frozen=True, eq=False)
class PairShares:
    """Raw pair means of (P over N, P over U, U over N), and their covariance by role.

    Attributes
    ----------
    raw : ndarray, shape (3,)
        Pair means; NaN where a role has no rows.
    by_role : ndarray, shape (3, 3, 3)
        ``by_role[r]`` is role r's (P, N, U) part of the covariance matrix of ``raw``.
    n : tuple of float
        Rows of P, N and U; of rows that belong together as many as they count for.
    """

    raw: Floats
    by_role: Floats
    n: tuple[float, float, float]


def placements(role: Counts) -> Floats:
    """F of every cell against one role, shape (..., 2K + 1): midranks from cumulative counts."""
    total = role.sum(axis=-1, keepdims=True)
    return np.asarray((np.cumsum(role, axis=-1) - 0.5 * role) / np.where(total > 0, total, 1))


def projections(
    positive: Counts, negative: Counts, unlabeled: Counts
) -> tuple[Floats, Floats, Floats]:
    """Of the raw pair means on one row of P (PN, PU), of N (PN, NU) and of U (PU, NU), by cell.

    Each of shape (2, ..., 2K + 1). A positive wins with F, others lose 1 - F.
    """
    f_p, f_n, f_u = (placements(role) for role in (positive, negative, unlabeled))
    return np.stack([f_n, f_u]), np.stack([1.0 - f_p, 1.0 - f_u]), np.stack([1.0 - f_p, f_n])


def pair_means(roles: Sequence[Counts], projected: Sequence[Floats]) -> Floats:
    """Raw means over pairs (P, N), (P, U), (U, N), shape (3, ...); NaN where a role has no rows."""
    n = [np.asarray(role.sum(axis=-1), dtype=np.float64) for role in roles]
    means = []
    for k, (winner, loser) in enumerate(PAIRS):
        won = (roles[winner] * projected[winner][USES[winner].index(k)]).sum(axis=-1)
        some = (n[winner] > 0) & (n[loser] > 0)
        means.append(np.divide(won, n[winner], out=np.full_like(won, np.nan), where=some))
    return np.stack(means)


def pairs_won(winner: Floats, loser: Floats) -> float:
    """Share of pairs (w, l) with w > l, ties one half, of two sorted samples."""
    few, many = sorted((winner, loser), key=len)
    first = np.flatnonzero(np.append(True, few[1:] != few[:-1]))
    anchors, times = few[first], np.diff(first, append=len(few))
    below = np.searchsorted(many, anchors)
    twice = 2 * int(times @ below)
    tied = many[np.minimum(below, len(many) - 1)] == anchors  # only these are searched again
    upto = np.searchsorted(many, anchors[tied], side="right")
    twice += int(times[tied] @ (upto - below[tied]))
    share = twice / (2 * len(few) * len(many))
    return share if few is winner else 1.0 - share


def moments_of(counts: ScoreCounts) -> PairShares:
    """All first and second moments of the three estimates, O(K)."""
    roles = (counts.positive, counts.negative, counts.unlabeled)
    projected = projections(*roles)
    raw = pair_means(roles, projected)
    by_role = np.zeros((3, 3, 3))
    for r, (counted, x, used) in enumerate(zip(roles, projected, USES, strict=True)):
        by_role[r][np.ix_(used, used)] = _covariance(counted, x, raw[used])
    return PairShares(raw, by_role, (counts.n_positive, counts.n_negative, counts.n_unlabeled))


def _covariance(role: Counts, projected: Floats, raw: Floats) -> Floats:
    """Covariance of the mean projections over one role's rows: (k, 2K + 1) -> (k, k).

    A role of one row shows no spread; A (1 - A), the largest variance a placement with mean A can
    have, stands in for it, so that the interval is too wide rather than absent.
    """
    n = n_rows(role)
    if n >= 2:
        centered = projected - ((projected @ role) / n)[:, None]
        return np.asarray((centered * role) @ centered.T / (n - 1) / n)
    spread = np.sqrt(np.clip(np.nan_to_num(raw * (1.0 - raw)), 0.0, None)) * (n == 1)
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


# Rows that belong together count for less.


def alikeness(values: Floats, groups: Any) -> float:
    """Correlation of two rows of one group, from 0 to 1; one error above its estimate.

    The intraclass correlation of ranks by analysis of variance. m rows of a group count as
    m / (1 + rho (m - 1)) independent ones. Too high a rho gives wide intervals, too low a one wrong
    ones, and few groups tell little: hence its standard error (Fisher 1925) is added.
    """
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n, k = len(number), len(sizes)
    if n == k or k < 2:
        return 1.0
    ranks = np.argsort(np.argsort(values, kind="stable")).astype(float)
    _, tied = np.unique(values, return_inverse=True)
    ranks = (np.bincount(tied, ranks) / np.bincount(tied))[tied]
    means = np.bincount(number, ranks) / sizes
    within = float(((ranks - means[number]) ** 2).sum()) / (n - k)
    between = float((sizes * (means - ranks.mean()) ** 2).sum()) / (k - 1)
    usual = (n - float((sizes**2).sum()) / n) / (k - 1)  # rows of a group
    total = between + (usual - 1.0) * within
    rho = float(np.clip((between - within) / total, 0.0, 1.0)) if total > 0 else 1.0
    spread = 2.0 / (max(usual, 1.5) * (max(usual, 1.5) - 1.0) * (k - 1))
    return min(rho + (1.0 - rho) * (1.0 + (usual - 1.0) * rho) * float(np.sqrt(spread)), 1.0)


def design_effect(values: Floats, groups: Any) -> float:
    """How many rows count as one: 1 + rho (sum m^2 / sum m - 1) over groups of m rows."""
    sizes = np.unique(groups, return_counts=True)[1]
    usual = float((sizes**2).sum() / max(sizes.sum(), 1))
    return 1.0 + alikeness(values, groups) * (usual - 1.0) if usual > 1.0 else 1.0


def clustered(moments: PairShares, effects: Any) -> PairShares:
    """The same with rows of P, N and U that count for 1 / ``effects`` each."""
    factor = np.asarray(effects, dtype=float)
    n = tuple(float(rows / d) for rows, d in zip(moments.n, factor, strict=True))
    return PairShares(moments.raw, moments.by_role * factor[:, None, None], (n[0], n[1], n[2]))
