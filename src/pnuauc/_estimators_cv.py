"""AUCClassifierCV: width, ridge and eta by cross-validation, for the price of its products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pnuauc._basis import MultiscaleBasis, TransformerBasis, fit_basis, make_basis, parse_width
from pnuauc._estimators import (
    SHARED_CONSTRAINTS,
    AUCClassifier,
    _RankingMixin,
    check_parameters,
    check_prior_setting,
    choose_risk,
    read_training_rows,
    rows_by_role,
)
from pnuauc._progress import progress_bar
from pnuauc._risks import check_eta
from pnuauc._rows import RowsElsewhere
from pnuauc._solvers import check_alpha
from pnuauc.exceptions import MissingRoleError
from pnuauc.labels import ROLES, Roles
from pnuauc.losses import Loss
from pnuauc.selection._choice import PAPER_ALPHAS, PAPER_ETAS, PAPER_WIDTHS
from pnuauc.selection._criterion import CRITERIA
from pnuauc.selection._folds import deal_folds, read_cv
from pnuauc.selection._grid import ChosenModel, TrainedGrid
from pnuauc.selection._plots import plot_selection

__all__ = ["AUCClassifierCV"]

_FIXED_ETA = {"pn": 0.0, "pu": 1.0, "nu": -1.0}


@dataclass(eq=False, repr=False)
class AUCClassifierCV(_RankingMixin, BaseEstimator):
    """AUC optimisation from positive, negative and unlabelled rows, tuned by cross-validation.

    Candidates are all combinations of width, ridge and eta. Each is trained on K - 1 folds and
    judged on the last by the zero-one PNU risk, an unbiased estimate of 1 - AUC that needs few
    negatives, or none. With the squared loss the whole grid costs two passes over the rows.

    Parameters
    ----------
    selection : {"average", "paper"}, default="average"
        "paper" takes the candidate of lowest validation risk. "average" averages the standardised
        scores of all candidates, weighted by exp(-(risk - best) / (temperature * noise)): with
        few labelled positives the single best is mostly luck. Either way the result is linear in
        its parameters.
    temperature : float, default=0.5
        In standard errors of a validation risk; small values approach the single best.
    validation : {"simple", "variance", "combined"}, optional
        Weights of PN, PU and NU in the validation risk; by default "simple" with
        ``selection="paper"`` and "combined" with ``selection="average"``.
        "simple": (1 - g) PN + g PU for eta >= 0 and (1 - g') PN + g' NU for eta < 0 with the
        paper's simple weights; "variance": the same with the weights of least estimated variance;
        "combined": one criterion for all candidates, the combination of PN, PU and NU of least
        estimated variance.
    risk : {"auto", "pn", "pu", "nu", "pnu"}, default="auto"
        Anything but "pnu" leaves no eta to choose.
    etas, alphas : sequences of float
        Grids; the defaults are the paper's.
    widths : sequence of float or str
        Grid of Gaussian widths, as numbers or multiples of the median distance ("0.5*median").
    basis : {"gaussian", "multiscale", "linear", "identity"} or transformer, default="gaussian"
        As in :class:`AUCClassifier`. Only "gaussian" has widths to choose among.
    n_centers : int, default=200
    loss : str, default="squared"
        Other losses fit every candidate on its own, which takes far longer.
    prior : float, (low, high), ClassPrior, prior estimator, or "auto", optional
        Share of positives *among the unlabelled rows*; an estimator (None and "auto": the default
        one for the roles that there are) is fitted once, on all training rows.
    cv : int, splitter, or list of (train, test) row numbers, default=5
        Folds are dealt out by role; the test sets of splits must not overlap.
    positive_label, negative_label, unlabeled_label : optional
        Values of y that stand for the roles.
    max_iter, tol : limits of the iterative solver (losses other than squared)
    block_size : int, optional
        Rows per block; changes speed and memory, not the result.
    n_jobs : int, optional
        Threads.
    verbose : bool, optional
        Progress bar; None shows one in a terminal only.
    random_state : int, RandomState or None
        Fixes centres, folds and everything else.

    Attributes
    ----------
    cv_results_ : dict of arrays
        ``param_width``, ``param_eta``, ``param_alpha``, ``params``, ``split{k}_test_risk``,
        ``mean_test_risk``, ``std_test_risk``, ``rank_test_risk``, ``mean_test_score`` (the AUC
        estimate, 1 - risk), ``weight`` (in the final model). Ready for
        ``pandas.DataFrame(model.cv_results_)``.
    best_params_, best_index_, best_score_
        The candidate of lowest validation risk, and its estimated AUC.
    best_estimator_ : AUCClassifier
        That candidate alone, fitted on all rows.
    selection_ : SelectionReport
        What was kept, how sure that is, and what the unlabelled rows changed.
    coef_ : ndarray
        Coefficients of the final model over ``basis_`` (widths side by side).
    n_corrected_ : int
        Kept candidates whose empirical risk had no minimum and was corrected.
    basis_, prior_, class_prior_, prior_estimator_, risk_, classes_, intercept_, threshold_,
    n_iter_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.random(300) < 0.2
    >>> X = rng.standard_normal((300, 2)) + np.where(hidden, 1.0, -1.0)[:, None]
    >>> y = np.where(np.arange(300) < 60, hidden, np.nan)   # 60 labelled, 240 not
    >>> model = AUCClassifierCV(prior=0.2, random_state=0).fit(X, y)
    >>> sorted(model.best_params_)
    ['alpha', 'eta', 'width']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "selection": [StrOptions({"average", "paper"})],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "validation": [None, StrOptions(set(CRITERIA))],
        "block_size": [None, Interval(Integral, 1, None, closed="left")],
        "verbose": [None, "boolean"],
    }

    selection: str = "average"
    temperature: float = 0.5
    validation: str | None = None
    risk: str = "auto"
    etas: Sequence[float] = PAPER_ETAS
    alphas: Sequence[float] = PAPER_ALPHAS
    widths: Sequence[float | str] = PAPER_WIDTHS
    basis: Any = "gaussian"
    n_centers: int = 200
    loss: str | Loss = "squared"
    prior: Any = None
    cv: Any = 5
    positive_label: Any = None
    negative_label: Any = None
    unlabeled_label: Any = None
    max_iter: int = 500
    tol: float = 1e-6
    block_size: int | None = None
    n_jobs: int | None = None
    verbose: bool | None = None
    random_state: Any = None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AUCClassifierCV:
        """Choose and fit, from rows X, shape (n, d), and labels y, shape (n,).

        ``sample_weight`` counts repetitions: a weight of 2 equals the row twice, in one fold.
        """
        return self._fit_with(X, y, sample_weight, None)

    def _fit_with(
        self, X: Any, y: Any, sample_weight: Any, elsewhere: RowsElsewhere | None
    ) -> AUCClassifierCV:
        """As :meth:`fit`; with ``elsewhere`` the unlabelled rows of X are a draw of those there."""
        self._check_settings()
        X, roles, weight = read_training_rows(self, X, y, sample_weight)
        self.risk_ = choose_risk(self.risk, roles)
        self._set_prior(X, roles, needed="u" in self.risk_)
        with progress_bar("AUCClassifierCV", self.verbose) as tick:
            grid = self._make_grid(X, roles, weight, tick, elsewhere).train()
            default = "simple" if self.selection == "paper" else "combined"
            chosen = grid.choose(self.selection, self.validation or default, self.temperature)
            self._publish(grid, chosen)
        self.classes_ = roles.classes
        return self

    def _check_settings(self) -> None:
        """Everything that can be wrong without looking at the rows."""
        check_parameters(self)
        check_prior_setting(self.prior)
        read_cv(self.cv)
        for name, check in (("etas", check_eta), ("alphas", check_alpha), ("widths", parse_width)):
            values = getattr(self, name)
            if isinstance(values, str) or not np.iterable(values) or not len(list(values)):
                raise ValueError(f"{name} must be a non-empty sequence; got {values!r}.")
            for value in values:
                check(value)

    def _make_grid(
        self,
        X: Any,
        roles: Roles,
        weight: NDArray[np.float64] | None,
        tick: Any,
        elsewhere: RowsElsewhere | None,
    ) -> TrainedGrid:
        """Folds and basis from one seed, and the candidates on them."""
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        rows = {r: i for r, i in rows_by_role(roles, weight).items() if r.lower() in self.risk_}
        for role in ROLES:
            if role.letter in rows and not len(rows[role.letter]):
                raise MissingRoleError(
                    f"The {self.risk_.upper()} risk needs rows of every class in its name and "
                    f"there is no {role.word} one (of positive weight)."
                )
        folds = deal_folds(rows, self.cv, X, roles.as_float(), rng)
        if elsewhere is not None and "U" in folds.rows:
            place = elsewhere.drawn_folds(folds.n_folds)
            weighed = np.isin(roles.unlabeled, rows["U"])
            folds = folds.refolded("U", rows["U"], place[weighed])
        return TrainedGrid.from_arrays(
            X,
            folds,
            fit_basis(self._make_basis(seed), X, weight, in_order=elsewhere is not None),
            self.etas if self.risk_ == "pnu" else [_FIXED_ETA[self.risk_]],
            self.alphas,
            self.prior_,
            weight=weight,
            block_size=self.block_size,
            n_threads=effective_n_jobs(self.n_jobs),
            tick=tick,
            elsewhere=elsewhere if "U" in folds.rows else None,
            loss=self.loss,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _make_basis(self, seed: int) -> Any:
        """Gaussians have one scale for each width of the grid, other bases a single one."""
        if self.basis == "gaussian":
            return MultiscaleBasis(self.n_centers, self.widths, random_state=seed)
        made = make_basis(self.basis, self.n_centers, "median", seed)
        return TransformerBasis(made) if self.basis == "multiscale" else made

    def _publish(self, grid: TrainedGrid, chosen: ChosenModel) -> None:
        """The fitted attributes."""
        self.basis_, self.coef_ = chosen.model.basis, chosen.model.coef
        self.threshold_ = grid.threshold(chosen.model)
        self.intercept_ = -self.threshold_
        self.n_corrected_, self.n_iter_ = chosen.n_corrected, chosen.n_iter
        self.cv_results_, self.selection_ = chosen.table(), chosen.report
        self.best_index_ = int(chosen.choice.kept[0])
        self.best_params_ = chosen.best.parameters
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        # the threshold of the averaged model means nothing on another scale of scores
        self._best, self._best_threshold = chosen.best, grid.threshold(chosen.best)

    def plot_selection(self, axes: Any = None) -> Any:
        """Validation risk against eta, width and ridge; needs matplotlib. Returns the axes."""
        check_is_fitted(self)
        return plot_selection(self.selection_, axes)

    @property
    def best_estimator_(self) -> AUCClassifier:
        """The single best candidate, as a plain fitted classifier."""
        check_is_fitted(self)
        shared = AUCClassifier().get_params().keys() & self.get_params().keys()
        settings = {name: getattr(self, name) for name in shared}
        settings |= {"risk": "pnu", "prior": self.prior_, **self.best_params_}
        if np.isnan(self.best_params_["width"]):
            del settings["width"]
        return AUCClassifier(**settings)._from_model(self._best, self._best_threshold, self)
