"""One posterior for everything that is stated: the share of positives and the curve of chances.

Let u be the place of a score among the unlabelled scores (0 lowest, 1 highest), t the share of
positives inside U, and pi(u) the chance that an unlabelled row at place u is positive: a rising
curve whose mean over u is t. Then

    labelled positives have the density pi(u) / t,
    labelled negatives have the density (1 - pi(u)) / (1 - t),

and with weights v_i (1 / odds of having been labelled, mean 1 in a class)

    log L = (1 / d) [ sum_P v_i log(pi(u_i) / t) + sum_N v_i log((1 - pi(u_i)) / (1 - t)) ].

Curves. With z = Phi^-1(u), logit pi rises at the rate exp(m + s h(z)), where h is a smooth Gaussian
process and m, s and t have beliefs of their own. With s = 0 it is a straight line in z, which is
two Gaussians of equal width where positives are rare. The labels decide how far the curve departs
from it: ten of them hardly at all, hundreds as far as they show.

Folds. Places come from models that lack a fold; the model that is used has all rows. Its curve is
(K / (K - 1))^beta times as steep: the slope is a ratio of signal to noise, which grows as the root
of the number of rows at most (an average of them), and not at all where nothing is left to learn.
So beta may be anything from 0 to 1/2.

Picked labels. Rows that were labelled because they scored high are no sample of their class. Beside
the model above stands one in which a share w of the labels was picked with odds that fall as a
power of a row's rank, rank^-b, w anywhere in (0, 1) and b in (0, 2), for both classes alike; the
ratio of the two marginal likelihoods says which of them the labels come from.

The posterior is a weighted sample of curves (importance sampling from a t distribution around the
mode). Share, chance of a row, positives in the top k, recall, AUC are functionals of (t, pi),
averaged over it: they agree by construction, and none of them is clamped or corrected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.optimize import minimize
from scipy.stats import betabinom, kstest, kstwo, qmc

from pnuauc._utils.arrays import Floats
from pnuauc._utils.stored import Parts, refuse
from pnuauc.prior import ClassPrior
from pnuauc.tuning import POSTERIOR

__all__ = ["Expected", "Posterior", "place_scores"]

# Places, evenly spaced in z: the top 1 in 1,000 is as well resolved as the middle.
_STEP = 0.1
_Z: Floats = np.linspace(-4.8, 4.8, 97)
_MASS: Floats = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()
# What is nearer to 0 or 1 than this is treated as this far: no U is large enough to show it.
_END = 1e-7
_DRAWS, _ROUNDS, _FREEDOM = 2048, 6, 6.0
#: Shares of a class's rows at its ends that are counted in the test of fit.
_TAILS = (0.01, 0.03, 0.1, 0.3)
#: Curves that a stored model keeps.
_KEPT = 400


class Expected(NamedTuple):
    """A number with the limits of the shortest interval of the asked probability."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """A weighted sample of (share, curve).

    Attributes
    ----------
    curves : ndarray, shape (m, 97)
        pi at places Phi(z), z from -4.8 to 4.8; rows rise.
    shares : ndarray, shape (m,)
        Share of positives that goes with each curve: its mean over u, and for a U of n rows what
        chance adds to it (each row is positive or not).
    weights : ndarray, shape (m,)
        Sum to 1.
    misfit : float
        p-value of a test of fit of the labelled places under the mean curve (Kolmogorov-Smirnov,
        and how many lie at the ends): tiny where no curve explains them.
    picked : float
        Probability that rows were labelled because they scored high.
    """

    curves: Floats
    shares: Floats
    weights: Floats
    misfit: float = 1.0
    picked: float = 0.0

    kind = "posterior"

    @property
    def doubt(self) -> str | None:
        """Why the labelled rows are no fair sample of their class; None where they may be."""
        if self.picked > 0.5:
            return (
                "The labelled rows look as if they had been labelled because they scored high. "
                "Then the share of positives reads too low and the AUC too high"
            )
        if self.misfit < POSTERIOR.misfit.value:
            return (
                "The labelled rows are not typical of their class: they stand where random rows of "
                "it could not (were they picked for their score, or is the given share wrong?)"
            )
        return None

    @cached_property
    def _mean(self) -> Floats:
        return np.maximum.accumulate(self.weights @ self.curves)

    def share(self, level: float = 0.95) -> Expected:
        """Share of positives inside U: mean, equal-tailed interval.

        Not the shortest interval: where labels say little that begins at 0 and errs on one side.
        """
        prior = self.class_prior(level)
        return Expected(prior.value, prior.low, prior.high)

    def class_prior(
        self, level: float = 0.95, source: str = "estimated from held-out scores"
    ) -> ClassPrior:
        """The share with its whole posterior, as other rooms take it."""
        shares, number = np.unique(self.shares, return_inverse=True)
        return ClassPrior.from_posterior(shares, np.bincount(number, self.weights), level, source)

    def probability(self, places: ArrayLike) -> Floats:
        """Chance that an unlabelled row at each place is positive, shape of ``places``."""
        return np.asarray(np.interp(_z_of(places), _Z, self._mean))

    def probability_interval(self, places: ArrayLike, level: float = 0.9) -> Floats:
        """Equal-tailed limits of pi at each place, shape (n, 2)."""
        z = _z_of(places)
        limits = np.maximum.accumulate(self._limits(self.curves, level), axis=1)
        return np.column_stack([np.interp(z, _Z, ends) for ends in limits])

    def _limits(self, values: Floats, level: float) -> Floats:
        """Equal-tailed limits of every column of (m, k), shape (2, k)."""
        tail = (1.0 - level) / 2.0
        found = [_quantiles(column, self.weights, (tail, 1.0 - tail)) for column in values.T]
        return np.array(found).T

    def auc(self, level: float = 0.95) -> Expected:
        """Integral over u > v of [pi(u) / t] [(1 - pi(v)) / (1 - t)] du dv; the median.

        Curves rise, so an AUC is at least 1/2: of a useless ranking the interval begins there.
        """
        found = self._expected(self.aucs, level)
        value = float(_quantiles(self.aucs, self.weights, (0.5,))[0])
        return Expected(value, min(found.low, value), max(found.high, value))

    @cached_property
    def aucs(self) -> Floats:
        """AUC of every curve, shape (m,); inside a cell pi is taken as linear."""
        positive, negative = self._densities()
        below = np.cumsum(negative, axis=1) - 0.5 * negative
        rise = np.gradient(self.curves, axis=1)
        spread = np.maximum(self.curves * (1.0 - self.curves), np.abs(rise) / 6.0 + 1e-12)
        within = negative * rise / (12.0 * spread)
        return np.asarray(np.clip((positive * (below + within)).sum(axis=1), 0.0, 1.0))

    def roc(self, level: float = 0.95, n_points: int = 101) -> dict[str, Floats]:
        """True positive rates at rates of false positives: fpr, tpr, low, high, shape (n,)."""
        fpr = np.linspace(0.0, 1.0, n_points)
        positive, negative = self._densities()
        above = [np.cumsum(d[:, ::-1], axis=1) for d in (negative, positive)]
        rates = np.array(
            [
                np.interp(fpr, np.append(0.0, f), np.append(0.0, t))
                for f, t in zip(*above, strict=True)
            ]
        )
        low, high = self._limits(rates, level)
        mean = self.weights @ rates
        # the mean of a skewed posterior may lie outside its equal-tailed interval
        low, high = np.minimum(low, mean), np.maximum(high, mean)
        return {"fpr": fpr, "tpr": mean, "low": low, "high": high}

    def mean_chance(self, places: ArrayLike) -> Floats:
        """Mean of pi over rows at these places, for every curve, shape (m,)."""
        u = np.asarray(places, dtype=np.float64)
        return np.asarray(self.curves @ _cell_counts(u, np.full(len(u), 1.0 / len(u))))

    def top(self, k: int, n_unlabeled: int, level: float = 0.95) -> Expected:
        """Positives among the k highest of n_unlabeled unlabelled rows: mean, prediction interval.

        Given the mean chance p of the k rows the count is taken as Binomial(k, p), which is never
        narrower than the sum of k unequal chances.
        """
        chance = self.curves @ _top_cells(k, n_unlabeled)
        counts = np.unique(np.round(np.linspace(0, k, min(k, 2000) + 1)))
        cells = np.linspace(0.0, 1.0, 202)
        mass = np.histogram(chance, cells, weights=self.weights)[0]
        middle, used = 0.5 * (cells[1:] + cells[:-1]), mass > 0
        below = special.bdtr(counts[:, None], k, middle[None, used]) @ mass[used]
        mean = float(k * (self.weights @ chance))
        low, high = _shortest(counts, np.diff(below, prepend=0.0), level)
        return Expected(
            mean, float(min(low, np.floor(mean))), float(max(high, np.ceil(mean - 1e-9)))
        )

    def recall(self, k: int, n_unlabeled: int, level: float = 0.95) -> Expected:
        """Share of U's positives that are among the k highest rows."""
        found = (self.curves @ _top_cells(k, n_unlabeled)) * k / (self.shares * n_unlabeled)
        return self._expected(np.minimum(found, 1.0), level)

    def rows_for_recall(self, recall: float, n_unlabeled: int) -> int:
        """How many of the highest rows hold, on average, this share of U's positives."""
        above = np.cumsum((self._mean * _MASS)[::-1])
        rows = np.cumsum(_MASS[::-1]) * n_unlabeled
        return int(np.ceil(np.interp(recall * above[-1], above, rows)))

    def _densities(self) -> tuple[Floats, Floats]:
        """Mass of positives and of negatives in every cell, rows sum to 1, shapes (m, 97)."""
        positive, negative = self.curves * _MASS, (1.0 - self.curves) * _MASS
        return (
            positive / positive.sum(axis=1, keepdims=True),
            negative / negative.sum(axis=1, keepdims=True),
        )

    def _expected(self, values: Floats, level: float) -> Expected:
        low, high = _shortest(values, self.weights, level)
        mean = float(self.weights @ values)
        return Expected(mean, min(low, mean), max(high, mean))

    # -- stored ------------------------------------------------------------------------------

    def thinned(self) -> Posterior:
        """At most 400 curves of equal weight that stand for all, in float32 as they are stored."""
        kept, weights = np.arange(len(self.shares)), self.weights
        if len(kept) > _KEPT:
            order = np.argsort(self.shares)  # evenly over shares: their mean hardly moves
            below, marks = np.cumsum(self.weights[order]), (np.arange(_KEPT) + 0.5) / _KEPT
            kept = order[np.searchsorted(below, marks).clip(max=len(order) - 1)]
            weights = np.full(_KEPT, 1.0 / _KEPT)
        curves = self.curves[kept].astype(np.float32).astype(np.float64)
        return replace(self, curves=curves, shares=self.shares[kept], weights=weights)

    def spec(self) -> dict[str, Any]:
        return {"misfit": self.misfit}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "curves": self.curves.astype(np.float32),
            "shares": self.shares,
            "weights": self.weights,
        }

    @classmethod
    def rebuild(cls, parts: Parts) -> Posterior:
        """From a model file, every number checked."""
        misfit = parts.number("misfit", 0.0, 1.0)
        curves = parts.array("curves", "float", (None, len(_Z)), at_most=_KEPT).astype(np.float64)
        if not len(curves):
            raise refuse("its posterior has no curves")
        shares = parts.array("shares", "float", (len(curves),)).astype(np.float64)
        weights = parts.array("weights", "float", (len(curves),)).astype(np.float64)
        for values in (curves, shares, weights):
            if not ((values >= 0.0) & (values <= 1.0)).all():
                raise refuse("its posterior holds numbers that are no probabilities")
        if abs(weights.sum() - 1.0) > 1e-6 or (np.diff(curves, axis=1) < 0).any():
            raise refuse(
                "the curves of its posterior do not rise, or their weights do not sum to 1"
            )
        return cls(curves, shares, weights, misfit)


