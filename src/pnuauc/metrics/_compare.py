"""Two score columns on the same rows: difference of AUC, paired, with a p-value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pnuauc._prior import ClassPrior
from pnuauc._shown import ShownAsTable
from pnuauc.labels import Roles, read_roles
from pnuauc.metrics._counts import Floats, ScoreCounts, check_scores
from pnuauc.metrics._estimate import METHODS, PAIRS, choose_method
from pnuauc.metrics._interval import check_level, satterthwaite, t_quantile
from pnuauc.metrics._moments import SINGLES, moments_of, raw_to_auc
from pnuauc.metrics._prior import known_prior
from pnuauc.metrics._weights import weigh

__all__ = ["AUCComparison", "compare_auc"]


@dataclass(frozen=True, repr=False)
class AUCComparison(ShownAsTable):
    """Difference a - b of two AUCs on the same rows.

    Attributes
    ----------
    difference, std_error, low, high, level : float
        On the scale of ``method``; "pu_raw" and "nu_raw" are the AUC difference times
        (1 - prior) and prior.
    p_value : float
        Two-sided, of no difference. For "pu" and "nu" it does not depend on the prior.
    value_a, value_b : float
    method : str
    weights : dict of str to float
        Weight of each single estimate, the same for both models.
    notes : tuple of str
    """

    difference: float
    std_error: float
    low: float
    high: float
    level: float
    p_value: float
    value_a: float
    value_b: float
    method: str
    weights: dict[str, float]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists: ready for JSON."""
        return asdict(self) | {"notes": list(self.notes)}


def compare_auc(
    y: Any,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    prior_level: float = 0.95,
    **label_codes: Any,
) -> AUCComparison:
    """AUC(a) - AUC(b), paired: projections are subtracted row by row before their variance.

    Which of two models has the larger PU-AUC, and whether the difference is significant, needs
    **no prior**: the difference is (A_PU(a) - A_PU(b)) / (1 - prior), and the factor cancels. So
    on P and U without a prior "auto" compares by "pu_raw" instead of failing.

    Parameters
    ----------
    y, prior, method, level, prior_level, **label_codes
        As in :func:`pnuauc.metrics.auc_estimate`; ``prior`` is the share of positives inside U.
    scores_a, scores_b : array-like, shape (n,)

    Returns
    -------
    AUCComparison

    Examples
    --------
    >>> y = [1, 1, 1, None, None, None, None]
    >>> result = compare_auc(y, [5, 6, 7, 4, 3, 2, 1], [5, 1, 7, 4, 3, 2, 6])
    >>> result.method, round(result.difference, 4), result.p_value < 1
    ('pu_raw', 0.4167, True)
    """
    check_level(level)
    roles = read_roles(y, **label_codes)
    a = check_scores(scores_a, len(roles), "scores_a")
    b = check_scores(scores_b, len(roles), "scores_b")
    known = known_prior(prior, prior_level)
    n = roles.counts
    method, notes = _choose(method, n, known)
    base = method.removesuffix("_raw")
    by_role, raw_a, raw_b = _paired(roles, a, b)
    if base == "combined":
        weights, note = _common_weights(roles, a, b, known, by_role)
        notes.append(note)
    else:
        weights = np.eye(3)[SINGLES.index(base)]
    shares, mass, slopes = _slopes(method, known, weights)
    # the prior only scales a difference: sampling error at the mean slope, its own error on top
    raw_weights = weights * (mass @ slopes)
    parts = np.einsum("i,rij,j->r", raw_weights, by_role, raw_weights)
    gap = np.nan_to_num(raw_a - raw_b)
    per_prior = slopes @ (weights * gap)
    scatter = float(np.sqrt(mass @ (per_prior - mass @ per_prior) ** 2))
    totals = [_on_average(method, weights, raw, shares, mass) for raw in (raw_a, raw_b)]
    difference = float(mass @ per_prior)
    return _result(difference, totals, parts, n, scatter, level, method, weights, notes)


