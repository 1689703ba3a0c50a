"""Drift and decay are noticed, and their absence too."""

import json

import numpy as np
import pandas as pd
import pytest

from pnuauc import fit_table, monitor_table
from pnuauc.review.monitor import monitoring_page
from tests.conftest import run_tool as run


def rows(n, seed, *, shift=0.0, signal=2.0, kinds=(0.7, 0.2, 0.1)):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.2
    frame = pd.DataFrame({"a": rng.normal(size=n) + signal * hidden, "b": rng.normal(size=n)})
    frame["b"] = 100 * frame["b"] + 100 * shift
    frame["kind"] = rng.choice(["x", "y", "<z>"], n, p=kinds)
    frame["fraud"] = np.where(np.arange(n) < 0.8 * n, hidden, np.nan)
    return frame


@pytest.fixture(scope="module")
def fitted():
    frame = rows(800, 0)
    frame.loc[400:, "fraud"] = np.nan
    return fit_table(frame, "fraud", comparisons=False, importance=False)


def test_no_drift_no_alarm(fitted):
    alarms = [monitor_table(fitted.model, rows(500, seed), "fraud").refit for seed in range(1, 11)]
    assert sum(alarms) <= 1


def test_effects_are_in_deviations_and_their_intervals_hold(fitted):
    """The truth: 'b' moves by half a deviation, 'kind' from 70% to 40% of x, 'a' not at all."""
    found = monitor_table(fitted.model, rows(3000, 1, shift=0.5, kinds=(0.4, 0.5, 0.1)))
    drift = {d.name: d for d in found.columns}
    assert drift["b"].low <= 0.5 <= drift["b"].high
    assert drift["b"].matters
    assert abs(drift["kind"].effect) == pytest.approx(0.3 / np.sqrt(0.2 * 0.8), abs=0.15)
    assert drift["kind"].matters
    assert not drift["a"].matters
    assert found.columns[0].name == "kind"
    assert "Columns have drifted: 'kind', 'b'." in found.reasons


def test_scores_are_compared_by_pairs(fitted):
    new = rows(400, 2, signal=4.0)
    new["a"] += 1.0
    found = monitor_table(fitted.model, new)
    old = fitted.model.quantiles
    scores = fitted.model.score(new.drop(columns="fraud"))
    brute = (scores[:, None] > old).mean() + 0.5 * (scores[:, None] == old).mean() - 0.5
    assert found.scores.effect == pytest.approx(brute)
    assert found.scores.matters
    assert found.refit


def test_a_lost_signal_is_seen_in_the_auc(fitted):
    found = monitor_table(fitted.model, rows(2000, 3, signal=0.0), "fraud")
    assert found.auc_now[2] < found.auc_then[1]
    assert any("AUC has fallen" in reason for reason in found.reasons)
    assert monitor_table(fitted.model, rows(50, 3)).auc_now is None


def test_rows_that_the_model_saw_are_not_in_the_auc(fitted):
    old, new = rows(800, 0).head(400), rows(500, 4)
    alone = monitor_table(fitted.model, new, "fraud")
    both = monitor_table(fitted.model, pd.concat([old, new]), "fraud")
    assert (alone.n_seen, both.n_seen) == (0, 400)
    assert both.auc_now == pytest.approx(alone.auc_now)
    assert "400 rows were labelled when the model was fitted" in " ".join(both.sentences())
    assert monitor_table(fitted.model, old, "fraud").auc_now is None


def test_page_and_numbers(fitted):
    found = monitor_table(fitted.model, rows(500, 1, shift=1.0), "fraud")
    json.dumps(found.to_dict())
    page = monitoring_page(found, "<model>")
    assert "&lt;model&gt;" in page
    assert "<model>" not in page
    assert "Fit again." in page


def test_command_line(fitted, tmp_path):
    fitted.save(tmp_path / "m.pnuauc")
    rows(500, 1).to_csv(tmp_path / "same.csv", index=False)
    rows(500, 1, shift=1.0).to_parquet(tmp_path / "moved.parquet")
    same = run("monitor", tmp_path / "m", tmp_path / "same.csv", "--label", "fraud")
    assert same.exit_code == 0, same.output
    assert "No reason to fit again." in same.output
    page = tmp_path / "page.html"
    moved = run("monitor", tmp_path / "m", tmp_path / "moved.parquet", "--json", "--report", page)
    assert moved.exit_code == 3
    assert json.loads(moved.output)["refit"] is True
    assert page.exists()
    lacking = rows(50, 1).drop(columns="b")
    lacking.to_csv(tmp_path / "lacking.csv", index=False)
    refused = run("monitor", tmp_path / "m", tmp_path / "lacking.csv")
    assert refused.exit_code == 2
    assert "'b'" in refused.output
