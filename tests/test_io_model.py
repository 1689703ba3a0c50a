"""Model files: what is written is read back; damage, strangers and newer formats are told."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from pnuauc import AUCClassifierCV
from pnuauc._study import make_payments
from pnuauc.exceptions import InputError, ModelFileError
from pnuauc.io import (
    TableEncoder,
    TableModel,
    load_model,
    read_manifest,
    read_table,
    save_model,
    score_file,
)


def fitted(table, label, **settings):
    y = np.array([np.nan if v is None else v for v in table.column(label).to_pylist()])
    features = table.drop_columns([label, "payment_id"])
    encoder = TableEncoder().fit(features)
    X = encoder.transform(features)
    ranker = AUCClassifierCV(prior=0.2, n_centers=12, etas=(0.0, 0.5), random_state=0, **settings)
    ranker.fit(X, y)
    card = {"label": label, "ids": ["payment_id"], "note": "é"}
    return TableModel.from_fitted(encoder, ranker, X, card), ranker, X


@pytest.fixture(scope="module")
def payments():
    return make_payments(400, labelled=60, share=0.2, seed=3)[0]


@pytest.fixture(scope="module")
def model(payments):
    return fitted(payments, "is_fraud")[0]


@pytest.fixture(scope="module")
def model_bytes(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.pnuauc"
    save_model(model, path)
    return path.read_bytes()


@pytest.mark.parametrize("basis", ["gaussian", "linear", "identity"])
def test_scores_survive_the_file(payments, tmp_path, basis):
    model, ranker, X = fitted(payments, "is_fraud", basis=basis)
    np.testing.assert_allclose(model.score(payments), ranker.decision_function(X), atol=1e-12)
    save_model(model, tmp_path / "m.pnuauc")
    loaded = load_model(tmp_path / "m.pnuauc")
    np.testing.assert_array_equal(loaded.score(payments), model.score(payments))
    assert loaded.card == model.card
    manifest = read_manifest(tmp_path / "m.pnuauc")
    assert {"numpy", "scikit-learn", "pnuauc", "python"} <= set(manifest["libraries"])


def test_sparse_model_survives(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.random((80, 10)) * (rng.random((80, 10)) < 0.5))
    y = np.where(np.arange(80) < 30, np.arange(80) % 2, np.nan)
    encoder = TableEncoder().fit(X)
    ranker = AUCClassifierCV(prior=0.5, n_centers=10, etas=(0.0,), random_state=0)
    ranker.fit(encoder.transform(X), y)
    model = TableModel.from_fitted(encoder, ranker, encoder.transform(X))
    save_model(model, tmp_path / "m.pnuauc")
    np.testing.assert_array_equal(load_model(tmp_path / "m.pnuauc").score(X), model.score(X))


def test_percentiles_are_the_share_below(model, payments):
    scores = model.score(payments)
    percent = model.percentile(scores)
    expected = [(scores < s).mean() * 100 for s in scores]
    # quantiles at 1,001 points of 400 rows: within one row
    np.testing.assert_allclose(percent, expected, atol=100 / 400 + 0.1)


def rewritten(data, change):
    """A model file with consistent checksums after ``change``: a stranger's, not damage."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(members, manifest)
    manifest["sha256"] = {k: hashlib.sha256(v).hexdigest() for k, v in members.items()}
    text = json.dumps(manifest).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.comment = f"pnuauc-model sha256 {hashlib.sha256(text).hexdigest()}".encode()
        archive.writestr("manifest.json", text)
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def refused(tmp_path, data, message):
    path = tmp_path / "bad.pnuauc"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_rewriting_itself_changes_nothing(tmp_path, model_bytes, model, payments):
    path = tmp_path / "same.pnuauc"
    path.write_bytes(rewritten(model_bytes, lambda members, manifest: None))
    np.testing.assert_array_equal(load_model(path).score(payments), model.score(payments))


def test_newer_format(tmp_path, model_bytes):
    data = rewritten(model_bytes, lambda members, manifest: manifest.update(version=99))
    refused(tmp_path, data, "format version 99, this pnuauc reads up to 2: update")


def test_pickles_are_never_run(tmp_path, model_bytes):
    def object_array(members, manifest):
        out = io.BytesIO()
        np.savez(out, coef=np.array([{"a": 1}], dtype=object))
        members["arrays.npz"] = out.getvalue()

    refused(tmp_path, rewritten(model_bytes, object_array), "Object arrays cannot be loaded")


@pytest.mark.parametrize(
    "change",
    [
        lambda members, manifest: manifest["encoder"].update(columns=[{"name": "a"}]),
        lambda members, manifest: manifest["encoder"]["columns"].pop(),
        lambda members, manifest: manifest["encoder"].update(columns="nonsense"),
        lambda members, manifest: manifest.update(encoder="nonsense"),
        lambda members, manifest: manifest.update(card=None),
        lambda members, manifest: members.update({"arrays.npz": b"PK"}),
        lambda members, manifest: members.update({"more.txt": b"x"}),
    ],
)
def test_inconsistent_files_are_refused(tmp_path, model_bytes, change):
    refused(tmp_path, rewritten(model_bytes, change), "damaged|usable")


