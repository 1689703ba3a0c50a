"""What the competitors share: reading labels, scores and thresholds, a solver.

Nothing in here is a competitor, and nothing outside this folder imports it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from pnuauc._utils.arrays import Floats
from pnuauc._utils.extras import warn
from pnuauc.core.basis import make_basis
from pnuauc.core.design import MATRIX_FREE_ABOVE, Design, block_scores, upper_threshold
from pnuauc.core.risks import Part, Risk, Term
from pnuauc.core.solvers import PartAt, minimize, warn_of_limit
from pnuauc.estimators import AUCScoreMixin, read_training_rows
from pnuauc.exceptions import LabelReadingWarning
from pnuauc.labels import NEGATIVE, UNLABELED, Roles

ByRole = dict[str, Floats]
#: Scores by role -> value and gradient by role.
Objective = Callable[[ByRole], tuple[float, ByRole]]


@dataclass(kw_only=True, eq=False, repr=False)
class Ranker(AUCScoreMixin, BaseEstimator):
    """A competitor: a subclass gives ``_train``, and ``_scores(X)`` for validated rows."""

    # scikit-learn reads the parameters from the __init__ that dataclass writes
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    positive_label: Any = None
    negative_label: Any = None
    unlabeled_label: Any = None

    def fit(self, X: Any, y: ArrayLike) -> Any:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        self._validate_params()
        X, roles, _ = read_training_rows(self, X, y, None)
        self.classes_ = roles.classes
        self.intercept_ = self._train(X, self._usable(roles))
        return self

    @abstractmethod
    def _train(self, X: Any, roles: Roles) -> float:
        """Fit to validated rows; answers with what is added to the scores."""

    def _usable(self, roles: Roles) -> Roles:
        """Roles with both classes, or an error.

        Without one negative row the unlabelled rows are taken for negatives, as people do, and a
        :class:`LabelReadingWarning` says so. y in {-1, 1} gets its classic meaning that way.
        """
        if roles.n_unlabeled and not roles.n_negative:
            warn(
                f"{type(self).__name__} needs negative rows and there are none: the "
                f"{roles.n_unlabeled} unlabelled rows are taken for negatives.",
                LabelReadingWarning,
            )
            codes = np.where(roles.codes == UNLABELED, NEGATIVE, roles.codes).astype(np.int8)
            roles = Roles(codes, roles.positive_label, roles.negative_label)
        roles.require("positive", "negative", purpose=type(self).__name__)
        return roles


def intercept_of(high: Floats, low: Floats) -> float:
    """Cuts the pooled training scores so that as many lie above zero as there are ``high`` rows.

    AUC says nothing about thresholds and these methods know no prior, so the training rows' own
    share is all there is to go by.
    """
    share = len(high) / (len(high) + len(low))
    return -upper_threshold(np.concatenate([high, low]), share)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRanker(Ranker):
    """score(x) = coef_'phi(x) with a basis phi of :mod:`pnuauc.core.basis`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left")]
    }
    basis: Any = "gaussian"
    n_centers: int = 200
    width: float | str = "median"
    alpha: float = 0.1
    random_state: Any = None
    basis_: Any = field(init=False)
    coef_: Floats = field(init=False)
    n_iter_: int = field(init=False)

    def _make_basis(self, X: Any, roles: Roles) -> Any:
        self.basis_ = make_basis(self.basis, self.n_centers, self.width, self.random_state).fit(X)
        return self.basis_

    def _scores(self, X: Any) -> Floats:
        return block_scores(X, self.basis_, self.coef_)


def pair_curvature(design: Design, low: str, second: float) -> Floats | None:
    """Second derivative in w, shape (b, b), of a loss with l'' = second on pairs of P and ``low``.

    None where there are too many features for a matrix.
    """
    if design.n_features > MATRIX_FREE_ABOVE:
        return None
    risk = Risk("pairs", (Part("pairs", second, (Term(1.0, "P", low),)),))
    return np.asarray(risk.quadratic_form(design.only(f"P{low}").moments()).quadratic)


def fit_in_stages(
    ranker: Any, stages: Iterable[tuple[Objective, Design]], curvature: Floats | None
) -> None:
    """``coef_`` and ``n_iter_``: each objective + alpha |w|^2 in turn, from the last one's minimum.

    By L-BFGS in v, w = T v, with T'(curvature + 2 alpha I) T = I: kernels' features are nearly
    collinear, and plain L-BFGS crawls along their valleys.
    """
    alpha, transform = ranker.alpha, None
    if curvature is not None:
        # the tiny share of the trace keeps Cholesky alive when alpha is next to nothing
        ridge = 2.0 * alpha + 1e-10 * np.trace(curvature) / len(curvature)
        lower = linalg.cholesky(curvature + ridge * np.eye(len(curvature)), lower=True)
        # inverted once: a triangular solve per step would cost more than the step itself
        transform = linalg.lapack.dtrtri(lower, lower=1)[0].T
    v, ranker.n_iter_, whole = None, 0, Part("objective", 1.0, ())
    for objective, design in stages:

        def parts_at(
            v: Floats, objective: Objective = objective, design: Design = design
        ) -> list[PartAt]:
            w = v if transform is None else transform @ v
            value, gradient = objective(design.scores(w))
            slope = design.pullback(gradient) + 2.0 * alpha * w
            slope = slope if transform is None else transform.T @ slope
            return [(whole, value + alpha * float(w @ w), slope)]

        start = np.zeros(design.n_features) if v is None else v
        found = minimize(parts_at, start, 0.0, ranker.max_iter, ranker.tol)
        v = found.coef
        ranker.n_iter_ += found.n_iter
    ranker.coef_ = v if transform is None else transform @ v
    if not found.converged:
        warn_of_limit(ranker.n_iter_, ranker.tol)
