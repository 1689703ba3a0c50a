"""Files out, whole or not at all; tables batch by batch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from pnuauc._extras import need
from pnuauc.exceptions import InputError
from pnuauc.io._formats import COMPRESSIONS, detect_format
from pnuauc.io._signs import SIGN
from pnuauc.io._together import written_together

__all__ = ["TableWriter", "as_utf8", "atomic_file", "check_writable", "write_text"]


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse, before any work is done, a place where nothing can be written."""
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise InputError(f"'{target}' is a folder; name a file to write.")
    if target.exists() and not target.is_file():
        raise InputError(f"'{target}' is no regular file; name another output.")
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
            return need("pyarrow").ipc.new_file(self._stream, schema)
        csv = need("pyarrow.csv")
        delimiter = "\t" if self.kind == "tsv" else ","
        return csv.CSVWriter(
            self._stream, schema, write_options=csv.WriteOptions(delimiter=delimiter)
        )


def output_format(path: str | os.PathLike[str]) -> str:
    """csv, tsv, parquet or arrow by the ending; scores are not written as LIBSVM."""
    kind = detect_format(path)
    compressed = Path(path).suffix.lower() in COMPRESSIONS
    if kind not in {"csv", "tsv", "parquet", "arrow"} or compressed:
        raise InputError(f"Scores cannot be written as '{path}'; use .csv, .tsv, .parquet, .arrow.")
    return kind
