"""Numbers that an estimate of the prior rests on: one case on either side of each."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from pnuauc._prior import TRAINING_BOUNDS, ClassPrior, read_prior
from pnuauc._ranges import rows_differ
from pnuauc.labels import Roles
from pnuauc.priors import (
    Beta,
    EMPrior,
    EnergyDistancePrior,
    HellingerPrior,
    PenalizedL1Prior,
    PlacementPrior,
    prior_in_unlabeled,
)
from pnuauc.priors._base import take
from pnuauc.priors._binormal import (
    Posterior,
    RankCounts,
    Shape,
    _Grid,
    _share_edges,
    _unit,
    bin_shares,
    posterior,
    rank_counts,
)
from pnuauc.priors._conversion import prior_in_rows
from pnuauc.priors._fit_test import fit_test
from pnuauc.priors._matching import _resampled_mean, _rise_to_one
from pnuauc.priors._scorers import _held

# --- the test of fit ------------------------------------------------------------------------------

BEST = Shape(0.5, 0.05, 0.0)


def counts_of(n_p, n_n, n_u, n_bins=32):
    """P and N spread evenly over the ranks; of U a fifth is missing in the upper eighth."""
    edges = np.arange(1, n_bins) / n_bins
    shares = [np.full(n_bins, 1 / n_bins)] * 2
    shares.append(shares[0] * np.where(np.arange(n_bins) < n_bins // 8, 0.8, 1.0))
    return RankCounts(edges, *(n * share for n, share in zip((n_p, n_n, n_u), shares)))


def least_over_mixtures(p, q, u, sizes):
    noise = [s * (1 - s) / n for s, n in zip((p, q, u), sizes)]
    shares = np.linspace(0, 1, 20_001)[:, None]
    gap = u - shares * p - (1 - shares) * q
    scale = shares**2 * noise[0] + (1 - shares) ** 2 * noise[1] + noise[2]
    return (gap**2 / scale).sum(axis=1).min()


@pytest.mark.parametrize(
    ("n_p", "n_n", "n_bins"),
    [(17, 90, None), (18, 90, 3), (90, 18, 3), (90, 17, None), (47, 90, 7), (48, 90, 8),
     (900, 900, 8), (29, 0, None), (30, 0, 5), (48, 0, 8), (900, 0, 8), (5, 0, None)],
)  # fmt: skip
def test_a_bin_for_six_rows_of_the_smaller_class_and_eight_at_most(n_p, n_n, n_bins):
    """Three bins test a mixture, five the form; degrees of freedom are the bins less 2 or 3."""
    counts = counts_of(n_p, n_n, 6400)
    told = fit_test(counts, BEST)
    if n_bins is None:
        assert (told.p_value, told.failed) == (None, False)
        assert "Too few labelled rows" in told.words
        return
    group = np.minimum(((np.arange(32) + 0.5) / 32 * n_bins).astype(int), n_bins - 1)
    joined = [np.bincount(group, role) for role in counts[1:]]
    if n_n:
        sizes = [role.sum() for role in counts[1:]]
        shares = [(role + 0.5) / (n + 0.5 * n_bins) for role, n in zip(joined, sizes)]
        total, freedom = least_over_mixtures(*shares, sizes), n_bins - 2
    else:
        point = (np.array([BEST.shift]), np.array([BEST.log_spread]))
        p, q = bin_shares(counts.edges, counts.pooled_share(np.array([BEST.share])), *point)
        laws = [p.ravel(), BEST.share * p.ravel() + (1 - BEST.share) * q.ravel()]
        total, freedom = 0.0, n_bins - 3
        for role, law in zip((joined[0], joined[2]), laws):
            expected = role.sum() * np.bincount(group, law)
            total += ((role - expected) ** 2 / np.maximum(expected, 0.5)).sum()
    assert told.p_value == pytest.approx(stats.chi2.sf(total, freedom), rel=1e-4)


@pytest.mark.parametrize(("n_n", "level"), [(4000, 0.01), (0, 0.001)])
def test_a_misfit_is_told_below_a_hundredth_or_with_one_class_a_thousandth(n_n, level):
    """The same misfit with more and more rows of U: words and level go together."""
    found = [fit_test(counts_of(4000, n_n, n_u), BEST) for n_u in np.geomspace(300, 60_000, 60)]
    below = [told.p_value < level for told in found]
    assert [told.failed for told in found] == below
    assert 5 < sum(below) < 55
    near = [told.p_value for told in found if level / 2 < told.p_value < 2 * level]
    assert len(near) >= 1
    assert all(("in keeping" in told.words) is not told.failed for told in found)


# --- bins and grids -------------------------------------------------------------------------------


@pytest.mark.parametrize("log_spread", [-1.0, 0.0, 1.5])
@pytest.mark.parametrize("shift", [-2.0, 0.0, 3.0])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_shares_of_bins_are_those_of_two_normal_laws(share, shift, log_spread):
    """P ~ N(0, 1), N ~ N(mean, spread^2), cut at the quantiles of their mixture.

    Interpolation on 240 points is off by less than .005; a spread of 4.5 reaches far below P.
    """
    edges = np.array([1e-3, 0.02, 0.3, 0.7, 0.98, 0.999])
    spread = np.exp(log_spread)
    mean = shift * np.sqrt((1 + spread**2) / 2)
    positive, negative = stats.norm(), stats.norm(mean, spread)

    def excess(z, edge):
        return share * positive.cdf(z) + (1 - share) * negative.cdf(z) - edge

    cuts = np.array([optimize.brentq(excess, -60, 60, args=(edge,)) for edge in edges])
    found = bin_shares(edges, np.array([share]), np.array([shift]), np.array([log_spread]))
    for law, shares in zip((positive, negative), found, strict=True):
        expected = np.diff(law.cdf(cuts), prepend=0.0, append=1.0)
        np.testing.assert_allclose(shares.ravel(), expected, atol=5e-3)


@pytest.mark.parametrize("n", [4, 30, 500, 20_000])
def test_edges_are_even_on_the_logit_of_the_rank(n):
    """31 of them; the outermost bins hold three rows, or one row in 1,800 of a large pool."""
    scores = np.arange(n, dtype=float)
    found = rank_counts(scores[: n // 4], scores[n // 4 : n // 2], scores[n // 2 :],
                        np.random.RandomState(0))  # fmt: skip
    reach = min(np.log(max(n / 3, 2)), 7.5)
    wanted = np.round(n / (1 + np.exp(-np.linspace(-reach, reach, 31))))
    expected = sorted({int(min(max(place, 1), n - 1)) for place in wanted})
    np.testing.assert_allclose(found.edges * n, expected)
    assert sum(role.sum() for role in found[1:]) == n
    # the first bins hold the highest scores, which are unlabelled here
    assert found.positive[0] == 0
    assert found.unlabeled[0] == expected[0]


def test_cells_of_the_share_are_even_where_a_binomial_error_is():
    edges = _share_edges((0.0, 1.0), 10)
    np.testing.assert_allclose(edges, np.sin(np.pi / 20 * np.arange(11)) ** 2, atol=1e-15)
    np.testing.assert_allclose(_unit(edges), np.linspace(0, 1, 11), atol=1e-7)
    part = _share_edges((0.1, 0.4), 6)
    assert (part[0], part[-1]) == (0.1, 0.4)
    steps = np.diff(_unit(part))
    np.testing.assert_allclose(steps, steps[0])
    grid = _Grid.over((0.1, 0.4), (0.0, 2.0), (-1.0, 1.0), (6, 5, 3))
    np.testing.assert_allclose(grid.edges, part)
    np.testing.assert_allclose(_unit(grid.shares), (_unit(part)[1:] + _unit(part)[:-1]) / 2)
    assert grid.shifts.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert grid.log_spreads.tolist() == [-1.0, 0.0, 1.0]
    assert grid.share_range == (0.1, 0.4)
    shape = grid.shape_at(2 * 15 + 3 * 3 + 1)
    assert shape == (grid.shares[2], 1.5, 0.0)


def test_a_closer_grid_holds_what_is_within_twelve_nats():
    """One cell more on either side, and no further than the grid goes."""
    grid = _Grid.over((0.0, 1.0), (0.0, 6.0), (-1.0, 1.0), (10, 7, 5))
    density = np.full((1, 10, 7, 5), -13.0)
    density[0, 4, 3, 2] = 0.0
    flat = np.zeros(10)
    closer = grid.around(density, flat)
    assert closer.share_range == (grid.edges[3], grid.edges[6])
    assert (closer.shifts[0], closer.shifts[-1]) == (2.0, 4.0)
    assert (closer.log_spreads[0], closer.log_spreads[-1]) == (-0.5, 0.5)
    density[0, 7, 5, 4] = -11.9
    wider = grid.around(density, flat)
    assert wider.share_range == (grid.edges[3], grid.edges[9])
    assert (wider.shifts[0], wider.shifts[-1]) == (2.0, 6.0)
    assert (wider.log_spreads[0], wider.log_spreads[-1]) == (-0.5, 1.0)
    # what the belief alone lifts within reach is looked at as well
    density[0, 7, 5, 4] = -13.0
    believed = np.where(np.arange(10) == 0, 2.0, 0.0)
    assert grid.around(density, believed).share_range == (0.0, grid.edges[6])
    # and either of two scorers may lift it
    second = np.full((1, 10, 7, 5), -13.0)
    second[0, 9, 0, 0] = 0.0
    both = grid.around(np.concatenate([density, second]), flat)
    assert both.share_range == (grid.edges[3], 1.0)
    assert (both.shifts[0], both.log_spreads[0]) == (0.0, -1.0)


def test_the_peak_of_the_posterior_is_where_the_rows_were_drawn():
    """20,000 rows of a binormal law with its share, shift and spread; exact to a cell or two."""
    rng = np.random.default_rng(0)
    spread, shift = np.exp(0.3), 1.8
    mean = shift * np.sqrt((1 + spread**2) / 2)
    hidden = np.arange(16_000) < 4000
    u = np.where(hidden, rng.normal(size=16_000), rng.normal(-mean, spread, 16_000))
    p, n = rng.normal(size=2000), rng.normal(-mean, spread, 2000)
    found = posterior([rank_counts(p, n, u, np.random.RandomState(0))], Beta(1, 1))
    (best,) = found.best
    assert best.share == pytest.approx(0.25, abs=0.02)
    assert best.shift == pytest.approx(1.8, abs=0.1)
    assert best.log_spread == pytest.approx(0.3, abs=0.1)
    assert found.shares @ found.weights == pytest.approx(0.25, abs=0.01)


# --- the type of a prior --------------------------------------------------------------------------


def test_what_is_nearer_to_an_end_than_one_row_in_a_billion_is_the_end():
    for value, read in ((0.9e-9, 0.0), (1.1e-9, 1.1e-9), (1 - 0.9e-9, 1.0), (1 - 1.1e-9, None)):
        expected = value if read is None else read
        assert read_prior(value).value == expected
        assert ClassPrior(value, 0.0, 1.0).value == expected
    assert ClassPrior(-0.1, 0.0, 1.0, source="estimated").value == 0.0
    assert ClassPrior(1.1, 0.0, 1.0, source="estimated").value == 1.0


@pytest.mark.parametrize("prior", [(10, 5, 15), (1.1, 0.0, 1.0), (0.1, 0.3, 0.2), (0.1, 0, 1.5)])
def test_a_given_prior_that_is_no_share_is_refused(prior):
    """Such as one in percent: moved to the end it would be read as 1."""
    with pytest.raises(ValueError, match=r"prior .* got"):
        ClassPrior(*prior)


def test_estimates_are_kept_from_the_ends_for_training():
    assert TRAINING_BOUNDS == (0.01, 0.99)
    for value, used in ((0.009, 0.01), (0.011, 0.011), (0.989, 0.989), (0.991, 0.99)):
        assert ClassPrior(value, 0, 1, source="estimated").training_value == used


def test_an_error_below_one_in_a_million_is_none():
    assert len(ClassPrior(0.3, 0, 1, std_error=1e-6, source="x").nodes()[0]) == 1
    assert len(ClassPrior(0.3, 0, 1, std_error=1.1e-6, source="x").nodes()[0]) == 21


def test_no_estimate_is_flatter_than_the_uniform_law():
    """Beta(1, 1) has an error of .289: a larger one changes nothing."""
    wide, wider = (ClassPrior(0.5, 0, 1, std_error=e, source="x").nodes(9)[0] for e in (0.29, 0.5))
    np.testing.assert_allclose(wide, wider, atol=1e-3)
    np.testing.assert_allclose(wider, (np.arange(9) + 0.5) / 9, atol=1e-9)
    narrow = ClassPrior(0.5, 0, 1, std_error=0.25, source="x").nodes(9)[0]
    assert narrow[0] > wider[0] + 0.01


def test_a_mean_at_an_end_is_moved_inside_by_half_of_its_error():
    for error, mean in ((0.02, 0.01), (0.1, 0.05), (2.0, 0.5)):
        values, weights = ClassPrior(0.0, 0, 1, std_error=error, source="x").nodes(40)
        assert values @ weights == pytest.approx(mean)
        values, weights = ClassPrior(1.0, 0, 1, std_error=error, source="x").nodes(40)
        assert values @ weights == pytest.approx(1 - mean)


def test_posteriors_may_reach_the_ends_and_not_pass_them():
    prior = ClassPrior.from_posterior([0.0, 0.5, 1.0], [1, 2, 1], 0.5)
    assert (prior.value, *prior.interval) == pytest.approx((0.5, 1 / 6, 5 / 6))
    assert prior.std_error == pytest.approx(np.sqrt(0.125))
    for shares in ([-0.1, 0.5], [0.5, 1.1], [0.5, 0.5]):
        with pytest.raises(ValueError, match="ascend and lie"):
            ClassPrior.from_posterior(shares, [1, 1])
    with pytest.raises(ValueError, match="one-dimensional"):
        ClassPrior.from_posterior([[0.1, 0.2]], [[1, 1]])


def test_estimators_of_others_with_an_error_and_an_interval():
    both = read_prior(SimpleNamespace(prior_=0.3, std_error_=0.02, interval_=(0.1, 0.6)))
    assert (both.std_error, both.interval, both.level) == (0.02, (0.1, 0.6), 0.95)
    wide = read_prior(SimpleNamespace(prior_=0.1, std_error_=0.2), 0.9)
    assert wide.interval == pytest.approx((0.0, 0.1 + stats.norm.ppf(0.95) * 0.2))
    high = read_prior(SimpleNamespace(prior_=0.9, std_error_=0.2), 0.9)
    assert high.interval == pytest.approx((0.9 - stats.norm.ppf(0.95) * 0.2, 1.0))
    assert read_prior(SimpleNamespace(prior_=0.3, std_error_=-1.0)).std_error == 0.0


# --- what the estimators ask for ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "name", "least"),
    [
        (PlacementPrior, "n_trees", 50), (PlacementPrior, "n_centers", 2),
        (PlacementPrior, "max_rows", 2), (EnergyDistancePrior, "max_rows", 2),
        (PenalizedL1Prior, "n_centers", 2), (PenalizedL1Prior, "n_shares", 2),
        (PenalizedL1Prior, "n_folds", 2), (PenalizedL1Prior, "n_bootstrap", 2),
        (EMPrior, "n_bootstrap", 2), (EMPrior, "max_rows", 2),
    ],
)  # fmt: skip
def test_the_least_that_a_parameter_may_be(model, name, least):
    model(**{name: least})._check_parameters()
    with pytest.raises(ValueError, match=f"{name} must"):
        model(**{name: least - 1})._check_parameters()


@pytest.mark.parametrize(
    ("model", "name", "good", "bad"),
    [
        (EnergyDistancePrior, "alpha", (0.01, 1.99), (0.0, 2.0, -1.0)),
        (EnergyDistancePrior, "identification_level", (0.01, 0.99), (0.0, 1.0)),
        (EnergyDistancePrior, "level", (0.01, 0.99), (0.0, 1.0)),
        (PlacementPrior, "spread_sd", (0.01, 9.0), (0.0, -1.0, np.nan)),
        (PlacementPrior, "scorers", (("forest",), ("kernel", "linear")), ((), ("forest", "x"))),
        (HellingerPrior, "n_bins", ((2,), (2, 9)), ((), (1, 5), (5, 1))),
        (PenalizedL1Prior, "widths", ((0.1,), (1.0, 2.0)), ((), (0.0, 1.0), (1.0, -1.0))),
        (PenalizedL1Prior, "alphas", ((0.1,),), ((), (0.0,))),
        (EMPrior, "scorer", (None, "forest", "linear"), ("kernel",)),
    ],
)
def test_values_that_a_parameter_may_have(model, name, good, bad):
    for value in good:
        model(**{name: value})._check_parameters()
    for value in bad:
        with pytest.raises(ValueError, match=name):
            model(**{name: value})._check_parameters()


@pytest.mark.parametrize(
    ("counts", "known"),
    [((2, 0, 9), True), ((0, 2, 9), True), ((1, 2, 9), True), ((1, 1, 9), False),
     ((2, 1, 9), True), ((2, 2, 1), False), ((0, 0, 9), False)],
)  # fmt: skip
def test_rows_that_the_default_needs(counts, known):
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), counts))
    if known:
        PlacementPrior()._require(roles)
    else:
        with pytest.raises(ValueError, match="PlacementPrior"):
            PlacementPrior()._require(roles)


def test_at_most_so_many_rows_in_their_order():
    X = np.arange(50)[:, None]
    assert take(X, None, np.random.RandomState(0)) is X
    assert take(X, 50, np.random.RandomState(0)) is X
    some = take(X, 49, np.random.RandomState(0)).ravel()
    assert len(set(some)) == 49
    assert (np.diff(some) > 0).all()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_rows_that_are_all_equal(kind):
    X = np.ones((150, 3))
    assert not rows_differ(kind(X))
    for row in (0, 99, 100, 149):
        bent = X.copy()
        bent[row, 1] = 0.0
        assert rows_differ(kind(bent))


# --- parts of the references ----------------------------------------------------------------------


def test_a_rise_in_errors():
    rng = np.random.default_rng(0)
    p, u = rng.normal(1.0, 1.0, (30, 4)), rng.normal(0.5, 2.0, (50, 4))
    rise_p, rise_u = p[:, 3] - p[:, 1], u[:, 3] - u[:, 1]
    error = np.sqrt(np.var(rise_p, ddof=1) / 30 + np.var(rise_u, ddof=1) / 50)
    assert _rise_to_one(p, u, 1) == pytest.approx((rise_p.mean() - rise_u.mean()) / error)
    assert _rise_to_one(p, u, 3) == 0.0


def test_a_resampled_mean_is_one_of_as_many_rows():
    values, rng = np.arange(7.0)[:, None], np.random.RandomState(0)
    found = np.array([_resampled_mean(values, rng)[0] for _ in range(4000)])
    np.testing.assert_allclose(found * 7, np.round(found * 7), atol=1e-9)
    assert found.mean() == pytest.approx(3.0, abs=0.05)
    assert found.std() == pytest.approx(2.0 / np.sqrt(7), rel=0.05)


def test_shares_of_a_population_within_rounding():
    """A billionth of the rows beyond what can be is rounding, more of it is an error."""
    assert prior_in_unlabeled(0.1 - 0.9e-9, 10, 20, 70) == 0.0
    assert prior_in_unlabeled(0.8 + 0.9e-9, 10, 20, 70) == 1.0
    for wrong in (0.1 - 1.2e-9, 0.8 + 1.2e-9):
        with pytest.raises(ValueError, match="is impossible"):
            prior_in_unlabeled(wrong, 10, 20, 70)


def test_rows_that_a_prior_stands_for():
    found = prior_in_rows(ClassPrior(0.1, 0.05, 0.2, std_error=0.03), 50, 1000)
    assert found["positives_unlabeled"] == pytest.approx((100, 50, 200))
    assert found["share_of_positives_known"] == pytest.approx(50 / 150)
    assert found["labels_to_halve"] == 300
    assert prior_in_rows(ClassPrior(0.1, 0, 1, std_error=0.0301), 5, 999)["labels_to_halve"] == 299


# --- ties -----------------------------------------------------------------------------------------


def test_rows_that_are_drawn_alike_come_in_their_order():
    drawn = np.random.default_rng(0).integers(0, 3, 400) / 3.0
    role = np.arange(1000, 1400)
    expected = sorted(range(400), key=lambda i: (drawn[i], i))[: round(0.632 * 400)]
    assert _held(role, drawn).tolist() == [1000 + i for i in expected]


def test_cells_of_equal_support_enter_from_below():
    edges = np.linspace(0, 1, 1001)
    weights = np.full(1000, 1e-3)
    flat = Posterior(edges, weights, weights, weights[None], [], np.ones(1000))
    low, high = flat.interval(0.5)
    assert (low, high) == pytest.approx((0.0, 0.5), abs=2e-3)
