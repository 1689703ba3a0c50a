"""Tests of dask/dask."""

from __future__ import annotations

import json
import os
import pickle
import signal
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone

from pnuauc import AUCClassifierCV
from pnuauc import auc_estimate as auc_in_memory
from pnuauc import compare_auc as compare_in_memory
from pnuauc.dask import DaskAUCClassifierCV, auc_estimate, compare_auc
from pnuauc.dask.source import collection_source, dask_files
from pnuauc.exceptions import EngineError, InputError
from pnuauc.io.sources import FileSource
from tests.conftest import run_tool
from tests.engine_tables import (
    FIT,
    SETTINGS,
    a_table,
    assert_same_files,
    assert_same_model,
    die_at,
    digest,
    fitted_in_memory,
    listening,
    rounded,
    slow_engines,
    within,
    write_files,
)

dask = pytest.importorskip("dask", reason="needs dask: pip install 'pnuauc[dask]'")

distributed = pytest.importorskip("distributed", reason="needs pip install 'pnuauc[dask]'")

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning:distributed")


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


def arrays(X, y, rows=250):
    return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)


def frame(X, y, npartitions=5):
    names = [f"x{j}" for j in range(X.shape[1])]
    whole = dd.from_pandas(pd.DataFrame(X, columns=names).assign(y=y), npartitions=npartitions)
    return whole[names], whole["y"]


@pytest.mark.parametrize("cut", [(1200, 3), (77, 3), (400, 1)], ids=str)
def test_partitions_do_not_change_the_model(cut):
    X, y = a_table()
    order = np.random.default_rng(1).permutation(len(X))
    model = DaskAUCClassifierCV(**SETTINGS).fit(
        da.from_array(X[order], chunks=cut), da.from_array(y[order], chunks=500)
    )
    assert_same_model(model, fitted_in_memory(X, y))


@pytest.mark.system
def test_worker_processes_give_the_model_of_memory(cluster):
    X, y = a_table()
    features, labels = frame(X, y)
    model = DaskAUCClassifierCV(client=cluster, **SETTINGS).fit(features, labels)
    here = fitted_in_memory(X, y)
    assert_same_model(model, here)
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    scores = cluster.compute(model.decision_function(features)).result()
    np.testing.assert_allclose(scores, here.decision_function(X), rtol=1e-7, atol=1e-9)
    assert scores.index.equals(pd.RangeIndex(len(X)))
    labels_found = cluster.compute(model.predict(features)).result()
    np.testing.assert_array_equal(labels_found, here.predict(X))


def test_a_label_column_may_be_read_in_other_pieces_than_the_matrix(tmp_path):
    """Dask joins small files where few columns are wanted."""
    X, y = a_table(600)
    whole = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    for i in range(6):
        whole[100 * i : 100 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet")
    table = dd.read_parquet(tmp_path)
    features, labels = table[list("abc")], table["y"]
    assert len(features.to_delayed()) != len(labels.to_delayed()), "otherwise nothing is tested"
    model = DaskAUCClassifierCV(**SETTINGS).fit(features, labels)
    assert_same_model(model, fitted_in_memory(X, y))
    scores = model.decision_function(features)
    assert auc_estimate(labels, scores, 0.3) == auc_in_memory(y, scores.compute(), 0.3)


def test_weights_count_as_repetitions():
    X, y = a_table(600)
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    features, labels = arrays(X, y)
    model = DaskAUCClassifierCV(**SETTINGS)
    model.fit(features, labels, sample_weight=da.from_array(weight, chunks=100))
    assert_same_model(model, fitted_in_memory(X, y, weight))
    unweighted = DaskAUCClassifierCV(**SETTINGS).fit(features, labels)
    local, other = (m.to_local().decision_function(X) for m in (model, unweighted))
    assert np.abs(local - other).max() > 1e-3


def test_single_precision_stays():
    X, y = a_table(dtype=np.float32)
    model = DaskAUCClassifierCV(**SETTINGS).fit(*arrays(X, y))
    assert model.basis_.centers_.dtype == np.float32
    # candidates at the edge of having a minimum may be dropped or kept by rounding
    double = fitted_in_memory(X.astype(np.float64), y)
    assert spearmanr(model.decision_function(X), double.decision_function(X)).statistic > 0.995


def test_words_as_labels_and_empty_partitions():
    X, y = a_table()
    words = pd.Series(np.select([y == 1, y == 0], ["fraud", "ok"], "?"))
    whole = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(y=words), npartitions=4)
    some = whole[whole["a"] > -0.2]  # the index is that of rows: partitions differ in size
    none_left = dd.concat([some, whole[whole["a"] > 1e9]])
    model = DaskAUCClassifierCV(positive_label="fraud", unlabeled_label="?", **SETTINGS)
    model.fit(none_left[list("abc")], none_left["y"])
    kept = X[:, 0] > -0.2
    assert_same_model(model, fitted_in_memory(X[kept], y[kept]))
    assert model.classes_.tolist() == ["ok", "fraud"]
    assert set(model.predict(whole[list("abc")]).compute()) == {"ok", "fraud"}


