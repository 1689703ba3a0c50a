"""Which way of choosing candidates is best? python -m experiments.selection [--trials 10]

By the paper's protocol on its 15 dense sets, one grid of 475 candidates a trial, judged by three
validation criteria and combined by several rules. Rules were chosen on the sets of one half
("choose": every other set in the paper's order) and are reported on the other ("report").
Appends one row per trial to experiments/results/selection.csv and resumes where it stopped;
``--summary`` prints the table from the committed rows.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from pnuauc._basis import MultiscaleBasis
from pnuauc.datasets import DENSE, load, sample_pnu
from pnuauc.priors import EnergyDistancePrior
from pnuauc.selection import (
    CRITERIA,
    PAPER_ALPHAS,
    PAPER_ETAS,
    PAPER_WIDTHS,
    TrainedGrid,
    average,
    deal_folds,
    order_of,
    pick,
)

RESULTS = Path(__file__).parent / "results" / "selection.csv"
SETTINGS = [(0.1, 50), (0.1, 100), (0.2, 50), (0.2, 100)]
HALVES = {"choose": DENSE[::2], "report": DENSE[1::2]}
SHARES = (0.05, 0.1, 0.2)
TEMPERATURES = (0.25, 0.5, 1.0)


def run_trial(name: str, prior: float, n_labeled: int, seed: int, folder: str | None) -> dict:
    """AUC on the test rows for every (criterion, rule)."""
    X, y = load(name, folder)
    n_positive = round(prior * n_labeled)
    # [0, 1] columns, as in LIBSVM's scaled files: nearest to the paper's own numbers (docs)
    sample = sample_pnu(
        X, y, n_positive, n_labeled - n_positive, 1000, prior, random_state=seed, scale="minmax"
    )
    rows_x, labels = np.asarray(sample.X, dtype=np.float64), sample.y
    estimate = float(
        np.clip(
            EnergyDistancePrior(statistic="V", on_unidentified="ignore").fit(rows_x, labels).prior_,
            0.01,
            0.99,
        )
    )
    basis = MultiscaleBasis(200, PAPER_WIDTHS, random_state=seed).fit(rows_x)
    rows = {
        role: np.flatnonzero(labels == code) for role, code in zip("PNU", (1, 0, -1), strict=True)
    }
    folds = deal_folds(rows, 5, random_state=seed)
    grid = TrainedGrid.from_arrays(rows_x, folds, basis, PAPER_ETAS, PAPER_ALPHAS, estimate).train()
    candidates, usable = grid.candidates, grid.usable
    index = np.flatnonzero(usable)
    final = grid.fit_all(index)
    rng = np.random.default_rng(seed)
    test = rng.permutation(len(sample.y_test))[:4000]
    X_test = np.asarray(sample.X_test[test], dtype=np.float64)
    scores = np.zeros((len(candidates), len(test)))
    scale = np.unravel_index(index, grid.shape)[0]
    for j, features in basis.scales(X_test):
        scores[index[scale == j]] = final.coef[scale == j] @ features.T
    scores[index] /= np.maximum(final.spread, 1e-300)[:, None]
    truth = sample.y_test[test]

    out = {"prior_estimate": round(estimate, 4), "usable": int(usable.sum())}
    for name_of in CRITERIA:
        criterion = grid.judge(name_of)
        choices = {"single": pick(criterion.mean, candidates)}
        for t in TEMPERATURES:
            choices[f"soft {t}"] = average(criterion, candidates, t)
        order = order_of(criterion.mean, candidates)[: usable.sum()]
        for share in SHARES:
            out[f"{name_of}|best {share}"] = roc_auc_score(
                truth, scores[order[: round(share * len(candidates))]].mean(axis=0)
            )
        labelled_only = np.where(candidates.eta == 0, criterion.mean, np.nan)
        choices["eta 0 single"] = pick(labelled_only, candidates)
        for rule, choice in choices.items():
            out[f"{name_of}|{rule}"] = roc_auc_score(truth, choice.weights @ scores[choice.kept])
    return out


def run(seeds: range, folder: str | None) -> None:
    done = {(r["set"], float(r["prior"]), int(r["n_labeled"]), int(r["seed"])) for r in read()}
    for seed in seeds:
        for prior, n_labeled in SETTINGS:
            for name in DENSE:
                if (name, prior, n_labeled, seed) in done:
                    continue
                row = {"set": name, "prior": prior, "n_labeled": n_labeled, "seed": seed}
                with threadpool_limits(1):
                    row |= run_trial(name, prior, n_labeled, seed, folder)
                append(row)
        print(f"seed {seed} done, last is {seeds[-1]}", flush=True)


def read() -> list[dict]:
    if not RESULTS.exists():
        return []
    with RESULTS.open() as lines:
        return list(csv.DictReader(lines))


def append(row: dict) -> None:
    fresh = not RESULTS.exists()
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", newline="") as out:
        writer = csv.DictWriter(out, row)
        if fresh:
            writer.writeheader()
        writer.writerow({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()})


def summarise() -> str:
    """Markdown: mean AUC in percent over sets, by half, criterion and rule."""
    rows = read()
    lines = []
    for half, names in HALVES.items():
        values: dict[str, dict[tuple, list]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            if row["set"] in names:
                for key in row:
                    if "|" in key:
                        cell = (row["prior"], row["n_labeled"], row["set"])
                        values[key][cell].append(float(row[key]))
        n = len({r["seed"] for r in rows})
        lines += [f"\n**{half}** ({len(names)} sets: {', '.join(names)}; {n} trials a cell)\n"]
        rules = list(dict.fromkeys(key.split("|")[1] for key in values))
        lines += ["| criterion | " + " | ".join(rules) + " |", "|---" * (len(rules) + 1) + "|"]
        for criterion in CRITERIA:
            cells = []
            for rule in rules:
                per_cell = [np.mean(v) for v in values[f"{criterion}|{rule}"].values()]
                cells.append(f"{100 * np.mean(per_cell):.2f}" if per_cell else "")
            lines.append(f"| {criterion} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="to share trials among processes")
    parser.add_argument("--data", default=None, help="folder with the data sets")
    parser.add_argument("--summary", action="store_true", help="only print the table")
    args = parser.parse_args()
    if not args.summary:
        run(range(args.first_seed, args.first_seed + args.trials), args.data)
    print(summarise())


if __name__ == "__main__":
    main()
