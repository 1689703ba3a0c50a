"""All competitors by the paper's protocol, next to the paper's printed numbers.

    python -m experiments.baselines [--data-set NAME|all] [--trials 10] [--n-labeled 50]
                                    [--prior .1] [--methods ss_rank_boost entropy_auc ...]
                                    [--setting pnu|pu]

pnu (Table 4): n_P = prior * n_labeled, n_N = n_labeled - n_P, n_U = 1,000; pu (Table 2): n_P = 100,
n_U = 1,000. Test rows are the rest, at most 10,000 of them. Columns are standardised with the
training rows (P, N and U together) unless ``--scale`` says otherwise; text stays as it is. Every
hyper-parameter is chosen by five role-stratified folds: by the AUC of held-out labelled pairs, for
the PU ranking SVM by the share of held-out P-U pairs won. The time is the CPU time of the whole
search and refit, one thread.

Each trial is appended to ``experiments/results/baselines.csv`` as it finishes; trials that are
there already are not run again, so the command can be stopped and resumed.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from pnuauc.baselines import BASELINES
from pnuauc.datasets import DENSE, TEXT, load, sample_pnu

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "baselines.csv"
KEY = ["setting", "data_set", "n_positive", "n_negative", "n_unlabeled", "prior", "scale", "method"]
FIELDS = [*KEY, "trial", "auc", "cpu_seconds", "n_test", "chosen"]
TABLE2 = [
    "banana",
    "skin_nonskin",
    "cod-rna",
    "magic",
    "image",
    "twonorm",
    "waveform",
    "mushrooms",
]
N_TEST = 10_000


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then print the table."""
    options = parse(arguments)
    table = Results(options.output)
    jobs = [
        (trial, name, method)
        for trial in range(options.trials)
        for name in options.data_set
        for method in options.methods
    ]
    for trial, name, method in jobs:
        key = key_of(options, name, method, trial)
        if not table.has(key):
            row = run(key)
            table.append(row)
            print(
                f"{trial:3d} {name:13s} {method:22s} {row['auc']:.4f}  {row['cpu_seconds']:.1f} s",
                flush=True,
            )
    print(summary(table.rows, options))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.baselines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-set", nargs="+", default=["all"])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--n-labeled", type=int, default=50)
    parser.add_argument("--n-unlabeled", type=int, default=1000)
    parser.add_argument("--prior", type=float, default=0.1)
    parser.add_argument("--methods", nargs="+", default=["all"], choices=["all", *BASELINES])
    parser.add_argument("--setting", choices=["pnu", "pu"], default="pnu")
    parser.add_argument("--scale", choices=["standard", "none", "minmax"], default="standard")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    everything = DENSE if options.setting == "pnu" else TABLE2
    options.data_set = everything if options.data_set == ["all"] else options.data_set
    unknown = set(options.data_set) - set(DENSE) - set(TEXT)
    if unknown:
        parser.error(f"no data set {', '.join(unknown)}; choose from {', '.join(DENSE + TEXT)}")
    if options.methods == ["all"]:
        methods = list(BASELINES) if options.setting == "pnu" else ["rank_svm"]
        options.methods = [m for m in methods if available(m)]
    return options


def available(method: str) -> bool:
    if method not in ("elkan_noto", "bagging_pu"):
        return True
    try:
        import pulearn  # noqa: F401
    except ImportError:
        return False
    return True


def key_of(options: argparse.Namespace, name: str, method: str, trial: int) -> dict[str, str]:
    """The columns that tell one run from another, as text."""
    if options.setting == "pu":
        n_positive, n_negative = 100, 0
    else:
        n_positive = round(options.prior * options.n_labeled)
        n_negative = options.n_labeled - n_positive
    scale = "none" if name in TEXT else options.scale
    values = (
        options.setting,
        name,
        n_positive,
        n_negative,
        options.n_unlabeled,
        f"{options.prior:g}",
        scale,
        method,
        trial,
    )
    return {field: str(value) for field, value in zip(FIELDS, values, strict=False)}


