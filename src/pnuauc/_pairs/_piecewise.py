"""Piecewise polynomials over all pairs: sort, then running sums of distances, O(n log n)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pnuauc._arrays import Floats, Indices, Mask
from pnuauc._pairs._samples import Sample, Slopes
from pnuauc.losses import Loss, Pieces, PiecewisePolynomial


def piecewise_mean(loss: Loss, a: Sample, b: Sample) -> float:
    assert isinstance(loss, PiecewisePolynomial)
    ranked_a, ranked_b = Ranked.unordered(a), Ranked.unordered(b)
    (sums,) = _piecewise_sums(loss.breakpoints, [loss.pieces], ranked_a.scores, ranked_b)
    return float(np.dot(ranked_a.weight, sums))


def piecewise_slopes(loss: Loss, a: Sample, b: Sample) -> Slopes:
    assert isinstance(loss, PiecewisePolynomial)
    ranked_a, ranked_b = Ranked.of(a), Ranked.of(b)
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
    # Scores from position firsts[i] on have margins up to and including breakpoints[i].
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
        reach = 0.0 if i == last else breakpoints[i + 1] - k
        right = sum(c * reach**q for q, c in enumerate(function[i + 1]))
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
    def of(cls, sample: Sample) -> Ranked:
        return cls(sample.scores[sample.order], sample.weight[sample.order])

    @classmethod
    def unordered(cls, sample: Sample) -> Ranked:
        """The same without the order of the rows: equal weights need no argsort."""
        if np.all(sample.weight == sample.weight[0]):
            return cls(np.sort(sample.scores), sample.weight)
        return cls.of(sample)

    @cached_property
    def mirrored(self) -> Ranked:
        return Ranked(-self.scores[::-1], self.weight[::-1])

    @cached_property
    def above(self) -> tuple[Floats, Floats, Floats]:
        """sum_{i >= j} w_i (b_i - b_j)^q for q = 0, 1, 2 and j = 0..n (0 at n).

        Built from gap to gap by additions of non-negative numbers. Cumulative sums of b^q would
        need a subtraction for every query, and lose all digits of a small distance when some
        score is large.
        """
        gaps: Floats = np.append(np.diff(self.scores), 0.0)
        zeroth = _reverse_cumsum(self.weight)
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
