"""Readers at the edges of what they look at: heads, pipes, delimiters, lines, sheets, few rows."""

from __future__ import annotations

import io
import os
import select
import sys
import threading
import time
import zipfile
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from pnuauc._basis import IdentityBasis
from pnuauc.exceptions import InputError
from pnuauc.io import (
    OutputChoice,
    ReadOptions,
    TableEncoder,
    TableModel,
    _text_files,
    _workbook,
    read_table,
    score_file,
)
from pnuauc.io._cells import MISSING_WORDS
from pnuauc.io._formats import find_source, spooled
from pnuauc.io._scoring import _read_ahead, _Sink
from pnuauc.io._tables import iter_batches
from pnuauc.io._text_files import CsvReader, _sniff
from pnuauc.io._writing import TableWriter


@pytest.fixture
def file(tmp_path):
    """Writes a file and gives its path."""

    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# ---------------------------------------------------------------------------- heads


@pytest.mark.parametrize(("blanks", "page"), [(195, True), (196, False)])
def test_a_web_page_is_known_by_its_first_200_bytes(file, blanks, page):
    path = file(b" " * blanks + b"<html>\n1\n")
    if page:
        with pytest.raises(InputError, match="a web page or XML"):
            find_source(path)
    else:
        assert find_source(path).kind == "csv"


def test_zeros_are_counted_in_the_first_thousand_bytes(file):
    source = find_source(file(b"a" * 700 + b"\0" * 400))
    assert source.encoding(source.head()) == "utf8"
    source = find_source(file(b"a" * 699 + b"\0" * 400))
    with pytest.raises(InputError, match="UTF-16 text without a mark"):
        source.encoding(source.head())


def test_a_folder_may_look_like_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ab:").mkdir()
    (tmp_path / "ab:" / "t.csv").write_text("a\n1\n")
    assert read_table("ab:/t.csv").to_pydict() == {"a": [1]}
    with pytest.raises(InputError, match="nothing is fetched from the network"):
        read_table("ab:/none.csv")


def test_a_name_outside_an_archive_says_the_format_of_one_inside(tmp_path):
    for name, inside, columns in (("t.csv.zip", "data", ["a", "b"]), ("t.zip", "t.tsv", ["a,b"])):
        with zipfile.ZipFile(tmp_path / name, "w") as made:
            made.writestr(inside, "a,b\n1,2\n")
        assert read_table(tmp_path / name).column_names == columns


# ---------------------------------------------------------------------------- delimiters


def long_lines(last, n_letters, second_last="1;2;3,4", n=12):
    """Lines split by ; and by a comma; the last two as given, so many letters together."""
    lines = ["a;b;c,d", *["1;2;3,4"] * (n - 3), second_last, last]
    missing = n_letters - len("\n".join(lines))
    share = missing // n
    padded = [f"{line}{'x' * share}" for line in lines]
    padded[0] += "x" * (n_letters - len("\n".join(padded)))
    return "\n".join(padded)


@pytest.mark.parametrize(
    ("n_letters", "second_last", "delimiter"),
    [(16_384, "1;2;3,4", ";"), (16_383, "1;2;3,4", ","), (16_384, "1;2,4", ","),
     (60_000, "1;2;3,4", ";"), (60_000, "1;2,4", ",")],
)  # fmt: skip
def test_the_last_line_of_a_quarter_of_the_head_may_be_cut(n_letters, second_last, delimiter):
    """From 16,384 letters on it says nothing; the one before still does."""
    text = long_lines("1;2,4", n_letters, second_last)
    assert len(text) == n_letters
    assert _sniff(text) == delimiter


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a;b;" + "x" * 20_000, ";"), ("a;b;c,d" + "x" * 20_000 + "\n1;2,4", ";"),
        ("a;b\n1;2;3\n", ";"), ("a|b|c,d\n1|2,3\n", ","), ("a|b;c\n1\n", ";"), ("ab\n1;2;3\n", ","),
    ],
)  # fmt: skip
def test_delimiters_of_few_lines(text, delimiter):
    assert _sniff(text) == delimiter


def test_a_delimiter_is_one_character(file):
    path = file("a;b\n1;2\n")
    assert CsvReader(find_source(path, ReadOptions(delimiter=";"))).names() == ["a", "b"]
    assert CsvReader(find_source(path, ReadOptions(delimiter=","))).names() == ["a;b"]
    with pytest.raises(InputError, match="must be one character, got ';;'"):
        CsvReader(find_source(path, ReadOptions(delimiter=";;")))
    tabbed = file("a,b\tc\n1,2\t3\n", "t.tsv")
    assert CsvReader(find_source(tabbed)).names() == ["a,b", "c"]


