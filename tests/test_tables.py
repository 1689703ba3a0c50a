"""Tests of tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pnuauc import fit_table, load_model
from pnuauc.exceptions import InputError
from pnuauc.study.payments import make_payments

pytest.importorskip("pyarrow")

QUICK = {"n_centers": 10, "folds": 2, "importance": False, "random_state": 3}


@pytest.fixture(scope="module")
def payments():
    return make_payments(300, labelled=60, share=0.2, seed=3)[0]


@pytest.fixture(scope="module")
def fit(payments):
    return fit_table(payments, "is_fraud", ids=["payment_id"], drop="time", prior=0.2, **QUICK)


def test_model_report_and_numbers_agree(fit, payments, tmp_path):
    scores = fit.model.score(payments)
    assert fit.report(tmp_path / "r.html").read_text().startswith("<!doctype html>")
    numbers = json.loads(fit.report(tmp_path / "r.json").read_text())
    assert numbers["auc"]["value"] == pytest.approx(fit.findings["auc"]["value"])
    assert numbers["prior"]["value"] == 0.2
    assert numbers["settings"]["random_state"] == 3
    assert numbers["table"]["ids"] == ["payment_id"]
    assert numbers["table"]["dropped"] == ["time"]
    np.testing.assert_allclose(load_model(fit.save(tmp_path / "m.pnuauc")).score(payments), scores)


def test_a_fit_shows_itself(fit):
    auc = f"{fit.findings['auc']['value']:.3f}"
    assert auc in repr(fit)
    assert "20 positive, 40 negative, 240 unlabelled" in repr(fit)
    assert auc in str(fit)
    assert "\n" in str(fit)
    for shown in (fit._repr_html_(), fit.model._repr_html_()):
        assert str(fit.findings["auc"]["value"])[:4] in shown  # 0.79 of 0.7965, rounded or not
        assert shown.startswith("<table>")
    line = repr(fit.model)
    assert "amount" in fit.model._repr_html_()
    assert len(line) < 400
    assert "array(" not in line


def test_frames_of_any_kind_and_label_values(payments):
    pd = pytest.importorskip("pandas")
    labels = payments.column("is_fraud").to_pylist()
    words = [{1: "bad", 0: "good", None: "?"}[v] for v in labels]
    frame = pd.DataFrame(
        {"amount": payments.column("amount").to_numpy(), "age": np.arange(300.0), "what": words}
    )
    told = {"positive_label": "bad", "negative_label": "good", "unlabeled_label": ["?"]}
    found = fit_table(frame, "what", prior="auto", **told, **QUICK)
    assert found.findings["labels"]["setting"] == "PNU"
    assert found.findings["prior"]["source"] == "estimated from held-out scores"


def test_settings_that_do_not_exist_are_named(payments):
    with pytest.raises(TypeError, match=r"no setting 'fold' \(did you mean 'folds'\?\)"):
        fit_table(payments, "is_fraud", fold=3)
    with pytest.raises(TypeError, match=r"'piror' \(did you mean 'prior'\?\)"):
        fit_table(payments, "is_fraud", piror=0.3)
    for option, name in (("seed", "random_state"), ("id", "ids")):
        with pytest.raises(TypeError, match=rf"'{option}' \(here it is {name}\)"):
            fit_table(payments, "is_fraud", **{option: 3})
    with pytest.raises(InputError, match="no column 'nope'"):
        fit_table(payments, "nope")


def test_the_rows_to_review_are_a_frame(fit):
    pd = pytest.importorskip("pandas")
    frame, top = fit.review, fit.findings["top"]
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == len(top["rows"])
    assert (frame["score"].diff().dropna() <= 0).all()
    assert frame["payment_id"].tolist() == [line[1] for line in top["rows"]]
    assert ("probability" in frame) == bool(top["probability"])
    assert "What to do next" in fit._repr_html_()


def test_no_foreign_file_is_overwritten(fit, tmp_path):
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    for write in (fit.report, fit.save):
        with pytest.raises(InputError, match="was not written by pnuauc"):
            write(mine)
    assert mine.read_text() == "mine"
    assert fit.report(mine, overwrite=True) == fit.report(mine)  # ours by now
    for name in ("t.json", "t.pnuauc"):
        write = fit.report if name.endswith("json") else fit.save
        assert write(tmp_path / name) == write(tmp_path / name)
