"""From a row's place among the unlabelled rows to the probability that it is positive.

Let u in (0, 1) be the share of unlabelled rows that score lower. The unlabelled rows are a
mixture, and on some scale of scores s we take

    p(s | positive) = (1 - miss) N(s; shift, 1) + miss N(s; 0, 1)
    p(s | negative) = (1 - pass) N(s; 0, 1) + pass N(s; shift, 1),

that is: a share ``miss`` of the positives cannot be told from the bulk of the negatives, and a
share ``pass`` of the negatives not from the bulk of the positives. Then p(positive | s) grows
with s, and so, at the mixture's quantile s(u), with u. Held-out labelled rows tell the three
numbers: a positive at u has likelihood p(u) / prior, a negative (1 - p(u)) / (1 - prior). All of
it is a posterior on a grid for every value that the prior may have, weighted as the prior says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pnuauc._placement import Placement, shortest_interval
from pnuauc._prior import ClassPrior
from pnuauc._stored import Parts, refuse

__all__ = ["Calibration", "TopPositives", "calibrate"]

Floats: TypeAlias = NDArray[np.float64]

#: Fine near 0 exceptions: among 1,000 rows of which 100 are positive, half a percent of the
#: negatives more or less is whether the top 100 may all be positive. Up to most positives missed:
#: a few may be told with certainty and the others not at all. The largest shares add up to 1: with
#: more of both the classes would change places, and the curves fall.
_SHIFTS = np.concatenate([np.arange(0.0, 3.0, 0.25), np.arange(3.0, 6.1, 0.5), [8.0]])
_MISSED = np.array([0.0, 0.02, 0.06, 0.14, 0.28, 0.45, 0.65, 0.8])
_PASSED = np.array([0.0, 0.001, 0.004, 0.015, 0.04, 0.1, 0.2])
#: Belief in a shift that is not far above 0, as an exponential law of this mean; a half normal law
#: would rule out tables that are nearly solved. Each share of exceptions above is as likely as the
#: others: ten labels cannot tell .001 from .04, and solved tables have one, hard ones the other.
_MEAN_SHIFT = 1.0
#: Held-out places that count as one: each labelled row also trained the models that placed others.
#: With both classes labelled, and with one.
_DISCOUNT, _DISCOUNT_ALONE = 1.5, 1.75
#: What the whole model has over those that placed the held-out rows, each as likely: more of the
#: shift, fewer exceptions. It had a fold more, twice the trees and weights that lean. With one
#: class labelled weights do not lean, and the model may be worse than the places say: unlabelled
#: rows, positives among them, stood for negatives. Less of all from so many rows of the rarer
#: labelled class on, with the root of their number.
_GAINS = ((0.0, 0.0), (0.1, 0.5), (0.3, 0.8))
_GAINS_ALONE, _GAIN_LABELS = ((-0.1, 0.0), *_GAINS[1:]), 50
#: Places at which probabilities are kept, by their distance from the top: as fine as a fortieth of
#: it, since where the classes part well a curve is a step at the prior.
_PLACES = np.concatenate(
    [
        np.linspace(0.0005, 0.5, 20),
        1.0 - np.geomspace(0.5, 0.003, 206)[1:],
        1.0 - np.geomspace(0.003, 2e-5, 41)[1:],
        [1.0 - 1e-6],
    ]
)
_SCORES = np.linspace(-6.0, 12.0, 721)
_PRIOR_NODES = 9
#: Points of the grid that together hold less than this share of the posterior are dropped.
_NEGLIGIBLE = 1e-3
#: Curves kept at most; more are thinned to those that stand for as many equal parts of the weight.
_MOST_CURVES = 1000
#: Counts of at most so many rows are added up exactly.
_EXACT = 60


@dataclass(frozen=True)
class TopPositives:
    """Positives among the ``k`` unlabelled rows of highest score.

    expected : float; low, high : int, limits of the shortest interval of probability ``level``.
    """

    k: int
    expected: float
    low: int
    high: int
    level: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """A posterior over curves u -> probability.

    Attributes
    ----------
    curves : ndarray, shape (m, number of places)
        Non-decreasing rows, rounded to float32, as they are stored.
    weights : ndarray, shape (m,)
    priors : ndarray, shape (m,)
        The prior that a curve belongs to: its mean over u.
    """

    curves: Floats
    weights: Floats
    priors: Floats

    @classmethod
    def of_placement(cls, placement: Placement) -> Calibration:
        """The posterior that another set of held-out places gave, as it is.

        ``pnuauc fit`` reads the positives to expect among the top rows off one posterior; with
        this the probabilities of single rows are those of the same one.
        """
        curves, mass, shares = placement.curves(_PLACES)
        kept = _most(mass / mass.sum())
        curves = np.maximum.accumulate(np.clip(curves[kept], 0.0, 1.0), axis=1)
        return cls(_rounded(curves), mass[kept] / mass[kept].sum(), shares[kept])

    @cached_property
    def _mean(self) -> Floats:
        return np.maximum.accumulate(self.weights @ self.curves)

    def probability(self, places: Floats) -> Floats:
        """Posterior mean of p(positive) at u = places, shape (n,)."""
        return np.interp(places, _PLACES, self._mean)

    def interval(self, places: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        """Equal-tailed limits of p(positive) at u = places, each of shape (n,)."""
        ends = [self._quantile((1.0 - level) / 2.0), self._quantile((1.0 + level) / 2.0)]
        low, high = (np.interp(places, _PLACES, np.maximum.accumulate(e)) for e in ends)
        return low, high

    def _quantile(self, share: float) -> Floats:
        order = np.argsort(self.curves, axis=0, kind="stable")
        weights = np.cumsum(self.weights[order], axis=0)
        place = np.minimum((weights < share).sum(axis=0), len(self.curves) - 1)
        columns = np.arange(self.curves.shape[1])
        return np.asarray(self.curves[order[place, columns], columns])

    def top(self, k: int, n: int, level: float = 0.9) -> TopPositives:
        """Positives in the top ``k`` of ``n`` rows drawn from U: mean and predictive interval."""
        k = min(k, n)
        places = 1.0 - (np.arange(k) + 0.5) / n
        p = np.array([np.interp(places, _PLACES, curve) for curve in self.curves])
        rest = 1.0 - (np.arange(k, n) + 0.5) / n
        left = np.array([_variance(np.interp(rest, _PLACES, curve)) for curve in self.curves])
        below = self.weights @ _count_probabilities(p, left)
        expected = float(self.weights @ p.sum(axis=1))
        low, high = shortest_interval(np.arange(k + 1.0), below, level)
        return TopPositives(k, expected, int(low), int(high), level)

    def arrays(self) -> dict[str, NDArray[Any]]:
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**found, "curves": self.curves.astype(np.float32)}

    @classmethod
    def rebuild(cls, parts: Parts) -> Calibration:
        """From a model file, every number checked."""
        curves = parts.array("curves", "float", (None, len(_PLACES))).astype(np.float64)
        weights = parts.array("weights", "float", (len(curves),)).astype(np.float64)
        priors = parts.array("priors", "float", (len(curves),)).astype(np.float64)
        if not len(curves) or (weights < 0).any() or abs(weights.sum() - 1.0) > 1e-6:
            raise refuse("weights of its calibration do not add up")
        if curves.min() < 0 or curves.max() > 1 or (np.diff(curves, axis=1) < -1e-9).any():
            raise refuse("curves of its calibration are no probabilities that grow")
        return cls(curves, weights, priors)


def _variance(p: Floats) -> float:
    return float((p * (1.0 - p)).sum())


def _count_probabilities(p: Floats, left: Floats) -> Floats:
    """P(count <= c), c = 0 .. k, of independent 0/1 variables: (m, k) -> (m, k + 1).

    ``left``, shape (m,), is the variance of the number of positives below the top. Up to
    ``_EXACT`` variables are added one by one. Of more the law is taken as normal, given that the
    prior, the share of positives inside U, fixes the number above and below together: variance
    V left / (V + left) instead of V.
    """
    m, k = p.shape
    if k > _EXACT:
        own = (p * (1.0 - p)).sum(axis=1)
        spread = np.sqrt(np.maximum(own * left / np.maximum(own + left, 1e-12), 1e-6))
        below = ndtr((np.arange(k + 1) + 0.5 - p.sum(axis=1)[:, None]) / spread[:, None])
        below[:, -1] = 1.0
        return np.asarray(below)
    law = np.zeros((m, k + 1))
    law[:, 0] = 1.0
    for j in range(k):
        one = p[:, j, None]
        law[:, 1:] = law[:, 1:] * (1.0 - one) + law[:, :-1] * one
        law[:, 0] *= 1.0 - p[:, j]
    return np.cumsum(law, axis=1)


def calibrate(
    positive: Floats,
    negative: Floats,
    prior: ClassPrior,
    n_rarer: int | None = None,
    counts: tuple[Floats, Floats] | None = None,
) -> Calibration:
    """The posterior given places of held-out labelled rows.

    Parameters
    ----------
    positive, negative : ndarray
        Share of unlabelled rows that score lower than each held-out row; either may be empty.
    prior : ClassPrior
    n_rarer : int, optional
        Rows of the rarer labelled class of the model that the curves are for, where the places come
        from models that lacked a fold of them and were worse for it, and that are not independent;
        None: the places are the model's own.
    counts : tuple of two ndarray, optional
        How much each positive and each negative place counts; None: as one.
    """
    if counts is None:
        counts = np.ones(len(positive)), np.ones(len(negative))
    values, chances = prior.nodes(_PRIOR_NODES)
    grid = tuple(g.ravel() for g in np.meshgrid(_SHIFTS, _MISSED, _PASSED, indexing="ij"))
    both = bool(len(positive) and len(negative))
    gains, discount = _gains(n_rarer, both), 1.0
    if n_rarer is not None:
        discount = _DISCOUNT if both else _DISCOUNT_ALONE
    found = []
    for value, chance in zip(values, chances, strict=True):
        inside = float(np.clip(value, 1e-4, 1.0 - 1e-4))
        log_weight = _log_belief(grid[0])
        curves = _curves(inside, *grid)
        log_weight += _log_likelihood(curves, (positive, negative), counts, inside) / discount
        share = np.exp(log_weight - log_weight.max())
        likely = np.sort(_most(share / share.sum()))  # as on the grid: see _thinned
        shift, miss, passed = (g[likely] for g in grid)
        # the prior keeps its own distribution: the same rows spoke when it was estimated
        weight = chance * share[likely] / (share[likely].sum() * len(gains))
        for more, fewer in gains:
            curves = _curves(inside, more * shift, fewer * miss, fewer * passed)
            found.append((curves, weight, np.full(len(curves), float(value))))
    curves, weight, priors = (np.concatenate(part) for part in zip(*found, strict=True))
    kept, weight = _thinned(weight / weight.sum())
    return Calibration(_rounded(curves[kept]), weight, priors[kept])


def _rounded(curves: Floats) -> Floats:
    """To float32 and back: half the size of a model file, and the same numbers after it."""
    return curves.astype(np.float32).astype(np.float64)


def _gains(n_rarer: int | None, both: bool) -> list[tuple[float, float]]:
    """What the whole model may have over one without a fold: (times the shift, the exceptions)."""
    if n_rarer is None:
        return [(1.0, 1.0)]
    felt = min(1.0, np.sqrt(_GAIN_LABELS / max(n_rarer, 1)))
    return [
        (1.0 + felt * more, 1.0 - felt * fewer)
        for more, fewer in (_GAINS if both else _GAINS_ALONE)
    ]


def _thinned(share: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Places of the shares to keep, and their weights: all but the least, or a systematic sample.

    Neighbours on the grid stand side by side, so that even steps through the cumulated share take
    something of every part of it.
    """
    kept = _most(share)
    if len(kept) <= _MOST_CURVES:
        return kept, share[kept] / share[kept].sum()
    steps = np.floor(np.cumsum(share) * _MOST_CURVES + 0.5)
    count = np.diff(steps, prepend=0.0)
    taken = np.flatnonzero(count)
    return taken, count[taken] / count.sum()


