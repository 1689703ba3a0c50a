"""What a killed process left, who holds a lock, what stands before data; columns that are twins."""

from __future__ import annotations

import fcntl
import io
import json
import os
import threading
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder, _after_kill, _workbook, as_table
from pnuauc.io._after_kill import _MAX_JOURNAL, finish_commits, lock, lstat
from pnuauc.io._encoder import _digest, _Twins
from pnuauc.io._text_parts import fields, fraction, hours_of, integer, matches
from pnuauc.io._together import _write_journal


def ours(folder, number, ending):
    return folder / f".pnuauc-{number:016x}.{ending}"


# ---------------------------------------------------------------------------- locks


@pytest.fixture
def held(tmp_path):
    """Two handles of one file, the first of which holds its lock."""
    path = tmp_path / "f"
    path.write_text("x")
    first, second = (os.open(path, os.O_RDONLY) for _ in range(2))
    assert lock(first)
    yield first, second
    for handle in (first, second):
        os.close(handle)


def test_a_lock_that_is_held_is_waited_for_as_long_as_is_said(held, waiting):
    _, second = held
    for seconds in (0.0, 0.1, 3.0):
        before = waiting.now
        assert not lock(second, seconds=seconds)
        assert waiting.now - before == pytest.approx(seconds, abs=0.02)
    before = waiting.now
    assert not lock(second)
    assert waiting.now == before


def test_a_lock_that_is_given_up_is_taken(held):
    first, second = held
    timer = threading.Timer(0.05, lambda: fcntl.flock(first, fcntl.LOCK_UN))
    timer.start()
    assert lock(second, seconds=20.0)
    timer.join()
    assert not lock(first)


def test_what_is_no_file_cannot_be_locked(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    os.close(handle)
    assert not lock(handle)
    assert lstat(tmp_path / "none") is None
    assert lstat(tmp_path) is not None


# ---------------------------------------------------------------------------- journals


def committed(folder, n_files=1):
    """Files that a killed process had written and not yet renamed, without their journal."""
    names = []
    for k in range(n_files):
        part, old, final = (
            ours(folder, 2 * k, "part"),
            ours(folder, 2 * k + 1, "old"),
            folder / f"m{k}",
        )
        for path, text in ((part, "new"), (old, "before"), (final, "before")):
            path.write_text(text)
        names.append([str(part), str(final), str(old)])
    return names


def journal_of(folder, said, number=99):
    path = ours(folder, number, "commit")
    path.write_text(json.dumps(said))
    path.chmod(0o600)
    return path


@pytest.fixture
def two_folders(tmp_path):
    """A commit in two folders and its journals; the second names the first."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    main = journal_of(first, committed(first) + committed(second))
    return first, second, main, journal_of(second, str(main))


def test_a_commit_of_two_folders_is_finished_from_either(two_folders):
    first, second, main, other = two_folders
    finish_commits(second)
    for folder in (first, second):
        assert (folder / "m0").read_text() == "new"
        assert [path.name for path in folder.iterdir()] == ["m0"]
    assert not main.exists()
    assert not other.exists()


def test_a_commit_that_cannot_be_finished_keeps_its_files(two_folders):
    """The journal's folder is held by a living process: nothing is moved, nothing removed."""
    first, second, main, other = two_folders
    handle = os.open(first, os.O_RDONLY)
    assert lock(handle)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_after_kill, "_PATIENCE", 0.02)
        finish_commits(second)
    os.close(handle)
    for folder in (first, second):
        assert (folder / "m0").read_text() == "before"
        assert ours(folder, 0, "part").read_text() == "new"
    assert main.exists()
    assert other.exists()


def test_a_file_that_a_living_process_holds_is_left(tmp_path):
    mine, left = ours(tmp_path, 1, "part"), ours(tmp_path, 2, "part")
    for path in (mine, left):
        path.write_text("half")
    handle = os.open(mine, os.O_RDONLY)
    assert lock(handle)
    finish_commits(tmp_path)
    assert (mine.exists(), left.exists()) == (True, False)
    os.close(handle)
    finish_commits(tmp_path)
    assert not mine.exists()


@pytest.mark.parametrize("said", ["not json", '{"a": 1}', "[[1, 2]]", "[3]", '["a"]', "7", "null"])
def test_a_journal_that_was_cut_moves_nothing(tmp_path, said):
    committed(tmp_path)
    journal = ours(tmp_path, 99, "commit")
    journal.write_text(said)
    finish_commits(tmp_path)
    assert (tmp_path / "m0").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["m0"]


def test_a_journal_of_many_files_is_read_whole(tmp_path):
    """Up to 65,536 bytes; a longer one is none of ours."""
    assert _MAX_JOURNAL == 65_536
    names = committed(tmp_path, 40)
    journal = journal_of(tmp_path, names)
    assert 4096 < journal.stat().st_size < _MAX_JOURNAL
    finish_commits(tmp_path)
    assert {path.read_text() for path in tmp_path.iterdir()} == {"new"}
    assert len(list(tmp_path.iterdir())) == 40


