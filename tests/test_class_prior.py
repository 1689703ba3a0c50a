"""ClassPrior, read_prior, resolve_prior: one prior, whoever states or estimates it."""

from __future__ import annotations

import inspect
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm
from sklearn.base import BaseEstimator, clone

import pnuauc
import pnuauc.metrics
from pnuauc._prior import TRAINING_BOUNDS, ClassPrior, read_prior
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.exceptions import PnuaucWarning, PriorNotIdentifiedError
from pnuauc.labels import read_roles
from pnuauc.priors import EnergyDistancePrior, PlacementPrior
from pnuauc.priors._resolve import resolve_prior

# --- the type -------------------------------------------------------------------------------------


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


@given(
    st.floats(0, 1),
    st.floats(0, 0.4),
    st.integers(1, 60),
)
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


def test_nodes_of_a_hopeless_estimate_are_spread_over_everything() -> None:
    values, _ = ClassPrior(0.5, 0, 1, std_error=np.inf, source="test").nodes(10)
    np.testing.assert_allclose(values, np.arange(0.05, 1, 0.1), atol=1e-9)
    assert ClassPrior.known(0.3).nodes()[0].tolist() == [0.3]
    with pytest.raises(ValueError, match="n must be"):
        ClassPrior.known(0.3).nodes(0)


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


# --- reading --------------------------------------------------------------------------------------


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
    foreign = read_prior(SimpleNamespace(prior_=0.3, std_error_=0.05))
    assert foreign.interval == pytest.approx(norm.ppf([0.025, 0.975], 0.3, 0.05))
    assert not foreign.is_given
    between = read_prior(SimpleNamespace(prior_=0.3, interval_=(0.1, 0.6)), 0.9)
    assert between.std_error == pytest.approx(0.25 / norm.ppf(0.95))
    assert between.interval == (0.1, 0.6)
    bare = read_prior(SimpleNamespace(prior_=0.3))
    assert (bare.std_error, bare.low, bare.high) == (0, 0.3, 0.3)


@pytest.mark.parametrize(
    "prior",
    [-0.1, 1.1, np.nan, np.inf, True, "10%", b"x", (0.3, 0.1), (0.1, 0.2, 0.3), {}, object()],
)
def test_everything_that_cannot(prior) -> None:
    with pytest.raises(ValueError, match="prior"):
        read_prior(prior)


def test_an_estimator_must_be_fitted_to_be_read() -> None:
    with pytest.raises(ValueError, match="fitted estimator"):
        read_prior(EnergyDistancePrior())
    s = sample(40, 40)
    fitted = EnergyDistancePrior(random_state=0).fit(s.X, s.y)
    assert read_prior(fitted) is fitted.estimate_
    assert fitted.estimate_.value == fitted.prior_
    assert fitted.estimate_.source == "estimated by EnergyDistancePrior"


def with_a_prior() -> dict[str, Any]:
    """Everything importable from ``pnuauc`` or ``pnuauc.metrics`` whose prior may be left out."""
    found = {}
    for module in (pnuauc, pnuauc.metrics):
        for name in module.__all__:
            thing = getattr(module, name)
            works = inspect.isfunction(thing) or hasattr(thing, "fit")
            given = inspect.signature(thing).parameters.get("prior") if works else None
            if given is not None and given.default is None:
                found[name] = thing
    return found


SCORES = [3.0, 1.0, 2.0, 0.0, 1.5, 0.5]
FROM_SCORES = {
    "auc_estimate": lambda f: f([1, 0, None, None, 1, 0], SCORES, prior="auto"),
    "auc_from_counts": lambda f: f(None, prior="auto"),
    "compare_auc": lambda f: f([1, 0, None, None, 1, 0], SCORES, SCORES[::-1], prior="auto"),
    "make_auc_scorer": lambda f: f(prior="auto"),
    "roc_curve_estimate": lambda f: f([1, 0, None, None, 1, 0], SCORES, prior="auto"),
    "threshold_estimate": lambda f: f([1, 0, None, None, 1, 0], SCORES, prior="auto"),
}
#: Tested in tests/test_tables.py.
FROM_TABLES = {"fit_table", "evaluate_table"}


