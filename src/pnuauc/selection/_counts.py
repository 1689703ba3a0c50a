"""Zero-one risks of many candidates at once, exact with ties, and their variances.

Everything is read off how many unlabelled rows lie below each labelled row, so unlabelled rows
pass by in blocks and are never kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["FoldCounts", "count_below", "with_next_above"]


def with_next_above(marks: NDArray[np.floating]) -> NDArray[np.floating]:
    """(..., m) -> (..., 2 m): the marks, then for each the next float up.

    How many scores are <= a mark is how many are < the next float up, so that one search answers
    both questions.
    """
    return np.concatenate([marks, np.nextafter(marks, np.inf, dtype=marks.dtype)], axis=-1)


def count_below(marks: NDArray[np.floating], scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """For each candidate and mark, how many scores are < mark: (c, m), (c, n) -> (c, m).

    ``scores`` is sorted in place. Sorting and searching costs less than m comparisons of n scores
    from about ten marks on, and little more before.
    """
    scores.sort(axis=1)
    found = np.empty(marks.shape, dtype=np.int64)
    for c in range(len(marks)):
        found[c] = scores[c].searchsorted(marks[c])
    return found


@dataclass(frozen=True, eq=False)
class FoldCounts:
    """Held-out rows of one fold under c candidates.

    positive, negative : (c, n_P), (c, n_N), scores of the labelled rows
    below, upto : (c, n_P + n_N), unlabelled rows below, and not above, each labelled row
    n_unlabeled : int
    """

    positive: NDArray[np.floating]
    negative: NDArray[np.floating]
    below: NDArray[np.int64]
    upto: NDArray[np.int64]
    n_unlabeled: int

    @classmethod
    def from_labelled(
        cls, positive: NDArray[np.floating], negative: NDArray[np.floating]
    ) -> FoldCounts:
        shape = (len(positive), positive.shape[1] + negative.shape[1])
        nothing = np.zeros(shape, dtype=np.int64)
        return cls(positive, negative, nothing, nothing, 0)

    @property
    def marks(self) -> NDArray[np.floating]:
        """Scores of the labelled rows, positive ones first, shape (c, n_P + n_N)."""
        return np.concatenate([self.positive, self.negative], axis=1)

    def with_unlabelled(self, found: NDArray[np.int64], n_unlabeled: int) -> FoldCounts:
        """The same with counts of unlabelled rows, shape (c, 2 (n_P + n_N)): below, and upto."""
        below, upto = np.split(found, 2, axis=1)
        return replace(self, below=below, upto=upto, n_unlabeled=n_unlabeled)

    def of(self, candidates: NDArray[np.bool_]) -> FoldCounts:
        """The same for some of the candidates."""
        return FoldCounts(
            self.positive[candidates],
            self.negative[candidates],
            self.below[candidates],
            self.upto[candidates],
            self.n_unlabeled,
        )

    def risks(self, prior: float | None) -> dict[str, NDArray[np.float64]]:
        """Zero-one R_PN, R_PU, R_NU per candidate, shape (c,); NaN where rows are missing."""
        n_p, n_n = self.positive.shape[1], self.negative.shape[1]
        missing = np.full(len(self.positive), np.nan)
        out = {"PN": missing, "PU": missing, "NU": missing}
        if n_p and n_n:
            out["PN"] = 1.0 - self.pn_placements().mean(axis=1)
        if self.n_unlabeled and prior is not None:
            above = 0.5 * (self.below + self.upto) / self.n_unlabeled  # share of U below each mark
            if n_p:
                out["PU"] = (1.0 - above[:, :n_p].mean(axis=1) - prior / 2) / (1.0 - prior)
            if n_n:
                out["NU"] = (above[:, n_p:].mean(axis=1) - (1.0 - prior) / 2) / prior
        return out

    def pn_placements(self) -> NDArray[np.float64]:
        """For each positive the share of negatives below it (ties half), shape (c, n_P)."""
        out = np.empty(self.positive.shape)
        ranked = np.sort(self.negative, axis=1)
        for c in range(len(out)):
            low = ranked[c].searchsorted(self.positive[c], side="left")
            high = ranked[c].searchsorted(self.positive[c], side="right")
            out[c] = 0.5 * (low + high) / self.negative.shape[1]
        return out

    def np_placements(self) -> NDArray[np.float64]:
        """For each negative the share of positives above it (ties half), shape (c, n_N)."""
        mirrored = FoldCounts(-self.negative, -self.positive, self.below, self.upto, 0)
        return mirrored.pn_placements()

    def unlabeled_spread(self) -> NDArray[np.float64]:
        """Covariance over U of (share of P above u, share of N below u), shape (c, 2, 2).

        Both are step functions of u that change only at the labelled rows, so the counts between
        neighbouring labelled rows say all.
        """
        n_p = self.positive.shape[1]
        marks = np.concatenate([self.positive, self.negative], axis=1)
        order = np.argsort(marks, axis=1, kind="stable")
        ranked = np.take_along_axis(marks, order, axis=1)
        below = np.take_along_axis(self.below, order, axis=1)
        upto = np.take_along_axis(self.upto, order, axis=1)
        is_p = order < n_p
        first = np.diff(ranked, axis=1, prepend=np.nan) != 0
        # cells: before each mark (zero width between tied marks), on each mark, after the last
        before = np.where(first, below - _shift(upto), 0)
        on = np.where(first, upto - below, 0)
        after = self.n_unlabeled - upto[:, -1:]
        n_first = np.cumsum(is_p, axis=1) - is_p  # positives strictly earlier in the order
        p_on, n_on = _tied(ranked, is_p), _tied(ranked, ~is_p)
        p_total, n_total = max(n_p, 1), max(marks.shape[1] - n_p, 1)
        n_before = np.cumsum(~is_p, axis=1) - ~is_p
        share_p = np.concatenate(
            [n_p - n_first, n_p - n_first - 0.5 * p_on, np.zeros_like(after)], axis=1
        )
        share_n = np.concatenate(
            [n_before, n_before + 0.5 * n_on, np.full_like(after, marks.shape[1] - n_p)], axis=1
        )
        weight = np.concatenate([before, on, after], axis=1) / self.n_unlabeled
        values = np.stack([share_p / p_total, share_n / n_total], axis=1)
        mean = (values * weight[:, None]).sum(axis=2)
        centred = values - mean[:, :, None]
        out: NDArray[np.float64] = np.einsum("cik,cjk,ck->cij", centred, centred, weight)
        return out


def _shift(upto: NDArray[np.int64]) -> NDArray[np.int64]:
    """The previous mark's count; zero before the first."""
    return np.concatenate([np.zeros_like(upto[:, :1]), upto[:, :-1]], axis=1)


def _tied(ranked: NDArray[np.floating], member: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For the first of each run of tied marks: how many members the run has."""
    out = np.zeros(ranked.shape, dtype=np.int64)
    for c in range(len(ranked)):
        _, starts = np.unique(ranked[c], return_index=True)
        out[c, starts] = np.add.reduceat(member[c].astype(np.int64), starts)
    return out
