"""AUC with its standard error and interval from partly labelled scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._prior import ClassPrior
from pnuauc._shown import ShownAsTable
from pnuauc.exceptions import MissingRoleError
from pnuauc.labels import ROLES
from pnuauc.metrics._counts import Floats, ScoreCounts
from pnuauc.metrics._interval import (
    check_level,
    logit_t_interval,
    perfect_interval,
    satterthwaite,
    t_quantile,
)
from pnuauc.metrics._moments import SINGLES, Moments3, moments_of, raw_to_auc
from pnuauc.metrics._prior import known_prior, missing_prior
from pnuauc.metrics._weights import combination_weights, steadied_covariance

__all__ = [
    "METHODS",
    "AUCEstimate",
    "PriorSensitivity",
    "auc_estimate",
    "auc_from_counts",
    "prior_sensitivity",
]

METHODS = ("auto", "pn", "pu", "nu", "combined", "pu_raw", "nu_raw")
PAIRS = {"pn": (0, 1), "pu": (0, 2), "nu": (2, 1)}
# The combination's variance is raised by 1 + 3/df: weights that were chosen on the same rows make
# it read too low (two free weights alone cost 2/df). ``python -m experiments coverage`` holds the
# result against the simulated error; ``--seed`` draws anew.
_WEIGHTS_COST = 3.0
# A combination whose own standard error reads larger than the best single one's by this factor is
# refused: its model is wrong for these scores. Below it the reading is mostly noise, and following
# it would make the estimate itself vary more.
_CLEARLY_WIDER = 1.5


@dataclass(frozen=True, repr=False)
class AUCEstimate(ShownAsTable):
    """An AUC, how sure it is, and where it comes from.

    Attributes
    ----------
    value : float
        Estimate. Unbiased, hence PU, NU and combined values may lie slightly outside [0, 1].
    std_error : float
    low, high : float
        Limits of the confidence interval, inside [0, 1].
    level : float
        Confidence of the interval.
    method : str
        "pn", "pu", "nu", "combined", "pu_raw" or "nu_raw": what was used, never "auto".
    weights : mapping of str to float
        Weight of each single estimate in the value; they sum to 1, and may be negative.
    n_positive, n_negative, n_unlabeled : int
    prior, prior_std_error : float or None
        Share of positives inside U that was used, and its standard error (0: taken as known).
    notes : tuple of str
        What was assumed or decided, one sentence each.
    """

    value: float
    std_error: float
    low: float
    high: float
    level: float
    method: str
    weights: Mapping[str, float]
    n_positive: int
    n_negative: int
    n_unlabeled: int
    prior: float | None = None
    prior_std_error: float | None = None
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        prior = "" if self.prior is None else f", prior={self.prior:.4g}"
        return (
            f"AUCEstimate({self.value:.4f}, std_error={self.std_error:.4f}, "
            f"{100 * self.level:g}% interval {self.low:.4f} to {self.high:.4f}, "
            f"method={self.method!r}, {self.n_positive} positive, {self.n_negative} negative, "
            f"{self.n_unlabeled} unlabelled{prior})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists: ready for JSON."""
        result = asdict(self)
        result["weights"], result["notes"] = dict(self.weights), list(self.notes)
        return result


@dataclass(frozen=True, eq=False)
class Analysis:
    """The three estimates on the AUC scale, with everything an interval needs."""

    moments: Moments3
    prior: ClassPrior | None
    values: Floats
    by_role: Floats
    prior_covariance: Floats
    bounds: tuple[tuple[float, float], ...]

    @property
    def covariance(self) -> Floats:
        return np.asarray(self.by_role.sum(axis=0) + self.prior_covariance)

    def degrees_of_freedom(self, weights: Floats) -> float:
        """Satterthwaite's, of the sampling part; an uncertain prior adds known variance."""
        parts = np.einsum("i,rij,j->r", weights, self.by_role, weights)
        extra = float(weights @ self.prior_covariance @ weights)
        df = satterthwaite(parts, self.moments.n)
        sampling = float(parts.sum())
        return df * ((sampling + extra) / sampling) ** 2 if sampling > 0 else np.inf


