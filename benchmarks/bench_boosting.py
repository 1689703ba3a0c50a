"""The cost of the metric beside a boosting round: ``python -m benchmarks.bench_boosting``.

LightGBM on n x 20 training and n x 20 validation rows (255 bins, 31 leaves, one thread): a round
grows a tree and adds it to the scores of both, which is what early stopping pays anyway; a round
without validation rows beside it. The metric gets the scores that LightGBM hands to ``feval``, with
1,000 validation rows labelled, and then with all of them labelled, which takes a sort. Processor
time, which other work on the machine hardly changes; round and metric take turns; medians.
"""

from __future__ import annotations

import argparse
import time

import lightgbm as lgb
import numpy as np

from pnuauc.boosting import AUCMetric


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    n = options.rows
    rng = np.random.default_rng(0)
    X, X_valid = (rng.standard_normal((n, 20), dtype=np.float32) for _ in range(2))
    truth, hidden = ((x[:, 0] + rng.standard_normal(n) > 1.5).astype(int) for x in (X, X_valid))
    few = np.where(np.arange(n) < 1_000, hidden, -1)
    metrics = {
        "1,000 labelled, prior known": AUCMetric(few, 0.1),
        "1,000 labelled, PN only": AUCMetric(few, method="pn"),
        "all labelled": AUCMetric(hidden),
    }
    settings = {"objective": "binary", "metric": "None", "verbose": -1, "num_threads": 1}
    data = lgb.Dataset(X, truth, params={"verbose": -1})
    alone = lgb.Booster(settings, data)
    booster = lgb.Booster(settings, data)
    booster.add_valid(lgb.Dataset(X_valid, few, reference=data, params={"verbose": -1}), "valid")
    times: dict[str, list[float]] = {}

    def timed(name, metric):
        def feval(scores, dataset):
            times.setdefault(name, []).append(seconds(lambda: metric.lightgbm(scores, dataset)))
            return name, 0.0, True

        return feval

    fevals = [timed(name, metric) for name, metric in metrics.items()]
    for _ in range(options.rounds):
        times.setdefault("alone", []).append(seconds(alone.update))
        times.setdefault("round", []).append(seconds(booster.update))
        for feval in fevals:
            booster.eval_valid(feval)
    median = {name: float(np.median(t)) for name, t in times.items()}
    base, without = median.pop("round"), median.pop("alone")
    print(
        f"LightGBM {lgb.__version__}, {n:,} x 20 rows: {1e3 * base:.0f} ms a round with validation "
        f"rows, {1e3 * without:.0f} ms without"
    )
    for name, value in median.items():
        print(
            f"{n:,} validation scores, {name}: {1e3 * value:.1f} ms, {value / base:.1%} "
            f"({value / without:.1%}) of a round"
        )


if __name__ == "__main__":
    main()
