"""ROC curve, recall, precision and lift from P and U: laws, simulation, bad input, plot."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_curve

from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError
from pnuauc.metrics import RocEstimateDisplay, roc_curve_estimate, threshold_estimate
from pnuauc.metrics._proportions import mover_ratio, wilson
from tests.conftest import gaussian_scores


def make(seed, n_p=60, n_u=2000, prior=0.2, digits=None):
    return gaussian_scores(seed, (n_p, 0, n_u), prior, 1.5, digits)


def test_pn_curve_is_sklearns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    scores = np.round(rng.normal(y, 1.0), 1)
    ours = roc_curve_estimate(y, scores)
    fpr, tpr, thresholds = roc_curve(y, scores, drop_intermediate=False)
    np.testing.assert_allclose(ours.fpr, fpr, atol=1e-12)
    np.testing.assert_allclose(ours.tpr, tpr, atol=1e-12)
    np.testing.assert_allclose(ours.thresholds, thresholds)


@given(
    st.lists(st.integers(-2, 2), min_size=4, max_size=40), st.floats(0.0, 0.9), st.integers(2, 9)
)
@settings(max_examples=40, deadline=None)
def test_curve_laws(values, prior, max_points):
    """Monotone from (0, 0) to (1, 1), inside its limits, limits inside [0, 1]."""
    y = np.resize([1.0, np.nan], len(values))
    roc = roc_curve_estimate(y, values, prior, max_points=max_points)
    for rate in (roc.fpr, roc.tpr):
        assert rate[0] == 0
        assert rate[-1] == 1
        assert np.all(np.diff(rate) >= 0)
    for low, mid, high in (
        (roc.fpr_low, roc.fpr, roc.fpr_high),
        (roc.tpr_low, roc.tpr, roc.tpr_high),
        (roc.band_low, roc.tpr, roc.band_high),
    ):
        assert np.all((low >= 0) & (low <= mid + 1e-12))
        assert np.all((mid <= high + 1e-12) & (high <= 1))


def test_band_and_limits_cover_the_truth():
    """300 draws: at fixed false-positive rates the true curve lies in the band, and the true
    rate in the threshold's limits, in at least 93% (level .95 less 1.6 binomial errors)."""
    at = np.array([0.05, 0.2, 0.5])
    truth = stats.norm.sf(stats.norm.isf(at) - 1.5)
    inside, hits = np.zeros(3), np.zeros(3)
    for seed in range(300):
        y, scores, _ = make(seed)
        roc = roc_curve_estimate(y, scores, 0.2)
        inside += (np.interp(at, roc.fpr, roc.band_low) <= truth) & (
            truth <= np.interp(at, roc.fpr, roc.band_high)
        )
        rank = [np.searchsorted(-roc.thresholds, -t) for t in (2.0, 1.0, 0.0)]
        real = stats.norm.sf(roc.thresholds[rank])
        hits += (roc.fpr_low[rank] <= real) & (real <= roc.fpr_high[rank])
    assert np.all(inside / 300 >= 0.93)
    assert np.all(hits / 300 >= 0.93)


def test_an_unsure_prior_widens_the_band():
    y, scores, _ = make(0)
    known, unsure = (roc_curve_estimate(y, scores, p) for p in (0.2, (0.1, 0.3)))
    assert np.mean(unsure.fpr_high - unsure.fpr_low) > np.mean(known.fpr_high - known.fpr_low)


def test_thinning_keeps_the_curve():
    y, scores, _ = make(0, 500, 20_000)
    full, thin = (roc_curve_estimate(y, scores, 0.2, max_points=m) for m in (10**6, 200))
    assert len(thin.fpr) <= 205
    grid = np.linspace(0, 1, 101)
    gap = np.interp(grid, full.fpr, full.tpr) - np.interp(grid, thin.fpr, thin.tpr)
    assert np.max(np.abs(gap)) < 0.03


