"""Dask DataFrames and Arrays as tables of :mod:`pnuauc.engines`, visited by tasks of a cluster."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pnuauc._utils.extras import need
from pnuauc.engines import (
    FEATURES,
    ColumnReader,
    EngineSource,
    FileParts,
    Job,
    check_cells,
    matrix_table,
    slices,
)
from pnuauc.exceptions import EngineError, InputError
from pnuauc.io.sources import Batch, FileSource

#: Summaries merged by one task: at most this many are on one worker at a time.
TREE_WIDTH = 4
#: Partitions whose results of ``map`` are fetched at a time.
MAP_WINDOW = 16
#: Seconds between two looks whether the cluster still has workers.
_LOOK_SECONDS = 2.0
#: Seconds without any worker after which a visit is given up.
NO_WORKERS_SECONDS = 300.0


@dataclass(frozen=True, eq=False)
class DaskSource(EngineSource):
    """Parts of a table, one task each: Delayed objects, or plain values that name a part.

    client : distributed.Client, or None: the default client, or else Dask's scheduler of threads
    """

    client: Any = None

    def _summary(self, job: Job) -> tuple[Any] | None:
        """A tree of width 4."""
        shipped, run = _shipped(job)
        level = _tasks(Job.summary, shipped, run, enumerate(self.cut(self.read.columns)))
        merge = need("dask", "dask").delayed(Job.joined, pure=False)
        for depth in itertools.count(1):
            if len(level) <= 1:
                break
            level = [
                merge(
                    shipped,
                    level[i : i + TREE_WIDTH],
                    dask_key_name=f"pnuauc-merge-{depth}.{i // TREE_WIDTH}-{run}",
                )
                for i in range(0, len(level), TREE_WIDTH)
            ]
        return self._computed(level)[0] if level else None

    def _results(self, job: Job) -> Iterator[list[Any]]:
        """A few partitions at a time."""
        parts = list(enumerate(self.cut(self.read.columns)))
        for start in range(0, len(parts), MAP_WINDOW):
            tasks = _tasks(Job.results, *_shipped(job), parts[start : start + MAP_WINDOW])
            yield from self._computed(tasks)

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


def _shipped(job: Job) -> tuple[Any, str]:
    """The job as a task of its own, and the name of this visit.

    Every worker has the job once, and a lost one is made again; what is scattered is gone with the
    worker that held it.
    """
    dask, cloudpickle = need("dask", "dask"), need("cloudpickle", "dask")
    run = uuid.uuid4().hex[:12]
    load = dask.delayed(pickle.loads, pure=False)
    return load(cloudpickle.dumps(job), dask_key_name=f"pnuauc-job-{run}"), run


def _tasks(
    function: Callable[..., Any], job: Any, run: str, parts: Iterable[tuple[int, Any]]
) -> list[Any]:
    delayed = need("dask", "dask").delayed(function, pure=False)
    return [
        delayed(job, part, number, dask_key_name=f"pnuauc-partition-{number}-{run}")
        for number, part in parts
    ]


@contextlib.contextmanager
def dask_files(source: FileSource, address: str | None) -> Iterator[DaskSource]:
    """The files of a table, each read by a task of the cluster at ``address``; by default by
    threads of this process: a cluster of our own would listen on open ports."""
    read = FileParts.of(source)
    with contextlib.ExitStack() as stack:
        client = None
        if address is not None:
            try:
                client = need("distributed", "dask").Client(address, set_as_default=False)
            except OSError as error:
                raise EngineError(f"There is no Dask scheduler at {address!r}: {error}.") from error
            stack.enter_context(client)
        yield DaskSource(lambda columns: read.numbers, read, client)


def default_client() -> Any:
    """The client that is in use, or None."""
    try:
        return need("distributed", "dask").default_client()
    except (ImportError, ValueError):
        return None


def _wait(client: Any, futures: list[Any]) -> None:
    """Until all are done; a cluster that is lost, or has no workers for long, is given up."""
    distributed = need("distributed", "dask")
    last_seen = time.monotonic()
    try:
        while True:
            with contextlib.suppress(distributed.TimeoutError), client.as_current():
                distributed.wait(futures, timeout=_LOOK_SECONDS)
                return
            if client.nthreads():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > NO_WORKERS_SECONDS:
                break
    except (distributed.CancelledError, OSError, AttributeError) as error:
        # AttributeError: the client has closed its end
        raise EngineError(
            "The connection to the Dask scheduler was lost while partitions were read "
            f"({type(error).__name__}); look at its log, and raise its memory if it was killed."
        ) from error
    raise EngineError(
        f"The Dask cluster has had no worker for {NO_WORKERS_SECONDS:.0f} seconds, so no "
        "partition can be read; start workers, or raise their memory if they died."
    )


def _killed(error: Any, read: Any) -> str:
    """What was given up, from the key of its task; the file too where it reads one."""
    what = f"task {str(error.task)!r}"
    partition = re.match(r"pnuauc-partition-(\d+)-", str(error.task))
    if partition:
        what = f"partition {partition[1]}"
        if isinstance(read, FileParts):
            what += f" ('{read.part_names[read.file_of[int(partition[1])]]}')"
    return (
        f"Dask gave up {what}: {error.allowed_failures + 1} workers died while they ran it, most "
        "often for lack of memory; raise the memory of workers, cut the table into smaller "
        "partitions, or raise distributed.scheduler.allowed-failures where workers come and go."
    )


@dataclass(frozen=True, eq=False)
class PartitionReader(ColumnReader):
    """A partition -> batches, in the task that has it.

    places : of each column, the name (of the matrix, the names) in a DataFrame; None where a
        partition is a dict of arrays by the names in ``columns``
    dtype : of the matrix
    """

    places: Mapping[str, Any] | None = None
    dtype: str = "float64"

    def __call__(self, part: Any, number: int) -> Iterable[Batch]:
        name = f"Dask partition {number}"
        places = self.places or {column: column for column in self.columns}
        columns = {column: part[places[column]] for column in self.columns}
        try:
            if FEATURES in columns:
                X = _as_numbers(columns[FEATURES], self.dtype)
                columns[FEATURES] = check_cells(X, "the matrix")
            table = matrix_table(columns, self.columns)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} cannot be read: {error}") from error
        return slices(table, name, number)


def _as_numbers(part: Any, dtype: str) -> Any:
    if hasattr(part, "to_numpy"):
        return part.to_numpy(dtype=dtype, na_value=np.nan)
    if hasattr(part, "toarray"):
        raise TypeError("chunks are sparse matrices; only dense ones are read")
    return np.asarray(part, dtype=dtype)


def collection_source(client: Any, **collections: Any) -> DaskSource:
    """Collections of one value per row, and one matrix, as a source; None ones are left out."""
    given = {name: c for name, c in collections.items() if c is not None}
    for name, collection in given.items():
        if not is_collection(collection):
            raise TypeError(
                f"The {name} must be a Dask DataFrame, Series or Array; got "
                f"{type(collection).__name__}. For rows in memory take the estimator of pnuauc."
            )
    matrix = given.get(FEATURES)
    if any(hasattr(collection, "chunks") for collection in given.values()):
        cut, places = _from_arrays(given), None
    else:
        cut, places = _from_frames(given)
    return DaskSource(cut, PartitionReader(tuple(given), places, _dtype(matrix)), client)


def _from_frames(given: Mapping[str, Any]) -> tuple[Callable[..., list[Any]], dict[str, Any]]:
    """(columns -> partitions, where each column is in them).

    All are put into one DataFrame: taken by itself, a column may be cut otherwise, as Dask joins
    files of which little is read.
    """
    frame: Any = None
    places: dict[str, Any] = {}
    for name, collection in given.items():
        if name == FEATURES:
            frame, places[name] = collection, list(collection.columns)
            continue
        places[name] = f"__pnuauc_{name}__"
        if frame is None:
            frame = collection.to_frame(name=places[name])
        else:
            frame = frame.assign(**{places[name]: collection})

    def cut(columns: Sequence[str]) -> list[Any]:
        wanted = [places[name] for name in columns]
        names = [n for place in wanted for n in (place if isinstance(place, list) else [place])]
        return list(frame[names].to_delayed())

    return cut, places


def _from_arrays(given: Mapping[str, Any]) -> Callable[..., list[Any]]:
    """columns -> partitions, each a dict with a piece of every collection."""
    chunked = _aligned(
        {n: c if hasattr(c, "chunks") else c.to_dask_array() for n, c in given.items()}
    )
    parts = {name: list(collection.to_delayed().ravel()) for name, collection in chunked.items()}
    counts = {name: len(found) for name, found in parts.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} {n}" for name, n in counts.items())
        raise ValueError(
            f"Collections that belong together have different numbers of partitions ({found}); "
            "take them from one DataFrame, or rechunk them."
        )

    def cut(columns: Sequence[str]) -> list[Any]:
        rows = zip(*(parts[name] for name in columns), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    return cut


def is_collection(value: Any) -> bool:
    """Whether Dask holds it in partitions."""
    return hasattr(value, "to_delayed") and (hasattr(value, "chunks") or hasattr(value, "_meta"))


def feature_names(X: Any) -> list[str] | None:
    """Names of a DataFrame's columns, where all are text, as scikit-learn keeps them."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _aligned(given: dict[str, Any]) -> dict[str, Any]:
    """Arrays in the row chunks of the first, whose sizes are known, and one chunk of columns."""
    cut = None
    out = {}
    for name, collection in given.items():
        if collection.ndim == 2 and len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        if cut is not None and collection.chunks[0] != cut and not np.isnan(cut).any():
            collection = collection.rechunk({0: cut})
        cut = collection.chunks[0] if cut is None else cut
        out[name] = collection
    return out


def _dtype(matrix: Any) -> str:
    """float32 where every column is; float64 otherwise."""
    if matrix is None:
        return "float64"
    kinds = [matrix.dtype] if hasattr(matrix, "chunks") else list(matrix.dtypes)
    return "float32" if all(kind == np.float32 for kind in kinds) else "float64"
