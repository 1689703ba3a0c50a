"""A table in the partitions of a Spark DataFrame, visited by tasks on the executors.

Classic and Connect sessions alike: no RDD. A task gets its partition as arrow batches
(``mapInArrow``) and answers with one row, its number and its summary. These come to the driver, or
where there are many are merged in groups by the executors first (``applyInArrow``).
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from pnuauc._extras import need
from pnuauc._sources._files import FileSource
from pnuauc._sources._parts import FileParts, Job
from pnuauc._sources._port import Batch
from pnuauc.exceptions import EngineError
from pnuauc.io._arrow import pa

__all__ = ["SparkSource", "engine_errors", "files_in", "spark_files"]

_Result = TypeVar("_Result")

#: Summaries that the driver merges itself; above, executors merge groups of neighbours first. A
#: summary of moments has 4 MB with the defaults, and Spark lets 1 GB of results come to the driver.
TREE_ABOVE = 200
TREE_WIDTH = 8

_ANSWER = "part long, failed boolean, summary binary"


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A DataFrame, one task a partition.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
    schema : pyarrow.Schema
    read : callable(record batches of a partition, its number) -> iterable of Batch
    known : what earlier visits told of the partitions: "parts", their number
    """

    frame: Any
    schema: Any
    read: Callable[[Iterable[Any], int], Iterable[Batch]]
    known: dict[str, int] = field(default_factory=dict)

    def select(self, columns: Sequence[str]) -> SparkSource:
        """The same with these columns only."""
        chosen = pa.schema([self.schema.field(name) for name in columns])
        return replace(self, frame=self.frame.select(*columns), schema=chosen)

    def reduce(
        self,
        summarise: Callable[[Batch], _Result],
        merge: Callable[[_Result, _Result], _Result],
        zero: _Result,
    ) -> _Result:
        """Merge the summaries of all batches: of a partition where it is, then in their order."""
        job = Job(self.read, summarise, merge)
        found = self.frame.mapInArrow(functools.partial(_visit, job=job), _ANSWER)
        n_parts = self.known.get("parts", 0)
        step = TREE_WIDTH
        while n_parts > TREE_ABOVE:
            found = _grouped(found, job, step)
            n_parts, step = -(-n_parts // TREE_WIDTH), step * TREE_WIDTH
        answers = _answers(found)
        self.known.setdefault("parts", len(answers))
        total = functools.reduce(job.joined, map(_loaded, answers), None)
        return zero if total is None else merge(zero, total[0])

    def map(self, function: Callable[[Batch], _Result]) -> Iterator[_Result]:
        """function(batch) for every batch, in order."""
        job = Job(self.read, function)
        visit = functools.partial(_visit_all, job=job)
        for answer in _answers(self.frame.mapInArrow(visit, _ANSWER)):
            yield from _loaded(answer)


@dataclass(frozen=True, eq=False)
class SparkFiles(SparkSource):
    """Files of a table, one a task; the DataFrame holds nothing but their numbers."""

    parts: Any = None

    @property
    def part_names(self) -> list[str]:
        """Files by their number."""
        names: list[str] = self.parts.part_names
        return names

    @property
    def untyped(self) -> bool:
        """Whether cells are text of which types are still to be found."""
        return bool(self.parts.untyped)

    def select(self, columns: Sequence[str]) -> SparkFiles:
        """The same with these columns only."""
        chosen = self.parts.select(columns)
        return replace(self, schema=chosen.schema, read=_ReadFiles(chosen), parts=chosen)


@dataclass(frozen=True, eq=False)
class _ReadFiles:
    """The files whose numbers a partition holds."""

    parts: FileParts

    def __call__(self, batches: Iterable[Any], number: int) -> Iterator[Batch]:
        for table in batches:
            for part in table.column("id").to_pylist():
                yield from self.parts(part, number)


@contextlib.contextmanager
def spark_files(source: FileSource, master: str | None) -> Iterator[SparkFiles]:
    """The files of a table, each read by a task of a session on ``master``, a classic one or
    ``sc://...`` for Connect; the session ends with the visit."""
    sql = need("pyspark.sql", "spark")
    given = master or "local[*,4]"
    builder = sql.SparkSession.builder.appName("pnuauc")
    with engine_errors():
        made = builder.remote(given) if given.startswith("sc://") else builder.master(given)
        if given.startswith("local"):  # else the Python of the path, which may lack pnuauc
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        session = made.getOrCreate()
    try:
        yield files_in(session, source)
    finally:
        session.stop()


def files_in(session: Any, source: FileSource) -> SparkFiles:
    """The files of a table, each read by a task of this session."""
    parts = FileParts.of(source)
    n = len(parts.numbers)
    with engine_errors():
        frame = session.range(0, n, 1, n)
    return SparkFiles(frame, parts.schema, _ReadFiles(parts), parts=parts)


def _visit(batches: Iterable[Any], job: Job) -> Iterator[Any]:
    yield _answer(job.summary, batches)


def _visit_all(batches: Iterable[Any], job: Job) -> Iterator[Any]:
    yield _answer(job.results, batches)


def _answer(summary: Callable[[Any, int], Any], batches: Iterable[Any]) -> Any:
    """One row: number of the partition, what was made of it.

    An error of the rows themselves is an answer too: Spark would try the task again and again.
    """
    number = need("pyspark", "spark").TaskContext.get().partitionId()
    try:
        return _row(number, summary(batches, number))
    except (ValueError, TypeError) as error:
        return _row(number, error, failed=True)


def _row(number: int, found: Any, failed: bool = False) -> Any:
    cells = {"part": [number], "failed": [failed], "summary": [pickle.dumps(found, 5)]}
    types = (pa.int64(), pa.bool_(), pa.binary())
    arrays = [pa.array(cell, kind) for cell, kind in zip(cells.values(), types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(cells))


def _grouped(found: Any, job: Job, step: int) -> Any:
    """Summaries of ``TREE_WIDTH`` neighbours merged into one, which has the first one's number."""
    sf = need("pyspark.sql.functions", "spark")
    group = sf.floor(sf.col("part") / sf.lit(step)).alias("group")

    def merge(table):  # type: ignore[no-untyped-def]  # Spark reads types as its own
        return _merge_group(table, job)

    return found.groupBy(group).applyInArrow(merge, _ANSWER)


def _merge_group(table: Any, job: Job) -> Any:
    table = table.sort_by("part")
    number = table.column("part")[0].as_py()
    cells, failed = table.column("summary"), table.column("failed").to_pylist()
    if any(failed):
        row = _row(number, _loaded(cells[failed.index(True)]), failed=True)
    else:
        row = _row(number, functools.reduce(job.joined, map(_loaded, cells)))
    return pa.Table.from_batches([row])


def _answers(found: Any) -> list[Any]:
    """The summaries, still as bytes, in the order of the partitions; the error of the first that
    has one is raised."""
    with engine_errors():
        table = found.toArrow()
    cells, failed = table.column("summary"), table.column("failed").to_pylist()
    order = np.argsort(table.column("part").to_numpy())
    for i in order:
        if failed[i]:
            raise _loaded(cells[int(i)])
    return [cells[int(i)] for i in order]


def _loaded(cell: Any) -> Any:
    """One summary; the others wait as bytes, so that the driver holds one at a time."""
    return pickle.loads(cell.as_buffer())


_GIVEN_UP = re.compile(
    r"Task (?P<task>\d+) in stage (?P<stage>[\d.]+) failed (?P<times>\d+) times?"
    r"(?:, most recent failure: (?P<why>[^\n]*))?"
)
_PYTHON_ERROR = re.compile(r"^\w[\w.]*(?:Error|Exception): .*$", re.M)
_REMARKS = re.compile(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()]*\): |^[\w.$]+: ")


@contextlib.contextmanager
def engine_errors() -> Iterator[None]:
    """What Spark raises when it gives up, as one sentence."""
    errors = (
        need("pyspark.errors", "spark").PySparkException,
        need("py4j.protocol", "spark").Py4JError,
    )
    try:
        yield
    except errors as error:
        raise EngineError(_told(str(error))) from error


def _told(message: str) -> str:
    found = _GIVEN_UP.search(message)
    errors = _PYTHON_ERROR.findall(message)
    if found is None:
        lines = [line.strip() for line in message.splitlines() if line.strip()]
        # of a traceback the last line says it
        why = errors[-1] if errors else (lines or ["no reason given"])[0]
        return f"Spark gave up: {why[:500]}{_remedy(message)}"
    why = found["why"] or "no reason given"
    for _ in range(3):
        why = _REMARKS.sub("", why)
    if why.startswith("Traceback") and errors:
        why = errors[-1]
    remedy = _remedy(message) or (
        ". Raise the memory of executors (spark.executor.memoryOverhead is the part of Python), "
        "cut the table into more partitions, or raise spark.task.maxFailures where executors come "
        "and go."
    )
    return (
        f"Spark gave up task {found['task']} of stage {found['stage']}, a partition of the table, "
        f"after {found['times']} attempts: {why.strip()[:300].rstrip('.')}{remedy}"
    )


def _remedy(message: str) -> str:
    """What to do where the cause is known."""
    if "spark.driver.maxResultSize" in message:
        return ". Raise spark.driver.maxResultSize, or take fewer centres or folds."
    if "ModuleNotFoundError" in message:
        return ". Install pnuauc[cli,spark] where the executors run Python."
    return ""
