"""Scores that a row's own label had no part in: refit without a fold, score the fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from pnuauc.labels import Roles
from pnuauc.metrics import RoleStratifiedKFold, auc_estimate

__all__ = ["CrossFit", "cross_fit", "evaluation_rows", "permutation_importance"]

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
        Standardised fold by fold, so that scores of different refits can be compared.
    folds : list of (positions in ``rows``, fitted ranker)
    """

    rows: NDArray[np.intp]
    roles: Roles
    scores: Floats
    folds: list[tuple[NDArray[np.intp], Any]]


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
    tick: Callable[[str, float], None] | None = None,
) -> CrossFit:
    """Refit ``ranker`` without each fold in turn and score the fold.

    A fold's scores are centred and scaled by the mean and spread of its unlabelled rows (of all
    its rows where none is unlabelled): refits rank alike but on scales of their own.
    """
    taken = roles.take(rows)
    splitter = RoleStratifiedKFold(n_folds, shuffle=True, random_state=seed)
    scores = np.empty(len(rows))
    folds = []
    for k, (train, test) in enumerate(splitter.split(rows, taken)):
        if tick:
            tick("held-out folds", k / n_folds)
        fitted = clone(ranker).fit(X[rows[train]], taken.take(train))
        raw = fitted.decision_function(X[rows[test]])
        scores[test] = _standardised(raw, taken.take(test))
        folds.append((test, fitted))
    if tick:
        tick("held-out folds", 1.0)
    return CrossFit(rows, taken, scores, folds)


def _standardised(scores: Floats, roles: Roles) -> Floats:
    reference = scores[roles.unlabeled] if roles.n_unlabeled >= 2 else scores
    spread = float(reference.std())
    return (scores - reference.mean()) / (spread if spread > 0 else 1.0)


def permutation_importance(
    fit: CrossFit,
    X: Any,
    groups: dict[str, list[int]],
    prior: Any,
    *,
    seed: int,
    repeats: int = 3,
    max_columns: int = 60,
) -> list[dict[str, Any]]:
    """How much the held-out AUC estimate falls when one column is shuffled among the rows.

    All encoded columns of one table column are shuffled together. The error is the standard
    deviation over repeats. Only dense tables of at most ``max_columns`` columns are looked at.
    """
    if len(groups) > max_columns or not isinstance(X, np.ndarray):
        return []
    rng = np.random.default_rng(seed)
    base = auc_estimate(fit.roles, fit.scores, prior).value
    results = []
    for name, columns in groups.items():
        drops = []
        for _ in range(repeats):
            shuffled = np.empty(len(fit.rows))
            for test, ranker in fit.folds:
                block = X[fit.rows[test]]
                block[:, columns] = block[rng.permutation(len(test))][:, columns]
                shuffled[test] = _standardised(
                    ranker.decision_function(block), fit.roles.take(test)
                )
            value = auc_estimate(fit.roles, shuffled, prior).value
            drops.append(base - value)
        results.append(
            {"column": name, "drop": float(np.mean(drops)), "spread": float(np.std(drops))}
        )
    return sorted(results, key=lambda item: -item["drop"])
