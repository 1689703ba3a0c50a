"""The default prior: its likelihood against brute force, the laws of its posterior, the scores."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import beta, kstest, norm

from pnuauc.datasets import GENERATORS, make_twonorm, sample_pnu
from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError
from pnuauc.labels import read_roles
from pnuauc.priors import Beta, PlacementPrior
from pnuauc.priors._belief import read_belief
from pnuauc.priors._binormal import RankCounts, bin_shares, posterior, rank_counts
from pnuauc.priors._fit_test import fit_test
from pnuauc.priors._scorers import FAMILIES, prepare, squashed, usable

FLAT = Beta(1, 1)


def scores(prior, shift, seed, n_p=100, n_n=0, n_u=1000, spread=1.0, n_hidden=None):
    """P ~ N(0, 1); N ~ N(-shift, spread^2): a binormal ROC curve, as the model has it."""
    rng = np.random.default_rng(seed)
    positive = rng.uniform(size=n_u) < prior
    if n_hidden is not None:
        positive = np.arange(n_u) < n_hidden
    negative = rng.normal(-shift, spread, size=n_u + n_n)
    u = np.where(positive, rng.standard_normal(n_u), negative[:n_u])
    return rng.standard_normal(n_p), negative[n_u:], u


def counts_of(*samples, seed=0):
    return rank_counts(*samples, np.random.RandomState(seed))


def model(**parameters):
    shared = {"unlabeled_label": -1, "random_state": 0, "on_unidentified": "ignore"}
    return PlacementPrior(**(shared | parameters))


# --- the likelihood -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "shift", "log_spread"), [(0.02, 0.3, 0.5), (0.4, 2.0, 0.0), (0.9, 4.5, -0.7)]
)
def test_bin_shares_equal_a_root_search(share, shift, log_spread) -> None:
    """p_b and q_b between the z at which the mixture's distribution function has the edges."""
    edges = np.array([0.003, 0.02, 0.3, 0.6, 0.95, 0.998])
    p, q = bin_shares(edges, *(np.array([v]) for v in (share, shift, log_spread)))
    spread = np.exp(log_spread)
    mean = shift * np.sqrt((1 + spread**2) / 2)

    def below(z):
        return share * norm.cdf(z) + (1 - share) * norm.cdf(z, mean, spread)

    z = [brentq(lambda x, w=w: below(x) - w, -40, 60, xtol=1e-12) for w in edges]
    ends = [-np.inf, *z, np.inf]
    np.testing.assert_allclose(p.ravel(), np.diff(norm.cdf(ends)), atol=2e-4)
    np.testing.assert_allclose(q.ravel(), np.diff(norm.cdf(ends, mean, spread)), atol=2e-4)
    pool = share * p.ravel() + (1 - share) * q.ravel()
    np.testing.assert_allclose(pool, np.diff([0, *edges, 1]), atol=2e-4)


def test_bins_count_each_row_once_and_agree_with_brute_force() -> None:
    samples = scores(0.3, 1.0, 1, n_p=57, n_n=31, n_u=200)
    counts = counts_of(*samples)
    pool = np.sort(np.concatenate(samples))[::-1]
    inner = pool[np.round(counts.edges * len(pool)).astype(int) - 1]
    for sample, found in zip(samples, counts[1:], strict=True):
        expected = [np.sum(sample >= inner[0])]
        expected += [np.sum((sample < a) & (sample >= b)) for a, b in pairwise(inner)]
        expected += [np.sum(sample < inner[-1])]
        np.testing.assert_array_equal(found, expected)
    tied = counts_of(np.zeros(57), np.zeros(31), np.zeros(200))
    assert [role.sum() for role in tied[1:]] == [57, 31, 200]
    assert np.count_nonzero(tied.unlabeled) > 5  # ties spread over the bins, not into one


