"""The experiment on tables that people keep: draws and simple models, on a made-up table."""

import json

import numpy as np
import pandas as pd
import pytest

from experiments import everyday
from experiments.config import Config, Job, Setting


@pytest.fixture
def table(monkeypatch):
    """Two classes, a number with gaps, a category with gaps that says half, 4,000 rows."""
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.2).astype(np.int8)
    size = rng.standard_normal(4000) + 1.5 * y
    shop = rng.choice(["a", "b", "c"], 4000).astype(object)
    shop[(y == 1) & (rng.random(4000) < 0.5)] = "d"
    frame = pd.DataFrame({"size": size, "shop": shop, "row": np.arange(4000)})
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "shop"] = None
    monkeypatch.setattr(everyday, "_table", lambda name: (frame, y))
    return frame, y


def test_a_draw_shares_no_row_and_holds_what_it_says(table):
    _, y = table
    setting = Setting(10, 40, 1000, 0.1)
    drawn = everyday.draw("any", setting, 0)
    parts = [drawn.labelled, drawn.unlabeled, drawn.test]
    rows = np.concatenate([part["row"] for part in parts])
    assert len(np.unique(rows)) == len(rows)
    np.testing.assert_array_equal(drawn.y, np.repeat([1, 0, -1], [10, 40, 1000]))
    np.testing.assert_array_equal(y[drawn.labelled["row"]], drawn.y[:50])
    np.testing.assert_array_equal(y[drawn.unlabeled["row"]], drawn.hidden)
    np.testing.assert_array_equal(y[drawn.test["row"]], drawn.y_test)
    shares = [everyday.draw("any", setting, seed).hidden.mean() for seed in range(30)]
    assert np.mean(shares) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 30_000))


def test_rows_of_a_trial(table):
    """Simple models are far above chance; the tool's row holds every stated number."""
    experiment = Config.read()["everyday"]
    setting = Setting(20, 80, 400, 0.1)
    rows = everyday.run(Job(experiment, "any", setting, 0, experiment.methods))
    assert [row["method"] for row in rows] == [m.name for m in experiment.methods]
    assert all(0.75 < row["true_auc"] < 1 for row in rows)
    assert set(rows[0]) <= {"method", *everyday.STATED}
    json.dumps(rows, default=float)
    alone = everyday.run(
        Job(experiment, "any", Setting(20, 0, 400, 0.1), 0, experiment.methods[1:])
    )
    assert alone == []


def test_simple_models_know_nothing_of_shuffled_labels(table):
    drawn = everyday.draw("any", Setting(50, 50, 400, 0.1), 0)
    noise = drawn._replace(y_test=np.random.default_rng(0).permutation(drawn.y_test))
    for name in everyday.MODELS:
        assert everyday._simple(name, drawn, 0) > 0.75
        assert abs(everyday._simple(name, noise, 0) - 0.5) < 0.06
