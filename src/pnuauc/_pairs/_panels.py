"""Smooth losses over all pairs: Chebyshev panels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev

from pnuauc._arrays import Floats, Indices, Mask
from pnuauc._pairs._piecewise import Ranked
from pnuauc._pairs._samples import Sample, Slopes
from pnuauc.losses import Loss, SmoothLoss

# Panels two wide with 18 nodes: for a singularity at a distance pi the error is about 6.4^-18. Unit
# panels need 12 to 14 nodes for the same digits, so half as many again per unit of score.
_WIDTH = 2.0
_NODES = 18
_ROWS = 128  # block of pairs evaluated at a time; few rows, so that scores far from all others
_COLUMNS = 1024  # do not drag many columns in
_NODE_POSITIONS = 0.5 * _WIDTH * (1.0 + chebyshev.chebpts1(_NODES))
# Values at the nodes -> Chebyshev coefficients.
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(chebyshev.chebpts1(_NODES), _NODES - 1))


@dataclass(frozen=True)
class _Compressed:
    """Scores by panel; a panel with many is replaced by Chebyshev nodes with weights.

    A position is ``panel + local``, panel a multiple of the width, local the rest: differences
    of two positions are then exact to rounding of their own size, whatever the scores' size.

    For smooth f, sum_i w_i f(x_i) = sum_k weight_k f(position_k) to rounding; conversely values at
    the positions give values at the scores by ``expand``.
    """

    panel: Floats
    local: Floats
    weight: Floats
    sample: Sample
    score_local: Floats  # of the sorted scores of crowded panels, in [-1, 1]
    crowd: Indices  # which crowded panel each of them is in
    is_crowded: Mask  # per sorted score
    nodes_at: Indices  # where in ``panel`` the nodes stand, shape (n_crowds, _NODES)
    singles_at: Indices  # where in ``panel`` the scores of sparse panels stand

    def expand(self, values: Floats) -> Floats:
        """Values at the positions -> values at the scores, in the caller's order."""
        ranked = np.empty(self.is_crowded.size)
        ranked[~self.is_crowded] = values[self.singles_at]
        coefficients = values[self.nodes_at] @ _TO_COEFFICIENTS.T
        total = np.zeros(self.score_local.size)
        for k, polynomial in enumerate(_chebyshev(self.score_local)):
            total += coefficients[self.crowd, k] * polynomial
        ranked[self.is_crowded] = total
        return self.sample.restore(ranked)


def _compress(sample: Sample) -> _Compressed:
    ranked = Ranked.of(sample)
    scores = ranked.scores
    panel = _WIDTH * np.floor(scores / _WIDTH)
    local = scores - panel
    starts = np.flatnonzero(np.append(True, panel[1:] != panel[:-1]))
    counts: Indices = np.diff(np.append(starts, scores.size))
    crowded = counts > _NODES
    is_crowded: Mask = np.repeat(crowded, counts)
    n_crowds = int(crowded.sum())

    crowd: Indices = np.repeat(np.arange(n_crowds), counts[crowded])
    inside = (2.0 / _WIDTH) * local[is_crowded] - 1.0
    weight = ranked.weight[is_crowded]
    moments = np.zeros((n_crowds, _NODES))
    if n_crowds:
        firsts: Indices = np.append(0, np.cumsum(counts[crowded])[:-1])
        for k, polynomial in enumerate(_chebyshev(inside)):
            moments[:, k] = np.add.reduceat(weight * polynomial, firsts)

    # Both kinds in one increasing sequence: each panel takes its nodes or its own scores.
    taken = np.where(crowded, _NODES, counts)
    offsets: Indices = np.append(0, np.cumsum(taken)[:-1])
    nodes_at = offsets[crowded][:, None] + np.arange(_NODES)
    keep: Mask = np.ones(int(taken.sum()), dtype=bool)
    keep[nodes_at.ravel()] = False
    singles_at = np.flatnonzero(keep)
    position: Floats = np.repeat(panel[starts], taken)
    place, mass = np.empty(keep.size), np.empty(keep.size)
    place[singles_at], mass[singles_at] = local[~is_crowded], ranked.weight[~is_crowded]
    place[nodes_at], mass[nodes_at] = _NODE_POSITIONS, moments @ _TO_COEFFICIENTS
    return _Compressed(
        position, place, mass, sample, inside, crowd, is_crowded, nodes_at, singles_at
    )


def _chebyshev(x: Floats) -> Iterator[Floats]:
    """T_0(x), T_1(x), ... one at a time, so that memory stays that of x."""
    previous, current = np.ones_like(x), x
    yield previous
    for _ in range(_NODES - 1):
        yield current
        previous, current = current, 2.0 * x * current - previous