@pytest.mark.system
def test_it_is_an_estimator_of_scikit_learn_and_leaves_dask_behind(cluster):
    X, y = a_table(600)
    model = DaskAUCClassifierCV(client=cluster, **SETTINGS).fit(*arrays(X, y))
    assert set(model.get_params()) == {*AUCClassifierCV().get_params(), "client"}
    assert clone(model).client is cluster
    assert clone(model).set_params(n_centers=7).n_centers == 7
    assert pickle.loads(pickle.dumps(model)).client is None
    local = model.to_local()
    assert type(local) is AUCClassifierCV
    np.testing.assert_array_equal(local.decision_function(X), model.decision_function(X))
    assert local.get_params() == {k: v for k, v in model.get_params().items() if k != "client"}
    features, labels = arrays(X, y, 100)
    assert model.score(features, labels) == pytest.approx(local.score(X, y), rel=1e-12)
    with pytest.raises(TypeError):
        DaskAUCClassifierCV(n_centres=3)


@pytest.mark.parametrize("setting", ["PNU", "PU", "NU", "PN"])
def test_metrics_are_those_of_memory(setting):
    X, y = a_table(700, 120, seed=3)
    y = np.where((y == 1) & ("P" not in setting), np.nan, y)
    y = np.where((y == 0) & ("N" not in setting), np.nan, y)
    kept = slice(None) if "U" in setting else ~np.isnan(y)
    y, a, b = y[kept], X[kept, 0].round(1), X[kept, 1]
    labels, first, second = (da.from_array(v, chunks=150) for v in (y, a, b))
    prior = (0.2, 0.4) if "U" in setting else None
    assert auc_estimate(labels, first, prior) == auc_in_memory(y, a, prior)
    ours = compare_auc(labels, first, second, prior).to_dict()
    theirs = compare_in_memory(y, a, b, prior).to_dict()
    for name, value in theirs.items():
        words = name in {"notes", "method"}
        assert ours[name] == (value if words else pytest.approx(value, rel=1e-9))


def rows_of(batch):
    return batch.table.num_rows


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the kernel's tables")
def test_without_an_address_nothing_listens(tmp_path):
    """No scheduler that another process could give work to, and no dashboard."""
    write_files(tmp_path / "table")
    before = listening()
    with dask_files(FileSource.open([tmp_path / "table"]), None) as source:
        assert sum(source.map(rows_of)) == 1600
        assert not listening() - before


@slow_engines
@pytest.mark.system
def test_the_tool_fits_files_on_a_cluster(cluster, tmp_path, monkeypatch):
    write_files(tmp_path / "table")
    monkeypatch.chdir(tmp_path)
    where = ("--engine", "dask", "--address", cluster.scheduler.address)
    done = run_tool(*FIT, "table", "-o", "d.pnuauc", *where)
    assert done.exit_code == 0, done.output
    assert_same_files(tmp_path, "d")
    for command in (["evaluate", "--score", "a"], ["prior"]):
        found = []
        for more in ((), where):
            done = run_tool(command[0], "table", *command[1:], "--json", *more)
            assert done.exit_code == 0, done.output
            found.append(rounded(json.loads(done.output)))
        assert found[0] == found[1]


