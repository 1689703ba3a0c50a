"""The only cross-fit: scores of rows by models that did not see them, one column a model.

Places, weights of members, comparisons, importance, the posterior and with it every number that is
stated read the one table that is made here, or by :mod:`pnuauc.committee.held_out` on the same
folds for all members at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from pnuauc._utils.arrays import Floats, Indices
from pnuauc.core.ranks import alikeness
from pnuauc.evaluation.posterior import Posterior, place_scores
from pnuauc.labels import Roles
from pnuauc.prior import ClassPrior


class Difference(NamedTuple):
    """Paired difference of two AUCs: value, standard error, limits and two-sided p-value."""

    value: float
    std_error: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of rows by models that did not see them.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Their numbers in the table; labelled rows and those unlabelled ones that were held out.
    codes : ndarray of int8, shape (m,)
        Roles: 1, 0, -1.
    fold : ndarray of int, shape (m,)
    scores : ndarray, shape (m, n_models)
        Brought to mean 0 and standard deviation 1 over the unlabelled rows of the fold.
    reference : list of ndarray, shape (r_k, n_models)
        For each fold the unlabelled rows that places are counted among, as its models score them.
    together : bool
        Those of all folds side by side, each fold on its own scale: a fold's own unlabelled rows
        are few, and hold more or fewer positives than their share, which would blur every place.
    worth : ndarray, shape (m,)
        How many rows each labelled row counts as (:func:`row_worth`).
    groups : ndarray of int, shape (m,)
        Rows with the same number are not independent.
    models : list
        For each fold an object with ``score(X, used) -> (n, n_models)`` on the fold's scale, where
        models that are not ``used`` may be left out.
    """

    rows: Indices
    codes: NDArray[np.int8]
    fold: Indices
    scores: Floats
    reference: list[Floats]
    together: bool
    worth: Floats
    groups: Indices
    models: Sequence[Any] = ()

    @property
    def n_folds(self) -> int:
        return len(self.reference)

    @property
    def discount(self) -> float:
        """Rows that count as one where each labelled row also trained the models of other folds.

        1 + K n_test / n_train = 1 + K / (K - 1), the correction of Nadeau and Bengio (Machine
        Learning 52, 2003) for the mean of K refits.
        """
        return 1.0 + self.n_folds / max(self.n_folds - 1.0, 1.0)

    @property
    def labeled(self) -> Indices:
        """Positions of labelled rows."""
        return np.flatnonzero(self.codes >= 0)

    def without(self, fold: int) -> HeldOut:
        """The same less one fold's rows; the other folds keep their numbers."""
        return self._take(np.flatnonzero(self.fold != fold))

    def of_fold(self, fold: int) -> HeldOut:
        """The same of one fold alone, as fold 0."""
        own = self._take(np.flatnonzero(self.fold == fold))
        return replace(own, fold=np.zeros_like(own.fold), reference=[self.reference[fold]])

    def of_labeled(self) -> HeldOut:
        """The same of labelled rows: all that AUCs and differences of them rest on."""
        return self._take(self.labeled)

    def _take(self, chosen: Indices) -> HeldOut:
        names = ("rows", "codes", "fold", "scores", "worth", "groups")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def columns(self, chosen: slice) -> HeldOut:
        """The same of some of the models; ``models`` still score all."""
        reference = [rows[:, chosen] for rows in self.reference]
        return replace(self, scores=self.scores[:, chosen], reference=reference)

    def places(self, weights: Floats, scores: Floats | None = None) -> Floats:
        """Share of unlabelled rows whose weighted sum of scores is lower, shape (m,), in (0, 1).

        weights : ndarray, shape (n_folds, n_models)
            For each fold those that its rows took no part in, or the same row again and again.
        scores : ndarray, shape (m, n_models), optional
            Take the place of the rows' own.
        """
        total = ((self.scores if scores is None else scores) * weights[self.fold]).sum(axis=1)
        # summed as before, so that equal rows tie
        others = [(rows * weights[k]).sum(axis=1) for k, rows in enumerate(self.reference)]
        if self.together:
            scales = [standardize(values) if len(values) else (0.0, 1.0) for values in others]
            center, spread = np.array(scales)[self.fold].T
            total = (total - center) / spread
            pairs = zip(others, scales, strict=True)
            others = [np.concatenate([(v - c) / s for v, (c, s) in pairs])] * self.n_folds
        found = np.empty(len(total))
        for k, values in enumerate(others):
            # ties half; half a row away from 0 and 1
            own, ordered, n = self.fold == k, np.sort(values), max(len(values), 1)
            sides = (np.searchsorted(ordered, total[own], side) for side in ("left", "right"))
            found[own] = np.clip(sum(sides) / (2.0 * n), 0.5 / n, 1.0 - 0.5 / n)
        return found

    def posterior(
        self, weights: Floats, prior: ClassPrior | None, belief: tuple[float, float], **known: Any
    ) -> Posterior:
        """Share and curve of the model that is fitted to all rows; ``known`` as place_scores."""
        places, (p, n) = self.places(weights), (self.codes == code for code in (1, 0))
        among = [len(rows) for rows in self.reference]
        return place_scores(
            places[p],
            places[n],
            prior=prior,
            belief=belief,
            weights=(self.worth[p], self.worth[n]),
            discount=self.discount,
            n_folds=self.n_folds,
            n_reference=sum(among) if self.together else among[0],
            **known,
        )

    def auc(self, places: Floats, share: float | None = None) -> float:
        """Held-out AUC of these places, shape (m,).

        With both classes 1/2 + mean place of positives - mean place of negatives, which is the AUC
        whatever the share of positives in U. With one class the share is needed; without it the
        AUC against U.
        """
        return 0.5 + self._contrast(places - 0.5, share)[0]

    def difference(
        self, a: Floats, b: Floats, share: float | None = None, level: float = 0.95
    ) -> Difference:
        """AUC of places ``a`` less that of ``b``, both of shape (m,), by the same rows.

        The variance counts groups where rows repeat, and places of refits as ``discount`` says.
        """
        value, variance = self._contrast(a - b, share)
        error = float(np.sqrt(variance * self.discount))
        half = float(special.ndtri(0.5 + level / 2.0)) * error
        p_value = float(2.0 * special.ndtr(-abs(value) / error)) if error > 0 else 1.0
        return Difference(value, error, value - half, value + half, p_value)

    def _contrast(self, values: Floats, share: float | None) -> tuple[float, float]:
        """Mean over positives less mean over negatives, on the scale of the AUC, and variance."""
        total, parts, classes = 0.0, np.zeros(len(values)), []
        for code in (1, 0):
            own = np.flatnonzero(self.codes == code)
            if not len(own):
                continue
            classes.append(code)
            weight = (1.0 if code else -1.0) * self.worth[own] / self.worth[own].sum()
            mean = float(np.abs(weight) @ values[own])
            n = len(np.unique(self.groups[own]))
            total += float(weight @ values[own])
            parts[own] = weight * (values[own] - mean) * np.sqrt(n / max(n - 1, 1))
        # groups are the independent units, also where one holds rows of both classes
        own = self.labeled
        number = np.unique(self.groups[own], return_inverse=True)[1]
        variance = float((np.bincount(number, parts[own]) ** 2).sum())
        scale = 1.0
        if len(classes) == 1 and share is not None:
            # mean places: (1 - t) AUC + t / 2 of positives, 1 - t AUC - (1 - t) / 2 of negatives
            scale = 1.0 / max(1.0 - share if classes[0] else share, 1e-3)
        return scale * total, scale**2 * variance


