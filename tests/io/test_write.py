"""Tests of io/write."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from pnuauc.exceptions import InputError, OutputError
from pnuauc.io.write import (
    TableWriter,
    atomic_file,
    check_writable,
    count_formulas,
    is_run_id,
    new_run_id,
    output_format,
    run_id_of,
    without_formulas,
    write_text,
    written_by_us,
    written_together,
)
from tests.conftest import run_tool as run
from tests.conftest import start_tool

RUN = "run-0123456789abcdef"


@pytest.mark.parametrize(
    ("failed", "error", "kind", "message"),
    [
        (False, ValueError("mine"), ValueError, "mine"),
        (False, OutputError("mine"), OutputError, "^mine$"),
        (True, ValueError("mine"), OutputError, "No space.*unchanged"),
        (True, OutputError("mine"), OutputError, "No space.*unchanged"),
        (True, KeyboardInterrupt("mine"), KeyboardInterrupt, "mine"),
    ],
)
def test_a_failed_write_outweighs_what_it_led_to(tmp_path, failed, error, kind, message):
    target = tmp_path / "t"
    target.write_text("old")

    def write():
        with atomic_file(target) as stream:
            stream.raw.failure = OSError(errno.ENOSPC, "No space") if failed else None
            raise error

    with pytest.raises(kind, match=message):
        write()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "csv"), ("a.TSV", "tsv"), ("a.pq", "parquet"), ("a.feather", "arrow"),
     ("a.csv.gz", None), ("a.libsvm", None), ("a.xlsx", None), ("a.jsonl", None)],
)  # fmt: skip
def test_formats_of_scores(name, kind):
    if kind is None:
        with pytest.raises(InputError, match="Scores cannot be written"):
            output_format(name)
    else:
        assert output_format(name) == kind


@pytest.mark.parametrize(
    ("name", "text", "ours"),
    [
        ("a.csv", '"id","score","percentile"\n', True), ("a.csv", "id,percentile,score\n", False),
        ("a.csv", "id,score\n", False), ("a.scored.csv", "id,score\n", False),
        ("a.csv", "id,score,percentile,x\n", False), ("a.csv", "score,percentile\n", False),
        ("a.csv", "id,score,percentile,probability,probability_low,probability_high\n", True),
        ("a.csv", "id,score,percentile,probability,probability_high\n", False),
        ("a.csv", "id,score,percentile,reasons\n", True), ("a.csv", "id,reasons\n", False),
        ("a.tsv", 'id\t"score"\tpercentile\n', True), ("a.csv", "", True), ("a.csv", "\n", False),
        ("a.csv", f"row,x,pnuauc run\n1,2,{RUN}\n", True),
        ("a.csv", f"row,x,run\n1,2,{RUN}\n", False),
        ("a.json", f' {{"run": "{RUN}", "pnuauc": 1}}', True),
        ("a.json", ' {"pnuauc": 1}', False), ("a.json", '{"run": "run-12", "pnuauc": 1}', False),
        ("a.json", f'{{"mine": 1, "run": "{RUN}"}}', False), ("a.json", '{"x": 1}', False),
        ("a.html", f'<!doctype html>\n<meta name="pnuauc-run" content="{RUN}">', True),
        ("a.html", '<!doctype html><meta name="generator" content="pnuauc 1">', False),
        ("a.html", f'<title><meta name="pnuauc-run" content="{RUN}">', False),
    ],
)  # fmt: skip
def test_files_that_may_be_replaced(tmp_path, name, text, ours):
    path = tmp_path / name
    path.write_text(text)
    assert written_by_us(path) is ours
    assert not written_by_us(tmp_path / "none")


BYTES = [b"=1+1", b"xxxx", None, b"-1.5"]


@pytest.mark.parametrize("in_dictionary", [False, True])
@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
     pa.binary(4), pa.binary_view()], ids=str,
)  # fmt: skip
def test_formulas_are_found_in_every_type_of_text(kind, in_dictionary):
    """Ids of binary types, and dictionaries of them, came through as they were."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    values = pa.array([v.decode() if v and text else v for v in BYTES], kind)
    if in_dictionary:
        values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), values)
    batch = pa.RecordBatch.from_arrays([values], names=["id"])
    assert count_formulas(batch) == 1
    stream = io.BytesIO()
    writer = TableWriter(stream, "t.csv")
    writer.write(without_formulas(batch))
    writer.close()
    assert stream.getvalue().splitlines() == [b'"id"', b'"\'=1+1"', b'"xxxx"', b"", b'"-1.5"']


