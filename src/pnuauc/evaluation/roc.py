"""ROC curve, recall, precision and lift from positives and unlabelled rows, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.isotonic import isotonic_regression

from pnuauc._utils.arrays import Floats
from pnuauc._utils.extras import need
from pnuauc._utils.show import ShownAsTable
from pnuauc.core.ranks import check_scores
from pnuauc.evaluation.conditional import check_level, known_prior, missing_prior, t_quantile
from pnuauc.evaluation.estimate import AUCEstimate, auc_estimate
from pnuauc.labels import Roles, read_roles
from pnuauc.prior import ClassPrior

#: A proportion, or one for each threshold, with its limits.
Rate: TypeAlias = tuple[Any, Any, Any]


@dataclass(frozen=True)
class Interval:
    """A value with confidence limits."""

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def wilson(rate: ArrayLike, n: int, level: float) -> tuple[Floats, Floats]:
    """Limits of a proportion of n rows, any shape."""
    rate = np.asarray(rate, dtype=float)
    z2 = float(special.ndtri(0.5 + level / 2.0)) ** 2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low = np.where(rate <= 0, 0.0, centre - half)
    high = np.where(rate >= 1, 1.0, centre + half)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def mover_difference(first: Rate, second: Rate) -> tuple[Floats, Floats]:
    """Limits of x - y from (value, low, high) of independent x and y."""
    (x, lx, ux), (y, ly, uy) = first, second
    return (
        x - y - np.sqrt((x - lx) ** 2 + (uy - y) ** 2),
        x - y + np.sqrt((ux - x) ** 2 + (y - ly) ** 2),
    )


def mover_ratio(first: Rate, second: Rate) -> tuple[float, float]:
    """Limits of x / y from (value, low, high) of independent x >= 0 and y > 0."""
    (x, lx, ux), (y, ly, uy) = first, second
    down = np.sqrt(max((x * y) ** 2 - lx * uy * (2 * x - lx) * (2 * y - uy), 0.0))
    up = np.sqrt(max((x * y) ** 2 - ux * ly * (2 * x - ux) * (2 * y - ly), 0.0))
    # uy may be 2 y where y rests on a handful of rows: then nothing bounds the ratio from 0
    low = (x * y - down) / (uy * (2 * y - uy)) if uy < 2 * y else 0.0
    high = (x * y + up) / (ly * (2 * y - ly)) if ly > 0 else np.inf
    return max(float(low), 0.0), float(high)


def _share_above(scores: Floats, thresholds: ArrayLike, level: float) -> Rate:
    """Share of rows with score >= threshold."""
    n = len(scores)
    share = (n - np.searchsorted(np.sort(scores), thresholds, side="left")) / n
    return share, *wilson(share, n, level)


def _false_positives(p: Rate, u: Rate, prior: ClassPrior, level: float) -> Rate:
    """(r_U - prior r_P) / (1 - prior) with MOVER limits and the prior's part."""
    share, rest = prior.value, 1.0 - prior.value
    fpr = (u[0] - share * p[0]) / rest
    low, high = mover_difference(u, (share * p[0], share * p[1], share * p[2]))
    # d fpr / d prior = (r_U - r_P) / (1 - prior)^2
    extra = t_quantile(level, np.inf) * prior.std_error * np.abs(u[0] - p[0]) / rest**2
    return fpr, fpr - np.hypot(fpr - low / rest, extra), fpr + np.hypot(high / rest - fpr, extra)


@dataclass(frozen=True, eq=False, repr=False)
class RocEstimate(ShownAsTable):
    """A ROC curve with a band; arrays of one length, from the highest threshold down.

    Attributes
    ----------
    thresholds : ndarray, shape (m,)
        Rows with score >= threshold are called positive; starts at infinity.
    fpr, tpr : ndarray, shape (m,)
        From (0, 0) to (1, 1), never decreasing.
    fpr_low, fpr_high, tpr_low, tpr_high : ndarray, shape (m,)
        Pointwise limits of each rate at the threshold.
    band_low, band_high : ndarray, shape (m,)
        Band of the curve above ``fpr``: lower hull of the corners (fpr_high, tpr_low), upper hull
        of (fpr_low, tpr_high). At least as wide as a pointwise band of the same level.
    auc : AUCEstimate
    method : str
        "pn" or "pu": where the false-positive rate comes from.
    """

    thresholds: Floats
    fpr: Floats
    tpr: Floats
    fpr_low: Floats
    fpr_high: Floats
    tpr_low: Floats
    tpr_high: Floats
    band_low: Floats
    band_high: Floats
    auc: AUCEstimate
    method: str
    level: float


