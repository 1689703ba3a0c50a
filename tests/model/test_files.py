"""Tests of model/files."""

from __future__ import annotations

import io
import json
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import sparse

from attack.containers import join, sealed, split
from attack.models import HOSTILE, places
from pnuauc import AUCClassifierCV
from pnuauc.core.basis import MultiscaleBasis
from pnuauc.exceptions import InputError, ModelFileError
from pnuauc.io import (
    TableEncoder,
    TableModel,
    load_model,
    save_model,
)
from pnuauc.model.files import open_model
from pnuauc.model.model import LinearScorer, SeenRows
from tests.model.conftest import fitted, model_of


def test_quantiles_may_be_equal(tmp_path):
    model = model_of(pa.table({"x": [1.0, 2.0, 4.0]}))
    model.quantiles = np.array([0.0, 1.0, 1.0, 2.0])
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").percentile(np.array([1.5]))[0] > 60


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    """Limits of the reader are limits of the writer."""
    model = model_of(pa.table({"x": [1.0, 2.0, 4.0]}))
    centers = np.zeros((1, 1))
    for n, fits in ((100, True), (101, False)):
        basis = MultiscaleBasis.from_parts(centers, 1.0 + np.arange(n))
        model.scorer = LinearScorer(basis, np.ones(n))
        if fits:
            save_model(model, tmp_path / "m")
            assert len(load_model(tmp_path / "m").scorer.coef) == n
            continue
        before = (tmp_path / "m").read_bytes()
        with pytest.raises(ModelFileError, match="longer than any fit"):
            save_model(model, tmp_path / "m")
        assert (tmp_path / "m").read_bytes() == before


def test_hashes_of_seen_rows_may_be_far_apart(tmp_path):
    """Of a few rows two may differ by more than an integer of 64 bits holds."""
    model = model_of(pa.table({"x": [1.0, 2.0, 4.0]}))
    model.seen = SeenRows(7, np.array([-(2**63), -5, 2**63 - 1]), np.array([0.5, np.nan, 1.0]))
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").seen.hashes.tolist() == model.seen.hashes.tolist()


def test_a_long_command_is_cut(tmp_path):
    model = model_of(pa.table({"x": [1.0, 2.0, 4.0]}))
    model.card = {"command": "pnuauc fit " + "x.csv " * 10_000}
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").card["command"].endswith(" ...")


