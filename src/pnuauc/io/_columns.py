"""One column: what kind it is, and its values as numbers or text, in the kind it was fitted as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.exceptions import InputError
from pnuauc.io._extras import need

__all__ = [
    "DATE_PARTS",
    "KINDS",
    "MISSING",
    "Column",
    "classify",
    "level_codes",
    "numbers",
    "strings",
]

KINDS = ("number", "boolean", "category", "text", "date")
#: What a date becomes; each is treated as a number from there on.
DATE_PARTS = ("days", "month", "weekday", "hour")
#: The category that stands for a missing value.
MISSING = "(missing)"

#: String columns with at most this many distinct values are categories, others text.
MAX_LEVELS = 100
#: A text column with this share of numbers is read as numbers, the rest as missing.
_MOSTLY_NUMBERS = 0.9
#: A string column with this share of distinct values, none with a blank, names the rows.
_NAMES_ROWS = 0.95
_NUMBER = r"^\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*$"
_TRUE, _FALSE = {"true", "yes", "t", "y", "1", "1.0"}, {"false", "no", "f", "n", "0", "0.0"}


@dataclass(frozen=True)
class Column:
    """A feature column of a fitted table.

    Attributes
    ----------
    name, kind : str
    type : str
        Arrow type it had when fitted.
    lenient : bool
        Whether cells that are no numbers count as missing (text that was mostly numbers).
    """

    name: str
    kind: str
    type: str
    lenient: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, item: Any) -> Column:
        """The column that :meth:`to_dict` described; a ``ValueError`` if it is none."""
        known = {field.name for field in fields(cls)}
        if not isinstance(item, dict) or not known.issuperset(item):
            raise ValueError("a column needs name, kind and type")
        column = cls(**{"name": None, "kind": None, "type": None, **item})
        if not all(isinstance(text, str) for text in (column.name, column.kind, column.type)):
            raise ValueError("a column's name, kind and type must be text")
        if column.kind not in KINDS:
            raise ValueError(f"unknown kind of column {column.kind[:40]!r}")
        if not isinstance(column.lenient, bool):
            raise ValueError("whether a column is lenient must be true or false")
        return column


def classify(name: str, values: Any, *, categorical: bool) -> tuple[Column | None, str | None]:
    """(column, remark) of arrow values; a column of None is left out, and the remark says why."""
    types = need("pyarrow").types
    kind = values.type
    if types.is_dictionary(kind):
        values, kind, categorical = values.cast(kind.value_type), kind.value_type, True
    reason = _useless(name, values)
    if reason:
        return None, reason
    if categorical:
        return Column(name, "category", str(kind)), None
    if types.is_boolean(kind):
        return Column(name, "boolean", str(kind)), None
    if types.is_integer(kind) and _counts_rows(values):
        return None, f"Column '{name}' numbers the rows; left out."
    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_duration(kind)
        or types.is_time(kind)
    ):
        return Column(name, "number", str(kind)), None
    if types.is_date(kind) or types.is_timestamp(kind):
        return Column(name, "date", str(kind)), None
    if _is_text(kind):
        return _classify_text(name, values, str(kind))
    return None, f"Column '{name}' holds values of type {kind}, which cannot be used; left out."


def _is_text(kind: Any) -> bool:
    types = need("pyarrow").types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _useless(name: str, values: Any) -> str | None:
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    if values.null_count == len(values):
        return f"Column '{name}' is empty; left out."
    if pa.types.is_nested(values.type) or pa.types.is_binary(values.type):
        return (
            f"Column '{name}' holds values of type {values.type}, which cannot be used; left out."
        )
    present = values.drop_null()
    if pa.types.is_floating(present.type):
        present = present.filter(pc.invert(pc.is_nan(present)))
        if len(present) == 0:
            return f"Column '{name}' is empty; left out."
    first = present[0]
    missing = len(present) < len(values)
    if not missing and bool(pc.all(pc.equal(present, first)).as_py()):
        return f"Column '{name}' is constant ({first.as_py()!r}); left out."
    return None


def _counts_rows(values: Any) -> bool:
    """Whether an integer column is first, first + 1, ... in any order."""
    pc = need("pyarrow.compute")
    if values.null_count or len(values) < 20:
        return False
    extent = pc.min_max(values).as_py()
    span = extent["max"] - extent["min"] + 1
    return bool(span == len(values) and pc.count_distinct(values).as_py() == span)


def _classify_text(name: str, values: Any, kind: str) -> tuple[Column | None, str | None]:
    pc = need("pyarrow.compute")
    present = values.drop_null()
    is_number = pc.match_substring_regex(present, _NUMBER)
    share = pc.mean(is_number).as_py()
    if share >= _MOSTLY_NUMBERS:
        other = present.filter(pc.invert(is_number))
        if not len(other):
            return Column(name, "number", kind, lenient=True), None
        return Column(name, "number", kind, lenient=True), (
            f"Column '{name}' is text, but {share:.1%} of its cells are numbers: read as numbers, "
            f"cells such as {other[0].as_py()!r} as missing."
        )
    distinct = pc.count_distinct(present).as_py()
    if distinct <= MAX_LEVELS and (distinct < 0.5 * len(present) or distinct <= 10):
        return Column(name, "category", kind), None
    blank = pc.mean(pc.match_substring(pc.utf8_trim_whitespace(present), " ")).as_py()
    if distinct >= _NAMES_ROWS * len(present) and blank < 0.05:
        return None, (
            f"Column '{name}' names the rows ({distinct} different values in {len(present)}); "
            "left out (keep it in the output with --id)."
        )
    return Column(name, "text", kind), (
        f"Column '{name}' has {distinct} different texts: hashed by its letter triples."
    )


def numbers(column: Column, values: Any, first_row: int = 0) -> NDArray[np.float64]:
    """The values as float64, shape (n,) or (n, 4) for dates; missing is NaN."""
    pa = need("pyarrow")
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_null(values.type):
        shape = (len(values), len(DATE_PARTS)) if column.kind == "date" else (len(values),)
        return np.full(shape, np.nan)
    if column.kind == "date":
        return _date_parts(column, values, first_row)
    if column.kind == "boolean":
        return _booleans(column, values, first_row)
    return _numbers(column, values, first_row)


def _numbers(column: Column, values: Any, first_row: int) -> NDArray[np.float64]:
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    kind = values.type
    if _is_text(kind):
        good = pc.match_substring_regex(values, _NUMBER)
        if not column.lenient:
            _refuse_text(column, values, good, first_row)
        values = pc.utf8_trim_whitespace(pc.if_else(good, values, pa.scalar(None, kind)))
        # arrow's parser knows no leading plus
        values = pc.replace_substring_regex(values, pattern=r"^\+", replacement="")
    elif pa.types.is_duration(kind) or pa.types.is_time(kind):
        unit = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[kind.unit]
        width = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        return _to_numpy(values.cast(width).cast(pa.float64(), safe=False)) * unit
    elif not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        raise InputError(
            f"Column '{column.name}' holds {kind} values where the model needs numbers."
        )
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    try:
        result = _to_numpy(values.cast(pa.float64(), safe=False))
    except pa.ArrowInvalid as error:
        raise InputError(
            f"Column '{column.name}' holds a number that cannot be read: {error}."
        ) from error
    if np.isinf(result).any():
        row = first_row + int(np.flatnonzero(np.isinf(result))[0]) + 1
        raise InputError(
            f"Column '{column.name}' holds an infinite value (row {row}); make it empty or a "
            f"large number, or leave the column out (--drop {column.name})."
        )
    return result


def _to_numpy(values: Any) -> NDArray[np.float64]:
    pa = need("pyarrow")
    if isinstance(values, pa.ChunkedArray):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _refuse_text(column: Column, values: Any, good: Any, first_row: int) -> None:
    pc = need("pyarrow.compute")
    bad = pc.indices_nonzero(pc.fill_null(pc.invert(good), False))
    if len(bad):
        row = bad[0].as_py()
        raise InputError(
            f"Column '{column.name}' holds text ({values[row].as_py()!r} in row "
            f"{first_row + row + 1}) where the model needs numbers; correct it or leave it empty."
        )


def _booleans(column: Column, values: Any, first_row: int) -> NDArray[np.float64]:
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    if not _is_text(values.type):
        result = _numbers(column, values, first_row)
        return np.where(np.isnan(result), np.nan, (result != 0).astype(float))
    words = pc.utf8_lower(pc.utf8_trim_whitespace(values))
    true, false = (pc.is_in(words, pa.array(sorted(known))) for known in (_TRUE, _FALSE))
    blank = pc.fill_null(pc.equal(words, ""), True)
    bad = pc.indices_nonzero(pc.invert(pc.or_(pc.or_(true, false), blank)))
    if len(bad):
        row = bad[0].as_py()
        raise InputError(
            f"Column '{column.name}' holds {values[row].as_py()!r} in row {first_row + row + 1} "
            "where the model needs true or false."
        )
    result = _to_numpy(true.cast(pa.uint8()).cast(pa.float64()))
    return np.where(_to_numpy(blank.cast(pa.uint8())) == 1, np.nan, result)


def _date_parts(column: Column, values: Any, first_row: int) -> NDArray[np.float64]:
    """Days since 1970, month, weekday (Monday 0), hour: shape (n, 4)."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    try:
        stamps = values.cast(pa.timestamp("us"), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"Column '{column.name}' holds {values.type} values that are no dates where the "
            "model needs dates; write them as 2024-01-31 or 2024-01-31 12:00:00."
        ) from None
    parts = [
        _to_numpy(stamps.cast(pa.int64()).cast(pa.float64(), safe=False)) / 86_400e6,
        *(_to_numpy(f(stamps).cast(pa.float64())) for f in (pc.month, pc.day_of_week, pc.hour)),
    ]
    return np.column_stack(parts)


def strings(values: Any) -> NDArray[Any]:
    """The values as an object array of str, shape (n,); missing is "(missing)"."""
    pa = need("pyarrow")
    filled = _texts(values)
    if isinstance(filled, pa.ChunkedArray):
        return np.asarray(filled.to_numpy(), dtype=object)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=object)


def level_codes(values: Any, levels: Sequence[str]) -> NDArray[np.intp]:
    """Each value's place among ``levels``, -1 where it is none of them; shape (n,)."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    texts = _texts(values)
    places = pc.fill_null(pc.index_in(texts, pa.array(levels, texts.type)), -1)
    return _to_numpy(places).astype(np.intp)


def _texts(values: Any) -> Any:
    """Arrow text of any values; missing is "(missing)"."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        # a code written 3 in one file and 3.0 in another is one category
        whole = pc.equal(values, pc.round(values))
        texts = pc.if_else(
            pc.and_(whole, pc.less(pc.abs(values), 1e15)),
            pc.round(values).cast(pa.int64(), safe=False).cast(pa.string()),
            values.cast(pa.string()),
        )
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.string()), texts)
    elif not _is_text(values.type):
        values = values.cast(pa.string())
    return pc.fill_null(values, MISSING)
