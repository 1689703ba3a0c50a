"""Roles of one or two rows, priors that may be 0 or 1, limits of a curve: by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pnuauc import ClassPrior
from pnuauc.labels import Roles
from pnuauc.metrics import (
    RoleStratifiedKFold,
    RoleStratifiedShuffleSplit,
    ScoreCounts,
    auc_estimate,
    compare_auc,
    prior_sensitivity,
    roc_curve_estimate,
)
from pnuauc.metrics._compare import LabeledPairs, _on_average, _slopes
from pnuauc.metrics._conditional import conditional, mixture_limits
from pnuauc.metrics._estimate import unbiased_auc
from pnuauc.metrics._moments import moments_of, raw_to_auc
from pnuauc.metrics._prior import known_prior
from pnuauc.metrics._proportions import mover_difference, wilson
from pnuauc.metrics._roc import _corrected_fpr
from pnuauc.metrics._weights import MODEL_ROWS, _binormal, steadied_covariance
from tests.conftest import gaussian_scores, wins

PARTS = ((0, 1), (0, 2), (2, 1))  # winner and loser of PN, PU, NU


def drawn(sizes, seed=0, prior=0.3):
    y, scores, _ = gaussian_scores(seed, sizes, prior, 1.0, digits=1)
    ends = np.cumsum(sizes)[:-1]
    return y, scores, np.split(scores, ends)


# --- few rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes", [(1, 6, 9), (6, 1, 9), (6, 9, 1), (1, 1, 9), (2, 1, 1), (1, 1, 1), (3, 0, 1)]
)
def test_moments_of_roles_with_single_rows(sizes):
    """Pair means and the covariance of row means; sqrt(A (1 - A)) of a single row."""
    y, scores, rows = drawn(sizes)
    codes = {"positive_label": 1.0} if sizes[1] == 0 else {}
    found = moments_of(ScoreCounts.from_rows(y, scores, **codes))
    raw = np.full(3, np.nan)
    for k, (winner, loser) in enumerate(PARTS):
        if sizes[winner] and sizes[loser]:
            raw[k] = wins(rows[winner], rows[loser]).mean()
    np.testing.assert_allclose(found.raw, raw)
    for role, n in enumerate(sizes):
        projections = np.zeros((3, n))
        for k, (winner, loser) in enumerate(PARTS):
            if role in (winner, loser) and sizes[winner] and sizes[loser]:
                pairs = wins(rows[winner], rows[loser])
                projections[k] = pairs.mean(axis=1 if role == winner else 0)
        if n >= 2:
            expected = np.cov(projections) / n
            known = [k for k in range(3) if np.isfinite(raw[k])]
            expected = np.atleast_2d(expected)[np.ix_(known, known)]
            np.testing.assert_allclose(found.by_role[role][np.ix_(known, known)], expected)
        elif n == 1:
            spread = np.array([np.sqrt(a * (1 - a)) if role in part and np.isfinite(a) else 0.0
                               for a, part in zip(raw, PARTS)])  # fmt: skip
            np.testing.assert_allclose(found.by_role[role], np.outer(spread, spread), atol=1e-12)
        else:
            assert not found.by_role[role].any()


FOUR, FIVE = [4.0, 6.0, 7.0, 8.0], [3.0, 4.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize(
    ("rows", "single", "shares"),
    [
        (([5.0], FOUR, FIVE), 0, (1 / 4, 2 / 5, 0)), ((FOUR, [5.0], FIVE), 1, (3 / 4, 0, 3 / 5)),
        ((FOUR, FOUR, [5.0]), 2, (0, 3 / 4, 1 / 4)),
    ],
)  # fmt: skip
def test_a_single_row_in_the_midst_of_the_others(rows, single, shares):
    """It wins and loses: both pairs that it takes part in have a spread, and their product."""
    y = np.repeat([1.0, 0.0, np.nan], [len(part) for part in rows])
    found = moments_of(ScoreCounts.from_rows(y, np.concatenate(rows)))
    spread = np.sqrt(np.array(shares) * (1 - np.array(shares)))
    assert np.count_nonzero(spread) == 2
    np.testing.assert_allclose(found.raw[spread > 0], np.array(shares)[spread > 0])
    np.testing.assert_allclose(found.by_role[single], np.outer(spread, spread))


@pytest.mark.parametrize("sizes", [(2, 5, 30), (5, 2, 30), (30, 40, 2), (1, 2, 30), (2, 1, 1)])
@pytest.mark.parametrize("prior", [0.2, 0.6])
def test_a_steadied_covariance_by_hand(sizes, prior):
    """n rows against 100 of the model; one row shows nothing, two show something."""
    y, scores, (p, n, u) = drawn(sizes)
    rest = 1 - prior
    found = steadied_covariance(ScoreCounts.from_rows(y, scores), prior, 0.7)
    model = _binormal(0.7, prior)
    expected = np.zeros((3, 3))
    for role, rows in enumerate((p, n, u)):
        f_p, f_n = (wins(rows, other).mean(axis=1) for other in (p, n))
        f_u, zero = prior * f_p + rest * f_n, np.zeros(len(rows))
        values = [
            [f_n, f_u / rest, zero], [1 - f_p, zero, (1 - f_u) / prior],
            [zero, (1 - f_p) / rest, f_n / prior],
        ][role]  # fmt: skip
        k = len(rows)
        share = k / (k + MODEL_ROWS) if k > 1 else 0.0
        sample = np.cov(values) if k > 1 else np.zeros((3, 3))
        expected += (share * sample + (1 - share) * model[role]) / k
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert MODEL_ROWS == 100


def test_a_comparison_of_single_rows():
    """One positive: its own difference is its spread, and it counts as known."""
    y = [1] + [0] * 6 + [None] * 8
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 15))
    found = compare_auc(y, a, b, method="pn")
    gap = wins(a[:1], a[1:7])[0] - wins(b[:1], b[1:7])[0]
    variance = gap.mean() ** 2 + gap.var(ddof=1) / 6
    assert found.difference == pytest.approx(gap.mean())
    assert found.std_error == pytest.approx(np.sqrt(variance))
    df = variance**2 / ((gap.var(ddof=1) / 6) ** 2 / 5)
    expected = 2 * stats.t.sf(abs(gap.mean()) / np.sqrt(variance), df)
    assert found.p_value == pytest.approx(expected)


# --- priors that may be 0 or 1 --------------------------------------------------------------------

ENDS = ClassPrior.from_posterior([0.0, 0.2, 0.5, 1.0], [1.0, 2.0, 3.0, 2.0])


def test_shares_at_which_nothing_is_defined_give_their_mass_away():
    for weights, kept in (
        ((0, 1, 0), [0, 1, 2]),
        ((0, 0, 1), [1, 2, 3]),
        ((0.5, 0.3, 0.2), [1, 2]),
    ):
        shares, mass, slopes = _slopes("combined", ENDS, np.array(weights, dtype=float))
        np.testing.assert_allclose(shares, ENDS.shares[kept])
        np.testing.assert_allclose(mass, ENDS.weights[kept] / ENDS.weights[kept].sum())
        np.testing.assert_allclose(slopes, np.nan_to_num(raw_to_auc(shares)[0]))
    for method, prior in (("pn", ENDS), ("pu_raw", ENDS), ("pu", None)):
        shares, mass, slopes = _slopes(method, prior, np.array([1.0, 0, 0]))
        assert np.isnan(shares).all()
        assert (mass.tolist(), slopes.tolist()) == ([1.0], [[1.0, 1.0, 1.0]])
    with pytest.raises(ValueError, match="undefined at prior=1"):
        _slopes("pu", ClassPrior.known(1.0), np.array([0, 1.0, 0]))


@pytest.mark.parametrize("method", ["pu", "nu"])
def test_a_difference_under_a_prior_that_may_be_at_an_end(method):
    """Values over the shares at which they are defined, each as far as no model refutes it.

    They subtract to the difference; error and p-value are those of the raw difference times the
    mean slope.
    """
    rng = np.random.default_rng(1)
    sizes = (20, 25, 60)
    y = np.repeat([1.0, 0.0, np.nan], sizes)
    a, b = rng.normal(size=(2, 105)) + np.outer([1.0, 0.3], np.nan_to_num(y))
    found = compare_auc(y, a, b, ENDS, method)
    k = 1 if method == "pu" else 2
    both = [moments_of(ScoreCounts.from_rows(y, s)) for s in (a, b)]
    raws = [moments.raw[k] for moments in both]
    kept = [0, 1, 2] if method == "pu" else [1, 2, 3]
    mass = ENDS.weights[kept].copy()
    for moments in both:
        parts = [conditional(moments, share, np.eye(3)[k]) for share in ENDS.shares[kept]]
        mass *= [np.diff(part.distribution(np.array([0.0, 1.0])))[0] for part in parts]
    mass /= mass.sum()
    slope, offset = (part[:, k] for part in raw_to_auc(ENDS.shares[kept]))
    each = slope * (raws[0] - raws[1])
    own = [mass @ np.clip(slope * raw - offset, 0, 1) for raw in raws]
    assert (found.value_a, found.value_b) == pytest.approx(tuple(own))
    assert found.difference == pytest.approx(own[0] - own[1])
    scatter = np.sqrt(mass @ (each - mass @ each) ** 2)
    assert found.std_error > scatter
    raw = compare_auc(y, a, b, None, f"{method}_raw")
    assert found.std_error == pytest.approx(np.hypot(raw.std_error * (mass @ slope), scatter))
    assert found.p_value == pytest.approx(raw.p_value)


def test_an_estimate_under_a_prior_that_may_be_one():
    """PU at the shares below 1: its mean over what is left of them."""
    y, scores, _ = drawn((30, 0, 200), prior=0.25)
    y = Roles(np.where(np.isnan(y), -1, 1).astype(np.int8))
    prior = ClassPrior.from_posterior([0.2, 0.3, 1.0], [1.0, 1.0, 2.0])
    found = auc_estimate(y, scores, prior, "pu")
    without = auc_estimate(y, scores, ClassPrior.from_posterior([0.2, 0.3], [1.0, 1.0]), "pu")
    assert (found.value, found.low, found.high) == pytest.approx(
        (without.value, without.low, without.high)
    )
    assert found.unbiased == pytest.approx(
        conditional(moments_of(ScoreCounts.from_rows(y, scores)), prior.value, np.eye(3)[1]).value
    )


@pytest.mark.parametrize("method", ["auto", "pn", "pu", "nu", "combined", "pu_raw", "nu_raw"])
def test_an_unbiased_auc_is_linear_in_the_pair_shares(method):
    y, scores, (p, n, u) = drawn((12, 15, 60))
    counts = ScoreCounts.from_rows(y, scores)
    prior = 0.3
    pn, pu, un = wins(p, n).mean(), wins(p, u).mean(), wins(u, n).mean()
    single = {
        "pn": pn, "pu_raw": pu, "nu_raw": un,
        "pu": (pu - prior / 2) / (1 - prior), "nu": (un - (1 - prior) / 2) / prior,
    }  # fmt: skip
    found = unbiased_auc(counts, prior, method)
    if method in single:
        assert found == pytest.approx(single[method])
    else:
        weights = auc_estimate(y, scores, prior, "combined").weights
        total = sum(w * single[name] for name, w in weights.items())
        assert found == pytest.approx(total)
    assert unbiased_auc(counts, (0.2, 0.4), method) == pytest.approx(found)


def test_a_pair_is_an_interval_of_95_per_cent_unless_told():
    for level in (0.95, 0.8):
        read = known_prior((0.1, 0.3)) if level == 0.95 else known_prior((0.1, 0.3), level)
        assert (read.value, read.interval, read.level) == (0.2, (0.1, 0.3), level)
        assert read.std_error == pytest.approx(0.1 / stats.norm.ppf(0.5 + level / 2))
    with pytest.raises(ValueError, match="needs rows to estimate it from"):
        known_prior("auto")


def test_values_of_a_model_are_moved_inside():
    weights, shares, mass = np.array([0, 1.0, 0]), np.array([0.1, 0.8]), np.array([0.5, 0.5])
    raw = np.array([np.nan, 0.9, np.nan])
    each = [(0.9 - 0.05) / 0.9, (0.9 - 0.4) / 0.2]
    assert each[1] > 1
    assert _on_average("pu", weights, raw, shares, mass) == pytest.approx((each[0] + 1.0) / 2)
    known = np.array([np.nan])
    assert _on_average("pu_raw", weights, raw, known, np.ones(1)) == pytest.approx(0.9)


# --- the limits of a curve ------------------------------------------------------------------------


def test_limits_of_a_curve_from_labelled_rows_are_wilsons():
    y, scores, (p, n, _) = drawn((25, 40, 0))
    found = roc_curve_estimate(y, scores, level=0.9)
    for t, *rates in zip(found.thresholds, found.fpr, found.fpr_low, found.fpr_high,
                         found.tpr, found.tpr_low, found.tpr_high):  # fmt: skip
        for rows, (rate, low, high) in ((n, rates[:3]), (p, rates[3:])):
            share = float(np.mean(rows >= t))
            limits = [float(end) for end in wilson(np.array(share), len(rows), 0.9)]
            if rows is n and t == found.thresholds[-1]:
                assert rate == 1.0
                continue
            assert rate == pytest.approx(share)
            assert (low, high) == pytest.approx((min(limits[0], rate), max(limits[1], rate)))
    assert (found.fpr_low[5:] > 0).any()
    assert (np.diff(found.fpr_low) >= 0).all()
    assert (np.diff(found.fpr_high) >= 0).all()


def test_limits_of_a_curve_from_unlabelled_rows_stay_in_order():
    """The lowest limit of all thresholds below, the highest of all above; then around the curve."""
    y, scores, (p, _, u) = drawn((20, 0, 150))
    roles = Roles(np.where(np.isnan(y), -1, 1).astype(np.int8))
    prior = ClassPrior(0.3, 0.2, 0.4, 0.95, 0.05)
    found = roc_curve_estimate(roles, scores, prior, level=0.9)
    m = len(found.thresholds)
    rates = [np.array([np.mean(rows >= t) for t in found.thresholds]) for rows in (p, u)]
    with_limits = [(rate, *wilson(rate, len(rows), 0.9)) for rate, rows in zip(rates, (p, u))]
    _, (low, high) = _corrected_fpr(*with_limits, prior, 0.9)
    for k in range(m):
        lowest = min(np.clip(low[j], 0, 1) for j in range(k, m))
        highest = max(np.clip(high[j], 0, 1) for j in range(k + 1))
        assert found.fpr_low[k] == pytest.approx(min(lowest, found.fpr[k]))
        assert found.fpr_high[k] == pytest.approx(max(highest, found.fpr[k]))
    assert found.fpr_low[-1] > 0.5
    assert found.fpr_high[0] < 0.5


def test_a_corrected_rate_and_its_limits():
    prior = ClassPrior(0.3, 0.2, 0.4, 0.95, 0.05)
    p, u = (0.8, 0.7, 0.9), (0.4, 0.35, 0.45)
    fpr, (low, high) = _corrected_fpr(*(tuple(map(np.array, v)) for v in (p, u)), prior, 0.9)
    assert fpr == pytest.approx((0.4 - 0.24) / 0.7)
    ends = mover_difference(u, tuple(0.3 * v for v in p))
    extra = stats.norm.ppf(0.95) * 0.05 * 0.4 / 0.49
    assert low == pytest.approx(fpr - np.hypot(fpr - ends[0] / 0.7, extra))
    assert high == pytest.approx(fpr + np.hypot(ends[1] / 0.7 - fpr, extra))


# --- rows in folds --------------------------------------------------------------------------------


def test_projections_of_a_column_pair():
    y, scores, (p, n, u) = drawn((6, 8, 40))
    labelled = ~np.isnan(y)
    roles = Roles(y[labelled].astype(np.int8))
    pair = LabeledPairs(roles, scores[labelled], -scores[labelled])
    counted = pair.count(u, -u)
    on_p, on_n = pair.projections(pair.a, counted.cells[0])
    np.testing.assert_allclose(on_p, [wins(p, n).mean(1), wins(p, u).mean(1), np.zeros(6)])
    np.testing.assert_allclose(on_n, [wins(p, n).mean(0), np.zeros(8), wins(u, n).mean(0)])
    halves = pair.count(u[:15], -u[:15]) + pair.count(u[15:], -u[15:])
    np.testing.assert_array_equal(halves.cells[1], counted.cells[1])
    np.testing.assert_allclose(halves.spread.scatter, counted.spread.scatter)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_folds_need_as_many_rows_of_every_role(n):
    y = [1] * n + [0] * 20 + [None] * 30
    folds = list(RoleStratifiedKFold(n).split(y, y))
    assert [sum(i < n for i in test) for _, test in folds] == [1] * n
    with pytest.raises(ValueError, match=f"needs at least {n + 1} rows"):
        next(RoleStratifiedKFold(n + 1).split(y, y))
    splits = RoleStratifiedShuffleSplit(3, test_size=0.5, random_state=0)
    for train, test in splits.split(y, y):
        assert not set(train) & set(test)
        assert min(train) < n
        assert min(test) < n


# --- what an estimate is made of ------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.0, 1.7])
@pytest.mark.parametrize("sizes", [(12, 15, 60), (1, 5, 8), (3, 1, 2), (6, 7, 1)])
def test_raw_shares_are_aucs_of_two_samples(sizes, factor):
    """P against U read as P against N, and U against N as P against N: all the same."""
    y, scores, (p, n, u) = drawn(sizes)
    for method, winners, losers in (("pu_raw", p, u), ("nu_raw", u, n)):
        found = auc_estimate(y, scores, None, method, 0.9, variance_factor=factor)
        two = np.repeat([1, 0], [len(winners), len(losers)])
        plain = auc_estimate(two, np.r_[winners, losers], None, "pn", 0.9, variance_factor=factor)
        for name in ("value", "std_error", "low", "high", "unbiased", "level"):
            assert getattr(found, name) == pytest.approx(getattr(plain, name)), name
        assert found.weights == {method.removesuffix("_raw"): 1.0}
        assert (found.n_positive, found.n_negative, found.n_unlabeled) == sizes
        assert found.prior is None


@pytest.mark.parametrize("method", ["pu", "nu", "combined"])
def test_an_unsure_prior_is_mixed_over_its_nodes(method):
    """Value and error: means over 21 nodes, weighed by what each keeps, and their scatter."""
    y, scores, _ = drawn((15, 20, 90))
    prior = ClassPrior(0.3, 0.2, 0.4, 0.95, 0.06, "estimated")
    found = auc_estimate(y, scores, prior, method, 0.9, variance_factor=1.4)
    moments = moments_of(ScoreCounts.from_rows(y, scores))
    weights = np.array([found.weights.get(name, 0.0) for name in ("pn", "pu", "nu")])
    shares, mass = prior.nodes(21)
    parts = [conditional(moments, float(t), weights, 1.4) for t in shares]
    low, high, kept = mixture_limits(parts, mass, 0.9)
    inside = np.clip([part.value for part in parts], 0, 1)
    value = min(max(kept @ inside, low), high)
    raw = np.nan_to_num(raw_to_auc(shares)[0]) * weights
    rows = 1.4 * np.einsum("ki,ij,kj->k", raw, moments.by_role.sum(axis=0), raw)
    error = np.sqrt(kept @ (rows + (inside - kept @ inside) ** 2))
    assert (found.value, found.low, found.high, found.std_error) == pytest.approx(
        (value, min(low, value), max(high, value), error)
    )
    assert found.unbiased == pytest.approx(conditional(moments, 0.3, weights).value)
    assert (found.prior, found.prior_std_error) == (0.3, 0.06)
    assert sum(found.weights.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(6))
def test_a_combined_comparison_takes_common_weights_or_the_tightest_single_one(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, 0.0, np.nan], (15, 20, 80))
    a, b = rng.normal(size=(2, 115)) + np.outer([1.0, 0.5], np.nan_to_num(y))
    if seed % 2:
        b = a + 0.3 * b  # nearly the same model
    prior = ClassPrior.known(0.3)
    found = compare_auc(y, a, b, prior, "combined")
    own = [auc_estimate(y, s, prior, "combined").weights for s in (a, b)]
    mean = np.array([(own[0][name] + own[1][name]) / 2 for name in ("pn", "pu", "nu")])
    used = np.array([found.weights[name] for name in ("pn", "pu", "nu")])
    errors = {name: compare_auc(y, a, b, prior, name) for name in ("pn", "pu", "nu")}
    differences = np.array([one.difference for one in errors.values()])
    tightest = min(errors, key=lambda name: errors[name].std_error)
    if np.count_nonzero(used) == 1:
        assert found.weights[tightest] == 1.0
        assert found.std_error == pytest.approx(errors[tightest].std_error)
        assert f"'{tightest}' alone is tightest" in found.notes[-1]
    else:
        np.testing.assert_allclose(used, mean)
        assert found.std_error <= errors[tightest].std_error + 1e-12
        assert "same weights" in found.notes[-1]
    assert found.difference == pytest.approx(used @ differences)


def test_a_curve_of_many_priors_repeats_one_estimate():
    y, scores, _ = drawn((15, 20, 90))
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
