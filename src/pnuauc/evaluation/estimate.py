"""AUC with its standard error and interval from partly labelled scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.utils import check_consistent_length

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable
from pnuauc.core.ranks import (
    SINGLES,
    PairShares,
    ScoreCounts,
    check_scores,
    clustered,
    design_effect,
    moments_of,
    n_rows,
    placements,
    raw_to_auc,
    role_covariance,
)
from pnuauc.core.rows import group_numbers
from pnuauc.evaluation.conditional import (
    REFUTED,
    check_level,
    conditionals,
    known_prior,
    missing_prior,
    mixture_limits,
)
from pnuauc.exceptions import MissingRoleError, PriorRefutedError
from pnuauc.labels import ROLES, Roles, read_roles
from pnuauc.prior import ClassPrior

__all__ = [
    "METHODS",
    "MODEL_ROWS",
    "AUCEstimate",
    "Weighed",
    "auc_estimate",
    "auc_from_counts",
    "combination_weights",
    "design_effects",
    "named_weights",
    "planned_covariance",
    "steadied_covariance",
    "unbiased_auc",
    "usable_nodes",
    "weigh",
]
#: Rows of a role at which its own covariance counts as much as that of the binormal model.
MODEL_ROWS = 100
#: NU divides by the prior and PU by the rest: where an uncertain prior may come nearer to 0 or 1
#: than this, the estimate that divides by it is left out of a combination.
_AWAY = 0.02
_NODES = 7


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weights of (PN, PU, NU), shape (3,), and what there is to say about them."""

    weights: Floats
    note: str | None = None


def weigh(counts: ScoreCounts, moments: PairShares, prior: ClassPrior) -> Weighed:
    """Weights that are best on average over the prior's distribution."""
    shares, mass = prior.nodes(_NODES)
    slope, offset = raw_to_auc(shares)
    values = slope * moments.raw - offset
    known = len(shares) == 1
    away = 0.0 if known else _AWAY
    allowed = np.array([True, bool(shares.max() < 1.0 - away), bool(shares.min() > away)])
    usable = np.asarray(allowed & np.isfinite(values).all(axis=0))
    note = None
    left_out = [SINGLES[k].upper() for k in (1, 2) if not allowed[k] and not known]
    if left_out:
        note = f"{' and '.join(left_out)} left out: the prior may be too near to an end."
    weights = np.zeros(3)
    if not usable.any():
        usable = np.asarray(np.isfinite(values).any(axis=0))
    if usable.sum() == 1:
        weights[usable] = 1.0
        return Weighed(weights, note)
    guess = float(values[:, np.flatnonzero(usable)[0]] @ mass)
    total = np.zeros((3, 3))
    for share, weight in zip(shares, mass, strict=True):
        inside = min(max(float(share), 1e-6), 1.0 - 1e-6)
        total += weight * steadied_covariance(counts, inside, guess)
    kept = np.flatnonzero(usable)
    centred = values[:, kept] - mass @ values[:, kept]
    matrix = total[np.ix_(kept, kept)] + (centred * mass[:, None]).T @ centred
    weights[kept] = combination_weights(matrix)
    return Weighed(weights, note)


def steadied_covariance(counts: ScoreCounts, prior: float, auc: float) -> Floats:
    """Covariance matrix of (PN, PU, NU), shape (3, 3), for choosing weights only.

    ``prior`` is the share of positives inside U, strictly between 0 and 1; ``auc`` any estimate.
    """
    roles = (counts.positive, counts.negative, counts.unlabeled)
    f_p, f_n = placements(counts.positive), placements(counts.negative)
    model = _binormal(round(float(np.clip(auc, 0.02, 0.98)), 3), prior)
    total = np.zeros((3, 3))
    for k, (role, projection) in enumerate(zip(roles, _projections(f_p, f_n, prior), strict=True)):
        n = n_rows(role)
        share = n / (n + MODEL_ROWS) if n > 1 else 0.0
        sample = n * role_covariance(role, projection) if n > 1 else model[k]
        total += (share * sample + (1.0 - share) * model[k]) / n
    return total


