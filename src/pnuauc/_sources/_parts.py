"""What engines share: a table cut into parts, each read and summarised by one task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pnuauc._sources._port import BATCH_ROWS, Batch, merged
from pnuauc._threads import one_blas_thread

__all__ = ["Job", "PartReader", "slices"]


class PartReader(Protocol):
    """Turns a part, in the task that has it, into batches."""

    @property
    def schema(self) -> Any:
        """Names and types of the columns."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    def select(self, columns: Sequence[str]) -> PartReader:
        """The same with these columns only."""
        ...

    def __call__(self, part: Any, number: int) -> Iterable[Batch]: ...


@dataclass(frozen=True, eq=False)
class Job:
    """What one visit of all parts does; shipped to the tasks as one argument."""

    read: Callable[[Any, int], Iterable[Batch]]
    summarise: Callable[[Batch], Any]
    merge: Callable[[Any, Any], Any]

    def summary(self, part: Any, number: int) -> tuple[Any] | None:
        """The merged summaries of a part's batches as a tuple of one; None if it has none."""
        with one_blas_thread():
            found = ((self.summarise(batch),) for batch in self.read(part, number))
            return functools.reduce(self.joined, found, None)

    def results(self, part: Any, number: int) -> list[Any]:
        """What ``summarise`` makes of each batch of a part."""
        with one_blas_thread():
            return [self.summarise(batch) for batch in self.read(part, number)]

    def joined(self, a: tuple[Any] | None, b: tuple[Any] | None) -> tuple[Any] | None:
        return merged(self.merge, a, b)


def slices(table: Any, name: str, part: int) -> Iterator[Batch]:
    """A table in memory as batches of neighbouring rows."""
    for start in range(0, table.num_rows, BATCH_ROWS):
        yield Batch(table.slice(start, BATCH_ROWS), name, start, part)
