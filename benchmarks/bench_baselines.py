"""One fit of every competitor with its paper grid, as a multiple of AUCClassifierCV's time.

    python benchmarks/bench_baselines.py   # benchmarks/results/bench_baselines.csv

twonorm (d = 20), 10 positive, 90 negative and 1,000 unlabelled rows; a fit is the whole search by
five role-stratified folds and the refit. CPU time, best of ``--repeat`` runs, one thread, so that
other work on the machine counts little. Where ``AUCClassifierCV`` is missing, the yardstick is
``AUCClassifier`` over the same 475 candidates in a plain ``GridSearchCV``, which shares no work
between candidates; the column ``yardstick`` says which it was.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

import pnuauc
from pnuauc import AUCClassifier
from pnuauc.baselines import BASELINES
from pnuauc.baselines.registry import WIDTHS
from pnuauc.core.basis import median_distance
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.exceptions import CorrectionWarning
from pnuauc.metrics import RoleStratifiedKFold, make_auc_scorer

RESULTS = Path(__file__).parent / "results" / "bench_baselines.csv"
PRIOR = 0.1


def best_of(fit: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.process_time()
        fit()
        times.append(time.process_time() - start)
    return min(times)


def yardstick(X: Any) -> tuple[str, Any]:
    """AUCClassifierCV, or the same candidates without shared work."""
    if hasattr(pnuauc, "AUCClassifierCV"):
        return "AUCClassifierCV", pnuauc.AUCClassifierCV(prior=PRIOR, random_state=0)
    grid = {
        "width": [factor * median_distance(X, 0) for factor in WIDTHS],
        "alpha": [1e-3, 1e-2, 1e-1, 1e0, 1e1],
        "eta": np.round(np.arange(-9, 10) / 10, 1).tolist(),
    }
    search = GridSearchCV(
        AUCClassifier(risk="pnu", prior=PRIOR, random_state=0),
        grid,
        scoring=make_auc_scorer(PRIOR),
        cv=RoleStratifiedKFold(5, shuffle=True, random_state=0),
    )
    return "GridSearchCV(AUCClassifier)", search


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    X, y = make_twonorm(20_000, random_state=0)
    sample = sample_pnu(X, y, 10, 90, 1000, PRIOR, random_state=0)
    has_pulearn = importlib.util.find_spec("pulearn") is not None
    names = [n for n in BASELINES if has_pulearn or n not in ("elkan_noto", "bagging_pu")]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", CorrectionWarning)
        unit_name, unit_model = yardstick(sample.X)
        unit = best_of(lambda: unit_model.fit(sample.X, sample.y), options.repeat)
        rows = [(unit_name, unit)]
        for name in names:
            search = BASELINES[name].search(sample.X, random_state=0)
            rows.append((name, best_of(lambda s=search: s.fit(sample.X, sample.y), options.repeat)))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "cpu_seconds", "ratio", "yardstick"])
        for name, seconds in rows:
            writer.writerow([name, f"{seconds:.3f}", f"{seconds / unit:.3f}", unit_name])
            print(f"{name:28s} {seconds:8.3f} s  {seconds / unit:8.3f} x {unit_name}")


if __name__ == "__main__":
    main()
