"""Tests of io/formats."""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
import zlib
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from pnuauc.exceptions import InputError
from pnuauc.io import (
    ReadOptions,
    read_table,
)
from pnuauc.io.formats import Source, detect_format, find_source, spooled, told
from pnuauc.io.readers import CsvReader
from tests.typed_tables import (
    write_csv,
    write_excel,
    write_lines,
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "csv"), ("a.CSV.GZ", "csv"), ("a.b.tsv", "tsv"), ("a.zip", "zip"),
     ("a.json", "jsonl"),
     ("a.csv.zip", "csv"), ("a.xlsm", "excel"), ("a.svm.bz2", "libsvm")],
)  # fmt: skip
def test_formats_by_ending(name, kind):
    assert detect_format(name) == kind
    assert detect_format(name, ReadOptions(format="tsv")) == "tsv"
    with pytest.raises(InputError, match="no format 'xml'"):
        detect_format(name, ReadOptions(format="xml"))
    with pytest.raises(InputError, match="not an ending that names a format"):
        detect_format("a.gz.dat")


@pytest.mark.parametrize(
    ("content", "options", "encoding"),
    [
        (b"\xff\xfea\0", {}, "utf-16"), (b"\xfe\xff\0a", {}, "utf-16"), (b"abc", {}, "utf8"),
        (b"\xff\xfe\0\0a\0\0\0", {}, "utf-32"), (b"abc", {"encoding": "latin-1"}, "latin-1"),
        (b"\xff\xfea\0", {"encoding": "latin-1"}, "latin-1"),
        (b"abc", {"encoding": "UTF-8"}, "utf8"),
        (b"a" * 700 + b"\0" * 300, {}, "utf8"), (b"a" * 699 + b"\0" * 301, {}, None),
    ],
)  # fmt: skip
def test_encodings_by_their_mark(tmp_path, content, options, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    source = find_source(path, ReadOptions(**options))
    if encoding is None:
        with pytest.raises(InputError, match="UTF-16 text without a mark"):
            source.encoding(source.head())
    else:
        assert source.encoding(source.head()) == encoding
    assert source.head(2) == content[:2]


def test_pipes_are_copied_and_files_are_not(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with spooled(path) as (where, options):
        assert (where, options) == (path, ReadOptions())
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"a\tb\n1\t2\n" * 3))
    writer.start()
    with spooled(pipe, ReadOptions(format="tsv")) as (where, options):
        assert where.read_bytes() == b"a\tb\n1\t2\n" * 3
        assert (options.format, options.name) == ("tsv", str(pipe))
    writer.join()
    assert not where.exists()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.jsonl", "t.csv.gz", "t.xlsx"])
def test_standard_input_is_known_by_its_content(tmp_path, monkeypatch, name):
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
    else:
        write = {".csv": write_csv, ".jsonl": write_lines, ".xlsx": write_excel,
                 ".parquet": lambda t, p: pa.parquet.write_table(t, p),
                 ".arrow": lambda t, p: pa.feather.write_feather(t, p)}  # fmt: skip
        write[path.suffix](table, path)
    with path.open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        with spooled("-") as (copy, options):
            assert read_table(copy, options).to_pydict() == table.to_pydict()
        assert options.name == "standard input"


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-8-sig"])
def test_texts_of_other_encodings(file, encoding):
    path = file("ä;b\nü;1\n".encode(encoding))
    options = ReadOptions(encoding="latin-1") if encoding == "latin-1" else None
    assert read_table(path, options).to_pydict() == {"ä": ["ü"], "b": [1]}
    reader = CsvReader(find_source(path, options))
    assert (reader.delimiter, reader.schema().names) == (";", ["ä", "b"])


def test_a_delimiter_is_one_character(file):
    path = file("a;b\n1;2\n")
    assert CsvReader(find_source(path, ReadOptions(delimiter=";"))).schema().names == ["a", "b"]
    assert CsvReader(find_source(path, ReadOptions(delimiter=","))).schema().names == ["a;b"]
    with pytest.raises(InputError, match="must be one character, got ';;'"):
        CsvReader(find_source(path, ReadOptions(delimiter=";;")))
    tabbed = file("a,b\tc\n1,2\t3\n", "t.tsv")
    assert CsvReader(find_source(tabbed)).schema().names == ["a,b", "c"]