def _most(share: Floats) -> NDArray[np.intp]:
    """Places of the largest shares, nearly all of the sum together."""
    order = np.argsort(-share, kind="stable")
    return order[: 1 + int(np.searchsorted(np.cumsum(share[order]), 1.0 - _NEGLIGIBLE))]


def _log_likelihood(
    curves: Floats, places: tuple[Floats, Floats], counts: tuple[Floats, Floats], prior: float
) -> Floats:
    """sum count log p(u) / prior over positives, (1 - p(u)) / (1 - prior) over negatives: (m,)."""
    tiny = 1e-9
    positive, negative = (
        np.array([np.interp(at, _PLACES, curve) for curve in curves]) for at in places
    )
    told = np.log(np.maximum(positive, tiny) / prior) @ counts[0]
    return np.asarray(told + np.log(np.maximum(1.0 - negative, tiny) / (1.0 - prior)) @ counts[1])


def _curves(prior: float, shift: Floats, miss: Floats, passed: Floats) -> Floats:
    """The curves of these numbers for one prior, shape (m, places)."""
    # what depends on the shift alone is computed once for each
    shifts, which = np.unique(shift, return_inverse=True)
    shifted = ndtr(_SCORES - shifts[:, None])[which]
    ratio = np.exp(np.clip(shifts[:, None] * (_SCORES - shifts[:, None] / 2.0), -500, 500))[which]
    # share of the bulk of positives in the mixture, from both classes
    high = prior * (1.0 - miss) + (1.0 - prior) * passed
    below = high[:, None] * shifted + (1.0 - high)[:, None] * ndtr(_SCORES)
    positive = (prior * (1.0 - miss))[:, None] * ratio + (prior * miss)[:, None]
    negative = ((1.0 - prior) * (1.0 - passed))[:, None] + ((1.0 - prior) * passed)[:, None] * ratio
    probability = positive / (positive + negative)
    return np.array([np.interp(_PLACES, b, p) for b, p in zip(below, probability, strict=True)])


def _log_belief(shift: Floats) -> Floats:
    """Log prior weights of the grid's points: an exponential law of the shift, exceptions even.

    A shift stands for the stretch around it; shares of exceptions count by point, whatever the
    distance to the next.
    """
    stretch = np.gradient(_SHIFTS)[np.searchsorted(_SHIFTS, shift)]
    return np.asarray(np.log(stretch) - shift / _MEAN_SHIFT)
