"""Priors from P and U by where out-of-sample scores of U fall among those of P."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import check_random_state

from pnuauc._prior import ClassPrior
from pnuauc.priors._base import BaseTwoSamplePrior, Estimate, take
from pnuauc.priors._distances import centre, squared_distances
from pnuauc.priors._kernels import gaussian, median_distance, stack

__all__ = ["PlacementPrior", "placement_posterior"]

Floats: TypeAlias = NDArray[np.float64]

# The grid carries the posterior. Shares below .5% are one point: 1,000 rows cannot tell them apart.
_SHARES: Floats = np.concatenate([[0.0025], np.arange(0.005, 0.1, 0.005), np.arange(0.1, 1, 0.01)])
_SHIFTS: Floats = np.linspace(0.2, 5.0, 21)
_LOG_SPREADS: Floats = np.linspace(-0.6, 0.6, 7)
# Bins of the placement scale, finer at the top, where the positives are alone.
_EDGES: Floats = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


class Posterior(NamedTuple):
    """Probabilities over the shares of the grid; sum to one."""

    shares: Floats
    weights: Floats

    def mean(self) -> float:
        return float(self.shares @ self.weights)


class PlacementPrior(BaseTwoSamplePrior):
    """Share of positives in U from the placement of U's scores among P's.

    Score every row by a classifier of P against U, out of sample. Let v be the share of positives
    that score above a row. For a positive v is uniform whatever the classifier; for a negative it
    is Phi((Phi^-1(v) - mu) / sigma) distributed (a binormal ROC curve). So over U

        F(v) = prior v + (1 - prior) Phi((Phi^-1(v) - mu) / sigma),

    and the prior is the height of the flat part near v = 0. The estimate is the posterior mean
    under a flat law on the prior, mu with density growing as mu^3 (see Notes) and log sigma ~
    N(0, ``spread_sd``^2). That the places of
    P's own scores are themselves random (uniform spacings) is averaged over.

    Parameters
    ----------
    scorers : tuple of {"forest", "kernel", "linear"}, optional
        Each gives scores and from them a posterior; the posteriors are averaged. Default
        ("forest", "kernel") for dense rows, ("linear",) for CSR rows.
        "forest": out-of-bag scores of extremely randomised trees, blind to the scale of columns.
        "kernel": held-out scores of a logistic regression on Gaussian features of standardised
        columns. "linear": held-out scores of a ridge classifier.
    n_trees : int
    n_centers : int
        Gaussian centres of "kernel", drawn from all rows.
    n_draws : int
        Draws of P's spacings that are averaged over.
    spread_sd : float
        Belief in sigma near 1, that is, in a proper ROC curve. A larger value lets the negatives
        have a second mode at the top, which no data can tell from positives.
    max_rows : int or None
        At most so many rows of each role, drawn at random, are used.
    level : float
        Level of ``interval_``: equal tails of the posterior.
    on_unidentified : {"raise", "warn", "ignore"}
        What to do when the scores do not tell P from U.
    positive_label, negative_label, unlabeled_label : value or list of values, optional
        As in :func:`pnuauc.labels.read_roles`.
    random_state : int, RandomState or None

    Attributes
    ----------
    prior_ : float
        Share of positives **inside U**.
    interval_ : tuple of float
    std_error_ : float
        Standard deviation of the posterior.
    diagnostics_ : dict
        ``auc_known_unlabeled`` (P against U, out of sample), ``auc_z`` (its distance from 1/2 in
        standard errors) of the best scorer, ``estimates`` (one for each scorer), ``shift`` and
        ``spread`` (posterior means of mu and sigma), ``scorers``, ``posterior``.

    Notes
    -----
    Negatives that look like positives (mu near 0) and positives explain the data equally well. The
    convention in this field is to call as many rows positive as the data allow; the density mu^3
    says so softly. A flat one gives the same answers at priors of .1 and .2, and answers too low
    by .1 at .8.

    Like every estimator from P and U alone it needs that some positives score where no negative
    does; otherwise only an upper bound of the prior can be known, and the binormal form is what
    extrapolates. The interval knows the noise of P and U and of (mu, sigma), not a wrong form;
    measured coverage is in ``docs/priors.md``.

    Examples
    --------
    >>> from pnuauc.datasets import make_twonorm, sample_pnu
    >>> X, y = make_twonorm(4000, random_state=0)
    >>> sample = sample_pnu(X, y, 100, 0, 1000, prior=0.2, random_state=0)
    >>> model = PlacementPrior(unlabeled_label=-1, random_state=0).fit(sample.X, sample.y)
    >>> abs(model.prior_ - 0.2) < 0.08
    True
    """

    def __init__(
        self,
        *,
        scorers: tuple[str, ...] | None = None,
        n_trees: int = 50,
        n_centers: int = 100,
        n_draws: int = 8,
        spread_sd: float = 0.16,
        max_rows: int | None = 10_000,
        level: float = 0.9,
        on_unidentified: str = "raise",
        positive_label: Any = None,
        negative_label: Any = None,
        unlabeled_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.scorers = scorers
        self.n_trees = n_trees
        self.n_centers = n_centers
        self.n_draws = n_draws
        self.spread_sd = spread_sd
        self.max_rows = max_rows
        self.level = level
        self.on_unidentified = on_unidentified
        self.positive_label = positive_label
        self.negative_label = negative_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.scorers is not None and not (
            len(self.scorers) and set(self.scorers) <= set(_SCORERS)
        ):
            raise ValueError(
                f"scorers must be a tuple of names among {', '.join(_SCORERS)}, "
                f"got {self.scorers!r}."
            )
        # with fewer trees some rows would be in every bag and have no vote
        for name, least in (("n_trees", 50), ("n_centers", 2), ("n_draws", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if not self.spread_sd > 0:
            raise ValueError(f"spread_sd must be positive, got {self.spread_sd}.")

    def _share(self, known: Any, unlabeled: Any) -> Estimate:
        rng = check_random_state(self.random_state)
        known, unlabeled = (take(rows, self.max_rows, rng) for rows in (known, unlabeled))
        scorers = self.scorers
        if scorers is None:
            scorers = ("forest", "kernel") if isinstance(known, np.ndarray) else ("linear",)
        fits = []
        for name in scorers:
            scores = _SCORERS[name](self, known, unlabeled, rng)
            fits.append((_auc(*scores), self._posterior(*scores, rng)))
        auc, z = max((fit[0] for fit in fits), key=lambda pair: pair[1])
        posterior = Posterior(_SHARES, np.mean([fit[1][0].weights for fit in fits], axis=0))
        doubt = None
        if z < 1.96:
            doubt = (
                "The labelled and the unlabelled rows cannot be told apart (out-of-sample AUC "
                f"{auc:.2f}), so the prior is not identified: either U holds one class only or "
                "the columns of X say nothing about the class."
            )
        return ClassPrior.from_posterior(*posterior, level=self.level, doubt=doubt), {
            "scorers": tuple(scorers),
            "auc_known_unlabeled": auc,
            "auc_z": z,
            "estimates": [fit[1][0].mean() for fit in fits],
            "shift": float(np.mean([fit[1][1] for fit in fits])),
            "spread": float(np.mean([fit[1][2] for fit in fits])),
            "posterior": posterior,
        }

    def _posterior(
        self, known: Floats, unlabeled: Floats, rng: np.random.RandomState
    ) -> tuple[Posterior, float, float]:
        return placement_posterior(
            known, unlabeled, n_draws=self.n_draws, spread_sd=self.spread_sd, random_state=rng
        )


def placement_posterior(
    known: Floats,
    unlabeled: Floats,
    *,
    n_draws: int = 8,
    spread_sd: float = 0.16,
    random_state: Any = None,
) -> tuple[Posterior, float, float]:
    """Posterior of the share of the known class in U from out-of-sample scores (see the class).

    Parameters
    ----------
    known, unlabeled : ndarray, shape (n_known,), (n_unlabeled,)
        Scores; only their order matters. Ties are broken at random.

    Returns
    -------
    posterior : Posterior
    shift, spread : float
        Posterior means of mu and of sigma.
    """
    rng = check_random_state(random_state)
    places, counts = _bin_counts(known, unlabeled, rng)
    log_prior = 3 * np.log(_SHIFTS)[:, None] - 0.5 * (_LOG_SPREADS / spread_sd) ** 2
    # the grid of shares is finer below .1; each point stands for its width, so the law is flat
    log_prior = log_prior + np.log(np.gradient(_SHARES))[:, None, None]
    total = np.zeros((len(_SHARES), len(_SHIFTS), len(_LOG_SPREADS)))
    for _ in range(n_draws):
        # F_P at P's order statistics: n + 1 exchangeable gaps, whatever the law of the scores
        gaps = rng.standard_exponential(len(known) + 1)
        above = np.cumsum(gaps)[places - 1] / gaps.sum()
        log_posterior = _log_likelihood(above, counts) + log_prior
        # each draw of the places is one conditional posterior; they are averaged with equal
        # weight (the places' law is known from P alone), not by their likelihood
        weights = np.exp(log_posterior - log_posterior.max())
        total += weights / weights.sum()
    total /= total.sum()
    shift = float(total.sum(axis=(0, 2)) @ _SHIFTS)
    spread = float(total.sum(axis=(0, 1)) @ np.exp(_LOG_SPREADS))
    return Posterior(_SHARES, total.sum(axis=(1, 2))), shift, spread


def _bin_counts(
    known: Floats, unlabeled: Floats, rng: np.random.RandomState
) -> tuple[NDArray[np.intp], Floats]:
    """Ranks (1 = highest) of the known scores that bound the bins, and U's counts per bin."""
    n = len(known)
    places = np.unique(np.clip(np.round(_EDGES * (n + 1)), 1, n).astype(np.intp))
    scores = np.concatenate([known, unlabeled])
    order = np.lexsort((rng.uniform(size=len(scores)), -scores))
    is_known = order < n
    rank_of_known_above = np.cumsum(is_known)[~is_known]  # known scores above each unlabelled one
    bins = np.searchsorted(places, rank_of_known_above, side="right")
    return places, np.bincount(bins, minlength=len(places) + 1).astype(float)


