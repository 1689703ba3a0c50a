"""auc_estimate: against brute force over pairs, an independent DeLong, scikit-learn, and laws."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from pnuauc._prior import ClassPrior
from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError, PriorRefutedError
from pnuauc.labels import Roles, read_roles
from pnuauc.metrics import ScoreCounts, auc_estimate, auc_from_counts, prior_sensitivity
from pnuauc.metrics._conditional import REFUTED, Conditional, mixture_limits, role_extremes
from pnuauc.metrics._interval import satterthwaite
from pnuauc.metrics._moments import moments_of
from tests.conftest import gaussian_scores, wins

SINGLES = ["pn", "pu", "nu"]


def make(seed, n_p=12, n_n=30, n_u=200, prior=0.3, digits=None):
    y, scores, _ = gaussian_scores(seed, (n_p, n_n, n_u), prior, digits=digits)
    return y, scores


def brute(y, scores, prior):
    """Values and covariance matrix of (PN, PU, NU) from the full matrices of pairs."""
    p, n, u = scores[y == 1], scores[y == 0], scores[np.isnan(y)]
    pn, pu, un = wins(p, n), wins(p, u), wins(u, n)
    t, s = prior, 1 - prior
    values = np.array([pn.mean(), (pu.mean() - t / 2) / s, (un.mean() - s / 2) / t])
    zero = np.zeros
    on_p = np.stack([pn.mean(1), pu.mean(1) / s, zero(len(p))])
    on_n = np.stack([pn.mean(0), zero(len(n)), un.mean(0) / t])
    on_u = np.stack([zero(len(u)), pu.mean(0) / s, un.mean(1) / t])
    return values, sum(np.cov(x) / x.shape[1] for x in (on_p, on_n, on_u))


def delong(positive, negative):
    """Sun and Xu's (2014) form of DeLong's variance by midranks; shares no code with us."""
    m, n = len(positive), len(negative)
    ranks = stats.rankdata(np.concatenate([positive, negative]))
    v10 = (ranks[:m] - stats.rankdata(positive)) / n
    v01 = 1.0 - (ranks[m:] - stats.rankdata(negative)) / m
    auc = ranks[:m].sum() / (m * n) - (m + 1) / (2 * n)
    return auc, np.var(v10, ddof=1) / m + np.var(v01, ddof=1) / n


@pytest.mark.parametrize("digits", [None, 1, 0])
@pytest.mark.parametrize("seed", range(4))
def test_singles_equal_brute_force(seed, digits):
    y, scores = make(seed, digits=digits)
    values, covariance = brute(y, scores, 0.3)
    for k, method in enumerate(SINGLES):
        result = auc_estimate(y, scores, 0.3, method)
        assert result.unbiased == pytest.approx(values[k], abs=1e-12)
        assert result.value == pytest.approx(np.clip(values[k], 0, 1), abs=1e-12)
        assert result.std_error**2 == pytest.approx(covariance[k, k], rel=1e-10)


@pytest.mark.parametrize("digits", [None, 1, 0])
@pytest.mark.parametrize("sizes", [(3, 4), (10, 40), (300, 700)])
def test_pn_equals_delong_and_sklearn(sizes, digits):
    y, scores = make(1, *sizes, n_u=0, digits=digits)
    result = auc_estimate(y, scores)
    auc, variance = delong(scores[y == 1], scores[y == 0])
    assert result.method == "pn"
    assert abs(result.value - auc) < 1e-12
    assert abs(result.value - roc_auc_score(y, scores)) < 1e-12
    assert abs(result.std_error**2 - variance) < 1e-12


@pytest.mark.parametrize("digits", [None, 0])
@pytest.mark.parametrize("prior", [0.1, 0.3, 0.7])
def test_combined_is_a_weighted_sum(prior, digits):
    for seed in range(30):
        y, scores = make(seed, prior=prior, digits=digits)
        values, covariance = brute(y, scores, prior)
        result = auc_estimate(y, scores, prior, "combined")
        w = np.array([result.weights[k] for k in SINGLES])
        assert w.sum() == pytest.approx(1.0)
        assert result.unbiased == pytest.approx(w @ values)
        assert result.std_error == pytest.approx(np.sqrt(w @ covariance @ w))


def test_combined_standard_error_against_simulation():
    """600 draws at (80, 20, 1000), prior .1: SE within 8% of the spread, at most .60 of PN's.

    The spread of 600 draws is itself known to 3%; the full study:
    ``python -m experiments coverage``.
    """
    rows = []
    for seed in range(600):
        y, scores = make(seed, 80, 20, 1000, prior=0.1)
        counts = ScoreCounts.from_rows(y, scores)
        both = [auc_from_counts(counts, 0.1, m) for m in ("combined", "pn")]
        rows.append([both[0].unbiased, both[0].std_error, both[1].std_error])
    value, se, pn_se = np.array(rows).T
    assert se.mean() / value.std() == pytest.approx(1.0, abs=0.08)
    assert se.mean() / pn_se.mean() < 0.60
    assert value.mean() == pytest.approx(stats.norm.cdf(np.sqrt(0.5)), abs=0.006)


@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined"])
def test_coverage_of_intervals(method):
    """500 draws at (20, 80, 1000): a 95% interval covers 91.5 to 98% (3.5 binomial errors)."""
    truth, hits = stats.norm.cdf(np.sqrt(0.5)), 0
    for seed in range(500):
        y, scores = make(10_000 + seed, 20, 80, 1000)
        result = auc_estimate(y, scores, 0.3, method)
        hits += result.low <= truth <= result.high
    assert 0.915 <= hits / 500 <= 0.98


@given(
    st.lists(st.integers(-3, 3), min_size=6, max_size=40),
    st.integers(0, 2**31),
    st.floats(0.05, 0.95),
)
@settings(max_examples=60, deadline=None)
def test_laws_on_arbitrary_ties(values, seed, prior):
    """Order of rows and monotone maps change nothing; reversing the scores mirrors the AUC."""
    rng = np.random.default_rng(seed)
    scores = np.array(values, dtype=float)
    y = rng.permutation(np.resize([1.0, 0.0, np.nan], len(scores)))
    results = {}
    for method in [*SINGLES, "combined"]:
        try:
            results[method] = auc_estimate(y, scores, prior, method)
        except PriorRefutedError:
            assert method != "pn"  # no prior, nothing to refute
    order = rng.permutation(len(y))
    for method, result in results.items():
        moved = auc_estimate(y[order], np.exp(scores[order]), prior, method)
        assert 0 <= result.value <= 1
        assert moved.value == pytest.approx(result.value, abs=1e-12)
        assert moved.std_error == pytest.approx(result.std_error, abs=1e-12)
        assert 0 <= result.low <= result.high <= 1
        assert result.low <= min(max(result.value, 0), 1) + 1e-12
        assert result.high >= max(min(result.value, 1), 0) - 1e-12
        if method != "combined":
            mirrored = auc_estimate(y, -scores, prior, method)
            assert mirrored.value == pytest.approx(1 - result.value, abs=1e-10)
            assert mirrored.low == pytest.approx(1 - result.high, abs=1e-8)


def test_swapping_classes_swaps_pu_and_nu():
    y, scores = make(3)
    pu = auc_estimate(y, scores, 0.3, "pu")
    nu = auc_estimate(np.where(np.isnan(y), y, 1 - y), -scores, 0.7, "nu")
    assert (pu.value, pu.std_error) == pytest.approx((nu.value, nu.std_error))
    assert (pu.low, pu.high) == pytest.approx((nu.low, nu.high))


def test_weights_are_nearly_optimal_in_large_samples():
    """With 1,000 rows a role the combination is within 2% of the sample's own optimum."""
    y, scores = make(5, 1000, 1000, 5000)
    _, covariance = brute(y, scores, 0.3)
    optimum = 1 / np.sqrt(np.linalg.inv(covariance).sum())
    assert auc_estimate(y, scores, 0.3, "combined").std_error < 1.02 * optimum


