"""A table in the partitions of Dask collections, visited by tasks on the cluster."""

from __future__ import annotations

import contextlib
import functools
import itertools
import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pnuauc._extras import need
from pnuauc._sources._files import FileSource
from pnuauc._sources._parts import FileParts, Job, PartReader
from pnuauc._sources._port import Batch
from pnuauc.exceptions import EngineError

__all__ = ["DaskSource", "dask_files"]

_Result = TypeVar("_Result")

#: Summaries merged by one task: at most so many are on one worker at a time.
TREE_WIDTH = 4
#: Partitions whose results of :meth:`DaskSource.map` are fetched at a time.
MAP_WINDOW = 16
#: Seconds between two looks whether the cluster still has workers.
_LOOK_SECONDS = 2.0
#: Seconds without any worker after which a visit is given up.
NO_WORKERS_SECONDS = 300.0


@dataclass(frozen=True, eq=False)
class DaskSource:
    """Parts of a table, one task each.

    Attributes
    ----------
    cut : callable(names of columns) -> list of what a task is given: Delayed objects, or plain
        values that name a part
    read : PartReader
    client : distributed.Client, or None: the default client, or else Dask's scheduler of threads
    """

    cut: Callable[[Sequence[str]], list[Any]]
    read: PartReader
    client: Any = None

    @property
    def schema(self) -> Any:
        return self.read.schema

    @property
    def part_names(self) -> Sequence[str]:
        """What parts are called; empty where they have no names."""
        return getattr(self.read, "part_names", ())

    @property
    def untyped(self) -> bool:
        """Whether cells are text of which types are still to be found."""
        return getattr(self.read, "untyped", False)

    def select(self, columns: Sequence[str]) -> DaskSource:
        """The same with these columns only: partitions of others are not computed."""
        return replace(self, read=self.read.select(columns))

    def reduce(
        self,
        summarise: Callable[[Batch], _Result],
        merge: Callable[[_Result, _Result], _Result],
        zero: _Result,
    ) -> _Result:
        """Merge the summaries of all batches, those of neighbours first: a tree of width 4."""
        job, run = self._shipped(Job(self.read, summarise, merge))
        delayed = need("dask", "dask").delayed(_merge, pure=False)
        level = self._tasks(Job.summary, job, run, enumerate(self.cut(self.read.columns)))
        for depth in itertools.count(1):
            if len(level) <= 1:
                break
            level = [
                delayed(
                    level[i : i + TREE_WIDTH],
                    job,
                    dask_key_name=f"pnuauc-merge-{depth}.{i // TREE_WIDTH}-{run}",
                )
                for i in range(0, len(level), TREE_WIDTH)
            ]
        found = self._computed(level)[0] if level else None
        return zero if found is None else merge(zero, found[0])

    def map(self, function: Callable[[Batch], _Result]) -> Iterator[_Result]:
        """function(batch) for every batch, in order; a few partitions at a time."""
        parts = list(enumerate(self.cut(self.read.columns)))
        for start in range(0, len(parts), MAP_WINDOW):
            job, run = self._shipped(Job(self.read, function))
            some = parts[start : start + MAP_WINDOW]
            for found in self._computed(self._tasks(Job.results, job, run, some)):
                yield from found

    def _shipped(self, job: Job) -> tuple[Any, str]:
        """The job as a task of its own, so that every worker has it once and a lost one is made
        again; what is scattered is gone with the worker that held it."""
        dask, cloudpickle = need("dask", "dask"), need("cloudpickle", "dask")
        run = uuid.uuid4().hex[:12]
        load = dask.delayed(pickle.loads, pure=False)
        return load(cloudpickle.dumps(job), dask_key_name=f"pnuauc-job-{run}"), run

    def _tasks(
        self, function: Callable[..., Any], job: Any, run: str, parts: Iterable[tuple[int, Any]]
    ) -> list[Any]:
        delayed = need("dask", "dask").delayed(function, pure=False)
        return [
            delayed(job, part, number, dask_key_name=f"pnuauc-partition-{number}-{run}")
            for number, part in parts
        ]

    def _computed(self, tasks: list[Any]) -> list[Any]:
        """The results of tasks; an error of the cluster becomes one sentence."""
        dask = need("dask", "dask")
        client = self.client or default_client()
        if client is None:
            return list(dask.compute(*tasks))
        # the job is one large argument by intention
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            futures = client.compute(tasks)
        try:
            _wait(client, futures)
            return list(client.gather(futures))
        except need("distributed", "dask").KilledWorker as error:
            raise EngineError(_killed(error, self.read)) from error
        except ImportError as error:
            raise EngineError(
                f"A Dask worker cannot load what the work needs ({error}); install "
                "pnuauc[cli,dask] where the workers run, in the version that is in use here."
            ) from error
        finally:
            with contextlib.suppress(Exception):  # of a scheduler that is gone
                client.cancel([future for future in futures if not future.done()])


