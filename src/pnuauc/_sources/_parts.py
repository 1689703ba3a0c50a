"""What engines share: a table cut into parts, each read and summarised by one task."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pnuauc._rows import merged
from pnuauc._sources._files import FileSource
from pnuauc._sources._port import BATCH_ROWS, Batch
from pnuauc._threads import one_blas_thread
from pnuauc.exceptions import EngineError, InputError

__all__ = ["FileParts", "Job", "PartReader", "slices"]


#: Rows of a part: Parquet files of more are cut between row groups.
PART_ROWS = 1_000_000


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


def _never(a: Any, b: Any) -> Any:
    raise AssertionError("results of a map are not merged")


@dataclass(frozen=True, eq=False)
class Job:
    """What one visit of all parts does; shipped to the tasks as one argument."""

    read: Callable[[Any, int], Iterable[Batch]]
    summarise: Callable[[Batch], Any]
    merge: Callable[[Any, Any], Any] = _never

    def summary(self, part: Any, number: int) -> tuple[Any] | None:
        """The merged summaries of a part's batches as a tuple of one; None if it has none."""
        with one_blas_thread(), _enough_memory(number):
            found = ((self.summarise(batch),) for batch in self.read(part, number))
            return functools.reduce(self.joined, found, None)

    def results(self, part: Any, number: int) -> list[Any]:
        """What ``summarise`` makes of each batch of a part."""
        with one_blas_thread(), _enough_memory(number):
            return [self.summarise(batch) for batch in self.read(part, number)]

    def joined(self, a: tuple[Any] | None, b: tuple[Any] | None) -> tuple[Any] | None:
        return merged(self.merge, a, b)


@contextlib.contextmanager
def _enough_memory(number: int) -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise EngineError(
            f"The task of partition {number} ran out of memory ({error or 'no more is known'}); "
            "raise the memory of workers, or cut the table into smaller partitions."
        ) from error


@dataclass(frozen=True, eq=False)
class FileParts:
    """The files of a table, one a part: what an engine needs to read them where it works.

    Files must be found under the same name there, as on a shared disk. Large Parquet files are
    several parts, each some of the row groups.

    Attributes
    ----------
    source : FileSource, whose files are the parts
    names : files of the table by their number
    file_of : number of the file of each part
    """

    source: FileSource
    names: tuple[str, ...]
    file_of: tuple[int, ...]

    @classmethod
    def of(cls, source: FileSource) -> FileParts:
        """With names that hold in every folder, and nothing that stays with the driver."""
        files = [replace(file, path=file.path.absolute()) for file in source.files]
        pieces = [file.pieces(PART_ROWS) for file in files]
        return cls(
            replace(source, files=[p for own in pieces for p in own], seen=None, n_threads=1),
            tuple(str(file.path) for file in files),
            tuple(i for i, own in enumerate(pieces) for _ in own),
        )

    @property
    def schema(self) -> Any:
        return self.source.schema

    @property
    def columns(self) -> Sequence[str]:
        return list(self.source.schema.names)

    @property
    def part_names(self) -> list[str]:
        return list(self.names)

    @property
    def untyped(self) -> bool:
        return self.source.untyped

    @property
    def numbers(self) -> list[int]:
        """Parts, as tasks are told of them."""
        return list(range(len(self.source.files)))

    def name_of(self, part: int) -> str:
        """The file that a part is of."""
        return self.names[self.file_of[part]]

    def select(self, columns: Sequence[str]) -> FileParts:
        return replace(self, source=self.source.select(columns))

    def __call__(self, part: int, number: int) -> Iterator[Batch]:
        file = self.source.files[part]
        if not file.path.exists():
            raise InputError(
                f"'{file.path}' was not found by the machine that was to read it: it was removed, "
                "or lies on a disk that not all machines share. Nothing was fitted or written."
            )
        for batch in replace(self.source, files=[file]).batches():
            yield replace(batch, part=self.file_of[part])


def slices(table: Any, name: str, part: int) -> Iterator[Batch]:
    """A table in memory as batches of neighbouring rows."""
    for start in range(0, table.num_rows, BATCH_ROWS):
        yield Batch(table.slice(start, BATCH_ROWS), name, start, part)
