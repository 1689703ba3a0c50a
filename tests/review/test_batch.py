"""Batches: the stated probabilities are those with which rows are drawn."""

import numpy as np
import pytest

from pnuauc.review.rank import draw_batch, explore_share


def test_inclusion_probabilities_are_the_frequencies():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -1.0, -2.0])
    pool = np.array([0, 1, 3, 4, 5, 6, 7])
    counts, stated = np.zeros(8), np.full(8, np.nan)
    rng, n = np.random.default_rng(0), 4000
    for _ in range(n):
        rows, probability, _ = draw_batch(scores, pool, 4, 0.5, rng)
        counts[rows] += 1
        stated[rows] = probability
    assert counts[2] == 0
    assert stated[pool] == pytest.approx(counts[pool] / n, abs=0.03)
    assert stated[[0, 1]] == pytest.approx(1.0)
    assert stated[3:] == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    ("size", "explore", "n_random"),
    [(10, 0.0, 0), (10, 0.01, 1), (10, 1.0, 10), (500, 0.1, 10), (1, 0.1, 1)],
)
def test_share_at_random(size, explore, n_random):
    rows, probability, random = draw_batch(
        np.arange(100.0), np.arange(100), size, explore, np.random.default_rng(0)
    )
    k = min(size, 100)
    assert len(set(rows.tolist())) == k
    assert rows[~random].tolist() == list(range(99, 99 - k + n_random, -1))
    assert random.tolist() == [False] * (k - n_random) + [True] * n_random
    assert ((probability > 0) & (probability <= 1)).all()


def test_equal_scores_are_taken_in_an_order_of_chance():
    pool = np.arange(1000)
    rows, _, _ = draw_batch(np.zeros(1000), pool, 50, 0.0, np.random.default_rng(0))
    assert rows.max() > 500


def test_explore_more_when_the_ranking_finds_no_more_than_chance():
    assert explore_share(0.2, 0.1) == pytest.approx(0.1)
    assert explore_share(0.0, 0.0) == pytest.approx(0.9)
