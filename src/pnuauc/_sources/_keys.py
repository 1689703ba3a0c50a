"""Keys of the rows of arrow tables: by what cells say, whatever they are stored as.

Numbers, dates and "nothing here" count alike in every format: 3, 3.0 and the text "3" are one
value, as are a date and its ISO text, or true and "True".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pnuauc._row_hash import MISSING_CELL, Keys, byte_hashes, combined, number_bits, whole_bits
from pnuauc.io._arrow import pa, pc
from pnuauc.io._cells import tidy
from pnuauc.io._text_parts import matches, to_numpy

__all__ = ["table_keys"]

#: Written as every program writes numbers; a code such as 007 is text.
_NUMBER = r"^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?$"
_LONG = r"^[-+]?[1-9][0-9]{15,}$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]?"
_WRITTEN = (
    (r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]", r"\1 "),
    (r"(\.[0-9]*?)0+$", r"\1"),
    (r"\.$", ""),
    (r" 00:00(:00)?$", ""),
)


def table_keys(table: Any, columns: Sequence[str] | None = None) -> Keys:
    """Keys of the rows of a table or record batch, shape (n,), from the named columns in order."""
    names = table.schema.names if columns is None else columns
    cells = (table.column(name) for name in names)
    whole = (c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in cells)
    return combined([part for column in whole for part in _cells(column)], table.num_rows)


def _cells(column: Any) -> Iterator[Keys]:
    """What the cells of one column count as; a column of lists gives one for each place."""
    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        words = next(_cells(column.dictionary))
        yield _placed(words if words.dtype == np.uint64 else number_bits(words), column.indices)
    elif types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        yield from _lists(column)
    elif types.is_string(kind) or types.is_large_string(kind):
        found = column.dictionary_encode()
        yield _placed(_texts(found.dictionary), found.indices)
    elif types.is_null(kind):
        yield np.full(len(column), MISSING_CELL)
    elif types.is_floating(kind) or types.is_integer(kind):
        yield _numbers(column)
    elif types.is_decimal(kind):
        yield _numbers(column.cast(pa.float64()))
    elif types.is_duration(kind) or types.is_time(kind):
        yield _numbers(column.cast(pa.int32() if types.is_time32(kind) else pa.int64()))
    elif types.is_timestamp(kind):
        yield from _cells(column.cast(pa.timestamp(kind.unit)).cast(pa.large_string()))
    elif types.is_boolean(kind) or types.is_date(kind):
        yield from _cells(column.cast(pa.large_string()))
    else:  # nothing that a model reads
        yield np.zeros(len(column), dtype=np.uint64)


def _lists(column: Any) -> Iterator[Keys]:
    flat, n = column.flatten(), len(column)
    if column.null_count or (n and len(flat) % n):
        raise ValueError("Lists in one column must not be missing and must have the same length.")
    cells = next(_cells(flat))
    yield from np.ascontiguousarray(cells.reshape(n, -1).T) if n else ()


def _numbers(column: Any) -> Any:
    if not column.null_count and str(column.type) != "uint64":
        return column.to_numpy(zero_copy_only=False)
    bits = number_bits(column.fill_null(0).to_numpy(zero_copy_only=False))
    return np.where(column.is_null().to_numpy(zero_copy_only=False), MISSING_CELL, bits)


def _placed(words: Keys, places: Any) -> Keys:
    """What the words count as, by their places; a missing place is a missing cell."""
    whole = places.cast("int64").fill_null(len(words)).to_numpy(zero_copy_only=False)
    return np.asarray(np.append(words, MISSING_CELL)[whole])


def _texts(words: Any) -> Keys:
    """What distinct texts count as: numbers as numbers, dates however written, else their bytes."""
    words = tidy(words.cast(pa.large_string()))
    out = _bytes(words)
    dated = matches(_DATE, words)
    if dated.any():
        found = words.filter(pa.array(dated))
        for pattern, written in _WRITTEN:
            found = pc.replace_substring_regex(found, pattern=pattern, replacement=written)
        out[dated] = _bytes(found)
    truth = matches("^(?:true|false)$", pc.utf8_lower(words))
    if truth.any():
        out[truth] = _bytes(pc.utf8_lower(words.filter(pa.array(truth))))
    numeric = matches(_NUMBER, words)
    if numeric.any():
        found = pc.utf8_ltrim(words.filter(pa.array(numeric)), characters="+")
        bits = number_bits(to_numpy(found.cast(pa.float64())))
        for i in np.flatnonzero(matches(_LONG, found)):  # these keep all their digits
            bits[i] = whole_bits(int(found[int(i)].as_py()))
        out[numeric] = bits
    out[to_numpy(pc.is_null(words))] = MISSING_CELL
    return out


def _bytes(words: Any) -> Keys:
    words = words.fill_null("")
    _, ends, data = words.buffers()
    offsets = np.frombuffer(ends, dtype=np.int64)[words.offset : words.offset + len(words) + 1]
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    return byte_hashes(raw, offsets)
