"""All unlabelled rows of a source, encoded block by block as they are visited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._row_hash import Keys, fold_of
from pnuauc._rows import ArrayRows, Block
from pnuauc._sources._draw import RowKeys
from pnuauc._sources._port import Batch, Source, SourceRows
from pnuauc.io._columns import cells_of
from pnuauc.io._encoder import TableEncoder
from pnuauc.labels import UNLABELED

__all__ = ["AllUnlabeled", "Encoded"]

#: What is made of a batch: (matrix of shape (n, d), weights of shape (n,) or None).
ReadRows = Callable[[Batch], tuple[Any, NDArray[np.float64] | None]]


@dataclass(frozen=True, eq=False)
class Encoded:
    """A batch of a table -> its rows as the encoder encodes them; errors name the file."""

    encoder: TableEncoder

    def __call__(self, batch: Batch) -> tuple[Any, None]:
        with cells_of(batch.name):
            return self.encoder.encode(batch.table, batch.first_row), None


@dataclass(frozen=True, eq=False)
class AllUnlabeled:
    """The unlabelled rows of a source; those in memory are a draw (:func:`draw_rows`).

    Attributes
    ----------
    source : Source, with the columns that are needed and no others
    read : callable(Batch) -> (X, weight or None), all rows of the batch
    codes : callable(table) -> roles of the rows, shape (n,)
    keys : RowKeys
    drawn : ndarray of uint64
        ``Drawn.key`` of the unlabelled rows in memory.
    views : callables that X goes through, in turn
    """

    source: Source
    read: ReadRows
    codes: Callable[[Any], NDArray[np.int8]]
    keys: RowKeys
    drawn: Keys
    views: tuple[Callable[[Any], Any], ...] = ()

    def drawn_folds(self, n_folds: int) -> NDArray[np.intp]:
        """The fold of each unlabelled row in memory."""
        return fold_of(self.drawn, n_folds)

    def through(self, view: Callable[[Any], Any]) -> AllUnlabeled:
        """The same rows, each block X as view(X)."""
        return replace(self, views=(*self.views, view))

    def rows(self, n_folds: int, block_size: int) -> SourceRows:
        """A visitor of all unlabelled rows, with their folds."""
        read = _Blocks(self.read, self.codes, self.keys, self.views, n_folds, block_size)
        return SourceRows(self.source, read)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """A batch -> blocks of its unlabelled rows, each of one fold."""

    read: ReadRows
    codes: Callable[[Any], NDArray[np.int8]]
    keys: RowKeys
    views: tuple[Callable[[Any], Any], ...]
    n_folds: int
    block_size: int

    def __call__(self, batch: Batch) -> Iterable[Block]:
        rows = np.flatnonzero(self.codes(batch.table) == UNLABELED)
        if not len(rows):
            return
        X, weight = self.read(batch)
        folds = fold_of(self.keys.order(batch.table)[rows], self.n_folds)
        order = np.argsort(folds, kind="stable")
        index = rows[order]
        visitor = ArrayRows(
            X,
            index,
            folds[order],
            None if weight is None else weight[index],
            block_size=self.block_size,
        )
        yield from visitor.map(partial(_viewed, views=self.views))


def _viewed(block: Block, views: tuple[Callable[[Any], Any], ...]) -> Block:
    return replace(block, read=partial(_through, block.read, views)) if views else block


def _through(read: Callable[[], Any], views: tuple[Callable[[Any], Any], ...]) -> Any:
    """The rows of a block through views; a block that was made where it is read stays there."""
    X = read()
    for view in views:
        X = view(X)
    return X