def test_every_missing_word_is_a_missing_number(file):
    cells = [f'"{word}"' for word in MISSING_WORDS]
    path = file("x,y\n" + "".join(f"{cell},1\n" for cell in cells) + "2.5,2\n")
    (batch,) = iter_batches(path, floats=["x"])
    assert batch.column("x").to_pylist() == [None] * len(cells) + [2.5]


def test_no_batch_is_empty_when_cells_turn_out_to_be_text(file, monkeypatch):
    """The cell that is no number begins a block of its own."""
    monkeypatch.setattr(_text_files, "_BLOCK_BYTES", 20)
    path = file("a\n" + "1\n" * 40 + "1 000\n" + "2\n" * 9)
    for rows in (1, 2, 5, 1000):
        batches = list(iter_batches(path, floats=["a"], batch_rows=rows))
        assert min(batch.num_rows for batch in batches) > 0
        assert sum(batch.num_rows for batch in batches) == 50


# ---------------------------------------------------------------------------- rows of others


@pytest.mark.parametrize("text", ['[{"a": 1},', '[{"a": 1\n2}]', '[{"a": "x\ny"}]'])
def test_a_json_list_is_read_with_its_line_ends(file, text):
    """A number or a word does not go on in the next line."""
    with pytest.raises(InputError, match="is not JSON in line 1"):
        read_table(file(text, "t.json"))


def test_a_value_that_is_no_number_in_the_last_feature(file):
    path = file("1 1:1\n0 3:inf\n", "t.libsvm")
    with pytest.raises(InputError, match="holds inf in line 2, feature 3"):
        list(iter_batches(path, n_features=3))
    path = file("1 1:1\n0 4:inf\n", "t.libsvm")
    with pytest.raises(InputError, match="feature 4 in line 2; the model has 3"):
        list(iter_batches(path, n_features=3))


@pytest.mark.parametrize("place", [0, 1, 2, 3, 6])
def test_the_first_bad_line_among_several(file, place):
    lines = ["1 1:1"] * 7
    lines[place] = f"1 1:{'x' * 80}"
    lines[6] = "nonsense" if place != 6 else lines[6]
    with pytest.raises(InputError, match=rf"in line {place + 1} \('1 1:{'x' * 56}':"):
        read_table(file("\n".join(lines), "t.libsvm"))


@pytest.mark.parametrize(
    ("n_rows", "width", "unpacked", "good"),
    [(100, 10_000, 0, True), (101, 9_901, 0, False), (101, 9_901, 1, True)],
)
def test_a_million_empty_cells_and_one_for_each_byte(monkeypatch, n_rows, width, unpacked, good):
    """101 rows of 9,901 cells are a million and one."""
    sheet = SimpleNamespace(
        reset_dimensions=lambda: None,
        iter_rows=lambda values_only: iter([(None,) * width] * n_rows),
    )
    monkeypatch.setattr(_workbook, "_checked_size", lambda content, name: unpacked)
    monkeypatch.setattr(_workbook, "_sheet", lambda *names: sheet)
    monkeypatch.setattr(
        _workbook, "need", lambda *names: SimpleNamespace(load_workbook=lambda *_, **how: None)
    )
    found = _workbook.workbook_rows(b"", None, "t")
    if good:
        assert sum(1 for _ in found) == n_rows
    else:
        with pytest.raises(InputError, match="claims 101 rows and 9,901 columns"):
            list(found)


def test_ten_sheets_are_named():
    names = [f"s{k}" for k in range(12)]
    with pytest.raises(InputError, match=r"no sheet 'x'; it has 's0', .*'s8', 's9', \.\.\.\.$"):
        _workbook._sheet(SimpleNamespace(sheetnames=names), "x", "t")


# ---------------------------------------------------------------------------- pipes


def piped(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    return spooled("-")


@pytest.mark.parametrize(("blanks", "kind"), [(511, "jsonl"), (512, "csv")])
def test_what_is_piped_is_known_by_its_first_512_bytes(monkeypatch, blanks, kind):
    with piped(monkeypatch, b" " * blanks + b'{"a": 1}\n') as (path, options):
        assert (options.format, options.name) == (kind, "standard input")
        assert path.parent.name.startswith("pnuauc-")
        assert path.stat().st_size == blanks + 9


def test_a_pipe_keeps_the_name_that_was_given(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"a\n1\n",))
    writer.start()
    with spooled(tmp_path / "pipe", ReadOptions(name="mine")) as (_, options):
        assert (options.name, options.format) == ("mine", "csv")
    writer.join()


