"""The committee against one AUCClassifierCV fit; python -m benchmarks.bench_auto

Processor seconds of each, prior given, every fit in a process of its own, and how far its memory
rose above the input. Scoring: rows a second of the committee, and of ExtraTreesClassifier with as
many trees on the labelled rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from time import process_time
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from pnuauc import AUCClassifierCV, AutoAUCClassifier

SETTINGS = {"PU": (20, 0), "PNU": (20, 80), "PNU, 1,000 labels": (200, 800)}


def make_rows(n: int, d: int, labels: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians, n unlabelled rows and the labelled ones."""
    rng = np.random.default_rng(0)
    positive = rng.random(n + sum(labels)) < 0.1
    positive[: labels[0]], positive[labels[0] : sum(labels)] = True, False
    X = rng.standard_normal((len(positive), d))
    X += np.where(positive, 0.4, -0.4)[:, None]
    y = np.full(len(positive), np.nan)
    y[: sum(labels)] = positive[: sum(labels)]
    return X, y


def measure(name: str, n: int, d: int, labels: tuple[int, int]) -> dict[str, float]:
    """One fit, and the scoring of 50,000 rows."""
    X, y = make_rows(n, d, labels)
    ranker: Any = {"one": AUCClassifierCV, "committee": AutoAUCClassifier}[name](
        prior=0.1, verbose=False, random_state=0, n_jobs=1
    )
    ranker.fit(*make_rows(300, 3, labels))  # what is loaded at the first use is no part of a fit
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = process_time()
    ranker.fit(X, y)
    found = {"seconds": process_time() - start}
    found["megabytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    rows = np.resize(X, (50_000, d))
    start = process_time()
    ranker.decision_function(rows)
    found["rate"] = len(rows) / (process_time() - start)
    if all(labels):
        known = ~np.isnan(y)
        forest = ExtraTreesClassifier(200, random_state=0).fit(X[known], y[known])
        start = process_time()
        forest.predict_proba(rows)
        found["forest"] = len(rows) / (process_time() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 1_000_000])
    parser.add_argument("--columns", type=int, default=18)
    args = parser.parse_args()
    head = ("unlabelled", "labels", "one s", "committee s", "ratio", "MB", "rows/s", "trees rows/s")
    print(" ".join(f"{name:>18}" for name in head))
    for n in args.rows:
        for name, labels in SETTINGS.items():
            found = {}
            for kind in ("one", "committee"):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    found[kind] = pool.apply(measure, (kind, n, args.columns, labels))
            one, whole = found["one"], found["committee"]
            values = (one["seconds"], whole["seconds"], whole["seconds"] / one["seconds"])
            forest = f"{whole['forest']:,.0f}" if "forest" in whole else ""
            shown = [f"{n:,}", name, *(f"{v:.2f}" for v in values), f"{whole['megabytes']:.0f}"]
            print(
                " ".join(f"{v:>18}" for v in [*shown, f"{whole['rate']:,.0f}", forest]), flush=True
            )


if __name__ == "__main__":
    main()
