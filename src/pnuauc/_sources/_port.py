"""Where the rows of a table live: the one thing that no other module knows.

A source answers two questions about its batches, :meth:`Source.reduce` and :meth:`Source.map`, as
:class:`pnuauc._rows.Rows` does for the rows of one role. Memory, files, Dask and Spark are
implementations of it. What is handed to them is shipped to where the batches are: functions of a
module, ``functools.partial`` of them or small dataclasses with ``__call__``, never closures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pnuauc._rows import Block, Visited, map_blocks, merge_known, merged, row_blocks
from pnuauc.io._arrow import pa

__all__ = ["Batch", "MemorySource", "Source", "SourceRows", "is_source"]

#: Rows of a batch: 20 float64 columns take 10 MB.
BATCH_ROWS = 65_536

_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class Batch:
    """Some neighbouring rows of a table.

    Attributes
    ----------
    table : pyarrow.RecordBatch or pyarrow.Table
        In the types of :attr:`Source.schema`.
    name : str
        What messages call the file (or partition) that the rows come from.
    first_row : int
        Rows of that file before these.
    part : int
        Number of that file; rows of a source are in the order (part, row).
    """

    table: Any
    name: str = "table"
    first_row: int = 0
    part: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Some of the rows, by their places, as a ``pyarrow.Table``."""
        found = self.table.take(pa.array(rows))
        return found if isinstance(found, pa.Table) else pa.Table.from_batches([found])


class Source(Visited[Batch], Protocol):
    """A table, batch by batch. The order of batches is fixed, whatever speed is asked for."""

    @property
    def schema(self) -> Any:
        """Names and types of the columns: one ``pyarrow.Schema`` for all batches."""
        ...

    def select(self, columns: Sequence[str]) -> Source:
        """The same with these columns only: what is not asked for is not read."""
        ...


def is_source(data: Any) -> bool:
    """Whether ``data`` is a source, and no frame of any library."""
    return all(hasattr(data, name) for name in ("reduce", "map", "select", "schema"))


class LocalSource(Visited[Batch]):
    """What sources on this machine share: batches come one by one, threads work on them."""

    n_threads: int = 1
    seen: Callable[[int], None] | None = None

    def batches(self) -> Iterator[Batch]:
        raise NotImplementedError

    def map(self, function: Callable[[Batch], _Result]) -> Iterator[_Result]:
        """function(batch) for every batch, in order; a few batches are held at a time."""
        for n, result in map_blocks(partial(_sized, function), self.batches(), self.n_threads):
            if self.seen is not None:
                self.seen(n)
            yield result


def _sized(function: Callable[[Batch], _Result], batch: Batch) -> tuple[int, _Result]:
    return len(batch), function(batch)


@dataclass(eq=False)
class MemorySource(LocalSource):
    """A ``pyarrow.Table`` in memory."""

    table: Any
    name: str = "table"
    batch_rows: int = BATCH_ROWS
    n_threads: int = 1
    seen: Callable[[int], None] | None = None

    @property
    def schema(self) -> Any:
        return self.table.schema

    def select(self, columns: Sequence[str]) -> MemorySource:
        return replace(self, table=self.table.select(list(columns)))

    def batches(self) -> Iterator[Batch]:
        for rows in row_blocks(self.table.num_rows, self.batch_rows):
            part = self.table.slice(rows.start, rows.stop - rows.start)
            yield Batch(part, self.name, rows.start)


class SourceRows:
    """The rows of one role that live in a source: a visitor as :mod:`pnuauc._rows` knows it.

    Parameters
    ----------
    source : Source
    read : callable(Batch) -> iterable of Block
        The rows of the role in a batch, shape (n, d), with their folds; blocks do not know how
        many rows of the role come before them (``start`` is 0).
    """

    def __init__(self, source: Source, read: Callable[[Batch], Iterable[Block]]) -> None:
        self.source, self.read = source, read

    def map(self, function: Callable[[Block], _Result]) -> Iterator[_Result]:
        """function(block) for every block, in order."""
        for found in self.source.map(partial(_each_block, self.read, function)):
            yield from found

    def reduce(
        self,
        summarise: Callable[[Block], _Result],
        merge: Callable[[_Result, _Result], _Result],
        zero: _Result,
    ) -> _Result:
        """Merge the summaries of all blocks: those of a batch where it is, then the batches."""
        found = self.source.reduce(
            partial(_merged_blocks, self.read, summarise, merge), merge_known(merge), None
        )
        return zero if found is None else merge(zero, found[0])


def _each_block(
    read: Callable[[Batch], Iterable[Block]], function: Callable[[Block], _Result], batch: Batch
) -> list[_Result]:
    return [function(block) for block in read(batch)]


def _merged_blocks(
    read: Callable[[Batch], Iterable[Block]],
    summarise: Callable[[Block], _Result],
    merge: Callable[[_Result, _Result], _Result],
    batch: Batch,
) -> tuple[_Result] | None:
    """The merged summaries of a batch's blocks as a tuple of one; None where it has none."""
    found = None
    for block in read(batch):
        found = merged(merge, found, (summarise(block),))
    return found
