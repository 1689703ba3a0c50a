"""What the cells of a column say however they are written, and frames that are not plain."""

from __future__ import annotations

import datetime as dt
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pnuauc import AUCClassifier
from pnuauc.exceptions import InputError
from pnuauc.io import (
    TableEncoder,
    _cells,
    as_table,
    read_table,
)
from pnuauc.io._cells import parse_numbers, tidy
from pnuauc.io._columns import CellError
from pnuauc.io._dates import parse_dates
from tests.typed_tables import RNG, SIGNAL, N, Y


def kinds_of(cells, **options):
    table = pa.table({"c": list(cells), "n": np.arange(len(cells)) % 7})
    encoder = TableEncoder(**options).fit(table)
    found = [c for c in encoder.columns_ if c.name == "c"]
    return found[0] if found else None, " ".join(encoder.notes_), encoder, table


@pytest.mark.parametrize(
    ("cells", "kind", "values", "note"),
    [
        (["1,5", "2,25", "3"], "number", [1.5, 2.25, 3], "numbers with a decimal comma"),
        (["1.234,5", "7,1", "0,5"], "number", [1234.5, 7.1, 0.5], "decimal comma"),
        (["1,234", "567", "12,001"], "number", [1234, 567, 12001], "thousands marks"),
        (["1 234,5", "5,5", "-3"], "number", [1234.5, 5.5, -3], "decimal comma"),
        (["1,5 %", "20,25 %", "3 %"], "number", [0.015, 0.2025, 0.03], "percents with a decimal"),
        (["1'000.5", "3", "2"], "number", [1000.5, 3, 2], "thousands marks"),
        (["12%", "3.5 %", "-1%"], "number", [0.12, 0.035, -0.01], "percents"),
        (["€ 5,20", "€ 1.000,00", "-€3,00"], "number", [5.2, 1000, -3], "amounts of money"),
        (["$1,000.00", "-$5", "+$3.5"], "number", [1000, -5, 3.5], "amounts of money"),
        (["$-5", "€ -3", "CHF 2"], "number", [-5, -3, 2], "amounts of money"),
        (["+5", " -3", "7 "], "number", [5, -3, 7], None),
        (["1e3", ".5", "-2."], "number", [1000, 0.5, -2], None),
        (["13:45", "1:05 pm", "12:00 am"], "number", [49500, 47100, 0], "times of the day"),
        (["1 days 00:00:01", "-1 days +23:00:00", "PT1H"], "number", [86401, -3600, 3600],
         "durations"),
        (["Yes", "no", "YES"], "boolean", [1, 0, 1], "yes or no"),
        (["t", "f", "T"], "boolean", [1, 0, 1], "yes or no"),
    ],
)  # fmt: skip
def test_how_cells_are_written(cells, kind, values, note):
    column, notes, encoder, table = kinds_of(cells)
    assert column.kind == kind
    trees = encoder.transform(table, view="trees")[:, encoder.groups("trees")["c"]]
    np.testing.assert_allclose(trees[:, 0], values, rtol=1e-12)
    assert (note in notes) if note else "'c'" not in notes


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["31/01/2024", "05/02/2024"], "2024-02-05"),
        (["01/31/2024", "02/05/2024"], "2024-02-05"),
        (["31.01.2024", "05.02.2024"], "2024-02-05"),
        (["01.02.2024", "05.02.2024"], "2024-02-05"),
        (["31-Jan-2024", "5-Feb-2024"], "2024-02-05"),
        (["January 31, 2024", "Feb 5, 2024"], "2024-02-05"),
        (["2024/01/31", "2024/02/05"], "2024-02-05"),
        (["20 Jan 2024 10:00 PM", "5 Feb 2024 12:00 AM"], "2024-02-05"),
        (["2024-01-31T05:00:00Z", "2024-02-05T02:00:00+02:00"], "2024-02-05"),
        (["31/01/24", "05/02/24"], "2024-02-05"),
    ],
)
def test_dates_in_many_clothes(cells, first):
    column, _, encoder, table = kinds_of(cells)
    assert column.kind == "date"
    days = encoder.transform(table, view="trees")[1, encoder.groups("trees")["c"][0]]
    assert days == np.datetime64(first).astype(int)


