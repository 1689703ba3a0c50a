"""Tests of study/rows."""

from __future__ import annotations

import datetime
import decimal
import warnings
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pnuauc._utils.label_values import RoleCounts
from pnuauc.exceptions import InputError, LabelReadingWarning
from pnuauc.io.sources import MemorySource
from pnuauc.study import (
    ColumnRoles,
    LabelCodes,
    evaluate_table,
)
from pnuauc.study import (
    rows as _rows,
)
from pnuauc.study.rows import (
    LabelReader,
    check_enough,
    check_present,
    collected,
    label_values,
    read_labels,
    read_source_labels,
    study_rows,
)


def labelled(values):
    return pa.table({"y": values})


def test_how_labels_were_read_is_told_where_it_may_surprise():
    zeros = labelled([1] * 5 + [0] * 95)
    with pytest.warns(LabelReadingWarning, match="0 is read as negative"):
        roles = read_labels(zeros, "y", LabelCodes())
    assert "5 are 1 and 95 are 0" in roles.announcement
    assert roles.counts == (5, 95, 0)
    with pytest.warns(LabelReadingWarning, match="1, 0 and -1"):
        roles = read_labels(labelled([1, 0, -1, -1]), "y", LabelCodes())
    assert "positive, negative and unlabelled" in roles.announcement
    assert roles.counts == (1, 1, 2)
    # few rows, many positives, or named codes: nothing to ask
    for quiet in (labelled([1] * 2 + [0] * 38), labelled([1] * 50 + [0] * 50)):
        assert read_labels(quiet, "y", LabelCodes()).announcement is None
    named = LabelCodes(positive=[1], negative=[0])
    assert read_labels(zeros, "y", named).announcement is None


def test_a_named_label_that_does_not_occur():
    few, many = labelled(list("abc")), labelled(list("abcdefg"))
    with pytest.raises(InputError, match=r"never holds 'A'.*mean 'a'.*it holds 'a', 'b', 'c'\."):
        read_labels(few, "y", LabelCodes(positive=["A"], negative=["b"]))
    with pytest.raises(InputError, match=r"'a', 'b', 'c', 'd', 'e', \.\.\.\.$"):
        read_labels(many, "y", LabelCodes(positive=["x"], negative=["b"]))


def test_evaluate_reads_codes_and_several_columns():
    table = pa.table({"s": [3.0, 2.0, 1.0, 0.5], "y": ["good", "good", "bad", "bad"]})
    found = evaluate_table(
        table, "y", ["s"], codes=LabelCodes(positive=["good"], negative=["bad"])
    ).to_dict()
    assert found["scores"]["s"]["auc"]["value"] == 1.0


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        (pa.int64(), "1", 1), (pa.float64(), "1.5", 1.5), (pa.float64(), "2.0", 2),
        (pa.int64(), ["1", "7"], [1, 7]), (pa.bool_(), "Yes", True), (pa.bool_(), "0", False),
        (pa.bool_(), "maybe", "maybe"), (pa.string(), "1", "1"), (None, "1", "1"),
        (pa.int64(), 3, 3), (pa.int64(), [], None), (pa.int64(), None, None),
    ],
)  # fmt: skip
def test_label_values_in_the_type_of_the_column(kind, given, read):
    found = LabelCodes(positive=given).for_type(kind)
    value = found["positive_label"]
    assert value == read
    assert type(value) is type(read)
    assert found["negative_label"] is None
    with pytest.raises(InputError, match="'x' cannot occur"):
        LabelCodes(unlabeled="x").for_type(pa.int64())


def test_columns_are_split_by_their_roles():
    table = pa.table({"a": [1.0, 2, 3, 4], "y": [1, 0, 1, None], "i": list("pqrs"), "d": [0] * 4})
    found = study_rows(table, ColumnRoles("y", ("i",), ("d",)), "all", 0)
    assert found.table.column_names == ["a"]
    order = np.argsort(found.numbers)
    assert found.table.column("a").to_numpy()[order].tolist() == [1, 2, 3, 4]
    assert found.roles.codes[order].tolist() == [1, 0, 1, -1]
    assert [found.ids.column("i")[int(i)].as_py() for i in order] == list("pqrs")
    assert study_rows(table, ColumnRoles("y"), "all", 0).ids is None
    X = sparse.csr_matrix(np.eye(3))
    found = study_rows((X, np.array([1.0, 0.0, np.nan])), ColumnRoles("y"), "all", 0)
    assert (found.table != X).nnz == 0
    assert (found.roles.codes.tolist(), found.ids) == ([1, 0, -1], None)
    assert found.numbers.tolist() == [0, 1, 2]
    assert tuple(found.counts.counts) == (1, 1, 1)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (ColumnRoles("y", ("no",)), "'no', given as one that names rows"),
        (ColumnRoles("y", (), ("no",)), "'no', given as one that is left out"),
        (ColumnRoles("y", ("a",), ("a",)), "'a' is given two roles"),
        (ColumnRoles("y", ("y",)), "'y' is given two roles"), (ColumnRoles("z"), "no column 'z'"),
        (ColumnRoles("y", ("a",), ("b",)), None),
    ],
)  # fmt: skip
def test_columns_that_have_a_role_are_there_once(columns, message):
    table = pa.table({"a": [1], "b": [2], "y": [1]})
    if message is None:
        check_present(table, columns)
    else:
        with pytest.raises(InputError, match=message):
            check_present(table, columns)


