"""Paths that are seldom taken: no hard links, renames that fail, signals, sources, odd cells."""

from __future__ import annotations

import io
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

from pnuauc._basis import IdentityBasis
from pnuauc._sources import Batch
from pnuauc.exceptions import InputError, OutputError
from pnuauc.io import TableEncoder, TableModel, _cells, read_table, score_file
from pnuauc.io._after_kill import _PATIENCE, _watch, finish_commits
from pnuauc.io._cells import recognise
from pnuauc.io._formats import ReadOptions, _is_pipe, find_source
from pnuauc.io._libsvm import LibsvmReader
from pnuauc.io._parts import LinearScorer, scorer_of
from pnuauc.io._signs import written_by_us
from pnuauc.io._tables import ParquetReader, column_names
from pnuauc.io._together import _backup, _signals_wait, written_together

# ---------------------------------------------------------------------------- all or nothing


@pytest.fixture
def pair(tmp_path):
    """An old file and one that is not there yet."""
    old, new = tmp_path / "a", tmp_path / "b"
    old.write_text("old")
    return old, new


def write_both(pair):
    with written_together(list(pair)) as streams:
        for stream in streams:
            stream.write(b"fresh")


def failing(monkeypatch, name, error):
    """Renaming to this name fails."""
    rename = os.replace

    def replace(source, target):
        if os.path.basename(target) == name and not str(source).endswith(".old"):
            raise error
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_rename_that_fails_brings_the_old_files_back(monkeypatch, pair, name):
    failing(monkeypatch, name, PermissionError(13, "Not now"))
    with pytest.raises(OutputError, match=r"Not now.*nothing was replaced, .*are as they were"):
        write_both(pair)
    assert (pair[0].read_text(), pair[1].exists()) == ("old", False)
    assert [path.name for path in pair[0].parent.iterdir()] == ["a"]


def test_an_interruption_between_two_renames_brings_the_old_files_back(monkeypatch, pair):
    failing(monkeypatch, "b", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_both(pair)
    assert (pair[0].read_text(), pair[1].exists()) == ("old", False)
    assert [path.name for path in pair[0].parent.iterdir()] == ["a"]


def test_an_old_file_that_cannot_be_brought_back_is_named(monkeypatch, pair):
    """The second rename fails, and so does the way back of the first; its backup stays."""
    rename, done = os.replace, []

    def replace(source, target):
        if str(source).endswith(".old") or os.path.basename(target) == "b":
            raise PermissionError(13, "Not now")
        done.append(os.path.basename(target))
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OutputError, match=rf"brought back: '{pair[0]}' new, the others old"):
        write_both(pair)
    assert done == ["a"]
    assert pair[0].read_text() == "fresh"
    (backup,) = pair[0].parent.glob(".pnuauc-*.old")
    assert backup.read_text() == "old"


def test_where_there_are_no_hard_links_the_old_file_is_copied(monkeypatch, pair):
    def refuse(*names):
        raise OSError(1, "no links here")

    os.utime(pair[0], (1000, 2000))
    pair[0].chmod(0o640)
    monkeypatch.setattr(os, "link", refuse)
    backup = _backup(pair[0])
    assert backup.name.endswith(".old")
    assert (backup.read_text(), backup.stat().st_mode & 0o777) == ("old", 0o640)
    assert backup.stat().st_mtime == 2000
    assert backup.stat().st_ino != pair[0].stat().st_ino
    backup.unlink()
    write_both(pair)
    assert [path.read_text() for path in pair] == ["fresh", "fresh"]
    assert sorted(path.name for path in pair[0].parent.iterdir()) == ["a", "b"]
    assert _backup(pair[0].parent / "none") is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_answered_once_the_names_are_there(number):
    heard = []
    former = signal.signal(number, lambda n, frame: heard.append(n))
    try:
        with _signals_wait():
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
            time.sleep(0.01)
            assert heard == []
        time.sleep(0.01)
        assert heard == [number]
        os.kill(os.getpid(), number)
        time.sleep(0.01)
        assert heard == [number, number]
    finally:
        signal.signal(number, former)


# ---------------------------------------------------------------------------- the guard


def left_behind(folder):
    path = folder / f".pnuauc-{3:016x}.part"
    path.write_text("half")
    return path


def test_the_guard_does_its_duty_when_the_other_process_is_gone(tmp_path, monkeypatch, waiting):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    left = left_behind(tmp_path)
    _watch(-1, [str(tmp_path)])
    assert waiting.now == 0.0
    assert not left.exists()


def test_the_guard_gives_a_dying_process_a_moment(tmp_path, monkeypatch, waiting):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    left = left_behind(tmp_path)
    _watch(os.getppid(), [str(tmp_path)])
    assert waiting.now == pytest.approx(_PATIENCE, abs=0.02)
    assert not left.exists()


def test_a_journal_whose_moves_fail_stays_with_its_files(tmp_path):
    """The target has become a folder meanwhile."""
    part, final = tmp_path / f".pnuauc-{1:016x}.part", tmp_path / "m"
    part.write_text("new")
    final.mkdir()
    (final / "inside").write_text("x")
    journal = tmp_path / f".pnuauc-{9:016x}.commit"
    journal.write_text(f'[["{part}", "{final}", null]]')
    journal.chmod(0o600)
    finish_commits(tmp_path)
    assert journal.exists()
    assert part.read_text() == "new"


