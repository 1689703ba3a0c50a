"""The likelihood of a prior from the ranks of P, N and U under a binormal ROC curve.

On some monotone scale z of the scores (higher scores have smaller z) let

    positives  z ~ N(0, 1),     negatives  z ~ N(mu, sigma^2),
    U's rows   t of the first and 1 - t of the second.

The scale is unknown, but the pool of all rows is a mixture too, with share
t* = (n_P + t n_U) / n of positives. So for given (t, mu, sigma) the row whose share of the pool
above it is w has z = M^-1(w), where M is the distribution function of that mixture. Cut the pool
into bins by rank: bin b then holds a share p_b of the positives, q_b of the negatives and
t p_b + (1 - t) q_b of U, all known functions of (t, mu, sigma), and the counts are multinomial.
Only ranks enter; P and N play the same part (swap them and t becomes 1 - t); either may be empty.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from pnuauc._arrays import Floats, Mask
from pnuauc.priors._belief import Belief, Blend

__all__ = ["Posterior", "RankCounts", "Shape", "posterior", "rank_counts"]

Range: TypeAlias = tuple[float, float]

#: Scorers err apart, so the error of the mean of several posteriors is this share of its width
#: (docs/priors.md).
_ERROR_OF_SEVERAL = 0.87
#: From n positives alone and a belief that nobody stated: first (1 - second / max(n, third)),
#: chosen on draws (docs/priors.md). From negatives alone nothing is taken off.
_ERROR_ALONE = (0.9, 1.5, 6.0)
#: At least this part of the variance stays when U's own draw is taken off: the form errs too.
_LEAST_VARIANCE = 0.5
_N_BINS = 32
#: mu / sqrt((1 + sigma^2) / 2), which stays the same when P and N are swapped; flat on this range.
_SHIFT_RANGE = (0.05, 5.05)
_LOG_SPREAD_RANGE = (-0.75, 0.75)
#: Points of the grid of shares, shifts and spreads: a first look at all, then a closer one.
_LOOK = (20, 13, 5)
_CLOSER = (48, 15, 7)
#: Points whose log posterior is further below the best than this are not looked at again.
_DROP = 12.0
#: Cells of the posterior that is returned, for each cell of the closer look.
_FINER = 4
_TINY = 1e-15


class RankCounts(NamedTuple):
    """Rows in bins of the pool's ranks, from the highest scores to the lowest.

    edges : shape (n_bins - 1,), shares of the pool above the inner edges
    positive, negative, unlabeled : shape (n_bins,), counts
    """

    edges: Floats
    positive: Floats
    negative: Floats
    unlabeled: Floats

    @property
    def has_both(self) -> bool:
        return bool(self.positive.any() and self.negative.any())

    def pooled_share(self, shares: Floats) -> Floats:
        """t* of the pool for shares t of U."""
        n_p, n_n, n_u = (role.sum() for role in self[1:])
        return np.asarray((n_p + shares * n_u) / (n_p + n_n + n_u))

    def thinned(self, rows_a_case: float) -> RankCounts:
        """As many rows as there are cases: a copy says nothing that its twin has not said."""
        return RankCounts(self.edges, *(role / rows_a_case for role in self[1:]))

    def mirrored(self) -> RankCounts:
        """The same rows with P and N swapped and the scores negated."""
        return RankCounts(
            1 - self.edges[::-1], self.negative[::-1], self.positive[::-1], self.unlabeled[::-1]
        )


class Shape(NamedTuple):
    """A point of the grid: share of positives in U, symmetric shift, log of sigma."""

    share: float
    shift: float
    log_spread: float


class Posterior(NamedTuple):
    """Cells of the share of positives in U, and their probabilities.

    edges : shape (n + 1,)
    weights : shape (n,), sum to one
    belief : shape (n,), what the cells had before the data; sums to one or less
    by_scorer : shape (n_scorers, n), the posterior from every scorer alone
    best : Shape of the largest posterior density, one for each scorer
    support : shape (n,), cells with more of it enter an interval first
    drawn_rows : rows of U whose own draw is no error (see :meth:`interval`); infinite: all of it is
    error : of the mean of several scorers' posteriors, in deviations of that mean
    """

    edges: Floats
    weights: Floats
    belief: Floats
    by_scorer: Floats
    best: list[Shape]
    support: Floats
    drawn_rows: float = np.inf
    error: float = _ERROR_OF_SEVERAL

    @property
    def shares(self) -> Floats:
        return (self.edges[1:] + self.edges[:-1]) / 2

    def interval(self, level: float) -> tuple[float, float]:
        """The hull of the cells of most support that have the probability ``level`` together.

        Probability is that of the mean of the scorers' posteriors: any of them may be the one that
        is right. Of several scorers it is 2 Phi(f z) - 1 with z = Phi^-1((1 + level) / 2) and f the
        error of that mean in its own deviations. f^2 = error^2 (1 - t (1 - t) / (n_U variance)):
        the likelihood takes U's rows for draws with the share t, which scatters U's own share, the
        one that is asked for, by t (1 - t) / n_U.
        """
        pooled: Floats = self.by_scorer.mean(axis=0)
        errors = float(ndtri((1 + level) / 2))
        if len(self.by_scorer) > 1:
            errors *= self.error * float(np.sqrt(self._share_of_variance(pooled)))
        order = np.argsort(-self.support, kind="stable")
        needed = np.searchsorted(np.cumsum(pooled[order]), 2 * ndtr(errors) - 1)
        kept = order[: int(needed) + 1]
        return float(self.edges[kept.min()]), float(self.edges[kept.max() + 1])

    def _share_of_variance(self, pooled: Floats) -> float:
        """What is left of the variance without the draw of U's rows."""
        variance = float(pooled @ (self.shares - pooled @ self.shares) ** 2)
        draw = float(pooled @ (self.shares * (1 - self.shares))) / self.drawn_rows
        return max(variance - draw, _LEAST_VARIANCE * variance) / variance if variance else 1.0

    def surprise(self) -> float:
        """Kullback-Leibler divergence of the posterior from the belief, in nats."""
        kept = self.weights > 0
        ratio = self.weights[kept] / np.maximum(self.belief[kept], 1e-300)
        return float(self.weights[kept] @ np.log(ratio))


