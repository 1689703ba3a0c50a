"""Tests of io/encode."""

from __future__ import annotations

import datetime as dt
import json
import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from pnuauc import AUCClassifier
from pnuauc._utils.stored import Parts
from pnuauc.exceptions import InputError
from pnuauc.io import (
    TableEncoder,
    as_table,
    read_table,
)
from pnuauc.io import encode as _encoder
from pnuauc.io.columns import CellError
from tests.typed_tables import RNG as TYPED_RNG
from tests.typed_tables import SIGNAL, Y
from tests.typed_tables import N as TYPED_ROWS


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
        (["$1", "2%", "5"], "number", [1, 0.02, 5], "percents and amounts of money"),
        (["$1,000.5", "7", "2"], "number", [1000.5, 7, 2], "amounts of money with thousands"),
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


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(np.arange(TYPED_ROWS)[::-1]),
        pd.Index([f"r{k}" for k in range(TYPED_ROWS)], name="x"),
        pd.MultiIndex.from_arrays([np.arange(TYPED_ROWS) % 3, np.arange(TYPED_ROWS)]),
        pd.date_range("2024-01-01", periods=TYPED_ROWS),
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
    frame.index = TYPED_RNG.permutation(TYPED_ROWS) + 1000
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
        (pd.Series(pd.period_range("2024-01", periods=TYPED_ROWS, freq="M")), "date"),
        (pd.Series(SIGNAL.astype(np.float16)), "number"),
        (pd.Series(pd.arrays.SparseArray(np.where(SIGNAL > 1, SIGNAL, 0.0))), "number"),
        (pd.Series([1 if k % 2 else "a" for k in range(TYPED_ROWS)], dtype=object), "category"),
        (pd.Series(np.where(SIGNAL > 0, "a", "b"), dtype="string[pyarrow]"), "category"),
        (pd.Series(SIGNAL, dtype="double[pyarrow]"), "number"),
        (pd.Series(np.where(SIGNAL > 0, "a", "b")).astype("category"), "category"),
        (pd.Series([dt.date(2024, 1, 1 + k % 28) for k in range(TYPED_ROWS)]), "date"),
        (pd.Series([uuid.UUID(int=k % 4) for k in range(TYPED_ROWS)]), "category"),
    ],
)
def test_columns_that_only_pandas_has(column, kind):
    frame = pd.DataFrame({"c": column, "x": SIGNAL})
    encoder = TableEncoder().fit(frame)
    assert {c.name: c.kind for c in encoder.columns_}["c"] == kind
    assert np.isfinite(encoder.transform(frame)).all()


