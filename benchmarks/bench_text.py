"""Fit and score a table of long texts: processor seconds, memory, documents a second and core.

    python benchmarks/bench_text.py > benchmarks/results/text.txt

100,000 documents of 200 words, drawn as natural text is (the r-th commonest of 60,000 words with
odds 1 / (r + 10)); 10% are positive and take a tenth of their words from 300 rarer ones. 20
positives and 80 negatives are labelled. ``pnuauc fit`` and ``pnuauc score`` run in processes of
their own, one thread each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COMMAND = [sys.executable, "-m", "pnuauc"]


def make(path: Path, n_rows: int, n_words: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlu"))
    words = np.array(["".join(rng.choice(letters, 3 + j % 8)) + str(j) for j in range(60_000)])
    odds = 1.0 / (np.arange(60_000) + 10.0)
    hidden = np.arange(n_rows) < n_rows // 10
    texts = []
    for positive in hidden:
        drawn = rng.choice(60_000, n_words, p=odds / odds.sum())
        if positive:
            drawn[: n_words // 10] = rng.integers(500, 800, n_words // 10)
        texts.append(" ".join(words[drawn]))
    labels = np.full(n_rows, np.nan)
    labels[rng.permutation(np.flatnonzero(hidden))[:20]] = 1
    labels[rng.permutation(np.flatnonzero(~hidden))[:80]] = 0
    order = rng.permutation(n_rows)
    table = {"text": np.array(texts, dtype=object)[order], "y": labels[order]}
    pq.write_table(pa.table(table), path)


def measured(arguments: list[str]) -> tuple[float, float]:
    """Processor seconds and gigabytes of a command and its children."""
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{arguments} ended with {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=200)
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        table, model, out = (Path(folder) / name for name in ("t.parquet", "m", "s.parquet"))
        make(table, options.rows, options.words)
        start = time.perf_counter()
        seconds, memory = measured(
            ["fit", str(table), "--label", "y", "-o", str(model), "--jobs", "1"]
        )
        print(f"{options.rows:,} documents of {options.words} words, one thread")
        print(
            f"fit: {seconds:.0f} s of processor, {time.perf_counter() - start:.0f} s of clock, "
            f"{memory:.2f} GB"
        )
        seconds, memory = measured(["score", str(model) + ".pnuauc", str(table), "-o", str(out)])
        bare, _ = measured(["--version"])
        print(
            f"score: {seconds:.1f} s of processor, {options.rows / (seconds - bare):,.0f} "
            f"documents a second and core, {memory:.2f} GB"
        )


if __name__ == "__main__":
    main()
