"""Means over all pairs, against brute force: ``python -m benchmarks.bench_pairs``.

Ours: value and both gradients (value alone for zero-one) at n x n scores. Brute force: numpy over
blocks of pairs that fit the cache, in place, sums by BLAS, on a slice of the rows; its time is
extrapolated to all rows. Both are the best of a few repeats in the same run.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from pnuauc.core.pairs import between, between_gradient
from pnuauc.losses import LOSSES

COLUMNS = 2048  # a block of 16 x 2048 doubles is 256 kB
ROWS = 16


def squared(m, work):
    np.subtract(m, 1.0, out=m)
    np.multiply(m, m, out=work)
    np.multiply(m, 2.0, out=m)
    return work, m


def exponential(m, work):
    np.negative(m, out=m)
    np.exp(m, out=work)
    np.negative(work, out=m)
    return work, m


def logistic(m, work):
    """Through log1p and exp once each: exp(-abs m) serves value and slope."""
    np.abs(m, out=work)
    np.negative(work, out=work)
    np.exp(work, out=work)
    slope = np.where(m > 0.0, work, 1.0)
    np.negative(m, out=m)
    np.maximum(m, 0.0, out=m)
    slope /= -1.0 - work
    np.log1p(work, out=work)
    m += work
    return m, slope


def hinge(m, work):
    np.subtract(1.0, m, out=m)
    np.maximum(m, 0.0, out=m)
    np.sign(m, out=work)
    np.negative(work, out=work)
    return m, work


def squared_hinge(m, work):
    np.subtract(1.0, m, out=m)
    np.maximum(m, 0.0, out=m)
    np.multiply(m, m, out=work)
    np.multiply(m, -2.0, out=m)
    return work, m


def absolute(m, work):
    np.subtract(m, 1.0, out=m)
    np.sign(m, out=work)
    np.abs(m, out=m)
    return m, work


def smoothed_hinge(m, work):
    """With c = u clipped to [0, 2 width], u = 1 + width - m: c^2 / (4 width) + (u - c)_+."""
    width = LOSSES["smoothed_hinge"].width
    np.subtract(1.0 + width, m, out=m)
    np.maximum(m, 0.0, out=m)
    np.minimum(m, 2.0 * width, out=work)
    m -= work
    work *= -0.5 / width
    m += width * work * work
    return m, work


def smoothed_absolute(m, work):
    """With c = x clipped to +-width, x = m - 1: abs x - abs c + (c^2 + width^2) / (2 width)."""
    width = LOSSES["smoothed_absolute"].width
    np.subtract(m, 1.0, out=m)
    np.clip(m, -width, width, out=work)
    work /= width
    np.abs(m, out=m)
    np.maximum(m, width, out=m)
    m += (0.5 * width) * (work * work - 1.0)
    return m, work


BRUTE_FORCE = {
    "squared": squared,
    "exponential": exponential,
    "logistic": logistic,
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "absolute": absolute,
    "smoothed_hinge": smoothed_hinge,
    "smoothed_absolute": smoothed_absolute,
}


def brute_gradient(evaluate: Callable, a, b):
    """(mean, gradient a, gradient b) over all pairs, block by block."""
    total, rows, columns = 0.0, np.zeros(a.size), np.zeros(b.size)
    for i in range(0, a.size, ROWS):
        block_a = a[i : i + ROWS, None]
        ones_a = np.ones(block_a.size)
        for j in range(0, b.size, COLUMNS):
            m = block_a - b[j : j + COLUMNS]
            value, slope = evaluate(m, np.empty_like(m))
            total += value.sum()
            rows[i : i + ROWS] += slope @ np.ones(m.shape[1])
            columns[j : j + COLUMNS] += ones_a @ slope
    pairs = a.size * b.size
    return total / pairs, rows / pairs, -columns / pairs


def brute_zero_one(a, b):
    """Mean zero-one loss over all pairs by counting, the cheapest way numpy has."""
    doubled = 0
    for i in range(0, a.size, ROWS):
        block_a = a[i : i + ROWS, None]
        for j in range(0, b.size, COLUMNS):
            block_b = b[j : j + COLUMNS]
            doubled += np.count_nonzero(block_a < block_b) + np.count_nonzero(block_a <= block_b)
    return 0.5 * doubled / (a.size * b.size)


def best_time(function: Callable, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def measure(name: str, n: int, slice_rows: int, spread: float) -> dict:
    rng = np.random.default_rng(0)
    a, b = spread * (rng.normal(size=n) + 1.0), spread * rng.normal(size=n)
    part = a[:slice_rows]
    if LOSSES[name].has_derivative:
        evaluate = BRUTE_FORCE[name]
        ours = lambda: between_gradient(name, a, b)  # noqa: E731
        theirs = lambda: brute_gradient(evaluate, part, b)  # noqa: E731
        error = abs(between_gradient(name, part, b)[0] / theirs()[0] - 1.0)
    else:
        ours = lambda: between(name, a, b)  # noqa: E731
        theirs = lambda: brute_zero_one(part, b)  # noqa: E731
        error = abs(between(name, part, b) / theirs() - 1.0)
    tracemalloc.start()
    ours()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    brute = best_time(theirs, 2) * n / slice_rows
    fast = best_time(ours, 5)
    return {"ours": fast, "brute": brute, "ratio": brute / fast, "peak": peak, "error": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000, help="scores on each side")
    parser.add_argument("--slice", type=int, default=320, help="rows timed by brute force")
    parser.add_argument("--spread", type=float, default=1.0, help="standard deviation of scores")
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=list(LOSSES))
    options = parser.parse_args()
    print(
        f"{options.n:,} x {options.n:,} scores of spread {options.spread:g}; brute force timed on"
    )
    print(f"{options.slice} rows x {options.n:,} columns and extrapolated. Value + both gradients;")
    print("zero_one: value. Peak: what ours allocates; error: relative difference of the values.")
    print(f"{'loss':18} {'ours s':>9} {'brute s':>9} {'ratio':>8} {'peak MB':>8} {'error':>8}")
    for name in options.losses:
        row = measure(name, options.n, options.slice, options.spread)
        print(
            f"{name:18} {row['ours']:9.4f} {row['brute']:9.1f} {row['ratio']:8,.0f}"
            f" {row['peak'] / 1e6:8.1f} {row['error']:8.0e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
