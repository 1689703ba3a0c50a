"""Scorers for scikit-learn's model selection: tune any estimator on PU, NU or PNU data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._prior import ClassPrior
from pnuauc.labels import read_roles
from pnuauc.metrics._counts import ScoreCounts, check_scores
from pnuauc.metrics._estimate import check_method, unbiased_auc
from pnuauc.metrics._prior import known_prior

__all__ = ["AUCScorer", "make_auc_scorer"]


@dataclass(frozen=True)
class AUCScorer:
    """``scorer(estimator, X, y) -> float``, larger is better; made by :func:`make_auc_scorer`."""

    prior: ClassPrior | None
    method: str
    label_codes: dict[str, Any] = field(default_factory=dict)

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> float:
        if sample_weight is not None:
            raise ValueError("The AUC scorer takes no sample_weight.")
        roles = read_roles(y, unclear="sorted", **self.label_codes)
        scores = check_scores(_scores_of(estimator, X, roles.positive_label), len(roles))
        method = self.method
        if method == "auto" and self.prior is None and roles.setting in {"PU", "NU"}:
            method = f"{roles.setting.lower()}_raw"
        counts = ScoreCounts.from_roles(roles, scores)
        return unbiased_auc(counts, self.prior, method)


def make_auc_scorer(
    prior: Any = None, method: str = "auto", *, prior_level: float = 0.95, **label_codes: Any
) -> AUCScorer:
    """A scorer for ``GridSearchCV(scoring=...)``, ``cross_val_score`` and the like.

    The estimate is the ``unbiased`` one of :func:`pnuauc.metrics.auc_estimate` on the validation
    rows, which may lie outside [0, 1]: moved inside, its mean over folds would be biased. On P and
    U without a prior it is the share of pairs won ("pu_raw"), which ranks candidates exactly as the
    AUC does: **tuning on PU data needs no prior**.

    Scores come from ``decision_function``, else the positive class's column of ``predict_proba``,
    else ``predict``.

    Parameters
    ----------
    prior : float, (low, high), or object with ``prior_``, optional
        Share of positives inside the unlabelled rows.
    method : str
        As in :func:`pnuauc.metrics.auc_estimate`.
    prior_level : float
        Confidence of ``prior`` when it is an interval.
    **label_codes
        ``positive_label``, ``negative_label``, ``unlabeled_label``: with ``unlabeled_label=0``
        an ordinary classifier can be fitted to y in {1, 0} as P against U, while the scorer
        knows that 0 is unlabelled.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0], [40, 400])  # 1 positive, 0 unlabelled
    >>> X = rng.normal(size=(440, 2)) + 2 * y[:, None]
    >>> scorer = make_auc_scorer(prior=0.1, unlabeled_label=0)
    >>> bool(cross_val_score(LogisticRegression(), X, y, scoring=scorer).mean() > 0.9)
    True
    """
    check_method(method)
    return AUCScorer(known_prior(prior, prior_level), method, dict(label_codes))


def _scores_of(estimator: Any, X: Any, positive_label: Any) -> Any:
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(estimator, name):
            scores = np.asarray(getattr(estimator, name)(X))
            break
    else:
        raise TypeError(
            f"{type(estimator).__name__} has no decision_function, predict_proba or predict."
        )
    classes = list(getattr(estimator, "classes_", []))
    if scores.ndim == 1:
        # a binary decision_function is high for classes_[1]
        flipped = name == "decision_function" and len(classes) == 2 and classes[0] == positive_label
        return -scores if flipped else scores
    if positive_label not in classes:
        raise ValueError(
            f"The estimator was fitted without the positive label {positive_label!r}; it knows "
            f"{classes}."
        )
    return scores[:, classes.index(positive_label)]
