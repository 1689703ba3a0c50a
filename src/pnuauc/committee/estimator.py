"""AutoAUCClassifier: the members that suit the table, their scores summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from pnuauc._utils.arrays import ALL_EQUAL, Floats, Indices
from pnuauc._utils.progress import progress_bar
from pnuauc._utils.threads import one_thread_for_few
from pnuauc.committee.held_out import cross_scores, weigh, weigh_apart
from pnuauc.committee.members import MEMBERS, Member, Parts, Situation, Training, fit_rivals
from pnuauc.committee.models import Committee, Seat, score_parts
from pnuauc.committee.own import Own
from pnuauc.committee.reasons import Reason, find_reasons, name_words
from pnuauc.committee.views import DenseView, Look, fit_view
from pnuauc.core.risks import check_prior
from pnuauc.core.rows import RowsElsewhere, group_numbers
from pnuauc.estimators import AUCScoreMixin, check_parameters, choose_risk, label_codes
from pnuauc.evaluation.heldout import Difference
from pnuauc.io.encode import TableEncoder
from pnuauc.io.frames import as_table, needs_encoding
from pnuauc.labels import Roles, read_roles
from pnuauc.prior import TRAINING_BOUNDS, ClassPrior
from pnuauc.priors.base import read_belief
from pnuauc.priors.resolve import resolve_prior
from pnuauc.selection import deal_folds
from pnuauc.tuning import COMMITTEE

__all__ = [
    "AutoAUCClassifier",
    "MemberReport",
    "RivalReport",
    "TopPositives",
]

#: Rows from which the views and the spread of scores are taken; more would change nothing.
_VIEW_ROWS, _SPREAD_ROWS = 100_000, 20_000
_N_QUANTILES = 2001
_FOLDS = 5


@dataclass(frozen=True)
class TopPositives:
    """Positives among the ``k`` unlabelled rows of highest score.

    expected : float; low, high : int, limits of the shortest interval of probability ``level``.
    """

    k: int
    expected: float
    low: int
    high: int
    level: float


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


@dataclass(frozen=True)
class RivalReport:
    """What one would do instead: its AUC, and how far this model is ahead on the same rows.

    name : "paper", "labeled_only" (this model without unlabelled rows), "extra_trees" or, where
    all members are the user's, "default" (the members of ``members=None``)
    auc : float; difference : Difference
    """

    name: str
    auc: float
    difference: Difference


def some_rows(rows: Indices, at_most: int, rng: np.random.RandomState) -> Indices:
    """All rows, or a draw of them in their order."""
    if len(rows) <= at_most:
        return rows
    return np.sort(rng.choice(rows, at_most, replace=False))


def fit_members(
    members: Sequence[Member],
    training: Training,
    cv: int,
    tick: Callable[[str, float], None] = lambda name, share: None,
) -> tuple[list[Parts], list[list[Parts]]]:
    """Parts of every member, and with ``cv`` its parts without each fold."""
    whole: list[Parts] = []
    folds: list[list[Parts]] = []
    for i, member in enumerate(members):
        tick(member.name, i / len(members))
        if cv:
            parts, without = member.fit_both(training)
            folds.append(without)
        else:
            parts = member.fit(training)
        whole.append(parts)
    return whole, folds


@dataclass(eq=False, repr=False)
class AutoAUCClassifier(AUCScoreMixin, BaseEstimator):
    """A ranking for any table: several kinds of model, chosen by what there is, summed.

    score(x) = sum_m weight_m (score_m(x) - mean_m) / spread_m, mean and spread over unlabelled
    rows. Which members take part depends on the roles that have rows, on their numbers and on
    whether X is sparse; ``members_`` names them and says why. With few labels the weights are fixed
    numbers, chosen once on other data sets; from ten of either class on they lean towards members
    that do better on held-out rows, and with hundreds of labels they are learned from these.

    Labels: 1 positive, 0 negative, -1 or missing unlabelled; see :func:`pnuauc.labels.read_roles`
    for other codings. Dense X may hold NaN. A frame with columns other than numbers is encoded by
    :class:`pnuauc.io.encode.TableEncoder`, text by its words.

    Parameters
    ----------
    prior : float, (low, high), ClassPrior or prior estimator, optional
        Share of positives *among the unlabelled rows*. None: it is estimated with everything else
        (``class_prior_``); the risks are then trained with the mean of the belief.
    belief : (low, high) or Beta, optional
        What is known of that share beforehand; None: Beta(1, 6).
    sampling : "random", optional
        Says that the labelled rows were drawn at random: their share of positives is then evidence.
    members : sequence, optional
        Names from ``pnuauc.committee.MEMBERS`` to choose from, scikit-learn classifiers of your
        own or pairs (name, classifier); ``...`` stands for all of ours: ``[..., my_model]``. None:
        all of ours. A classifier is fitted to the labelled rows (to positives against unlabelled
        rows where no negative is labelled) and its weight rests on held-out rows.
    rivals : bool, default=False
        Whether ``rivals_`` compares with what one would do instead, on the same folds.
    cv : int, default=5
        Folds of the held-out scores behind ``predict_proba``, learned weights and the AUCs in
        ``members_``. 0 leaves these out and saves half of the time.
    n_tree_columns : int, default=0
        The last columns of a dense X, which trees and boosting read in place of the others: a
        second encoding of the same table, such as category codes and missing cells as they are. 0:
        all members read all columns.
    n_latent_columns : int, default=0
        Columns before those that are components of text and vectors, of length 1 together:
        members of their own read them.
    max_unlabeled : int, optional
        Largest number of unlabelled rows to use, drawn at random; None: all.
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
        Share of positives among the unlabelled rows, given or estimated; None without such rows.
    prior_ : float or None
        Its value.
    posterior_ : Posterior or None
        What every stated number is read from; None with ``cv=0``.
    auc_ : Expected or None
        AUC of this model with its 95% interval.
    rivals_ : list of RivalReport
    held_out_ : HeldOut or None
        Scores of rows by models that did not see them, one column a member, then the rivals.
    fold_weights_ : ndarray, shape (n_folds, n_columns), or None
        Weights of these columns that a fold's rows had no part in.
    scorer_ : Committee
    threshold_ : float
        Subtracted from scores.
    encoder_ : TableEncoder or None
        How a frame with text, categories, dates or vectors becomes numbers; None: X is numbers.
    learned_weights_ : bool
        Whether held-out rows had a say in the weights.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_tree_columns": [Interval(Integral, 0, None, closed="left")],
        "n_latent_columns": [Interval(Integral, 0, None, closed="left")],
        "max_unlabeled": [None, Interval(Integral, 2, None, closed="left")],
        "n_jobs": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
        ],
        "verbose": [None, "boolean"],
        "random_state": ["random_state"],
        "sampling": [None, StrOptions({"random"})],
        "rivals": ["boolean"],
    }

    prior: Any = None
    members: Sequence[Any] | None = None
    cv: int = _FOLDS
    n_tree_columns: int = 0
    n_latent_columns: int = 0
    max_unlabeled: int | None = None
    positive_label: Any = None
    negative_label: Any = None
    unlabeled_label: Any = None
    n_jobs: int | None = None
    verbose: bool | None = None
    random_state: Any = None
    belief: Any = None
    sampling: str | None = None
    rivals: bool = False

    # -- fitting -----------------------------------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike, groups: Any = None, sample_weight: Any = None
    ) -> AutoAUCClassifier:
        """Fit the ranking and everything that is said of it.

        Parameters
        ----------
        X : array-like or CSR matrix, shape (n, d); NaN allowed where dense
        y : array-like, shape (n,)
        groups : array-like, shape (n,), optional
            Rows of one group (customer, patient) never stand on both sides of a split, and count
            for less than as many independent rows, the more alike their held-out scores are.
        sample_weight : array-like, shape (n,), optional
            1 / odds of having been labelled; for labelled rows that were picked by known odds.
            What is stated rests on them; the members are trained without.
        """
        return self._fit_with(X, y, None, groups, sample_weight)

    def _fit_with(
        self,
        X: Any,
        y: Any,
        elsewhere: RowsElsewhere | None,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> AutoAUCClassifier:
        """As :meth:`fit`; with ``elsewhere`` the unlabelled rows of X are a draw of those there."""
        rng = check_random_state(self.random_state)
        X, roles, groups, weights = self._read(X, y, groups, sample_weight, rng)
        with one_thread_for_few(len(roles)):
            return self._fit_rows(X, roles, groups, weights, rng, elsewhere)

    def _fit_rows(
        self,
        X: Any,
        roles: Roles,
        groups: Indices | None,
        sample_weight: Floats | None,
        rng: np.random.RandomState,
        elsewhere: RowsElsewhere | None,
    ) -> AutoAUCClassifier:
        situation = Situation.of(X, roles, self._layout[1])
        chosen = self._chosen(situation)
        if not self.cv and not situation.many:  # no held-out rows to try a member on
            chosen = [(m, why) for m, why in chosen if not m.on_trial]
        given, training = self._training(X, roles, groups, rng, elsewhere)
        members = [member for member, _ in chosen]
        with progress_bar("AutoAUCClassifier", self.verbose) as tick:
            whole, folds = fit_members(members, training, self.cv, tick)
            others = fit_rivals(training) if self.rivals and self.cv else {}
            ours = self._default(members, situation) if others else []
            default = fit_members(ours, training, self.cv)[1]
        self.held_out_, apart = None, None
        if self.cv:
            columns = [*folds, *others.values(), *default]
            self.held_out_ = cross_scores(training, columns, groups=groups, weights=sample_weight)
        weights, self.learned_weights_ = weigh(members, self.held_out_, situation)
        rivals: dict[str, Floats] = {}
        if self.held_out_ is not None:
            apart = weigh_apart(members, self.held_out_, situation)
            apart = np.pad(apart, ((0, 0), (0, len(others) + len(default))))
            if ours:
                first = slice(len(folds) + len(others), None)
                rivals["default"] = np.zeros_like(apart)
                rivals["default"][:, first] = weigh_apart(
                    ours, self.held_out_.columns(first), situation
                )
            rivals |= _rival_weights(members, list(others), apart)
        self.fold_weights_ = apart
        self._seat(members, whole, weights, training, roles)
        self._state(apart, given, roles, training.seed)
        self._report(chosen, weights, apart, rivals)
        self.classes_ = roles.classes
        return self

    def _read(
        self, X: Any, y: ArrayLike, groups: Any, sample_weight: Any, rng: np.random.RandomState
    ) -> tuple[Any, Roles, Indices | None, Floats | None]:
        """Validated rows, roles, groups and weights; U thinned to ``max_unlabeled``."""
        check_parameters(self)
        if not isinstance(self.cv, (int, np.integer)) or self.cv < 0 or self.cv == 1:
            given = repr(self.cv) if np.isscalar(self.cv) else f"a {type(self.cv).__name__}"
            raise ValueError(
                f"cv must be 0 or at least 2 folds; got {given}. The committee deals every role "
                "out itself; pnuauc.cross_fit_auc judges it by other splits."
            )
        self.encoder_ = TableEncoder().fit(X) if needs_encoding(X) else None
        X = self._validated(X, ensure_min_samples=2)
        n_own, n_latent = self.n_tree_columns, self.n_latent_columns
        if self.encoder_ is not None:
            n_own, n_latent = self.encoder_.layout(self.encoder_.views).values()
        self._layout = n_own, n_latent
        most = 0 if sparse.issparse(X) else X.shape[1] - 1
        if not 0 <= n_own <= most:
            raise ValueError(
                f"n_tree_columns must leave a column to the other members; got "
                f"{n_own!r} of {X.shape[1]} columns (0 for sparse X)."
            )
        if not 0 <= n_latent <= (0 if sparse.issparse(X) else X.shape[1] - n_own):
            raise ValueError(f"X has no {n_latent!r} columns of components.")
        roles = y if isinstance(y, Roles) else read_roles(y, **label_codes(self))
        check_consistent_length(X, roles.codes, groups, sample_weight)
        if roles.n_unlabeled == 1:
            raise ValueError(
                "One unlabelled row is too few to learn from: label it or leave it out."
            )
        if sparse.issparse(X) and not np.isfinite(X.data).all():
            raise ValueError("Input X contains NaN: missing values are for dense tables only.")
        choose_risk("auto", roles)  # raises where only one role has rows
        self._roles = roles
        if groups is not None:
            groups = group_numbers(groups)
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, dtype=np.float64)
            known = sample_weight[roles.codes >= 0]
            if not (np.isfinite(known).all() and (known >= 0).all()):
                raise ValueError("sample_weight must be finite and not negative for labelled rows.")
            for code in (1, 0):
                own = sample_weight[roles.codes == code]
                if len(own) and not own.any():
                    raise ValueError("sample_weight is zero for all labelled rows of a class.")
        if self.max_unlabeled is not None and roles.n_unlabeled > self.max_unlabeled:
            drawn = rng.choice(roles.unlabeled, self.max_unlabeled, replace=False)
            kept = np.sort(np.concatenate([roles.positive, roles.negative, drawn]))
            X, roles = X[kept], roles.take(kept)
            groups = None if groups is None else groups[kept]
            sample_weight = None if sample_weight is None else sample_weight[kept]
        return X, roles, groups, sample_weight

    def _chosen(self, situation: Situation) -> list[tuple[Member, str]]:
        if isinstance(self.members, str):
            raise ValueError(f"members must be a list of names, such as [{self.members!r}].")
        asked: dict[str, Any] = {}
        for item in MEMBERS if self.members is None else self.members:
            if item is ...:
                asked |= MEMBERS
            elif isinstance(item, str):
                if item not in MEMBERS:
                    raise ValueError(
                        f"There is no member {item!r}; choose from {', '.join(MEMBERS)}."
                    )
                asked[item] = MEMBERS[item]
            else:
                name, own = item if isinstance(item, tuple) else (type(item).__name__, item)
                while name in asked:
                    name += "'"
                asked[name] = Own(name, estimator=own, on_trial=self.cv > 0)
        names = [*(n for n in MEMBERS if n in asked), *(n for n in asked if n not in MEMBERS)]
        found = [(asked[name], asked[name].why(situation)) for name in names]
        chosen = [(member, why) for member, why in found if why is not None]
        if not chosen:
            raise ValueError(f"None of the members {', '.join(names)} suits this table.")
        return chosen

    def _default(self, members: Sequence[Member], situation: Situation) -> list[Member]:
        """What would be fitted without ``members``, to compare with, where all are the user's."""
        if not all(isinstance(member, Own) for member in members):
            return []
        return [member for member, _ in clone(self).set_params(members=None)._chosen(situation)]

    def _training(
        self,
        X: Any,
        roles: Roles,
        groups: Indices | None,
        rng: np.random.RandomState,
        elsewhere: RowsElsewhere | None,
    ) -> tuple[ClassPrior | None, Training]:
        """The prior as far as it is given, and rows by role and fold with one to train with."""
        seed = int(rng.randint(2**31 - 1))
        some = some_rows(np.arange(X.shape[0]), _VIEW_ROWS, rng)
        view = fit_view(X[some], rng, *self._layout)
        if elsewhere is not None and isinstance(view, DenseView):
            labelled = np.concatenate([roles.positive, roles.negative])
            view = view.turned(X[labelled], elsewhere, self.cv or _FOLDS)
        look = Look(X, view)
        _check_variation(look)
        rows = {role: index for role, index in roles.by_letter.items() if len(index)}
        folds = deal_folds(rows, self.cv or _FOLDS, X, random_state=rng, groups=groups)
        if elsewhere is not None:
            folds = folds.refolded("U", roles.unlabeled, elsewhere.drawn_folds(folds.n_folds))
        given, value = None, None
        if "U" in rows:
            belief = read_belief(self.belief)
            value = COMMITTEE.training_prior.value if self.belief is None else belief.mean
            if self.prior is not None and not (
                isinstance(self.prior, str) and self.prior == "auto"
            ):
                given, _ = resolve_prior(self.prior, look.for_prior, roles, random_state=seed)
                if given.std_error == 0:
                    check_prior(given.value)
                value = given.training_value
            value = min(max(value, TRAINING_BOUNDS[0]), TRAINING_BOUNDS[1])
        threads = effective_n_jobs(self.n_jobs)
        return given, Training(look, folds, value, seed, threads, elsewhere=elsewhere)

    def _seat(
        self,
        members: Sequence[Member],
        whole: list[Parts],
        weights: Floats,
        training: Training,
        roles: Roles,
    ) -> None:
        """The committee: mean and spread of every member, quantiles of the sum, over U."""
        rows = roles.unlabeled if roles.n_unlabeled else np.arange(len(roles))
        rng = check_random_state(training.seed)
        look = training.look.take(some_rows(rows, _SPREAD_ROWS, rng))
        seats, total = [], np.zeros(len(look))
        for member, parts, weight in zip(members, whole, weights, strict=True):
            scores = score_parts(parts, look)
            mean, spread = float(scores.mean()), float(scores.std()) or 1.0
            seats.append(Seat(member.name, parts, float(weight), mean, spread))
            total += seats[-1].standardised(scores)
        quantiles = np.quantile(total, np.linspace(0.0, 1.0, _N_QUANTILES))
        self.scorer_ = Committee(training.look.view, tuple(seats), quantiles)
        # of all rows that scores are placed among, where all were scored
        whole_u = len(look) == len(rows) and np.isfinite(total).all()
        self._placed = total if whole_u else None
        self._typical = _typical(look)

    def _state(
        self, apart: Floats | None, given: ClassPrior | None, roles: Roles, seed: int
    ) -> None:
        """Posterior, prior, AUC and threshold, from the held-out places."""
        share = roles.n_positive / max(roles.n_positive + roles.n_negative, 1)
        known = given if roles.n_unlabeled else ClassPrior.known(share)
        self.posterior_, self.auc_, self.class_prior_ = None, None, given
        if self.held_out_ is not None and apart is not None:
            belief = read_belief(self.belief)
            # as it is stored: what is stated and what a model file says are the same numbers
            self.posterior_ = self.held_out_.posterior(
                apart,
                known,
                (belief.a, belief.b),
                n_unlabeled=roles.n_unlabeled,
                random_labels=self.sampling == "random",
                seed=seed % 2**16,
            ).thinned()
            self.auc_ = self.posterior_.auc()
            self.scorer_ = replace(self.scorer_, posterior=self.posterior_)
            if roles.n_unlabeled and (given is None or given.std_error > 0):
                self.class_prior_ = self.posterior_.class_prior()
        self.prior_ = None if self.class_prior_ is None else self.class_prior_.value
        if self.prior_ is None and self.posterior_ is not None:
            self.threshold_ = _even_chance(self.scorer_)
        else:
            level = share if self.prior_ is None else self.prior_
            places = np.linspace(0.0, 1.0, _N_QUANTILES)
            self.threshold_ = float(np.interp(1.0 - level, places, self.scorer_.quantiles))
        self.intercept_ = -self.threshold_

    def _report(
        self,
        chosen: list[tuple[Member, str]],
        weights: Floats,
        apart: Floats | None,
        rivals: Mapping[str, Floats],
    ) -> None:
        """Members and rivals: the AUC of this model less a paired difference on the same rows."""
        self.rivals_: list[RivalReport] = []
        self.members_ = [
            MemberReport(member.name, why, float(weight))
            for (member, why), weight in zip(chosen, weights, strict=True)
        ]
        auc = self.auc_
        if self.held_out_ is None or apart is None or auc is None:
            return
        held_out = self.held_out_.of_labeled()
        ours = held_out.places(apart)
        if held_out.auc(ours, self.prior_) < auc.low:
            return  # worse than chance by chance: differences from that would be no AUCs

        def against(columns: Floats) -> tuple[float, Difference]:
            found = held_out.difference(ours, held_out.places(columns), self.prior_)
            return float(np.clip(auc.value - found.value, 0.0, 1.0)), found

        for i, member in enumerate(self.members_):
            alone, rest = np.zeros_like(apart), apart.copy()
            alone[:, i], rest[:, i] = 1.0, 0.0
            value, found = against(alone)
            without = against(rest)[0] if rest.any() else 0.5
            self.members_[i] = replace(
                member,
                auc=value,
                auc_error=found.std_error,
                auc_with=auc.value,
                auc_without=without,
            )
        self.rivals_ = [RivalReport(name, *against(own)) for name, own in rivals.items()]

    # -- answering ---------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Score minus ``threshold_``, shape (n,): higher means more likely positive."""
        rows = self._rows(X)
        return self.scorer_.score(rows) - self.threshold_

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels: positive above the score that a share ``prior_`` of U exceeds.

        Without unlabelled rows: positive where that is more likely than not.
        """
        return super().predict(X)

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
        if self.scorer_.posterior is None:
            raise AttributeError("There are no probabilities without held-out rows (cv=0).")
        places = self.scorer_.places(self.scorer_.score(rows))
        return self.scorer_.posterior.probability_interval(places, level)

    def top_positives(
        self, k: int | Sequence[int] = (20, 100, 500), level: float = 0.9
    ) -> list[TopPositives]:
        """Positives to expect among the k unlabelled rows of highest score, with an interval."""
        check_is_fitted(self)
        if self.scorer_.posterior is None:
            raise AttributeError("There are no probabilities without held-out rows (cv=0).")
        n = self._roles.n_unlabeled or len(self._roles)
        wanted = [k] if isinstance(k, (int, np.integer)) else list(k)
        found = []
        for each in map(int, wanted):
            count = self.scorer_.posterior.top(min(each, n), n, level)
            found.append(TopPositives(each, count.value, int(count.low), int(count.high), level))
        return found

    def reasons(
        self, X: Any, n_reasons: int = 3, groups: Mapping[str, Sequence[int]] | None = None
    ) -> list[list[Reason]]:
        """For each row the columns that move its score most.

        The effect of a column is what the score loses when its value is replaced by the typical
        one (the median; in sparse rows 0).

        Parameters
        ----------
        X : rows
        n_reasons : largest number for a row
        groups : dict of name -> columns that are replaced together; default every column by itself
        """
        rows = self._rows(X)
        names = getattr(self, "feature_names_in_", None)
        if self.encoder_ is not None and groups is None:
            groups = self.encoder_.groups(*self.encoder_.views)
        score = self.scorer_.score
        found = find_reasons(score, rows, self._typical, n_reasons, groups, names)
        if self.encoder_ is None:
            return found
        return name_words(found, score, rows, as_table(X), self.encoder_, self.encoder_.views)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _validated(self, X: Any, **more: Any) -> Any:
        if self.encoder_ is not None:  # a table with more than numbers: columns by name
            validate_data(self, X, skip_check_array=True, reset=more.get("reset", True))
            return self.encoder_.views_of(X, self.encoder_.views)
        kinds = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
        return validate_data(self, X, accept_sparse="csr", **kinds, **more)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _rival_weights(
    members: Sequence[Member], others: Sequence[str], apart: Floats
) -> dict[str, Floats]:
    """Name -> weights of the columns, those of the members first; shape of ``apart``."""
    names, found = [member.name for member in members], {}
    for j, name in enumerate(others, start=len(members)):
        columns = np.zeros_like(apart)
        columns[:, j] = 1.0
        if name == "labeled_only":  # the same committee, its kernels without unlabelled rows
            kernels = next((i for i in ("kernels", "text_kernels") if i in names), None)
            if kernels is None:
                continue
            i = names.index(kernels)
            columns[:, : len(members)] = apart[:, : len(members)]
            columns[:, j], columns[:, i] = apart[:, i], 0.0
        found[name] = columns
    return found


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
        varies = varies or view.n_latent > 0
    if not varies:
        raise ValueError(ALL_EQUAL)


def _typical(look: Look) -> Floats | None:
    if look.view.is_sparse:
        return None
    rows = np.asarray(look.raw[:5000], dtype=np.float64)
    empty = np.isnan(rows).all(axis=0)
    return np.asarray(np.nanmedian(np.where(empty, 0.0, rows), axis=0))
