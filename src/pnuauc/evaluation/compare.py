"""Two score columns on the same rows: difference of AUC, paired, with a p-value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable
from pnuauc.core.moments import Moments
from pnuauc.core.ranks import (
    SINGLES,
    Counts,
    ScoreCounts,
    check_scores,
    count_cells,
    moments_of,
    placements,
    raw_to_auc,
)
from pnuauc.evaluation.conditional import (
    REFUTED,
    check_level,
    conditionals,
    known_prior,
    satterthwaite,
    t_quantile,
)
from pnuauc.evaluation.estimate import (
    METHODS,
    PAIRS,
    choose_method,
    design_effects,
    named_weights,
    usable_nodes,
    weigh,
)
from pnuauc.labels import UNLABELED, Roles, read_roles
from pnuauc.prior import ClassPrior

__all__ = ["AUCComparison", "LabeledPairs", "PairCounts", "compare_auc", "compare_counted", "holm"]


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
    groups: Any = None,
    **label_codes: Any,
) -> AUCComparison:
    """AUC(a) - AUC(b), paired: projections are subtracted row by row before their variance.

    Which of two models has the larger PU-AUC, and whether the difference is significant, needs
    **no prior**: the difference is (A_PU(a) - A_PU(b)) / (1 - prior), and the factor cancels. So
    on P and U without a prior "auto" compares by "pu_raw" instead of failing.

    Parameters
    ----------
    y, prior, method, level, prior_level, groups, **label_codes
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
    roles = read_roles(y, **label_codes)
    a = check_scores(scores_a, len(roles), "scores_a")
    b = check_scores(scores_b, len(roles), "scores_b")
    unlabeled = roles.codes == UNLABELED
    labeled = LabeledPairs(roles.take(~unlabeled), a[~unlabeled], b[~unlabeled])
    counted = labeled.count(a[unlabeled], b[unlabeled])
    effects = (
        None
        if groups is None
        else design_effects(roles, stats.rankdata(a) - stats.rankdata(b), groups)
    )
    return compare_counted(
        labeled, counted, prior, method, level, prior_level=prior_level, design_effects=effects
    )


def compare_counted(
    labeled: LabeledPairs,
    counted: PairCounts,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    prior_level: float = 0.95,
    design_effects: tuple[float, float, float] | None = None,
) -> AUCComparison:
    """As :func:`compare_auc`, from labelled rows and the merged counts of the unlabelled ones."""
    check_level(level)
    known = known_prior(prior, prior_level)
    n = (labeled.roles.n_positive, labeled.roles.n_negative, int(counted.spread.n))
    method, notes = _choose(method, n, known)
    rows: tuple[float, ...] = n
    base = method.removesuffix("_raw")
    by_role, raw_a, raw_b = _paired(labeled, counted)
    if design_effects is not None:
        by_role = by_role * np.array(design_effects)[:, None, None]
        rows = tuple(count / d for count, d in zip(n, design_effects, strict=True))
    if base == "combined":
        weights, note = _common_weights(labeled, counted, known, by_role)
        notes.append(note)
    else:
        weights = np.eye(3)[SINGLES.index(base)]
    shares, mass, slopes = _slopes(method, known, weights)
    if known is not None and len(shares) > 1:
        mass = _not_refuted(labeled, counted, shares, mass, weights)
    # the prior only scales a difference: sampling error at the mean slope, its own error on top
    raw_weights = weights * (mass @ slopes)
    parts = np.einsum("i,rij,j->r", raw_weights, by_role, raw_weights)
    gap = np.nan_to_num(raw_a - raw_b)
    per_prior = slopes @ (weights * gap)
    scatter = float(np.sqrt(mass @ (per_prior - mass @ per_prior) ** 2))
    unbiased, sampling = float(mass @ per_prior), float(np.sqrt(parts.sum()))
    df = satterthwaite(parts, rows)
    p_value = float(2.0 * stats.t.sf(abs(unbiased) / sampling, df)) if sampling > 0 else 1.0
    # a difference without a visible variance is not a certain one: its interval is everything
    blind = sampling == 0.0 and unbiased != 0.0
    if blind:
        notes.append("Every row shows the same difference, so no variance can be estimated.")
    elif sampling == 0.0:
        notes.append("Both columns rank the rows alike.")
    std_error = float(np.hypot(sampling, scatter))
    # of the values as they are stated, each inside [0, 1]; the test looks at the unbiased one
    value_a, value_b = (_on_average(method, weights, raw, shares, mass) for raw in (raw_a, raw_b))
    half = 2.0 if blind else t_quantile(level, df) * std_error
    low, high = np.clip([value_a - value_b - half, value_a - value_b + half], -1.0, 1.0)
    return AUCComparison(
        difference=value_a - value_b,
        std_error=std_error,
        low=float(low),
        high=float(high),
        level=level,
        p_value=p_value,
        value_a=value_a,
        value_b=value_b,
        method=method,
        weights=named_weights(method, weights),
        notes=tuple(notes),
    )