def brute_posterior(counts: RankCounts, belief: Beta, spread_sd=0.25):
    """Mean of the posterior by plain sums over one fine grid of everything."""
    shares = (np.arange(400) + 0.5) / 400
    shifts, log_spreads = np.linspace(0.05, 5.05, 60), np.linspace(-0.75, 0.75, 15)
    p, q = bin_shares(counts.edges, counts.pooled_share(shares), shifts, log_spreads)
    u = shares[:, None, None, None] * p + (1 - shares[:, None, None, None]) * q
    log = np.log(np.maximum(p, 1e-15)) @ counts.positive
    log += np.log(np.maximum(q, 1e-15)) @ counts.negative
    log += np.log(np.maximum(u, 1e-15)) @ counts.unlabeled - log_spreads**2 / (2 * spread_sd**2)
    weights = np.exp(log - log.max()).sum(axis=(1, 2)) * beta.pdf(shares, belief.a, belief.b)
    return shares, weights / weights.sum()


@pytest.mark.parametrize(("n_p", "n_n", "prior"), [(20, 30, 0.3), (60, 0, 0.1), (5, 100, 0.6)])
@pytest.mark.parametrize("belief", [FLAT, Beta(1, 3)])
def test_posterior_equals_plain_sums_over_a_fine_grid(n_p, n_n, prior, belief) -> None:
    counts = counts_of(*scores(prior, 1.8, 3, n_p, n_n, n_u=300))
    shares, weights = brute_posterior(counts, belief)
    found = posterior([counts], belief)
    mean = shares @ weights
    assert found.shares @ found.weights == pytest.approx(mean, abs=0.004)
    deviation = np.sqrt((shares - mean) ** 2 @ weights)
    ours = np.sqrt((found.shares - mean) ** 2 @ found.weights)
    assert ours == pytest.approx(deviation, rel=0.05)


