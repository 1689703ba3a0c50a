"""Figures 1 and 2 of the paper: r(eta) = Var R_PNU(eta) / Var R_PN for a fixed classifier.

    python -m experiments.figures12   # experiments/results/figure{1,2}.{png,svg}, figures12.csv

As in the paper: the classifier is the minimiser of the empirical PN risk (squared loss, Gaussian
basis) on a few labelled rows; the risks are then computed on 10 further positives, 10 negatives and
300 unlabelled rows; mean and standard error over 100 trials. Differences, on purpose: the variance
is the exact one of ``pnuauc.theory.risk_covariance`` over the data set instead of a simulated one
(``figures12_check.csv`` compares both), and width and ridge are fixed (median distance, 0.1), since
two positives cannot be split into five folds. Data: Banana (IDA) where the folder PNUAUC_DATA
holds banana.npz, else two noisy crescents; the CSV says which.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import make_moons

from pnuauc.theory import printed_variance, risk_covariance

RESULTS = Path(__file__).parent / "results"
ETAS = np.round(np.linspace(-1, 1, 41), 2)
VALIDATION = {"n_positive": 10, "n_negative": 10, "n_unlabeled": 300}
FIGURES = {
    1: [((2, 8), 0.1), ((10, 10), 0.1), ((18, 2), 0.1)],
    2: [((10, 10), 0.1), ((10, 10), 0.2), ((10, 10), 0.3)],
}
REFERENCE = 1000


def load_data() -> tuple[str, np.ndarray, np.ndarray]:
    """Name, features and classes (True positive)."""
    path = Path(os.environ.get("PNUAUC_DATA", "")) / "banana.npz"
    if path.exists():
        with np.load(path) as data:
            return "Banana (IDA)", data["X"].astype(float), data["y"] == 1
    X, y = make_moons(5300, noise=0.3, random_state=0)
    return "crescents (banana-like)", X, y == 1


def fit_pn(
    p: np.ndarray, n: np.ndarray, ridge: float = 0.1
) -> tuple[np.ndarray, np.ndarray, float]:
    """Minimiser of the empirical PN risk, squared loss: (H + ridge I) w = h in the basis."""
    rows = np.concatenate([p, n])
    width = float(np.median(pdist(rows)))
    f_p, f_n = (np.exp(-cdist(a, rows, "sqeuclidean") / (2 * width**2)) for a in (p, n))
    d = f_p.mean(0) - f_n.mean(0)
    h = np.cov(f_p.T, bias=True) + np.cov(f_n.T, bias=True) + np.outer(d, d)
    return np.linalg.solve(h + ridge * np.eye(len(rows)), d), rows, width


def trial(
    X: np.ndarray, positive: np.ndarray, sizes: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of reference positives and negatives under one trained classifier."""
    p, n = (rng.permutation(np.flatnonzero(positive == k)) for k in (True, False))
    coef, centres, width = fit_pn(X[p[: sizes[0]]], X[n[: sizes[1]]])
    rest = [rows[k : k + REFERENCE] for rows, k in ((p, sizes[0]), (n, sizes[1]))]
    parts = (np.exp(-cdist(X[r], centres, "sqeuclidean") / (2 * width**2)) @ coef for r in rest)
    return tuple(parts)  # type: ignore[return-value]


def simulate(
    p: np.ndarray, n: np.ndarray, prior: float, rng: np.random.Generator, draws: int = 4000
) -> np.ndarray:
    """Covariance matrix of (R_PN, R_PU, R_NU) over fresh draws of the validation rows."""

    def mean_loss(a: np.ndarray, b: np.ndarray) -> float:
        return float(((1.0 - (a[:, None] - b)) ** 2).mean())

    def within(a: np.ndarray) -> float:
        m = len(a)
        return (m * m * mean_loss(a, a) - m) / (m * (m - 1))

    risks = np.empty((draws, 3))
    for i in range(draws):
        a, b = rng.choice(p, VALIDATION["n_positive"]), rng.choice(n, VALIDATION["n_negative"])
        hidden = rng.binomial(VALIDATION["n_unlabeled"], prior)
        u = np.concatenate(
            [rng.choice(p, hidden), rng.choice(n, VALIDATION["n_unlabeled"] - hidden)]
        )
        risks[i] = (
            mean_loss(a, b),
            (mean_loss(a, u) - prior * within(a)) / (1 - prior),
            (mean_loss(u, b) - (1 - prior) * within(b)) / prior,
        )
    return np.cov(risks.T)


