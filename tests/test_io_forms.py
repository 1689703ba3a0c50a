"""Forms, kinds and scales at their edges: shares of cells, ties, huge and tiny numbers."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder, _encoder, as_table
from pnuauc.io._cells import _LOOKED_AT, recognise, table_decimal
from pnuauc.io._columns import CellError, classify
from pnuauc.io._dates import parse_dates
from pnuauc.io._encoder import _levels, _standard
from pnuauc.io._frames import array_of

RNG = np.random.default_rng(31)


def form_of(cells, **known):
    """(kind, form) of a column of text, None where it is words."""
    found = recognise(pa.array(cells, pa.string()), **known)
    return None if found is None else (found.kind, found.form)


# ---------------------------------------------------------------------------- which form


def test_cells_without_a_digit_are_a_tenth_at_most():
    """Nine numbers and a word are numbers, 89 and eleven are words; infinity has no digit."""
    assert form_of(["1,5", "2,5", "3,5"] * 3 + ["?"]) == ("number", "n,")
    assert form_of(["1,5"] * 89 + ["?"] * 11) is None
    assert form_of(["1", "2", "inf", "-inf"]) == ("number", "")
    assert form_of(["1", "2", "off", "on"]) is None


def test_nothing_has_no_form():
    assert form_of([]) is None
    assert form_of([None, None]) is None


@pytest.mark.parametrize(("n", "share"), [(200_000, None), (200_001, 100_001 / 200_001)])
def test_every_cell_is_looked_at_up_to_two_hundred_thousand(n, share):
    """Every second cell is a word: beyond the limit only the others are looked at."""
    assert _LOOKED_AT == 200_000
    found = recognise(pa.array(["1", "x"] * 100_000 + ["1"]).slice(0, n))
    assert (None if found is None else found.share) == share


def test_codes_stay_codes_beside_an_odd_cell():
    assert form_of(["01234", "90210", "10115"] * 10 + ["x1"]) is None
    assert form_of(["1234", "90210", "10115"] * 10 + ["x1"]) == ("number", "")


def test_codes_are_counted_together():
    """Two different codes among 200 cells are one in a hundred; among 201 they are not."""
    assert form_of(["01", "02", *map(str, range(1000, 1198))]) is None
    assert form_of(["01", "02", *map(str, range(1000, 1199))]) == ("number", "")


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["1,5"] * 9 + ["?0"], "n,"), (["$5", "€7"], "n,"), (["1 000", "2 500"], "n, "),
        (["1", "2", "5"], ""), (["5%", "7%"], "n,"), (["1.5", "2.25", "1.234"], ""),
        (["1.234", "5.678", "7"], "n,."), (["1'000", "2'500"], "n.'"),
    ],
)  # fmt: skip
def test_forms_where_the_decimal_mark_is_a_comma(cells, form):
    """Marks, money and blanks are read with it; plain numbers and other dots as ever."""
    assert form_of(cells, decimal=",") == ("number", form)


@pytest.mark.parametrize(
    ("cells", "mark"),
    [(["1,5"] + ["1,234,567"] * 9, None), (["1,5"] + ["1.234.567"] * 9, ",")],
)
def test_thousands_marks_that_speak_of_the_decimal_mark(cells, mark):
    assert table_decimal([pa.chunked_array([cells])]) == mark


@pytest.mark.parametrize(
    ("cells", "remark"),
    [
        (["12%", "3", "4%"], "percents"), (["$1", "2%", "5"], "percents and amounts of money"),
        (["$1,000.5", "7"], "amounts of money with thousands marks"),
        (["€ 1,5", "7"], "amounts of money with a decimal comma"), (["1.5", "2"], None),
        (["2024-01-31"], None), (["31-Jan-2024"], "dates"), (["Jan 31, 2024"], "dates"),
        (["31/01/2024"], "dates with the day first"), (["13:45"], "times of the day"),
        (["01/31/2024"], "dates with the month first"), (["2 days"], "durations"),
    ],
)  # fmt: skip
def test_what_is_told_of_a_form(cells, remark):
    """With the first cell that is written so."""
    found = recognise(pa.array(cells))
    assert found.remark == (remark and f"{remark}, such as {cells[0]!r}")
    column, note = classify("c", pa.chunked_array([[*cells, None]]))
    assert column.kind == found.kind
    assert note == (remark and f"Column 'c' is read as {found.remark}.")


def test_days_and_months_in_doubt_are_asked_about_if_most_cells_are_dates():
    cells = ["01/02/2024", "03/04/2024"] * 4
    assert form_of([*cells, "?1", "?2"]) is None
    with pytest.raises(InputError, match="whether the day or the month comes first"):
        form_of([*cells, "05/06/2024", "?1"])


# ---------------------------------------------------------------------------- dates


def test_years_of_four_digits_are_what_they_say_from_100_on():
    cells = ["0100-03-01", "0101-12-31", "1969-01-01", "9999-12-31"]
    micros, known = parse_dates("ymd", pa.array(cells))
    expected = [dt.datetime.fromisoformat(cell) - dt.datetime(1970, 1, 1) for cell in cells]
    assert known.all()
    assert micros.tolist() == [span // dt.timedelta(microseconds=1) for span in expected]


def test_a_format_may_begin_with_a_mark():
    micros, known = parse_dates("T%Y-%m-%d", pa.array(["T2024-01-31", "2024-01-31"]))
    assert known.tolist() == [True, False]
    assert np.datetime64(int(micros[0]), "us") == np.datetime64("2024-01-31")
    assert micros[1] == 0
    encoder = TableEncoder(date_format="T%Y-%m-%d").fit(
        pa.table({"d": ["T2024-01-31"] + ["T2024-02-01"] * 9})
    )
    assert encoder.columns_[0].form == "T%Y-%m-%d"
    with pytest.raises(InputError, match="'%q' does not say how dates are written"):
        TableEncoder(date_format="%q").fit(pa.table({"d": ["a", "b"]}))


# ---------------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("last", "counts"), [(19, True), (2**53 - 1, True), (2**53, False), (-(2**53) + 20, True)]
)
def test_text_numbers_the_rows_as_far_as_floats_are_exact(last, counts):
    cells = pa.chunked_array([[str(last - k) for k in range(20)]])
    column, note = classify("c", cells)
    assert (column is None) is counts
    assert note == ("Column 'c' numbers the rows; left out." if counts else None)


def test_times_that_are_missing_among_other_values_are_missing():
    """NaT became the word: pandas gives it an isoformat, numpy a type of its own."""
    values = [
        1,
        "a",
        pd.NaT,
        pd.NA,
        None,
        np.datetime64("NaT"),
        np.float32("nan"),
        dt.date(2024, 1, 2),
    ]
    expected = ["1", "a", None, None, None, None, None, "2024-01-02"]
    assert array_of(values).to_pylist() == expected
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    assert as_table(frame).column("c").to_pylist() == expected


# ---------------------------------------------------------------------------- what is learned


@pytest.mark.parametrize("unit", [1e200, -1e200, 1e-200, 1.0])
def test_scales_of_numbers_beside_zero(unit):
    fill, mean, scale = np.array(_standard(unit * np.array([0.0, 1.0, 2.0, 5.0]))) / unit
    assert (fill, mean) == pytest.approx((1.5, 2.0))
    assert abs(scale) == pytest.approx(np.std([0, 1, 2, 5]))


@pytest.mark.parametrize("value", [-1e200, 3e150, -2e-150])
def test_equal_numbers_have_their_own_mean(value):
    assert _standard(np.full(5, value)) == pytest.approx((value, value, abs(value)))


@pytest.mark.parametrize(("step", "counts"), [(1e-14, False), (1e-12, True)])
def test_spread_below_the_rounding_error_of_the_sum_is_none(step, counts):
    """1,000 numbers near 1: their sum is known to 1,000 units in the last place."""
    scale = _standard(1.0 + step * (np.arange(1000) % 2))[2]
    assert scale == pytest.approx(step / 2 if counts else 1.0, rel=1e-3)


@pytest.mark.parametrize(("n", "kept"), [(2999, ("a", "b")), (3000, ("a",))])
def test_a_category_has_a_thousandth_of_the_rows(n, kept):
    texts = np.array(["a"] * (n - 2) + ["b"] * 2, dtype=object)
    found, others, ranks = _levels(texts, 30)
    assert (found, others) == (kept, tuple({"a", "b"} - set(kept)))
    assert ranks.tolist() == list(range(len(kept)))


def test_the_default_draw_of_rows_is_that_of_seed_zero(monkeypatch):
    monkeypatch.setattr(_encoder, "FIT_ROWS", 40)
    table = pa.table({"x": RNG.normal(size=500)})
    means = [TableEncoder(**how).fit(table).encoding_.mean[0]
             for how in ({}, {"random_state": 0}, {"random_state": 1})]  # fmt: skip
    assert means[0] == means[1] != means[2]


def test_a_table_that_is_large_in_few_rows_is_single_precision(monkeypatch):
    assert _encoder._DOUBLE_BYTES == 2**30
    table = pa.table({"x": RNG.normal(size=30)})
    encoder = TableEncoder().fit(table)
    whole = encoder.transform(table)
    monkeypatch.setattr(_encoder, "_DOUBLE_BYTES", 8 * whole.size - 1)
    assert encoder.transform(table).dtype == np.float32
    np.testing.assert_array_equal(encoder.transform(table), whole.astype(np.float32))


def test_a_bad_cell_of_a_later_block_is_named_by_its_row(monkeypatch):
    monkeypatch.setattr(_encoder, "_BLOCK_ROWS", 7)
    table = pa.table({"x": [str(k % 5) for k in range(30)]})
    encoder = TableEncoder().fit(table)
    bad = pa.table({"x": ["1"] * 17 + ["oops"] * 2})
    with pytest.raises(CellError, match=r"'oops' in row 18\)"):
        encoder.transform(bad)
    with pytest.raises(CellError, match=r"'oops' in row 18\)"):
        encoder.encoding_.encode(bad)
