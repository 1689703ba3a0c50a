"""One column: what kind it is, and its values as numbers or text, in the kind it was fitted as."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.stored import Parts, refuse
from pnuauc.exceptions import InputError
from pnuauc.io.cells import (
    is_form,
    is_number,
    is_text,
    is_vector,
    pa,
    parse_booleans,
    parse_dates,
    parse_numbers,
    pc,
    recognise,
    tidy,
    to_numpy,
)
from pnuauc.io.text import SEVERAL_WORDS

KINDS = ("number", "boolean", "category", "text", "date", "vector")
#: What names or numbers the rows: no feature, but copied to outputs.
ID = "id"
NUMBERS_ROWS = "numbers the rows; left out and copied to every output as an id."
#: What a date becomes; each is then treated as a number.
DATE_PARTS = ("days", "month", "weekday", "hour")
#: The category that stands for a missing value.
MISSING = "(missing)"

#: String columns with at most this many distinct values are categories, others text.
MAX_LEVELS = 100
#: A string column with this share of distinct values, none of several words, names the rows.
_NAMES_ROWS = 0.95
#: Short strings with at most this share of distinct values are categories, many as they are.
_RECURRING = 0.2
_DAY = 86_400_000_000  # in microseconds


class CellError(InputError):
    """A cell cannot be read as its column needs; the message names column and row."""


@contextmanager
def cells_of(name: object) -> Iterator[None]:
    """Put the file's name in front of what is said about one of its cells."""
    try:
        yield
    except CellError as error:
        raise CellError(f"'{name}': {error}", about=error.about) from error


@dataclass(frozen=True)
class Column:
    """A feature column of a fitted table.

    Attributes
    ----------
    name, kind : str
    type : str
        Arrow type it had when fitted.
    lenient : bool
        Whether cells that are not written as the column's form says count as missing, as some did
        when it was fitted; otherwise they are errors.
    form : str
        How its cells are written where they are text: see :mod:`pnuauc.io.cells`.
    """

    name: str
    kind: str
    type: str
    lenient: bool = False
    form: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, item: Any) -> Column:
        """The column of a model file that :meth:`to_dict` described."""
        parts = Parts(item, {}, "column")
        names = (parts.text("name"), parts.text("kind", KINDS), parts.text("type"))
        column = cls(*names, parts.flag("lenient"), parts.text("form"))
        parts.finish()
        if not is_form(column.kind, column.form):
            raise refuse(f"a column of kind {column.kind} is not written {column.form[:40]!r}")
        return column


def classify(
    name: str,
    values: Any,
    *,
    categorical: bool = False,
    decimal: str | None = None,
    date_format: str | None = None,
) -> tuple[Column | None, str | None]:
    """(column, remark) of arrow values; a column of None is left out, and the remark says why.

    A column of kind ``ID`` names the rows.

    ``decimal`` and ``date_format`` say how text cells are written, where that is known.
    """
    types = pa.types
    kind = values.type
    if types.is_dictionary(kind):
        values, kind, categorical = values.cast(kind.value_type), kind.value_type, True
    if is_vector(kind) and values.null_count < len(values):
        if pc.count_distinct(pc.list_value_length(values)).as_py() > 1:
            return None, f"Column '{name}' holds lists of different lengths; left out."
        return Column(name, "vector", str(kind)), None
    if is_text(kind):
        values = tidy(values)
    reason = _useless(name, values)
    if reason:
        return None, reason
    if categorical:
        return Column(name, "category", str(kind)), None
    if types.is_boolean(kind):
        return Column(name, "boolean", str(kind)), None
    if types.is_integer(kind) and _counts_rows(values):
        return Column(name, ID, str(kind)), f"Column '{name}' {NUMBERS_ROWS}"
    if is_number(kind):
        return Column(name, "number", str(kind)), None
    if types.is_duration(kind):
        return Column(name, "number", str(kind), form="duration"), None
    if types.is_time(kind):
        return Column(name, "number", str(kind), form="clock"), None
    if types.is_date(kind) or types.is_timestamp(kind):
        return Column(name, "date", str(kind), form="ymd"), None
    if is_text(kind):
        return _classify_text(name, values, str(kind), decimal, date_format)
    return None, f"Column '{name}' holds values of type {kind}, which cannot be used; left out."


