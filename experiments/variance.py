"""Figures 1 and 2 of the paper: r(eta) = Var R_PNU(eta) / Var R_PN for a fixed classifier.

As in the paper: the classifier is the minimiser of the empirical PN risk (squared loss, Gaussian
basis) on a few labelled rows (``train`` of a setting); the risks are then computed on 10 further
positives, 10 negatives and 300 unlabelled rows; mean and standard error over 100 trials.
Differences, on purpose: the variance is the exact one of ``pnuauc.theory.risk_covariance`` over the
data set instead of a simulated one (``python -m experiments variance_check`` compares both), and
width and ridge are fixed (median distance, 0.1), since two positives cannot be split into five
folds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from experiments.config import Experiment, Job, Setting
from experiments.figures import pyplot, save
from experiments.kinds import Kind, together
from experiments.rankers import data_of
from experiments.summary import markdown_table, rows_by_cell
from pnuauc.theory import printed_variance, risk_covariance

__all__ = ["CHECK", "VARIANCE", "Curve", "curves"]

Array = NDArray[np.float64]
ETAS = np.round(np.linspace(-1, 1, 41), 2)
RISKS = ("PN", "PU", "NU")
UPPER = [(i, j) for i in range(3) for j in range(i, 3)]


def fit_pn(p: Array, n: Array, ridge: float = 0.1) -> tuple[Array, Array, float]:
    """Minimiser of the empirical PN risk, squared loss: (H + ridge I) w = h in the basis."""
    rows = np.concatenate([p, n])
    width = float(np.median(pdist(rows)))
    f_p, f_n = (_features(a, rows, width) for a in (p, n))
    d = f_p.mean(0) - f_n.mean(0)
    h = np.cov(f_p.T, bias=True) + np.cov(f_n.T, bias=True) + np.outer(d, d)
    return np.linalg.solve(h + ridge * np.eye(len(rows)), d), rows, width


def scores_of(job: Job) -> tuple[Array, Array]:
    """Scores of reference positives and negatives under the classifier of this trial.

    One generator serves all trials of a setting: those before are drawn and thrown away.
    """
    X, y = data_of(job)
    X = np.asarray(X, dtype=np.float64)
    sizes, reference = job.setting["train"], job.experiment.options["reference"]
    rng = np.random.default_rng([0, *sizes, int(100 * job.setting.prior)])
    for _ in range(job.seed + 1):
        p, n = (rng.permutation(np.flatnonzero(y == k)) for k in (1, 0))
    coef, centres, width = fit_pn(X[p[: sizes[0]]], X[n[: sizes[1]]])
    rest = [rows[k : k + reference] for rows, k in ((p, sizes[0]), (n, sizes[1]))]
    f_p, f_n = (_features(X[r], centres, width) for r in rest)
    return f_p @ coef, f_n @ coef


def _features(rows: Array, centres: Array, width: float) -> Array:
    return np.exp(-cdist(rows, centres, "sqeuclidean") / (2 * width**2))


def _sizes(setting: Setting) -> dict[str, Any]:
    names = ("n_positive", "n_negative", "n_unlabeled", "prior")
    return {name: getattr(setting, name) for name in names}


def run(job: Job) -> list[dict[str, Any]]:
    """One trained classifier: the ratio at every eta, exact and by the paper's formula."""
    p, n = scores_of(job)
    sizes = _sizes(job.setting)
    covariance = risk_covariance(p, n, **sizes)
    del sizes["n_unlabeled"]
    printed = printed_variance(p, n, **sizes)
    as_printed = [printed.variance(eta) / printed.psi_pn for eta in ETAS]
    (method,) = job.methods
    return [
        {
            "method": method.name,
            "ratio": _short(covariance.ratio(ETAS)),
            "ratio_as_printed": _short(as_printed),
            "gamma_pnpu": covariance.gamma_pnpu,
            "gamma_pnnu": covariance.gamma_pnnu,
        }
    ]


def _short(values: Any) -> list[float]:
    return [float(f"{v:.6g}") for v in values]


def run_check(job: Job) -> list[dict[str, Any]]:
    """Covariance matrix of the three risks, exact and over fresh draws of the rows."""
    p, n = scores_of(job)
    draws = job.experiment.options["draws"]
    matrices = {
        "exact": risk_covariance(p, n, **_sizes(job.setting)).matrix,
        "simulated": simulate(p, n, job.setting, np.random.default_rng(job.seed), draws),
    }
    return [
        {"method": m.name, "matrix": _short(matrices[m.name][i, j] for i, j in UPPER)}
        for m in job.methods
    ]