@pytest.mark.parametrize(
    ("name", "thing"), [item for item in with_a_prior().items() if item[0] not in FROM_TABLES]
)
def test_auto_is_the_default_prior_of_everything(name, thing) -> None:
    """``prior="auto"`` is what leaving it out is; from scores alone one sentence says why not."""
    if name in FROM_SCORES:
        with pytest.raises(ValueError, match="needs rows to estimate it"):
            FROM_SCORES[name](thing)
        return
    s = sample(30, 20, 200)
    auto, default, other = (
        thing(prior=prior, random_state=0).fit(s.X, roles_of(s)) for prior in ("auto", None, 0.45)
    )
    assert auto.class_prior_.source == "estimated by PlacementPrior"
    assert auto.class_prior_ == default.class_prior_
    scores = [model.decision_function(s.X_test[:50]) for model in (auto, default, other)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.allclose(scores[0], scores[2])


# --- estimating -----------------------------------------------------------------------------------


def sample(n_p, n_n, n_u=300, prior=0.2, seed=0):
    X, y = make_twonorm(4000, random_state=seed)
    return sample_pnu(X, y, n_p, n_n, n_u, prior, seed)


def roles_of(s):
    return read_roles(s.y, unlabeled_label=-1)


def test_auto_and_none_take_the_default_and_the_seed_reaches_it() -> None:
    s = sample(40, 0)
    roles = roles_of(s)
    first, estimator = resolve_prior("auto", s.X, roles, random_state=0)
    assert isinstance(estimator, PlacementPrior)
    for prior in (None, "auto", PlacementPrior()):
        assert resolve_prior(prior, s.X, roles, random_state=0)[0] == first
    other = resolve_prior(None, s.X, roles, random_state=1)[0]
    assert other.value != first.value
    own = resolve_prior(PlacementPrior(random_state=5), s.X, roles, random_state=0)[0]
    assert own == PlacementPrior(random_state=5).fit(s.X, roles).estimate_


@pytest.mark.parametrize("base", [BaseEstimator, object])
def test_a_given_estimator_is_cloned_and_foreign_ones_see_numbers(base) -> None:
    class Foreign(base):
        def fit(self, X, y):
            self.prior_ = float(np.isnan(y).mean()) / 10
            return self

    s = sample(30, 30, 240)
    model = Foreign()
    prior, fitted = resolve_prior(model, s.X, roles_of(s))
    assert prior.value == pytest.approx(0.08)
    assert not hasattr(model, "prior_")
    again, nothing = resolve_prior(fitted, s.X, roles_of(s))
    assert again == prior
    assert nothing is None


@pytest.mark.parametrize("prior", [None, EnergyDistancePrior(), PlacementPrior()])
def test_doubt_is_treated_alike_for_the_default_and_a_given_estimator(prior) -> None:
    """All rows from one law. With P and N a warning, without N an error."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((160, 3)), np.repeat([1.0, 0.0, np.nan], [30, 30, 100])
    with pytest.warns(PnuaucWarning, match="not identified"):
        found, _ = resolve_prior(prior, X, read_roles(y), random_state=0)
    assert not found.identified
    if isinstance(prior, EnergyDistancePrior):
        return  # needs negatives
    keep = y != 0
    with pytest.raises(PriorNotIdentifiedError, match="not identified"):
        resolve_prior(prior, X[keep], read_roles(y[keep]), random_state=0)
    if prior is not None:
        asked = clone(prior).set_params(on_unidentified="ignore")
        _, fitted = resolve_prior(asked, X[keep], read_roles(y[keep]), random_state=0)
        assert fitted.on_unidentified == "ignore"
