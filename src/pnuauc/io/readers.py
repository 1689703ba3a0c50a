"""Files -> pyarrow tables; whole (to fit) or batch by batch (to score)."""

from __future__ import annotations

import contextlib
import csv as csv_module
import io
import itertools
import json
import os
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from xml.parsers import expat

import numpy as np
from scipy import sparse

from pnuauc._utils.extras import need
from pnuauc._utils.show import few
from pnuauc.exceptions import InputError, MissingExtraError
from pnuauc.io.cells import MISSING_WORDS, as_typed, is_text, pa, tidy
from pnuauc.io.formats import (
    HEAD_BYTES,
    ReadOptions,
    Source,
    detect_format,
    find_source,
    told,
    warn_of_reading,
)
from pnuauc.io.frames import array_of, check_names, joint_type, plain_types

#: Rows per batch when a file is streamed: 20 float64 columns take 10 MB.
BATCH_ROWS = 65_536


class Reader:
    """A file as record batches; errors are sentences about it.

    Attributes
    ----------
    source : the file
    n_rows : int or None
        Where the file says it.
    """

    n_rows: int | None = None

    def __init__(self, source: Source) -> None:
        self.source = source

    def schema(self) -> Any:
        """Names and types of the columns."""
        raise NotImplementedError

    def batches(
        self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS, **_: Any
    ) -> Iterator[Any]:
        """Record batches of the named columns, all if None, of at most ``rows`` rows."""
        raise NotImplementedError

    def table(self) -> Any:
        """All rows."""
        return pa.Table.from_batches(list(self.batches()), self.schema())


# CSV and TSV. Such a file has no types, and guessing them loses what is written: 007 becomes 7. So
# every cell comes as text, and what it says is settled per column (:mod:`pnuauc.io.cells`).


#: Bytes of text parsed at a time.
_BLOCK_BYTES = 8 * 2**20
#: Longest header.
_MAX_HEADER = 2**26
_DELIMITERS = ",;\t|"
#: Rows looked at to find delimiter and header.
_HEAD_ROWS = 50