@pytest.fixture(scope="module")
def model_bytes(payments_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.pnuauc"
    save_model(payments_model, path)
    return path.read_bytes()


@pytest.mark.parametrize("basis", ["gaussian", "linear", "identity"])
def test_scores_survive_the_file(payments, tmp_path, basis):
    payments_model, ranker, X = fitted(payments, "is_fraud", basis=basis)
    np.testing.assert_allclose(
        payments_model.score(payments), ranker.decision_function(X), atol=1e-12
    )
    save_model(payments_model, tmp_path / "m.pnuauc")
    loaded = load_model(tmp_path / "m.pnuauc")
    np.testing.assert_array_equal(loaded.score(payments), payments_model.score(payments))
    assert loaded.card == payments_model.card
    manifest = open_model(tmp_path / "m.pnuauc")[1]
    assert {"numpy", "scikit-learn", "pnuauc", "python"} <= set(manifest["libraries"])


def test_text_columns_survive(payments, tmp_path):
    texts = [f"{'long' if i % 3 else 'short'} word {i}" for i in range(len(payments))]
    table = payments.append_column("text", [texts])
    payments_model, _, _ = fitted(table, "is_fraud")
    assert "text" in {column.kind for column in payments_model.encoder.columns_}
    save_model(payments_model, tmp_path / "m.pnuauc")
    loaded = load_model(tmp_path / "m.pnuauc")
    np.testing.assert_array_equal(loaded.score(table), payments_model.score(table))
    assert loaded.encoder.columns_ == payments_model.encoder.columns_
    assert loaded.encoder.groups_ == payments_model.encoder.groups_


def test_sparse_model_survives(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.random((80, 10)) * (rng.random((80, 10)) < 0.5))
    y = np.where(np.arange(80) < 30, np.arange(80) % 2, np.nan)
    encoder = TableEncoder().fit(X)
    ranker = AUCClassifierCV(prior=0.5, n_centers=10, etas=(0.0,), random_state=0)
    ranker.fit(encoder.transform(X), y)
    payments_model = TableModel.from_fitted(encoder, ranker, encoder.transform(X))
    save_model(payments_model, tmp_path / "m.pnuauc")
    np.testing.assert_array_equal(
        load_model(tmp_path / "m.pnuauc").score(X), payments_model.score(X)
    )


def rewritten(data, change):
    """A model file with a right checksum after ``change``: a stranger's, not damage."""
    manifest, arrays = split(data)
    change(manifest, arrays)
    return join(manifest, arrays)


def refused(tmp_path, data, message):
    path = tmp_path / "bad.pnuauc"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_other_formats(tmp_path, model_bytes):
    newer = sealed(b"{}", version=99)
    refused(tmp_path, newer, "format version 99, this pnuauc reads 2: update")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": "pnuauc-model", "version": 1}))
        archive.writestr("encoder.skops", b"x")
    refused(tmp_path, out.getvalue(), "format 1 .* fit it again")


def bend(path, value):
    """A change that sets one place of the manifest."""

    def change(manifest, arrays):
        at = manifest
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


def resize(name, function):
    """A change that replaces one array."""

    def change(manifest, arrays):
        arrays[name] = function(arrays[name])

    return change


def without(name):
    return lambda manifest, arrays: arrays.pop(name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (bend(["encoder", "kind"], "pickle"), "kind of its encoder is not one"),
        (bend(["encoder", "kind"], "sparse"), "pnuauc does not write there"),
        (bend(["encoder", "n_features"], 10**12), "pnuauc does not write there"),
        (bend(["encoder", "columns"], []), "needs columns"),
        (bend(["encoder", "columns", 0, "kind"], "pickle"), "kind of its column is not one"),
        (bend(["encoder", "columns", 0, "kind"], "text"), "wrong shape|outside|is not written"),
        (bend(["encoder", "columns", 0, "name"], "shop"), "each name once"),
        (bend(["encoder", "columns"], "nonsense"), "columns of its encoder is of the wrong type"),
        (bend(["encoder", "columns", 0, "more"], 1), "its column holds 'more'"),
        (bend(["encoder", "levels"], [["a"]]), "do not fit together"),
        (bend(["encoder", "levels", 0], ["a", "a"]), "must differ|wrong shape"),
        (bend(["encoder", "levels", 0], [1]), "must be lists of texts"),
        (bend(["encoder", "rare", 0], ["a"] * 2), "must differ"),
        (lambda m, a: m["encoder"].pop("rare"), "lacks rare"),
        (lambda m, a: a.update({"encoder/more": np.zeros(1)}), "pnuauc does not write there"),
        (bend(["scorer", "kind"], "functools.partial"), "kind of its scorer is not one"),
        (bend(["scorer", "basis"], "identity"), "coefficients for"),
        (bend(["scorer", "basis"], ["gaussian"]), "wrong type"),
        (bend(["threshold"], True), "wrong type"),
        (bend(["card"], None), "wrong type"),
        (bend(["card", "ids"], [1]), "label and the ids"),
        (bend(["card", "label"], "amount"), "calls a feature the label"),
        (bend(["card", "table"], {"n_encoded": 3}), "count columns differently"),
        (bend(["version"], 1), "version of its model is outside"),
        (bend(["more"], 1), "'more', which pnuauc does not write"),
        (lambda m, a: a.update(more=np.zeros(1)), "'more', which pnuauc does not write"),
        (without("quantiles"), "lacks the array quantiles"),
        (without("scorer/coef"), "lacks the array coef"),
        (resize("scorer/coef", lambda v: v[:-1]), "coefficients for"),
        (resize("scorer/coef", lambda v: v.astype(np.uint8)), "coef of its scorer is of the wrong"),
        (resize("scorer/coef", lambda v: v * np.nan), "not finite"),
        (resize("scorer/centers", lambda v: v[:, 1:]), "centers of its scorer is of the wrong"),
        (resize("scorer/centers", lambda v: v[:0]), "no centres"),
        (resize("scorer/widths", lambda v: -v), "widths are not positive"),
        (resize("scorer/widths", lambda v: v * 1e300), "widths are too large"),
        (resize("quantiles", lambda v: v[::-1]), "quantiles of its scores are out of order"),
        (resize("encoder/scale", lambda v: v * 0), "scales must be positive"),
        (resize("encoder/scale", lambda v: v[1:]), "scale of its encoder is of the wrong shape"),
        (resize("encoder/mean", lambda v: v[:, None]), "mean of its encoder is of the wrong shape"),
        (resize("encoder/flagged", lambda v: v + 10**9), "flagged of its encoder points outside"),
        (resize("encoder/flagged", lambda v: v - 10**9), "flagged of its encoder points outside"),
        (resize("encoder/ranks", lambda v: v * 0), "ranks must number"),
        (resize("encoder/ranks", lambda v: v[1:]), "ranks of its encoder is of the wrong shape"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(tmp_path, model_bytes, change, message):
    refused(tmp_path, rewritten(model_bytes, change), message)


def declare(model_bytes, **lie):
    """The file, with one array declared otherwise than it is."""
    manifest, arrays = split(model_bytes)
    declared = [
        {"name": n, "dtype": v.dtype.name, "shape": list(v.shape)} for n, v in arrays.items()
    ]
    declared[0] |= lie
    return join(manifest, arrays, declared)


@pytest.mark.parametrize(
    "lie",
    [
        {"dtype": "object"},
        {"dtype": "bool"},
        {"dtype": ["float64"]},
        {"dtype": "float32"},
        {"shape": [10**12]},
        {"shape": [2**62, 4]},
        {"shape": [0, 10**9, 10**9]},
        {"shape": [-1]},
        {"shape": [True]},
        {"shape": [1.0]},
        {"shape": [[1]]},
        {"shape": "1001"},
        {"shape": [1, 1, 1, 1001]},
        {"name": "scorer/coef"},
        {"name": 3},
        {"offset": 0},
    ],
)
def test_arrays_are_what_they_say(tmp_path, model_bytes, lie):
    refused(tmp_path, declare(model_bytes, **lie), "arrays|array that no model|wrong shape")


def peak(path):
    """(bytes allocated at most while the file is refused, its sentence)."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError) as caught:
            load_model(path)
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


def test_memory_is_bounded_by_what_the_file_holds(tmp_path, model_bytes):
    """A header may claim what it likes: nothing is allocated that the file does not hold."""
    for lie in ({"shape": [25_000_000]}, {"shape": [5000, 5000]}, {"shape": [2**31 - 1]}):
        path = tmp_path / "lie.pnuauc"
        path.write_bytes(declare(model_bytes, **lie))
        assert peak(path)[0] < 40 * len(model_bytes) + 2**20


def valid_or_told(path, payments):
    """Any file is a model whose scores are numbers, or one sentence."""
    try:
        scores = load_model(path).score(payments)
    except InputError as error:
        sentence = str(error)
    else:
        assert np.isfinite(scores).all()
        return
    assert "\n" not in sentence


@pytest.mark.slow
def test_any_value_in_any_place(tmp_path, model_bytes, payments):
    manifest, _ = split(model_bytes)
    path = tmp_path / "bent.pnuauc"
    for place in places(manifest):
        for value in HOSTILE[:: 1 if place[0] != "card" else 5]:
            path.write_bytes(rewritten(model_bytes, bend(place, value)))
            valid_or_told(path, payments)


def test_only_regular_files_are_opened(tmp_path):
    pipe = tmp_path / "pipe.pnuauc"
    os.mkfifo(pipe)
    with pytest.raises(ModelFileError, match="not a regular file"):
        load_model(pipe)
    with pytest.raises(ModelFileError, match="not a regular file"):
        load_model("/dev/zero")


def test_foreign_files(tmp_path):
    refused(tmp_path, b"", "not a pnuauc model")
    refused(tmp_path, b"\x89PNG....", "not a pnuauc model")
    refused(tmp_path, pickle.dumps([1]), "not a pnuauc model")
    with pytest.raises(ModelFileError, match="no model file"):
        load_model(tmp_path / "none.pnuauc")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model("a\0b")
    with pytest.raises(ModelFileError, match="a folder"):
        load_model(tmp_path)


def test_scores_too_large_to_compute_are_told(tmp_path, model_bytes, payments):
    path = tmp_path / "huge.pnuauc"
    path.write_bytes(rewritten(model_bytes, resize("scorer/coef", lambda v: v * 0 + 1e308)))
    with pytest.raises(InputError, match=r"not a number|too large to compute"):
        load_model(path).score(payments)