def _slopes(
    method: str, prior: ClassPrior | None, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Nodes of the prior, their mass, and the slope of each estimate's AUC in its pair share."""
    if method.endswith("_raw") or prior is None or not weights[1:].any():
        return np.array([np.nan]), np.ones(1), np.ones((1, 3))
    shares, mass = prior.nodes()
    usable = np.ones(len(shares), dtype=bool)
    if weights[1] != 0.0:
        usable &= shares < 1.0
    if weights[2] != 0.0:
        usable &= shares > 0.0
    if not usable.any():
        raise ValueError(f"method={method!r} is undefined at prior={prior.value:g}.")
    shares, mass = shares[usable], mass[usable] / mass[usable].sum()
    return shares, mass, np.stack([np.nan_to_num(raw_to_auc(float(t))[0]) for t in shares])


def _on_average(method: str, weights: Floats, raw: Floats, shares: Floats, mass: Floats) -> float:
    """One model's own value: on the scale of the method, an AUC moved inside [0, 1]."""
    used = weights != 0.0
    if np.isnan(shares[0]):
        return float(weights[used] @ raw[used])
    scales = [raw_to_auc(float(t)) for t in shares]
    values = [float(weights[used] @ (slope * raw - offset)[used]) for slope, offset in scales]
    return float(mass @ np.clip(values, 0.0, 1.0))


def _choose(
    method: str, n: tuple[int, int, int], prior: ClassPrior | None
) -> tuple[str, list[str]]:
    """As for one model, except that PU and NU are compared on the raw scale without a prior."""
    if prior is None and method in {"auto", "pu", "nu"} and method in METHODS:
        single = method
        if method == "auto" and not (n[0] and n[1]):
            single = next((k for k in ("pu", "nu") if all(n[r] for r in PAIRS[k])), method)
        if single in {"pu", "nu"}:
            name, notes = choose_method(f"{single}_raw", n, None)
            return name, [
                *notes,
                "No prior given: sign and p-value do not need one; the difference is in units "
                "of pairs won, not of AUC.",
            ]
    return choose_method(method, n, prior)


def _placements(values: Floats, reference: Floats) -> Floats:
    """F of each value against a sorted reference, by midranks, shape (n,)."""
    if len(reference) == 0:
        return np.zeros(len(values))
    left = np.searchsorted(reference, values, side="left")
    right = np.searchsorted(reference, values, side="right")
    return (left + right) / (2.0 * len(reference))


def _row_projections(roles: Roles, scores: Floats) -> list[Floats]:
    """Projections of the raw (PN, PU, NU) on each row of P, N, U; arrays of shape (3, n_role)."""
    parts = [scores[rows] for rows in (roles.positive, roles.negative, roles.unlabeled)]
    p, n, u = parts
    ordered = [np.sort(part) for part in parts]
    zeros = [np.zeros(len(part)) for part in parts]
    return [
        np.stack([_placements(p, ordered[1]), _placements(p, ordered[2]), zeros[0]]),
        np.stack([1.0 - _placements(n, ordered[0]), zeros[1], 1.0 - _placements(n, ordered[2])]),
        np.stack([zeros[2], 1.0 - _placements(u, ordered[0]), _placements(u, ordered[1])]),
    ]


def _paired(roles: Roles, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Covariance of the difference by role, shape (3, 3, 3), and both models' raw pair means."""
    of_a, of_b = _row_projections(roles, a), _row_projections(roles, b)
    by_role = np.zeros((3, 3, 3))
    for k, (x, z) in enumerate(zip(of_a, of_b, strict=True)):
        n = x.shape[1]
        d = x - z
        if n >= 2:
            d = d - d.mean(axis=1, keepdims=True)
            by_role[k] = d @ d.T / (n - 1) / n
        elif n == 1:
            by_role[k] = d @ d.T  # one row: its whole difference counts as spread
    raw = [np.full(3, np.nan), np.full(3, np.nan)]
    for target, source in zip(raw, (of_a, of_b), strict=True):
        for k, (winner, loser) in enumerate(PAIRS[name] for name in SINGLES):
            if source[winner].shape[1] and source[loser].shape[1]:
                target[k] = source[winner][k].mean()
    return by_role, raw[0], raw[1]


def _common_weights(
    roles: Roles, a: Floats, b: Floats, prior: ClassPrior | None, by_role: Floats
) -> tuple[Floats, str]:
    """One set of weights for both models: the mean of their own, unless a single one is tighter.

    Weights fitted to the covariance of the difference itself were refused: near ties between
    models make it close to singular, and the weights wild.
    """
    assert prior is not None
    counts = [ScoreCounts.from_roles(roles, s) for s in (a, b)]
    own = [weigh(c, moments_of(c), prior).weights for c in counts]
    weights = np.mean(own, axis=0)
    usable = np.flatnonzero(np.all(np.array(own) != 0.0, axis=0))
    slope = np.nan_to_num(raw_to_auc(prior.value)[0])
    covariance = by_role.sum(axis=0) * np.outer(slope, slope)
    if not len(usable):
        return weights, "The same weights are used for both models."
    best = int(usable[np.argmin(np.diag(covariance)[usable])])
    if covariance[best, best] < weights @ covariance @ weights:
        return np.eye(3)[best], f"For this difference {SINGLES[best]!r} alone is tightest."
    return weights, "The same weights are used for both models."


def _result(
    difference: float,
    totals: list[float],
    parts: Floats,
    n: tuple[int, int, int],
    prior_part: float,
    level: float,
    method: str,
    weights: Floats,
    notes: list[str],
) -> AUCComparison:
    sampling = float(np.sqrt(parts.sum()))
    df = satterthwaite(parts, n)
    if sampling > 0:
        p_value = float(2.0 * stats.t.sf(abs(difference) / sampling, df))
    else:
        p_value = 1.0
        notes.append(
            "Both columns rank the rows alike."
            if difference == 0
            else "Every row shows the same difference, so no variance can be estimated."
        )
    std_error = float(np.hypot(sampling, prior_part))
    # a difference without a visible variance is not a certain one: its interval is everything
    blind = sampling == 0.0 and difference != 0.0
    half = 2.0 if blind else t_quantile(level, df) * std_error
    low, high = np.clip([difference - half, difference + half], -1.0, 1.0)
    named = SINGLES if method == "combined" else [SINGLES[k] for k in np.flatnonzero(weights)]
    return AUCComparison(
        difference=difference,
        std_error=std_error,
        low=float(low),
        high=float(high),
        level=level,
        p_value=p_value,
        value_a=totals[0],
        value_b=totals[1],
        method=method,
        weights={name: float(weights[SINGLES.index(name)]) for name in named},
        notes=tuple(notes),
    )
