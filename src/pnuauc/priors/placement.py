"""The share alone, from the posterior that everything else is read from."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pnuauc.evaluation.posterior import place_scores
from pnuauc.labels import Roles
from pnuauc.priors.base import BasePrior, Estimate, prior_in_rows, read_belief, take


@dataclass(kw_only=True, eq=False, repr=False)
class PlacementPrior(BasePrior):
    """Share of positives inside U from where held-out labelled rows stand among the unlabelled.

    Fits :class:`pnuauc.AutoAUCClassifier` and reads the share off its posterior
    (:mod:`pnuauc.evaluation.posterior`): labelled positives at place u have the density
    pi(u) / prior, labelled negatives (1 - pi(u)) / (1 - prior). Positives alone, negatives alone
    or both will do. Whoever fits that classifier has the same number as ``class_prior_``.

    Parameters
    ----------
    belief : (low, high) or Beta, optional
        What is known of the share beforehand; None: Beta(1, 6), positives are rare.
    sampling : "random", optional
        Says that labelled rows were drawn at random, so that their share is evidence as well.
    max_rows : int, default=10_000
        Rows of each role at most.
    level : float, default=0.9
    on_unidentified, positive_label, negative_label, unlabeled_label, random_state
        As for every estimator of the prior.

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
    sampling: str | None = None
    max_rows: int | None = 10_000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        read_belief(self.belief)

    def _require(self, roles: Roles) -> None:
        known = "positive" if roles.n_positive >= 2 or roles.n_negative < 2 else "negative"
        roles.require(known, "unlabeled", purpose=type(self).__name__, at_least=2)

    def _estimate(self, X: Any, roles: Roles) -> Estimate:
        rng = check_random_state(self.random_state)
        # one labelled row of a class cannot be in the training rows and be placed by them
        parts = [rows for rows in roles.by_letter.values() if len(rows) > 1]
        kept = np.sort(np.concatenate([take(rows, self.max_rows, rng) for rows in parts]))
        if min(len(part) for part in parts[:-1]) < 3:  # none can be held out: the belief is left
            beta = read_belief(self.belief)
            prior = place_scores([], [], belief=(beta.a, beta.b)).class_prior(self.level)
            return prior, prior_in_rows(prior, roles.n_positive, roles.n_unlabeled)
        # the committee stands on the estimators, which may ask for a prior
        committee = importlib.import_module("pnuauc.committee").AutoAUCClassifier(
            belief=self.belief,
            sampling=self.sampling,
            verbose=False,
            random_state=rng.randint(2**31 - 1),
        )
        groups = None if self._groups is None else self._groups[kept]
        committee.fit(X[kept], roles.take(kept), groups=groups)
        found = committee.posterior_
        prior = found.class_prior(self.level)
        if found.doubt is not None:
            note = f"{found.doubt}; this share may be far off: label rows drawn at random."
            prior = replace(prior, note=note)
        diagnostics = {"auc": found.auc().value, "misfit": found.misfit, "picked": found.picked}
        return prior, diagnostics | prior_in_rows(prior, roles.n_positive, roles.n_unlabeled)
