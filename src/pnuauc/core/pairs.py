"""Means of a margin loss over all pairs of two score vectors, and gradients; no pair is formed.

between:  mean_ij l(a_i - b_j);   within:  mean_{i != j} l(a_i - a_j), ordered pairs.

Frequency weights: a row of weight 2 counts exactly as that row twice. Four ways, chosen by what
the loss declares about its shape, n = len(a) + len(b):

==================== ================================ ===========================================
squared              O(n)                             mean and variance
exponential          O(n)                             the double sum factorises; log-sum-exp
piecewise polynomial O(n log n), exact                sort, then running sums of *distances*
smooth (logistic)    O(n log n) + Chebyshev panels    the many scores of a panel stand as few
                                                      weighted nodes; sparse panels stay as they are
==================== ================================ ===========================================

Accuracy: 1e-9 relative to the sum over pairs (smoothed losses: eps M^2 / width, M the largest
margin; logistic: an absolute 1e-12 besides); gradient entries relative to the largest sum of
abs(l') over a row or column of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    PiecewisePolynomial,
    Power,
    SmoothLoss,
    Squared,
    get_loss,
)

#: mean_ij l(a_i - b_j), and the weighted means of l' over each row and each column of pairs.
Sums: TypeAlias = tuple[float, Floats, Floats]


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
    def nodes(self) -> Nodes:
        return Nodes(self.ranked)

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


# --- squared: mean and variance ----------------------------------------------------------------


def squared_sums(loss: Loss, a: Sample, b: Sample, gradient: bool) -> Sums:
    """(1 - (mean a - mean b))^2 + var a + var b.

    Relative to each sample's first score: a large offset then cancels without rounding, and
    constant scores are treated exactly.
    """
    from_a, from_b = a.scores - a.scores[0], b.scores - b.scores[0]
    mean_a, mean_b = np.dot(a.weight, from_a), np.dot(b.weight, from_b)
    gap = (a.scores[0] - b.scores[0]) + (mean_a - mean_b)
    deviation_a, deviation_b = from_a - mean_a, from_b - mean_b
    spread = np.dot(a.weight, deviation_a**2) + np.dot(b.weight, deviation_b**2)
    rows = -2.0 * ((1.0 - gap) - deviation_a)
    columns = -2.0 * ((1.0 - gap) + deviation_b)
    return float((1.0 - gap) ** 2 + spread), rows, columns


# --- exponential: the double sum is a product --------------------------------------------------


def exponential_sums(loss: Loss, a: Sample, b: Sample, gradient: bool) -> Sums:
    """exp(log sum_i v_i e^-a_i + log sum_j w_j e^b_j), both sums about their largest term."""
    low, log_a = _log_sum(-a.scores, a.weight)
    high, log_b = _log_sum(b.scores, b.weight)
    value = float(np.exp((low + high) + (log_a + log_b)))
    return value, -np.exp((high - a.scores) + log_b), -np.exp((low + b.scores) + log_a)


def _log_sum(exponents: Floats, weight: Floats) -> tuple[float, float]:
    top = float(exponents[weight > 0.0].max())
    return top, float(np.log(np.dot(weight, np.exp(np.minimum(exponents - top, 0.0)))))


# --- piecewise polynomials: sort, then running sums --------------------------------------------


@dataclass(frozen=True)
class Ranked:
    """Sorted scores with weights, and power sums of their distances to any point."""

    scores: Floats
    weight: Floats

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

    def sums(self, terms: tuple[Power, ...], targets: Floats) -> Floats:
        """sum_j w_j f(t - b_j) at every target t (sorted: for speed only), f the sum of terms."""
        out = np.zeros(targets.size)
        for coefficient, knot, power, side in terms:
            if side > 0:
                out += coefficient * self._sums_above(targets, knot, power)
            else:  # max(0, m - k) = max(0, (-k) - (-m)), and -m = (-t) - (-b)
                out += coefficient * self.mirrored._sums_above(-targets, -knot, power)
        return out

    def _sums_above(self, targets: Floats, knot: float, power: int) -> Floats:
        """sum_j w_j max(0, knot - (t - b_j))^power."""
        zeroth, once, twice = self.above
        first: Indices = np.asarray(np.searchsorted(self.scores, targets - knot))
        if power == 0:
            after = np.searchsorted(self.scores, targets - knot, side="right")
            return 0.5 * (zeroth[first] + zeroth[after])
        nearest = self.scores[np.minimum(first, self.scores.size - 1)]
        # (b - t) + k, not b - (t - k): nearby scores subtract without rounding.
        step = np.maximum((nearest - targets) + knot, 0.0)
        if power == 1:
            return once[first] + step * zeroth[first]
        return twice[first] + step * (2.0 * once[first] + step * zeroth[first])


def _reverse_cumsum(terms: Floats) -> Floats:
    """Sums from j to the end, for j = 0..n."""
    out = np.zeros(terms.size + 1)
    np.cumsum(terms[::-1], out=out[-2::-1])
    return out


def piecewise_sums(loss: Loss, a: Sample, b: Sample, gradient: bool) -> Sums:
    assert isinstance(loss, PiecewisePolynomial)
    slopes = loss.slope_terms if gradient else ()
    value, rows, columns = _ranked_sums(loss.terms, slopes, a.ranked, b.ranked)
    return value, a.restore(rows), b.restore(columns)


def _ranked_sums(terms: tuple[Power, ...], slopes: tuple[Power, ...], a: Ranked, b: Ranked) -> Sums:
    value = float(np.dot(a.weight, b.sums(terms, a.scores)))
    # a - b = (-b) - (-a): the columns are rows of the mirrored problem
    columns = a.mirrored.sums(slopes, b.mirrored.scores)[::-1]
    return value, b.sums(slopes, a.scores), columns


# --- smooth losses: few nodes in place of many scores ------------------------------------------

# Panels two wide with 18 nodes: for a singularity at a distance pi the error is about 6.4^-18. Unit
# panels need 12 to 14 nodes for the same digits, so half as many again per unit of score.
_WIDTH, _NODES = 2.0, 18
_NODE_POSITIONS = 0.5 * _WIDTH * (1.0 + chebyshev.chebpts1(_NODES))
# Values at the nodes -> Chebyshev coefficients.
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(chebyshev.chebpts1(_NODES), _NODES - 1))
_TAIL = 28.0  # e^-28 = 7e-13
_ROWS, _COLUMNS = 128, 1024  # block of pairs evaluated at a time
_FEW_PAIRS = 1 << 15  # so few are evaluated one by one


class Nodes:
    """Scores by panel; a panel with many is replaced by Chebyshev nodes with weights.

    For smooth f, sum_i w_i f(x_i) = sum_k weight_k f(position_k) to rounding; conversely values at
    the positions give values at the scores by ``expand``.

    Attributes
    ----------
    points : Ranked
        The positions, ascending, and their weights.
    """

    def __init__(self, ranked: Ranked) -> None:
        panel = np.floor(ranked.scores / _WIDTH)
        starts = np.flatnonzero(np.append(True, panel[1:] != panel[:-1]))
        counts: Indices = np.diff(np.append(starts, panel.size))
        crowded = counts > _NODES
        self.counts = counts[crowded]
        self.is_crowded: Mask = np.repeat(crowded, counts)  # per score
        local = ranked.scores - _WIDTH * panel
        #: Where a score of a crowded panel is in it, from -1 to 1.
        self.inside = (2.0 / _WIDTH) * local[self.is_crowded] - 1.0
        weight, begin = ranked.weight[self.is_crowded], np.cumsum(self.counts) - self.counts
        moments = [np.add.reduceat(weight * values, begin) for values in self._polynomials()]
        places = (_WIDTH * panel[starts[crowded]])[:, None] + _NODE_POSITIONS
        scores = np.concatenate([ranked.scores[~self.is_crowded], places.ravel()])
        weights = [
            ranked.weight[~self.is_crowded],
            (np.transpose(moments) @ _TO_COEFFICIENTS).ravel(),
        ]
        self.order = np.argsort(scores)
        self.points = Ranked(scores[self.order], np.concatenate(weights)[self.order])

    def _polynomials(self) -> Iterator[Floats]:
        """T_0(x), T_1(x), ... at the scores of crowded panels."""
        x = self.inside
        before, now = x, np.ones_like(x)
        for _ in range(_NODES):
            yield now
            before, now = now, 2.0 * x * now - before

    def expand(self, values: Floats) -> Floats:
        """Values at the positions -> values at the scores, ascending."""
        unsorted = np.empty_like(values)
        unsorted[self.order] = values
        out, n_singles = np.empty(self.is_crowded.size), values.size - self.counts.size * _NODES
        out[~self.is_crowded] = unsorted[:n_singles]
        coefficients = unsorted[n_singles:].reshape(-1, _NODES) @ _TO_COEFFICIENTS.T
        total = np.zeros(self.inside.size)
        for of_panels, polynomial in zip(coefficients.T, self._polynomials(), strict=True):
            total += np.repeat(of_panels, self.counts) * polynomial
        out[self.is_crowded] = total
        return out


def smooth_sums(loss: Loss, a: Sample, b: Sample, gradient: bool) -> Sums:
    """l(m) = line max(0, -m) + l(abs(m)): the first by sorting, the second block by block."""
    assert isinstance(loss, SmoothLoss)
    if a.scores.size * b.scores.size <= _FEW_PAIRS:
        losses, slopes = loss.value_and_derivative(a.scores[:, None] - b.scores)
        return float(a.weight @ losses @ b.weight), slopes @ b.weight, a.weight @ slopes
    p, q = a.nodes.points, b.nodes.points
    line, slope = (Power(loss.line, 0.0, 1),), (Power(-loss.line, 0.0, 0),)
    value, rows, columns = _ranked_sums(line, slope, p, q)
    for i in range(0, p.scores.size, _ROWS):
        at_p, weight_p = p.scores[i : i + _ROWS], p.weight[i : i + _ROWS]
        low, high = np.searchsorted(q.scores, [at_p[0] - _TAIL, at_p[-1] + _TAIL])
        for j in range(low, high, _COLUMNS):
            near = slice(j, min(j + _COLUMNS, high))
            margins = at_p[:, None] - q.scores[near]
            losses, slopes = loss.value_and_derivative(np.abs(margins))
            slopes *= np.sign(margins)
            value += float(weight_p @ losses @ q.weight[near])
            rows[i : i + _ROWS] += slopes @ q.weight[near]
            columns[near] += weight_p @ slopes
    if not gradient:
        return value, rows, columns
    return value, a.restore(a.nodes.expand(rows)), b.restore(b.nodes.expand(columns))


# --- the four questions ------------------------------------------------------------------------


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
    return _sums(loss, read(a, weight_a, "a"), read(b, weight_b, "b"))[0]


def between_gradient(
    loss: str | Loss,
    a: ArrayLike | Sample,
    b: ArrayLike | Sample,
    weight_a: ArrayLike | None = None,
    weight_b: ArrayLike | None = None,
) -> Sums:
    """(R, dR/da, dR/db) of R = :func:`between`; shapes (), (n_a,), (n_b,).

    Examples
    --------
    >>> value, grad_a, grad_b = between_gradient("hinge", [2.0, 0.0], [0.0])
    >>> value, grad_a.tolist(), grad_b.tolist()
    (0.5, [0.0, -0.5], [0.5])
    """
    left, right = read(a, weight_a, "a"), read(b, weight_b, "b")
    value, rows, columns = _sums(loss, left, right, gradient=True)
    return value, _product(left.weight, rows), -_product(right.weight, columns)


def within(loss: str | Loss, a: ArrayLike | Sample, weight: ArrayLike | None = None) -> float:
    """(sum_ij w_i w_j l(a_i - a_j) - sum_i w_i l(0)) / (W (W - 1)), W = sum_i w_i.

    The mean over ordered pairs of two different rows, where weight 2 means the row twice.

    Examples
    --------
    >>> within("squared", [0.0, 1.0])  # l(-1) = 4 and l(1) = 0
    2.0
    """
    sample = read(a, weight, "a")
    _check_pairs(sample)
    return _without_self(loss, _sums(loss, sample, sample)[0], sample.size)


def within_gradient(
    loss: str | Loss, a: ArrayLike | Sample, weight: ArrayLike | None = None
) -> tuple[float, Floats]:
    """(R, dR/da) of R = :func:`within`; shapes (), (n_a,).

    Examples
    --------
    >>> value, gradient = within_gradient("squared", [0.0, 1.0])
    >>> value, gradient.tolist()
    (2.0, [-2.0, 2.0])
    """
    sample = read(a, weight, "a")
    _check_pairs(sample)
    # the pair (i, i) adds l'(0) to both sums: nothing to their difference
    value, rows, columns = _sums(loss, sample, sample, gradient=True)
    weights = sample.weight * (sample.size / (sample.size - 1.0))
    with np.errstate(invalid="ignore"):
        slope = np.where(rows == columns, 0.0, rows - columns)  # both may have overflowed
    return _without_self(loss, value, sample.size), _product(weights, slope)


def _check_pairs(sample: Sample) -> None:
    if sample.size <= 1.0:
        raise ValueError(
            "Pairs within one sample need two rows (a total weight above 1), got a total weight of"
            f" {sample.size:g}."
        )


def _without_self(loss: str | Loss, mean: float, size: float) -> float:
    return float((mean - float(get_loss(loss).value(0.0)) / size) * (size / (size - 1.0)))


def _product(weight: Floats, slope: Floats) -> Floats:
    """weight * slope where a weight of 0 silences even an overflowed slope."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.where(weight > 0.0, weight * slope, 0.0)


_FAMILIES: dict[Any, Callable[[Loss, Sample, Sample, bool], Sums]] = {
    Squared: squared_sums,
    Exponential: exponential_sums,
    PiecewisePolynomial: piecewise_sums,
    SmoothLoss: smooth_sums,
}


def _sums(loss: str | Loss, a: Sample, b: Sample, gradient: bool = False) -> Sums:
    loss = get_loss(loss)
    if gradient and not loss.has_derivative:
        raise ValueError(f"The {loss.name} loss has values but no gradient; ask for its value.")
    for family, sums in _FAMILIES.items():
        if isinstance(loss, family):
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                return sums(loss, a, b, gradient)
    raise TypeError(
        f"No way to sum the loss {loss.name!r} over pairs; derive it from PiecewisePolynomial or"
        " SmoothLoss."
    )
