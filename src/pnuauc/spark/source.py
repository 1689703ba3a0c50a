"""A Spark DataFrame as a source of rows: partitions read by tasks on the executors."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pnuauc._utils.extras import need
from pnuauc.engines import (
    FEATURES,
    ColumnReader,
    EngineSource,
    FileParts,
    Job,
    as_matrix,
    check_cells,
)
from pnuauc.exceptions import EngineError, InputError
from pnuauc.io.cells import pa
from pnuauc.io.sources import Batch, FileSource

#: Summaries that the driver merges itself; above, executors merge groups of neighbours first. A
#: summary of moments has 4 MB with the defaults, and Spark lets 1 GB of results come to the driver.
TREE_ABOVE = 200
TREE_WIDTH = 8

_ANSWER = "part long, failed boolean, summary binary"


@dataclass(frozen=True, eq=False)
class SparkSource(EngineSource):
    """A DataFrame, which ``cut`` gives; one task a partition.

    known : what earlier visits found about the partitions: "parts", their number
    """

    known: dict[str, int] = field(default_factory=dict)

    def _visited(self, function: Callable[..., Any], job: Job) -> Any:
        """One row a partition, with what ``function`` made of it."""
        visit = functools.partial(_visit, function=functools.partial(function, job))
        return self.cut(self.read.columns).mapInArrow(visit, _ANSWER)

    def _summary(self, job: Job) -> tuple[Any] | None:
        found = self._visited(Job.summary, job)
        n_parts, step = self.known.get("parts", 0), TREE_WIDTH
        while n_parts > TREE_ABOVE:
            found = _grouped(found, job, step)
            n_parts, step = -(-n_parts // TREE_WIDTH), step * TREE_WIDTH
        answers = _answers(found)
        self.known.setdefault("parts", len(answers))
        return job.joined(map(_loaded, answers))

    def _results(self, job: Job) -> Iterator[list[Any]]:
        return map(_loaded, _answers(self._visited(Job.results, job)))


#: A session on this machine listens on its loopback only, with a secret that Spark makes, and shows
#: no pages.
_PRIVATE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",
}


@contextlib.contextmanager
def spark_files(source: FileSource, master: str | None) -> Iterator[SparkSource]:
    """The files of a table, each read by a task of a session on ``master``, a classic one or
    ``sc://...`` for Connect; the session ends with the visit."""
    sql = need("pyspark.sql", "spark")
    given = master or "local[*,4]"
    builder = sql.SparkSession.builder.appName("pnuauc")
    if given.partition("[")[0] == "local":
        builder = builder.config(map=_PRIVATE)
    with engine_errors():
        made = builder.remote(given) if given.startswith("sc://") else builder.master(given)
        if given.startswith("local"):  # else the Python of the path, which may lack pnuauc
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        session = made.getOrCreate()
    try:
        yield files_in(session, source)
    finally:
        session.stop()


def files_in(session: Any, source: FileSource) -> SparkSource:
    """The files of a table, each read by a task of this session."""
    read = FileParts.of(source)
    n = len(read.numbers)
    with engine_errors():
        frame = session.range(0, n, 1, n)  # the numbers of the parts, one a partition
    return SparkSource(lambda columns: frame, read)


def _visit(batches: Iterable[Any], function: Callable[[Any, int], Any]) -> Iterator[Any]:
    """One row: number of the partition, what was made of it.

    An error of the rows themselves is an answer too: Spark would try the task again and again.
    """
    number = need("pyspark", "spark").TaskContext.get().partitionId()
    try:
        yield _row(number, function(batches, number))
    except (ValueError, TypeError) as error:
        yield _row(number, error, failed=True)


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
        row = _row(number, job.joined(map(_loaded, cells)))
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
        raise EngineError(_sentence(str(error))) from error


def _sentence(message: str) -> str:
    found = _GIVEN_UP.search(message)
    errors = _PYTHON_ERROR.findall(message)
    if found is None:
        lines = [line.strip() for line in message.splitlines() if line.strip()]
        # the last line of a traceback names the error
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


# Columns of a Spark DataFrame under the names of :mod:`pnuauc.engines`, as arrow gives them.


class ArrowReader(ColumnReader):
    """The record batches of a partition, checked."""

    def __call__(self, part: Iterable[Any], number: int) -> Iterator[Batch]:
        name, first = f"Spark partition {number}", 0
        for table in part:
            if FEATURES in table.schema.names:
                check_cells(as_matrix(table.column(FEATURES), name), name)
            yield Batch(table, name, first, number)
            first += table.num_rows


def frame_source(frame: Any, columns: Mapping[str, Any]) -> SparkSource:
    """Some columns of a DataFrame as a source: {name in :mod:`pnuauc.engines`: Column}."""
    chosen = frame.select(*(column.alias(name) for name, column in columns.items()))
    return SparkSource(lambda names: chosen.select(*names), ArrowReader(tuple(columns)))


def feature_column(frame: Any, features: Any) -> Any:
    """One column of arrays: of an array or vector column, or of several columns of numbers.

    Several columns become arrays in Spark itself: one array passes to Python twice as fast.
    """
    sf = need("pyspark.sql.functions", "spark")
    if isinstance(features, str):
        kind = _type_of(frame, features)
        if type(kind).__name__ == "VectorUDT":
            return need("pyspark.ml.functions", "spark").vector_to_array(named(features))
        if kind.typeName() != "array" or not _is_number(kind.elementType):
            raise InputError(
                f"Column {features!r} is of type {kind.simpleString()}; features are an array of "
                "numbers, a vector, or a list of columns."
            )
        single = kind.elementType.typeName() == "float"
        return named(features).cast("array<float>" if single else "array<double>")
    kinds = {name: _type_of(frame, name) for name in features}
    for name, kind in kinds.items():
        if not _is_number(kind):
            raise InputError(
                f"Column {name!r} is of type {kind.simpleString()}, not a number; encode it first, "
                "for example with StringIndexer and OneHotEncoder."
            )
    target = "float" if all(k.typeName() == "float" for k in kinds.values()) else "double"
    return sf.array(*(named(name).cast(target) for name in features))


def score_column(frame: Any, name: str) -> Any:
    """One number a row: a number, or the positive class's place of a vector of two."""
    if type(_type_of(frame, name)).__name__ == "VectorUDT":
        return need("pyspark.ml.functions", "spark").vector_to_array(named(name))[1]
    return named(name).cast("double")


def named(name: str) -> Any:
    """A column by its name, whatever characters are in it."""
    quoted = name.replace("`", "``")
    return need("pyspark.sql.functions", "spark").col(f"`{quoted}`")


def plain(value: Any) -> Any:
    """A parameter as JSON keeps it and pyspark can print it: a tuple becomes a list."""
    return list(value) if isinstance(value, tuple) else value


def _type_of(frame: Any, name: str) -> Any:
    if name not in frame.columns:
        known = ", ".join(frame.columns[:20])
        raise InputError(f"There is no column {name!r}; the DataFrame has {known}.")
    return frame.schema[name].dataType


def _is_number(kind: Any) -> bool:
    names = {"double", "float", "byte", "short", "integer", "long", "boolean"}
    return kind.typeName() in names or kind.typeName().startswith("decimal")