def holm(p_values: ArrayLike) -> Floats:
    """p-values of many comparisons, adjusted after Holm (1979), shape (m,).

    The i-th smallest becomes max over j <= i of min(1, (m - j + 1) p_(j)). Calling those below 5%
    different errs in one comparison or more in at most 5% of tables, however the comparisons depend
    on each other.

    Examples
    --------
    >>> holm([0.04, 0.01, 0.03]).round(3).tolist()
    [0.06, 0.03, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(np.minimum(np.arange(len(p), 0, -1) * p[order], 1.0))
    return adjusted


def _not_refuted(
    labeled: LabeledPairs, counted: PairCounts, shares: Floats, mass: Floats, weights: Floats
) -> Floats:
    """What priors keep of their mass, shape (J,): the confidence in AUCs inside [0, 1].

    As for one model (:func:`mixture_limits`), of both models: a prior under which either would
    rank better than perfectly is impossible.
    """
    kept = mass.copy()
    for counts in _counts_of(labeled, counted):
        parts = conditionals(moments_of(counts), shares, weights)
        kept *= [float(np.diff(part.distribution(np.array([0.0, 1.0])))[0]) for part in parts]
    total = float(kept.sum())
    return kept / total if total > 1.0 - REFUTED else mass


def _counts_of(labeled: LabeledPairs, counted: PairCounts) -> list[ScoreCounts]:
    return [
        replace(ScoreCounts.from_roles(labeled.roles, scores), unlabeled=cells)
        for scores, cells in zip(labeled.columns, counted.cells, strict=True)
    ]


def _slopes(
    method: str, prior: ClassPrior | None, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Nodes of the prior, their mass, and the slope of each estimate's AUC in its pair share."""
    if method.endswith("_raw") or prior is None or not weights[1:].any():
        return np.array([np.nan]), np.ones(1), np.ones((1, 3))
    shares, mass = usable_nodes(method, prior, weights)
    return shares, mass, np.nan_to_num(raw_to_auc(shares)[0])


def _on_average(method: str, weights: Floats, raw: Floats, shares: Floats, mass: Floats) -> float:
    """One model's own value: on the scale of the method, an AUC moved inside [0, 1]."""
    used = weights != 0.0
    if np.isnan(shares[0]):
        return float(weights[used] @ raw[used])
    slope, offset = raw_to_auc(shares)
    values = (slope * raw - offset)[:, used] @ weights[used]
    return float(mass @ np.clip(values, 0.0, 1.0))


