"""Ten million scores, 100 of them positives: what does one AUC with its interval cost?

    python benchmarks/bench_auc.py   # benchmarks/results/bench_auc.csv

The yardstick is one ``numpy.sort`` of the same scores. Best of ``--repeat`` rounds, in
each of which all cases take their turn.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pnuauc.labels import read_roles
from pnuauc.metrics import ScoreCounts, auc_estimate, auc_from_counts


def best_times(cases: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Best time of each case; cases take turns, so that a busy moment hits all of them alike."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(repeat):
        for name, run in cases.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def in_blocks(y: np.ndarray, scores: np.ndarray, n_blocks: int) -> object:
    """The mergeable form: broadcast the labelled scores, count each block, add, estimate."""
    anchors = scores[y == 1]
    blocks = zip(np.array_split(y, n_blocks), np.array_split(scores, n_blocks), strict=True)
    parts = (ScoreCounts.from_block(part, s, anchors) for part, s in blocks)
    total = next(parts)
    for part in parts:
        total = total + part
    return auc_from_counts(total, 0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=15)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    scores = rng.normal(size=args.rows)
    y = np.full(args.rows, np.nan)
    y[rng.choice(args.rows, 100, replace=False)] = 1.0
    scores[y == 1] += 1.0
    roles = read_roles(y)
    codes = np.where(y == 1, 1, -1).astype(np.int8)
    codes[0] = 0  # a negative too, so that the reading of -1 is not ambiguous
    cases: dict[str, Callable[[], object]] = {
        "numpy.sort": lambda: np.sort(scores),
        "auc_estimate, y with NaN": lambda: auc_estimate(y, scores, 0.1),
        "auc_estimate, y as Roles": lambda: auc_estimate(roles, scores, 0.1),
        "auc_estimate, y int8 codes, combined": lambda: auc_estimate(codes, scores, 0.1),
        "20 blocks merged, y with NaN": lambda: in_blocks(y, scores, 20),
    }
    best = best_times(cases, args.repeat)
    rows = [
        {
            "case": name,
            "rows": args.rows,
            "repeat": args.repeat,
            "seconds": f"{seconds:.4f}",
            "times_sort": f"{seconds / best['numpy.sort']:.2f}",
        }
        for name, seconds in best.items()
    ]
    for row in rows:
        print(row)
    path = Path(__file__).parent / "results" / "bench_auc.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
