"""What is written: together or not at all, never over what is not ours, and as harmless text."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from attack.faults import attack_replacement, count_calls
from pnuauc._cli._app import app
from pnuauc._json import exact_json
from pnuauc.exceptions import OutputError
from pnuauc.io import _together
from pnuauc.io._after_kill import finish_commits
from pnuauc.io._signs import written_by_us
from pnuauc.io._together import written_together
from pnuauc.io._writing import atomic_file, count_formulas, without_formulas, write_text

posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and forks of POSIX")


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def leftovers(folder):
    return [p.name for p in folder.rglob("*") if p.name.startswith(".")]


# ------------------------------------------------------------------ several files as one


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
@pytest.mark.parametrize(
    ("how", "existing"), [("kill", 2), ("kill all", 0), ("kill all", 3), ("error", 2)]
)
def test_a_fault_at_every_call(tmp_path, how, existing):
    """Killed, or out of space, before or after each call that changes the disk."""
    (tmp_path / "count").mkdir()
    n = count_calls(tmp_path / "count", existing)
    assert n > 40
    states = set()
    for place in range(1, n + 1):
        folder = tmp_path / str(place)
        folder.mkdir()
        outcome = attack_replacement(folder, existing, place, how)
        assert outcome.problems == [], (place, outcome)
        states.add(outcome.settled[0])
    assert states == {"old", "new"}


@posix
def test_the_law_of_faults_can_fail(tmp_path, monkeypatch):
    """Without journal or guard a kill between two renames leaves a mixture, and the law says so."""
    from contextlib import nullcontext

    import pnuauc.io._after_kill as after_kill
    import pnuauc.io._together as together

    monkeypatch.setattr("attack.faults.wait_for_the_guard", lambda folders: None)
    monkeypatch.setattr(together, "_guarded", lambda folders: nullcontext())
    (tmp_path / "count").mkdir()
    n = count_calls(tmp_path / "count", 3)

    def problems(how):
        for place in range(1, n + 1):
            folder = tmp_path / f"{how} {place}"
            folder.mkdir()
            yield from attack_replacement(folder, 3, place, how).problems

    assert any("until somebody looked" in problem for problem in problems("kill"))
    monkeypatch.setattr(after_kill, "_finish", lambda journal: True)
    assert any("files are mixed" in problem for problem in problems("kill all"))


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


@posix
def test_planted_links_are_not_followed(tmp_path, monkeypatch):
    """Even somebody who guesses the name in advance gets nothing: it is created, or another is."""
    import pnuauc.io._together as together

    victim = tmp_path / "victim"
    victim.write_text("precious")
    tokens = iter(["0" * 16, "1" * 16, "2" * 16])
    monkeypatch.setattr(together.secrets, "token_hex", lambda n: next(tokens))
    (tmp_path / f".pnuauc-{'0' * 16}.part").symlink_to(victim)
    write_text(tmp_path / "a", "x")
    assert victim.read_text() == "precious"
    assert (tmp_path / "a").read_text() == "x"


@posix
def test_leftovers_of_the_dead_are_removed_and_of_the_living_not(tmp_path):
    dead = tmp_path / f".pnuauc-{'a' * 16}.part"
    dead.write_text("x")
    other = tmp_path / ".pnuauc-notes"
    other.write_text("a user's own")
    with atomic_file(tmp_path / "one") as stream:
        stream.write(b"1")
        write_text(tmp_path / "two", "2")  # looks round, and must leave the other one alone
        assert not dead.exists()
        assert len(list(tmp_path.glob(".pnuauc-*.part"))) == 1
    assert (tmp_path / "one").read_text() == "1"
    assert other.exists()


@posix
@pytest.mark.parametrize(
    "journal",
    [
        '[["/etc/hostname", "/etc/hosts", null]]',
        '[["{folder}/.pnuauc-{zeros}.part", "{folder}/../victim", null]]',
        '[["{folder}/.pnuauc-{zeros}.old", "{folder}/victim", null]]',
        '[["{folder}/.pnuauc-{zeros}.part", "{folder}/victim", "{folder}/precious"]]',
        '{"a": 1}',
        "[[1, 2, 3]]",
        "",
    ],
)
def test_planted_journals_move_nothing_of_others(tmp_path, journal):
    for name in ("victim", "precious"):
        (tmp_path / name).write_text("precious")
    (tmp_path / f".pnuauc-{'0' * 16}.part").write_text("attack")
    text = journal.replace("{folder}", str(tmp_path)).replace("{zeros}", "0" * 16)
    (tmp_path / f".pnuauc-{'1' * 16}.commit").write_text(text)
    (tmp_path / f".pnuauc-{'1' * 16}.commit").chmod(0o600)
    finish_commits(tmp_path)
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "precious").read_text() == "precious"


@posix
def test_a_journal_that_others_could_write_is_not_believed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / f".pnuauc-{'0' * 16}.part").write_text("attack")
    journal = tmp_path / f".pnuauc-{'1' * 16}.commit"
    part = tmp_path / f".pnuauc-{'0' * 16}.part"
    journal.write_text(json.dumps([[str(part), str(tmp_path / "victim"), None]]))
    journal.chmod(0o666)
    finish_commits(tmp_path)
    assert (tmp_path / "victim").read_text() == "precious"


def test_threads_do_not_mix(tmp_path):
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
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert len(set(first)) == 1
    assert leftovers(tmp_path) == []


def test_a_full_disk_is_told_truly(tmp_path):
    (tmp_path / "a").write_text("old")
    paths = [tmp_path / "a", tmp_path / "b"]

    def write():
        with written_together(paths) as streams:
            streams[0].raw.close()
            os.set_blocking(0, True)
            streams[1].raw.failure = OSError(28, "No space left on device")
            raise ValueError("as arrow says it")

    with pytest.raises(OutputError, match=r"No space left .* nothing was replaced, .* are as they"):
        write()
    assert (tmp_path / "a").read_text() == "old"
    assert not (tmp_path / "b").exists()


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


# ------------------------------------------------------------------ whose files are replaced

QUICK = ["--centers", "5", "--folds", "2", "--jobs", "1"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    labels = np.where(np.arange(60) < 20, (np.arange(60) % 2).astype(float), np.nan)
    a[labels == 1] += 1
    table = pa.table({"id": [f"={i}" for i in range(60)], "a": a, "b": rng.normal(size=60)})
    label = pa.array(labels, from_pandas=True).cast(pa.int8())
    pa.csv.write_csv(table.append_column("y", label), folder / "t.csv")
    result = run("fit", folder / "t.csv", "-l", "y", "--id", "id", "--prior", "0.4", *QUICK)
    assert result.exit_code == 0, result.output
    return folder


def copy(fitted, tmp_path, *names):
    for name in names:
        (tmp_path / name).write_bytes((fitted / name).read_bytes())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "t.csv"], "'t.csv' is an input of this command"),
        (["--report", "link.csv"], "same file as .* is an input"),
        (["--report", "hard.csv"], "same file as .* is an input"),
        (["--report", "folder/../t.csv"], "same file as .* is an input"),
        (["-o", "m", "--report", "m.pnuauc"], "is another output"),
        (["-o", "m", "--report", "n.json"], "is another output"),
        (["-o", "m", "--report", "dangling.html"], "same file as .* is another output"),
        (["-o", "notes"], "'notes.html' already exists and was not written by pnuauc"),
    ],
)
def test_fit_replaces_nothing_but_its_own(fitted, tmp_path, monkeypatch, options, message):
    copy(fitted, tmp_path, "t.csv")
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("link.csv").symlink_to("t.csv")
    os.link("t.csv", "hard.csv")
    Path("dangling.html").symlink_to("m.pnuauc")
    Path("notes.html").write_text("<!doctype html><p>mine")
    before = {p.name: p.read_bytes() for p in Path().iterdir() if p.is_file()}
    result = run("fit", "t.csv", "-l", "y", *options, *QUICK)
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert {p.name: p.read_bytes() for p in Path().iterdir() if p.is_file()} == before


def test_a_users_json_beside_the_table_is_kept(fitted, tmp_path, monkeypatch):
    copy(fitted, tmp_path, "t.csv")
    monkeypatch.chdir(tmp_path)
    Path("t.json").write_text('{"sales": 1}')
    result = run("fit", "t.csv", "-l", "y", "--prior", "0.4", *QUICK)
    assert result.exit_code == 2
    assert "'t.json' already exists" in result.stderr
    assert Path("t.json").read_text() == '{"sales": 1}'
    assert not Path("t.pnuauc").exists()
    result = run("fit", "t.csv", "-l", "y", "--prior", "0.4", *QUICK, "--overwrite")
    assert result.exit_code == 0, result.output
    assert "pnuauc" in json.loads(Path("t.json").read_text())
    # and from now on it is ours
    assert run("fit", "t.csv", "-l", "y", "--prior", "0.4", *QUICK).exit_code == 0


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow"])
def test_scores_are_known_as_ours(fitted, tmp_path, ending):
    target = tmp_path / f"s{ending}"
    for _ in range(2):
        result = run("score", fitted / "t.pnuauc", fitted / "t.csv", "-o", target)
        assert result.exit_code == 0, result.output
    assert written_by_us(target)


def test_scores_with_chosen_columns_are_known_as_ours(fitted, tmp_path):
    """In any order; one of them is enough under the name that scores have by default."""
    table = fitted / "t.csv"
    for name, columns in (("s.csv", "percentile,score,id"), ("t.scored.csv", "score,id")):
        for _ in range(2):
            command = ("score", fitted / "t.pnuauc", table, "-o", tmp_path / name)
            result = run(*command, "--columns", columns)
            assert result.exit_code == 0, result.output
    (tmp_path / "mine.csv").write_text("score,id\n1,a\n")
    assert not written_by_us(tmp_path / "mine.csv")


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


def test_scores_for_a_spreadsheet(fitted, tmp_path):
    target = tmp_path / "s.csv"
    result = run("score", fitted / "t.pnuauc", fitted / "t.csv", "-o", target)
    assert "60 cells begin with =" in result.stderr
    assert target.read_text().splitlines()[1].startswith('"=0"')
    result = run("score", fitted / "t.pnuauc", fitted / "t.csv", "-o", target, "--spreadsheet")
    assert "formulas" not in result.stderr
    assert target.read_text().splitlines()[1].startswith('"\'=0"')
    result = run("score", fitted / "t.pnuauc", fitted / "t.csv", "-o", tmp_path / "s.parquet")
    assert "formulas" not in result.stderr


def test_the_demo_replaces_its_own_files_only(tmp_path, monkeypatch):
    from pnuauc._cli import _demo

    table = pa.table({"a": [1], "b": ["x"]})
    for name in ("t.parquet", "t.csv"):
        _demo._write(table, tmp_path / name)
        _demo._write(table, tmp_path / name)
        (tmp_path / name).write_text("mine\n1\n")
        with pytest.raises(ValueError, match="was not written by the demo"):
            _demo._write(table, tmp_path / name)


# ------------------------------------------------------------------ the terminal and the page


def test_names_cannot_steer_terminal_or_page(fitted, tmp_path):
    evil = "t\x1b[2J\u202e\x9b.csv"
    (tmp_path / evil).write_bytes((fitted / "t.csv").read_bytes())
    result = run("fit", tmp_path / evil, "-l", "y", "--prior", "0.4", "-o", tmp_path / "m", *QUICK)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "m.html").read_text()
    for text in (result.output, page):
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
    for command in (["inspect", tmp_path / "m"], ["fit", tmp_path / ("no" + evil)]):
        for options in ([], ["--json"]):
            output = run(*command, *options).output
            assert not {"\x1b", "\x9b", "\u202e"} & set(output)


def start(*arguments, code="", **options):
    """The command in a process of its own, as from a shell."""
    program = f"import sys; sys.argv = ['pnuauc', *sys.argv[1:]]\n{code}\n"
    program += "from pnuauc._cli import main\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.mark.parametrize(("encoding", "options"), [("ascii", ["--json"]), ("cp1252", [])])
def test_any_encoding_of_the_terminal(fitted, tmp_path, encoding, options):
    name = "tablé 表.csv"
    (tmp_path / name).write_bytes((fitted / "t.csv").read_bytes())
    process = start(
        *("evaluate", tmp_path / name, "-l", "y", "-s", "a", *options),
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    out, error = process.communicate(timeout=100)
    assert process.returncode == 0, error
    if options:
        assert json.loads(out.decode("ascii"))["scores"]
    process = start(
        *("evaluate", tmp_path / ("no " + name), *options),
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    _, error = process.communicate(timeout=100)
    assert process.returncode == 2
    assert b"There is no file" in error


# ------------------------------------------------------------------ signals


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
        if name == "pnuauc._cli._work":
            {wait}
sys.meta_path.insert(0, Slow())""",
        "at the end": f"""
import atexit
def last():
    {wait}
atexit.register(last)""",
    }[where]
    process = start("inspect", "none", code=code)
    assert process.stdout.readline().strip() == b"here"
    process.send_signal(number)
    _, error = process.communicate(timeout=50)
    assert process.returncode == 128 + number, error
    assert b"Traceback" not in error