def test_types_that_no_model_can_use_are_left_out_in_a_sentence(tmp_path):
    table = pa.table(
        {
            "bytes": [bytes([k]) for k in range(TYPED_ROWS)],
            "fixed": pa.array([bytes([k, k]) for k in range(TYPED_ROWS)], pa.binary(2)),
            "list": [[str(k)] for k in range(TYPED_ROWS)],
            "struct": [{"a": k} for k in range(TYPED_ROWS)],
            "span": pa.array([(k, 0, 0) for k in range(TYPED_ROWS)], pa.month_day_nano_interval()),
            "uuid": pa.array([uuid.UUID(int=k % 5).bytes for k in range(TYPED_ROWS)], pa.uuid()),
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


RNG = np.random.default_rng(5)


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


def rebuilt(spec, arrays):
    """The encoder that a model file describes."""
    parts = Parts({"encoder": spec}, {f"encoder/{k}": v for k, v in arrays.items()})
    return parts.part("encoder", TableEncoder.rebuild)


def test_description_and_back(frame):
    encoder = TableEncoder().fit(frame)
    spec = json.loads(json.dumps(encoder.spec()))
    again = rebuilt(spec, encoder.arrays())
    for view in ("kernels", "trees"):
        np.testing.assert_array_equal(
            again.transform(frame, view=view), encoder.transform(frame, view=view)
        )
    X = sparse.random(40, 8, density=0.4, random_state=0, format="csr")
    thin = TableEncoder().fit(X)
    again = rebuilt(thin.spec(), thin.arrays())
    np.testing.assert_array_equal(again.transform(X).toarray(), thin.transform(X).toarray())


def _with(arrays, **changes):
    return {**arrays, **{k: change(arrays[k]) for k, change in changes.items()}}


@pytest.mark.parametrize(
    "change",
    [
        lambda s, a: (s, _with(a, fill=lambda v: np.append(v, 1.0))),
        lambda s, a: (s, _with(a, scale=lambda v: v * np.nan)),
        lambda s, a: (s, _with(a, flagged=lambda v: np.array([1, 0]))),
        lambda s, a: (s, _with(a, flagged=lambda v: v.astype(float))),
        lambda s, a: (s, _with(a, ranks=lambda v: v + 1)),
        lambda s, a: (s, _with(a, boolean_fill=lambda v: np.append(v, 0.0))),
        lambda s, a: (s, {k: v for k, v in a.items() if k != "mean"}),
        lambda s, a: ({**s, "columns": s["columns"][:-2]}, a),
        lambda s, a: ({**s, "columns": [{**c, "kind": "date"} for c in s["columns"]]}, a),
        lambda s, a: ({**s, "columns": [{**c, "name": 3} for c in s["columns"]]}, a),
        lambda s, a: ({**s, "columns": [{**c, "lenient": 3} for c in s["columns"]]}, a),
        lambda s, a: ({**s, "levels": []}, a),
        lambda s, a: ({**s, "levels": ["abcd"]}, a),
        lambda s, a: ({**s, "rare": s["levels"]}, a),
        lambda s, a: ({**s, "rare": [["r", 3]]}, a),
        lambda s, a: ({**s, "levels": [[]], "rare": [[]]}, _with(a, ranks=lambda v: v[:0])),
        lambda s, a: (s, _with(a, scale=lambda v: np.where(np.arange(len(v)) == 1, -1.0, v))),
        lambda s, a: (s, _with(a, fill=lambda v: v + np.inf)),
        lambda s, a: (s, _with(a, flagged=lambda v: np.append(v, v[-1]))),
        lambda s, a: ({"kind": "sparse"}, {"scale": np.empty(0)}),
        lambda s, a: ({"kind": "sparse"}, {"scale": np.array([1.0, 0.0])}),
        lambda s, a: ({"kind": "sparse"}, {"scale": np.array([np.nan])}),
        lambda s, a: ({}, {}),
    ],
)
def test_descriptions_that_contradict_themselves_are_refused(frame, change):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(ValueError):
        rebuilt(*change(encoder.spec(), encoder.arrays()))


def test_huge_and_tiny_numbers_keep_their_order():
    values = np.arange(1.0, 41.0)
    for unit in (1e300, 1e-300):
        X = TableEncoder().fit_transform(pd.DataFrame({"a": values[::-1] * unit}))
        np.testing.assert_allclose(X[:, 0], (values - values.mean())[::-1] / values.std())


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


def test_new_categories_join_the_rare_ones(frame):
    encoder = TableEncoder().fit(frame)
    changed = frame.assign(shop="never seen")
    assert encoder.encoding_.read(as_table(changed)).fresh == {"shop": {"never seen"}}
    X = encoder.transform(changed)
    names = encoder.get_feature_names_out().tolist()
    one_hot = [j for j, name in enumerate(names) if name.startswith("shop=")]
    assert names[one_hot[-1]] == "shop=(rare)"  # the one missing cell makes the group
    np.testing.assert_array_equal(X[:, one_hot[-1]], 1.0)


def test_what_is_left_out_is_told():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "good": rng.normal(size=60),
            "constant": 1.0,
            "number": np.arange(60),
            "mixed": ["unknown" if k == 3 else str(rng.normal()) for k in range(60)],
        }
    ).assign(copy=lambda f: f.good)
    encoder = TableEncoder().fit(frame)
    notes = " ".join(encoder.notes_)
    for part in (
        "'constant' is",
        "'number' numbers",
        "'copy' equals column 'good'",
        "'unknown' as",
    ):
        assert part in notes
    assert [c.name for c in encoder.columns_] == ["good", "mixed"]


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


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=6, max_size=20),
    texts=st.lists(st.text(max_size=4) | st.none(), min_size=6, max_size=20),
)
@pytest.mark.slow
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


def test_views_differ_where_a_cell_is_missing():
    for gap, same in ((None, False), (1.5, True)):
        table = pa.table({"x": [gap, 1.0, 2.0, 4.0], "w": ["a", "b"] * 2})
        assert TableEncoder().fit(table).encoding_.same_for_trees is same


def test_rare_categories_are_not_new():
    table = pa.table({"w": [*"aabbc" * 4, "r"], "x": RNG.normal(size=21)})
    encoder = TableEncoder().fit(table)
    assert encoder.spec()["rare"] == [["r"]]
    assert encoder.encoding_.read(table).fresh == {}
    later = pa.table({"w": ["a", "r", "s"], "x": [0.0] * 3})
    assert encoder.encoding_.read(later).fresh == {"w": {"s"}}
