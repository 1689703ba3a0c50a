"""CSV and TSV: cells as they are written; only columns that a model knows as numbers are parsed.

A CSV file has no types, and guessing them loses what is written: 007 becomes 7. So every cell
comes as text, and what it says is settled per column (:mod:`pnuauc.io.cells`).
"""

from __future__ import annotations

import codecs
import contextlib
import csv as csv_module
import errno
import io
import itertools
import os
import re
import select
import shutil
import stat
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pnuauc._utils.extras import need
from pnuauc.exceptions import InputError, ReadingWarning
from pnuauc.io.cells import MISSING_WORDS, pa
from pnuauc.io.frames import check_names

__all__ = [
    "COMPRESSIONS",
    "FORMATS",
    "CsvReader",
    "ReadOptions",
    "Source",
    "detect_format",
    "find_source",
    "header_place",
    "refuse_address",
    "spooled",
    "told",
]

# Files: which format, behind which compression, and what it is if not what its name says.


#: Formats: what sentences call them, and the endings that mean them.
_KINDS = {
    "csv": ("CSV", ".csv", ".txt"),
    "tsv": ("TSV", ".tsv", ".tab"),
    "parquet": ("Parquet", ".parquet", ".pq"),
    "arrow": ("Arrow or Feather", ".feather", ".arrow", ".ipc"),
    "libsvm": ("LIBSVM", ".libsvm", ".svmlight", ".svm"),
    "jsonl": ("JSON lines", ".jsonl", ".ndjson", ".json"),
    "excel": ("Excel", ".xlsx", ".xlsm"),
}
_NAMES = {kind: name for kind, (name, *_) in _KINDS.items()}
#: Endings that are understood, and what they mean.
FORMATS = {ending: kind for kind, (_, *endings) in _KINDS.items() for ending in endings}
#: Endings of compressed files, and the codec that pyarrow or Python has for them.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz", ".zip": "zip"}
#: Bytes looked at to find encoding, delimiter and header.
HEAD_BYTES = 64 * 1024
_TEXT = ("csv", "tsv", "libsvm", "jsonl")
#: First bytes of files that are something else, what they are, and the ending they should have.
_MAGIC = (
    (b"PAR1", "a Parquet file", ".parquet"),
    (b"ARROW1", "an Arrow file", ".arrow"),
    (b"FEA1", "a Feather file of the first version; write it again with a newer program", None),
    (b"\x1f\x8b", "compressed by gzip", ".gz"),
    (b"BZh", "compressed by bzip2", ".bz2"),
    (b"\xfd7zXZ", "compressed by xz", ".xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", ".zst"),
    (b"PK\x03\x04", "a zip archive or an Excel workbook", ".zip or .xlsx"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls); save it as .xlsx or CSV", None),
    (b"SQLite format 3", "a SQLite database; export a table of it", None),
    (b"\x89HDF", "an HDF5 file; export a table of it", None),
    (b"%PDF", "a PDF", None),
    (b"Obj\x01", "an Avro file; convert it to Parquet", None),
    (b"ORC", "an ORC file; convert it to Parquet", None),
    (b"\x80\x04\x95", "a pickle, which is not opened; save it as Parquet", None),
    (b"\x80\x05\x95", "a pickle, which is not opened; save it as Parquet", None),
)


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file.

    Attributes
    ----------
    delimiter : of CSV files; None looks at the first lines
    encoding : of text files; UTF-16 is recognised by its mark, and what is not UTF-8 is read as
        cp1252 (Windows, Western Europe), with a warning
    format : csv, tsv, jsonl, libsvm, parquet, arrow or excel; None goes by the ending
    sheet : of Excel files; None takes the first
    name : what messages call the file; None takes its path
    header : number of the line (CSV) or row (Excel) that holds the names, from 1; None finds it
        below titles, with a warning
    """

    delimiter: str | None = None
    encoding: str = "utf8"
    format: str | None = None
    sheet: str | None = None
    name: str | None = None
    header: int | None = None


@dataclass(frozen=True)
class Source:
    """A file that exists, with its format and compression.

    ``member`` is the name inside a zip archive.
    """

    path: Path
    kind: str
    options: ReadOptions
    compression: str | None = None
    member: str | None = None

    @property
    def name(self) -> str:
        return self.options.name or str(self.path)

    def open(self) -> Any:
        """The bytes, decompressed, as a pyarrow file to be read once from front to back.

        Never a memory map: a file that is cut short while it is mapped kills the process.
        """
        where = os.fsencode(self.path)  # a name need not be UTF-8
        if self.compression is None:
            return pa.OSFile(where)
        if self.compression == "xz":
            import lzma

            return pa.PythonFile(lzma.open(where))
        if self.compression == "zip":
            return pa.PythonFile(zipfile.ZipFile(self.path).open(str(self.member)))
        return pa.CompressedInputStream(pa.OSFile(where), self.compression)

    def open_seekable(self) -> Any:
        """The same for formats that are read from their end: decompressed in memory."""
        if self.compression is None:
            return self.open()
        with self.open() as stream:
            return pa.BufferReader(stream.read())

    def head(self, n_bytes: int = HEAD_BYTES) -> bytes:
        with self.open() as stream:
            return bytes(stream.read(n_bytes))

    def encoding(self, head: bytes) -> str:
        """The encoding: a mark in front outweighs the default, not what was asked for."""
        asked = self.options.encoding
        if asked.lower().replace("-", "") not in {"utf8", "utf8sig"}:
            return asked
        if head.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
            return "utf-32"
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            return "utf-16"
        zeros = head[:1000].count(0)
        if zeros > 0.3 * len(head[:1000]):
            raise InputError(
                f"'{self.name}' looks like UTF-16 text without a mark that says so; its encoding "
                "must be given, utf-16-le or utf-16-be.",
                about="encoding",
            )
        if not _decodes(head, "utf-8") and _decodes(head, "cp1252") and not zeros:
            _warn(
                f"'{self.name}' is not UTF-8 text and is read as cp1252 (Windows, Western Europe); "
                "if letters look wrong, its encoding must be given."
            )
            return "cp1252"
        return "utf8"


def _decodes(head: bytes, encoding: str) -> bool:
    try:  # the last letter may be cut in two
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _warn(message: str) -> None:
    warnings.warn(message, ReadingWarning, stacklevel=2)


def detect_format(path: str | os.PathLike[str], options: ReadOptions | None = None) -> str:
    """The format by the name's ending (.gz and the like are ignored); a clear error otherwise."""
    return _split(Path(path), options or ReadOptions())[0]


