"""Two score columns on the same rows: difference of AUC, paired, with a p-value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable
from pnuauc.core import ranks
from pnuauc.core.moments import Moments
from pnuauc.core.ranks import SINGLES, USES, Counts, ScoreCounts, projections, raw_to_auc
from pnuauc.evaluation import conditional, estimate
from pnuauc.labels import UNLABELED, Roles, read_roles
from pnuauc.prior import ClassPrior
from pnuauc.tuning import INTERVALS


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

    Examples
    --------
    >>> y = [1, 1, 1, None, None, None, None]
    >>> result = compare_auc(y, [5, 6, 7, 4, 3, 2, 1], [5, 1, 7, 4, 3, 2, 6])
    >>> result.method, round(result.difference, 4), result.p_value < 1
    ('pu_raw', 0.4167, True)
    """
    roles = read_roles(y, **label_codes)
    a = ranks.check_scores(scores_a, len(roles), "scores_a")
    b = ranks.check_scores(scores_b, len(roles), "scores_b")
    unlabeled = roles.codes == UNLABELED
    labeled = LabeledPairs(roles.take(~unlabeled), (a[~unlabeled], b[~unlabeled]))
    counted = labeled.count(a[unlabeled], b[unlabeled])
    effects = None
    if groups is not None:
        shift = stats.rankdata(a) - stats.rankdata(b)
        effects = estimate.design_effects(roles, shift, groups)
    return compare_counted(
        labeled, counted, prior, method, level, prior_level=prior_level, design_effects=effects
    )


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
    columns : two arrays of scores, shape (n,)
    """

    roles: Roles
    columns: tuple[Floats, Floats]

    def count(self, a: Floats, b: Floats) -> PairCounts:
        """Counts of some unlabelled rows, scores of shape (n,) each."""
        both = [ScoreCounts.from_roles(self.roles, scores) for scores in self.columns]
        first, second = (
            ranks.count_cells(u, own.anchors) for own, u in zip(both, (a, b), strict=True)
        )
        return PairCounts((first, second), _moments(both, (a, b), 2))

    def score_counts(self, counted: PairCounts) -> list[ScoreCounts]:
        """Counts of all rows, of each column."""
        return [
            replace(ScoreCounts.from_roles(self.roles, scores), unlabeled=cells)
            for scores, cells in zip(self.columns, counted.cells, strict=True)
        ]


def _moments(both: list[ScoreCounts], scores: Sequence[Floats], r: int) -> Moments:
    """Of the difference of the projections of (PN, PU, NU) on some rows of one role."""
    found = []
    for own, values in zip(both, scores, strict=True):
        # cell 2k is the interval below anchor k, 2k + 1 the anchor
        cells = sum(np.searchsorted(own.anchors, values, side) for side in ("left", "right"))
        found.append(projections(own.positive, own.negative, own.unlabeled)[r][:, cells])
    difference = np.zeros((len(scores[0]), 3))
    difference[:, USES[r]] = (found[0] - found[1]).T
    return Moments.from_rows(difference)


def _covariance(rows: Moments) -> Floats:
    """Of the mean difference over one role, shape (3, 3); one row's difference is all spread."""
    if rows.n < 2:
        return np.outer(rows.mean, rows.mean) if rows.n else np.zeros((3, 3))
    return np.asarray(rows.scatter / (rows.n - 1) / rows.n)


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
    conditional.check_level(level)
    known = conditional.known_prior(prior, prior_level)
    both = labeled.score_counts(counted)
    spreads = [
        _moments(both, [scores[rows] for scores in labeled.columns], r)
        for r, rows in enumerate((labeled.roles.positive, labeled.roles.negative))
    ]
    spreads.append(counted.spread)
    n = [int(found.n) for found in spreads]
    effects = np.ones(3) if design_effects is None else np.asarray(design_effects)
    by_role = np.stack([_covariance(found) for found in spreads]) * effects[:, None, None]
    method, notes = _method(method, n, known)
    moments = [ranks.moments_of(counts) for counts in both]

    # one set of weights for both models
    weights = estimate.weights_of(method)
    if method == "combined":
        assert known is not None
        own = [estimate.weigh(m, known)[0] for m in moments]
        weights, note = _common_weights(own, by_role.sum(axis=0), known.value)
        notes.append(note)

    # AUCs are slope * share of pairs - offset at each node of the prior
    slope, offset, mass = np.ones((1, 3)), np.zeros((1, 3)), np.ones(1)
    if known is not None and weights[1:].any() and not method.endswith("_raw"):
        shares, mass = estimate.usable_nodes(method, known, weights)
        slope, offset = map(np.nan_to_num, raw_to_auc(shares))
        # priors keep what the scores of both models leave them, as in `mixture_limits`
        kept = mass * np.prod(
            [conditional.conditionals(m, shares, weights).inside() for m in moments], axis=0
        )
        if len(shares) > 1 and kept.sum() > 1.0 - INTERVALS.refuted.value:
            mass = kept / kept.sum()
    raw_a, raw_b = (np.nan_to_num(each.raw) for each in moments)
    # the prior only scales a difference: sampling error at the mean slope, its own error on top
    raw_weights = weights * (mass @ slope)
    parts = np.einsum("i,rij,j->r", raw_weights, by_role, raw_weights)
    per_prior = slope @ (weights * (raw_a - raw_b))
    unbiased, sampling = float(mass @ per_prior), float(np.sqrt(parts.sum()))
    std_error = float(np.hypot(sampling, np.sqrt(mass @ (per_prior - unbiased) ** 2)))
    rows = np.array(n) / effects
    df = conditional.satterthwaite(parts, np.where(rows >= 2, rows - 1.0, 0.0))
    p_value = float(2.0 * stats.t.sf(abs(unbiased) / sampling, df)) if sampling > 0 else 1.0
    half = float(conditional.t_quantile(level, df)) * std_error
    if sampling == 0.0 and unbiased != 0.0:
        # a difference without a visible variance is not a certain one: its interval is everything
        half = 2.0
        notes.append("Every row shows the same difference, so no variance can be estimated.")
    elif sampling == 0.0:
        notes.append("Both columns rank the rows alike.")
    # values as they are stated, each inside [0, 1]; the test looks at the unbiased difference
    value_a, value_b = (
        float(mass @ np.clip((slope * raw - offset) @ weights, 0.0, 1.0)) for raw in (raw_a, raw_b)
    )
    gap = value_a - value_b
    low, high = (float(np.clip(end, -1.0, 1.0)) for end in (gap - half, gap + half))
    named = estimate.named_weights(method, weights)
    return AUCComparison(
        gap, std_error, low, high, level, p_value, value_a, value_b, method, named, tuple(notes)
    )


