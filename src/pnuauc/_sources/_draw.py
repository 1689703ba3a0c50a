"""The rows a fit rests on: all labelled ones, and the unlabelled ones with the smallest keys.

Drawn so, a table gives the same rows in the same order however it is cut into files or
partitions. Rows with one key are drawn together; rows that occur very often are not, see
:mod:`pnuauc._sources._often`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._row_hash import Keys, shuffled
from pnuauc._sources._keys import table_keys
from pnuauc._sources._often import KeyCounts
from pnuauc._sources._port import Batch, Source
from pnuauc.io._arrow import pa, pc
from pnuauc.io._cells import is_text
from pnuauc.labels import UNLABELED

__all__ = ["Drawn", "RowKeys", "draw_rows"]

#: How many more rows than wanted pass the first sieve, where keys are as even as they should be.
_SLACK = 1.2
_WHOLE = 2**64 - 1
_MANY_CHUNKS = 64
#: The code of a row that stands for all of its copies while rows are gathered.
_EXAMPLE = -2


@dataclass(frozen=True)
class RowKeys:
    """Keys of a batch's rows: of the columns that name them, or of all that is known of them.

    Attributes
    ----------
    columns : names of id columns, or of the feature columns where there are none; sorted, as
        folders and frames order them differently
    seed : int
        Chooses which keys are small and which fold a key falls in.
    named : bool
        Whether the columns are ids: rows of one id differ, and all of them belong together.
    """

    columns: tuple[str, ...]
    seed: int = 0
    named: bool = False

    def order(self, table: Any) -> Keys:
        """Where each row stands in the order of the draw, shape (n,)."""
        return shuffled(table_keys(table, self.columns), self.seed)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Labelled rows and a draw of the unlabelled ones, in the order of their keys.

    Attributes
    ----------
    table : pyarrow.Table, n rows
    codes : ndarray of int8, shape (n,)
        Roles as in :class:`pnuauc.labels.Roles`.
    key, order, content : ndarray of uint64, shape (n,)
        Key, place in the draw (the key, but for copies of a row that occurs very often), and a
        hash of the whole row that settles ties between equal places.
    part, row : ndarray of int64, shape (n,)
        Number of the file, and of the row in it, from 0.
    spans : dict of column name -> (smallest, largest)
        Of columns that hold whole numbers in every row that was looked at, drawn or not.
    often : KeyCounts
        Of unlabelled rows: while these are looked for, of the commonest; then of these.
    """

    table: Any
    codes: NDArray[np.int8]
    key: Keys
    order: Keys
    content: Keys
    part: NDArray[np.int64]
    row: NDArray[np.int64]
    spans: dict[str, tuple[int, int]]
    often: KeyCounts

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: NDArray[np.intp]) -> Drawn:
        """Some of the rows."""
        return replace(
            self,
            table=self.table.take(pa.array(index)),
            **{name: getattr(self, name)[index] for name in _ARRAYS},
        )

    def smallest(self, at_most: int) -> Drawn:
        """All labelled rows and at most so many unlabelled ones, those first in the order."""
        ranked = np.lexsort((self.content, self.order))
        unlabeled = self.codes[ranked] == UNLABELED
        return self.take(ranked[~unlabeled | (np.cumsum(unlabeled) <= at_most)])

    def with_copies(self, n_unlabeled: int, limit: int) -> Drawn:
        """Each example replaced by the copies of it whose place is not above ``limit``."""
        examples = np.flatnonzero(self.codes == _EXAMPLE)
        if not len(examples):
            return self
        examples = examples[np.argsort(self.key[examples])]  # as they are counted
        place, which = self.often.drawn(n_unlabeled, limit)
        copies = examples[which]
        rest = np.flatnonzero(self.codes != _EXAMPLE)
        drawn = self.take(np.concatenate([rest, copies]))
        codes, order = drawn.codes.copy(), drawn.order.copy()
        codes[len(rest) :], order[len(rest) :] = UNLABELED, place
        return replace(drawn, codes=codes, order=order)


_ARRAYS = ("codes", "key", "order", "content", "part", "row")