def _log_likelihood(edges: Floats, counts: Floats) -> Floats:
    """Log likelihood of the bin counts on the grid, shape (shares, shifts, spreads)."""
    z = ndtri(np.clip(edges, 1e-12, 1 - 1e-12))
    below = ndtr((z - _SHIFTS[:, None, None]) / np.exp(_LOG_SPREADS)[:, None])
    ends = np.ones((*below.shape[:2], 1))
    negative = np.diff(below, axis=2, prepend=0 * ends, append=ends)
    positive = np.diff(edges, prepend=0.0, append=1.0)
    mixture = _SHARES[:, None, None, None] * (positive - negative) + negative
    likelihood: NDArray[np.float64] = np.log(np.maximum(mixture, 1e-12)) @ counts
    return likelihood


def _auc(known: Floats, unlabeled: Floats) -> tuple[float, float]:
    """AUC of known against unlabelled scores, and its distance from 1/2 in null errors."""
    n, m = len(known), len(unlabeled)
    ordered = np.sort(unlabeled)
    wins = np.searchsorted(ordered, known, "left") + np.searchsorted(ordered, known, "right")
    auc = float(wins.sum()) / (2 * n * m)
    return auc, (auc - 0.5) / np.sqrt((n + m + 1) / (12 * n * m))