@pytest.mark.parametrize("n_blocks", [1, 3, 17])
def test_blocks_merge_to_the_whole(n_blocks):
    y, scores = make(7, digits=1)
    roles = read_roles(y)
    labelled = np.concatenate([scores[roles.positive], scores[roles.negative]])
    blocks = np.array_split(np.random.default_rng(0).permutation(len(y)), n_blocks)
    parts = [ScoreCounts.from_block(Roles(roles.codes[b]), scores[b], labelled) for b in blocks]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged + part
    for method in ["pn", "pu", "nu", "combined", "pu_raw"]:
        assert (
            auc_from_counts(merged, 0.3, method).to_dict()
            == auc_estimate(y, scores, 0.3, method).to_dict()
        )


def test_blocks_need_all_anchors():
    with pytest.raises(ValueError, match="not among the anchors"):
        ScoreCounts.from_block([1, 0, None], [1.0, 2.0, 3.0], [1.0])
    a = ScoreCounts.from_rows([1, 0], [1.0, 2.0])
    b = ScoreCounts.from_rows([1, 0], [1.0, 3.0])
    with pytest.raises(ValueError, match="same anchors"):
        a + b


def test_a_small_prior_error_adds_what_the_derivative_says():
    """d AUC_PU / d prior = (AUC - 1/2) / (1 - prior), and the mixture agrees for small errors."""
    y, scores = make(2, 50, 50, 2000)
    known = auc_estimate(y, scores, 0.3, "pu")
    step = 1e-6
    numeric = auc_estimate(y, scores, 0.3 + step, "pu").value - known.value
    slope = (known.value - 0.5) / 0.7
    assert numeric / step == pytest.approx(slope, rel=1e-3)
    unsure = auc_estimate(y, scores, SimpleNamespace(prior_=0.3, std_error_=0.02), "pu")
    added = unsure.std_error**2 - known.std_error**2
    assert np.sqrt(added) == pytest.approx(slope * 0.02, rel=0.15)
    assert unsure.high - unsure.low > known.high - known.low