def _method(method: str, n: list[int], prior: ClassPrior | None) -> tuple[str, list[str]]:
    """As :func:`estimate.choose_method`; where a prior is missing, units that need none."""
    single = ("pu" if n[0] else "nu") if method == "auto" and not (n[0] and n[1]) else method
    raw = prior is None and single in {"pu", "nu"}
    method, notes = estimate.choose_method(f"{single}_raw" if raw else method, n, prior)
    if raw:
        notes.append(
            "No prior given: sign and p-value do not need one; the difference is in units of "
            "pairs won, not of AUC."
        )
    return method, notes


def _common_weights(own: list[Floats], covariance: Floats, prior: float) -> tuple[Floats, str]:
    """The mean of both models' weights, unless a single estimate is tighter.

    Weights fitted to the covariance of the difference itself were refused: near ties between
    models make it close to singular, and the weights wild.
    """
    weights = np.mean(own, axis=0)
    slope = np.nan_to_num(raw_to_auc(prior)[0])
    variance = np.where(
        np.all(np.array(own) != 0.0, axis=0), np.diag(covariance) * slope**2, np.inf
    )
    best = int(np.argmin(variance))
    if variance[best] < (weights * slope) @ covariance @ (weights * slope):
        return np.eye(3)[best], f"For this difference {SINGLES[best]!r} alone is tightest."
    return weights, "The same weights are used for both models."


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
