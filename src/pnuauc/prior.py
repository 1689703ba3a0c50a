"""The class prior: one type for its value, its uncertainty and where both come from.

Everywhere the prior is the share of positives **inside the unlabelled rows**.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable

#: The NU risk divides by the prior, the PU risk by the rest: an estimate nearer to 0 or 1 than
#: this is moved here for training, and only for training.
TRAINING_BOUNDS = (0.01, 0.99)

#: ``source`` of a prior that the user stated.
GIVEN = "given"
_NEAR = 1e-9
#: The flattest Beta distribution that stands in for an estimate: a + b of the uniform one.
_LEAST_CONCENTRATION = 2.0
#: A standard error below this counts as zero: no sample is large enough to measure it.
_NO_ERROR = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class ClassPrior(ShownAsTable):
    """Share of positives inside the unlabelled rows, how sure it is, and where it comes from.

    Attributes
    ----------
    value : float
        In [0, 1].
    low, high : float
        Limits of an interval of confidence ``level``; equal to ``value`` where it is known.
    level : float
    std_error : float
        0 where the value is taken as known.
    source : str
        "given", or how it was estimated.
    doubt : str or None
        One sentence why the prior cannot be estimated from the data; None where it can.
    shares, weights : ndarray, shape (m,), or None
        A posterior on a grid: possible shares in ascending order and their probabilities.
    note : str or None
        One sentence that a reader should see beside the value: a test of fit that failed.

    Examples
    --------
    >>> ClassPrior.known(0.1)
    ClassPrior(0.1, given)
    >>> ClassPrior.from_interval(0.05, 0.15)
    ClassPrior(0.1, 95% interval 0.05 to 0.15, given)
    """

    value: float
    low: float
    high: float
    level: float = 0.95
    std_error: float = 0.0
    source: str = GIVEN
    doubt: str | None = None
    shares: Floats | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)
    note: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        value = float(self.value)
        if not self.is_given:  # an unbiased estimate may lie outside
            value = min(max(value, 0.0), 1.0)
        elif not 0.0 <= self.low <= self.high <= 1.0:
            raise ValueError(
                "A prior interval is a pair (low, high) with 0 <= low <= high <= 1, got "
                f"{(self.low, self.high)!r}."
            )
        object.__setattr__(self, "value", _checked(value))

    @classmethod
    def known(cls, value: float) -> ClassPrior:
        """A prior without uncertainty."""
        value = _checked(value)
        return cls(value, value, value)

    @classmethod
    def from_interval(cls, low: float, high: float, level: float = 0.95) -> ClassPrior:
        """The midpoint, with the standard error of a normal interval of that width."""
        low, high = _checked(low), _checked(high)
        error = (high - low) / (2.0 * float(special.ndtri(0.5 + level / 2.0)))
        return cls((low + high) / 2.0, low, high, level, error)

    @classmethod
    def from_posterior(
        cls,
        shares: ArrayLike,
        weights: ArrayLike,
        level: float = 0.95,
        source: str = "posterior",
        doubt: str | None = None,
    ) -> ClassPrior:
        """Mean, standard deviation and equal-tailed interval of a posterior on a grid.

        Parameters
        ----------
        shares : array-like, shape (m,)
            In ascending order, inside [0, 1].
        weights : array-like, shape (m,)
            Not negative; scaled to sum to 1.
        """
        s, w = np.asarray(shares, dtype=float), np.asarray(weights, dtype=float)
        if s.ndim != 1 or s.shape != w.shape or not len(s):
            raise ValueError("shares and weights must be one-dimensional and of the same length.")
        if not (np.all(np.diff(s) > 0) and s[0] >= 0.0 and s[-1] <= 1.0):
            raise ValueError("shares must ascend and lie in [0, 1].")
        if not (np.all(w >= 0.0) and 0.0 < w.sum() < np.inf):
            raise ValueError("weights must not be negative, and at least one must be positive.")
        w = w / w.sum()
        mean = float(s @ w)
        # the distribution function is linear between the points, half of a weight on either side
        below = np.cumsum(w) - w / 2.0
        low, high = np.interp([(1.0 - level) / 2.0, (1.0 + level) / 2.0], below, s)
        error = float(np.sqrt((s - mean) ** 2 @ w))
        low, high = min(float(low), mean), max(float(high), mean)
        return cls(mean, low, high, level, error, source, doubt, s, w)

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high

    @property
    def identified(self) -> bool:
        """Whether the prior can be estimated from the data; a given one needs no data."""
        return self.doubt is None

    @property
    def is_given(self) -> bool:
        """Whether the user stated it, as a number or an interval."""
        return self.source == GIVEN

    @property
    def training_value(self) -> float:
        """The value that training risks divide by: an estimate is kept inside ``TRAINING_BOUNDS``.

        The only place that moves a prior; what is printed or evaluated with is ``value``.
        """
        if self.is_given:
            return self.value
        return min(max(self.value, TRAINING_BOUNDS[0]), TRAINING_BOUNDS[1])

    def complement(self) -> ClassPrior:
        """The share of the other class: 1 - value, with limits and posterior mirrored."""
        shares = None if self.shares is None else 1.0 - self.shares[::-1]
        weights = None if self.weights is None else self.weights[::-1]
        value, low, high = (1.0 - x for x in (self.value, self.high, self.low))
        return replace(self, value=value, low=low, high=high, shares=shares, weights=weights)

    def nodes(self, n: int = 21) -> tuple[Floats, Floats]:
        """Values and weights to integrate over the prior: mean of f is ``weights @ f(values)``.

        The posterior where there is one, else the Beta distribution of mean ``value`` and standard
        deviation ``std_error``, else the value alone. A distribution is cut into at most ``n``
        parts, each represented by its mean, so the mean of all nodes is exact.

        Returns
        -------
        values, weights : ndarray, shape (at most n,)
            Values ascend inside [0, 1]; weights sum to 1.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}.")
        if self.shares is not None and self.weights is not None:
            return _grouped(self.shares, self.weights, n)
        if self.std_error > _NO_ERROR:
            return _beta_nodes(self.value, self.std_error, n)
        return np.array([self.value]), np.ones(1)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, without the posterior: ready for JSON."""
        names = ("value", "std_error", "low", "high", "level", "source", "doubt")
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClassPrior):
            return NotImplemented
        return self.to_dict() == other.to_dict() and all(
            np.array_equal(a, b) if a is not None and b is not None else a is b
            for a, b in ((self.shares, other.shares), (self.weights, other.weights))
        )

    def __hash__(self) -> int:
        return hash(tuple(self.to_dict().items()))

    def __repr__(self) -> str:
        interval = (
            f", {100 * self.level:g}% interval {self.low:.4g} to {self.high:.4g}"
            if self.low < self.high
            else ""
        )
        doubt = "" if self.identified else ", not identified"
        return f"ClassPrior({self.value:.4g}{interval}, {self.source}{doubt})"


def read_prior(prior: Any, level: float = 0.95) -> ClassPrior | None:
    """Whatever may be passed as ``prior`` -> :class:`ClassPrior`.

    Parameters
    ----------
    prior : None, "auto", float, (low, high), ClassPrior, or fitted estimator
        None and "auto" mean that no prior is known: the answer is None. A float is taken as
        known. A pair is an interval of confidence ``level``. An estimator needs ``estimate_``, or
        ``prior_`` with ``std_error_`` or ``interval_``.
    level : float
        Confidence of an interval given as ``prior``.

    Examples
    --------
    >>> read_prior((0.1, 0.3)).value, read_prior("auto")
    (0.2, None)
    """
    if prior is None or isinstance(prior, ClassPrior):
        return prior
    if isinstance(prior, str) and prior == "auto":
        return None
    if isinstance(getattr(prior, "estimate_", None), ClassPrior):
        estimate: ClassPrior = prior.estimate_
        return estimate
    if hasattr(prior, "prior_"):
        return _from_estimator(prior, level)
    if isinstance(prior, (bool, str, bytes)) or hasattr(prior, "fit"):
        raise _unreadable(prior)
    if isinstance(prior, Real):
        return ClassPrior.known(float(prior))
    try:
        values = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        raise _unreadable(prior) from None
    if values.ndim == 0:
        return ClassPrior.known(float(values))
    if values.shape != (2,):
        raise ValueError(f"A prior interval is a pair (low, high) with low <= high, got {prior!r}.")
    return ClassPrior.from_interval(float(values[0]), float(values[1]), level)


def _from_estimator(fitted: Any, level: float) -> ClassPrior:
    """An estimator of another package: ``prior_``, and its error in one of two forms."""
    value = _checked(fitted.prior_)
    error, interval = getattr(fitted, "std_error_", None), getattr(fitted, "interval_", None)
    quantile = float(special.ndtri(0.5 + level / 2.0))
    if interval is not None:
        low, high = (float(v) for v in interval)
        error = (high - low) / (2.0 * quantile) if error is None else error
    error = 0.0 if error is None else max(float(error), 0.0)
    if interval is None:
        low, high = max(value - quantile * error, 0.0), min(value + quantile * error, 1.0)
    return ClassPrior(value, low, high, level, error, f"estimated by {type(fitted).__name__}")


def _unreadable(prior: Any) -> ValueError:
    shown = repr(prior) if isinstance(prior, (bool, str, bytes)) else type(prior).__name__
    return ValueError(
        'prior must be a number in [0, 1], a pair (low, high), "auto", a ClassPrior or a fitted '
        f"estimator with prior_; got {shown}."
    )


def _checked(value: Any) -> float:
    value = float(value)
    if not 0.0 <= value <= 1.0:
        raise ValueError(
            "prior is the share of positives among the unlabelled rows and must lie in [0, 1], "
            f"got {value}."
        )
    # 1/prior must stay a number: what is nearer to an end than one row in a billion is the end
    if value < _NEAR:
        return 0.0
    return 1.0 if value > 1.0 - _NEAR else value


def _grouped(shares: Floats, weights: Floats, n: int) -> tuple[Floats, Floats]:
    """At most n neighbouring groups of about equal mass, each at its mean."""
    kept = weights > 0
    shares, weights = shares[kept], weights[kept]
    if len(shares) > n:
        middle = np.cumsum(weights) - weights / 2.0
        group = np.minimum((n * middle).astype(np.intp), n - 1)
        mass: Floats = np.bincount(group, weights, minlength=n).astype(np.float64)
        sums = np.bincount(group, weights * shares, minlength=n)
        shares, weights = sums[mass > 0] / mass[mass > 0], mass[mass > 0]
    return shares, weights / weights.sum()


def _beta_nodes(mean: float, std_error: float, n: int) -> tuple[Floats, Floats]:
    """n parts of equal probability of the Beta distribution with these moments.

    a + b = mean (1 - mean) / std_error^2 - 1. A mean at an end, where no Beta has it, is moved
    inside by half of its error; an error larger than that of a + b = 2 is cut there.
    """
    inside = min(0.5 * std_error, 0.5)
    mean = min(max(mean, inside), 1.0 - inside)
    if mean > 0.5:  # digits near 1 are lost to rounding, near 0 they are not
        values, weights = _beta_nodes(1.0 - mean, std_error, n)
        return 1.0 - values[::-1], weights
    total = max(mean * (1.0 - mean) / std_error**2 - 1.0, _LEAST_CONCENTRATION)
    a, b = mean * total, (1.0 - mean) * total
    edges = special.betaincinv(a, b, np.arange(1, n) / n)
    # mean of x inside a part: E[x 1(x < q)] = mean * I_q(a + 1, b)
    partial = np.concatenate([[0.0], special.betainc(a + 1.0, b, edges), [1.0]])
    values = mean * n * np.diff(partial)
    # neighbours that rounding has put in the wrong order become equal
    return np.maximum.accumulate(np.clip(values, 0.0, 1.0)), np.full(n, 1.0 / n)