# ---------------------------------------------------------------------------- sources and schemas


class Ranker:
    threshold_, basis_, coef_ = 0.0, IdentityBasis.from_parts(2), np.array([1.0, -2.0])


class Parted:
    """A table in parts, as files have it: record batches, each with its name."""

    name = "rows of mine"

    def __init__(self, table, rows):
        self.table, self.rows, self.schema = table, rows, table.schema

    def select(self, columns):
        return Parted(self.table.select(columns), self.rows)

    def batches(self):
        first = 0
        for k, part in enumerate(self.table.to_batches(max_chunksize=self.rows)):
            yield Batch(part, f"part {k}", first)
            first += part.num_rows


def test_a_source_is_scored_as_the_table(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=50), "b": rng.normal(size=50), "i": np.arange(50) * 3})
    features = table.select(["a", "b"])
    encoder = TableEncoder().fit(features)
    X = encoder.transform(features)
    model = TableModel.from_fitted(encoder, Ranker(), X, {"ids": ["i"], "label": None})
    summary = score_file(model, Parted(table, 7), tmp_path / "out.csv")
    found = read_table(tmp_path / "out.csv")
    assert found.column_names == ["i", "score", "percentile"]
    np.testing.assert_allclose(found.column("score").to_numpy(), model.score(features))
    assert found.column("i").to_pylist() == (np.arange(50) * 3).tolist()
    assert (summary.n_rows, summary.kept) == (50, ("i",))
    words = pa.table({"a": ["1"] * 9 + ["oops"], "b": [1.0] * 10, "i": np.arange(10)})
    with pytest.raises(InputError, match=r"'part 2': Column 'a'.*'oops' in row 10\)"):
        score_file(model, Parted(words, 4), tmp_path / "o.csv")
    with pytest.raises(InputError, match="'rows of mine' has a header but no rows"):
        score_file(model, Parted(table.slice(0, 0), 4), tmp_path / "o.csv")


def test_a_ranker_with_a_scorer_of_its_own_keeps_it():
    own = LinearScorer(IdentityBasis.from_parts(2), np.ones(2))
    assert scorer_of(SimpleNamespace(scorer_=own)) is own
    made = scorer_of(Ranker())
    np.testing.assert_array_equal(made.score(np.eye(2)), [1.0, -2.0])


def test_what_formats_without_names_say(tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("1 1:1\n")
    assert column_names(path) == []
    assert LibsvmReader(find_source(path)).names() == []
    pa.parquet.write_table(pa.table({"a": range(10)}), tmp_path / "t.parquet", row_group_size=4)
    reader = ParquetReader(find_source(tmp_path / "t.parquet"))
    assert (reader.group_rows(), reader.n_rows(), reader.names()) == ([4, 4, 2], 10, ["a"])
    thin = TableEncoder().fit(sparse.csr_matrix(np.eye(3)))
    assert thin.groups() == {f"feature {j + 1}": [j] for j in range(3)}
    assert thin.new_categories(None) == {}
    assert not _is_pipe(tmp_path / "none")
    assert not _is_pipe(path)
    assert ReadOptions().encoding == "utf8"


@pytest.mark.parametrize("head", [b"PAR1 and no more", b"ARROW1 and no more"])
def test_a_damaged_table_is_not_ours(tmp_path, head):
    for name in ("t.parquet", "t.arrow"):
        (tmp_path / name).write_bytes(head)
        assert not written_by_us(tmp_path / name)


# ---------------------------------------------------------------------------- long columns


@pytest.mark.parametrize(
    ("usual", "odd", "kind"),
    [("2024-01-{:02d}", "soon", "date"), ("{}.5", "oops", "number")],
)
def test_an_odd_cell_that_was_not_looked_at_is_told(monkeypatch, usual, odd, kind):
    """Every fourth of 200 cells is looked at; the share and the example come from all."""
    monkeypatch.setattr(_cells, "_LOOKED_AT", 50)
    cells = [usual.format(1 + i % 28) for i in range(200)]
    whole = recognise(pa.array(cells))
    assert (whole.kind, whole.odd, whole.share) == (kind, None, 1.0)
    cells[5] = odd
    found = recognise(pa.array(cells))
    assert (found.kind, found.form, found.odd) == (kind, whole.form, odd)
    assert found.share == pytest.approx(199 / 200)
    cells[4] = odd  # one that was looked at speaks for itself
    seen = recognise(pa.array(cells))
    assert (seen.odd, seen.share) == (odd, pytest.approx(49 / 50))


@pytest.mark.parametrize(("cell", "form"), [("31/01/2024", "dmy"), ("01/31/2024", "mdy")])
def test_a_cell_that_was_not_looked_at_may_settle_the_order(monkeypatch, cell, form):
    monkeypatch.setattr(_cells, "_LOOKED_AT", 50)
    cells = [f"0{1 + i % 9}/0{1 + i % 7}/2024" for i in range(200)]
    with pytest.raises(InputError, match="do not say whether the day or the month comes first"):
        recognise(pa.array(cells), name="d")
    cells[5] = cell
    assert recognise(pa.array(cells)).form == form
