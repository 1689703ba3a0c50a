"""Parts of the metrics against their definitions: roots, brute force, integrals, known truth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from pnuauc import ClassPrior
from pnuauc._row_groups import _filled
from pnuauc.labels import Roles
from pnuauc.metrics import RoleStratifiedKFold, ScoreCounts, threshold_estimate
from pnuauc.metrics._compare import LabeledPairs, _paired, _result
from pnuauc.metrics._conditional import (
    USUAL_ROWS,
    Conditional,
    _by_role,
    _inside,
    conditional,
    mixture_limits,
    role_extremes,
)
from pnuauc.metrics._estimate import _usable
from pnuauc.metrics._moments import PairShares, moments_of, raw_to_auc
from pnuauc.metrics._proportions import Interval, mover_difference, mover_ratio, wilson
from pnuauc.metrics._roc import _band, _corrected_fpr, _monotone, _thresholds, _times_prior
from pnuauc.metrics._weights import (
    MODEL_ROWS,
    _binormal,
    _projections,
    combination_weights,
    steadied_covariance,
    weigh,
)
from tests.conftest import wins

Z = stats.norm.ppf(0.975)

# --- proportions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), [(1, 4), (3, 10), (9, 10), (40, 200), (1999, 2000)])
def test_wilson_limits_are_where_the_rate_is_z_errors_away(k, n):
    low, high = wilson(np.array(k / n), n, 0.95)
    for limit in (float(low), float(high)):
        assert abs(k / n - limit) == pytest.approx(Z * np.sqrt(limit * (1 - limit) / n))
    assert low < k / n < high


def test_wilson_at_the_ends():
    for n in (3, 50):
        low, high = wilson(np.array([0.0, 1.0]), n, 0.9)
        z2 = stats.norm.ppf(0.95) ** 2
        assert (low[0], high[1]) == (0.0, 1.0)
        assert (high[0], 1 - low[1]) == pytest.approx((z2 / (n + z2), z2 / (n + z2)))


def test_limits_of_a_difference_and_of_a_ratio_agree_with_each_other():
    """MOVER: r is a limit of x / y where zero is one of x - r y."""
    x, y = (0.6, 0.45, 0.8), (0.3, 0.25, 0.38)
    low, high = mover_difference(x, y)
    assert low == pytest.approx(0.3 - np.hypot(0.15, 0.08))
    assert high == pytest.approx(0.3 + np.hypot(0.2, 0.05))
    below, above = mover_ratio(x, y)
    assert below < 2 < above
    for end, place in ((below, 0), (above, 1)):
        scaled = tuple(end * v for v in y)
        assert mover_difference(x, scaled)[place] == pytest.approx(0.0, abs=1e-12)
    assert mover_ratio((0.5, 0.2, 0.9), (0.1, 0.0, 0.3)) == (0.0, np.inf)
    assert mover_ratio((0.0, 0.0, 0.1), (0.5, 0.4, 0.6))[0] == 0.0


# --- rates at a cut -------------------------------------------------------------------------------


def test_false_positive_rate_and_its_limits_from_those_of_the_two_shares():
    p, u = (np.array([0.9]), np.array([0.8]), np.array([0.95])), (
        np.array([0.4]), np.array([0.35]), np.array([0.47]),
    )  # fmt: skip
    for error in (0.0, 0.05):
        prior = ClassPrior(0.2, 0.1, 0.3, std_error=error, source="test")
        fpr, (low, high) = _corrected_fpr(p, u, prior, 0.95)
        assert fpr[0] == pytest.approx((0.4 - 0.2 * 0.9) / 0.8)
        known_low, known_high = mover_difference((0.4, 0.35, 0.47), (0.18, 0.16, 0.19))
        extra = Z * error * 0.5 / 0.64
        assert fpr - low == pytest.approx(np.hypot(fpr - known_low / 0.8, extra))
        assert high - fpr == pytest.approx(np.hypot(known_high / 0.8 - fpr, extra))


def test_precision_is_the_prior_times_the_lift_and_so_are_its_limits():
    lift = Interval(2.0, 1.5, 3.0)
    known = _times_prior(lift, ClassPrior.known(0.2), 0.95)
    assert (known.value, known.low, known.high) == pytest.approx((0.4, 0.3, 0.6))
    unsure = _times_prior(lift, ClassPrior(0.2, 0.1, 0.3, std_error=0.02, source="test"), 0.95)
    relative = Z * 0.1
    assert unsure.value == pytest.approx(0.4)
    for found, end, sign in ((unsure.low, 1.5, -1), (unsure.high, 3.0, 1)):
        assert np.log(found / 0.4) == pytest.approx(sign * np.hypot(np.log(end / 2), relative))
    nothing = _times_prior(Interval(0.0, 0.0, 0.5), ClassPrior(0.2, 0.1, 0.3, std_error=0.02), 0.95)
    assert (nothing.value, nothing.low) == (0.0, 0.0)
    assert nothing.high == pytest.approx(0.2 * 0.5 * np.exp(relative))
    assert _times_prior(Interval(9.0, 6.0, 20.0), ClassPrior.known(0.2), 0.95) == Interval(1, 1, 1)
    assert _times_prior(lift, ClassPrior.known(0.0), 0.95) == Interval(0, 0, 0)


@pytest.mark.parametrize("k", [1, 7, 50])
def test_the_top_k_are_k_rows(k):
    rng = np.random.default_rng(0)
    p, u = rng.normal(1, 1, 30), rng.normal(0, 1, 50)
    y = [1] * 30 + [None] * 50
    found = threshold_estimate(y, np.r_[p, u], 0.2, k=k)
    cut = np.sort(u)[::-1][k - 1]
    assert (found.threshold, found.n_flagged) == (cut, k)
    assert found.recall.value == pytest.approx(np.mean(p >= cut))
    assert found.lift.value == pytest.approx(np.mean(p >= cut) / (k / 50))


def test_thresholds_are_all_scores_or_even_quantiles_of_each_role():
    few = _thresholds(np.array([1.0, 2.0]), np.array([0.0, 2.0, 5.0]), 10)
    assert few.tolist() == [np.inf, 5.0, 2.0, 1.0, 0.0]
    p, u = np.arange(1001.0), 2000.0 + np.arange(11.0)
    many = _thresholds(p, u, 22)
    kept = many[np.isfinite(many)]
    assert sorted(kept[kept < 2000]) == (100.0 * np.arange(11)).tolist()
    assert sorted(kept[kept >= 2000]) == u.tolist()
    assert len(_thresholds(p, u, 0)) == 5  # two of each at least: their ends


def test_a_monotone_rate_runs_from_zero_to_one():
    found = _monotone(np.array([0.3, 0.1, 0.5, 0.4, 1.2, 0.9]))
    assert found.tolist() == pytest.approx([0.0, 0.2, 0.45, 0.45, 1.0, 1.0])


def test_the_band_goes_through_the_corners_of_the_boxes():
    """Upper: at a threshold's lowest fpr its highest tpr. Lower: at the highest fpr the lowest."""
    fpr, tpr = np.array([0.0, 0.2, 0.6, 1.0]), np.array([0.0, 0.5, 0.8, 1.0])
    fpr_limits = (np.array([0.0, 0.1, 0.5, 1.0]), np.array([0.0, 0.4, 0.7, 1.0]))
    tpr_limits = (np.array([0.0, 0.3, 0.6, 1.0]), np.array([0.0, 0.7, 0.9, 1.0]))
    low, high = _band(fpr, tpr, fpr_limits, tpr_limits)
    assert high == pytest.approx([0.0, 0.7 + 0.25 * 0.2, 0.9 + 0.2 * 0.1, 1.0])
    assert low == pytest.approx([0.0, 0.15, 0.3 + 2 / 3 * 0.3, 1.0])