@pytest.mark.parametrize(
    ("counts", "enough"),
    [((4, 0, 9), True), ((3, 0, 9), False), ((0, 4, 9), True), ((0, 3, 9), False),
     ((1, 1, 9), True), ((2, 2, 0), True)],
)  # fmt: skip
def test_one_class_alone_needs_four_rows(counts, enough):
    if enough:
        check_enough(RoleCounts(*counts), "y")
    else:
        with pytest.raises(InputError, match="at least 4 are needed"):
            check_enough(RoleCounts(*counts), "y")


def test_warnings_of_ours_become_sentences_each_once():
    messages = ["before"]

    def loud():
        with collected(messages):
            for text in ("one", "two", "one", "before"):
                warnings.warn(text, LabelReadingWarning, stacklevel=1)
            warnings.warn("foreign", RuntimeWarning, stacklevel=1)

    with pytest.warns(RuntimeWarning, match="foreign"):
        loud()
    assert messages == ["before", "one", "two"]


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.int64()])
def test_labels_of_a_source_are_read_as_one_column(kind):
    values = {pa.string(): ["yes", "no", None, "yes", " "], pa.float64(): [1, 0, None, 1, np.nan],
              pa.int64(): [1, 0, None, 1, None]}[kind]  # fmt: skip
    table = pa.table({"y": pa.array(values, kind), "x": range(5)})
    reader, counts = read_source_labels(MemorySource(table), "y", LabelCodes())
    assert counts.counts == (2, 1, 2)
    assert reader(table).tolist() == [1, 0, -1, 1, -1]
    assert reader(table.slice(1, 2)).tolist() == [0, -1]
    other = LabelReader("y", reader.cells.slice(0, 1), reader.codes)
    with pytest.raises(InputError, match="not there when labels were counted"):
        other(table)


def test_ids_name_the_file_where_there_are_several():
    table = pa.table({"i": ["a", "b"], "x": [1, 2]})
    part = np.array([1, 0])
    one, two = (SimpleNamespace(part_names=names) for names in (("f",), ("f", "g")))
    assert _rows.ids_of(table, ["i"], part, one).to_pydict() == {"i": ["a", "b"]}
    found = _rows.ids_of(table, ["i"], part, two)
    assert found.column_names == ["file", "i"]
    assert found.column("file").to_pylist() == ["g", "f"]
    assert _rows.ids_of(table, [], part, one) is None
    assert _rows.ids_of(table, [], part, two).column_names == ["file"]
    own = table.rename_columns(["file", "x"])
    assert _rows.ids_of(own, ["file"], part, two).to_pydict() == {"file": ["a", "b"]}


def test_what_is_said_of_columns_reaches_the_encoder():
    roles = ColumnRoles("y", categorical=("k",), decimal=",", date_format={"d": "day-first"})
    encoder = roles.encoder()
    assert (encoder.categorical, encoder.decimal) == (("k",), ",")
    assert encoder.date_format == {"d": "day-first"}
    table = pa.table(
        {"k": [1, 2] * 9, "p": ["1.234", "5.678"] * 9, "d": ["01/02/2024", "03/04/2024"] * 9}
    )
    columns = encoder.fit(table).columns_
    assert [(c.name, c.kind, c.form) for c in columns] == [
        ("k", "category", ""), ("p", "number", "n,."), ("d", "date", "dmy")
    ]  # fmt: skip


def in_batches(values, kind=None, batch_rows=3):
    table = pa.table({"y": pa.array(values, kind)})
    return table, MemorySource(table, batch_rows=batch_rows)