class CsvReader(Reader):
    """Cells as they are written; only what a model knows as plain numbers is parsed."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        with told(source):
            head = source.head()
            self.encoding = source.encoding(head)
            self.delimiter = self._delimiter(self._decoded(head))
            self._names, self._above = self._header()

    def schema(self) -> Any:
        return pa.schema([(name, pa.string()) for name in self._names])

    def _decoded(self, head: bytes) -> str:
        return head.decode(self.encoding, errors="replace").removeprefix("\ufeff")

    def _delimiter(self, text: str) -> str:
        asked = self.source.options.delimiter
        delimiter = asked or ("\t" if self.source.kind == "tsv" else _sniff(text))
        if len(delimiter) != 1:
            raise InputError(f"The delimiter must be one character, got {delimiter!r}.")
        return delimiter

    def _header(self) -> tuple[list[str], int]:
        """(names, lines above them)."""
        for size in (HEAD_BYTES, _MAX_HEADER):
            head = self.source.head(size)
            rows, starts = self._first_rows(self._decoded(head))
            place = _header_place(rows, self.source, starts)
            ends = len(head) < size
            if place is None and ends:
                raise InputError(f"'{self.source.name}' is empty: it has no header and no rows.")
            # a row is whole if something follows it, or if the file ends with it
            if place is not None and (ends or place + 1 < len(rows)):
                return rows[place], starts[place] - 1
        raise InputError(f"'{self.source.name}' has no line end: is it a table?")

    def _first_rows(self, text: str) -> tuple[list[list[str]], list[int]]:
        """Rows that are not empty, and the line in which each begins, from 1."""
        # newline="": a line may end with a carriage return alone
        reader = csv_module.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        rows: list[list[str]] = []
        starts: list[int] = []
        line = 1
        with contextlib.suppress(csv_module.Error):
            for row in itertools.islice(reader, _HEAD_ROWS):
                if row:
                    rows.append(row)
                    starts.append(line)
                line = reader.line_num + 1
        return rows, starts

    def batches(
        self,
        columns: Sequence[str] | None = None,
        rows: int = BATCH_ROWS,
        floats: Sequence[str] = (),
        **_: Any,
    ) -> Iterator[Any]:
        """``floats`` are parsed as float64 as long as all their cells allow it."""
        chosen = self._names if columns is None else list(columns)
        done = 0
        with told(self.source):
            try:
                for batch in self._stream(chosen, floats, rows):
                    yield batch
                    done += batch.num_rows
                return
            except pa.ArrowInvalid as error:
                if not floats or "conversion error" not in str(error):
                    raise
            # some cell is no plain number: the rest is read as text, whose reader knows more ways
            # to write numbers and names the cell
            for batch in self._stream(chosen, (), rows):
                if done >= batch.num_rows:
                    done -= batch.num_rows
                    continue
                yield batch.slice(done)
                done = 0

    def _stream(self, columns: Sequence[str], floats: Sequence[str], rows: int) -> Iterator[Any]:
        csv = need("pyarrow.csv")
        types = dict.fromkeys(columns, pa.string()) | dict.fromkeys(floats, pa.float64())
        with (
            self.source.open() as stream,
            csv.open_csv(
                stream,
                csv.ReadOptions(
                    block_size=_BLOCK_BYTES, encoding=self.encoding, skip_rows=self._above
                ),
                csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(columns),
                    null_values=list(MISSING_WORDS),
                    strings_can_be_null=False,
                ),
            ) as reader,
        ):
            for batch in reader:
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)


def _sniff(text: str) -> str:
    """The delimiter that stands equally often in most lines; a comma if none does."""
    lines = [line for line in text.splitlines() if line]
    if len(lines) > 1 and len(text) >= HEAD_BYTES // 4:
        lines = lines[:-1]  # may be cut
    best, delimiter = (0, 0), ","
    for candidate in _DELIMITERS:
        counts = Counter(n for line in lines[:_HEAD_ROWS] if (n := line.count(candidate)))
        for n, n_lines in counts.items():
            if (n_lines, n) > best:
                best, delimiter = (n_lines, n), candidate
    return delimiter


def _header_place(
    rows: Sequence[Sequence[Any]], source: Source, numbers: Sequence[int]
) -> int | None:
    """Which of the first rows holds the names: the first that is not mostly empty.

    ``rows`` are not empty; ``numbers`` are theirs in the file, from 1.
    """
    asked = source.options.header
    if asked is not None:
        if asked not in numbers:
            raise InputError(f"'{source.name}' has no names in line {asked}; say another header.")
        return numbers.index(asked)
    if not rows:
        return None
    filled = [sum(cell not in (None, "") for cell in row) for row in rows]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    # half of the names may be missing, as in a header without that of the first column
    place = next((k for k, n in enumerate(filled) if 2 * n > width), 0)
    if place:
        warn_of_reading(
            f"'{source.name}': {place} line{'s' if place > 1 else ''} above the names in line "
            f"{numbers[place]} left out as a title; if the names are elsewhere, their line must be "
            "given.",
            "header",
        )
    return place


# Parquet, Feather, Arrow. Wrong offsets or indices make arrow read where nothing is, and text may
# be no text: every batch is validated in full before it is touched.


class ParquetReader(Reader):
    """Parquet, by its row groups."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        with told(source), source.open_seekable() as stream:
            found = need("pyarrow.parquet").read_metadata(stream)
            self.n_rows = int(found.num_rows)
            self.group_rows = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
            self._schema = found.schema.to_arrow_schema()

    def schema(self) -> Any:
        return self._schema

    def batches(
        self,
        columns: Sequence[str] | None = None,
        rows: int = BATCH_ROWS,
        row_groups: Sequence[int] | None = None,
        **_: Any,
    ) -> Iterator[Any]:
        """``row_groups`` are the numbers of those to read; None reads all."""
        parquet = need("pyarrow.parquet")
        with (
            told(self.source),
            self.source.open_seekable() as stream,
            parquet.ParquetFile(stream, pre_buffer=False) as file,
        ):
            for batch in file.iter_batches(rows, row_groups, columns):
                batch.validate(full=True)
                yield batch


