"""Are the stored rows still what the code gives? ``python -m experiments table4 --again 5``

Some of the stored jobs, drawn by a fixed seed, are computed again and compared value by value;
nothing is stored, and times are not compared.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from experiments.config import Experiment
from experiments.kinds import kind_of
from experiments.runner import Wanted, run_job
from experiments.store import KEY, as_text, identity, read_rows
from experiments.summary import markdown_table

__all__ = ["compare_again"]


def compare_again(experiment: Experiment, results: Path, n_jobs: int, wanted: Wanted) -> str:
    """The values that differ, and how many were compared, from at most ``n_jobs`` jobs."""
    stored = {
        identity(row): row
        for row in read_rows(results / f"{experiment.rows_of}.csv")
        if row["status"] == "ok"
    }
    jobs = []
    for job in wanted.jobs(experiment):
        found = [
            stored.get((*job.key(method), experiment.fingerprint(method, job.data_set)))
            for method in job.methods
        ]
        rows = {row["method"]: row for row in found if row is not None}
        if rows:
            there = tuple(method for method in job.methods if method.name in rows)
            jobs.append((replace(job, methods=there), rows))
    columns = [name for name in kind_of(experiment).columns if "seconds" not in name]
    lines: list[dict[str, object]] = []
    chosen = random.Random(0).sample(jobs, min(n_jobs, len(jobs)))
    for job, rows in chosen:
        for new in run_job(job)[0]:
            old = rows[new["method"]]
            for column in ("status", *columns):
                now = as_text(new.get(column, ""))
                if now != old[column]:
                    cell = {field: old[field] for field in KEY[1:]}
                    lines.append({**cell, "column": column, "stored": old[column], "now": now})
    n_rows = sum(len(rows) for _, rows in chosen)
    told = f"{n_rows} rows of {len(chosen)} jobs computed again: {len(lines)} values differ."
    return f"{told}\n\n{markdown_table(lines)}" if lines else told