def _useless(name: str, values: Any) -> str | None:
    kind = values.type
    if values.null_count == len(values):
        return f"Column '{name}' is empty; left out."
    if pa.types.is_nested(kind) or is_bytes(kind) or pa.types.is_interval(kind):
        return f"Column '{name}' holds values of type {kind}, which cannot be used; left out."
    present = values.drop_null()
    if pa.types.is_floating(kind):
        present = present.filter(pc.invert(pc.is_nan(present)))
        if len(present) == 0:
            return f"Column '{name}' is empty; left out."
    first = present[0]
    missing = len(present) < len(values)
    if not missing and bool(pc.all(pc.equal(present, first)).as_py()):
        return f"Column '{name}' is constant ({first.as_py()!r}); left out."
    return None


def is_bytes(kind: Any) -> bool:
    names = ("is_binary", "is_large_binary", "is_fixed_size_binary", "is_binary_view")
    return any(getattr(pa.types, name)(kind) for name in names)


def _counts_rows(values: Any) -> bool:
    """Whether an integer column is first, first + 1, ... in any order."""
    if values.null_count or len(values) < 20:
        return False
    extent = pc.min_max(values).as_py()
    span = extent["max"] - extent["min"] + 1
    return bool(span == len(values) and pc.count_distinct(values).as_py() == span)


def _text_counts_rows(values: Any) -> bool:
    cells = parse_numbers("", values)
    if not (np.abs(cells) < 2**53).all() or not np.array_equal(cells, np.rint(cells)):
        return False
    return _counts_rows(pa.array(cells.astype(np.int64)))


def _classify_text(
    name: str, values: Any, kind: str, decimal: str | None, date_format: str | None
) -> tuple[Column | None, str | None]:
    reading = recognise(values, decimal=decimal, date_format=date_format, name=name)
    if reading is not None:
        column = Column(name, reading.kind, kind, reading.odd is not None, reading.form)
        if reading.kind == "number" and not reading.form and _text_counts_rows(values):
            return Column(name, ID, kind), f"Column '{name}' {NUMBERS_ROWS}"
        return column, _told(name, reading)
    present = values.drop_null()
    distinct = pc.count_distinct(present).as_py()
    if distinct <= MAX_LEVELS and (distinct < 0.5 * len(present) or distinct <= 10):
        return Column(name, "category", kind), None
    several = pc.mean(pc.match_substring_regex(present, SEVERAL_WORDS)).as_py()
    if distinct < _RECURRING * len(present) and several < 0.5:  # shops, codes, first names
        return Column(name, "category", kind), None
    if distinct >= _NAMES_ROWS * len(present) and several < 0.05:
        return Column(name, ID, kind), (
            f"Column '{name}' names the rows ({distinct} different values in {len(present)}); "
            "left out and copied to every output as an id."
        )
    return Column(name, "text", kind), (
        f"Column '{name}' has {distinct} different texts: read by its words."
    )


def _told(name: str, reading: Any) -> str | None:
    kinds = {"number": "numbers", "date": "dates", "boolean": "yes or no"}
    if reading.odd is None:
        return reading.remark and f"Column '{name}' is read as {reading.remark}."
    return (
        f"Column '{name}' is text, but {reading.share:.1%} of its cells are "
        f"{reading.remark or kinds[reading.kind]}: read as such, with "
        f"cells such as {reading.odd!r} as missing."
    )


# ---------------------------------------------------------------------------- values


