"""Plot of a ROC estimate; matplotlib is imported only here, only when asked for."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from pnuauc._extras import need
from pnuauc.metrics._roc import RocEstimate, roc_curve_estimate

__all__ = ["RocEstimateDisplay"]


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
