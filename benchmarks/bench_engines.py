"""Dask and Spark on two processes against the local fit with two threads, on one table.

    python -m benchmarks.bench_engines [--files 8] [--file-rows 250000] [--repeats 1] [--folder DIR]

makes a table of Parquet files, 20 float64 columns and 200 labels, and fits it with all rows:

- the estimators: ``AUCClassifierCV(n_jobs=2)`` on the rows read into memory (reading included),
  ``DaskAUCClassifierCV`` on ``dask.dataframe.read_parquet`` with two workers of one thread each,
  ``SparkAUCClassifierCV`` on ``spark.read.parquet`` in a session ``local[2]``;
- the tool's fit of the files (``--max-unlabeled all``, without comparisons and importance): two
  threads here, the same two workers, the same session.

Cluster and session are started, and have fitted a small table, before the clock runs. Times are
by the clock, so the machine must have two cores to spare; ratios are of one run. Then it weighs
what travels: the bytes that every task of a visit is given and gives back.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS, PRIOR, LABELED = 20, 0.1, 200
NAMES = [f"x{j}" for j in range(COLUMNS)]
SETTINGS = {"prior": PRIOR, "random_state": 0}


def make_table(folder: Path, n_files: int, file_rows: int) -> None:
    """Two Gaussians; the first rows of the first file are labelled."""
    folder.mkdir()
    for number in range(n_files):
        rng = np.random.default_rng(number)
        hidden = rng.random(file_rows) < PRIOR
        rows = rng.standard_normal((file_rows, COLUMNS)) + 0.3 * hidden[:, None]
        known = (np.arange(file_rows) < LABELED) & (number == 0)
        label = pa.array(np.where(known, hidden, np.nan), from_pandas=True)
        flat = pa.array(rows.ravel())
        ends = pa.array(np.arange(0, rows.size + 1, COLUMNS), pa.int32())
        columns = {name: rows[:, j] for j, name in enumerate(NAMES)}
        table = pa.table(
            {**columns, "features": pa.ListArray.from_arrays(ends, flat), "label": label}
        )
        pq.write_table(table, folder / f"part-{number:03}.parquet", compression="none")


# -- the estimators --------------------------------------------------------------------------


def fit_in_memory(folder: Path) -> Any:
    """Read into memory, two threads."""
    from pnuauc import AUCClassifierCV

    table = pq.read_table(folder, columns=[*NAMES, "label"])
    X = np.column_stack([table.column(name).to_numpy() for name in NAMES])
    return AUCClassifierCV(n_jobs=2, **SETTINGS).fit(X, table.column("label").to_numpy())


def fit_dask(folder: Path, client: Any) -> Any:
    import dask.dataframe as dd

    from pnuauc.dask import DaskAUCClassifierCV

    table = dd.read_parquet(folder)
    return DaskAUCClassifierCV(client=client, **SETTINGS).fit(table[NAMES], table["label"])


def fit_spark(folder: Path, session: Any, features: Any) -> Any:
    from pnuauc.spark import SparkAUCClassifierCV

    table = session.read.parquet(str(folder))
    return SparkAUCClassifierCV(featuresCol=features, **SETTINGS).fit(table).summary


# -- the tool --------------------------------------------------------------------------------


def fit_files(folder: Path, engine: Callable[[Any], Any] = contextlib.nullcontext) -> Any:
    """What ``pnuauc fit FOLDER --model average --max-unlabeled all`` does, less the comparisons."""
    from pnuauc.io.sources import FileSource
    from pnuauc.study.fit import FitSettings, fit_study
    from pnuauc.study.rows import ColumnRoles

    files = FileSource.open([folder], n_threads=2).select([*NAMES, "label"])
    settings = FitSettings(
        model="average",
        max_unlabeled="all",
        importance=False,
        comparisons=False,
        prior=PRIOR,
        n_jobs=2,
    )
    with engine(files) as source:
        return fit_study(source, ColumnRoles("label"), settings)


def on_dask(client: Any) -> Callable[[Any], Any]:
    from pnuauc.dask.source import dask_files

    return lambda files: dask_files(files, client.scheduler.address)


def on_spark(session: Any) -> Callable[[Any], Any]:
    from pnuauc.spark.source import files_in

    return lambda files: contextlib.nullcontext(files_in(session, files))


# -- what travels ----------------------------------------------------------------------------


def weigh(folder: Path) -> None:
    """Bytes to and from a task in each visit of a fit by an engine, as they are pickled."""
    import cloudpickle

    from pnuauc import AUCClassifierCV
    from pnuauc.engines import FEATURES, LABEL, fit_on_source, matrix_table
    from pnuauc.estimators import label_codes
    from pnuauc.io.sources import MemorySource

    weights: list[tuple[int, int]] = []

    class Weighed(MemorySource):
        def select(self, columns):
            return Weighed(self.table.select(columns))

        def reduce(self, summarise, merge, zero):
            summary = summarise(list(self.batches())[-1])  # no labels there
            weights.append((len(cloudpickle.dumps((summarise, merge))), len(pickle.dumps(summary))))
            return super().reduce(summarise, merge, zero)

    table = pq.read_table(folder, columns=[*NAMES, "label"])
    X = np.column_stack([table.column(name).to_numpy() for name in NAMES])
    columns = {FEATURES: X, LABEL: table.column("label").to_numpy()}
    model = AUCClassifierCV(**SETTINGS)
    fit_on_source(model, Weighed(matrix_table(columns, list(columns))), label_codes(model))
    print(f"{'kB a task':12} {'to':>10} {'from':>10}")
    for name, (there, back) in zip(("labels", "draw", "moments", "counts"), weights, strict=True):
        print(f"{name:12} {there / 1e3:10,.1f} {back / 1e3:10,.1f}")


def peak_mb() -> float:
    """Most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# -- clusters --------------------------------------------------------------------------------


