"""Tests of evaluation/sensitivity."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pnuauc.exceptions import PriorRefutedError
from pnuauc.metrics import (
    auc_estimate,
    breaking_odds,
    odds_bounds,
    prior_sensitivity,
)
from tests.conftest import gaussian_scores


def test_a_curve_of_many_priors_repeats_one_estimate():
    y, scores, _ = gaussian_scores(0, (15, 20, 90), 0.3, digits=1)
    default = prior_sensitivity(y, scores)
    np.testing.assert_allclose(default.priors, np.arange(1, 26) * 0.02)
    assert (default.method, default.level) == ("combined", 0.95)
    found = prior_sensitivity(y, scores, [0.1, 0.4], "pu", 0.8, variance_factor=2.0)
    for k, prior in enumerate((0.1, 0.4)):
        one = auc_estimate(y, scores, prior, "pu", 0.8, variance_factor=2.0)
        for name in ("value", "std_error", "low", "high"):
            assert getattr(found, name)[k] == pytest.approx(getattr(one, name))
    for wrong in ([], [[0.1]], 0.1):
        with pytest.raises(ValueError, match="one-dimensional list"):
            prior_sensitivity(y, scores, wrong)


def test_a_refuted_prior_gives_no_number():
    y, scores, _ = gaussian_scores(0, (100, 100, 2000), 0.05)
    scores = np.where(y == 1, scores + 6, scores)  # P above all of U: at most a few positives there
    with pytest.raises(PriorRefutedError, match=r"0\.5 is refuted"):
        auc_estimate(y, scores, 0.5, "pu")
    auto = auc_estimate(y, scores, 0.5)
    assert auto.method == "pn"
    assert any("refuted" in note for note in auto.notes)
    band = prior_sensitivity(y, scores, [0.001, 0.5], method="pu")
    assert np.isnan(band.value).tolist() == [False, True]


# Labels picked with unequal odds.


def brute(values, g):
    """All weights 1 or g: a ratio of linear functions is extreme at a corner."""
    corners = np.array(list(itertools.product([1.0, g], repeat=len(values))))
    means = corners @ values / corners.sum(axis=1)
    return means.min(), means.max()


@pytest.mark.parametrize("g", [1.0, 1.5, 4.0, 100.0])
@pytest.mark.parametrize("n", [1, 2, 7, 9])
def test_odds_bounds_are_those_of_all_corners(n, g):
    values = np.random.default_rng(n).random(n).round(1)
    assert odds_bounds(values, g) == pytest.approx(brute(values, g))


@pytest.mark.parametrize("seed", range(5))
def test_odds_bounds_hold_every_weighting_between(seed):
    rng = np.random.default_rng(seed)
    values, g = rng.random(20), 3.0
    low, high = odds_bounds(values, g)
    for weights in rng.uniform(1.0, g, size=(200, 20)):
        assert low <= np.average(values, weights=weights) <= high


@pytest.mark.parametrize("limit", [0.45, 0.5, 0.9])
def test_breaking_odds_are_where_the_bounds_reach_the_limit(limit):
    values = np.random.default_rng(1).beta(3, 1, size=25)
    g = breaking_odds(values, limit)
    side = 0 if limit < values.mean() else 1
    assert odds_bounds(values, g)[side] == pytest.approx(limit)


def test_no_odds_reach_what_no_value_reaches():
    assert breaking_odds([0.6, 0.7], 0.5) == np.inf
    assert breaking_odds([0.6, 0.7], 0.8) == np.inf
    assert breaking_odds([0.5, 0.7], 0.6) == 1.0
    assert breaking_odds([0.5], 0.6) == np.inf


@pytest.mark.parametrize(
    ("values", "odds"), [([], 2.0), ([[1.0]], 2.0), ([np.nan], 2.0), ([1], 0.5), ([1], np.inf)]
)
def test_odds_bounds_refuse(values, odds):
    with pytest.raises(ValueError, match=r"odds must be|values must be"):
        odds_bounds(values, odds)
