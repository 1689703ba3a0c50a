"""What every estimator of the prior shares, and the Beta distribution believed beforehand."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_consistent_length

from pnuauc._utils.arrays import check_range, read_rows, rows_differ
from pnuauc._utils.extras import warn
from pnuauc.core.rows import group_numbers
from pnuauc.exceptions import InputError, PnuaucWarning, PriorNotIdentifiedError
from pnuauc.labels import Roles, read_roles
from pnuauc.prior import ClassPrior
from pnuauc.tuning import POSTERIOR


def prior_in_unlabeled(
    population_prior: float, n_positive: int, n_negative: int, n_unlabeled: int
) -> float:
    """Share of positives **inside U** when the labelled rows were taken out of one data set.

        prior_in_U = (population_prior n - n_positive) / n_unlabeled,   n = all rows.

    For the one-sample scheme only (rows labelled inside one table; U is what is left). If U was
    collected apart from the labelled rows, its prior is the population's and nothing is to be done.

    Parameters
    ----------
    population_prior : float
        Share of positives among **all** rows.
    n_positive, n_negative, n_unlabeled : int
        Rows in each role.

    Returns
    -------
    float

    Examples
    --------
    >>> prior_in_unlabeled(0.1, n_positive=50, n_negative=0, n_unlabeled=950)
    0.05263157894736842
    """
    _check(population_prior, n_positive, n_negative, n_unlabeled)
    n = n_positive + n_negative + n_unlabeled
    hidden = population_prior * n - n_positive
    margin = 1e-9 * n
    if hidden < -margin or hidden > n_unlabeled + margin:
        low, high = n_positive / n, (n_positive + n_unlabeled) / n
        raise ValueError(
            f"A population prior of {population_prior} is impossible: {n_positive} of {n} rows are "
            f"known positives and {n_negative} known negatives, so it lies between {low:.4g} and "
            f"{high:.4g}. If U was collected apart from the labelled rows, use it as it is."
        )
    return min(max(hidden / n_unlabeled, 0.0), 1.0)


def prior_in_population(
    unlabeled_prior: float, n_positive: int, n_negative: int, n_unlabeled: int
) -> float:
    """Share of positives among **all** rows from the share inside U (one-sample scheme).

        population_prior = (n_positive + unlabeled_prior n_unlabeled) / n,   n = all rows.

    The inverse of :func:`prior_in_unlabeled`; parameters alike.

    Examples
    --------
    >>> round(prior_in_population(0.0526315789, 50, 0, 950), 6)
    0.1
    """
    _check(unlabeled_prior, n_positive, n_negative, n_unlabeled)
    return (n_positive + unlabeled_prior * n_unlabeled) / (n_positive + n_negative + n_unlabeled)


def _check(prior: float, n_positive: int, n_negative: int, n_unlabeled: int) -> None:
    if not 0 <= prior <= 1:
        raise ValueError(f"A prior is a share of rows and must lie in [0, 1], got {prior}.")
    if min(n_positive, n_negative) < 0 or n_unlabeled < 1:
        raise ValueError(
            "Row counts must not be negative and there must be unlabelled rows, got "
            f"n_positive={n_positive}, n_negative={n_negative}, n_unlabeled={n_unlabeled}."
        )


def prior_in_rows(prior: ClassPrior, n_positive: int, n_unlabeled: int) -> dict[str, Any]:
    """What a prior means in rows: positives not found yet, the share found, labels worth having.

    m labels of rows of U drawn at random give the share with variance t (1 - t) / m; a quarter of
    the present variance, which is half of the error, takes 3 t (1 - t) / variance of them.

    Returns
    -------
    dict
        ``positives_unlabeled`` : (value, low, high) rows; ``share_of_positives_known`` : float;
        ``labels_to_halve`` : int, at most ``n_unlabeled``, or None where the value is known.

    Examples
    --------
    >>> prior = ClassPrior(0.1, 0.05, 0.15, std_error=0.03)
    >>> prior_in_rows(prior, n_positive=50, n_unlabeled=1000)["labels_to_halve"]
    300
    """
    hidden = prior.value * n_unlabeled
    positives = n_positive + hidden
    labels = None
    if prior.std_error > 0:
        wanted = 3 * prior.value * (1 - prior.value) / prior.std_error**2
        # rounded first: 300.0000001 is 300
        labels = math.ceil(min(round(wanted, 6), n_unlabeled))
    return {
        "positives_unlabeled": (hidden, prior.low * n_unlabeled, prior.high * n_unlabeled),
        "share_of_positives_known": n_positive / positives if positives else 0.0,
        "labels_to_halve": labels,
    }


#: What ``_estimate`` hands to ``fit``: the prior and its diagnostics.
Estimate = tuple[ClassPrior, dict[str, Any]]


@dataclass(kw_only=True, eq=False, repr=False)
class BasePrior(BaseEstimator):
    """``fit(X, y)`` -> ``estimate_``, ``prior_``, ``interval_``, ``std_error_``, ``diagnostics_``.

    Subclasses write ``_estimate(X, roles)``.
    """

    # scikit-learn reads the parameters from the __init__ that dataclass writes
    max_rows: int | None = None
    level: float = 0.9
    on_unidentified: str = "raise"
    positive_label: Any = None
    negative_label: Any = None
    unlabeled_label: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, groups: Any = None) -> BasePrior:
        """Estimate the share of positives among the unlabelled rows.

        Parameters
        ----------
        X : ndarray (float32 or float64) or CSR matrix, shape (n, d)
        y : array-like, shape (n,), or Roles
            1 positive, 0 negative, -1 or missing unlabelled; other codes by the ``*_label``
            parameters.
        groups : array-like, shape (n,), optional
            Rows of one group are not independent. Only :class:`PlacementPrior` allows for it.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = read_rows(self, X, ensure_min_samples=2)
        check_range(X)
        roles = read_roles(
            y,
            positive_label=self.positive_label,
            negative_label=self.negative_label,
            unlabeled_label=self.unlabeled_label,
        )
        check_consistent_length(X, roles.codes, groups)
        self._groups = None if groups is None else group_numbers(groups)
        self._require(roles)
        if not rows_differ(X):
            raise PriorNotIdentifiedError(
                "All rows of X are equal, so they cannot show how many of the "
                "unlabelled ones are positive: add columns that differ between rows.",
                about="prior",
            )
        estimate, diagnostics = self._estimate(X, roles)
        if estimate.doubt is not None and self.on_unidentified == "raise":
            raise PriorNotIdentifiedError(estimate.doubt, about="prior")
        if estimate.doubt is not None and self.on_unidentified == "warn":
            warn(estimate.doubt, PnuaucWarning)
        if estimate.is_given:  # says nothing of its own
            estimate = replace(estimate, source=f"estimated by {type(self).__name__}")
        self.estimate_ = estimate
        self.prior_ = estimate.value
        self.std_error_ = estimate.std_error
        self.interval_ = estimate.interval
        self.diagnostics_ = {
            **diagnostics,
            "identified": estimate.identified,
            "doubt": estimate.doubt,
            "n_positive": roles.n_positive,
            "n_negative": roles.n_negative,
            "n_unlabeled": roles.n_unlabeled,
            "level": self.level,
        }
        return self

    def _require(self, roles: Roles) -> None:
        """Raise MissingRoleError unless the roles this estimator needs have two rows each."""
        roles.require("positive", "negative", "unlabeled", purpose=type(self).__name__, at_least=2)

    @abstractmethod
    def _estimate(self, X: Any, roles: Roles) -> Estimate:
        """The prior with its interval at ``level``, and diagnostics.

        The input is valid, and every role that is needed has two rows or more.
        """

    def _check_parameters(self) -> None:
        if self.max_rows is not None and self.max_rows < 2:
            raise ValueError(f"max_rows must be at least 2 or None, got {self.max_rows}.")
        if not 0 < self.level < 1:
            raise ValueError(f"level must lie strictly between 0 and 1, got {self.level}.")
        if self.on_unidentified not in ("raise", "warn", "ignore"):
            raise ValueError(
                'on_unidentified must be "raise", "warn" or "ignore", '
                f"got {self.on_unidentified!r}."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # y: two classes, and missing
        return tags


def take(X: Any, n: int | None, rng: np.random.RandomState) -> Any:
    """At most ``n`` rows, uniformly at random without replacement, in their order."""
    if n is None or X.shape[0] <= n:
        return X
    return X[np.sort(rng.choice(X.shape[0], size=n, replace=False))]


#: Rows that a belief may be worth: beyond this its Beta distribution is rounding error.
_MOST_ROWS = 1e12
_EXPECTED = "belief must be None, an interval (low, high) inside [0, 1], or a Beta"


@dataclass(frozen=True)
class Beta:
    """Beta distribution of the share of positives inside U: density t^(a - 1) (1 - t)^(b - 1).

    It is worth a + b rows of U drawn at random, a of them positive.

    Examples
    --------
    >>> Beta(1, 3).mean
    0.25
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        if not (self.a > 0 and self.b > 0 and np.isfinite(self.a + self.b)):
            raise InputError(f"{_EXPECTED}: a and b are positive numbers, got {self}.")

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)


def read_belief(belief: Any) -> Beta:
    """None, (low, high) or Beta -> what has ``masses``.

    A pair is read as a 95% interval: the Beta distribution with its midpoint as mean and a quarter
    of its width (more exactly width / 3.92) as standard deviation.

    Examples
    --------
    >>> read_belief((0.05, 0.15)).mean
    0.1
    """
    if belief is None:
        return Beta(*POSTERIOR.belief.value)
    if isinstance(belief, Beta):
        return belief
    try:
        low, high = (float(end) for end in belief)
    except (TypeError, ValueError):
        raise InputError(f"{_EXPECTED}, got {belief!r}.") from None
    if not 0 <= low < high <= 1:
        raise InputError(f"{_EXPECTED}: 0 <= low < high <= 1, got {belief!r}.")
    mean, deviation = (low + high) / 2, (high - low) / (2 * float(ndtri(0.975)))
    rows = mean * (1 - mean) / deviation**2 - 1 if deviation**2 > 0 else np.inf
    if not 0 < rows < _MOST_ROWS:
        raise InputError(
            f"belief ({low!r}, {high!r}) is too narrow to compute with; give a wider interval, or "
            "the prior itself."
        )
    return Beta(mean * rows, (1 - mean) * rows)
