"""What the last ranking and the decisions lead to expect, on pools whose truth is known."""

import numpy as np
import pytest
from scipy import special
from sklearn.metrics import roc_auc_score

from pnuauc.review.expected import outlook

N = 2000


def pool(rng, slope=2.0, level=-4.5):
    """Scores of a pool and labels whose chance is logistic in Phi^-1(place)."""
    places = (np.arange(N) + 0.5) / N
    return places, rng.random(N) < special.expit(level + slope * special.ndtri(places))


def read(rng, scores, share, explore=0.1):
    """How each row came to be read: the top by score, and a few random rows from below."""
    left = round((1 - share) * N)
    by = np.where(np.arange(N) < left, "", "score").astype(object)
    by[rng.choice(left, int(explore * (N - left)), replace=False)] = "explore"
    return by


def labels(true, by):
    return np.where(by == "", np.nan, true)


def test_before_the_first_positive_and_after_the_last_row():
    scores, by = np.arange(10.0), np.array([""] * 8 + ["score"] * 2)
    assert outlook(scores, np.where(by == "", np.nan, 0.0), by) is None
    done = outlook(scores, scores > 7, ["score"] * 10)
    assert done.hidden == (0.0, 0.0, 0.0)
    assert done.next_batch == 0


def test_random_rows_that_hold_more_than_their_scores_account_for():
    scores, by = np.arange(N, dtype=float), np.full(N, "", dtype=object)
    by[-600:] = "score"
    at_random = np.linspace(100, 1200, 60).astype(int)
    by[at_random] = "explore"
    true = np.arange(N) >= N - 40
    calm = outlook(scores, labels(true, by), by, batch=60)
    true[at_random[[10, 40]]] = True  # of 1,340 rows some 45 must be positive
    alarmed = outlook(scores, labels(true, by), by, batch=60)
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
        scores, true = pool(rng, slope=rng.uniform(1.0, 3.0), level=rng.uniform(-6.0, -3.5))
        by = read(rng, scores, share=(0.1, 0.25, 0.5)[k % 3])
        said = outlook(scores, labels(true, by), by, batch=60, stop_level=0.95)
        hidden = int(true[by == ""].sum())
        if said is not None:
            held.append(
                (
                    hidden <= said.hidden.high,
                    said.hidden.low <= hidden,
                    said.share.low <= true.mean() <= said.share.high,
                    said.holds,
                )
            )
    # 95% each; 60 draws have a standard error of 3 points
    assert (np.mean(held, axis=0) > 0.87).all()


def test_auc_of_a_ranking_by_rows_that_it_chose():
    rng = np.random.default_rng(1)
    score, true = pool(rng, slope=1.2, level=-2.5)
    by = np.where((score > 0.8) | (rng.random(N) < 0.05), "score", "")
    found = outlook(score, labels(true, by), by).auc
    wanted = roc_auc_score(true, score)
    assert found.low < wanted < found.high
    assert found.high - found.low < 0.2
    # labels taken at face value say something else
    seen = by != ""
    assert roc_auc_score(true[seen], score[seen]) < found.low


def test_labels_of_unknown_odds_are_no_evidence():
    rng = np.random.default_rng(2)
    score, true = pool(rng, slope=1.2, level=-2.5)
    by = np.where(score > 0.99, "hand", "")
    assert outlook(score, labels(true, by), by) is None
    assert outlook(np.full(N, np.nan), true, ["score"] * N) is None
