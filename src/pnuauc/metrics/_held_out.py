"""Scores that a row's own label had no part in, for any estimator and partly labelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from pnuauc.metrics._splitters import RoleStratifiedKFold

__all__ = ["held_out_scores"]


def held_out_scores(estimator: Any, X: Any, y: Any, cv: Any = 5) -> NDArray[np.float64]:
    """Score every row by a clone that was fitted without the row's fold, shape (n,).

    What ``cross_val_predict(method="decision_function")`` does for whole labels. With partly
    labelled ones it cannot: it numbers the label values anew before it passes them on.

    Parameters
    ----------
    estimator : has ``fit(X, y)`` and ``decision_function`` or ``predict_proba``
    X : table or array, shape (n, d)
    y : array-like, shape (n,)
        Passed on as it is; 1, 0 and -1 or missing for unlabelled rows, or any coding that the
        estimator reads.
    cv : int or splitter
        A number makes as many folds, with each role spread over all of them. Scores of different
        folds come from different fits.

    Examples
    --------
    >>> import numpy as np
    >>> from pnuauc import AUCClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0, -1], [20, 20, 60])
    >>> X = rng.normal(size=(100, 2)) + (y == 1)[:, None]
    >>> held_out_scores(AUCClassifier(prior=0.3), X, y, cv=2).shape
    (100,)
    """
    splitter = RoleStratifiedKFold(cv, shuffle=True, random_state=0) if isinstance(cv, int) else cv
    scores = np.full(len(y), np.nan)
    for train, test in splitter.split(X, y):
        fitted = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train))
        rows = _safe_indexing(X, test)
        if hasattr(fitted, "decision_function"):
            scores[test] = fitted.decision_function(rows)
        else:
            scores[test] = fitted.predict_proba(rows)[:, 1]
    return scores
