"""Tests of study/rows."""

from __future__ import annotations

import datetime
import decimal
import warnings

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pnuauc._utils.label_values import RoleCounts
from pnuauc.exceptions import InputError, LabelReadingWarning
from pnuauc.io.labels import LabelReader
from pnuauc.io.sources import MemorySource
from pnuauc.study.rows import (
    ColumnRoles,
    LabelCodes,
    check_enough,
    check_present,
    collected,
    read_labels,
    read_source_labels,
    study_rows,
)


def labelled(values):
    return pa.table({"y": values})


@pytest.mark.parametrize(
    ("values", "announced"),
    [
        ([1] * 9 + [0] * 41, "9 are 1 and 41 are 0; 0 is read as negative"),
        ([1] * 8 + [0] * 41, None), ([1] * 10 + [0] * 40, None), (["no"] * 95 + ["yes"] * 5, None),
        ([1, 0, -1, -1], "1, 0 and -1 are read as positive, negative and unlabelled"),
        (["1.0", "0", "-1.0", "-1"], "1, 0 and -1 are read as positive"),
        ([1, 0, None, None], None), ([True] * 3 + [False] * 3, None),
    ],
)  # fmt: skip
def test_how_labels_were_read_is_told_where_it_may_surprise(values, announced):
    """Not where positives are many or rows few, nor where values were named."""
    table = labelled(values)
    if announced is None:
        assert read_labels(table, "y", LabelCodes()).announcement is None
        return
    with pytest.warns(LabelReadingWarning, match=announced):
        roles = read_labels(table, "y", LabelCodes())
    assert announced in roles.announcement
    if values[0] == 1 and -1 not in values:
        assert read_labels(table, "y", LabelCodes([1], [0])).announcement is None


@pytest.mark.parametrize(
    ("values", "codes", "read"),
    [
        (["good", "bad", "good", "?"], ("good", ["bad"], ("?",)), [1, 0, 1, -1]),
        (["a", "c", "e", "b", None, "d", "f"], ("ab", "cd", "ef"), [1, 0, -1, 1, -1, 0, -1]),
        ([1, 0, 7, None], (["1", "7"], "0", None), [1, 0, 1, -1]),
        ([3.0, 2.0, np.nan], ("3", "2.0", None), [1, 0, -1]),
        ([True, False, None], ("0", "Yes", None), [0, 1, -1]),
        (["1", "0", "", "2"], ("1", "0", 2), [1, 0, -1, -1]),
        (["yes", "no", None, "yes", " "], (), [1, 0, -1, 1, -1]),
        ([1.0, 0.0, np.nan, 1.0, None], (), [1, 0, -1, 1, -1]),
        ([decimal.Decimal("1"), decimal.Decimal("0")], (), [1, 0]),
    ],
)  # fmt: skip
def test_labels_are_read_as_one_column_however_it_is_cut_and_named(values, codes, read):
    """Values of a command line arrive as text; a missing value is one value in every batch."""
    codes = [list(c) if isinstance(c, str) and c in ("ab", "cd", "ef") else c for c in codes]
    plain = pa.array(values)
    for cells in (plain, plain.dictionary_encode()):
        table = labelled(cells)
        source = MemorySource(table, batch_rows=2)
        reader, counts = read_source_labels(source, "y", LabelCodes(*codes))
        assert reader(table).tolist() == read
        assert counts.counts == tuple(read.count(code) for code in (1, 0, -1))
        assert reader(table.slice(1, 1)).tolist() == read[1:2]
    other = LabelReader("y", reader.cells.slice(0, 1), reader.codes)
    with pytest.raises(InputError, match="not there when labels were counted"):
        other(table)


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        (list("abc"), "A", r"never holds 'A', named as positive \(did you mean 'a'\?\); it holds"),
        (list("abcdefg"), "x", r"'a', 'b', 'c', 'd', 'e', \.\.\.\.$"),
        ([1, 0], "x", "never holds 'x'"), ([True, False], "maybe", "never holds 'maybe'"),
        ([], None, "header but no rows"),
        (np.arange(10_000) + 5, None, "Label column 'y':"),
        (np.arange(10_001) + 5, None, "more than 10,000 different values"),
        ([datetime.date(2024, 1, 1)], None, "it must hold labels"),
        ([[1, 2]], None, "it must hold labels"),
    ],
)  # fmt: skip
def test_labels_that_mean_nothing_are_refused(values, positive, message):
    with pytest.raises(InputError, match=message):
        read_labels(labelled(values), "y", LabelCodes(positive=positive))


def test_a_column_that_is_missing_is_named_with_those_that_are_there():
    with pytest.raises(InputError, match=r"no column 'y'; the columns are 'a'\. Is the delimiter"):
        read_labels(pa.table({"a": [1]}), "y", LabelCodes())


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
