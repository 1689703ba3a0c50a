"""AUCClassifier and AUCClassifierCV: ``fit`` calls one room after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from pnuauc._utils.arrays import ALL_EQUAL, check_range, finite, read_rows, rows_differ
from pnuauc._utils.extras import warn
from pnuauc._utils.label_values import label_codes
from pnuauc._utils.progress import progress_bar
from pnuauc.core.basis import (
    BASES,
    MultiscaleBasis,
    TransformerBasis,
    check_weights,
    fit_basis,
    make_basis,
    parse_width,
)
from pnuauc.core.design import Design, block_scores, ranking_threshold
from pnuauc.core.losses import LOSSES, Loss, get_loss
from pnuauc.core.risks import RISKS, check_eta, check_prior, get_risk
from pnuauc.core.rows import RowsElsewhere, group_numbers
from pnuauc.core.solvers import (
    Correction,
    LinearModel,
    check_alpha,
    fit_risk,
    warn_of_limit,
)
from pnuauc.evaluation import AUCScorer
from pnuauc.exceptions import CorrectionWarning, MissingRoleError
from pnuauc.io.frames import needs_encoding
from pnuauc.labels import ROLES, Roles, read_roles
from pnuauc.prior import ClassPrior, read_prior
from pnuauc.priors.resolve import resolve_prior
from pnuauc.selection.choice import PAPER_ALPHAS, PAPER_ETAS, PAPER_WIDTHS, plot_selection
from pnuauc.selection.criterion import CRITERIA
from pnuauc.selection.folds import deal_folds, read_cv
from pnuauc.selection.grid import ChosenModel, TrainedGrid

__all__ = ["AUCClassifier", "AUCClassifierCV", "label_codes"]


class AUCScoreMixin(ClassifierMixin):
    """A ranker with a threshold; ``score`` is an AUC estimate, which GridSearchCV then tunes for.

    A subclass gives ``fit``, and ``_scores(X)``, shape (n,), for validated rows.
    """

    intercept_: float
    classes_: NDArray[Any]

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """AUC estimate from whatever roles y has.

        With labelled positives and negatives only, the ordinary AUC. Unlabelled rows take part
        with the prior that was used for fitting, as in :func:`pnuauc.metrics.make_auc_scorer`;
        without one, positives against unlabelled rows give the share of pairs won, which ranks
        models as the AUC does. An estimate outside [0, 1] is moved inside; the scorer does not do
        that, because means over folds would be biased.

        Parameters
        ----------
        X : array-like or CSR, shape (n, d)
        y : array-like, shape (n,), or Roles
            Coded as in ``fit``; missing labels are unlabelled rows.
        sample_weight : array-like, shape (n,), optional
            Weights of the labelled rows, as in :func:`pnuauc.metrics.auc_estimate`.
        """
        prior = getattr(self, "class_prior_", None)
        roles = read_roles(y, **label_codes(self))
        found = AUCScorer(prior, "auto")(self, X, roles, sample_weight=sample_weight)
        return min(max(found, 0.0), 1.0)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        raise NotImplementedError

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score + intercept_, shape (n,): higher means more likely positive."""
        check_is_fitted(self)
        return finite(self._scores(read_rows(self, X, reset=False)) + self.intercept_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels: positive where ``decision_function`` is above zero.

        The threshold is the score that a share ``prior_`` of the unlabelled training rows
        exceeds, so that as many of them are called positive as there should be positives. (AUC
        says nothing about thresholds, and a score of one half means nothing here.) Without
        unlabelled rows it is set on the labelled rows by their own share of positives.
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


class _RankingMixin(AUCScoreMixin):
    """What both fitted linear-in-parameter rankers share."""

    prior: Any
    n_jobs: int | None
    random_state: Any
    basis_: Any
    coef_: NDArray[np.float64]

    def _set_prior(self, X: Any, roles: Roles, *, needed: bool) -> None:
        self.class_prior_, self.prior_estimator_ = training_prior(
            self.prior, X, roles, needed=needed, random_state=self.random_state
        )
        self.prior_ = None if self.class_prior_ is None else self.class_prior_.training_value

    def _scores(self, X: Any) -> NDArray[np.float64]:
        threads = effective_n_jobs(self.n_jobs)
        return block_scores(X, self.basis_, self.coef_, n_threads=threads)


#: What both estimators take.
SHARED_CONSTRAINTS: dict[str, Any] = {
    "risk": [StrOptions({"auto", *RISKS})],
    "loss": [StrOptions(set(LOSSES)), Loss],
    "basis": [StrOptions(set(BASES)), HasMethods(["fit", "transform"])],
    "n_centers": [Interval(Integral, 1, None, closed="left")],
    "prior": "no_validation",  # read by read_prior
    "positive_label": "no_validation",
    "negative_label": "no_validation",
    "unlabeled_label": "no_validation",
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "n_jobs": [None, Integral],
    "random_state": ["random_state"],
}


@dataclass(eq=False, repr=False)
class AUCClassifier(_RankingMixin, BaseEstimator):
    """Minimise an AUC risk: argmin_w R(w'phi) + alpha |w|^2.

    R is the mean loss l(g(x) - g(x')) over pairs of a positive and a negative row, estimated from
    whichever of positive (P), negative (N) and unlabelled (U) rows there are:

    - ``"pn"``: from P and N;
    - ``"pu"``: from P and U, corrected for the positives inside U;
    - ``"nu"``: from N and U, corrected likewise;
    - ``"pnu"``: (1 - eta) PN + eta PU for eta >= 0, (1 + eta) PN - eta NU for eta < 0.

    Labels: 1 positive, 0 negative, -1 or missing unlabelled; see :func:`pnuauc.labels.read_roles`
    for other codings.

    Parameters
    ----------
    risk : {"auto", "pn", "pu", "nu", "pnu"}, default="auto"
        "auto" takes the roles that the data has.
    eta : float in [-1, 1], default=0.5
        Weight of the unlabelled rows in the "pnu" risk; 0 leaves them out.
    loss : str, default="squared"
        "squared" (closed form), "exponential", "logistic", "squared_hinge", "hinge", "absolute".
        The last two go through a smoothing of width 0.001 around their kinks.
    basis : {"gaussian", "multiscale", "linear", "identity"} or transformer, default="gaussian"
        Feature map phi; "multiscale" puts Gaussians of three widths on every centre; "identity"
        is a linear model in the columns themselves, solved without forming a d x d matrix when
        there are more than 2,000 of them.
    n_centers : int, default=200
        Number of centres for "gaussian" and "linear".
    width : float or str, default="median"
        Width of the Gaussians: a number, "median" or a multiple such as "0.5*median".
    alpha : float, default=0.1
        Ridge.
    prior : float, (low, high), ClassPrior, prior estimator, or "auto", optional
        Share of positives *among the unlabelled rows* (not in the population). Needed by every
        risk that uses U. An object with ``fit(X, y)`` and ``prior_`` is fitted on the rows; None
        and "auto" take :func:`pnuauc.priors.default_prior` for the roles that there are.
    positive_label, negative_label, unlabeled_label : optional
        Values of y that stand for the roles.
    max_iter, tol : int, float
        Limits of the iterative solver (losses other than squared).
    n_jobs : int, optional
        Threads that visit blocks of rows.
    random_state : int, RandomState or None
        Draws the centres and the rows for the median distance.

    Attributes
    ----------
    coef_ : ndarray, shape (b,)
    intercept_ : float
        Minus the threshold, so that ``predict`` cuts ``decision_function`` at zero.
    basis_ : fitted feature map
    risk_ : str
        The risk that was used.
    prior_ : float or None
        The prior that the risk used; an estimate is kept within [0.01, 0.99].
    class_prior_ : ClassPrior or None
        The prior as given or estimated, with its uncertainty.
    prior_estimator_ : fitted prior estimator, or None where a number was given
    correction_ : Correction
        What was done if the empirical risk had no minimum (``kind == "none"``: nothing).
    classes_ : ndarray, shape (2,)
        Negative label, positive label.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had string column names

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(1, 1, (20, 2)), rng.normal(-1, 1, (100, 2)), rng.normal(1, 1, (10, 2))]
    >>> y = np.r_[np.ones(20), np.full(110, np.nan)]      # 20 positives, the rest unlabelled
    >>> model = AUCClassifier(prior=10 / 110, random_state=0).fit(X, y)
    >>> model.risk_
    'pu'
    >>> bool(model.decision_function([[1, 1]])[0] > model.decision_function([[-1, -1]])[0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "eta": [Interval(Real, -1, 1, closed="both")],
        "width": [Interval(Real, 0, None, closed="neither"), str],
        "alpha": [Interval(Real, 0, None, closed="left")],
    }

    risk: str = "auto"
    eta: float = 0.5
    loss: str | Loss = "squared"
    basis: Any = "gaussian"
    n_centers: int = 200
    width: float | str = "median"
    alpha: float = 0.1
    prior: Any = None
    positive_label: Any = None
    negative_label: Any = None
    unlabeled_label: Any = None
    max_iter: int = 500
    tol: float = 1e-6
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AUCClassifier:
        """Fit to rows X, shape (n, d), and labels y, shape (n,).

        ``sample_weight`` counts repetitions: a weight of 2 equals the row twice.
        """
        check_parameters(self)
        parse_width(self.width)
        X, roles, weight = read_training_rows(self, X, y, sample_weight)
        rows = rows_by_role(roles, weight)
        loss = get_loss(self.loss)
        self.risk_ = choose_risk(self.risk, roles)
        uses_unlabeled = self.risk_ in {"pu", "nu"} or (self.risk_ == "pnu" and self.eta != 0)
        self._set_prior(X, roles, needed=uses_unlabeled)
        risk = get_risk(self.risk_, prior=self.prior_, eta=self.eta)
        risk.check_roles(
            {r: len(i) if weight is None else weight[i].sum() for r, i in rows.items()}
        )
        self.basis_ = make_basis(self.basis, self.n_centers, self.width, self.random_state)
        fit_basis(self.basis_, X, weight)
        design = Design.of(X, rows, self.basis_, weight, n_threads=effective_n_jobs(self.n_jobs))
        (found,) = fit_risk(risk, loss, design, [self.alpha], self.max_iter, self.tol)
        self.coef_, self.correction_, self.n_iter_ = found.coef, found.correction, found.n_iter
        if not found.converged:
            warn_of_limit(self.n_iter_, self.tol)
        if self.correction_:
            warn(self.correction_.message, CorrectionWarning)
        self.classes_ = roles.classes
        self.threshold_ = ranking_threshold(design, self.coef_, self.prior_)
        self.intercept_ = -self.threshold_
        return self

    def _from_model(self, model: LinearModel, threshold: float, fitted: Any) -> AUCClassifier:
        """Take over a fitted model, and what ``fitted`` (an estimator) knows of rows and labels."""
        self.basis_, self.coef_ = model.basis, model.coef
        self.risk_, self.prior_, self.n_iter_ = self.risk, self.prior, 1
        self.correction_ = Correction("eigenvalue_floor" if model.corrected else "none")
        self.threshold_, self.intercept_ = threshold, -threshold
        for name in ("classes_", "class_prior_", "n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        return self


def read_training_rows(
    estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Any, Roles, NDArray[np.float64] | None]:
    """Validated rows, roles and weights; sets the feature attributes of ``estimator``."""
    try:
        X = read_rows(estimator, X, ensure_min_samples=2)
    except (TypeError, ValueError) as error:
        if not needs_encoding(X):
            raise
        name = type(estimator).__name__
        raise ValueError(
            f"{name} needs numbers, and X has other columns ({error}). Encode them by "
            f"make_pipeline(pnuauc.io.TableEncoder(), {name}()), or use AutoAUCClassifier, which "
            "reads such tables."
        ) from error
    roles = read_roles(y, **label_codes(estimator))
    check_consistent_length(X, roles.codes)
    check_range(X)
    if not rows_differ(X):
        raise ValueError(ALL_EQUAL)
    return X, roles, check_weights(sample_weight, X)


def rows_by_role(
    roles: Roles, weight: NDArray[np.float64] | None = None
) -> dict[str, NDArray[np.intp]]:
    """Row numbers by role letter; rows of weight zero are left out."""
    if weight is None:
        return roles.by_letter
    return {role: index[weight[index] > 0] for role, index in roles.by_letter.items()}


def choose_risk(risk: Any, roles: Roles) -> str:
    """The risk by its name; "auto" takes the roles that the data has."""
    if risk == "auto":
        if roles.setting not in {"PN", "PU", "NU", "PNU"}:
            raise ValueError(
                f"y holds one class only ({roles.describe()}); a ranking needs at least two of "
                "positive, negative and unlabelled rows."
            )
        return roles.setting.lower()
    return str(risk)


def check_parameters(estimator: Any) -> None:
    """One clear error for a setting, before any work."""
    estimator._validate_params()
    if not hasattr(estimator.prior, "fit"):
        read_prior(estimator.prior)


def training_prior(
    prior: Any, X: Any, roles: Roles, *, needed: bool, random_state: Any
) -> tuple[ClassPrior | None, Any | None]:
    """The prior inside U and the estimator fitted for it; (None, None) where no risk needs one."""
    automatic = prior is None or (isinstance(prior, str) and prior == "auto")
    if not needed and (automatic or hasattr(prior, "fit")):
        return None, None
    known, estimator = resolve_prior(prior, X, roles, random_state=random_state)
    check_prior(known.training_value)
    return known, estimator


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

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> AUCClassifierCV:
        """Choose and fit, from rows X, shape (n, d), and labels y, shape (n,).

        ``sample_weight`` counts repetitions: a weight of 2 equals the row twice, in one fold.
        Rows of one of the ``groups``, shape (n,), stand in one fold, whatever their roles.
        """
        return self._fit_with(X, y, sample_weight, None, groups)

    def _fit_with(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        elsewhere: RowsElsewhere | None,
        groups: Any = None,
    ) -> AUCClassifierCV:
        """As :meth:`fit`; with ``elsewhere`` the unlabelled rows of X are a draw of those there."""
        self._check_settings()
        X, roles, weight = read_training_rows(self, X, y, sample_weight)
        if groups is not None:
            groups = group_numbers(groups)
            check_consistent_length(X, groups)
        self.risk_ = choose_risk(self.risk, roles)
        self._set_prior(X, roles, needed="u" in self.risk_)
        with progress_bar("AUCClassifierCV", self.verbose) as tick:
            grid = self._make_grid(X, roles, weight, tick, elsewhere, groups).train()
            default = "simple" if self.selection == "paper" else "combined"
            chosen = grid.choose(self.selection, self.validation or default, self.temperature)
            self._publish(grid, chosen)
        self.classes_ = roles.classes
        return self

    def _check_settings(self) -> None:
        """Everything that can be wrong without looking at the rows."""
        check_parameters(self)
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
        groups: Any,
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
        folds = deal_folds(rows, self.cv, X, roles.as_float(), rng, groups)
        if elsewhere is not None and "U" in folds.rows:
            labeled = [(k, part) for r in "PN" for k, part in enumerate(folds.rows.get(r, ()))]
            elsewhere = elsewhere.beside(
                np.concatenate([part for _, part in labeled]),
                np.concatenate([np.full(len(part), k) for k, part in labeled]),
            )
            place = elsewhere.drawn_folds(folds.n_folds)
            weighed = np.isin(roles.unlabeled, rows["U"])
            folds = folds.refolded("U", rows["U"], place[weighed])
        fixed = RISKS[self.risk_]
        return TrainedGrid.from_arrays(
            X,
            folds,
            fit_basis(self._make_basis(seed), X, weight, in_order=elsewhere is not None),
            self.etas if fixed is None else [fixed],
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
