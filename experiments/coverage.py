"""Do the standard errors and intervals of ``auc_estimate`` hold what they promise?

``python -m experiments coverage`` and, for the combination's weights, ``... weights``.

Scores (the "data sets"): positives N(1, 1), negatives N(0, 1), unlabelled a mixture (the number of
positives in U is itself binomial); "tied" rounds them to the four values -1, 0, 1, 2; "skewed" are
exponentials of mean 3 and 1, where the two-Gaussians model behind the combination's weights is
wrong. The true AUC is known in closed form. A row sums up ``draws`` draws.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from experiments.config import Experiment, Job, Setting
from experiments.kinds import Kind, together
from experiments.summary import finished, markdown_table, share_below
from pnuauc.evaluation.estimate import unbiased_auc
from pnuauc.exceptions import PriorRefutedError
from pnuauc.labels import Roles
from pnuauc.metrics import ScoreCounts, auc_from_counts

__all__ = ["COVERAGE", "WEIGHTS"]

SCORES = ["gaussian", "tied", "skewed"]  # their order seeds the draws
SINGLE = ["pn", "pu", "nu"]
FIRST_SEED = 20170001


def _sizes(setting: Setting) -> tuple[int, int, int]:
    return setting.n_positive, setting.n_negative, setting.n_unlabeled


def _generator(job: Job, *more: int) -> np.random.Generator:
    sizes, prior = _sizes(job.setting), int(100 * job.setting.prior)
    return np.random.default_rng([FIRST_SEED + job.seed, *sizes, prior, *more])


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


def run(job: Job) -> list[dict[str, Any]]:
    """All methods on the same draws: coverage, standard errors, and plainer intervals."""
    sizes, prior, kind = _sizes(job.setting), job.setting.prior, job.data_set
    rng, draws = _generator(job, SCORES.index(kind)), job.experiment.options["draws"]
    singles = SINGLE if sizes[1] else ["pu"]
    kept: dict[str, list[tuple[float, ...]]] = {m: [] for m in (*singles, "combined")}
    for _ in range(draws):
        counts = ScoreCounts.from_rows(*draw(rng, sizes, prior, kind))
        for method, values in kept.items():
            try:
                r = auc_from_counts(counts, prior, method)
            except PriorRefutedError:  # no AUC in [0, 1] fits: an interval that holds nothing
                values.append((np.nan, np.nan, np.nan, np.nan))
                continue
            values.append((r.unbiased, r.std_error, r.low, r.high))
    table = {m: np.array(values) for m, values in kept.items()}
    best_sd = min(np.nanstd(table[m][:, 0]) for m in singles)
    best_se = np.nanmin([table[m][:, 1] for m in singles], axis=0)
    pn = table["pn"][:, 1].mean() if "pn" in table else np.nan
    return [
        {"method": m.name, "mean_se_over_pn": np.nanmean(table[m.name][:, 1]) / pn}
        | _summary(table[m.name], true_auc(kind), best_sd, best_se, sizes)
        for m in job.methods
        if m.name in table
    ]


def _summary(
    rows: np.ndarray, truth: float, best_sd: float, best_se: np.ndarray, sizes: tuple[int, int, int]
) -> dict[str, float]:
    value, se, low, high = rows.T
    sd = np.nanstd(value)
    df = max(min(n for n in sizes if n) - 1, 1)
    return {
        "truth": truth,
        "coverage": np.mean((low <= truth) & (truth <= high)),
        "plain_z": np.mean(np.abs(value - truth) <= stats.norm.ppf(0.975) * se),
        "plain_t": np.mean(np.abs(value - truth) <= stats.t.ppf(0.975, df) * se),
        "bias_in_sd": (np.nanmean(value) - truth) / sd,
        "simulated_sd": sd,
        "mean_se_over_sd": np.nanmean(se) / sd,
        "rms_se_over_sd": np.sqrt(np.nanmean(se**2)) / sd,
        "sd_over_best_single": sd / best_sd,
        "max_se_over_best_single": np.nanmax(se / best_se),
    }


def sample_covariance(p: np.ndarray, n: np.ndarray, u: np.ndarray, prior: float) -> np.ndarray:
    """Covariance matrix of (PN, PU, NU) by Hoeffding projections, independent of the package."""
    rest = 1 - prior
    blocks = (
        [share_below(p, n), share_below(p, u) / rest, 0 * p],
        [-share_below(n, p), 0 * n, -share_below(n, u) / prior],
        [0 * u, -share_below(u, p) / rest, share_below(u, n) / prior],
    )
    return sum(np.cov(block) / len(block[0]) for block in blocks)  # type: ignore[return-value]


def run_weights(job: Job) -> list[dict[str, Any]]:
    """What weights from the raw covariance matrix cost, against those of "combined"."""
    rng, prior = _generator(job), job.setting.prior
    kept: dict[str, list[tuple[float, ...]]] = {"raw": [], "steadied": []}
    singles = []
    for _ in range(job.experiment.options["draws"]):
        roles, scores = draw(rng, _sizes(job.setting), prior, job.data_set)
        parts = (scores[rows] for rows in (roles.positive, roles.negative, roles.unlabeled))
        matrix = sample_covariance(*parts, prior)
        counts = ScoreCounts.from_rows(roles, scores)
        values = np.array([unbiased_auc(counts, prior, m) for m in SINGLE])
        raw = np.linalg.solve(matrix, np.ones(3))
        steadied = list(auc_from_counts(counts, prior, "combined").weights.values())
        for name, w in (("raw", raw / raw.sum()), ("steadied", np.array(steadied))):
            kept[name].append((w @ values, np.sqrt(w @ matrix @ w), w[1]))
        singles.append(values)
    best = np.std(singles, axis=0).min()
    columns = {method.name: np.array(kept[method.name]).T for method in job.methods}
    return [
        {
            "method": name,
            "sd_over_best_single": value.std() / best,
            "mean_se_over_sd": se.mean() / value.std(),
            "sd_of_weight_pu": w_pu.std(),
        }
        for name, (value, se, w_pu) in columns.items()
    ]


def show(experiment: Experiment, results: Path) -> str:
    """Every row, as a Markdown table of its columns."""
    columns = COVERAGE.columns if experiment.kind == "coverage" else WEIGHTS.columns
    return markdown_table(
        [
            {"scores": row["data_set"], "setting": row["setting"], "method": row["method"]}
            | {c: f"{float(row[c]):.3f}" for c in columns}
            for row in finished(experiment, results)
        ]
    )


COVERAGE = Kind(
    run,
    show,
    (
        *("truth", "coverage", "plain_z", "plain_t", "bias_in_sd", "simulated_sd"),
        *("mean_se_over_sd", "rms_se_over_sd", "sd_over_best_single"),
        *("max_se_over_best_single", "mean_se_over_pn"),
    ),
    together,
)
WEIGHTS = Kind(
    run_weights, show, ("sd_over_best_single", "mean_se_over_sd", "sd_of_weight_pu"), together
)
