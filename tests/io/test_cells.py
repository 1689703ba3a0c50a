"""Tests of io/cells."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pnuauc.exceptions import InputError
from pnuauc.io.cells import (
    MISSING_WORDS,
    NEARLY_ALL,
    as_typed,
    is_form,
    parse_booleans,
    parse_dates,
    parse_numbers,
    recognise,
    table_decimal,
    tidy,
)
from pnuauc.io.columns import classify
from pnuauc.io.readers import iter_batches


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


def test_a_cell_that_is_no_date_of_a_given_format_is_missing():
    micros, known = parse_dates("%d/%m/%Y", pa.array(["31/01/2024", "nonsense"]))
    assert known.tolist() == [True, False]
    assert np.datetime64(int(micros[0]), "us") == np.datetime64("2024-01-31")


def form_of(cells, **known):
    """(kind, form) of a column of text, None where it is words."""
    found = recognise(pa.array(cells, pa.string()), **known)
    return None if found is None else (found.kind, found.form)


def test_codes_stay_codes_beside_an_odd_cell():
    assert form_of(["01234", "90210", "10115"] * 10 + ["x1"]) is None
    assert form_of(["1234", "90210", "10115"] * 10 + ["x1"]) == ("number", "")


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
    ("cells", "remark"),
    [
        (["1.5", "2"], None),
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


def test_years_of_four_digits_are_what_they_say_from_100_on():
    cells = ["0100-03-01", "0101-12-31", "1969-01-01", "9999-12-31"]
    micros, known = parse_dates("ymd", pa.array(cells))
    expected = [dt.datetime.fromisoformat(cell) - dt.datetime(1970, 1, 1) for cell in cells]
    assert known.all()
    assert micros.tolist() == [span // dt.timedelta(microseconds=1) for span in expected]


def test_every_missing_word_is_a_missing_number(file):
    cells = [f'"{word}"' for word in MISSING_WORDS]
    path = file("x,y\n" + "".join(f"{cell},1\n" for cell in cells) + "2.5,2\n")
    (batch,) = iter_batches(path, floats=["x"])
    assert batch.column("x").to_pylist() == [None] * len(cells) + [2.5]


RNG = np.random.default_rng(12)


FORMS = [("n.", ".", ""), ("n.,", ".", ","), ("n,", ",", ""), ("n,.", ",", "."), ("n. ", ".", " "),
         ("n, ", ",", " "), ("n.'", ".", "'")]  # fmt: skip


def written(value, decimal, thousands, digits):
    text = f"{value:{',' if thousands else ''}.{digits}f}"
    return text.translate({ord(","): thousands or None, ord("."): decimal})


@pytest.mark.parametrize(("form", "decimal", "thousands"), FORMS)
def test_numbers_of_every_form(form, decimal, thousands):
    """Signs, percents and currencies in front and behind; grouped or not."""
    values, cells = [], []
    for size in (0.0, 0.5, 7.0, 12.25, 999.0, 1000.0, 1234.5, 98765.4321, 1234567.0):
        for digits in (0, 2, 4):
            number = float(f"{size:.{digits}f}")
            text = written(size, decimal, thousands, digits)
            ungrouped = written(size, decimal, "", digits)
            for shown in (text, ungrouped):
                for factor, cell in [
                    (1, shown), (-1, f"-{shown}"), (1, f"+{shown}"), (-1, f"\u2212{shown}"),
                    (0.01, f"{shown}%"), (-0.01, f"-{shown} %"), (1, f"€{shown}"),
                    (1, f"$ {shown}"), (-1, f"-${shown}"), (-1, f"$-{shown}"), (1, f"{shown} EUR"),
                    (1, f"{shown}\u00a0kr"), (100, f"{shown}e2"), (0.01, f"{shown}E-2"),
                ]:  # fmt: skip
                    values.append(factor * number)
                    cells.append(cell)
    found = parse_numbers(form, pa.array(cells))
    np.testing.assert_allclose(found, values, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("form", "cells"),
    [
        ("n.,", ["1,23", "12,34.5", "1,2345", "0,123", "1.5.5", "1.234,5", "--1", "$", "5%%"]),
        ("n,.", ["1.23", "1,5,5", "1,234.5", ".", "5 % 5"]),
        ("n.", ["1,234", "1,5", "1 234"]),
        ("", ["1,5", "1 5", "$1", "1%", "nan", "0x1", "--1", "e5"]),
        ("clock", ["1:60", "1:5", "1", "1:00:60", "1:00 xm", ":30", "1000:00"]),
        ("duration", ["1 week", "P", "PT", "", "days", "1 days 1", "P1W"]),
    ],
)
def test_what_is_written_otherwise_is_missing(form, cells):
    assert np.isnan(parse_numbers(form, pa.array(cells))).all()


def test_plain_numbers():
    cells = ["1", "+1.5", "-2e3", ".5", "7.", "1E-2", "inf", "-Infinity", None]
    found = parse_numbers("", pa.array(cells))
    np.testing.assert_array_equal(found, [1, 1.5, -2000, 0.5, 7, 0.01, np.inf, -np.inf, np.nan])


def test_clocks_of_a_day():
    seconds = RNG.integers(0, 86_400, 300)
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(seconds=int(s)) for s in seconds]
    for shape, step in (("%H:%M:%S", 1), ("%H:%M", 60), ("%I:%M:%S %p", 1), ("%I:%M%p", 60)):
        cells = [m.strftime(shape) for m in moments]
        np.testing.assert_array_equal(
            parse_numbers("clock", pa.array(cells)), seconds // step * step
        )
    cells = ["12:00 a.m.", "12:00 P.M.", "00:00:00.25", "1:00:00,5", "100:30"]
    np.testing.assert_array_equal(
        parse_numbers("clock", pa.array(cells)), [0, 43200, 0.25, 3600.5, 361_800]
    )


def test_durations_as_pandas_python_and_iso_write_them():
    seconds = np.concatenate([[0, 1, 59, 3600, 86_399, 86_400], RNG.integers(0, 10**7, 100)])
    seconds = np.concatenate([seconds, -seconds[1:]])
    spans = [dt.timedelta(seconds=int(s)) for s in seconds]
    for cells in ([str(pd.Timedelta(s)) for s in spans], [str(s) for s in spans]):
        np.testing.assert_array_equal(parse_numbers("duration", pa.array(cells)), seconds)

    def iso(n):
        sign, n = "-" if n < 0 else "", abs(int(n))
        return f"{sign}P{n // 86_400}DT{n // 3600 % 24}H{n // 60 % 60}M{n % 60}.5S"

    found = parse_numbers("duration", pa.array([iso(s) for s in seconds]))
    np.testing.assert_array_equal(found, np.where(seconds < 0, -1, 1) * (np.abs(seconds) + 0.5))


def test_the_sign_of_a_duration():
    """Without days it is that of the whole, with days that of the days."""
    cells = ["-02:03:04", "02:03:04", "-1 days +23:00:00", "1 days -01:00:00", "-2 days", "-PT1M"]
    found = parse_numbers("duration", pa.array(cells))
    assert found.tolist() == [-7384, 7384, -3600, 82_800, -172_800, -60]


def test_yes_and_no():
    cells = ["true", "YES", "y", "T", "on", "1", "1.0", "False", "no", "N", "f", "OFF", "0", "0.0"]
    found = parse_booleans(pa.array([*cells, "maybe", None]))
    np.testing.assert_array_equal(found, [*[1.0] * 7, *[0.0] * 7, np.nan, np.nan])


DATES = [
    ("ymd", "%Y-%m-%d"), ("ymd", "%Y/%m/%d"), ("ymd", "%Y.%m.%d"), ("", "%Y-%m-%d"),
    ("dmy", "%d/%m/%Y"), ("dmy", "%d.%m.%Y"), ("dmy", "%d-%m-%y"), ("mdy", "%m/%d/%Y"),
    ("mdy", "%m-%d-%y"), ("dby", "%d-%b-%Y"), ("dby", "%d %B %Y"), ("dby", "%d.%b.%y"),
    ("bdy", "%B %d, %Y"), ("bdy", "%b %d %Y"), ("bdy", "%b. %dth, %Y"),
]  # fmt: skip


TIMES = [
    ("", dt.timedelta(days=1)), ("T%H:%M", dt.timedelta(minutes=1)), (" %H", dt.timedelta(hours=1)),
    (" %H:%M:%S", dt.timedelta(seconds=1)), (", %H:%M:%S.%f", dt.timedelta(microseconds=1)),
    (" %I:%M:%S %p", dt.timedelta(seconds=1)), (" %I %p", dt.timedelta(hours=1)),
]  # fmt: skip


ZONES = [("", 0), ("Z", 0), (" UTC", 0), ("+05:30", 330), ("-0800", -480), ("+02", 120)]


EPOCH = dt.datetime(1970, 1, 1)


@pytest.mark.parametrize(("form", "shape"), DATES)
def test_dates_of_every_form(form, shape):
    """Against datetime, from 1969 to 2068, with times of the day and zones."""
    moments = [dt.datetime(1969, 1, 1), dt.datetime(2068, 12, 31, 23, 59, 59, 999_999),
               dt.datetime(2000, 2, 29, 12), dt.datetime(1970, 1, 1)]  # fmt: skip
    span = int((moments[1] - moments[0]).total_seconds())
    moments += [
        moments[0] + dt.timedelta(seconds=int(s), microseconds=int(m))
        for s, m in zip(RNG.integers(0, span, 40), RNG.integers(0, 10**6, 40))
    ]
    for time, step in TIMES:
        for zone, minutes in ZONES if time else ZONES[:1]:
            cells = pa.array([m.strftime(shape + time) + zone for m in moments])
            shown = [m - (m - dt.datetime(1900, 1, 1)) % step for m in moments]
            expected = [(m - EPOCH) // dt.timedelta(microseconds=1) for m in shown]
            micros, known = parse_dates(form, cells)
            assert known.all()
            np.testing.assert_array_equal(micros, np.array(expected) - minutes * 60_000_000)


def test_a_month_is_its_first_day():
    micros, known = parse_dates("ymd", pa.array(["2024-02", "1969/12"]))
    assert known.all()
    assert [EPOCH + dt.timedelta(microseconds=int(m)) for m in micros] == [
        dt.datetime(2024, 2, 1), dt.datetime(1969, 12, 1)
    ]  # fmt: skip


def test_days_that_do_not_exist():
    """Every day 0 to 32 of every month of a leap and a common year, and times past their end."""
    for year in (1900, 2000, 2023, 2024):
        for month in range(14):
            cells = [f"{year}-{month:02}-{day:02}" for day in range(33)]
            last = pd.Period(f"{year}-{month:02}").days_in_month if 1 <= month <= 12 else 0
            assert parse_dates("ymd", pa.array(cells))[1].sum() == last
    times = ["23:59", "24:00", "12:60", "12:59:60", "12:59:61"]
    known = parse_dates("ymd", pa.array([f"2024-01-01 {t}" for t in times]))[1]
    assert known.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("form", "cell", "known"),
    [
        ("dmy", "1/2/10", False), ("dmy", "01/02/10", True), ("mdy", "1.2.2024", False),
        ("mdy", "12/31/2024", True), ("mdy", "31/12/2024", False), ("dmy", "31/12/2024", True),
        ("dby", "5 Mai 2024", False), ("dby", "5 may 2024", True), ("bdy", "May 5th, 2024", True),
        ("ymd", "24-01-01", False), ("ymd", "2024-1-5", True), ("dmy", "01/02/10 10:00", True),
    ],
)  # fmt: skip
def test_where_a_form_of_dates_ends(form, cell, known):
    assert parse_dates(form, pa.array([cell]))[1].tolist() == [known]


def test_missing_cells_are_no_dates():
    micros, known = parse_dates("ymd", pa.chunked_array([["2024-01-31"], [None, "x"]]))
    assert known.tolist() == [True, False, False]
    assert micros.tolist()[1:] == [0, 0]


@pytest.mark.parametrize("good", ["1,5", "12%", "13:45", "2 days", "31.12.2024", "2024-01-31"])
def test_nearly_all_cells_make_a_form(good):
    """Nine of ten do, 89 of 100 do not; the share and an odd cell are told."""
    assert NEARLY_ALL == 0.9
    found = recognise(pa.array([good] * 9 + ["?0"]))
    assert (found.share, found.odd) == (0.9, "?0")
    assert recognise(pa.array([good] * 89 + ["?0"] * 11)) is None
    sure = recognise(pa.array([good] * 5))
    assert (sure.share, sure.odd) == (1.0, None)


def test_yes_and_no_among_few_words():
    assert recognise(pa.array(["yes", "no"] * 9 + ["?", "-"])).share == 0.9
    assert recognise(pa.array(["yes"] * 5)) is None
    assert recognise(pa.array(["yes", "no"] * 8 + ["?"] * 4)) is None
    many = [f"odd {'x' * k}" for k in range(19)]
    assert recognise(pa.array(["yes", "no"] * 200 + many)) is None
    assert recognise(pa.array(["yes", "no"] * 200 + many[:18])).kind == "boolean"


def test_zeros_in_front_make_codes():
    """From one cell in a hundred on, or where all cells are equally long digits."""
    assert recognise(pa.array(["05", *map(str, range(1000, 1099))])) is None
    assert recognise(pa.array(["05", *map(str, range(1000, 1100))])).kind == "number"
    assert recognise(pa.array(["0500", *map(str, range(1000, 1200))])) is None
    assert recognise(pa.array(["0500", "1.50", *map(str, range(1000, 1200))])).kind == "number"


@pytest.mark.parametrize(
    ("cells", "mark"),
    [
        (["1,5"] * 9 + ["x"], ","), (["1,5"] * 8 + ["x"] * 2, None),
        (["1,5"] + ["1,234"] * 9, ","), (["1,5"] + ["1,234"] * 10, None),
        (["1.5"] * 4, None), (["0,123"], ","), (["1234,5"], ","), (["1,2345"], ","),
        (["1,5 €"], ","), (["-0,5"], ","), ([None, "", "1,5"], ","), ([None], None), ([], None),
        (["1.234,5"], ","), (["1,234.5"], None), (["12,345"], None),
    ],
)  # fmt: skip
def test_columns_that_leave_no_doubt_of_the_decimal_mark(cells, mark):
    column = pa.chunked_array([pa.array(cells, pa.string())])
    assert table_decimal([column]) == mark
    assert table_decimal([pa.chunked_array([["a, b", "c"]]), column]) == mark


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "+2", "-3", None], "int64", [1, 2, -3, None]),
        (["1", "2.5"], "double", [1.0, 2.5]),
        (["1", "9" * 18], "int64", [1, 10**18 - 1]),
        (["1", "9" * 19], "double", [1.0, 1e19]),
        (["01", "2"], "string", ["01", "2"]),
        (["1"] * 100 + ["x"], "string", ["1"] * 100 + ["x"]),
        (["True", "false", None], "bool", [True, False, None]),
        (["true", "no"], "string", ["true", "no"]),
        (["2024-01-31", None], "timestamp[us]", [dt.datetime(2024, 1, 31), None]),
        (["2024-01-31"] * 100 + ["x"], "string", ["2024-01-31"] * 100 + ["x"]),
        ([None, None], "string", [None, None]),
    ],
)
def test_text_whose_cells_are_all_of_one_type(cells, kind, values):
    found = as_typed(pa.chunked_array([pa.array(cells, pa.string())]))
    assert str(found.type) == kind
    assert found.to_pylist() == values


def test_forms_that_a_model_may_name():
    good = [("number", "n,."), ("number", "clock"), ("date", "dmy"), ("date", ""), ("boolean", ""),
            ("date", "%d/%m/%Y"), ("date", "%d" * 30), ("text", "")]  # fmt: skip
    bad = [("number", "n;"), ("date", "d/m"), ("date", "%q"), ("date", "%d" * 31), ("date", "xyz"),
           ("boolean", "n."), ("number", "dmy"), ("text", "ymd")]  # fmt: skip
    assert all(is_form(*pair) for pair in good)
    assert not any(is_form(*pair) for pair in bad)
