"""ROC curve, recall, precision and lift from positives and unlabelled rows, with intervals."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.isotonic import isotonic_regression

from pnuauc._utils.arrays import Floats
from pnuauc._utils.extras import need
from pnuauc._utils.show import ShownAsTable
from pnuauc.core.ranks import check_scores
from pnuauc.evaluation.conditional import check_level, known_prior, missing_prior
from pnuauc.evaluation.estimate import AUCEstimate, auc_estimate
from pnuauc.labels import Roles, read_roles
from pnuauc.prior import ClassPrior

__all__ = [
    "Interval",
    "RocEstimate",
    "RocEstimateDisplay",
    "ThresholdEstimate",
    "mover_difference",
    "mover_ratio",
    "roc_curve_estimate",
    "threshold_estimate",
    "wilson",
]


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


def wilson(rate: Floats, n: int, level: float) -> tuple[Floats, Floats]:
    """Limits of a proportion seen in n rows, any shape."""
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
    # uy may reach 2 y where y rests on a handful of rows: then nothing bounds the ratio from 0
    low = (x * y - down) / (uy * (2 * y - uy)) if uy < 2 * y else 0.0
    high = (x * y + up) / (ly * (2 * y - ly)) if ly > 0 else np.inf
    return max(float(low), 0.0), float(high)


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

    def to_dict(self) -> dict[str, Any]:
        """Lists and plain values, the infinite first threshold as None: ready for JSON."""
        result: dict[str, Any] = {
            k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()
        }
        result["thresholds"][0] = None
        result["auc"] = self.auc.to_dict()
        return result


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
    rival = roles.negative if method == "pn" else roles.unlabeled
    p, other = np.sort(values[roles.positive]), np.sort(values[rival])
    thresholds = _thresholds(p, other, max_points)
    tpr, rate = _share_above(p, thresholds), _share_above(other, thresholds)
    tpr_low, tpr_high = wilson(tpr, len(p), level)
    if method == "pn":
        fpr, limits = rate, wilson(rate, len(other), level)
    else:
        assert known is not None
        fpr, limits = _corrected_fpr(
            (tpr, tpr_low, tpr_high), (rate, *wilson(rate, len(other), level)), known, level
        )
    fpr = _monotone(fpr)
    # limits are only cut and kept in order, so that they stay valid where the curve was moved
    fpr_low = np.minimum(np.minimum.accumulate(np.clip(limits[0], 0, 1)[::-1])[::-1], fpr)
    fpr_high = np.maximum(np.maximum.accumulate(np.clip(limits[1], 0, 1)), fpr)
    low, high = _band(fpr, tpr, (fpr_low, fpr_high), (tpr_low, tpr_high))
    auc = auc_estimate(roles, values, known, method, level)
    return RocEstimate(
        thresholds, fpr, tpr, fpr_low, fpr_high, tpr_low, tpr_high, low, high, auc, method, level
    )


def _roc_method(method: str, roles: Roles, prior: ClassPrior | None) -> str:
    if method not in {"auto", "pn", "pu"}:
        raise ValueError(f"method must be 'auto', 'pn' or 'pu' for a ROC curve, got {method!r}.")
    roles.require("positive", purpose="A ROC curve")
    if method == "auto":
        usable = prior is not None and prior.value < 1.0
        few = roles.n_negative * 10 < roles.n_unlabeled and usable
        method = "pu" if roles.n_negative == 0 or few else "pn"
    roles.require("negative" if method == "pn" else "unlabeled", purpose="A ROC curve")
    if method == "pu" and prior is None:
        raise missing_prior("A ROC curve from positives and unlabelled rows")
    if method == "pu" and prior is not None and prior.value >= 1.0:
        raise ValueError("At prior=1 there are no negatives among the unlabelled rows.")
    return method


def _thresholds(p: Floats, other: Floats, max_points: int) -> Floats:
    """Infinity, then distinct scores of both roles downwards, thinned to quantiles of each."""
    half = max(max_points // 2, 2)
    parts = [
        part if len(part) <= half else part[np.linspace(0, len(part) - 1, half).astype(int)]
        for part in (p, other)
    ]
    return np.concatenate([[np.inf], np.unique(np.concatenate(parts))[::-1]])


def _share_above(ordered: Floats, thresholds: Floats) -> Floats:
    """Share of rows with score >= threshold; at the infinite one, none."""
    share = 1.0 - np.searchsorted(ordered, thresholds, side="left") / len(ordered)
    return np.where(np.arange(len(thresholds)) == 0, 0.0, share)


def _corrected_fpr(
    p: Rate, u: Rate, prior: ClassPrior, level: float
) -> tuple[Floats, tuple[Floats, Floats]]:
    """(r_U - prior r_P) / (1 - prior) with MOVER limits and the prior's part."""
    share, rest = prior.value, 1.0 - prior.value
    fpr = (u[0] - share * p[0]) / rest
    low, high = mover_difference(u, (share * p[0], share * p[1], share * p[2]))
    z = float(special.ndtri(0.5 + level / 2.0))
    # d fpr / d prior = (r_U - r_P) / (1 - prior)^2
    extra = z * prior.std_error * np.abs(u[0] - p[0]) / rest**2
    return fpr, (fpr - np.hypot(fpr - low / rest, extra), fpr + np.hypot(high / rest - fpr, extra))


