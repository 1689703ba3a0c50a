"""Means of a margin loss over all pairs of two score vectors, and gradients; no pair is formed.

between:  mean_ij l(a_i - b_j);   within:  mean_{i != j} l(a_i - a_j), ordered pairs.

Frequency weights: a row of weight 2 counts exactly as that row twice. Four engines, chosen by what
the loss declares about its shape, n = len(a) + len(b):

==================== ================================ ===========================================
squared              O(n)                             mean and variance
exponential          O(n)                             the double sum factorises; log-sum-exp
piecewise polynomial O(n log n), exact                sort, then running sums of *distances*
smooth (logistic)    O(n log n) + Chebyshev panels    the many scores of a panel stand as few
                                                      weighted nodes; sparse panels stay as they are
==================== ================================ ===========================================

Accuracy: 1e-9 relative to the sum over pairs; gradient entries relative to the largest sum
of abs(l') over a row or column of pairs (a within-gradient is a difference of two such sums).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from pnuauc._utils.arrays import Floats, Indices, Mask
from pnuauc.core.losses import (
    Exponential,
    Loss,
    Pieces,
    PiecewisePolynomial,
    SmoothLoss,
    Squared,
    get_loss,
)

__all__ = ["between", "between_gradient", "within", "within_gradient"]


Slopes: TypeAlias = tuple[float, Floats, Floats]
WithinSlopes: TypeAlias = tuple[float, Floats]


@dataclass(frozen=True)
class Sample:
    """Scores with weights that sum to one, so that weighted sums are means and do not overflow."""

    scores: Floats
    weight: Floats
    size: float

    @cached_property
    def order(self) -> Indices:
        return np.argsort(self.scores)

    @cached_property
    def ranked(self) -> Ranked:
        return Ranked(self.scores[self.order], self.weight[self.order])

    @cached_property
    def compressed(self) -> _Compressed:
        return _compress(self)

    def restore(self, ranked: Floats) -> Floats:
        """Undo the sorting."""
        out = np.empty_like(ranked)
        out[self.order] = ranked
        return out


def read(scores: ArrayLike | Sample, weight: ArrayLike | None, name: str) -> Sample:
    """Check scores and weights; the errors call them by ``name``. What was read stays as it is."""
    if isinstance(scores, Sample):
        return scores
    values = _vector(scores, f"scores {name}")
    if values.size == 0:
        raise ValueError(f"The scores {name} are empty; at least one score is needed.")
    if weight is None:
        size = float(values.size)
        return Sample(values, np.full(values.size, 1.0 / size), size)
    weights = _vector(weight, f"weights of {name}")
    if weights.size != values.size:
        raise ValueError(
            f"The weights of {name} have length {weights.size} but there are {values.size} scores;"
            " give one weight per score."
        )
    if np.any(weights < 0.0):
        where = int(np.argmax(weights < 0.0))
        raise ValueError(f"The weights of {name} must not be negative; number {where} is.")
    size = float(weights.sum())
    if size == 0.0:
        raise ValueError(f"The weights of {name} are all zero; at least one must be positive.")
    return Sample(values, weights / size, size)


def _vector(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"The {name} must be real numbers, got dtype {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(f"The {name} must be one-dimensional, got shape {array.shape}.")
    array = array.astype(np.float64)
    if not np.all(np.isfinite(array)):
        where = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"The {name} must be finite; number {where} is {array[where]}.")
    return array


def require_pairs(sample: Sample) -> None:
    if sample.size <= 1.0:
        raise ValueError(
            "Pairs within one sample need two rows (a total weight above 1), got a total weight of"
            f" {sample.size:g}."
        )


# Panels two wide with 18 nodes: for a singularity at a distance pi the error is about 6.4^-18. Unit
# panels need 12 to 14 nodes for the same digits, so half as many again per unit of score.
_WIDTH = 2.0
_NODES = 18
_ROWS = 128  # block of pairs evaluated at a time; few rows, so that scores far from all others
_COLUMNS = 1024  # do not drag many columns in
_KEPT = 1 << 14  # scores whose polynomials are in memory at once
_FEW_PAIRS = 1 << 15  # a table of so few is cheaper than panels
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
    crowds: _Crowds
    is_crowded: Mask  # per sorted score
    nodes_at: Indices  # where in ``panel`` the nodes stand, shape (n_crowds, _NODES)
    singles_at: Indices  # where in ``panel`` the scores of sparse panels stand

    def expand(self, values: Floats) -> Floats:
        """Values at the positions -> values at the scores, in the caller's order."""
        ranked = np.empty(self.is_crowded.size)
        ranked[~self.is_crowded] = values[self.singles_at]
        coefficients = values[self.nodes_at] @ _TO_COEFFICIENTS.T
        total = np.empty(self.crowds.inside.size)
        for crowd, rows, polynomials in self.crowds.blocks():
            np.matmul(coefficients[crowd], polynomials, out=total[rows])
        ranked[self.is_crowded] = total
        return self.sample.restore(ranked)


