"""Held-out scores of every member, and what rests on them: weights, placements, AUCs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from pnuauc._committee._members import Training
from pnuauc._committee._models import score_parts
from pnuauc._prior import ClassPrior
from pnuauc._row_groups import row_groups
from pnuauc.labels import Roles
from pnuauc.metrics import auc_estimate

__all__ = [
    "HeldOut",
    "copies_held_out",
    "cross_scores",
    "in_all",
    "leaning_weights",
    "learned_weights",
    "trial_weight",
]

Floats: TypeAlias = NDArray[np.float64]

#: Strength of the pull towards equal weights, in labelled rows.
_PULL = 10.0
#: AUC that a member on trial must be ahead for e times the weight; its least and most weight.
_TOLERANCE, _LEAST, _MOST = 0.05, 0.1, 8.0
#: AUC that a member must be ahead of the mean for e times its weight while labels are few, and the
#: largest power of e.
_LEANING, _MOST_LEANING = 0.08, 2.0


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of rows by models that did not see them.

    Attributes
    ----------
    codes : ndarray of int8, shape (m,)
        Roles of the rows: 1, 0, -1; labelled rows first, in the order of their folds.
    scores : ndarray, shape (m, n_members)
        Brought to mean 0 and deviation 1 over the unlabelled rows of the fold.
    fold : ndarray of int, shape (m,)
    reference : list of ndarray, shape (r_k, n_members)
        For each fold the unlabelled rows that places are counted among, as its models score them.
    together : bool
        Those of all folds side by side, each fold on its own scale: a fold's own unlabelled rows
        are few, and hold more or fewer positives than their share, which would blur every place.
    """

    codes: NDArray[np.int8]
    scores: Floats
    fold: NDArray[np.intp]
    reference: list[Floats]
    together: bool = False

    @property
    def n_folds(self) -> int:
        return len(self.reference)

    def without(self, fold: int) -> HeldOut:
        """The same less one fold's rows; the other folds keep their numbers."""
        rest = self.fold != fold
        return replace(self, codes=self.codes[rest], scores=self.scores[rest], fold=self.fold[rest])

    def sums(self, weights: Floats) -> Floats:
        """Weighted sums of the members' scores, shape (m,).

        weights : ndarray, shape (n_folds, n_members)
            For each fold those that its rows took no part in, or the same row again and again.
        """
        return np.asarray((self.scores * weights[self.fold]).sum(axis=1))

    def places(self, weights: Floats) -> tuple[Floats, Floats]:
        """Share of unlabelled rows that score lower, of held-out positives and negatives.

        weights : as for :meth:`sums`
        """
        total = self.sums(weights)
        # summed as in `sums`, so that equal rows tie
        others = [(rows * weights[k]).sum(axis=1) for k, rows in enumerate(self.reference)]
        if self.together:
            scales = [_standard(values) if len(values) else (0.0, 1.0) for values in others]
            centre, spread = np.array(scales)[self.fold].T
            total = (total - centre) / spread
            pairs = zip(others, scales, strict=True)
            others = [np.concatenate([(v - c) / s for v, (c, s) in pairs])] * self.n_folds
        found: dict[int, list[Floats]] = {1: [], 0: []}
        for k, values in enumerate(others):
            for code in (1, 0):
                mine = total[(self.fold == k) & (self.codes == code)]
                found[code].append(_places_among(mine, values))
        return np.concatenate(found[1]), np.concatenate(found[0])

    def auc(self, weights: Floats, prior: ClassPrior | None) -> tuple[float, float]:
        """Held-out AUC of the weighted sum, and its standard error; weights as for :meth:`sums`."""
        estimate = auc_estimate(Roles(self.codes), self.sums(weights), prior)
        return float(estimate.value), float(estimate.std_error)


def _places_among(scores: Floats, reference: Floats) -> Floats:
    """Share of the reference that is lower, ties half; half a row away from 0 and 1."""
    ordered, n = np.sort(reference), max(len(reference), 1)
    below = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return np.asarray(np.clip(below / (2.0 * n), 0.5 / n, 1.0 - 0.5 / n))


def cross_scores(training: Training, folds: list[list[Any]], max_reference: int = 2000) -> HeldOut:
    """Score each fold by the parts that were fitted without it.

    Parameters
    ----------
    training : Training
    folds : for each member a list of its parts without each fold
    max_reference : unlabelled rows of each fold at most

    With both classes labelled, no member has an unlabelled row for a negative, and each fold's
    models score unlabelled rows of all folds to count places among; else those of the fold itself,
    and places are counted among the rows of all folds so scored.
    """
    both = "P" in training.folds.rows and "N" in training.folds.rows
    n_folds = training.folds.n_folds
    unlabeled = training.folds.rows.get("U", [])
    drawn = [_thinned(rows, max_reference) for rows in unlabeled[:n_folds]]
    every = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.intp)
    every = _thinned(every, max_reference)
    codes, scores, fold, reference = [], [], [], []
    for k in range(n_folds):
        held = {role: training.folds.rows[role][k] for role in "PN" if role in training.folds.rows}
        own = drawn[k] if drawn else every
        others = every if both else own
        rows = np.concatenate([*held.values(), own, others])
        look = training.look.take(rows)
        values = np.column_stack([score_parts(parts[k], look) for parts in folds])
        ends = np.cumsum([sum(map(len, held.values())), len(own)])
        labelled, mine, beside = np.split(values, ends)
        centre, spread = _standard(beside if len(beside) else values)
        for role, index in held.items():
            codes.append(np.full(len(index), int(role == "P"), dtype=np.int8))
        codes.append(np.full(len(own), -1, dtype=np.int8))
        scores.append((np.concatenate([labelled, mine]) - centre) / spread)
        fold.append(np.full(len(labelled) + len(mine), k))
        reference.append((beside - centre) / spread)
    found = HeldOut(
        np.concatenate(codes),
        np.concatenate(scores),
        np.concatenate(fold),
        reference,
        together=not both,
    )
    return found if drawn else _without_unlabeled(found)


