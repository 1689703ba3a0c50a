"""Files: which format, behind which compression, and what it is if not what its name says."""

from __future__ import annotations

import codecs
import errno
import itertools
import lzma
import os
import re
import shutil
import stat
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pnuauc.exceptions import InputError, ReadingWarning
from pnuauc.io.cells import pa

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
#: First bytes of compressed files. Names are not asked: what comes through a pipe has none.
_COMPRESSED = (
    (rb"\x1f\x8b", "gzip"),
    (rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", "bz2"),
    (rb"\xfd7zXZ", "xz"),
    (rb"\x28\xb5\x2f\xfd", "zstd"),
)
#: Bytes looked at to find encoding, delimiter and header.
HEAD_BYTES = 64 * 1024
_TEXT = ("csv", "tsv", "libsvm", "jsonl")
#: First bytes of files that are something else, what they are, and the ending they should have.
_MAGIC = (
    (b"PAR1", "a Parquet file", ".parquet"),
    (b"ARROW1", "an Arrow file", ".arrow"),
    (b"FEA1", "a Feather file of the first version; write it again with a newer program", None),
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
            warn_of_reading(
                f"'{self.name}' is not UTF-8 text and is read as cp1252 (Windows, Western Europe); "
                "if letters look wrong, its encoding must be given.",
                "encoding",
            )
            return "cp1252"
        return "utf8"


def _decodes(head: bytes, encoding: str) -> bool:
    try:  # the last letter may be cut in two
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def warn_of_reading(message: str, about: str) -> None:
    warnings.warn(ReadingWarning(message, about=about), stacklevel=2)


def detect_format(path: str | os.PathLike[str], options: ReadOptions | None = None) -> str:
    """The format by the name's ending (.gz and the like are ignored); a clear error otherwise."""
    asked = options.format if options else None
    if asked is not None:
        if asked not in _NAMES:
            raise InputError(
                f"There is no format {asked!r}; choose among {', '.join(_NAMES)}.", about="format"
            )
        return asked
    where, packed = Path(path), Path(path).suffix.lower()
    if packed in COMPRESSIONS:
        where = where.with_suffix("")
    kind = FORMATS.get(where.suffix.lower())
    if kind is not None or packed == ".zip":
        return kind or "zip"  # then the name inside decides
    raise InputError(_unknown_ending(Path(path), options or ReadOptions()), about="format")


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
    head = _first_bytes(where, name)
    kind = detect_format(where, options)
    named = COMPRESSIONS.get(where.suffix.lower())
    found = next((codec for magic, codec in _COMPRESSED if re.match(magic, head)), None)
    if named not in (None, "zip", found):
        raise InputError(f"'{name}' is named as compressed by {named}, but it is not.")
    source = Source(where, kind, options, "zip" if named == "zip" else found)
    if named == "zip":
        source = _zip_member(source)
    with told(source):
        head = source.head(512)
    if not head:
        raise InputError(f"'{name}' is empty: it has no header and no rows.")
    looks = _looks_like(head)
    if source.kind in _TEXT and looks is not None:
        what = _better_named(*looks)
        raise InputError(f"'{name}' is read as {_NAMES[source.kind]}, but it is {what}.")
    magic = {"parquet": b"PAR1", "excel": b"PK\x03\x04"}.get(source.kind, b"")
    if not head.startswith(magic):
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


def _first_bytes(path: Path, name: str) -> bytes:
    """Of a regular file that is not empty; a sentence about anything else."""
    refuse_address(path, name)
    head = b""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            with path.open("rb") as stream:
                head = stream.read(16)
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
    if not head:
        raise InputError(f"'{name}' is empty: it has no header and no rows.")
    return head


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
    # without a name where the system can: then nothing is left even by a process that is killed
    nameless = os.path.isdir("/proc/self/fd")
    make = tempfile.TemporaryFile if nameless else tempfile.NamedTemporaryFile
    with make() as copy, _pipe(where) as stream:
        _copy(stream, copy, name)
        copy.seek(0)
        kind = options.format or _piped_format(copy.read(512))
        place = Path(f"/proc/self/fd/{copy.fileno()}" if nameless else copy.name)
        yield place, replace(options, format=kind, name=options.name or name)


def _copy(stream: Any, target: Any, name: str) -> None:
    """All bytes, as long as they leave some of the disk free: a pipe need not end."""
    least = shutil.disk_usage(tempfile.gettempdir()).total // 20
    for k in itertools.count():
        block = stream.read(2**20)
        if not block:
            break
        if k % 64 == 0 and shutil.disk_usage(tempfile.gettempdir()).free < least:
            raise InputError(
                f"What comes from {name} does not end before the temporary folder is nearly full; "
                "save it as a file, and name that."
            )
        if k == 0 and not block.strip(b"\0"):
            raise InputError(f"What comes from {name} begins with zero bytes: it is no table.")
        target.write(block)
    target.flush()


def _is_pipe(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _pipe(path: Path) -> Any:
    if str(path) != "-":
        return path.open("rb")
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("Nothing comes through standard input; pipe a table into it.")
    return nullcontext(sys.stdin.buffer)


def _piped_format(head: bytes) -> str:
    """The format of bytes without a name."""
    binary = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "excel"}
    found = next((kind for magic, kind in binary.items() if head.startswith(magic)), None)
    return found or ("jsonl" if head.lstrip()[:1] in (b"{", b"[") else "csv")


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
    kind = source.kind if source.kind != "zip" else detect_format(member, source.options)
    return replace(source, kind=kind, member=member)


@contextmanager
def told(source: Source) -> Iterator[None]:
    """Errors of the readers as one sentence about the user's file."""
    foreign = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(
            f"'{source.name}' needs more memory than there is; is it damaged?"
        ) from None
    except (pa.ArrowException, LookupError, OSError, UnicodeError, *foreign) as error:
        # EINVAL: the file sends us to a place that it does not have
        of_system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        if of_system and source.path.exists():
            raise
        text, about = _reading_sentence(source, str(error))
        raise InputError(text, about=about) from error


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
