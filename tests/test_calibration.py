"""From places to probabilities and counts: known truths and brute force."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.special import ndtri

from pnuauc import ClassPrior
from pnuauc._committee import _calibration
from pnuauc._committee._calibration import Calibration, calibrate
from pnuauc._placement import place_scores
from pnuauc._stored import Parts


def test_calibration_on_a_known_truth():
    """Two normal classes: the stated probability is the true one, and intervals hold it."""
    rng = np.random.RandomState(0)
    n, prior, shift = 4000, 0.2, 2.0
    covered, errors = [], []
    for _ in range(20):
        y = np.zeros(n, dtype=bool)
        y[: int(prior * n)] = True
        s = rng.standard_normal(n) + shift * y
        positive, negative = rng.standard_normal(40) + shift, rng.standard_normal(160)
        ordered = np.sort(s)
        places = [
            np.clip(np.searchsorted(ordered, v) / n, 1e-3, 1 - 1e-3) for v in (positive, negative)
        ]
        calibration = calibrate(*places, ClassPrior.known(prior))
        truth = prior / (prior + (1 - prior) * np.exp(shift**2 / 2 - shift * s))
        u = np.searchsorted(ordered, s) / n
        errors.append(np.abs(calibration.probability(u) - truth).mean())
        for k in (20, 100, 500):
            top = calibration.top(k, n)
            covered.append(top.low <= y[np.argsort(-s)[:k]].sum() <= top.high)
    assert np.mean(errors) < 0.03
    # 60 counts, not independent: an interval that holds 9 of 10 would be below this once in 1,000
    assert np.mean(covered) > 0.75


def test_an_unsure_prior_widens_the_interval():
    places = np.linspace(0.6, 0.99, 15)
    known = calibrate(places, np.linspace(0.01, 0.7, 40), ClassPrior.known(0.2))
    unsure = calibrate(places, np.linspace(0.01, 0.7, 40), ClassPrior.from_interval(0.1, 0.3))
    narrow, wide = known.top(100, 1000), unsure.top(100, 1000)
    assert wide.high - wide.low > narrow.high - narrow.low
    ends = unsure.interval(np.array([0.95])), known.interval(np.array([0.95]))
    assert ends[0][1] - ends[0][0] > ends[1][1] - ends[1][0]


def test_counts_by_brute_force():
    """The law of the count in the top agrees with drawing labels."""
    places = np.linspace(0.5, 0.99, 10)
    calibration = calibrate(places, np.empty(0), ClassPrior.known(0.3))
    rng = np.random.RandomState(0)
    u = 1 - (np.arange(30) + 0.5) / 200
    curves = np.array(
        [
            np.interp(u, np.linspace(0, 1, 5001), calibration_curve(calibration, i))
            for i in range(len(calibration.weights))
        ]
    )
    chosen = rng.choice(len(curves), 20_000, p=calibration.weights)
    counts = (rng.uniform(size=(20_000, 30)) < curves[chosen]).sum(axis=1)
    top = calibration.top(30, 200)
    assert top.expected == pytest.approx(counts.mean(), abs=0.1)
    shares = np.bincount(counts, minlength=31) / len(counts)
    assert shares[top.low : top.high + 1].sum() > 0.89
    shorter = [shares[c : c + top.high - top.low].sum() for c in range(31)]
    assert max(shorter) < 0.91


def test_a_solved_table_may_be_all_positive_at_the_top():
    """100 held-out positives inside the top tenth: the interval holds 100 of 100; ten less: not."""
    places = 1 - (np.arange(100) + 0.5) / 1000
    for outside in (0, 10):
        moved = np.concatenate([places[outside:], np.linspace(0.3, 0.7, outside)])
        top = calibrate(moved, np.empty(0), ClassPrior.known(0.1), 100).top(100, 1000)
        assert top.low <= 100 - outside <= top.high
        assert (top.high == 100) == (outside == 0)
        assert top.high - top.low < 15


def test_an_unsure_prior_keeps_a_thousand_curves():
    """Thinned evenly: means and intervals stay."""
    rng = np.random.default_rng(0)
    prior = ClassPrior.from_interval(0.1, 0.3)
    data = rng.random(8) ** 0.3, rng.random(12), prior, 8
    some = calibrate(*data)
    assert len(some.weights) <= _calibration._MOST_CURVES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_calibration, "_MOST_CURVES", 10**9)
        every = calibrate(*data)
    assert len(every.weights) > 5000
    places = np.linspace(0.02, 0.999, 60)
    np.testing.assert_allclose(some.probability(places), every.probability(places), atol=0.01)
    for some_ends, ends in zip(some.interval(places), every.interval(places), strict=True):
        np.testing.assert_allclose(some_ends, ends, atol=0.03)
    assert some.priors @ some.weights == pytest.approx(every.priors @ every.weights, abs=1e-3)


def calibration_curve(calibration, i):
    alone = dataclasses.replace(
        calibration,
        curves=calibration.curves[i : i + 1],
        weights=np.ones(1),
        priors=calibration.priors[i : i + 1],
    )
    return alone.probability(np.linspace(0, 1, 5001))


def test_places_of_refits_count_for_less():
    """With so many labels that refits lack nothing, three places of theirs are worth two; of one
    class alone seven are worth four."""
    rng = np.random.default_rng(0)
    positive, negative = rng.random(8) ** 0.3, rng.random(12)
    prior, places = ClassPrior.known(0.2), np.linspace(0.01, 0.999, 50)
    for others, times in ((negative, 30), (np.empty(0), 35)):
        own = calibrate(np.tile(positive, 20), np.tile(others, 20), prior)
        held_out = calibrate(np.tile(positive, times), np.tile(others, times), prior, 10**14)
        np.testing.assert_allclose(held_out.probability(places), own.probability(places), rtol=1e-3)


def test_a_place_that_counts_twice_is_two_places():
    rng = np.random.default_rng(0)
    positive, negative = rng.random(8) ** 0.3, rng.random(12)
    prior, times = ClassPrior.known(0.2), (np.arange(8) % 3, 1 + np.arange(12) % 2)
    rows = np.repeat(positive, times[0]), np.repeat(negative, times[1])
    counted = calibrate(positive, negative, prior, 8, (times[0] * 1.0, times[1] * 1.0))
    places = np.linspace(0.01, 0.999, 50)
    repeated = calibrate(*rows, prior, 8)
    np.testing.assert_allclose(counted.probability(places), repeated.probability(places))


def test_a_far_shift_is_believed_less():
    """Exponential of mean 1: at 2 the density is e^(-1) of that at 1."""
    near, far = _calibration._log_belief(np.array([1.0, 2.0]))
    assert far - near == pytest.approx(-1.0)


def test_few_exceptions_are_as_likely_as_many():
    """Before any row is seen: every share of exceptions alike, shifts by e^(-shift)."""
    shifts, missed, passed = _calibration._SHIFTS, _calibration._MISSED, _calibration._PASSED
    points = list(itertools.product(shifts, missed, passed))
    curves = _calibration._curves(0.2, *map(np.array, zip(*points, strict=True)))
    width = dict(zip(shifts, np.gradient(shifts), strict=True))
    weights = np.array([width[shift] * np.exp(-shift) for shift, _, _ in points])
    found = calibrate(np.empty(0), np.empty(0), ClassPrior.known(0.2))
    wanted = weights @ curves / weights.sum()
    # a thousandth of the belief is left out, and a thousand points stand for the rest
    np.testing.assert_allclose(found.probability(_calibration._PLACES), wanted, atol=5e-3)


@pytest.mark.parametrize("prior", [0.01, 0.2, 0.9])
@pytest.mark.parametrize("n_rarer", [None, 5])
def test_every_curve_grows(prior, n_rarer):
    """At every point of the grid, whatever the gain."""
    shifts, missed, passed = _calibration._SHIFTS, _calibration._MISSED, _calibration._PASSED
    shift, miss, beside = map(
        np.array, zip(*itertools.product(shifts, missed, passed), strict=True)
    )
    for more, fewer in _calibration._gains(n_rarer, False) + _calibration._gains(n_rarer, True):
        curves = _calibration._curves(prior, more * shift, fewer * miss, fewer * beside)
        assert np.diff(curves, axis=1).min() > -1e-9


@pytest.mark.parametrize(("n_rarer", "felt"), [(5, 1.0), (50, 1.0), (200, 0.5)])
def test_the_whole_model_may_be_better_than_its_folds(n_rarer, felt):
    """The shift is 1, 1.1 or 1.3 times, exceptions 1, .5 or .2; half of it with 200 rows. With one
    class labelled it may also be worse: .9 in place of 1."""
    exceptions = [1.0, 1 - 0.5 * felt, 1 - 0.8 * felt]
    for both, least in ((True, 1.0), (False, 1 - 0.1 * felt)):
        wanted = list(zip([least, 1 + 0.1 * felt, 1 + 0.3 * felt], exceptions, strict=True))
        np.testing.assert_allclose(_calibration._gains(n_rarer, both), wanted)
        assert _calibration._gains(None, both) == [(1.0, 1.0)]


def test_counts_hold_where_a_few_positives_are_certain():
    """15% of the positives above all other rows, the others like negatives: 16 of the top 20.

    Of 100 held-out positives, drawn 15 times, the interval of the top 20 holds in 11 at least (one
    that holds 9 of 10 has fewer once in 80). It held in 3 while no more than 45% could be missed.
    """
    rng = np.random.default_rng(0)
    n, prior, told = 1000, 0.1, 0.15
    held = []
    for _ in range(15):
        y = np.arange(n) < prior * n
        s = rng.standard_normal(n) + 6.0 * (y & (rng.random(n) < told))
        positive = rng.standard_normal(100) + 6.0 * (rng.random(100) < told)
        places = np.clip(np.searchsorted(np.sort(s), positive) / n, 0.5 / n, 1 - 0.5 / n)
        top = calibrate(places, np.empty(0), ClassPrior.known(prior), 100).top(20, n)
        held.append(top.low <= y[np.argsort(-s)[:20]].sum() <= top.high)
    assert np.sum(held) >= 11


def test_counts_where_many_negatives_look_positive():
    """A fifth of the negatives like positives: 400 of the 720 rows up there, 11 of 20.

    100 and 400 rows at the quantiles of that law; were a tenth the most, it would be 14 of 20.
    """
    low, high = (ndtri((np.arange(m) + 0.5) / m) for m in (1280, 720))
    scores = np.sort(np.concatenate([low, 4 + high]))  # of 2,000 rows, a fifth positive
    positive = 4 + ndtri((np.arange(100) + 0.5) / 100)
    negative = np.concatenate([ndtri((np.arange(m) + 0.5) / m) + a for m, a in ((320, 0), (80, 4))])
    places = [np.searchsorted(scores, rows) / 2000 for rows in (positive, negative)]
    top = calibrate(*places, ClassPrior.known(0.2)).top(20, 2000)
    assert top.expected == pytest.approx(20 / 1.8, abs=1.0)


@pytest.mark.parametrize("prior", [ClassPrior.known(0.1), ClassPrior.from_interval(0.05, 0.3)])
def test_the_posterior_of_a_study_is_kept_as_it_is(prior):
    """Probabilities, their limits and the count in the top are those of the placement."""
    rng = np.random.default_rng(0)
    placement = place_scores(rng.beta(6, 1, 40), rng.beta(1, 1.4, 90), prior, discount=2.0)
    found = Calibration.of_placement(placement)
    places = np.linspace(0.02, 0.999, 60)
    curves, mass, _ = placement.curves(places)
    order = np.argsort(curves, axis=0)
    at_5, at_95 = ((np.cumsum(mass[order], axis=0) < level).sum(axis=0) for level in (0.05, 0.95))
    low, high = np.take_along_axis(np.sort(curves, axis=0), np.stack([at_5, at_95]), axis=0)
    # a thousandth of the posterior is left out, and both interpolate
    np.testing.assert_allclose(found.probability(places), mass @ curves, atol=0.01)
    np.testing.assert_allclose(found.interval(places, 0.9), (low, high), atol=0.02)
    expected = placement.top(20, 2000).value
    assert found.top(20, 2000).expected == pytest.approx(expected, abs=0.1)
    again = Calibration.rebuild(Parts({}, found.arrays()))
    np.testing.assert_array_equal(again.probability(places), found.probability(places))
