"""Files out, whole or not at all; tables batch by batch."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from pnuauc._extras import need
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa, pc
from pnuauc.io._formats import COMPRESSIONS, detect_format
from pnuauc.io._signs import SIGN
from pnuauc.io._together import written_together

__all__ = [
    "TableWriter",
    "as_utf8",
    "atomic_file",
    "check_writable",
    "count_formulas",
    "without_formulas",
    "write_text",
]


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse, before any work is done, a place where nothing can be written."""
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise InputError(f"'{target}' is a folder; name a file to write.")
    if target.exists() and not target.is_file():
        raise InputError(f"'{target}' is not a regular file; name another output.")
    if not folder.exists():
        raise InputError(f"There is no folder '{folder}' to write '{target.name}' into; make it.")
    if not folder.is_dir():
        raise InputError(f"'{folder}' is a file, not a folder to write '{target.name}' into.")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise InputError(f"'{target}' may not be written; check the folder's permissions.")
    return target


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that gets its name only when it is complete.

    On any error or interruption a former file of that name is left as it was. Its mode and a link
    that leads to it are kept.
    """
    with written_together([check_writable(path)]) as (stream,):
        yield stream


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with atomic_file(path) as stream:
        stream.write(as_utf8(text))


def as_utf8(text: str) -> bytes:
    """UTF-8; what is no text (a file name in another encoding) becomes a question mark."""
    return text.encode("utf-8", "replace")


class TableWriter:
    """Writes record batches one after the other as CSV, TSV, Parquet or Arrow, by the ending.

    Opened on the first batch, whose schema is everybody's.
    """

    def __init__(self, stream: IO[bytes], path: str | os.PathLike[str]) -> None:
        self.kind = output_format(path)
        self._stream = stream
        self._writer: Any = None

    def write(self, batch: Any) -> None:
        if self._writer is None:
            self._writer = self._open(batch.schema.with_metadata({SIGN: SIGN}))
        self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, schema: Any) -> Any:
        if self.kind == "parquet":
            return need("pyarrow.parquet").ParquetWriter(self._stream, schema)
        if self.kind == "arrow":
            return pa.ipc.new_file(self._stream, schema)
        csv = need("pyarrow.csv")
        delimiter = "\t" if self.kind == "tsv" else ","
        return csv.CSVWriter(
            self._stream, schema, write_options=csv.WriteOptions(delimiter=delimiter)
        )


#: What spreadsheets take for a formula, unless it is a number.
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[-+]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?$"


def count_formulas(batch: Any) -> int:
    """Text cells and names that a spreadsheet would run."""
    found = sum(map(_is_formula, batch.schema.names))
    for values in _text_columns(batch).values():
        found += pc.sum(pc.cast(_formulas(values), "int64")).as_py() or 0
    return int(found)


def without_formulas(batch: Any) -> Any:
    """The batch with an apostrophe before text that a spreadsheet would run."""
    texts = _text_columns(batch)
    columns = []
    for j, column in enumerate(batch.columns):
        if j in texts:
            quoted = pc.binary_join_element_wise(pa.scalar("'"), texts[j], "")
            column = pc.if_else(_formulas(texts[j]), quoted, texts[j])
        columns.append(column)
    names = [f"'{name}" if _is_formula(name) else name for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _text_columns(batch: Any) -> dict[int, Any]:
    found = {}
    for j, column in enumerate(batch.columns):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            found[j] = column.cast(pa.string())
    return found


def _formulas(values: Any) -> Any:
    starts = pc.match_substring_regex(values, _FORMULA)
    return pc.fill_null(pc.and_not(starts, pc.match_substring_regex(values, _NUMBER)), False)


def _is_formula(text: str) -> bool:
    return re.search(_FORMULA, text) is not None and re.search(_NUMBER, text) is None


def output_format(path: str | os.PathLike[str]) -> str:
    """csv, tsv, parquet or arrow by the ending; scores are not written as LIBSVM."""
    kind = detect_format(path)
    compressed = Path(path).suffix.lower() in COMPRESSIONS
    if kind not in {"csv", "tsv", "parquet", "arrow"} or compressed:
        raise InputError(f"Scores cannot be written as '{path}'; use .csv, .tsv, .parquet, .arrow.")
    return kind
