"""The rows a fit rests on: all labelled ones, and the unlabelled ones with the smallest keys.

Drawn so, a table gives the same rows in the same order however it is cut into files or
partitions, and a larger draw holds the smaller one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._extras import need
from pnuauc._row_hash import Keys, shuffled
from pnuauc._sources._keys import table_keys
from pnuauc._sources._port import Batch, Source
from pnuauc.labels import UNLABELED

__all__ = ["Drawn", "RowKeys", "draw_rows"]

#: How many more rows than wanted pass the first sieve, where keys are as even as they should be.
_SLACK = 1.2
_WHOLE = 2**64 - 1
_MANY_CHUNKS = 64


@dataclass(frozen=True)
class RowKeys:
    """Keys of a batch's rows: of the columns that name them, or of all that is known of them.

    Attributes
    ----------
    columns : names of id columns, or of the feature columns where there are none; sorted, as
        folders and frames order them differently
    seed : int
        Chooses which keys are small and which fold a key falls in.
    """

    columns: tuple[str, ...]
    seed: int = 0

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
    order, content : ndarray of uint64, shape (n,)
        Place in the draw, and a hash of the whole row that settles ties between equal places.
    part, row : ndarray of int64, shape (n,)
        Number of the file, and of the row in it, from 0.
    n_unlabeled : int
        Unlabelled rows that were looked at, drawn or not.
    """

    table: Any
    codes: NDArray[np.int8]
    order: Keys
    content: Keys
    part: NDArray[np.int64]
    row: NDArray[np.int64]
    n_unlabeled: int

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: NDArray[np.intp]) -> Drawn:
        """Some of the rows."""
        return replace(
            self,
            table=self.table.take(need("pyarrow").array(index)),
            **{name: getattr(self, name)[index] for name in _ARRAYS},
        )

    def smallest(self, at_most: int) -> Drawn:
        """All labelled rows and at most so many unlabelled ones, those first in the order."""
        ranked = np.lexsort((self.content, self.order))
        unlabeled = self.codes[ranked] == UNLABELED
        return self.take(ranked[~unlabeled | (np.cumsum(unlabeled) <= at_most)])


_ARRAYS = ("codes", "order", "content", "part", "row")


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
    while True:
        limit = min(int(share * _WHOLE), _WHOLE)
        found: Any = source.fold(
            functools.partial(_look, keys=keys, codes=codes, limit=limit),
            functools.partial(_joined, at_most=at_most),
            None,
        )
        assert found is not None  # a source has rows: they were counted
        drawn: Drawn = found.smallest(at_most)
        if share >= 1.0 or int((drawn.codes == UNLABELED).sum()) >= at_most:
            return drawn
        share = min(1.0, 4 * share)  # many equal rows: their keys are not even


def _look(
    batch: Batch, keys: RowKeys, codes: Callable[[Any], NDArray[np.int8]], limit: int
) -> Drawn:
    found, order = codes(batch.table), keys.order(batch.table)
    unlabeled = found == UNLABELED
    kept = np.flatnonzero(~unlabeled | (order <= np.uint64(limit)))
    pa = need("pyarrow")
    whole = batch.table
    if not isinstance(whole, pa.Table):
        whole = pa.Table.from_batches([whole])
    table = whole.take(pa.array(kept))
    return Drawn(
        table,
        found[kept],
        order[kept],
        table_keys(table, sorted(table.column_names)),
        np.full(len(kept), batch.part, dtype=np.int64),
        batch.first_row + kept.astype(np.int64),
        int(unlabeled.sum()),
    )


def _joined(a: Drawn | None, b: Drawn | None, at_most: int) -> Drawn | None:
    if a is None or b is None:
        return a if b is None else b
    arrays = {name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in _ARRAYS}
    table = need("pyarrow").concat_tables([a.table, b.table]).unify_dictionaries()
    if table.num_columns and table.column(0).num_chunks > _MANY_CHUNKS:
        table = table.combine_chunks()
    both = Drawn(table, **arrays, n_unlabeled=a.n_unlabeled + b.n_unlabeled)
    n_unlabeled = int((both.codes == UNLABELED).sum())
    return both.smallest(at_most) if n_unlabeled > 2 * at_most + 1000 else both
