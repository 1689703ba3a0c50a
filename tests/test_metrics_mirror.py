"""Scores turned round, classes swapped: results mirrored. Numbers at the ends of their range."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from pnuauc import ClassPrior
from pnuauc.labels import Roles
from pnuauc.metrics import ScoreCounts, auc_estimate, compare_auc, threshold_estimate
from pnuauc.metrics._conditional import REFUTED, Conditional, mixture_limits
from pnuauc.metrics._moments import moments_of
from pnuauc.metrics._proportions import Interval, wilson
from pnuauc.metrics._roc import _band, _times_prior
from pnuauc.metrics._weights import combination_weights, steadied_covariance, weigh
from tests.conftest import gaussian_scores

Y, SCORES, _ = gaussian_scores(2, (15, 20, 80), 0.3, digits=1)
OTHER = np.round(SCORES + np.random.default_rng(4).normal(0, 0.8, len(SCORES)), 1)
SWAPPED = np.where(np.isnan(Y), Y, 1 - Y)
PRIORS = [
    ClassPrior.known(0.3),
    ClassPrior(0.3, 0.2, 0.4, 0.95, 0.05, "estimated"),
    ClassPrior(0.04, 0.0, 0.12, 0.95, 0.03, "estimated"),
    ClassPrior.from_posterior([0.1, 0.3, 0.6], [1.0, 2.0, 1.0]),
]


# --- mirrored -------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined", "pu_raw", "nu_raw"])
def test_swapped_classes_and_turned_scores_give_the_same_auc(method, prior):
    """P against U of the one is U against N of the other; the prior becomes its complement."""
    partner = {"pu": "nu", "nu": "pu", "pu_raw": "nu_raw", "nu_raw": "pu_raw"}
    found = auc_estimate(Y, SCORES, prior, method, 0.9)
    other = auc_estimate(SWAPPED, -SCORES, prior.complement(), partner.get(method, method), 0.9)
    names = ("value", "std_error", "low", "high", "unbiased")
    for name in names:
        assert getattr(found, name) == pytest.approx(getattr(other, name), abs=1e-6), name
    mirrored = {partner.get(name, name): w for name, w in other.weights.items()}
    assert dict(found.weights) == pytest.approx(mirrored, abs=1e-6)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined"])
def test_turned_scores_turn_a_difference(method, prior):
    partner = {"pu": "nu", "nu": "pu"}
    found = compare_auc(Y, SCORES, OTHER, prior, method)
    turned = compare_auc(Y, OTHER, SCORES, prior, method)
    swapped = compare_auc(SWAPPED, -SCORES, -OTHER, prior.complement(), partner.get(method, method))
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    assert (turned.value_a, turned.value_b) == pytest.approx((found.value_b, found.value_a))
    for name in ("difference", "std_error", "low", "high", "p_value", "value_a", "value_b"):
        assert getattr(swapped, name) == pytest.approx(getattr(found, name), abs=1e-6), name
    back = {partner.get(name, name): w for name, w in swapped.weights.items()}
    assert found.weights == pytest.approx(back, abs=1e-6)


@pytest.mark.parametrize(
    "parts",
    [
        [(0.7, 0.001, 0.004, 30.0), (0.8, 0.002, 0.003, 20.0), (1.3, 0.001, 0.0, 50.0)],
        [(1.1, 0.002, 0.0, np.inf), (1.12, 0.002, 0.0, np.inf), (0.9, 0.002, 0.01, np.inf)],
        [(1.1, 0.002, 0.0, np.inf), (1.12, 0.002, 0.0, np.inf), (1.09, 0.001, 0.01, np.inf)],
        [(1.16, 0.002, 0.0, np.inf), (1.16, 0.002, 0.0, np.inf), (3.0, 0.002, 0.01, np.inf)],
        [(1.02, 0.001, 0.01, 9.0), (-0.02, 0.001, 0.01, 9.0), (0.4, 0.001, 0.05, 9.0)],
        [(1.3, 0.002, 0.0, np.inf), (-0.3, 0.002, 0.0, np.inf), (0.6, 0.001, 0.05, np.inf)],
    ],
)  # fmt: skip
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_a_mixture_of_turned_estimates_is_turned(parts, level):
    mass = np.array([0.3, 0.5, 0.2])
    found = mixture_limits([Conditional(*part) for part in parts], mass, level)
    turned = mixture_limits([Conditional(1 - v, *rest) for v, *rest in parts], mass, level)
    if found is None or turned is None:
        assert found is turned is None
        return
    np.testing.assert_allclose(found[2], turned[2], atol=1e-9)
    assert found[2].sum() == pytest.approx(1.0)
    assert turned[:2] == pytest.approx((1 - found[1], 1 - found[0]), abs=2e-3)


def test_a_prior_keeps_as_much_as_falls_inside_on_either_side():
    """Half of a confidence whose estimate is at an end, all of one in the middle."""
    parts = [Conditional(v, 0.0004, 0.0, np.inf) for v in (0.0, 0.5, 1.0)]
    for estimates in (parts, parts[::-1]):
        _, _, kept = mixture_limits(estimates, np.array([0.25, 0.5, 0.25]), 0.9)
        np.testing.assert_allclose(kept, [1 / 6, 2 / 3, 1 / 6], atol=1e-9)
    _, _, kept = mixture_limits(parts, np.array([0.6, 0.2, 0.2]), 0.9)
    np.testing.assert_allclose(kept, [0.5, 1 / 3, 1 / 6], atol=1e-9)


@pytest.mark.parametrize("value", [0.6, 0.95, 0.99, 0.999, 0.9999])
def test_limits_of_a_mixture_are_exact_enough_next_to_one(value):
    """To a twentieth of the distance from 1, against the root of the mixed confidence."""
    parts = [Conditional(value - gap * (1 - value), 0.0, 0.1 * (1 - value), 15.0)
             for gap in (0.0, 0.5)]  # fmt: skip
    mass = np.array([0.4, 0.6])
    low, high, kept = mixture_limits(parts, mass, 0.9)

    def below(a):
        error = [np.sqrt(part.spread * a * (1 - a)) for part in parts]
        return kept @ [stats.t.cdf((a - part.value) / e, 15) for part, e in zip(parts, error)]

    for found, share in ((low, 0.05), (high, 0.95)):
        exact = optimize.brentq(lambda a, share=share: below(a) - share, 1e-9, 1 - 1e-12)
        assert 1 - found == pytest.approx(1 - exact, rel=0.05, abs=1e-5)


# --- numbers at the ends of their range -----------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("df", [7.0, np.inf])
def test_an_estimate_without_variance_is_its_own_limits(value, df):
    sure = Conditional(value, 0.0, 0.0, df)
    assert sure.limits(0.9) == (value, value)
    assert sure.std_error() == 0.0
    around = sure.distribution(np.array([value - 0.01, value, value + 0.01]))
    np.testing.assert_allclose(around, [0.0, 0.5, 1.0], atol=1e-6)
    for outside in (value - 1.01, value + 1.01):
        assert Conditional(outside, 0.0, 0.0, df).limits(REFUTED) is None


@pytest.mark.parametrize("n", [1, 2, 3, 7, 49, 200, 1234])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_limits_of_none_and_of_all_end_at_the_end(n, level):
    low, high = wilson(np.array([0.0, 1.0]), n, level)
    assert low[0] == 0.0
    assert high[1] == 1.0
    assert high[0] == pytest.approx(1 - low[1])
    z2 = stats.norm.ppf(0.5 + level / 2) ** 2
    assert high[0] == pytest.approx(z2 / (n + z2))


@pytest.mark.parametrize(
    "lift", [(0.8, 0.5, 1.2), (0.4, 0.2, 0.7), (1.5, 0.9, 3.0), (0.5, 0.0, 0.9), (0.0, 0.0, 0.6)]
)
def test_precision_where_the_top_is_no_better_than_any(lift):
    """Logarithms of the limits, in squares; a lift of nothing has none, and its end is scaled."""
    prior = ClassPrior(0.2, 0.1, 0.3, 0.95, 0.03, "estimated")
    found = _times_prior(Interval(*lift), prior, 0.9)
    relative = stats.norm.ppf(0.95) * 0.03 / 0.2
    value, *ends = lift
    assert found.value == pytest.approx(0.2 * value)
    for limit, end, sign in ((found.low, ends[0], -1), (found.high, ends[1], 1)):
        if end == 0.0 or value == 0.0:
            assert limit == pytest.approx(0.2 * end * np.exp(sign * relative))
        else:
            step = np.hypot(np.log(end / value), relative)
            assert limit == pytest.approx(0.2 * value * np.exp(sign * step))


def test_a_band_starts_at_nothing():
    """Below the lowest of the highest rates no threshold says that a positive is found."""
    fpr, tpr = np.array([0.0, 0.1, 0.3, 1.0]), np.array([0.0, 0.6, 0.9, 1.0])
    highest, lowest = np.array([0.2, 0.4, 0.6, 1.0]), np.array([0.1, 0.4, 0.7, 1.0])
    low, high = _band(fpr, tpr, (fpr, highest), (lowest, tpr))
    assert low == pytest.approx([0.0, 0.0, 0.25, 1.0])
    assert high == pytest.approx(tpr)


def test_a_threshold_that_all_or_no_positives_reach():
    y = [1] * 5 + [None] * 20
    scores = np.r_[np.full(5, 10.0), np.arange(20.0)]
    every = threshold_estimate(y, scores, 0.25, k=10)
    assert (every.threshold, every.recall.value, every.lift.value) == (10.0, 1.0, 2.0)
    assert (every.recall.high, every.precision.value) == (1.0, 0.5)
    assert every.expected_positives.value == 5.0
    none = threshold_estimate(y, scores, 0.25, k=9)
    assert (none.threshold, none.recall.value, none.recall.low) == (11.0, 0.0, 0.0)
    assert (none.lift.value, none.precision.value, none.precision.low) == (0.0, 0.0, 0.0)
    assert none.precision.high > 0
    assert none.false_positive_rate.value == pytest.approx(0.45 / 0.75)
    assert threshold_estimate(y, scores, k=20).lift.value == 1.0


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "used"),
    [
        ((0.02, 0.5), "pn pu"), ((0.0201, 0.5), "pn pu nu"), ((0.5, 0.98), "pn nu"),
        ((0.5, 0.9799), "pn pu nu"), ((0.02, 0.98), "pn"), ((0.0, 0.5), "pn pu"),
        ((0.5, 1.0), "pn nu"),
    ],
)  # fmt: skip
def test_a_fiftieth_itself_is_too_near(shares, used):
    counts = ScoreCounts.from_rows(Y, SCORES)
    found = weigh(counts, moments_of(counts), ClassPrior.from_posterior(shares, [1.0, 1.0]))
    names = [name for name, w in zip(("pn", "pu", "nu"), found.weights) if w != 0.0]
    assert names == used.split()
    assert found.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("shares", [(0.3, 0.5), (0.001, 0.5), (0.5, 0.999), (0.0, 0.5), (0.5, 1.0)])
@pytest.mark.parametrize(("codes", "place"), [((1, -1), 1), ((0, -1), 2), ((1, 0), 0)])
def test_of_two_roles_the_one_estimate_has_all_the_weight(codes, place, shares):
    """Even where the prior may be too near to an end: there is no other."""
    roles = Roles(np.repeat(np.array(codes, np.int8), [12, 30]))
    counts = ScoreCounts.from_rows(roles, SCORES[:42])
    prior = ClassPrior.from_posterior(shares, [1.0, 1.0])
    assert weigh(counts, moments_of(counts), prior).weights.tolist() == np.eye(3)[place].tolist()


@pytest.mark.parametrize(("end", "near"), [(0.0, 1e-6), (1.0, 1.0 - 1e-6)])
def test_weights_at_an_end_are_those_of_the_two_that_are_left(end, near):
    counts = ScoreCounts.from_rows(Y, SCORES)
    moments = moments_of(counts)
    found = weigh(counts, moments, ClassPrior.known(end)).weights
    kept = [0, 1] if end == 0.0 else [0, 2]
    matrix = steadied_covariance(counts, near, moments.raw[0])[np.ix_(kept, kept)]
    expected = np.linalg.solve(matrix, np.ones(2))
    np.testing.assert_allclose(found[kept], expected / expected.sum(), rtol=1e-4)
    assert np.count_nonzero(found) == 2


def test_weights_do_not_depend_on_the_unit():
    """Nor on whether variances are above 1; a matrix of nothing gives all to the first."""
    matrix = np.array([[1.0, 0.2, 0.1], [0.2, 2.0, 0.0], [0.1, 0.0, 0.5]])
    expected = np.linalg.inv(matrix).sum(axis=0) / np.linalg.inv(matrix).sum()
    for unit in (1e-6, 1.0, 1e3):
        np.testing.assert_allclose(combination_weights(unit * matrix), expected)
    assert combination_weights(np.zeros((2, 2))).tolist() == [1.0, 0.0]
    assert combination_weights(np.array([[3.0]])).tolist() == [1.0]
