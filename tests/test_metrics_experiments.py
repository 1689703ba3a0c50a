"""The commands behind the numbers in docs/metrics.md and docs/theory.md run, and hold."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
pytestmark = pytest.mark.skipif(
    not RESULTS.exists(), reason="experiments are not part of the sdist"
)


def committed():
    with (RESULTS / "coverage.csv").open() as lines:
        for row in csv.DictReader(lines):
            sizes = tuple(int(row[k]) for k in ("n_positive", "n_negative", "n_unlabeled"))
            yield sizes, row["method"], row["scores"], float(row["prior"]), row


def test_committed_coverage_holds_what_is_promised():
    seen = set()
    for sizes, method, scores, prior, row in committed():
        seen.add((sizes, method))
        low, high = (0.92, 0.975) if sizes == (10, 40, 1000) else (0.93, 0.97)
        assert int(row["draws"]) == 4000
        assert low <= float(row["coverage"]) <= high
        assert abs(float(row["rms_se_over_sd"]) - 1) <= 0.05
        assert abs(float(row["mean_se_over_sd"]) - 1) <= 0.05
        if method == "combined":
            assert float(row["sd_over_best_single"]) <= 1.02
            assert float(row["max_se_over_best_single"]) <= 1.0 + 1e-6
            limit = {(80, 20, 1000): 0.60, (50, 50, 2000): 0.83}.get(sizes)
            if limit and prior == 0.1 and scores == "gaussian":
                assert float(row["mean_se_over_pn"]) <= limit
    assert {((20, 80, 1000), m) for m in ("pn", "pu", "nu", "combined")} <= seen
    assert {((50, 0, 5000), "pu"), ((100, 100, 10000), "combined")} <= seen


def test_the_simulation_repeats_its_committed_lines(monkeypatch):
    """The first 60 of the 4,000 draws: same seed, coverage within what 60 draws can say."""
    monkeypatch.syspath_prepend(str(ROOT))
    from experiments.coverage import simulate, true_auc

    results = simulate((20, 80, 1000), 0.1, "tied", 60, 20170001)
    for method in ("pn", "pu", "nu", "combined"):
        assert results[method]["coverage"] >= 0.85
        assert results[method]["truth"] == pytest.approx(true_auc("tied"))


def test_figures_without_the_banana_data(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PNUAUC_DATA", str(tmp_path))
    from experiments import figures12

    monkeypatch.setattr(figures12, "REFERENCE", 150)
    monkeypatch.setattr(figures12, "FIGURES", {1: [((10, 10), 0.1)]})
    table, check = figures12.curves(trials=2)
    assert "banana-like" in table[0]["data"]
    at_zero = [float(row["ratio"]) for row in table if row["eta"] == 0]
    assert at_zero == [1.0]
    for row in check:
        if row["entry"] in {"PN,PN", "PU,PU", "NU,NU"}:
            assert row["simulated"] == pytest.approx(row["exact"], rel=0.15)
    assert np.isfinite([float(row["ratio_as_printed"]) for row in table]).all()
