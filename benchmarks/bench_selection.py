"""AUCClassifierCV against a literal transcription of the method, and against the floor of two
passes over a million rows.

python -m benchmarks.bench_selection [literal|floor|growth|solves|octave]

``solves`` is about a small fit: processor time against the bare Cholesky solves of the grid, and,
with ``--before FOLDER`` (a checkout of another version), against that version in the same run.
``octave`` compares with the method written plainly in Octave (benchmarks/octave), one thread each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.io import savemat
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from pnuauc import AUCClassifierCV
from pnuauc.core import rows as _rows
from pnuauc.core.risks import gamma_bar

PRIOR = 0.1
ETAS = np.round(np.arange(-9, 10) / 10, 1)
ALPHAS = 10.0 ** np.arange(-3, 2)
FACTORS = (1 / 8, 1 / 4, 1 / 2, 1, 2)


def make_rows(n_p: int, n_n: int, n_u: int, d: int, dtype: str = "float64"):
    """Two Gaussians; labels 1, 0, -1."""
    rng = np.random.default_rng(0)
    hidden = np.r_[np.ones(n_p, bool), np.zeros(n_n, bool), rng.random(n_u) < PRIOR]
    X = rng.standard_normal((len(hidden), d)).astype(dtype)
    X += np.where(hidden, 0.3, -0.3)[:, None].astype(dtype)
    return X, np.r_[np.ones(n_p), np.zeros(n_n), np.full(n_u, -1)]


# -- the literal method ---------------------------------------------------------------------


def gram(rows: np.ndarray, centers: np.ndarray, width: float) -> np.ndarray:
    squared = (rows**2).sum(1)[:, None] + (centers**2).sum(1) - 2 * rows @ centers.T
    return np.exp(-np.maximum(squared, 0) / (2 * width**2))


def fit_one(p, n, u, eta: float, alpha: float) -> np.ndarray:
    """The paper's closed form (with the corrected NU matrix) from feature matrices."""
    rest = 1 - PRIOR

    def between(a, b):
        one_a, one_b = np.ones(len(a)), np.ones(len(b))
        cross = np.outer(a.T @ one_a, one_b @ b) / (len(a) * len(b))
        return a.T @ a / len(a) + b.T @ b / len(b) - cross - cross.T

    def within(a):
        total = a.T @ np.ones(len(a))
        return 2 * (a.T @ a - np.outer(total, total) / len(a)) / (len(a) - 1)

    h, H = p.mean(0) - n.mean(0), between(p, n)
    if eta >= 0:
        h_u, H_u = (p.mean(0) - u.mean(0)) / rest, (between(p, u) - PRIOR * within(p)) / rest
    else:
        h_u, H_u = (u.mean(0) - n.mean(0)) / PRIOR, (between(u, n) - rest * within(n)) / PRIOR
    g = abs(eta)
    system = (1 - g) * H + g * H_u + alpha * np.eye(len(h))
    return np.linalg.solve(system, (1 - g) * h + g * h_u)


def judge_one(p, n, u, w, eta: float, weights) -> float:
    """Zero-one risk over the matrix of all pairs."""

    def loss(a, b):
        return np.mean((1 - np.sign((a @ w)[:, None] - (b @ w)[None, :])) / 2)

    pn = loss(p, n)
    if eta >= 0:
        return (1 - weights[0]) * pn + weights[0] * (loss(p, u) - PRIOR / 2) / (1 - PRIOR)
    return (1 - weights[1]) * pn + weights[1] * (loss(u, n) - (1 - PRIOR) / 2) / PRIOR