@dataclass(frozen=True)
class _Crowds:
    """Sorted scores of the crowded panels: where in its panel each is, from -1 to 1."""

    inside: Floats
    ends: Indices  # of each crowded panel

    def blocks(self) -> Iterable[tuple[int, slice, Floats]]:
        """(panel, scores, polynomials of these); kept where they are few."""
        return self._kept if self.inside.size <= _KEPT else self._blocks()

    @cached_property
    def _kept(self) -> list[tuple[int, slice, Floats]]:
        return list(self._blocks())

    def _blocks(self) -> Iterator[tuple[int, slice, Floats]]:
        for start in range(0, self.inside.size, _KEPT):
            stop = min(start + _KEPT, self.inside.size)
            polynomials = _chebyshev(self.inside[start:stop])
            first, last = np.searchsorted(self.ends, (start, stop - 1), "right").tolist()
            cuts = [start, *self.ends[first:last].tolist(), stop]
            for crowd, (low, high) in enumerate(itertools.pairwise(cuts), start=first):
                yield crowd, slice(low, high), polynomials[:, low - start : high - start]


def _compress(sample: Sample) -> _Compressed:
    ranked = sample.ranked
    scores = ranked.scores
    panel = _WIDTH * np.floor(scores / _WIDTH)
    local = scores - panel
    starts = np.flatnonzero(np.append(True, panel[1:] != panel[:-1]))
    counts: Indices = np.diff(np.append(starts, scores.size))
    crowded = counts > _NODES
    is_crowded: Mask = np.repeat(crowded, counts)
    crowds = _Crowds((2.0 / _WIDTH) * local[is_crowded] - 1.0, np.cumsum(counts[crowded]))
    weight = ranked.weight[is_crowded]
    moments = np.zeros((int(crowded.sum()), _NODES))
    for crowd, rows, polynomials in crowds.blocks():
        moments[crowd] += polynomials @ weight[rows]

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
    return _Compressed(position, place, mass, sample, crowds, is_crowded, nodes_at, singles_at)


def _chebyshev(x: Floats) -> Floats:
    """T_0(x), T_1(x), ..., shape (_NODES, n)."""
    out, twice = np.empty((_NODES, x.size)), 2.0 * x
    out[0], out[1] = 1.0, x
    for k in range(2, _NODES):
        out[k] = twice * out[k - 1] - out[k - 2]
    return out


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
        if (self.first_far == self.at_b.size).all():
            return np.zeros(self.at_a.size), np.zeros(self.at_a.size)
        first: Indices = np.repeat(self.first_far, _ROWS)[: self.at_a.size]
        zeroth, distances, _ = Ranked(self.at_b, self.b.weight).above
        step = self.at_b[np.minimum(first, self.at_b.size - 1)] - self.at_a
        return zeroth[first], distances[first] + step * zeroth[first]

    def far_mass(self) -> Floats:
        """Per column, the weight of the rows that have it in their linear tail."""
        mass = np.add.reduceat(self.a.weight, np.arange(0, self.at_a.size, _ROWS))
        counts: Floats = np.bincount(self.first_far, mass, self.at_b.size + 1).astype(np.float64)
        return np.cumsum(counts)[:-1]

    def slopes(self) -> Slopes:
        """The mean, and the weighted sums of l' over each row and each column."""
        mass, distances = self.far_sums()
        value = float(np.dot(self.a.weight, distances))
        row_slopes, column_slopes = -mass, -self.far_mass()
        for rows, columns, margins in self.near():
            losses, slopes = self.loss.value_and_derivative(margins)
            weight_a, weight_b = self.a.weight[rows], self.b.weight[columns]
            value += float(weight_a @ losses @ weight_b)
            row_slopes[rows] += slopes @ weight_b
            column_slopes[columns] += weight_a @ slopes
        return value, row_slopes, column_slopes


