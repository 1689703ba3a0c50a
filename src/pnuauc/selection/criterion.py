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

from pnuauc._utils.arrays import Floats, Mask
from pnuauc.core.ranks import USES, pair_means, projections, raw_to_auc
from pnuauc.core.risks import gamma_bar
from pnuauc.core.theory import RiskCovariance

#: Most anchors of a fold. What a block of unlabelled rows leaves behind has their size; of more
#: labelled rows every k-th by rank is an anchor, and rows of one cell count as tied: an error of
#: second order in 1 / 400, far below the noise of their number.
ANCHORS = 400


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
    """Held-out rows of one fold under c candidates, in the cells cut by K labelled scores.

    As :class:`pnuauc.core.ranks.ScoreCounts`: cell 2k + 1 is anchor k, cell 2k what lies between
    it and the one before.

    anchors : (c, K), ascending
    positive, negative, unlabeled : (c, 2K + 1), rows of each cell, or the sum of their weights
    """

    anchors: NDArray[np.floating]
    positive: Floats
    negative: Floats
    unlabeled: Floats

    @classmethod
    def from_labeled(
        cls,
        positive: NDArray[np.floating],
        negative: NDArray[np.floating],
        weight_positive: Floats | None = None,
        weight_negative: Floats | None = None,
    ) -> FoldCounts:
        """Counts of labelled rows with these scores, shape (c, n_P) and (c, n_N)."""
        scores = np.concatenate([positive, negative], axis=1)
        (n_candidates, n), n_p = scores.shape, positive.shape[1]
        order = np.argsort(scores, axis=1)
        ranked = np.take_along_axis(scores, order, axis=1)
        is_first = np.diff(ranked, axis=1, prepend=np.nan) != 0
        first = np.maximum.accumulate(np.where(is_first, np.arange(n), 0), axis=1)
        kept = np.linspace(0, n - 1, min(n, ANCHORS)).round().astype(np.intp)
        anchors = ranked[:, kept]
        before = np.searchsorted(kept, first)  # how many anchors
        cell = 2 * before + (np.take_along_axis(anchors, before, axis=1) == ranked)
        shape = n_candidates, 2 * len(kept) + 1
        cell += shape[1] * np.arange(n_candidates)[:, None]

        def counted(own: slice, weight: Floats | None) -> Floats:
            mass = np.zeros(n)
            mass[own] = 1.0 if weight is None else weight
            found = np.bincount(cell.ravel(), mass[order].ravel(), shape[0] * shape[1])
            return np.asarray(found.reshape(shape), dtype=np.float64)

        of_p, of_n = counted(slice(n_p), weight_positive), counted(slice(n_p, n), weight_negative)
        return cls(anchors, of_p, of_n, np.zeros(shape))

    @property
    def marks(self) -> NDArray[np.floating]:
        """Where to count unlabelled rows, shape (c, 2K): the anchors, and for each the next float.

        How many scores are <= an anchor is how many are < the next float up.
        """
        above = np.nextafter(self.anchors, np.inf, dtype=self.anchors.dtype)
        return np.concatenate([self.anchors, above], axis=1)

    def with_unlabeled(self, found: Floats) -> FoldCounts:
        """The same with unlabelled rows below each of the marks, and all: shape (c, 2K + 1)."""
        edges = np.zeros((len(found), found.shape[1] + 1))
        edges[:, 1:-1:2], edges[:, 2:-1:2] = np.split(found[:, :-1], 2, axis=1)
        edges[:, -1] = found[:, -1]
        # anchors that tie: all at the first
        return replace(self, unlabeled=np.diff(np.maximum.accumulate(edges, axis=1), axis=1))

    def of(self, candidates: Mask) -> FoldCounts:
        """The same for some of the candidates."""
        return FoldCounts(self.anchors[candidates], *(role[candidates] for role in self.roles))

    @property
    def roles(self) -> tuple[Floats, Floats, Floats]:
        """Counts of P, N and U."""
        return self.positive, self.negative, self.unlabeled

    @property
    def masses(self) -> Floats:
        """Rows of P, N and U, or the sums of their weights, shape (3,)."""
        return np.array([role[0].sum() for role in self.roles])

    @functools.cached_property
    def projections(self) -> tuple[Floats, Floats, Floats]:
        """See :func:`pnuauc.core.ranks.projections`: each of shape (2, c, 2K + 1)."""
        return projections(*self.roles)

    def risks(self, prior: float | None) -> Floats:
        """Zero-one (R_PN, R_PU, R_NU) per candidate, shape (3, c); NaN where rows are missing."""
        slope, offset = raw_to_auc(prior)
        raw = pair_means(self.roles, self.projections)
        return np.asarray(1.0 - (slope[:, None] * raw - offset[:, None]))


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
    parts = np.array([c.risks(prior) for c in counts])  # (K, 3, c)
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
        n_p, n_n, _ = np.sum([c.masses for c in counts], axis=0)
        pnpu, pnnu = gamma_bar(prior, n_p, n_n)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 where nothing varies
            known = RiskCovariance(covariance)
            best = np.nan_to_num([known.gamma_pnpu, known.gamma_pnnu])
        pnpu, pnnu = np.clip(best, 0.0, 1.0).tolist()
    return {"eta >= 0": (1 - pnpu, pnpu, 0.0), "eta < 0": (1 - pnnu, 0.0, pnnu)}


def held_out_covariance(counts: Sequence[FoldCounts], prior: float | None) -> Floats:
    """Covariance matrix of (R_PN, R_PU, R_NU), mean over candidates, by Hoeffding projections.

    Var = sum over roles of Var(projection on that role's rows) / n_role. Rows of P and N are pooled
    over folds, since a fold may hold a single positive. Entries of a risk whose roles are missing
    from a fold are zero.
    """
    p, n, u = np.all([c.masses > 0 for c in counts], axis=0)
    scale = np.where([p and n, p and u, n and u], np.nan_to_num(raw_to_auc(prior)[0]), 0.0)
    total = np.zeros((3, 3))
    for role in range(3):
        found = []  # of each fold: rows, sums of x and of xx'
        for fold in counts:
            mass, x = fold.roles[role], fold.projections[role]
            sums = np.einsum("icn,cn->ci", x, mass)
            squares = np.einsum("icn,jcn,cn->cij", x, x, mass, optimize=True)
            found.append((max(float(mass[0].sum()), 1e-300), sums, squares))
        n_rows = sum(rows for rows, _, _ in found)
        if role < 2:
            sums, squares = sum(s for _, s, _ in found), sum(xx for _, _, xx in found)
            spread = (squares - _outer(sums) / n_rows) / max(n_rows - 1.0, 1.0)
        else:
            spread = np.mean([(xx - _outer(x) / rows) / rows for rows, x, xx in found], axis=0)
        own = USES[role]
        total[np.ix_(own, own)] += np.mean(spread, axis=0) / n_rows
    return np.asarray(total * np.outer(scale, scale))


def _outer(x: Floats) -> Floats:
    return np.asarray(x[:, :, None] * x[:, None, :])


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