@lru_cache(maxsize=1)
def data(name: str) -> tuple[Any, Any]:
    """The set in use; the methods of one trial share it."""
    return load(name)


def run(key: dict[str, str]) -> dict[str, object]:
    """One trial of one method: sample, select, refit, score the test rows."""
    X, y = data(key["data_set"])
    trial = int(key["trial"])
    counts = [int(key[f"n_{role}"]) for role in ("positive", "negative", "unlabeled")]
    sample = sample_pnu(
        X, y, *counts, float(key["prior"]), random_state=trial, scale=key["scale"], n_test=N_TEST
    )
    baseline = BASELINES[key["method"]]
    if key["data_set"] in TEXT:
        baseline = baseline.on_text()
    # PU labels are 1 and -1 on purpose; an unfinished L-BFGS run of a poor candidate is no news
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Labels are only 1 and -1")
        start = time.process_time()
        model = baseline.search(sample.X, random_state=trial).fit(sample.X, sample.y)
        seconds = time.process_time() - start
        scores = model.decision_function(sample.X_test)
    return {
        **key,
        "auc": round(float(roc_auc_score(sample.y_test, scores)), 6),
        "cpu_seconds": round(seconds, 3),
        "n_test": len(sample.y_test),
        "chosen": json.dumps(getattr(model, "best_params_", {})),
    }


class Results:
    """The csv file of finished trials."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, object]] = []
        if path.exists():
            with open(path, newline="") as file:
                self.rows = list(csv.DictReader(file))
        self.known = {tuple(row[f] for f in [*KEY, "trial"]) for row in self.rows}

    def has(self, key: dict[str, str]) -> bool:
        return tuple(key[f] for f in [*KEY, "trial"]) in self.known

    def append(self, row: dict[str, object]) -> None:
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append(row)
        self.known.add(tuple(str(row[f]) for f in [*KEY, "trial"]))


def printed(setting: str, prior: float, n_labeled: int) -> dict[tuple[str, str], float]:
    """The paper's column: (data set, method of the paper) -> AUC in per cent."""
    name = "table4_ssl_auc.csv" if setting == "pnu" else "table2_pu_auc.csv"
    with open(HERE / "paper" / name, newline="") as file:
        return {
            (row["dataset"].lower(), row["method"]): float(row["auc_percent"])
            for row in csv.DictReader(file)
            if float(row["theta_p"]) == prior and int(row.get("n_labeled", n_labeled)) == n_labeled
        }


def summary(rows: list[dict[str, object]], options: argparse.Namespace) -> str:
    """AUC in per cent (standard error), mean seconds, and the paper's number, by data set."""
    paper = printed(options.setting, options.prior, options.n_labeled)
    lines = ["data set       method                  trials   AUC %   (se)   CPU s   paper %"]
    for method in options.methods:
        means, theirs = [], []
        for name in options.data_set:
            key = key_of(options, name, method, 0)
            mine = [r for r in rows if all(str(r[f]) == key[f] for f in KEY)]
            if not mine:
                continue
            aucs = 100 * np.array([float(str(r["auc"])) for r in mine])
            seconds = np.nanmean([float(str(r["cpu_seconds"])) for r in mine])
            error = aucs.std(ddof=1) / np.sqrt(len(aucs)) if len(aucs) > 1 else np.nan
            stated = paper.get((name, BASELINES[method].paper_name or ""), np.nan)
            means.append(aucs.mean())
            theirs.append(stated)
            lines.append(
                f"{name:14s} {method:22s} {len(aucs):7d} {aucs.mean():7.1f} ({error:5.2f})"
                f" {seconds:8.2f} {stated:9.1f}"
            )
        if means:
            lines.append(
                f"{'MEAN':14s} {method:22s} {len(means):4d} sets {np.mean(means):6.1f} "
                f"{np.mean(theirs):25.1f}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