def _projections(f_p: Floats, f_n: Floats, prior: float) -> tuple[Floats, Floats, Floats]:
    """Projections of (PN, PU, NU) on rows of P, N, U with F_U = prior F_P + (1 - prior) F_N."""
    rest = 1.0 - prior
    f_u, zero = prior * f_p + rest * f_n, np.zeros_like(f_p)
    return (
        np.stack([f_n, f_u / rest, zero]),
        np.stack([1.0 - f_p, zero, (1.0 - f_u) / prior]),
        np.stack([zero, (1.0 - f_p) / rest, f_n / prior]),
    )


@lru_cache(maxsize=1)
def _gaussian_nodes() -> tuple[Floats, Floats]:
    """60 points and probabilities that integrate smooth functions against N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return nodes, weights / weights.sum()


@lru_cache(maxsize=256)
def _binormal(auc: float, prior: float) -> Floats:
    """Role covariances of the projections for N(d, 1) against N(0, 1), shape (3, 3, 3)."""
    nodes, weights = _gaussian_nodes()
    shift = np.sqrt(2.0) * special.ndtri(auc)
    points = (nodes + shift, nodes, np.concatenate([nodes + shift, nodes]))
    masses = (weights, weights, np.concatenate([prior * weights, (1.0 - prior) * weights]))
    blocks = []
    for k in range(3):
        f_p, f_n = special.ndtr(points[k] - shift), special.ndtr(points[k])
        x = _projections(f_p, f_n, prior)[k]
        x = x - (x @ masses[k])[:, None]
        blocks.append((x * masses[k]) @ x.T)
    return np.stack(blocks)


def planned_covariance(n: tuple[int, int, int], prior: float, auc: float = 0.8) -> Floats:
    """Covariance matrix of (PN, PU, NU), shape (3, 3), to expect before there is a score.

    From the numbers of rows and a binormal model alone, so that weights taken from it are one fixed
    estimator for all scores. ``prior`` is that inside U; NaN where a role has no rows.
    """
    sizes = np.where(np.array(n) > 0, n, np.nan)
    # a role that an estimate does not use has exact zeros there, whatever its size
    blocks = _binormal(auc, prior)
    return np.asarray(np.where(blocks == 0.0, 0.0, blocks / sizes[:, None, None]).sum(axis=0))


def combination_weights(covariance: Floats) -> Floats:
    """w = S^-1 1 / (1' S^-1 1), shape (k,); a singular S is solved in the least-squares sense."""
    ones = np.ones(len(covariance))
    solution = np.linalg.lstsq(covariance, ones, rcond=1e-12)[0]
    total = solution.sum()
    if not np.isfinite(total) or total <= 0:
        return np.asarray(np.eye(len(ones))[int(np.argmin(np.diag(covariance)))])
    return np.asarray(solution / total)


METHODS = ("auto", "pn", "pu", "nu", "combined", "pu_raw", "nu_raw")
PAIRS = {"pn": (0, 1), "pu": (0, 2), "nu": (2, 1)}
# "auto" takes unlabelled rows in only where the interval becomes clearly narrower: an interval that
# was chosen for being narrow is too narrow, and the prior's error is not independent of the scores.
_CLEARLY_NARROWER = 0.9


@dataclass(frozen=True, repr=False)
class AUCEstimate(ShownAsTable):
    """An AUC, how sure it is, and where it comes from.

    Attributes
    ----------
    value : float
        Estimate, inside [0, 1]; an uncertain prior is averaged over.
    std_error : float
        Read off the rows; 0 where no pair is misranked, and then the interval says more.
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
    unbiased : float or None
        The estimate at the prior's own value, which may lie outside [0, 1]. For averages over many
        tables or folds: there, a value that was moved inside would be biased.
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
    unbiased: float | None = None

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


def auc_estimate(
    y: Any,
    scores: ArrayLike,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    prior_level: float = 0.95,
    variance_factor: float = 1.0,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    **label_codes: Any,
) -> AUCEstimate:
    """AUC = P(score of a positive > score of a negative) + P(tie)/2, from what is labelled.

    With A_XY the share of pairs (x, y) that x wins, ties one half:

    - "pn": A_PN, the usual AUC; standard error of DeLong et al. (1988);
    - "pu": (A_PU - prior/2) / (1 - prior): needs no negative at all;
    - "nu": (A_UN - (1 - prior)/2) / prior: needs no positive;
    - "combined": their minimum-variance combination, weights from their covariance matrix;
    - "pu_raw", "nu_raw": A_PU, A_UN themselves. Not an AUC, but they rank models as PU and NU
      do, whatever the prior;
    - "auto": the one the data allows; with P, N, U and a prior "combined" where the unlabelled rows
      make the interval clearly narrower, else "pn".

    An uncertain prior is integrated over: the limits are those of the mixture, over the prior's
    distribution, of what the scores say at each prior. No prior is clamped. A prior under which no
    AUC in [0, 1] fits the scores is refuted.

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
        Confidence of the interval (see :mod:`pnuauc.evaluation.conditional`).
    prior_level : float
        Confidence of ``prior`` when it is an interval.
    variance_factor : float
        Raises the variance for scores that are less than independent, such as scores of refits.
    groups : array-like, shape (n,), optional
        Rows of one group (customer, patient) are not independent: they count for fewer, the more
        alike their scores are, and a note says for how many.
    sample_weight : array-like, shape (n,), optional
        1 / odds of having been labelled, for labelled rows that were picked by known odds; those
        of unlabelled rows are not used. A class counts as (sum w)^2 / sum w^2 rows.
    **label_codes
        ``positive_label``, ``negative_label``, ``unlabeled_label`` as in
        :func:`pnuauc.labels.read_roles`.

    Returns
    -------
    AUCEstimate

    Raises
    ------
    PriorRefutedError
        When the scores rule the prior out and the method cannot do without it.

    Examples
    --------
    >>> auc_estimate([1, 1, 1, 0, 0, 0], [3, 2, 1.5, 2, 1, 0]).method
    'pn'
    >>> result = auc_estimate([1, 1, None, None, None], [3, 2, 2.5, 1, 0], prior=0.2)
    >>> result.method, round(result.value, 4)
    ('pu', 0.9167)
    """
    roles = read_roles(y, **label_codes)
    values = check_scores(scores, len(roles))
    return auc_from_counts(
        ScoreCounts.from_rows(roles, values, sample_weight),
        prior,
        method,
        level,
        prior_level=prior_level,
        variance_factor=variance_factor,
        design_effects=None if groups is None else design_effects(roles, values, groups),
    )


def design_effects(roles: Roles, values: Floats, groups: Any) -> tuple[float, float, float]:
    """How many rows of P, N and U count as one, of scores of shape (n,)."""
    number = group_numbers(groups)
    check_consistent_length(values, number)
    p, n, u = (
        design_effect(values[rows], number[rows]) if len(rows) else 1.0
        for rows in (roles.positive, roles.negative, roles.unlabeled)
    )
    return p, n, u


def auc_from_counts(
    counts: ScoreCounts,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    prior_level: float = 0.95,
    variance_factor: float = 1.0,
    design_effects: tuple[float, float, float] | None = None,
) -> AUCEstimate:
    """As :func:`auc_estimate`, from the merged counts of blocks or shards; the same digits.

    ``design_effects`` say how many rows of P, N and U count as one.
    """
    check_level(level)
    if not variance_factor >= 1.0:
        raise ValueError(f"variance_factor must be at least 1, got {variance_factor}.")
    known = known_prior(prior, prior_level)
    moments = moments_of(counts)
    chosen, notes = choose_method(method, moments.n, known)
    if design_effects is not None:
        moments = clustered(moments, design_effects)
        notes.append(_worth(counts, moments.n))
    ask = _Question(counts, moments, known, level, variance_factor)
    if len(counts.anchors) == 1 and not counts.unlabeled[[0, 2]].any():
        return _undecided(ask, chosen, notes)
    if chosen == "combined":
        return (_sharpest if method == "auto" else _combined)(ask, notes)
    notes += _size_notes(chosen, moments.n)
    if chosen.endswith("_raw"):
        return _raw(ask, chosen, notes)
    return _estimate(ask, chosen, np.eye(3)[SINGLES.index(chosen)], notes)


def _worth(counts: ScoreCounts, worth: tuple[float, float, float]) -> str:
    rows = counts.n_positive, counts.n_negative, counts.n_unlabeled
    said = [
        f"{n:,} {role.word} rows as {w:,.0f}"
        for role, n, w in zip(ROLES, rows, worth, strict=True)
        if n
    ]
    return f"Rows of one group are alike: {', '.join(said)} independent ones."


def unbiased_auc(counts: ScoreCounts, prior: Any = None, method: str = "auto") -> float:
    """The estimate at the prior's own value, without an interval; it may lie outside [0, 1].

    To rank models or to average over folds: it is linear in the pair shares, and no prior refutes
    it.
    """
    known = known_prior(prior)
    moments = moments_of(counts)
    chosen, _ = choose_method(method, moments.n, known)
    name = chosen.removesuffix("_raw")
    if chosen.endswith("_raw") or name == "pn":
        return float(moments.raw[SINGLES.index(name)])
    assert known is not None
    slope, offset = raw_to_auc(known.value)
    values = slope * moments.raw - offset
    if chosen == "combined":
        weights = weigh(counts, moments, ClassPrior.known(known.value)).weights
        used = weights != 0.0
        return float(weights[used] @ values[used])
    return float(values[SINGLES.index(name)])


def check_method(method: str) -> None:
    """An error that names the methods unless ``method`` is one of them."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")


