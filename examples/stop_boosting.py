"""Early stopping on few labels flatters; the validation rows that were kept aside do not.

    python examples/stop_boosting.py

LightGBM on 400 made-up rows, stopped at the best of 100 rounds on 60 labelled validation rows, half
of which stopping does not see. Beside the reported AUC and the honest one: that of 1,440 other rows
whose classes are known here.
"""

from __future__ import annotations

import argparse

import lightgbm as lgb
import numpy as np
from sklearn.metrics import roc_auc_score

from pnuauc.boosting import AUCMetric

NAMES = ("reported", "honest", "true")
SETTINGS = {
    "objective": "binary",
    "metric": "None",
    "verbose": -1,
    "learning_rate": 0.3,
    "num_threads": 1,
}


def make_rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    hidden = (rng.random(n) < 0.2).astype(int)
    return rng.normal(size=(n, 8)) + 0.5 * hidden[:, None], hidden


def run(draws: int = 40) -> np.ndarray:
    """AUC as reported, honest and true, shape (draws, 3)."""
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X, y = make_rows(400, rng)
        X_valid, hidden = make_rows(1500, rng)
        y_valid = np.where(np.arange(1500) < 60, hidden, -1)
        metric = AUCMetric(y_valid, method="pn", holdout=0.5, random_state=seed)
        booster = lgb.train(
            SETTINGS,
            lgb.Dataset(X, y),
            100,
            valid_sets=[lgb.Dataset(X_valid, y_valid)],
            feval=metric.lightgbm,
            callbacks=[lgb.early_stopping(100, verbose=False)],
        )
        scores = booster.predict(X_valid)
        true = roc_auc_score(hidden[60:], scores[60:])
        found.append([metric(scores), metric.honest(scores).value, true])
    return np.array(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=40)
    aucs = run(parser.parse_args().draws)
    errors = aucs.std(axis=0, ddof=1) / np.sqrt(len(aucs))
    for name, mean, error in zip(NAMES, aucs.mean(axis=0), errors, strict=True):
        print(f"{name}: {mean:.3f} ± {error:.3f}")