def simulate(p: Array, n: Array, setting: Setting, rng: np.random.Generator, draws: int) -> Array:
    """Covariance matrix of (R_PN, R_PU, R_NU) over ``draws`` data sets of the setting's sizes."""

    def mean_loss(a: Array, b: Array) -> float:
        return float(((1.0 - (a[:, None] - b)) ** 2).mean())

    def within(a: Array) -> float:
        m = len(a)
        return (m * m * mean_loss(a, a) - m) / (m * (m - 1))

    prior, n_u = setting.prior, setting.n_unlabeled
    risks = np.empty((draws, 3))
    for i in range(draws):
        a, b = rng.choice(p, setting.n_positive), rng.choice(n, setting.n_negative)
        hidden = rng.binomial(n_u, prior)
        u = np.concatenate([rng.choice(p, hidden), rng.choice(n, n_u - hidden)])
        risks[i] = (
            mean_loss(a, b),
            (mean_loss(a, u) - prior * within(a)) / (1 - prior),
            (mean_loss(u, b) - (1 - prior) * within(b)) / prior,
        )
    return np.cov(risks.T)


@dataclass(frozen=True, eq=False)
class Curve:
    """r(eta) of one setting: mean and standard error over the trials."""

    data_set: str
    setting: Setting
    trials: int
    ratio: Array
    std_error: Array
    as_printed: Array


def curves(experiment: Experiment, results: Path) -> list[Curve]:
    """All curves that have rows, in the order of the configuration."""
    found = rows_by_cell(experiment, results)
    every = []
    for (data_set, setting, _), rows in found.items():
        ratio, printed = (
            np.array([json.loads(row[name]) for row in rows if row["status"] == "ok"])
            for name in ("ratio", "ratio_as_printed")
        )
        if len(ratio) > 1:
            error = ratio.std(0, ddof=1) / np.sqrt(len(ratio))
            every.append(
                Curve(data_set, setting, len(ratio), ratio.mean(0), error, printed.mean(0))
            )
    return sorted(every, key=lambda c: experiment.settings.index(c.setting))


def show(experiment: Experiment, results: Path) -> str:
    """Left: all eta; right: eta > 0 magnified, as in the paper. Below: the lowest ratios."""
    found = curves(experiment, results)
    if not found:
        return "*Not run yet.*"
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    one_prior = len({c.setting.prior for c in found}) == 1
    for curve in found:
        sizes = curve.setting["train"]
        label = f"(nP, nN) = {sizes}" if one_prior else f"prior = {curve.setting.prior}"
        for axis, keep in zip(axes, (ETAS >= -1, ETAS >= 0), strict=True):
            values = (values[keep] for values in (ETAS, curve.ratio, curve.std_error))
            axis.errorbar(*values, label=label, capsize=2, lw=1)
    for axis in axes:
        axis.axhline(1, color="grey", lw=0.8, ls="--")
        axis.set(xlabel="eta", ylabel="r = Var R_PNU(eta) / Var R_PN")
    axes[0].set_yscale("log")
    axes[1].set_ylim(0, 2)
    axes[0].legend()
    figure.suptitle(f"{experiment.title}; {found[0].data_set}, {found[0].trials} trials")
    save(figure, experiment.name, [line for c in found for line in _lines(c)], results)
    return markdown_table([_lowest(c) for c in found])


def _lines(curve: Curve) -> list[dict[str, object]]:
    columns = zip(ETAS, curve.ratio, curve.std_error, curve.as_printed, strict=True)
    start = {"data_set": curve.data_set, "setting": curve.setting.key, "trials": curve.trials}
    names = ("ratio", "std_error", "ratio_as_printed")
    return [
        start | {"eta": eta} | {k: f"{v:.5f}" for k, v in zip(names, values, strict=True)}
        for eta, *values in columns
    ]


def _lowest(curve: Curve) -> dict[str, object]:
    """Lowest ratio of a curve, and where eta helps."""
    best = int(curve.ratio.argmin())
    below = ETAS[curve.ratio < 1]
    return {
        "trained on (nP, nN)": curve.setting["train"],
        "prior": curve.setting.prior,
        "trials": curve.trials,
        "lowest r": f"{curve.ratio[best]:.3f}",
        "at eta": ETAS[best],
        "r < 1 for eta in": f"{below.min():g} .. {below.max():g}" if len(below) else "none",
    }


def show_check(experiment: Experiment, results: Path) -> str:
    """Every entry of the covariance matrix, exact beside simulated."""
    found = rows_by_cell(experiment, results)
    lines: list[dict[str, object]] = []
    for (data_set, setting, method), rows in found.items():
        if method != "exact":
            continue
        exact, simulated = (
            json.loads(r[0]["matrix"]) for r in (rows, found[data_set, setting, "simulated"])
        )
        lines += [
            {
                "train": setting["train"],
                "prior": setting.prior,
                "entry": f"{RISKS[i]},{RISKS[j]}",
                "draws": experiment.options["draws"],
                "exact": a,
                "simulated": b,
            }
            for (i, j), a, b in zip(UPPER, exact, simulated, strict=True)
        ]
    return markdown_table(lines)


VARIANCE = Kind(run, show, ("ratio", "ratio_as_printed", "gamma_pnpu", "gamma_pnnu"))
CHECK = Kind(run_check, show_check, ("matrix",), together)