# --- the error of one estimate --------------------------------------------------------------------


@pytest.mark.parametrize(("value", "inside"), [(-0.1, 0.0), (0.3, 0.3), (0.8, 0.8), (1.1, 1.0)])
def test_error_at_the_estimate(value, inside):
    found = Conditional(value, apart=0.0004, spread=0.02, df=30.0)
    assert found.std_error() ** 2 == pytest.approx(0.0004 + 0.02 * inside * (1 - inside))


@pytest.mark.parametrize("df", [5.0, np.inf])
def test_confidence_at_the_limits_is_half_of_what_is_left(df):
    part = Conditional(0.7, apart=0.0004, spread=0.02, df=df)
    low, high = part.limits(0.9)
    assert part.distribution(np.array([low, 0.7, high])) == pytest.approx([0.05, 0.5, 0.95])


def shares_of(n, auc=0.8, spread=0.05):
    """P and N alone, each with the given variance of a row's placement."""
    by_role = np.zeros((3, 3, 3))
    by_role[0][0, 0], by_role[1][0, 0] = spread / n[0], spread / n[1]
    return PairShares(np.array([auc, np.nan, np.nan]), by_role, (*n, 0))


def test_degrees_of_freedom_are_those_of_the_role_that_varies():
    """Satterthwaite: one role of n rows alone has n - 1, and those of the usual value on top."""
    found = conditional(shares_of((7, 10**9)), None, np.array([1.0, 0.0, 0.0]))
    assert found.df == pytest.approx(6 + USUAL_ROWS, rel=1e-6)
    even = conditional(shares_of((41, 41)), None, np.array([1.0, 0.0, 0.0]))
    assert even.df == pytest.approx(2 * (40 + USUAL_ROWS), rel=1e-6)