def curves(
    trials: int = 100, seed: int = 0
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Rows for figures12.csv and figures12_check.csv."""
    name, X, positive = load_data()
    table, check = [], []
    for figure, cases in FIGURES.items():
        for sizes, prior in cases:
            rng = np.random.default_rng([seed, *sizes, int(100 * prior)])
            exact, printed, best = [], [], []
            for k in range(trials):
                p, n = trial(X, positive, sizes, rng)
                covariance = risk_covariance(p, n, prior=prior, **VALIDATION)
                exact.append(covariance.ratio(ETAS))
                as_printed = printed_variance(p, n, n_positive=10, n_negative=10, prior=prior)
                printed.append([as_printed.variance(e) / as_printed.psi_pn for e in ETAS])
                best.append((covariance.gamma_pnpu, covariance.gamma_pnnu))
                if k == 0 and figure == 1:
                    matrix = simulate(p, n, prior, np.random.default_rng(seed))
                    check += [
                        {"train": sizes, "prior": prior, "entry": f"{a},{b}", "draws": 4000}
                        | {"exact": covariance.matrix[i, j], "simulated": matrix[i, j]}
                        for i, a in enumerate(("PN", "PU", "NU"))
                        for j, b in enumerate(("PN", "PU", "NU"))
                        if i <= j
                    ]
            mean, error = np.mean(exact, 0), np.std(exact, 0, ddof=1) / np.sqrt(trials)
            table += [
                {
                    "figure": figure,
                    "data": name,
                    "train_positive": sizes[0],
                    "train_negative": sizes[1],
                    "prior": prior,
                    "trials": trials,
                    "eta": eta,
                    "ratio": f"{m:.5f}",
                    "std_error": f"{e:.5f}",
                    "ratio_as_printed": f"{w:.5f}",
                }
                for eta, m, e, w in zip(ETAS, mean, error, np.mean(printed, 0), strict=True)
            ]
            print(
                figure,
                sizes,
                prior,
                "lowest r",
                mean.min().round(3),
                "at",
                ETAS[mean.argmin()],
                "mean gamma",
                np.mean(best, 0).round(3),
                flush=True,
            )
    return table, check


def write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw(table: list[dict[str, object]]) -> None:
    """Left: all eta; right: eta > 0 magnified, as in the paper."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "pnuauc"
    import matplotlib.pyplot as plt

    for figure, cases in FIGURES.items():
        fig, axes = plt.subplots(1, 2, figsize=(9, 3.6))
        for sizes, prior in cases:
            rows = [
                r
                for r in table
                if r["figure"] == figure and r["train_positive"] == sizes[0] and r["prior"] == prior
            ]
            eta, ratio, error = (
                np.array([float(r[k]) for r in rows]) for k in ("eta", "ratio", "std_error")
            )  # type: ignore[arg-type]
            label = f"(nP, nN) = {sizes}" if figure == 1 else f"prior = {prior}"
            for ax, keep in zip(axes, (eta >= -1, eta >= 0), strict=True):
                ax.errorbar(eta[keep], ratio[keep], error[keep], label=label, capsize=2, lw=1)
        for ax, log in zip(axes, (True, False), strict=True):
            ax.axhline(1, color="grey", lw=0.8, ls="--")
            ax.set(xlabel="eta", ylabel="r = Var R_PNU(eta) / Var R_PN")
            if log:
                ax.set_yscale("log")
        axes[1].set_ylim(0, 2)
        axes[0].legend()
        fig.suptitle(f"Figure {figure}, {rows[0]['data']}, {rows[0]['trials']} trials")
        fig.tight_layout()
        for kind, meta in (("png", {}), ("svg", {"Date": None})):
            fig.savefig(RESULTS / f"figure{figure}.{kind}", dpi=120, metadata=meta)
        plt.close(fig)


if __name__ == "__main__":
    RESULTS.mkdir(exist_ok=True)
    rows, comparison = curves()
    write(RESULTS / "figures12.csv", rows)
    write(RESULTS / "figures12_check.csv", comparison)
    draw(rows)
