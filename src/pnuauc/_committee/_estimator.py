"""AutoAUCClassifier: the members that suit the table, their scores summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from pnuauc._committee._calibration import TopPositives, calibrate
from pnuauc._committee._held_out import HeldOut, copies_held_out, cross_scores
from pnuauc._committee._members import MEMBERS, Member, Situation, Training
from pnuauc._committee._models import Committee, Part
from pnuauc._committee._ranking import (
    fit_members,
    seated,
    situation_of,
    some_rows,
    weigh,
    weigh_apart,
)
from pnuauc._committee._reasons import Reason, find_reasons
from pnuauc._committee._views import DenseView, Look, fit_view
from pnuauc._estimators import AUCScoreMixin, choose_risk, label_codes, training_prior
from pnuauc._prior import ClassPrior
from pnuauc._progress import progress_bar
from pnuauc._ranges import ALL_EQUAL
from pnuauc._rows import RowsElsewhere
from pnuauc._threads import one_thread_for_few
from pnuauc.labels import Roles, read_roles
from pnuauc.selection import deal_folds

__all__ = ["AutoAUCClassifier", "MemberReport"]

Floats: TypeAlias = NDArray[np.float64]

#: Rows from which the views and the spread of scores are taken; more would change nothing.
_VIEW_ROWS, _SPREAD_ROWS = 100_000, 20_000
_N_QUANTILES = 2001
_FOLDS = 5


@dataclass(frozen=True)
class MemberReport:
    """Who sits in the committee, and what it is worth.

    Attributes
    ----------
    name, why : str
    weight : float
    auc, auc_error : float or None
        Held-out AUC of the member alone, and its standard error.
    auc_with, auc_without : float or None
        Held-out AUC of the committee, and of the others without this member.
    """

    name: str
    why: str
    weight: float
    auc: float | None = None
    auc_error: float | None = None
    auc_with: float | None = None
    auc_without: float | None = None


@dataclass(eq=False, repr=False)
class AutoAUCClassifier(AUCScoreMixin, BaseEstimator):
    """A ranking for any table: several kinds of model, chosen by what there is, summed.

    score(x) = sum_m weight_m (score_m(x) - mean_m) / spread_m, mean and spread over unlabelled
    rows. Which members take part depends on the roles that have rows, on their numbers and on
    whether X is sparse; ``members_`` says who and why. With few labels the weights are fixed
    numbers, chosen once on other data sets; from ten of either class on they lean towards members
    that do better on held-out rows, and with hundreds of labels they are learned from these.

    Labels: 1 positive, 0 negative, -1 or missing unlabelled; see :func:`pnuauc.labels.read_roles`
    for other codings. Dense X may hold NaN.

    Parameters
    ----------
    prior : float, (low, high), ClassPrior or prior estimator, optional
        Share of positives *among the unlabelled rows*; None estimates it.
    members : sequence of str, optional
        Names from ``pnuauc._committee.MEMBERS`` to choose from; None: all.
    cv : int, default=5
        Folds of the held-out scores behind ``predict_proba``, learned weights and the AUCs in
        ``members_``. 0 leaves these out and saves half of the time.
    n_tree_columns : int, default=0
        The last so many columns of a dense X are what trees and boosting read, in place of the
        others: a second encoding of the same table, such as category codes and missing cells as
        they are. 0: all members read all columns.
    max_unlabeled : int, optional
        At most so many unlabelled rows, drawn at random, are used; None: all.
    positive_label, negative_label, unlabeled_label : optional
        Values of y that stand for the roles.
    n_jobs : int, optional
        Threads.
    verbose : bool, optional
        Progress bar; None shows one in a terminal only.
    random_state : int, RandomState or None

    Attributes
    ----------
    members_ : list of MemberReport
    class_prior_ : ClassPrior or None
    prior_ : float or None
        The prior that the risks used.
    scorer_ : Committee
        The fitted committee; can be stored (``spec()``, ``arrays()``).
    threshold_ : float
        Score that a share ``prior_`` of the unlabelled rows exceeds; subtracted from scores.
    learned_weights_ : bool
        Whether held-out rows had a say in the weights.
    held_out_ : HeldOut or None
        Scores of rows by models that did not see them.
    classes_ : ndarray, shape (2,)
    n_features_in_ : int

    Examples
    --------
    >>> from pnuauc.datasets import make_twonorm, sample_pnu
    >>> X, y = make_twonorm(3000, random_state=0)
    >>> sample = sample_pnu(X, y, 5, 45, 1000, prior=0.1, random_state=0)
    >>> model = AutoAUCClassifier(prior=0.1, random_state=0).fit(sample.X, sample.y)
    >>> [member.name for member in model.members_]
    ['kernels', 'trees', 'processes']
    >>> bool(model.predict_proba(sample.X_test)[:, 1].max() > 0.5)
    True
    """

    prior: Any = None
    members: Sequence[str] | None = None
    cv: int = _FOLDS
    n_tree_columns: int = 0
    max_unlabeled: int | None = None
    positive_label: Any = None
    negative_label: Any = None
    unlabeled_label: Any = None
    n_jobs: int | None = None
    verbose: bool | None = None
    random_state: Any = None

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike) -> AutoAUCClassifier:
        """Fit to rows X, shape (n, d), NaN allowed where dense, and labels y, shape (n,)."""
        return self._fit_with(X, y, None)

    def _fit_with(self, X: Any, y: Any, elsewhere: RowsElsewhere | None) -> AutoAUCClassifier:
        """As :meth:`fit`; with ``elsewhere`` the unlabelled rows of X are a draw of those there."""
        rng = check_random_state(self.random_state)
        X, roles = self._read(X, y, rng)
        with one_thread_for_few(len(roles)):
            return self._fit_rows(X, roles, rng, elsewhere)

    def _fit_rows(
        self, X: Any, roles: Roles, rng: np.random.RandomState, elsewhere: RowsElsewhere | None
    ) -> AutoAUCClassifier:
        situation = situation_of(X, roles)
        chosen = self._chosen(situation)
        if not self.cv and not situation.many:  # no held-out rows to try a member on
            chosen = [(member, why) for member, why in chosen if not member.on_trial]
        training, known = self._training(X, roles, rng, elsewhere)
        with progress_bar("AutoAUCClassifier", self.verbose) as tick:
            whole, folds = fit_members([member for member, _ in chosen], training, self.cv, tick)
        self.held_out_ = cross_scores(training, folds) if self.cv else None
        members = [member for member, _ in chosen]
        weights, self.learned_weights_ = weigh(members, self.held_out_, situation, known)
        apart = None
        if self.held_out_ is not None:
            apart = weigh_apart(members, self.held_out_, situation, known)
        self._seat(chosen, whole, weights, apart, training, known, roles)
        self.members_ = self._report(chosen, weights, apart, known)
        self.classes_ = roles.classes
        return self

    def _read(self, X: Any, y: ArrayLike, rng: np.random.RandomState) -> tuple[Any, Roles]:
        """Validated rows and roles; unlabelled rows thinned to ``max_unlabeled``."""
        if not isinstance(self.cv, (int, np.integer)) or self.cv < 0 or self.cv == 1:
            raise ValueError(f"cv must be 0 or at least 2 folds; got {self.cv!r}.")
        X = self._validated(X, ensure_min_samples=2)
        most = 0 if sparse.issparse(X) else X.shape[1] - 1
        if not 0 <= self.n_tree_columns <= most:
            raise ValueError(
                f"n_tree_columns must leave a column to the other members; got "
                f"{self.n_tree_columns!r} of {X.shape[1]} columns (0 for sparse X)."
            )
        roles = read_roles(y, **label_codes(self))
        check_consistent_length(X, roles.codes)
        if sparse.issparse(X) and not np.isfinite(X.data).all():
            raise ValueError("Input X contains NaN: missing values are for dense tables only.")
        choose_risk("auto", roles)  # raises where only one role has rows
        self._roles = roles
        if self.max_unlabeled is not None and roles.n_unlabeled > self.max_unlabeled:
            drawn = rng.choice(roles.unlabeled, self.max_unlabeled, replace=False)
            kept = np.sort(np.concatenate([roles.positive, roles.negative, drawn]))
            X = X[kept]
            roles = Roles(roles.codes[kept], roles.positive_label, roles.negative_label)
        return X, roles

    def _chosen(self, situation: Situation) -> list[tuple[Member, str]]:
        names = list(MEMBERS) if self.members is None else list(self.members)
        unknown = sorted(set(names) - set(MEMBERS))
        if unknown:
            raise ValueError(
                f"There is no member {unknown[0]!r}; choose from {', '.join(MEMBERS)}."
            )
        asked = [(MEMBERS[name], MEMBERS[name].why(situation)) for name in MEMBERS if name in names]
        chosen = [(member, why) for member, why in asked if why is not None]
        if not chosen:
            raise ValueError(f"None of the members {', '.join(names)} suits this table.")
        return chosen

    def _training(
        self,
        X: Any,
        roles: Roles,
        rng: np.random.RandomState,
        elsewhere: RowsElsewhere | None,
    ) -> tuple[Training, ClassPrior | None]:
        seed = int(rng.randint(2**31 - 1))
        some = some_rows(np.arange(X.shape[0]), _VIEW_ROWS, rng)
        view = fit_view(X[some], rng, self.n_tree_columns)
        if elsewhere is not None and isinstance(view, DenseView):
            labelled = np.concatenate([roles.positive, roles.negative])
            view = view.turned(X[labelled], elsewhere, self.cv or _FOLDS)
        look = Look(X, view)
        _check_variation(look)
        rows = {role: index for role, index in roles.by_letter.items() if len(index)}
        folds = deal_folds(rows, self.cv or _FOLDS, X, random_state=rng)
        if elsewhere is not None:
            folds = folds.refolded("U", roles.unlabeled, elsewhere.drawn_folds(folds.n_folds))
        known, _ = training_prior(
            self.prior,
            look.raw if view.is_sparse else look.squashed,
            roles,
            needed="U" in rows,
            random_state=seed,
        )
        self.class_prior_ = known
        self.prior_ = None if known is None else known.training_value
        threads = effective_n_jobs(self.n_jobs)
        training = Training(look, folds, self.prior_, seed, threads, elsewhere=elsewhere)
        return training, known

    def _seat(
        self,
        chosen: list[tuple[Member, str]],
        whole: list[tuple[Part, ...]],
        weights: Floats,
        apart: Floats | None,
        training: Training,
        known: ClassPrior | None,
        roles: Roles,
    ) -> None:
        """The committee, its quantiles over unlabelled rows, its calibration and threshold."""
        rows = roles.unlabeled if roles.n_unlabeled else np.arange(len(roles))
        rng = check_random_state(training.seed)
        look = training.look.take(some_rows(rows, _SPREAD_ROWS, rng))
        seats, total = seated([member for member, _ in chosen], whole, weights, look)
        quantiles = np.quantile(total, np.linspace(0.0, 1.0, _N_QUANTILES))
        share = roles.n_positive / max(roles.n_positive + roles.n_negative, 1)
        self.scorer_ = Committee(training.look.view, tuple(seats), quantiles)
        if self.held_out_ is not None and apart is not None:
            held = zip("PN", self.held_out_.places(apart), strict=True)
            (positive, ones), (negative, zeros) = (
                _with_copies(self.scorer_, training, role, places) for role, places in held
            )
            rarer = min(n for n in (roles.n_positive, roles.n_negative) if n)
            belief = known or ClassPrior.known(share)
            calibration = calibrate(positive, negative, belief, rarer, (ones, zeros))
            self.scorer_ = replace(self.scorer_, calibration=calibration)
        if self.prior_ is None and self.scorer_.calibration is not None:
            self.threshold_ = _even_chance(self.scorer_)
        else:
            level = share if self.prior_ is None else self.prior_
            self.threshold_ = float(np.quantile(total, 1.0 - min(max(level, 0.0), 1.0)))
        self.intercept_ = -self.threshold_
        self._typical = _typical(look)

    def _report(
        self,
        chosen: list[tuple[Member, str]],
        weights: Floats,
        apart: Floats | None,
        known: ClassPrior | None,
    ) -> list[MemberReport]:
        found: list[dict[str, float]] = [{} for _ in chosen]
        if self.held_out_ is not None and apart is not None:
            whole = self.held_out_.auc(apart, known)[0]
            worth = (_worth(self.held_out_, apart, i, known) for i in range(len(chosen)))
            found = [{**own, "auc_with": whole} for own in worth]
        return [
            MemberReport(member.name, why, float(weight), **own)
            for (member, why), weight, own in zip(chosen, weights, found, strict=True)
        ]

    # -- answering ---------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Score minus ``threshold_``, shape (n,): higher means more likely positive."""
        rows = self._rows(X)
        return self.scorer_.score(rows) - self.threshold_

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels: positive above the score that a share ``prior_`` of U exceeds.

        Without unlabelled rows: positive where that is more likely than not.
        """
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def predict_proba(self, X: Any) -> Floats:
        """P(negative), P(positive) of a row drawn from U that has this score, shape (n, 2).

        Calibrated on held-out labelled rows to the prior; never falls as the score grows. Without
        unlabelled rows it refers to rows like the labelled ones.
        """
        rows = self._rows(X)
        positive = self.scorer_.probability(self.scorer_.score(rows))
        return np.column_stack([1.0 - positive, positive])

    def predict_proba_interval(self, X: Any, level: float = 0.9) -> Floats:
        """Limits of P(positive), shape (n, 2): few labels and an unsure prior leave it open."""
        rows = self._rows(X)
        if self.scorer_.calibration is None:
            raise AttributeError("There are no probabilities without held-out rows (cv=0).")
        places = self.scorer_.places(self.scorer_.score(rows))
        return np.column_stack(self.scorer_.calibration.interval(places, level))

    def top_positives(
        self, k: int | Sequence[int] = (20, 100, 500), level: float = 0.9
    ) -> list[TopPositives]:
        """Positives to expect among the k unlabelled rows of highest score, with an interval."""
        check_is_fitted(self)
        if self.scorer_.calibration is None:
            raise AttributeError("There are no probabilities without held-out rows (cv=0).")
        n = self._roles.n_unlabeled or len(self._roles)
        wanted = [k] if isinstance(k, (int, np.integer)) else list(k)
        return [self.scorer_.calibration.top(int(each), n, level) for each in wanted]

    def reasons(
        self, X: Any, n_reasons: int = 3, groups: Mapping[str, Sequence[int]] | None = None
    ) -> list[list[Reason]]:
        """For each row the columns that move its score most.

        The effect of a column is what the score loses when its value is replaced by the typical
        one (the median; in sparse rows 0).

        Parameters
        ----------
        X : rows
        n_reasons : at most so many for a row
        groups : dict of name -> columns that are replaced together; default every column by itself
        """
        rows = self._rows(X)
        names = getattr(self, "feature_names_in_", None)
        return find_reasons(self.scorer_.score, rows, self._typical, n_reasons, groups, names)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _validated(self, X: Any, **more: Any) -> Any:
        kinds = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
        return validate_data(self, X, accept_sparse="csr", **kinds, **more)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _with_copies(
    committee: Committee, training: Training, role: str, held_out: Floats
) -> tuple[Floats, Floats]:
    """Places of a role's labelled rows, and how much each counts, shapes (n + m,).

    Of g identical rows, held out together, one tells where a row goes that is like none seen. The
    others tell where it goes when g - 1 like it are labelled, as such rows of U do: where the whole
    committee has them. So each of the m rows with copies counts 1/g there and (g - 1)/g here.
    """
    folds = training.folds.rows.get(role, [])
    copies = copies_held_out(training.look.raw, folds)
    again = copies > 1
    seen = np.empty(0)
    if again.any():
        rows = np.concatenate(folds)[again]
        seen = committee.places(committee.score(training.look.raw[rows]))
    share = 1.0 / copies
    return np.concatenate([held_out, seen]), np.concatenate([share, 1.0 - share[again]])


def _even_chance(committee: Committee) -> float:
    """The largest score whose probability is at most one half, to the last bit."""
    low, high = float(committee.quantiles[0]), float(committee.quantiles[-1])
    if committee.probability(np.array([low]))[0] > 0.5:
        return float(np.nextafter(low, -np.inf))
    if committee.probability(np.array([high]))[0] <= 0.5:
        return high
    while low < (middle := (low + high) / 2) < high:
        even = committee.probability(np.array([middle]))[0] <= 0.5
        low, high = (middle, high) if even else (low, middle)
    return low


def _check_variation(look: Look) -> None:
    if look.view.is_sparse:
        varies = look.raw.nnz > 0 and look.raw.shape[0] > 1
    else:
        view = look.view
        varies = bool((view.span != 1.0).any() or (view.deviation != 1.0).any() or len(view.holes))
    if not varies:
        raise ValueError(ALL_EQUAL)


def _typical(look: Look) -> Floats | None:
    if look.view.is_sparse:
        return None
    rows = np.asarray(look.raw[:5000], dtype=np.float64)
    empty = np.isnan(rows).all(axis=0)
    return np.asarray(np.nanmedian(np.where(empty, 0.0, rows), axis=0))


def _worth(
    held_out: HeldOut, weights: Floats, i: int, known: ClassPrior | None
) -> dict[str, float]:
    alone, rest = np.zeros_like(weights), weights.copy()
    alone[:, i], rest[:, i] = 1.0, 0.0
    value, error = held_out.auc(alone, known)
    return {
        "auc": value,
        "auc_error": error,
        "auc_without": held_out.auc(rest, known)[0] if rest.any() else 0.5,
    }
