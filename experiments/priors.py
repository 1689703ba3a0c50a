"""Class priors, measured: Tables 1 and 3 of the paper beside ours, and what the paper lacks.

    python -m experiments.priors [--table 1 3 heldout balanced coverage] [--trials 20]
    python -m experiments.priors --summary            # print from the committed rows, run nothing
    python -m experiments.priors --write-docs         # the same into docs/priors.md

One row per (table, data, cell, method, seed) is appended to ``experiments/results/priors.csv`` when
it is finished; a run that was interrupted goes on where it stopped. Data come from the folder that
``pnuauc.datasets.load`` knows; names that start with "gen-" come from generators and need no data.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pnuauc.datasets import DENSE, GENERATORS, load, sample_pnu
from pnuauc.priors import (
    BasePrior,
    EnergyDistancePrior,
    PearsonPrior,
    PenalizedL1Prior,
    PlacementPrior,
)

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "priors.csv"
DOCS = HERE.parent / "docs" / "priors.md"
COLUMNS = [
    "table",
    "dataset",
    "n_positive",
    "n_negative",
    "n_unlabeled",
    "prior",
    "method",
    "seed",
    "estimate",
    "low",
    "high",
    "std_error",
    "identified",
    "seconds",
]

PAPER_PU = [
    "banana",
    "skin_nonskin",
    "cod-rna",
    "magic",
    "image",
    "twonorm",
    "waveform",
    "mushrooms",
]
HELD_OUT = ["ringnorm", "phishing", "usps", "susy", "covtype", "a9a"]
PAPER_SSL = DENSE
GENERATED = ["gen-twonorm", "gen-ringnorm", "gen-waveform"]

PU_METHODS = {
    "penalized_l1": PenalizedL1Prior,
    "pearson": PearsonPrior,
    "placement": PlacementPrior,
}
SSL_METHODS = {"energy_guarded_1.0": ("guarded", 1.0)} | {
    f"energy_{kind}_{alpha}": (kind, alpha) for alpha in (0.5, 1.0, 1.5) for kind in "VU"
}


class Cell(NamedTuple):
    """One setting of one table; its trials differ in the seed only."""

    table: str
    dataset: str
    n_positive: int
    n_negative: int
    n_unlabeled: int
    prior: float
    methods: tuple[str, ...]


def cells(table: str) -> Iterator[Cell]:
    """All cells of a table."""
    if table in ("1", "heldout"):
        names = PAPER_PU + GENERATED if table == "1" else HELD_OUT
        methods = tuple(PU_METHODS) if table == "1" else ("penalized_l1", "placement")
        for name in names:
            for prior in (0.1, 0.2):
                yield Cell(table, name, 100, 0, 1000, prior, methods)
    elif table == "3":
        for name in PAPER_SSL + GENERATED:
            for n_labeled in (50, 100):
                for prior in (0.1, 0.2):
                    n_p = round(n_labeled * prior)
                    methods = tuple(m for m in SSL_METHODS if m.endswith("1.0"))
                    yield Cell(table, name, n_p, n_labeled - n_p, 1000, prior, methods)
    elif table == "balanced":
        for name in PAPER_SSL:
            for prior in (0.1, 0.2):
                yield Cell(table, name, 25, 25, 1000, prior, tuple(SSL_METHODS))
    elif table == "high":
        for name in PAPER_PU:
            for prior in (0.5, 0.8):
                yield Cell(table, name, 100, 0, 500, prior, ("penalized_l1", "placement"))
    else:  # coverage
        for name in ("gen-twonorm", "gen-waveform", "gen-banana", "gen-ringnorm", "magic"):
            for n_p, n_n in ((5, 45), (25, 25)):  # the interval is the same for all statistics
                yield Cell(table, name, n_p, n_n, 1000, 0.1, ("energy_guarded_1.0",))


def model(method: str) -> BasePrior:
    """A fresh estimator; doubts are recorded, not raised."""
    shared: dict[str, Any] = {
        "unlabeled_label": -1,
        "random_state": 0,
        "on_unidentified": "ignore",
    }
    if method in PU_METHODS:
        return PU_METHODS[method](**shared)
    kind, alpha = SSL_METHODS[method]
    return EnergyDistancePrior(statistic=kind, alpha=alpha, **shared)


def rows_of(dataset: str) -> tuple[Any, Any]:
    if dataset.startswith("gen-"):
        return GENERATORS[dataset.removeprefix("gen-")](20_000, prior=0.5, random_state=0)
    return load(dataset)


def run(table: str, trials: int) -> None:
    """Run what is missing of a table."""
    done = set()
    if RESULTS.exists():
        old = pd.read_csv(RESULTS, dtype={"table": str})
        done = set(zip(*(old[c] for c in KEY), strict=True))
    RESULTS.parent.mkdir(exist_ok=True)
    data: tuple[str, Any, Any] = ("", None, None)
    for cell in cells(table):
        missing = [
            (seed, m)
            for seed in range(trials)
            for m in cell.methods
            if (*cell[:4], cell.prior, m, seed) not in done
        ]
        if not missing:
            continue
        if data[0] != cell.dataset:
            try:
                data = (cell.dataset, *rows_of(cell.dataset))
            except FileNotFoundError as error:
                print(f"skipped {cell.dataset}: {error}", flush=True)
                continue
        start = time.perf_counter()
        for seed in sorted({seed for seed, _ in missing}):
            _trial(cell, seed, [m for s, m in missing if s == seed], data[1], data[2])
        print(f"{cell[:6]}: {time.perf_counter() - start:.1f} s", flush=True)


KEY = ["table", "dataset", "n_positive", "n_negative", "prior", "method", "seed"]


def _trial(cell: Cell, seed: int, methods: list[str], X: Any, y: Any) -> None:
    sample = sample_pnu(
        X,
        y,
        cell.n_positive,
        cell.n_negative,
        cell.n_unlabeled,
        cell.prior,
        seed,
        unlabeled_draw="binomial" if cell.table == "coverage" else "exact",
        n_test=0,
        scale="standard",
    )
    for method in methods:
        start = time.perf_counter()
        fitted = model(method).fit(sample.X, sample.y)
        seconds = time.perf_counter() - start
        row = [*cell[:6], method, seed]
        numbers = [fitted.prior_, *fitted.interval_, fitted.std_error_]
        row += [f"{number:.6g}" for number in numbers]
        row += [int(fitted.diagnostics_["identified"]), f"{seconds:.4f}"]
        _append(row)


def _append(row: list[Any]) -> None:
    new = not RESULTS.exists()
    with open(RESULTS, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerow(row)
        file.flush()
        os.fsync(file.fileno())


# --- summaries ----------------------------------------------------------------------------------


def _markdown(frame: pd.DataFrame) -> str:
    head = "| " + " | ".join(map(str, frame.columns)) + " |\n"
    rule = "|" + "---|" * len(frame.columns) + "\n"
    body = "".join("| " + " | ".join(map(str, row)) + " |\n" for row in frame.to_numpy())
    return head + rule + body


def _paper(table: str) -> dict[tuple[Any, ...], str]:
    if table == "1":
        frame = pd.read_csv(HERE / "paper" / "table1_pu_prior.csv")
        keys = zip(frame.dataset.str.lower(), frame.theta_p, strict=True)
    else:
        frame = pd.read_csv(HERE / "paper" / "table3_ssl_prior.csv")
        keys = zip(frame.dataset.str.lower(), frame.n_labeled, frame.theta_p, strict=True)
    return dict(zip(keys, frame.estimate, strict=True))


def side_by_side(rows: pd.DataFrame, table: str) -> str:
    """Mean estimate (standard error) of every cell, beside the paper's."""
    part = rows[rows.table == table]
    if part.empty:
        return "(no rows yet)\n"
    paper = _paper(table) if table in "13" else {}
    keys = ["dataset", "prior"] if part.n_negative.max() == 0 else ["dataset", "n_labeled", "prior"]
    methods = list(dict.fromkeys(part.method))
    if len(keys) == 3:
        methods = [m for m in methods if m.endswith("1.0")]
    lines = []
    for key, cell in part.groupby(keys, sort=False):
        line = dict(zip(keys, key, strict=True))
        if paper:
            line["paper"] = paper.get(key, "")
        for m in methods:
            e = cell[cell.method == m].estimate
            line[m] = f"{e.mean():.2f} ({e.std() / np.sqrt(len(e)):.2f})"
        line["trials"] = cell[cell.method == methods[0]].seed.nunique()
        lines.append(line)
    return _markdown(pd.DataFrame(lines))