def numbers(
    column: Column, values: Any, first_row: int = 0, odd: list[str] | None = None
) -> NDArray[np.float64]:
    """The values as float64, shape (n,) or (n, 4) for dates; missing is NaN.

    ``odd`` gets the text of cells that hold something else and count as missing.
    """
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_null(values.type):
        shape = (len(values), len(DATE_PARTS)) if column.kind == "date" else (len(values),)
        return np.full(shape, np.nan)
    if column.kind == "date":
        return _date_parts(column, values, first_row, odd)
    if is_text(values.type):
        cells = tidy(values)
        if column.kind == "boolean":
            result = parse_booleans(cells)
        else:
            result = parse_numbers(column.form, cells)
        _check_cells(column, cells, np.isnan(result), first_row, odd)
    else:
        result = _typed_numbers(column, values)
        if column.kind == "boolean":
            return np.where(np.isnan(result), np.nan, (result != 0).astype(float))
    if np.isinf(result).any():
        row = first_row + int(np.flatnonzero(np.isinf(result))[0]) + 1
        raise CellError(
            f"Column '{column.name}' holds an infinite value (row {row}); make it empty or a "
            "large number, or leave the column out.",
            about="drop",
        )
    return result


def _typed_numbers(column: Column, values: Any) -> NDArray[np.float64]:
    kind = values.type
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        unit = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[kind.unit]
        width = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        return to_numpy(values.cast(width).cast(pa.float64(), safe=False)) * unit
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    elif not is_number(kind):
        raise CellError(
            f"Column '{column.name}' holds {kind} values where the model needs numbers."
        )
    return to_numpy(values.cast(pa.float64(), safe=False))


#: What a strict column needs, for the message about a cell that is not it.
_NEEDS = {"number": "numbers", "date": "dates"}


def _check_cells(
    column: Column,
    cells: Any,
    unread: NDArray[np.bool_],
    first_row: int,
    odd: list[str] | None,
) -> None:
    """Refuse cells of a strict column that hold something and could not be read.

    A new word in a column of yes and no is missing, as an unseen category is rare.
    """
    if not unread.any():
        return
    bad = np.flatnonzero(unread & np.asarray(to_numpy(cells.is_valid()), dtype=bool))
    if column.lenient or column.kind == "boolean":
        if odd is not None:
            odd += cells.take(bad).to_pylist()
    elif len(bad):
        row, dated = int(bad[0]), column.kind == "date"
        hint = "write it as those that were fitted" if dated else "correct it or leave it empty"
        raise CellError(
            f"Column '{column.name}' holds text ({cells[row].as_py()[:60]!r} in row "
            f"{first_row + row + 1}) where the model needs {_NEEDS[column.kind]}; {hint}."
        )


def _date_parts(
    column: Column, values: Any, first_row: int, odd: list[str] | None
) -> NDArray[np.float64]:
    """Days since 1970, month, weekday (Monday 0), hour, all in UTC: shape (n, 4)."""
    if is_text(values.type):
        cells = tidy(values)
        micros, known = parse_dates(column.form, cells)
        _check_cells(column, cells, ~known, first_row, odd)
    elif pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        stamps = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        known = np.asarray(to_numpy(stamps.is_valid()), dtype=bool)
        micros = np.asarray(to_numpy(pc.fill_null(stamps, 0)))
    else:
        raise CellError(
            f"Column '{column.name}' holds {values.type} values that are not dates where the "
            "model needs dates; write them as 2024-01-31 or 2024-01-31 12:00:00."
        )
    days = micros // _DAY
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    parts = np.column_stack(
        [micros / _DAY, months % 12 + 1, (days + 3) % 7, micros // 3_600_000_000 % 24]
    )
    parts[~known] = np.nan
    return parts


def strings(values: Any) -> NDArray[Any]:
    """The values as an object array of str, shape (n,); missing is "(missing)"."""
    return np.asarray(to_numpy(texts(values)), dtype=object)


def texts(values: Any) -> Any:
    """Arrow text of any values; missing is "(missing)"."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    # a code written 3 in one file and 3.0 in another is one category
    if is_text(values.type):
        values = pc.replace_substring_regex(
            tidy(values), pattern=r"^([-+]?[0-9]+)\.0$", replacement=r"\1"
        )
    elif pa.types.is_floating(values.type):
        whole = pc.equal(values, pc.round(values))
        written = pc.if_else(
            pc.and_(whole, pc.less(pc.abs(values), 1e15)),
            pc.round(values).cast(pa.int64(), safe=False).cast(pa.string()),
            values.cast(pa.string()),
        )
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.string()), written)
    else:
        values = values.cast(pa.string())
    return pc.fill_null(values, MISSING)
