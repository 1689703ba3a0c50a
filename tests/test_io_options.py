"""Options of the libraries behind reading and writing, each by what would go wrong without it."""

from __future__ import annotations

import errno
import itertools
import os
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from pnuauc._stored import Parts
from pnuauc.exceptions import InputError, OutputError
from pnuauc.io import ReadOptions, TableEncoder, _encoder, read_table
from pnuauc.io._after_kill import finish_commits, lock
from pnuauc.io._cells import as_typed
from pnuauc.io._columns import Column, classify, numbers, strings
from pnuauc.io._formats import find_source
from pnuauc.io._parts import read_scorer
from pnuauc.io._scoring import ScoreSummary, _read_ahead
from pnuauc.io._tables import iter_batches
from pnuauc.io._text_files import CsvReader
from pnuauc.io._writing import atomic_file

# ---------------------------------------------------------------------------- CSV


def csv(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_value_may_hold_a_line_end(tmp_path):
    path = csv(tmp_path, 'a,b\n"x\ny",1\n"z, w",2\n')
    assert read_table(path).to_pydict() == {"a": ["x\ny", "z, w"], "b": [1, 2]}
    (batch,) = iter_batches(path, floats=["b"])
    assert batch.to_pydict() == {"a": ["x\ny", "z, w"], "b": [1.0, 2.0]}


def test_missing_words_are_missing_numbers_and_texts_as_they_are_written(tmp_path):
    path = csv(tmp_path, "a;b\n1.5;NA\nNA;x\nnull;\n#N/A;null\n")
    (batch,) = iter_batches(path, floats=["a"])
    assert batch.to_pydict() == {"a": [1.5, None, None, None], "b": ["NA", "x", "", "null"]}
    (some,) = iter_batches(path, ["b"])
    assert some.to_pydict() == {"b": ["NA", "x", "", "null"]}
    assert str(batch.schema.field("a").type) == "double"


def test_numbers_are_text_until_they_are_asked_for(tmp_path):
    path = csv(tmp_path, "a,b\n007,1e3\n")
    (batch,) = iter_batches(path)
    assert batch.to_pydict() == {"a": ["007"], "b": ["1e3"]}


def test_a_letter_that_the_first_look_cuts_in_two(tmp_path):
    """The 65,536th byte is the first of two."""
    head = "a,b\n" + "x,1\n" * 16_382
    text = head + "y" * (65_535 - len(head)) + "é,2\n"
    path = csv(tmp_path, text)
    reader_input = path.read_bytes()
    assert reader_input[65_535] == "é".encode()[0]
    table = read_table(path)
    assert table.num_rows == 16_383
    assert table.column("a")[-1].as_py().endswith("é")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-8-sig"])
def test_texts_of_other_encodings(tmp_path, encoding):
    path = csv(tmp_path, "ä;b\nü;1\n".encode(encoding))
    options = ReadOptions(encoding="latin-1") if encoding == "latin-1" else None
    assert read_table(path, options).to_pydict() == {"ä": ["ü"], "b": [1]}
    reader = CsvReader(find_source(path, options))
    assert (reader.delimiter, reader.names()) == (";", ["ä", "b"])


# ---------------------------------------------------------------------------- rows of others


def test_items_of_a_json_list_are_counted_from_one(tmp_path):
    path = csv(tmp_path, '[{"a": 1}, 7]', "t.json")
    with pytest.raises(InputError, match="holds a int in row 2; each"):
        read_table(path)
    path = csv(tmp_path, '{"a": 1}\n7\n', "t.jsonl")
    with pytest.raises(InputError, match="holds a int in line 2; each"):
        read_table(path)


def test_a_line_of_libsvm_that_is_no_text_is_shown(tmp_path):
    path = csv(tmp_path, b"1 1:1\n\xff\xfe 2:x\n", "t.libsvm")
    with pytest.raises(InputError, match="not LIBSVM text in line 2"):
        read_table(path)


def test_indices_of_libsvm_begin_at_one(tmp_path):
    X, y = read_table(csv(tmp_path, "1 1:5 2:6\n0 2:7\n", "t.libsvm"))
    assert (X.toarray().tolist(), y.tolist()) == ([[5, 6], [0, 7]], [1, 0])
    assert X.format == "csr"


def test_sparse_centres_may_leave_the_last_columns_empty():
    spec = {"kind": "linear", "basis": "linear", "centers": "sparse"}
    arrays = {"coef": np.array([2.0]), "centers_data": np.array([3.0]),
              "centers_indptr": np.array([0, 1]), "centers_indices": np.array([1])}  # fmt: skip
    made = read_scorer(Parts(spec, arrays), {"kernels": 5})
    assert made.basis.centers_.shape == (1, 5)


# ---------------------------------------------------------------------------- cells


def test_numbers_beyond_what_floats_hold_exactly():
    large = pa.array([2**60 + 1, -(2**62), None])
    found = numbers(Column("c", "number", "int64"), large)
    np.testing.assert_array_equal(found, [float(2**60), -float(2**62), np.nan])
    spans = pa.array([2**60 + 1, None], pa.duration("ns"))
    found = numbers(Column("c", "number", "duration"), spans)
    assert found[0] == pytest.approx(2**60 * 1e-9)
    assert strings(pa.array([1e300, -1e15, 2.5, 7.0])).tolist() == ["1e+300", "-1e+15", "2.5", "7"]


def test_what_was_said_of_a_column_reaches_its_cells():
    """The decimal mark, the format of dates, and the name in the question about them."""
    cells = pa.chunked_array([["1.234", "5.678"]])
    assert classify("c", cells, decimal=",")[0].form == "n,."
    assert classify("c", cells, decimal=".")[0].form == ""
    dates = pa.chunked_array([["01/02/2024", "03/04/2024"]])
    assert classify("c", dates, date_format="day-first")[0].form == "dmy"
    assert classify("c", dates, date_format="month-first")[0].form == "mdy"
    with pytest.raises(InputError, match="Column 'when' holds dates such as"):
        classify("when", dates)


def test_formats_of_dates_by_column():
    table = pa.table({"d": ["01/02/2024", "03/04/2024"] * 3, "e": ["01/02/2024", "05/06/2024"] * 3})
    both = TableEncoder(date_format={"d": "day-first", "e": "month-first"}).fit(table)
    assert {c.name: c.form for c in both.columns_} == {"d": "dmy", "e": "mdy"}
    all_alike = TableEncoder(date_format="day-first").fit(table)
    assert {c.name: c.form for c in all_alike.columns_} == {"d": "dmy", "e": "dmy"}
    named = TableEncoder(("k",)).fit(pa.table({"k": [1, 2, 3] * 9, "n": [1, 2, 4] * 9}))
    assert {c.name: c.kind for c in named.columns_} == {"k": "category", "n": "number"}


def test_the_form_of_most_cells_wins():
    """Nine cells of ten are written with a decimal comma; thousands marks would fit one."""
    cells = ["1,5", "2,25", "3,75", "4,5", "1,234", "7,5", "8,5", "9,5", "0,5", "6,5"]
    column, _ = classify("c", pa.chunked_array([cells * 3]))
    assert (column.kind, column.form) == ("number", "n,")
    days = ["31/01/2024", "05/02/2024", "25/12/2023"] * 4
    assert classify("c", pa.chunked_array([days]))[0].form == "dmy"
    named = ["31-Jan-2024", "5-Feb-2024"] * 4
    assert classify("c", pa.chunked_array([named]))[0].form == "dby"


def test_rows_of_a_long_table_are_drawn_once_each(monkeypatch):
    """40 of 41 rows: the mean is that of all but one."""
    monkeypatch.setattr(_encoder, "FIT_ROWS", 40)
    values = np.random.default_rng(0).normal(size=41) ** 3
    for seed in range(5):
        mean = TableEncoder(random_state=seed).fit(pa.table({"x": values})).encoding_.mean[0]
        assert np.isclose((values.sum() - values) / 40, mean).sum() == 1


# ---------------------------------------------------------------------------- waiting


def test_a_commit_waits_for_the_folder(tmp_path):
    """Somebody else is replacing files there, and is done a moment later."""
    handle = os.open(tmp_path, os.O_RDONLY)
    assert lock(handle)
    freed = []

    def free():
        freed.append(time.monotonic())
        os.close(handle)

    timer = threading.Timer(0.15, free)
    timer.start()
    with atomic_file(tmp_path / "t") as stream:
        stream.write(b"new")
    done = time.monotonic()
    timer.join()
    assert done >= freed[0]
    assert (tmp_path / "t").read_bytes() == b"new"


def test_cleaning_up_waits_for_the_folder(tmp_path):
    left = tmp_path / f".pnuauc-{7:016x}.part"
    left.write_text("half")
    handle = os.open(tmp_path, os.O_RDONLY)
    assert lock(handle)
    timer = threading.Timer(0.15, lambda: os.close(handle))
    timer.start()
    finish_commits(tmp_path)
    timer.join()
    assert not left.exists()


def test_a_reader_that_is_ahead_stops_at_once():
    """Its thread waits for a free place; when nobody reads on, it ends."""
    before = set(threading.enumerate())
    ahead = _read_ahead(iter(itertools.count()))
    assert next(ahead) == 0
    time.sleep(0.05)
    ahead.close()
    assert set(threading.enumerate()) <= before


def test_two_batches_wait_at_most():
    seen = []
    ahead = _read_ahead(seen.append(k) or k for k in range(50))
    assert next(ahead) == 0
    until = time.monotonic() + 5.0
    while len(seen) < 4 and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(0.05)
    assert len(seen) == 4  # the one at work, two that wait, one in the reader's hand
    assert list(ahead) == list(range(1, 50))


def test_summaries_begin_empty_and_apart():
    one, other = ScoreSummary(), ScoreSummary()
    one.add(np.array([1.0, -1.0, 0.0]), {"w": {"x"}})
    assert (one.n_rows, one.n_positive) == (3, 1)
    assert (other.n_rows, other.new_categories, other.kept) == (0, {}, ())


# ---------------------------------------------------------------------------- which error


@pytest.mark.parametrize(
    ("failed", "error", "kind", "message"),
    [
        (False, ValueError("mine"), ValueError, "mine"),
        (False, OutputError("mine"), OutputError, "^mine$"),
        (True, ValueError("mine"), OutputError, "No space.*is as it was"),
        (True, OutputError("mine"), OutputError, "No space.*is as it was"),
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
    ("cells", "kind"),
    [
        (["true", "TRUE", None], "bool"), (["false"], "bool"), (["maybe", "true"], "string"),
        (["true", "false", "maybe"], "string"), (["1", "true", "false"], "string"),
        ([None, "x"], "string"),
        (["1", None, "2"], "int64"), (["1", "x"], "string"), (["1e3", "2"], "double"),
        (["2024-01-31", "x"], "string"), (["2024-01-31", "2024-02-30"], "string"),
        (["1"] * 120 + ["2.5"], "double"), (["0"], "int64"), (["00"], "string"),
    ],
)  # fmt: skip
def test_text_becomes_what_every_cell_of_it_is(cells, kind):
    found = as_typed(pa.chunked_array([pa.array(cells, pa.string())]))
    assert str(found.type) == kind
    assert found.null_count == cells.count(None)
