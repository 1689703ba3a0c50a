"""Parts of the prior estimators against their definitions: all pairs, searches over a grid."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.spatial.distance import cdist

from pnuauc._design import joined
from pnuauc._prior import ClassPrior
from pnuauc.labels import Roles
from pnuauc.priors import (
    Beta,
    EMPrior,
    EnergyDistancePrior,
    PenalizedL1Prior,
    PlacementPrior,
    _matching,
    _placement,
    _quantification,
    prior_in_population,
    prior_in_unlabeled,
)
from pnuauc.priors import _distances as distances
from pnuauc.priors import _placement as placement
from pnuauc.priors._belief import read_belief
from pnuauc.priors._binormal import (
    Posterior,
    RankCounts,
    Shape,
    bin_shares,
    posterior,
    rank_counts,
)
from pnuauc.priors._conversion import prior_in_rows
from pnuauc.priors._distances import gaussian, median_distance
from pnuauc.priors._fit_test import _groups, _mixture_statistic, fit_test

# --- distances ------------------------------------------------------------------------------------


def two_samples(kind):
    rng = np.random.default_rng(0)
    A, B = rng.random((37, 3)) * (rng.random((37, 3)) < 0.7), rng.random((52, 3))
    return A, B, kind(A), kind(B)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("exponent", [1.0, 0.6, 1.7])
def test_sums_of_distances_are_those_of_all_pairs(kind, exponent, monkeypatch):
    """In blocks of a few rows, which must neither overlap nor leave anything out."""
    monkeypatch.setattr(distances, "_BLOCK", 52 * 5)
    A, B, a, b = two_samples(kind)
    every = cdist(A, B) ** exponent
    over_b, over_a = distances.cross_sums(a, b, exponent)
    np.testing.assert_allclose(over_b, every.sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(over_a, every.sum(axis=0), rtol=1e-9)
    within = (cdist(A, A) ** exponent).sum(axis=1)
    np.testing.assert_allclose(distances.within_sums(a, exponent), within, rtol=1e-6)
    np.testing.assert_allclose(distances.squared_distances(a, b), cdist(A, B) ** 2, atol=1e-12)
    np.testing.assert_allclose(distances.squared_distances(b, a), cdist(B, A) ** 2, atol=1e-12)


def test_blocks_cover_every_pair_once():
    seen = np.zeros((10, 9000), dtype=int)
    for rows, columns in distances._blocks(*seen.shape):
        seen[rows, columns] += 1
    assert (seen == 1).all()


def test_centring_takes_the_common_mean_away():
    A, B, *_ = two_samples(np.asarray)
    a, b = distances.centre(A.astype(np.float32), B.astype(np.float32))
    assert a.dtype == np.float64
    np.testing.assert_allclose(np.concatenate([a, b]).mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(cdist(a, b), cdist(A, B), atol=1e-6)
    (same,) = distances.centre(sparse.csr_matrix(A))
    np.testing.assert_array_equal(same.toarray(), A)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_features_and_the_median_distance(kind):
    A, B, a, b = two_samples(kind)
    both = np.concatenate([A, B])
    stacked = joined([a, b])
    assert stacked.shape == (89, 3)
    np.testing.assert_array_equal(np.asarray(sparse.csr_matrix(stacked).toarray()), both)
    pairs = cdist(both, both)[np.triu_indices(89, 1)]
    found = median_distance(stacked, np.random.RandomState(0))
    assert found == pytest.approx(np.median(pairs))
    expected = np.exp(-(cdist(A, B) ** 2) / (2 * 0.3**2))
    np.testing.assert_allclose(gaussian(cdist(A, B) ** 2, 0.3), expected, rtol=1e-12)


def test_copies_do_not_make_the_median_distance_vanish():
    copies = np.r_[np.zeros((30, 1)), np.ones((5, 1))]
    n = 35 * 34 / 2
    assert median_distance(copies, np.random.RandomState(0)) == pytest.approx(150 / n)
    assert median_distance(np.zeros((4, 1)), np.random.RandomState(0)) == 1.0
    many = np.arange(900.0)[:, None]
    some = many[np.random.RandomState(0).permutation(900)[:300]]  # so many are looked at
    expected = np.median(cdist(some, some)[np.triu_indices(300, 1)])
    assert median_distance(many, np.random.RandomState(0)) == pytest.approx(expected)


# --- does it fit together? ------------------------------------------------------------------------


def counts(p, q, u):
    edges = np.linspace(0, 1, len(p) + 1)[1:-1]
    return RankCounts(edges, *(np.array(part, dtype=float) for part in (p, q, u)))


def test_groups_hold_about_the_same_labelled_rows():
    mass = np.array([3.0, 1.0, 1.0, 1.0, 5.0, 1.0, 2.0, 2.0])
    assert _groups(mass, 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert _groups(np.array([1.0, 0.0, 9.0]), 5).tolist() == [0, 0, 1]  # without empty groups
    assert _groups(np.ones(32), 8).tolist() == np.repeat(np.arange(8), 4).tolist()


def test_statistic_of_a_mixture_is_the_least_over_all_shares():
    found = counts([30, 20, 8, 2], [5, 10, 25, 40], [120, 140, 330, 410])
    group = np.arange(4)
    statistic, freedom = _mixture_statistic(found, group)
    sizes = [60, 80, 1000]
    p, q, u = ((part + 0.5) / (n + 2) for part, n in zip(found[1:], sizes, strict=True))
    noise = [s * (1 - s) / n for s, n in zip((p, q, u), sizes, strict=True)]

    def at(t):
        gap = u - t * p - (1 - t) * q
        return np.sum(gap**2 / (t**2 * noise[0] + (1 - t) ** 2 * noise[1] + noise[2]))

    assert statistic == pytest.approx(min(map(at, np.linspace(0, 1, 100_001))), abs=1e-6)
    assert freedom == 2
    told = fit_test(found, Shape(0.2, 1.0, 0.0))
    assert told.p_value == pytest.approx(stats.chi2.sf(statistic, 2))
    assert not told.failed
    assert "in keeping" in told.words


def test_rows_unlike_any_mixture_are_told():
    """U's middle is empty where both classes have rows: no share makes that."""
    found = counts([20, 20, 20, 20], [20, 20, 20, 20], [500, 10, 10, 480])
    told = fit_test(found, Shape(0.2, 1.0, 0.0))
    assert told.p_value < 1e-6
    assert told.failed
    assert "not a mixture" in told.words