def test_limits_under_an_uncertain_prior_are_those_of_the_mixture():
    """Half of the prior's mass at each of two values: the limits are quantiles of the average of
    the two confidence distributions, and lie between the limits of the one and the other."""
    y, scores = make(2, 50, 0, 2000)
    rows = ~np.isnan(y) | (y != 0)
    two = ClassPrior.from_posterior([0.05, 0.4], [0.5, 0.5], source="test")
    mixed = auc_estimate(y[rows], scores[rows], two, "pu")
    ends = [auc_estimate(y[rows], scores[rows], t, "pu") for t in (0.05, 0.4)]
    assert ends[0].low <= mixed.low <= ends[1].low
    assert ends[0].high <= mixed.high <= ends[1].high
    assert mixed.value == pytest.approx(np.mean([e.value for e in ends]), abs=1e-6)
    tails = [
        auc_estimate(y[rows], scores[rows], t, "pu", level=0.9).low for t in (0.05, 0.4)
    ]  # below the 90% limit of the lower part lie 5% of it: 2.5% of the mixture
    assert mixed.low == pytest.approx(tails[0], abs=0.006)


def test_a_prior_that_may_be_zero_is_not_clamped():
    """A prior of 0 to 12% once gave PU .98, NU 1e-5 and a standard error of .011 where PN's was
    .024, and NU an AUC of 36. NU is left out now, and nothing leaves [0, 1]."""
    y, scores = make(0, 30, 100, 3000, prior=0.09)
    prior = SimpleNamespace(prior_=0.0, std_error_=0.06, interval_=(0.0, 0.118))
    result = auc_estimate(y, scores, prior, "combined")
    assert result.weights["nu"] == 0.0
    alone = auc_estimate(y, scores, method="pn")
    assert result.std_error > 0.8 * alone.std_error
    for method in [*SINGLES, "combined", "auto"]:
        each = auc_estimate(y, scores, prior, method)
        assert 0 <= each.low <= each.value <= each.high <= 1


def test_a_refuted_prior_gives_no_number():
    y, scores = make(0, 100, 100, 2000, prior=0.05)
    scores = np.where(y == 1, scores + 6, scores)  # P above all of U: at most a few positives there
    with pytest.raises(PriorRefutedError, match=r"0\.5 is refuted"):
        auc_estimate(y, scores, 0.5, "pu")
    auto = auc_estimate(y, scores, 0.5)
    assert auto.method == "pn"
    assert any("refuted" in note for note in auto.notes)
    band = prior_sensitivity(y, scores, [0.001, 0.5], method="pu")
    assert np.isnan(band.value).tolist() == [False, True]


def test_intervals_cover_when_the_prior_is_estimated():
    """400 draws, prior estimated with standard error .08: passing that error on keeps coverage in
    91.5 to 98.5%; taking the estimate as known loses at least 10 points of it."""
    rng = np.random.default_rng(0)
    truth, hits = stats.norm.cdf(np.sqrt(0.5)), np.zeros(2)
    for seed in range(400):
        y, scores = make(seed, 300, 0, 3000)
        found = float(np.clip(rng.normal(0.3, 0.08), 0.02, 0.6))
        for k, prior in enumerate((SimpleNamespace(prior_=found, std_error_=0.08), found)):
            result = auc_estimate(y, scores, prior, "pu")
            hits[k] += result.low <= truth <= result.high
    assert 0.915 <= hits[0] / 400 <= 0.985
    assert hits[0] - hits[1] > 40