def test_many_rows_show_their_own_variance_and_few_the_usual_one():
    weights = np.array([1.0, 0.0, 0.0])
    many = conditional(shares_of((10**6, 10**6)), None, weights)
    assert many.value == 0.8
    assert many.std_error() ** 2 == pytest.approx(2 * 0.05 / 10**6, rel=1e-3)
    tripled = conditional(shares_of((10**6, 10**6)), None, weights, inflation=3.0)
    assert tripled.std_error() ** 2 == pytest.approx(6 * 0.05 / 10**6, rel=1e-3)
    # two rows a class: mostly 1.2 times the 4 a (1 - a) / 12 of the two extremes between
    few = conditional(shares_of((2, 2)), None, weights)
    usual = 1.2 * 4 * 0.8 * 0.2 / 12
    assert few.std_error() ** 2 == pytest.approx(usual, rel=0.15)


# --- weights of the combination -------------------------------------------------------------------


@pytest.mark.parametrize(("auc", "prior"), [(0.6, 0.1), (0.85, 0.4)])
def test_binormal_covariances_are_those_of_many_draws(auc, prior):
    """400,000 draws of each role: placements of two Gaussians; entries to about 1%."""
    rng = np.random.default_rng(0)
    n, shift = 400_000, np.sqrt(2) * stats.norm.ppf(auc)
    p, q = rng.normal(shift, 1, n), rng.normal(0, 1, n)
    u = rng.normal(shift * (rng.random(n) < prior), 1)
    expected = []
    for points in (p, q, u):
        f_p, f_n = stats.norm.cdf(points - shift), stats.norm.cdf(points)
        f_u = prior * f_p + (1 - prior) * f_n
        zero = np.zeros(n)
        rows = {
            0: [f_n, f_u / (1 - prior), zero],
            1: [1 - f_p, zero, (1 - f_u) / prior],
            2: [zero, (1 - f_p) / (1 - prior), f_n / prior],
        }[len(expected)]
        expected.append(np.cov(rows))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(_binormal(auc, prior), expected, atol=0.01 * scale)


def test_projections_are_placements_on_the_scale_of_an_auc():
    """Means of the projections over the roles give the AUC in all three ways."""
    f_p, f_n, prior = np.array([0.25, 0.75]), np.array([0.6, 0.9]), 0.2
    on_p, on_n, on_u = _projections(f_p, f_n, prior)
    f_u = 0.2 * f_p + 0.8 * f_n
    np.testing.assert_allclose(on_p, [f_n, f_u / 0.8, [0, 0]])
    np.testing.assert_allclose(on_n, [1 - f_p, [0, 0], (1 - f_u) / 0.2])
    np.testing.assert_allclose(on_u, [[0, 0], (1 - f_p) / 0.8, f_n / 0.2])


def test_a_steadied_covariance_is_between_the_rows_and_the_model():
    rng = np.random.default_rng(0)
    sizes, prior = (30, 40, 500), 0.3
    scores = np.concatenate([rng.normal(1, 1, 30), rng.normal(0, 1, 540)])
    counts = ScoreCounts.from_rows(np.repeat([1.0, 0.0, np.nan], sizes), scores)
    model = _binormal(0.75, prior)
    expected = np.zeros((3, 3))
    cells = np.stack([counts.positive, counts.negative, counts.unlabeled]).astype(float)
    f_p, f_n = ((np.cumsum(c) - 0.5 * c) / c.sum() for c in cells[:2])
    for k, projection in enumerate(_projections(f_p, f_n, prior)):
        rows = np.repeat(projection, cells[k].astype(int), axis=1)
        share = sizes[k] / (sizes[k] + MODEL_ROWS)
        expected += (share * np.cov(rows) + (1 - share) * model[k]) / sizes[k]
    np.testing.assert_allclose(steadied_covariance(counts, prior, 0.75), expected, rtol=1e-9)


