"""AUC with its standard error and interval from partly labelled scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.utils import check_consistent_length

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable
from pnuauc.core import ranks
from pnuauc.core.ranks import SINGLES, PairShares, ScoreCounts, raw_to_auc
from pnuauc.core.rows import group_numbers
from pnuauc.evaluation.conditional import (
    check_level,
    conditionals,
    known_prior,
    missing_prior,
    mixture_limits,
)
from pnuauc.exceptions import MissingRoleError, PriorRefutedError
from pnuauc.labels import ROLES, Roles, read_roles
from pnuauc.prior import ClassPrior
from pnuauc.tuning import INTERVALS

METHODS = ("auto", "pn", "pu", "nu", "combined", "pu_raw", "nu_raw")
#: Points and masses that integrate smooth functions against N(0, 1).
_POINTS, _MASS = np.polynomial.hermite_e.hermegauss(60)
_MASS /= _MASS.sum()


@dataclass(frozen=True, repr=False)
class AUCEstimate(ShownAsTable):
    """An AUC, how sure it is, and where it comes from.

    Attributes
    ----------
    value : float
        Estimate, inside [0, 1]; an uncertain prior is averaged over.
    std_error : float
        Read off the rows; 0 where no pair is misranked, and then the interval says more.
    low, high, level : float
        Limits of the confidence interval, inside [0, 1], and its confidence.
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
    notes: tuple[str, ...] = ()
    unbiased: float | None = None

    def __repr__(self) -> str:
        prior = "" if self.prior is None else f", prior={self.prior:.4g}"
        return (
            f"AUCEstimate({self.value:.4f}, std_error={self.std_error:.4f}, "
            f"{100 * self.level:g}% interval {self.low:.4f} to {self.high:.4f}, "
            f"method={self.method!r}, {self.n_positive} positive, {self.n_negative} negative, "
            f"{self.n_unlabeled} unlabelled{prior})"
        )


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
    AUC in [0, 1] fits the scores is refuted. Cost: one sort of the scores; ties are exact.

    Parameters
    ----------
    y : array-like, shape (n,), or Roles
        1 positive, 0 negative, -1 or missing unlabelled; other codes by ``label_codes``.
    scores : array-like, shape (n,)
        Any model's scores, higher for positives; infinities allowed, NaN not.
    prior : float, (low, high), or object with ``prior_``, optional
        Share of positives **inside the unlabelled rows**, not in the population. The uncertainty of
        an interval or an estimator is passed on; it is taken as independent of the scores' error.
    method : str
    level, prior_level : float
        Confidence of the interval, and of ``prior`` when it is one.
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
    values = ranks.check_scores(scores, len(roles))
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
        ranks.design_effect(values[rows], number[rows]) if len(rows) else 1.0
        for rows in roles.by_letter.values()
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
    moments = ranks.moments_of(counts)
    chosen, notes = choose_method(method, moments.n, known)
    if design_effects is not None:
        rows, moments = moments.n, ranks.clustered(moments, design_effects)
        worth = [
            f"{n:,} {role.word} rows as {w:,.0f}"
            for role, n, w in zip(ROLES, rows, moments.n, strict=True)
            if n
        ]
        notes.append(f"Rows of one group are alike: {', '.join(worth)} independent ones.")
    ask = _Request(counts, moments, known, level, variance_factor)
    if chosen != "combined":
        return ask.estimate(chosen, notes)
    alone = ask.estimate("pn", [])
    if method != "auto":
        return ask.combined(alone, notes)
    assert known is not None
    reason = "the prior cannot be estimated from these labels"
    if known.identified:
        try:
            ask.estimate("pu", [])  # a refuted prior is no part of any combination
            notes_both = [*notes, "auto chose 'combined': P, N, U and a prior are there."]
            both = ask.combined(alone, notes_both)
        except PriorRefutedError as error:
            reason = str(error).rstrip(".")
        else:
            if both.high - both.low <= INTERVALS.narrower.value * (alone.high - alone.low):
                return both
            reason = "they would not make the interval clearly narrower"
    notes.append(f"auto chose 'pn': the unlabelled rows are left out, because {reason}.")
    return replace(alone, notes=(*notes, *alone.notes))