def _split(path: Path, options: ReadOptions) -> tuple[str, str | None]:
    """(format, compression) by the ending and the options."""
    suffixes = [s.lower() for s in path.suffixes]
    compression = None
    if suffixes and suffixes[-1] in COMPRESSIONS:
        compression = COMPRESSIONS[suffixes.pop()]
    if options.format is not None:
        if options.format not in _NAMES:
            raise InputError(
                f"There is no format {options.format!r}; choose among {', '.join(_NAMES)}.",
                about="format",
            )
        return options.format, compression
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]], compression
    if compression == "zip":
        return "zip", compression  # the name inside decides
    raise InputError(_unknown_ending(path, options), about="format")


def _unknown_ending(path: Path, options: ReadOptions) -> str:
    """A true sentence about a file whose name says no format."""
    name = options.name or str(path)
    known = ", ".join(sorted(FORMATS))
    if path.is_file():
        with path.open("rb") as stream:
            looks = _looks_like(stream.read(512))
        if looks is not None:
            return f"'{name}' is {_better_named(*looks)}."
    ending = f"'{path.suffix}' is not an ending" if path.suffix else f"'{name}' has no ending"
    return (
        f"{ending} that names a format ('{name}'); the endings are {known}, also followed by "
        f"{', '.join(COMPRESSIONS)}."
    )


def _better_named(what: str, ending: str | None) -> str:
    return f"{what}; name it with the ending {ending}" if ending else what


def _looks_like(head: bytes) -> tuple[str, str | None] | None:
    for magic, what, ending in _MAGIC:
        if head.startswith(magic):
            return what, ending
    if re.match(rb"\s*<(?:!doctype|html|\?xml)", head[:200].lower()):
        return "a web page or XML, not a table", None
    return None


def find_source(path: str | os.PathLike[str], options: ReadOptions | None = None) -> Source:
    """The file with its format; refuses what is not there, not a file, or not what it says."""
    options = options or ReadOptions()
    where = Path(path)
    name = options.name or str(path)
    _check_file(where, name)
    kind, compression = _split(where, options)
    source = Source(where, kind, options, compression)
    if compression == "zip":
        source = _zip_member(source)
    with told(source):
        head = source.head(512)
    if not head:
        raise InputError(f"'{name}' is empty: it has no header and no rows.")
    looks = _looks_like(head)
    if source.kind in _TEXT and looks is not None:
        what = _better_named(*looks)
        raise InputError(f"'{name}' is read as {_NAMES[source.kind]}, but it is {what}.")
    magic = {"parquet": (b"PAR1",), "excel": (b"PK\x03\x04",)}.get(source.kind)
    if magic and not head.startswith(magic):
        what = f"it is {looks[0]}" if looks else "its content is not; is it CSV under a wrong name"
        raise InputError(f"'{name}' is named as {_NAMES[source.kind]}, but {what}?")
    return source