def literal_seconds(X, y, b: int, share: float) -> float:
    """Time of ``share`` of all candidates x folds, scaled up to all of them."""
    rng = np.random.default_rng(0)
    roles = [np.flatnonzero(y == code) for code in (1, 0, -1)]
    folds = [rng.permutation(np.arange(len(r)) % 5) for r in roles]
    centers = X[rng.choice(len(X), b, replace=False)]
    some = X[rng.choice(len(X), min(len(X), 1000), replace=False)]
    median = np.median(np.sqrt(((some[:, None] - some[None]) ** 2).sum(2)))
    weights = gamma_bar(PRIOR, len(roles[0]), len(roles[1]))
    jobs = [
        (k, f, eta, alpha) for k in range(5) for f in FACTORS for eta in ETAS for alpha in ALPHAS
    ]
    chosen = rng.permutation(len(jobs))[: max(1, round(share * len(jobs)))]
    start = perf_counter()
    for i in chosen:
        k, factor, eta, alpha = jobs[i]
        train, test = (
            [
                gram(X[r[(f == k) == held]], centers, factor * median)
                for r, f in zip(roles, folds, strict=True)
            ]
            for held in (False, True)
        )
        w = fit_one(*train, eta, alpha)
        judge_one(*test, w, eta, weights)
    return (perf_counter() - start) * len(jobs) / len(chosen)


def compare_with_literal(threads: int, repeats: int) -> None:
    print(f"whole grid (475 candidates x 5 folds), 10 P, 90 N, d = 20, b = 200, {threads} threads")
    print(f"{'n_U':>8} {'ours s':>8} {'literal s':>10} {'ratio':>7}")
    for n_u, share in ((1000, 0.1), (20_000, 0.01)):
        X, y = make_rows(10, 90, n_u, 20)
        model = AUCClassifierCV("paper", prior=PRIOR, n_jobs=threads, random_state=0)
        ours, literal = [], []
        with threadpool_limits(threads):
            model.fit(X, y)
            for _ in range(repeats):
                start = perf_counter()
                model.fit(X, y)
                ours.append(perf_counter() - start)
                literal.append(literal_seconds(X, y, 200, share))
        a, b = min(ours), min(literal)
        print(f"{n_u:8,} {a:8.2f} {b:10.1f} {b / a:7.1f}")
    print("(literal: timed on 10% and 1% of the candidates, drawn at random, and scaled up)")


# -- the floor of two passes ----------------------------------------------------------------


def floor_seconds(X, b: int, n_candidates: int, block_size: int) -> float:
    """Two distance products, two exps, five Gram products, five products with coefficients."""
    rng = np.random.default_rng(0)
    centers = X[rng.choice(len(X), b, replace=False)]
    norms = (centers**2).sum(axis=1)
    coef = rng.standard_normal((b, n_candidates)).astype(X.dtype)

    def features(block):
        out = block @ centers.T
        out *= -2.0
        out += norms
        out += (block**2).sum(axis=1)[:, None]
        out *= -0.5 / 36.0
        return np.exp(out, out=out)

    start = perf_counter()
    for i in range(0, len(X), block_size):
        phi = features(X[i : i + block_size])
        for _ in range(5):
            phi.T @ phi
    for i in range(0, len(X), block_size):
        phi = features(X[i : i + block_size])
        for _ in range(5):
            phi @ coef
    return perf_counter() - start


