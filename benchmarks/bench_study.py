"""``pnuauc fit`` as a whole, beside another version of it; python -m benchmarks.bench_study

Processor seconds of the command, start included, with one thread, each table in turn by both
versions. ``--before FOLDER`` names the ``src`` of a checkout of the other version. Needs the data
sets (PNUAUC_DATA).

The last line: ``fit_table`` with importance, comparisons and the report on the demo's payments,
against ``AutoAUCClassifier.fit`` with its held-out scores on the same encoded rows. Both in this
process, in turn, medians of processor seconds; ``--ratio`` does this alone, without data sets.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import sparse

from experiments.paper_sets import load
from pnuauc import AutoAUCClassifier, fit_table, read_roles
from pnuauc.datasets import sample_pnu
from pnuauc.study.payments import make_payments

#: Name -> data set, positives, negatives, unlabelled rows.
TABLES = {
    "magic, 50 labels": ("magic", 15, 35, 2000),
    "magic, 100 labels": ("magic", 30, 70, 2000),
    "magic, 30 positives": ("magic", 30, 0, 2000),
    "a9a, 150 labels": ("a9a", 45, 105, 3000),
}


def write_tables(folder: Path) -> dict[str, Path]:
    """Parquet files with a column ``label``: 1, 0 or empty."""
    files = {}
    for name, (data_set, *sizes) in TABLES.items():
        X, y = load(data_set)
        sample = sample_pnu(X, y, *sizes, 0.2, 0, n_test=0)
        rows = sample.X.toarray() if sparse.issparse(sample.X) else sample.X
        columns = {f"c{j}": column for j, column in enumerate(rows.T)}
        labels = pa.array(np.where(sample.y < 0, 0, sample.y), mask=sample.y < 0)
        files[name] = folder / f"{len(files)}.parquet"
        parquet.write_table(pa.table({**columns, "label": labels}), files[name])
    files["the demo's payments"] = folder / "payments.parquet"
    parquet.write_table(payments(), files["the demo's payments"])
    return files


def payments() -> pa.Table:
    table, _ = make_payments(seed=1)
    return table.rename_columns({"is_fraud": "label"}).drop_columns(["payment_id"])


def seconds(table: Path, source: str) -> float:
    """Processor seconds of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pnuauc", "fit", str(table), "--label", "label", "--jobs", "1"]
    subprocess.run([*command, "--quiet"], check=True, env={**os.environ, "PYTHONPATH": source})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_ratio(repeats: int = 7) -> None:
    """Everything that ``fit_table`` does beside the fit of the committee alone."""
    table = payments()
    roles = read_roles(table.column("label").to_numpy())
    times: dict[str, list[float]] = {"all": [], "committee": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats + 1):
            start = time.process_time()
            found = fit_table(table, n_jobs=1)
            found.report(Path(folder) / "report.html")
            times["all"].append(time.process_time() - start)
            encoder = found.model.encoder
            X = encoder.encode(table.drop_columns(["label"]), 0, encoder.views)
            layout = encoder.layout(encoder.views)
            ranker = AutoAUCClassifier(n_jobs=1, random_state=0, **layout)
            start = time.process_time()
            ranker.fit(X, roles)
            times["committee"].append(time.process_time() - start)
    whole, alone = (float(np.median(t[1:])) for t in times.values())  # the first one warms up
    print(
        f"fit_table with its report {whole:.2f} s, AutoAUCClassifier.fit {alone:.2f} s: "
        f"{whole / alone:.2f} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="src of another version")
    parser.add_argument("--ratio", action="store_true", help="the last line alone")
    args = parser.parse_args()
    if args.ratio:
        print_ratio()
        return
    own = str(Path(__file__).parents[1] / "src")
    print(f"{'table':>22} {'s':>8} {'before':>8} {'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, table in write_tables(Path(folder)).items():
            now = seconds(table, own)
            line = f"{name:>22} {now:8.1f}"
            if args.before:
                before = seconds(table, args.before)
                line += f" {before:8.1f} {now / before:8.2f}"
            print(line, flush=True)
    print_ratio()


if __name__ == "__main__":
    main()