# --- laws of the posterior ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_p", "n_n", "prior", "shift", "margin"),
    [
        (100, 0, 0.1, 2.5, 0.02),
        (100, 0, 0.2, 1.5, 0.05),
        (100, 0, 0.5, 2.5, 0.04),
        (10, 40, 0.3, 1.5, 0.05),
        (25, 25, 0.1, 2.0, 0.03),
        (100, 100, 0.02, 2.0, 0.02),
        (0, 60, 0.7, 2.0, 0.06),
    ],
)
def test_it_finds_the_prior_of_its_own_model_and_covers(n_p, n_n, prior, shift, margin) -> None:
    """50 draws, flat belief: 90% intervals; 76% allows for more than three errors of the count.

    The realised share of positives in U is what is estimated, as in a table at hand.
    """
    values, covered = [], 0
    hidden = round(prior * 600)
    for seed in range(50):
        counts = counts_of(*scores(prior, shift, seed, n_p, n_n, 600, n_hidden=hidden))
        found = posterior([counts], FLAT)
        values.append(found.shares @ found.weights)
        low, high = found.interval(0.9)
        covered += low <= prior <= high
    assert abs(np.mean(values) - prior) < margin
    assert covered >= 0.76 * 50


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_p=st.integers(0, 40),
    n_n=st.integers(0, 40),
    a=st.floats(0.5, 20),
    b=st.floats(0.5, 20),
    level=st.floats(0.05, 0.99),
)
def test_posterior_is_a_law_and_its_interval_lies_inside(seed, n_p, n_n, a, b, level) -> None:
    samples = scores(0.3, 1.5, seed, n_p + 2, n_n, n_u=80)
    found = posterior([counts_of(*samples), counts_of(*samples, seed=1)], Beta(a, b))
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights.min() >= 0
    assert np.all(np.diff(found.edges) > 0)
    low, high = found.interval(level)
    assert 0 <= found.edges[0] <= low < high <= found.edges[-1] <= 1
    inside = (found.shares > low) & (found.shares < high)
    pooled = found.by_scorer.mean(axis=0)
    factor = 0.87 * (np.sqrt(0.5) if n_n else 1)
    assert pooled[inside].sum() >= 2 * norm.cdf(factor * norm.ppf((1 + level) / 2)) - 1 - 1e-9
    alone = posterior([counts_of(*samples)], Beta(a, b))
    low, high = alone.interval(level)
    inside = (alone.shares > low) & (alone.shares < high)
    assert alone.weights[inside].sum() >= level - 1e-9
    assert found.surprise() > -1e-3


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), n_p=st.integers(0, 30), n_n=st.integers(2, 30))
def test_positives_and_negatives_play_the_same_part(seed, n_p, n_n) -> None:
    """Swapped classes and negated scores give the mirrored posterior, for any sizes.

    A pool of odd size has its middle edge on one of two ranks, and mirrors up to that.
    """
    p, n, u = scores(0.3, 1.5, seed, n_p, n_n, n_u=150 + (n_p + n_n) % 2)
    straight = posterior([counts_of(p, n, u)], Beta(1, 3))
    swapped = posterior([counts_of(-n, -p, -u)], Beta(3, 1))
    np.testing.assert_allclose(straight.edges, 1 - swapped.edges[::-1], atol=1e-9)
    np.testing.assert_allclose(straight.weights, swapped.weights[::-1], atol=2e-3)
    mirrored = counts_of(p, n, u).mirrored()
    for ours, theirs in zip(mirrored, counts_of(-n, -p, -u), strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_only_the_order_of_scores_matters_and_not_that_of_rows() -> None:
    samples = scores(0.3, 1.5, 0, n_n=50)
    first = posterior([counts_of(*samples)], FLAT).weights
    mapped = posterior([counts_of(*(np.exp(s) for s in samples))], FLAT).weights
    np.testing.assert_allclose(first, mapped)
    shuffled = posterior([counts_of(*(np.roll(s[::-1], 17) for s in samples))], FLAT).weights
    np.testing.assert_allclose(first, shuffled)


def test_known_negatives_and_known_positives_sharpen() -> None:
    """Mean length of 90% intervals over 12 draws falls with every group of labelled rows."""
    lengths = []
    for n_p, n_n in ((20, 0), (20, 20), (20, 200), (200, 200)):
        ends = [
            posterior([counts_of(*scores(0.2, 1.5, seed, n_p, n_n))], FLAT).interval(0.9)
            for seed in range(12)
        ]
        lengths.append(np.mean([high - low for low, high in ends]))
    assert lengths[0] > 1.1 * lengths[1] > 1.2 * lengths[2]
    assert lengths[2] > 1.3 * lengths[3]


def test_a_belief_narrows_moves_and_can_be_outvoted() -> None:
    counts = counts_of(*scores(0.2, 1.2, 0, 20, 20))
    flat, near, far = (posterior([counts], read_belief(b)) for b in (FLAT, (0.1, 0.2), (0.4, 0.6)))
    lengths = [np.subtract(*found.interval(0.9)[::-1]) for found in (flat, near)]
    assert lengths[1] < 0.7 * lengths[0]
    means = [found.shares @ found.weights for found in (flat, near, far)]
    assert 0.1 < means[1] < 0.2 < 0.3 < means[2]
    strong = counts_of(*scores(0.2, 3.0, 0, 400, 400, 4000))
    moved = posterior([strong], Beta(4, 4))
    assert moved.shares @ moved.weights == pytest.approx(0.2, abs=0.03)


def test_scorers_are_averaged_in_logarithms_and_none_counts_twice() -> None:
    first, second = (counts_of(*scores(0.2, 1.5, seed, 30, 30)) for seed in (0, 1))
    once, twice = (posterior(counts, FLAT) for counts in ([first], [first, first]))
    np.testing.assert_allclose(once.weights, twice.weights)
    both = posterior([first, second], FLAT)
    product = np.sqrt(np.prod(both.by_scorer / both.belief, axis=0)) * both.belief
    np.testing.assert_allclose(both.weights, product / product.sum(), rtol=1e-6, atol=1e-12)


def test_the_draw_of_the_unlabelled_rows_is_an_error_only_where_some_are_left_out() -> None:
    """Two scorers, both classes: an interval for all rows of U is shorter; one class: the same."""
    p, n, u = scores(0.2, 2.5, 0, 200, 200)
    for negative, shorter in ((n, True), ([], False)):
        counts = [counts_of(p, negative, u)] * 2
        own, part = (
            posterior(counts, FLAT, all_unlabeled=whole).interval(0.9) for whole in (True, False)
        )
        assert part[0] <= own[0] < own[1] <= part[1]
        assert (own != part) == shorter


def test_without_information_the_posterior_is_the_belief() -> None:
    """All roles of one law, 200 rows each: nothing is learnt from P and N."""
    rng = np.random.default_rng(0)
    found = posterior([counts_of(*rng.standard_normal((3, 200)))], Beta(2, 3))
    assert found.surprise() < 0.1
    assert found.shares @ found.weights == pytest.approx(0.4, abs=0.12)


def test_the_lower_end_reaches_zero_where_there_are_no_positives() -> None:
    ends = [
        posterior([counts_of(*scores(0.0, 1.5, seed, 50, 50))], Beta(1, 3)).interval(0.9)
        for seed in range(20)
    ]
    assert np.mean([low == 0 for low, _ in ends]) >= 0.8
    assert max(high for _, high in ends) < 0.25


def test_with_both_classes_the_default_belief_weighs_but_does_not_rank() -> None:
    """No share outside the interval has a higher likelihood than its ends.

    With a stated belief, or one class alone, no share outside has a higher density. The two orders
    give other intervals in most of the 12 draws, or this would show nothing.
    """
    default, differ = read_belief(None), 0
    for seed in range(12):
        p, n, u = scores(0.3, 1.0, seed, 10, 20)
        both, stated = (posterior([counts_of(p, n, u)], b) for b in (default, Beta(1, 3.5)))
        one = posterior([counts_of(p, [], u)], default)
        mirrored = posterior([counts_of(-n, [], -u)], default.mirrored)
        for found, measure in (
            (both, both.belief),
            (one, np.diff(one.edges)),
            (mirrored, np.diff(mirrored.edges)),
            (stated, np.diff(stated.edges)),
        ):
            low, high = found.interval(0.9)
            inside = (found.shares > low) & (found.shares < high)
            height = found.weights / measure
            ends = height[inside][[0, -1]]
            assert height[~inside].max(initial=0) <= ends.min() * (1 + 1e-9)
        differ += both.interval(0.9) != both._replace(
            support=both.weights / np.diff(both.edges)
        ).interval(0.9)
    assert differ >= 9


def test_the_default_interval_reaches_zero_too_and_errs_on_both_sides() -> None:
    """No positives in U: the lower end is 0 in at least 16 of 20 draws.

    A share of .3 from 10 + 40 rows, where the belief pulls down: of 60 draws at least 78% hold it
    (90% less three errors of the count), and no fewer than the shortest intervals do.
    """
    default = read_belief(None)
    none = [
        posterior([counts_of(*scores(0.0, 1.5, seed, 50, 50))], default).interval(0.9)
        for seed in range(20)
    ]
    assert np.mean([low == 0 for low, _ in none]) >= 0.8
    assert max(high for _, high in none) < 0.25
    held = np.zeros(2)
    for seed in range(60):
        found = posterior([counts_of(*scores(0.3, 1.0, seed, 10, 40, 600, n_hidden=180))], default)
        shortest = found._replace(support=found.weights / np.diff(found.edges))
        held += [low <= 0.3 <= high for low, high in (found.interval(0.9), shortest.interval(0.9))]
    assert held[0] >= max(0.78 * 60, held[1])


def test_beliefs_are_read_or_refused() -> None:
    read = read_belief((0.1, 0.3))
    assert read.mean == pytest.approx(0.2)
    assert beta.std(read.a, read.b) == pytest.approx(0.2 / 3.92, rel=1e-3)
    default = read_belief(None)
    assert default.mean == pytest.approx(0.9 / 4.5 + 0.1 * 0.5)
    edges = np.array([0, 0.2, 0.7, 1])
    expected = 0.9 * np.diff(beta.cdf(edges, 1, 3.5)) + 0.1 * np.diff(edges)
    np.testing.assert_allclose(default.masses(edges), expected)
    mirrored = default.mirrored.masses(1 - edges[::-1])
    np.testing.assert_allclose(mirrored[::-1], expected)
    assert Beta(1, 3).masses(np.array([0, 0.5, 1])) == pytest.approx([0.875, 0.125])
    for bad in ((0.3, 0.2), (0.1, 1.2), (0.1,), "x", 0.2, (np.nan, 0.3)):
        with pytest.raises(ValueError, match="belief must be"):
            read_belief(bad)
    with pytest.raises(ValueError, match="belief must be"):
        Beta(0, 1)


# --- the test of fit ----------------------------------------------------------------------------


def test_fit_test_holds_its_level_and_sees_labelled_positives_that_are_too_easy() -> None:
    """80 draws; level .05 within four errors of the count, power at least one half."""
    p_values, violated = [], []
    for seed in range(80):
        p, n, u = scores(0.4, 1.5, seed, 200, 150, 1500)
        p_values.append(fit_test(counts_of(p[:100], n, u), None).p_value)
        easy = np.sort(p)[100:]  # the better half of them
        violated.append(fit_test(counts_of(easy, n, u), None).p_value)
    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 80)
    assert np.mean(np.array(p_values) < 0.5) > 0.25  # not merely always large
    assert np.mean(np.array(violated) < 0.05) > 0.5


