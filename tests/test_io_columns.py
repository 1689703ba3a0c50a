"""Which kind a column is, at the edges of every rule, and what its cells are as numbers."""

from __future__ import annotations

import collections
import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder, _encoder
from pnuauc.io._columns import CellError, Column, classify, level_codes, numbers, strings
from pnuauc.io._encoder import _levels, _standard
from pnuauc.io._encoding import encoding_from_spec

RNG = np.random.default_rng(5)


def kind_of(values, **options):
    column, note = classify("c", pa.chunked_array([pa.array(values)]), **options)
    return column.kind if column else note


# ---------------------------------------------------------------------------- kinds


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
    assert (found == "Column 'c' numbers the rows; left out.") is counts
    assert counts or found == "number"


def test_rows_with_a_gap_are_not_numbered():
    assert kind_of([None, *range(30)]) == "number"
    assert kind_of(["0.5", *map(str, range(1, 30))]) == "number"
    assert kind_of([str(2**53 + k) for k in range(0, 60, 2)]) == "number"


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
    assert (found == kind) or (kind == "names" and "names the rows" in found)


@pytest.mark.parametrize(("blanks", "kind"), [(4, "names"), (5, "text")])
def test_names_have_no_blanks(blanks, kind):
    words = [f"{'a b' if k < blanks else 'ab'}{'c' * k}" for k in range(100)]
    found = kind_of(words)
    assert (found == kind) or (kind == "names" and "names the rows" in found)


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
        ([1.0, None], None), ([1.0, float("nan")], None), ([[1], [2]], "cannot be used"),
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


# ---------------------------------------------------------------------------- values


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
    codes = level_codes(pa.array(["b", "z", None, "a"]), ["a", "b", "(missing)"])
    assert codes.tolist() == [1, -1, 2, 0]


# ---------------------------------------------------------------------------- what is learned


@pytest.mark.parametrize("unit", [1.0, 1e150, 1e-150, -3.0])
def test_median_mean_and_spread(unit):
    cells = RNG.normal(3, 2, 101) * unit
    cells[::7] = np.nan
    fill = np.nanmedian(cells)
    filled = np.where(np.isnan(cells), fill, cells) / unit
    found = np.array(_standard(cells)) / [unit, unit, abs(unit)]
    np.testing.assert_allclose(found, [fill / unit, filled.mean(), filled.std()], rtol=1e-12)
    whole = np.nan_to_num(cells, nan=fill)
    np.testing.assert_allclose(np.array(_standard(whole))[1:], found[1:] * [unit, abs(unit)])


def test_columns_without_spread_have_scale_one():
    assert _standard(np.full(9, np.nan)) == (0.0, 0.0, 1.0)
    assert _standard(np.zeros(4)) == (0.0, 0.0, 1.0)
    value = 1e6 + 0.1
    fill, mean, scale = _standard(np.full(1001, value))
    assert (fill, scale) == (value, 1.0)
    assert mean == pytest.approx(value, rel=1e-12)
    assert _standard(np.full(5, 1e200))[2] == 1e200


def levels_by_hand(texts, max_categories):
    counts = collections.Counter(texts)
    least = max(2, len(texts) // 1000)
    common = {t for t, c in counts.items() if c >= least}
    if len(common) + 1 > max_categories:
        ranked = sorted(counts, key=lambda t: (counts[t], t))
        common &= set(ranked[len(ranked) - (max_categories - 1) :])
    kept = sorted(common)
    by_frequency = sorted(kept, key=lambda t: (-counts[t], t))
    return tuple(kept), tuple(sorted(set(counts) - common)), [by_frequency.index(t) for t in kept]


@pytest.mark.parametrize("max_categories", [1, 2, 4, 5, 6, 7, 30])
@pytest.mark.parametrize("n", [12, 200, 3500])
def test_categories_by_frequency(n, max_categories):
    texts = RNG.choice(list("abcdefgh"), n, p=[0.4, 0.3, 0.2, 0.05, 0.03, 0.015, 0.004, 0.001])
    kept, others, ranks = _levels(texts.astype(object), max_categories)
    assert (kept, others, ranks.tolist()) == levels_by_hand(texts.tolist(), max_categories)


def test_the_commoner_answer_fills_a_gap():
    table = pa.table({"b": [True, True, False, None], "x": [1.0, 2, 4, 3]})
    even = pa.table({"b": [True, False, None], "x": [1.0, 2, 4]})
    for data, filled in ((table, 1.0), (even, 0.0)):
        encoder = TableEncoder().fit(data)
        X = encoder.transform(data)
        names = encoder.get_feature_names_out().tolist()
        assert names == ["x", "b", "b is missing"]
        assert X[-1, 1:].tolist() == [filled, 1.0]
        assert X[0, 1:].tolist() == [1.0, 0.0]


def test_blocks_and_single_precision_change_nothing(monkeypatch):
    table = pa.table({"x": RNG.normal(size=50), "w": RNG.choice(["a", "b"], 50)})
    encoder = TableEncoder().fit(table)
    whole = encoder.transform(table)
    monkeypatch.setattr(_encoder, "_BLOCK_ROWS", 7)
    np.testing.assert_array_equal(encoder.transform(table), whole)
    monkeypatch.setattr(_encoder, "_DOUBLE_BYTES", 8 * whole.size - 1)
    single = encoder.transform(table)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, whole.astype(np.float32))
    monkeypatch.setattr(_encoder, "_DOUBLE_BYTES", 8 * whole.size)
    assert encoder.transform(table).dtype == np.float64


