"""Zero-one risks of many candidates at once, exact with ties, and their variances.

Everything is read off how many unlabelled rows lie below each labelled row, so unlabelled rows
pass by in blocks and are never kept. Rows may have frequency weights: a weight of 2 counts as two
rows.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pnuauc._arrays import Floats, Indices, Mask

__all__ = ["MARKS", "FoldCounts", "Marks", "count_below", "with_next_above"]

#: Marks of a class in a fold: above so many labelled rows their scores are thinned.
MARKS = 400


def with_next_above(marks: NDArray[np.floating]) -> NDArray[np.floating]:
    """(..., m) -> (..., 2 m): the marks, then for each the next float up.

    How many scores are <= a mark is how many are < the next float up, so that one search answers
    both questions.
    """
    return np.concatenate([marks, np.nextafter(marks, np.inf, dtype=marks.dtype)], axis=-1)


def count_below(
    marks: NDArray[np.floating], scores: NDArray[np.floating], weight: Floats | None = None
) -> Floats:
    """For each candidate and mark, how many scores are < mark: (c, m), (c, n) -> (c, m).

    With weights, shape (n,), the weight of those scores. Without, ``scores`` is sorted in place.
    Sorting and searching costs less than m comparisons of n scores from about ten marks on, and
    little more before.
    """
    found = np.empty(marks.shape)
    if weight is None:
        scores.sort(axis=1)
        for c in range(len(marks)):
            found[c] = scores[c].searchsorted(marks[c])
        return found
    order = np.argsort(scores, axis=1)
    total = np.zeros((len(scores), scores.shape[1] + 1))
    np.cumsum(weight[order], axis=1, out=total[:, 1:])
    for c in range(len(marks)):
        found[c] = total[c, scores[c].searchsorted(marks[c], sorter=order[c])]
    return found


@dataclass(frozen=True, eq=False)
class FoldCounts:
    """Held-out rows of one fold under c candidates.

    positive, negative : (c, n_P), (c, n_N), scores of the labelled rows
    below, upto : (c, n_P + n_N), unlabelled rows below, and not above, each labelled row
    n_unlabeled : number of unlabelled rows, or the sum of their weights
    weight_positive, weight_negative : (n_P,), (n_N,), or None: ones
    """

    positive: NDArray[np.floating]
    negative: NDArray[np.floating]
    below: Floats
    upto: Floats
    n_unlabeled: float
    weight_positive: Floats | None = None
    weight_negative: Floats | None = None

    @classmethod
    def from_labelled(
        cls,
        positive: NDArray[np.floating],
        negative: NDArray[np.floating],
        weight_positive: Floats | None = None,
        weight_negative: Floats | None = None,
    ) -> FoldCounts:
        nothing = np.zeros((len(positive), positive.shape[1] + negative.shape[1]))
        return cls(positive, negative, nothing, nothing, 0, weight_positive, weight_negative)

    @property
    def marks(self) -> NDArray[np.floating]:
        """Scores of the labelled rows, positive ones first, shape (c, n_P + n_N)."""
        return np.concatenate([self.positive, self.negative], axis=1)

    @functools.cached_property
    def positive_mass(self) -> Floats:
        """Weights of the positive rows, shape (n_P,)."""
        given = self.weight_positive
        return np.ones(self.positive.shape[1]) if given is None else given

    @functools.cached_property
    def negative_mass(self) -> Floats:
        """Weights of the negative rows, shape (n_N,)."""
        given = self.weight_negative
        return np.ones(self.negative.shape[1]) if given is None else given

    def with_unlabelled(self, found: Floats, n_unlabeled: float) -> FoldCounts:
        """The same with counts of unlabelled rows, shape (c, 2 (n_P + n_N)): below, and upto."""
        below, upto = np.split(found, 2, axis=1)
        return replace(self, below=below, upto=upto, n_unlabeled=n_unlabeled)

    def of(self, candidates: Mask) -> FoldCounts:
        """The same for some of the candidates."""
        by_candidate = ("positive", "negative", "below", "upto")
        return replace(self, **{name: getattr(self, name)[candidates] for name in by_candidate})

    @functools.cached_property
    def unlabeled_below(self) -> Floats:
        """Share of U below each labelled row (ties half), shape (c, n_P + n_N)."""
        return 0.5 * (self.below + self.upto) / max(self.n_unlabeled, 1e-300)

    def risks(self, prior: float | None) -> dict[str, Floats]:
        """Zero-one R_PN, R_PU, R_NU per candidate, shape (c,); NaN where rows are missing."""
        n_p, n_n = self.positive.shape[1], self.negative.shape[1]
        missing = np.full(len(self.positive), np.nan)
        out = {"PN": missing, "PU": missing, "NU": missing}
        if n_p and n_n:
            out["PN"] = 1.0 - np.average(self.pn_placements(), axis=1, weights=self.positive_mass)
        if self.n_unlabeled and prior is not None:
            below = self.unlabeled_below
            if n_p:
                share = np.average(below[:, :n_p], axis=1, weights=self.positive_mass)
                out["PU"] = (1.0 - share - prior / 2) / (1.0 - prior)
            if n_n:
                share = np.average(below[:, n_p:], axis=1, weights=self.negative_mass)
                out["NU"] = (share - (1.0 - prior) / 2) / prior
        return out

    def pn_placements(self) -> Floats:
        """For each positive the share of negatives below it (ties half), shape (c, n_P)."""
        n_p, ranked = self.positive.shape[1], self._ranked
        found = ranked.negative_below + 0.5 * ranked.negative_tied
        return np.asarray(ranked.unsorted(found)[:, :n_p] / self.negative_mass.sum())

    def np_placements(self) -> Floats:
        """For each negative the share of positives above it (ties half), shape (c, n_N)."""
        n_p, ranked, total = self.positive.shape[1], self._ranked, self.positive_mass.sum()
        found = total - ranked.positive_below - 0.5 * ranked.positive_tied
        return np.asarray(ranked.unsorted(found)[:, n_p:] / total)

    @functools.cached_property
    def _ranked(self) -> _Ranked:
        return _Ranked.of(self.marks, self.positive_mass, self.negative_mass)

    def unlabeled_spread(self) -> Floats:
        """Covariance over U of (share of P above u, share of N below u), shape (c, 2, 2).

        Both are step functions of u that change only at the labelled rows, so the counts between
        neighbouring labelled rows say all.
        """
        r = self._ranked
        below = np.take_along_axis(self.below, r.order, axis=1)
        upto = np.take_along_axis(self.upto, r.order, axis=1)
        # cells: before each mark (zero width between tied marks), on each mark, after the last
        earlier = np.concatenate([np.zeros_like(upto[:, :1]), upto[:, :-1]], axis=1)
        before = np.where(r.first, below - earlier, 0)
        on = np.where(r.first, upto - below, 0)
        after = self.n_unlabeled - upto[:, -1:]
        n_p, n_n = self.positive_mass.sum(), self.negative_mass.sum()
        above = n_p - r.positive_below
        halves = above - 0.5 * r.positive_tied, r.negative_below + 0.5 * r.negative_tied
        share_p = np.concatenate([above, halves[0], np.zeros_like(after)], axis=1)
        share_n = np.concatenate([r.negative_below, halves[1], np.full_like(after, n_n)], axis=1)
        weight = np.concatenate([before, on, after], axis=1) / self.n_unlabeled
        values = np.stack([share_p / (n_p or 1.0), share_n / (n_n or 1.0)], axis=1)
        mean = (values * weight[:, None]).sum(axis=2)
        centred = values - mean[:, :, None]
        return np.asarray(np.einsum("cik,cjk,ck->cij", centred, centred, weight))


@dataclass(frozen=True, eq=False)
class Marks:
    """The scores at which unlabelled rows are counted: those of the labelled rows, or fewer.

    What a block leaves behind has the size of the marks, 150 MB with 20,000 labels. So of more
    than ``MARKS`` labelled rows of a class only every so-maniest in rank is a mark (the first and
    the last among them), and counts at the others lie on the line between their neighbours. Between
    two neighbours are at most n / (MARKS - 1) rows of the class, and each of these is off by at
    most the share of U between them; these shares add up to 1. So the mean share of U below a
    class is off by 1 / (MARKS - 1) = .0025 at most, and by some 1e-6 where densities are smooth.

    Attributes
    ----------
    rows : ndarray, shape (c, n_P + n_N)
        Scores of the labelled rows.
    kept : ndarray, shape (c, m), or None
        The marks, ascending; None: all labelled rows are.
    """

    rows: NDArray[np.floating]
    kept: NDArray[np.floating] | None

    @classmethod
    def of(cls, counts: FoldCounts) -> Marks:
        """All scores of a class that has few rows, evenly spaced ones of a class with many."""
        sides = (counts.positive, counts.negative)
        if all(side.shape[1] <= MARKS for side in sides):
            return cls(counts.marks, None)
        kept = []
        for side in sides:
            n = side.shape[1]
            places = np.linspace(0, n - 1, min(n, MARKS)).round().astype(np.intp)
            kept.append(np.sort(side, axis=1)[:, places])
        return cls(counts.marks, np.sort(np.concatenate(kept, axis=1), axis=1))

    @property
    def wanted(self) -> NDArray[np.floating]:
        """Where to count, see :func:`with_next_above`."""
        return with_next_above(self.rows if self.kept is None else self.kept)

    def spread(self, found: Floats) -> Floats:
        """Counts at the marks -> counts at all labelled rows, shape (c, 2 (n_P + n_N))."""
        if self.kept is None:
            return found
        below, upto = np.split(found, 2, axis=1)
        out = np.empty((len(found), 2 * self.rows.shape[1]))
        for c, (marks, rows) in enumerate(zip(self.kept, self.rows, strict=True)):
            high = np.searchsorted(marks, rows)  # the first mark at or above; the last row is one
            exact = marks[high] == rows
            low = np.maximum(high - 1, 0)
            gap = np.where(exact, 1.0, marks[high] - marks[low])
            share = np.where(exact, 1.0, (rows - marks[low]) / gap)
            between = upto[c, low] + share * (below[c, high] - upto[c, low])
            at_marks = np.where(exact, [below[c, high], upto[c, high]], between)
            out[c] = at_marks.ravel()
        return out


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Labelled rows of each candidate in ascending order; all arrays have shape (c, n_P + n_N).

    order : where each came from
    first : whether a row is the first of those that tie with it
    positive_below, positive_tied : mass of the positives below, and tied with, each row
    negative_below, negative_tied : the same of the negatives
    """

    order: Indices
    first: Mask
    positive_below: Floats
    positive_tied: Floats
    negative_below: Floats
    negative_tied: Floats

    @classmethod
    def of(cls, marks: NDArray[np.floating], positive: Floats, negative: Floats) -> _Ranked:
        order = np.argsort(marks, axis=1, kind="stable")
        ranked = np.take_along_axis(marks, order, axis=1)
        first = np.diff(ranked, axis=1, prepend=np.nan) != 0
        last = np.concatenate([first[:, 1:], np.ones_like(first[:, :1])], axis=1)
        place = np.arange(marks.shape[1])
        start = np.maximum.accumulate(np.where(first, place, 0), axis=1)
        stop = np.minimum.accumulate(np.where(last, place, len(place))[:, ::-1], axis=1)[:, ::-1]
        masses = []
        for mass in (np.r_[positive, 0 * negative], np.r_[0 * positive, negative]):
            total = np.zeros((len(marks), len(place) + 1))
            np.cumsum(mass[order], axis=1, out=total[:, 1:])
            below = np.take_along_axis(total, start, axis=1)
            masses += [below, np.take_along_axis(total, stop + 1, axis=1) - below]
        return cls(order, first, *masses)

    def unsorted(self, values: Floats) -> Floats:
        """Values of the rows in ascending order -> in their own order."""
        out = np.empty_like(values)
        np.put_along_axis(out, self.order, values, axis=1)
        return out
