"""Files -> pyarrow tables; whole (to fit) or batch by batch (to score)."""

from __future__ import annotations

import io
import itertools
import json
import os
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any
from xml.parsers import expat

import numpy as np
from scipy import sparse

from pnuauc._utils.extras import need
from pnuauc._utils.show import few
from pnuauc.exceptions import InputError, MissingExtraError
from pnuauc.io.cells import as_typed, is_text, pa, tidy
from pnuauc.io.formats import (
    FORMATS,
    CsvReader,
    ReadOptions,
    Source,
    detect_format,
    find_source,
    header_place,
    told,
)
from pnuauc.io.frames import array_of, as_table, check_names, plain_types

__all__ = [
    "BATCH_ROWS",
    "FORMATS",
    "MAX_FEATURES",
    "ExcelReader",
    "JsonReader",
    "LibsvmReader",
    "ReadOptions",
    "as_table",
    "check_names",
    "column_names",
    "detect_format",
    "iter_batches",
    "read_cells",
    "read_schema",
    "read_table",
    "workbook_rows",
]

# Cells of an Excel workbook, with bounds: what a file of its size may unpack to, and no DTD.


#: A workbook may unpack to this many bytes, plus this many times its own size.
_FREE_BYTES = 32 * 2**20
_MOST_TIMES = 100
#: Tags of a part that is held as objects, unlike sheets and shared strings; characters of a cell.
_MOST_TAGS = 200_000
_MOST_CHARACTERS = 32_767
#: Rows and columns that a sheet can have.
_MAX_ROWS = 2**20
_MAX_COLUMNS = 2**14
#: Cells, empty ones included, that any workbook may have besides one for each unpacked byte.
_FREE_CELLS = 1_000_000
_PIECE = 4096
_MOST_BEFORE_ROOT = 16 * _PIECE


