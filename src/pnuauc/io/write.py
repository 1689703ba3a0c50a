"""Files out, whole or not at all; tables batch by batch; which files are ours to replace.

A file is written beside its target under an unpredictable name that is created exclusively, flushed
to the disk, and renamed over the target. Several outputs of one run are renamed one after the other
in the order given, the one that counts last. There is no journal: a process that is killed leaves
each file old or new, and perhaps a ``.pnuauc-*.part``.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from pnuauc._utils.extras import need
from pnuauc.exceptions import InputError, OutputError
from pnuauc.io.cells import is_text, pa, pc
from pnuauc.io.columns import is_bytes
from pnuauc.io.container import MAGIC
from pnuauc.io.formats import COMPRESSIONS, detect_format

#: Age in seconds at which a file in the making counts as left over from a process that was killed.
_LEFTOVER_SECONDS = 86_400.0
_PART = re.compile(r"\.pnuauc-[0-9a-f]{16}\.part")


class _File(io.FileIO):
    """A file in the making beside its target, which remembers that writing to it failed.

    ``final`` is the target with links followed.
    """

    failure: OSError | None = None

    def __init__(self, target: Path) -> None:
        self.target, self.final = target, Path(os.path.realpath(target))
        _sweep(self.final.parent)
        private = os.path.lexists(self.final)  # perhaps nobody else may read the old file
        mode, more = 0o600 if private else 0o666, getattr(os, "O_NOFOLLOW", 0)
        self.part = self.final.with_name(f".pnuauc-{secrets.token_hex(8)}.part")
        super().__init__(self.part, "x", opener=lambda path, f: os.open(path, f | more, mode))
        self.stream = io.BufferedWriter(self)

    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise

    def settle(self) -> None:
        """All bytes on the disk, with the mode (and, where allowed, the group) of the old file."""
        self.stream.flush()
        with contextlib.suppress(FileNotFoundError):
            former = os.lstat(self.final)
            if hasattr(os, "fchmod"):
                with contextlib.suppress(OSError):
                    os.fchown(self.fileno(), -1, former.st_gid)
                os.fchmod(self.fileno(), stat.S_IMODE(former.st_mode))
        os.fsync(self.fileno())

    def drop(self) -> None:
        for close in (self.stream.close, self.close, self.part.unlink):
            with contextlib.suppress(OSError, ValueError):
                close()


@contextlib.contextmanager
def written_together(
    paths: Sequence[Path], recheck: Callable[[], object] = lambda: None
) -> Iterator[list[IO[bytes]]]:
    """Binary files that get their names, in this order, when all of them are complete.

    ``recheck`` is called when all is written and nothing is replaced yet; what it raises counts
    as any error: all is left as it was.
    """
    files: list[_File] = []
    try:
        for path in paths:
            files.append(_File(path))
        yield [file.stream for file in files]
        for file in files:
            file.settle()
        recheck()
        _rename(files)
    except BaseException as error:
        failure = next((file.failure for file in files if file.failure is not None), None)
        if failure is not None and not isinstance(error, KeyboardInterrupt):
            raise OutputError(_failed(failure, [], paths)) from error
        raise
    finally:
        for file in files:
            file.drop()


def _sweep(folder: Path) -> None:
    """Remove what killed processes left here, known by its name and its age, never by content."""
    oldest = time.time() - _LEFTOVER_SECONDS
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if _PART.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.path)


def _rename(files: list[_File]) -> None:
    done: list[Path] = []
    for file in files:
        try:
            os.replace(file.part, file.final)
        except OSError as error:
            left = [f.target for f in files if f.target not in done]
            raise OutputError(_failed(error, done, left)) from error
        done.append(file.target)
    if os.name == "posix":
        for folder in {file.final.parent for file in files}:
            with contextlib.suppress(OSError):  # not every file system can
                handle = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)


def _failed(error: OSError, done: Sequence[Path], left: Sequence[Path]) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    old = ", ".join(f"'{path}'" for path in left)
    if not done:
        return f"Writing failed ({reason}): nothing was replaced, {old} unchanged."
    new = ", ".join(f"'{path}'" for path in done)
    return f"Writing failed ({reason}): {new} new, {old} unchanged. Run the command again."


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse, before any work is done, a place where nothing can be written."""
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise InputError(f"'{target}' is a folder; name a file to write.")
    if target.exists() and not target.is_file():
        raise InputError(f"'{target}' is not a regular file; name another output.")
    if not folder.exists():
        raise InputError(f"There is no folder '{folder}' to write '{target.name}' into; make it.")
    if not folder.is_dir():
        raise InputError(f"'{folder}' is a file, not a folder to write '{target.name}' into.")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise InputError(f"'{target}' may not be written; check the folder's permissions.")
    return target


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that gets its name only when it is complete.

    On any error or interruption a former file of that name is left as it was. Its mode and a link
    that leads to it are kept.
    """
    with written_together([check_writable(path)]) as (stream,):
        yield stream


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with atomic_file(path) as stream:
        stream.write(as_utf8(text))


def as_utf8(text: str) -> bytes:
    """UTF-8; what is no text (a file name in another encoding) becomes a question mark."""
    return text.encode("utf-8", "replace")


class TableWriter:
    """Writes record batches one after the other as CSV, TSV, Parquet or Arrow, by the ending.

    Opened on the first batch, whose schema is everybody's.
    """

    def __init__(self, stream: IO[bytes], path: str | os.PathLike[str]) -> None:
        self.kind = output_format(path)
        self._stream = stream
        self._writer: Any = None

    def write(self, batch: Any) -> None:
        try:
            if self._writer is None:
                self._writer = self._open(batch.schema.with_metadata({SIGN: SIGN}))
            self._writer.write_batch(batch)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # lists, or bytes in CSV
            kinds = {name: batch.schema.field(name).type for name in batch.schema.names}
            odd = (n for n, kind in kinds.items() if pa.types.is_nested(kind) or is_bytes(kind))
            name = next(odd, None)
            if name is None:
                raise
            raise InputError(
                f"Column '{name}' holds {kinds[name]}, which {self.kind.upper()} cannot hold; "
                "write the scores as .parquet, or choose other columns.",
                about="output",
            ) from error

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, schema: Any) -> Any:
        if self.kind == "parquet":
            return need("pyarrow.parquet").ParquetWriter(self._stream, schema)
        if self.kind == "arrow":
            return pa.ipc.new_file(self._stream, schema)
        arrow = need("pyarrow.csv")
        delimiter = "\t" if self.kind == "tsv" else ","
        return arrow.CSVWriter(
            self._stream, schema, write_options=arrow.WriteOptions(delimiter=delimiter)
        )


#: What spreadsheets take for a formula, unless it is a number.
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[-+]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?$"


def count_formulas(batch: Any) -> int:
    """Text cells and names that a spreadsheet would run."""
    found = sum(map(_is_formula, batch.schema.names))
    for values in _text_columns(batch).values():
        found += pc.sum(pc.cast(_formulas(values), "int64")).as_py() or 0
    return int(found)


def without_formulas(batch: Any) -> Any:
    """The batch with an apostrophe before text that a spreadsheet would run."""
    texts = _text_columns(batch)
    columns = []
    for j, column in enumerate(batch.columns):
        if j in texts:
            mark, nothing = (pa.scalar(text, texts[j].type) for text in ("'", ""))
            quoted = pc.binary_join_element_wise(mark, texts[j], nothing)
            column = pc.if_else(_formulas(texts[j]), quoted, texts[j])
        columns.append(column)
    names = [f"'{name}" if _is_formula(name) else name for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _text_columns(batch: Any) -> dict[int, Any]:
    """Text and bytes, in whatever way arrow holds them; both are written to CSV as they are."""
    found = {}
    for j, column in enumerate(batch.columns):
        coded = pa.types.is_dictionary(column.type)
        values = column.dictionary if coded else column
        if is_text(values.type) or is_bytes(values.type):
            values = values.cast(pa.string() if is_text(values.type) else pa.binary())
            found[j] = values.take(column.indices) if coded else values
    return found


def _formulas(values: Any) -> Any:
    starts = pc.match_substring_regex(values, _FORMULA)
    return pc.fill_null(pc.and_not(starts, pc.match_substring_regex(values, _NUMBER)), False)


def _is_formula(text: str) -> bool:
    return re.search(_FORMULA, text) is not None and re.search(_NUMBER, text) is None


def output_format(path: str | os.PathLike[str]) -> str:
    """csv, tsv, parquet or arrow by the ending; scores are not written as LIBSVM."""
    kind = detect_format(path)
    compressed = Path(path).suffix.lower() in COMPRESSIONS
    if kind not in {"csv", "tsv", "parquet", "arrow"} or compressed:
        raise InputError(f"Scores cannot be written as '{path}'; use .csv, .tsv, .parquet, .arrow.")
    return kind


#: A key of the schema of Parquet and Arrow files.
SIGN = "pnuauc"
_HEAD_BYTES = 2**16
_RUN = r"run-[0-9a-f]{16}"
#: Where the run id stands: in the head of a report, first in its numbers, and in the last column of
#: the rows to review.
_PAGE_RUN = re.compile(rf'<meta name="pnuauc-run" content="({_RUN})">')
_JSON_RUN = re.compile(rf'\s*{{\s*"run":\s*"({_RUN})"')
RUN_COLUMN = "pnuauc run"
#: Of held-out scores: rows of one number belong together.
GROUP_COLUMN = "pnuauc group"
#: The last columns of a table of scores.
SCORE_COLUMNS = ("score", "percentile")
CHANCE_COLUMNS = ("probability", "probability_low", "probability_high")


def new_run_id() -> str:
    """A random id that all files of one fit carry, so that a mixture of two fits is seen."""
    return f"run-{secrets.token_hex(8)}"


def is_run_id(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(_RUN, text) is not None


def run_id_of(path: str | os.PathLike[str]) -> str | None:
    """The run id in a report, its numbers or its rows to review; None in any other file."""
    return _run_id(_head(path))


def _head(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a regular file; none of anything else."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as stream:
            return stream.read(_HEAD_BYTES)
    except (OSError, ValueError):
        return b""


def _run_id(head: bytes) -> str | None:
    text = head.decode("utf-8", "replace")
    if text.startswith("<!doctype html>"):
        found = _PAGE_RUN.search(text, 0, 2048)
    else:
        found = _JSON_RUN.match(text)
    if found:
        return found[1]
    names, first = [*_csv_rows(text), [], []][:2]
    own = len(names) == len(first) > 0 and names[-1] == RUN_COLUMN and is_run_id(first[-1])
    return first[-1] if own else None


def _csv_rows(text: str) -> list[list[str]]:
    with contextlib.suppress(csv.Error):
        return list(itertools.islice(csv.reader(io.StringIO(text)), 2))
    return []


def written_by_us(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a model, a report, its numbers or a table of scores that pnuauc wrote.

    Known by what a user's file does not have by accident: a magic number, a run id in its place, a
    key of the schema, or, in CSV and TSV, names that end as those of scores do. A column that was
    added makes the file the user's. An empty file counts as ours: nothing is lost with it.
    """
    head = _head(path)
    if not head:
        return os.path.isfile(path) and os.path.getsize(path) == 0
    if head.startswith(MAGIC) or _run_id(head):
        return True
    if head.startswith((b"PAR1", b"ARROW1")):
        return _schema_has_sign(Path(path))
    lines = head.decode("utf-8", "replace").splitlines()
    return any(_ends_as_scores(lines[:1], delimiter) for delimiter in ",\t")


def _ends_as_scores(header: list[str], delimiter: str) -> bool:
    names = next(csv.reader(header, delimiter=delimiter), [])
    for more in (["reasons"], list(CHANCE_COLUMNS)):
        if names[-len(more) :] == more:
            names = names[: -len(more)]
    return (len(names) > 2 and names[-2:] == [*SCORE_COLUMNS]) or names[-1:] == [RUN_COLUMN]


def _schema_has_sign(path: Path) -> bool:
    try:
        if path.suffix.lower() in {".parquet", ".pq"}:
            schema = need("pyarrow.parquet").read_schema(path)
        else:
            with pa.OSFile(os.fspath(path)) as source:
                schema = pa.ipc.open_file(source).schema
    except (OSError, ValueError, KeyError):
        return False
    return SIGN.encode() in (schema.metadata or {})