def unbiased_auc(counts: ScoreCounts, prior: Any = None, method: str = "auto") -> float:
    """The estimate at the prior's own value, without an interval; it may lie outside [0, 1].

    To rank models or to average over folds: it is linear in the pair shares, and no prior refutes
    it. With neither prior nor both classes, "auto" is the share of pairs won, which ranks alike.
    """
    known = known_prior(prior)
    moments = ranks.moments_of(counts)
    chosen, _ = choose_method(rank_method(method, moments.n, known), moments.n, known)
    if known is None or chosen == "pn" or chosen.endswith("_raw"):
        return float(moments.raw[SINGLES.index(chosen.removesuffix("_raw"))])
    slope, offset = raw_to_auc(known.value)
    weights = weights_of(chosen)
    if chosen == "combined":
        weights, _ = weigh(moments, ClassPrior.known(known.value))
    used = weights != 0.0
    return float(weights[used] @ (slope * moments.raw - offset)[used])


def check_method(method: str) -> None:
    """An error that names the methods unless ``method`` is one of them."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")


def rank_method(method: str, n: Sequence[float], prior: ClassPrior | None) -> str:
    """The method to rank models by: without a prior and a class, shares of pairs rank alike."""
    if method != "auto" or prior is not None or (n[0] and n[1]):
        return method
    return "pu_raw" if n[0] else "nu_raw"


def choose_method(
    method: str, n: Sequence[float], prior: ClassPrior | None
) -> tuple[str, list[str]]:
    """The method that will be used, and why, or an error that names what is missing.

    ``n`` are the numbers of rows of P, N and U.
    """
    check_method(method)
    pairs = dict(zip(SINGLES, ranks.PAIRS, strict=True))
    possible = [name for name in SINGLES if all(n[r] for r in pairs[name])]
    counts = f"{n[0]} positive, {n[1]} negative and {n[2]} unlabelled rows"
    if not possible:
        raise MissingRoleError(
            f"An AUC needs two of positive, negative and unlabelled rows: y holds {counts}."
        )
    notes: list[str] = []
    if method == "auto" and len(possible) < 3:
        method = possible[0]
        notes.append(f"auto chose {method!r}: y holds {counts}.")
    elif method == "auto" and prior is None:
        method = "pn"
        notes.append("auto chose 'pn': without a prior the unlabelled rows are not used.")
    elif method == "auto":
        method = "combined"
    elif method == "combined" and len(possible) == 1:
        method = possible[0]
        notes.append(f"Only {method!r} is possible, so 'combined' is {method!r}: {counts}.")
    base = method.removesuffix("_raw")
    if base in SINGLES and base not in possible:
        role = next(ROLES[r].word for r in pairs[base] if not n[r])
        raise MissingRoleError(f"method={method!r} needs {role} rows: y holds {counts}.")
    if method in {"pu", "nu", "combined"} and prior is None:
        raise missing_prior(f"method={method!r}")
    undefined = {"pu": 1.0, "nu": 0.0}
    if prior is not None and prior.std_error == 0 and undefined.get(method) == prior.value:
        raise ValueError(f"method={method!r} is undefined at prior={prior.value:g}.")
    return method, notes


def weights_of(method: str) -> Floats:
    """Of (PN, PU, NU), shape (3,); PN for a combination, whose weights need the rows."""
    base = "pn" if method == "combined" else method.removesuffix("_raw")
    return np.asarray(np.eye(3)[SINGLES.index(base)])


def named_weights(method: str, weights: Floats) -> dict[str, float]:
    """Weights of the single estimates that a method is made of."""
    named = range(3) if method == "combined" else np.flatnonzero(weights)
    return {SINGLES[k]: float(weights[k]) for k in named}


@dataclass(frozen=True, eq=False)
class _Request:
    """Scores, prior and confidence of one request."""

    counts: ScoreCounts
    moments: PairShares
    prior: ClassPrior | None
    level: float
    variance_factor: float

    def combined(self, alone: AUCEstimate, notes: list[str]) -> AUCEstimate:
        """All three, beside ``alone``: the estimate from P and N."""
        assert self.prior is not None
        weights, note = weigh(self.moments, self.prior)
        result = self.estimate("combined", [*notes, *([note] if note else [])], weights)
        ratio = (result.high - result.low) / max(alone.high - alone.low, 1e-12)
        helped = (
            f"With the unlabelled rows the interval is {ratio:.2f} times as wide as from positives "
            "and negatives alone."
        )
        return replace(result, notes=(*result.notes, helped))

    def estimate(self, method: str, notes: list[str], weights: Floats | None = None) -> AUCEstimate:
        """The mixture over the prior's distribution of the estimates at each prior.

        A known prior leaves one estimate; so does PN, which does not look at the prior.
        """
        weights = weights_of(method) if weights is None else weights
        moments, used, notes = self.moments, weights, list(notes)
        shares, mass, prior = np.array([0.5]), np.ones(1), self.prior
        if method.endswith("_raw"):
            moments, used = _as_labeled(moments, method), weights_of("pn")
            rival = "an unlabelled row" if method == "pu_raw" else "a negative"
            notes.insert(0, f"{method!r} is the share of pairs won against {rival}, not an AUC.")
        if method == "pn" or method.endswith("_raw"):
            prior = None
        else:
            assert prior is not None
            shares, mass = usable_nodes(method, prior, weights)
        parts = conditionals(moments, shares, used, self.variance_factor)
        mixed = mixture_limits(parts, mass, self.level)
        if mixed is None:
            raise self._refuted(method)
        low, high, kept = mixed
        raw_weights = np.nan_to_num(raw_to_auc(shares)[0]) * used
        rows = self.variance_factor * np.einsum(
            "ji,ik,jk->j", raw_weights, moments.by_role.sum(axis=0), raw_weights
        )
        inside = np.clip(parts.value, 0.0, 1.0)
        value = float(kept @ inside)
        variance = float(kept @ (rows + (inside - value) ** 2))
        unbiased: float | None = float(parts.value[0])
        if len(shares) > 1:
            assert prior is not None
            value = min(max(value, low), high)
            own = np.array([prior.value])
            usable = _usable(own, weights).all()
            unbiased = float(conditionals(moments, own, weights).value[0]) if usable else None
        elif unbiased != value:
            notes.append(
                f"The unbiased estimate is {unbiased:.3f}; the nearest AUC is {value:.0f}. Check "
                "the prior if this is far outside."
            )
        elif rows[0] <= 0.0 and value in (0.0, 1.0):
            pairs = "Every pair is" if value == 0.0 else "Not one pair is"
            notes.append(
                f"{pairs} misranked, so the standard error reads zero; the interval is the one "
                "that this number of rows allows."
            )
        return AUCEstimate(
            value=value,
            std_error=float(np.sqrt(max(variance, 0.0))),
            low=min(low, value),
            high=max(high, value),
            level=self.level,
            method=method,
            weights=named_weights(method, weights),
            n_positive=self.counts.n_positive,
            n_negative=self.counts.n_negative,
            n_unlabeled=self.counts.n_unlabeled,
            prior=None if prior is None else prior.value,
            prior_std_error=None if prior is None else prior.std_error,
            notes=tuple(notes),
            unbiased=unbiased,
        )

    def _refuted(self, method: str) -> PriorRefutedError:
        assert self.prior is not None
        raw = self.moments.raw
        if method == "nu" or np.isnan(raw[1]):
            seen = f"unlabelled rows beat negatives in {raw[2]:.1%} of pairs"
        else:
            seen = f"positives beat unlabelled rows in {raw[1]:.1%} of pairs"
        return PriorRefutedError(
            f"A prior of {self.prior.value:.3g} is refuted by these scores: {seen}, and no AUC "
            "between 0 and 1 goes with that."
        )


def _as_labeled(moments: PairShares, method: str) -> PairShares:
    """A share of pairs between two samples, whatever they hold: read as P against N."""
    k = SINGLES.index(method.removesuffix("_raw"))
    first, second = ranks.PAIRS[k]
    by_role = np.zeros((3, 3, 3))
    by_role[0][0, 0], by_role[1][0, 0] = (moments.by_role[r][k, k] for r in (first, second))
    raw = np.array([moments.raw[k], np.nan, np.nan])
    return PairShares(raw, by_role, (moments.n[first], moments.n[second], 0))


def usable_nodes(method: str, prior: ClassPrior, weights: Floats) -> tuple[Floats, Floats]:
    """Nodes of the prior at which every estimate with a weight is defined, and their mass."""
    shares, mass = prior.nodes()
    usable = _usable(shares, weights)
    if not usable.any():
        raise ValueError(f"method={method!r} is undefined at prior={prior.value:g}.")
    return shares[usable], mass[usable] / mass[usable].sum()


def _usable(shares: Floats, weights: Floats) -> Any:
    """Where every estimate with a weight is defined: PU needs < 1, NU needs > 0."""
    return ((weights[1] == 0.0) | (shares < 1.0)) & ((weights[2] == 0.0) | (shares > 0.0))


# Weights of a combination.


def weigh(moments: PairShares, prior: ClassPrior) -> tuple[Floats, str | None]:
    """Weights of (PN, PU, NU) that are best on average over the prior, and what was left out.

    From the numbers of rows and a binormal model with the AUC of these scores.
    """
    shares, mass = prior.nodes(7)
    slope, offset = raw_to_auc(shares)
    values = slope * moments.raw - offset
    away = 0.0 if len(shares) == 1 else INTERVALS.away.value
    allowed = np.array([True, shares.max() < 1.0 - away, shares.min() > away])
    note = None
    if len(shares) > 1 and not allowed.all():
        names = " and ".join(SINGLES[k].upper() for k in np.flatnonzero(~allowed))
        note = f"{names} left out: the prior may be too near to an end."
    finite = np.isfinite(values)
    kept = np.flatnonzero(allowed & finite.all(axis=0))
    if not len(kept):
        kept = np.flatnonzero(finite.any(axis=0))
    weights = np.zeros(3)
    if len(kept) == 1:
        weights[kept] = 1.0
        return weights, note
    guess = round(float(np.clip(values[:, kept[0]] @ mass, 0.02, 0.98)), 3)
    total = sum(
        m * planned_covariance(moments.n, float(share), guess)
        for share, m in zip(np.clip(shares, 1e-6, 1.0 - 1e-6), mass, strict=True)
    )
    centred = values[:, kept] - mass @ values[:, kept]
    matrix = np.asarray(total)[np.ix_(kept, kept)] + (centred * mass[:, None]).T @ centred
    weights[kept] = combination_weights(matrix)
    return weights, note


@lru_cache(maxsize=256)
def _binormal(auc: float, prior: float) -> Floats:
    """Role covariances of the projections for N(d, 1) against N(0, 1), shape (3, 3, 3)."""
    shift, rest = np.sqrt(2.0) * special.ndtri(auc), 1.0 - prior
    points = (_POINTS + shift, _POINTS, np.concatenate([_POINTS + shift, _POINTS]))
    masses = (_MASS, _MASS, np.concatenate([prior * _MASS, rest * _MASS]))
    blocks = []
    for k, (at, weight) in enumerate(zip(points, masses, strict=True)):
        f_p, f_n = special.ndtr(at - shift), special.ndtr(at)
        f_u, zero = prior * f_p + rest * f_n, np.zeros_like(at)
        x = np.stack(
            (
                [f_n, f_u / rest, zero],
                [1.0 - f_p, zero, (1.0 - f_u) / prior],
                [zero, (1.0 - f_p) / rest, f_n / prior],
            )[k]
        )
        x = x - (x @ weight)[:, None]
        blocks.append((x * weight) @ x.T)
    return np.stack(blocks)


def planned_covariance(n: Sequence[float], prior: float, auc: float = 0.8) -> Floats:
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
