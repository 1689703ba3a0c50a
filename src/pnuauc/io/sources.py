"""A table in files: any number of them, in folders, read batch by batch."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from pnuauc.core.rows import Block, Visited, map_blocks, merge_known, row_blocks
from pnuauc.exceptions import InputError
from pnuauc.io.cells import pa
from pnuauc.io.formats import COMPRESSIONS, FORMATS, ReadOptions, told
from pnuauc.io.frames import check_names, joint_type, plain_types
from pnuauc.io.readers import BATCH_ROWS, ParquetReader, reader_of

_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class Batch:
    """Some neighbouring rows of a table.

    table : record batch or table, in the types of :attr:`Source.schema`
    name : what messages call the file (or partition) that the rows come from
    first_row : rows of that file before these
    part : number of that file; rows of a source are in the order (part, row)
    """

    table: Any
    name: str = "table"
    first_row: int = 0
    part: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Some of the rows, by their places, as a ``pyarrow.Table``."""
        found = self.table.take(pa.array(rows))
        return found if isinstance(found, pa.Table) else pa.Table.from_batches([found])


class Source(Visited[Batch], Protocol):
    """A table, batch by batch. The order of batches is fixed, whatever speed is asked for."""

    @property
    def schema(self) -> Any:
        """Names and types of the columns: one ``pyarrow.Schema`` for all batches."""
        ...

    def select(self, columns: Sequence[str]) -> Source:
        """The same with these columns only: what is not asked for is not read."""
        ...


def is_source(data: Any) -> bool:
    """Whether ``data`` is a source, and no frame of any library."""
    return all(hasattr(data, name) for name in ("reduce", "map", "select", "schema"))


class LocalSource(Visited[Batch]):
    """What sources on this machine share: batches come one by one, threads work on them."""

    n_threads: int = 1
    seen: Callable[[int], None] | None = None

    def batches(self) -> Iterator[Batch]:
        raise NotImplementedError

    def map(self, function: Callable[[Batch], _Result]) -> Iterator[_Result]:
        """function(batch) for every batch, in order; a few batches are held at a time."""
        if self.seen is not None:
            self.seen(0)  # a visit begins
        for n, result in map_blocks(partial(_sized, function), self.batches(), self.n_threads):
            if self.seen is not None:
                self.seen(n)
            yield result


def _sized(function: Callable[[Batch], _Result], batch: Batch) -> tuple[int, _Result]:
    return len(batch), function(batch)


@dataclass(eq=False)
class MemorySource(LocalSource):
    """A ``pyarrow.Table`` in memory."""

    table: Any
    name: str = "table"
    batch_rows: int = BATCH_ROWS
    n_threads: int = 1
    seen: Callable[[int], None] | None = None

    @property
    def schema(self) -> Any:
        return self.table.schema

    def select(self, columns: Sequence[str]) -> MemorySource:
        return replace(self, table=self.table.select(list(columns)))

    def batches(self) -> Iterator[Batch]:
        for rows in row_blocks(self.table.num_rows, self.batch_rows):
            part = self.table.slice(rows.start, rows.stop - rows.start)
            yield Batch(part, self.name, rows.start)


class SourceRows:
    """The rows of one role that live in a source: a visitor as :mod:`pnuauc.core.rows` knows it.

    read : the rows of the role in a batch as blocks, with their folds; blocks do not know how many
        rows of the role come before them (``start`` is 0)
    """

    def __init__(self, source: Source, read: Callable[[Batch], Iterable[Block]]) -> None:
        self.source, self.read = source, read

    def map(self, function: Callable[[Block], _Result]) -> Iterator[_Result]:
        """function(block) for every block, in order."""
        for found in self.source.map(partial(_each_block, self.read, function)):
            yield from found

    def reduce(
        self,
        summarize: Callable[[Block], _Result],
        merge: Callable[[_Result, _Result], _Result],
        zero: _Result,
    ) -> _Result:
        """Merge the summaries of all blocks: those of a batch where it is, then the batches."""
        found = self.source.reduce(
            partial(_merged_blocks, self.read, summarize, merge), merge_known(merge), None
        )
        return zero if found is None else merge(zero, found[0])


def _each_block(
    read: Callable[[Batch], Iterable[Block]], function: Callable[[Block], _Result], batch: Batch
) -> list[_Result]:
    return [function(block) for block in read(batch)]


def _merged_blocks(
    read: Callable[[Batch], Iterable[Block]],
    summarize: Callable[[Block], _Result],
    merge: Callable[[_Result, _Result], _Result],
    batch: Batch,
) -> tuple[_Result] | None:
    """The merged summaries of a batch's blocks as a tuple of one; None where it has none."""
    summaries = ((summarize(block),) for block in read(batch))
    found: tuple[_Result] | None = reduce(merge_known(merge), summaries, None)
    return found


