"""Splitters, held-out scores and scorers for scikit-learn, from partly labelled rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing, check_random_state

from pnuauc._utils.label_values import label_codes
from pnuauc.core.ranks import ScoreCounts, check_scores
from pnuauc.core.rows import grouped_folds
from pnuauc.evaluation.conditional import known_prior
from pnuauc.evaluation.estimate import check_method, unbiased_auc
from pnuauc.labels import ROLES, Roles, read_roles
from pnuauc.prior import ClassPrior

__all__ = [
    "AUCScorer",
    "RoleStratifiedKFold",
    "RoleStratifiedShuffleSplit",
    "held_out_scores",
    "make_auc_scorer",
]


Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def _check_counts(roles: Roles, least: int, what: str) -> None:
    for role, n in zip(ROLES, roles.counts, strict=True):
        if 0 < n < least:
            raise ValueError(
                f"{what} needs at least {least} rows of every role that occurs, but y holds "
                f"{roles.describe()}; the {role.word} rows are too few: use fewer folds."
            )


class RoleStratifiedKFold(StratifiedKFold):
    """K folds, stratified by role: each holds n_role / K rows of P, N and U, within one.

    Unlike :class:`sklearn.model_selection.StratifiedKFold` it reads missing labels, keeps groups of
    rows together if they are given, and refuses, rather than warns, when a role has fewer rows than
    there are folds.

    Parameters
    ----------
    n_splits : int
    shuffle : bool
    random_state : int, RandomState or None
        Only with ``shuffle=True``.
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.

    Examples
    --------
    >>> y = [1, 1, 0, 0, None, None, None, None]
    >>> [test.tolist() for _, test in RoleStratifiedKFold(2).split(y, y)]
    [[0, 2, 4, 5], [1, 3, 6, 7]]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        positive_label: Any = None,
        negative_label: Any = None,
        unlabeled_label: Any = None,
    ) -> None:
        super().__init__(n_splits=n_splits, shuffle=shuffle, random_state=random_state)
        self.positive_label = positive_label
        self.negative_label = negative_label
        self.unlabeled_label = unlabeled_label

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield (train, test) row numbers; ``y`` in any coding.

        ``groups``, one number or name per row, keeps rows of one group in one fold: copies of a
        row, or rows of one customer. Folds are then as even by role as the groups allow.
        """
        roles = read_roles(y, **label_codes(self))
        what = f"A split into {self.n_splits} folds"
        if groups is None:
            _check_counts(roles, self.n_splits, what)
            yield from super().split(np.zeros(len(roles)), roles.codes)
            return
        seed = self.random_state if self.shuffle else 0
        fold = grouped_folds(roles.codes, groups, self.n_splits, check_random_state(seed))
        for k in range(self.n_splits):
            test = np.flatnonzero(fold == k)
            missing = set(roles.codes) - set(roles.codes[fold != k])
            if missing or not set(roles.codes) <= set(roles.codes[test]):
                raise ValueError(
                    f"{what} needs at least {self.n_splits} groups with rows of every role that "
                    f"occurs; y holds {roles.describe()}: use fewer folds."
                )
            yield np.flatnonzero(fold != k), test


class RoleStratifiedShuffleSplit(StratifiedShuffleSplit):
    """Random splits with the same shares of P, N and U in train and test.

    Parameters
    ----------
    n_splits : int
    test_size, train_size : float, int or None
    random_state : int, RandomState or None
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: Any = None,
        train_size: Any = None,
        random_state: Any = None,
        positive_label: Any = None,
        negative_label: Any = None,
        unlabeled_label: Any = None,
    ) -> None:
        super().__init__(
            n_splits=n_splits,
            test_size=test_size,
            train_size=train_size,
            random_state=random_state,
        )
        self.positive_label = positive_label
        self.negative_label = negative_label
        self.unlabeled_label = unlabeled_label

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield (train, test) row numbers; ``y`` in any coding, ``groups`` is ignored."""
        roles = read_roles(y, **label_codes(self))
        _check_counts(roles, 2, "A stratified split")
        for train, test in super().split(np.zeros(len(roles)), roles.codes):
            # scikit-learn may round a small role out of one side; one row of it is moved there
            yield _both_sides(roles.codes, train, test)


def _both_sides(codes: NDArray[np.int8], train: Any, test: Any) -> Split:
    """Every role that occurs on both sides, moving one row where rounding left a side empty."""
    train, test = np.asarray(train), np.asarray(test)
    for role in np.unique(codes):
        if not np.any(codes[test] == role):
            moved = train[codes[train] == role][:1]
            train, test = np.setdiff1d(train, moved), np.concatenate([test, moved])
        elif not np.any(codes[train] == role):
            moved = test[codes[test] == role][:1]
            train, test = np.concatenate([train, moved]), np.setdiff1d(test, moved)
    return train, test


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