def test_an_unsure_prior_moves_weight_to_pn():
    y, scores = make(2, 50, 50, 2000)
    known = auc_estimate(y, scores, 0.3, "combined")
    unsure = auc_estimate(y, scores, (0.05, 0.55), "combined")
    assert unsure.weights["pn"] > known.weights["pn"]
    lost = auc_estimate(y, scores, (0.0, 1.0))
    assert lost.method == "pn"
    assert any("left out" in note for note in lost.notes)


def test_prior_sensitivity_repeats_auc_estimate():
    y, scores = make(4)
    band = prior_sensitivity(y, scores, [0.1, 0.3], method="pu")
    for k, prior in enumerate(band.priors):
        one = auc_estimate(y, scores, prior, "pu")
        assert (band.value[k], band.low[k], band.high[k]) == (one.value, one.low, one.high)
    assert len(prior_sensitivity(y, scores).priors) == 25
    json.dumps(band.to_dict())


def test_auto_says_what_it_chose():
    y, scores = make(0, 80, 20, 1000)
    cases = {
        ("combined", 0.3): np.ones(len(y), bool),
        ("pn", None): ~np.isnan(y),
        ("pu", 0.3): y != 0,
        ("nu", 0.3): y != 1,
    }
    for (method, prior), rows in cases.items():
        result = auc_estimate(y[rows], scores[rows], prior)
        assert result.method == method
        assert any(method in note for note in result.notes)
    no_prior = auc_estimate(y, scores)
    assert no_prior.method == "pn"
    assert "not used" in no_prior.notes[0]
    json.dumps(result.to_dict())
    assert "method='nu'" in repr(result)


def test_it_says_when_unlabelled_rows_help_little():
    y, scores = make(0, 20, 80, 1000, prior=0.1)
    little = auc_estimate(y, scores, 0.1, "combined")
    much = auc_estimate(*make(0, 80, 20, 1000, prior=0.1), prior=0.1)
    assert any("help little" in note for note in little.notes)
    assert any("cut the width of the interval to 0." in note for note in much.notes)
    alone = auc_estimate(y, scores, 0.1)
    assert alone.method == "pn"
    assert any("left out" in note for note in alone.notes)


def test_raw_needs_no_prior_and_orders_like_pu():
    y, scores = make(0)
    noise = np.random.default_rng(1).normal(0, 2, len(y))
    raw = [auc_estimate(y, s, method="pu_raw").value for s in (scores, scores + noise)]
    pu = [auc_estimate(y, s, 0.4, "pu").value for s in (scores, scores + noise)]
    assert (raw[0] - raw[1]) / (1 - 0.4) == pytest.approx(pu[0] - pu[1])


def test_perfect_separation_has_an_honest_interval():
    result = auc_estimate([1] * 10 + [0] * 5, range(15, 0, -1))
    assert (result.value, result.std_error, result.high) == (1.0, 0.0, 1.0)
    # not below the limit from five disjoint pairs, which wastes 45 of the 50, and far from sure
    assert 0.025 ** (1 / 5) < result.low < 0.8
    assert any("misranked" in note for note in result.notes)
    combined = auc_estimate(
        [1] * 10 + [0] * 5 + [None] * 50,
        [*range(30, 20, -1), *range(5), *np.linspace(0, 29, 50)],
        prior=0.4,
        method="combined",
    )
    assert combined.std_error > 0


def test_constant_scores_are_worth_one_half():
    result = auc_estimate([1, 1, 0, 0, None, None], np.zeros(6), 0.3)
    assert (result.value, result.low, result.high) == (0.5, 0.5, 0.5)
    assert any("All scores are equal" in note for note in result.notes)


def test_one_positive_still_gets_an_interval():
    result = auc_estimate([1] + [0] * 20, range(21, 0, -1))
    assert result.low < 0.25
    middle = auc_estimate([1] + [0] * 20, [10.5, *range(20)])
    assert middle.low < 0.1
    assert middle.high > 0.9