@posix
def test_ignored_signals_stay_ignored():
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    ask = "\nimport atexit; atexit.register(lambda: print(repr(signal.getsignal(signal.SIGHUP))))"
    process = start("--version", code=code + ask)
    out, _ = process.communicate(timeout=50)
    assert b"SIG_IGN" in out


@posix
def test_a_reader_that_leaves(fitted):
    process = start("inspect", fitted / "t.pnuauc", "--json")
    process.stdout.close()
    with process.stderr as stream:
        error = stream.read()
    assert process.wait(timeout=50) == 128 + signal.SIGPIPE
    assert error == b""


@posix
def test_a_full_standard_output(fitted):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "pnuauc", "inspect", str(fitted / "t.pnuauc"), "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert process.returncode == 1
    assert b"disk is full" in process.stderr
    assert b"Traceback" not in process.stderr


def test_wrong_options_are_one_sentence(tmp_path):
    process = start("fit", "--no\x1b[2Jsuch")
    _, error = process.communicate(timeout=50)
    assert process.returncode == 2
    assert b"\x1b" not in error
    assert len(error.strip().splitlines()) == 1
    process = start()
    out, error = process.communicate(timeout=50)
    assert process.returncode == 2
    assert b"Usage" in out + error


# ------------------------------------------------------------------ nothing runs from here


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


def test_reproduce_needs_a_checkout_of_its_own(tmp_path, monkeypatch):
    from pnuauc._cli import _reproduce

    installed = tmp_path / "site-packages" / "pnuauc" / "_cli" / "_reproduce.py"
    monkeypatch.setattr(_reproduce, "__file__", str(installed))
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("raise SystemExit('owned')\n")
    monkeypatch.chdir(tmp_path)
    result = run("reproduce", "table4")
    assert result.exit_code == 2
    assert "not part of the installed package" in result.output


def test_a_journal_keeps_names_of_any_encoding(tmp_path):
    """A name that is no UTF-8 (Latin-1, say) is read back as it was."""
    names = [[os.fsdecode(b"caf\xe9.csv"), "ü.csv", None]]
    path = tmp_path / "journal"
    _together._write_journal(path, exact_json(names).encode("utf-8", "surrogatepass"))
    assert json.loads(path.read_bytes()) == names