def test_a_slow_writer_is_waited_for(tmp_path):
    """The second half comes a moment after the first."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        with pipe.open("wb", buffering=0) as stream:
            for part in (b"a,b\n1,2\n", b"3,4\n"):
                stream.write(part)
                time.sleep(0.1)

    writer = threading.Thread(target=write)
    writer.start()
    with spooled(pipe) as (path, options):
        assert read_table(path, options).to_pydict() == {"a": [1, 3], "b": [2, 4]}
    writer.join()


def test_a_pipe_that_stays_silent_is_given_ten_seconds(tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(select, "select", lambda *given: waited.append(given[-1]) or ([], [], []))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no program writes to"), spooled(tmp_path / "pipe"):
        pass
    assert waited == [10.0]


@pytest.mark.parametrize("stdin", [None, SimpleNamespace(isatty=lambda: True)])
def test_a_terminal_or_nothing_is_no_table(monkeypatch, stdin):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InputError, match="Nothing comes through standard input"), spooled("-"):
        pass


# ---------------------------------------------------------------------------- scores


class Ranker:
    threshold_, basis_, coef_ = 0.0, IdentityBasis.from_parts(1), np.ones(1)


@pytest.fixture
def model():
    table = pa.table({"x": [1.0, 2.0, 4.0, 9.0]})
    encoder = TableEncoder().fit(table)
    return TableModel.from_fitted(encoder, Ranker(), encoder.transform(table), {"ids": ["i"]})


def test_one_row_is_scored(model, file, tmp_path):
    """And a file of one batch from which nothing is written has its header."""
    path = file("i,x\n7,4\n")
    summary = score_file(model, path, tmp_path / "out.csv")
    assert (summary.n_rows, summary.n_written, summary.n_formulas) == (1, 1, 0)
    (score,) = model.score(pa.table({"x": [4.0]}))
    assert read_table(tmp_path / "out.csv").column("score").to_pylist() == pytest.approx([score])
    for sort in (True, False):
        choice = OutputChoice(threshold=score + 1, sort=sort)
        assert score_file(model, path, tmp_path / "out.csv", choice=choice).n_written == 0
        assert (tmp_path / "out.csv").read_text() == '"i","score","percentile"\n'
    assert _Sink(TableWriter(io.BytesIO(), "t.csv"), OutputChoice(sort=True)).close() == 0


def test_formulas_are_counted_over_all_batches(model, file, tmp_path, monkeypatch):
    monkeypatch.setattr(_text_files, "_BLOCK_BYTES", 32)
    path = file("i,x\n" + "".join(f"{'=1' if k % 3 else 'a'},{k}\n" for k in range(40)))
    assert score_file(model, path, tmp_path / "out.csv").n_formulas == 26
    safe = OutputChoice(spreadsheet=True)
    assert score_file(model, path, tmp_path / "out.csv", choice=safe).n_formulas == 0
    assert score_file(model, path, tmp_path / "out.parquet").n_formulas == 0


def test_kept_columns_have_the_type_they_had(model, file, tmp_path):
    """Of files whose rows have types of their own they are text: one column has one type."""
    pa.parquet.write_table(pa.table({"i": [7, 8], "x": [1.0, 2.0]}), tmp_path / "in.parquet")
    lines = file('{"i": 7, "x": 1}\n{"i": "b", "x": 2}\n', "in.jsonl")
    for path, expected in ((tmp_path / "in.parquet", [7, 8]), (lines, ["7", "b"])):
        score_file(model, path, tmp_path / "out.parquet")
        assert read_table(tmp_path / "out.parquet").column("i").to_pylist() == expected
    pa.parquet.write_table(pa.table({"i": [7], "x": [1.0]}), tmp_path / "in.parquet")
    one = file('{"i": 7, "x": 1}\n', "in.jsonl")
    for path, kind in ((tmp_path / "in.parquet", "int64"), (one, "string")):
        score_file(model, path, tmp_path / "out.parquet")
        assert str(read_table(tmp_path / "out.parquet").schema.field("i").type) == kind


@pytest.mark.parametrize(
    ("top", "sizes", "waiting"),
    [
        (3, [100_000, 1, 99_997, 1], [100_000, 3, 100_000, 3]),
        (60_000, [60_000, 60_000, 1], [60_000, 120_000, 60_000]),
        (50_001, [100_002, 1], [100_002, 50_001]),
    ],
)
def test_rows_that_wait_for_the_top(top, sizes, waiting):
    """At most 100,000, or twice the top; then only the top of them."""
    sink = _Sink(TableWriter(io.BytesIO(), "t.csv"), OutputChoice(top=top))
    found, start = [], 0
    for size in sizes:
        scores = np.arange(start, start + size, dtype=float)
        sink.put(pa.RecordBatch.from_pydict({"score": scores}))
        start += size
        found.append(sum(batch.num_rows for batch in sink._waiting))
    assert found == waiting
    best = sink._best().column("score").to_numpy()
    np.testing.assert_array_equal(best, start - 1 - np.arange(top))


def test_who_reads_ahead_does_not_keep_the_program_alive():
    before = set(threading.enumerate())
    ahead = _read_ahead(iter(range(9)))
    assert next(ahead) == 0
    (reader,) = set(threading.enumerate()) - before
    assert reader.daemon
    assert list(ahead) == list(range(1, 9))