def row_worth(
    codes: NDArray[np.int8], groups: Indices, scores: Floats, weights: Floats | None = None
) -> Floats:
    """How many rows each labelled row counts as, shape (m,).

    A row of m in one class and group counts as 1 / (1 + rho (m - 1)) rows, rho how alike the mean
    held-out ``scores``, shape (m, n_models), of such rows are; copies count as one row. Weights
    (1 / odds of having been labelled) are scaled within a class to the number of rows that they are
    worth, (sum v)^2 / sum v^2 (Kish).
    """
    worth, mean = np.ones(len(codes)), scores.mean(axis=1)
    for code in (1, 0):
        own = np.flatnonzero(codes == code)
        if not len(own):
            continue
        _, number, sizes = np.unique(groups[own], return_inverse=True, return_counts=True)
        worth[own] = 1.0 / (1.0 + alikeness(mean[own], number) * (sizes[number] - 1.0))
        if weights is not None:
            v = weights[own]
            worth[own] *= v * v.sum() / max(float((v**2).sum()), 1e-300)
    return worth


def standardize(scores: Floats) -> tuple[Any, Any]:
    """Mean and standard deviation by column, 1 where it is 0."""
    spread = scores.std(axis=0)
    return scores.mean(axis=0), np.where(spread > 0, spread, 1.0)