def test_one_class_is_compared_with_the_binormal_form():
    """Pearson's statistic of both roles' counts under the law, degrees of freedom bins less 3."""
    best, n_p, n_u = Shape(0.3, 1.5, 0.1), 60, 900
    edges = np.linspace(0, 1, 9)[1:-1]
    pooled = np.array([(n_p + best.share * n_u) / (n_p + n_u)])
    p, q = bin_shares(edges, pooled, np.array([best.shift]), np.array([best.log_spread]))
    p, q = p.ravel(), q.ravel()
    u = best.share * p + (1 - best.share) * q
    exact = RankCounts(edges, n_p * p, np.zeros(8), n_u * u)
    assert fit_test(exact, best).p_value == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    drawn = RankCounts(edges, rng.multinomial(n_p, p).astype(float), np.zeros(8), n_u * u[::-1])
    group = _groups(drawn.positive / n_p, 8)
    parts = [
        np.bincount(group, values) for values in (drawn.positive, n_p * p, drawn.unlabeled, n_u * u)
    ]
    total = sum(
        np.sum((seen - wanted) ** 2 / np.maximum(wanted, 0.5))
        for seen, wanted in (parts[:2], parts[2:])
    )
    freedom = group.max() + 1 - 3
    assert fit_test(drawn, best).p_value == pytest.approx(stats.chi2.sf(total, freedom))


# --- ranks and posteriors -------------------------------------------------------------------------