def _table(loss: Loss, a: Sample, b: Sample) -> _Table:
    """Without a cut where so few positions are left that finding it costs more than it saves."""
    assert isinstance(loss, SmoothLoss)
    few = a.compressed.weight.size * b.compressed.weight.size <= _FEW_PAIRS
    return _Table(loss, a.compressed, b.compressed, np.inf if few else _cut(a, b))


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
    above: Floats = b.ranked.masses[np.searchsorted(b.ranked.scores, a.ranked.scores)]
    share = 0.5 * float(np.dot(a.ranked.weight, above))
    if share == 0.0:
        return alone + 26.0
    heaviest = max(a.weight.max() * a.weight.size, b.weight.max() * b.weight.size)
    return min(alone, float(np.log(heaviest / share))) + 26.0


def smooth_mean(loss: Loss, a: Sample, b: Sample) -> float:
    if a.scores.size * b.scores.size <= _FEW_PAIRS:
        return float(a.weight @ loss.value(a.scores[:, None] - b.scores) @ b.weight)
    table = _table(loss, a, b)
    value = float(np.dot(table.a.weight, table.far_sums()[1]))
    for rows, columns, margins in table.near():
        value += float(table.a.weight[rows] @ loss.value(margins) @ table.b.weight[columns])
    return value


def smooth_slopes(loss: Loss, a: Sample, b: Sample) -> Slopes:
    if a.scores.size * b.scores.size <= _FEW_PAIRS:
        losses, slopes = loss.value_and_derivative(a.scores[:, None] - b.scores)
        return float(a.weight @ losses @ b.weight), slopes @ b.weight, a.weight @ slopes
    table = _table(loss, a, b)
    value, row_slopes, column_slopes = table.slopes()
    return value, table.a.expand(row_slopes), table.b.expand(column_slopes)


def smooth_within(loss: Loss, a: Sample) -> WithinSlopes:
    if a.scores.size**2 <= _FEW_PAIRS:
        value, rows, columns = smooth_slopes(loss, a, a)
        return value, rows - columns
    table = _table(loss, a, a)
    value, row_slopes, column_slopes = table.slopes()
    return value, table.a.expand(row_slopes - column_slopes)


# --- squared: mean and variance ----------------------------------------------------------------


def squared_mean(loss: Loss, a: Sample, b: Sample) -> float:
    """(1 - (mean a - mean b))^2 + var a + var b."""
    deviation_a, deviation_b, gap = _center(a, b)
    spread = np.dot(a.weight, deviation_a**2) + np.dot(b.weight, deviation_b**2)
    return float((1.0 - gap) ** 2 + spread)


def squared_slopes(loss: Loss, a: Sample, b: Sample) -> Slopes:
    deviation_a, deviation_b, gap = _center(a, b)
    rows = -2.0 * ((1.0 - gap) - deviation_a)
    columns = -2.0 * ((1.0 - gap) + deviation_b)
    return squared_mean(loss, a, b), rows, columns


def squared_within(loss: Loss, a: Sample) -> WithinSlopes:
    deviation, _, _ = _center(a, a)
    return squared_mean(loss, a, a), 4.0 * deviation


def _center(a: Sample, b: Sample) -> tuple[Floats, Floats, float]:
    """Deviations from each sample's own mean, and the difference of the means.

    Relative to each sample's first score: a large offset then cancels without rounding, and
    constant scores are treated exactly.
    """
    from_a, from_b = a.scores - a.scores[0], b.scores - b.scores[0]
    mean_a, mean_b = np.dot(a.weight, from_a), np.dot(b.weight, from_b)
    gap = (a.scores[0] - b.scores[0]) + (mean_a - mean_b)
    return from_a - mean_a, from_b - mean_b, gap


def exponential_mean(loss: Loss, a: Sample, b: Sample) -> float:
    """exp(log sum_i v_i e^-a_i + log sum_j w_j e^b_j), both sums about their largest term."""
    return _factors(a, b)[0]