def test_the_tool_says_what_goes_with_what(tmp_path):
    write_files(tmp_path / "table")
    for options, words in (
        (["--engine", "ray"], "must be one of dask, spark"),
        (["--address", "tcp://x:1"], "--address goes with --engine dask"),
        (["--engine", "dask", "--master", "local"], "--master goes with --engine spark"),
    ):
        done = run_tool("fit", tmp_path / "table", *options)
        assert done.exit_code == 2
        assert words in " ".join(done.output.split())


@pytest.mark.parametrize("cell", [np.nan, np.inf, -1e80])
@pytest.mark.system
def test_a_bad_cell_is_named_by_its_partition(cluster, cell):
    X, y = a_table(600)
    X[np.flatnonzero(np.isnan(y))[-1], 0] = cell
    with pytest.raises(InputError, match=r"partition 2 .*holds NaN, infinity"):
        DaskAUCClassifierCV(client=cluster, **SETTINGS).fit(*arrays(X, y))


def test_collections_must_match():
    X, y = a_table(600)
    features, labels = frame(X, y)
    model = DaskAUCClassifierCV(**SETTINGS)
    with pytest.raises(ValueError, match="different numbers of partitions"):
        model.fit(features, da.from_array(y, chunks=300))
    with pytest.raises(InputError, match="different numbers of rows"):
        model.fit(features[features["x0"] > 0], da.from_array(y, chunks=120))
    with pytest.raises(TypeError, match="Dask DataFrame, Series or Array"):
        model.fit(X, y)
    with pytest.raises(InputError, match="cannot be read"):
        model.fit(features.assign(x0="text"), labels)
    with pytest.raises(ValueError, match="squared loss"):
        clone(model).set_params(loss="logistic").fit(features, labels)
    with pytest.raises(ValueError, match="continuous"):
        model.fit(features, features["x0"])
    many = dd.from_pandas(pd.DataFrame(a_table(12_000)[0], columns=list("abc")), npartitions=5)
    with pytest.raises(InputError, match="must hold labels"):
        model.fit(many, many["a"])


def dying(folder, X, y, visit, rows=200):
    """X in partitions, one of which kills its reader at a visit; y in quiet ones."""

    def part(i):
        if i == 2:
            die_at(folder, i, visit)
        return X[i * rows : (i + 1) * rows]

    made = dask.delayed(part, pure=False)
    chunks = [da.from_delayed(made(i), (rows, X.shape[1]), X.dtype) for i in range(len(X) // rows)]
    return da.concatenate(chunks), da.from_array(y, chunks=rows)


@slow_engines
@pytest.mark.parametrize("visit", [1, 2, 3], ids=["draw", "moments", "counts"])
@pytest.mark.system
def test_a_worker_killed_in_any_visit_changes_nothing(cluster, tmp_path, visit):
    X, y = a_table()
    model = DaskAUCClassifierCV(client=cluster, **SETTINGS)
    undisturbed = model.fit(*dying(tmp_path, X, y, visit=99))
    expected = digest(undisturbed)
    assert (tmp_path / "visits-2").stat().st_size == 3, "each visit reads a partition once"
    (tmp_path / "visits-2").unlink()
    before = set(cluster.run(os.getpid).values())
    within(180, model.fit, *dying(tmp_path, X, y, visit))
    assert (tmp_path / "visits-2").stat().st_size >= 4, "nobody died"
    assert set(cluster.run(os.getpid).values()) != before
    assert digest(model) == expected


@slow_engines
def test_a_partition_that_kills_every_worker_is_named(tmp_path):
    X, y = a_table()
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):

        def part(i):
            if i == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return X[i * 200 : (i + 1) * 200]

        lethal = dask.delayed(part, pure=False)
        chunks = [da.from_delayed(lethal(i), (200, 3), X.dtype) for i in range(6)]
        with pytest.raises(EngineError, match=r"gave up .*2 workers died.*raise the memory"):
            within(
                180,
                DaskAUCClassifierCV(client=client, **SETTINGS).fit,
                da.concatenate(chunks),
                da.from_array(y, chunks=200),
            )


def _unloadable(batch):
    raise ModuleNotFoundError("No module named 'pnuauc'")


@pytest.mark.system
def test_a_worker_without_the_package_is_told(cluster):
    source = collection_source(cluster, label=da.from_array(np.zeros(4), chunks=2))
    with pytest.raises(EngineError, match=r"No module named 'pnuauc'.*install"):
        source.reduce(_unloadable, int.__add__, 0)
