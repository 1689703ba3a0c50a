"""Plots of the validation risk against eta, width and ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from pnuauc._extras import need
from pnuauc.selection._choice import SelectionReport

__all__ = ["plot_selection"]

_TITLES = {
    "eta": "weight of unlabelled rows (eta)",
    "width": "width of the Gaussians",
    "alpha": "ridge (alpha)",
}


def plot_selection(report: SelectionReport, axes: Any = None) -> Any:
    """Draw one panel per parameter that had a choice; returns the array of axes.

    Line and bars: the lowest validation risk for each value, with its standard error over folds.
    Filled dots: values among the kept candidates, larger with more weight.
    """
    plt = need("matplotlib.pyplot", "plot")
    shown = [name for name, curve in report.curves.items() if len(curve) > 1]
    if not shown:
        raise ValueError("There is nothing to plot: every parameter had a single value.")
    if axes is None:
        _, axes = plt.subplots(
            1, len(shown), figsize=(4 * len(shown), 3.2), sharey=True, layout="constrained"
        )
    axes = np.atleast_1d(axes)
    if len(axes) < len(shown):
        raise ValueError(f"{len(shown)} axes are needed ({', '.join(shown)}); got {len(axes)}.")
    for ax, name in zip(axes, shown, strict=False):
        curve = report.curves[name]
        x = [point["value"] for point in curve]
        y = np.array([point["risk"] for point in curve])
        error = np.array([point["std_error"] for point in curve])
        kept = np.array([point["kept"] for point in curve])
        ax.errorbar(x, y, yerr=error, color="C0", capsize=2, linewidth=1.2)
        ax.scatter(x, y, s=15 + 300 * kept, color="C1", alpha=(kept > 0).astype(float), zorder=3)
        if name != "eta":
            ax.set_xscale("log")
        else:
            ax.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        ax.set_xlabel(_TITLES[name])
    axes[0].set_ylabel("validation risk (1 - AUC)")
    return axes