def test_fit_test_with_one_class_needs_rows_and_looks_at_the_form() -> None:
    counts = counts_of(*scores(0.3, 2.0, 0, 5, 5, 300))
    assert fit_test(counts, None).p_value is None
    assert "Too few" in fit_test(counts, None).words
    p_values = []
    for seed in range(40):
        counts = counts_of(*scores(0.3, 2.0, seed, 150, 0, 1000))
        best = posterior([counts], FLAT).best[0]
        p_values.append(fit_test(counts, best).p_value)
    assert np.mean(np.array(p_values) < 0.01) < 0.1
    rng = np.random.default_rng(0)
    # U holds a lump of rows in the midst of P's scores: no two normal laws look like that
    u = np.concatenate([rng.normal(-4, 1, 700), rng.normal(-0.2, 0.02, 300)])
    counts = counts_of(rng.standard_normal(150), np.empty(0), u)
    bad = fit_test(counts, posterior([counts], FLAT).best[0])
    assert bad.p_value < 1e-3
    assert "form" in bad.words


# --- the scores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n_n", [0, 150])
def test_scores_do_not_know_the_labels_of_noise(name: str, n_n: int) -> None:
    """Labelled rows of one law with U rank uniformly in it, as only unseen rows do.

    Kolmogorov-Smirnov over 150 positives, level .001: a model that scored its own training rows
    would push them to one end.
    """
    rng = np.random.RandomState(0)
    X = rng.standard_normal((700 + n_n, 60))  # enough columns to overfit
    roles = read_roles(np.repeat([1, 0, -1], [150, n_n, 550]), unlabeled_label=-1)
    rows = prepare(X, roles, rng, n_trees=50, n_centers=60)
    if name not in usable((), rows) and name != "linear":
        pytest.skip("distances to N need N")
    found = FAMILIES[name](rows)
    u = np.sort(found[rows.codes == -1])
    v = np.searchsorted(u, found[rows.codes == 1]) / len(u)
    assert kstest(v, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_rank_separated_classes(name: str) -> None:
    X, y = make_twonorm(3000, random_state=0)
    s = sample_pnu(X, y, 60, 60, 300, 0.3, 0)
    rng = np.random.RandomState(0)
    rows = prepare(s.X, read_roles(s.y), rng, n_trees=50, n_centers=60)
    found = FAMILIES[name](rows)[rows.codes == -1]
    wins = found[s.y_unlabeled == 1][:, None] > found[s.y_unlabeled == 0]
    assert wins.mean() > 0.95


def test_squashing_ignores_the_units_of_columns_and_tames_outliers() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_t(1.2, 500), rng.standard_normal(500), np.full(500, 0.1)])
    found = squashed(X)
    assert found.shape == (500, 2)  # the constant column is gone
    np.testing.assert_allclose(found, squashed(X * [1e6, 1e-6, 3] + [5, -7, 1]), atol=1e-6)
    assert np.abs(found).max() < 10 < np.abs(X).max() / X[:, 0].std()
    np.testing.assert_allclose(found.std(axis=0), 1)


