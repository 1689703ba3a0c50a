"""From held-out counts to one validation risk per candidate.

All of R_PN, R_PU and R_NU with the zero-one loss estimate 1 - AUC without bias, so any weights
that sum to one are legal; they differ in variance only.

- ``"simple"``: (1 - g) R_PN + g R_PU for candidates of eta >= 0, (1 - g') R_PN + g' R_NU for
  eta < 0, with the paper's simple weights g, g' (``gamma_bar``). Candidates of different sign are
  then compared on two different criteria, as in the paper.
- ``"variance"``: the same with g, g' from the estimated covariance of the three risks.
- ``"combined"``: one criterion for all candidates, the combination of R_PN, R_PU and R_NU of
  least variance with non-negative weights.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from pnuauc._utils.arrays import Floats, Indices, Mask
from pnuauc.core.risks import gamma_bar

__all__ = [
    "CRITERIA",
    "MARKS",
    "Criterion",
    "FoldCounts",
    "Marks",
    "count_below",
    "held_out_covariance",
    "validation_risks",
    "with_next_above",
]

#: Largest number of marks of a class in a fold; with more labelled rows the scores are thinned.
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
    Sorting costs less than m comparisons of n scores with more than about ten marks.
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
    def from_labeled(
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

    def with_unlabeled(self, found: Floats, n_unlabeled: float) -> FoldCounts:
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
        centered = values - mean[:, :, None]
        return np.asarray(np.einsum("cik,cjk,ck->cij", centered, centered, weight))


@dataclass(frozen=True, eq=False)
class Marks:
    """The scores at which unlabelled rows are counted: those of the labelled rows, or fewer.

    What a block leaves behind has the size of the marks, 150 MB with 20,000 labels. So of more
    than ``MARKS`` labelled rows of a class only every k-th score by rank is a mark (the first and
    the last among them), and counts at the others lie on the line between their neighbours. The
    mean share of U below a class is then off by 1 / (MARKS - 1) = .0025 at most.

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


CRITERIA = ("simple", "variance", "combined")
PARTS = ("PN", "PU", "NU")


@dataclass(frozen=True, eq=False)
class Criterion:
    """Validation risks and how they were weighted.

    name : str
    fold_risks : ndarray, shape (n_folds, n_candidates)
        NaN where a fold lacks the rows for it, and for candidates that are out of the running.
    weights : dict of "eta >= 0" / "eta < 0" / "all" -> (w_PN, w_PU, w_NU)
    noise : float
        Standard error of a candidate's validation risk (root mean square over candidates), by
        Hoeffding projections: what a difference must be measured against.
    """

    name: str
    fold_risks: Floats
    weights: dict[str, tuple[float, float, float]]
    noise: float

    @property
    def mean(self) -> Floats:
        """Mean over the folds that have a value, shape (n_candidates,); NaN where none has."""
        n = (~np.isnan(self.fold_risks)).sum(axis=0)
        return np.where(n > 0, np.nansum(self.fold_risks, axis=0) / np.maximum(n, 1), np.nan)

    @property
    def std(self) -> Floats:
        """Standard deviation over the folds that have a value, shape (n_candidates,)."""
        n = np.maximum((~np.isnan(self.fold_risks)).sum(axis=0), 1)
        return np.asarray(np.sqrt(np.nansum((self.fold_risks - self.mean) ** 2, axis=0) / n))

    @property
    def std_error(self) -> Floats:
        """Standard error over folds, shape (n_candidates,); zero with a single fold."""
        n = np.maximum((~np.isnan(self.fold_risks)).sum(axis=0), 1)
        return np.asarray(self.std / np.sqrt(np.maximum(n - 1, 1)))

    def without(self, fold: int) -> Criterion:
        """The same from the other folds; the noise grows with the square root of their number."""
        kept = np.arange(len(self.fold_risks)) != fold
        noise = self.noise * np.sqrt(len(kept) / max(kept.sum(), 1))
        return replace(self, fold_risks=self.fold_risks[kept], noise=float(noise))

    def among(self, candidates: Mask) -> Criterion:
        """The same with the other candidates out of the running."""
        return replace(self, fold_risks=np.where(candidates, self.fold_risks, np.nan))


def validation_risks(
    counts: Sequence[FoldCounts],
    etas: Floats,
    setting: str,
    prior: float | None,
    name: str,
    usable: Mask | None = None,
) -> Criterion:
    """One risk per fold and candidate.

    etas : ndarray, shape (n_candidates,)
    setting : "PN", "PU", "NU" or "PNU"; the first three leave no choice of weights
    prior : share of positives among the unlabelled rows
    usable : ndarray of bool, shape (n_candidates,), optional
        False takes a candidate out of the running: its risks are NaN and it has no say in weights.
    """
    if name not in CRITERIA:
        known = ", ".join(map(repr, CRITERIA))
        raise ValueError(f"validation must be one of {known}; got {name!r}.")
    found = [c.risks(prior) for c in counts]
    parts = np.array([[risks[part] for part in PARTS] for risks in found])  # (K, 3, c)
    if usable is not None and usable.any():
        counts = [c.of(usable) for c in counts]
        parts[:, :, ~usable] = np.nan
    covariance = held_out_covariance(counts, prior)
    if setting != "PNU" or prior is None:
        only = setting if setting in PARTS else "PN"
        weights = {"all": (float(only == "PN"), float(only == "PU"), float(only == "NU"))}
    else:
        weights = _weights(name, counts, prior, covariance)
    per_candidate = np.array(
        [weights.get("all") or weights["eta >= 0" if eta >= 0 else "eta < 0"] for eta in etas]
    )
    # a part of weight zero must not turn the sum into NaN where its rows are missing
    used = per_candidate.T[None] * np.where(per_candidate.T[None] == 0, 0.0, parts)
    if usable is not None:
        used[:, :, ~usable] = np.nan
    typical = np.array(weights.get("all") or weights["eta >= 0"])
    noise = float(np.sqrt(max(typical @ covariance @ typical, 0.0)))
    return Criterion(name, used.sum(axis=1), weights, noise)


