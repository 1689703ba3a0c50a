"""Files -> pyarrow tables; whole (to fit) or batch by batch (to score)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from pnuauc._extras import need
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa
from pnuauc.io._cells import as_typed, is_text, tidy
from pnuauc.io._formats import FORMATS, ReadOptions, Source, detect_format, find_source, told
from pnuauc.io._frames import as_table, check_names, plain_types
from pnuauc.io._libsvm import LibsvmReader
from pnuauc.io._row_files import ExcelReader, JsonReader
from pnuauc.io._text_files import CsvReader

__all__ = [
    "BATCH_ROWS",
    "FORMATS",
    "ReadOptions",
    "as_table",
    "check_names",
    "column_names",
    "detect_format",
    "iter_batches",
    "read_cells",
    "read_schema",
    "read_table",
]

#: Rows per batch when a file is streamed: 20 float64 columns take 10 MB.
BATCH_ROWS = 65_536


class ParquetReader:
    """Parquet; what it says is validated, as its text may be no text."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def names(self) -> list[str]:
        return list(self.schema().names)

    def schema(self) -> Any:
        with told(self.source), self.source.open_seekable() as stream:
            return need("pyarrow.parquet").read_schema(stream)

    def n_rows(self) -> int:
        with told(self.source), self.source.open_seekable() as stream:
            return int(need("pyarrow.parquet").read_metadata(stream).num_rows)

    def table(self) -> Any:
        with told(self.source), self.source.open_seekable() as stream:
            table = need("pyarrow.parquet").ParquetFile(stream).read()
            table.validate(full=True)
            return table

    def group_rows(self) -> list[int]:
        """Rows of each row group."""
        with told(self.source), self.source.open_seekable() as stream:
            found = need("pyarrow.parquet").read_metadata(stream)
            return [int(found.row_group(i).num_rows) for i in range(found.num_row_groups)]

    def batches(
        self,
        columns: Sequence[str] | None,
        floats: Sequence[str],
        rows: int,
        row_groups: Sequence[int] | None = None,
    ) -> Iterator[Any]:
        parquet = need("pyarrow.parquet")
        with (
            told(self.source),
            self.source.open_seekable() as stream,
            parquet.ParquetFile(stream, pre_buffer=False) as file,
        ):
            for batch in file.iter_batches(rows, row_groups, columns):
                batch.validate(full=True)
                yield batch


class ArrowReader:
    """Arrow's file format (Feather) and stream format.

    Nothing in such a file is checked when it is opened, and wrong offsets or indices make arrow
    read where nothing is: so every batch is validated in full before it is touched.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def names(self) -> list[str]:
        return list(self.schema().names)

    def schema(self) -> Any:
        with told(self.source), self.source.open_seekable() as stream:
            return _open_arrow(stream).schema

    def n_rows(self) -> None:
        """Only reading tells."""

    def table(self) -> Any:
        with told(self.source), self.source.open_seekable() as stream:
            reader = _open_arrow(stream)
            batches = []
            for batch in _arrow_batches(reader):
                batch.validate(full=True)
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)

    def batches(
        self, columns: Sequence[str] | None, floats: Sequence[str], rows: int
    ) -> Iterator[Any]:
        with told(self.source), self.source.open_seekable() as stream:
            for batch in _arrow_batches(_open_arrow(stream)):
                batch.validate(full=True)
                chosen = batch if columns is None else batch.select(list(columns))
                for start in range(0, chosen.num_rows, rows):
                    yield chosen.slice(start, rows)


def _open_arrow(source: Any) -> Any:
    """A reader of the file format (Feather) or of the stream format."""
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _arrow_batches(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)
    else:
        yield from reader


#: One class a format: names(), table() and batches(columns, floats, rows).
_READERS: dict[str, Any] = {
    "csv": CsvReader,
    "tsv": CsvReader,
    "jsonl": JsonReader,
    "excel": ExcelReader,
    "parquet": ParquetReader,
    "arrow": ArrowReader,
}


def read_cells(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Any:
    """Read a whole file: a ``pyarrow.Table``, or for LIBSVM a pair (CSR matrix, labels).

    Cells of CSV files come as text, exactly as they are written.
    """
    source = find_source(path, options)
    if source.kind == "libsvm":
        return LibsvmReader(source).table()
    table = _READERS[source.kind](source).table()
    with told(source):  # names are decoded only now
        names = table.column_names
    check_names(names, source.name)
    if table.num_rows == 0:
        raise InputError(f"'{source.name}' has a header but no rows.")
    with told(source):
        return plain_types(table)


def read_table(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Any:
    """Read a whole file: a ``pyarrow.Table``, or for LIBSVM a pair (CSR matrix, labels).

    Columns of CSV files that hold plain numbers, true and false or ISO dates get these types;
    others stay text (a code such as 007 keeps its zeros), with empty cells missing.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "small.csv"
    ...     _ = file.write_text("a;y\\n1;yes\\n2;\\n")
    ...     read_table(file).to_pydict()
    {'a': [1, 2], 'y': ['yes', None]}
    """
    table = read_cells(path, options)
    if isinstance(table, tuple) or detect_format(path, options) not in {"csv", "tsv", "zip"}:
        return table
    for j, name in enumerate(table.column_names):
        if is_text(table.schema.field(j).type):
            table = table.set_column(j, name, as_typed(tidy(table.column(j))))
    return table


def column_names(path: str | os.PathLike[str], options: ReadOptions | None = None) -> list[str]:
    """Names of the columns without reading the rows; LIBSVM has none."""
    source = find_source(path, options)
    if source.kind == "libsvm":
        return []
    names = _READERS[source.kind](source).names()
    check_names(names, source.name)
    return list(names)


def read_schema(
    path: str | os.PathLike[str], options: ReadOptions | None = None
) -> tuple[Any, int | None]:
    """(names and types of the columns, number of rows if the file says it), rows unread.

    CSV has no types: text throughout. JSON lines and Excel have to be read for them.
    """
    source = find_source(path, options)
    if source.kind in {"csv", "tsv"}:
        return pa.schema([(name, pa.string()) for name in column_names(path, options)]), None
    if source.kind not in {"parquet", "arrow"}:
        return read_cells(path, options).schema, None
    reader = _READERS[source.kind](source)
    schema = reader.schema()
    check_names(schema.names, source.name)
    with told(source):
        return plain_types(schema.empty_table()).schema, reader.n_rows()


def iter_batches(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    options: ReadOptions | None = None,
    *,
    floats: Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    n_features: int | None = None,
    row_groups: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Batches of a file in order: ``pyarrow.RecordBatch``, or (CSR, labels) for LIBSVM.

    Parameters
    ----------
    columns : names to read; None reads all
    floats : names of CSV columns to parse as float64 where all cells allow it; cells of the
        others come as text, exactly as they are written
    n_features : width of the CSR blocks of LIBSVM
    row_groups : numbers of the row groups to read, of Parquet only; None reads all
    """
    source = find_source(path, options)
    if source.kind == "libsvm":
        yield from LibsvmReader(source).blocks(batch_rows, n_features)
        return
    reader = _READERS[source.kind](source)
    check_names(reader.names() if source.kind in {"csv", "tsv"} else (), source.name)
    some = {} if row_groups is None else {"row_groups": row_groups}
    for batch in reader.batches(columns, floats, batch_rows, **some):
        with told(source):
            plain = plain_types(batch)
        yield plain