def test_rank_counts_count_every_row_from_the_top():
    rng = np.random.default_rng(0)
    p, n, u = rng.normal(1, 1, 20), rng.normal(0, 1, 30), rng.normal(0, 1, 450)
    found = rank_counts(p, n, u, np.random.RandomState(0))
    pool = np.sort(np.concatenate([p, n, u]))[::-1]
    cuts = np.round(found.edges * 500).astype(int)
    assert (np.diff(cuts) > 0).all()
    for scores, bins in zip((p, n, u), found[1:], strict=True):
        place = np.searchsorted(-pool, -scores)  # rows above each
        expected = np.histogram(place, np.r_[0, cuts, 500] - 0.5)[0]
        np.testing.assert_array_equal(bins, expected)
    share = found.pooled_share(np.array([0.0, 0.4]))
    assert share == pytest.approx([20 / 500, (20 + 180) / 500])
    mirrored = found.mirrored()
    np.testing.assert_array_equal(mirrored.positive, found.negative[::-1])
    np.testing.assert_array_equal(mirrored.negative, found.positive[::-1])
    np.testing.assert_array_equal(mirrored.unlabeled, found.unlabeled[::-1])
    np.testing.assert_allclose(mirrored.edges, 1 - found.edges[::-1])


def test_the_interval_takes_cells_by_support_and_the_surprise():
    edges = np.array([0.0, 0.1, 0.2, 0.4, 1.0])
    weights = np.array([0.1, 0.4, 0.4, 0.1])
    density = weights / np.diff(edges)  # 1, 4, 2, 1/6: the second and third cell hold .8
    found = Posterior(edges, weights, np.full(4, 0.25), weights[None], [], density)
    assert found.interval(0.75) == (0.1, 0.4)
    assert found.interval(0.85) == (0.0, 0.4)
    assert found.interval(0.3) == (0.1, 0.2)
    upwards = found._replace(support=np.array([0.0, 1.0, 3.0, 2.0]))
    assert upwards.interval(0.3) == (0.2, 0.4)
    assert upwards.interval(0.45) == (0.2, 1.0)
    assert upwards.interval(0.85) == (0.1, 1.0)
    expected = sum(w * np.log(w / 0.25) for w in weights)
    assert found.surprise() == pytest.approx(expected)
    assert found.shares == pytest.approx([0.05, 0.15, 0.3, 0.7])


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_an_interval_of_several_scorers_is_shorter_by_the_same_factor_at_every_level(level):
    """Of a normal posterior: ends at z deviations with one scorer, at .87 z with two.

    Less with the draw of n rows of U taken off: its variance, (.4 * .6 - .05^2) / n, is the part
    95 / n of .05^2, and no more than half of it goes.
    """
    edges = np.linspace(0, 1, 4001)
    weights = np.diff(stats.norm.cdf(edges, 0.4, 0.05))
    alone = Posterior(edges, weights, weights, weights[None], [], weights)
    several = alone._replace(by_scorer=np.array([weights, weights]))
    z = stats.norm.ppf((1 + level) / 2)
    for found, errors in (
        (alone, z),
        (alone._replace(drawn_rows=380.0), z),
        (several, 0.87 * z),
        (several._replace(drawn_rows=380.0), 0.87 * z * np.sqrt(0.75)),
        (several._replace(drawn_rows=95.0), 0.87 * z * np.sqrt(0.5)),
    ):
        expected = [0.4 - errors * 0.05, 0.4 + errors * 0.05]
        assert found.interval(level) == pytest.approx(expected, abs=4e-4)


@pytest.mark.parametrize(
    ("n_positive", "error"),
    [(3, 0.675), (6, 0.675), (7, 0.9 * 5.5 / 7), (10, 0.765), (20, 0.8325), (200, 0.89325)],
)
def test_the_error_of_several_scorers_from_positives_alone(n_positive, error):
    """.9 (1 - 1.5 / n), from six positives down the same.

    .87 where the belief is stated and where both classes are labelled, 1 with negatives alone.
    """
    rng, default = np.random.default_rng(0), read_belief(None)
    known, others, unlabeled = (rng.normal(size=n) for n in (n_positive, 60, 300))

    def found(p, n, belief):
        return posterior([rank_counts(p, n, unlabeled, np.random.RandomState(0))] * 2, belief).error

    assert found(known, others[:0], default) == pytest.approx(error)
    assert found(known, others[:0], Beta(1, 3)) == 0.87
    assert found(known, others, default) == 0.87
    assert found(known, others[:0], default.mirrored) == 1.0