def _choose(
    method: str, n: tuple[float, float, float], prior: ClassPrior | None
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


@dataclass(frozen=True, eq=False)
class PairCounts:
    """What a comparison needs of unlabelled rows. Mergeable: ``a + b`` are those of both blocks.

    cells : two arrays of shape (2K + 1,), rows in each cell of a column's anchors
    spread : Moments of the difference a - b of the rows' projections, shape (3,)
    """

    cells: tuple[Counts, Counts]
    spread: Moments

    def __add__(self, other: PairCounts) -> PairCounts:
        cells = (self.cells[0] + other.cells[0], self.cells[1] + other.cells[1])
        return PairCounts(cells, self.spread + other.spread)


@dataclass(frozen=True, eq=False)
class LabeledPairs:
    """The labelled rows of two score columns: few, so that they can be sent to where U lives.

    roles : Roles of shape (n,), without unlabelled rows
    a, b : ndarray, shape (n,)
    """

    roles: Roles
    a: Floats
    b: Floats

    @property
    def columns(self) -> tuple[Floats, Floats]:
        return self.a, self.b

    def count(self, a: Floats, b: Floats) -> PairCounts:
        """Counts of some unlabelled rows, scores of shape (n,) each."""
        cells = (count_cells(a, np.unique(self.a)), count_cells(b, np.unique(self.b)))
        difference = self._of_unlabeled(a, self.a) - self._of_unlabeled(b, self.b)
        return PairCounts(cells, Moments.from_rows(difference.T))

    def _of_unlabeled(self, u: Floats, scores: Floats) -> Floats:
        """Projections of the raw (PN, PU, NU) on unlabelled rows, shape (3, n)."""
        p, n = np.sort(scores[self.roles.positive]), np.sort(scores[self.roles.negative])
        return np.stack([np.zeros(len(u)), 1.0 - _placements(u, p), _placements(u, n)])

    def projections(self, scores: Floats, cells: Counts) -> list[Floats]:
        """Projections of the raw (PN, PU, NU) on each row of P and N; arrays of shape (3, n)."""
        p, n = scores[self.roles.positive], scores[self.roles.negative]
        anchors, below = np.unique(scores), placements(cells)[1::2]
        of_p, of_n = (below[np.searchsorted(anchors, part)] for part in (p, n))
        return [
            np.stack([_placements(p, np.sort(n)), of_p, np.zeros(len(p))]),
            np.stack([1.0 - _placements(n, np.sort(p)), np.zeros(len(n)), 1.0 - of_n]),
        ]


def _paired(labeled: LabeledPairs, counted: PairCounts) -> tuple[Floats, Floats, Floats]:
    """Covariance of the difference by role, shape (3, 3, 3), and both models' raw pair means."""
    of_a, of_b = (
        labeled.projections(scores, cells)
        for scores, cells in zip(labeled.columns, counted.cells, strict=True)
    )
    spreads = [Moments.from_rows((x - z).T) for x, z in zip(of_a, of_b, strict=True)]
    by_role = np.zeros((3, 3, 3))
    for k, found in enumerate((*spreads, counted.spread)):
        if found.n >= 2:
            by_role[k] = found.scatter / (found.n - 1) / found.n
        elif found.n == 1:
            by_role[k] = np.outer(found.mean, found.mean)  # its whole difference counts as spread
    n = (*(m.n for m in spreads), counted.spread.n)
    raw = [np.full(3, np.nan), np.full(3, np.nan)]
    for target, source in zip(raw, (of_a, of_b), strict=True):
        for k, (winner, loser) in enumerate(PAIRS[name] for name in SINGLES):
            if n[winner] and n[loser]:
                target[k] = source[min(winner, loser)][k].mean()
    return by_role, raw[0], raw[1]


def _common_weights(
    labeled: LabeledPairs, counted: PairCounts, prior: ClassPrior | None, by_role: Floats
) -> tuple[Floats, str]:
    """One set of weights for both models: the mean of their own, unless a single one is tighter.

    Weights fitted to the covariance of the difference itself were refused: near ties between
    models make it close to singular, and the weights wild.
    """
    assert prior is not None
    own = [weigh(c, moments_of(c), prior).weights for c in _counts_of(labeled, counted)]
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