def roc_curve_estimate(
    y: Any,
    scores: ArrayLike,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    max_points: int = 1000,
    prior_level: float = 0.95,
    **label_codes: Any,
) -> RocEstimate:
    """ROC curve; from P and U the false-positive rate is (r_U - prior r_P) / (1 - prior).

    That estimate is unbiased but neither monotone nor inside [0, 1]; it is made so by isotonic
    regression over the thresholds. Limits: Wilson's for each share, put together by MOVER; an
    uncertain prior adds its part.

    Parameters
    ----------
    y, scores, level, prior_level, **label_codes
        As in :func:`pnuauc.metrics.auc_estimate`.
    prior : float, (low, high), or object with ``prior_``
        Share of positives inside the unlabelled rows; not needed with method "pn".
    method : {"auto", "pn", "pu"}
        "auto" takes "pu" when there are no negatives, or fewer than a tenth as many as unlabelled
        rows and a prior is given.
    max_points : int
        Thresholds are thinned to about this many quantiles of the scores.
    """
    check_level(level)
    roles = read_roles(y, **label_codes)
    values = check_scores(scores, len(roles))
    known = known_prior(prior, prior_level)
    method = _roc_method(method, roles, known)
    p, other = values[roles.positive], values[roles.negative if method == "pn" else roles.unlabeled]
    # infinity, then distinct scores of both roles downwards, thinned to quantiles of each
    half = max(max_points // 2, 2)
    parts = [
        part if len(part) <= half else part[np.linspace(0, len(part) - 1, half).astype(int)]
        for part in (np.sort(p), np.sort(other))
    ]
    thresholds = np.append(np.inf, np.unique(np.concatenate(parts))[::-1])
    rates = [list(_share_above(part, thresholds, level)) for part in (p, other)]
    for rate, rows in zip(rates, (p, other), strict=True):
        rate[0][0] = 0.0  # also where a score is infinite
        rate[1][0], rate[2][0] = wilson(0.0, len(rows), level)
    tpr, tpr_low, tpr_high = rates[0]
    fpr, *limits = rates[1]
    if method == "pu":
        assert known is not None
        fpr, *limits = _false_positives((tpr, tpr_low, tpr_high), (fpr, *limits), known, level)
    fpr = np.clip(isotonic_regression(fpr), 0.0, 1.0)
    fpr[0], fpr[-1] = 0.0, 1.0
    # limits are only cut and kept in order, so that they stay valid where the curve was moved
    fpr_low = np.minimum(np.minimum.accumulate(np.clip(limits[0], 0, 1)[::-1])[::-1], fpr)
    fpr_high = np.maximum(np.maximum.accumulate(np.clip(limits[1], 0, 1)), fpr)
    # the corners of the boxes at the thresholds, joined monotonically
    lower = np.minimum.accumulate(tpr_low[::-1])[::-1]
    return RocEstimate(
        thresholds,
        *(fpr, tpr, fpr_low, fpr_high, tpr_low, tpr_high),
        band_low=np.minimum(np.interp(fpr, fpr_high, lower, left=0.0), tpr),
        band_high=np.maximum(np.interp(fpr, fpr_low, np.maximum.accumulate(tpr_high)), tpr),
        auc=auc_estimate(roles, values, known, method, level),
        method=method,
        level=level,
    )


def _roc_method(method: str, roles: Roles, prior: ClassPrior | None) -> str:
    if method not in {"auto", "pn", "pu"}:
        raise ValueError(f"method must be 'auto', 'pn' or 'pu' for a ROC curve, got {method!r}.")
    if method == "auto":
        usable = prior is not None and prior.value < 1.0
        few = roles.n_negative * 10 < roles.n_unlabeled and usable
        method = "pu" if roles.n_negative == 0 or few else "pn"
    other = "negative" if method == "pn" else "unlabeled"
    roles.require("positive", other, purpose="A ROC curve")
    if method == "pu" and prior is None:
        raise missing_prior("A ROC curve from positives and unlabelled rows")
    if method == "pu" and prior is not None and prior.value >= 1.0:
        raise ValueError("At prior=1 there are no negatives among the unlabelled rows.")
    return method


@dataclass(frozen=True, repr=False)
class ThresholdEstimate(ShownAsTable):
    """What happens when unlabelled rows with score >= ``threshold`` are acted on.

    Attributes
    ----------
    threshold : float
    n_flagged : int
        Unlabelled rows at or above it (ties at the k-th score are all in).
    recall, lift : Interval
        Need no prior.
    precision, false_positive_rate, expected_positives : Interval or None
        None without a prior; there is no false-positive rate at a prior of 1 either.
        ``expected_positives`` counts among the flagged rows.
    prior : float or None
        Share of positives inside the unlabelled rows.
    level : float
    """

    threshold: float
    n_flagged: int
    recall: Interval
    lift: Interval
    precision: Interval | None
    false_positive_rate: Interval | None
    expected_positives: Interval | None
    prior: float | None
    level: float


def threshold_estimate(
    y: Any,
    scores: ArrayLike,
    prior: Any = None,
    *,
    k: int | None = None,
    threshold: float | None = None,
    level: float = 0.95,
    prior_level: float = 0.95,
    **label_codes: Any,
) -> ThresholdEstimate:
    """Recall r_P, lift r_P / r_U and precision prior r_P / r_U at top k or at a threshold.

    Parameters
    ----------
    y, scores, level, prior_level, **label_codes
        As in :func:`pnuauc.metrics.auc_estimate`; positives and unlabelled rows are used.
    prior : float, (low, high), or object with ``prior_``, optional
        Share of positives inside the unlabelled rows.
    k : int
        Act on the k unlabelled rows with the highest scores. The interval is for the threshold
        this sets, as if applied to new rows.
    threshold : float
        Act on rows with score >= threshold. Give either ``k`` or ``threshold``.

    Examples
    --------
    >>> y = [1] * 4 + [None] * 10
    >>> at = threshold_estimate(y, [9, 8, 7, 1, *range(10)], prior=0.2, k=3)
    >>> at.n_flagged, at.recall.value, at.precision.value
    (3, 0.75, 0.5)
    """
    check_level(level)
    roles = read_roles(y, **label_codes)
    values = check_scores(scores, len(roles))
    roles.require("positive", "unlabeled", purpose="Precision and recall from PU data")
    known = known_prior(prior, prior_level)
    u = values[roles.unlabeled]
    if (k is None) == (threshold is None):
        raise ValueError("Give either k or threshold, and not both.")
    if k is not None:
        if not 1 <= int(k) <= len(u):
            raise ValueError(f"k must lie between 1 and the {len(u)} unlabelled rows, got {k}.")
        threshold = float(np.partition(u, len(u) - int(k))[len(u) - int(k)])
    at = float(threshold)  # type: ignore[arg-type]
    recall, flagged = (_share_above(rows, at, level) for rows in (values[roles.positive], u))
    if flagged[0] == 0.0:
        raise ValueError(f"No unlabelled row has a score of at least {at:g}; lower the threshold.")
    lift = Interval(float(recall[0] / flagged[0]), *mover_ratio(recall, flagged))
    n_flagged = int(np.count_nonzero(u >= at))
    precision = fpr = expected = None
    if known is not None:
        precision = _times_prior(lift, known, level)
        limits = (precision.value, precision.low, precision.high)
        expected = Interval(*(n_flagged * v for v in limits))
        if known.value < 1.0:  # else the unlabelled rows hold no negative
            rate = np.clip(_false_positives(recall, flagged, known, level), 0.0, 1.0)
            fpr = Interval(*map(float, rate))
    return ThresholdEstimate(
        threshold=at,
        n_flagged=n_flagged,
        recall=Interval(*map(float, recall)),
        lift=lift,
        precision=precision,
        false_positive_rate=fpr,
        expected_positives=expected,
        prior=None if known is None else known.value,
        level=level,
    )


def _times_prior(lift: Interval, prior: ClassPrior, level: float) -> Interval:
    """prior * lift, cut at 1; distances to the limits add up in squares on the log scale."""
    value = prior.value * lift.value
    z = float(t_quantile(level, np.inf))
    relative = z * prior.std_error / prior.value if prior.value > 0 else 0.0

    def limit(of_lift: float, sign: float) -> float:
        if of_lift <= 0.0 or lift.value <= 0.0 or not np.isfinite(of_lift):
            return float(prior.value * of_lift * np.exp(sign * relative))
        return float(value * np.exp(sign * np.hypot(np.log(of_lift / lift.value), relative)))

    low, high = limit(lift.low, -1.0), limit(lift.high, 1.0)
    return Interval(min(value, 1.0), min(low, 1.0), min(high, 1.0))


class RocEstimateDisplay:
    """ROC curve with its band, drawn like :class:`sklearn.metrics.RocCurveDisplay`.

    After :meth:`plot` matplotlib's objects are in ``ax_``, ``figure_``, ``line_`` and ``band_``.
    """

    def __init__(self, roc: RocEstimate) -> None:
        self.roc = roc

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        scores: ArrayLike,
        prior: Any = None,
        *,
        ax: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> RocEstimateDisplay:
        """Estimate and draw; ``options`` go to :func:`roc_curve_estimate`.

        ``prior`` is the share of positives inside the unlabelled rows.
        """
        return cls(roc_curve_estimate(y, scores, prior, **options)).plot(ax=ax, name=name)

    def plot(self, ax: Any = None, *, name: str | None = None, **line: Any) -> RocEstimateDisplay:
        """Draw curve, band and the diagonal; ``line`` goes to matplotlib's ``plot``."""
        plt = need("matplotlib.pyplot", "plot")
        roc, auc = self.roc, self.roc.auc
        ax = plt.subplots()[1] if ax is None else ax
        label = f"AUC {auc.value:.3f} ({auc.low:.3f} to {auc.high:.3f}), from {roc.method.upper()}"
        label = label if name is None else f"{name}: {label}"
        (self.line_,) = ax.plot(roc.fpr, roc.tpr, **{"label": label, **line})
        self.band_ = ax.fill_between(
            roc.fpr, roc.band_low, roc.band_high, color=self.line_.get_color(), alpha=0.2, lw=0
        )
        ax.plot([0, 1], [0, 1], color="grey", lw=0.8, ls="--")
        ax.set(
            xlabel="False positive rate", ylabel="True positive rate", xlim=(0, 1), ylim=(0, 1.01)
        )
        ax.set_aspect("equal")
        ax.legend(loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self
