"""A table larger than a memory limit: fitted with all rows, scored and evaluated below it.

    python -m benchmarks.bench_scale [--files 24] [--limit-mb 2048] [--committee-files 24]
                                     [--folder DIR] [--keep]

makes ``--files`` Parquet files of a million rows and 33 float64 columns (264 MB each in memory),
fits ``max_unlabeled="all"``, scores and evaluates all of them, each in a process of its own whose
address space is limited (RLIMIT_AS), and deletes them. Times are processor time of one thread, so
that other work on the machine does not enter; all ratios are of one run:

- both passes of the grid against a bare loop: read the row groups, distance products, exps, the
  Gram products and the products with coefficients;
- cost per row with one file, five, and all of them.

Last comes the tool's own ``fit --max-unlabeled all`` with everything it does by default, below the
same limit; ``--committee-files 0`` leaves it out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILE_ROWS, COLUMNS, PRIOR = 1_000_000, 33, 0.1
#: Of the fits on many files, and of the comparison with the bare loop.
CENTERS, DEFAULT_CENTERS = 100, 200
LABELED = 200
PASSES = ("count labels", "draw", "pass 1", "pass 2", "score all", "held out")
_LIMITS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def make_file(path: Path, number: int) -> None:
    """A million rows of two Gaussians; the first file holds all labels."""
    rng = np.random.default_rng(number)
    hidden = rng.random(FILE_ROWS) < PRIOR
    shift = np.where(hidden, 0.3, 0.0)
    columns = {f"x{j}": rng.standard_normal(FILE_ROWS) + shift for j in range(COLUMNS)}
    label = np.where(np.arange(FILE_ROWS) < LABELED, hidden, np.nan)
    known = pa.array(label if number == 0 else np.full(FILE_ROWS, np.nan), from_pandas=True)
    table = pa.table({**columns, "label": known})
    pq.write_table(table, path, row_group_size=131_072, use_dictionary=False, compression="none")


# -- what the children do --------------------------------------------------------------------


def fit(folder: Path, n_files: int, centers: int) -> dict[str, object]:
    """Fit on some of the files; processor seconds of each visit of all rows."""
    from pnuauc.io import save_model
    from pnuauc.io.sources import FileSource
    from pnuauc.study.fit import FitSettings, fit_study
    from pnuauc.study.rows import ColumnRoles

    seconds: list[float] = []

    class Clocked(FileSource):
        def reduce(self, summarise, merge, zero):
            start = process_time()
            found = super().reduce(summarise, merge, zero)
            seconds.append(process_time() - start)
            return found

    source = Clocked.open(sorted(folder.glob("*.parquet"))[:n_files])
    settings = FitSettings(
        model="average", n_centers=centers, max_unlabeled="all", importance=False, prior=PRIOR
    )
    study = fit_study(source, ColumnRoles("label"), settings)
    save_model(study.model, folder / f"model{n_files}.pnuauc")
    auc = study.findings.auc.value
    return {"visits": dict(zip(PASSES, seconds, strict=True)), "held-out AUC": auc}


def tool(*words: str) -> dict[str, object]:
    """One command of the tool."""
    from pnuauc.cli import main

    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    return {}


def floor(folder: Path, n_files: int, n_centers: int) -> dict[str, object]:
    """The bare loop of both passes, with the block length and the batches of the real one."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((n_centers, COLUMNS))
    norms = (centers**2).sum(axis=1)
    coef = rng.standard_normal((n_centers, 95))
    names = [f"x{j}" for j in range(COLUMNS)]
    block = 6 * 2**20 // (8 * n_centers)

    def blocks():
        for path in sorted(folder.glob("*.parquet"))[:n_files]:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(65_536, columns=[*names, "label"]):
                    X = np.column_stack([batch.column(name).to_numpy() for name in names])
                    for i in range(0, len(X), block):
                        yield X[i : i + block]

    def features(rows):
        out = rows @ centers.T
        out *= -2.0
        out += norms
        out += (rows**2).sum(axis=1)[:, None]
        out *= -0.5 / COLUMNS
        return np.exp(out, out=out)

    seconds = {}
    start = process_time()
    for rows in blocks():
        phi = features(rows)
        for _ in range(5):
            phi.T @ phi
    seconds["pass 1"] = process_time() - start
    start = process_time()
    for rows in blocks():
        phi = features(rows)
        for _ in range(5):
            phi @ coef
    seconds["pass 2"] = process_time() - start
    return {"visits": seconds}


# -- the parent ------------------------------------------------------------------------------