def raw_scores(model: Any, X: Any, positive: Any = None) -> Floats:
    """``decision_function``, else the positive class's chance, else ``predict``, shape (n,).

    ``positive`` is the label of the positive class; 1, or else the last class, by default.
    """
    methods = ("decision_function", "predict_proba", "predict")
    name = next((name for name in methods if hasattr(model, name)), None)
    if name is None:
        raise TypeError(f"{type(model).__name__} has no {', '.join(methods[:2])} or {methods[2]}.")
    scores = np.asarray(getattr(model, name)(X))
    if scores.ndim == 1:
        # a binary decision_function is high for classes_[1]
        classes = list(getattr(model, "classes_", []))
        first = name == "decision_function" and len(classes) == 2 and classes[0] == positive
        return -scores if first else scores
    classes = list(getattr(model, "classes_", range(scores.shape[1])))
    if positive is None:
        # a model that was given labels 1, 0 and -1 as three classes still ranks positives by theirs
        positive = 1 if 1 in classes else classes[-1]
    if positive not in classes:
        raise ValueError(
            f"The estimator was fitted without the positive label {positive!r}; it knows {classes}."
        )
    return scores[:, classes.index(positive)]


@dataclass(frozen=True, eq=False)
class _FoldModels:
    """Fitted models of one fold side by side, on the fold's scale."""

    models: list[Any]
    positive: Any
    center: Any = 0.0
    spread: Any = 1.0

    def score(self, X: Any, used: Sequence[bool] | None = None) -> Floats:
        values = np.column_stack([raw_scores(model, X, self.positive) for model in self.models])
        return np.asarray((values - self.center) / self.spread)


def cross_fit(
    models: Sequence[Any],
    X: Any,
    roles: Roles,
    splits: Sequence[tuple[Indices, Indices]],
    *,
    y: Any = None,
    groups: Indices | None = None,
    max_reference: int = 5000,
) -> HeldOut:
    """Refit each model on the first part of each split and score the second: one column a model.

    Parameters
    ----------
    models : sequence of estimators; each is cloned
    X : table, ndarray or CSR matrix, shape (n, d)
    roles : Roles, of length n
    splits : (rows to train on, rows to score), no row scored twice
    y : array-like, shape (n,), optional
        What the models are fitted to; None: ``roles``.
    groups : ndarray, shape (n,), optional
        Rows that are not independent, which the splits keep together.
    """
    rows = np.concatenate([held for _, held in splits])
    groups = np.arange(len(roles)) if groups is None else groups
    positive = None if y is None else roles.positive_label
    folds, scores, reference, refits = [], [], [], []
    for k, (train, held) in enumerate(splits):
        target = roles.take(train) if y is None else _safe_indexing(y, train)
        fitted = [clone(m).fit(_safe_indexing(X, train), target) for m in models]
        values = _FoldModels(fitted, positive).score(_safe_indexing(X, held))
        own = roles.codes[held] == -1
        others = values[own] if own.any() else values
        center, spread = standardize(others)
        folds.append(np.full(len(held), k))
        scores.append((values - center) / spread)
        reference.append(((others - center) / spread)[:max_reference])
        refits.append(_FoldModels(fitted, positive, center, spread))
    codes, values = roles.codes[rows], np.concatenate(scores)
    worth = row_worth(codes, groups[rows], values)
    fold = np.concatenate(folds)
    return HeldOut(rows, codes, fold, values, reference, True, worth, groups[rows], refits)
