"""Labels of a table that is visited batch by batch: counted first, then read as one column."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._role_counts import RoleCounts
from pnuauc._sources import Batch, Source
from pnuauc._study._data import LabelCodes, label_values, read_labels, repeated
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa, pc
from pnuauc.io._cells import is_text, tidy
from pnuauc.labels import UNLABELED

__all__ = ["LabelReader", "read_source_labels"]

#: More distinct values than this are measurements, not labels.
_MOST_LABELS = 10_000


@dataclass(frozen=True, eq=False)
class LabelReader:
    """Label cells of a batch -> roles, as the whole column was read.

    Attributes
    ----------
    label : str
    cells : arrow array of the distinct values, none missing
    codes : ndarray of int8, shape (number of values + 1,)
        Their roles; the last is that of a missing cell.
    """

    label: str
    cells: Any
    codes: NDArray[np.int8]

    def __call__(self, table: Any) -> NDArray[np.int8]:
        """Roles of the rows, shape (n,)."""
        values = _plain_cells(table, self.label)
        places = pc.index_in(values, self.cells)
        if places.null_count > values.null_count:
            raise InputError(
                f"Label column '{self.label}' holds a value that was not there when labels were "
                "counted; the table was changed meanwhile."
            )
        whole = pc.fill_null(places, len(self.cells)).to_numpy(zero_copy_only=False)
        return np.asarray(self.codes[whole])


def read_source_labels(
    source: Source, label: str, codes: LabelCodes
) -> tuple[LabelReader, RoleCounts]:
    """How each value of the label column is read, and how many rows of each role there are."""
    label_values(source.schema.empty_table(), label)  # says which columns there are, if not this
    nothing: Counter[Any] = Counter()
    counted = source.select([label]).reduce(partial(_count, label=label), _add, nothing)
    if not counted:
        raise InputError("The table has a header but no rows.")
    if len(counted) > _MOST_LABELS:
        raise InputError(
            f"Label column '{label}' holds more than {_MOST_LABELS:,} different values; it must "
            "hold labels, for example 1 (positive), 0 (negative) and nothing (unlabelled).",
            about="labels",
        )
    known = sorted((v for v in counted if v is not None), key=lambda v: (str(type(v)), v))
    cells = pa.array(known, _plain_cells(source.schema.empty_table(), label).type)
    values = [*known, *([None] if None in counted else [])]
    repeats = np.array([counted[value] for value in values])
    small = pa.table({label: pa.array(values, cells.type)})
    roles = read_labels(small, label, codes, repeats)
    lookup = np.append(roles.codes[: len(known)], np.int8(UNLABELED))
    return LabelReader(label, cells, lookup), repeated(roles, repeats)


def _plain_cells(table: Any, label: str) -> Any:
    """The cells; dictionaries written out, text tidied, NaN missing."""
    values = table.column(label)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if is_text(values.type):
        return tidy(values)
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return values


def _count(batch: Batch, label: str) -> Counter[Any]:
    values, counts = pc.value_counts(_plain_cells(batch.table, label)).flatten()
    return Counter(dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)))


def _add(a: Counter[Any], b: Counter[Any]) -> Counter[Any]:
    return a if len(a) > _MOST_LABELS else a + b