def draw_rows(
    source: Source,
    keys: RowKeys,
    codes: Callable[[Any], NDArray[np.int8]],
    at_most: int,
    n_unlabeled: int,
) -> Drawn:
    """All labelled rows and ``at_most`` unlabelled ones, in the order of their keys.

    Parameters
    ----------
    source : Source
        All of its columns are kept.
    codes : callable(table) -> roles of the rows, shape (n,); shipped to where the batches are
    n_unlabeled : int
        Unlabelled rows of the source, as counted before; no key far above the wanted share of
        them is kept on the way, so that little is moved and merged.
    """
    at_most = min(at_most, n_unlabeled)
    share = min(1.0, _SLACK * (at_most + 100) / max(n_unlabeled, 1))
    apart: Keys = np.empty(0, dtype=np.uint64)
    searches = at_most < n_unlabeled and not keys.named
    while True:
        limit = min(int(share * _WHOLE), _WHOLE)
        look = _Look(keys, codes, limit, apart, searches)
        found: Any = source.reduce(look, functools.partial(_joined, at_most=at_most), None)
        assert found is not None  # a source has rows: they were counted
        if searches:
            searches, apart = False, found.often.candidates(n_unlabeled)
            if len(apart):
                continue
        drawn: Drawn = found.with_copies(n_unlabeled, limit).smallest(at_most)
        if share >= 1.0 or int((drawn.codes == UNLABELED).sum()) >= at_most:
            return drawn
        share = min(1.0, 4 * share)  # rows of one key: fewer of them than expected are low


@dataclass(frozen=True, eq=False)
class _Look:
    """A batch -> its labelled rows, its unlabelled ones of low key, and one of each kept apart.

    searches : whether the commonest keys are counted, to be kept apart in the next visit
    """

    keys: RowKeys
    codes: Callable[[Any], NDArray[np.int8]]
    limit: int
    apart: Keys
    searches: bool

    def __call__(self, batch: Batch) -> Drawn:
        codes, order = np.array(self.codes(batch.table)), self.keys.order(batch.table)
        unlabeled = codes == UNLABELED
        often = unlabeled & np.isin(order, self.apart)
        counted = order[unlabeled if self.searches else often]
        examples = np.flatnonzero(often)[np.unique(order[often], return_index=True)[1]]
        codes[examples] = _EXAMPLE
        low = unlabeled & ~often & (order <= np.uint64(self.limit))
        kept = np.flatnonzero(low | ~unlabeled | (codes == _EXAMPLE))
        table, whole = batch.take(kept), batch.table
        return Drawn(
            table,
            codes[kept],
            order[kept],
            order[kept],
            table_keys(table, sorted(table.column_names)),
            np.full(len(kept), batch.part, dtype=np.int64),
            batch.first_row + kept.astype(np.int64),
            {name: span for name in table.column_names if (span := _span(whole.column(name)))},
            KeyCounts.of(counted),
        )


def _span(values: Any) -> tuple[int, int] | None:
    """(smallest, largest) of whole numbers, also where they are text; None of anything else."""
    if is_text(values.type) and len(values) and str(values[0])[-1:].isdigit():
        try:
            values = values.cast(pa.int64())
        except pa.ArrowInvalid:
            return None
    if not pa.types.is_integer(values.type) or values.null_count or not len(values):
        return None
    found = pc.min_max(values).as_py()
    return found["min"], found["max"]


def _joined(a: Drawn | None, b: Drawn | None, at_most: int) -> Drawn | None:
    if a is None or b is None:
        return a if b is None else b
    arrays = {name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in _ARRAYS}
    table = pa.concat_tables([a.table, b.table]).unify_dictionaries()
    if table.num_columns and table.column(0).num_chunks > _MANY_CHUNKS:
        table = table.combine_chunks()
    spans = {
        name: (min(a.spans[name][0], b.spans[name][0]), max(a.spans[name][1], b.spans[name][1]))
        for name in a.spans.keys() & b.spans.keys()
    }
    both = _without_twins(Drawn(table, **arrays, spans=spans, often=a.often + b.often))
    n_unlabeled = int((both.codes == UNLABELED).sum())
    return both.smallest(at_most) if n_unlabeled > 2 * at_most + 1000 else both


def _without_twins(drawn: Drawn) -> Drawn:
    """One example of each key."""
    examples = np.flatnonzero(drawn.codes == _EXAMPLE)
    first = examples[np.unique(drawn.key[examples], return_index=True)[1]]
    if len(first) == len(examples):
        return drawn
    return drawn.take(np.union1d(np.flatnonzero(drawn.codes != _EXAMPLE), first))
