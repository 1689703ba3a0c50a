"""The variance of an estimate, row by row of its formula; curves and limits where they end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pnuauc import ClassPrior
from pnuauc.labels import Roles
from pnuauc.metrics import ScoreCounts, auc_estimate, threshold_estimate
from pnuauc.metrics._conditional import (
    REFUTED,
    USUAL,
    USUAL_ROWS,
    Conditional,
    conditional,
    conditionals,
    mixture_limits,
)
from pnuauc.metrics._counts import check_scores
from pnuauc.metrics._interval import satterthwaite, t_quantile
from pnuauc.metrics._moments import PairShares, moments_of, placements
from pnuauc.metrics._proportions import Interval, mover_ratio
from pnuauc.metrics._roc import _roc_method, _times_prior
from tests.conftest import gaussian_scores

# --- V(a) of one estimate -------------------------------------------------------------------------


def projected(role, prior, apart, draws=20_001):
    """Raw projections of (PN, PU, NU) on evenly spaced rows of a role, and their masses.

    Classes alike: every placement is one uniform variable. Apart: positives beat negatives, and
    placements within the own class are uniform.
    """
    v = (np.arange(draws) + 0.5) / draws
    zero, one = np.zeros(draws), np.ones(draws)

    def rows(f_p, f_n):
        f_u = prior * f_p + (1 - prior) * f_n
        return {
            "P": [f_n, f_u, zero], "N": [1 - f_p, zero, 1 - f_u], "U": [zero, 1 - f_p, f_n]
        }[role]  # fmt: skip

    if not apart:
        return np.array(rows(v, v)), one / draws
    positive, negative = np.array(rows(v, one)), np.array(rows(zero, v))
    if role == "U":
        mass = np.r_[prior * one, (1 - prior) * one] / draws
        return np.concatenate([positive, negative], axis=1), mass
    return (positive if role == "P" else negative), one / draws


def by_hand(moments, prior, weights, inflation):
    """(value, apart, spread, df), one role after the other."""
    at = 0.5 if prior is None else prior
    slope = np.array([1.0, 1 / (1 - at), 1 / at])
    offset = np.array([0.0, 0.5 * at / (1 - at), 0.5 * (1 - at) / at])
    value = sum(w * (s * r - o) for w, s, r, o in zip(weights, slope, moments.raw, offset) if w)
    raw = np.array([w * s if w else 0.0 for w, s in zip(weights, slope)])
    fewest = min(n for n in moments.n if n)
    a = (min(max(value, 0.0), 1.0) * fewest + 0.5) / (fewest + 1)
    total_apart = total_spread = above = below = 0.0
    for r, (role, n) in enumerate(zip("PNU", moments.n)):
        alike, apart = (_variance(raw, *projected(role, at, side)) for side in (False, True))
        if n == 0 or alike + apart < 1e-9:
            continue
        seen = n * raw @ moments.by_role[r] @ raw
        span = alike - apart
        if span > 1e-6:
            rows = 4 * a * (1 - a) * n if n > 1 else 0.0
            k = min(max((seen - apart) / (4 * a * (1 - a) * span), 0.0), 3.0)
            k = 3.0 if n == 1 else (rows * k + USUAL_ROWS * USUAL) / (rows + USUAL_ROWS)
            base, rise = apart, 4 * k * span
        else:
            rows = n if n > 1 else 0
            base = (rows * seen + USUAL_ROWS * max(apart, alike)) / (rows + USUAL_ROWS)
            rise = 0.0
        total_apart, total_spread = total_apart + base / n, total_spread + rise / n
        part = (base + rise * a * (1 - a)) / n
        above += part
        below += part**2 / (n - 1 + USUAL_ROWS) if n > 1 else 0.0
    df = above**2 / below if below > 0 else np.inf
    return value, inflation * total_apart, inflation * total_spread, df


def _variance(raw, values, mass):
    found = raw @ values
    return mass @ (found - mass @ found) ** 2


def test_the_constants_of_the_variance():
    assert (USUAL, USUAL_ROWS, REFUTED) == (1.2, 10.0, 0.999)


@pytest.mark.parametrize(
    "sizes",
    [
        *[(12, 30, 200), (1, 40, 300), (25, 1, 90), (9, 14, 1), (1, 1, 5)],
        *[(2, 40, 300), (25, 2, 90), (9, 14, 2), (2, 2, 2)],
    ],
)
@pytest.mark.parametrize("prior", [0.1, 0.45, 0.6])
@pytest.mark.parametrize(
    "weights", [(1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0), (0.3, 0.5, 0.2), (0.8, 0.6, -0.4)]
)
def test_the_variance_of_an_estimate_by_hand(sizes, prior, weights):
    """Also with one or two rows of a role, and where U scatters more with the classes apart."""
    y, scores, _ = gaussian_scores(3, sizes, prior, distance=1.3, digits=1)
    moments = moments_of(ScoreCounts.from_rows(y, scores))
    found = conditional(moments, prior, np.array(weights), 1.5)
    expected = by_hand(moments, prior, weights, 1.5)
    made = (found.value, found.apart, found.spread, found.df)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-7)


def test_the_variance_of_labelled_pairs_by_hand():
    y, scores, _ = gaussian_scores(4, (8, 21, 0), 0.5, distance=2.0)
    moments = moments_of(ScoreCounts.from_rows(y, scores))
    found = conditional(moments, None, np.eye(3)[0])
    expected = by_hand(moments, None, (1.0, 0, 0), 1.0)
    made = (found.value, found.apart, found.spread, found.df)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-7)


def test_one_row_of_each_class_has_infinite_freedom():
    y, scores = [1, 0], [2.0, 1.0]
    moments = moments_of(ScoreCounts.from_rows(y, scores))
    found = conditional(moments, None, np.eye(3)[0])
    assert (found.value, found.df) == (1.0, np.inf)
    # the largest variance of a placement, three times a (1 - a) / 3, of either row
    assert (found.apart, found.spread) == pytest.approx((0.0, 2.0))


def test_several_priors_at_once_are_each_alone():
    y, scores, _ = gaussian_scores(5, (10, 20, 100), 0.3, digits=1)
    moments, weights = moments_of(ScoreCounts.from_rows(y, scores)), np.array([0.5, 0.3, 0.2])
    priors = np.array([0.05, 0.3, 0.7])
    for found, prior in zip(conditionals(moments, priors, weights, 2.0), priors):
        alone = conditional(moments, float(prior), weights, 2.0)
        assert vars(found) == pytest.approx(vars(alone))
        once = conditional(moments, float(prior), weights)  # without a factor: half of it
        assert (2 * once.apart, 2 * once.spread) == pytest.approx((found.apart, found.spread))
    for found, again in zip(*(conditionals(moments, priors, weights, *k) for k in ((), (1.0,)))):
        assert vars(found) == vars(again)


def test_placements_are_midranks():
    role = np.array([1, 2, 0, 3, 1])
    rows = np.repeat(np.arange(5), role)
    expected = [((rows < k).sum() + 0.5 * (rows == k).sum()) / 7 for k in range(5)]
    np.testing.assert_allclose(placements(role), expected)
    assert placements(np.zeros(3, dtype=int)).tolist() == [0.0, 0.0, 0.0]


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-0.2, -0.01, 0.0, 0.4, 1.0, 1.02, 1.2])
@pytest.mark.parametrize(("apart", "spread"), [(0.0, 0.05), (0.002, 0.01), (0.001, 0.0)])
@pytest.mark.parametrize("df", [4.0, np.inf])
def test_limits_hold_every_auc_within_t_errors(value, apart, spread, df):
    """Against a fine grid of [0, 1]: which a have (value - a)^2 <= t^2 V(a)?"""
    grid = np.linspace(0, 1, 100_001)
    t = stats.t.ppf(0.95, df) if np.isfinite(df) else stats.norm.ppf(0.95)
    inside = grid[(value - grid) ** 2 <= t**2 * (apart + spread * grid * (1 - grid)) + 1e-15]
    found = Conditional(value, apart, spread, df).limits(0.9)
    if not len(inside):
        assert found is None
    else:
        assert found == pytest.approx((inside[0], inside[-1]), abs=2e-5)


@pytest.mark.parametrize("value", [-0.3, -0.05, 0.5, 1.05, 1.3])
def test_confidence_never_falls_along_the_aucs(value):
    """It is t((a - value) / sqrt(V(a))), but for what lies behind an estimate outside [0, 1]."""
    part, grid = Conditional(value, 0.0005, 0.05, 12.0), np.linspace(0, 1, 501)
    found = part.distribution(grid)
    plain = stats.t.cdf((grid - value) / np.sqrt(0.0005 + 0.05 * grid * (1 - grid)), 12)
    assert (np.diff(found) >= 0).all()
    if 0 <= value <= 1:
        np.testing.assert_allclose(found, plain)
    elif value < 0:
        np.testing.assert_allclose(found, [plain[k:].min() for k in range(501)])
    else:
        np.testing.assert_allclose(found, [plain[: k + 1].max() for k in range(501)])


def test_where_the_mixture_refutes_every_auc_the_limits_of_each_prior_stand_in():
    """Estimates of 1.1: confidence that the AUC is at most 1 is below 5%, not below .05%."""
    outside = [Conditional(1.1, 0.002, 0.0, np.inf), Conditional(1.12, 0.002, 0.0, np.inf)]
    inside = [part.distribution(np.ones(1))[0] for part in outside]
    assert 0.0005 < inside[1] < inside[0] < 0.05
    mass = np.array([0.4, 0.6])
    low, high, kept = mixture_limits(outside, mass, 0.9)
    np.testing.assert_allclose(kept, mass * inside / (mass @ inside), rtol=1e-6)
    assert [part.limits(0.9) for part in outside] == [None, None]
    wider = np.array([part.limits(REFUTED) for part in outside])
    assert (low, high) == pytest.approx(tuple(kept @ wider))
    # one that the level allows by itself keeps its own limits
    mixed = [Conditional(1.07, 0.002, 0.0, np.inf), outside[1]]
    sure = np.array([0.05, 0.95])
    found = mixture_limits(mixed, sure, 0.9)
    each = np.array([mixed[0].limits(0.9), mixed[1].limits(REFUTED)])
    assert each[0] is not None
    assert found[:2] == pytest.approx(tuple(found[2] @ each))
    assert mixture_limits([Conditional(1.16, 0.002, 0.0, np.inf)], np.ones(1), 0.9) is None


@pytest.mark.parametrize(("share", "told"), [(0.6, False), (0.65, True)])
def test_priors_are_refuted_together_where_half_a_thousandth_is_left(share, told):
    """One prior leaves .0008 of confidence to AUCs up to 1, the other none."""
    value = 1 - np.sqrt(0.002) * stats.norm.ppf(0.0008)
    parts = [Conditional(value, 0.002, 0.0, np.inf), Conditional(3.0, 0.002, 0.0, np.inf)]
    found = mixture_limits(parts, np.array([share, 1 - share]), 0.9)
    assert (found is not None) is told
    if told:
        assert found[:2] == pytest.approx(parts[0].limits(REFUTED))
        np.testing.assert_allclose(found[2], [1.0, 0.0], atol=1e-9)


def test_freedom_of_a_variance_summed_over_roles():
    parts = np.array([0.002, 0.001, 0.0005])
    by_role = sum(v**2 / (m - 1) for v, m in zip(parts, (2, 3, 100)))
    assert satterthwaite(parts, (2, 3, 100)) == pytest.approx(0.0035**2 / by_role)
    # one row: its part counts, but as known
    rest = 0.001**2 / 2 + 0.0005**2 / 99
    assert satterthwaite(parts, (1, 3, 100)) == pytest.approx(0.0035**2 / rest)
    assert satterthwaite(parts, (1, 1, 1)) == np.inf
    assert satterthwaite(np.zeros(3), (5, 5, 5)) == np.inf


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_quantiles_are_two_sided(level):
    for df in (1.0, 7.5, 1e6):
        assert t_quantile(level, df) == pytest.approx(stats.t.ppf(0.5 + level / 2, df))
    assert t_quantile(level, np.inf) == pytest.approx(stats.norm.ppf(0.5 + level / 2))


# --- curves and thresholds ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_negative", "prior", "method"),
    [(9, 0.2, "pu"), (10, 0.2, "pn"), (9, None, "pn"), (9, 1.0, "pn"), (0, 0.2, "pu")],
)
def test_a_curve_is_read_off_unlabelled_rows_where_negatives_are_a_tenth(n_negative, prior, method):
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), [5, n_negative, 100]))
    known = None if prior is None else ClassPrior.known(prior)
    assert _roc_method("auto", roles, known) == method
    with pytest.raises(ValueError, match="At prior=1"):
        _roc_method("pu", roles, ClassPrior.known(1.0))


def test_nothing_bounds_a_ratio_whose_denominator_may_be_nothing():
    assert mover_ratio((0.5, 0.3, 0.7), (0.2, 0.0, 0.3))[1] == np.inf
    assert mover_ratio((0.5, 0.3, 0.7), (0.2, 0.1, 0.4))[0] == 0.0
    assert mover_ratio((0.5, 0.3, 0.7), (0.2, 0.1, 0.5))[0] == 0.0
    low, high = mover_ratio((0.5, 0.3, 0.7), (0.2, 0.1, 0.39))
    assert 0 < low < 2.5 < high < np.inf
    assert mover_ratio((0.0, 0.0, 0.2), (0.2, 0.1, 0.3))[0] == 0.0


def test_precision_at_the_ends_of_the_lift():
    prior = ClassPrior(0.2, 0.1, 0.3, 0.95, 0.05)
    factor = np.exp(stats.norm.ppf(0.975) * 0.05 / 0.2)
    none = _times_prior(Interval(0.0, 0.0, 2.0), prior, 0.95)
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(0.2 * 2.0 * factor)
    open_end = _times_prior(Interval(2.0, 0.0, np.inf), prior, 0.95)
    assert (open_end.value, open_end.low, open_end.high) == (0.4, 0.0, 1.0)
    sure = _times_prior(Interval(8.0, 6.0, 9.0), prior, 0.95)
    assert (sure.value, sure.high) == (1.0, 1.0)
    assert sure.low == pytest.approx(
        1.6 * np.exp(-np.hypot(np.log(6 / 8), stats.norm.ppf(0.975) * 0.25))
    )
    nothing = _times_prior(Interval(2.0, 1.0, 3.0), ClassPrior.known(0.0), 0.95)
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, 0.0)


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


# --- scores ---------------------------------------------------------------------------------------


def test_whole_numbers_that_floats_cannot_tell_apart():
    large = 2**53
    assert check_scores(np.array([large, large - 1])).tolist() == [2.0**53, 2.0**53 - 1]
    assert check_scores(np.array([large, large + 2])).tolist() == [2.0**53, 2.0**53 + 2]
    for wrong in ([large, large + 1], [-large, -large - 1]):
        with pytest.raises(ValueError, match="floats cannot tell apart"):
            check_scores(np.array(wrong))
    assert len(check_scores(np.array([], dtype=int))) == 0


def test_shapes_of_scores():
    assert check_scores(np.array([[1.0], [2.0]])).tolist() == [1.0, 2.0]
    assert check_scores(["1", "2.5"]).tolist() == [1.0, 2.5]
    for wrong in (np.ones((2, 2)), np.ones((1, 2)), np.ones((2, 1, 1)), np.float64(1.0)):
        with pytest.raises(ValueError, match="one-dimensional"):
            check_scores(wrong)
    with pytest.raises(ValueError, match="first in row 1"):
        check_scores([0.0, np.nan, np.nan])
    with pytest.raises(ValueError, match="has 2 rows but y has 3"):
        check_scores([0.0, 1.0], 3)


@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined", "pu_raw", "nu_raw"])
def test_equal_scores_are_worth_one_half_for_certain(method):
    y = [1] * 3 + [0] * 4 + [None] * 5
    found = auc_estimate(y, np.ones(12), 0.3, method)
    assert (found.value, found.low, found.high, found.std_error) == (0.5, 0.5, 0.5, 0.0)
    assert found.method == method
    assert sum(found.weights.values()) == 1.0
    moved = auc_estimate(y, np.r_[np.ones(11), 2.0], 0.3, "pu_raw")
    assert moved.value == pytest.approx(0.4)
    assert moved.low < 0.4 < moved.high


def test_pair_shares_of_roles_that_are_not_there():
    counts = ScoreCounts.from_rows([1, 1, None, None], [2.0, 1.0, 1.5, 0.0])
    shares: PairShares = moments_of(counts)
    assert shares.n == (2, 0, 2)
    assert np.isnan(shares.raw[[0, 2]]).all()
    assert shares.raw[1] == 0.75
    assert not shares.by_role[1].any()
