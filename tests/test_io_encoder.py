"""The encoding: stated, the same at fit and at scoring, blind to the order of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from pnuauc import AUCClassifierCV
from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder, as_table, find_leaks
from pnuauc.labels import read_roles


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "size": rng.normal(5, 3, n),
            "flag": rng.random(n) < 0.3,
            "shop": rng.choice(["a", "b", "c"], n, p=[0.5, 0.45, 0.05]),
            "when": pd.date_range("2024-01-01 05:00", periods=n, freq="7h"),
            "text": [f"word{k % 130} and more {k % 7}" for k in range(n)],
        }
    )
    frame.loc[::9, "size"] = np.nan
    frame.loc[4, "shop"] = None
    return frame


def test_numbers_against_hand_computation(frame):
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    names = encoder.get_feature_names_out().tolist()
    filled = frame["size"].fillna(frame["size"].median())
    expected = (filled - filled.mean()) / filled.std(ddof=0)
    np.testing.assert_allclose(X[:, names.index("size")], expected, atol=1e-12)
    np.testing.assert_array_equal(X[:, names.index("size is missing")], frame["size"].isna())
    np.testing.assert_array_equal(X[:, names.index("flag")], frame["flag"])
    np.testing.assert_array_equal(X[:, names.index("shop=a")], frame["shop"] == "a")
    weekday = frame["when"].dt.day_of_week
    column = X[:, names.index("when weekday")]
    np.testing.assert_allclose(np.corrcoef(column, weekday)[0, 1], 1.0)
    assert np.isfinite(X).all()
    assert X.shape == (len(frame), len(names))


def test_order_of_columns_further_columns_and_library_change_nothing(frame):
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    np.testing.assert_array_equal(X, encoder.transform(frame[frame.columns[::-1]]))
    np.testing.assert_array_equal(X, encoder.transform(frame.assign(extra=1)))
    np.testing.assert_array_equal(X, encoder.transform(pl.from_pandas(frame)))
    np.testing.assert_array_equal(X, encoder.transform(pa.Table.from_pandas(frame)))


def test_batches_equal_whole(frame):
    encoder = TableEncoder().fit(frame)
    table = as_table(frame)
    parts = [encoder.encode(table.slice(i, 37), i) for i in range(0, len(frame), 37)]
    np.testing.assert_array_equal(np.vstack(parts), encoder.transform(frame))


def test_missing_column_is_refused_by_name(frame):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(InputError, match="lacks column 'shop'"):
        encoder.transform(frame.drop(columns="shop"))


def test_new_categories_join_the_rare_ones(frame):
    encoder = TableEncoder().fit(frame)
    changed = frame.assign(shop="never seen")
    assert encoder.new_categories(as_table(changed)) == {"shop": {"never seen"}}
    X = encoder.transform(changed)
    names = encoder.get_feature_names_out().tolist()
    one_hot = [j for j, name in enumerate(names) if name.startswith("shop=")]
    assert names[one_hot[-1]] == "shop=(rare)"  # the one missing cell makes the group
    np.testing.assert_array_equal(X[:, one_hot[-1]], 1.0)


def test_what_is_left_out_is_told():
    n = 60
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "good": rng.normal(size=n),
            "constant": 1.0,
            "empty": [None] * n,
            "number": np.arange(n),
            "name": [f"id-{k}" for k in range(n)],
            "mixed": ["n/a" if k == 3 else str(rng.normal()) for k in range(n)],
        }
    ).assign(copy=lambda f: f.good)
    encoder = TableEncoder().fit(frame)
    notes = " ".join(encoder.notes_)
    for part in (
        "'constant' is constant",
        "'empty' is empty",
        "'number' numbers the rows",
        "'name' names the rows",
        "'copy' equals column 'good'",
        "'n/a' as missing",
    ):
        assert part in notes
    assert [c.name for c in encoder.columns_] == ["good", "mixed"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": ["abc"] * 300}, "holds text .'abc' in row 1. where the model needs numbers"),
        ({"size": [np.inf] * 300}, "infinite value .row 1."),
        ({"flag": ["maybe"] * 300}, "needs true or false"),
        ({"when": ["no date"] * 300}, "no dates"),
    ],
)
def test_cells_of_the_wrong_kind(frame, changed, message):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(InputError, match=message):
        encoder.transform(frame.assign(**changed))


def test_cells_of_another_type_but_the_same_meaning(frame):
    encoder = TableEncoder().fit(frame)
    as_text = frame.assign(
        size=[None if np.isnan(v) else repr(float(v)) for v in frame["size"]],
        flag=["True" if v else "no" for v in frame["flag"]],
        when=frame["when"].astype(str),
    )
    np.testing.assert_allclose(encoder.transform(as_text), encoder.transform(frame))


def test_cells_missing_only_at_scoring(frame):
    complete = frame.assign(size=frame["size"].fillna(1.0), shop=frame["shop"].fillna("a"))
    encoder = TableEncoder().fit(complete)
    gaps = complete.assign(size=np.nan, flag=None, shop=None, when=pd.NaT, text=None)
    X = encoder.transform(gaps)
    assert np.isfinite(X).all()
    np.testing.assert_allclose(X, X[:1].repeat(len(X), axis=0))


def test_time_zones_and_names_that_are_no_text(frame):
    encoder = TableEncoder().fit(frame)
    zoned = frame.assign(when=frame["when"].dt.tz_localize("UTC"))
    np.testing.assert_allclose(encoder.transform(zoned), encoder.transform(frame))
    numbered = frame.rename(columns={"size": 7})
    assert TableEncoder().fit(numbered).columns_[0].name == "7"


def test_infinite_and_huge_at_fit():
    with pytest.raises(InputError, match=r"infinite value \(row 2\)"):
        TableEncoder().fit(pd.DataFrame({"a": [1.0, np.inf, 2.0]}))
    huge = pd.DataFrame({"a": np.array([2**63, 2**64 - 1, 5], dtype=np.uint64)})
    assert np.isfinite(TableEncoder().fit_transform(huge)).all()


def test_codes_can_be_categories(frame):
    frame = frame.assign(code=np.arange(300) % 3 * 100)
    encoder = TableEncoder(categorical=["code"]).fit(frame)
    assert "code=200" in encoder.get_feature_names_out()
    # 200 and 200.0 are one category
    X = encoder.transform(frame.assign(code=frame.code.astype(float)))
    np.testing.assert_array_equal(X, encoder.transform(frame))


def test_sparse_stays_sparse():
    X = sparse.random(40, 8, density=0.4, random_state=0, format="csr")
    out = TableEncoder().fit(X).transform(X)
    assert sparse.issparse(out)
    np.testing.assert_allclose(abs(out).max(axis=0).toarray().max(), 1.0)


def test_in_a_pipeline_and_cloned(frame):
    y = np.where(np.arange(300) < 60, (frame["size"].fillna(0) > 5), np.nan)
    model = make_pipeline(TableEncoder(), AUCClassifierCV(prior=0.4, n_centers=10, random_state=0))
    scores = clone(model).fit(frame, y).decision_function(frame)
    assert scores.shape == (300,)


cells = st.one_of(
    st.none(), st.floats(allow_nan=False, allow_infinity=False, width=32), st.text(max_size=5)
)


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=6, max_size=20),
    texts=st.lists(st.text(max_size=4) | st.none(), min_size=6, max_size=20),
)
def test_any_columns_give_finite_features_or_one_sentence(numbers, texts):
    n = min(len(numbers), len(texts))
    table = pa.table(
        {"a": pa.array(numbers[:n], pa.float64()), "b": pa.array(texts[:n], pa.string())}
    )
    try:
        X = TableEncoder().fit(table).transform(table)
    except InputError:
        return
    assert np.isfinite(X).all()


def leak_table():
    rng = np.random.default_rng(0)
    n = 200
    y = np.full(n, np.nan)
    y[:20], y[20:60] = 1, 0
    return rng, n, y


def test_leaks_are_pointed_out():
    rng, n, y = leak_table()
    frame = pd.DataFrame(
        {
            "fine": rng.normal(size=n) + np.nan_to_num(y),
            "threshold": np.where(y == 1, 5.0, 0.0) + rng.random(n),
            "category": np.where(y == 1, "chargeback", "other"),
            "filled": np.where(np.isnan(y), np.nan, rng.normal(size=n)),
            "negatives": np.where(y == 0, -3.0, 3.0) + rng.random(n),
        }
    )
    encoder = TableEncoder().fit(frame)
    found = find_leaks(as_table(frame), encoder.columns_, read_roles(y))
    named = [next(c for c in frame.columns if f"'{c}'" in text) for text in found]
    assert named == ["threshold", "category", "filled", "negatives"]


def test_no_false_alarm_on_honest_columns():
    rng, n, y = leak_table()
    frame = pd.DataFrame({f"x{j}": rng.normal(size=n) for j in range(20)})
    frame["shop"] = rng.choice(list("abcdef"), n)
    encoder = TableEncoder().fit(frame)
    assert find_leaks(as_table(frame), encoder.columns_, read_roles(y)) == []