def errors(rows: pd.DataFrame, table: str) -> str:
    """Errors over the cells of the files (generators apart), with coverage of the intervals."""
    part = rows[(rows.table == table) & ~rows.dataset.str.startswith("gen-")]
    if part.empty:
        return "(no rows yet)\n"
    lines = []
    if table in "13":
        keys = _paper(table)
        gaps = np.array([estimate - key[-1] for key, estimate in keys.items()])
        lines.append(
            {"method": "paper (printed means)", "cells": len(gaps), "rows": "50 trials a cell"}
            | {"MAE of cell means": f"{np.abs(gaps).mean():.4f}", "MAE": "", "RMSE": ""}
            | {"90% interval covers": "", "identified": "", "seconds": ""}
        )
    for method, sub in part.groupby("method", sort=False):
        gap = sub.estimate - sub.prior
        cell = gap.groupby([sub.dataset, sub.n_positive, sub.n_negative, sub.prior]).mean()
        covers = (sub.low <= sub.prior + 5e-4) & (sub.prior - 5e-4 <= sub.high)
        lines.append(
            {
                "method": method,
                "cells": len(cell),
                "rows": len(sub),
                "MAE of cell means": f"{cell.abs().mean():.4f}",
                "MAE": f"{gap.abs().mean():.4f}",
                "RMSE": f"{np.sqrt((gap**2).mean()):.4f}",
                "90% interval covers": f"{covers.mean():.3f}",
                "identified": "" if sub.identified.isna().all() else f"{sub.identified.mean():.2f}",
                "seconds": f"{sub.seconds.median():.3f}",
            }
        )
    return _markdown(pd.DataFrame(lines))


