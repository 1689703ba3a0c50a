"""The cost of the metric beside a boosting round: ``python -m benchmarks.bench_boosting``.

LightGBM on n x 20 training and n x 20 validation rows (255 bins, 31 leaves, one thread): a round
grows a tree and adds it to the scores of both, which is what early stopping pays anyway; a round
without validation rows beside it. The metric gets the scores that LightGBM hands to ``feval``, with
1,000, half and all of the validation rows labelled: in the first rounds, where many scores are
equal, and after 40, where hardly any are. LightGBM's own AUC of all labelled rows beside it.
Processor time, which other work on the machine changes less; all take turns; medians.
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
    few, half = (np.where(np.arange(n) < k, hidden, -1) for k in (1_000, n // 2))
    metrics = {
        "1,000 labelled, prior known": AUCMetric(few, 0.1),
        "1,000 labelled, PN only": AUCMetric(few, method="pn"),
        "half labelled, prior known": AUCMetric(half, 0.1),
        "half labelled, PN only": AUCMetric(half, method="pn"),
        "all labelled": AUCMetric(hidden),
    }

    def booster(metric, valid):
        settings = {"objective": "binary", "metric": metric, "verbose": -1, "num_threads": 1}
        made = lgb.Booster(settings, data)
        if valid:
            made.add_valid(lgb.Dataset(X_valid, hidden, reference=data, params=quiet), "valid")
        return made

    quiet = {"verbose": -1}
    data = lgb.Dataset(X, truth, params=quiet)
    alone, beside, own = booster("None", False), booster("None", True), booster("auc", True)
    times: dict[str, list[float]] = {}

    def feval(scores, dataset):
        for name, metric in metrics.items():
            spent = seconds(lambda metric=metric: metric.lightgbm(scores, dataset))
            times.setdefault(name, []).append(spent)
        return "timed", 0.0, True

    def report(when):
        median = {name: float(np.median(t)) for name, t in times.items()}
        base, without = median.pop("round"), median.pop("alone")
        print(f"{when}: {1e3 * base:.0f} ms a round, {1e3 * without:.0f} ms without valid rows")
        for name, value in median.items():
            print(f"  {name}: {1e3 * value:.1f} ms, {value / base:.1%} ({value / without:.1%})")
        times.clear()

    print(f"LightGBM {lgb.__version__}, {n:,} x 20 rows, {n:,} validation rows")
    for when in ("first rounds", "after 40 rounds"):
        for _ in range(options.rounds):
            times.setdefault("alone", []).append(seconds(alone.update))
            times.setdefault("round", []).append(seconds(beside.update))
            beside.eval_valid(feval)
            own.update()
            times.setdefault("LightGBM's own AUC", []).append(seconds(own.eval_valid))
        report(when)
        for _ in range(40 - options.rounds):
            for each in (alone, beside, own):
                each.update()


if __name__ == "__main__":
    main()
