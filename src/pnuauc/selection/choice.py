"""Which candidates are kept, the report of a selection, and its plot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student_t

from pnuauc._utils.arrays import Floats, Indices
from pnuauc._utils.extras import need
from pnuauc._utils.show import ShownAsTable
from pnuauc.selection.criterion import Criterion

#: The paper's grids: widths in multiples of the median distance, ridges, weights of U.
PAPER_WIDTHS = ("0.125*median", "0.25*median", "0.5*median", "1*median", "2*median")
PAPER_ALPHAS = (1e-3, 1e-2, 1e-1, 1e0, 1e1)
PAPER_ETAS = tuple(round(0.1 * k, 1) for k in range(-9, 10))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The grid written out: parameters of every candidate, in the order (scale, eta, alpha)."""

    width: Floats
    eta: Floats
    alpha: Floats

    @classmethod
    def from_grid(cls, widths: Any, etas: Any, alphas: Any) -> Candidates:
        grid = np.meshgrid(widths, etas, alphas, indexing="ij")
        return cls(*(np.ravel(axis).astype(np.float64) for axis in grid))

    def __len__(self) -> int:
        return len(self.eta)

    def parameters(self, i: int) -> dict[str, float]:
        """Width, eta and ridge of candidate i."""
        return {name: float(getattr(self, name)[i]) for name in ("width", "eta", "alpha")}


@dataclass(frozen=True, eq=False)
class Choice:
    """Indices of the kept candidates, best first, and their weights in the averaged score."""

    kept: Indices
    weights: Floats


def order_of(risks: Floats, candidates: Candidates) -> Indices:
    """Candidates from best to worst; ties go to smaller abs(eta), larger ridge, larger width.

    With few held-out rows ties are common; the simpler candidate wins them.
    """
    rounded = np.round(np.where(np.isnan(risks), np.inf, risks), 12)
    keys = (-candidates.width, -candidates.alpha, np.abs(candidates.eta), rounded)
    return np.lexsort(keys)


def pick(risks: Floats, candidates: Candidates) -> Choice:
    """The single best candidate, as the paper does."""
    return Choice(order_of(risks, candidates)[:1], np.ones(1))


def average(criterion: Criterion, candidates: Candidates, temperature: float) -> Choice:
    """All candidates, weighted by exp(-(risk - best risk) / (temperature * noise)).

    ``noise`` is the standard error of a validation risk: candidates that cannot be distinguished
    share the weight, clearly worse ones fade. Weights below a thousandth of the best are cut.
    """
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be a positive number; got {temperature!r}.")
    risks = criterion.mean
    order = order_of(risks, candidates)
    order = order[~np.isnan(risks[order])]
    if not len(order):
        raise ValueError(
            "No candidate could be judged: every validation risk is NaN, so some number in the "
            "rows is out of all proportion; rescale the columns, for example with StandardScaler."
        )
    excess = risks[order] - risks[order[0]]
    # a noise of zero (all placements equal) leaves the candidates that tie with the best
    weights = np.exp(-excess / max(temperature * criterion.noise, 1e-9))
    kept = weights > 1e-3
    return Choice(order[kept], weights[kept] / weights[kept].sum())


@dataclass(frozen=True, eq=False, repr=False)
class SelectionReport(ShownAsTable):
    """Why this model: fitted attribute ``selection_`` of :class:`pnuauc.AUCClassifierCV`.

    Attributes
    ----------
    criterion : str
    criterion_weights : dict
        Weights of (PN, PU, NU) in the validation risk.
    curves : dict of "eta", "width", "alpha" -> list of dict(value, risk, std_error, kept)
        For each value the lowest validation risk over the other two parameters, its standard
        error over folds, and the share of the kept weight that has this value.
    eta_mean, eta_low, eta_high : float
        Mean weight on unlabelled rows among the kept, and the range of etas whose best risk lies
        within one standard error of the best of all: how sure the choice is.
    gain, gain_std_error : float or None
        What the unlabelled rows changed, from folds that took no part in the choice: the risk of
        the candidates averaged among eta = 0 minus that of those averaged among all (positive:
        unlabelled rows helped), and its standard error over folds. None for a single pick.
    n_dropped : int
        Candidates whose empirical risk had no minimum on some fold; they were not considered.
    noise : float
        Standard error of a validation risk.
    message : str
        The above in words.
    """

    criterion: str
    criterion_weights: dict[str, tuple[float, float, float]]
    curves: dict[str, list[dict[str, float]]]
    eta_mean: float
    eta_low: float
    eta_high: float
    gain: float | None
    gain_std_error: float | None
    n_dropped: int = 0
    noise: float = 0.0
    message: str = ""


