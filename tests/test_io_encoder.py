"""The encoding: stated, the same at fit and at scoring, blind to the order of columns."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from pnuauc import AUCClassifierCV
from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder, as_table
from pnuauc.io._encoder import _Twins
from pnuauc.io._leaks import find_leaks
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


def columns_named(encoder, X, source, view="kernels"):
    return X[:, encoder.groups(view)[source]]


@pytest.mark.parametrize("max_categories", [2, 5, 30])
def test_plain_values_do_what_scikit_learn_does(max_categories):
    rng = np.random.default_rng(1)
    n = 900
    frame = pd.DataFrame(
        {
            "a": rng.lognormal(0, 2, n),
            "b": rng.integers(0, 9, n).astype(float),
            "flag": pd.array(rng.random(n) < 0.6, dtype="boolean"),
            "shop": rng.choice([f"s{k}" for k in range(40)], n, p=rng.dirichlet(np.full(40, 0.3))),
        }
    )
    frame.loc[rng.random(n) < 0.2, ["a"]] = np.nan
    frame.loc[rng.random(n) < 0.2, ["flag"]] = pd.NA
    encoder = TableEncoder(max_categories=max_categories).fit(frame)
    new = frame.sample(frac=1, random_state=0).assign(
        shop=["never" if k % 9 == 0 else s for k, s in enumerate(frame["shop"])],
        b=[np.nan if k % 7 == 0 else b for k, b in enumerate(frame["b"])],
    )
    flags = [f["flag"].astype(float).to_numpy()[:, None] for f in (frame, new)]
    values = [f[["a", "b"]].to_numpy() for f in (frame, new)]
    scale = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=2,
        max_categories=max_categories,
        sparse_output=False,
    ).fit(frame[["shop"]].to_numpy(dtype=object))
    both = [np.hstack(pair) for pair in zip(values, flags)]
    expected = [
        scale.fit(values[0]).transform(values[1]),
        SimpleImputer(strategy="most_frequent").fit(flags[0]).transform(flags[1]),
        MissingIndicator(error_on_new=False).fit(both[0]).transform(both[1]),
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found unknown categories")
        expected.append(one_hot.transform(new[["shop"]].to_numpy(dtype=object)))
    np.testing.assert_allclose(encoder.transform(new), np.hstack(expected), atol=1e-12)
    X = sparse.random(50, 9, density=0.3, random_state=0, format="csr") * 5.0
    np.testing.assert_allclose(
        TableEncoder().fit_transform(X).toarray(), MaxAbsScaler().fit_transform(X).toarray()
    )


def test_trees_take_numbers_as_they_are_and_codes_by_frequency(frame):
    rng = np.random.default_rng(0)
    cities = rng.choice([f"c{k:02d}" for k in range(20)], 300, p=np.arange(1, 21) / 210)
    frame = frame.assign(city=cities)
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame, view="trees")
    assert X.shape[1] == len(encoder.get_feature_names_out(view="trees"))
    np.testing.assert_array_equal(columns_named(encoder, X, "size", "trees")[:, 0], frame["size"])
    when = columns_named(encoder, X, "when", "trees")
    np.testing.assert_array_equal(when[:, 1], frame["when"].dt.month)
    np.testing.assert_array_equal(when[:, 3], frame["when"].dt.hour)
    # three shops and the missing one: 0/1 columns as in the other view
    K = encoder.transform(frame)
    np.testing.assert_array_equal(
        columns_named(encoder, X, "shop", "trees"), columns_named(encoder, K, "shop")
    )
    codes = columns_named(encoder, X, "city", "trees")[:, 0]
    counts = pd.Series(cities).value_counts()
    kept = counts[counts >= 2]
    assert codes[cities == kept.index[0]].max() == 0
    sizes = [(codes == code).sum() for code in range(len(kept))]
    assert sizes == sorted(sizes, reverse=True) == kept.tolist()
    unseen = encoder.transform(frame.assign(city="elsewhere", flag=None), view="trees")
    assert (columns_named(encoder, unseen, "city", "trees") == len(kept)).all()
    assert np.isnan(columns_named(encoder, unseen, "flag", "trees")).all()
    with pytest.raises(InputError, match="view must be one of 'kernels', 'trees'"):
        encoder.transform(frame, view="forest")


def test_groups_cover_every_encoded_column_once(frame):
    encoder = TableEncoder().fit(frame)
    for view in ("kernels", "trees"):
        indices = sorted(j for group in encoder.groups(view).values() for j in group)
        assert indices == list(range(encoder.transform(frame, view=view).shape[1]))


def test_description_and_back(frame):
    encoder = TableEncoder().fit(frame)
    spec = json.loads(json.dumps(encoder.spec()))
    again = TableEncoder.from_spec(spec, encoder.arrays())
    for view in ("kernels", "trees"):
        np.testing.assert_array_equal(
            again.transform(frame, view=view), encoder.transform(frame, view=view)
        )
    X = sparse.random(40, 8, density=0.4, random_state=0, format="csr")
    thin = TableEncoder().fit(X)
    again = TableEncoder.from_spec(thin.spec(), thin.arrays())
    np.testing.assert_array_equal(again.transform(X).toarray(), thin.transform(X).toarray())


def _with(arrays, **changes):
    return {**arrays, **{k: change(arrays[k]) for k, change in changes.items()}}


@pytest.mark.parametrize(
    "change",
    [
        lambda s, a: (s, _with(a, mean=lambda v: v[:-1])),
        lambda s, a: (s, _with(a, fill=lambda v: np.append(v, 1.0))),
        lambda s, a: (s, _with(a, scale=lambda v: v * 0)),
        lambda s, a: (s, _with(a, scale=lambda v: v * np.nan)),
        lambda s, a: (s, _with(a, mean=lambda v: v.astype(np.float32))),
        lambda s, a: (s, _with(a, mean=lambda v: v[:, None])),
        lambda s, a: (s, _with(a, flagged=lambda v: v + 10**9)),
        lambda s, a: (s, _with(a, flagged=lambda v: v - 10**9)),
        lambda s, a: (s, _with(a, flagged=lambda v: np.array([1, 0]))),
        lambda s, a: (s, _with(a, flagged=lambda v: v.astype(float))),
        lambda s, a: (s, _with(a, ranks=lambda v: v + 1)),
        lambda s, a: (s, _with(a, ranks=lambda v: v * 0)),
        lambda s, a: (s, _with(a, ranks=lambda v: v[:-1])),
        lambda s, a: (s, _with(a, boolean_fill=lambda v: np.append(v, 0.0))),
        lambda s, a: (s, {k: v for k, v in a.items() if k != "mean"}),
        lambda s, a: ({**s, "columns": s["columns"][:-2]}, a),
        lambda s, a: ({**s, "columns": [*s["columns"], s["columns"][0]]}, a),
        lambda s, a: ({**s, "columns": [{**c, "kind": "date"} for c in s["columns"]]}, a),
        lambda s, a: ({**s, "columns": [{**c, "kind": "magic"} for c in s["columns"]]}, a),
        lambda s, a: ({**s, "columns": [{**c, "name": 3} for c in s["columns"]]}, a),
        lambda s, a: ({**s, "columns": [{**c, "lenient": 3} for c in s["columns"]]}, a),
        lambda s, a: ({**s, "columns": [{**c, "more": 3} for c in s["columns"]]}, a),
        lambda s, a: ({**s, "columns": []}, a),
        lambda s, a: ({**s, "columns": "abc"}, a),
        lambda s, a: ({**s, "levels": []}, a),
        lambda s, a: ({**s, "levels": [["a", "a"]]}, a),
        lambda s, a: ({**s, "levels": [[1, 2]]}, a),
        lambda s, a: ({**s, "rare": s["levels"]}, a),
        lambda s, a: ({**s, "kind": "other"}, a),
        lambda s, a: ({"kind": "sparse"}, {"scale": np.empty(0)}),
        lambda s, a: ({"kind": "sparse"}, {"scale": np.zeros(3)}),
        lambda s, a: ({}, {}),
    ],
)
def test_descriptions_that_contradict_themselves_are_refused(frame, change):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(ValueError):
        TableEncoder.from_spec(*change(encoder.spec(), encoder.arrays()))


def test_columns_are_compared_by_digest_not_in_pairs():
    class Counted:
        type = "double"
        calls = 0

        def __init__(self, values):
            self.values = pa.chunked_array([values])
            self.chunks = self.values.chunks

        def equals(self, other):
            Counted.calls += 1
            return self.values.equals(other.values)

    rng = np.random.default_rng(0)
    twins = _Twins()
    data = rng.normal(size=(400, 30))
    assert all(twins.of(f"x{j}", Counted(row)) is None for j, row in enumerate(data))
    assert Counted.calls == 0
    assert twins.of("copy", Counted(data[7])) == "x7"
    assert Counted.calls == 1


@pytest.mark.parametrize("gaps", [False, True])
def test_twins_are_found_across_slices_and_gaps(gaps):
    texts = [f"word {k % 40}" for k in range(300)]
    if gaps:
        texts[5] = texts[250] = None
    table = pa.table({"a": texts, "b": texts, "c": texts[::-1]}).slice(10, 250)
    twins = _Twins()
    found = [twins.of(name, table.column(name)) for name in "abc"]
    assert found == [None, "a", None]


def test_huge_and_tiny_numbers_keep_their_order():
    values = np.arange(1.0, 41.0)
    for unit in (1e300, 1e-300):
        X = TableEncoder().fit_transform(pd.DataFrame({"a": values[::-1] * unit}))
        np.testing.assert_allclose(X[:, 0], (values - values.mean())[::-1] / values.std())


def test_sparse_cells_that_are_no_numbers_are_named():
    X = sparse.csr_matrix(np.array([[1.0, 0, 2], [0, np.nan, 1], [1, 1, 1]]))
    with pytest.raises(InputError, match="nan in row 2, feature 2"):
        TableEncoder().fit(X)


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
            "mixed": ["unknown" if k == 3 else str(rng.normal()) for k in range(n)],
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
        "'unknown' as missing",
    ):
        assert part in notes
    assert [c.name for c in encoder.columns_] == ["good", "mixed"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": ["abc"] * 300}, "holds text .'abc' in row 1. where the model needs numbers"),
        ({"size": [np.inf] * 300}, "infinite value .row 1."),
        ({"flag": ["maybe"] * 300}, "needs true or false"),
        ({"when": ["no date"] * 300}, "needs dates"),
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