def compare_with_floor(rows: int, threads: int, repeats: int) -> None:
    print(f"n_U = {rows:,}, 40 P, 160 N, d = 18, five widths, whole grid, five folds")
    print(f"{'dtype':>8} {'ours s':>8} {'floor s':>8} {'ratio':>6} {'peak MB above input':>20}")
    for dtype in ("float64", "float32"):
        X, y = make_rows(40, 160, rows, 18, dtype)
        model = AUCClassifierCV("average", prior=PRIOR, n_jobs=threads, random_state=0)
        block = int(np.clip(_rows.BLOCK_BYTES // (X.itemsize * 200), 256, 8192))
        ours, bare = [], []
        with threadpool_limits(threads):
            for _ in range(repeats):
                start = perf_counter()
                model.fit(X, y)
                ours.append(perf_counter() - start)
                bare.append(floor_seconds(X, 200, 95, block))
            tracemalloc.start()
            model.fit(X, y)
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
        a, b = min(ours), min(bare)
        print(f"{dtype:>8} {a:8.1f} {b:8.1f} {a / b:6.2f} {peak:20.0f}")


# -- the bare solves of a small fit ---------------------------------------------------------


def solve_seconds(b: int = 200) -> float:
    """Processor time of 475 x 5 definite systems of size b: factorise, solve, nothing else."""
    rows = np.random.default_rng(0).standard_normal((2 * b, b))
    quadratic, linear = rows.T @ rows / len(rows), rows[0]
    start = process_time()
    for _ in range(5 * len(ETAS) * len(FACTORS)):
        systems = np.repeat(quadratic[None], len(ALPHAS), axis=0)
        systems.reshape(len(ALPHAS), -1)[:, :: b + 1] += ALPHAS[:, None]
        for factor in np.linalg.cholesky(systems):
            lapack.dpotrs(factor.T, linear)
    return process_time() - start


_SMALL_FIT = """
import time
from benchmarks.bench_selection import PRIOR, make_rows
from pnuauc import AUCClassifierCV
X, y = make_rows(10, 90, {n_u}, 20)
model = AUCClassifierCV("paper", prior=PRIOR, random_state=0).fit(X, y)
start = time.process_time()
model.fit(X, y)
print(time.process_time() - start)
"""


def fit_seconds(folder: str, n_u: int = 1000) -> float:
    """Processor time of a small fit by the version in ``folder``, in a process of its own."""
    setting = {
        **os.environ,
        "PYTHONPATH": str(Path(folder).resolve() / "src"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", _SMALL_FIT.format(n_u=n_u)]
    done = subprocess.run(
        command, cwd=folder, env=setting, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def compare_with_solves(before: str | None, repeats: int) -> None:
    here = str(Path(__file__).parents[1])
    with threadpool_limits(1):
        bare = min(solve_seconds() for _ in range(repeats))
    ours = min(fit_seconds(here) for _ in range(repeats))
    print("10 P, 90 N, 1,000 U, d = 20, b = 200, 475 candidates x 5 folds, processor time")
    print(f"ours {ours:.2f} s, bare Cholesky solves {bare:.2f} s, ratio {ours / bare:.2f}")
    if before:
        other = min(fit_seconds(before) for _ in range(repeats))
        print(f"before {other:.2f} s, before / ours {other / ours:.2f}")


def compare_with_octave(repeats: int) -> None:
    here = Path(__file__).parent
    print("10 P, 90 N, d = 20, b = 200, 475 candidates x 5 folds, processor time, one thread")
    print(f"{'n_U':>8} {'ours s':>8} {'octave s':>9} {'ratio':>7}")
    for n_u in (1000, 10_000):
        X, y = make_rows(10, 90, n_u, 20)
        with tempfile.TemporaryDirectory() as folder:
            rows = {role: X[y == code] for role, code in zip("PNU", (1, 0, -1), strict=True)}
            savemat(f"{folder}/rows.mat", {**rows, "prior": PRIOR, "b": 200.0, "repeats": repeats})
            call = f"addpath('{here / 'octave'}'); pnu_grid('{folder}/rows.mat')"
            done = subprocess.run(
                ["octave-cli", "--no-gui", "--norc", "--eval", call],
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                check=True,
                capture_output=True,
                text=True,
            )
        theirs = float(done.stdout)
        ours = min(fit_seconds(str(here.parent), n_u) for _ in range(repeats))
        print(f"{n_u:8,} {ours:8.2f} {theirs:9.2f} {theirs / ours:7.1f}")


def growth(rows: int, threads: int) -> None:
    seconds = []
    for n in (rows // 10, rows):
        X, y = make_rows(40, 160, n, 18)
        start = perf_counter()
        AUCClassifierCV(prior=PRIOR, n_jobs=threads, random_state=0).fit(X, y)
        seconds.append(perf_counter() - start)
    print(
        f"{rows // 10:,} -> {rows:,} unlabelled rows: {seconds[0]:.1f} s -> {seconds[1]:.1f} s, "
        f"{seconds[1] / seconds[0]:.1f}-fold"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["literal", "floor", "growth"])
    parser.add_argument("--before", help="checkout of another version, for `solves`")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    if "literal" in args.parts:
        compare_with_literal(args.threads, args.repeats)
    if "floor" in args.parts:
        compare_with_floor(args.rows, args.threads, args.repeats)
    if "solves" in args.parts:
        compare_with_solves(args.before, args.repeats)
    if "octave" in args.parts:
        compare_with_octave(args.repeats)
    if "growth" in args.parts:
        growth(args.rows, args.threads)


if __name__ == "__main__":
    main()