def choose_method(
    method: str, n: tuple[float, float, float], prior: ClassPrior | None
) -> tuple[str, list[str]]:
    """The method that will be used, and why, or an error that names what is missing."""
    check_method(method)
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
    if prior is not None and prior.std_error == 0 and undefined.get(method) == prior.value:
        raise ValueError(f"method={method!r} is undefined at prior={prior.value:g}.")
    return method, notes


def _size_notes(method: str, n: tuple[float, float, float]) -> list[str]:
    used = {0, 1, 2} if method == "combined" else set(PAIRS[method.removesuffix("_raw")])
    notes = []
    for role in sorted(used):
        if n[role] == 1:
            notes.append(
                f"One {ROLES[role].word} row: its spread cannot be seen, so the largest possible "
                "one is used."
            )
        elif n[role] < 10:
            notes.append(
                f"Only {n[role]:.0f} {ROLES[role].word} rows: read the interval with care."
            )
    return notes


@dataclass(frozen=True, eq=False)
class _Question:
    """Scores, prior and confidence of one request."""

    counts: ScoreCounts
    moments: PairShares
    prior: ClassPrior | None
    level: float
    variance_factor: float

    def row_variance(self, priors: Floats, weights: Floats) -> Floats:
        """Variance of the estimate at each prior, shape (J,), as the rows show it."""
        raw_weights = np.nan_to_num(raw_to_auc(priors)[0]) * weights
        both = raw_weights @ self.moments.by_role.sum(axis=0)
        return np.asarray(self.variance_factor * (both * raw_weights).sum(axis=-1))


