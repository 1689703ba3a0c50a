"""Files that are replaced: whose they are, what the guard finishes, who may read and write them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from pnuauc.exceptions import InputError
from pnuauc.io import _after_kill, _together
from pnuauc.io._after_kill import finish_commits, lock
from pnuauc.io._signs import written_by_us
from pnuauc.io._together import _backup, _write_journals
from pnuauc.io._writing import TableWriter, check_writable, count_formulas, write_text


def ours(folder, number, ending):
    return folder / f".pnuauc-{number:016x}.{ending}"


def journal(folder, said, mode=0o600):
    path = ours(folder, 99, "commit")
    path.write_text(json.dumps(said))
    path.chmod(mode)
    return path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def moved(tmp_path):
    """(part, final, old) of one file that was written and not yet renamed."""
    paths = ours(tmp_path, 1, "part"), tmp_path / "m", ours(tmp_path, 2, "old")
    for path, text in zip(paths, ("new", "before", "before"), strict=True):
        path.write_text(text)
    return paths


# ---------------------------------------------------------------------------- journals


@pytest.mark.parametrize(
    ("mode", "done"), [(0o600, True), (0o755, True), (0o611, True), (0o602, False), (0o620, False)]
)
def test_a_journal_is_believed_unless_others_may_write_it(tmp_path, moved, mode, done):
    journal(tmp_path, [[str(path) for path in moved]], mode)
    finish_commits(tmp_path)
    assert moved[1].read_text() == ("new" if done else "before")


@pytest.mark.parametrize("backup", ["none", "gone", "there"])
def test_a_new_file_has_no_backup(tmp_path, moved, backup):
    """And one that is gone already keeps nothing from being finished."""
    part, final, old = moved
    if backup != "there":
        old.unlink()
    journal(tmp_path, [[str(part), str(final), None if backup == "none" else str(old)]])
    finish_commits(tmp_path)
    assert (final.read_text(), names_in(tmp_path)) == ("new", ["m"])


def test_a_journal_finishes_what_it_names_in_other_folders(tmp_path):
    """From the folder of the journal that counts: the other keeps no backup, only its pointer."""
    first, second = tmp_path / "a", tmp_path / "b"
    moves = []
    for k, folder in enumerate((first, second)):
        folder.mkdir()
        paths = ours(folder, k, "part"), folder / "m", ours(folder, 7 + k, "old")
        for path, text in zip(paths, ("new", "before", "before"), strict=True):
            path.write_text(text)
        moves.append([str(path) for path in paths])
    pointer = journal(second, str(journal(first, moves)))
    finish_commits(first)
    assert (names_in(first), names_in(second)) == (["m"], sorted(["m", pointer.name]))
    assert (first / "m").read_text() == (second / "m").read_text() == "new"
    finish_commits(second)
    assert names_in(second) == ["m"]


@pytest.mark.parametrize("where", ["elsewhere, not ours", "here"])
def test_a_pointer_to_no_journal_of_ours_is_dropped(tmp_path, waiting, where):
    """Nothing is looked at in the other folder, and nobody is waited for."""
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    other.mkdir()
    left = ours(other, 3, "part")
    left.write_text("half")
    said = other / "notes" if "not ours" in where else ours(here, 99, "commit")
    said.write_text("x")
    journal(here, str(said))
    finish_commits(here)
    assert waiting.now == 0.0
    assert names_in(here) == []
    assert left.exists()


# ---------------------------------------------------------------------------- whose files


def test_what_is_no_regular_file_is_left(tmp_path):
    """A link, a pipe and a folder with names of ours, and what the link leads to."""
    target = tmp_path / "precious"
    target.write_text("x")
    link, pipe, folder = (ours(tmp_path, k, "part") for k in range(3))
    link.symlink_to(target)
    os.mkfifo(pipe)
    folder.mkdir()
    finish_commits(tmp_path)
    assert names_in(tmp_path) == sorted(p.name for p in (link, pipe, folder, target))


def test_files_of_another_user_are_left(tmp_path, moved, monkeypatch):
    said = journal(tmp_path, [[str(path) for path in moved]])
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    finish_commits(tmp_path)
    assert moved[1].read_text() == "before"
    assert all(path.exists() for path in (*moved, said))


def test_without_locks_nothing_is_cleaned_up(tmp_path, moved, monkeypatch):
    said = journal(tmp_path, [[str(path) for path in moved]])
    handle = os.open(moved[0], os.O_RDONLY)
    monkeypatch.setattr(_after_kill, "fcntl", None)
    assert not lock(handle)
    os.close(handle)
    finish_commits(tmp_path)
    assert all(path.exists() for path in (*moved, said))


# ---------------------------------------------------------------------------- the guard


def test_the_guard_as_a_program(tmp_path):
    """Process and folders are its arguments; it begins when its input ends."""
    folders = [tmp_path / name for name in "ab"]
    left = [ours(folder, 5, "part") for folder in folders]
    for folder, path in zip(folders, left, strict=True):
        folder.mkdir()
        path.write_text("half")
    command = [sys.executable, "-I", "-S", _after_kill.__file__, "0", *map(str, folders)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as guard:
        time.sleep(0.2)
        assert all(path.exists() for path in left)
        guard.stdin.close()
        assert guard.wait(20) == 0
    assert not any(path.exists() for path in left)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork beside threads
def test_the_guard_outlives_its_whole_group(tmp_path):
    """It waits for the end of the process, not for that of whoever feeds it."""
    left = ours(tmp_path, 5, "part")
    left.write_text("half")
    fed, feeder = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the other process
        try:
            os.setsid()
            os.dup2(fed, 0)
            with _together._guarded([tmp_path]):
                os.killpg(0, signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    until = time.monotonic() + 30
    while left.exists() and time.monotonic() < until:
        time.sleep(0.01)
    for handle in (fed, feeder):
        os.close(handle)
    assert not left.exists()


def test_how_long_others_are_waited_for(tmp_path, moved, waiting):
    """Two seconds by who cleans up; a minute by who replaces the same files."""
    handle = os.open(tmp_path, os.O_RDONLY)
    assert lock(handle)
    finish_commits(tmp_path)
    assert waiting.now == pytest.approx(2.0, abs=0.02)
    with _together._locked_folder(tmp_path):
        assert waiting.now == pytest.approx(62.0, abs=0.04)
    os.close(handle)
    assert moved[0].exists()


# ---------------------------------------------------------------------------- replaced files


def test_the_journal_that_counts_comes_first(tmp_path):
    """The others name it, so that it can be found from any folder; it is written last."""
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    drafts = [
        SimpleNamespace(part=folder / "p", final=folder / "f", backup=old)
        for folder, old in zip(folders, (None, tmp_path / "old", None), strict=True)
    ]
    written = []
    _write_journals(drafts, folders, written)
    said = [json.loads(path.read_text()) for path in written]
    assert {path.parent for path in written} == set(folders)
    assert said[0] == [
        [str(d.part), str(d.final), str(d.backup) if d.backup else None] for d in drafts
    ]
    assert said[1:] == [str(written[0])] * 2


def test_a_backup_is_the_file_itself_where_links_are(tmp_path):
    path = tmp_path / "m"
    path.write_text("old")
    backup = _backup(path)
    assert backup.samefile(path)
    assert backup.parent == tmp_path


def test_owner_group_and_mode_are_those_of_the_old_file(tmp_path):
    path = tmp_path / "m"
    path.write_text("old")
    groups = {*os.getgroups(), *([os.getegid() + 1] if os.geteuid() == 0 else [])}
    group = max(groups - {os.getegid()}, default=os.getegid())
    os.chown(path, -1, group)
    path.chmod(0o604)
    write_text(path, "new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (os.geteuid(), group, 0o604)


def test_a_new_file_may_be_read_and_written_as_the_umask_says(tmp_path):
    before = os.umask(0)
    try:
        write_text(tmp_path / "m", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize(
    ("denied", "exists", "good"),
    [("folder", False, False), ("folder", True, False), ("file", True, False),
     ("file", False, True), ("nothing", True, True), ("nothing", False, True)],
)  # fmt: skip
def test_folder_and_file_must_be_writable(tmp_path, monkeypatch, denied, exists, good):
    path = tmp_path / "m"
    if exists:
        path.write_text("x")
    closed = {"folder": tmp_path, "file": path}.get(denied)
    monkeypatch.setattr(os, "access", lambda where, mode: Path(where) != closed)
    if good:
        assert check_writable(path) == path
    else:
        with pytest.raises(InputError, match="may not be written"):
            check_writable(path)


# ---------------------------------------------------------------------------- signs


@pytest.mark.parametrize("ending", [".parquet", ".pq", ".PARQUET", ".arrow", ".feather"])
def test_tables_that_we_wrote_carry_a_sign(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    batch = pa.RecordBatch.from_pydict({"i": [1, 2], "score": [0.5, 1.0]})
    with path.open("wb") as stream:
        writer = TableWriter(stream, path)
        writer.write(batch)
        writer.close()
    assert written_by_us(path)


@pytest.mark.parametrize(
    ("name", "header", "mine"),
    [
        ("t.csv", "id,x,score", True), ("t.csv", "id,score,x", False), ("t.csv", "score", True),
        ("t.csv", "score,x,percentile,y", True), ("t.scored.csv", "id,score,x", True),
        ("t.csv", f"{'x' * 65_518},score,percentile", True),
        ("t.csv", f"{'x' * 65_520},score,percentile", False),
    ],
)  # fmt: skip
def test_scores_are_known_by_their_header(tmp_path, name, header, mine):
    """The last name, or two of them, within the first 65,536 bytes."""
    (tmp_path / name).write_text(f"{header}\n")
    assert written_by_us(tmp_path / name) is mine


@pytest.mark.parametrize(("n", "mine"), [(4077, True), (4078, False)])
def test_numbers_of_a_report_have_their_sign_in_4096_letters(tmp_path, n, mine):
    path = tmp_path / "a.json"
    path.write_text('{"x": "' + "y" * n + '", "pnuauc": 1}')
    assert written_by_us(path) is mine


def test_no_rows_hold_no_formulas():
    batch = pa.RecordBatch.from_pydict(
        {"i": ["=1", "a"], "j": pa.array(["@x", None], pa.large_string())}
    )
    assert [count_formulas(batch.slice(0, n)) for n in range(3)] == [0, 2, 2]