def test_rows_are_counted_by_all_values_that_name_their_role():
    """Two words for each role, in batches that hold some of them."""
    words = ["a", "c", "e", "b", "a", "a", "c", None, "d", "f", "a"]
    codes = LabelCodes(positive=["a", "b"], negative=["c", "d"], unlabeled=["e", "f"])
    table, source = in_batches(words)
    reader, counts = read_source_labels(source, "y", codes)
    read = {"a": 1, "b": 1, "c": 0, "d": 0, "e": -1, "f": -1, None: -1}
    expected = [read[word] for word in words]
    assert reader(table).tolist() == expected
    assert counts.counts == tuple(expected.count(code) for code in (1, 0, -1)) == (5, 3, 3)
    assert reader(table.slice(7, 2)).tolist() == [-1, 0]


@pytest.mark.parametrize("values", [["n", "y", "y", None, "n", "y"], [0, 1, 1, None, 0, 1]])
def test_labels_in_a_dictionary_are_their_values(values):
    plain, coded = pa.array(values), pa.array(values).dictionary_encode()
    for cells in (plain, coded):
        table = pa.table({"y": cells})
        reader, counts = read_source_labels(MemorySource(table, batch_rows=2), "y", LabelCodes())
        assert counts.counts == (3, 2, 1)
        assert reader(table).tolist() == [0, 1, 1, -1, 0, 1]


def test_missing_labels_are_one_value_however_they_are_written():
    """NaN in every batch, and nothing: one missing value, not many."""
    table, source = in_batches(
        [1.0, 0.0, np.nan, 1.0, None, np.nan, np.nan, 0.0, 1.0], batch_rows=1
    )
    reader, counts = read_source_labels(source, "y", LabelCodes())
    assert reader.cells.to_pylist() == [0.0, 1.0]
    assert reader.codes.tolist() == [0, 1, -1]
    assert counts.counts == (3, 2, 4)
    assert reader(table).tolist() == [1, 0, -1, 1, -1, -1, -1, 0, 1]
    full = in_batches([1, 0, 0, 1])[1]
    assert read_source_labels(full, "y", LabelCodes())[1].counts == (2, 2, 0)
    with pytest.raises(InputError, match="header but no rows"):
        read_source_labels(in_batches([], pa.int64())[1], "y", LabelCodes())


@pytest.mark.parametrize(
    ("n_ones", "n_zeros", "asked"), [(9, 41, True), (8, 41, False), (10, 40, False)]
)
def test_zeros_of_a_source_are_asked_about_by_their_number(n_ones, n_zeros, asked):
    """As of a table at hand: from fifty rows and four fifths on, whatever the batches."""
    source = in_batches([0] * n_zeros + [1] * n_ones, batch_rows=7)[1]
    if asked:
        with pytest.warns(LabelReadingWarning, match="9 are 1 and 41 are 0"):
            counts = read_source_labels(source, "y", LabelCodes())[1]
        assert "0 is read as negative" in counts.announcement
    else:
        assert read_source_labels(source, "y", LabelCodes())[1].announcement is None


def test_nothing_is_announced_where_unlabelled_cells_are_empty_or_labels_are_words():
    for values in ([1, 0, None, None], ["no"] * 95 + ["yes"] * 5, [True] * 3 + [False] * 3):
        table = pa.table({"y": values})
        assert read_labels(table, "y", LabelCodes()).announcement is None
    with pytest.warns(LabelReadingWarning, match="1, 0 and -1"):
        read_labels(pa.table({"y": ["1.0", "0", "-1.0", "-1"]}), "y", LabelCodes())


@pytest.mark.parametrize("given", ["good", ["good"], ("good",)])
def test_a_label_is_named_alone_or_in_a_list(given):
    table = pa.table({"y": ["good", "bad", "good", "?"]})
    roles = read_labels(table, "y", LabelCodes(given, "bad", ["?"]))
    assert roles.codes.tolist() == [1, 0, 1, -1]
    with pytest.raises(InputError, match="never holds 'best', named as positive"):
        read_labels(table, "y", LabelCodes("best", "bad"))


def test_labels_that_cannot_be_read_say_what_would_help():
    """What is to be changed is that of the reason, if it has one."""
    for values, about in (([1, 2, 3, 4], "labels"), (["a", "b"], None)):
        with pytest.raises(InputError, match="Label column 'y': ") as caught:
            read_labels(pa.table({"y": values}), "y", LabelCodes())
        own = caught.value.__cause__.about
        assert about in (own, None)
        assert caught.value.about == (own or "labels")


def forty(x, names=None):
    labels = pa.array([1] * 5 + [0] * 5 + [None] * 30, pa.int8())
    return pa.table({"x": x, "i": names or [f"r{k}" for k in range(40)], "y": labels})