def coverage(rows: pd.DataFrame) -> str:
    part = rows[(rows.table == "coverage") & (rows.method == "energy_guarded_1.0")]
    lines = []
    for (name, n_p, n_n), cell in part.groupby(["dataset", "n_positive", "n_negative"], sort=False):
        covers = (cell.low <= cell.prior) & (cell.prior <= cell.high)
        lines.append(
            {
                "data": name,
                "nP": n_p,
                "nN": n_n,
                "draws": len(cell),
                "covered": f"{covers.mean():.3f}",
                "mean length": f"{(cell.high - cell.low).mean():.2f}",
            }
        )
    return _markdown(pd.DataFrame(lines)) if lines else "(no rows yet)\n"


def report() -> str:
    """All tables from the committed rows, as Markdown."""
    rows = pd.read_csv(RESULTS, dtype={"table": str})
    rows["n_labeled"] = rows.n_positive + rows.n_negative
    parts = [
        "### Table 1: P and U, nP = 100, nU = 1,000\n",
        errors(rows, "1"),
        side_by_side(rows, "1"),
        "### The same on sets that were not in Table 1\n",
        errors(rows, "heldout"),
        side_by_side(rows, "heldout"),
        "### Higher priors: P and U, nP = 100, nU = 500, the sets of Table 1\n",
        errors(rows, "high"),
        side_by_side(rows, "high"),
        "### Table 3: P, N and U, labelled rows at the prior of U, nU = 1,000\n",
        errors(rows, "3"),
        side_by_side(rows, "3"),
        "### The same with labelled rows half and half\n",
        errors(rows, "balanced"),
        "### Coverage of the energy distance's 90% interval, prior .1, nU = 1,000 (binomial)\n",
        coverage(rows),
    ]
    return "\n".join(parts)


def write_docs() -> None:
    begin, end = "<!-- results: begin -->\n", "<!-- results: end -->"
    text = DOCS.read_text()
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    DOCS.write_text(head + begin + "\n" + report() + "\n" + end + tail)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    choices = ["1", "3", "heldout", "balanced", "high", "coverage"]
    parser.add_argument("--table", nargs="+", choices=choices, default=["1", "3"])
    parser.add_argument("--trials", type=int, default=20, help="per cell (coverage: use 400)")
    parser.add_argument("--summary", action="store_true", help="print, run nothing")
    parser.add_argument("--write-docs", action="store_true", help="tables into docs/priors.md")
    arguments = parser.parse_args()
    if arguments.write_docs:
        write_docs()
        return
    if not arguments.summary:
        for table in arguments.table:
            run(table, arguments.trials)
    print(report())


if __name__ == "__main__":
    main()