# One type for a column of several files, or a sentence that says which files disagree.


def _settled_schema(schemas: Sequence[tuple[str, Any]], partitions: Mapping[str, Any]) -> Any:
    """The schema that all files, by name and in order, fit; partitions are named by folders."""
    first_name, first = schemas[0]
    kinds = dict(zip(first.names, first.types, strict=True))
    for name, schema in schemas[1:]:
        for column in (*first.names, *schema.names):
            if (column in first.names) != (column in schema.names):
                has, lacks = (name, first_name) if column in schema.names else (first_name, name)
                raise InputError(
                    f"'{lacks}' has no column {column!r}, which '{has}' has; all files of a table "
                    "need the same columns."
                )
        for column in first.names:
            here, former = schema.field(column).type, kinds[column]
            kinds[column] = joint_type(former, here)
            if kinds[column] is None:
                raise InputError(
                    f"Column {column!r} holds {here} in '{name}' but {former} in the files before, "
                    f"such as '{first_name}'; write it in one type in all files, or leave the "
                    "column out of them."
                )
    for column in partitions:
        if column in kinds:
            raise InputError(
                f"Column {column!r} is in '{first_name}' and in the name of its folder; leave it "
                "out of one."
            )
    return pa.schema([*kinds.items(), *partitions.items()])


#: How a folder is named whose rows lack the value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
#: Formats that are looked for in folders.
_IN_FOLDERS = {"csv", "tsv", "parquet", "arrow", "jsonl"}


@dataclass
class TableFile:
    """One file of a table, or of Parquet some of its row groups.

    values : text by column, from folders named column=value
    n_rows : as the file says, or as counted in the first visit
    stamp : (size, time of the last change), by which changes are noticed
    first_row : rows of the file before these
    """

    path: Path
    values: dict[str, str | None]
    options: ReadOptions
    n_rows: int | None = None
    stamp: tuple[int, int] = (0, 0)
    row_groups: tuple[int, ...] | None = None
    first_row: int = 0

    def __post_init__(self) -> None:
        self.reader = reader_of(self.path, self.options)
        self.kind = self.reader.source.kind
        if self.stamp == (0, 0):
            self.stamp = _stamp(self.path)
        if self.kind == "libsvm":
            raise InputError(f"'{self.path}' is a LIBSVM file; these are read one at a time.")

    @property
    def name(self) -> str:
        return self.reader.source.name

    def schema(self) -> Any:
        """Names and types in the file; text throughout where the format has no types."""
        with told(self.reader.source):
            found = plain_types(self.reader.schema().empty_table()).schema
        check_names(found.names, self.name)
        self.n_rows = self.reader.n_rows
        return found

    def pieces(self, rows: int) -> list[TableFile]:
        """The file in pieces of about ``rows`` rows, where its format can be read in pieces."""
        if not isinstance(self.reader, ParquetReader) or (self.reader.n_rows or 0) <= rows:
            return [self]
        sizes = self.reader.group_rows
        starts = np.concatenate([[0], np.cumsum(sizes)])
        number = starts[:-1] // rows  # a row group belongs to the piece in which it starts
        groups = [np.flatnonzero(number == i) for i in np.unique(number)]
        return [
            replace(
                self,
                row_groups=tuple(map(int, own)),
                first_row=int(starts[own[0]]),
                n_rows=int(sum(sizes[i] for i in own)),
            )
            for own in groups
        ]

    def check(self, n_rows: int | None = None) -> None:
        """Refuse a file that is no longer what it was."""
        try:
            now = _stamp(self.path)
        except OSError:
            raise InputError(
                f"'{self.name}' disappeared while the table was read; nothing was fitted or "
                "written."
            ) from None
        same_rows = n_rows is None or self.n_rows in (None, n_rows)
        if now != self.stamp or not same_rows:
            raise InputError(
                f"'{self.name}' was changed while the table was read; nothing was fitted or "
                "written. Run again when it is complete."
            )
        if n_rows is not None:
            self.n_rows = n_rows


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def find_files(
    paths: Iterable[str | os.PathLike[str]], options: ReadOptions | None = None
) -> list[TableFile]:
    """The files of a table, in a fixed order: files, folders with all below, or patterns.

    Folders named ``column=value`` give their files that column. In folders, names that begin with
    . or _ are passed over, as are files that end in none of the usual ways.
    """
    options = options or ReadOptions()
    found: dict[Path, dict[str, str | None]] = {}
    for given in paths:
        root, matches = _expanded(given)
        for path in matches:
            for file in _inside(path, options) if path.is_dir() else [path]:
                found.setdefault(file, _partition_values(file.relative_to(root)))
    named = options if len(found) == 1 else replace(options, name=None)
    files = [TableFile(path, values, named) for path, values in found.items()]
    names = {tuple(file.values) for file in files}
    if len(names) > 1:
        odd = next(f for f in files if tuple(f.values) != tuple(files[0].values))
        raise InputError(
            f"'{odd.path}' lies in folders of other columns than '{files[0].path}'; all files of "
            "a table must be in folders named alike."
        )
    return files


