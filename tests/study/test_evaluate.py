"""Tests of study/evaluate."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pnuauc import evaluate_table
from pnuauc.evaluation.compare import holm
from pnuauc.labels import read_roles
from pnuauc.metrics import auc_estimate, compare_auc
from pnuauc.study import evaluate as _evaluate
from tests.conftest import gaussian_scores, wins


def test_evaluation_without_a_prior_gives_a_range():
    rng = np.random.default_rng(0)
    y = [1] * 30 + [None] * 200
    scores = rng.normal(size=230) + np.r_[np.full(30, 1.5), np.zeros(200)]
    table = pa.table({"s": scores, "y": pa.array(y, pa.int8())})
    found = evaluate_table(table, "y", ["s"])
    assert found["prior"] is None
    assert found["scores"]["s"]["auc"] is None
    curve = found["scores"]["s"]["sensitivity"]
    for prior, value in zip(curve["priors"], curve["value"]):
        if value is not None and np.isfinite(value):
            known = auc_estimate(read_roles(y), scores, prior, "pu").value
            assert value == pytest.approx(known)
    raw = wins(scores[:30], scores[30:]).mean()
    assert found["scores"]["s"]["methods"]["pu_raw"]["value"] == pytest.approx(raw)
    assert set(found["scores"]["s"]["methods"]) == {"pu_raw"}


def test_evaluation_compares_the_first_with_the_second():
    rng = np.random.default_rng(0)
    truth = np.arange(80) < 40
    columns = {"good": truth * 2.0 + rng.normal(size=80), "bad": rng.normal(size=80)}
    table = pa.table({**columns, "y": np.where(truth, "a", "b")})
    named = {"positive_label": "a", "negative_label": ["b"]}
    found = evaluate_table(table, "y", ["good", "bad"], level=0.7, **named)["comparison"]
    assert found["level"] == 0.7
    aucs = [wins(columns[c][truth], columns[c][~truth]).mean() for c in ("good", "bad")]
    assert (found["a"], found["b"]) == ("good", "bad")
    assert found["difference"] == pytest.approx(aucs[0] - aucs[1])
    assert found["p_value"] < 0.01
    assert found["p_adjusted"] == found["p_value"]
    with pytest.raises(ValueError, match="one score column, or several"):
        evaluate_table(table, "y", [])


def test_every_pair_of_several_columns_is_compared():
    labels, good, _ = gaussian_scores(2, (30, 40, 300), 0.25, 2.0)
    rng = np.random.default_rng(3)
    columns = {"a": good, **{k: good + s * rng.normal(size=370) for k, s in (("b", 1), ("c", 3))}}
    cells = pa.array([None if np.isnan(v) else int(v) for v in labels], pa.int8())
    table = pa.table({**columns, "y": cells})
    found = evaluate_table(table, "y", ["a", "b", "c"], prior=0.25)
    assert found["comparison"] is None
    assert [(r["a"], r["b"]) for r in found["comparisons"]] == [("a", "b"), ("a", "c"), ("b", "c")]
    p = [r["p_value"] for r in found["comparisons"]]
    for told in found["comparisons"]:
        alone = compare_auc(labels, columns[told["a"]], columns[told["b"]], 0.25)
        assert told["difference"] == pytest.approx(alone.difference)
        assert told["p_value"] == pytest.approx(alone.p_value)
        assert told["p_adjusted"] >= told["p_value"]
    assert [r["p_adjusted"] for r in found["comparisons"]] == pytest.approx(holm(p).tolist())
    for name, scores in columns.items():
        told = found["scores"][name]["methods"]["pu_raw"]["value"]
        assert told == pytest.approx(wins(scores[:30], scores[70:]).mean())


def test_an_evaluation_gives_every_method_that_the_roles_allow():
    labels, scores, _ = gaussian_scores(5, (30, 40, 200), 0.25)
    cells = pa.array([None if np.isnan(v) else int(v) for v in labels], pa.int8())
    table = pa.table({"s": scores, "y": cells})
    found = evaluate_table(table, "y", ["s"], prior=0.25, level=0.9)["scores"]["s"]
    assert set(found["methods"]) == {"pn", "pu", "nu", "combined", "pu_raw", "nu_raw"}
    for name, told in found["methods"].items():
        assert told["value"] == pytest.approx(auc_estimate(labels, scores, 0.25, name, 0.9).value)
        assert told["level"] == 0.9
    assert found["sensitivity"]["priors"] == [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5]
    assert found["sensitivity"]["level"] == 0.9
    assert found["auc"]["method"] == auc_estimate(labels, scores, 0.25, "auto", 0.9).method
    chosen = evaluate_table(table, "y", ["s"], prior=0.25, method="pu")["scores"]["s"]["auc"]
    assert (chosen["method"], chosen["level"]) == ("pu", 0.95)
    estimated = evaluate_table(table, "y", "s", prior="auto", level=0.7)["prior"]
    assert (estimated["source"][:9], estimated["level"]) == ("estimated", 0.7)


def test_the_prior_comes_from_the_first_column_and_from_some_rows_of_many(monkeypatch):
    """The second column is noise, which tells next to nothing of the prior."""
    labels, good, hidden = gaussian_scores(2, (20, 30, 150), 0.25, 6.0)
    noise = np.random.default_rng(3).normal(size=len(good))
    cells = pa.array([None if np.isnan(v) else int(v) for v in labels], pa.int8())
    table = pa.table({"good": good, "noise": noise, "y": cells})
    monkeypatch.setattr(_evaluate, "PRIOR_ROWS", 149)
    found = evaluate_table(table, "y", ["good", "noise"])
    assert found["prior"]["value"] == pytest.approx(hidden.mean(), abs=0.03)
    assert found["prior"]["std_error"] < 0.06
    assert found["prior"]["source"].endswith("on 149 of the unlabelled rows, drawn at random")
    assert found["labels"]["unlabeled"] == 150
    share = found["scores"]["noise"]["methods"]["pu_raw"]["value"]
    assert share == pytest.approx(wins(noise[:20], noise[50:]).mean())  # among all rows