def exponential_slopes(loss: Loss, a: Sample, b: Sample) -> Slopes:
    value, rows, columns = _factors(a, b)
    return value, -np.exp(rows), -np.exp(columns)


def exponential_within(loss: Loss, a: Sample) -> WithinSlopes:
    """e^s_i - e^r_i by way of expm1, so that two overflows still differ with the right sign."""
    value, rows, columns = _factors(a, a)
    share = -np.expm1(-np.abs(columns - rows))
    size = np.where(share > 0.0, np.exp(np.maximum(rows, columns)) * share, 0.0)
    return value, np.sign(columns - rows) * size


def _factors(a: Sample, b: Sample) -> Slopes:
    """The mean, and the logarithms of the sums over a row and over a column of pairs."""
    low, log_a = _log_sum(-a.scores, a.weight)
    high, log_b = _log_sum(b.scores, b.weight)
    value = float(np.exp((low + high) + (log_a + log_b)))
    return value, (high - a.scores) + log_b, (low + b.scores) + log_a


def _log_sum(exponents: Floats, weight: Floats) -> tuple[float, float]:
    top = float(exponents[weight > 0.0].max())
    return top, float(np.log(np.dot(weight, np.exp(np.minimum(exponents - top, 0.0)))))


def piecewise_mean(loss: Loss, a: Sample, b: Sample) -> float:
    assert isinstance(loss, PiecewisePolynomial)
    ranked_a, ranked_b = Ranked.unordered(a), Ranked.unordered(b)
    (sums,) = _piecewise_sums(loss.breakpoints, [loss.pieces], ranked_a.scores, ranked_b)
    return float(np.dot(ranked_a.weight, sums))


def piecewise_slopes(loss: Loss, a: Sample, b: Sample) -> Slopes:
    assert isinstance(loss, PiecewisePolynomial)
    ranked_a, ranked_b = a.ranked, b.ranked
    slope = loss.derivative_pieces
    sums, rows = _piecewise_sums(loss.breakpoints, [loss.pieces, slope], ranked_a.scores, ranked_b)
    # a - b = (-b) - (-a): the columns are rows of the mirrored problem.
    (columns,) = _piecewise_sums(
        loss.breakpoints, [slope], -ranked_b.scores[::-1], ranked_a.mirrored
    )
    value = float(np.dot(ranked_a.weight, sums))
    return value, a.restore(rows), b.restore(columns[::-1])


def _piecewise_sums(
    breakpoints: tuple[float, ...], functions: list[Pieces], targets: Floats, source: Ranked
) -> list[Floats]:
    """F(t) = sum_j w_j f(t - b_j) at every target t, for functions that share breakpoints.

    Parameters
    ----------
    breakpoints : length r
    functions : list of r + 1 pieces each, in the form of :class:`PiecewisePolynomial`
    targets : shape (n,), sorted (only for speed)
    source : the b_j with their weights
    """
    # Scores at position firsts[i] and later have margins up to and including breakpoints[i].
    firsts = [_first(source.scores, targets, k, np.less_equal) for k in breakpoints]
    out = [np.zeros(targets.size) for _ in functions]
    last = len(breakpoints)
    for i in range(last + 1):
        pieces = [function[i] for function in functions]
        degree = max(len(piece) for piece in pieces) - 1
        if not any(any(piece) for piece in pieces):
            continue
        if i == 0:
            sums = source.sums_above(targets, breakpoints[0], firsts[0], degree)
        elif i == last:
            mirrored_firsts = source.scores.size - firsts[-1]
            sums = source.mirrored.sums_above(-targets, -breakpoints[-1], mirrored_firsts, degree)
        else:
            sums = source.sums_inside(
                targets, (breakpoints[i - 1], breakpoints[i]), (firsts[i], firsts[i - 1]), degree
            )
        for total, piece in zip(out, pieces, strict=True):
            for coefficient, power_sum in zip(piece, sums, strict=False):
                if coefficient != 0.0:
                    total += coefficient * power_sum
    for total, function in zip(out, functions, strict=True):
        _share_ties(breakpoints, function, targets, source, firsts, total)
    return out


