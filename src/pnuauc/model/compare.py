"""Does a table that is scored look like the one that was fitted? And how is its text written?

A model knows of each column how its text was written, its range, its share of missing cells and
its categories. Scores of a column that means something else are wrong without an error: a rate
of 6.2 where 6.2 % was fitted, decimal points where there were decimal commas, an empty column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pnuauc.core.rows import sparse_keys
from pnuauc.exceptions import InputError
from pnuauc.io.cells import (
    NEARLY_ALL,
    is_text,
    parse_dates,
    parse_numbers,
    recognise,
    table_decimal,
    tidy,
)
from pnuauc.io.columns import Column
from pnuauc.io.draw import cells_keys
from pnuauc.io.encode import Cells, Encoding, TableEncoder, n_missing
from pnuauc.tuning import DIFFERENT

_FORMS = {
    "": "plain numbers", "clock": "times of the day", "duration": "durations",
    "ymd": "dates with the year first", "dmy": "dates with the day first",
    "mdy": "dates with the month first",
}  # fmt: skip


def _in_forms_of(encoder: TableEncoder, batch: Any) -> tuple[TableEncoder, dict[str, str]]:
    """The encoder that reads text as this file writes it, and a sentence by column read otherwise.

    The fitted form stays wherever it reads nearly all cells, unless a decimal comma in another
    column says that it is not meant.
    """
    encoding = encoder.encoding_
    if encoder.is_sparse:
        return encoder, {}
    cells = {
        c.name: tidy(batch.column(c.name))
        for c in encoder.columns_
        if c.kind in {"number", "date"} and is_text(batch.schema.field(c.name).type)
    }
    decimal = table_decimal(cells.values())
    columns, told = [], {}
    for column in encoding.columns:
        form = _form_here(column, cells.get(column.name), decimal)
        if form is not None:
            told[column.name] = (
                f"written as {_spelled(form)}, as {_spelled(column.form)} when fitted"
            )
            column = replace(column, form=form)
        columns.append(column)
    if not told:
        return encoder, told
    return TableEncoder().learned(replace(encoding, columns=tuple(columns))), told


def _form_here(column: Column, cells: Any, decimal: str | None) -> str | None:
    """Another form in which the cells are to be read; None: as they were fitted."""
    present = None if cells is None else cells.drop_null()
    if present is None or not len(present):
        return None
    dated = column.kind == "date"
    if dated:
        good = parse_dates(column.form, present)[1]
    else:
        good = ~np.isnan(parse_numbers(column.form, present))
    contrary = not dated and decimal == "," and column.form[1:2] not in {",", ""}
    if good.mean() >= NEARLY_ALL and not contrary:
        return None
    try:
        found = recognise(present, decimal=decimal, name=column.name)
    except InputError:  # dates that could be either
        return None
    if found is None or found.kind != column.kind or found.form == column.form:
        return None
    return found.form if found.share > good.mean() or contrary else None


def _spelled(form: str) -> str:
    if form in _FORMS:
        return _FORMS[form]
    if form.startswith("n"):
        return "numbers with a decimal " + ("comma" if form[1] == "," else "point")
    return f"dates like {form}"


class Comparison:
    """Reads batches, each file in its own way of writing, and gathers what is strange about them.

    views : those that the scorer reads
    """

    def __init__(self, encoder: TableEncoder, views: Sequence[str]) -> None:
        self.fitted, self.views = encoder, views
        self._encoder, self._file = encoder, ("", None)
        self._forms: dict[str, str] = {}
        self._rows = 0
        self._missing: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        self._fresh: Counter[str] = Counter()
        self._odd: Counter[str] = Counter()
        self._shown: dict[str, Any] = {}

    def read(self, batch: Any, name: str, first: int) -> tuple[Any, dict[str, set[str]], Any]:
        """(what the scorer reads, categories never seen, keys of the rows)."""
        if self.fitted.is_sparse:
            return self.fitted.encode(batch[0], views=self.views), {}, sparse_keys(batch[0])
        if self._file != (name, batch.schema):
            self._file = (name, batch.schema)
            self._encoder, told = _in_forms_of(self.fitted, batch)
            self._forms |= told
        encoding: Any = self._encoder.encoding_
        cells = encoding.read(batch, first)
        self._add(encoding, cells)
        return encoding.encode(cells, self.views), cells.fresh, cells_keys(encoding, cells)

    def _add(self, encoding: Encoding, cells: Cells) -> None:
        """Count the cells of a batch."""
        self._rows += cells.batch.num_rows
        for place, column in enumerate(encoding.columns):
            kind, j = column.kind, encoding.places[place]
            if kind in {"number", "date"}:
                self._add_numbers(column, cells.values[:, j], encoding.low[j], encoding.high[j])
            elif kind == "boolean":
                self._missing[column.name] += int(np.isnan(cells.values[:, j]).sum())
            elif kind == "category":
                self._missing[column.name] += cells.gaps[j]
                self._fresh[column.name] += int((cells.codes[j] < 0).sum())
            else:
                self._missing[column.name] += n_missing(cells.batch.column(column.name))
        for name, found in cells.odd.items():
            self._odd[name] += len(found)
            self._shown.setdefault(name, found[0])

    def _add_numbers(
        self, column: Column, values: NDArray[np.float64], low: float, high: float
    ) -> None:
        self._missing[column.name] += int(np.isnan(values).sum())
        margin = DIFFERENT.spans.value * (high - low) if column.kind == "date" else 0.0
        outside = (values < low - margin) | (values > high + margin)  # a gap is neither
        if outside.any():
            self._outside[column.name] += int(outside.sum())
            self._shown.setdefault(f"{column.name} range", float(np.median(values[outside])))

    def found(self) -> dict[str, list[str]]:
        """What is different, in words, by column."""
        encoding: Any = self.fitted.encoding_
        if encoding.is_sparse:
            return {}
        out: dict[str, list[str]] = {}
        limit = DIFFERENT.chance.value / max(len(encoding.columns), 1)
        for place, column in enumerate(encoding.columns):
            name, fitted = column.name, float(encoding.missing[place])
            missing = self._missing[name]
            present = self._rows - missing
            said = [self._forms[name]] if name in self._forms else []
            if _more(missing, self._rows, fitted, limit) or _more(
                present, self._rows, 1.0 - fitted, limit
            ):
                said.append(f"{missing / self._rows:.0%} missing, {fitted:.0%} when fitted")
            kind, j = column.kind, encoding.places[place]
            if _more(self._outside[name], present, DIFFERENT.outside.value, limit):
                share = self._outside[name] / present
                here = "" if kind == "date" else f", such as {self._shown[f'{name} range']:.4g}"
                fitted_range = f" ({encoding.low[j]:.4g} to {encoding.high[j]:.4g})"
                said.append(
                    f"{share:.0%} of its values outside of what was fitted"
                    f"{'' if kind == 'date' else fitted_range}{here}"
                )
            if _more(self._fresh[name], self._rows, DIFFERENT.outside.value, limit):
                share = self._fresh[name] / self._rows
                said.append(f"{share:.0%} of its cells in categories that were never seen")
            if self._odd[name] and not column.lenient:
                n = self._odd[name]
                said.append(
                    f"{n:,} cell{'s' if n > 1 else ''} such as {self._shown[name][:60]!r} neither "
                    "yes nor no, read as missing"
                )
            if said:
                out[name] = said
        return out


def _more(count: int, n: int, expected: float, limit: float) -> bool:
    """Whether the share is more than a fifth above the expected one, and not by chance."""
    if not n or count / n <= expected + DIFFERENT.share.value:
        return False
    return bool(stats.binom.sf(count - 1, n, expected) < limit)