def _expanded(given: str | os.PathLike[str]) -> tuple[Path, list[Path]]:
    """(folder below which names of folders count, files and folders meant)."""
    path = Path(given)
    if path.exists() or not glob.has_magic(str(given)):
        return (path if path.is_dir() else path.parent), [path]
    found = sorted(glob.glob(str(given), recursive=True))
    if not found:
        raise InputError(f"No file matches '{given}'; check the pattern and the folder.")
    plain = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts)
    return Path(*plain), [Path(name) for name in found]


def _inside(folder: Path, options: ReadOptions) -> list[Path]:
    """The tables in a folder and below; not the lists to review that lie beside models."""
    endings = tuple(ending for ending, kind in FORMATS.items() if kind in _IN_FOLDERS)
    known = (*endings, *(a + b for a in endings for b in COMPRESSIONS))
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and (options.format is not None or path.name.lower().endswith(known))
        and not path.name.endswith((".review.csv", ".json"))
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise InputError(f"The folder '{folder}' holds no table; its files would end in .parquet, "
                         ".csv or the like.")  # fmt: skip
    return files


def _partition_values(path: Path) -> dict[str, str | None]:
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, value in pairs}


@dataclass
class FileSource(LocalSource):
    """A table in files; one file at a time is open, a few batches are held.

    ``schema`` holds types that the columns of all files fit; ``name`` is for messages.
    """

    files: list[TableFile]
    schema: Any
    name: str = "table"
    n_threads: int = 1
    seen: Callable[[int], None] | None = None
    batch_rows: int = BATCH_ROWS
    floats: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        paths: Iterable[str | os.PathLike[str]],
        options: ReadOptions | None = None,
        **settings: Any,
    ) -> FileSource:
        """Find the files and settle the types of their columns."""
        given = list(paths)
        files = find_files(given, options)
        schema = _settled_schema([(f.name, f.schema()) for f in files], _partition_types(files))
        more = f" and {len(given) - 1} more" if len(given) > 1 else ""
        name = options.name if options and options.name else f"{given[0]}{more}"
        return cls(files, schema, name, **settings)

    def one_by_one(self) -> list[FileSource]:
        """Each file as a source of its own, in the types of all."""
        return [replace(self, files=[file], name=file.name) for file in self.files]

    def select(self, columns: Sequence[str], floats: Sequence[str] = ()) -> FileSource:
        """``floats`` are columns of text to be read as numbers wherever all of their cells are."""
        chosen = pa.schema([self.schema.field(name) for name in columns])
        return replace(self, schema=chosen, floats=tuple(floats))

    @property
    def part_names(self) -> list[str]:
        """Files by their number."""
        return [file.name for file in self.files]

    @property
    def untyped(self) -> bool:
        """Whether some file has no types: cells are text whose types are still to be found."""
        return any(file.kind in {"csv", "tsv"} for file in self.files)

    @property
    def n_rows(self) -> int | None:
        """Rows of all files, once they were visited."""
        counts = [file.n_rows for file in self.files]
        return None if None in counts else sum(n for n in counts if n is not None)

    def batches(self) -> Iterator[Batch]:
        for part, file in enumerate(self.files):
            file.check()
            own = [name for name in self.schema.names if name not in file.values]
            done = 0
            for table in file.reader.batches(
                own or file.reader.schema().names[:1],
                self.batch_rows,
                floats=self.floats,
                row_groups=file.row_groups,
            ):
                first = file.first_row + done
                yield Batch(self._typed(table, file), file.name, first, part)
                done += table.num_rows
            file.check(done)

    def _typed(self, table: Any, file: TableFile) -> Any:
        """The batch in the types of the schema, with the columns that its folders name."""
        with told(file.reader.source):
            table = plain_types(table)
        columns = {}
        for name, kind in zip(self.schema.names, self.schema.types, strict=True):
            if name in file.values:
                value = pa.scalar(file.values[name], pa.string()).cast(kind)
                columns[name] = pa.repeat(value, table.num_rows)
            else:
                cells = table.column(name)
                same = cells.type == kind or name in self.floats
                columns[name] = cells if same else cells.cast(kind, safe=False)
        return pa.RecordBatch.from_pydict(columns)


def _partition_types(files: Sequence[TableFile]) -> dict[str, Any]:
    """Types of the columns that folders name: whole numbers where all values are, else text."""
    types = {}
    for name in files[0].values if files else ():
        values = [file.values[name] for file in files]
        whole = all(v is None or (v.lstrip("-").isdigit() and len(v) < 19) for v in values)
        types[name] = pa.int64() if whole else pa.string()
    return types
