"""Scores of three roles -> counts on cells: all that any AUC of one score column needs.

The distinct scores of the labelled rows are the *anchors* a_1 < ... < a_K. They cut the line into
2K + 1 cells (below a_1, at a_1, between a_1 and a_2, ..., above a_K). Every estimate of the AUC and
every variance in this package is a function of how many P, N and U rows lie in each cell, because
two unlabelled rows are never compared with each other. Counts add up, so blocks and shards merge
exactly, and ten million unlabelled rows become one vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pnuauc._arrays import Floats
from pnuauc._shown import ShownAsTable
from pnuauc.labels import UNLABELED, Roles, read_roles

__all__ = ["ScoreCounts", "check_scores", "count_cells"]

Counts: TypeAlias = NDArray[np.int64]


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
            f"{name} holds whole numbers above 2**53 that floats cannot tell apart; pass their "
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
    positive, negative, unlabeled : ndarray of int, shape (2K + 1,)
        Cell 2k + 1 is the point ``anchors[k]``, cell 2k the open interval below it.

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
    def from_rows(cls, y: Any, scores: ArrayLike, **label_codes: Any) -> ScoreCounts:
        """Counts of one table; the anchors are its own labelled scores."""
        roles = read_roles(y, **label_codes)
        values = check_scores(scores, len(roles))
        return cls.from_roles(roles, values)

    @classmethod
    def from_roles(cls, roles: Roles, values: Floats, anchors: Floats | None = None) -> ScoreCounts:
        """As :meth:`from_rows`, from labels already read and scores already checked."""
        p, n = values[roles.positive], values[roles.negative]
        # the mask is cheaper than the row numbers where almost every row is unlabelled
        u = values[roles.codes == UNLABELED] if len(p) + len(n) < len(values) else values[:0]
        if anchors is None:
            anchors = np.unique(np.concatenate([p, n]))
        return cls(anchors, *(count_cells(part, anchors) for part in (p, n, u)))

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
        return int(self.positive.sum())

    @property
    def n_negative(self) -> int:
        return int(self.negative.sum())

    @property
    def n_unlabeled(self) -> int:
        return int(self.unlabeled.sum())


def count_cells(values: Floats, anchors: Floats) -> Counts:
    """Rows per cell, shape (2K + 1,): one sort, then two searches of the few anchors."""
    ordered = np.sort(values)
    edges: Counts = np.empty(2 * len(anchors) + 2, dtype=np.int64)
    edges[0], edges[-1] = 0, len(ordered)
    edges[1:-1:2] = np.searchsorted(ordered, anchors, side="left")
    edges[2:-1:2] = np.searchsorted(ordered, anchors, side="right")
    return np.diff(edges)