def _monotone(rate: Floats) -> Floats:
    inner = np.clip(isotonic_regression(rate), 0.0, 1.0)
    inner[0], inner[-1] = 0.0, 1.0
    return np.asarray(inner)


def _band(
    fpr: Floats, tpr: Floats, fpr_limits: tuple[Floats, Floats], tpr_limits: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Band above each fpr: corners of the per-threshold boxes, joined monotonically."""
    upper = np.interp(fpr, fpr_limits[0], np.maximum.accumulate(tpr_limits[1]))
    lower_y = np.minimum.accumulate(tpr_limits[0][::-1])[::-1]
    lower = np.interp(fpr, fpr_limits[1], lower_y, left=0.0)
    return np.minimum(lower, tpr), np.maximum(upper, tpr)


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

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and dicts of value, low, high: ready for JSON."""
        return asdict(self)


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
    p, u = values[roles.positive], values[roles.unlabeled]
    at = _cut(u, k, threshold)
    recall, flagged = _share_at(p, at, level), _share_at(u, at, level)
    if flagged[0] == 0.0:
        raise ValueError(f"No unlabelled row has a score of at least {at:g}; lower the threshold.")
    lift = Interval(float(recall[0] / flagged[0]), *mover_ratio(recall, flagged))
    n_flagged = int(np.count_nonzero(u >= at))
    precision = fpr = expected = None
    if known is not None:
        precision = _times_prior(lift, known, level)
        expected = Interval(
            *(n_flagged * v for v in (precision.value, precision.low, precision.high))
        )
        if known.value < 1.0:  # else the unlabelled rows hold no negative
            point, limits = _corrected_fpr(recall, flagged, known, level)
            fpr = Interval(*(float(np.clip(v, 0, 1)) for v in (point, *limits)))
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


def _share_at(scores: Floats, threshold: float, level: float) -> Rate:
    share = np.asarray(np.mean(scores >= threshold))
    return share, *wilson(share, len(scores), level)


def _cut(u: Floats, k: int | None, threshold: float | None) -> float:
    if (k is None) == (threshold is None):
        raise ValueError("Give either k or threshold, and not both.")
    if threshold is not None:
        return float(threshold)
    if k is None or not 1 <= int(k) <= len(u):
        raise ValueError(f"k must lie between 1 and the {len(u)} unlabelled rows, got {k}.")
    return float(np.partition(u, len(u) - int(k))[len(u) - int(k)])


def _times_prior(lift: Interval, prior: ClassPrior, level: float) -> Interval:
    """prior * lift, cut at 1; distances to the limits add up in squares on the log scale."""
    value = prior.value * lift.value
    relative = 0.0
    if prior.value > 0:
        relative = float(special.ndtri(0.5 + level / 2.0)) * prior.std_error / prior.value

    def limit(of_lift: float, sign: float) -> float:
        if of_lift <= 0.0 or lift.value <= 0.0 or not np.isfinite(of_lift):
            return float(prior.value * of_lift * np.exp(sign * relative))
        distance = np.hypot(np.log(of_lift / lift.value), relative)
        return float(value * np.exp(sign * distance))

    low, high = limit(lift.low, -1.0), limit(lift.high, 1.0)
    return Interval(min(value, 1.0), float(min(low, 1.0)), float(min(high, 1.0)))


class RocEstimateDisplay:
    """ROC curve with its band, drawn like :class:`sklearn.metrics.RocCurveDisplay`.

    Parameters
    ----------
    roc : RocEstimate

    Attributes
    ----------
    ax_, figure_, line_, band_
        matplotlib's objects, after :meth:`plot`.
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
        roc = roc_curve_estimate(y, scores, prior, **options)
        return cls(roc).plot(ax=ax, name=name)

    def plot(self, ax: Any = None, *, name: str | None = None, **line: Any) -> RocEstimateDisplay:
        """Draw curve, band and the diagonal; ``line`` goes to matplotlib's ``plot``."""
        plt = need("matplotlib.pyplot", "plot")
        roc, auc = self.roc, self.roc.auc
        if ax is None:
            _, ax = plt.subplots()
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