@dataclass(frozen=True)
class _Table:
    """The table of all pairs of positions, cut in three by margin.

    Above ``cut`` a pair counts for nothing; below ``-loss.linear_below`` the loss is ``-m``, summed
    exactly for whole blocks of rows; what lies between is evaluated, block by block.
    """

    loss: SmoothLoss
    a: _Compressed
    b: _Compressed
    cut: float

    @cached_property
    def at_a(self) -> Floats:
        return self.a.panel + self.a.local

    @cached_property
    def at_b(self) -> Floats:
        return self.b.panel + self.b.local

    @cached_property
    def first_far(self) -> Indices:
        """Per block of rows, the first column that lies in the linear tail of all of them."""
        ends: Indices = np.append(np.arange(_ROWS, self.at_a.size, _ROWS), self.at_a.size) - 1
        return np.searchsorted(self.at_b, self.at_a[ends] + self.loss.linear_below, side="right")

    def near(self) -> Iterator[tuple[slice, slice, Floats]]:
        """(rows, columns, margins) of the blocks to evaluate."""
        lows = np.searchsorted(self.at_b, self.at_a[::_ROWS] - self.cut)
        for block, (low, high) in enumerate(np.column_stack([lows, self.first_far]).tolist()):
            begin = block * _ROWS
            rows = slice(begin, begin + _ROWS)
            for left in range(low, high, _COLUMNS):
                columns = slice(left, min(left + _COLUMNS, high))
                margins = self.a.panel[rows, None] - self.b.panel[columns]
                margins += self.a.local[rows, None] - self.b.local[columns]
                yield rows, columns, margins

    def far_sums(self) -> tuple[Floats, Floats]:
        """Per row, the sums of w_j and of w_j (b_j - a_i) over its linear tail."""
        first: Indices = np.repeat(self.first_far, _ROWS)[: self.at_a.size]
        zeroth, distances, _ = Ranked(self.at_b, self.b.weight).above
        step = self.at_b[np.minimum(first, self.at_b.size - 1)] - self.at_a
        return zeroth[first], distances[first] + step * zeroth[first]

    def far_mass(self) -> Floats:
        """Per column, the weight of the rows that have it in their linear tail."""
        mass = np.add.reduceat(self.a.weight, np.arange(0, self.at_a.size, _ROWS))
        counts: Floats = np.bincount(self.first_far, mass, self.at_b.size + 1).astype(np.float64)
        return np.cumsum(counts)[:-1]


def _tabulate(loss: Loss, a: Sample, b: Sample) -> _Table:
    assert isinstance(loss, SmoothLoss)
    return _Table(loss, _compress(a), _compress(b), _cut(a, b))


def _cut(a: Sample, b: Sample) -> float:
    """The margin beyond which all pairs together count e^-26 = 5e-12 of the rest at most.

    A mean over pairs beyond the cut is below exp(-cut). The mean of the rest is at least l(0) > 1/2
    times the share of pairs with a margin of 0 or less; or, where such pairs are rare or absent,
    what the pair with the smallest margin gives alone. The slopes obey the same bounds per row of
    mean weight, hence the largest weight in them.
    """
    row = np.argmin(np.where(a.weight > 0.0, a.scores, np.inf))
    column = np.argmax(np.where(b.weight > 0.0, b.scores, -np.inf))
    smallest = float(a.scores[row] - b.scores[column])
    alone = max(smallest, 0.0) - float(np.log(a.weight[row]) + np.log(b.weight[column]))
    ranked_a, ranked_b = Ranked.of(a), Ranked.of(b)
    above: Floats = ranked_b.above[0][np.searchsorted(ranked_b.scores, ranked_a.scores)]
    share = 0.5 * float(np.dot(ranked_a.weight, above))
    if share == 0.0:
        return alone + 26.0
    heaviest = max(a.weight.max() * a.weight.size, b.weight.max() * b.weight.size)
    return min(alone, float(np.log(heaviest / share))) + 26.0


def smooth_mean(loss: Loss, a: Sample, b: Sample) -> float:
    table = _tabulate(loss, a, b)
    value = float(np.dot(table.a.weight, table.far_sums()[1]))
    for rows, columns, margins in table.near():
        value += float(table.a.weight[rows] @ loss.value(margins) @ table.b.weight[columns])
    return value


def smooth_slopes(loss: Loss, a: Sample, b: Sample) -> Slopes:
    table = _tabulate(loss, a, b)
    mass, distances = table.far_sums()
    value = float(np.dot(table.a.weight, distances))
    row_slopes, column_slopes = -mass, -table.far_mass()
    for rows, columns, margins in table.near():
        losses, slopes = loss.value_and_derivative(margins)
        weight_a, weight_b = table.a.weight[rows], table.b.weight[columns]
        value += float(weight_a @ losses @ weight_b)
        row_slopes[rows] += slopes @ weight_b
        column_slopes[columns] += weight_a @ slopes
    return value, table.a.expand(row_slopes), table.b.expand(column_slopes)