@contextlib.contextmanager
def dask_files(source: FileSource, address: str | None) -> Iterator[DaskSource]:
    """The files of a table, each read by a task of the cluster at ``address``; by default one of
    processes on this machine, for as long as it is used."""
    distributed = need("distributed", "dask")
    read = FileParts.of(source)
    try:
        client = distributed.Client(address, set_as_default=False)
    except OSError as error:
        raise EngineError(f"There is no Dask scheduler at {address!r}: {error}.") from error
    with client:
        yield DaskSource(lambda columns: read.numbers, read, client)


def default_client() -> Any:
    """The client that is in use, or None."""
    try:
        return need("distributed", "dask").default_client()
    except (ImportError, ValueError):
        return None


def _merge(summaries: list[tuple[Any] | None], job: Job) -> tuple[Any] | None:
    return functools.reduce(job.joined, summaries)


def _wait(client: Any, futures: list[Any]) -> None:
    """Until all are done; a cluster that is lost, or has no workers for long, is given up."""
    distributed = need("distributed", "dask")
    last_seen = time.monotonic()
    while True:
        try:
            with client.as_current():
                distributed.wait(futures, timeout=_LOOK_SECONDS)
            return
        except distributed.TimeoutError:
            pass
        except (distributed.CancelledError, OSError) as error:
            raise _scheduler_lost(error) from error
        try:
            workers = client.nthreads()
        except (OSError, AttributeError) as error:  # the client has closed its end
            raise _scheduler_lost(error) from error
        if workers:
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > NO_WORKERS_SECONDS:
            raise EngineError(
                f"The Dask cluster has had no worker for {NO_WORKERS_SECONDS:.0f} seconds, so no "
                "partition can be read; start workers, or raise their memory if they died."
            )


def _scheduler_lost(error: BaseException) -> EngineError:
    return EngineError(
        "The connection to the Dask scheduler was lost while partitions were read "
        f"({type(error).__name__}); look at its log, and raise its memory if it was killed."
    )


def _killed(error: Any, read: PartReader) -> str:
    return (
        f"Dask gave up {_task_name(str(error.task), read)}: {error.allowed_failures + 1} workers "
        "died while they ran it, most often for lack of memory; raise the memory of workers, cut "
        "the table into smaller partitions, or raise distributed.scheduler.allowed-failures where "
        "workers come and go."
    )


def _task_name(key: str, read: Any) -> str:
    """What a task does, from its key; the file too where it reads one."""
    if not key.startswith("pnuauc-"):
        return f"task {key!r}"
    kind, number = key.removeprefix("pnuauc-").rsplit("-", 1)[0].partition("-")[::2]
    file = (
        f" ('{read.name_of(int(number))}')"
        if kind == "partition" and hasattr(read, "name_of")
        else ""
    )
    return f"{kind} {number}".strip() + file
