"""Common practice as thin wrappers of scikit-learn and pulearn, and SAMULT.

What a wrapper has fitted is its ``estimator_``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from pnuauc._utils.arrays import Floats, Indices
from pnuauc._utils.extras import need
from pnuauc.baselines.common import LinearRanker, Ranker, intercept_of
from pnuauc.core.design import Design
from pnuauc.core.risks import Part, Risk, Term
from pnuauc.core.solvers import solve_ridge
from pnuauc.labels import POSITIVE, UNLABELED, Roles

# Common practice, reading the same labels: thin wrappers around scikit-learn and pulearn.


_DRAWS = 50


@dataclass(eq=False, repr=False)
class _Wrapper(Ranker):
    """Fits ``estimator_`` to what a subclass makes of the roles; scores come from it."""

    estimator: Any = None
    estimator_: Any = field(init=False)

    _default = None  # where no estimator is given

    def _base(self) -> Any:
        return clone(self._default if self.estimator is None else self.estimator)

    def _train(self, X: Any, roles: Roles) -> float:
        rows = self._rows(roles)
        self.estimator_ = self._base().fit(X[rows], roles.codes[rows].astype(int))
        return 0.0  # a classifier has its own threshold

    def _rows(self, roles: Roles) -> Indices:
        return np.arange(len(roles))

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
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`
    """

    _default = LogisticRegression()

    def _rows(self, roles: Roles) -> Indices:
        return np.flatnonzero(roles.codes != UNLABELED)


class SemiSupervised(_Wrapper):
    """A scikit-learn semi-supervised classifier, given all rows with U coded as -1.

    Parameters
    ----------
    estimator : classifier that reads -1 as unlabelled, default=LabelSpreading(kernel="knn")
        For example ``SelfTrainingClassifier(LogisticRegression())``.
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`
    """

    _default = LabelSpreading(kernel="knn")

    def _train(self, X: Any, roles: Roles) -> float:
        with warnings.catch_warnings():
            # fully labelled data is a legal special case here, not a mistake
            warnings.filterwarnings("ignore", "y contains no unlabeled samples")
            return super()._train(X, roles)


class PositiveVsUnlabeled(_Wrapper):
    """``estimator`` fitted to P as 1 against U as 0, as if no unlabelled row were positive.

    Negative rows are left out (they stand in for U where there are no unlabelled rows).

    Parameters
    ----------
    estimator : scikit-learn classifier, default=LogisticRegression(class_weight="balanced")
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`
    """

    _default = LogisticRegression(class_weight="balanced")

    def _usable(self, roles: Roles) -> Roles:
        """As they are."""
        other = "unlabeled" if roles.n_unlabeled else "negative"
        roles.require("positive", other, purpose=type(self).__name__)
        return roles

    def _train(self, X: Any, roles: Roles) -> float:
        high, low = roles.positive, roles.unlabeled if roles.n_unlabeled else roles.negative
        rows = np.sort(np.concatenate([high, low]))
        self._train_classifier(X[rows], (roles.codes[rows] == POSITIVE).astype(int))
        return intercept_of(self._scores(X[high]), self._scores(X[low]))

    def _train_classifier(self, X: Any, positive: Indices) -> None:
        self.estimator_ = self._base().fit(X, positive)


class _PULearn(PositiveVsUnlabeled):
    """A classifier of the package pulearn, dense rows only."""

    def _train(self, X: Any, roles: Roles) -> float:
        if sparse.issparse(X):
            raise TypeError(
                f"{type(self).__name__} takes no sparse matrix, as pulearn would densify it: "
                "pass a dense array."
            )
        return super()._train(X, roles)

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
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`
    """

    hold_out_ratio: float = 0.2
    random_state: Any = None

    _default = LogisticRegression()

    def _train_classifier(self, X: Any, positive: Indices) -> None:
        make = need("pulearn", "pulearn").ElkanotoPuClassifier
        rng = check_random_state(self.random_state)
        for draw in range(_DRAWS):
            seed = int(rng.randint(2**31 - 1))
            try:
                model = make(self._base(), self.hold_out_ratio, random_state=seed)
                self.estimator_ = model.fit(X, positive)
                break
            except ValueError as error:
                if "hold-out" not in str(error) or draw == _DRAWS - 1:
                    raise


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
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`
    """

    n_estimators: int = 100
    random_state: Any = None

    _default = DecisionTreeClassifier()

    def _train_classifier(self, X: Any, positive: Indices) -> None:
        model = need("pulearn", "pulearn").BaggingPuClassifier(
            self._base(),
            n_estimators=self.n_estimators,
            # each tree sees as many unlabelled rows as there are positives
            max_samples=int(min(positive.sum(), (1 - positive).sum())),
            oob_score=False,
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
        )
        self.estimator_ = model.fit(X, positive)


# SAMULT: unlabelled rows as negatives and as positives at once; no prior needed.


def samult_risk(gamma: float) -> Risk:
    """(1 - gamma) E_P E_N l + gamma (E_P E_U l + E_U E_N l), gamma in [0, 1].

    For the zero-one loss (any loss with l(m) + l(-m) = 1) the second part is the PN risk plus 1/2
    whatever the share t of positives inside U: E_P E_U l = t/2 + (1-t) R_PN and
    E_U E_N l = t R_PN + (1-t)/2.
    """
    parts = (
        Part("PN", 1.0 - gamma, (Term(1.0, "P", "N"),)),
        Part("PU+UN", gamma, (Term(1.0, "P", "U"), Term(1.0, "U", "N"))),
    )
    return Risk("SAMULT", tuple(part for part in parts if part.weight != 0.0))


@dataclass(eq=False, repr=False)
class SAMULT(LinearRanker):
    """argmin_w (1-gamma) R_PN + gamma (R_PU + R_UN - 1/2) + alpha |w|^2, R_AB = E_A E_B (1-m)^2.

    m = w'(phi(x_A) - phi(x_B)): an unlabelled row should rank below the positives *and* above the
    negatives. For the zero-one loss R_PU + R_UN - 1/2 = R_PN exactly in expectation, so no prior
    is needed; for the squared loss the identity does not hold, and the sum is a convex surrogate,
    solved in closed form from the moments of each role.

    Reference: Xie, Li, "Semi-supervised AUC optimization without guessing labels of unlabeled
    data", AAAI 2018. Ours: the objective is rebuilt from its description (the article is not at
    hand), with one weight ``gamma`` between labelled and unlabelled pairs.

    Parameters
    ----------
    gamma : float in [0, 1], default=0.5
        Weight of the pairs with unlabelled rows. Without unlabelled rows the objective is R_PN.
    basis, n_centers, width, alpha, random_state : as in :class:`pnuauc.AUCClassifier`
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearRanker._parameter_constraints,
        "gamma": [Interval(Real, 0, 1, closed="both")],
    }

    gamma: float = 0.5

    def _train(self, X: Any, roles: Roles) -> float:
        risk = samult_risk(self.gamma if roles.n_unlabeled else 0.0)
        design = Design.of(X, roles.by_letter, self._make_basis(X, roles))
        self.coef_ = solve_ridge(risk.quadratic_form(design.moments()), [self.alpha])[0].coef
        scores = design.scores(self.coef_)
        return intercept_of(scores["P"], scores["N"])