@pytest.mark.parametrize("prior", [0.05, 0.3, 0.7])
def test_variances_of_the_two_extremes_follow_from_the_prior(prior):
    """Against 200,000 rows of each role: classes alike (one uniform) and classes apart."""
    rng = np.random.default_rng(0)
    n = 200_000
    hidden = rng.random(n) < prior
    for shift, matrix in ((0.0, role_extremes(prior)[0]), (2.0, role_extremes(prior)[1])):
        p, neg = rng.random(n) + shift, rng.random(n)
        u = rng.random(n) + shift * hidden
        y = np.repeat([1.0, 0.0, np.nan], n)
        moments = moments_of(ScoreCounts.from_rows(y, np.concatenate([p, neg, u])))
        assert np.abs(n * moments.by_role - matrix).max() < 0.002


@pytest.mark.parametrize("value", [-0.03, 0.0, 0.2, 0.5, 0.97, 1.0, 1.02])
def test_limits_are_where_the_estimate_is_t_errors_away(value):
    """The closed form against a search over a grid of AUCs."""
    found = Conditional(value, apart=0.0004, spread=0.02, df=30.0)
    low, high = found.limits(0.95)
    grid = np.linspace(0, 1, 20_001)
    t = stats.t.ppf(0.975, 30)
    kept = grid[np.abs(value - grid) <= t * np.sqrt(0.0004 + 0.02 * grid * (1 - grid))]
    assert (low, high) == pytest.approx((kept.min(), kept.max()), abs=1e-4)
    assert Conditional(1.2, 0.0004, 0.02, 30.0).limits(0.95) is None
    assert Conditional(-0.2, 0.0004, 0.02, 30.0).limits(0.95) is None


@pytest.mark.parametrize("tail", ["gaussian", "heavy"])
@pytest.mark.parametrize("n", [(10, 10), (20, 80), (100, 100)])
def test_coverage_near_one(n, tail):
    """600 draws at AUCs of .98 to .99, where few rows or none are misranked: 88 to 100% are covered
    (.95 less 3.5 binomial errors is .92; Student's t with 2 degrees of freedom at 10 and 10 rows
    is the known weak spot, 90%)."""
    rng = np.random.default_rng([*n, len(tail)])
    draw = rng.standard_normal if tail == "gaussian" else (lambda m: rng.standard_t(2, m))
    shift = 3.3 if tail == "gaussian" else 8.0
    many = rng.permutation(draw(400_000)) + shift, np.sort(draw(400_000))
    truth = np.searchsorted(many[1], many[0]).mean() / 400_000
    y = np.repeat([1.0, 0.0], n)
    hits = 0
    for _ in range(600):
        scores = np.concatenate([draw(n[0]) + shift, draw(n[1])])
        result = auc_estimate(y, scores)
        hits += result.low <= truth <= result.high
    assert hits / 600 >= (0.87 if tail == "heavy" and n == (10, 10) else 0.90)


@given(st.floats(-0.2, 1.2), st.floats(0, 0.01), st.floats(1e-3, 0.5), st.sampled_from([3.0, 20.0]))
@settings(max_examples=100, deadline=None)
def test_a_mixture_of_one_prior_has_the_limits_of_that_prior(value, apart, spread, df):
    part = Conditional(value, apart, spread, df)
    closed = part.limits(0.95) or part.limits(REFUTED)
    mixed = mixture_limits([part], np.ones(1), 0.95)
    # where all but the last chance is outside [0, 1], either may call it refuted
    if closed is None or mixed is None:
        assert closed == mixed or value < 0 or value > 1
        return
    # an estimate above 1 refutes what is next to 1, too; there the mixture goes on to the end,
    # unless it refutes every AUC at .95: then the wider limits of that prior stand in as they are
    if part.limits(0.95) is None and mixed[:2] == closed:
        return
    low, high = (0.0 if value < 0 else closed[0]), (1.0 if value > 1 else closed[1])
    assert mixed[0] == pytest.approx(low, abs=0.004)
    assert mixed[1] == pytest.approx(high, abs=0.004)