@contextlib.contextmanager
def dask_client() -> Iterator[Any]:
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextlib.contextmanager
def spark_session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("pnuauc").master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


# -- the report ------------------------------------------------------------------------------


def report(small: Path, table: Path, n_rows: int, repeats: int) -> None:
    """Rows per second of every way, and its share of the local way above it."""
    with dask_client() as client, spark_session() as session:
        ways: list[tuple[str, float | None, Callable[[Path], Any]]] = [
            ("in memory, two threads", None, fit_in_memory),
            ("Dask, two workers", 0.6, lambda folder: fit_dask(folder, client)),
            ("Spark local[2], array column", 0.3, lambda f: fit_spark(f, session, "features")),
            ("Spark local[2], 20 columns", 0.3, lambda folder: fit_spark(folder, session, NAMES)),
            ("files, two threads", None, fit_files),
            ("files, Dask", 0.6, lambda folder: fit_files(folder, on_dask(client))),
            ("files, Spark", 0.3, lambda folder: fit_files(folder, on_spark(session))),
        ]
        local = np.nan
        print(f"{'':30} {'seconds':>8} {'rows/s':>10} {'ratio':>6} {'asked':>6}")
        for name, asked, fit in ways:
            fit(small)
            seconds = min(timed(fit, table) for _ in range(repeats))
            if asked is None:
                local = seconds
            shown = "" if asked is None else f"{local / seconds:6.2f} {asked:6.1f}"
            print(f"{name:30} {seconds:8.1f} {n_rows / seconds:10,.0f} {shown}")
        workers = ", ".join(f"{peak:.0f}" for peak in client.run(peak_mb).values())
        print(f"peak memory of the Dask workers: {workers} MB")


def timed(fit: Callable[[Path], Any], table: Path) -> float:
    start = perf_counter()
    fit(table)
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--file-rows", type=int, default=250_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    folder = Path(tempfile.mkdtemp(prefix="pnuauc-engines-", dir=options.folder))
    n_rows = options.files * options.file_rows
    try:
        make_table(folder / "small", 2, 20_000)
        make_table(folder / "table", options.files, options.file_rows)
        print(f"{n_rows:,} rows, {COLUMNS} float64 columns, {options.files} Parquet files, "
              f"{LABELED} labels, 200 centres, 475 candidates, five folds")  # fmt: skip
        report(folder / "small", folder / "table", n_rows, options.repeats)
        weigh(folder / "small")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
