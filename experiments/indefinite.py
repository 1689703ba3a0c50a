"""What to do with an indefinite NU risk? python -m experiments.indefinite [--trials 3]

Nine of the paper's sets, standardised columns, 5 positive and 45 negative labelled rows (the NU
risk uses the latter), 1,000 unlabelled ones, prior .1 (known), widths .5, 1 and 2 times the median
distance. Eigenvalues of the quadratic part: "saddle" leaves them as they are, "zero" sets negative
ones to zero, "raise" adds the size of the lowest to all, "floor" lifts those below that size to it.
Prints the mean AUC on test rows.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from pnuauc._moments import Moments
from pnuauc.basis import GaussianBasis
from pnuauc.datasets import load, sample_pnu
from pnuauc.risks import nu_risk

SETS = [
    "banana",
    "magic",
    "image",
    "ringnorm",
    "twonorm",
    "waveform",
    "phishing",
    "mushrooms",
    "cod-rna",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--data", default=None, help="folder with the data sets")
    args = parser.parse_args()
    found = defaultdict(list)
    for name in SETS:
        X, y = load(name, args.data)
        for seed in range(args.trials):
            s = sample_pnu(X, y, 5, 45, 1000, 0.1, seed, scale="standard", n_test=4000)
            for factor in (0.5, 1, 2):
                basis = GaussianBasis(width=f"{factor}*median", random_state=seed).fit(s.X)
                rows = {
                    role: basis.features(s.X[s.y == code]) for role, code in (("N", 0), ("U", -1))
                }
                form = nu_risk(0.1).quadratic_form(
                    {r: Moments.from_rows(f) for r, f in rows.items()}
                )
                values, vectors = np.linalg.eigh(form.quadratic)
                size = max(-values[0], 0.0)
                kinds = {
                    "saddle": values,
                    "zero": np.maximum(values, 0),
                    "raise": values + size,
                    "floor": np.maximum(values, size),
                }
                test = basis.features(s.X_test)
                for alpha in (0.01, 0.1, 1.0):
                    for kind, kept in kinds.items():
                        coef = vectors @ (vectors.T @ form.linear / (kept + alpha))
                        found[alpha, kind].append(roc_auc_score(s.y_test, test @ coef))
    for alpha in (0.01, 0.1, 1.0):
        cells = [f"{kind} {100 * np.mean(found[alpha, kind]):.1f}" for kind in kinds]
        print(f"alpha = {alpha:g}: " + ", ".join(cells))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
