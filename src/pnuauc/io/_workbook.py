"""Cells of an Excel workbook, with bounds: what a file of its size may unpack to, and no DTD.

openpyxl trusts a workbook: an archive that unpacks to a thousand times its size, entities that
grow, rows and columns that a number claims without a cell in them. Each is bounded here before or
while it reads.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from pnuauc._extras import need
from pnuauc._shown import few
from pnuauc.exceptions import InputError, MissingExtraError

__all__ = ["workbook_rows"]

#: A workbook may unpack to this many bytes, and to so many times its own size more.
_FREE_BYTES = 64 * 2**20
_MOST_TIMES = 100
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
            yield from _bounded(found.iter_rows(values_only=True), _FREE_CELLS + unpacked, name)
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
            if member.filename.endswith((".xml", ".rels", ".vml")):
                _refuse_dtd(archive, member, name)
    return unpacked


class _RootReached(Exception):
    pass


def _refuse_dtd(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> None:
    """A document type comes before the root element, and only there can entities be declared."""

    def refuse(*_: Any) -> None:
        raise InputError(f"'{name}' declares a document type, which no workbook does.")

    def stop(*_: Any) -> None:
        raise _RootReached

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    with archive.open(member) as stream:
        for _ in range(0, _MOST_BEFORE_ROOT, _PIECE):
            try:
                parser.Parse(stream.read(_PIECE))
            except _RootReached:
                return
    raise InputError(f"'{name}' cannot be read as Excel ({member.filename!r} holds no data).")


def _sheet(book: Any, wanted: str | None, name: str) -> Any:
    names = book.sheetnames
    if wanted is None:
        return book[names[0]]
    if wanted not in names:
        shown = few(names, 10)
        raise InputError(f"'{name}' has no sheet {wanted!r}; it has {shown}.")
    return book[wanted]


def _bounded(rows: Iterator[Any], most_cells: int, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows, as long as the rectangle of those with cells is no larger than allowed."""
    width = filled = 0
    for k, row in enumerate(rows, start=1):
        cells = tuple(row)
        filled += bool(cells)
        width = max(width, len(cells))
        if k > _MAX_ROWS or width > _MAX_COLUMNS or filled * width > most_cells:
            raise InputError(
                f"'{name}' claims {k:,} rows and {width:,} columns, most of them empty or more "
                "than a sheet can have; save the sheet as CSV if it is yours."
            )
        yield cells