def _undecided(ask: _Question, method: str, notes: list[str]) -> AUCEstimate:
    """Equal scores rank nothing, in this table or another: the AUC is one half, for certain."""
    notes.append("All scores are equal: every pair is a tie.")
    first = next(k for k in range(3) if np.isfinite(ask.moments.raw[k]))
    name = method.removesuffix("_raw")
    weights = np.eye(3)[first if name == "combined" else SINGLES.index(name)]
    return _result(ask, method, weights, 0.5, 0.0, (0.5, 0.5), 0.5, notes)


def _raw(ask: _Question, method: str, notes: list[str]) -> AUCEstimate:
    """A share of pairs between two samples, whatever they hold: read as P against N."""
    name = method.removesuffix("_raw")
    rival = "an unlabelled row" if name == "pu" else "a negative"
    notes.insert(0, f"{method!r} is the share of pairs won against {rival}, not an AUC.")
    k, (first, second) = SINGLES.index(name), PAIRS[name]
    as_pn = np.zeros((3, 3, 3))
    as_pn[0][0, 0], as_pn[1][0, 0] = (ask.moments.by_role[r][k, k] for r in (first, second))
    n = ask.moments.n
    moments = PairShares(
        np.array([ask.moments.raw[k], np.nan, np.nan]), as_pn, (n[first], n[second], 0)
    )
    found = _estimate(replace(ask, moments=moments), "pn", np.eye(3)[0], notes)
    return replace(
        found,
        method=method,
        weights={name: 1.0},
        n_positive=ask.counts.n_positive,
        n_negative=ask.counts.n_negative,
        n_unlabeled=ask.counts.n_unlabeled,
    )


