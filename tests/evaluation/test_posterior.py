"""Tests of evaluation/posterior: its numbers against known truth, and against each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from pnuauc import fit_table
from pnuauc._utils.stored import Parts
from pnuauc.evaluation.posterior import Posterior, place_scores
from pnuauc.exceptions import ModelFileError
from pnuauc.prior import ClassPrior
from tests.conftest import generated_sample


def places(seed, n_p, n_n, share=0.1, distance=1.5, n_u=2000):
    """Places of labelled rows among unlabelled ones, two unit Gaussians, and the realised share."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n_u) < share
    unlabeled = np.sort(rng.normal(distance * hidden, 1))

    def place(scores):
        return np.clip(np.searchsorted(unlabeled, scores) / n_u, 0.5 / n_u, 1 - 0.5 / n_u)

    return place(rng.normal(distance, 1, n_p)), place(rng.normal(0, 1, n_n)), hidden.mean()


@pytest.fixture(scope="module")
def found():
    positive, negative, _ = places(0, 40, 60)
    return place_scores(positive, negative)


def test_everything_stated_agrees_by_construction(found):
    """Probabilities sum to the counts, the counts of all rows to the share."""
    n = 5000
    at = (np.arange(n) + 0.5) / n
    chances = found.probability(at)
    assert np.all(np.diff(chances) >= 0)
    assert chances.mean() == pytest.approx(found.share().value, abs=2e-3)
    for k in (20, 500, n):
        assert found.top(k, n).value == pytest.approx(chances[-k:].sum(), rel=0.02, abs=0.05)
    assert found.recall(n, n).value == pytest.approx(1.0, abs=0.01)
    assert found.class_prior().value == pytest.approx(found.share().value)
    half = found.rows_for_recall(0.5, n)
    assert chances[-half:].sum() == pytest.approx(0.5 * chances.sum(), rel=0.05)


def test_the_auc_is_that_of_the_curves_by_brute_force(found):
    curve, share = found.curves[5], found.shares[5]
    z = np.linspace(-4.75, 4.75, 4001)
    mass = np.exp(-0.5 * z**2)
    pi = np.interp(z, np.linspace(-4.8, 4.8, 97), curve)
    p, q = pi * mass / (pi @ mass), (1 - pi) * mass / ((1 - pi) @ mass)
    expected = float((p * (np.cumsum(q) - 0.5 * q)).sum())
    assert found.aucs[5] == pytest.approx(expected, abs=2e-3)
    assert (pi @ mass) / mass.sum() == pytest.approx(share, rel=0.02)


