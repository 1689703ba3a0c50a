"""Which way of choosing candidates is best? ``python -m experiments selection``

By the paper's protocol on its 15 dense sets, one grid of 475 candidates a trial, judged by three
validation criteria (the methods) and combined by several rules (the columns). Rules were chosen on
the sets of one half ("choose": every other set in the paper's order) and are reported on the other
("report").
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from experiments.config import Experiment, Job
from experiments.kinds import Kind, together
from experiments.rankers import VALIDATION, draw, prior_of
from experiments.summary import markdown_table, rows_by_cell
from pnuauc.core.basis import MultiscaleBasis
from pnuauc.datasets import PNUSample
from pnuauc.selection import PAPER_ALPHAS, PAPER_ETAS, PAPER_WIDTHS, TrainedGrid, deal_folds
from pnuauc.selection.choice import average, order_of, pick

__all__ = ["SELECTION"]

SHARES = (0.05, 0.1, 0.2)
TEMPERATURES = (0.25, 0.5, 1.0)
RULES = (
    *(f"best {share}" for share in SHARES),
    *("single", *(f"soft {t}" for t in TEMPERATURES), "eta 0 single"),
)


def run(job: Job) -> list[dict[str, Any]]:
    """AUC on the test rows for every (criterion, rule)."""
    sample = draw(job)
    X, y = np.asarray(sample.X, dtype=np.float64), sample.y
    prior = prior_of(X, np.where(y == -1, np.nan, y), job)
    basis = MultiscaleBasis(200, PAPER_WIDTHS, random_state=job.seed).fit(X)
    rows = {role: np.flatnonzero(y == code) for role, code in zip("PNU", (1, 0, -1), strict=True)}
    folds = deal_folds(rows, 5, random_state=job.seed)
    grid = TrainedGrid.from_arrays(X, folds, basis, PAPER_ETAS, PAPER_ALPHAS, prior).train()
    truth, scores = _test_scores(grid, sample, job.seed, job.experiment.options["n_scored"])
    return [
        {"method": m.name, "prior_used": prior, "usable": int(grid.usable.sum())}
        | _aucs(grid, m.name, truth, scores)
        for m in job.methods
    ]


def _test_scores(
    grid: TrainedGrid, sample: PNUSample, seed: int, n_scored: int
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Classes of some test rows, and every usable candidate's scores of them, standardised."""
    index = np.flatnonzero(grid.usable)
    final = grid.fit_all(index)
    test = np.random.default_rng(seed).permutation(len(sample.y_test))[:n_scored]
    X_test = np.asarray(sample.X_test[test], dtype=np.float64)
    scores = np.zeros((len(grid.candidates), len(test)))
    scale = np.unravel_index(index, grid.shape)[0]
    for j, features in grid.basis.scales(X_test):
        scores[index[scale == j]] = final.coef[scale == j] @ features.T
    scores[index] /= np.maximum(final.spread, 1e-300)[:, None]
    return sample.y_test[test], scores


def _aucs(
    grid: TrainedGrid, name: str, truth: NDArray[np.int8], scores: NDArray[np.float64]
) -> dict[str, float]:
    """One validation criterion, all rules."""
    criterion, candidates = grid.judge(VALIDATION.get(name, name)), grid.candidates
    order = order_of(criterion.mean, candidates)[: grid.usable.sum()]
    found = {f"best {s}": scores[order[: round(s * len(candidates))]].mean(axis=0) for s in SHARES}
    labelled_only = np.where(candidates.eta == 0, criterion.mean, np.nan)
    choices = {
        "single": pick(criterion.mean, candidates),
        **{f"soft {t}": average(criterion, candidates, t) for t in TEMPERATURES},
        "eta 0 single": pick(labelled_only, candidates),
    }
    found |= {rule: c.weights @ scores[c.kept] for rule, c in choices.items()}
    return {rule: float(roc_auc_score(truth, values)) for rule, values in found.items()}


def show(experiment: Experiment, results: Path) -> str:
    """Mean AUC in per cent over settings and sets, by half, criterion and rule."""
    found = rows_by_cell(experiment, results)
    halves = {"choose": experiment.data_sets[::2], "report": experiment.data_sets[1::2]}
    parts = []
    for half, names in halves.items():
        lines: list[dict[str, object]] = []
        trials = 0
        for method in experiment.methods:
            cells = [
                [[float(row[rule]) for rule in RULES] for row in rows if row["status"] == "ok"]
                for (data_set, _, m), rows in found.items()
                if m == method.name and data_set in names
            ]
            cells = [rows for rows in cells if rows]
            if cells:
                trials = max(map(len, cells))
                means = 100 * np.mean([np.mean(rows, axis=0) for rows in cells], axis=0)
                line = {r: f"{v:.2f}" for r, v in zip(RULES, means, strict=True)}
                lines.append({"criterion": method.name} | line)
        sets = f"{len(names)} sets: {', '.join(names)}; {trials} trials a cell"
        parts.append(f"**{half}** ({sets})\n\n{markdown_table(lines)}")
    return "\n\n".join(parts)


SELECTION = Kind(run, show, ("prior_used", "usable", *RULES), together)
