"""Labels of a table that is visited batch by batch: counted first, then read as one column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.label_values import RoleCounts
from pnuauc.exceptions import InputError
from pnuauc.io.cells import is_text, pa, pc, tidy
from pnuauc.io.sources import Batch, Source
from pnuauc.labels import UNLABELED, Roles

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
        values = plain_cells(table, self.label)
        if not len(self.cells):
            return np.full(len(values), self.codes[-1])
        places = pc.index_in(values.cast(self.cells.type), self.cells)
        if places.null_count > values.null_count:
            raise InputError(
                f"Label column '{self.label}' holds a value that was not there when labels were "
                "counted; the table was changed meanwhile."
            )
        whole = pc.fill_null(places, len(self.cells)).to_numpy(zero_copy_only=False)
        return np.asarray(self.codes[whole])


def plain_cells(table: Any, label: str) -> Any:
    """The cells; dictionaries written out, text tidied, NaN missing."""
    values = table.column(label)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if is_text(values.type):
        return tidy(values)
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return values


def read_counted(
    source: Source, label: str, read: Callable[[Any], Roles]
) -> tuple[LabelReader, RoleCounts]:
    """How each value of the label column is read, and how many rows of each role there are.

    read : roles of a table of the distinct cells, a missing one last
    """
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
    kind = plain_cells(source.schema.empty_table(), label).type
    cells = pa.array(known, None if pa.types.is_null(kind) else kind)
    present = [*known, *([None] if None in counted else [])]
    roles = read(pa.table({label: pa.array(present, cells.type)}))
    repeats = np.array([counted[value] for value in present])
    p, n, u = (int(repeats[rows].sum()) for rows in roles.by_letter.values())
    counts = RoleCounts(p, n, u, roles.positive_label, roles.negative_label, roles.announcement)
    lookup = np.append(roles.codes[: len(known)], np.int8(UNLABELED))
    return LabelReader(label, cells, lookup), counts


def _count(batch: Batch, label: str) -> Counter[Any]:
    values, counts = pc.value_counts(plain_cells(batch.table, label)).flatten()
    return Counter(dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)))


def _add(a: Counter[Any], b: Counter[Any]) -> Counter[Any]:
    return a if len(a) > _MOST_LABELS else a + b