def test_wrong_shapes_are_refused(tmp_path, model_bytes):
    def shorter(members, manifest):
        arrays = dict(np.load(io.BytesIO(members["arrays.npz"])))
        arrays["coef"] = arrays["coef"][:-1]
        out = io.BytesIO()
        np.savez(out, **arrays)
        members["arrays.npz"] = out.getvalue()

    refused(tmp_path, rewritten(model_bytes, shorter), "usable")


def test_foreign_files(tmp_path):
    refused(tmp_path, b"", "no pnuauc model")
    refused(tmp_path, b"\x89PNG....", "no pnuauc model")
    refused(tmp_path, pickle.dumps([1]), "no pnuauc model")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "x")
    refused(tmp_path, out.getvalue(), "a zip file, but no pnuauc model")
    with pytest.raises(ModelFileError, match="no model file"):
        load_model(tmp_path / "none.pnuauc")
    with pytest.raises(ModelFileError, match="a folder"):
        load_model(tmp_path)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(share=st.floats(0, 0.999))
def test_every_truncation_is_told(tmp_path, model_bytes, share):
    refused(tmp_path, model_bytes[: int(share * len(model_bytes))], "damaged|no pnuauc model")


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(where=st.integers(0, 10**9), flip=st.integers(1, 255))
def test_one_changed_byte_is_told_or_harmless(tmp_path, model_bytes, model, payments, where, flip):
    data = bytearray(model_bytes)
    data[where % len(data)] ^= flip
    path = tmp_path / "fuzz.pnuauc"
    path.write_bytes(bytes(data))
    try:
        loaded = load_model(path)
    except ModelFileError:
        return
    # zip headers have bytes that nobody reads (dates); then nothing may have changed
    np.testing.assert_array_equal(loaded.coef, model.coef)
    assert loaded.card == model.card


# ---------------------------------------------------------------------------- streaming


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow"])
@pytest.mark.parametrize("source_ending", [".csv", ".parquet"])
def test_streamed_scores_equal_whole(tmp_path, model, payments, source_ending, ending):
    source = tmp_path / f"in{source_ending}"
    if source_ending == ".csv":
        pa.csv.write_csv(payments, source)
    else:
        pa.parquet.write_table(payments, source, row_group_size=37)
    target = tmp_path / f"out{ending}"
    summary = score_file(model, source, target)
    out = read_table(target)
    assert out.column_names == ["payment_id", "is_fraud", "score", "percentile"]
    np.testing.assert_allclose(out.column("score").to_numpy(), model.score(payments), rtol=1e-9)
    assert out.column("payment_id").to_pylist() == payments.column("payment_id").to_pylist()
    assert summary.n_rows == len(payments)
    assert [p.name for p in sorted(tmp_path.iterdir())] == sorted([source.name, target.name])


def test_ids_keep_leading_zeros_and_late_floats_are_no_problem(tmp_path, model, payments):
    n = len(payments)
    ids = [f"{i:05d}" for i in range(n)]
    amounts = [float(round(v)) for v in payments.column("amount").to_pylist()[:-1]] + [3.25]
    table = payments.set_column(0, "payment_id", [ids]).set_column(2, "amount", [amounts])
    pa.csv.write_csv(table, tmp_path / "in.csv")
    score_file(model, tmp_path / "in.csv", tmp_path / "out.parquet", keep=["payment_id"])
    out = read_table(tmp_path / "out.parquet")
    assert out.column("payment_id").to_pylist() == ids
    np.testing.assert_allclose(out.column("score").to_numpy(), model.score(table), rtol=1e-9)


def test_keep_and_row_numbers(tmp_path, model, payments):
    table = payments.drop_columns(["payment_id", "is_fraud"])
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    score_file(model, tmp_path / "in.parquet", tmp_path / "out.csv")
    out = read_table(tmp_path / "out.csv")
    assert out.column("row").to_pylist() == list(range(1, len(table) + 1))
    score_file(model, tmp_path / "in.parquet", tmp_path / "out.csv", keep=["shop", "amount"])
    assert read_table(tmp_path / "out.csv").column_names[:2] == ["shop", "amount"]
    with pytest.raises(InputError, match="no column 'nope' to keep"):
        score_file(model, tmp_path / "in.parquet", tmp_path / "out.csv", keep=["nope"])


def test_an_error_on_the_way_leaves_the_former_file(tmp_path, model, payments):
    amounts = payments.column("amount").to_pylist()
    amounts[-1] = float("inf")
    pa.parquet.write_table(
        payments.set_column(2, "amount", [amounts]), tmp_path / "in.parquet", row_group_size=50
    )
    target = tmp_path / "out.csv"
    target.write_text("former")
    with pytest.raises(InputError, match=r"infinite value \(row 400\)"):
        score_file(model, tmp_path / "in.parquet", target)
    assert target.read_text() == "former"
    assert len(list(tmp_path.iterdir())) == 2