def _weights(
    name: str, counts: Sequence[FoldCounts], prior: float, covariance: Floats
) -> dict[str, tuple[float, float, float]]:
    if name == "combined":
        return {"all": _least_variance_simplex(covariance)}
    if name == "simple":
        n_p = sum(c.positive_mass.sum() for c in counts)
        n_n = sum(c.negative_mass.sum() for c in counts)
        pnpu, pnnu = gamma_bar(prior, n_p, n_n)
    else:
        pnpu, pnnu = (_least_variance(covariance, other) for other in (1, 2))
    return {"eta >= 0": (1 - pnpu, pnpu, 0.0), "eta < 0": (1 - pnnu, 0.0, pnnu)}


def held_out_covariance(counts: Sequence[FoldCounts], prior: float | None) -> Floats:
    """Covariance matrix of (R_PN, R_PU, R_NU), mean over candidates, by Hoeffding projections.

    Var = sum over roles of Var(projection on that role's rows) / n_role. A row's projection is
    its placement among the rows it is compared with; placements are pooled over folds, since a
    fold may hold a single positive. Entries of a risk whose roles are missing are zero.
    """
    total = np.zeros((3, 3))
    have_p = any(c.positive.shape[1] for c in counts)
    have_n = any(c.negative.shape[1] for c in counts)
    have_u = prior is not None and all(c.n_unlabeled for c in counts)
    n_p = [c.positive.shape[1] for c in counts]
    both = [c for c in counts if c.positive.shape[1] and c.negative.shape[1]]
    p_rows = {0: [(c.pn_placements(), c.positive_mass) for c in both]}
    n_rows = {0: [(c.np_placements(), c.negative_mass) for c in both]}
    if prior is not None and have_u:
        p_rows[1] = [
            (c.unlabeled_below[:, :n] / (1.0 - prior), c.positive_mass)
            for c, n in zip(counts, n_p, strict=True)
        ]
        n_rows[2] = [
            ((1.0 - c.unlabeled_below[:, n:]) / prior, c.negative_mass)
            for c, n in zip(counts, n_p, strict=True)
        ]
    for rows, present in ((p_rows, have_p), (n_rows, have_n)):
        if present:
            _add_projection(total, {part: _joined(r) for part, r in rows.items() if r})
    if prior is not None and have_u and (have_p or have_n):
        spread = np.mean([c.unlabeled_spread().mean(axis=0) for c in counts], axis=0)
        scale = np.array([1.0 / (1.0 - prior), 1.0 / prior])
        n_u = sum(c.n_unlabeled for c in counts)
        total[np.ix_([1, 2], [1, 2])] += spread * np.outer(scale, scale) / n_u
    return total


_Placements = tuple[Floats, Floats]


def _joined(parts: Sequence[_Placements]) -> _Placements:
    """Placements, shape (c, n), and weights, shape (n,), of several folds as one."""
    values, weights = zip(*parts, strict=True)
    return np.concatenate(values, axis=1), np.concatenate(weights)


def _add_projection(total: Floats, placements: dict[int, _Placements]) -> None:
    """Add the covariance of placements over one role's rows, divided by the number of rows."""
    sizes = {values.shape[1] for values, _ in placements.values()}
    if len(sizes) != 1:  # a fold without the other labelled class: each part on its own
        for part, values in placements.items():
            _add_projection(total, {part: values})
        return
    parts = list(placements)
    weight = placements[parts[0]][1]
    n = float(weight.sum())
    stacked = np.stack([placements[part][0] for part in parts])
    stacked = stacked - np.average(stacked, axis=2, weights=weight)[:, :, None]
    found = np.einsum("icn,jcn,n->ij", stacked, stacked, weight, optimize=True)
    found /= stacked.shape[1] * max(n - 1, 1) * n
    total[np.ix_(parts, parts)] += found


def _least_variance(s: Floats, other: int) -> float:
    """argmin_g in [0, 1] of Var((1 - g) R_PN + g R_other)."""
    gap = s[0, 0] + s[other, other] - 2 * s[0, other]
    if gap <= 0:
        return 0.0
    return float(np.clip((s[0, 0] - s[0, other]) / gap, 0.0, 1.0))


def _least_variance_simplex(s: Floats) -> tuple[float, float, float]:
    """argmin w'Sw over weights >= 0 that sum to one; negative ones were rejected: they are right
    for one known covariance, but here it is an average over candidates."""
    scale = float(np.trace(s)) or 1.0
    result = minimize(
        lambda w: w @ s @ w / scale,
        np.full(3, 1 / 3),
        jac=lambda w: 2 * s @ w / scale,
        bounds=[(0.0, 1.0)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones(3)},
        method="SLSQP",
    )
    w = np.clip(result.x, 0.0, 1.0)
    w /= w.sum()
    return float(w[0]), float(w[1]), float(w[2])
