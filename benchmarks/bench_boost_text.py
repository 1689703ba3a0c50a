"""SSRankBoost on text with 1.6 million columns: 100 rounds at 10,000 unlabelled rows.

    python -m benchmarks.bench_boost_text   # benchmarks/results/bench_boost_text.csv

Needs the news20 set (see ``experiments.paper_sets.load``). 20 positive, 80 negative and
10,000 unlabelled rows, as in the paper's text experiments; CPU time of one fit, one thread, and
the peak memory of the whole process, data included.
"""

from __future__ import annotations

import argparse
import csv
import resource
import sys
import time
from pathlib import Path

from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from experiments.paper_sets import load
from pnuauc.baselines import SSRankBoost
from pnuauc.datasets import sample_pnu

RESULTS = Path(__file__).parent / "results" / "bench_boost_text.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    X, y = load("news20")
    sample = sample_pnu(X, y, 20, 80, 10_000, 0.2, random_state=0)
    with threadpool_limits(1):
        start = time.process_time()
        model = SSRankBoost(discount=0.1, n_neighbors=3, n_rounds=100).fit(sample.X, sample.y)
        seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = {
        "rows": sample.X.shape[0],
        "columns": sample.X.shape[1],
        "entries": sample.X.nnz,
        "rounds": len(model.weights_),
        "cpu_seconds": round(seconds, 2),
        "peak_gigabytes": round(peak / (1e9 if sys.platform == "darwin" else 1e6), 2),
        "test_auc": round(roc_auc_score(sample.y_test, model.decision_function(sample.X_test)), 4),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)
    print(row)


if __name__ == "__main__":
    main()