def test_combination_has_the_least_variance():
    rows = np.random.default_rng(1).normal(size=(3, 5))
    matrix = rows @ rows.T
    found = combination_weights(matrix)
    assert found.sum() == pytest.approx(1.0)
    for step in itertools.permutations([1e-3, -1e-3, 0.0]):
        moved = found + np.array(step)
        assert moved @ matrix @ moved > found @ matrix @ found
    assert combination_weights(np.array([[4.0, 0.0], [0.0, 1.0]])) == pytest.approx([0.2, 0.8])
    assert combination_weights(-np.diag([3.0, 1.0])).tolist() == [1.0, 0.0]


def weighed(prior, sizes=(30, 40, 500)):
    rng = np.random.default_rng(2)
    scores = np.concatenate([rng.normal(1, 1, sizes[0]), rng.normal(0.1, 1, sum(sizes[1:]))])
    counts = ScoreCounts.from_rows(np.repeat([1.0, 0.0, np.nan], sizes), scores)
    return counts, moments_of(counts), weigh(counts, moments_of(counts), prior)


def test_weights_are_the_best_on_average_over_the_prior():
    """Covariances of the rows at seven priors, and that of the three estimates over these."""
    prior = ClassPrior(0.3, 0.2, 0.4, 0.95, 0.05, "estimated by hand")
    counts, moments, found = weighed(prior)
    shares, mass = prior.nodes(7)
    values = np.array([slope * moments.raw - off for slope, off in map(raw_to_auc, shares)])
    first = values[:, 0] @ mass
    total = sum(m * steadied_covariance(counts, s, first) for s, m in zip(shares, mass))
    total = total + np.cov(values.T, aweights=mass, bias=True)
    inverse = np.linalg.inv(total)
    np.testing.assert_allclose(found.weights, inverse.sum(axis=0) / inverse.sum(), rtol=1e-6)
    assert found.note is None
    assert MODEL_ROWS == 100  # docs/metrics.md says so


@pytest.mark.parametrize(
    ("shares", "left_out"),
    [
        ((0.021, 0.3), []), ((0.019, 0.3), ["NU"]), ((0.7, 0.979), []), ((0.7, 0.981), ["PU"]),
        ((0.019, 0.981), ["PU", "NU"]),
    ],
)  # fmt: skip
def test_estimates_that_divide_by_next_to_nothing_are_left_out(shares, left_out):
    """Where the prior may come nearer than .02 to the end at which they are not defined."""
    _, _, found = weighed(ClassPrior.from_posterior(shares, [1.0, 2.0]))
    for weight, name in zip(found.weights, ("PN", "PU", "NU"), strict=True):
        assert (weight == 0.0) == (name in left_out)
    told = f"{' and '.join(left_out)} left out: the prior may be too near to an end."
    assert found.note == (told if left_out else None)
    assert found.weights.sum() == pytest.approx(1)
    known = weighed(ClassPrior.known(shares[0]))[2]  # what is known is no danger
    assert known.note is None
    assert (known.weights != 0).all()


@pytest.mark.parametrize("prior", [0.0, 0.25, 1.0, None])
def test_pair_shares_become_aucs(prior):
    """P(P > U) = prior / 2 + (1 - prior) AUC, P(U > N) = prior AUC + (1 - prior) / 2."""
    auc = 0.9
    slope, offset = raw_to_auc(prior)
    t = 0.5 if prior is None else prior
    raw = np.array([auc, t / 2 + (1 - t) * auc, t * auc + (1 - t) / 2])
    expected = [auc, auc, auc]
    if prior in (1.0, None):
        expected[1] = np.nan
    if prior in (0.0, None):
        expected[2] = np.nan
    np.testing.assert_allclose(slope * raw - offset, expected)


def test_one_row_of_a_role_has_the_largest_variance():
    y, scores = [1, 0, 0, 0, None, None], [2.0, 3.0, 1.0, 0.0, 2.5, 0.5]
    found = moments_of(ScoreCounts.from_rows(y, np.array(scores)))
    pn, pu = 2 / 3, 1 / 2
    assert found.raw[:2] == pytest.approx([pn, pu])
    spread = np.sqrt([pn * (1 - pn), pu * (1 - pu)])
    np.testing.assert_allclose(found.by_role[0][:2, :2], np.outer(spread, spread))
    assert not found.by_role[0][2].any()