def _forest_scores(
    model: PlacementPrior, known: Any, unlabeled: Any, rng: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Mean vote of the trees whose bag left the row out; bags hold 63% of each role.

    An own loop, not ``ExtraTreesClassifier(oob_score=True)``: what class weights do to the bags
    differs between versions of scikit-learn, and here bags must leave out rows of both roles alike.
    Squared error on 0/1 targets splits as the Gini index does; a regressor has less overhead.
    """
    rows = stack(known, unlabeled).astype(np.float32)
    sizes = known.shape[0], unlabeled.shape[0]
    target: Floats = np.repeat([1.0, 0.0], sizes)
    weights = np.repeat([1 / sizes[0], 1 / sizes[1]], sizes) * len(target) / 2
    votes, voters = np.zeros(len(target)), np.zeros(len(target))
    for _ in range(model.n_trees):
        bag = np.concatenate(
            [
                rng.permutation(n)[: min(max(1, round(0.632 * n)), n - 1)] + n0
                for n, n0 in zip(sizes, (0, sizes[0]), strict=True)
            ]
        )
        left_out: NDArray[np.bool_] = np.ones(len(target), dtype=bool)
        left_out[bag] = False
        out = np.flatnonzero(left_out)
        tree = ExtraTreeRegressor(min_samples_leaf=3, max_features="sqrt", random_state=rng)
        tree.fit(rows[bag], target[bag], sample_weight=weights[bag])
        votes[out] += tree.predict(rows[out])
        voters[out] += 1
    scores = votes / np.maximum(voters, 1)
    return scores[target == 1], scores[target == 0]


def _kernel_scores(
    model: PlacementPrior, known: Any, unlabeled: Any, rng: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Held-out scores of a logistic regression on Gaussian features, half of them around P.

    Centres come from the training rows of each fold: a row that is its own centre looks like
    nothing else in high dimension, and would be scored by that.
    """
    known, unlabeled = centre(known, unlabeled)
    rows = stack(known, unlabeled)
    if isinstance(rows, np.ndarray):
        deviation = rows.std(axis=0)
        rows = rows / np.where(deviation > 0, deviation, 1)
    half = model.n_centers // 2
    width = 0.5 * median_distance(rows, rng)

    def score(train: NDArray[np.intp], test: NDArray[np.intp], target: Any) -> Floats:
        inside = [take(rows[train[target[train] == c]], half, rng) for c in (1, 0)]
        centres = stack(*inside)
        features = [gaussian(squared_distances(rows[i], centres), width) for i in (train, test)]
        logistic = LogisticRegression(C=1.0, class_weight="balanced", tol=1e-3, max_iter=1000)
        decision: Floats = logistic.fit(features[0], target[train]).decision_function(features[1])
        return decision

    return _held_out(score, known.shape[0], unlabeled.shape[0], rng)


def _linear_scores(
    model: PlacementPrior, known: Any, unlabeled: Any, rng: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Held-out scores of a ridge regression of the role on the columns themselves."""
    rows = stack(known, unlabeled)

    def score(train: NDArray[np.intp], test: NDArray[np.intp], target: Any) -> Floats:
        ridge = RidgeClassifier(alpha=1.0, class_weight="balanced", solver="sparse_cg")
        decision: Floats = ridge.fit(rows[train], target[train]).decision_function(rows[test])
        return decision

    return _held_out(score, known.shape[0], unlabeled.shape[0], rng)


def _held_out(
    score: Callable[[NDArray[np.intp], NDArray[np.intp], Any], Floats],
    n_known: int,
    n_unlabeled: int,
    rng: np.random.RandomState,
) -> tuple[Floats, Floats]:
    """Scores of every row by a model fitted on the other folds, split by role.

    Folds are compared with one another, so each is centred and scaled by the scores of its U.
    """
    target: NDArray[np.intp] = np.repeat([1, 0], [n_known, n_unlabeled])
    folds = StratifiedKFold(min(5, n_known, n_unlabeled), shuffle=True, random_state=rng)
    scores = np.empty(len(target))
    for train, test in folds.split(target, target):
        fresh = score(train, test, target)
        of_u = fresh[target[test] == 0]
        scores[test] = (fresh - of_u.mean()) / (of_u.std() or 1.0)
    return scores[target == 1], scores[target == 0]


_SCORERS: dict[
    str, Callable[[PlacementPrior, Any, Any, np.random.RandomState], tuple[Floats, Floats]]
] = {"forest": _forest_scores, "kernel": _kernel_scores, "linear": _linear_scores}
