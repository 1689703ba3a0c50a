"""How many positives are left if unread rows are like read rows of the same held-out score.

The last ranking gives every row of the pool a score by a model that had not seen its label, and so
a place u in (0, 1). Which rows were read was decided by earlier rankings and by chance. Given the
place it is taken to tell nothing of the label: then the odds of having been read cancel,

    L(pi) = product over read rows of pi(u)^y (1 - pi(u))^(1 - y),

which :func:`pnuauc.evaluation.posterior.place_scores` calls labels at random. The posterior over
the rising curve pi gives the share of positives in the pool, the AUC of the ranking, and the hidden
positives, the sum of pi over the rows that nobody has read, with their chance.

Earlier rankings know something that the last one does not, so read rows are, if anything, richer in
positives than unread ones of the same place: the count errs on the careful side. Positives unlike
all others are seen by the random rows alone: where these hold more than their places account for,
the assumption is refuted and nothing is expected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.stats import rankdata

from pnuauc._utils.arrays import Floats
from pnuauc.evaluation.posterior import Expected, place_scores

#: Counts whose probability is computed.
_COUNTS = 2000


@dataclass(frozen=True)
class Outlook:
    """What the last ranking and the decisions so far lead to expect.

    Attributes
    ----------
    hidden : positives among the rows that nobody has looked at: mean, and limits of which each is
        passed with probability 1 - ``stop_level``
    share : share of positives in the pool, read or not
    auc : of the ranking, over the pool
    next_batch : positives in the next batch, by score
    random_hits, random_expected : positives among the rows drawn at random, and how many their
        places lead to expect
    holds : whether that many or more have a probability of at least 1 - ``level``; where not, the
        ranking misses a kind of positive, and ``hidden`` and ``next_batch`` are too low
    """

    hidden: Expected
    share: Expected
    auc: Expected
    next_batch: float
    random_hits: int
    random_expected: float
    holds: bool


def outlook(
    held_out: ArrayLike,
    y: ArrayLike,
    by: ArrayLike,
    *,
    batch: int = 100,
    level: float = 0.95,
    stop_level: float = 0.9,
) -> Outlook | None:
    """Hidden positives, share and AUC; None before the review finds a positive, and without scores.

    Parameters
    ----------
    held_out : shape (n,), scores of the pool by models that had not seen the row's label
    y : 1, 0 or NaN, shape (n,)
    by : shape (n,), how a row came to be read: "score", "explore", "" where nobody has looked at
        it, anything else where that is not known, so that its label is no evidence
    batch : rows of the next batch
    level, stop_level : probability of the intervals of share and AUC, and of each limit of hidden
    """
    scores, y = (np.asarray(part, dtype=np.float64) for part in (held_out, y))
    by = np.asarray(by, dtype=str)
    random, read, left = by == "explore", np.isin(by, ["explore", "score"]), by == ""
    if np.isnan(scores).any() or not (read & (y == 1)).any():
        return None
    u = (rankdata(scores) - 0.5) / len(scores)
    posterior = place_scores(u[read & (y == 1)], u[read & (y == 0)], random_labels=True)
    hits = int((y[random] == 1).sum())
    wanted = float(posterior.probability(u[random & ~np.isnan(y)]).sum())
    holds = hits == 0 or float(special.pdtrc(hits - 1, wanted)) >= 1.0 - level
    hidden, soon = Expected(0.0, 0.0, 0.0), 0.0
    if left.any():
        rates = posterior.mean_chance(u[left])
        hidden = _counts(rates, posterior.weights, int(left.sum()), stop_level)
        soon = float(posterior.probability(np.sort(u[left])[-batch:]).sum())
    auc, share = posterior.auc(level), posterior.share(level)
    return Outlook(hidden, share, auc, soon, hits, wanted, holds)


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