# --- folds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [(0, 0, 0), (3, 0, 1), (5, 5, 0), (0, 2, 9)])
@pytest.mark.parametrize("n", [0, 1, 4, 17])
def test_single_rows_even_the_folds_out(load, n):
    """No way of dealing n rows ends with a smaller gap between the fullest and the emptiest."""
    found = np.bincount(_filled(np.array(load, dtype=float), n), minlength=3)
    assert found.sum() == n

    def gap(added):
        return np.ptp(np.array(load) + added)

    every = ((a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a))
    assert gap(found) == min(map(gap, every))


def test_groups_even_out_every_role():
    """Two groups of each kind and two folds: one of each kind in each, and single rows likewise."""
    y = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1])
    groups = np.array([0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6, 7])
    for seed in range(5):
        splitter = RoleStratifiedKFold(2, shuffle=True, random_state=seed, unlabeled_label=-1)
        for _, test in splitter.split(y, y, groups):
            assert [int(np.sum(y[test] == code)) for code in (1, 0, -1)] == [2, 3, 2]
            assert all(np.isin(np.flatnonzero(groups == g), test).all() for g in groups[test])


# --- two columns on the same rows -----------------------------------------------------------------


def two_columns(seed=0, sizes=(9, 12, 40), digits=1):
    """Scores of two models with ties, and their projections by sums over all pairs."""
    rng = np.random.default_rng(seed)
    roles = Roles(np.repeat(np.array([1, 0], np.int8), sizes[:2]))
    every = [np.round(rng.normal(size=sum(sizes)) + np.repeat([1.0, 0, 0.2], sizes), digits)
             for _ in range(2)]  # fmt: skip
    n_labelled = sizes[0] + sizes[1]
    labelled = LabeledPairs(roles, *(scores[:n_labelled] for scores in every))
    parts = [np.split(scores, [sizes[0], n_labelled]) for scores in every]
    return labelled, labelled.count(*(scores[n_labelled:] for scores in every)), parts


