"""Tables with text: the committee on frames as they are."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from pnuauc import AutoAUCClassifier
from pnuauc.io import load_model, save_model
from pnuauc.report.page import to_html
from pnuauc.study.fit import FitSettings, fit_study
from pnuauc.study.rows import ColumnRoles
from pnuauc.tables import fit_table

COMMON = [f"{a}{b}" for a in ("an", "be", "co", "di", "en") for b in ("lor", "mat", "nis", "pol")]
TELLING = ["refund", "broken", "complaint"]


def drawn(n=400, n_positive=15, n_negative=40, telling=True, numbers=0.0, seed=0):
    """A frame, labels as the tool gets them and hidden ones; positives use telling words."""
    rng = np.random.default_rng(seed)
    hidden = (rng.random(n) < 0.25).astype(int)
    texts = []
    for positive in hidden:
        words = list(rng.choice(COMMON, 12))
        if telling and positive:
            words[rng.integers(12)] = rng.choice(TELLING)
        texts.append(" ".join(words))
    frame = pd.DataFrame(
        {
            "note": texts,
            "size": rng.normal(size=n) + numbers * hidden,
            "shop": rng.choice(list("abcdef"), n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        }
    )
    y = np.full(n, -1)
    positive, negative = (rng.permutation(np.flatnonzero(hidden == c)) for c in (1, 0))
    known = np.concatenate([positive[:n_positive], negative[:n_negative]])
    y[known] = hidden[known]
    return frame, y, hidden


def fitted(frame, y, **more):
    settings = {"prior": 0.25, "verbose": False, "random_state": 0, "unlabeled_label": -1, **more}
    return AutoAUCClassifier(**settings).fit(frame, y)


def unlabeled_auc(model, frame, y, hidden):
    rest = y == -1
    return roc_auc_score(hidden[rest], model.decision_function(frame[rest]))


@pytest.fixture(scope="module")
def case():
    frame, y, hidden = drawn()
    return frame, y, hidden, fitted(frame, y)


def test_text_beside_columns_that_say_nothing_decides(case):
    frame, y, hidden, model = case
    weights = {member.name: member.weight for member in model.members_}
    text = weights.pop("text") + weights.pop("text_kernels")
    assert text > 4 * sum(weights.values())
    alone = unlabeled_auc(fitted(frame[["note"]], y), frame[["note"]], y, hidden)
    assert alone > 0.8
    assert unlabeled_auc(model, frame, y, hidden) > alone - 0.02


def test_text_that_says_nothing_has_no_weight():
    frame, y, hidden = drawn(telling=False, numbers=2.0)
    model = fitted(frame, y)
    weights = {member.name: member.weight for member in model.members_}
    assert weights["text"] + weights["text_kernels"] < 0.1 * sum(weights.values())
    without = frame.drop(columns="note")
    base = unlabeled_auc(fitted(without, y), without, y, hidden)
    assert unlabeled_auc(model, frame, y, hidden) > base - 0.01


def test_positives_alone_are_enough():
    frame, y, hidden = drawn(n_negative=0, n_positive=20)
    assert unlabeled_auc(fitted(frame, y), frame, y, hidden) > 0.75


def test_frames_of_any_library_and_any_order_of_columns_are_one(case):
    frame, y, _, model = case
    expected = model.decision_function(frame)
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        np.testing.assert_allclose(fitted(other, y).decision_function(other), expected)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["note", "size", "shop", "day"]
    with pytest.raises(ValueError, match="feature names"):
        model.decision_function(frame.drop(columns="note"))


def test_without_folds_text_takes_part(case):
    frame, y, _, _ = case
    model = fitted(frame, y, cv=0)
    assert {"text", "text_kernels"} <= {member.name for member in model.members_}


def test_a_table_of_text_alone_is_compared_with_what_one_would_do_instead(case):
    frame, y, _, _ = case
    model = fitted(frame[["note"]], y, rivals=True)
    assert {rival.name for rival in model.rivals_} == {"paper", "labeled_only", "extra_trees"}


def test_reasons_name_the_words(case):
    frame, _, hidden, model = case
    rows = frame[(hidden == 1) & frame["note"].str.contains("refund")].head(3)
    for reasons in model.reasons(rows):
        text = next(reason for reason in reasons if reason.column == "note")
        assert text.effect > 0
        assert "refund" in text.words


@pytest.mark.parametrize("text", ["unheard of", "", None])
def test_a_text_without_known_words_is_a_reason_without_words(case, text):
    """It differs from the typical text all the same."""
    frame, _, _, model = case
    rows = frame.iloc[:3].assign(note=[text] * 3)
    for reasons in model.reasons(rows, 4):
        (note,) = [reason for reason in reasons if reason.column == "note"]
        assert note.words == ("(no word of its own)",)


def test_numbers_alone_are_not_encoded():
    frame, y, _ = drawn(numbers=1.0)
    numbers = frame[["size"]].assign(more=np.arange(len(frame)) % 7)
    assert fitted(numbers, y).encoder_ is None


def test_latent_columns_must_be_there():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.repeat([1, 0, -1], [5, 5, 30])
    with pytest.raises(ValueError, match="no 4 columns of components"):
        fitted(X, y, n_latent_columns=4)


def test_a_model_of_a_table_with_text_is_stored_and_scores_alike(tmp_path):
    frame, y, _ = drawn()
    table = frame.assign(label=np.where(y < 0, np.nan, y))
    found = fit_table(table, "label", importance=False, comparisons=False)
    path = tmp_path / "m.pnuauc"
    save_model(found.model, path)
    again = load_model(path)
    np.testing.assert_array_equal(again.score(frame), found.model.score(frame))
    assert any("note: " in reasons for reasons in found.findings["top"]["reasons"])
    study = fit_study(table, ColumnRoles("label"), FitSettings(importance=False, comparisons=False))
    top = study.findings.top
    top.cells[0][0], top.marks[0] = "<b> Refunded, REFUND", ["refund", "退款"]
    assert "&lt;b&gt; Refunded, <mark>REFUND</mark>" in to_html(study.findings)
