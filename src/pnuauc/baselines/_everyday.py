"""Common practice, reading the same labels: thin wrappers around scikit-learn and pulearn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from pnuauc._arrays import Floats, Indices
from pnuauc._extras import need
from pnuauc.baselines._common import Ranker
from pnuauc.labels import NEGATIVE, POSITIVE, Roles

__all__ = ["BaggingPU", "ElkanNoto", "LabeledOnly", "PositiveVsUnlabeled", "SemiSupervised"]

_DRAWS = 50


@dataclass(eq=False, repr=False)
class _Wrapper(Ranker):
    """Fits ``estimator_`` to what a subclass makes of the roles; scores come from it."""

    estimator: Any = None
    estimator_: Any = field(init=False)

    def _base(self, default: Any) -> Any:
        return default if self.estimator is None else clone(self.estimator)

    def _scores(self, X: Any) -> Floats:
        if hasattr(self.estimator_, "decision_function"):
            return np.asarray(self.estimator_.decision_function(X), dtype=np.float64)
        column = int(np.flatnonzero(self.estimator_.classes_ == POSITIVE)[0])
        return np.asarray(self.estimator_.predict_proba(X)[:, column], dtype=np.float64) - 0.5


class LabeledOnly(_Wrapper):
    """``estimator`` fitted to the labelled rows, P as 1 and N as 0; unlabelled rows are left out.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=LogisticRegression()
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.

    Attributes
    ----------
    estimator_ : the fitted classifier
    """

    def fit(self, X: Any, y: ArrayLike) -> LabeledOnly:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        X, roles = self._read_classes(X, y)
        rows = np.sort(np.concatenate([roles.positive, roles.negative]))
        base = self._base(LogisticRegression())
        self.estimator_ = base.fit(X[rows], roles.codes[rows].astype(int))
        self.intercept_ = 0.0  # a classifier has its own threshold
        return self


class SemiSupervised(_Wrapper):
    """A scikit-learn semi-supervised classifier, given all rows with U coded as -1.

    Parameters
    ----------
    estimator : classifier that reads -1 as unlabelled, default=LabelSpreading(kernel="knn")
        For example ``SelfTrainingClassifier(LogisticRegression())``.
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.

    Attributes
    ----------
    estimator_ : the fitted classifier
    """

    def fit(self, X: Any, y: ArrayLike) -> SemiSupervised:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        X, roles = self._read_classes(X, y)
        base = self._base(LabelSpreading(kernel="knn"))
        with warnings.catch_warnings():
            # fully labelled data is a legal special case here, not a mistake
            warnings.filterwarnings("ignore", "y contains no unlabeled samples")
            self.estimator_ = base.fit(X, roles.codes.astype(int))
        self.intercept_ = 0.0
        return self


class PositiveVsUnlabeled(_Wrapper):
    """``estimator`` fitted to P as 1 against U as 0, as if no unlabelled row were positive.

    Negative rows are left out (they stand in for U where there are no unlabelled rows).

    Parameters
    ----------
    estimator : scikit-learn classifier, default=LogisticRegression(class_weight="balanced")
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.

    Attributes
    ----------
    estimator_ : the fitted classifier
    """

    def fit(self, X: Any, y: ArrayLike) -> PositiveVsUnlabeled:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        X, high, low = self._read_two(X, y)
        self._fit_two(self._base(LogisticRegression(class_weight="balanced")), X, high, low)
        return self

    def _read_two(self, X: Any, y: ArrayLike) -> tuple[Any, Indices, Indices]:
        """Rows, and which are taken as class 1 and as class 0: P and U, or without U P and N."""
        X, roles = self._read(X, y)
        low = "unlabeled" if roles.n_unlabeled else "negative"
        roles.require("positive", low, purpose=type(self).__name__)
        return X, roles.positive, getattr(roles, low)

    def _fit_two(self, base: Any, X: Any, high: Indices, low: Indices) -> None:
        rows = np.concatenate([high, low])
        codes = np.repeat([POSITIVE, NEGATIVE], [len(high), len(low)])
        order = np.argsort(rows)  # in the order given, so that blocks of rows keep their meaning
        self.estimator_ = base.fit(X[rows[order]], codes[order])
        self._set_threshold(self._scores(X[high]), self._scores(X[low]))


class _PULearn(PositiveVsUnlabeled):
    """A classifier of the package pulearn, dense rows only."""

    def _read(self, X: Any, y: ArrayLike) -> tuple[Any, Roles]:
        if sparse.issparse(X):
            raise TypeError(
                f"{type(self).__name__} takes no sparse matrix, as pulearn would densify it: "
                "pass a dense array."
            )
        return super()._read(X, y)

    def _scores(self, X: Any) -> Floats:
        return np.asarray(self.estimator_.predict_proba(X)[:, 1], dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class ElkanNoto(_PULearn):
    """p(y=1|x) = p(labelled|x) / c, c = mean of p(labelled|x) over held-out positives.

    Elkan, Noto, "Learning classifiers from only positive and unlabeled data", KDD 2008, through
    ``pulearn.ElkanotoPuClassifier``. c only rescales, so the ranking is that of P against U on the
    rows that are not held out.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression()
    hold_out_ratio : float, default=0.2
        Share of rows held out; drawn again if no positive is among them.
    random_state : int, RandomState or None
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.
    """

    hold_out_ratio: float = 0.2
    random_state: Any = None

    def fit(self, X: Any, y: ArrayLike) -> ElkanNoto:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        X, high, low = self._read_two(X, y)
        make = need("pulearn", "pulearn").ElkanotoPuClassifier
        rng = check_random_state(self.random_state)
        for draw in range(_DRAWS):
            base, seed = self._base(LogisticRegression()), int(rng.randint(2**31 - 1))
            try:
                self._fit_two(make(base, self.hold_out_ratio, random_state=seed), X, high, low)
                break
            except ValueError as error:
                if "hold-out" not in str(error) or draw == _DRAWS - 1:
                    raise
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class BaggingPU(_PULearn):
    """Mean vote of classifiers of P against random draws from U, scored out of the bag.

    Mordelet, Vert, "A bagging SVM to learn from positive and unlabeled examples", Pattern
    Recognition Letters 2014, through ``pulearn.BaggingPuClassifier``.

    Parameters
    ----------
    estimator : classifier, default=DecisionTreeClassifier()
    n_estimators : int, default=100
    random_state : int, RandomState or None
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.
    """

    n_estimators: int = 100
    random_state: Any = None

    def fit(self, X: Any, y: ArrayLike) -> BaggingPU:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        X, high, low = self._read_two(X, y)
        model = need("pulearn", "pulearn").BaggingPuClassifier(
            self._base(DecisionTreeClassifier()),
            n_estimators=self.n_estimators,
            # each tree sees as many unlabelled rows as there are positives
            max_samples=min(len(high), len(low)),
            oob_score=False,
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
        )
        self._fit_two(model, X, high, low)
        return self
