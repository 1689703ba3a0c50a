"""Early stopping and tuning of boosting libraries on partly labelled validation rows.

One :class:`AUCMetric` serves LightGBM, XGBoost, CatBoost and any loop that maximises a number. It
has no boosting library to import: each calls it with scores. How unlabelled rows get to it:

=================== ==============================================================================
``lgb.train``       label -1 in the validation ``Dataset``; NaN becomes 0, a negative: never use it
``lgb.cv``          label -1 and weight 0, as its folds learn -1 as a negative
``xgb.train``       label -1 in the ``DMatrix``; NaN is refused. With ``XGBClassifier`` too, given
                    ``disable_default_eval_metric=1``, else log-loss is computed on the -1
``LGBMClassifier``  refuses -1: pass the labels to the metric, ``AUCMetric(y_valid)``, and any two
                    classes in ``eval_set``
``CatBoost``        as ``LGBMClassifier``
=================== ==============================================================================

A PNU-AUC *objective* for trees is not offered: it ranks worse than log-loss on the labelled rows
(``python -m experiments.tree_objective``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._utils.arrays import Floats, Indices
from pnuauc.core.ranks import PAIRS, ScoreCounts, check_scores, pairs_won, raw_to_auc
from pnuauc.evaluation.conditional import known_prior
from pnuauc.evaluation.estimate import (
    AUCEstimate,
    auc_from_counts,
    choose_method,
    combination_weights,
    planned_covariance,
    rank_method,
    weights_of,
)
from pnuauc.evaluation.sklearn_tools import RoleStratifiedShuffleSplit
from pnuauc.labels import Roles, read_roles

__all__ = ["AUCMetric"]

#: Of the planned standard error where no prior is given.
_TYPICAL_PRIOR = 0.1


@dataclass(frozen=True, eq=False)
class _Estimator:
    """value = weights @ (raw pair means of PN, PU, NU) - offset, the same for all scores."""

    roles: Roles
    stop: Indices  # rows for stopping
    honest: Indices  # rows kept aside
    method: str
    weights: Floats
    offset: float
    std_error: float

    def counts(self, scores: ArrayLike, rows: Indices) -> ScoreCounts:
        values = check_scores(scores, len(self.roles))
        return ScoreCounts.from_roles(self.roles.take(rows), values[rows])

    def value(self, scores: ArrayLike) -> float:
        used = self.weights != 0.0
        order, ends = self.by_role
        roles = np.split(check_scores(scores, len(self.roles))[order], ends)
        for values in roles:
            values.sort()
        raw = [pairs_won(roles[a], roles[b]) for a, b in np.array(PAIRS)[used]]
        return float(self.weights[used] @ raw - self.offset)

    @cached_property
    def by_role(self) -> tuple[Indices, Indices]:
        """Rows of P, N and, where they count, of U that stopping sees; where each role ends."""
        letters = "PNU" if self.weights[1:].any() else "PN"
        rows = [self.roles.take(self.stop).by_letter[letter] for letter in letters]
        return self.stop[np.concatenate(rows)], np.cumsum([len(r) for r in rows])


class AUCMetric:
    """The AUC of partly labelled validation rows, as the metric that a boosting library maximises.

    One fixed estimator for the whole run: method and weights follow from the numbers of rows and
    the prior, never from the scores, so that rounds are compared on one scale. The value is the
    unbiased one; a prior that is too large can take it above 1 but does not end the training.

    Parameters
    ----------
    y : array-like, shape (n,), or Roles, optional
        Labels of the validation rows, any coding of :func:`pnuauc.labels.read_roles`. Without
        them, the labels that the library hands over: 1, 0 and -1 for unlabelled.
    prior : float, (low, high), or object with ``prior_``, optional
        Share of positives **inside the unlabelled rows**. Its value is used; its uncertainty is
        the same in every round. Not needed to stop or tune on positives and unlabelled rows: the
        value is then the share of pairs won, "pu_raw".
    method : str
        As in :func:`pnuauc.metrics.auc_estimate`; "auto" is "combined" with P, N, U and a prior.
    holdout : float
        Share of the validation rows, by role, that stopping does not see; the round chosen on the
        others is judged on these by :meth:`honest`. The best of many rounds is flattered by the
        rows that chose it.
    random_state : int, RandomState or None
        Of the holdout.
    **label_codes
        ``positive_label``, ``negative_label``, ``unlabeled_label``.

    Examples
    --------
    >>> metric = AUCMetric([1, 1, 0, 0, -1, -1, -1], prior=0.3)
    >>> metric.name, round(metric([3.0, 2.0, 1.0, 0.0, 2.5, 0.5, 0.1]), 3)
    ('auc_combined', 0.997)
    """

    def __init__(
        self,
        y: Any = None,
        prior: Any = None,
        method: str = "auto",
        *,
        holdout: float = 0.0,
        random_state: Any = 0,
        **label_codes: Any,
    ) -> None:
        if not 0.0 <= holdout < 1.0:
            raise ValueError(f"holdout is a share of the rows from 0 to below 1, got {holdout!r}.")
        self._prior = known_prior(prior)
        self._method = method
        self._split = (holdout, random_state)
        self._codes = label_codes
        self._seen: list[tuple[Any, _Estimator]] = []
        self._own = None if y is None else self._fixed(read_roles(y, **label_codes))

    def _fixed(self, roles: Roles) -> _Estimator:
        """Method and weights of a run, from the numbers of rows and the prior alone."""
        prior, (holdout, random_state) = self._prior, self._split
        stop, honest = np.arange(len(roles)), np.arange(0)
        if holdout:
            split = RoleStratifiedShuffleSplit(1, test_size=holdout, random_state=random_state)
            stop, honest = (np.sort(part) for part in next(split.split(roles.codes, roles)))
        n = roles.take(stop).counts
        chosen, _ = choose_method(rank_method(self._method, n, prior), n, prior)
        share = _TYPICAL_PRIOR if prior is None else min(max(prior.value, 1e-6), 1.0 - 1e-6)
        covariance = planned_covariance(n, share)
        slope, offset = raw_to_auc(share)
        weights = weights_of(chosen)
        if chosen == "combined":
            usable = np.flatnonzero(np.isfinite(np.diag(covariance)))
            weights[:] = 0.0
            weights[usable] = combination_weights(covariance[np.ix_(usable, usable)])
        if chosen.endswith("_raw"):  # the AUC is slope * raw - offset
            covariance, slope, offset = covariance / np.outer(slope, slope), np.ones(3), np.zeros(3)
        used = weights != 0.0
        variance = weights[used] @ covariance[np.ix_(used, used)] @ weights[used]
        raw_weights = np.where(used, weights * slope, 0.0)
        return _Estimator(
            *(roles, stop, honest, chosen, raw_weights),
            *(float(weights[used] @ offset[used]), float(np.sqrt(variance))),
        )

    def _of(self, y: Any, n_scores: int) -> _Estimator:
        """The estimator of the labels given at first, or of labels that a library hands over."""
        if self._own is not None:
            if len(self._own.roles) != n_scores:
                raise ValueError(
                    f"This metric has the labels of {len(self._own.roles)} validation rows and got "
                    f"{n_scores} scores: evaluate it on these rows only, or leave y out and give "
                    "the labels to the library."
                )
            return self._own
        if y is None:
            raise ValueError("No labels: give AUCMetric the labels y of the validation rows.")
        labels = np.asarray(y)
        for known, estimator in self._seen:  # read once a run, not once a round
            if np.array_equal(known, labels):
                return estimator
        codes = self._codes or {"positive_label": 1, "negative_label": 0, "unlabeled_label": -1}
        self._seen.append((labels.copy(), self._fixed(read_roles(labels, **codes))))
        return self._seen[-1][1]

    def _first(self) -> _Estimator:
        if self._own is None and not self._seen:
            raise ValueError("No labels yet: give AUCMetric y, or train first.")
        return self._own or self._seen[-1][1]

    @property
    def name(self) -> str:
        """ "auc_" and the method: XGBoost maximises what is named so."""
        return "auc" if self._own is None else f"auc_{self._own.method}"

    @property
    def std_error(self) -> float:
        """The standard error to expect of an AUC of .8 on these rows, before any training.

        A ``min_delta`` of a part of it makes stopping wait for a gain that is not noise.
        """
        return self._first().std_error

    def __call__(self, scores: ArrayLike, y: Any = None) -> float:
        """The unbiased value, larger is better: what an Optuna objective returns."""
        return self._of(y, np.shape(scores)[0]).value(scores)

    def estimate(self, scores: ArrayLike, y: Any = None) -> AUCEstimate:
        """The same with standard error and interval, of the rows that stopping sees."""
        chosen = self._of(y, np.shape(scores)[0])
        return auc_from_counts(chosen.counts(scores, chosen.stop), self._prior, chosen.method)

    def honest(self, scores: ArrayLike, y: Any = None) -> AUCEstimate:
        """AUC of the chosen round from the validation rows that stopping did not see.

        ``scores`` are those of all validation rows, shape (n,).
        """
        chosen = self._of(y, np.shape(scores)[0])
        if not len(chosen.honest):
            raise ValueError("No rows were kept aside: make the metric with holdout=0.5, say.")
        return auc_from_counts(chosen.counts(scores, chosen.honest), self._prior, chosen.method)

    def lightgbm(self, first: Any, second: Any) -> tuple[str, float, bool]:
        """``feval=`` of ``lgb.train`` and ``lgb.cv``, ``eval_metric=`` of scikit-learn's kind."""
        if hasattr(second, "get_label"):  # (scores, Dataset); else (y_true, scores)
            first, second = second.get_label(), first
        return self.name, self(second, first), True

    @property
    def xgboost(self) -> Callable[[Any, Any], Any]:
        """``custom_metric=`` of ``xgb.train`` and ``eval_metric=`` of ``XGBClassifier``."""
        return _XGBoostMetric(self)

    @property
    def catboost(self) -> Any:
        """``eval_metric=`` of CatBoost; of its learning rows, the AUC of their labels."""
        return _CatBoostMetric(self)


class _XGBoostMetric:
    """A function for XGBoost that can be stored with the model."""

    def __init__(self, metric: AUCMetric) -> None:
        self._metric = metric
        self.__name__ = metric.name  # by which XGBClassifier knows the direction

    def __call__(self, first: Any, second: Any) -> Any:
        if hasattr(second, "get_label"):  # (scores, DMatrix); else (y_true, scores)
            return self.__name__, self._metric(first, second.get_label())
        return self._metric(second, first)


class _CatBoostMetric:
    """CatBoost's three methods."""

    no_jit = True  # numba can compile none of this

    def __init__(self, metric: AUCMetric) -> None:
        self._metric = metric

    def is_max_optimal(self) -> bool:
        return True

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        scores = np.asarray(approxes[0])
        own = self._metric._own
        if own is not None and len(own.roles) != len(scores):  # the rows it learns from
            return AUCMetric(target)(scores), 1.0
        return self._metric(scores, target), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        return error / weight
