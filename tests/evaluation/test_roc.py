"""Tests of evaluation/roc."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_curve

from pnuauc import ClassPrior, compare_auc
from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError
from pnuauc.labels import Roles, read_roles
from pnuauc.metrics import RocEstimateDisplay, auc_estimate, roc_curve_estimate, threshold_estimate
from tests.conftest import gaussian_scores


def exact_mixture(n_positive=40, n_negative=160, seed=0):
    """U holds every labelled positive's score and all negatives': rates of U are exactly those."""
    rng = np.random.default_rng(seed)
    p, n = rng.normal(1, 1, n_positive), rng.normal(0, 1, n_negative)
    y = [1] * n_positive + [None] * (n_positive + n_negative)
    return y, np.concatenate([p, p, n]), p, n, n_positive / (n_positive + n_negative)


def test_false_positive_rate_is_that_of_the_hidden_negatives():
    y, scores, p, n, prior = exact_mixture()
    for at in (-0.5, 0.0, 0.7, 1.5):
        found = threshold_estimate(y, scores, prior, threshold=at)
        assert found.false_positive_rate.value == pytest.approx(np.mean(n >= at))
        assert found.recall.value == pytest.approx(np.mean(p >= at))
        flagged = np.sum(p >= at) + np.sum(n >= at)
        assert found.precision.value == pytest.approx(np.sum(p >= at) / flagged)
        assert found.expected_positives.value == pytest.approx(np.sum(p >= at))
        assert found.n_flagged == flagged
    roc = roc_curve_estimate(y, scores, prior, "pu", max_points=10_000)
    for at, fpr, tpr in zip(roc.thresholds[1:-1], roc.fpr[1:-1], roc.tpr[1:-1]):
        assert fpr == pytest.approx(np.mean(n >= at))
        assert tpr == pytest.approx(np.mean(p >= at))


Y, SCORES, _ = gaussian_scores(0, (25, 40, 300), 0.2, 1.2)

ROLES = read_roles(Y)

PU = np.where(Y == 0, np.nan, Y)

OTHER = SCORES + np.random.default_rng(1).normal(0, 0.8, len(SCORES))


def test_a_curve_and_a_threshold_say_what_they_are_of():
    at = threshold_estimate(PU, SCORES, (0.1, 0.3), k=40, level=0.8)
    assert (at.prior, at.level) == (pytest.approx(0.2), 0.8)
    assert threshold_estimate(PU, SCORES, k=40).prior is None
    told = at.to_dict()
    for name in ("precision", "expected_positives"):
        assert told[name]["low"] < told[name]["value"] < told[name]["high"]
    assert told["expected_positives"]["high"] == pytest.approx(at.n_flagged * at.precision.high)
    curve = roc_curve_estimate(PU, SCORES, (0.1, 0.3), level=0.8)
    same = auc_estimate(PU, SCORES, (0.1, 0.3), "pu", 0.8)
    assert (curve.auc, curve.method, curve.level) == (same, "pu", 0.8)
    for missing, prior in (("positive", 0.3), ("unlabelled", None)):
        kept = Y == 0 if missing == "positive" else Y == 1
        roles = Roles(ROLES.codes[kept])
        with pytest.raises(MissingRoleError, match=f"A ROC curve needs {missing} rows"):
            roc_curve_estimate(roles, SCORES[kept], prior, "pu")


def test_a_threshold_flags_rows_at_and_above_it():
    y = [1] * 4 + [None] * 5
    scores = [3.0, 2.0, 1.0, 0.0, 3.0, 2.0, 2.0, 1.0, 0.0]
    at = threshold_estimate(y, scores, 0.25, threshold=2.0)
    assert (at.threshold, at.n_flagged, at.recall.value) == (2.0, 3, 0.5)
    assert at.lift.value == pytest.approx(0.5 / 0.6)
    assert at.precision.value == pytest.approx(0.25 * 0.5 / 0.6)
    assert at.expected_positives.value == pytest.approx(3 * 0.25 * 0.5 / 0.6)
    assert at.false_positive_rate.value == pytest.approx((0.6 - 0.25 * 0.5) / 0.75)
    assert threshold_estimate(y, scores, 1.0, threshold=2.0).false_positive_rate is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda prior, **o: auc_estimate(Y, SCORES, prior, "combined", **o),
        lambda prior, **o: auc_estimate(PU, SCORES, prior, "pu", **o),
        lambda prior, **o: compare_auc(Y, SCORES, OTHER, prior, "pu", **o),
        lambda prior, **o: compare_auc(Y, SCORES, OTHER, prior, "combined", **o),
        lambda prior, **o: roc_curve_estimate(PU, SCORES, prior, "pu", **o).auc,
        lambda prior, **o: threshold_estimate(PU, SCORES, prior, k=30, **o).precision,
        lambda prior, **o: threshold_estimate(PU, SCORES, prior, k=30, **o).false_positive_rate,
    ],
)
def test_an_interval_of_the_prior_has_the_level_that_is_said(ask):
    for level in (0.95, 0.5):
        said = ask((0.1, 0.3), prior_level=level)
        same = ask(ClassPrior.from_interval(0.1, 0.3, level))
        assert (said.low, said.high) == (same.low, same.high)
    # narrow enough that the scores refute no share of either
    wide, narrow = ask((0.15, 0.25), prior_level=0.5), ask((0.15, 0.25), prior_level=0.95)
    # weights of a combination move to PN where the prior is unsure
    assert wide.high - wide.low > narrow.high - narrow.low - 1e-3
    assert (wide.low, wide.high) != (narrow.low, narrow.high)
    default = ask((0.15, 0.25))
    assert (default.low, default.high) == (narrow.low, narrow.high)


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


def test_ties_at_k_are_all_flagged():
    result = threshold_estimate([1, 1, None, None, None], [1, 1, 1, 1, 0], 0.5, k=1)
    assert result.n_flagged == 2