@pytest.mark.parametrize("shift", [0.0, 2.0])
@pytest.mark.parametrize("known", [1, 0])
def test_where_one_class_tells_nothing_its_interval_is_whole(known, shift, monkeypatch):
    """Ten rows like all others are not identified, those of another law are."""
    rng, kept = np.random.default_rng(3), []
    X, y = rng.normal(size=(410, 3)), np.r_[np.full(10, known), np.full(400, -1)]
    X[:50] += shift  # the labelled rows, and 40 of U
    monkeypatch.setattr(
        placement, "posterior", lambda *a, **k: kept.append(posterior(*a, **k)) or kept[0]
    )
    prior = PlacementPrior(unlabeled_label=-1, random_state=0, level=0.5, on_unidentified="ignore")
    prior.fit(X, y)
    assert prior.diagnostics_["identified"] == (shift > 0)
    whole, usual = kept[0]._replace(error=1.0).interval(0.5), kept[0].interval(0.5)
    assert (whole != usual) == bool(known)  # that of negatives alone is whole in any case
    low, high = usual if shift else whole
    low, high = (low, high) if known else (1 - high, 1 - low)
    low, high = min(low, prior.prior_), max(high, prior.prior_)
    assert prior.interval_ == pytest.approx((low if low >= 1 / 400 else 0, high))


@pytest.mark.parametrize("scorers", [("linear", "distance"), ("kernel", "distance")])
def test_linear_scorers_err_together(scorers, monkeypatch):
    """Nothing is taken off the width of their interval; off that of others it is."""
    rng, kept = np.random.default_rng(4), []
    X, y = rng.normal(size=(340, 3)), np.r_[np.ones(20), np.zeros(20), np.full(300, -1)]
    X[:80] += np.r_[np.ones(20), np.zeros(20), np.ones(40)][:, None]
    monkeypatch.setattr(
        placement, "posterior", lambda *a, **k: kept.append(posterior(*a, **k)) or kept[0]
    )
    prior = PlacementPrior(unlabeled_label=-1, random_state=0, scorers=scorers).fit(X, y)
    found = kept[0]._replace(error=1.0) if "linear" in scorers else kept[0]
    low, high = found.interval(0.9)
    assert prior.interval_ == pytest.approx((low if low >= 1 / 300 else 0, high))
    assert kept[0].error == 0.87


def test_an_interval_holds_what_each_scorer_may_be_right_about():
    """Two scorers that contradict each other: the interval of 95% has most of both."""
    edges = np.linspace(0, 1, 2001)
    first, second = (np.diff(stats.norm.cdf(edges, mean, 0.02)) for mean in (0.2, 0.4))
    product = np.sqrt(first * second) / np.sqrt(first * second).sum()
    by_scorer = np.array([first, second])
    found = Posterior(edges, product, product, by_scorer, [], by_scorer.mean(axis=0))
    low, high = found.interval(0.95)
    assert low < 0.2 < 0.4 < high
    assert found.shares @ found.weights == pytest.approx(0.3, abs=1e-3)


def test_beliefs_have_the_moments_of_their_interval():
    read = read_belief((0.1, 0.3))
    law = stats.beta(read.a, read.b)
    assert law.mean() == pytest.approx(0.2)
    assert law.std() == pytest.approx(0.2 / (2 * stats.norm.ppf(0.975)))
    edges = np.array([0.0, 0.15, 0.6, 1.0])
    np.testing.assert_allclose(Beta(2, 5).masses(edges), np.diff(stats.beta(2, 5).cdf(edges)))
    assert Beta(2, 5).mirrored == Beta(5, 2)
    assert Beta(2, 6).mean == 0.25
    for a, b in ((0, 1), (1, 0), (-1, 2), (np.inf, 1), (np.nan, 1)):
        with pytest.raises(ValueError, match="positive numbers"):
            Beta(a, b)


# --- what a prior means in rows -------------------------------------------------------------------