def projections_by_hand(p, n, u):
    """Of (PN, PU, NU) on each row of P, N and U, shapes (3, rows)."""
    zero = [np.zeros(len(part)) for part in (p, n, u)]
    return [
        np.stack([wins(p, n).mean(axis=1), wins(p, u).mean(axis=1), zero[0]]),
        np.stack([wins(p, n).mean(axis=0), zero[1], wins(u, n).mean(axis=0)]),
        np.stack([zero[2], wins(p, u).mean(axis=0), wins(u, n).mean(axis=1)]),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_covariance_of_a_difference_is_that_of_the_pairs(seed):
    labelled, counted, parts = two_columns(seed)
    found = [projections_by_hand(*part) for part in parts]
    for scores, cells, own in zip(labelled.columns, counted.cells, found):
        for ours, theirs in zip(labelled.projections(scores, cells), own):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
    by_role, raw_a, raw_b = _paired(labelled, counted)
    for k in range(3):
        expected = np.cov(found[0][k] - found[1][k]) / found[0][k].shape[1]
        np.testing.assert_allclose(by_role[k], expected, atol=1e-12)
    for raw, (p, n, u) in zip((raw_a, raw_b), parts):
        np.testing.assert_allclose(raw, [wins(a, b).mean() for a, b in ((p, n), (p, u), (u, n))])


def test_one_row_of_a_role_shows_its_whole_difference():
    labelled, counted, parts = two_columns(sizes=(1, 12, 40))
    by_role, _, _ = _paired(labelled, counted)
    a, b = (projections_by_hand(*part)[0][:, 0] for part in parts)
    np.testing.assert_allclose(by_role[0], np.outer(a - b, a - b), atol=1e-12)
    labelled, counted, _ = two_columns(sizes=(5, 0, 40))
    by_role, raw, _ = _paired(labelled, counted)
    assert np.isnan(raw[[0, 2]]).all()
    assert (by_role[1] == 0).all()


@pytest.mark.parametrize(("unbiased", "prior_part"), [(0.15, 0.0), (-0.3, 0.05), (0.0, 0.0)])
def test_a_difference_with_its_error_and_limits(unbiased, prior_part):
    """Limits around the difference of the stated values, the p-value by the unbiased one."""
    parts, n = np.array([0.002, 0.001, 0.0005]), (10, 20, 100)
    made = _result(unbiased, [0.9, 0.8], parts, n, prior_part, 0.9, "pu", np.eye(3)[1], [])
    sampling = np.sqrt(0.0035)
    df = 0.0035**2 / sum(v**2 / (m - 1) for v, m in zip(parts, n))
    error = np.hypot(sampling, prior_part)
    assert made.std_error == pytest.approx(error)
    half = stats.t.ppf(0.95, df) * error
    assert made.difference == pytest.approx(0.1)
    assert (made.low, made.high) == pytest.approx((0.1 - half, 0.1 + half))
    assert made.p_value == pytest.approx(2 * stats.t.sf(abs(unbiased) / sampling, df))
    assert made.weights == {"pu": 1.0}
    level = [0.8, 0.8] if unbiased == 0 else [0.9, 0.8]
    still = _result(unbiased, level, 0 * parts, n, 0.0, 0.9, "pu", np.eye(3)[1], [])
    assert still.p_value == 1.0
    assert (still.low, still.high) == ((-1.0, 1.0) if unbiased else (0.0, 0.0))


# --- one prior and several ------------------------------------------------------------------------


def test_priors_at_which_an_estimate_is_defined():
    shares = np.array([0.0, 0.5, 1.0])
    for weights, expected in [
        ([1, 0, 0], [True, True, True]), ([0, 1, 0], [True, True, False]),
        ([0, 0, 1], [False, True, True]), ([0.2, 0.3, 0.5], [False, True, False]),
    ]:  # fmt: skip
        assert _usable(shares, np.array(weights, dtype=float)).tolist() == expected


@pytest.mark.parametrize(("prior", "auc"), [(0.1, 0.9), (0.3, 0.7), (0.6, 0.8)])
def test_freedom_of_an_estimate_from_three_roles(prior, auc):
    """Satterthwaite's, with what each role adds at the estimate."""
    n = np.array([12, 30, 200])
    by_role = np.stack([np.diag([0.05, 0.03, 0.04]) / m for m in n])
    raw = (np.array([auc, auc, auc]) + raw_to_auc(prior)[1]) / raw_to_auc(prior)[0]
    weights = np.array([0.2, 0.5, 0.3])
    found = conditional(PairShares(raw, by_role, tuple(n)), prior, weights)
    assert found.value == pytest.approx(auc)
    scaled = weights * raw_to_auc(prior)[0]
    extremes = [np.einsum("i,rij,j->r", scaled, m, scaled) for m in role_extremes(prior)]
    seen = n * np.einsum("i,rij,j->r", scaled, by_role, scaled)
    one = (np.array([values]) for values in (auc, seen, *extremes))
    base, slope = (values[0] for values in _by_role(*one, n.astype(float)))
    a = (auc * 12 + 0.5) / 13
    assert _inside(np.array([auc]), n.astype(float)) == pytest.approx(a)
    parts = (base + slope * a * (1 - a)) / n
    assert found.df == pytest.approx(parts.sum() ** 2 / (parts**2 / (n - 1 + USUAL_ROWS)).sum())
    assert found.apart == pytest.approx((base / n).sum())
    assert found.spread == pytest.approx((slope / n).sum())


def test_limits_under_several_priors_are_quantiles_of_the_mixture():
    parts = [Conditional(0.7, 0.001, 0.004, 30.0), Conditional(0.8, 0.002, 0.003, 20.0)]
    mass = np.array([0.3, 0.7])
    low, high, kept = mixture_limits(parts, mass, 0.9)
    np.testing.assert_allclose(kept, mass, atol=1e-3)

    def below(a):
        each = [stats.t.cdf((a - c.value) / np.sqrt(c.apart + c.spread * a * (1 - a)), c.df)
                for c in parts]  # fmt: skip
        return kept @ each

    assert below(low) == pytest.approx(0.05, abs=2e-3)
    assert below(high) == pytest.approx(0.95, abs=2e-3)
    # an estimate far above 1 under one prior: that prior keeps what confidence lies inside
    parts[1] = Conditional(1.3, 0.001, 0.0, 50.0)
    _, _, kept = mixture_limits(parts, mass, 0.9)
    assert kept[0] > 0.999
    assert mixture_limits([parts[1]], np.ones(1), 0.9) is None