def place_scores(
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    prior: ClassPrior | None = None,
    belief: tuple[float, float] = POSTERIOR.belief.value,
    weights: tuple[ArrayLike, ArrayLike] | None = None,
    discount: float = 1.0,
    n_folds: int = 0,
    n_unlabeled: int = 0,
    n_reference: int = 0,
    random_labels: bool = False,
    seed: int = 0,
) -> Posterior:
    """Posterior of share and curve from the places of labelled rows among the unlabelled ones.

    Parameters
    ----------
    positive, negative : array-like, shape (n_p,), (n_n,)
        Share of U that scores lower, in (0, 1), by scores that the row's own label had no part in;
        either may be empty.
    prior : ClassPrior, optional
        What is known of the share from elsewhere; takes the place of ``belief``.
    belief : (a, b)
        Beta distribution of the share.
    weights : pair of array-like, shapes (n_p,), (n_n,), optional
        How many rows each counts as; 1 by default.
    discount : float
        Rows that count as one: 1 for independent scores, more for refits.
    n_folds : int
        Folds of the models that placed the rows; 0 where it was the model itself.
    n_unlabeled : int
        Rows of U whose share is asked for; 0 for the share of the distribution that they are from,
        and where ``prior`` says it of U itself.
    n_reference : int
        Unlabelled rows that places were counted among; 0 for very many.
    random_labels : bool
        Whether rows were drawn at random to be labelled: then the labelled share is evidence too.

    Examples
    --------
    >>> found = place_scores([0.99, 0.97, 0.9, 0.6], [0.2, 0.5, 0.7])
    >>> count = found.top(20, 1000)
    >>> 0 <= count.low < count.value < count.high <= 20
    True
    """
    places = [np.asarray(part, dtype=np.float64) for part in (positive, negative)]
    worth = [
        np.ones(len(p)) if weights is None else np.asarray(weights[j], dtype=np.float64)
        for j, p in enumerate(places)
    ]
    model = _Model(
        [_cell_counts(p, w) / discount for p, w in zip(places, worth, strict=True)],
        [float(w.sum()) for w in worth] if random_labels else [0.0, 0.0],
        _share_map(prior, belief),
        np.log(n_folds / (n_folds - 1.0)) if n_folds > 1 else 0.0,
    )
    drawn, mass, chance, evidence = _sample(model, seed)
    picked = 0.0
    if not random_labels and len(places[0]) + len(places[1]):
        odds = POSTERIOR.picked.value / (1.0 - POSTERIOR.picked.value)
        lead = _sample(replace(model, rank=_log_rank(places)), seed, _DRAWS // 2)[3] - evidence
        picked = float(special.expit(lead + np.log(odds)))
    curves, shares, placed = model.curves(drawn)
    misfit = _misfit(np.maximum.accumulate(mass @ placed), places, worth, n_reference)
    if n_unlabeled and prior is None:
        shares = _realized(curves, shares, n_unlabeled, chance, mass)
    return Posterior(np.maximum.accumulate(curves, axis=1), shares, mass, misfit, picked)


def _log_rank(places: list[Floats]) -> Floats:
    """Log of the share of U above each cell, shape (97,), not below that of the highest label."""
    highest = np.max(np.concatenate(places))
    return np.asarray(np.log(np.maximum(special.ndtr(-_Z), max(1.0 - float(highest), _END))))


def _realized(curves: Floats, shares: Floats, n: int, chance: Floats, mass: Floats) -> Floats:
    """Shares of positives in n rows, each positive with its chance pi, shape (m,).

    Mean t and variance (1/n) mean of pi (1 - pi) over u, as a Beta at the quantiles ``chance``.
    """
    variance = np.maximum((curves * (1.0 - curves)) @ _MASS / n, 1e-9 * shares * (1.0 - shares))
    size = shares * (1.0 - shares) / variance - 1.0
    found = special.betaincinv(shares * size, (1.0 - shares) * size, chance)
    return np.asarray(np.minimum(found * (mass @ shares) / (mass @ found), 1.0))


@dataclass(frozen=True, eq=False)
class _Model:
    """log posterior of x, whose belief is N(0, I): (t, m, log s, h_1 ... h_k, beta, w, b).

    counts : labelled rows by cell, positives and negatives, shape (97,) each
    drawn : rows that say the share by their number (labels at random), positives and negatives
    share_map : standard normal -> share
    gain : log(K / (K - 1))
    rank : log rank of the cells, where rows were labelled for their rank
    """

    counts: list[Floats]
    drawn: list[float]
    share_map: Any
    gain: float
    rank: Floats | None = None

    @property
    def size(self) -> int:
        return 3 + POSTERIOR.components.value + (self.gain > 0) + 2 * (self.rank is not None)

    def curves(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """pi of the whole model, t, and pi of the models that placed the rows."""
        shares, whole, folds = self._logits(x)
        return special.expit(whole), shares, special.expit(folds)

    def log_density(self, x: Floats) -> Floats:
        """Up to a constant, shape (n,)."""
        shares, _, folds = self._logits(x)
        (n_p, n_n), log_t, log_rest = self.counts, np.log(shares), np.log1p(-shares)
        found = special.log_expit(folds) @ n_p + special.log_expit(-folds) @ n_n
        found += (self.drawn[0] - n_p.sum()) * log_t + (self.drawn[1] - n_n.sum()) * log_rest
        if self.rank is not None:
            picked, power = special.ndtr(x[:, -2:, None]).transpose(1, 0, 2)
            odds = np.exp(-2.0 * power * self.rank)
            for chance, share, n in ((folds, shares, n_p), (-folds, 1.0 - shares, n_n)):
                mean = (odds * special.expit(chance)) @ _MASS / share
                found += np.log1p(picked * (odds / mean[:, None] - 1.0)) @ n
        return np.asarray(found - 0.5 * (x**2).sum(axis=1))

    def _logits(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        k = POSTERIOR.components.value
        (level, level_sd), (rough, rough_sd) = POSTERIOR.slope.value, POSTERIOR.roughness.value
        shares = np.clip(self.share_map(x[:, 0]), 1e-6, 1.0 - 1e-6)
        bends = np.exp(np.clip(rough + rough_sd * x[:, 2:3], -9.0, 3.0)) * (
            x[:, 3 : 3 + k] @ _bends()
        )
        rates = np.exp(np.clip(level + level_sd * x[:, 1:2] + bends, -9.0, 6.0)) * _STEP
        rising = np.concatenate([np.zeros((len(x), 1)), np.cumsum(rates, axis=1)], axis=1)
        whole = rising + _intercepts(rising, shares)[:, None]
        if not self.gain:
            return shares, whole, whole
        flatter = rising * np.exp(-0.5 * self.gain * special.ndtr(x[:, 3 + k : 4 + k]))
        return shares, whole, flatter + _intercepts(flatter, shares)[:, None]


@lru_cache(maxsize=1)
def _bends() -> Floats:
    """Principal components of the process h between the cells, shape (k, 96)."""
    middle = 0.5 * (_Z[1:] + _Z[:-1])
    gram = np.exp(-0.5 * ((middle[:, None] - middle) / POSTERIOR.length.value) ** 2)
    size, direction = np.linalg.eigh(gram)
    strongest = np.argsort(-size)[: POSTERIOR.components.value]
    return np.asarray((direction[:, strongest] * np.sqrt(size[strongest])).T)


def _intercepts(rising: Floats, shares: Floats) -> Floats:
    """a with mean expit(a + rising) = share, shape (n,): Newton on the logit, inside a bracket."""
    wanted = special.logit(shares)
    low, high = wanted - rising[:, -1] - 1e-9, wanted - rising[:, 0] + 1e-9
    out = 0.5 * (low + high)
    live, a = np.arange(len(out)), out.copy()
    for attempt in range(90):
        chance = special.expit(a[:, None] + rising[live])
        mean = chance @ _MASS
        short = mean < shares[live]
        low[live], high[live] = np.where(short, a, low[live]), np.where(short, high[live], a)
        slope = np.maximum((chance * (1.0 - chance)) @ _MASS, 1e-300)
        error = wanted[live] - special.logit(np.clip(mean, 1e-300, 1.0 - 1e-16))
        step = error * mean * (1.0 - mean) / slope
        new = a + step
        # every third step halves the bracket: on the steps of a steep curve Newton may creep
        halve = (new <= low[live]) | (new >= high[live]) | (slope < 1e-200) | (attempt % 3 == 2)
        new = np.where(halve, 0.5 * (low[live] + high[live]), new)
        going = (np.abs(error) > 1e-9) & (high[live] - low[live] > 1e-10)
        out[live] = np.where(going, new, a)
        if not going.any():
            break
        live, a = live[going], new[going]
    return np.asarray(out)


def _sample(model: _Model, seed: int, draws: int = _DRAWS) -> tuple[Floats, Floats, Floats, float]:
    """Points and weights of the posterior, shapes (n, d), (n,), n further uniform numbers, and the
    log of the marginal likelihood.

    Importance sampling from a multivariate t distribution: around the mode first, then around the
    mean and covariance of the sample before, until a third of the points count (a tenth after
    three rounds).
    """
    d = model.size
    uniform = np.clip(qmc.Sobol(d + 2, seed=seed).random(draws), 1e-6, 1.0 - 1e-6)
    normal = special.ndtri(uniform[:, :d])
    scale = np.sqrt(_FREEDOM / special.chdtri(_FREEDOM, uniform[:, d]))
    first = normal[:256]
    start = first[np.argmax(model.log_density(first))]
    centre = minimize(
        _objective, start, model, jac=True, options={"maxiter": 60}, method="L-BFGS-B"
    ).x
    size, direction = np.linalg.eigh(_curvature(centre, model))
    spread = (direction / np.maximum(size, 0.4)) @ direction.T
    mass, x, evidence = np.ones(0), normal, 0.0
    constant = special.gammaln(0.5 * (_FREEDOM + d)) - special.gammaln(0.5 * _FREEDOM)
    constant -= 0.5 * d * np.log(0.5 * _FREEDOM)  # of the t density over that of the belief
    for attempt in range(_ROUNDS):
        root = np.linalg.cholesky(spread)
        x = centre + (normal * scale[:, None]) @ root.T
        distance = ((normal * scale[:, None]) ** 2).sum(axis=1)
        proposal = -0.5 * (_FREEDOM + d) * np.log1p(distance / _FREEDOM)
        ratio = model.log_density(x) - proposal
        mass = np.exp(ratio - ratio.max())
        evidence = ratio.max() + np.log(mass.mean()) - constant + np.log(np.diag(root)).sum()
        mass /= mass.sum()
        if 1.0 / (mass**2).sum() > draws / (3 if attempt < 2 else 10):
            break
        centre = mass @ x
        away = x - centre
        spread = (away * mass[:, None]).T @ away + 1e-3 * np.eye(d)
    return x, mass, uniform[:, d + 1], float(evidence)


def _objective(x: Floats, model: _Model, step: float = 1e-4) -> tuple[float, Floats]:
    """Minus log density, and its slope by central differences."""
    moved = step * np.eye(len(x))
    values = -model.log_density(np.concatenate([x[None], x + moved, x - moved]))
    forth, back = np.split(values[1:], 2)
    return float(values[0]), (forth - back) / (2.0 * step)


def _curvature(x: Floats, model: _Model, step: float = 0.05) -> Floats:
    """Second derivatives of minus log density, shape (d, d)."""
    slopes = [
        [_objective(x + sign * step * axis, model)[1] for sign in (1.0, -1.0)]
        for axis in np.eye(len(x))
    ]
    found = np.array([(forth - back) / (2.0 * step) for forth, back in slopes])
    return np.asarray(0.5 * (found + found.T))


def _share_map(prior: ClassPrior | None, belief: tuple[float, float]) -> Any:
    """From a standard normal variable to the share: the belief's or the prior's quantiles."""
    if prior is None:
        return lambda x: special.betaincinv(*belief, special.ndtr(x))
    values, mass = prior.nodes(41)
    below = special.ndtri(np.clip(np.cumsum(mass) - 0.5 * mass, 1e-6, 1.0 - 1e-6))
    return lambda x: np.interp(x, below, values)


def _misfit(mean: Floats, places: list[Floats], worth: list[Floats], n_reference: int) -> float:
    """p-value that the labelled places come from the densities of the mean curve, the smallest.

    Places are counted among m unlabelled rows, which are a sample too: weighted by the density f of
    a class they stand for m (mean f)^2 / mean f^2 rows of it. So this is a test of two samples.
    """
    found = [1.0]
    for curve, part, weight in zip((mean, 1.0 - mean), places, worth, strict=True):
        # rows that count for less or more than one have no such test
        n = len(part)
        if n < 2 or (np.abs(weight - 1.0) > 1e-9).any():
            continue
        m = float((n_reference or 1e9) * (curve @ _MASS) ** 2 / (curve**2 @ _MASS))
        below = np.cumsum(curve * _MASS)
        below = (below - 0.5 * curve * _MASS) / below[-1]
        place = np.interp(_z_of(part), _Z, below)
        size = max(round(n * m / (n + m)), 1)
        found.append(float(kstwo.sf(kstest(place, "uniform").statistic, size)))
        # a few rows picked from the far end leave the whole as it was: how many lie there?
        for end in (place, 1.0 - place):
            tails = [betabinom.sf((end < q).sum() - 1, n, q * m, (1.0 - q) * m) for q in _TAILS]
            found.append(float(min(1.0, len(_TAILS) * np.nanmin([*tails, 1.0]))))
    return min(found)


def _z_of(places: ArrayLike) -> Floats:
    """Phi^-1 of places, inside the grid."""
    z = special.ndtri(np.clip(np.asarray(places, dtype=np.float64), _END, 1.0 - _END))
    return np.asarray(np.clip(z, _Z[0], _Z[-1]))


def _cell_counts(places: Floats, weights: Floats) -> Floats:
    """Rows by cell, each shared by the two cells beside it, shape (97,)."""
    position = (_z_of(places) - _Z[0]) / _STEP
    left = np.clip(position.astype(np.intp), 0, len(_Z) - 2)
    part = position - left
    counts = np.bincount(left, weights * (1.0 - part), len(_Z))
    counts += np.bincount(left + 1, weights * part, len(_Z))
    return np.asarray(counts, dtype=np.float64)


def _top_cells(k: int, n_unlabeled: int) -> Floats:
    """Share of the k highest rows in every cell, shape (97,)."""
    if not 1 <= k <= n_unlabeled:
        raise ValueError(f"k must lie between 1 and the {n_unlabeled} unlabelled rows, got {k}.")
    few = min(k, 4000)
    places = 1.0 - (np.arange(few) + 0.5) * (k / few) / n_unlabeled
    return _cell_counts(places, np.full(few, 1.0 / few))


def _quantiles(values: Floats, weights: Floats, at: tuple[float, ...]) -> Floats:
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    at_least = np.searchsorted(below, np.array(at) * below[-1]).clip(max=len(order) - 1)
    return np.asarray(values[order[at_least]])


def _shortest(values: Floats, weights: Floats, level: float) -> tuple[float, float]:
    """Limits of the shortest interval that holds ``level`` of the weight.

    A posterior that piles up at an end (an AUC near 1, a share near 0) has its interval there. Of
    intervals of one length it is the one that holds most.
    """
    order = np.argsort(values)
    values, below = values[order], np.cumsum(weights[order])
    before = np.concatenate([[0.0], below[:-1]])
    # an allowance for rounding: all values together have probability 1
    last = np.searchsorted(below, before + level * below[-1] - 1e-9)
    begins = np.flatnonzero(last < len(values))
    ends = last[begins]
    best = np.lexsort((before[begins] - below[ends], values[ends] - values[begins]))[0]
    return float(values[begins[best]]), float(values[ends[best]])