def _estimate(ask: _Question, method: str, weights: Floats, notes: list[str]) -> AUCEstimate:
    """The mixture over the prior's distribution of the estimates at each prior.

    A known prior leaves one estimate; so does PN, which does not look at the prior.
    """
    shares, mass = np.array([0.5]), np.ones(1)
    if method != "pn":
        assert ask.prior is not None
        shares, mass = usable_nodes(method, ask.prior, weights)
    parts = conditionals(ask.moments, shares, weights, ask.variance_factor)
    rows = ask.row_variance(shares, weights)
    if len(parts) == 1:
        one = parts[0]
        # an honest prior is beyond the limits now and then: only far beyond it is refuted
        limits = one.limits(ask.level) or one.limits(max(ask.level, REFUTED))
        if limits is None:
            raise _refuted(ask, method)
        if rows[0] <= 0.0 and one.value in (0.0, 1.0):
            pairs = "Every pair is" if one.value == 0.0 else "Not one pair is"
            notes.append(
                f"{pairs} misranked, so the standard error reads zero; the interval is the one "
                "that this number of rows allows."
            )
        return _result(ask, method, weights, one.value, float(rows[0]), limits, one.value, notes)
    mixed = mixture_limits(parts, mass, ask.level)
    if mixed is None:
        raise _refuted(ask, method)
    low, high, kept = mixed
    inside = np.clip([part.value for part in parts], 0.0, 1.0)
    value = float(min(max(kept @ inside, low), high))
    variance = float(kept @ (rows + (inside - kept @ inside) ** 2))
    assert ask.prior is not None
    own, unbiased = np.array([ask.prior.value]), None
    if _usable(own, weights).all():
        unbiased = conditionals(ask.moments, own, weights)[0].value
    return _result(ask, method, weights, value, variance, (low, high), unbiased, notes)


def usable_nodes(method: str, prior: ClassPrior, weights: Floats) -> tuple[Floats, Floats]:
    """Nodes of the prior at which every estimate with a weight is defined, and their mass."""
    shares, mass = prior.nodes()
    usable = _usable(shares, weights)
    if not usable.any():
        raise ValueError(f"method={method!r} is undefined at prior={prior.value:g}.")
    return shares[usable], mass[usable] / mass[usable].sum()


def _usable(shares: Floats, weights: Floats) -> Any:
    """Where every estimate with a weight is defined: PU needs < 1, NU needs > 0."""
    usable = np.ones(len(shares), dtype=bool)
    if weights[1] != 0.0:
        usable &= shares < 1.0
    if weights[2] != 0.0:
        usable &= shares > 0.0
    return usable


