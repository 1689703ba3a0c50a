"""Splitters, held-out scores and scorers for scikit-learn, from partly labelled rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.metadata_routing import MetadataRequest

from pnuauc._utils.arrays import Floats, Indices
from pnuauc._utils.label_values import label_codes
from pnuauc.core.ranks import ScoreCounts, check_scores
from pnuauc.core.rows import group_numbers, grouped_folds
from pnuauc.evaluation.conditional import known_prior
from pnuauc.evaluation.estimate import AUCEstimate, auc_estimate, check_method, unbiased_auc
from pnuauc.evaluation.heldout import cross_fit, raw_scores
from pnuauc.labels import ROLES, Roles, read_roles
from pnuauc.prior import ClassPrior

Split = tuple[Indices, Indices]


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

    #: Metadata routing passes groups on to ``split`` without being asked.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

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
        groups = group_numbers(groups)
        check_consistent_length(groups, roles.codes)
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
        codes = roles.codes
        for sides in super().split(np.zeros(len(roles)), codes):
            # scikit-learn may round a small role out of one side; one row of it is moved there
            both = list(sides)
            for role in np.unique(codes):
                for few, many in ((1, 0), (0, 1)):
                    if not np.any(codes[both[few]] == role):
                        moved = both[many][codes[both[many]] == role][:1]
                        both[many] = np.setdiff1d(both[many], moved)
                        both[few] = np.append(both[few], moved)
            yield both[0], both[1]


def held_out_scores(estimator: Any, X: Any, y: Any, cv: Any = 5, *, groups: Any = None) -> Floats:
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
    cv : int, splitter, or list of (train, test) row numbers
        A number makes as many folds, with each role spread over all of them. Scores of different
        folds come from different fits. Every row must be in one test set; for splits that leave
        rows out, such as ``TimeSeriesSplit``, see :func:`cross_fit_auc`.
    groups : array-like, shape (n,), optional
        Rows of one group are scored together.

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
    scores = np.full(len(y), np.nan)
    for train, test in _splits(cv, X, y, groups):
        fitted = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train))
        scores[test] = raw_scores(fitted, _safe_indexing(X, test))
    if np.isnan(scores).any():
        raise ValueError(
            f"cv holds {int(np.isnan(scores).sum()):,} of {len(scores):,} rows out of every test "
            "set, so they have no held-out score; use a splitter that tests every row, such as "
            "RoleStratifiedKFold, or cross_fit_auc."
        )
    return scores


def cross_fit_auc(
    model: Any,
    X: Any,
    y: Any,
    *,
    prior: Any = None,
    groups: Any = None,
    cv: Any = 5,
    level: float = 0.95,
    **label_codes: Any,
) -> AUCEstimate:
    """AUC of any model, from rows that its refits did not see, with an interval for that.

    Scores are placed among those of the unlabelled rows (without any, of all rows), each fold on
    its own scale, so that folds do not blur the AUC. The variance allows for refits, which share
    rows (by a factor of 1 + K / (K - 1) for K folds), and for ``groups``.

    Parameters
    ----------
    model : any estimator with ``fit`` and ``decision_function`` or ``predict_proba``; is cloned
    X : table or array, shape (n, d)
    y : array-like, shape (n,), passed on to the model as it is
    prior : float, (low, high), or object with ``prior_``, optional
        Share of positives inside the unlabelled rows.
    groups : array-like, shape (n,), optional
        Rows of one group stand on one side of every split and count for fewer.
    cv : int, splitter, or list of (train, test) row numbers
        Also one that tests later rows only (``TimeSeriesSplit``); every training part needs rows
        of every labelled class.

    Returns
    -------
    AUCEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from pnuauc import AUCClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0, -1], [20, 20, 60])
    >>> X = rng.normal(size=(100, 2)) + 2 * (y == 1)[:, None]
    >>> found = cross_fit_auc(AUCClassifier(prior=0.3), X, y, cv=4)
    >>> found.method, found.low < found.value < found.high
    ('pn', True)
    """
    roles = read_roles(y, **label_codes)
    splits = _splits(cv, X, y, groups, **label_codes)
    rows = np.concatenate([test for _, test in splits])
    if len(np.unique(rows)) < len(rows):
        raise ValueError("The test sets of cv overlap; hold every row out at most once.")
    for k, (train, _) in enumerate(splits):
        for role in ROLES[:2]:
            if role.code in roles.codes and role.code not in roles.codes[train]:
                raise ValueError(
                    f"Split {k} of cv has no {role.word} row to train on: every training part "
                    "needs rows of every role that is labelled."
                )
    for k, (_, test) in enumerate(splits):
        _check_scale(k, roles, test)
    held = cross_fit([model], X, roles, splits, y=y)
    return auc_estimate(
        roles.take(rows),
        held.places(np.ones((held.n_folds, 1))),
        prior,
        level=level,
        variance_factor=held.discount,
        groups=None if groups is None else np.asarray(groups)[rows],
    )


#: Unlabelled rows that bring scores of different refits to one scale.
_FEWEST_ON_A_SCALE = 5


def _check_scale(k: int, roles: Roles, test: Indices) -> None:
    """What is held out can be placed among other rows that are."""
    p, n, u = roles.take(test).counts
    if (p or n) and not (p and n) and u < _FEWEST_ON_A_SCALE:
        raise ValueError(
            f"Split {k} of cv holds out {p} positive, {n} negative and {u} unlabelled rows: its "
            f"scores have a scale of their own, for which at least {_FEWEST_ON_A_SCALE} unlabelled "
            "rows or rows of both classes are needed. Take fewer and larger test sets."
        )


def _splits(cv: Any, X: Any, y: Any, groups: Any, **label_codes: Any) -> list[Split]:
    """(train, test) row numbers of a number of folds, a splitter, or a list of them."""
    if isinstance(cv, int):
        cv = RoleStratifiedKFold(cv, shuffle=True, random_state=0, **label_codes)
    given = () if groups is None else (np.asarray(groups),)
    found = cv if isinstance(cv, (list, tuple)) else cv.split(X, y, *given)
    return [(np.asarray(train), np.asarray(test)) for train, test in found]


@dataclass(frozen=True)
class AUCScorer:
    """``scorer(estimator, X, y) -> float``, larger is better; made by :func:`make_auc_scorer`."""

    prior: ClassPrior | None
    method: str
    label_codes: dict[str, Any] = field(default_factory=dict)
    request: Any = None

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> float:
        """Weights count the labelled rows; groups raise the error of an AUC, not its value."""
        roles = read_roles(y, unclear="sorted", **self.label_codes)
        check_consistent_length(roles.codes, groups)
        scores = check_scores(raw_scores(estimator, X, roles.positive_label), len(roles))
        counts = ScoreCounts.from_rows(roles, scores, sample_weight)
        return unbiased_auc(counts, self.prior, self.method)

    def set_score_request(self, **asked: bool | str | None) -> AUCScorer:
        """Whether ``sample_weight`` and ``groups`` are passed on: scikit-learn's routing."""
        request = self.get_metadata_routing()
        for name, alias in asked.items():
            if name not in {"sample_weight", "groups"}:
                raise TypeError(f"A scorer takes sample_weight and groups, not {name}.")
            request.score.add_request(param=name, alias=alias)
        return replace(self, request=request)

    def get_metadata_routing(self) -> Any:
        """What of the metadata this scorer asks for."""
        if self.request is not None:
            return copy.deepcopy(self.request)
        empty = MetadataRequest(owner=self)
        empty.score.add_request(param="sample_weight", alias=None)
        empty.score.add_request(param="groups", alias=True)  # they change no value: no need to ask
        return empty


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