def explain(
    criterion: Criterion, candidates: Candidates, choice: Choice, gain: Gain | None
) -> SelectionReport:
    """Read the report off the validation risks."""
    mean, error = criterion.mean, criterion.std_error
    curves = {
        name: _curve(getattr(candidates, name), mean, error, choice)
        for name in ("eta", "width", "alpha")
    }
    best = choice.kept[0]
    near = [p["value"] for p in curves["eta"] if p["risk"] <= mean[best] + error[best]]
    report = SelectionReport(
        criterion=criterion.name,
        criterion_weights=criterion.weights,
        curves=curves,
        eta_mean=float(choice.weights @ candidates.eta[choice.kept]),
        eta_low=float(min(near)),
        eta_high=float(max(near)),
        gain=gain and gain.value,
        gain_std_error=gain and gain.std_error,
        n_dropped=int(np.isnan(mean).sum()),
        noise=criterion.noise,
    )
    message = _in_words(report, len(choice.kept), gain)
    if report.n_dropped:
        message += (
            f" {report.n_dropped} of {len(candidates)} candidates had an empirical risk without a "
            "minimum and were left out."
        )
    return replace(report, message=message)


def _curve(values: Floats, mean: Floats, error: Floats, choice: Choice) -> list[dict[str, float]]:
    points = []
    for value in np.unique(values):
        index = np.flatnonzero(values == value)
        if np.isnan(mean[index]).all():
            continue
        low = index[np.nanargmin(mean[index])]
        kept = choice.weights[values[choice.kept] == value].sum()
        point = {"value": value, "risk": mean[low], "std_error": error[low], "kept": kept}
        points.append({name: float(number) for name, number in point.items()})
    return points


class Gain(NamedTuple):
    """What unlabelled rows changed: the fall of the risk, and whether it is clear."""

    value: float
    std_error: float
    clear: bool


def held_out_gain(criterion: Criterion, candidates: Candidates, temperature: float) -> Gain | None:
    """The gain of the average over all candidates against that over those of eta = 0, or None.

    For each fold in turn the weights are made from the other folds, once among all candidates and
    once among those of eta = 0, and both are judged on this fold: the mean risk of the kept
    candidates by their weights. The standard error over folds is that of Nadeau and Bengio (2003);
    clear is what lies outside its two-sided 95% interval. A single pick has no such estimate: its
    candidates were trained on the fold that judges.
    """
    labeled_only = candidates.eta == 0
    if not labeled_only.any() or labeled_only.all():
        return None
    gains = []
    for k, risks in enumerate(criterion.fold_risks):
        rest = criterion.without(k)
        choices = (average(r, candidates, temperature) for r in (rest, rest.among(labeled_only)))
        with_u, without_u = (c.weights @ risks[c.kept] for c in choices)
        gains.append(without_u - with_u)
    known = np.array(gains)[~np.isnan(gains)]
    if len(known) < 2:
        return None
    k = len(known)
    # folds share training rows: 1/k + (rows held out / rows trained on) in place of 1/k
    gain, error = float(known.mean()), float(known.std(ddof=1) * np.sqrt(1 / k + 1 / (k - 1)))
    return Gain(gain, error, bool(abs(gain) > student_t.ppf(0.975, k - 1) * error))


def _in_words(report: SelectionReport, n_kept: int, gain: Gain | None) -> str:
    kept = f"{n_kept} candidate{'s' if n_kept > 1 else ''} kept"
    if len(report.curves["eta"]) == 1:
        return f"{kept}; unlabelled rows had a fixed weight."
    chosen = (
        f"{kept}, mean eta {report.eta_mean:+.2f} (any eta from {report.eta_low:g} to "
        f"{report.eta_high:g} is as good within one standard error)."
    )
    if gain is None:
        return f"{chosen} The effect of the unlabelled rows cannot be estimated from these folds."
    side, verdict = "higher" if gain.value > 0 else "lower", "made no clear difference"
    if gain.clear:
        verdict = "helped" if gain.value > 0 else "did harm"
    return (
        f"{chosen} On folds that took no part in the choice, candidates chosen with unlabelled "
        f"rows had an AUC {100 * abs(gain.value):.1f} points {side} than those chosen among "
        f"labelled rows only (standard error {100 * gain.std_error:.1f}): the unlabelled rows "
        f"{verdict}."
    )


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
        columns = ("value", "risk", "std_error", "kept")
        x, y, error, kept = np.array([[point[name] for name in columns] for point in curve]).T
        ax.errorbar(x, y, yerr=error, color="C0", capsize=2, linewidth=1.2)
        ax.scatter(x, y, s=15 + 300 * kept, color="C1", alpha=(kept > 0).astype(float), zorder=3)
        if name != "eta":
            ax.set_xscale("log")
        else:
            ax.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        ax.set_xlabel(_TITLES[name])
    axes[0].set_ylabel("validation risk (1 - AUC)")
    return axes
