"""The rows of a study: all labelled ones and the unlabelled ones it draws, in a fixed order.

Rows come in the order of their keys (:mod:`pnuauc._row_hash`), so that a fit does not depend on
the order in which a table lists them, nor on the files that it is cut into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._role_counts import RoleCounts
from pnuauc._row_hash import Keys
from pnuauc._sources import (
    AllUnlabeled,
    Drawn,
    Encoded,
    MemorySource,
    RowKeys,
    Source,
    draw_rows,
    is_source,
)
from pnuauc._study._census import LabelReader, read_source_labels
from pnuauc._study._data import ColumnRoles, check_enough, check_present, read_values
from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder, as_table
from pnuauc.io._arrow import pa
from pnuauc.io._cells import is_text, parse_numbers, tidy
from pnuauc.labels import Roles

__all__ = ["SAMPLE_ROWS", "Origin", "StudyRows", "ids_of", "study_rows"]

#: Unlabelled rows that are drawn: on waveform with 200 positives, ranking was as good with 20,000.
SAMPLE_ROWS = 200_000
#: Cells of a column that say what a file holds, and the share that must agree.
_FEW_CELLS, _NEARLY_ALL = 20, 0.9


@dataclass(frozen=True, eq=False)
class Origin:
    """Where all rows of a study are.

    source : Source
    labels : how their labels are read
    keys : how rows are told apart
    drawn : keys of the unlabelled rows in memory
    """

    source: Source
    labels: LabelReader
    keys: RowKeys
    drawn: Keys

    def everything(self, encoder: TableEncoder) -> AllUnlabeled:
        """All unlabelled rows, encoded where they are."""
        used = [column.name for column in encoder.columns_]
        needed = list(dict.fromkeys([self.labels.label, *self.keys.columns, *used]))
        return AllUnlabeled(
            self.source.select(needed), Encoded(encoder), self.labels, self.keys, self.drawn
        )


@dataclass(frozen=True, eq=False)
class StudyRows:
    """What a study is made on.

    Attributes
    ----------
    table : pyarrow.Table of the feature columns, or CSR
    roles : Roles, of the rows of ``table``
    ids : pyarrow.Table or None
    numbers : ndarray of int, shape (n,)
        Number of each row in its file, from 0.
    counts : RoleCounts
        Of the whole table.
    notes : sentences about columns and rows that were left out
    origin : Origin or None
        Where they were drawn from; None if that is all there are.
    """

    table: Any
    roles: Roles
    ids: Any
    numbers: NDArray[np.int64]
    counts: RoleCounts
    notes: tuple[str, ...] = ()
    origin: Origin | None = None


def study_rows(data: Any, columns: ColumnRoles, max_unlabeled: int | str, seed: int) -> StudyRows:
    """The rows to fit on.

    Parameters
    ----------
    data : any frame, a Source, or (CSR, labels)
    max_unlabeled : int, or "all"
        Unlabelled rows to draw; all are used where they are fewer. With "all" the rows drawn are
        those that come to this machine.
    """
    at_most = _checked(max_unlabeled)
    if isinstance(data, tuple) and len(data) == 2 and sparse.issparse(data[0]):
        roles = read_values(data[1], "label", columns.codes.for_type(pa.float64()))
        numbers = np.arange(len(roles))
        return StudyRows(data[0].tocsr(), roles, None, numbers, RoleCounts.of(roles))
    source: Source = data if is_source(data) else MemorySource(as_table(data))
    check_present(source.schema.empty_table(), columns)
    labels, counts = read_source_labels(source, columns.label, columns.codes)
    check_enough(counts, columns.label)
    kept = [name for name in source.schema.names if name not in columns.drop]
    features = [name for name in kept if name not in (columns.label, *columns.ids)]
    keys = RowKeys(tuple(sorted(columns.ids or features)), seed, bool(columns.ids))
    drawn = draw_rows(source.select(kept), keys, labels, at_most, counts.n_unlabeled)
    roles = Roles(drawn.codes, counts.positive_label, counts.negative_label, counts.announcement)
    if getattr(source, "untyped", False):
        _check_files_agree(drawn, features, columns, source)
    notes, numbering = [], []
    is_draw = len(drawn) < len(counts)
    if is_draw:
        numbering = [c for c in features if _numbers_rows(drawn.spans.get(c), len(counts))]
        notes += [f"Column '{name}' numbers the rows; left out." for name in numbering]
        notes.append(_draw_note(roles.n_unlabeled, counts.n_unlabeled, max_unlabeled))
    return StudyRows(
        drawn.table.select([name for name in features if name not in numbering]),
        roles,
        ids_of(drawn.table, columns.ids, drawn.part, source),
        drawn.row,
        counts,
        tuple(notes),
        Origin(source, labels, keys, drawn.key[roles.unlabeled]) if is_draw else None,
    )


def _checked(max_unlabeled: int | str) -> int:
    if max_unlabeled == "all":
        return SAMPLE_ROWS
    if isinstance(max_unlabeled, (int, np.integer)) and max_unlabeled >= 2:
        return int(max_unlabeled)
    raise InputError(
        f"The number of unlabelled rows to use must be 2 or more, or 'all'; got {max_unlabeled!r}.",
        about="max_unlabeled",
    )


def _draw_note(n_drawn: int, n: int, max_unlabeled: int | str) -> str:
    if max_unlabeled == "all":
        return (
            f"All {n:,} unlabelled rows were used; prior, encoding and trees rest on "
            f"{n_drawn:,} of them, drawn by a hash of each row."
        )
    return (
        f"Fitted on {n_drawn:,} of {n:,} unlabelled rows, drawn by a hash of each row; threshold "
        "and rows to review come from all."
    )


def _numbers_rows(span: tuple[int, int] | None, n_rows: int) -> bool:
    return span is not None and span[1] - span[0] + 1 == n_rows


def ids_of(table: Any, ids: Sequence[str], part: NDArray[np.int64], source: Any) -> Any:
    """The columns that name rows, the file in front where there are several; None without any."""
    found, names = table.select(list(ids)), getattr(source, "part_names", ())
    if len(names) > 1 and "file" not in found.column_names:
        files = pa.array([names[i] for i in part])
        found = pa.table({"file": files, **{n: found.column(n) for n in ids}})
    return found if found.num_columns else None


def _check_files_agree(
    drawn: Drawn, features: Sequence[str], columns: ColumnRoles, source: Any
) -> None:
    """Refuse a column of text files that holds numbers in one file and words in another."""
    for name in features:
        values = drawn.table.column(name)
        if not is_text(values.type) or name in columns.categorical:
            continue
        cells = tidy(values)
        there = np.asarray(cells.is_valid().to_numpy())
        number = ~np.isnan(parse_numbers("", cells))
        shares = {}
        for part in np.unique(drawn.part):
            own = there & (drawn.part == part)
            if own.sum() >= _FEW_CELLS:
                shares[int(part)] = float(number[own].mean())
        if not shares:
            continue
        low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        if shares[high] >= _NEARLY_ALL and shares[low] <= 1 - _NEARLY_ALL:
            words = np.flatnonzero(there & ~number & (drawn.part == low))
            raise InputError(
                f"Column {name!r} holds numbers in '{source.part_names[high]}' but not in "
                f"'{source.part_names[low]}' ({cells[int(words[0])].as_py()[:40]!r}); write it "
                "alike in all files, name it as a categorical column, or leave it out.",
                about="drop",
            )