def _combined(ask: _Question, notes: list[str]) -> AUCEstimate:
    assert ask.prior is not None
    weighed = weigh(ask.counts, ask.moments, ask.prior)
    notes += _size_notes("combined", ask.moments.n)
    if weighed.note:
        notes.append(weighed.note)
    result = _estimate(ask, "combined", weighed.weights, notes)
    alone = _pn(ask)
    ratio = (result.high - result.low) / max(alone.high - alone.low, 1e-12)
    notes.append(
        f"The unlabelled rows help little here: the interval is {ratio:.2f} times as wide as that "
        "from positives and negatives alone."
        if ratio > 0.95
        else f"The unlabelled rows cut the width of the interval to {ratio:.2f} of that from "
        "positives and negatives alone."
    )
    return _with_notes(result, notes)


def _sharpest(ask: _Question, notes: list[str]) -> AUCEstimate:
    """ "combined" if the unlabelled rows make the interval clearly narrower, else "pn"."""
    assert ask.prior is not None
    alone = _pn(ask)
    if not ask.prior.identified:
        reason = "the prior cannot be estimated from these labels"
    else:
        try:
            _estimate(ask, "pu", np.eye(3)[1], [])  # a refuted prior is no part of any combination
            both = _combined(ask, [*notes, "auto chose 'combined': P, N, U and a prior are there."])
        except PriorRefutedError as error:
            reason = str(error).rstrip(".")
        else:
            if both.high - both.low <= _CLEARLY_NARROWER * (alone.high - alone.low):
                return both
            reason = "they would not make the interval clearly narrower"
    chosen = f"auto chose 'pn': the unlabelled rows are left out, because {reason}."
    return _with_notes(alone, [*notes, chosen, *_size_notes("pn", ask.moments.n)])


def _pn(ask: _Question) -> AUCEstimate:
    return _estimate(ask, "pn", np.eye(3)[0], [])


def _with_notes(result: AUCEstimate, notes: list[str]) -> AUCEstimate:
    return replace(result, notes=tuple(dict.fromkeys([*notes, *result.notes])))


def _refuted(ask: _Question, method: str) -> PriorRefutedError:
    assert ask.prior is not None
    raw = ask.moments.raw
    if method == "nu" or np.isnan(raw[1]):
        seen = f"unlabelled rows beat negatives in {raw[2]:.1%} of pairs"
    else:
        seen = f"positives beat unlabelled rows in {raw[1]:.1%} of pairs"
    return PriorRefutedError(
        f"A prior of {ask.prior.value:.3g} is refuted by these scores: {seen}, and no AUC between "
        "0 and 1 goes with that."
    )


def named_weights(method: str, weights: Floats) -> dict[str, float]:
    """Weights of the single estimates that a method is made of."""
    named = range(3) if method == "combined" else np.flatnonzero(weights)
    return {SINGLES[k]: float(weights[k]) for k in named}


def _result(
    ask: _Question,
    method: str,
    weights: Floats,
    value: float,
    variance: float,
    limits: tuple[float, float],
    unbiased: float | None,
    notes: list[str],
) -> AUCEstimate:
    prior = None if method == "pn" or method.endswith("_raw") else ask.prior
    inside = min(max(value, 0.0), 1.0)
    if inside != value:
        notes.append(
            f"The unbiased estimate is {value:.3f}; the nearest AUC is {inside:.0f}. Check the "
            "prior if this is far outside."
        )
    n = ask.counts.n_positive, ask.counts.n_negative, ask.counts.n_unlabeled
    return AUCEstimate(
        value=inside,
        std_error=float(np.sqrt(max(variance, 0.0))),
        low=min(limits[0], inside),
        high=max(limits[1], inside),
        level=ask.level,
        method=method,
        weights=named_weights(method, weights),
        n_positive=n[0],
        n_negative=n[1],
        n_unlabeled=n[2],
        prior=None if prior is None else prior.value,
        prior_std_error=None if prior is None else prior.std_error,
        notes=tuple(notes),
        unbiased=unbiased,
    )
