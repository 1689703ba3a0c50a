"""What engines share: a table cut into parts, each read and summarised by one task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pnuauc._rows import merged
from pnuauc._sources._files import FileSource
from pnuauc._sources._port import BATCH_ROWS, Batch
from pnuauc._threads import one_blas_thread

__all__ = ["FileParts", "Job", "PartReader", "slices"]


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


@dataclass(frozen=True, eq=False)
class FileParts:
    """The files of a table, one a part: what an engine needs to read them where it works.

    Files must be found under the same name there, as on a shared disk.
    """

    source: FileSource

    @classmethod
    def of(cls, source: FileSource) -> FileParts:
        """With names that hold in every folder, and nothing that stays with the driver."""
        files = [replace(file, path=file.path.absolute()) for file in source.files]
        return cls(replace(source, files=files, seen=None, n_threads=1))

    @property
    def schema(self) -> Any:
        return self.source.schema

    @property
    def columns(self) -> Sequence[str]:
        return list(self.source.schema.names)

    @property
    def part_names(self) -> list[str]:
        return self.source.part_names

    @property
    def untyped(self) -> bool:
        return self.source.untyped

    @property
    def numbers(self) -> list[int]:
        """Parts, as tasks are told of them."""
        return list(range(len(self.source.files)))

    def select(self, columns: Sequence[str]) -> FileParts:
        return FileParts(self.source.select(columns))

    def __call__(self, part: int, number: int) -> Iterator[Batch]:
        one = replace(self.source, files=[self.source.files[part]])
        for batch in one.batches():
            yield replace(batch, part=part)


def slices(table: Any, name: str, part: int) -> Iterator[Batch]:
    """A table in memory as batches of neighbouring rows."""
    for start in range(0, table.num_rows, BATCH_ROWS):
        yield Batch(table.slice(start, BATCH_ROWS), name, start, part)
