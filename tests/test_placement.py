"""Probability, top k and recall from held-out places: laws, known truth, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pnuauc._placement import _curves, place_scores, shortest_interval
from pnuauc._prior import ClassPrior

PLACES = st.lists(st.floats(0.001, 0.999), max_size=30)


def place_among(scores, reference):
    """Share of the reference below each score, ties half, strictly between 0 and 1."""
    u = np.sort(reference)
    below = np.searchsorted(u, scores, "left") + np.searchsorted(u, scores, "right")
    return (below + 1) / (2 * len(u) + 2)


def probability(found, places):
    curves, mass, _ = found.curves(np.asarray(places))
    return mass @ curves


def draw(seed, n_p, n_n, n_u, prior, shift):
    """Scores of two unit Gaussians; hidden labels and places of P and N among U."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n_u) < prior
    u = rng.normal(shift * hidden)
    p, n = rng.normal(shift, 1, n_p), rng.normal(0, 1, n_n)
    return place_among(p, u), place_among(n, u), u, hidden


@pytest.mark.parametrize("share", [0.0, 1e-4, 0.1, 0.5, 0.97])
def test_curves_have_the_prior_as_their_mean_and_rise(share):
    curves, log_p, log_n = _curves(share)
    mass = stats.norm.pdf(np.linspace(-4.75, 4.75, curves.shape[1]))
    mass /= mass.sum()
    np.testing.assert_allclose(curves @ mass, max(share, 1e-7), rtol=1e-5, atol=1e-9)
    assert (np.diff(curves, axis=1) >= -1e-12).all()
    # densities of labelled positives and negatives over U's places integrate to 1
    np.testing.assert_allclose(np.exp(log_p) @ mass, 1, rtol=1e-5)
    np.testing.assert_allclose(np.exp(log_n) @ mass, 1, rtol=1e-5)


@given(PLACES, PLACES, st.floats(0, 1), st.floats(0, 0.2), st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_every_number_is_possible_whatever_the_rows(p, n, value, error, k):
    prior = ClassPrior(value, max(value - error, 0), min(value + error, 1), 0.95, error / 2, "test")
    found = place_scores(p, n, prior, n_nodes=3)
    count, recall = found.top(k, 200), found.recall(k, 200)
    assert 0 <= count.low <= count.value <= count.high <= k
    assert 0 <= recall.low <= recall.high <= 1
    curves, mass, shares = found.curves(np.linspace(0, 1, 21))
    assert ((curves >= 0) & (curves <= 1)).all()
    assert (np.diff(curves, axis=1) >= -1e-9).all()
    assert mass.min() >= 0
    assert mass.sum() == pytest.approx(1)
    assert set(shares) == set(found.shares)


def test_a_handful_of_rows_claims_neither_none_nor_all():
    top = np.full(5, 0.995)
    for places, other in ((top, 1 - top), (1 - top, top)):
        count = place_scores(places, other, ClassPrior.known(0.1), discount=2).top(20, 1000)
        assert 0.2 < count.value < 19.95
        assert count.high - count.low >= 1


def test_all_rows_hold_as_many_positives_as_the_prior_says():
    places_p, places_n, _, _ = draw(0, 40, 60, 1000, 0.2, 1.5)
    found = place_scores(places_p, places_n, ClassPrior.known(0.2))
    assert found.top(1000, 1000).value == pytest.approx(200, abs=3)
    assert found.recall(1000, 1000).value == pytest.approx(1, abs=0.01)
    uniform = np.linspace(0.0005, 0.9995, 1000)
    assert probability(found, uniform).mean() == pytest.approx(0.2, abs=0.005)


def test_many_rows_give_the_true_probability():
    """Two Gaussians 1.5 apart: P(y | score) is known, and 2,000 labelled rows come near to it."""
    places_p, places_n, u, _ = draw(1, 2000, 2000, 20_000, 0.1, 1.5)
    found = place_scores(places_p, places_n, ClassPrior.known(0.1))
    scores = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])
    truth = 1 / (1 + 9 * np.exp(-(1.5 * scores - 1.125)))
    np.testing.assert_allclose(probability(found, place_among(scores, u)), truth, atol=0.03)


@pytest.mark.parametrize("shift", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("sizes", [(10, 40), (50, 0), (0, 60)])
def test_the_top_holds_what_is_said(sizes, shift):
    """150 draws, prior known: the 95% interval of the top 20 holds the count in 93 to 100%.

    From negatives alone in 85%: where they thin out towards the top is all that they show.
    """
    hits = 0
    for seed in range(150):
        places_p, places_n, u, hidden = draw([seed, *sizes], *sizes, 1000, 0.1, shift)
        found = place_scores(places_p, places_n, ClassPrior.known(hidden.mean()))
        count = found.top(20, 1000)
        hits += count.low <= hidden[np.argsort(-u)[:20]].sum() <= count.high
    assert hits / 150 >= (0.93 if sizes[0] else 0.85)


def test_an_uncertain_prior_widens_and_a_stated_interval_is_sharpened():
    places_p, places_n, _, _ = draw(3, 50, 50, 1000, 0.1, 2.5)
    known = place_scores(places_p, places_n, ClassPrior.known(0.1)).top(20, 1000)
    grid = np.linspace(0.01, 0.3, 30)
    estimate = ClassPrior.from_posterior(grid, np.exp(-(((grid - 0.1) / 0.07) ** 2) / 2))
    unsure = place_scores(places_p, places_n, estimate)
    count = unsure.top(20, 1000)
    assert count.high - count.low > known.high - known.low
    np.testing.assert_allclose(unsure.weights, estimate.nodes(11)[1])
    stated = ClassPrior.from_interval(0.02, 0.9)
    sharpened = place_scores(places_p, places_n, stated)
    before, after = stated.nodes(11)[1] @ stated.nodes(11)[0], sharpened.weights @ sharpened.shares
    assert abs(after - 0.1) < abs(before - 0.1)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12).filter(lambda law: sum(law) > 0.01),
    st.sampled_from([0.5, 0.9, 0.95]),
)
@settings(max_examples=150, deadline=None)
def test_the_shortest_interval_is_the_shortest(law, level):
    law = np.array(law) / sum(law)
    counts = np.cumsum(1.0 + (np.arange(len(law)) % 3))  # uneven steps, as of a thinned grid
    low, high = shortest_interval(counts, np.cumsum(law), level)
    spans = [
        (counts[j] - counts[i], -law[i : j + 1].sum())
        for i in range(len(law))
        for j in range(i, len(law))
        if law[i : j + 1].sum() >= level - 1e-9
    ]
    inside = law[(counts >= low) & (counts <= high)].sum()
    assert inside >= level - 1e-8
    assert (high - low, -inside) == pytest.approx(min(spans), abs=1e-7)


def test_counts_that_pile_up_at_the_end_have_one_tail():
    """A near-perfect ranking: the upper end is k, and all of the 5% that are left lie below."""
    places_p, places_n, _, _ = draw(5, 20, 40, 1000, 0.3, 1.2)
    found = place_scores(places_p, places_n, ClassPrior.known(0.3))
    count = found.top(20, 1000, 0.95)
    chance, mass = found._top_chances(20, 1000)
    above = mass @ stats.binom.sf(count.low - 1, 20, chance)
    assert count.high == 20
    assert above >= 0.95 > mass @ stats.binom.sf(count.low, 20, chance)
    assert count.low <= count.value <= count.high


def test_bad_k():
    found = place_scores([0.9], [], ClassPrior.known(0.1))
    for k in (0, 11):
        with pytest.raises(ValueError, match="between 1 and the 10"):
            found.top(k, 10)
