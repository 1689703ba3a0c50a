"""AUCClassifierCV: width, ridge and eta by cross-validation, for the price of its products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pnuauc._design import MATRIX_FREE_ABOVE, Design, block_scores, ranking_threshold
from pnuauc._estimators import (
    AUCClassifier,
    _RankingMixin,
    choose_risk,
    read_training_rows,
    rows_by_role,
    training_prior,
)
from pnuauc._progress import progress_bar
from pnuauc._solvers import Correction
from pnuauc.basis import GaussianBasis, IdentityBasis, LinearKernelBasis, MultiscaleBasis
from pnuauc.losses import Loss, get_loss
from pnuauc.risks import pnu_risk
from pnuauc.selection import (
    CRITERIA,
    Candidates,
    Choice,
    Criterion,
    Engine,
    Fitted,
    FoldedRows,
    RefitEngine,
    average,
    explain,
    fold_rows,
    pick,
    plot_selection,
    validation_risks,
)

__all__ = ["PAPER_ALPHAS", "PAPER_ETAS", "PAPER_WIDTHS", "AUCClassifierCV"]

#: The paper's grids: widths in multiples of the median distance, ridges, weights of U.
PAPER_WIDTHS = ("0.125*median", "0.25*median", "0.5*median", "1*median", "2*median")
PAPER_ALPHAS = (1e-3, 1e-2, 1e-1, 1e0, 1e1)
PAPER_ETAS = tuple(round(0.1 * k, 1) for k in range(-9, 10))

_FIXED_ETA = {"pn": 0.0, "pu": 1.0, "nu": -1.0}
#: Rows scored to compare the final ranking with that of eta = 0.
_COMPARED_ROWS = 2000


class _SingleScale:
    """A basis without widths, in the clothes that the selection engine expects."""

    n_scales = 1

    def __init__(self, basis: Any, n_features: int) -> None:
        self.basis, self.n_features = basis, n_features

    def scales(self, X: Any) -> list[tuple[int, Any]]:
        return [(0, self.basis.features(X))]


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
    validation : {"paper", "variance", "combined"}, optional
        Weights of PN, PU and NU in the validation risk; by default "paper" with
        ``selection="paper"`` and "combined" with ``selection="average"``.
        "paper": (1 - g) PN + g PU for eta >= 0 and (1 - g') PN + g' NU for eta < 0 with the paper's
        simple weights; "variance": the same with the weights of least estimated variance;
        "combined": one criterion for all candidates, the combination of PN, PU and NU of least
        estimated variance.
    risk : {"auto", "pn", "pu", "nu", "pnu"}, default="auto"
        Anything but "pnu" leaves no eta to choose.
    etas, alphas : sequences of float
        Grids; the defaults are the paper's.
    widths : sequence of float or str
        Grid of Gaussian widths, as numbers or multiples of the median distance ("0.5*median").
    basis : {"gaussian", "linear", "identity"}, default="gaussian"
    n_basis : int, default=200
    loss : str, default="squared"
        Other losses fit every candidate on its own, which takes far longer.
    prior : float, (low, high), ClassPrior, prior estimator, or "auto", optional
        Share of positives *among the unlabelled rows*; an estimator (None and "auto": the default
        one for the roles that there are) is fitted once, on all training rows.
    cv : int or splitter, default=5
        Folds are dealt out by role; a splitter's test sets must not overlap.
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

    def __init__(
        self,
        selection: str = "average",
        temperature: float = 0.5,
        validation: str | None = None,
        risk: str = "auto",
        etas: Sequence[float] = PAPER_ETAS,
        alphas: Sequence[float] = PAPER_ALPHAS,
        widths: Sequence[float | str] = PAPER_WIDTHS,
        basis: str = "gaussian",
        n_basis: int = 200,
        loss: str | Loss = "squared",
        prior: Any = None,
        cv: Any = 5,
        positive_label: Any = None,
        negative_label: Any = None,
        unlabeled_label: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        block_size: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.selection = selection
        self.temperature = temperature
        self.validation = validation
        self.risk = risk
        self.etas = etas
        self.alphas = alphas
        self.widths = widths
        self.basis = basis
        self.n_basis = n_basis
        self.loss = loss
        self.prior = prior
        self.cv = cv
        self.positive_label = positive_label
        self.negative_label = negative_label
        self.unlabeled_label = unlabeled_label
        self.max_iter = max_iter
        self.tol = tol
        self.block_size = block_size
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> AUCClassifierCV:
        """Choose and fit, from rows X, shape (n, d), and labels y, shape (n,)."""
        self._check_choices()
        X, roles, _ = read_training_rows(self, X, y, None)
        self.risk_ = choose_risk(self.risk, roles)
        self.class_prior_, self.prior_estimator_ = training_prior(
            self.prior, X, roles, needed="u" in self.risk_, random_state=self.random_state
        )
        self.prior_ = None if self.class_prior_ is None else self.class_prior_.training_value
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        rows = {r: i for r, i in rows_by_role(roles).items() if r.lower() in self.risk_}
        rows = {role: rows.get(role, np.empty(0, dtype=np.intp)) for role in "PNU"}
        folded = fold_rows(rows, self.cv, X, roles.plain, rng)
        self._fit_basis(X, seed)
        with progress_bar("AUCClassifierCV", self.verbose) as tick:
            engine = self._make_engine(X, folded, tick)
            fitted = engine.fit_folds()
            criterion = self._judge(engine, fitted)
            choice = self._choose(criterion)
            final = engine.fit_all(choice.kept)
        self._combine(choice, final)
        self.threshold_ = self._threshold(X, rows, self.basis_, self.coef_)
        self.intercept_ = -self.threshold_
        self.classes_ = roles.classes
        self._tell(X, engine, criterion, choice, final)
        best_basis = self._basis_of(self._scale_of(self.best_index_))
        self._best_threshold = self._threshold(X, rows, best_basis, final.coef[0])
        return self

    def _threshold(self, X: Any, rows: dict[str, Any], basis: Any, coef: NDArray[Any]) -> float:
        return ranking_threshold(Design(X, rows, basis, len(coef)), coef, self.prior_)

    def _scale_of(self, index: int) -> int:
        return int(index // (len(self._candidates) // self._scales.n_scales))

    def _check_choices(self) -> None:
        if self.selection not in {"average", "paper"}:
            raise ValueError(f"selection must be 'average' or 'paper'; got {self.selection!r}.")
        if self.validation is not None and self.validation not in CRITERIA:
            known = ", ".join(map(repr, CRITERIA))
            raise ValueError(f"validation must be one of {known}; got {self.validation!r}.")
        if self.basis not in {"gaussian", "linear", "identity"}:
            raise ValueError(
                f"basis must be 'gaussian', 'linear' or 'identity'; got {self.basis!r}."
            )
        for name in ("etas", "alphas", "widths"):
            grid = getattr(self, name)
            if isinstance(grid, str) or not np.iterable(grid) or not len(list(grid)):
                raise ValueError(f"{name} must be a non-empty sequence; got {grid!r}.")

    def _fit_basis(self, X: Any, seed: int) -> None:
        """The feature map of the whole grid, and the written-out candidates."""
        self._scales: Any
        if self.basis == "gaussian":
            self._scales = MultiscaleBasis(self.n_basis, self.widths, random_state=seed).fit(X)
            widths = self._scales.widths_
        else:
            plain = (
                LinearKernelBasis(self.n_basis, random_state=seed)
                if self.basis == "linear"
                else IdentityBasis()
            ).fit(X)
            n_features = int(plain.features(X[:1]).shape[1])
            self._scales, widths = _SingleScale(plain, n_features), np.array([np.nan])
        etas = self.etas if self.risk_ == "pnu" else [_FIXED_ETA[self.risk_]]
        self._candidates = Candidates.from_grid(widths, etas, self.alphas)
        self._risks = [pnu_risk(float(eta), self.prior_) for eta in etas]

    def _make_engine(self, X: Any, folded: FoldedRows, tick: Any) -> Engine | RefitEngine:
        loss = get_loss(self.loss)
        threads = effective_n_jobs(self.n_jobs)
        alphas = [float(alpha) for alpha in self.alphas]
        wide = self.basis == "identity" and self._scales.n_features > MATRIX_FREE_ABOVE
        if loss.name == "squared" and not wide:
            return Engine(
                X, folded, self._scales, self._risks, alphas, threads, self.block_size, tick
            )
        bases = [self._basis_of(j) for j in range(self._scales.n_scales)]
        return RefitEngine(
            X,
            folded,
            bases,
            self._scales.n_features,
            self._risks,
            alphas,
            loss,
            threads,
            self.max_iter,
            self.tol,
            tick,
        )

    def _basis_of(self, scale: int) -> Any:
        """The fitted feature map of one scale alone."""
        if not isinstance(self._scales, MultiscaleBasis):
            return self._scales.basis
        basis = GaussianBasis(
            width=float(self._scales.widths_[scale]), centers=self._scales.centers_
        )
        basis.centers_, basis.width_ = self._scales.centers_, float(self._scales.widths_[scale])
        basis.n_features_in_ = self.n_features_in_
        return basis

    def _judge(self, engine: Engine | RefitEngine, fitted: list[Fitted]) -> Criterion:
        setting = self.risk_.upper()
        default = "paper" if self.selection == "paper" else "combined"
        name = self.validation or default
        usable = ~np.any([np.isnan(f.coef[:, 0]) for f in fitted], axis=0)
        return validation_risks(
            engine.held_out(fitted), self._candidates.eta, setting, self.prior_, name, usable
        )

    def _choose(self, criterion: Criterion) -> Choice:
        if self.selection == "paper":
            return pick(criterion.mean, self._candidates)
        return average(criterion, self._candidates, self.temperature)

    def _combine(self, choice: Choice, final: Fitted) -> None:
        """sum_c weight_c w_c / spread_c, per scale; only the kept scales are kept."""
        n_scales, b = self._scales.n_scales, self._scales.n_features
        scale = np.unravel_index(choice.kept, (n_scales, len(self._candidates) // n_scales))[0]
        # one candidate keeps its own scale; several must speak the same language first
        spread = np.where(final.spread > 0, final.spread, 1.0) if len(choice.kept) > 1 else 1.0
        shares = (choice.weights / spread)[:, None] * final.coef
        kept = np.unique(scale)
        self.coef_ = np.concatenate([shares[scale == j].sum(axis=0) for j in kept])
        if isinstance(self._scales, MultiscaleBasis):
            widths = self._scales.widths_[kept]
            self.basis_ = MultiscaleBasis(b, widths.tolist(), self._scales.centers_)
            self.basis_.centers_, self.basis_.widths_ = self._scales.centers_, widths
            self.basis_.n_features_in_ = self.n_features_in_
        else:
            self.basis_ = self._scales.basis
        self.n_corrected_ = int(final.corrected.sum())
        self.n_iter_ = final.n_iter

    def _tell(
        self,
        X: Any,
        engine: Engine | RefitEngine,
        criterion: Criterion,
        choice: Choice,
        final: Fitted,
    ) -> None:
        """cv_results_, the best candidate and the report."""
        mean = criterion.mean
        c = self._candidates
        order = np.argsort(np.where(np.isnan(mean), np.inf, mean), kind="stable")
        rank = np.empty(len(c), dtype=np.int32)
        values = np.where(np.isnan(mean), np.inf, mean)[order]
        rank[order] = 1 + np.searchsorted(values, values, side="left")
        weight = np.zeros(len(c))
        weight[choice.kept] = choice.weights
        self.cv_results_ = {
            "param_width": c.width,
            "param_eta": c.eta,
            "param_alpha": c.alpha,
            "params": [self._params(i) for i in range(len(c))],
            **{f"split{k}_test_risk": r for k, r in enumerate(criterion.fold_risks)},
            "mean_test_risk": mean,
            "std_test_risk": criterion.std,
            "mean_test_score": 1.0 - mean,
            "rank_test_risk": rank,
            "weight": weight,
        }
        self.best_index_ = int(choice.kept[0])
        self.best_params_ = self._params(self.best_index_)
        self.best_score_ = float(1.0 - mean[self.best_index_])
        self._best = (final.coef[0], bool(final.corrected[0]))
        correlation = self._compare_with_plain(X, engine, criterion)
        self.selection_ = explain(criterion, c, choice, correlation)

    def _params(self, i: int) -> dict[str, float]:
        c = self._candidates
        return {"width": float(c.width[i]), "eta": float(c.eta[i]), "alpha": float(c.alpha[i])}

    def _compare_with_plain(
        self, X: Any, engine: Engine | RefitEngine, criterion: Criterion
    ) -> float | None:
        """Spearman correlation of the final scores with those of the best eta = 0 candidate."""
        plain = np.flatnonzero(self._candidates.eta == 0)
        if self.risk_ != "pnu" or not len(plain):
            return None
        best = plain[np.nanargmin(criterion.mean[plain])]
        coef = engine.fit_all(np.array([best])).coef[0]
        step = max(1, X.shape[0] // _COMPARED_ROWS)
        sample = X[::step]
        ours = block_scores(sample, self.basis_, self.coef_)
        theirs = block_scores(sample, self._basis_of(self._scale_of(int(best))), coef)
        if np.ptp(ours) == 0 or np.ptp(theirs) == 0:
            return None
        return float(spearmanr(ours, theirs).statistic)

    def plot_selection(self, axes: Any = None) -> Any:
        """Validation risk against eta, width and ridge; needs matplotlib. Returns the axes."""
        check_is_fitted(self)
        return plot_selection(self.selection_, axes)

    @property
    def best_estimator_(self) -> AUCClassifier:
        """The single best candidate, as a plain fitted classifier."""
        check_is_fitted(self)
        params = self.best_params_
        model = AUCClassifier(
            risk="pnu",
            eta=params["eta"],
            loss=self.loss,
            basis=self.basis,
            n_basis=self.n_basis,
            width=params["width"] if self.basis == "gaussian" else "median",
            alpha=params["alpha"],
            prior=self.prior_,
            positive_label=self.positive_label,
            negative_label=self.negative_label,
            unlabeled_label=self.unlabeled_label,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        model.coef_, corrected = self._best
        model.basis_ = self._basis_of(self._scale_of(self.best_index_))
        model.risk_, model.prior_ = "pnu", self.prior_
        model.classes_, model.n_iter_ = self.classes_, 1
        model.correction_ = Correction("eigenvalue_floor" if corrected else "none")
        # the threshold of the averaged model means nothing on another scale of scores
        model.threshold_ = self._best_threshold
        model.intercept_ = -model.threshold_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model
