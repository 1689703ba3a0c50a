"""Tests of prior."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm

from pnuauc.prior import TRAINING_BOUNDS, ClassPrior, read_prior


def test_posterior_summaries() -> None:
    shares = np.linspace(0, 1, 201)
    prior = ClassPrior.from_posterior(shares, 7 * norm.pdf(shares, 0.4, 0.05), 0.9, "me", "unsure")
    assert prior.value == pytest.approx(0.4, abs=1e-6)
    assert prior.std_error == pytest.approx(0.05, rel=1e-3)
    assert prior.interval == pytest.approx(norm.ppf([0.05, 0.95], 0.4, 0.05), abs=1e-3)
    assert prior.weights.sum() == pytest.approx(1)
    assert (prior.level, prior.source, prior.doubt) == (0.9, "me", "unsure")
    assert not prior.identified
    assert prior.nodes(500)[0].tolist() == shares[prior.weights > 0].tolist()


@given(st.floats(0, 1), st.floats(0, 0.4), st.integers(1, 60))
@example(1.0, 0.1171875, 31)
@settings(max_examples=200, deadline=None)
def test_nodes_are_a_distribution_with_the_mean(value: float, error: float, n: int) -> None:
    values, weights = ClassPrior(value, 0.0, 1.0, std_error=error, source="test").nodes(n)
    assert 1 <= len(values) == len(weights) <= n
    assert weights.sum() == pytest.approx(1)
    assert np.all(weights > 0)
    assert np.all((values >= 0) & (values <= 1))
    assert np.all(np.diff(values) >= 0)
    inside = value if error <= 1e-6 else min(max(value, error / 2), 1 - error / 2)
    assert weights @ values == pytest.approx(inside, abs=1e-8)


@pytest.mark.parametrize(("value", "error"), [(0.1, 0.03), (0.5, 0.1), (0.97, 0.01), (0.3, 1e-3)])
def test_nodes_of_an_estimate_are_those_of_its_beta_distribution(value, error) -> None:
    values, weights = ClassPrior(value, 0, 1, std_error=error, source="test").nodes(200)
    total = value * (1 - value) / error**2 - 1
    law = beta(value * total, (1 - value) * total)
    assert np.sqrt(weights @ (values - value) ** 2) == pytest.approx(error, rel=0.01)
    for level in (0.1, 0.5, 0.9):
        reached = values[np.searchsorted(np.cumsum(weights), level)]
        assert law.cdf(reached) == pytest.approx(level, abs=0.01)
    # a curved function, against the law itself
    expected = law.expect(lambda x: 1 / (1 + x))
    assert weights @ (1 / (1 + values)) == pytest.approx(expected, rel=1e-3)


def test_nodes_of_a_posterior_keep_its_mean_and_spread_when_grouped() -> None:
    shares = np.linspace(0.005, 0.995, 100)
    prior = ClassPrior.from_posterior(shares, beta(3, 20).pdf(shares))
    # a share belongs to the half in which its own middle lies
    halves = ClassPrior.from_posterior([0.1, 0.2, 0.3], [0.45, 0.1, 0.45]).nodes(2)
    np.testing.assert_allclose(halves[0], [0.1, (0.02 + 0.135) / 0.55])
    np.testing.assert_allclose(halves[1], [0.45, 0.55])
    lower = ClassPrior.from_posterior([0.1, 0.2, 0.3], [0.3, 0.3, 0.4]).nodes(2)
    np.testing.assert_allclose(lower, [[0.15, 0.3], [0.6, 0.4]])
    values, weights = prior.nodes(15)
    assert len(values) <= 15
    assert weights @ values == pytest.approx(prior.value)
    assert np.sqrt(weights @ (values - prior.value) ** 2) == pytest.approx(
        prior.std_error, rel=0.05
    )


def test_training_value_moves_estimates_only_and_value_stays() -> None:
    low, high = TRAINING_BOUNDS
    for value, expected in ((0.0, low), (0.2, 0.2), (1.0, high)):
        estimate = ClassPrior(value, value, value, source="estimated by X")
        assert estimate.training_value == expected
        assert estimate.value == value
        assert ClassPrior.known(value).training_value == value
    assert ClassPrior.from_interval(0.001, 0.003).training_value == pytest.approx(0.002)


def test_complement_mirrors_everything() -> None:
    shares = np.array([0.1, 0.2, 0.6])
    prior = ClassPrior.from_posterior(shares, [1, 2, 5], 0.8, "me", "why")
    other = prior.complement()
    assert other.value == pytest.approx(1 - prior.value)
    assert other.interval == pytest.approx((1 - prior.high, 1 - prior.low))
    assert (other.std_error, other.doubt, other.level) == (prior.std_error, "why", 0.8)
    np.testing.assert_allclose(other.shares, [0.4, 0.8, 0.9])
    np.testing.assert_allclose(other.weights, [0.625, 0.25, 0.125])
    again = other.complement()
    np.testing.assert_allclose(again.shares, shares)


def test_equality_and_pickles() -> None:
    prior = ClassPrior.from_posterior([0.1, 0.2], [1, 1])
    same = pickle.loads(pickle.dumps(prior))
    assert same == prior
    assert hash(same) == hash(prior)
    assert prior != ClassPrior.from_posterior([0.1, 0.21], [1, 1])
    assert prior != ClassPrior(**prior.to_dict())  # the same numbers, without the posterior
    assert prior != 0.15
    assert ClassPrior.known(0.1) == ClassPrior.known(0.1)


@pytest.mark.parametrize(
    ("shares", "weights", "why"),
    [
        ([0.1, 0.2], [1.0], "same length"),
        ([0.2, 0.1], [1, 1], "ascend"),
        ([0.1, 1.2], [1, 1], r"\[0, 1\]"),
        ([0.1, 0.2], [0, 0], "positive"),
        ([0.1, 0.2], [-1, 2], "negative"),
        ([0.1, 0.2], [np.nan, 2], "negative"),
        ([], [], "one-dimensional"),
    ],
)
def test_posteriors_that_are_none(shares, weights, why) -> None:
    with pytest.raises(ValueError, match=why):
        ClassPrior.from_posterior(shares, weights)


def test_everything_that_can_be_a_prior() -> None:
    assert read_prior(None) is None
    assert read_prior("auto") is None
    for number in (0.25, np.float32(0.25), np.array(0.25)):
        assert read_prior(number) == ClassPrior.known(0.25)
    for pair in ((0.1, 0.3), [0.1, 0.3], np.array([0.1, 0.3])):
        prior = read_prior(pair, 0.9)
        assert prior.value == pytest.approx(0.2)
        assert prior.std_error == pytest.approx(0.1 / norm.ppf(0.95))
        assert (prior.low, prior.high, prior.level) == (0.1, 0.3, 0.9)
    assert read_prior(prior) is prior


@pytest.mark.parametrize(
    ("said", "error", "interval"),
    [
        ({}, 0.0, (0.3, 0.3)),
        ({"std_error_": -1.0}, 0.0, (0.3, 0.3)),
        ({"std_error_": 0.05}, 0.05, norm.ppf([0.025, 0.975], 0.3, 0.05)),
        ({"std_error_": 0.2}, 0.2, (0.0, norm.ppf(0.975, 0.3, 0.2))),
        ({"prior_": 0.9, "std_error_": 0.2}, 0.2, (norm.ppf(0.025, 0.9, 0.2), 1.0)),
        ({"interval_": (0.1, 0.6)}, 0.25 / norm.ppf(0.975), (0.1, 0.6)),
        ({"std_error_": 0.02, "interval_": (0.1, 0.6)}, 0.02, (0.1, 0.6)),
    ],
)
def test_estimators_of_others_with_an_error_and_an_interval(said, error, interval):
    prior = read_prior(SimpleNamespace(**{"prior_": 0.3} | said))
    assert prior.std_error == pytest.approx(error)
    assert prior.interval == pytest.approx(interval)
    assert not prior.is_given


@pytest.mark.parametrize(
    "prior",
    [-0.1, 1.1, np.nan, np.inf, True, "10%", b"x", (0.3, 0.1), (0.1, 0.2, 0.3), {}, object()],
)
def test_everything_that_cannot(prior) -> None:
    with pytest.raises(ValueError, match="prior"):
        read_prior(prior)


@pytest.mark.parametrize("prior", [(10, 5, 15), (1.1, 0.0, 1.0), (0.1, 0.3, 0.2), (0.1, 0, 1.5)])
def test_a_given_prior_that_is_no_share_is_refused(prior):
    """Such as one in percent: moved to the end it would be read as 1."""
    with pytest.raises(ValueError, match=r"prior .* got"):
        ClassPrior(*prior)