def _first(scores: Floats, targets: Floats, k: float, below: np.ufunc) -> Indices:
    """Smallest j with ``below(t - b_j, k)``, per target; n where there is none.

    b_j against t - k, as the search compares, is not always t - b_j against k after rounding: with
    scores 1.3 and 0.3 the margin is 1, but 1.3 - 1 is not 0.3. The few that differ are found by
    bisection, so that a margin is on a breakpoint exactly where its computed value is.
    """
    n = scores.size
    first: Indices = np.asarray(np.searchsorted(scores, targets - k))
    late = (first > 0) & below(targets - scores[np.maximum(first - 1, 0)], k)
    early = (first < n) & ~below(targets - scores[np.minimum(first, n - 1)], k)
    wrong = np.flatnonzero(late | early)
    if wrong.size:
        low: Indices = np.zeros_like(wrong)
        high: Indices = np.full_like(wrong, n)
        while np.any(low < high):
            middle = np.minimum((low + high) // 2, n - 1)
            found = below(targets[wrong] - scores[middle], k)
            open_ = low < high
            high = np.where(open_ & found, middle, high)
            low = np.where(open_ & ~found, middle + 1, low)
        first[wrong] = low
    return first


def _share_ties(
    breakpoints: tuple[float, ...],
    function: Pieces,
    targets: Floats,
    source: Ranked,
    firsts: list[Indices],
    total: Floats,
) -> None:
    """Where f jumps, give a margin on the breakpoint the mean of both sides (in place).

    The pieces gave it the left side. Where f is continuous there is nothing to do.
    """
    last = len(breakpoints) - 1
    for i, k in enumerate(breakpoints):
        step = 0.0 if i == last else breakpoints[i + 1] - k
        right = sum(c * step**q for q, c in enumerate(function[i + 1]))
        jump = right - function[i][0]
        if abs(jump) > 1e-12:
            first = firsts[i]
            nearest = source.scores[np.minimum(first, source.scores.size - 1)]
            tied = np.flatnonzero(targets - nearest == k)
            after = _first(source.scores, targets[tied], k, np.less)
            above = source.above[0]
            total[tied] += 0.5 * jump * (above[first[tied]] - above[after])


@dataclass(frozen=True)
class Ranked:
    """Sorted scores with weights, and power sums of their distances to any point."""

    scores: Floats
    weight: Floats

    @classmethod
    def unordered(cls, sample: Sample) -> Ranked:
        """The same without the order of the rows: equal weights need no argsort."""
        if np.all(sample.weight == sample.weight[0]):
            return cls(np.sort(sample.scores), sample.weight)
        return sample.ranked

    @cached_property
    def mirrored(self) -> Ranked:
        return Ranked(-self.scores[::-1], self.weight[::-1])

    @cached_property
    def masses(self) -> Floats:
        """sum_{i >= j} w_i, j = 0..n."""
        return _reverse_cumsum(self.weight)

    @cached_property
    def above(self) -> tuple[Floats, Floats, Floats]:
        """sum_{i >= j} w_i (b_i - b_j)^q for q = 0, 1, 2 and j = 0..n (0 at n).

        Built from gap to gap by additions of non-negative numbers. Cumulative sums of b^q would
        need a subtraction for every query, and lose all digits of a small distance when some
        score is large.
        """
        gaps: Floats = np.append(np.diff(self.scores), 0.0)
        zeroth = self.masses
        first = _reverse_cumsum(gaps * zeroth[1:])
        second = _reverse_cumsum(gaps * (2.0 * first[1:] + gaps * zeroth[1:]))
        return zeroth, first, second

    def sums_above(self, targets: Floats, k: float, first: Indices, degree: int) -> list[Floats]:
        """sum_{j >= first} w_j (k - (t - b_j))^q for q = 0..degree, at every target t."""
        sums = [self.above[q][first] for q in range(degree + 1)]
        if degree == 0:
            return sums
        nearest = self.scores[np.minimum(first, self.scores.size - 1)]
        # (b - t) + k, not b - (t - k): nearby scores subtract without rounding.
        step = np.maximum((nearest - targets) + k, 0.0)
        out = [sums[0], sums[1] + step * sums[0]]
        if degree == 2:
            out.append(sums[2] + step * (2.0 * sums[1] + step * sums[0]))
        return out

    def sums_inside(
        self,
        targets: Floats,
        interval: tuple[float, float],
        bounds: tuple[Indices, Indices],
        degree: int,
    ) -> list[Floats]:
        """sum_{start <= j < stop} w_j (k - (t - b_j))^q, q = 0..degree, k = interval[1].

        The running sums restart in every panel of twice the interval's length, so that they stay
        of the order of the answer; a window then meets at most two panels.
        """
        start, stop = bounds
        panels = _RestartedSums(self, 2.0 * (interval[1] - interval[0]), degree)
        out = [np.zeros(targets.size) for _ in range(degree + 1)]
        empty = stop <= start
        final = np.where(empty, 0, stop - 1)
        middle = np.clip(panels.begin[final], start, np.maximum(stop, start))
        for low, high in ((start, middle), (middle, stop)):
            sums = panels.between(low, high)
            begin = panels.begin[np.clip(high - 1, 0, None)]
            offset = (self.scores[begin] - targets) + interval[1]
            out[0] += sums[0]
            if degree >= 1:
                out[1] += sums[1] + offset * sums[0]
            if degree == 2:
                out[2] += sums[2] + offset * (2.0 * sums[1] + offset * sums[0])
        return out


class _RestartedSums:
    """Running sums of w v^q, v the distance to the first score of the panel, one scan a panel.

    Parameters
    ----------
    ranked : the sorted scores
    width : panel width
    degree : highest power q
    """

    def __init__(self, ranked: Ranked, width: float, degree: int) -> None:
        scores = ranked.scores
        panel = np.floor((scores - scores[0]) / width)
        is_first: Mask = np.append(True, panel[1:] != panel[:-1])
        starts = np.flatnonzero(is_first)
        self.begin = starts[np.cumsum(is_first) - 1]
        distance = scores - scores[self.begin]
        longest = int(np.diff(np.append(starts, scores.size)).max())
        rank = np.arange(scores.size) - self.begin
        self.sums = [
            self._scan(ranked.weight * distance**q, rank, longest) for q in range(degree + 1)
        ]

    @staticmethod
    def _scan(terms: Floats, rank: Indices, longest: int) -> Floats:
        # Doubling instead of one cumsum: differences of a global cumsum would carry the rounding
        # of everything that came before the panel.
        sums, step = terms, 1
        while step < longest:
            shifted = np.where(rank[step:] >= step, sums[:-step], 0.0)
            sums = np.concatenate([sums[:step], sums[step:] + shifted])
            step *= 2
        return sums

    def between(self, low: Indices, high: Indices) -> list[Floats]:
        """Sums over low <= j < high, which lie in one panel (empty where high <= low)."""
        some = high > low
        upper = np.where(some, high - 1, 0)
        inner = some & (low > self.begin[upper])
        lower = np.where(inner, low - 1, 0)
        return [
            np.where(some, sums[upper], 0.0) - np.where(inner, sums[lower], 0.0)
            for sums in self.sums
        ]


def _reverse_cumsum(terms: Floats) -> Floats:
    """Sums from j to the end, for j = 0..n."""
    out = np.zeros(terms.size + 1)
    np.cumsum(terms[::-1], out=out[-2::-1])
    return out


def between(
    loss: str | Loss,
    a: ArrayLike | Sample,
    b: ArrayLike | Sample,
    weight_a: ArrayLike | None = None,
    weight_b: ArrayLike | None = None,
) -> float:
    """sum_ij v_i w_j l(a_i - b_j) / (sum_i v_i sum_j w_j), without forming pairs.

    Parameters
    ----------
    loss : str or Loss
    a, b : array-like of shape (n_a,), (n_b,)
        Finite scores.
    weight_a, weight_b : array-like of the same shapes, optional
        Non-negative frequency weights v and w; ones if not given.

    Examples
    --------
    >>> between("zero_one", [3.0, 1.0], [1.0, 0.0])  # one tie among four pairs
    0.125
    """
    sums, loss = _sums_of(loss)
    left, right = read(a, weight_a, "a"), read(b, weight_b, "b")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return sums.mean(loss, left, right)


def between_gradient(
    loss: str | Loss,
    a: ArrayLike | Sample,
    b: ArrayLike | Sample,
    weight_a: ArrayLike | None = None,
    weight_b: ArrayLike | None = None,
) -> Slopes:
    """(R, dR/da, dR/db) of R = :func:`between`; shapes (), (n_a,), (n_b,).

    Examples
    --------
    >>> value, grad_a, grad_b = between_gradient("hinge", [2.0, 0.0], [0.0])
    >>> value, grad_a.tolist(), grad_b.tolist()
    (0.5, [0.0, -0.5], [0.5])
    """
    sums, loss = _sums_of(loss, gradient=True)
    left, right = read(a, weight_a, "a"), read(b, weight_b, "b")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        value, rows, columns = sums.slopes(loss, left, right)
        return value, _product(left.weight, rows), -_product(right.weight, columns)


def within(loss: str | Loss, a: ArrayLike | Sample, weight: ArrayLike | None = None) -> float:
    """(sum_ij w_i w_j l(a_i - a_j) - sum_i w_i l(0)) / (W (W - 1)), W = sum_i w_i.

    The mean over ordered pairs of two different rows, where weight 2 means the row twice.

    Examples
    --------
    >>> within("squared", [0.0, 1.0])  # l(-1) = 4 and l(1) = 0
    2.0
    """
    sums, loss = _sums_of(loss)
    sample = read(a, weight, "a")
    require_pairs(sample)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return _leave_out_self(loss, sums.mean(loss, sample, sample), sample.size)


def within_gradient(
    loss: str | Loss, a: ArrayLike | Sample, weight: ArrayLike | None = None
) -> WithinSlopes:
    """(R, dR/da) of R = :func:`within`; shapes (), (n_a,).

    Examples
    --------
    >>> value, gradient = within_gradient("squared", [0.0, 1.0])
    >>> value, gradient.tolist()
    (2.0, [-2.0, 2.0])
    """
    sums, loss = _sums_of(loss, gradient=True)
    sample = read(a, weight, "a")
    require_pairs(sample)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # the pair (i, i) adds l'(0) to both sums: nothing to their difference
        value, slope = sums.within_slopes(loss, sample)
        gradient = _product(sample.weight * (sample.size / (sample.size - 1.0)), slope)
        return _leave_out_self(loss, value, sample.size), gradient


def _leave_out_self(loss: Loss, mean: float, size: float) -> float:
    return float((mean - float(loss.value(0.0)) / size) * (size / (size - 1.0)))


def _product(weight: Floats, slope: Floats) -> Floats:
    """weight * slope where a weight of 0 silences even an overflowed slope."""
    return np.where(weight > 0.0, weight * slope, 0.0)


@dataclass(frozen=True)
class _PairSums:
    """How one family of losses is averaged over pairs.

    ``mean(loss, a, b)`` is mean_ij l(a_i - b_j); ``slopes`` adds the weighted sums of l'(a_i - b_j)
    over j (per row i) and over i (per column j); ``within_slopes(loss, a)`` is the mean with b = a
    and the difference of the two sums, by ``within`` where that loses digits.
    """

    mean: Callable[[Loss, Sample, Sample], float]
    slopes: Callable[[Loss, Sample, Sample], Slopes]
    within: Callable[[Loss, Sample], WithinSlopes] | None = None

    def within_slopes(self, loss: Loss, a: Sample) -> WithinSlopes:
        if self.within is not None:
            return self.within(loss, a)
        value, rows, columns = self.slopes(loss, a, a)
        return value, rows - columns


_FAMILIES: dict[Any, _PairSums] = {
    Squared: _PairSums(squared_mean, squared_slopes, squared_within),
    Exponential: _PairSums(exponential_mean, exponential_slopes, exponential_within),
    PiecewisePolynomial: _PairSums(piecewise_mean, piecewise_slopes),
    SmoothLoss: _PairSums(smooth_mean, smooth_slopes, smooth_within),
}


def _sums_of(loss: str | Loss, gradient: bool = False) -> tuple[_PairSums, Loss]:
    loss = get_loss(loss)
    if gradient and not loss.has_derivative:
        raise ValueError(f"The {loss.name} loss has values but no gradient; ask for its value.")
    for family, sums in _FAMILIES.items():
        if isinstance(loss, family):
            return sums, loss
    raise TypeError(
        f"No way to sum the loss {loss.name!r} over pairs; derive it from PiecewisePolynomial or"
        " SmoothLoss."
    )