def test_a_folder_that_is_not_there_has_nothing_to_finish(tmp_path):
    finish_commits(tmp_path / "none")
    (tmp_path / "mine.part").write_text("x")
    finish_commits(tmp_path)
    assert (tmp_path / "mine.part").read_text() == "x"


# ---------------------------------------------------------------------------- before the data


@pytest.mark.parametrize(("n", "good"), [(0, True), (4096, True), (65_532, True), (65_533, False)])
def test_the_root_of_a_document_begins_in_its_first_64_kb(n, good):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr("a.xml", b" " * n + b"<a/>")
    if good:
        assert _workbook._checked_size(stream.getvalue(), "t") == n + 4
    else:
        with pytest.raises(InputError, match=r"'a\.xml' holds no data"):
            _workbook._checked_size(stream.getvalue(), "t")


# ---------------------------------------------------------------------------- twins


def column(values, kind=None, cut=None):
    whole = pa.array(values, kind)
    return pa.chunked_array([whole] if cut is None else [whole[:cut], whole[cut:]])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2, 3], [1, 2, 4]), ([1, None, 3], [1, 3, None]), ([1.0, 2.0], [1, 2]),
        (["a", "b"], ["a", "c"]), (["a", None, "b"], ["a", "b", None]), (["ab", ""], ["a", "b"]),
        ([True, False], [False, True]), ([1, None], [1, 2]), (["a", "b"], ["b", "a"]),
    ],
)  # fmt: skip
def test_digests_of_columns(one, other):
    """The same for equal columns, whatever lies beneath a gap; different for others."""
    assert _digest(column(one)) == _digest(column(list(one)))
    assert _digest(column(one)) != _digest(column(other))
    longer = column([*one, *one])
    assert _digest(column(one)) == _digest(longer.slice(len(one)))
    twins = _Twins()
    assert twins.of("a", column(one)) is None
    assert twins.of("b", column(other)) is None
    assert twins.of("c", column(one)) == "a"
    assert twins.of("d", column(other)) == "b"


def test_a_twin_must_be_equal_and_not_only_alike(monkeypatch):
    monkeypatch.setattr("pnuauc.io._encoder._digest", lambda values: b"same")
    twins = _Twins()
    assert twins.of("a", column([1, 2])) is None
    assert twins.of("b", column([1, 3])) is None
    assert twins.of("c", column([1, 2])) == "a"


def test_a_column_that_equals_another_is_left_out_once():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 30))
    encoder = TableEncoder().fit(pa.table({"x": x, "z": z, "copy": x}))
    assert [c.name for c in encoder.columns_] == ["x", "z"]
    assert encoder.notes_ == ["Column 'copy' equals column 'x'; left out."]


# ---------------------------------------------------------------------------- parts of text


def test_named_parts_of_cells():
    parts, good = fields(pa.array(["12:30", "x", None]), r"^(?P<H>[0-9]+):(?P<M>[0-9]+)$")
    assert good.tolist() == [True, False, False]
    assert {name: part.to_pylist() for name, part in parts.items()} == {
        "H": ["12", "", ""], "M": ["30", "", ""]
    }  # fmt: skip
    assert integer(parts["H"]).tolist() == [12, 0, 0]
    assert integer(parts["M"], default=7).tolist() == [30, 7, 7]
    np.testing.assert_allclose(fraction(pa.array(["5", "", "125"])), [0.5, 0.0, 0.125])
    assert matches("a", pa.array(["ab", None, "b"])).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("hour", "half", "expected"),
    [("12", "am", 0), ("12", "PM", 12), ("1", "p.m.", 13), ("11", "a", 11), ("13", "pm", 13),
     ("12", "", 12), ("0", "", 0), ("11", "pm", 23)],
)  # fmt: skip
def test_hours_of_half_a_day(hour, half, expected):
    parts = {"H": pa.array([hour]), "p": pa.array([half])}
    assert hours_of(parts).tolist() == [expected]
    assert hours_of({"H": pa.array([hour])}).tolist() == [int(hour)]


def test_matrices_and_batches_are_tables():
    thin = sparse.coo_matrix([[1.0, 0.0], [0.0, 2.0]])
    assert as_table(thin).format == "csr"
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})
    assert as_table(batch).to_pydict() == {"a": [1, 2]}
    assert as_table(np.array([[1, 2], [3, 4]])).to_pydict() == {"x0": [1, 3], "x1": [2, 4]}
    with pytest.raises(InputError, match="more than one column named 'a'"):
        as_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(InputError, match="A list is not a table"):
        as_table([1, 2])


def test_a_journal_is_for_its_owner_alone_and_replaces_nothing(tmp_path):
    path = tmp_path / "j"
    before = os.umask(0)
    try:
        _write_journal(path, b"[]")
    finally:
        os.umask(before)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"[]", 0o600)
    with pytest.raises(FileExistsError):
        _write_journal(path, b"other")
    assert path.read_bytes() == b"[]"