class ArrowReader(Reader):
    """Arrow's file format (Feather) and stream format."""

    def schema(self) -> Any:
        with told(self.source), self.source.open_seekable() as stream:
            return _open_arrow(stream).schema

    def batches(
        self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS, **_: Any
    ) -> Iterator[Any]:
        with told(self.source), self.source.open_seekable() as stream:
            reader = _open_arrow(stream)
            if hasattr(reader, "num_record_batches"):
                reader = map(reader.get_batch, range(reader.num_record_batches))
            for batch in reader:
                batch.validate(full=True)
                chosen = batch if columns is None else batch.select(list(columns))
                for start in range(0, chosen.num_rows, rows):
                    yield chosen.slice(start, rows)


def _open_arrow(source: Any) -> Any:
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


# JSON lines and Excel: files of rows, each a dictionary of Python values.


class _RowReader(Reader):
    """What both share: a type for each column, gathered batch by batch; mixed ones are text."""

    def _rows(self) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def schema(self) -> Any:
        kinds: dict[str, Any] = {}
        self.n_rows = 0
        for block in _blocks(self._rows(), BATCH_ROWS):
            self.n_rows += len(block)
            for name in dict.fromkeys(itertools.chain.from_iterable(block)):
                kind = array_of([row.get(name) for row in block], name).type
                kinds[name] = joint_type(kinds.get(name, kind), kind) or pa.large_string()
        return pa.schema(list(kinds.items()))

    def batches(
        self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS, **_: Any
    ) -> Iterator[Any]:
        names = self.schema().names if columns is None else columns
        for block in _blocks(self._rows(), rows):
            yield _batch(block, names)

    def table(self) -> Any:
        rows = list(self._rows())
        names = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
        return pa.Table.from_batches([_batch(rows, names)])