def rank_counts(
    positive: Floats, negative: Floats, unlabeled: Floats, rng: np.random.RandomState
) -> RankCounts:
    """Bins of equal width on the logit of the pool's rank; ties are broken at random."""
    scores = np.concatenate([positive, negative, unlabeled])
    sizes = len(positive), len(negative), len(unlabeled)
    n = len(scores)
    order = np.lexsort((rng.uniform(size=n), -scores))
    role = np.repeat([0, 1, 2], sizes)[order]
    # the outermost bins hold about three rows, down to one row in 1,800 of a large pool
    reach = min(np.log(max(n / 3, 2)), 7.5)
    wanted = 1 / (1 + np.exp(-np.linspace(-reach, reach, _N_BINS - 1)))
    places = np.unique(np.clip(np.round(wanted * n), 1, n - 1).astype(np.intp))
    bins = np.searchsorted(places, np.arange(n), side="right")
    counts = [np.bincount(bins[role == r], minlength=len(places) + 1) for r in range(3)]
    return RankCounts(places / n, *(count.astype(float) for count in counts))


def posterior(
    counts: list[RankCounts], belief: Belief, *, spread_sd: float = 0.25, all_unlabeled: bool = True
) -> Posterior:
    """Posterior of the share of positives in U from the ranks by one or more scorers.

    Every scorer gives a likelihood of the share, (mu, sigma) integrated out: the shift flat on
    (0, 5), log sigma ~ N(0, ``spread_sd``^2). Their logarithms are averaged (each says the same
    thing with its own error, so their sum would be too sure), and the result is multiplied by the
    belief.

    An interval takes shares in the order of their density: it is the shortest one. With P and N and
    a belief that nobody stated (``Blend``) it takes them in the order of their likelihood instead:
    such a belief says how much a share weighs, not which of two shares fits the rows better.
    With one class the likelihood is nearly flat where the classes overlap, and its order is noise,
    so the order is by density; and what U says of the other class rests on the form, so the draw of
    U's rows is not taken off.

    Parameters
    ----------
    counts : list of RankCounts
        The same rows, ranked by each scorer.
    belief : Beta or Blend
    all_unlabeled : bool
        Whether the counts hold all of U. If not, the draw of those that they hold is an error.
    """
    look = _Grid.over((0.0, 1.0), _SHIFT_RANGE, _LOG_SPREAD_RANGE, _LOOK)
    first = look.log_density(counts, spread_sd)
    believed = np.log(np.maximum(belief.masses(look.edges) / np.diff(look.edges), _TINY))
    grid = look.around(first, believed)
    log_density = grid.log_density(counts, spread_sd)
    flat = np.log(np.exp(log_density - log_density.max(axis=(1, 2, 3), keepdims=True)).sum((2, 3)))
    best = [grid.shape_at(int(np.argmax(one))) for one in log_density]
    edges = _share_edges(grid.share_range, _FINER * len(grid.shares))
    middle, coarse = _unit(edges), _unit(grid.edges)
    middle, coarse = (middle[1:] + middle[:-1]) / 2, (coarse[1:] + coarse[:-1]) / 2
    log_likelihood = np.array([np.interp(middle, coarse, one) for one in flat])
    masses = belief.masses(edges)
    alone = np.array([_scaled(one, masses) for one in log_likelihood])
    averaged = log_likelihood.mean(axis=0)
    together = _scaled(averaged, masses)
    has_both = counts[0].has_both
    pooled: Floats = alone.mean(axis=0)
    support, error = pooled / np.diff(edges), _ERROR_OF_SEVERAL
    if isinstance(belief, Blend) and has_both:
        support = pooled / masses
    elif isinstance(belief, Blend):
        error = _error_alone(float(counts[0].positive.sum()), mirrored=belief.mean > 0.5)
    drawn_rows = float(counts[0].unlabeled.sum()) if has_both and all_unlabeled else np.inf
    return Posterior(edges, together, masses, alone, best, support, drawn_rows, error)


