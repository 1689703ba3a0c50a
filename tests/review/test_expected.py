"""What a model of the reading order expects, on pools whose truth is known."""

import numpy as np
import pytest
from scipy import special
from sklearn.metrics import roc_auc_score

from pnuauc.review import outlook
from pnuauc.review.expected import held_out_auc

N = 2000


def pool(rng, slope=2.0, level=-4.5):
    """Places of a pool and labels whose chance is logistic in Phi^-1(place)."""
    places = (np.arange(N) + 0.5) / N
    return places, rng.random(N) < special.expit(level + slope * special.ndtri(places))


def read(rng, places, y, share, explore=0.1):
    """The top of the order and a few random rows from below, as a review reads them."""
    left = round((1 - share) * N)
    top = np.arange(left, N)
    below = rng.choice(left, int(explore * len(top)), replace=False)
    rows = np.append(top, below)
    rest = np.setdiff1d(np.arange(left), below)
    said = outlook(
        places[rows], y[rows], np.isin(rows, below), n_pool=N, n_left=len(rest), batch=60
    )
    return said, int(y[rest].sum())


def test_before_the_first_positive_and_after_the_last_row():
    assert outlook([0.9, 0.8], [False, False], [False, True], n_pool=10, n_left=8, batch=2) is None
    places = (np.arange(10) + 0.5) / 10
    done = outlook(places, places > 0.8, places < 0.5, n_pool=10, n_left=0, batch=2)
    assert done.hidden == (0.0, 0.0, 0.0)
    assert done.next_batch == 0


def test_random_rows_that_hold_more_than_the_order_accounts_for():
    places = np.append(1 - (np.arange(600) + 0.5) / N, np.linspace(0.05, 0.6, 60))
    random = np.arange(660) >= 600
    found = np.arange(660) < 40
    calm = outlook(places, found, random, n_pool=N, n_left=1340, batch=60)
    found[[610, 640]] = True  # of 1,340 rows some 45 must be positive
    alarmed = outlook(places, found, random, n_pool=N, n_left=1340, batch=60)
    assert calm.holds
    assert calm.random_hits == 0
    assert calm.hidden.high <= 4
    assert alarmed.random_hits == 2
    assert not alarmed.holds
    assert alarmed.share.value > calm.share.value
    assert 0 < calm.next_batch < alarmed.next_batch


@pytest.mark.slow
def test_limits_hold_on_the_curves_that_are_assumed():
    rng = np.random.default_rng(0)
    held = []
    for k in range(60):
        places, y = pool(rng, slope=rng.uniform(1.0, 3.0), level=rng.uniform(-6.0, -3.5))
        said, hidden = read(rng, places, y, share=(0.1, 0.25, 0.5)[k % 3])
        if said is not None:
            held.append(
                (
                    hidden <= said.hidden.high,
                    said.hidden.low <= hidden,
                    said.share.low <= y.mean() <= said.share.high,
                    said.holds,
                )
            )
    # 95% each; 60 draws have a standard error of 3 points
    assert (np.mean(held, axis=0) > 0.87).all()


def test_auc_of_a_ranking_by_rows_that_it_chose():
    rng = np.random.default_rng(1)
    score, true = pool(rng, slope=1.2, level=-2.5)
    seen = (score > 0.8) | (rng.random(N) < 0.05)
    y = np.where(seen, true, np.nan)
    found = held_out_auc(score, y, np.ones(N), np.ones(N, dtype=bool))
    wanted = roc_auc_score(true, score)
    assert found.low < wanted < found.high
    assert found.high - found.low < 0.2
    # labels taken at face value say something else
    assert roc_auc_score(true[seen], score[seen]) < found.low


def test_rows_that_stand_for_others_and_labels_of_unknown_odds():
    rng = np.random.default_rng(2)
    score, true = pool(rng, slope=1.2, level=-2.5)
    seen = score > 0.7
    y = np.where(seen, true, np.nan)
    drawn = np.ones(N, dtype=bool)
    whole = held_out_auc(score, y, np.ones(N), drawn)
    # every third unlabelled row stands for three
    kept = seen | (np.arange(N) % 3 == 1)
    some = held_out_auc(score[kept], y[kept], np.where(seen, 1.0, 3.0)[kept], drawn[kept])
    assert some == pytest.approx(whole, abs=0.01)
    hand = score > 0.99
    assert held_out_auc(score, np.where(hand, y, np.nan), np.ones(N), ~hand) is None