def test_conversions_count_rows():
    # 100 rows, 10 known positives, 20 known negatives, 70 not labelled, 14 of them positive
    assert prior_in_population(0.2, 10, 20, 70) == pytest.approx(0.24)
    assert prior_in_unlabeled(0.24, 10, 20, 70) == pytest.approx(0.2)
    assert prior_in_unlabeled(0.1, 10, 20, 70) == 0.0
    assert prior_in_unlabeled(0.8, 10, 20, 70) == 1.0
    for wrong in (0.0999, 0.8001):
        with pytest.raises(ValueError, match=r"between 0\.1 and 0\.8"):
            prior_in_unlabeled(wrong, 10, 20, 70)
    for bad in (-0.1, 1.1):
        with pytest.raises(ValueError, match="share of rows"):
            prior_in_population(bad, 1, 1, 1)
    for sizes in ((-1, 0, 5), (0, -1, 5), (1, 1, 0)):
        with pytest.raises(ValueError, match="Row counts"):
            prior_in_population(0.5, *sizes)


def test_labels_that_halve_the_error():
    prior = ClassPrior(0.2, 0.1, 0.3, std_error=0.05)
    found = prior_in_rows(prior, n_positive=50, n_unlabeled=1000)
    assert found["positives_unlabeled"] == pytest.approx((200, 100, 300))
    assert found["share_of_positives_known"] == pytest.approx(50 / 250)
    # variance .0025 and, from m labels, .16 / m: together a quarter of it at m = 192
    m = found["labels_to_halve"]
    assert 1 / (1 / 0.0025 + m / 0.16) == pytest.approx(0.0025 / 4)
    assert prior_in_rows(prior, 50, 30)["labels_to_halve"] == 30
    assert prior_in_rows(ClassPrior.known(0.2), 50, 1000)["labels_to_halve"] is None
    assert prior_in_rows(ClassPrior.known(0.0), 0, 10)["share_of_positives_known"] == 0.0


# --- when it is not told --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surprise", "z", "has_both", "words"),
    [
        (0.079, 9.0, True, "as open as it was"), (0.081, 9.0, True, None),
        (0.081, 1.0, True, None), (0.081, 1.64, False, "cannot be told apart"),
        (0.081, 1.65, False, None), (0.079, 1.65, False, "as open as it was"),
        (0.079, 1.64, False, "cannot be told apart"),
    ],
)  # fmt: skip
def test_labels_that_say_nothing(surprise, z, has_both, words):
    """Less than .08 nats, or with one class a distance from U of less than 1.645 errors."""
    ranks = _placement._Ranks(("forest",), [], 0.55, z, has_both)
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), [4, 3, 9]))
    found = _placement._doubt(SimpleNamespace(surprise=lambda: surprise), ranks, roles)
    assert (found is None) if words is None else (words in found)
    if found and "open" in found:
        assert "(4 positive, 3 negative)" in found


@pytest.mark.parametrize(
    ("statistic", "denominator", "p_value", "known"),
    [
        ("guarded", 1.0, 0.1, True), ("guarded", 1.0, 0.11, False), ("guarded", -1.0, 0.1, True),
        ("U", 1.0, 0.1, True), ("U", -1.0, 0.1, False), ("U", 0.0, 0.1, False),
        ("V", 0.0, 0.05, True),
    ],
)  # fmt: skip
def test_classes_that_distances_do_not_tell_apart(statistic, denominator, p_value, known):
    doubt = EnergyDistancePrior(statistic=statistic)._doubt(denominator, p_value)
    assert (doubt is None) is known
    assert known or f"p = {p_value:.2f}" in doubt


@pytest.mark.parametrize(("z", "known"), [(1.64, False), (1.65, True)])
def test_scores_and_curves_that_show_no_difference(z, known, monkeypatch):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.array([1, 0, -1], np.int8), [20, 20, 60])
    X = rng.normal(size=(100, 2)) + 2.0 * (codes == 1)[:, None]
    monkeypatch.setattr(_quantification, "auc_and_z", lambda p, n: (0.6, z))
    monkeypatch.setattr(_matching, "_rise_to_one", lambda p, u, lowest: z)
    quick = {"n_bootstrap": 2, "on_unidentified": "ignore", "random_state": 0}
    for model in (EMPrior(**quick), PenalizedL1Prior(n_shares=5, n_folds=2, **quick)):
        assert model.fit(X, Roles(codes)).estimate_.identified is known
