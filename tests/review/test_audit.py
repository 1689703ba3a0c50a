"""The proven bound: exact enumeration on tiny pools, and laws."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from pnuauc.review.audit import Audit


def positives_bound(n_rows, draws, alpha=0.05):
    audit = Audit(n_rows, alpha)
    for draw in draws:
        audit.update(*draw)
    return audit.upper


def chance_of_error(n_rows, n_positive, alpha):
    """P(the bound ever falls below the truth) when all rows are drawn at random: a tree."""

    def walk(draws, left, hits):
        if positives_bound(n_rows, draws, alpha) < n_positive:
            return 1.0
        if left == 0:
            return 0.0
        rate = (n_positive - hits) / left
        total = 0.0
        for positive, weight in ((True, rate), (False, 1.0 - rate)):
            if weight > 0:
                draw = (left, hits, positive)
                total += weight * walk([*draws, draw], left - 1, hits + positive)
        return total

    return walk([], n_rows, 0)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5])
def test_ever_wrong_with_probability_of_at_most_alpha(alpha):
    chances = [chance_of_error(8, m, alpha) for m in range(9)]
    assert max(chances) <= alpha + 1e-12
    assert max(chances) > 0  # a bound that never errs would say nothing


@pytest.mark.parametrize("order", ["perfect", "reversed", "mixed"])
def test_rows_picked_by_score_change_nothing_about_it(order):
    """One row by score, one at random, in turn; all orders of the random draws."""
    labels = {"perfect": [1, 1, 1, 0, 0, 0, 0], "reversed": [0, 0, 0, 0, 1, 1, 1]}
    y = labels.get(order, [0, 1, 0, 0, 1, 0, 1])
    alpha = 0.3

    def walk(rest, found, draws):
        if positives_bound(len(y), draws, alpha) < sum(y):
            return 1.0
        if not rest:
            return 0.0
        found += y[rest[0]]
        rest = rest[1:]
        if not rest:
            return 0.0
        total = 0.0
        for i in rest:
            draw = (len(rest), found, bool(y[i]))
            total += walk([j for j in rest if j != i], found + y[i], [*draws, draw]) / len(rest)
        return total

    assert walk(list(range(len(y))), 0, []) <= alpha


@pytest.mark.parametrize("k", [20, 60, 150])
def test_no_hit_never_says_more_than_the_hypergeometric_law_and_not_much_less(k):
    n, alpha = 200, 0.05
    bound = positives_bound(n, [(n - t, 0, False) for t in range(k)], alpha)
    exact = max(m for m in range(n + 1) if hypergeom.pmf(0, n, m, k) > alpha)
    assert exact <= bound <= 1.6 * exact + 2


def test_the_bound_never_rises_and_never_falls_below_what_was_found():
    rng = np.random.default_rng(1)
    y = rng.permutation(np.arange(300) < 30)
    audit, bounds, found = Audit(300), [], 0
    for t in range(300):
        audit.update(300 - t, found, bool(y[t]))
        found += y[t]
        bounds.append(audit.upper)
        assert audit.upper >= found
    assert (np.diff(bounds) <= 0).all() or audit.upper == found


def test_a_bound_that_was_wrong_gives_way_to_what_is_found():
    audit = Audit(100, alpha=0.9)
    for t in range(40):
        audit.update(100 - t, 0, False)
    low = audit.upper
    for hits in range(40):  # the rest is positive after all
        audit.update(60 - hits, hits, True)
    assert low < 40 <= audit.upper
