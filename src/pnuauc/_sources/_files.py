"""A table in files: any number of them, in folders, read batch by batch."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from pnuauc._sources._port import BATCH_ROWS, Batch, LocalSource
from pnuauc._sources._types import settled_schema
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa
from pnuauc.io._formats import COMPRESSIONS, FORMATS, ReadOptions, find_source
from pnuauc.io._frames import plain_types
from pnuauc.io._tables import ParquetReader, iter_batches, read_cells, read_schema

__all__ = ["FileSource", "find_files"]

#: How a folder is named whose rows lack the value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
#: Formats whose types are known only when all rows were read: these files are read whole.
_WHOLE = {"jsonl", "excel"}
#: Formats that are looked for in folders.
_IN_FOLDERS = {"csv", "tsv", "parquet", "arrow", "jsonl"}


@dataclass
class TableFile:
    """One file of a table.

    Attributes
    ----------
    path : Path
    values : dict of column name -> text, from folders named column=value
    kind : str, the format
    n_rows : int or None
        As counted in the first visit.
    stamp : (size, time of the last change), by which changes are noticed
    row_groups : numbers of the row groups that belong here, of Parquet; None: all
    first_row : int
        Rows of the file before these.
    """

    path: Path
    values: dict[str, str | None]
    options: ReadOptions
    kind: str = ""
    n_rows: int | None = None
    stamp: tuple[int, int] = (0, 0)
    row_groups: tuple[int, ...] | None = None
    first_row: int = 0
    _schema: Any = None

    def __post_init__(self) -> None:
        self.kind = self.kind or find_source(self.path, self.options).kind
        if self.stamp == (0, 0):
            self.stamp = _stamp(self.path)
        if self.kind == "libsvm":
            raise InputError(f"'{self.path}' is a LIBSVM file; these are read one at a time.")

    def schema(self) -> Any:
        """Names and types in the file; text throughout where the format has no types."""
        if self._schema is None:
            self._schema, self.n_rows = read_schema(self.path, self.options)
        return self._schema

    def tables(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        """Record batches of the named columns."""
        if self.kind in _WHOLE:
            whole = read_cells(self.path, self.options).select(list(columns))
            yield from whole.combine_chunks().to_batches(batch_rows)
        else:
            yield from iter_batches(
                self.path,
                columns,
                self.options,
                batch_rows=batch_rows,
                row_groups=self.row_groups,
            )

    def pieces(self, rows: int) -> list[TableFile]:
        """The file in pieces of about so many rows, where its format can be read in pieces."""
        if self.kind != "parquet" or self.n_rows is None or self.n_rows <= rows:
            return [self]
        sizes = ParquetReader(find_source(self.path, self.options)).group_rows()
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
                f"'{self.path}' disappeared while the table was read; nothing was fitted or "
                "written."
            ) from None
        same_rows = n_rows is None or self.n_rows in (None, n_rows)
        if now != self.stamp or not same_rows:
            raise InputError(
                f"'{self.path}' was changed while the table was read; nothing was fitted or "
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
    files = [TableFile(p, values, replace(options, name=str(p))) for p, values in found.items()]
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

    Attributes
    ----------
    files : list of TableFile
    schema : pyarrow.Schema
        Types that the columns of all files fit; made by :meth:`open`.
    name : str
        What messages call the table.
    """

    files: list[TableFile]
    schema: Any
    name: str = "table"
    n_threads: int = 1
    seen: Callable[[int], None] | None = None
    batch_rows: int = BATCH_ROWS

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
        partitions = _partition_types(files)
        schema = settled_schema([(str(f.path), f.schema()) for f in files], partitions)
        more = f" and {len(given) - 1} more" if len(given) > 1 else ""
        return cls(files, schema, f"{given[0]}{more}", **settings)

    def one_by_one(self) -> list[FileSource]:
        """Each file as a source of its own, in the types of all."""
        return [replace(self, files=[file], name=str(file.path)) for file in self.files]

    def select(self, columns: Sequence[str]) -> FileSource:
        chosen = pa.schema([self.schema.field(name) for name in columns])
        return replace(self, schema=chosen)

    @property
    def part_names(self) -> list[str]:
        """Files by their number."""
        return [str(file.path) for file in self.files]

    @property
    def untyped(self) -> bool:
        """Whether some file says nothing of types: cells are text, and what they say is found."""
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
            for table in file.tables(own or file.schema().names[:1], self.batch_rows):
                first = file.first_row + done
                yield Batch(self._typed(table, file), str(file.path), first, part)
                done += table.num_rows
            file.check(done)

    def _typed(self, table: Any, file: TableFile) -> Any:
        """The batch in the types of the schema, with the columns that its folders name."""
        table = plain_types(table)
        columns = []
        for name, kind in zip(self.schema.names, self.schema.types, strict=True):
            if name in file.values:
                value = pa.scalar(file.values[name], pa.string()).cast(kind)
                columns.append(pa.repeat(value, table.num_rows))
            else:
                cells = table.column(name)
                columns.append(cells if cells.type == kind else cells.cast(kind, safe=False))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _partition_types(files: Sequence[TableFile]) -> dict[str, Any]:
    """Types of the columns that folders name: whole numbers where all values are, else text."""
    types = {}
    for name in files[0].values if files else ():
        values = [file.values[name] for file in files]
        whole = all(v is None or (v.lstrip("-").isdigit() and len(v) < 19) for v in values)
        types[name] = pa.int64() if whole else pa.string()
    return types
