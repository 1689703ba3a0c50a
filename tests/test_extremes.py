"""Tests of extremes."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

from attack.numbers import call, calls
from pnuauc import AUCClassifier, AUCClassifierCV
from pnuauc.core.basis import median_distance, squared_distances
from pnuauc.metrics import threshold_estimate
from pnuauc.theory import BoundConstants, bound_constants, confidence_term, generalization_bound

CALLS = calls()


def test_every_registry_is_attacked():
    """What a registry gains is attacked without a line here."""
    from pnuauc.baselines import BASELINES
    from pnuauc.losses import LOSSES
    from pnuauc.priors import PRIORS

    for registry, pattern in ((BASELINES, "baseline {}"), (PRIORS, "prior {}")):
        assert {pattern.format(name) for name in registry} <= set(CALLS)
    for estimator in ("AUCClassifierCV gaussian", "AutoAUCClassifier"):
        assert estimator in CALLS
    for loss in LOSSES:
        assert f"AUCClassifier {loss} gaussian" in CALLS


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.slow
def test_extreme_numbers(name):
    """A seeded share of ``make attack``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(3):
            assert call(name, CALLS[name], seed) in {"value", "refused"}


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.ones(15), np.zeros(15), np.full(n - 30, np.nan)]
    X = rng.normal(size=(n, 3))
    X[:15] += 1.5
    return X, y


@pytest.mark.parametrize("estimator", [AUCClassifier, AUCClassifierCV])
@pytest.mark.parametrize("basis", ["gaussian", "linear", "identity"])
def test_numbers_out_of_range_are_told(estimator, basis):
    X, y = data()
    model = estimator(basis=basis, prior=0.4, n_centers=10, random_state=0)
    for factor, word in ((1e160, "too large"), (1e-160, "too small")):
        with pytest.raises(ValueError, match=f"{word} to compute with .* rescale"):
            model.fit(X * factor, y)
    model.fit(X, y)
    assert np.isfinite(model.decision_function(X * 1e10)).all()
    if basis == "linear":
        with (
            np.errstate(all="ignore"),
            pytest.raises(ValueError, match="too large to compute"),
        ):
            model.decision_function(np.full((1, 3), 1.7e308))


def test_one_row_far_away_leaves_the_others_as_they_are():
    """An outlier of 1e12 once made all rows identical; distances are exact all the same."""
    X, y = data()
    far = np.vstack([X, np.full((1, 3), 1e12)])
    assert median_distance(far) == pytest.approx(median_distance(X), rel=0.1)
    brute = ((far[:, None] - far[None]) ** 2).sum(-1)
    np.testing.assert_allclose(squared_distances(far, far)[:-1, :-1], brute[:-1, :-1], atol=1e-9)
    plain = AUCClassifier(prior=0.4, random_state=0).fit(X, y)
    odd = AUCClassifier(prior=0.4, random_state=0).fit(far, np.append(y, np.nan))
    a, b = plain.decision_function(X), odd.decision_function(X)
    assert np.corrcoef(a, b)[0, 1] > 0.99


def test_a_prior_of_one_has_no_nan():
    y = np.r_[np.ones(20), np.full(50, np.nan)]
    scores = np.random.default_rng(0).normal(size=70)
    for prior in (1.0, 1 - 1e-12, 1e-12):
        try:
            found = threshold_estimate(y, scores, prior=prior, k=10)
        except ValueError as error:
            sentence = str(error)
        else:
            values = [found.recall, found.lift, found.precision, found.expected_positives]
            numbers = [x for v in values if v is not None for x in (v.value, v.low, v.high)]
            assert np.isfinite(numbers).all(), prior
            continue
        assert "prior" in sentence


@pytest.mark.parametrize("setting", ["pu", "nu", "pnpu", "pnnu"])
def test_bounds_too_large_to_hold_are_told(setting):
    """A width that overflows came back as infinity or not a number."""
    with pytest.raises(ValueError, match="too large to compute with"):
        bound_constants("squared", 1e308, 1.0)
    constants = BoundConstants(1e300, 1.0, 1.0, 1.0)
    sizes = {"n_positive": 2, "n_negative": 2, "n_unlabeled": 2, "prior": 0.5}
    for share in (1e-12, 1.0 - 1e-12):
        if (share > 0.5) == setting.endswith("pu"):  # divided by the other class's share
            for function in (confidence_term, partial(generalization_bound, 0.1)):
                with pytest.raises(ValueError, match="too large to compute with"):
                    function(setting, constants, **sizes | {"prior": share})
