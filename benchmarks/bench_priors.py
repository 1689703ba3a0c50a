"""What a prior costs beside the fit it serves: nP = 100, nU = 1,000, d = 20 (twonorm).

    python -m benchmarks.bench_priors [--repeats 5] [--write]

Prints processor time in one thread (median of the repeats) of every registered estimator, and its
ratio to one squared-loss ``AUCClassifierCV`` fit on the same rows with the prior given. With
negatives (PNU) there are nN = 100 more rows; the default estimator is timed with and without.
``--write`` puts the table into ``benchmarks/results/priors.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import pnuauc
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.priors import PRIORS

ALL_ROLES = ("energy", "em", "hellinger")
ONE_CLASS_ONLY = ("penalized_l1", "pearson")
RESULTS = Path(__file__).resolve().parent / "results" / "priors.csv"


def processor_time(action: Callable[[], Any], repeats: int) -> float:
    """Median of the repeats, after one call that is not counted."""
    action()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return float(np.median(times))


def measure(repeats: int) -> list[dict[str, Any]]:
    X, y = make_twonorm(5000, random_state=0)
    pu = sample_pnu(X, y, 100, 0, 1000, 0.1, 0)
    pnu = sample_pnu(X, y, 100, 100, 1000, 0.1, 0)
    classifier = getattr(pnuauc, "AUCClassifierCV", None)
    fits: dict[str, float] = {}
    if classifier is not None:
        for name, sample in (("PU", pu), ("PNU", pnu)):
            model = classifier(prior=0.1, unlabeled_label=-1, random_state=0)
            fits[name] = processor_time(lambda m=model, s=sample: m.fit(s.X, s.y), repeats)
    lines = []
    cases = [(name, "PNU", pnu) for name in PRIORS if name not in ONE_CLASS_ONLY]
    cases += [(name, "PU", pu) for name in PRIORS if name not in ALL_ROLES]
    for name, setting, sample in cases:
        estimator = PRIORS[name]
        model = estimator(unlabeled_label=-1, random_state=0)
        seconds = processor_time(lambda m=model, s=sample: m.fit(s.X, s.y), repeats)
        fit = fits.get(setting)
        lines.append(
            {
                "estimator": name,
                "setting": setting,
                "seconds": round(seconds, 4),
                "AUCClassifierCV seconds": round(fit, 4) if fit else "not available",
                "ratio": round(seconds / fit, 3) if fit else "not available",
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        lines = measure(arguments.repeats)
    for line in lines:
        print("  ".join(f"{key}={value}" for key, value in line.items()))
    if arguments.write:
        RESULTS.parent.mkdir(exist_ok=True)
        with open(RESULTS, "w", newline="") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