def analyse(moments: Moments3, prior: ClassPrior | None) -> Analysis:
    """Raw pair means -> AUC scale, the prior's own error by the delta method.

    d AUC_PU / d prior = (AUC - 1/2) / (1 - prior); d AUC_NU / d prior = (1/2 - AUC) / prior.
    """
    slope, offset = raw_to_auc(None if prior is None else prior.value)
    values = slope * moments.raw - offset
    scale = np.nan_to_num(slope)
    gradient = np.zeros(3)
    error = 0.0
    if prior is not None and prior.std_error > 0:
        error = prior.std_error
        gradient = np.nan_to_num((values - 0.5) * np.array([0.0, scale[1], -scale[2]]))
    bounds = tuple((-float(o), float(s - o)) for s, o in zip(slope, offset, strict=True))
    return Analysis(
        moments,
        prior,
        values,
        moments.by_role * np.outer(scale, scale),
        np.outer(gradient, gradient) * error**2,
        bounds,
    )


def auc_estimate(
    y: Any,
    scores: ArrayLike,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    prior_level: float = 0.95,
    **label_codes: Any,
) -> AUCEstimate:
    """AUC = P(score of a positive > score of a negative) + P(tie)/2, from what is labelled.

    With A_XY the share of pairs (x, y) that x wins, ties one half:

    - "pn": A_PN, the usual AUC; variance of DeLong et al. (1988);
    - "pu": (A_PU - prior/2) / (1 - prior): needs no negative at all;
    - "nu": (A_UN - (1 - prior)/2) / prior: needs no positive;
    - "combined": their minimum-variance unbiased combination, weights from their covariance
      matrix; standard error never above the best single one's;
    - "pu_raw", "nu_raw": A_PU, A_UN themselves. Not an AUC, but they rank models as PU and NU
      do, whatever the prior;
    - "auto": "combined" where P, N, U and a prior are there, else the one the data allows.

    Cost: one sort of the scores, O(n log n); no pairs are formed and ties are exact.

    Parameters
    ----------
    y : array-like, shape (n,), or Roles
        1 positive, 0 negative, -1 or missing unlabelled; other codes by ``label_codes``.
    scores : array-like, shape (n,)
        Any model's scores, higher for positives; infinities allowed, NaN not.
    prior : float, (low, high), or object with ``prior_``, optional
        Share of positives **inside the unlabelled rows**, not in the population. An interval (of
        confidence ``prior_level``) or an estimator with ``interval_`` or ``std_error_`` passes
        its uncertainty on to the result. The estimation error of a prior is taken as
        independent of the scores' sampling error.
    method : str
    level : float
        Confidence of the interval: t quantile, Satterthwaite's degrees of freedom, logit scale.
    prior_level : float
        Confidence of ``prior`` when it is an interval.
    **label_codes
        ``positive_label``, ``negative_label``, ``unlabeled_label`` as in
        :func:`pnuauc.labels.read_roles`.

    Returns
    -------
    AUCEstimate

    Examples
    --------
    >>> auc_estimate([1, 1, 1, 0, 0, 0], [3, 2, 1.5, 2, 1, 0]).method
    'pn'
    >>> result = auc_estimate([1, 1, None, None, None], [3, 2, 2.5, 1, 0], prior=0.2)
    >>> result.method, round(result.value, 4)
    ('pu', 0.9167)
    """
    counts = ScoreCounts.from_rows(y, scores, **label_codes)
    return auc_from_counts(counts, prior, method, level, prior_level=prior_level)


def auc_from_counts(
    counts: ScoreCounts,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    prior_level: float = 0.95,
) -> AUCEstimate:
    """As :func:`auc_estimate`, from the merged counts of blocks or shards; the same digits."""
    check_level(level)
    known = known_prior(prior, prior_level)
    moments = moments_of(counts)
    chosen, notes = choose_method(method, moments.n, known)
    notes += _size_notes(chosen, moments.n)
    if chosen.endswith("_raw"):
        return _raw(moments, chosen, level, notes)
    analysis = analyse(moments, known)
    if chosen == "combined":
        return _combined(analysis, counts, level, notes)
    return _single(analysis, chosen, level, notes)


