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
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from experiments.config import Experiment, Job, Method
from experiments.kinds import kind_of
from experiments.store import KEY, Store, add_run

__all__ = ["RESULTS", "Wanted", "run", "run_job"]

RESULTS = Path(__file__).with_name("results")
_PACKAGES = ("pnuauc", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Wanted:
    """What of an experiment is to be run: everything configured, unless said otherwise."""

    trials: int | None = None
    data_sets: Sequence[str] = ()
    methods: Sequence[str] = ()
    settings: Sequence[str] = ()
    retry: bool = False  # failed rows too

    def jobs(self, experiment: Experiment) -> list[Job]:
        """The jobs of the experiment that are wanted, done or not."""
        chosen = (self.trials, self.data_sets, self.methods, self.settings)
        return list(experiment.jobs(kind_of(experiment).group, *chosen))


def run(
    experiment: Experiment, results: Path = RESULTS, n_jobs: int = 2, wanted: Wanted | None = None
) -> Path:
    """Compute the missing rows of one experiment; return its results file."""
    wanted = wanted or Wanted()
    jobs = wanted.jobs(experiment)
    path = results / f"{experiment.rows_of}.csv"
    with Store(path, kind_of(experiment).columns) as store:
        done = {"ok", "absent"} if wanted.retry else {"ok", "absent", "failed"}
        missing = [job for job in (_missing(job, store, done) for job in jobs) if job.methods]
        print(f"{experiment.name}: {len(jobs) - len(missing)} of {len(jobs)} jobs are done.")
        if missing:
            name = _register(experiment, results, n_jobs)
            start = time.monotonic()
            _run_jobs(missing, store, name, n_jobs)
            passed = round(time.monotonic() - start)
            add_run(results, {"run": name, "jobs_done": len(missing), "wall_seconds": passed})
    return path


def _missing(job: Job, store: Store, done: set[str]) -> Job:
    """The job with the methods that have no row yet."""

    def is_missing(method: Method) -> bool:
        fingerprint = job.experiment.fingerprint(method, job.data_set)
        return store.status(job.key(method), fingerprint) not in done

    return replace(job, methods=tuple(filter(is_missing, job.methods)))


def run_job(job: Job) -> tuple[list[dict[str, Any]], float]:
    """Rows for all methods of the job, and the seconds they took.

    An exception becomes failed rows, never a crash; the kinds of warnings are noted. A method that
    does not apply to the setting, and so gets no row, is noted as absent.
    """
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows = list(kind_of(job.experiment).run(job))
    except Exception as error:  # one bad cell must not stop the other thousands
        return _failed(job, f"{type(error).__name__}: {error}"), time.perf_counter() - start
    note = " ".join(sorted({w.category.__name__ for w in caught}))
    rows = [{"status": "ok", "note": note, **row} for row in rows]
    there = {row["method"] for row in rows}
    rows += [{"method": m.name, "status": "absent"} for m in job.methods if m.name not in there]
    return rows, time.perf_counter() - start


def _failed(job: Job, why: str) -> list[dict[str, Any]]:
    """The rows that say a job has failed, and how."""
    return [{"method": m.name, "status": "failed", "note": why} for m in job.methods]


def _register(experiment: Experiment, results: Path, n_jobs: int) -> str:
    """Store versions and configuration; return the name that rows carry."""
    name = uuid.uuid4().hex[:8]
    add_run(
        results,
        {
            "run": name,
            "experiment": experiment.name,
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "versions": {p: importlib.metadata.version(p) for p in _PACKAGES},
            "machine": platform.machine(),
            "processes": n_jobs,
            "protocol": experiment.protocol,
            "options": experiment.options,
            "settings": [s.key for s in experiment.settings],
            "methods": {m.name: [m.settings, m.prior_rule] for m in experiment.methods},
        },
    )
    return name


def _run_jobs(jobs: list[Job], store: Store, run_name: str, n_jobs: int) -> None:
    """At most ``n_jobs`` jobs in flight, so that a dead worker leaves few suspects."""
    queue, progress = list(reversed(jobs)), _Progress(jobs)

    def keep(job: Job, rows: list[dict[str, Any]], seconds: float) -> None:
        _save(job, rows, store, run_name)
        progress.step(job, rows, seconds)

    while queue:
        under_way: dict[Future[Any], Job] = {}
        try:
            with _pool(n_jobs) as pool:
                while queue or under_way:
                    while queue and len(under_way) < n_jobs:
                        job = queue.pop()
                        under_way[pool.submit(run_job, job)] = job
                    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                        found = future.result()
                        keep(under_way.pop(future), *found)
        except BrokenProcessPool:  # a worker was killed, by lack of memory for instance
            for job in under_way.values():
                keep(job, *_run_alone(job))
    progress.finish()


def _run_alone(job: Job) -> tuple[list[dict[str, Any]], float]:
    """A job that may have killed its worker, in a pool of its own."""
    try:
        with _pool(1) as pool:
            return pool.submit(run_job, job).result()
    except BrokenProcessPool:
        return _failed(job, "The worker process died; memory may have run out."), 0.0


def _save(job: Job, rows: list[dict[str, Any]], store: Store, run: str) -> None:
    by_name = {m.name: m for m in job.methods}
    for row in rows:
        method = by_name[row["method"]]
        row.update(zip(KEY, job.key(method), strict=True))
        row.update(run=run, fingerprint=job.experiment.fingerprint(method, job.data_set))
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
        self.left = Counter(map(self._kind, jobs))
        self.total, self.done, self.failed = sum(self.left.values()), 0, 0
        self.spent: dict[str, tuple[float, int]] = {}
        self.start = self.shown = time.monotonic()

    @staticmethod
    def _kind(job: Job) -> str:
        return f"{job.methods[0].name}|{job.setting.n_unlabeled}"

    def step(self, job: Job, rows: list[dict[str, Any]], seconds: float) -> None:
        kind = self._kind(job)
        self.left[kind] -= 1
        self.done += 1
        self.failed += rows[0]["status"] != "ok"
        total, count = self.spent.get(kind, (0.0, 0))
        self.spent[kind] = (total + seconds, count + 1)
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