def child(limit_mb: int, *words: object) -> dict[str, object]:
    """Run a child below the limit; what it says, its processor time and its peak memory."""
    command = [sys.executable, "-m", "benchmarks.bench_scale", "--child", str(limit_mb)]
    done = subprocess.run(
        [*command, *map(str, words)],
        env={**os.environ, **_LIMITS},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def run_child(limit_mb: int, what: str, words: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limit_mb * 2**20,) * 2)
    jobs = {"visits": fit, "floor": floor}
    if what in jobs:
        found = jobs[what](Path(words[0]), int(words[1]), int(words[2]))
    else:
        found = tool(what, *words)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "cpu": process_time(), "peak_mb": peak}))


def tell(name: str, found: dict[str, object], rows: int) -> None:
    print(f"{name:10} {found['cpu']:8.1f} {1e6 * found['cpu'] / rows:8.2f} "
          f"{found['peak_mb']:8.0f}")  # fmt: skip


def report(folder: Path, n_files: int, limit_mb: int, committee: int) -> None:
    rows = n_files * FILE_ROWS
    size = rows * (COLUMNS + 1) * 8 / 2**30
    print(f"{rows:,} rows, {size:.1f} GiB in memory, {n_files} Parquet files, one thread; address "
          f"space of every process limited to {limit_mb:,} MiB")  # fmt: skip
    clock = perf_counter()
    whole = child(limit_mb, "visits", folder, n_files, CENTERS)
    model, scored = folder / f"model{n_files}.pnuauc", folder / "scored"
    files = sorted(map(str, folder.glob("*.parquet")))[:n_files]
    score = child(limit_mb, "score", model, *files, "-o", scored, "-j", 1, "-q")
    evaluate = child(limit_mb, "evaluate", scored, "-q")
    print(f"{'':10} {'CPU s':>8} {'us/row':>8} {'peak MB':>8}")
    for name, found in (("fit", whole), ("score", score), ("evaluate", evaluate)):
        tell(name, found, rows)
    print(f"fit with {CENTERS} centres, microseconds of processor time a row in each visit:")
    print("rows".rjust(12), *(name.rjust(13) for name in (*PASSES, "all visits")), "peak MB")
    totals = []
    for n in sorted({1, min(5, n_files), n_files}):
        found = whole if n == n_files else child(limit_mb, "visits", folder, n, CENTERS)
        costs = [1e6 * found["visits"][name] / (n * FILE_ROWS) for name in PASSES]
        totals.append(sum(costs))
        shown = (f"{cost:13.2f}" for cost in (*costs, totals[-1]))
        print(f"{n * FILE_ROWS:12,}", *shown, f"{found['peak_mb']:7.0f}")
    print(f"cost a row, dearest against cheapest: {max(totals) / min(totals):.2f}")
    n = min(2, n_files)
    bare = child(limit_mb, "floor", folder, n, DEFAULT_CENTERS)
    ours = child(limit_mb, "visits", folder, n, DEFAULT_CENTERS)
    print(f"{n * FILE_ROWS:,} rows, {DEFAULT_CENTERS} centres, 475 candidates, five folds:")
    for name in ("pass 1", "pass 2"):
        a, b = ours["visits"][name], bare["visits"][name]
        print(f"{name}: {n * FILE_ROWS / a:,.0f} rows/s, bare loop {n * FILE_ROWS / b:,.0f}, "
              f"ratio {b / a:.2f}")  # fmt: skip
    if committee:
        n = min(committee, n_files)
        made = folder / "committee.pnuauc"
        words = ("--label", "label", "--max-unlabeled", "all", "-j", 1, "-q", "-o", made)
        found = child(limit_mb, "fit", *files[:n], *words)
        print(f"pnuauc fit with its defaults (committee, comparisons, importance) and all rows, "
              f"{n * FILE_ROWS:,} rows:")  # fmt: skip
        tell("fit", found, n * FILE_ROWS)
    print(f"held-out AUC {whole['held-out AUC']:.4f}; {perf_counter() - clock:.0f} s by the clock")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--limit-mb", type=int, default=2048)
    parser.add_argument(
        "--committee-files", type=int, default=24, help="files that the default model is fitted on"
    )
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", action="store_true", help="do not delete the table")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options, words = parser.parse_known_args()
    if options.child is not None:
        run_child(options.child, words[0], words[1:])
        return
    folder = Path(tempfile.mkdtemp(prefix="pnuauc-scale-", dir=options.folder))
    sys.stdout.reconfigure(line_buffering=True)
    try:
        for number in range(options.files):
            make_file(folder / f"part-{number:03}.parquet", number)
        report(folder, options.files, options.limit_mb, options.committee_files)
    finally:
        if not options.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
