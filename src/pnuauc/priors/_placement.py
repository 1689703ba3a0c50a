"""The default prior: where U's out-of-sample scores fall among those of the labelled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr
from sklearn import config_context
from sklearn.utils import check_random_state

from pnuauc._arrays import Indices
from pnuauc._prior import ClassPrior
from pnuauc._threads import one_blas_thread
from pnuauc.labels import Roles
from pnuauc.priors._base import BasePrior, Estimate
from pnuauc.priors._belief import read_belief
from pnuauc.priors._binormal import Posterior, RankCounts, posterior, rank_counts
from pnuauc.priors._conversion import prior_in_rows
from pnuauc.priors._fit_test import FitTest, fit_test
from pnuauc.priors._scorers import FAMILIES, auc_and_z, prepare, usable

__all__ = ["PlacementPrior"]


#: Nats by which the labelled rows must have moved the belief, or else they say nothing.
_LEAST_SURPRISE = 0.08
#: With one class: errors by which it must rank above U; if not, U may hold that class alone.
_LEAST_Z = 1.645


@dataclass(kw_only=True, eq=False, repr=False)
class PlacementPrior(BasePrior):
    """Share of positives in U from the ranks of P, N and U under out-of-sample scores.

    Every row is scored by models that did not see it. On a monotone scale z of the scores let
    positives be N(0, 1), negatives N(mu, sigma^2) (a binormal ROC curve), and U a mixture with the
    share ``prior`` of positives. The scale is fixed by the pool of all rows, so P, N and U have a
    likelihood by ranks alone; mu and sigma are integrated out, the log likelihoods of several
    scorers are averaged, and the belief comes in as a factor. The estimate is the mean of that
    posterior.

    It uses whatever is labelled: P and N with U; P with U alone; N with U alone (P and N play
    the same part, so that is the mirror image). A class with a single row is left out.

    Parameters
    ----------
    belief : None, (low, high) or Beta
        What is known of the prior inside U before these rows. An interval is one of 95%.
        Default: nine parts of ``Beta(1, 3.5)``, of mean .22, and one of ``Beta(1, 1)``, which is
        flat: positives are more likely the smaller part. It weighs as much as 4.5 rows of U
        labelled at random. With one class labelled and more than half of U positive the default
        is too low: say what you know.
    scorers : tuple of {"forest", "kernel", "distance", "linear"}, optional
        Each ranks the rows and gives a likelihood; log likelihoods are averaged. Default ("forest",
        "kernel") for dense rows, ("linear",) for CSR rows, and "distance" with both where
        there are P and N.
        "forest": extremely randomised trees. "kernel": logistic regression on Gaussian features.
        "distance": distance to N less distance to P, whose means the energy distance compares,
        with a linear discriminant. "linear": ridge classifier.
    n_trees : int
        Trees of P against the rest; at least 50.
    n_centers : int
        Gaussian centres of "kernel", drawn from the training rows of each fold.
    spread_sd : float
        Belief in sigma near 1, that is, in a proper ROC curve: log sigma ~ N(0, spread_sd^2).
    max_rows : int or None
        At most so many rows of each role, drawn at random, are used.
    level : float
        Level of ``interval_``: an interval of that probability in the mean of the scorers'
        posteriors, somewhat less of it with several scorers, since that mean is wider than its
        error. It takes shares in the order of their density (the shortest interval), or, with P
        and N and no belief of yours, in the order of their likelihood (docs/priors.md). It is for
        the share of the rows of U at hand, not of a population that they were drawn from.
    on_unidentified : {"raise", "warn", "ignore"}
        What to do when the labelled rows say nothing: the posterior is the belief once more.
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
    estimate_ : ClassPrior
        All of that, with the posterior on a grid (``shares``, ``weights``).
    diagnostics_ : dict
        ``scorers``; ``estimates`` (posterior mean of each scorer alone); ``auc`` (of positives
        against negatives, at the posterior's peak, mean of the scorers); ``auc_known_unlabeled``
        and ``auc_z`` (P against U under the best scorer, and its distance from 1/2 in errors);
        ``surprise`` (nats between belief and posterior); ``positives_unlabeled`` (value, low,
        high: rows); ``share_of_positives_known``; ``labels_to_halve`` (rows of U drawn at random
        whose labels would halve the error); ``fit_p_value`` and ``fit`` (a test that P, N and U
        fit together and its outcome in words; None with too few rows); ``known_class``
        ("negative") where only N and U are used.

    Notes
    -----
    *Assumption*: labelled rows of a class are drawn like those of the class in U. ``fit_p_value``
    tests what can be tested: with P and N, whether U's ranks are some mixture of those of P and
    those of N, without any form assumed; with one class, whether the binormal form fits.
    If only easy positives were labelled and all others look like negatives, nothing can show it.

    With one class labelled the prior is known only as far as some positives score where no
    negative does; otherwise the binormal form extrapolates. Measured coverage is in
    ``docs/priors.md``.

    Time is linear in the rows up to ``max_rows`` of each role.

    Examples
    --------
    >>> from pnuauc.datasets import make_twonorm, sample_pnu
    >>> X, y = make_twonorm(4000, random_state=0)
    >>> sample = sample_pnu(X, y, 100, 0, 1000, prior=0.2, random_state=0)
    >>> model = PlacementPrior(unlabeled_label=-1, random_state=0).fit(sample.X, sample.y)
    >>> abs(model.prior_ - 0.2) < 0.08
    True
    """

    belief: Any = None
    scorers: tuple[str, ...] | None = None
    n_trees: int = 50
    n_centers: int = 100
    spread_sd: float = 0.25
    max_rows: int | None = 10_000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        read_belief(self.belief)
        if self.scorers is not None and not (
            len(self.scorers) and set(self.scorers) <= set(FAMILIES)
        ):
            raise ValueError(
                f"scorers must be a tuple of names among {', '.join(FAMILIES)}, "
                f"got {self.scorers!r}."
            )
        # with fewer trees some rows would be in every bag and have no vote
        for name, least in (("n_trees", 50), ("n_centers", 2)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if not self.spread_sd > 0:
            raise ValueError(f"spread_sd must be positive, got {self.spread_sd}.")

    def _require(self, roles: Roles) -> None:
        known = "positive" if roles.n_positive >= 2 or roles.n_negative < 2 else "negative"
        roles.require(known, "unlabeled", purpose=type(self).__name__, at_least=2)

    def _estimate(self, X: Any, roles: Roles) -> Estimate:
        rng = check_random_state(self.random_state)
        kept = _rows_to_use(roles, self.max_rows, rng)
        mirrored = roles.n_positive < 2
        # many small systems: with BLAS threads they take two to four times the processor time, and
        # checks of rows and options that are in order an eighth of it
        unchecked = config_context(assume_finite=True, skip_parameter_validation=True)
        with one_blas_thread(), unchecked:
            ranks = self._ranks(X[kept], roles.take(kept), rng)
        belief = read_belief(self.belief)
        found = posterior(
            ranks.counts,
            belief.mirrored if mirrored else belief,
            spread_sd=self.spread_sd,
            all_unlabeled=self.max_rows is None or roles.n_unlabeled <= self.max_rows,
        )
        share = ClassPrior.from_posterior(found.shares, found.weights, self.level)
        doubt = _doubt(found, ranks, roles)
        # where one class tells nothing there is no error of scorers to speak of: it is the belief;
        # and scorers of CSR rows are linear, so that they err together
        whole = (doubt is not None and not ranks.has_both) or "linear" in ranks.names
        low, high = (found._replace(error=1.0) if whole else found).interval(self.level)
        # they are of two ways to put the scorers together, so nothing else makes sure of it
        low, high = min(low, share.value), max(high, share.value)
        # less than one row of U is none of them
        low = low if low * roles.n_unlabeled >= 1 else 0.0
        high = high if (1 - high) * roles.n_unlabeled >= 1 else 1.0
        test = fit_test(ranks.counts[0], found.best[0])
        note = test.words if test.failed else None
        share = replace(share, low=low, high=high, doubt=doubt, note=note)
        prior = share.complement() if mirrored else share
        in_rows = prior_in_rows(prior, roles.n_positive, roles.n_unlabeled)
        return prior, _diagnostics(found, ranks, test, mirrored) | in_rows

    def _ranks(self, X: Any, roles: Roles, rng: np.random.RandomState) -> _Ranks:
        """Ranks of the rows by every scorer."""
        rows = prepare(X, roles, rng, n_trees=self.n_trees, n_centers=self.n_centers)
        names = usable(tuple(self.scorers or ()), rows)
        counts, told_apart = [], []
        for name in names:
            scores = FAMILIES[name](rows)
            positive, negative, unlabeled = (scores[rows.codes == code] for code in (1, 0, -1))
            counts.append(rank_counts(positive, negative, unlabeled, rng).thinned(rows.rows_a_case))
            told_apart.append(auc_and_z(positive, unlabeled))
        best = max(told_apart, key=lambda pair: pair[1])
        return _Ranks(names, counts, *best, rows.has_both)


class _Ranks(NamedTuple):
    """Rows by rank under every scorer, and how well the best of them tells P from U."""

    names: tuple[str, ...]
    counts: list[RankCounts]
    auc: float
    z: float
    has_both: bool


def _rows_to_use(roles: Roles, max_rows: int | None, rng: np.random.RandomState) -> Indices:
    """Row numbers in order: at most ``max_rows`` of a role; no class of a single row.

    One labelled row of a class cannot be in the training rows and be scored by them.
    """
    kept = []
    for rows in roles.by_letter.values():
        if len(rows) < 2:
            continue
        if max_rows is not None and len(rows) > max_rows:
            rows = rng.choice(rows, size=max_rows, replace=False)
        kept.append(rows)
    return np.sort(np.concatenate(kept))


def _doubt(found: Posterior, ranks: _Ranks, roles: Roles) -> str | None:
    """One sentence where the labelled rows have told nothing."""
    if not ranks.has_both and ranks.z < _LEAST_Z:
        return (
            "The labelled and the unlabelled rows cannot be told apart (out-of-sample AUC "
            f"{ranks.auc:.2f}), so the prior is not identified: either U holds one class only or "
            "the columns of X say nothing about the class."
        )
    if found.surprise() < _LEAST_SURPRISE:
        return (
            f"The labelled rows ({roles.n_positive} positive, {roles.n_negative} negative) leave "
            "the share of positives among the unlabelled rows as open as it was before, so the "
            "prior is not identified: label more rows, bring columns that say more about the "
            "class, or state what is known of it."
        )
    return None


def _diagnostics(found: Posterior, ranks: _Ranks, test: FitTest, mirrored: bool) -> dict[str, Any]:
    estimates = found.by_scorer @ found.shares
    return {
        "scorers": ranks.names,
        "estimates": [float(1 - e if mirrored else e) for e in estimates],
        # P(z_N > z_P) of the binormal law
        "auc": float(np.mean([ndtr(best.shift / np.sqrt(2)) for best in found.best])),
        "auc_known_unlabeled": ranks.auc,
        "auc_z": ranks.z,
        "surprise": found.surprise(),
        "fit_p_value": test.p_value,
        "fit": test.words,
    } | ({"known_class": "negative"} if mirrored else {})
