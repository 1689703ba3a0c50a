"""Cases of the metrics that are seldom met: weights near the ends, counts that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pnuauc import ClassPrior
from pnuauc.metrics import (
    ScoreCounts,
    auc_estimate,
    compare_auc,
    prior_sensitivity,
    threshold_estimate,
)
from pnuauc.metrics._moments import moments_of, raw_to_auc
from pnuauc.metrics._roc import _cut, _monotone, _share_above, _thresholds
from pnuauc.metrics._weights import combination_weights, steadied_covariance, weigh
from tests.conftest import gaussian_scores


@pytest.fixture
def counts():
    y, scores, _ = gaussian_scores(0, (20, 30, 120), 0.3, digits=1)
    return ScoreCounts.from_rows(y, scores)


@pytest.mark.parametrize(("auc", "same"), [(0.98, 0.995), (0.02, 0.0), (0.7, 0.7004)])
def test_the_model_of_the_weights_has_an_auc_between_two_and_98_per_cent(counts, auc, same):
    """Rounded to thousandths, so that it is computed once."""
    one, other = (steadied_covariance(counts, 0.3, value) for value in (auc, same))
    np.testing.assert_array_equal(one, other)
    for changed in (0.97, 0.03, 0.702):
        assert not np.array_equal(one, steadied_covariance(counts, 0.3, changed))


def test_counts_are_added_to_counts_alone(counts):
    with pytest.raises(TypeError):
        counts + 3
    with pytest.raises(ValueError, match="same anchors"):
        counts + ScoreCounts.from_rows([1, 0], [0.123, 0.456])
    twice = counts + counts
    for name in ("positive", "negative", "unlabeled"):
        np.testing.assert_array_equal(getattr(twice, name), 2 * getattr(counts, name))
    assert (twice.n_positive, twice.n_negative, twice.n_unlabeled) == (40, 60, 240)


def test_weights_of_a_singular_covariance():
    """Least squares where it is singular; the smallest variance where that makes no sense."""
    np.testing.assert_allclose(combination_weights(np.ones((2, 2))), [0.5, 0.5])
    np.testing.assert_allclose(combination_weights(np.diag([1.0, 4.0])), [0.8, 0.2])
    wrong = np.array([[-1.0, 0.0], [0.0, -4.0]])
    assert combination_weights(wrong).tolist() == [0.0, 1.0]
    assert combination_weights(-wrong).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("shares", "kept"),
    [((0.021, 0.979), "pn pu nu"), ((0.019, 0.5), "pn pu"), ((0.5, 0.981), "pn nu"),
     ((0.019, 0.981), "pn")],
)  # fmt: skip
def test_estimates_that_divide_by_less_than_a_fiftieth_are_left_out(counts, shares, kept):
    prior = ClassPrior.from_posterior(shares, [1.0, 1.0])
    found = weigh(counts, moments_of(counts), prior)
    used = [name for name, w in zip(("pn", "pu", "nu"), found.weights) if w]
    assert used == kept.split()
    assert (found.note is None) is (len(used) == 3)
    left = [name.upper() for name in ("pu", "nu") if name not in used]
    assert found.note is None or found.note.startswith(" and ".join(left))
    known = weigh(counts, moments_of(counts), ClassPrior.known(0.001))
    assert known.note is None
    assert np.count_nonzero(known.weights) == 3


def test_weights_are_those_of_the_mean_covariance_and_the_scatter_over_the_prior(counts):
    prior = ClassPrior.from_posterior([0.2, 0.4], [1.0, 3.0])
    moments = moments_of(counts)
    slope, offset = raw_to_auc(prior.shares)
    values = slope * moments.raw - offset
    mass = prior.weights
    guess = values[:, 0] @ mass
    total = sum(m * steadied_covariance(counts, t, guess) for t, m in zip(prior.shares, mass))
    centred = values - mass @ values
    matrix = total + (centred * mass[:, None]).T @ centred
    expected = np.linalg.solve(matrix, np.ones(3))
    found = weigh(counts, moments, prior).weights
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-6)


# --- curves ---------------------------------------------------------------------------------------


def test_thresholds_are_thinned_to_half_of_the_points_for_each_role():
    p, other = np.arange(10.0), np.arange(100.0, 140.0)
    found = _thresholds(p, other, 20)
    kept = other[np.linspace(0, 39, 10).astype(int)]
    assert found[0] == np.inf
    assert found[1:].tolist() == sorted([*p, *kept], reverse=True)
    few = _thresholds(p, other, 2)
    assert few[1:].tolist() == [139.0, 100.0, 9.0, 0.0]
    assert _thresholds(p, p, 20)[1:].tolist() == p[::-1].tolist()


def test_shares_above_count_rows_at_the_threshold():
    ordered = np.array([1.0, 2.0, 2.0, 5.0])
    thresholds = np.array([np.inf, 5.0, 2.0, 1.5, 0.0])
    assert _share_above(ordered, thresholds).tolist() == [0.0, 0.25, 0.75, 0.75, 1.0]
    endless = np.array([1.0, np.inf])
    assert _share_above(endless, np.array([np.inf, np.inf, 1.0])).tolist() == [0.0, 0.5, 1.0]


def test_a_rate_that_falls_is_levelled():
    assert _monotone(np.array([0.2, 0.1, 0.4, 0.3, 0.9])) == pytest.approx([0, 0.15, 0.35, 0.35, 1])
    assert _monotone(np.array([0.0, -0.5, 1.5, 1.0])) == pytest.approx([0.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize(("k", "cut"), [(1, 9.0), (2, 7.0), (3, 7.0), (5, 1.0)])
def test_the_kth_highest_score(k, cut):
    u = np.array([7.0, 1.0, 9.0, 7.0, 3.0])
    assert _cut(u, k, None) == cut
    assert _cut(u, None, 0.25) == 0.25
    for wrong in ((None, None), (1, 1.0), (0, None), (6, None)):
        with pytest.raises(ValueError, match="k"):
            _cut(u, *wrong)


@pytest.mark.parametrize(
    ("p", "u", "rate"),
    [([0, 0, 5, 5], [5] * 10, 1.0), ([9, 9, 9], [9, *[0] * 9], 0.0), ([5, 0], [5, 0], 0.5)],
)
def test_a_false_positive_rate_lies_between_nothing_and_all(p, u, rate):
    """(1 - .25) / .5 is 1.5, (.1 - .5) / .5 is -.8: both are moved inside, as are the limits."""
    y = [1] * len(p) + [None] * len(u)
    found = threshold_estimate(y, [*p, *u], 0.5, threshold=5.0).false_positive_rate
    assert found.value == rate
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert (found.high == 1.0) is (rate > 0)
    assert (found.low == 0.0) is (rate < 1)


@pytest.mark.parametrize("sizes", [(1, 9, 40), (9, 1, 40), (1, 1, 40), (9, 9, 0), (9, 0, 40)])
def test_one_method_along_a_curve_of_priors(sizes):
    """All three roles are combined, if only by one row; others take what there is."""
    y, scores, _ = gaussian_scores(3, sizes, 0.3, digits=1)
    codes = {"positive_label": 1.0} if sizes[1] == 0 else {}
    found = prior_sensitivity(y, scores, [0.2, 0.3], **codes)
    method = "combined" if min(sizes) else "pn" if sizes[1] else "pu"
    assert found.method == method
    expected = [auc_estimate(y, scores, t, method, **codes).value for t in (0.2, 0.3)]
    np.testing.assert_allclose(found.value, expected)


# --- what is told ---------------------------------------------------------------------------------


def test_an_estimate_outside_is_moved_to_the_nearest_auc_and_told():
    y = [1] * 12 + [None] * 40
    scores = np.r_[np.arange(100.0, 112.0), np.arange(40.0)]
    found = auc_estimate(y, scores, 0.05, "pu")
    assert found.unbiased == pytest.approx((1 - 0.025) / 0.95)
    assert (found.value, found.high) == (1.0, 1.0)
    assert any("nearest AUC is 1" in note for note in found.notes)


def test_a_difference_without_variance_is_open():
    y = [1, 1, 0, 0]
    same = compare_auc(y, [4, 3, 2, 1], [40, 30, 20, 10])
    assert (same.difference, same.p_value, same.low, same.high) == (0.0, 1.0, 0.0, 0.0)
    assert "rank the rows alike" in same.notes[-1]
    turned = compare_auc(y, [4, 3, 2, 1], [1, 2, 3, 4])
    assert (turned.difference, turned.p_value, turned.low, turned.high) == (1.0, 1.0, -1.0, 1.0)
    assert "same difference" in turned.notes[-1]


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_limits_of_a_difference_follow_the_level(level):
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [30, 40])
    a, b = rng.normal(size=(2, 70)) + y
    found = compare_auc(y, a, b, level=level)
    half = (found.high - found.low) / 2
    assert found.difference == pytest.approx((found.high + found.low) / 2)
    df = stats.t.isf(0.5 - level / 2, 1e9)
    assert half / found.std_error == pytest.approx(df, rel=0.05)