def test_run_ids(tmp_path):
    """Random, and found again where each kind of file carries it."""
    first, second = new_run_id(), new_run_id()
    assert first != second
    assert is_run_id(first)
    assert not any(map(is_run_id, (None, 3, "run-", first + "\n", first.upper())))
    texts = {
        "a.html": f'<!doctype html>\n<meta name="pnuauc-run" content="{first}">',
        "a.json": f'{{"run": "{first}"}}',
        "a.csv": f'x,pnuauc run\n"a\nb",{first}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        assert run_id_of(tmp_path / name) == first
        (tmp_path / name).write_text(text.replace(first, "run-x"))
        assert run_id_of(tmp_path / name) is None
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    for other in ("pipe", "none", ""):
        assert run_id_of(tmp_path / other) is None


@pytest.mark.parametrize("head", [b"PAR1 and no more", b"ARROW1 and no more"])
def test_a_damaged_table_is_not_ours(tmp_path, head):
    for name in ("t.parquet", "t.arrow"):
        (tmp_path / name).write_bytes(head)
        assert not written_by_us(tmp_path / name)


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a folder; name a file"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        check_writable(tmp_path / "none" / "t.csv")
    with pytest.raises(InputError, match="is a file, not a folder"):
        check_writable(tmp_path / "file" / "t.csv")
    for good in ("file", "new"):
        assert check_writable(tmp_path / good) == tmp_path / good


posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and forks of POSIX")


def leftovers(folder):
    return [p.name for p in folder.rglob("*") if p.name.startswith(".")]


def write_all(paths, text):
    with written_together(paths) as streams:
        for stream in streams:
            stream.write(text)


def test_all_are_new_or_all_are_old(tmp_path):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    write_all(paths, b"1")
    assert [p.read_bytes() for p in paths] == [b"1"] * 3

    def fail():
        with written_together(paths) as streams:
            streams[0].write(b"2")
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        fail()
    with pytest.raises(RuntimeError, match="no"), written_together(paths, recheck=refuse):
        pass
    assert [p.read_bytes() for p in paths] == [b"1"] * 3
    assert leftovers(tmp_path) == []


def refuse():
    raise RuntimeError("no")


@posix
def test_mode_and_link_of_an_output_are_kept(tmp_path):
    real = tmp_path / "real.txt"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@posix
def test_new_files_follow_the_umask(tmp_path):
    former = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "x")
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@posix
def test_while_writing_others_read_no_more_than_before(tmp_path):
    target = tmp_path / "private"
    target.write_text("old")
    target.chmod(0o600)
    with atomic_file(target):
        (part,) = tmp_path.glob(".pnuauc-*")
        assert stat.S_IMODE(part.stat().st_mode) == 0o600


def test_files_of_threads_are_whole(tmp_path):
    """Each file is somebody's; there is no lock, so two files may be of two threads."""
    paths = [tmp_path / "a", tmp_path / "b"]

    def work(k):
        for _ in range(20):
            write_all(paths, str(k).encode() * 1000)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if paths[0].exists():
            assert len(set(paths[0].read_bytes())) == 1
    for thread in threads:
        thread.join()
    for path in paths:
        assert len(path.read_bytes()) == 1000
        assert len(set(path.read_bytes())) == 1
    assert leftovers(tmp_path) == []