# --- the estimator ------------------------------------------------------------------------------


def test_all_numbers_of_an_estimate_agree() -> None:
    X, y = make_twonorm(4000, random_state=0)
    s = sample_pnu(X, y, 40, 60, 800, 0.1, 1)
    fitted = model(level=0.95).fit(s.X, s.y)
    known = fitted.estimate_
    assert (known.value, known.interval, known.std_error) == (
        fitted.prior_,
        fitted.interval_,
        fitted.std_error_,
    )
    assert known.weights.sum() == pytest.approx(1)
    assert known.shares @ known.weights == pytest.approx(fitted.prior_)
    assert fitted.interval_[0] < 0.1 < fitted.interval_[1]
    d = fitted.diagnostics_
    assert d["scorers"] == ("forest", "kernel", "distance")
    assert d["positives_unlabeled"] == pytest.approx(
        (800 * fitted.prior_, 800 * known.low, 800 * known.high)
    )
    assert d["share_of_positives_known"] == pytest.approx(40 / (40 + 800 * fitted.prior_))
    assert d["fit_p_value"] > 0.01
    wanted = 3 * known.value * (1 - known.value) / known.std_error**2
    assert d["labels_to_halve"] == min(int(np.ceil(wanted)), 800)


def test_an_end_within_one_row_of_u_is_the_end() -> None:
    """Without any positive in U the lower end is 0 under the default belief, too."""
    X, y = make_twonorm(3000, random_state=1)
    sample = sample_pnu(X, y, 40, 60, 400, prior=0.0, random_state=0)
    low, high = model().fit(sample.X, sample.y).interval_
    assert low == 0
    assert high < 0.1