def test_medians_come_from_some_rows_of_a_long_table(monkeypatch):
    monkeypatch.setattr(_encoder, "FIT_ROWS", 40)
    values = RNG.permutation(np.arange(1000.0) ** 2)
    made = [TableEncoder(random_state=s).fit(pa.table({"x": values})) for s in (0, 0, 1)]
    fills = [encoder.encoding_.fill[0] for encoder in made]
    assert fills[0] == fills[1] != fills[2]
    monkeypatch.setattr(_encoder, "FIT_ROWS", 1000)
    exact = TableEncoder().fit(pa.table({"x": values})).encoding_
    assert exact.fill[0] == np.median(values)
    assert exact.mean[0] == pytest.approx(values.mean(), rel=1e-12)


def test_columns_that_are_lacking_are_named_at_most_five():
    table = pa.table({f"c{j}": RNG.normal(size=9) for j in range(12)})
    encoder = TableEncoder().fit(table)
    with pytest.raises(InputError, match=r"column 'c1', which.*'c0', 'c2'"):
        encoder.check_columns(["c0", *(f"c{j}" for j in range(2, 12))])
    with pytest.raises(InputError, match=r"'c7', 'c8', 'c9', 'c10', 'c11', which"):
        encoder.check_columns([f"c{j}" for j in range(7)])
    with pytest.raises(InputError, match=r"'c9', 'c10' and 1 more, which"):
        encoder.check_columns([f"c{j}" for j in range(6)])


def test_sparse_columns_by_their_largest_value():
    X = sparse.csr_matrix([[0, -4.0, 1], [0, 2.0, 0], [0, 0, 0.5]])
    encoder = TableEncoder().fit(X)
    expected = [[0, -1, 1], [0, 0.5, 0], [0, 0, 0.5]]
    np.testing.assert_array_equal(encoder.transform(X).toarray(), expected)
    np.testing.assert_array_equal(encoder.transform(X, view="trees").toarray(), X.toarray())
    assert encoder.get_feature_names_out().tolist() == ["feature 1", "feature 2", "feature 3"]
    with pytest.raises(InputError, match="needs 3 features, got 2"):
        encoder.transform(X[:, :2])
    with pytest.raises(InputError, match="nan in row 2, feature 3"):
        encoder.transform(sparse.csr_matrix([[1.0, 0, 0], [0, 1, np.nan]]))


# ---------------------------------------------------------------------------- in and out of a file


@pytest.fixture(scope="module")
def stored():
    table = pa.table(
        {
            "x": [1.0, None, 3.0, 4.5] * 5, "z": RNG.normal(size=20),
            "b": [True, False, None, True] * 5, "d": [dt.date(2024, 1, 1 + k) for k in range(20)],
            "w": list("aabbc") * 4, "v": [*"pq" * 9, "r", "s"],
        }
    )  # fmt: skip
    encoder = TableEncoder().fit(table)
    return encoder.spec(), encoder.arrays(), table


def with_one(values, place, value):
    out = values.copy()
    out[place] = value
    return out


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scale", lambda v: with_one(v, 1, 0.0)), ("scale", lambda v: with_one(v, 0, -1.0)),
        ("scale", lambda v: with_one(v, 2, np.inf)), ("mean", lambda v: with_one(v, 1, np.nan)),
        ("fill", lambda v: with_one(v, 0, np.inf)), ("fill", lambda v: v[:-1]),
        ("flagged", lambda v: v[::-1]), ("flagged", lambda v: np.append(v, v[-1])),
        ("flagged", lambda v: np.array([-1, 3])), ("flagged", lambda v: np.array([0, 4])),
        ("ranks", lambda v: with_one(v, 0, v[0] + 1)), ("ranks", lambda v: np.append(v, 0)),
        ("boolean_fill", lambda v: v[:-1]), ("ranks", lambda v: v.astype(np.int32)),
    ],
)  # fmt: skip
def test_one_wrong_number_is_enough(stored, name, change):
    spec, arrays, _ = stored
    assert encoding_from_spec(spec, arrays).columns
    with pytest.raises(ValueError):
        encoding_from_spec(spec, {**arrays, name: change(arrays[name])})


def test_the_last_places_that_may_be_flagged(stored):
    spec, arrays, _ = stored
    made = encoding_from_spec(spec, {**arrays, "flagged": np.array([0, 3])})
    assert made.flagged.tolist() == [0, 3]


@pytest.mark.parametrize("scale", [[1.0, 0.0], [1.0, -1.0], [], [np.nan]])
def test_scales_of_sparse_columns_are_positive(scale):
    with pytest.raises(ValueError):
        encoding_from_spec({"kind": "sparse"}, {"scale": np.array(scale)})


@pytest.mark.parametrize(
    ("key", "lists"),
    [
        ("levels", [["a", "b"], ["p", "q", "p"]]), ("rare", [["a"], []]), ("rare", [[], ["p"]]),
        ("levels", [["a", "b", "c"]]), ("levels", [[], ["p", "q"]]), ("levels", ["abc", "pq"]),
        ("rare", [["r", 3], []]),
    ],
)  # fmt: skip
def test_categories_differ_and_are_there(stored, key, lists):
    spec, arrays, _ = stored
    ranks = np.concatenate(
        [np.arange(len(v)) for v in (lists if key == "levels" else spec["levels"])]
    )
    with pytest.raises(ValueError):
        encoding_from_spec({**spec, key: lists}, {**arrays, "ranks": ranks.astype(np.int64)})


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
    assert classify("c", count.cast(pa.int64()))[0] is None  # numbers the rows
