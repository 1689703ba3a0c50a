"""CSV and TSV: cells as they are written; only columns that a model knows as numbers are parsed.

A CSV file has no types, and guessing them loses what is written: 007 becomes 7. So every cell
comes as text, and what it says is settled per column (:mod:`pnuauc.io._cells`).
"""

from __future__ import annotations

import contextlib
import csv as csv_module
import io
from collections.abc import Iterator, Sequence
from typing import Any

from pnuauc._extras import need
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa
from pnuauc.io._cells import MISSING_WORDS
from pnuauc.io._formats import HEAD_BYTES, Source, told
from pnuauc.io._frames import check_names

__all__ = ["CsvReader"]

#: Bytes of CSV text parsed at a time.
_BLOCK_BYTES = 8 * 2**20
#: A header longer than this is none.
_MAX_HEADER = 2**26
_DELIMITERS = ",;\t|"


class CsvReader:
    """Text cells of a CSV or TSV file, whole or batch by batch."""

    def __init__(self, source: Source) -> None:
        self.source = source
        with told(source):
            head = source.head()
            self.encoding = source.encoding(head)
            text = _decoded(head, self.encoding)
            self.delimiter = self._delimiter(text)
            self._names = self._header(text, len(head))
        check_names(self._names, source.name)

    def _delimiter(self, text: str) -> str:
        asked = self.source.options.delimiter
        delimiter = asked or ("\t" if self.source.kind == "tsv" else _sniff(text))
        if len(delimiter) != 1:
            raise InputError(f"The delimiter must be one character, got {delimiter!r}.")
        return delimiter

    def _header(self, text: str, n_read: int) -> list[str]:
        size = HEAD_BYTES
        while True:
            rows = csv_module.reader(io.StringIO(text), delimiter=self.delimiter)
            names, follows = None, None
            with contextlib.suppress(csv_module.Error):
                names = next((row for row in rows if row), None)
                follows = next(rows, None)
            # a row is whole if something follows it, or if the file ends with it
            if (names is not None and follows is not None) or n_read < size:
                break
            if size >= _MAX_HEADER:
                raise InputError(f"'{self.source.name}' has no line end: is it a table?")
            size *= 8
            head = self.source.head(size)
            text, n_read = _decoded(head, self.encoding), len(head)
        if not names:
            raise InputError(f"'{self.source.name}' is empty: it has no header and no rows.")
        return names

    def names(self) -> list[str]:
        return list(self._names)

    def table(self) -> Any:
        csv = need("pyarrow.csv")
        with told(self.source), self.source.open() as stream:
            return csv.read_csv(stream, **self._options(self._names, ()))

    def batches(
        self, columns: Sequence[str] | None, floats: Sequence[str], rows: int
    ) -> Iterator[Any]:
        """Record batches; ``floats`` are parsed as float64 as long as all their cells allow it."""
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
            # some cell is no plain number: from here on as text, whose reader knows more ways to
            # write numbers and names the cell
            for batch in self._stream(chosen, (), rows):
                if done >= batch.num_rows:
                    done -= batch.num_rows
                    continue
                yield batch.slice(done)
                done = 0

    def _stream(self, columns: Sequence[str], floats: Sequence[str], rows: int) -> Iterator[Any]:
        csv = need("pyarrow.csv")
        with (
            self.source.open() as stream,
            csv.open_csv(stream, **self._options(columns, floats)) as reader,
        ):
            for batch in reader:
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)

    def _options(self, columns: Sequence[str], floats: Sequence[str]) -> dict[str, Any]:
        csv = need("pyarrow.csv")
        types = dict.fromkeys(columns, pa.string()) | dict.fromkeys(floats, pa.float64())
        return {
            "read_options": csv.ReadOptions(block_size=_BLOCK_BYTES, encoding=self.encoding),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(
                column_types=types,
                include_columns=list(columns),
                null_values=list(MISSING_WORDS),
                strings_can_be_null=False,
            ),
        }


def _decoded(head: bytes, encoding: str) -> str:
    return head.decode(encoding, errors="replace").removeprefix("\ufeff")


def _sniff(text: str) -> str:
    """The delimiter that splits the first lines most often and equally; a comma if none does."""
    lines = [line for line in text.splitlines() if line]
    if len(lines) > 1 and len(text) >= HEAD_BYTES // 4:
        lines = lines[:-1]  # may be cut
    counts = {d: [line.count(d) for line in lines[:50]] for d in _DELIMITERS}
    header = {d: c[0] for d, c in counts.items() if c and c[0] > 0}
    if not header:
        return ","
    equal = [d for d in header if len(set(counts[d])) == 1]
    return max(equal or header, key=lambda d: header[d])
