"""Scores that a row's own label had no part in: refit without a fold, score the fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone

from pnuauc._study._copies import Copies, find_copies
from pnuauc.labels import Roles
from pnuauc.metrics import RoleStratifiedKFold
from pnuauc.metrics._estimate import CROSS_FIT_VARIANCE

__all__ = ["CrossFit", "Reference", "common_scale", "cross_fit", "evaluation_rows", "fold_count"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Held-out scores of the rows that were evaluated.

    Attributes
    ----------
    rows : ndarray, shape (m,)
        Their numbers in the table.
    roles : Roles, of length m
    scores : ndarray, shape (m,)
        On one scale: the normal quantile of the place among the fold's unlabelled scores.
    folds : list of (positions in ``rows``, fitted ranker)
    copies : Copies
        Identical rows; they were kept in one fold.
    n_reference : int or None
        Unlabelled rows that labelled ones are placed among; None: those in ``rows``.
    """

    rows: NDArray[np.intp]
    roles: Roles
    scores: Floats
    folds: list[tuple[NDArray[np.intp], Any]]
    copies: Copies
    n_reference: int | None = None

    @property
    def variance_factor(self) -> float:
        """How much more an estimate scatters than one from as many independent scores.

        With one class labelled only as far as rows are copies: positives that score high by luck
        also make the prior look small, so that the errors of the two partly cancel, and the
        prior's uncertainty, which is added as if they did not, is the larger part.
        """
        both = bool(self.roles.n_positive and self.roles.n_negative)
        return (CROSS_FIT_VARIANCE if both else 1.0) * self.copies.design_effect(self.roles)

    @property
    def training_share(self) -> float:
        """Share of the rows that each refit was trained on."""
        return 1.0 - 1.0 / max(len(self.folds), 2)

    @property
    def places(self) -> Floats:
        """Place of each score among the unlabelled ones of its fold, in (0, 1)."""
        return np.asarray(special.ndtr(self.scores))


def evaluation_rows(roles: Roles, max_unlabeled: int, seed: int) -> NDArray[np.intp]:
    """All labelled rows and at most ``max_unlabeled`` unlabelled ones, drawn at random."""
    unlabeled = roles.unlabeled
    if len(unlabeled) > max_unlabeled:
        rng = np.random.default_rng(seed)
        unlabeled = rng.choice(unlabeled, max_unlabeled, replace=False)
    return np.sort(np.concatenate([roles.positive, roles.negative, unlabeled]))


def cross_fit(
    ranker: Any,
    X: Any,
    roles: Roles,
    rows: NDArray[np.intp],
    *,
    n_folds: int,
    seed: int,
    copies: Copies | None = None,
    tick: Callable[[str, float], None] | None = None,
) -> CrossFit:
    """Refit ``ranker`` without each fold in turn and score the fold; identical rows share a fold.

    ``ranker`` may be a list with one for each fold.
    Refits rank alike but on scales of their own, and one row far out would set the scale of its
    fold. So a score is replaced by its place among the fold's unlabelled scores, see
    :func:`common_scale`.
    """
    taken = roles.take(rows)
    if copies is None:
        copies = find_copies(X[rows], taken, seed)
    splitter = RoleStratifiedKFold(n_folds, shuffle=True, random_state=seed)
    scores = np.empty(len(rows))
    folds = []
    for k, (train, test) in enumerate(splitter.split(rows, taken, copies.groups)):
        if tick:
            tick("held-out folds", k / n_folds)
        own = ranker[k] if isinstance(ranker, list) else ranker
        fitted = clone(own).fit(X[rows[train]], taken.take(train))
        raw = fitted.decision_function(X[rows[test]])
        scores[test] = common_scale(raw, taken.take(test))
        folds.append((test, fitted))
    if tick:
        tick("held-out folds", 1.0)
    return CrossFit(rows, taken, scores, folds, copies)


def fold_count(roles: Roles, copies: Copies, wanted: int) -> int:
    """As many folds as every role that occurs has different rows for, at most ``wanted``."""
    distinct = [
        len(np.unique(copies.groups[rows]))
        for rows in (roles.positive, roles.negative, roles.unlabeled)
        if len(rows)
    ]
    return min(wanted, *distinct)


def common_scale(scores: Floats, roles: Roles) -> Floats:
    """Phi^-1 of the place among the unlabelled scores, shape (m,); order within a fold is kept.

    Between two unlabelled scores the place is interpolated; beyond the last one a score goes on by
    its distance in units of their middle half. Without unlabelled rows: centred and scaled by all.
    """
    reference = scores[roles.unlabeled]
    if len(reference) < 2 or reference.min() == reference.max():
        spread = float(scores.std())
        return np.asarray((scores - scores.mean()) / (spread if spread > 0 else 1.0))
    return Reference.of(reference)(scores)


@dataclass(frozen=True, eq=False)
class Reference:
    """Unlabelled scores that others are placed among.

    Attributes
    ----------
    points : ndarray, shape (k,)
        Ascending scores.
    z : ndarray, shape (k,)
        Phi^-1 of their places.
    low, high : float
        The smallest and the largest unlabelled score.
    unit : float
        What a distance beyond them is measured by.
    """

    points: Floats
    z: Floats
    low: float
    high: float
    unit: float

    @classmethod
    def of(cls, scores: Floats) -> Reference:
        """All of them at hand, at least two different ones."""
        points, counts = np.unique(scores, return_counts=True)
        middle = (np.cumsum(counts) - 0.5 * counts) / len(scores)
        low, high = float(points[0]), float(points[-1])
        return cls(points, _quantile(middle, len(scores)), low, high, _unit(scores, low, high))

    @classmethod
    def counted(
        cls, points: Floats, cells: NDArray[np.int64], low: float, high: float, some: Floats
    ) -> Reference:
        """Counted in the cells that K points cut (below, at, between, ...), shape (2K + 1,).

        ``some`` of the scores tell how far they spread.
        """
        below, at = np.cumsum(cells)[:-1:2], cells[1::2]
        # points between the same two rows stay in their order, within half a row
        _, first, group, size = np.unique(
            below, return_index=True, return_inverse=True, return_counts=True
        )
        within = (np.arange(len(points)) - first[group] + 1.0) / (size[group] + 1.0) - 0.5
        middle = (below + 0.5 * at + np.where(at, 0.0, within)) / cells.sum()
        return cls(points, _quantile(middle, int(cells.sum())), low, high, _unit(some, low, high))

    def __call__(self, scores: Floats) -> Floats:
        """Of each score, shape (m,)."""
        beyond = np.clip((scores - np.clip(scores, self.low, self.high)) / self.unit, -1.0, 1.0)
        return np.asarray(np.interp(scores, self.points, self.z) + 0.5 * beyond)


def _quantile(place: Floats, n: int) -> Floats:
    return np.asarray(special.ndtri(np.clip(place, 0.5 / n, 1.0 - 0.5 / n)))


def _unit(scores: Floats, low: float, high: float) -> float:
    """Extent of their middle half, or of all, or 1."""
    quarter = np.quantile(scores, [0.25, 0.75]) if len(scores) else np.zeros(2)
    return float(quarter[1] - quarter[0]) or high - low or 1.0