def test_rows_are_drawn_by_their_ids_or_else_by_their_features():
    x, other = np.random.default_rng(0).normal(size=(2, 40))
    by_id, by_row = ColumnRoles("y", ids=("i",)), ColumnRoles("y", drop=("i",))

    def drawn(table, columns):
        rows = study_rows(table, columns, 20, 0)
        return set(rows.numbers[rows.roles.unlabeled].tolist())

    assert len(drawn(forty(x), by_id)) == 20
    assert drawn(forty(x), by_id) == drawn(forty(other), by_id)
    renamed = forty(x, [f"s{k}" for k in range(40)])
    assert drawn(renamed, by_id) != drawn(forty(x), by_id)
    assert drawn(renamed, by_row) == drawn(forty(x), by_row)
    assert drawn(forty(other), by_row) != drawn(forty(x), by_row)
    turned = np.arange(40)[::-1]
    table = forty(x).take(pa.array(turned))
    assert {int(turned[k]) for k in drawn(table, by_row)} == drawn(forty(x), by_row)


def test_so_many_different_labels_are_measurements():
    for n, words in ((10_000, "Label column 'y':"), (10_001, "more than 10,000 different values")):
        table = pa.table({"y": np.arange(n) + 5})
        with pytest.raises(InputError, match=words):
            read_source_labels(MemorySource(table), "y", LabelCodes())


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, 0, None], pa.int8()), [1.0, 0.0, np.nan]),
        (pa.array([decimal.Decimal("1"), decimal.Decimal("0")]), [1.0, 0.0]),
        (pa.array(["1", "0", ""]), [1.0, 0.0, np.nan]),
        (pa.array([0.5, 1.0]), [0.5, 1.0]),
    ],
)
def test_numbers_of_a_label_column_are_numbers(column, expected):
    found = label_values(pa.table({"y": column}), "y")
    assert found.dtype.kind in "fi"
    np.testing.assert_array_equal(found.astype(float), expected)


def test_words_of_a_label_column_are_words():
    for column in (
        pa.array(["yes", "no", None]),
        pa.array(["yes", "no", None]).dictionary_encode(),
    ):
        found = label_values(pa.table({"y": column}), "y")
        assert found.dtype == object
        assert found.tolist() == ["yes", "no", None]
    for column in ([datetime.date(2024, 1, 1)], [[1, 2]]):
        with pytest.raises(InputError, match="it must hold labels"):
            label_values(pa.table({"y": column}), "y")
    with pytest.raises(InputError, match=r"no column 'y'; the columns are 'a'\. Is the delimiter"):
        label_values(pa.table({"a": [1]}), "y")


def numbered(n_u):
    """Five labelled rows of each class and n_u others; a column counts all rows."""
    n = 10 + n_u
    labels = pa.array([1] * 5 + [0] * 5 + [None] * n_u, pa.int8())
    x = np.random.default_rng(0).normal(size=n)
    return pa.table({"x": x, "k": np.arange(n), "i": [f"r{j}" for j in range(n)], "y": labels})


@pytest.mark.parametrize("max_unlabeled", [30, 31, "all"])
def test_rows_that_are_all_used_are_no_draw(max_unlabeled):
    table = numbered(30)
    rows = study_rows(table, ColumnRoles("y", ids=("i",)), max_unlabeled, 0)
    assert (rows.origin, rows.notes) == (None, ())
    assert rows.table.column_names == ["x", "k"]
    assert (len(rows.roles), rows.counts.counts) == (40, (5, 5, 30))
    assert sorted(rows.numbers.tolist()) == list(range(40))
    names = rows.ids.column("i").to_pylist()
    assert names == [f"r{j}" for j in rows.numbers]
    np.testing.assert_array_equal(rows.table.column("k"), rows.numbers)


def test_rows_that_are_drawn_are_told_and_a_column_that_counts_them_left_out():
    rows = study_rows(numbered(30), ColumnRoles("y", ids=("i",)), 29, 0)
    assert rows.roles.counts == (5, 5, 29)
    assert rows.counts.counts == (5, 5, 30)
    assert rows.table.column_names == ["x"]
    assert (
        rows.notes[0]
        == "Column 'k' numbers the rows; left out and copied to every output as an id."
    )
    assert rows.notes[1].startswith("Fitted on 29 of 30 unlabelled rows")
    assert len(rows.origin.drawn) == 29
    assert rows.origin.source.schema.names == ["x", "k", "i", "y"]
    again = study_rows(numbered(30), ColumnRoles("y", ids=("i",)), 29, 0)
    assert again.numbers.tolist() == rows.numbers.tolist()
    drawn = {tuple(study_rows(numbered(30), ColumnRoles("y", ids=("i",)), 29, s).numbers)
             for s in range(4)}  # fmt: skip
    assert len(drawn) > 1