def workbook_rows(content: bytes, sheet: str | None, name: str) -> Iterator[tuple[Any, ...]]:
    """The values of each row of one sheet, the first if none is named; None for empty cells."""
    try:
        openpyxl = need("openpyxl", "excel")
    except MissingExtraError as error:
        raise MissingExtraError(f"{error} Or save the sheet as CSV.") from error
    try:
        unpacked = _checked_size(content, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and the like
            book = openpyxl.load_workbook(
                io.BytesIO(content), read_only=True, data_only=True, keep_links=False
            )
            found = _sheet(book, sheet, name)
            found.reset_dimensions()  # a claim of the file: cells beyond it would be lost
            most = _FREE_CELLS + unpacked, _FREE_BYTES + _MOST_TIMES * len(content)
            yield from _bounded(found.iter_rows(values_only=True), *most, name)
    except InputError:
        raise
    except Exception as error:  # the parser raises whatever its XML makes it raise
        raise InputError(
            f"'{name}' cannot be read as Excel ({type(error).__name__}); is it damaged or misnamed?"
        ) from error


def _checked_size(content: bytes, name: str) -> int:
    """Bytes that the archive unpacks to; an archive never gives more than it declares."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > _FREE_BYTES + _MOST_TIMES * len(content):
            raise InputError(
                f"'{name}' unpacks to {unpacked / 2**20:,.0f} MB, more than {_MOST_TIMES} times "
                "its size, which no sheet of values does; save the sheet as CSV if it is yours."
            )
        for member in members:
            root = _root(archive, member, name)
            streamed = root in {"worksheet", "sst"} and member.filename != "xl/styles.xml"
            if root and not streamed and archive.read(member).count(b"<") > _MOST_TAGS:
                raise InputError(
                    f"'{name}' has more than {_MOST_TAGS:,} tags in {member.filename!r}, more than "
                    "any workbook of values; save the sheet as CSV if it is yours."
                )
    return unpacked


class _RootReached(Exception):
    pass


def _root(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> str:
    """The name of a part's root element; none of a part that is not XML, whatever its name.

    A document type comes before the root element, and only there can entities be declared: it is
    refused in every part, since a workbook may give its parts any names.
    """
    found = []

    def refuse(*_: Any) -> None:
        raise InputError(f"'{name}' declares a document type, which no workbook does.")

    def stop(root: str, _: Any) -> None:
        found.append(root.rpartition(":")[2])
        raise _RootReached

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    with archive.open(member) as stream:
        for _ in range(0, _MOST_BEFORE_ROOT, _PIECE):
            try:
                parser.Parse(stream.read(_PIECE))
            except (_RootReached, expat.ExpatError):
                return "".join(found)  # a picture, or XML that no parser takes
    if not member.file_size:
        return ""
    raise InputError(f"'{name}' cannot be read as Excel ({member.filename!r} holds no data).")


def _sheet(book: Any, wanted: str | None, name: str) -> Any:
    names = book.sheetnames
    if wanted is None:
        return book[names[0]]
    if wanted not in names:
        shown = few(names, 10)
        raise InputError(f"'{name}' has no sheet {wanted!r}; it has {shown}.")
    return book[wanted]


def _bounded(
    rows: Iterator[Any], most_cells: int, most_text: int, name: str
) -> Iterator[tuple[Any, ...]]:
    """The rows, as long as the rectangle of those with cells, and their text, is not too large.

    One long shared string may stand in many cells.
    """
    width = filled = text = 0
    for k, row in enumerate(rows, start=1):
        cells = tuple(row)
        filled += bool(cells)
        width = max(width, len(cells))
        if k > _MAX_ROWS or width > _MAX_COLUMNS or filled * width > most_cells:
            raise InputError(
                f"'{name}' claims {k:,} rows and {width:,} columns, most of them empty or more "
                "than a sheet can have; save the sheet as CSV if it is yours."
            )
        lengths = [len(cell) for cell in cells if isinstance(cell, str)]
        text += sum(lengths)
        if max(lengths, default=0) > _MOST_CHARACTERS or text > most_text:
            raise InputError(
                f"'{name}' has more text in row {k:,} than a sheet can have, a cell at most "
                f"{_MOST_CHARACTERS:,} characters; save the sheet as CSV if it is yours."
            )
        yield cells


# LIBSVM text -> CSR matrices, block by block; errors name the line.


#: Largest index that is read: every feature takes some bytes in the model, used or not.
MAX_FEATURES = 2**22
_BLOCK_BYTES = 8 * 2**20
_SHAPE = "each line reads: label index:value index:value ..., indices from 1"


class LibsvmReader:
    """(CSR, labels) of a LIBSVM file; indices from 1, as the format has them."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def names(self) -> list[str]:
        return []

    def table(self) -> tuple[Any, Any]:
        blocks = list(self.blocks(65_536, None))
        width = max(X.shape[1] for X, _ in blocks)
        for X, _ in blocks:
            X.resize((X.shape[0], width))
        stacked = sparse.vstack([X for X, _ in blocks], format="csr")
        return stacked, np.concatenate([y for _, y in blocks])

    def blocks(self, rows: int, n_features: int | None) -> Iterator[tuple[Any, Any]]:
        """Blocks of ``rows`` lines; ``n_features`` is the width, None takes what the block has."""
        first_line, found = 1, False
        for lines in self._lines(rows):
            X, y = self._parse(lines, first_line, n_features)
            first_line += len(lines)
            if X.shape[0]:
                found = True
                yield X, y
        if not found:
            raise InputError(f"'{self.source.name}' has no rows.")

    def _lines(self, rows: int) -> Iterator[list[bytes]]:
        with told(self.source), self.source.open() as raw:
            rest, done = b"", False
            while not done:
                chunk = raw.read(_BLOCK_BYTES)
                done = not chunk
                lines = (rest + chunk).split(b"\n")
                rest = b"" if done else lines.pop()
                for start in range(0, len(lines), rows):
                    yield lines[start : start + rows]

    def _parse(
        self, lines: list[bytes], first_line: int, n_features: int | None
    ) -> tuple[Any, Any]:
        name = self.source.name
        try:
            X, y = _load(lines)
        except (ValueError, OverflowError, MemoryError) as error:
            k = _first_bad(lines)
            raise InputError(
                f"'{name}' is not LIBSVM text in line {first_line + k} ({_reason(lines[k], error)})"
                f"; {_SHAPE}."
            ) from error
        limit = MAX_FEATURES if n_features is None else n_features
        bad = np.flatnonzero((X.indices >= limit) | ~np.isfinite(X.data))
        if len(bad) or not np.isfinite(y).all():
            places = [k for k, line in enumerate(lines) if line.split(b"#")[0].strip()]
            if not len(bad):
                line = first_line + places[int(np.flatnonzero(~np.isfinite(y))[0])]
                raise InputError(f"'{name}' has a label that is not a number in line {line}.")
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            line, index = first_line + places[row], int(X.indices[bad[0]]) + 1
            if index <= limit:
                raise InputError(
                    f"'{name}' holds {X.data[bad[0]]} in line {line}, feature {index}; leave the "
                    "feature out or write a number."
                )
            needs = "the model has" if n_features is not None else "features may number"
            raise InputError(f"'{name}' has feature {index:,} in line {line}; {needs} {limit:,}.")
        X.resize((X.shape[0], n_features if n_features is not None else X.shape[1]))
        return X, y


def _load(lines: list[bytes]) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    text = b"\n".join(lines)
    if not text.strip():
        return sparse.csr_matrix((0, 0)), np.empty(0)
    X, y = load_svmlight_file(BytesIO(text), zero_based=False)
    return X, y


def _fails(lines: list[bytes]) -> bool:
    try:
        _load(lines)
    except (ValueError, OverflowError, MemoryError):
        return True
    return False


def _first_bad(lines: list[bytes]) -> int:
    """The first line that cannot be read: the place where longer and longer beginnings fail."""
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _fails(lines[:middle]):
            bad = middle
        else:
            good = middle
    return bad - 1


def _reason(line: bytes, error: Exception) -> str:
    shown = line[:60].decode("utf-8", errors="replace").strip()
    text = str(error).strip().splitlines()
    return f"{shown!r}: {text[0]}" if text else repr(shown)


# JSON lines and Excel: files of rows, each a list of Python values -> arrow columns.


_BLOCK_CHARACTERS = 2**20


class _RowReader:
    """What both share: rows as dictionaries or lists are gathered into record batches."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def names(self) -> list[str]:
        raise NotImplementedError

    def _rows(self) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def table(self) -> Any:
        return pa.Table.from_batches([_batch(list(self._rows()), self.names())])

    def batches(
        self, columns: Sequence[str] | None, floats: Sequence[str], rows: int
    ) -> Iterator[Any]:
        names = self.names() if columns is None else list(columns)
        waiting = self._rows()
        while block := list(itertools.islice(waiting, rows)):
            yield _batch(block, names)


def _batch(rows: list[dict[str, Any]], names: Sequence[str]) -> Any:
    arrays = [array_of([row.get(name) for row in rows], name) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


class JsonReader(_RowReader):
    """One JSON object a line, or one list of objects."""

    def names(self) -> list[str]:
        """Every key that occurs, in the order of its first appearance."""
        found: dict[str, None] = {}
        for row in self._rows():
            found.update(dict.fromkeys(row))
        return list(found)

    def _rows(self) -> Iterator[dict[str, Any]]:
        with told(self.source):
            text = self._lines()
            first = next(text, (1, ""))
            if first[1].lstrip().startswith("["):
                whole = "".join([first[1], *(line for _, line in text)])
                items: Any = enumerate(self._parsed(1, whole), start=1)
                where = "row"
            else:
                lines = ((k, line) for k, line in itertools.chain([first], text) if line.strip())
                items = ((k, self._parsed(k, line)) for k, line in lines)
                where = "line"
            for k, item in items:
                if not isinstance(item, dict):
                    raise InputError(
                        f"'{self.source.name}' holds a {type(item).__name__} in {where} {k}; each "
                        'must be one object such as {"a": 1, "b": "x"}.'
                    )
                yield item

    def _parsed(self, line: int, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", type(error).__name__)
            raise InputError(
                f"'{self.source.name}' is not JSON in line {line} ({reason}); each line must be "
                'one object such as {"a": 1, "b": "x"}.'
            ) from error

    def _lines(self) -> Iterator[tuple[int, str]]:
        import codecs

        encoding = self.source.encoding(self.source.head(1000))
        encoding = "utf-8-sig" if encoding == "utf8" else encoding
        decode = codecs.getincrementaldecoder(encoding)().decode
        number = 1
        waiting: list[str] = []  # pieces of a line that is not over yet, joined once
        with self.source.open() as stream:
            while chunk := stream.read(_BLOCK_CHARACTERS):
                *lines, rest = decode(bytes(chunk)).split("\n")
                for line in lines:
                    yield number, "".join([*waiting, line, "\n"])
                    number += 1
                    waiting.clear()
                waiting.append(rest)
        yield number, "".join([*waiting, decode(b"", final=True)])


class ExcelReader(_RowReader):
    """The rows below the first of one sheet of a workbook."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        first = list(itertools.islice(self._cells(), 50))
        full = [k for k, row in enumerate(first) if any(v is not None for v in row)]
        place = header_place(
            [first[k] for k in full], source.options.header, source.name, [k + 1 for k in full]
        )
        self._header = full[place] if place is not None else 0
        header = first[self._header] if first else ()
        names = ["" if value is None else str(value) for value in header]
        while names and not names[-1]:
            names.pop()
        if not names:
            raise InputError(f"'{source.name}' is empty: it has no header and no rows.")
        check_names(names, source.name)
        self._names = names

    def names(self) -> list[str]:
        return list(self._names)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for cells in itertools.islice(self._cells(), self._header + 1, None):
            if any(value is not None for value in cells):
                yield dict(zip(self._names, cells, strict=False))

    def _cells(self) -> Iterator[tuple[Any, ...]]:
        with told(self.source), self.source.open() as stream:
            content = bytes(stream.read())
        yield from workbook_rows(content, self.source.options.sheet, self.source.name)


# Files -> pyarrow tables; whole (to fit) or batch by batch (to score).


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
        """Known only after reading."""

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
