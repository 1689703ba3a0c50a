"""How many positives are left if the ranking goes on as it did.

The order in which a review reads its rows is a ranking of the pool: what was on top in the first
round comes first, what nobody has read comes last. A row that was drawn when L of N rows were
left, with j of them above it, has the place

    u = (L - j - 1/2) / N.

Every place is fixed before the label is known, by a model that had not seen it. Among the rows
left the draw depends on the score alone and so, given the place, not on the label: the odds of the
draw are the same factor for a positive and for a negative and cancel,

    L(pi) = product over drawn rows of pi(u)^y (1 - pi(u))^(1 - y),

which :func:`pnuauc.evaluation.posterior.place_scores` calls labels at random. Hidden positives are
the sum of pi over the places of rows not read, and their chance.

What is assumed: pi rises with u and is smooth in Phi^-1(u). Positives unlike all others are seen by
the random rows alone: where these hold more positives than their places account for, the assumption
is refuted and nothing is expected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pnuauc._utils.arrays import Floats
from pnuauc.evaluation.posterior import Expected, place_scores

__all__ = ["Outlook", "held_out_auc", "outlook"]

#: Rows by which the places not read are represented, and counts whose probability is computed.
_PLACES, _COUNTS = 2000, 2000


@dataclass(frozen=True)
class Outlook:
    """What a model of the reading order expects.

    Attributes
    ----------
    hidden : positives among the rows that nobody has looked at: mean, and limits of which each is
        passed with probability 1 - level
    share : share of positives in the pool, read or not
    next_batch : positives in the next batch, by score
    random_hits, random_expected : positives among the rows drawn at random, and how many their
        places lead to expect
    holds : whether that many or more have a probability of at least 1 - level; where not, the
        ranking misses a kind of positive, and ``hidden`` and ``next_batch`` are too low
    """

    hidden: Expected
    share: Expected
    next_batch: float
    random_hits: int = 0
    random_expected: float = 0.0
    holds: bool = True


def outlook(
    places: ArrayLike,
    positive: ArrayLike,
    random: ArrayLike,
    *,
    n_pool: int,
    n_left: int,
    batch: int,
    level: float = 0.95,
) -> Outlook | None:
    """Hidden positives from the places of the rows read; None before the first positive.

    Parameters
    ----------
    places : shape (n,), of the rows that were drawn and decided
    positive, random : bool, shape (n,); random rows were not drawn for their score
    n_pool, n_left : rows when the review began, and rows that nobody has looked at
    batch : rows of the next batch
    level : probability of each limit
    """
    u, hit = np.asarray(places, dtype=np.float64), np.asarray(positive, dtype=bool)
    if not hit.any():
        return None
    posterior = place_scores(u[hit], u[~hit], random_labels=True)
    share, explored = posterior.share(level), np.asarray(random, dtype=bool)
    if not n_left:
        return Outlook(Expected(0.0, 0.0, 0.0), share, 0.0)
    hits, wanted = int(hit[explored].sum()), float(posterior.probability(u[explored]).sum())
    holds = hits == 0 or float(special.pdtrc(hits - 1, wanted)) >= 1.0 - level

    def rates(top: float, n: int) -> Floats:
        """Mean of pi over n rows below the place ``top``, by curve of the posterior."""
        few = min(n, _PLACES)
        return posterior.mean_chance(top - (np.arange(few) + 0.5) / few * n / n_pool)

    size, top = min(batch, n_left), n_left / n_pool
    soon = size * float(posterior.weights @ rates(top, size))
    hidden = _counts(rates(top, n_left), posterior.weights, n_left, level)
    return Outlook(hidden, share, soon, hits, wanted, holds)


def _counts(rates: Floats, weights: Floats, n: int, level: float) -> Expected:
    """Mean and limits of Binomial(n, rate) over the posterior's rates, shape (m,)."""
    # by Chernoff no rate has 1e-6 of its mass beyond this
    top = n * rates.max()
    most = int(min(n, np.ceil(top + 8.0 * np.sqrt(top) + 14.0)))
    counts = np.unique(np.linspace(0, most, min(most, _COUNTS) + 1).round())
    # 200 quantiles of the posterior stand for its thousands of curves
    order = np.argsort(rates)
    below = np.cumsum(weights[order])
    at = np.searchsorted(below, (np.arange(200) + 0.5) / 200 * below[-1]).clip(max=len(order) - 1)
    chance = special.bdtr(counts[:, None], n, rates[order][at]).mean(axis=1)
    limits = np.searchsorted(chance, [1.0 - level, level]).clip(max=len(counts) - 1)
    low, high = counts[limits]
    return Expected(float(n * (weights @ rates)), float(low), float(high))


def held_out_auc(
    scores: ArrayLike, y: ArrayLike, weights: ArrayLike, drawn: ArrayLike, level: float = 0.95
) -> Expected | None:
    """AUC over the whole pool of a ranking whose labelled rows were chosen by such rankings.

    Parameters
    ----------
    scores : shape (n,), of rows of the pool by models that had not seen their labels
    y : 1, 0 or NaN, shape (n,)
    weights : rows of the pool that each stands for, shape (n,)
    drawn : bool, shape (n,), False for rows whose label is no evidence: how they were picked is
        not known
    """
    worth, y = np.asarray(weights, dtype=np.float64), np.asarray(y, dtype=np.float64)
    order = np.argsort(np.asarray(scores, dtype=np.float64))
    u = np.empty(len(order))
    u[order] = (np.cumsum(worth[order]) - 0.5 * worth[order]) / worth.sum()
    positive, negative = (u[np.asarray(drawn, dtype=bool) & (y == code)] for code in (1, 0))
    if not len(positive):
        return None
    return place_scores(positive, negative, random_labels=True).auc(level)