def test_the_same_seed_gives_the_same_answer_and_another_one_nearly() -> None:
    X, y = GENERATORS["waveform"](3000, random_state=0)
    s = sample_pnu(X, y, 60, 60, 600, 0.2, 0)
    first, again, other = (model(random_state=seed).fit(s.X, s.y).prior_ for seed in (1, 1, 2))
    assert first == again
    assert abs(first - other) < 0.04
    order = np.random.default_rng(0).permutation(len(s.y))
    assert abs(model(random_state=1).fit(s.X[order], s.y[order]).prior_ - first) < 0.04


def test_a_single_row_of_a_class_is_left_out_and_two_single_rows_are_refused() -> None:
    X, y = make_twonorm(2000, random_state=0)
    s = sample_pnu(X, y, 30, 1, 300, 0.2, 0)
    without = s.y != 0
    alone = model().fit(s.X[without], s.y[without])
    assert model().fit(s.X, s.y).prior_ == alone.prior_
    swapped = np.where(s.y == -1, -1, 1 - s.y)
    fitted = model(belief=FLAT).fit(s.X, swapped)
    assert fitted.diagnostics_["known_class"] == "negative"
    one = np.isin(np.arange(len(s.y)), np.flatnonzero(s.y == 1)[1:], invert=True)
    with pytest.raises(MissingRoleError):
        model().fit(s.X[one], s.y[one])


@pytest.mark.parametrize("sizes", [(2, 0), (2, 5), (5, 0), (3, 3), (12, 0)])
def test_few_rows_give_a_modest_number_and_never_a_bold_one(sizes) -> None:
    """Two positives and five negatives once gave "99.9%": here at most half of U, and unsure."""
    X, y = GENERATORS["waveform"](3000, random_state=0)
    for seed in range(3):
        s = sample_pnu(X, y, *sizes, 300, 0.1, seed)
        fitted = model(random_state=seed).fit(s.X, s.y)
        assert fitted.prior_ < 0.5
        assert fitted.interval_[1] - fitted.interval_[0] > 0.1


