"""Tune scikit-learn's gradient boosting on positives and unlabelled rows: not one negative label.

    python examples/tune_gradient_boosting.py

The trick is the coding. The classifier is fitted to y = 1 (known positive) against y = 0
(unlabelled), as it would be to any two classes: the share of known positives at a point grows with
the chance of being positive, so the ranking it learns is the right one. The scorer and the splitter
are told ``unlabeled_label=0``, so they never mistake an unlabelled row for a negative. Tuning needs
no prior; only the AUC of the winner, as a number, does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

from pnuauc.metrics import (
    AUCEstimate,
    RoleStratifiedKFold,
    auc_estimate,
    compare_auc,
    make_auc_scorer,
)

CODES = {"positive_label": 1, "unlabeled_label": 0}
PRIOR = 0.1


def make_rows(
    n_positive: int, n_unlabeled: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, y in {1, 0 = unlabelled}, and the classes nobody sees."""
    X, truth = make_classification(
        8 * (n_positive + n_unlabeled),
        n_features=10,
        n_informative=5,
        weights=[0.5],
        flip_y=0.1,
        class_sep=0.7,
        random_state=0,
    )
    rng = np.random.default_rng(seed)
    hidden = int(PRIOR * n_unlabeled)
    positives = rng.permutation(np.flatnonzero(truth == 1))[: n_positive + hidden]
    negatives = rng.permutation(np.flatnonzero(truth == 0))[: n_unlabeled - hidden]
    rows = np.concatenate([positives, negatives])
    y = np.repeat([1, 0], [n_positive, n_unlabeled])
    return X[rows], y, truth[rows]


def run(
    n_positive: int = 200,
    n_unlabeled: int = 6000,
    max_iter: int = 60,
    grid: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Tune on half of the rows, estimate on the other half, compare with the hidden classes."""
    grid = grid or {
        "max_depth": [2, 3, None],
        "learning_rate": [0.03, 0.1],
        "l2_regularization": [0, 10],
    }
    X, y, truth = make_rows(n_positive, n_unlabeled, seed=0)
    half = np.arange(len(y)) % 2 == 0
    boosting = HistGradientBoostingClassifier(max_iter=max_iter, random_state=0)
    search = GridSearchCV(
        boosting,
        grid,
        scoring=make_auc_scorer(**CODES),  # no prior: ranking candidates needs none
        cv=RoleStratifiedKFold(5, shuffle=True, random_state=0, **CODES),
    ).fit(X[half], y[half])
    scores, plain = (
        model.predict_proba(X[~half])[:, 1] for model in (search, boosting.fit(X[half], y[half]))
    )
    estimate: AUCEstimate = auc_estimate(y[~half], scores, PRIOR, **CODES)
    return {
        "best": search.best_params_,
        "estimate": estimate,
        "against_untuned": compare_auc(y[~half], scores, plain, PRIOR, **CODES),
        "hidden_auc": float(roc_auc_score(truth[~half], scores)),
    }


if __name__ == "__main__":
    outcome = run()
    print("Best settings, chosen without a negative label or a prior:", outcome["best"])
    print("Held-out AUC from positives and unlabelled rows:", outcome["estimate"])
    difference = outcome["against_untuned"]
    print(
        f"Gain over the defaults: {difference.difference:+.4f} "
        f"({difference.low:+.4f} to {difference.high:+.4f}), p = {difference.p_value:.3f}"
    )
    print(f"AUC had we seen the classes: {outcome['hidden_auc']:.4f}")
