"""Ten million scores, 100 of them positives: what does one AUC with its interval cost?

    python benchmarks/bench_auc.py   # benchmarks/results/bench_auc.csv

The yardstick is one ``numpy.sort`` of the same scores. Best of ``--repeat`` runs, one thread.
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


def best_of(run: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


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
    parser.add_argument("--repeat", type=int, default=5)
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
    rows: list[dict[str, object]] = []
    for name, run in cases.items():
        seconds = best_of(run, args.repeat)
        base = seconds if not rows else float(str(rows[0]["seconds"]))
        rows.append(
            {
                "case": name,
                "rows": args.rows,
                "seconds": f"{seconds:.4f}",
                "times_sort": f"{seconds / base:.2f}",
            }
        )
        print(rows[-1], flush=True)
    path = Path(__file__).parent / "results" / "bench_auc.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