def copies_held_out(X: Any, folds: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    """How many rows of its own fold are identical to each row, itself among them, fold by fold.

    folds : rows of X of one role, as :meth:`HeldOut.places` has them
    """
    groups = [row_groups(X[rows]) for rows in folds if len(rows)]
    sizes = [np.bincount(group)[group] for group in groups]
    return np.concatenate([np.empty(0, dtype=np.intp), *sizes])


def _without_unlabeled(found: HeldOut) -> HeldOut:
    """Labelled rows alone: all of them, held out, are what places are counted among."""
    centre, spread = _standard(found.scores)
    scores = (found.scores - centre) / spread
    return HeldOut(found.codes, scores, found.fold, [scores] * found.n_folds)


def _thinned(rows: NDArray[np.intp], at_most: int) -> NDArray[np.intp]:
    """Evenly spaced; the folds were dealt at random."""
    return rows[:: -(-len(rows) // at_most)] if len(rows) > at_most else rows


def _standard(scores: Floats) -> tuple[Floats, Floats]:
    spread = scores.std(axis=0)
    return scores.mean(axis=0), np.where(spread > 0, spread, 1.0)


def in_all(held_out: HeldOut, weights: Floats) -> Floats:
    """The same weights in every fold, shape (n_folds, n_members)."""
    return np.tile(weights, (held_out.n_folds, 1))


def leaning_weights(
    held_out: HeldOut, weights: Floats, tried: list[int], prior: ClassPrior | None
) -> Floats:
    """Fixed weights, each times exp((AUC of the member - mean AUC) / leaning), shape (n_members,).

    AUCs of ten positives scatter by several points, hence the small slope: a member that is level
    keeps its weight, one that fails on this table has little of it. Those ``tried`` are left alone.
    """
    others = [i for i in range(len(weights)) if i not in tried]
    alone = np.eye(len(weights))
    auc = np.array([held_out.auc(in_all(held_out, alone[i]), prior)[0] for i in others])
    lean = np.clip((auc - auc.mean()) / _LEANING, -_MOST_LEANING, _MOST_LEANING)
    out = weights.copy()
    out[others] *= np.exp(lean)
    return out


def trial_weight(held_out: HeldOut, weights: Floats, i: int, prior: ClassPrior | None) -> float:
    """Weight of member i beside the others: exp((AUC alone - AUC of the others) / tolerance).

    Below ``_LEAST`` it is left out, above ``_MOST`` it is that. A hundred labels can say that much,
    since both AUCs come from the same rows.
    """
    alone, rest = np.zeros(len(weights)), weights.copy()
    alone[i], rest[i] = 1.0, 0.0
    ours, theirs = (held_out.auc(in_all(held_out, w), prior)[0] for w in (alone, rest))
    gap = ours - theirs
    weight = min(float(np.exp(gap / _TOLERANCE)), _MOST)
    return weight if weight >= _LEAST else 0.0


def learned_weights(held_out: HeldOut) -> Floats:
    """Weights, not negative, of the logistic regression of the label on held-out scores.

    argmin_w sum_i log(1 + exp(-t_i (w's_i + b))) + (pull / 2) |w - mean w|^2, by class balanced:
    hundreds of labels can say that one member is much the best, five cannot.
    """
    labelled = held_out.codes >= 0
    S, t = held_out.scores[labelled], np.where(held_out.codes[labelled] == 1, 1.0, -1.0)
    share = np.where(t > 0, 0.5 / (t > 0).mean(), 0.5 / (t < 0).mean())
    m = S.shape[1]

    def loss(parameters: Floats) -> tuple[float, Floats]:
        w, b = parameters[:m], parameters[m]
        margin = t * (S @ w + b)
        away = w - w.mean()
        value = float(share @ np.logaddexp(0.0, -margin)) + 0.5 * _PULL * float(away @ away)
        slope = -share * t * expit(-margin)
        return value, np.append(S.T @ slope + _PULL * away, slope.sum())

    start = np.append(np.full(m, 1.0 / m), 0.0)
    bounds = [(0.0, None)] * m + [(None, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x[:m]
    if found.sum() <= 0:
        return np.full(m, 1.0)
    return np.asarray(found * m / found.sum())