def test_threshold_estimates_cover_the_hidden_truth():
    """400 draws: recall, lift, precision and false-positive rate of the population at score 1."""
    prior, cut, level = 0.2, 1.0, 0.95
    r_p, r_n = stats.norm.sf(cut - 1.5), stats.norm.sf(cut)
    r_u = prior * r_p + (1 - prior) * r_n
    truth = {
        "recall": r_p,
        "lift": r_p / r_u,
        "precision": prior * r_p / r_u,
        "false_positive_rate": r_n,
    }
    hits = dict.fromkeys(truth, 0)
    for seed in range(400):
        y, scores, _ = make(5000 + seed)
        result = threshold_estimate(y, scores, prior, threshold=cut, level=level)
        for name, value in truth.items():
            interval = getattr(result, name)
            hits[name] += interval.low <= value <= interval.high
    for name, count in hits.items():
        assert 0.915 <= count / 400 <= 0.985, name


def test_top_k_counts_hidden_positives():
    """Over 200 draws the expected positives among the top k are right on average, within 3%."""
    found = []
    for seed in range(200):
        y, scores, hidden = make(seed)
        result = threshold_estimate(y, scores, 0.2, k=200)
        assert result.n_flagged == 200
        really = hidden[scores[60:] >= result.threshold].sum()
        found.append((result.expected_positives.value, really))
    estimated, really = np.mean(found, axis=0)
    assert estimated == pytest.approx(really, rel=0.03)


def test_recall_and_lift_need_no_prior():
    y, scores, _ = make(0)
    without, with_prior = (threshold_estimate(y, scores, p, k=100) for p in (None, 0.2))
    assert without.precision is None
    assert without.recall == with_prior.recall
    assert without.lift == with_prior.lift
    assert with_prior.precision.value == pytest.approx(0.2 * without.lift.value)
    unsure = threshold_estimate(y, scores, (0.1, 0.3), k=100)
    assert unsure.precision.low < with_prior.precision.low
    assert unsure.precision.high >= with_prior.precision.high


def test_results_become_json():
    y, scores, _ = make(0)
    roc = json.loads(json.dumps(roc_curve_estimate(y, scores, 0.2).to_dict(), allow_nan=False))
    assert roc["thresholds"][0] is None
    assert roc["auc"]["method"] == "pu"
    at = threshold_estimate(y, scores, 0.2, k=100)
    assert json.loads(json.dumps(at.to_dict()))["recall"]["value"] == at.recall.value


def test_ties_at_k_are_all_flagged():
    result = threshold_estimate([1, 1, None, None, None], [1, 1, 1, 1, 0], 0.5, k=1)
    assert result.n_flagged == 2


@given(st.integers(0, 30), st.integers(1, 30))
def test_wilson_and_ratio_limits_hold_their_value(k, n):
    rate = min(k, n) / n
    low, high = wilson(np.array(rate), n, 0.95)
    assert 0 <= low <= rate <= high <= 1
    below, above = mover_ratio((rate, float(low), float(high)), (0.5, 0.4, 0.6))
    assert 0 <= below <= rate / 0.5 <= above


def test_bad_input():
    y, scores, _ = make(0)
    with pytest.raises(PriorNotIdentifiedError):
        roc_curve_estimate(y, scores)
    with pytest.raises(MissingRoleError):
        roc_curve_estimate(y, scores, 0.2, "pn")
    with pytest.raises(ValueError, match="'auto', 'pn' or 'pu'"):
        roc_curve_estimate(y, scores, 0.2, "combined")
    with pytest.raises(ValueError, match="prior=1"):
        roc_curve_estimate(y, scores, 1.0)
    for bad in ({}, {"k": 1, "threshold": 0.0}):
        with pytest.raises(ValueError, match="either k or threshold"):
            threshold_estimate(y, scores, **bad)
    with pytest.raises(ValueError, match="k must lie"):
        threshold_estimate(y, scores, k=10**6)
    with pytest.raises(ValueError, match="No unlabelled row"):
        threshold_estimate(y, scores, threshold=99.0)


def test_display_draws_curve_and_band():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    y, scores, _ = make(0)
    display = RocEstimateDisplay.from_predictions(y, scores, 0.2, name="model")
    assert display.ax_.get_legend().get_texts()[0].get_text().startswith("model: AUC 0.")
    assert len(display.line_.get_xdata()) == len(display.roc.fpr)
    display.plot(ax=display.ax_)
    matplotlib.pyplot.close(display.figure_)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    y, scores, _ = make(0)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pnuauc\[plot\]"):
        RocEstimateDisplay.from_predictions(y, scores, 0.2)
