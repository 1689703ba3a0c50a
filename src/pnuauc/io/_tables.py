"""Files and frames -> pyarrow tables; whole (to fit) or batch by batch (to score)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pnuauc.exceptions import InputError
from pnuauc.io._extras import need

__all__ = [
    "BATCH_ROWS",
    "FORMATS",
    "ReadOptions",
    "as_table",
    "check_names",
    "column_names",
    "detect_format",
    "iter_batches",
    "read_table",
]

#: Endings that are understood, and what they mean.
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}
#: Rows per batch when a file is streamed: 20 float64 columns take 10 MB.
BATCH_ROWS = 65_536
#: Bytes of CSV text parsed at a time.
_CSV_BLOCK = 8 * 2**20
_DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class ReadOptions:
    """How to read text: ``delimiter`` (None: looked up in the first lines) and ``encoding``."""

    delimiter: str | None = None
    encoding: str = "utf8"


def detect_format(path: str | os.PathLike[str]) -> str:
    """The format by the name's ending (.gz in front is ignored); a clear error otherwise."""
    suffixes = [s.lower() for s in Path(path).suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    raise InputError(
        f"'{path}' has no ending that says its format; "
        f"use one of {', '.join(sorted(FORMATS))} (rename the file)."
    )


def _check_file(path: Path) -> None:
    if not path.exists():
        raise InputError(f"There is no file '{path}'; check the name and the folder.")
    if path.is_dir():
        raise InputError(f"'{path}' is a folder, not a file; name one table inside it.")
    try:
        with path.open("rb") as stream:
            empty = not stream.read(1)
    except PermissionError:
        raise InputError(f"'{path}' may not be read; check its permissions.") from None
    if empty:
        raise InputError(f"'{path}' is empty: it has no header and no rows.")


def read_table(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Any:
    """Read a whole file: a ``pyarrow.Table``, or for LIBSVM a pair (CSR matrix, labels).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "small.csv"
    ...     _ = file.write_text("a;y\\n1;yes\\n2;\\n")
    ...     read_table(file).column_names
    ['a', 'y']
    """
    where = Path(path)
    _check_file(where)
    kind = detect_format(where)
    if kind == "libsvm":
        blocks = list(_libsvm_blocks(where, BATCH_ROWS, None))
        if not blocks:
            raise InputError(f"'{where}' has no rows.")
        width = max(X.shape[1] for X, _ in blocks)
        wide = [_widen(X, width) for X, _ in blocks]
        return sparse.vstack(wide, format="csr"), np.concatenate([y for _, y in blocks])
    pa = need("pyarrow")
    with _told(where):
        if kind in {"csv", "tsv"}:
            csv = need("pyarrow.csv")
            table = csv.read_csv(_source(where), **_csv_options(where, kind, options))
            _check_text(where, table.schema)
        elif kind == "parquet":
            table = need("pyarrow.parquet").read_table(where)
        else:
            with pa.memory_map(os.fspath(where)) as source:
                table = _open_arrow(source).read_all()
        names = table.column_names
    check_names(names, where)
    if table.num_rows == 0:
        raise InputError(f"'{where}' has a header but no rows.")
    return table


def column_names(path: str | os.PathLike[str], options: ReadOptions | None = None) -> list[str]:
    """Names of the columns without reading the rows; LIBSVM has none."""
    where = Path(path)
    _check_file(where)
    kind = detect_format(where)
    if kind == "libsvm":
        return []
    with _told(where):
        if kind == "parquet":
            names = need("pyarrow.parquet").read_schema(where).names
        elif kind == "arrow":
            with need("pyarrow").memory_map(os.fspath(where)) as source:
                names = _open_arrow(source).schema.names
        else:
            csv = need("pyarrow.csv")
            with csv.open_csv(_source(where), **_csv_options(where, kind, options)) as reader:
                names = reader.schema.names
    check_names(names, where)
    return list(names)


def iter_batches(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    options: ReadOptions | None = None,
    *,
    text: Sequence[str] = (),
    floats: Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    n_features: int | None = None,
) -> Iterator[Any]:
    """Batches of a file in order: ``pyarrow.RecordBatch``, or (CSR, labels) for LIBSVM.

    Parameters
    ----------
    columns : names to read; None reads all
    text, floats : names of CSV columns to read as text or as float64, whatever their first rows
        look like; types of the others are inferred from the first 8 MB
    n_features : width of the CSR blocks of LIBSVM
    """
    where = Path(path)
    _check_file(where)
    kind = detect_format(where)
    if kind == "libsvm":
        yield from _libsvm_blocks(where, batch_rows, n_features)
        return
    pa = need("pyarrow")
    with _told(where):
        if kind == "parquet":
            with need("pyarrow.parquet").ParquetFile(where, pre_buffer=False) as file:
                yield from file.iter_batches(batch_size=batch_rows, columns=columns)
        elif kind == "arrow":
            with pa.memory_map(os.fspath(where)) as source:
                for batch in _arrow_batches(_open_arrow(source)):
                    chosen = batch if columns is None else batch.select(list(columns))
                    for start in range(0, chosen.num_rows, batch_rows):
                        yield chosen.slice(start, batch_rows)
        else:
            csv = need("pyarrow.csv")
            types = dict.fromkeys(text, pa.string()) | dict.fromkeys(floats, pa.float64())
            settings = _csv_options(where, kind, options, columns, types)
            with csv.open_csv(_source(where), **settings) as reader:
                check_names(reader.schema.names, where)
                _check_text(where, reader.schema)
                for batch in reader:
                    for start in range(0, batch.num_rows, batch_rows):
                        yield batch.slice(start, batch_rows)


def _source(path: Path) -> Any:
    """The path, or a decompressing stream for .gz (pyarrow's streaming reader needs help)."""
    if path.suffix.lower() != ".gz":
        return os.fspath(path)
    pa = need("pyarrow")
    return pa.CompressedInputStream(pa.OSFile(os.fspath(path)), "gzip")


def _open_arrow(source: Any) -> Any:
    """A reader of the file format (Feather) or of the stream format."""
    pa = need("pyarrow")
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


def _csv_options(
    path: Path,
    kind: str,
    options: ReadOptions | None,
    columns: Sequence[str] | None = None,
    types: dict[str, Any] | None = None,
) -> dict[str, Any]:
    csv = need("pyarrow.csv")
    options = options or ReadOptions()
    delimiter = options.delimiter or ("\t" if kind == "tsv" else _sniff(path, options.encoding))
    if len(delimiter) != 1:
        raise InputError(f"The delimiter must be one character, got {delimiter!r}.")
    convert: dict[str, Any] = {
        "strings_can_be_null": True,
        "column_types": types or {},
    }
    if columns is not None:
        convert["include_columns"] = list(columns)
    return {
        "read_options": csv.ReadOptions(block_size=_CSV_BLOCK, encoding=options.encoding),
        "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(**convert),
    }


def _check_text(path: Path, schema: Any) -> None:
    """Arrow reads bytes that are no UTF-8 as binary columns; nobody means that in a CSV file."""
    if any(need("pyarrow").types.is_binary(kind) for kind in schema.types):
        raise InputError(_reading_error(path, "invalid UTF8"))


def _sniff(path: Path, encoding: str) -> str:
    """The delimiter that splits the first lines most often and equally; a comma if none does."""
    with need("pyarrow").input_stream(os.fspath(path)) as stream:  # reads .gz as well
        head = stream.read(64 * 1024)
    try:
        lines = [line for line in head.decode(encoding, errors="replace").splitlines() if line]
    except LookupError:
        raise InputError(f"Unknown encoding {encoding!r}; try utf8 or latin-1.") from None
    if len(lines) > 1 and len(head) == 64 * 1024:
        lines = lines[:-1]
    counts = {d: [line.count(d) for line in lines[:50]] for d in _DELIMITERS}
    header = {d: c[0] for d, c in counts.items() if c and c[0] > 0}
    if not header:
        return ","
    equal = [d for d in header if len(set(counts[d])) == 1]
    return max(equal or header, key=lambda d: header[d])


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Arrow's errors as one sentence about the user's file."""
    pa = need("pyarrow")
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno is not None and path.exists():
            raise
        raise InputError(_reading_error(path, str(error))) from error


def _reading_error(path: Path, message: str) -> str:
    first = message.strip().splitlines()[0].rstrip(".") if message.strip() else "unreadable"
    if "UTF8" in message or "utf-8" in message or "codec" in message:
        return f"'{path}' is not UTF-8 text; pass its encoding, for example --encoding latin-1."
    if "Expected" in message and "columns" in message:
        return (
            f"'{path}' has rows of unequal length ({first}); is the delimiter right (--delimiter)?"
        )
    if "Empty CSV" in message or "cannot infer" in message:
        return f"'{path}' is empty: it has no header and no rows."
    if "conversion error" in message:
        return (
            f"'{path}' holds text where its first rows, or the model, have numbers ({first}); "
            "correct the cell or leave it empty."
        )
    return f"'{path}' cannot be read as {detect_format(path)} ({first}); is it damaged or misnamed?"


def check_names(names: Sequence[str], path: Any = "the table") -> None:
    """Refuse repeated and empty column names."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        shown = ", ".join(repr(name) for name in twice[:5])
        raise InputError(f"'{path}' has more than one column named {shown}; rename them.")


# ---------------------------------------------------------------------------- LIBSVM


def _libsvm_blocks(path: Path, rows: int, n_features: int | None) -> Iterator[tuple[Any, Any]]:
    """(CSR, labels) of ``rows`` lines at a time; one-based indices, as the format has them."""
    from io import BytesIO

    from sklearn.datasets import load_svmlight_file

    line_number = 0
    with need("pyarrow").input_stream(os.fspath(path)) as raw:
        rest, done = b"", False
        while not done:
            chunk = raw.read(_CSV_BLOCK)
            done = not chunk
            lines = (rest + chunk).split(b"\n")
            rest = b"" if done else lines.pop()
            for start in range(0, len(lines), rows):
                part = lines[start : start + rows]
                text = b"\n".join(part)
                if text.strip():
                    try:
                        X, y = load_svmlight_file(
                            BytesIO(text), n_features=n_features, zero_based=False
                        )
                    except (ValueError, OverflowError) as error:
                        if n_features is not None and "n_features" in str(error):
                            raise InputError(
                                f"'{path}' has more than the model's {n_features} features "
                                f"near line {line_number + 1}."
                            ) from error
                        raise InputError(
                            f"'{path}' is not LIBSVM text near line {line_number + 1} ({error}); "
                            "each line reads: label index:value index:value ..., indices from 1."
                        ) from error
                    if X.shape[0]:
                        yield X, y
                line_number += len(part)
    if line_number == 0:
        raise InputError(f"'{path}' has no rows.")


def _widen(X: Any, width: int) -> Any:
    X.resize((X.shape[0], width))
    return X


# ---------------------------------------------------------------------------- frames in Python


def as_table(data: Any) -> Any:
    """Any pandas, polars, pyarrow or narwhals frame, or a numpy array -> ``pyarrow.Table``.

    numpy columns are named x0, x1, ...; one-dimensional arrays are refused. scipy.sparse
    matrices come back as CSR, unchanged in meaning.

    Examples
    --------
    >>> import numpy as np
    >>> as_table(np.eye(2)).column_names
    ['x0', 'x1']
    """
    pa = need("pyarrow")
    if isinstance(data, pa.Table):
        table = data
    elif isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    elif sparse.issparse(data):
        return data.tocsr()
    elif isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise InputError(f"A table needs two dimensions, got an array of shape {data.shape}.")
        table = pa.table({f"x{j}": pa.array(column) for j, column in enumerate(data.T)})
    else:
        table = _foreign_frame(data)
    check_names(table.column_names)
    return table


def _foreign_frame(data: Any) -> Any:
    narwhals, pa = need("narwhals"), need("pyarrow")
    if type(data).__module__.startswith("pandas") and hasattr(data, "columns"):
        texts = [str(name) for name in data.columns]
        check_names(texts)  # pandas allows names twice, and names that are no text
        # an index that is more than a count would come along as one more column
        data = data.set_axis(texts, axis=1).reset_index(drop=True)
    try:
        frame = narwhals.from_native(data)
    except TypeError:
        raise InputError(
            f"A {type(data).__name__} is no table; pass a pandas, polars or pyarrow frame, a "
            "numpy array or a scipy.sparse matrix."
        ) from None
    if hasattr(frame, "collect"):
        frame = frame.collect()
    names = [str(name) for name in frame.columns]
    check_names(names)
    try:
        return frame.to_arrow().rename_columns(names)
    except (pa.ArrowException, TypeError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"The frame holds values of mixed type ({first}).") from error