def _error_alone(n_known: float, mirrored: bool) -> float:
    """Of the mean of several scorers' posteriors, from ``n_known`` rows of one class alone."""
    first, second, least = _ERROR_ALONE
    return 1.0 if mirrored else first * (1 - second / max(n_known, least))


def _scaled(log_likelihood: Floats, masses: Floats) -> Floats:
    """Likelihood times belief, summing to one."""
    product = np.exp(log_likelihood - log_likelihood.max()) * masses
    return np.asarray(product / product.sum())


class _Grid(NamedTuple):
    """Shares (cells between ``edges``), shifts and log spreads."""

    edges: Floats
    shares: Floats
    shifts: Floats
    log_spreads: Floats

    @classmethod
    def over(
        cls, shares: Range, shifts: Range, log_spreads: Range, sizes: tuple[int, int, int]
    ) -> _Grid:
        edges = _share_edges(shares, sizes[0])
        unit = _unit(edges)
        middles = np.sin(np.pi / 4 * (unit[1:] + unit[:-1])) ** 2
        others = (
            np.linspace(r[0], r[1], n)
            for r, n in zip((shifts, log_spreads), sizes[1:], strict=True)
        )
        return cls(edges, middles, *others)

    @property
    def share_range(self) -> Range:
        return float(self.edges[0]), float(self.edges[-1])

    def shape_at(self, index: int) -> Shape:
        sizes = len(self.shares), len(self.shifts), len(self.log_spreads)
        i, j, k = np.unravel_index(index, sizes)
        return Shape(float(self.shares[i]), float(self.shifts[j]), float(self.log_spreads[k]))

    def log_density(self, counts: list[RankCounts], spread_sd: float) -> Floats:
        """Log likelihood times the law of log sigma, shape (n_counts, shares, shifts, spreads)."""
        pooled = counts[0].pooled_share(self.shares)
        p, q = bin_shares(counts[0].edges, pooled, self.shifts, self.log_spreads)
        u = q + self.shares[:, None, None, None] * (p - q)
        law = -0.5 * (self.log_spreads / spread_sd) ** 2
        total: Floats = np.zeros((len(counts), *u.shape[:3]))
        for share, role in zip((p, q, u), range(1, 4), strict=True):
            if counts[0][role].any():  # a class that is missing costs nothing
                logs = np.log(np.maximum(share, _TINY))
                total += [logs @ c[role] for c in counts]
        return total + law

    def around(self, log_density: Floats, believed: Floats) -> _Grid:
        """A closer grid around the points that matter, with or without the belief."""
        informed = log_density + believed[:, None, None]
        near: Mask = np.zeros(log_density.shape[1:], dtype=bool)
        for density in (log_density, informed):
            near |= (density >= density.max(axis=(1, 2, 3), keepdims=True) - _DROP).any(axis=0)
        kept = [np.flatnonzero(near.any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
        first, last = max(kept[0][0] - 1, 0), min(kept[0][-1] + 2, len(self.edges) - 1)
        shares = float(self.edges[first]), float(self.edges[last])
        shifts, log_spreads = (
            (float(values[max(rows[0] - 1, 0)]), float(values[min(rows[-1] + 1, len(values) - 1)]))
            for values, rows in zip((self.shifts, self.log_spreads), kept[1:], strict=True)
        )
        return _Grid.over(shares, shifts, log_spreads, _CLOSER)


def bin_shares(
    edges: Floats, pooled: Floats, shifts: Floats, log_spreads: Floats
) -> tuple[Floats, Floats]:
    """p_b and q_b, each of shape (pooled, shifts, log_spreads, bins): see the module's text."""
    size = len(pooled), len(shifts), len(log_spreads), len(edges)
    z: Floats = np.empty(size)
    spreads = np.exp(log_spreads)
    means = shifts[:, None] * np.sqrt((1 + spreads**2) / 2)
    # one interpolation for all shares: their mixtures, two apart, form one ascending line
    apart = 2.0 * np.arange(len(pooled))[:, None]
    wanted = (edges + apart).ravel()
    mixtures, lines = np.empty((2, len(pooled), 240))
    for j in range(len(shifts)):
        for k, spread in enumerate(spreads):
            mean = means[j, k]
            line = np.linspace(min(-8.0, mean - 8 * spread), max(8.0, mean + 8 * spread), 240)
            positive, negative = ndtr(line), ndtr((line - mean) / spread)
            np.multiply(pooled[:, None], positive - negative, out=mixtures)
            mixtures += negative
            mixtures += apart
            lines[:] = line
            z[:, j, k] = np.interp(wanted, mixtures.ravel(), lines.ravel()).reshape(-1, len(edges))
    below_p, below_q = ndtr(z), ndtr((z - means[:, :, None]) / spreads[:, None])
    ends = np.ones((*size[:3], 1))
    return (
        np.diff(below_p, axis=3, prepend=0 * ends, append=ends),
        np.diff(below_q, axis=3, prepend=0 * ends, append=ends),
    )


def _unit(shares: Floats) -> Floats:
    """The scale on which a binomial share has the same error everywhere, as [0, 1]."""
    return np.asarray(np.arcsin(np.sqrt(np.clip(shares, 0.0, 1.0))) * (2 / np.pi))


def _share_edges(ends: Range, n: int) -> Floats:
    """Edges of ``n`` cells between the ends, equal on that scale: narrow near 0 and 1."""
    start, stop = _unit(np.array(ends))
    edges: Floats = np.sin(np.pi / 2 * np.linspace(start, stop, n + 1)) ** 2
    edges[0], edges[-1] = ends
    return edges