def _batch(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> Any:
    arrays = [array_of([row.get(name) for row in rows], name) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _blocks(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while block := list(itertools.islice(rows, size)):
        yield block


_OBJECT = 'must be one object such as {"a": 1, "b": "x"}.'


class JsonReader(_RowReader):
    """One JSON object a line, or one list of objects; columns in the order of their first key."""

    def _rows(self) -> Iterator[dict[str, Any]]:
        with told(self.source):
            lines = self._lines()
            first = next(lines, (1, ""))
            lines = itertools.chain([first], lines)
            if first[1].lstrip().startswith("["):
                where, whole = "row", "".join(line for _, line in lines)
                items: Any = enumerate(self._parsed(1, whole), start=1)
            else:
                where, items = "line", ((k, self._parsed(k, t)) for k, t in lines if t.strip())
            for k, item in items:
                if not isinstance(item, dict):
                    kind = type(item).__name__
                    raise InputError(
                        f"'{self.source.name}' holds a {kind} in {where} {k}; each {_OBJECT}"
                    )
                yield item

    def _parsed(self, line: int, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", type(error).__name__)
            raise InputError(
                f"'{self.source.name}' is not JSON in line {line} ({reason}); each line {_OBJECT}"
            ) from error

    def _lines(self) -> Iterator[tuple[int, str]]:
        """(number, line); a file whose last letter is cut is an error."""
        encoding = self.source.encoding(self.source.head(1000))
        encoding = "utf-8-sig" if encoding == "utf8" else encoding
        with self.source.open() as stream:
            text = io.TextIOWrapper(io.BufferedReader(stream), encoding, newline="\n")
            yield from enumerate(text, start=1)


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
_BEFORE_ROOT = 2**16


class ExcelReader(_RowReader):
    """The rows below the names in one sheet of a workbook, within bounds of size and no DTD."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        first = list(itertools.islice(self._cells(), _HEAD_ROWS))
        full = [k for k, row in enumerate(first) if any(v is not None for v in row)]
        place = _header_place([first[k] for k in full], source, [k + 1 for k in full])
        self._header = full[place] if place is not None else 0
        names = ["" if v is None else str(v) for v in (first[self._header] if first else ())]
        while names and not names[-1]:
            names.pop()
        if not names:
            raise InputError(f"'{source.name}' is empty: it has no header and no rows.")
        self._names = names

    def _rows(self) -> Iterator[dict[str, Any]]:
        check_names(self._names, self.source.name)
        for cells in itertools.islice(self._cells(), self._header + 1, None):
            if any(value is not None for value in cells):
                yield dict(itertools.zip_longest(self._names, cells[: len(self._names)]))

    def _cells(self) -> Iterator[tuple[Any, ...]]:
        """The values of each row of the sheet; None for empty cells."""
        name = self.source.name
        with told(self.source), self.source.open() as stream:
            content = bytes(stream.read())
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
                sheet = self.source.options.sheet or book.sheetnames[0]
                if sheet not in book.sheetnames:
                    shown = few(book.sheetnames, 10)
                    raise InputError(f"'{name}' has no sheet {sheet!r}; it has {shown}.")
                book[sheet].reset_dimensions()  # a claim of the file: cells beyond would be lost
                most = _FREE_CELLS + unpacked, _FREE_BYTES + _MOST_TIMES * len(content)
                yield from _bounded(book[sheet].iter_rows(values_only=True), *most, name)
        except InputError:
            raise
        except Exception as error:  # the parser raises whatever its XML makes it raise
            kind = type(error).__name__
            raise InputError(
                f"'{name}' cannot be read as Excel ({kind}); is it damaged or misnamed?"
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
            with archive.open(member) as stream:
                root = _root(stream.read(_BEFORE_ROOT), member.filename, name)
            streamed = root in {"worksheet", "sst"} and member.filename != "xl/styles.xml"
            if root and not streamed and archive.read(member).count(b"<") > _MOST_TAGS:
                raise InputError(
                    f"'{name}' has more than {_MOST_TAGS:,} tags in {member.filename!r}, more than "
                    "any workbook of values; save the sheet as CSV if it is yours."
                )
    return unpacked


class _RootReached(Exception):
    pass


def _root(head: bytes, member: str, name: str) -> str:
    """The name of a part's root element; none of a part that is not XML, whatever its name.

    A document type comes before the root element, and only there can entities be declared: it is
    refused in every part, since a workbook may give its parts any names.
    """

    def refuse(*_: Any) -> None:
        raise InputError(f"'{name}' declares a document type, which no workbook does.")

    def stop(root: str, _: Any) -> None:
        raise _RootReached(root.rpartition(":")[2])

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        parser.Parse(head)
    except _RootReached as found:
        return str(found)
    except expat.ExpatError:
        return ""  # a picture, or XML that no parser takes
    if head:
        raise InputError(f"'{name}' cannot be read as Excel ({member!r} holds no data).")
    return ""


def _bounded(
    rows: Iterator[Any], most_cells: int, most_text: int, name: str
) -> Iterator[tuple[Any, ...]]:
    """The rows, as long as the rectangle of those with cells, and their text, is not too large.

    One long shared string may stand in many cells.
    """
    width = filled = text = 0
    for k, cells in enumerate(rows, start=1):
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


class LibsvmReader(Reader):
    """Batches are pairs (CSR, labels); indices from 1, as the format has them."""

    def schema(self) -> Any:
        return pa.schema([])

    def table(self) -> tuple[Any, Any]:
        blocks = list(self.batches())
        width = max(X.shape[1] for X, _ in blocks)
        for X, _ in blocks:
            X.resize((X.shape[0], width))
        stacked = sparse.vstack([X for X, _ in blocks], format="csr")
        return stacked, np.concatenate([y for _, y in blocks])

    def batches(
        self,
        columns: Sequence[str] | None = None,
        rows: int = BATCH_ROWS,
        n_features: int | None = None,
        **_: Any,
    ) -> Iterator[Any]:
        """Blocks of ``rows`` lines; ``n_features`` is the width, None takes what the block has."""
        first_line, found = 1, False
        with told(self.source), self.source.open() as stream:
            for lines in _blocks(iter(io.BufferedReader(stream)), rows):
                X, y = self._parse(lines, first_line, n_features)
                first_line += len(lines)
                if X.shape[0]:
                    found = True
                    yield X, y
        if not found:
            raise InputError(f"'{self.source.name}' has no rows.")

    def _parse(
        self, lines: list[bytes], first_line: int, n_features: int | None
    ) -> tuple[Any, Any]:
        limit = MAX_FEATURES if n_features is None else n_features
        X, y, problem = _judged(lines, limit)
        if problem is None:
            X.resize((X.shape[0], n_features if n_features is not None else X.shape[1]))
            return X, y
        each = ((k, _judged([line], limit)[2]) for k, line in enumerate(lines, start=first_line))
        number, problem = next((found for found in each if found[1]), (first_line, problem))
        raise InputError(
            f"'{self.source.name}' holds {problem} in line {number}; each line reads: "
            "label index:value index:value ..., indices from 1."
        )


def _judged(lines: list[bytes], limit: int) -> tuple[Any, Any, str | None]:
    """(CSR, labels, what is wrong with them)."""
    try:
        X, y = _load(lines)
    except (ValueError, OverflowError, MemoryError):
        shown = lines[0][:60].decode("utf-8", errors="replace").strip()
        return None, None, f"what is not LIBSVM text ({shown!r})"
    if X.shape[1] > limit:
        return X, y, f"feature {X.shape[1]:,}, where features may number {limit:,},"
    if not np.isfinite(X.data).all():
        return X, y, "a value that is not a finite number"
    return X, y, None if np.isfinite(y).all() else "a label that is not a number"


def _load(lines: list[bytes]) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    text = b"".join(lines)
    if not text.strip():
        return sparse.csr_matrix((0, 0)), np.empty(0)
    X, y = load_svmlight_file(io.BytesIO(text), zero_based=False)
    return X, y


#: One class a format.
_READERS: dict[str, type[Reader]] = {
    "csv": CsvReader,
    "tsv": CsvReader,
    "jsonl": JsonReader,
    "excel": ExcelReader,
    "parquet": ParquetReader,
    "arrow": ArrowReader,
    "libsvm": LibsvmReader,
}


def reader_of(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Reader:
    """The reader of a file, by its format."""
    source = find_source(path, options)
    reader = _READERS[source.kind](source)
    if not isinstance(reader, _RowReader):  # whose names need all rows
        with told(source):  # names are decoded only now
            check_names(reader.schema().names, source.name)
    return reader


def read_cells(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Any:
    """Read a whole file: a ``pyarrow.Table``, or for LIBSVM a pair (CSR matrix, labels).

    Cells of CSV files come as text, exactly as they are written.
    """
    reader = reader_of(path, options)
    with told(reader.source):
        table = reader.table()
        if isinstance(table, tuple):
            return table
        if table.num_rows == 0:
            raise InputError(f"'{reader.source.name}' has a header but no rows.")
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


def iter_batches(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    options: ReadOptions | None = None,
    **some: Any,
) -> Iterator[Any]:
    """Batches of a file in order: ``pyarrow.RecordBatch``, or (CSR, labels) for LIBSVM.

    Parameters
    ----------
    columns : names to read; None reads all
    some : what the reader of the format knows beside ``rows``: ``floats`` of CSV, ``row_groups`` of
        Parquet, ``n_features`` of LIBSVM
    """
    reader = reader_of(path, options)
    for batch in reader.batches(columns, **some):
        if isinstance(batch, tuple):
            yield batch
        else:
            with told(reader.source):
                plain = plain_types(batch)
            yield plain