@pytest.mark.parametrize("n_p", [3, 10, 50])
@pytest.mark.parametrize("shift", [-6.0, 0.0, 1.5, 6.0])
def test_an_almost_known_prior_is_as_good_as_a_known_one(n_p, shift):
    """Also with every pair won, where an interval once was wider under a prior less sure."""
    rng = np.random.default_rng(n_p)
    y = np.repeat([1.0, np.nan], [n_p, 400])
    scores = np.concatenate([rng.normal(shift, 1, n_p), rng.normal(size=400)])
    scores[n_p : n_p + 40] += shift  # a tenth of the unlabelled rows are positive
    known = auc_estimate(y, scores, 0.1, "pu")
    nearly = auc_estimate(y, scores, ClassPrior(0.1, 0.099, 0.101, 0.95, 5e-4, "estimated"), "pu")
    assert nearly.low == pytest.approx(known.low, abs=0.003)
    assert nearly.high == pytest.approx(known.high, abs=0.003)
    unsure = auc_estimate(y, scores, ClassPrior(0.1, 0.05, 0.15, 0.95, 0.025, "estimated"), "pu")
    assert unsure.high - unsure.low >= known.high - known.low - 0.003


def test_a_variance_factor_widens():
    y, scores = make(0)
    one, two = (auc_estimate(y, scores, 0.3, "pu", variance_factor=f) for f in (1.0, 2.0))
    assert two.std_error == pytest.approx(np.sqrt(2) * one.std_error)
    assert two.low < one.low < one.high < two.high
    with pytest.raises(ValueError, match="variance_factor"):
        auc_estimate(y, scores, 0.3, variance_factor=0.5)


def test_satterthwaite():
    assert satterthwaite(np.array([1.0, 0.0, 0.0]), (11, 5, 9)) == pytest.approx(10)
    assert satterthwaite(np.array([1.0, 1.0, 0.0]), (11, 11, 9)) == pytest.approx(20)
    assert satterthwaite(np.array([1.0, 0.0, 0.0]), (1, 5, 9)) == np.inf
    assert satterthwaite(np.array([1.0, 0.0, 0.0]), (2, 5, 9)) == pytest.approx(1)
    parts, n = np.array([0.3, 0.5, 0.4]), (2, 5, 9)
    expected = parts.sum() ** 2 / (0.09 / 1 + 0.25 / 4 + 0.16 / 8)
    assert satterthwaite(parts, n) == pytest.approx(expected)
    assert satterthwaite(parts, (1, 5, 9)) == pytest.approx(1.44 / (0.25 / 4 + 0.16 / 8))
    assert satterthwaite(7.0 * parts, n) == pytest.approx(expected)  # whatever the unit


def test_extreme_priors():
    y, scores = make(0)
    zero = auc_estimate(y, scores, 0.0, "pu")
    assert zero.value == pytest.approx(auc_estimate(y, scores, method="pu_raw").value)
    assert auc_estimate(y, scores, 0.0).weights["nu"] == 0.0
    for method, prior in (("nu", 0.0), ("pu", 1.0)):
        with pytest.raises(ValueError, match="undefined at prior"):
            auc_estimate(y, scores, prior, method)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"prior": None, "method": "pu"}, PriorNotIdentifiedError, "pnuauc.priors"),
        ({"prior": 1.5}, ValueError, r"\[0, 1\]"),
        ({"prior": (0.5, 0.1)}, ValueError, "low <= high"),
        ({"prior": "much"}, ValueError, "prior must be"),
        ({"method": "best"}, ValueError, "method must be"),
        ({"level": 95}, ValueError, "level"),
        ({"scores": np.full(242, np.nan)}, ValueError, "NaN .first in row 0"),
        ({"scores": np.zeros(3)}, ValueError, "3 rows but y has 242"),
        ({"scores": np.zeros((242, 2))}, ValueError, "one-dimensional"),
        ({"scores": ["a"] * 242}, ValueError, "numbers"),
        ({"y": [1] * 242}, MissingRoleError, "two of positive"),
        ({"y": [1] * 2 + [0] * 240, "method": "pu"}, MissingRoleError, "unlabelled rows"),
    ],
)
def test_bad_input(change, error, match):
    y, scores = make(0)
    request = {"y": y, "scores": scores, "prior": 0.3} | change
    with pytest.raises(error, match=match):
        auc_estimate(**request)


def test_other_label_codes_and_infinite_scores():
    y = np.array(["fraud", "?", "ok", "fraud", "?"])
    codes = {"positive_label": "fraud", "negative_label": "ok", "unlabeled_label": "?"}
    scores = [np.inf, 0.0, -np.inf, 1.0, 2.0]
    assert auc_estimate(y, scores, method="pn", **codes).value == 1.0
    assert auc_estimate(read_roles(y, **codes), scores, method="pn").value == 1.0
