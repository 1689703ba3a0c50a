"""AUCClassifier on a million rows against its bare floor; python -m benchmarks.bench_fit

Floor: the same distance product, exponential and Gram product on the same blocks in bare numpy
(the norms are added to the product as anyone would). Same dtype, same number of threads: BLAS
threads for the floor; ours visits blocks by as many threads as BLAS has here.
"""

from __future__ import annotations

import argparse
import tracemalloc
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from pnuauc import AUCClassifier
from pnuauc.core.rows import block_length


def make_rows(n: int, d: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians; 20 positives and 180 negatives are labelled, the rest is not."""
    rng = np.random.default_rng(0)
    positive = rng.random(n) < 0.1
    X = rng.standard_normal((n, d)).astype(dtype)
    X += np.where(positive, 0.3, -0.3)[:, None].astype(dtype)
    y = np.full(n, -1)
    y[np.flatnonzero(positive)[:20]] = 1
    y[np.flatnonzero(~positive)[:180]] = 0
    return X, y


def floor(X: np.ndarray, centers: np.ndarray, width: float, block_size: int) -> float:
    """Seconds of the bare products."""
    centers = centers.astype(X.dtype)
    norms = (centers**2).sum(axis=1)
    gram = np.zeros((len(centers), len(centers)))
    start = perf_counter()
    for i in range(0, len(X), block_size):
        block = X[i : i + block_size]
        features = block @ centers.T
        features *= -2.0
        features += norms
        features += (block**2).sum(axis=1)[:, None]
        features *= -0.5 / width**2
        np.exp(features, out=features)
        gram += features.T @ features
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=18)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print(f"{args.rows:,} x {args.columns} rows, b = 200, {args.threads} threads; best of each")
    print(f"{'dtype':>8} {'ours s':>8} {'floor s':>8} {'ratio':>6} {'peak MB above input':>20}")
    for dtype in ("float64", "float32"):
        X, y = make_rows(args.rows, args.columns, dtype)
        model = AUCClassifier(prior=0.1, n_jobs=args.threads, random_state=0)
        ours, bare = [], []
        with threadpool_limits(args.threads):
            model.fit(X[:5000], y[:5000])  # warm up
            for _ in range(args.repeats):
                start = perf_counter()
                model.fit(X, y)
                ours.append(perf_counter() - start)
                basis = model.basis_
                bare.append(floor(X, basis.centers_, basis.width_, block_length(X, basis)))
            tracemalloc.start()
            model.fit(X, y)
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
        ratio = min(ours) / min(bare)
        print(f"{dtype:>8} {min(ours):8.2f} {min(bare):8.2f} {ratio:6.2f} {peak:20.0f}")


if __name__ == "__main__":
    main()