def refuse_address(path: Path, name: str) -> None:
    """Say so if a path is an address on the network."""
    address = re.match(r"^([a-zA-Z][a-zA-Z0-9+.-]+):/", str(path))
    if address and not path.exists():
        raise InputError(
            f"'{re.sub(':/+', '://', name, count=1)}' is an address, and nothing is fetched from "
            "the network: download the file and name it here."
        )


def _check_file(path: Path, name: str) -> None:
    refuse_address(path, name)
    try:
        mode = path.stat().st_mode
        empty = False
        if stat.S_ISREG(mode):
            with path.open("rb") as stream:
                empty = not stream.read(1)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"There is no file '{name}'; check the name and the folder.") from None
    except PermissionError:
        raise InputError(f"'{name}' may not be read; check its permissions.") from None
    except ValueError:  # a zero byte in the name
        raise InputError("The file's name cannot be used; check it.") from None
    except OSError as error:  # a loop of links, a name that is too long
        raise InputError(f"'{name}' cannot be read ({error.strerror}); check the name.") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"'{name}' is a folder, not a file; name one table inside it.")
    if not stat.S_ISREG(mode):
        raise InputError(f"'{name}' is a pipe or device, not a file; pipe the table in, as '-'.")
    if empty:
        raise InputError(f"'{name}' is empty: it has no header and no rows.")


#: Seconds to wait for somebody to write into a pipe.
_PATIENCE = 10.0
#: How folders with copies of pipes are called, and the age at which they count as left over.
_COPIES, _LEFTOVER_SECONDS = "pnuauc-input-", 86_400.0


@contextmanager
def spooled(
    path: str | os.PathLike[str], options: ReadOptions | None = None
) -> Iterator[tuple[Path, ReadOptions]]:
    """(file, options): the file itself, or what comes through standard input ("-") or a pipe.

    A pipe is copied to a temporary file first, as tables are read more than once. Its format is
    recognized by its content; text that is not CSV needs ``options.format``.
    """
    options = options or ReadOptions()
    where = Path(path)
    if str(path) != "-" and not _is_pipe(where):
        yield where, options
        return
    name = "standard input" if str(path) == "-" else str(path)
    _remove_old_copies()
    with tempfile.TemporaryDirectory(prefix=_COPIES) as folder:
        copy = Path(folder) / "input"
        with copy.open("xb") as target, _pipe(where, name) as stream:
            _copy(stream, target, name)
        with copy.open("rb") as stream:
            kind, ending = _piped_format(stream.read(512), options)
        renamed = copy.rename(copy.with_name(f"input{ending}"))
        yield renamed, replace(options, format=kind, name=options.name or name)


def _copy(stream: Any, target: Any, name: str) -> None:
    """All bytes, as long as they leave some of the disk free: a pipe need not end."""
    least = shutil.disk_usage(target.name).total // 20
    for k in itertools.count():
        block = stream.read(2**20)
        if not block:
            return
        if k % 64 == 0 and shutil.disk_usage(target.name).free < least:
            raise InputError(
                f"What comes from {name} does not end before the temporary folder is nearly full; "
                "save it as a file, and name that."
            )
        target.write(block)


