"""Labels, columns and files of a study as they are read and counted; columns of scores."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from pnuauc._sources import MemorySource
from pnuauc._study import ColumnRoles, LabelCodes, _evaluate, _rows, check_belief, evaluate_table
from pnuauc._study._census import read_source_labels
from pnuauc._study._data import read_labels, read_values
from pnuauc._study._rows import study_rows
from pnuauc.exceptions import InputError, LabelReadingWarning
from pnuauc.metrics import auc_estimate, compare_auc
from tests.conftest import gaussian_scores, wins

# --- labels of a source ---------------------------------------------------------------------------


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


# --- labels that are named ------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["good", ["good"], ("good",)])
def test_a_label_is_named_alone_or_in_a_list(given):
    table = pa.table({"y": ["good", "bad", "good", "?"]})
    roles = read_labels(table, "y", LabelCodes(given, "bad", ["?"]))
    assert roles.codes.tolist() == [1, 0, 1, -1]
    with pytest.raises(InputError, match="never holds 'best', named as positive"):
        read_labels(table, "y", LabelCodes("best", "bad"))


@pytest.mark.parametrize(("n", "dots"), [(4, False), (5, False), (6, True)])
def test_values_that_occur_are_listed_up_to_five_and_missing_ones_are_none(n, dots):
    words = [f"w{k}" for k in range(n)]
    values = np.array([None, *words, float("nan")], dtype=object)
    codes = {"positive_label": "zzzz", "negative_label": None, "unlabeled_label": None}
    with pytest.raises(InputError) as caught:
        read_values(values, "y", codes)
    listed = ", ".join(map(repr, words[:5])) + (", ..." if dots else "")
    assert str(caught.value).endswith(f"named as positive; it holds {listed}.")
    assert caught.value.about == "labels"


def test_labels_that_cannot_be_read_say_what_would_help():
    """What is to be changed is that of the reason, if it has one."""
    for values, about in (([1, 2, 3, 4], "labels"), (["a", "b"], None)):
        with pytest.raises(InputError, match="Label column 'y': ") as caught:
            read_labels(pa.table({"y": values}), "y", LabelCodes())
        own = caught.value.__cause__.about
        assert about in (own, None)
        assert caught.value.about == (own or "labels")


@pytest.mark.parametrize(
    ("method", "words"), [("auto", None), ("placement", None), ("energy", "'energy' takes no")]
)
def test_beliefs_are_for_the_method_that_has_them(method, words):
    if words is None:
        check_belief((0.1, 0.2), None, method)
    else:
        check_belief(None, None, method)
        with pytest.raises(InputError, match=words):
            check_belief((0.1, 0.2), None, method)
    with pytest.raises(InputError, match="takes no belief"):
        check_belief((0.1, 0.2), 0.1, method)


# --- rows that are drawn, and files ---------------------------------------------------------------


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


def test_rows_that_were_drawn_are_told_with_what_they_serve(monkeypatch):
    assert _rows._draw_note(1200, 34_000, 1200).startswith("Fitted on 1,200 of 34,000 unlabelled")
    everything = _rows._draw_note(1200, 34_000, "all")
    assert everything.startswith("All 34,000 unlabelled rows were used")
    assert "1,200 of them" in everything
    monkeypatch.setattr(_rows, "SAMPLE_ROWS", 12)
    rows = study_rows(forty(np.arange(40.0) ** 2), ColumnRoles("y", ids=("i",)), "all", 0)
    assert (rows.roles.n_unlabeled, len(rows.origin.drawn)) == (12, 12)
    assert rows.notes == (_rows._draw_note(12, 30, "all"),)


def test_empty_cells_of_a_file_are_neither_numbers_nor_words():
    """Nine of ten cells that are there; the word that is shown is one of the other file."""
    first = ["x", "y"] + ["1"] * 18 + [None, " "] * 4
    second = [None, "", "7"] + ["w", "v"] * 10
    drawn = SimpleNamespace(
        table=pa.table({"n": [1.0] * 51, "c": first + second}), part=np.repeat([0, 1], [28, 23])
    )
    source = SimpleNamespace(part_names=("first", "second"))
    with pytest.raises(InputError, match=r"numbers in 'first' but not in 'second' \('w'\)"):
        _rows._check_files_agree(drawn, ["n", "c"], ColumnRoles("y"), source)
    few = SimpleNamespace(table=drawn.table.slice(0, 46), part=drawn.part[:46])
    _rows._check_files_agree(few, ["n", "c"], ColumnRoles("y"), source)  # 16 words


# --- columns of scores ----------------------------------------------------------------------------


def scored(sizes=(20, 30, 150), seed=0):
    """Labels and two columns, of which the second is the better one."""
    labels, a, _ = gaussian_scores(seed, sizes, 0.25, 0.5, digits=1)
    b = a + 2.0 * np.nan_to_num(labels) + np.random.default_rng(1).normal(size=len(a)).round(1)
    cells = pa.array([None if np.isnan(v) else int(v) for v in labels], pa.int8())
    return labels, a, b, pa.table({"a": a, "b": b, "y": cells})


@pytest.mark.parametrize("method", ["auto", "pu", "nu", "pn"])
def test_two_columns_are_each_what_they_are_alone(method):
    labels, a, b, table = scored()
    both = evaluate_table(table, "y", ["a", "b"], prior=0.25, method=method)
    for name, scores in (("a", a), ("b", b)):
        alone = evaluate_table(table, "y", [name], prior=0.25, method=method)
        assert both["scores"][name] == alone["scores"][name]
        for way in ("pn", "pu", "nu", "pu_raw", "nu_raw"):
            exact = auc_estimate(labels, scores, 0.25, way)
            told = both["scores"][name]["methods"][way]
            assert (told["value"], told["low"], told["high"]) == pytest.approx(
                (exact.value, exact.low, exact.high)
            )
    pair = compare_auc(labels, a, b, 0.25, method)
    told = both["comparison"]
    assert (told["difference"], told["low"], told["high"], told["p_value"]) == pytest.approx(
        (pair.difference, pair.low, pair.high, pair.p_value)
    )


def test_the_prior_comes_from_the_first_column_and_from_some_rows_of_many(monkeypatch):
    """The second column is noise, which tells next to nothing of the prior."""
    labels, good, hidden = gaussian_scores(2, (20, 30, 150), 0.25, 6.0)
    noise = np.random.default_rng(3).normal(size=len(good))
    cells = pa.array([None if np.isnan(v) else int(v) for v in labels], pa.int8())
    table = pa.table({"good": good, "noise": noise, "y": cells})
    monkeypatch.setattr(_evaluate, "PRIOR_ROWS", 149)
    found = evaluate_table(table, "y", ["good", "noise"])
    assert found["prior"]["value"] == pytest.approx(hidden.mean(), abs=0.03)
    assert found["prior"]["std_error"] < 0.06
    assert found["prior"]["source"].endswith("on 149 of the unlabelled rows, drawn at random")
    assert found["labels"]["unlabeled"] == 150
    share = found["scores"]["noise"]["methods"]["pu_raw"]["value"]
    assert share == pytest.approx(wins(noise[:20], noise[50:]).mean())  # among all rows
