"""What a command is given and where it may write: a table in one file or many, a model."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pnuauc.cli.options import Engine
from pnuauc.exceptions import InputError
from pnuauc.io.formats import (
    COMPRESSIONS,
    FORMATS,
    ReadOptions,
    detect_format,
    refuse_address,
    spooled,
)
from pnuauc.io.readers import read_cells
from pnuauc.io.sources import FileSource
from pnuauc.io.write import check_writable, written_by_us


def check_outputs(
    outputs: Sequence[Path], inputs: Sequence[Path] = (), *, overwrite: bool = False
) -> None:
    """Refuse outputs that are inputs, each other (also through links), or files of somebody else.

    Files that pnuauc wrote are replaced without asking; ``overwrite`` allows others too.
    """
    taken = {_identity(path): path for path in inputs}
    for path in outputs:
        check_writable(path)
        same = taken.get(_identity(path))
        if same is not None:
            what = "an input" if same in inputs else "another output"
            known = f"'{path}'" if path == same else f"'{path}' is the same file as '{same}', which"
            raise InputError(f"{known} is {what} of this command; name another file to write.")
        taken[_identity(path)] = path
        if not overwrite and path.exists() and not written_by_us(path):
            raise InputError(
                f"'{path}' already exists and was not written by pnuauc; name another file, or "
                "replace it with --overwrite."
            )


def _identity(path: Path) -> object:
    """The same for two names of one file, be it there or not."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)  # which a loop of links does not stop
    return found.st_dev, found.st_ino


MODEL_ENDING = ".pnuauc"

#: A single file of at most this many bytes is read whole.
_SMALL_BYTES = 64 * 2**20


@dataclass(frozen=True)
class GivenTable:
    """What the command line names: files, folders and patterns, or one of them, or a pipe."""

    paths: tuple[Path, ...]
    reading: ReadOptions

    @property
    def first(self) -> Path:
        return self.paths[0]

    @property
    def is_many(self) -> bool:
        """Whether it is visited file by file: several files, a folder, a pattern, a large file."""
        if len(self.paths) > 1:
            return True
        path = self.first
        if str(path) == "-":
            return False
        if path.is_dir() or (glob.has_magic(str(path)) and not path.exists()):
            return True
        if not path.is_file() or path.stat().st_size <= _SMALL_BYTES:
            return False
        return detect_format(path, self.reading) in {"csv", "tsv", "parquet", "arrow"}

    @property
    def name(self) -> str:
        """What reports call it."""
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        named = self.reading.name or (str(self.first) if self.is_many else self.first.name)
        return f"{named}{more}"

    def beside(self, ending: str) -> Path:
        """Where to write by default; several files stand for the folder of the first."""
        if len(self.paths) == 1:
            return beside(self.first, ending)
        return beside(self.first.absolute().parent, ending)

    def source(self, n_threads: int = 1, meter: RowMeter | None = None) -> FileSource:
        """The files, to be visited."""
        if any(str(path) == "-" for path in self.paths):
            raise InputError("Standard input is one table; it cannot be joined with files.")
        found = FileSource.open(self.paths, self.reading, n_threads=n_threads)
        if meter is not None:
            meter.source, found.seen = found, meter
        return found

    @contextmanager
    def opened(
        self, n_threads: int = 1, meter: RowMeter | None = None, engine: Engine | None = None
    ) -> Iterator[Any]:
        """A source, or all rows: a ``pyarrow.Table`` or, of LIBSVM, (CSR, labels)."""
        elsewhere = engine if engine is not None and engine.engine else None
        if self.is_many or elsewhere:
            source = self.source(n_threads, meter)
            with elsewhere.files(source) if elsewhere else nullcontext(source) as visited:
                yield visited
            return
        with spooled(self.first, self.reading) as (path, reading):
            data = read_cells(path, reading)
        yield data


def given_tables(table: Path | Sequence[Path], reading: ReadOptions) -> GivenTable:
    """One path or several."""
    paths = (table,) if isinstance(table, (str, os.PathLike)) else tuple(table)
    for path in paths:
        refuse_address(Path(path), str(path))
    return GivenTable(tuple(Path(path) for path in paths), reading)


class RowMeter:
    """Shows beside a bar which visit of the files is running and how many rows it has done."""

    def __init__(self, bar: Any) -> None:
        self.bar, self.visit, self.done = bar, 0, 0
        self.source: FileSource | None = None

    def __call__(self, n: int) -> None:
        """``n`` further rows; 0 says that a visit begins."""
        self.visit += n == 0
        self.done = self.done + n if n else 0
        total = None if self.source is None else self.source.n_rows
        of = f" of {total:,}" if total else ""
        self.bar.inside(0.0, f"visit {self.visit} of the files: {self.done:,}{of} rows")


def beside(table: Path, ending: str | None) -> Path:
    """table.csv.gz -> table<ending>; None keeps the table's own ending after .scored.

    A pattern stands for the folder that it looks into.
    """
    if table.is_dir():
        return table.with_name(table.resolve().name + (ending or ".scored"))
    while glob.has_magic(table.name) and not table.exists():
        table = table.parent
        if not table.name:
            return Path("table" + (ending or ".scored"))
        if not glob.has_magic(str(table)):
            return table.with_name(table.name + (ending or ".scored"))
    stem = _unpacked(table.name if str(table) != "-" else "table.csv")
    suffix = Path(stem).suffix
    return table.with_name(stem.removesuffix(suffix) + (ending or f".scored{suffix}"))


def _unpacked(name: str) -> str:
    """The name without an ending that says how the file is compressed."""
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return name


def scored_files(given: GivenTable, source: FileSource, folder: Path) -> list[Path]:
    """Where the scores of each file go: the same place below ``folder``, as CSV if they must."""
    for path in given.paths:
        if path.is_dir() and folder.resolve().is_relative_to(path.resolve()):
            raise InputError(
                f"'{folder}' lies inside the table '{path}' and would be read as part of it; name "
                "another folder.",
                about="output",
            )
    files = [file.path.absolute() for file in source.files]
    root = Path(os.path.commonpath([path.parent for path in files]))
    targets = []
    for path in files:
        name = _unpacked(path.name)
        kind = FORMATS.get(Path(name).suffix.lower())
        if kind not in {"csv", "tsv", "parquet", "arrow"}:
            name = Path(name).stem + ".csv"
        targets.append(folder / path.relative_to(root).parent / name)
    return targets


def existing_model(path: Path) -> Path:
    """The file as named, or with the ending that ``fit -o model`` added."""
    with_ending = path.with_name(path.name + MODEL_ENDING)
    return with_ending if not path.is_file() and with_ending.exists() else path