def _remove_old_copies() -> None:
    """Copies that killed processes left, known by their name and an age of a day."""
    for entry in os.scandir(tempfile.gettempdir()):
        with contextlib.suppress(OSError):
            old = time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFTOVER_SECONDS
            if old and entry.name.startswith(_COPIES) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_pipe(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _pipe(path: Path, name: str) -> Iterator[Any]:
    if str(path) == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError("Nothing comes through standard input; pipe a table into it.")
        yield sys.stdin.buffer
        return
    # opening a pipe that no program writes to would wait for ever
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as stream:
        if not select.select([stream], [], [], _PATIENCE)[0]:
            raise InputError(f"'{name}' is a pipe that no program writes to.")
        os.set_blocking(descriptor, True)
        yield stream


def _piped_format(head: bytes, options: ReadOptions) -> tuple[str, str]:
    """(format, ending) of bytes without a name; the ending says the compression."""
    looks = _looks_like(head)
    ending = looks[1] if looks and looks[1] in COMPRESSIONS else ""
    if options.format is not None:
        return options.format, ending
    binary = {".parquet": "parquet", ".arrow": "arrow"}
    if looks and looks[1] in binary:
        return binary[looks[1]], ""
    if head.startswith(b"PK\x03\x04"):
        return "excel", ""
    if not ending and head.lstrip()[:1] in (b"{", b"["):
        return "jsonl", ""
    return "csv", ending


def _zip_member(source: Source) -> Source:
    """The one table inside a zip archive; its name says the format."""
    with told(source), zipfile.ZipFile(source.path) as archive:
        inside = [
            info
            for info in archive.infolist()
            if not info.is_dir() and not Path(info.filename).name.startswith(".")
            and not info.filename.startswith("__MACOSX/")
        ]  # fmt: skip
    if len(inside) != 1:
        raise InputError(
            f"'{source.name}' holds {len(inside)} files; a zip archive with one table is needed."
        )
    if inside[0].flag_bits & 1:
        raise InputError(f"'{source.name}' is encrypted; unpack it first.")
    member = inside[0].filename
    kind = source.kind if source.kind != "zip" else _split(Path(member), source.options)[0]
    return Source(source.path, kind, source.options, "zip", member)


@contextmanager
def told(source: Source) -> Iterator[None]:
    """Errors of the readers as one sentence about the user's file."""
    import lzma

    foreign = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
    try:
        yield
    except InputError:
        raise
    except LookupError as error:
        raise _reading_error(source, str(error)) from error
    except MemoryError:
        raise InputError(
            f"'{source.name}' needs more memory than there is; is it damaged?"
        ) from None
    except (pa.ArrowException, OSError, UnicodeError, *foreign) as error:
        # EINVAL: the file sends us to a place that it does not have
        of_system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        if of_system and source.path.exists():
            raise
        raise _reading_error(source, str(error)) from error


def _reading_error(source: Source, message: str) -> InputError:
    text, about = _reading_sentence(source, message)
    return InputError(text, about=about)


def _reading_sentence(source: Source, message: str) -> tuple[str, str | None]:
    """(what is wrong, what would change that)."""
    name = source.name
    first = message.strip().splitlines()[0].rstrip(".") if message.strip() else "unreadable"
    if "unknown encoding" in message:
        return f"Unknown encoding {source.options.encoding!r}; try utf8 or latin-1.", "encoding"
    if "UTF8" in message or "utf-8" in message or "codec" in message:
        return f"'{name}' is not UTF-8 text; its encoding must be given.", "encoding"
    if "Expected" in message and "columns" in message:
        told = f"'{name}' has rows of unequal length ({first}); is the delimiter right?"
        return told, "delimiter"
    if "Empty CSV" in message or "cannot infer" in message:
        return f"'{name}' is empty: it has no header and no rows.", None
    kind = _NAMES.get(source.kind, source.kind)
    return f"'{name}' cannot be read as {kind} ({first[:200]}); is it damaged or misnamed?", None


# CSV and TSV: cells as they are written; only columns that a model knows as numbers are parsed.


#: Bytes of CSV text parsed at a time.
_BLOCK_BYTES = 8 * 2**20
#: Longest header.
_MAX_HEADER = 2**26
_DELIMITERS = ",;\t|"
#: Rows looked at to find delimiter and header.
_HEAD_ROWS = 50


class CsvReader:
    """Text cells of a CSV or TSV file, whole or batch by batch."""

    def __init__(self, source: Source) -> None:
        self.source = source
        with told(source):
            head = source.head()
            self.encoding = source.encoding(head)
            text = _decoded(head, self.encoding)
            self.delimiter = self._delimiter(text)
            self._names, self._above = self._header(text, len(head))
        check_names(self._names, source.name)

    def _delimiter(self, text: str) -> str:
        asked = self.source.options.delimiter
        delimiter = asked or ("\t" if self.source.kind == "tsv" else _sniff(text))
        if len(delimiter) != 1:
            raise InputError(f"The delimiter must be one character, got {delimiter!r}.")
        return delimiter

    def _header(self, text: str, n_read: int) -> tuple[list[str], int]:
        """(names, lines above them)."""
        size = HEAD_BYTES
        while True:
            rows, starts = self._first_rows(text)
            place = header_place(rows, self.source.options.header, self.source.name, starts)
            # a row is whole if something follows it, or if the file ends with it
            if (place is not None and place + 1 < len(rows)) or n_read < size:
                break
            if size >= _MAX_HEADER:
                raise InputError(f"'{self.source.name}' has no line end: is it a table?")
            size *= 8
            head = self.source.head(size)
            text, n_read = _decoded(head, self.encoding), len(head)
        if place is None:
            raise InputError(f"'{self.source.name}' is empty: it has no header and no rows.")
        return rows[place], starts[place] - 1

    def _first_rows(self, text: str) -> tuple[list[list[str]], list[int]]:
        """Rows that are not empty, and the line in which each begins, from 1."""
        # newline="": a line may end with a carriage return alone
        reader = csv_module.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        rows: list[list[str]] = []
        starts: list[int] = []
        line = 1
        with contextlib.suppress(csv_module.Error):
            for row in itertools.islice(reader, _HEAD_ROWS):
                if row:
                    rows.append(row)
                    starts.append(line)
                line = reader.line_num + 1
        return rows, starts

    def names(self) -> list[str]:
        return list(self._names)

    def table(self) -> Any:
        csv = need("pyarrow.csv")
        with told(self.source), self.source.open() as stream:
            return csv.read_csv(stream, **self._options(self._names, ()))

    def batches(
        self, columns: Sequence[str] | None, floats: Sequence[str], rows: int
    ) -> Iterator[Any]:
        """Record batches; ``floats`` are parsed as float64 as long as all their cells allow it."""
        chosen = self._names if columns is None else list(columns)
        done = 0
        with told(self.source):
            try:
                for batch in self._stream(chosen, floats, rows):
                    yield batch
                    done += batch.num_rows
                return
            except pa.ArrowInvalid as error:
                if not floats or "conversion error" not in str(error):
                    raise
            # some cell is no plain number: from here on as text, whose reader knows more ways to
            # write numbers and names the cell
            for batch in self._stream(chosen, (), rows):
                if done >= batch.num_rows:
                    done -= batch.num_rows
                    continue
                yield batch.slice(done)
                done = 0

    def _stream(self, columns: Sequence[str], floats: Sequence[str], rows: int) -> Iterator[Any]:
        csv = need("pyarrow.csv")
        with (
            self.source.open() as stream,
            csv.open_csv(stream, **self._options(columns, floats)) as reader,
        ):
            for batch in reader:
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)

    def _options(self, columns: Sequence[str], floats: Sequence[str]) -> dict[str, Any]:
        csv = need("pyarrow.csv")
        types = dict.fromkeys(columns, pa.string()) | dict.fromkeys(floats, pa.float64())
        return {
            "read_options": csv.ReadOptions(
                block_size=_BLOCK_BYTES, encoding=self.encoding, skip_rows=self._above
            ),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(
                column_types=types,
                include_columns=list(columns),
                null_values=list(MISSING_WORDS),
                strings_can_be_null=False,
            ),
        }