def test_the_roc_encloses_the_auc_and_its_band_holds_it(found):
    roc = found.roc()
    assert np.trapezoid(roc["tpr"], roc["fpr"]) == pytest.approx(found.auc().value, abs=0.02)
    assert np.all(roc["low"] <= roc["tpr"] + 1e-9)
    assert np.all(roc["tpr"] <= roc["high"] + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n_p", "n_n"), [(300, 300), (40, 60), (60, 0), (0, 200)])
def test_intervals_hold_the_truth(n_p, n_n):
    """95% intervals of 20 draws with independent scores; fewer than 16 would be one in 3,000.

    U is taken as known, so it must be large beside hundreds of labels.
    """
    truth = float(ndtr(1.5 / np.sqrt(2)))
    held = []
    for seed in range(20):
        positive, negative, share = places(seed, n_p, n_n, n_u=20_000)
        found = place_scores(positive, negative)
        auc, stated = found.auc(), found.share()
        held.append((auc.low <= truth <= auc.high, stated.low <= share <= stated.high))
    assert np.sum(held, axis=0).min() >= 16


def test_hundreds_of_labels_are_as_sharp_as_delong():
    from pnuauc.metrics import auc_estimate

    positive, negative, _ = places(3, 300, 300)
    y = np.repeat([1, 0], [300, 300])
    plain = auc_estimate(y, np.concatenate([positive, negative]), method="pn")
    auc = place_scores(positive, negative).auc()
    assert auc.high - auc.low <= 1.05 * (plain.high - plain.low)
    assert abs(auc.value - plain.value) < 2 * plain.std_error


def test_a_family_that_is_no_gaussian_is_followed_by_hundreds_of_labels():
    """Three in ten positives score like negatives: the straight line alone is off by .02."""
    rng = np.random.default_rng(1)

    def draw(n, positive):
        return rng.normal(np.where(rng.random(n) < 0.7, 2.5, 0.0) * positive, 1)

    a, b = draw(50_000, 1), np.sort(draw(50_000, 0))
    truth = (np.searchsorted(b, a) / len(b)).mean()
    hidden = rng.random(3000) < 0.1
    unlabeled = np.sort(np.where(hidden, draw(3000, 1), draw(3000, 0)))
    at = [np.clip(np.searchsorted(unlabeled, draw(400, c)) / 3000, 1e-4, 1 - 1e-4) for c in (1, 0)]
    auc = place_scores(*at).auc()
    assert auc.low <= truth <= auc.high
    assert auc.high - auc.low < 0.07


def test_the_share_of_few_rows_is_less_certain_than_that_of_their_distribution():
    """The same mean; the variance grows by that of so many rows, mean of pi (1 - pi) / n."""
    positive, negative, _ = places(5, 60, 90)
    infinite = place_scores(positive, negative)
    finite = place_scores(positive, negative, n_unlabeled=50)
    z = np.linspace(-4.8, 4.8, 97)
    mass = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    added = float(infinite.weights @ ((infinite.curves * (1 - infinite.curves)) @ mass)) / 50
    first, second = infinite.class_prior(), finite.class_prior()
    assert second.value == pytest.approx(first.value, abs=1e-9)
    grown = second.std_error**2 - first.std_error**2
    assert grown == pytest.approx(added, rel=0.15)


def test_a_known_share_is_kept_and_an_interval_is_sharpened():
    positive, negative, _ = places(4, 40, 60)
    known = place_scores(positive, negative, prior=ClassPrior.known(0.1)).share()
    assert (known.low, known.high) == pytest.approx((0.1, 0.1), abs=1e-6)
    given = ClassPrior.from_interval(0.05, 0.15)
    stated = place_scores(positive, negative, prior=given).share()
    assert 0.04 < stated.low < stated.high < 0.16


def test_a_weight_of_two_is_a_row_twice_and_of_zero_no_row():
    positive, negative, _ = places(5, 20, 30)
    twice = place_scores(np.repeat(positive, 2), negative)
    weighed = place_scores(positive, negative, weights=(np.full(20, 2.0), np.ones(30)))
    assert twice.auc() == pytest.approx(weighed.auc(), abs=1e-6)
    none = place_scores(positive, negative, weights=(np.ones(20), np.zeros(30)))
    assert none.auc() == pytest.approx(place_scores(positive, []).auc(), abs=1e-6)


def test_a_discount_widens_and_folds_raise_the_auc():
    positive, negative, _ = places(6, 40, 60)
    plain, half = (place_scores(positive, negative, discount=d).auc() for d in (1.0, 2.0))
    assert half.high - half.low > 1.2 * (plain.high - plain.low)
    assert place_scores(positive, negative, n_folds=5).auc().value > plain.value


def test_labels_at_random_are_evidence_on_the_share():
    positive, negative, _ = places(7, 15, 135)
    plain, random = (
        place_scores(positive, negative, random_labels=r).share() for r in (False, True)
    )
    assert random.high - random.low < 0.8 * (plain.high - plain.low)
    assert random.low <= 0.1 <= random.high


def reviewed(seed, share, rounds=3, distance=1.5, n_u=1000):
    """Places after the 20 highest unlabelled rows were labelled ``rounds`` times, and fair ones."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n_u) < share
    scores = rng.normal(distance * hidden, 1)
    top = np.argsort(-scores)[: 20 * rounds]
    rest = np.sort(np.delete(scores, top))
    fair = [rng.normal(distance, 1, 20), rng.normal(0, 1, 20)]
    # another model ranks the reviewed rows: high, but not above all
    seen = 0.8 * scores[top] + 0.6 * rng.normal(0, 1, len(top))
    parts = [np.append(f, seen[hidden[top] == c]) for f, c in zip(fair, (True, False), strict=True)]
    n = len(rest)
    return [np.clip(np.searchsorted(rest, part) / n, 0.5 / n, 1 - 0.5 / n) for part in parts]


@pytest.mark.slow
def test_labels_picked_for_their_score_are_noticed_and_fair_ones_are_not():
    for seed in range(5):
        assert place_scores(*reviewed(seed, 0.1), discount=2.25, n_folds=5).doubt is not None
    for seed in range(10):
        for share, distance in ((0.1, 1.5), (0.01, 3.5), (0.3, 1.5)):
            fair = places(seed, 50, 60, share, distance, n_u=1000)[:2]
            found = place_scores(*fair, discount=2.25, n_folds=5)
            assert found.doubt is None, (seed, share, found.picked, found.misfit)


@pytest.mark.slow
def test_a_fit_to_reviewed_top_rows_withholds_its_numbers():
    """The 20 highest rows labelled three times, each time by a model of all labels."""
    sample = generated_sample("waveform", (20, 20, 600), 0.1)
    y, truth = sample.y.astype(int), sample.y.astype(int)
    truth[y == -1] = sample.y_unlabeled
    quick = {"comparisons": False, "importance": False, "n_jobs": 1, "random_state": 0}
    stated = []
    for _ in range(4):
        table = pd.DataFrame(sample.X).add_prefix("x").assign(label=np.where(y < 0, np.nan, y))
        found = fit_table(table, **quick)
        stated.append(found.findings["auc"] is not None)
        hidden = np.flatnonzero(y == -1)
        top = hidden[np.argsort(-found.model.score(table.iloc[hidden]))[:20]]
        y[top] = truth[top]
    assert stated[0]
    assert not stated[3]
    assert "scored high" in found.findings["auc_reason"]
    assert found.findings["prior"] is None


def test_labelled_negatives_on_top_are_noticed_and_a_random_draw_is_taken_at_its_word():
    rng = np.random.default_rng(8)
    high = rng.uniform(0.9, 1, 30), rng.uniform(0.9, 1, 60)
    assert "because they scored high" in place_scores(*high, discount=2.0).doubt
    assert place_scores(*high, discount=2.0, random_labels=True).picked == 0.0
    low = place_scores(rng.uniform(0.5, 1, 30), rng.uniform(0.0, 0.01, 60), random_labels=True)
    assert "not typical" in low.doubt


def test_it_is_stored_and_read_back_with_every_number_checked(found):
    small = found.thinned()
    back = Posterior.rebuild(Parts(small.spec(), small.arrays()))
    at = np.linspace(0.01, 0.99, 9)
    assert back.probability(at) == pytest.approx(small.probability(at), abs=1e-6)
    assert small.share().value == pytest.approx(found.share().value, abs=0.01)
    for name, value in (("curves", 2.0), ("shares", -1.0), ("weights", 0.9)):
        arrays = {k: v.copy() for k, v in small.arrays().items()}
        arrays[name].flat[0] = value
        with pytest.raises(ModelFileError):
            Posterior.rebuild(Parts(small.spec(), arrays))


def test_no_label_at_all_leaves_the_belief():
    share = place_scores([], [], belief=(2.0, 6.0)).share()
    assert share.value == pytest.approx(0.25, abs=0.01)


def test_k_beyond_the_rows_is_refused(found):
    with pytest.raises(ValueError, match="between 1 and the 10 unlabelled"):
        found.top(11, 10)


def test_few_unlabelled_rows_are_no_reason_for_doubt():
    """Places among 60 rows are a sample's: that they do not fit is no sign of picked labels."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        unlabeled = np.sort(rng.normal(size=60) + 1.2 * (rng.random(60) < 0.3))
        own = [rng.normal(size=n) + d for n, d in ((200, 1.2), (400, 0.0))]
        places = [(np.searchsorted(unlabeled, x) / 60).clip(0.5 / 60, 1 - 0.5 / 60) for x in own]
        found.append([place_scores(*places, n_reference=m).misfit for m in (60, 0)])
    among, beyond = np.array(found).T
    assert among.min() > 1e-3
    assert beyond.min() < 1e-4