def choose_method(
    method: str, n: tuple[int, int, int], prior: ClassPrior | None
) -> tuple[str, list[str]]:
    """The method that will be used, and why, or an error that names what is missing."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    possible = [name for name in SINGLES if all(n[r] for r in PAIRS[name])]
    counts = f"{n[0]} positive, {n[1]} negative and {n[2]} unlabelled rows"
    if not possible:
        raise MissingRoleError(
            f"An AUC needs two of positive, negative and unlabelled rows: y holds {counts}."
        )
    notes: list[str] = []
    if method == "auto":
        if len(possible) < 3:
            method = possible[0]
            notes.append(f"auto chose {method!r}: y holds {counts}.")
        elif prior is None:
            method = "pn"
            notes.append("auto chose 'pn': without a prior the unlabelled rows are not used.")
        else:
            method = "combined"
            notes.append("auto chose 'combined': P, N, U and a prior are there.")
    elif method == "combined" and len(possible) == 1:
        method = possible[0]
        notes.append(f"Only {method!r} is possible, so 'combined' is {method!r}: {counts}.")
    base = method.removesuffix("_raw")
    if base in PAIRS and base not in possible:
        role = next(ROLES[r].word for r in PAIRS[base] if not n[r])
        raise MissingRoleError(f"method={method!r} needs {role} rows: y holds {counts}.")
    if method in {"pu", "nu", "combined"} and prior is None:
        raise missing_prior(f"method={method!r}")
    undefined = {"pu": 1.0, "nu": 0.0}
    if prior is not None and undefined.get(method) == prior.value:
        raise ValueError(f"method={method!r} is undefined at prior={prior.value:g}.")
    return method, notes


def _size_notes(method: str, n: tuple[int, int, int]) -> list[str]:
    used = {0, 1, 2} if method == "combined" else set(PAIRS[method.removesuffix("_raw")])
    notes = []
    for role in sorted(used):
        if n[role] == 1:
            notes.append(
                f"One {ROLES[role].word} row: its spread cannot be seen, so the largest possible "
                "one is used."
            )
        elif n[role] < 10:
            notes.append(f"Only {n[role]} {ROLES[role].word} rows: read the interval with care.")
    return notes


def _raw(moments: Moments3, method: str, level: float, notes: list[str]) -> AUCEstimate:
    k = SINGLES.index(method.removesuffix("_raw"))
    identity = Analysis(
        moments, None, moments.raw, moments.by_role, np.zeros((3, 3)), ((0.0, 1.0),) * 3
    )
    rival = "an unlabelled row" if k == 1 else "a negative"
    notes.append(f"{method!r} is the share of pairs won against {rival}, not an AUC.")
    return _single(identity, SINGLES[k], level, notes, name=method)


def _single(
    analysis: Analysis, method: str, level: float, notes: list[str], name: str | None = None
) -> AUCEstimate:
    k = SINGLES.index(method)
    weights = np.eye(3)[k]
    raw, n = float(analysis.moments.raw[k]), analysis.moments.n
    std_error = float(np.sqrt(analysis.covariance[k, k]))
    low, high = analysis.bounds[k]
    if analysis.by_role[:, k, k].sum() <= 0 and raw in (0.0, 1.0):
        pairs = min(n[r] for r in PAIRS[method])
        limits = np.array(perfect_interval(raw, pairs, level)) * (high - low) + low
        limits += np.array([-1.0, 1.0]) * t_quantile(level, np.inf) * std_error
        interval = tuple(float(v) for v in np.clip(limits, 0.0, 1.0))
        notes.append(
            "Not one pair is misranked, so the variance estimate is zero; the interval is the "
            f"exact one from {pairs} independent pairs."
        )
    else:
        df = analysis.degrees_of_freedom(weights)
        value = float(analysis.values[k])
        interval = logit_t_interval(value, std_error, df, level, (low, high))
    return _result(analysis, name or method, weights, std_error, interval, level, notes)


def _combined(
    analysis: Analysis, counts: ScoreCounts, level: float, notes: list[str]
) -> AUCEstimate:
    available = np.flatnonzero(np.isfinite(analysis.values))
    seen = [k for k in available if analysis.by_role[:, k, k].sum() > 0]
    if not seen:
        notes.append("No estimate shows any spread, so there is nothing to combine.")
        return _single(analysis, SINGLES[available[0]], level, notes)
    covariance = analysis.covariance
    best = min(seen, key=lambda k: covariance[k, k])
    weights = _weights_of(analysis, counts, available, float(analysis.values[best]))
    least = float(covariance[best, best])
    if weights @ covariance @ weights > _CLEARLY_WIDER**2 * least:
        weights = np.eye(3)[best]
    df = analysis.degrees_of_freedom(weights)
    variance = float(weights @ covariance @ weights) * (1.0 + _WEIGHTS_COST / df)
    if variance >= least:
        variance = least
        notes.append(f"No combination reads tighter than {SINGLES[best]!r} alone.")
    std_error = float(np.sqrt(variance))
    notes.append(_unlabelled_note(std_error, float(np.sqrt(covariance[0, 0]))))
    value = float(weights[available] @ analysis.values[available])
    interval = logit_t_interval(value, std_error, df, level, (0.0, 1.0))
    return _result(analysis, "combined", weights, std_error, interval, level, notes)


def _weights_of(analysis: Analysis, counts: ScoreCounts, available: Any, auc: float) -> Floats:
    """Weights of (PN, PU, NU), shape (3,), from the steadied covariance and the prior's error."""
    assert analysis.prior is not None
    # at a prior of exactly 0 or 1 one estimate is undefined and left out, but the model needs (0,1)
    inside = min(max(analysis.prior.value, 1e-6), 1.0 - 1e-6)
    steady = steadied_covariance(counts, inside, auc) + analysis.prior_covariance
    weights = np.zeros(3)
    weights[available] = combination_weights(steady[np.ix_(available, available)])
    return weights