def _decoded(head: bytes, encoding: str) -> str:
    return head.decode(encoding, errors="replace").removeprefix("\ufeff")


def _sniff(text: str) -> str:
    """The delimiter that stands equally often in most lines; a comma if none does."""
    lines = [line for line in text.splitlines() if line]
    if len(lines) > 1 and len(text) >= HEAD_BYTES // 4:
        lines = lines[:-1]  # may be cut
    best, delimiter = (0, 0), ","
    for candidate in _DELIMITERS:
        counts = Counter(n for line in lines[:_HEAD_ROWS] if (n := line.count(candidate)))
        for n, n_lines in counts.items():
            if (n_lines, n) > best:
                best, delimiter = (n_lines, n), candidate
    return delimiter


def header_place(
    rows: Sequence[Sequence[Any]], asked: int | None, name: str, numbers: Sequence[int]
) -> int | None:
    """Which of the first rows holds the names: the first that is not mostly empty.

    Parameters
    ----------
    rows : cells of the first rows that are not empty
    asked : number of the row with the names, where it is given
    name : of the file
    numbers : of the rows in the file, from 1
    """
    if asked is not None:
        if asked not in numbers:
            raise InputError(f"'{name}' has no names in line {asked}; say another header.")
        return numbers.index(asked)
    if not rows:
        return None
    filled = [sum(cell not in (None, "") for cell in row) for row in rows]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    # half of the names may be missing, as in a header without that of the first column
    place = next((k for k, n in enumerate(filled) if 2 * n > width), 0)
    if place:
        _warn(
            f"'{name}': the {place} line{'s' if place > 1 else ''} above the names in line "
            f"{numbers[place]} left out as a title; if they are not, the header must be given."
        )
    return place
