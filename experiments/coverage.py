"""Do the standard errors and intervals of ``auc_estimate`` hold what they promise?

    python -m experiments.coverage                  # experiments/results/coverage.csv
    python -m experiments.coverage --study weights  # experiments/results/combination_weights.csv

Scores: positives N(1, 1), negatives N(0, 1), unlabelled a mixture (the number of positives in U is
itself binomial); "tied" rounds them to the four values -1, 0, 1, 2; "skewed" are exponentials of
mean 3 and 1, where the two-Gaussians model behind the combination's weights is wrong. The true
AUC is known in closed form. One line per (sizes, prior, scores, method); lines already in the file
are kept, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from scipy import stats

from pnuauc.labels import Roles
from pnuauc.metrics import ScoreCounts, auc_from_counts

RESULTS = Path(__file__).parent / "results"
SIZES = [
    (10, 40, 1000),
    (20, 80, 1000),
    (50, 0, 5000),
    (100, 100, 10000),
    (80, 20, 1000),
    (50, 50, 2000),
]
PRIORS = [0.1, 0.3]
KINDS = ["gaussian", "tied", "skewed"]
METHODS = ["pn", "pu", "nu", "combined"]
KEY = ["n_positive", "n_negative", "n_unlabeled", "prior", "scores", "method"]


def draw(
    rng: np.random.Generator, sizes: tuple[int, int, int], prior: float, kind: str
) -> tuple[Roles, np.ndarray]:
    """One data set: roles and scores."""
    n_p, n_n, n_u = sizes
    hidden = rng.binomial(n_u, prior)
    positive = np.concatenate([np.ones(n_p + hidden, bool), np.zeros(n_n + n_u - hidden, bool)])
    if kind == "skewed":
        scores = rng.exponential(np.where(positive, 3.0, 1.0))
    else:
        scores = rng.normal(positive.astype(float), 1.0)
    if kind == "tied":
        scores = np.clip(np.round(scores), -1, 2)
    codes = np.repeat(np.array([1, -1, 0, -1], np.int8), [n_p, hidden, n_n, n_u - hidden])
    return Roles(codes), scores


def true_auc(kind: str) -> float:
    """AUC of the generator."""
    if kind == "gaussian":
        return float(stats.norm.cdf(np.sqrt(0.5)))
    if kind == "skewed":
        return 0.75
    edges = np.array([-np.inf, -0.5, 0.5, 1.5, np.inf])
    p, n = np.diff(stats.norm.cdf(edges - 1.0)), np.diff(stats.norm.cdf(edges))
    return float(p @ (np.cumsum(n) - n / 2))


def simulate(
    sizes: tuple[int, int, int], prior: float, kind: str, draws: int, seed: int
) -> dict[str, dict[str, float]]:
    """All methods on the same draws: coverage, standard errors, and plainer intervals."""
    rng = np.random.default_rng([seed, *sizes, int(100 * prior), KINDS.index(kind)])
    methods = METHODS if sizes[1] else ["pu", "combined"]
    kept: dict[str, list[tuple[float, float, float, float]]] = {m: [] for m in methods}
    for _ in range(draws):
        counts = ScoreCounts.from_rows(*draw(rng, sizes, prior, kind))
        for method in methods:
            r = auc_from_counts(counts, prior, method)
            kept[method].append((r.value, r.std_error, r.low, r.high))
    table = {m: np.array(rows) for m, rows in kept.items()}
    truth = true_auc(kind)
    singles = [m for m in methods if m != "combined"]
    best_sd = min(table[m][:, 0].std() for m in singles)
    best_se = np.min([table[m][:, 1] for m in singles], axis=0)
    return {m: _summary(rows, truth, best_sd, best_se, sizes) for m, rows in table.items()} | {
        "_pn_se": {"mean": float(table["pn"][:, 1].mean()) if "pn" in table else float("nan")}
    }


def _summary(
    rows: np.ndarray, truth: float, best_sd: float, best_se: np.ndarray, sizes: tuple[int, int, int]
) -> dict[str, float]:
    value, se, low, high = rows.T
    sd = value.std()
    df = max(min(n for n in sizes if n) - 1, 1)
    return {
        "truth": truth,
        "coverage": np.mean((low <= truth) & (truth <= high)),
        "plain_z": np.mean(np.abs(value - truth) <= stats.norm.ppf(0.975) * se),
        "plain_t": np.mean(np.abs(value - truth) <= stats.t.ppf(0.975, df) * se),
        "bias_in_sd": (value.mean() - truth) / sd,
        "simulated_sd": sd,
        "mean_se_over_sd": se.mean() / sd,
        "rms_se_over_sd": np.sqrt(np.mean(se**2)) / sd,
        "sd_over_best_single": sd / best_sd,
        "max_se_over_best_single": np.max(se / best_se),
    }


def coverage(draws: int, seed: int, path: Path) -> None:
    """Run what is missing in ``path`` and write it line by line."""
    done = set()
    if path.exists():
        with path.open() as lines:
            done = {tuple(row[k] for k in KEY) for row in csv.DictReader(lines)}
    for sizes in SIZES:
        for prior in PRIORS:
            for kind in KINDS:
                key = tuple(str(v) for v in (*sizes, prior, kind))
                if (*key, "combined") in done:
                    continue
                results = simulate(sizes, prior, kind, draws, seed)
                pn = results.pop("_pn_se")["mean"]
                for method, numbers in results.items():
                    mean_se = numbers["mean_se_over_sd"] * numbers["simulated_sd"]
                    row = dict(zip(KEY, (*key, method), strict=True), draws=draws)
                    row |= {k: f"{v:.4f}" for k, v in numbers.items()}
                    row["mean_se_over_pn"] = f"{mean_se / pn:.4f}"
                    append(path, row)
                print(*key, {m: f"{r['coverage']:.3f}" for m, r in results.items()}, flush=True)


def append(path: Path, row: dict[str, object]) -> None:
    """Add one line, with the header first where the file is new."""
    new = not path.exists()
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


def sample_covariance(p: np.ndarray, n: np.ndarray, u: np.ndarray, prior: float) -> np.ndarray:
    """Covariance matrix of (PN, PU, NU) by Hoeffding projections, independent of the package."""

    def share_below(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        b = np.sort(b)
        sides = (np.searchsorted(b, a, side=side) for side in ("left", "right"))
        return sum(sides) / (2 * len(b))  # type: ignore[return-value]

    rest = 1 - prior
    blocks = (
        [share_below(p, n), share_below(p, u) / rest, 0 * p],
        [-share_below(n, p), 0 * n, -share_below(n, u) / prior],
        [0 * u, -share_below(u, p) / rest, share_below(u, n) / prior],
    )
    return sum(np.cov(block) / len(block[0]) for block in blocks)  # type: ignore[return-value]


def weights_study(draws: int, seed: int, path: Path) -> None:
    """What weights from the raw covariance matrix cost, against those of "combined"."""
    path.unlink(missing_ok=True)
    for sizes, prior in [(s, t) for s in SIZES if s[1] for t in PRIORS]:
        rng = np.random.default_rng([seed, *sizes, int(100 * prior)])
        kept: dict[str, list[tuple[float, float, float]]] = {"raw": [], "steadied": []}
        singles = []
        for _ in range(draws):
            roles, scores = draw(rng, sizes, prior, "gaussian")
            parts = (scores[rows] for rows in (roles.positive, roles.negative, roles.unlabeled))
            matrix = sample_covariance(*parts, prior)
            counts = ScoreCounts.from_rows(roles, scores)
            values = np.array([auc_from_counts(counts, prior, m).value for m in METHODS[:3]])
            raw = np.linalg.solve(matrix, np.ones(3))
            steadied = list(auc_from_counts(counts, prior, "combined").weights.values())
            for name, w in (("raw", raw / raw.sum()), ("steadied", np.array(steadied))):
                kept[name].append((w @ values, np.sqrt(w @ matrix @ w), w[1]))
            singles.append(values)
        best = np.std(singles, axis=0).min()
        for name, rows in kept.items():
            value, se, w_pu = np.array(rows).T
            row: dict[str, object] = dict(zip(KEY[:4], (*sizes, prior), strict=True))
            row |= {"weights": name, "draws": draws}
            row["sd_over_best_single"] = f"{value.std() / best:.4f}"
            row["mean_se_over_sd"] = f"{se.mean() / value.std():.4f}"
            row["sd_of_weight_pu"] = f"{w_pu.std():.3f}"
            append(path, row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", choices=["coverage", "weights"], default="coverage")
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=20170001)
    args = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if args.study == "coverage":
        coverage(args.draws, args.seed, RESULTS / "coverage.csv")
    else:
        weights_study(args.draws, args.seed, RESULTS / "combination_weights.csv")


if __name__ == "__main__":
    main()