def test_only_regular_files_are_replaced(tmp_path, monkeypatch):
    from pnuauc.exceptions import InputError

    os.mkfifo(tmp_path / "pipe")
    others = [tmp_path / "pipe", *(["/dev/null", "/dev/full"] if os.geteuid() else [])]
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # the path of a socket must be short
        listener.bind("socket")
        # root could really replace a device, were the check ever lost
        for name in [*others, tmp_path / "socket"]:
            with pytest.raises(InputError, match="not a regular file"):
                write_text(name, "x")


QUICK = ["--centers", "5", "--folds", "2", "--jobs", "1"]


@posix
def test_a_table_whose_name_is_no_text_is_fitted(fitted, tmp_path):
    path = tmp_path / os.fsdecode(b"b\xffad.csv")
    try:
        shutil.copy(fitted / "t.csv", path)
    except OSError:
        pytest.skip("a file system of UTF-8 names only")
    result = run("fit", path, "-l", "y", "--id", "id", "--prior", "0.4", *QUICK)
    assert result.exit_code == 0, result.output
    assert 'href="b%FFad.review.csv"' in path.with_suffix(".html").read_text()


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow"])
def test_scores_are_known_as_ours(fitted, tmp_path, ending):
    target = tmp_path / f"s{ending}"
    for _ in range(2):
        result = run("score", fitted / "t.pnuauc", fitted / "t.csv", "-o", target)
        assert result.exit_code == 0, result.output
    assert written_by_us(target)


def test_scores_with_chosen_columns_could_be_anybodys(fitted, tmp_path):
    """A user's own file may have a column of that name: it is replaced when that is asked for."""
    command = [
        "score",
        fitted / "t.pnuauc",
        fitted / "t.csv",
        "-o",
        tmp_path / "s.csv",
    ]
    command += ["--columns", "id,score"]
    assert run(*command).exit_code == 0
    refused = run(*command)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.output
    assert run(*command, "--overwrite").exit_code == 0