def test_whether_day_or_month_comes_first_is_asked():
    with pytest.raises(InputError, match=r"'01/02/2024'.*date_format must be 'day-first'"):
        kinds_of(["01/02/2024", "03/04/2024"])
    for said, day in (("day-first", "2024-02-01"), ("month-first", "2024-01-02")):
        _, notes, encoder, table = kinds_of(["01/02/2024", "03/04/2024"], date_format=said)
        days = encoder.transform(table, view="trees")[0, encoder.groups("trees")["c"][0]]
        assert days == np.datetime64(day).astype(int)
        assert "first, such as '01/02/2024'" in notes
    column, _, _, _ = kinds_of(["20240102", "20240304"], date_format={"c": "%Y%m%d"})
    assert (column.kind, column.form) == ("date", "%Y%m%d")
    with pytest.raises(InputError, match="does not say how dates are written"):
        kinds_of(["a", "b"], date_format="dd/mm")
    with pytest.raises(InputError, match="no column 'd' to read as dates"):
        kinds_of(["a", "b"], date_format={"d": "day-first"})


def test_decimal_marks_can_be_said():
    column, _, _, _ = kinds_of(["1,5", "2,5", "3,5"], decimal=".")
    assert column.kind == "category"
    _, _, encoder, table = kinds_of(["1.234", "5.678", "12.001"], decimal=",")
    trees = encoder.transform(table, view="trees")
    assert trees[0, encoder.groups("trees")["c"][0]] == 1234
    with pytest.raises(InputError, match="decimal must be"):
        kinds_of(["1", "2"], decimal=";")


def test_one_column_with_decimal_commas_settles_the_others():
    table = pa.table({"sure": ["1,5", "2,25", "0,1"], "c": ["1.234", "5.678", "12.001"]})
    encoder = TableEncoder().fit(table)
    trees = encoder.transform(table, view="trees")
    assert trees[0, encoder.groups("trees")["c"][0]] == 1234
    assert trees[0, encoder.groups("trees")["sure"][0]] == 1.5


def test_dots_beside_decimal_commas_that_are_no_thousands_marks():
    """Percents and money too, not plain numbers alone: they were hashed as text."""
    cells = {
        "p": ["1.5%", "20.25%", "3%"],
        "m": ["$1.5", "$20.25", "$3"],
        "n": ["1.5", "2.25", "3"],
    }
    table = pa.table({"sure": ["1,5", "2,25", "0,1"], **cells})
    encoder = TableEncoder().fit(table)
    trees, groups = encoder.transform(table, view="trees"), encoder.groups("trees")
    assert [trees[0, groups[name][0]] for name in ("sure", "p", "m", "n")] == [1.5, 0.015, 1.5, 1.5]


def test_cells_that_are_written_otherwise_count_as_missing_if_there_were_some():
    cells = ["1,5", "2,5", "?"] + ["3,5"] * 30
    column, notes, encoder, table = kinds_of(cells)
    assert column.lenient
    assert "cells such as '?' as missing" in notes
    assert np.isnan(encoder.transform(table, view="trees")[2, encoder.groups("trees")["c"][0]])
    strict, _, encoder, table = kinds_of(["1,5", "2,5", "4,5"])
    assert not strict.lenient
    with pytest.raises(CellError, match=r"'c' holds text \('x' in row 2\)"):
        encoder.transform(table.set_column(0, "c", [["1,5", "x", "2"]]))


@given(
    st.lists(
        st.text(alphabet="0123456789+-\u2212.,' $€%eEPTDHMS:\u00a0adyspm", max_size=14), max_size=8
    ),
    st.sampled_from(["", "clock", "duration", "n.", "n.,", "n,", "n,.", "n. ", "n, ", "n.'"]),
)
def test_whatever_a_cell_says_it_is_a_number_or_nothing(cells, form):
    """Two signs, or a sign on both sides, passed the pattern and broke the parser behind it."""
    numbers = parse_numbers(form, tidy(pa.array(["--5", "$-5", *cells], pa.string())))
    assert numbers.shape == (len(cells) + 2,)
    assert np.isnan(numbers[0])
    if form.startswith("n"):
        assert numbers[1] == -5.0


def test_leading_zeros_are_no_numbers():
    assert kinds_of(["01234", "90210", "10115"] * 4)[0].kind == "category"
    assert kinds_of(["007", "5", "6"] * 4)[0].kind == "category"
    # one stray cell among many does not make codes of measurements
    assert kinds_of([*map(str, range(100, 350)), "05"])[0].kind == "number"


@pytest.mark.parametrize("version", ["1.2.10", "10.4.3"])
def test_versions_are_no_dates(version):
    assert kinds_of([version, "1.2.9", "1.3.4"] * 4)[0].kind == "category"


