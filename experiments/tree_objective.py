"""Is a PNU-AUC objective for boosted trees any good? ``python -m experiments.tree_objective``

LightGBM on the paper's waveform set, prior .1, 1,000 unlabelled rows: log-loss on the labelled rows
against the PNU-AUC risk (logistic loss, absolute value of a negative part) on
the rows it has terms for. The objective gets every advantage: of two learning rates, two smallest
leaves and three numbers of rounds it is given the best on the test rows, mean over the draws;
log-loss has LightGBM's defaults but for leaves of 5 rows, as there are few labelled ones. Needs
lightgbm (``pnuauc[boosting]``) and the data (``PNUAUC_DATA``).
"""

from __future__ import annotations

import argparse
import itertools

import lightgbm as lgb
import numpy as np
from sklearn.metrics import roc_auc_score

from experiments.paper_sets import load
from pnuauc.core.risks import pnu_risk
from pnuauc.datasets import PNUSample, sample_pnu

__all__ = ["main"]

PRIOR = 0.1
LABELLED = ((5, 45), (20, 80), (50, 150))
ETAS = (-0.5, 0.0, 0.5, 1.0)
RATES = (0.03, 0.1)
LEAVES = (5, 50)
ROUNDS = (10, 30, 100)
COMMON = {"verbose": -1, "num_threads": 1, "seed": 0}
CODES = {"P": 1, "N": 0, "U": -1}


def log_loss(sample: PNUSample) -> float:
    known = sample.y >= 0
    rows = lgb.Dataset(sample.X[known], sample.y[known])
    booster = lgb.train({**COMMON, "min_data_in_leaf": 5, "objective": "binary"}, rows, 100)
    return float(roc_auc_score(sample.y_test, booster.predict(sample.X_test)))


def pnu_objective(sample: PNUSample, eta: float) -> np.ndarray:
    """Test AUC, shape (settings, rounds)."""
    risk = pnu_risk(eta, PRIOR)
    used = np.isin(sample.y, [CODES[role] for role in risk.roles])
    X, y = sample.X[used], sample.y[used]
    where = {role: np.flatnonzero(y == CODES[role]) for role in risk.roles}
    # l'' <= 1/4, so this bounds the curvature of the risk in a row's score, term by term
    curvature = np.zeros(len(y))
    for term in risk.terms:
        for role in (term.first, term.second):
            curvature[where[role]] += 0.25 * abs(term.coefficient) / len(where[role])

    def objective(scores, _):
        gradient = np.zeros(len(scores))
        by_role = {role: scores[rows] for role, rows in where.items()}
        for part, value, slopes in risk.part_gradients("logistic", by_role):
            sign = -1.0 if value < 0 else 1.0
            for role, slope in slopes.items():
                gradient[where[role]] += sign * part.weight * slope
        return gradient * len(scores), curvature * len(scores)

    aucs = []
    for rate, leaf in itertools.product(RATES, LEAVES):
        settings = {
            "objective": objective,
            "learning_rate": rate,
            "min_data_in_leaf": min(leaf, len(y) // 5),
        }
        booster = lgb.train({**COMMON, **settings}, lgb.Dataset(X, y), max(ROUNDS))
        scores = (booster.predict(sample.X_test, num_iteration=rounds) for rounds in ROUNDS)
        aucs.append([roc_auc_score(sample.y_test, column) for column in scores])
    return np.array(aucs)


def main(argv: list[str] | None = None) -> None:
    """Print a table: mean test AUC and its standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args(argv)
    X, y = load("waveform")
    names = ["log-loss", *(f"PNU, eta {eta:g}" for eta in ETAS)]
    print("| positive, negative rows | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for n_positive, n_negative in LABELLED:
        plain, tuned = [], []
        for draw in range(options.draws):
            sample = sample_pnu(
                X, y, n_positive, n_negative, 1000, PRIOR, draw, n_test=2000, scale="standard"
            )
            plain.append(log_loss(sample))
            tuned.append([pnu_objective(sample, eta) for eta in ETAS])
        values = [np.array(plain)]
        for aucs in np.moveaxis(np.array(tuned), 1, 0):  # (draws, settings, rounds) of each eta
            best = np.unravel_index(np.argmax(aucs.mean(axis=0)), aucs.shape[1:])
            values.append(aucs[:, best[0], best[1]])
        cells = [f"{v.mean():.3f} ± {v.std(ddof=1) / np.sqrt(len(v)):.3f}" for v in values]
        print(f"| {n_positive}, {n_negative} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
