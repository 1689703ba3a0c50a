"""Score and fit a table of 2,000,000 rows and 20 columns; time and peak memory.

    python benchmarks/bench_table_scoring.py make big.parquet [--rows 2000000]
    python benchmarks/bench_table_scoring.py bare big.pnuauc big.parquet
    python benchmarks/bench_table_scoring.py run score big.pnuauc big.parquet -o out.parquet
    python benchmarks/bench_table_scoring.py run fit big.parquet --label y -o big

``make`` writes the table (200 labelled rows, all others unlabelled). ``bare`` is the yardstick: a
loop of pyarrow batches and the same numpy scoring, nothing else. ``run`` runs a pnuauc command in a
process of its own and prints seconds, rows per second and peak resident memory.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def make(path: str, n_rows: int, n_columns: int = 20, seed: int = 0) -> None:
    """Two Gaussian classes, 10% positive; 200 rows labelled at random."""
    rng = np.random.default_rng(seed)
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(n_columns)] + [("y", pa.int8())])
    labelled = set(rng.choice(n_rows, 200, replace=False).tolist())
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, 100_000):
            n = min(100_000, n_rows - start)
            positive = rng.random(n) < 0.1
            X = rng.standard_normal((n, n_columns))
            X[:, :5] += np.where(positive, 0.6, -0.6)[:, None]
            y = [int(positive[i]) if start + i in labelled else None for i in range(n)]
            columns = [pa.array(X[:, j]) for j in range(n_columns)]
            writer.write_batch(pa.record_batch([*columns, pa.array(y, pa.int8())], schema=schema))


def bare(model_path: str, path: str) -> None:
    """Arrow batches and the numpy scoring of the same model; no checks, no output."""
    from pnuauc.io import load_model

    model = load_model(model_path)
    names = [c.name for c in model.encoder.columns_]
    mean, scale = model.encoder.encoding_.mean, model.encoder.encoding_.scale
    started, cpu = time.perf_counter(), time.process_time()
    n, total = 0, 0.0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=65_536, columns=names):
            X = np.column_stack([batch.column(j).to_numpy() for j in range(len(names))])
            X = (X - mean) / scale
            scores = model.score_encoded(X, n_threads=1)
            n, total = n + len(scores), total + float(scores.sum())
    seconds = time.perf_counter() - started
    print(
        f"bare loop: {seconds:.1f} s, {time.process_time() - cpu:.1f} s of processor time, "
        f"{n / seconds:,.0f} rows/s (checksum {total:.6g})"
    )


def run(arguments: list[str]) -> None:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pnuauc", *arguments], check=True)
    seconds = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"pnuauc {arguments[0]}: {seconds:.1f} s with start-up, "
        f"{usage.ru_utime + usage.ru_stime:.1f} s of processor time, "
        f"peak memory {usage.ru_maxrss / 1024:,.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "bare", "run"])
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.what == "make":
        rows = 2_000_000
        if "--rows" in options.arguments:
            rows = int(options.arguments[options.arguments.index("--rows") + 1])
        make(options.arguments[0], rows)
    elif options.what == "bare":
        bare(*options.arguments)
    else:
        run(options.arguments)


if __name__ == "__main__":
    main()