# ---------------------------------------------------------------------------- frames


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(np.arange(N)[::-1]),
        pd.Index([f"r{k}" for k in range(N)], name="x"),
        pd.MultiIndex.from_arrays([np.arange(N) % 3, np.arange(N)]),
        pd.date_range("2024-01-01", periods=N),
    ],
)
def test_the_index_of_a_frame_is_left_behind(index):
    frame = pd.DataFrame({"x": SIGNAL, "b": np.where(SIGNAL > 0, "p", "q")})
    X = TableEncoder().fit_transform(frame)
    np.testing.assert_array_equal(TableEncoder().fit_transform(frame.set_index(index)), X)
    assert as_table(frame.set_index(index)).column_names == ["x", "b"]


def test_grid_search_over_a_pipeline_with_any_index():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    from pnuauc.metrics import RoleStratifiedKFold, make_auc_scorer

    frame = pd.DataFrame({"x": SIGNAL, "b": np.where(SIGNAL > 0, "p", "q")})
    frame.index = RNG.permutation(N) + 1000
    search = GridSearchCV(
        make_pipeline(TableEncoder(), AUCClassifier(prior=0.3, n_centers=5, random_state=0)),
        {"aucclassifier__alpha": [0.1, 1.0]},
        scoring=make_auc_scorer(prior=0.3),
        cv=RoleStratifiedKFold(2),
    )
    search.fit(frame, np.where(Y < 0, np.nan, Y))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series(pd.period_range("2024-01", periods=N, freq="M")), "date"),
        (pd.Series(SIGNAL.astype(np.float16)), "number"),
        (pd.Series(pd.arrays.SparseArray(np.where(SIGNAL > 1, SIGNAL, 0.0))), "number"),
        (pd.Series([1 if k % 2 else "a" for k in range(N)], dtype=object), "category"),
        (pd.Series(np.where(SIGNAL > 0, "a", "b"), dtype="string[pyarrow]"), "category"),
        (pd.Series(SIGNAL, dtype="double[pyarrow]"), "number"),
        (pd.Series(np.where(SIGNAL > 0, "a", "b")).astype("category"), "category"),
        (pd.Series([dt.date(2024, 1, 1 + k % 28) for k in range(N)]), "date"),
        (pd.Series([uuid.UUID(int=k % 4) for k in range(N)]), "category"),
    ],
)
def test_columns_that_only_pandas_has(column, kind):
    frame = pd.DataFrame({"c": column, "x": SIGNAL})
    encoder = TableEncoder().fit(frame)
    assert {c.name: c.kind for c in encoder.columns_}["c"] == kind
    assert np.isfinite(encoder.transform(frame)).all()


def test_periods_from_a_parquet_file(tmp_path):
    frame = pd.DataFrame({"p": pd.period_range("2024-01", periods=5, freq="M"), "x": range(5)})
    frame.to_parquet(tmp_path / "p.parquet")
    read = read_table(tmp_path / "p.parquet").column("p").to_pylist()
    assert read[1] == dt.datetime(2024, 2, 1)


def test_types_that_no_model_can_use_are_left_out_in_a_sentence(tmp_path):
    table = pa.table(
        {
            "bytes": [bytes([k]) for k in range(N)],
            "fixed": pa.array([bytes([k, k]) for k in range(N)], pa.binary(2)),
            "list": [[k] for k in range(N)],
            "struct": [{"a": k} for k in range(N)],
            "span": pa.array([(k, 0, 0) for k in range(N)], pa.month_day_nano_interval()),
            "uuid": pa.array([uuid.UUID(int=k % 5).bytes for k in range(N)], pa.uuid()),
            "x": SIGNAL,
        }
    )
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    encoder = TableEncoder().fit(read_table(tmp_path / "t.arrow"))
    assert [c.name for c in encoder.columns_] == ["uuid", "x"]
    notes = " ".join(encoder.notes_)
    for name in ("bytes", "fixed", "list", "struct", "span"):
        assert f"Column '{name}' holds values of type" in notes


def test_an_odd_cell_between_those_looked_at_is_counted(monkeypatch):
    """Of 200 cells every fourth is looked at; the share and the example come from all."""
    monkeypatch.setattr(_cells, "_LOOKED_AT", 50)
    cells = [f"{i}.5" for i in range(200)]
    cells[5] = "oops"
    found = _cells.recognise(pa.array(cells), decimal=None, date_format=None, name="x")
    assert (found.kind, found.odd, found.share) == ("number", "oops", 199 / 200)


def test_a_cell_that_is_no_date_of_a_given_format_is_missing():
    micros, known = parse_dates("%d/%m/%Y", pa.array(["31/01/2024", "nonsense"]))
    assert known.tolist() == [True, False]
    assert np.datetime64(int(micros[0]), "us") == np.datetime64("2024-01-31")