def test_words_of_what_cannot_be_told() -> None:
    rng = np.random.default_rng(4)  # seven draws of noise in ten are refused
    X = rng.standard_normal((460, 3))
    both, one = np.repeat([1, 0, -1], [80, 80, 300]), np.repeat([1, -1], [160, 300])
    for y, words in ((both, "as open as it was"), (one, "cannot be told apart")):
        with pytest.raises(PriorNotIdentifiedError, match=words):
            model(on_unidentified="raise").fit(X, y)


@pytest.mark.parametrize("n_negative", [0, 60])
def test_copies_of_rows_say_nothing_new(n_negative) -> None:
    """Every row four times: a prior of .2 once read .001 (.000 to .002), now as the rows once."""
    X, y = make_twonorm(3000, random_state=0)
    s = sample_pnu(X, y, 60, n_negative, 600, 0.2, 0)
    once, stacked = (model().fit(np.tile(s.X, (k, 1)), np.tile(s.y, k)) for k in (1, 4))
    assert abs(stacked.prior_ - once.prior_) < 0.08
    widths = [fit.interval_[1] - fit.interval_[0] for fit in (once, stacked)]
    assert 0.75 * widths[0] < widths[1] < 2 * widths[0]
    assert stacked.interval_[0] <= 0.2 <= stacked.interval_[1]


def test_rows_beyond_the_limit_are_drawn_and_the_answer_stays() -> None:
    X, y = make_twonorm(30_000, prior=0.3, random_state=0)
    s = sample_pnu(X, y, 100, 100, 20_000, 0.2, 0)
    whole, part = (model(max_rows=limit).fit(s.X, s.y) for limit in (None, 2000))
    assert abs(whole.prior_ - part.prior_) < 0.04
    assert part.diagnostics_["positives_unlabeled"][0] == pytest.approx(20_000 * part.prior_)


def test_forest_scorer_ignores_the_scale_of_columns() -> None:
    X, y = make_twonorm(3000, random_state=0)
    s = sample_pnu(X, y, 60, 0, 300, 0.2, 0)
    forest = model(scorers=("forest",))
    stretched = s.X * np.logspace(-6, 6, 20, base=2)
    assert forest.fit(s.X, s.y).prior_ == pytest.approx(forest.fit(stretched, s.y).prior_, abs=0.02)


def test_distance_needs_both_classes() -> None:
    X, y = make_twonorm(1000, random_state=0)
    s = sample_pnu(X, y, 30, 0, 200, 0.2, 0)
    with pytest.raises(ValueError, match="both classes"):
        model(scorers=("distance",)).fit(s.X, s.y)


@pytest.mark.parametrize("labelled", ["both", "positive", "negative"])
def test_a_scorer_alone_gives_the_estimate(labelled) -> None:
    """Its posterior is the posterior; the AUC is that of positives over negatives."""
    X, y = make_twonorm(3000, random_state=0)
    s = sample_pnu(X, y, 60, 60, 400, 0.3, 0)
    kept = {"both": s.y >= -1, "positive": s.y != 0, "negative": s.y != 1}[labelled]
    fitted = model(scorers=("kernel",), belief=FLAT).fit(s.X[kept], s.y[kept])
    told = fitted.diagnostics_
    assert told["scorers"] == ("kernel",)
    assert told["estimates"] == pytest.approx([fitted.prior_], abs=1e-12)
    assert abs(fitted.prior_ - 0.3) < 0.15
    assert 0.9 < told["auc"] <= 1
    assert told["auc_z"] > 3
    assert 0.5 < told["auc_known_unlabeled"] < told["auc"]
    assert ("known_class" in told) is (labelled == "negative")
