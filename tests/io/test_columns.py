"""Tests of io/columns."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from pnuauc.io.columns import ID, CellError, Column, classify, numbers, strings
from pnuauc.labels import Roles
from pnuauc.study.leaks import find_leaks

RNG = np.random.default_rng(5)


def kind_of(values, **options):
    column, note = classify("c", pa.chunked_array([pa.array(values)]), **options)
    return column.kind if column else note


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (range(20), True), (range(19), False), (range(7, 40), True), (range(-5, 30), True),
        ([*range(10, 40)][::-1], True), ([*range(30), 29], False), ([*range(30), 31], False),
        (range(0, 60, 2), False),
    ],
)  # fmt: skip
def test_columns_that_number_the_rows(values, counts, as_text):
    """From 20 rows on, in any order, from any start, without a gap and without a repetition."""
    cells = [str(v) if as_text else v for v in values]
    found = kind_of(cells)
    assert found == (ID if counts else "number")


@pytest.mark.parametrize(
    ("n_distinct", "n", "kind"),
    [
        (100, 201, "category"), (100, 200, "text"), (101, 400, "text"), (10, 10, "category"),
        (11, 11, "names"), (11, 23, "category"), (11, 22, "text"), (95, 100, "names"),
        (94, 100, "text"),
    ],
)  # fmt: skip
def test_words_are_categories_texts_or_names(n_distinct, n, kind):
    """At most 100 different ones, fewer than half of the rows or at most ten; 95% are names."""
    words = [f"w{'abcdefghijklmnopqrstuvwxyz'[k % 26]}{'x' * (k // 26)}" for k in range(n_distinct)]
    found = kind_of([words[k % n_distinct] for k in range(n)])
    assert found == (ID if kind == "names" else kind)


@pytest.mark.parametrize(("blanks", "kind"), [(4, "names"), (5, "text")])
def test_names_have_no_blanks(blanks, kind):
    words = [f"{'a b' if k < blanks else 'ab'}{'c' * k}" for k in range(100)]
    found = kind_of(words)
    assert found == (ID if kind == "names" else kind)


@pytest.mark.parametrize(
    ("values", "kind", "form"),
    [
        ([True, False], "boolean", ""), ([1.5, 2.0], "number", ""), ([1, 3], "number", ""),
        ([decimal.Decimal("1.5"), decimal.Decimal(2)], "number", ""),
        ([dt.timedelta(1), dt.timedelta(2)], "number", "duration"),
        ([dt.time(1), dt.time(2)], "number", "clock"),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], "date", "ymd"),
        ([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)], "date", "ymd"),
    ],
)  # fmt: skip
def test_types_say_their_kind(values, kind, form):
    column, note = classify("c", pa.chunked_array([pa.array(values)]))
    assert (column.kind, column.form, note) == (kind, form, None)
    column, _ = classify("c", pa.chunked_array([pa.array(values)]), categorical=True)
    assert column.kind == "category"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([None, None], "empty"), ([1.0, 1.0], "constant"), ([float("nan")] * 2, "empty"),
        ([1.0, None], None), ([1.0, float("nan")], None),
        ([b"a", b"b"], "cannot be used"), (["NA", ""], "empty"), (["x", " x "], "constant"),
    ],
)  # fmt: skip
def test_columns_that_say_nothing(values, message):
    column, note = classify("c", pa.chunked_array([pa.array(values)]))
    assert (column is None) is (message is not None)
    assert message is None or message in note


@pytest.mark.parametrize(
    "item",
    [
        {"kind": "number", "type": "double"}, {"name": "a", "kind": "number"}, [], "a",
        {"name": "a", "kind": "number", "type": "double", "form": "dmy"},
        {"name": "a", "kind": "number", "type": "double", "form": None},
        {"name": "a", "kind": "date", "type": "string", "lenient": 0},
        {"name": "a", "kind": "other", "type": "string"}, {"name": "a", "more": 1},
    ],
)  # fmt: skip
def test_columns_of_a_file_that_are_none(item):
    with pytest.raises(ValueError):
        Column.from_dict(item)


def test_columns_and_back():
    column = Column("a", "date", "string", True, "%d/%m/%Y")
    assert Column.from_dict(column.to_dict()) == column


def column(kind, form="", lenient=False):
    return Column("c", kind, "any", lenient, form)


def test_typed_values_as_numbers():
    spans = [dt.timedelta(seconds=1.5), None, dt.timedelta(days=-2)]
    for unit in ("ms", "us", "ns"):
        found = numbers(column("number", "duration"), pa.array(spans, pa.duration(unit)))
        np.testing.assert_allclose(found, [1.5, np.nan, -172_800])
    whole = pa.array([dt.timedelta(seconds=5)], pa.duration("s"))
    assert numbers(column("number", "duration"), whole).tolist() == [5.0]
    clock = [dt.time(1, 2, 3), None]
    for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        found = numbers(column("number", "clock"), pa.array(clock, kind))
        np.testing.assert_allclose(found, [3723, np.nan])
    for values in ([True, None, False], [2, None, 0], [0.5, None, 0.0]):
        np.testing.assert_array_equal(numbers(column("boolean"), pa.array(values)), [1, np.nan, 0])
    money = pa.array([decimal.Decimal("1.25"), None])
    np.testing.assert_array_equal(numbers(column("number"), money), [1.25, np.nan])
    assert np.isnan(numbers(column("number"), pa.nulls(3))).tolist() == [True] * 3
    assert numbers(column("date"), pa.nulls(3)).shape == (3, 4)
    shelf = pa.array([3.0, 5.0]).dictionary_encode()
    assert numbers(column("number"), shelf).tolist() == [3.0, 5.0]
    with pytest.raises(CellError, match=r"date32.* where the model needs numbers"):
        numbers(column("number"), pa.array([dt.date(2024, 1, 1)]))


def test_moments_as_days_month_weekday_and_hour():
    moments = pd.to_datetime(RNG.integers(-2 * 10**9, 4 * 10**9, 300), unit="s")
    expected = np.column_stack(
        [
            moments.asi8 / (86_400 * 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[moments.unit]),
            moments.month, moments.day_of_week, moments.hour,
        ]
    )  # fmt: skip
    gap = np.full((1, 4), np.nan)
    texts = pa.array([*(m.isoformat() for m in moments), None])
    typed = pa.array([*moments.to_pydatetime(), None], pa.timestamp("ns"))
    for values in (texts, typed, typed.cast(pa.timestamp("ms"), safe=False)):
        found = numbers(column("date", "ymd"), values)
        np.testing.assert_allclose(found, np.vstack([expected, gap]), rtol=1e-14)
    fine = pa.array([1_000_000_000 + 1, None], pa.timestamp("ns"))  # cut to microseconds
    assert numbers(column("date"), fine)[0].tolist() == [1 / 86_400, 1, 3, 0]
    days = numbers(column("date"), pa.array([dt.date(1969, 12, 31), None]))
    np.testing.assert_array_equal(days, [[-1, 12, 2, 0], [np.nan] * 4])
    with pytest.raises(CellError, match="int64 values that are not dates"):
        numbers(column("date"), pa.array([1]))


def test_a_bad_cell_is_named_by_its_row():
    with pytest.raises(CellError, match=r"'x' in row 13\)"):
        numbers(column("number"), pa.array(["1", None, "x", "y"]), first_row=10)
    with pytest.raises(CellError, match=r"infinite value \(row 12\)"):
        numbers(column("number"), pa.array(["1", "inf"]), first_row=10)
    with pytest.raises(CellError, match=r"'32.13.2024' in row 2\)"):
        numbers(column("date", "dmy"), pa.array(["01.02.2024", "32.13.2024"]))
    assert np.isnan(numbers(column("number", lenient=True), pa.array(["1", "x"]))).tolist() == [
        False, True
    ]  # fmt: skip
    assert np.isnan(numbers(column("date", "dmy", True), pa.array(["?"]))).all()


def test_one_category_however_it_is_written():
    """3 and 3.0 are one; a whole number beyond 1e15 and a fraction stay as they are."""
    floats = [3.0, -2.0, 0.5, float("nan"), None, 1e15, 999_999_999_999_999.0]
    assert strings(pa.array(floats)).tolist() == [
        "3", "-2", "0.5", "(missing)", "(missing)", "1e+15", "999999999999999"
    ]  # fmt: skip
    texts = ["3.0", "-2.0", "x.0", "3.00", " a ", "NA", None, "3"]
    assert strings(pa.array(texts)).tolist() == [
        "3", "-2", "x.0", "3.00", "a", "(missing)", "(missing)", "3"
    ]  # fmt: skip
    assert strings(pa.array([1, None, 7])).tolist() == ["1", "(missing)", "7"]
    shelf = pa.array(["b", None, "a"]).dictionary_encode()
    assert strings(shelf).tolist() == ["b", "(missing)", "a"]


@pytest.mark.parametrize(
    "values",
    [[3, 1, 3, None] * 8, [1.5, 2.5, 1.5, 3.5] * 8, ["1", "2", "1", None] * 8, list("abca") * 8],
)
def test_a_dictionary_says_that_values_are_categories(values):
    """Whatever they look like; only what is empty or constant is still left out."""
    encoded = pa.chunked_array([pa.array(values).dictionary_encode()])
    column, note = classify("c", encoded)
    assert (column.kind, column.type, note) == ("category", str(encoded.type.value_type), None)
    same, note = classify("c", pa.chunked_array([pa.array([7] * 30).dictionary_encode()]))
    assert same is None
    assert "constant (7)" in note
    count = pa.chunked_array([pa.array(list(range(40))).dictionary_encode()])
    assert classify("c", count)[0].kind == "category"
    assert classify("c", count.cast(pa.int64()))[0].kind == "id"  # numbers the rows


@pytest.mark.parametrize(
    ("last", "counts"), [(19, True), (2**53 - 1, True), (2**53, False), (-(2**53) + 20, True)]
)
def test_text_numbers_the_rows_as_far_as_floats_are_exact(last, counts):
    cells = pa.chunked_array([[str(last - k) for k in range(20)]])
    column, note = classify("c", cells)
    assert (column.kind == "id") is counts
    assert (note is not None and "numbers the rows" in note) is counts


SIZES = (40, 60, 800)


def suspects(columns):
    """Names of the columns that may know the label, in the order in which they are told."""
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), SIZES))
    described = [Column(name, "number", "double") for name in columns]
    told = find_leaks(pa.table(columns), described, roles)
    return [sentence.split("'")[1] for sentence in told]


def columns_of(make, n, seed=0):
    rng = np.random.default_rng(seed)
    return {f"{make.__name__}{k}": make(rng, k) for k in range(n)}


def honest(rng, k):
    return rng.normal(size=sum(SIZES))


def outside(rng, k):
    """The same noise with U below both classes, the farther the larger k."""
    noise = np.random.default_rng(1).normal(size=sum(SIZES))
    return noise - np.repeat([0.0, 0.5, 1.5 + 0.2 * k], SIZES)


def test_five_suspects_are_told_the_strongest_first():
    rest = columns_of(honest, 12)
    assert suspects(rest) == []
    assert suspects({**rest, **columns_of(outside, 3)}) == ["outside2", "outside1", "outside0"]
    assert suspects({**rest, **columns_of(outside, 5)}) == [f"outside{k}" for k in (4, 3, 2, 1, 0)]
    assert suspects({**rest, **columns_of(outside, 6)}) == [f"outside{k}" for k in (5, 4, 3, 2, 1)]


def test_numbers_beyond_what_floats_hold_exactly():
    large = pa.array([2**60 + 1, -(2**62), None])
    found = numbers(Column("c", "number", "int64"), large)
    np.testing.assert_array_equal(found, [float(2**60), -float(2**62), np.nan])
    spans = pa.array([2**60 + 1, None], pa.duration("ns"))
    found = numbers(Column("c", "number", "duration"), spans)
    assert found[0] == pytest.approx(2**60 * 1e-9)
    assert strings(pa.array([1e300, -1e15, 2.5, 7.0])).tolist() == ["1e+300", "-1e+15", "2.5", "7"]