def _unlabelled_note(std_error: float, pn_error: float) -> str:
    if pn_error <= 0:
        return "Positives and negatives alone show no misranked pair; their error is not compared."
    ratio = std_error / pn_error
    if ratio > 0.95:
        return (
            f"The unlabelled rows help little here: the standard error is {ratio:.2f} of that "
            "from positives and negatives alone."
        )
    return (
        f"The unlabelled rows cut the standard error to {ratio:.2f} of that from positives and "
        "negatives alone."
    )


def _result(
    analysis: Analysis,
    method: str,
    weights: Floats,
    std_error: float,
    interval: tuple[float, ...],
    level: float,
    notes: list[str],
) -> AUCEstimate:
    used = np.flatnonzero(weights)
    value = float(weights[used] @ analysis.values[used])
    prior = analysis.prior if method != "pn" else None
    if not method.endswith("_raw") and not 0.0 <= value <= 1.0:
        notes.append(
            "The unbiased estimate lies outside [0, 1]; it is kept, the interval is cut. Check "
            "the prior if this is far outside."
        )
    named = SINGLES if method == "combined" else [SINGLES[k] for k in used]
    return AUCEstimate(
        value=value,
        std_error=std_error,
        low=interval[0],
        high=interval[1],
        level=level,
        method=method,
        weights={name: float(weights[SINGLES.index(name)]) for name in named},
        n_positive=analysis.moments.n[0],
        n_negative=analysis.moments.n[1],
        n_unlabeled=analysis.moments.n[2],
        prior=None if prior is None else prior.value,
        prior_std_error=None if prior is None else prior.std_error,
        notes=tuple(notes),
    )


@dataclass(frozen=True, eq=False, repr=False)
class PriorSensitivity(ShownAsTable):
    """The same AUC under many priors; arrays of one length, in the order of ``priors``."""

    priors: Floats
    value: Floats
    std_error: Floats
    low: Floats
    high: Floats
    method: str
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Lists and plain values: ready for JSON or a data frame."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}


def prior_sensitivity(
    y: Any,
    scores: ArrayLike,
    priors: ArrayLike | None = None,
    method: str = "auto",
    level: float = 0.95,
    **label_codes: Any,
) -> PriorSensitivity:
    """:func:`auc_estimate` as a function of the prior: value and band, scores sorted once.

    Parameters
    ----------
    y, scores, method, level, **label_codes
        As in :func:`auc_estimate`.
    priors : array-like, shape (m,), optional
        Shares of positives **inside the unlabelled rows**; 0.02, 0.04, ..., 0.5 by default.
    """
    counts = ScoreCounts.from_rows(y, scores, **label_codes)
    grid = np.linspace(0.02, 0.5, 25) if priors is None else np.asarray(priors, dtype=float)
    if grid.ndim != 1 or len(grid) == 0:
        raise ValueError("priors must be a one-dimensional list of at least one prior.")
    results = [auc_from_counts(counts, float(prior), method, level) for prior in grid]
    columns = {
        name: np.array([getattr(r, name) for r in results])
        for name in ("value", "std_error", "low", "high")
    }
    return PriorSensitivity(priors=grid, method=results[0].method, level=level, **columns)