def piped(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    return spooled("-")


def test_what_does_not_end_is_not_copied_until_the_disk_is_full(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    free = iter([100, 100, 4])
    usage = lambda _: SimpleNamespace(total=100, free=next(free))  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)
    with (
        pytest.raises(InputError, match="does not end before the temporary folder is nearly full"),
        piped(monkeypatch, b"1" * (65 * 2**20)),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_device_is_no_table():
    with pytest.raises(InputError, match="is a pipe or device"), spooled("/dev/zero") as (path, _):
        find_source(path, ReadOptions(format="csv"))


KILLED = """
import os, signal
from pnuauc.io.formats import spooled
with spooled("-") as (path, options):
    assert path.stat().st_size == 4 and options.format == "csv"
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="copies without a name need /proc")
def test_a_killed_process_leaves_no_copy(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", KILLED]
    found = subprocess.run(command, input=b"a\n1\n", env=environment, check=False)
    assert found.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def test_zero_bytes_are_refused_at_once(monkeypatch):
    """As from /dev/zero, which does not end."""
    with (
        pytest.raises(InputError, match="begins with zero bytes"),
        piped(monkeypatch, bytes(3 * 2**20)),
    ):
        pass


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_csv(tmp_path, end):
    (tmp_path / "t.csv").write_bytes(end.join(["a,b", "1,x", '2,"y z"', ""]).encode())
    assert read_table(tmp_path / "t.csv").to_pydict() == {"a": [1, 2], "b": ["x", "y z"]}


@pytest.mark.parametrize("stdin", [None, SimpleNamespace(isatty=lambda: True)])
def test_a_terminal_or_nothing_is_no_table(monkeypatch, stdin):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InputError, match="Nothing comes through standard input"), spooled("-"):
        pass


def source_at(path, **options):
    return Source(path, "csv", ReadOptions(**options))


@pytest.mark.parametrize(
    ("error", "message", "about"),
    [
        (LookupError("unknown encoding: x"), "Unknown encoding 'latin-9'; try", "encoding"),
        (UnicodeError("'utf-8' codec can't"), "is not UTF-8 text", "encoding"),
        (pa.ArrowInvalid("invalid UTF8 data"), "is not UTF-8 text", "encoding"),
        (pa.ArrowInvalid("Expected 3 columns, got 2: x"), "rows of unequal length", "delimiter"),
        (pa.ArrowInvalid("Empty CSV file"), "is empty: it has no header", None),
        (pa.ArrowInvalid("cannot infer types"), "is empty: it has no header", None),
        (pa.ArrowInvalid("Expected 3.\nmore"), r"cannot be read as CSV \(Expected 3\)", None),
        (pa.ArrowInvalid(""), r"cannot be read as CSV \(unreadable\)", None),
        (OSError("no reason"), r"cannot be read as CSV \(no reason\)", None),
        (OSError(errno.EINVAL, "beyond"), "cannot be read as CSV", None),
        (zipfile.BadZipFile("bad"), "cannot be read as CSV", None),
        (zlib.error("bad"), "cannot be read as CSV", None),
        (lzma.LZMAError("bad"), "cannot be read as CSV", None),
        (EOFError("cut"), "cannot be read as CSV", None),
        (MemoryError(), "needs more memory than there is", None),
        (InputError("as it is"), "as it is", None),
    ],
)  # fmt: skip
def test_what_a_reader_says_becomes_a_sentence(tmp_path, error, message, about):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with (
        pytest.raises(InputError, match=message) as caught,
        told(source_at(path, encoding="latin-9")),
    ):
        raise error
    assert caught.value.about == about


def test_what_the_system_says_of_a_file_that_is_there_is_handed_on(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with pytest.raises(PermissionError), told(source_at(path)):
        raise PermissionError(errno.EACCES, "not yours")
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"), told(source_at(path)):
        raise FileNotFoundError(errno.ENOENT, "gone")
