"""Run what is missing: jobs to processes, rows to the results file, progress to the terminal.

Stop it at any point, even by kill -9, and start it again: rows that are there are not computed
again, and rows that were under way are. BLAS is held to one thread a process.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import multiprocessing
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from experiments.adopt import adopt
from experiments.config import Config, Job
from experiments.methods import failed, run_job
from experiments.store import Store, add_run

__all__ = ["RESULTS", "run"]

RESULTS = Path(__file__).with_name("results")
_PACKAGES = ("pnuauc", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run(
    config: Config,
    experiment: str,
    results: Path = RESULTS,
    n_jobs: int = 2,
    trials: int | None = None,
    data_sets: Sequence[str] = (),
    methods: Sequence[str] = (),
    settings: Sequence[str] = (),
    retry: bool = False,
) -> Path:
    """Compute the missing rows of one experiment; return its results file.

    ``trials`` of None means the configured number; ``retry`` has failed rows computed again.
    """
    chosen = config.experiments[experiment]
    jobs = list(chosen.jobs(trials, data_sets, methods, settings))
    path = results / f"{experiment}.csv"
    with Store(path) as store:
        adopt(config, chosen, store, results)
        done = {"ok"} if retry else {"ok", "failed"}
        missing = [job for job in jobs if _missing(job, store, config, done)]
        print(f"{experiment}: {len(jobs) - len(missing)} of {len(jobs)} jobs are there already.")
        if missing:
            name = _register(config, experiment, results, n_jobs)
            start = time.monotonic()
            _run_jobs(missing, config, store, name, n_jobs)
            passed = round(time.monotonic() - start)
            add_run(results, {"run": name, "jobs_done": len(missing), "wall_seconds": passed})
    return path


def _missing(job: Job, store: Store, config: Config, done: set[str]) -> bool:
    return any(
        store.status(job.key(m), config.fingerprint(m, job.data_set)) not in done
        for m in job.methods
    )


def _register(config: Config, experiment: str, results: Path, n_jobs: int) -> str:
    """Store versions and configuration; return the name that rows carry."""
    name = uuid.uuid4().hex[:8]
    part = config.experiments[experiment]
    add_run(
        results,
        {
            "run": name,
            "experiment": experiment,
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "versions": {p: importlib.metadata.version(p) for p in _PACKAGES},
            "machine": platform.machine(),
            "processes": n_jobs,
            "protocol": config.protocol,
            "priors": config.priors,
            "settings": [s.key for s in part.settings],
            "methods": {m.name: m.settings for m in part.methods},
        },
    )
    return name


def _run_jobs(jobs: list[Job], config: Config, store: Store, run_name: str, n_jobs: int) -> None:
    """At most ``n_jobs`` jobs in flight, so that a dead worker leaves few suspects."""
    queue, progress = list(reversed(jobs)), _Progress(jobs)
    while queue:
        under_way: dict[Future[Any], Job] = {}
        try:
            with _pool(n_jobs) as pool:
                while queue or under_way:
                    while queue and len(under_way) < n_jobs:
                        job = queue.pop()
                        under_way[_submit(pool, job, config)] = job
                    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                        rows = future.result()
                        job = under_way.pop(future)
                        _save(job, rows, config, store, run_name)
                        progress.step(job, rows)
        except BrokenProcessPool:  # a worker was killed, by lack of memory for instance
            for job in under_way.values():
                rows = _run_alone(job, config)
                _save(job, rows, config, store, run_name)
                progress.step(job, rows)
    progress.finish()


def _run_alone(job: Job, config: Config) -> list[dict[str, Any]]:
    """A job that may have killed its worker, in a pool of its own."""
    try:
        with _pool(1) as pool:
            return list(_submit(pool, job, config).result())
    except BrokenProcessPool:
        return failed(job, "The worker process died; memory may have run out.")


def _submit(pool: ProcessPoolExecutor, job: Job, config: Config) -> Future[Any]:
    return pool.submit(run_job, job, config)


def _save(job: Job, rows: list[dict[str, Any]], config: Config, store: Store, run: str) -> None:
    by_name = {m.name: m for m in job.methods}
    for row in rows:
        key = (job.experiment, job.data_set, job.setting.key, row["method"], str(job.seed))
        row.update(zip(("experiment", "data_set", "setting", "method", "seed"), key, strict=True))
        row.update(run=run, fingerprint=config.fingerprint(by_name[row["method"]], job.data_set))
    store.append(rows)


def _pool(n_jobs: int) -> ProcessPoolExecutor:
    """Fresh interpreters: a forked one would inherit BLAS threads that are already running."""
    for name in _THREADS:
        os.environ[name] = "1"
    return ProcessPoolExecutor(
        n_jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(os.getpid(),),
    )


def _start_worker(parent: int) -> None:
    """One BLAS thread; and end with the parent, which a killed parent cannot ask for."""
    threadpool_limits(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Progress:
    """Done, failed and time left, on stderr: in place in a terminal, a line a minute elsewhere."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.left: dict[str, int] = {}
        for job in jobs:
            kind = self._kind(job)
            self.left[kind] = self.left.get(kind, 0) + 1
        self.total, self.done, self.failed = sum(self.left.values()), 0, 0
        self.spent: dict[str, tuple[float, int]] = {}
        self.start = self.shown = time.monotonic()

    @staticmethod
    def _kind(job: Job) -> str:
        return f"{job.methods[0].fit_key}|{job.setting.n_unlabeled}"

    def step(self, job: Job, rows: list[dict[str, Any]]) -> None:
        kind = self._kind(job)
        self.left[kind] -= 1
        self.done += 1
        self.failed += rows[0]["status"] != "ok"
        total, count = self.spent.get(kind, (0.0, 0))
        self.spent[kind] = (total + float(rows[0].get("seconds", 0.0)), count + 1)
        now = time.monotonic()
        if now - self.shown > (0.2 if sys.stderr.isatty() else 60):
            self.shown = now
            self._print()

    def _time_left(self) -> float:
        """Remaining fits at their own mean time, over the pace at which fits pass by."""
        every = [total / count for total, count in self.spent.values()]
        usual = sum(every) / len(every)
        work = 0.0
        for kind, count in self.left.items():
            total, seen = self.spent.get(kind, (usual, 1))
            work += count * total / seen
        finished = sum(total for total, _ in self.spent.values())
        return work * (time.monotonic() - self.start) / finished if finished else 0.0

    def _print(self) -> None:
        passed = time.monotonic() - self.start
        text = f"{self.done}/{self.total} jobs, {self.failed} failed, {_clock(passed)} gone, "
        text += f"about {_clock(self._time_left())} left"
        print(f"\r\x1b[K{text}" if sys.stderr.isatty() else text, end="", file=sys.stderr)
        print("" if sys.stderr.isatty() else "\n", end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        if self.done:
            self._print()
            if sys.stderr.isatty():
                print(file=sys.stderr)


def _clock(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))
