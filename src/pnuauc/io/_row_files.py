"""JSON lines and Excel: files of rows, each a list of Python values -> arrow columns."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa
from pnuauc.io._formats import Source, told
from pnuauc.io._frames import array_of, check_names
from pnuauc.io._workbook import workbook_rows

__all__ = ["ExcelReader", "JsonReader"]

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
        number, rest = 1, ""
        with self.source.open() as stream:
            while chunk := stream.read(_BLOCK_CHARACTERS):
                *lines, rest = (rest + decode(bytes(chunk))).split("\n")
                for line in lines:
                    yield number, line + "\n"
                    number += 1
        yield number, rest + decode(b"", final=True)


class ExcelReader(_RowReader):
    """The rows below the first of one sheet of a workbook."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        header = next(self._cells(), ())
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
        for cells in itertools.islice(self._cells(), 1, None):
            if any(value is not None for value in cells):
                yield dict(zip(self._names, cells, strict=False))

    def _cells(self) -> Iterator[tuple[Any, ...]]:
        with told(self.source), self.source.open() as stream:
            content = bytes(stream.read())
        yield from workbook_rows(content, self.source.options.sheet, self.source.name)