def test_tables_of_others_are_known_as_theirs(fitted, tmp_path):
    for name in ("t.csv", "t.parquet", "t.arrow", "notes.txt", "t.csv.gz"):
        (tmp_path / name).write_bytes(b"a,b\n1,2\n")
    pa.parquet.write_table(pa.table({"score": [1]}), tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink:
        table = pa.table({"score": [1]})
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write(table)
    for path in tmp_path.iterdir():
        assert not written_by_us(path), path
    for name in ("t.pnuauc", "t.html", "t.json"):
        assert written_by_us(fitted / name)
    for name in ("m.csv", "m.pnuauc"):
        (tmp_path / name).symlink_to(fitted / "t.pnuauc")
    for target in ("t.csv", "m.csv"):
        result = run("score", tmp_path / "m.pnuauc", fitted / "t.csv", "-o", tmp_path / target)
        assert result.exit_code == 2, target


FORMULAS = ["=1+1", "+x", "-2+3", "@SUM(A1)", "\t=1", "-5", "+1.5e3", "a=b", None, ""]


def test_formulas_are_counted_and_made_harmless():
    batch = pa.RecordBatch.from_pydict({"=id": FORMULAS, "n": list(range(10))})
    assert count_formulas(batch) == 6  # five cells and a name; -5 and +1.5e3 are numbers
    safe = without_formulas(batch)
    assert safe.column(0).to_pylist() == [
        *("'=1+1", "'+x", "'-2+3", "'@SUM(A1)", "'\t=1", "-5", "+1.5e3", "a=b", None, "")
    ]
    assert safe.schema.names == ["'=id", "n"]
    assert safe.column(1).equals(batch.column(1))
    assert count_formulas(safe) == 0
    coded = pa.RecordBatch.from_arrays([pa.array(["=1", "a"]).dictionary_encode()], names=["c"])
    assert without_formulas(coded).column(0).to_pylist() == ["'=1", "a"]


@posix
@pytest.mark.parametrize(
    ("number", "where"),
    [
        (signal.SIGINT, "importing typer"),
        (signal.SIGINT, "importing commands"),
        (signal.SIGINT, "at the end"),
        (signal.SIGTERM, "importing typer"),
        (signal.SIGHUP, "at the end"),
    ],
)
@pytest.mark.system
def test_signals_before_and_after_the_command(number, where):
    """While modules are imported and while the interpreter ends: the code, and no traceback."""
    wait = "print('here', flush=True); import time; time.sleep(60)"
    code = {
        "importing typer": f"""
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            {wait}
sys.meta_path.insert(0, Slow())""",
        "importing commands": f"""
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "pnuauc.cli.work":
            {wait}
sys.meta_path.insert(0, Slow())""",
        "at the end": f"""
import atexit
def last():
    {wait}
atexit.register(last)""",
    }[where]
    process = start_tool("inspect", "none", code=code)
    assert process.stdout.readline().strip() == b"here"
    process.send_signal(number)
    _, error = process.communicate(timeout=50)
    assert process.returncode == 128 + number, error
    assert b"Traceback" not in error


@posix
@pytest.mark.system
def test_ignored_signals_stay_ignored():
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    ask = "\nimport atexit; atexit.register(lambda: print(repr(signal.getsignal(signal.SIGHUP))))"
    process = start_tool("--version", code=code + ask)
    out, _ = process.communicate(timeout=50)
    assert b"SIG_IGN" in out


@pytest.mark.system
def test_nothing_is_imported_from_the_current_folder(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("print('owned')\ndef main(a): ...\n")
    for name in ("typer.py", "rich.py", "experiments.py", "pyarrow.py"):
        (tmp_path / name).write_text("print('owned')\n")
    for arguments in (
        ["--version"],
        ["reproduce", "--help"],
        ["reproduce", "nothing-of-this-name"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "pnuauc", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "owned" not in done.stdout + done.stderr


def test_a_rename_that_fails_names_what_is_new_and_what_is_not(tmp_path, monkeypatch):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text("old")
    rename = os.replace

    def refuse(source, target):
        if os.path.basename(target) == "b":
            raise OSError(errno.EPERM, "Not now")
        rename(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with (
        pytest.raises(OutputError, match=r"Not now.*a' new, .*b' unchanged"),
        written_together(paths) as streams,
    ):
        [stream.write(b"fresh") for stream in streams]
    assert [path.read_text() for path in paths] == ["fresh", "old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_leftovers_are_known_by_name_and_age_and_never_read(tmp_path):
    old, young = (tmp_path / f".pnuauc-{digit * 16}.part" for digit in "ab")
    journal = tmp_path / f".pnuauc-{'c' * 16}.commit"
    for path in (old, young, journal):
        path.write_text('[["a", "b", null]]')
    for path in (old, journal):
        os.utime(path, (1.0, 1.0))
    write_text(tmp_path / "t", "new")
    assert not old.exists()
    assert young.exists()
    assert journal.exists()  # a file of somebody else
    assert (tmp_path / "t").read_text() == "new"


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}] * 2, [b"\xff", b"\xfe"]])
def test_what_csv_cannot_hold_is_one_sentence(tmp_path, values):
    """Lists, structs and bytes that are no text, in an id; Parquet takes them."""
    batch = pa.record_batch({"id": pa.array(values), "score": [0.5, 1.0]})
    with pytest.raises(InputError, match=r"Column 'id' holds .*, which CSV cannot hold; write"):
        TableWriter(io.BytesIO(), "out.csv").write(batch)
    writer = TableWriter(out := io.BytesIO(), "out.parquet")
    writer.write(batch)
    writer.close()
    assert pa.parquet.read_table(pa.BufferReader(out.getvalue())).to_pydict() == batch.to_pydict()
