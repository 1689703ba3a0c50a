"""Two estimators of the quantification literature, as references for the comparison.

Both take the same out-of-sample scores of P against N that the default uses for its trees, so that
a difference in error is one of the method, not of the scores.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from pnuauc._arrays import Floats
from pnuauc._prior import ClassPrior
from pnuauc._threads import one_blas_thread
from pnuauc.labels import Roles
from pnuauc.priors._base import BasePrior, Estimate
from pnuauc.priors._scorers import LABELLED, auc_and_z, prepare

__all__ = ["EMPrior", "HellingerPrior"]


@dataclass(kw_only=True, eq=False, repr=False)
class _FromScores(BasePrior):
    """Priors from scores of P, N and U; intervals by resampling the scored rows.

    Subclasses write ``_share(positive, negative, unlabeled)``.
    """

    scorer: str | None = None
    n_bootstrap: int = 50
    max_rows: int | None = 10_000

    @abstractmethod
    def _share(self, positive: Floats, negative: Floats, unlabeled: Floats) -> float:
        """Share of positives in U from the scores of the three roles."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.scorer not in (None, *LABELLED):
            raise ValueError(f"scorer must be one of {', '.join(LABELLED)}, got {self.scorer!r}.")
        if self.n_bootstrap < 2:
            raise ValueError(f"n_bootstrap must be at least 2, got {self.n_bootstrap}.")

    def _estimate(self, X: Any, roles: Roles) -> Estimate:
        rng = check_random_state(self.random_state)
        limit = self.max_rows or len(roles)
        kept = np.sort(
            np.concatenate([rng.permutation(rows)[:limit] for rows in roles.by_letter.values()])
        )
        roles = roles.take(kept)
        with one_blas_thread():
            rows = prepare(X[kept], roles, rng, n_trees=50, n_centers=2)
            name = self.scorer or ("forest" if isinstance(rows.X, np.ndarray) else "linear")
            scores = LABELLED[name](rows)
        samples = [scores[role] for role in roles.by_letter.values()]
        value = self._share(*samples)
        again = [
            self._share(*(rng.choice(sample, len(sample)) for sample in samples))
            for _ in range(self.n_bootstrap)
        ]
        tail = (1 - self.level) / 2
        low, high = (float(q) for q in np.quantile(again, [tail, 1 - tail]))
        auc, z = auc_and_z(samples[0], samples[1])
        doubt = None
        if z < 1.645:
            doubt = (
                "The positive and the negative rows cannot be told apart by out-of-sample scores "
                f"(AUC {auc:.2f}), so the prior is not identified: label more rows or bring "
                "columns that say more about the class."
            )
        prior = ClassPrior(
            value, min(low, value), max(high, value), self.level, float(np.std(again)), doubt=doubt
        )
        note = "The interval shows the noise of the scored rows, not that of the models."
        return prior, {"auc": auc, "auc_z": z, "note": note}


class EMPrior(_FromScores):
    """Expectation maximisation over U's class probabilities (Saerens, Latinne, Decaestecker 2002).

    Scores become probabilities r(x) of a balanced sample by logistic regression on the labelled
    rows; then t <- mean over U of t r / (t r + (1 - t)(1 - r)), from t = 1/2 until it rests.

    Parameters
    ----------
    scorer : {"forest", "linear"}, optional
        Extremely randomised trees (default for dense rows) or ridge regression (for CSR rows).
    n_bootstrap : int
        Draws of the scored rows behind the interval.
    max_rows : int or None
        At most so many rows of each role, drawn at random.
    level, on_unidentified, positive_label, negative_label, unlabeled_label, random_state
        As in :class:`EnergyDistancePrior`.

    Attributes
    ----------
    prior_ : float
        Share of positives **inside U**.
    interval_, std_error_, estimate_
        By the bootstrap of the scored rows.
    diagnostics_ : dict
        ``auc`` and ``auc_z`` of P against N, out of sample.
    """

    def _share(self, positive: Floats, negative: Floats, unlabeled: Floats) -> float:
        scores = np.concatenate([positive, negative])[:, None]
        target = np.repeat([1, 0], [len(positive), len(negative)])
        logistic = LogisticRegression(C=1.0, class_weight="balanced").fit(scores, target)
        odds = np.exp(np.clip(logistic.decision_function(unlabeled[:, None]), -30, 30))
        share = 0.5
        for _ in range(1000):
            new = float(np.mean(share * odds / (share * odds + 1 - share)))
            if abs(new - share) < 1e-7:
                break
            share = new
        return new


@dataclass(kw_only=True, eq=False, repr=False)
class HellingerPrior(_FromScores):
    """Histograms of scores matched in Hellinger distance (HDy; Gonzalez-Castro et al. 2013).

    With p, q, u the histograms of the scores of P, N and U, the share t that minimises
    sum_b (sqrt(u_b) - sqrt(t p_b + (1 - t) q_b))^2, the median over several numbers of bins.
    Edges are quantiles of U's scores, so that no bin of U is empty.

    Parameters
    ----------
    n_bins : tuple of int
        Numbers of bins.
    scorer, n_bootstrap, max_rows, level, on_unidentified, positive_label, negative_label,
    unlabeled_label, random_state
        As in :class:`EMPrior`.

    Attributes
    ----------
    prior_, interval_, std_error_, estimate_, diagnostics_
        As in :class:`EMPrior`.
    """

    n_bins: tuple[int, ...] = (5, 10, 20, 30, 40)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not len(self.n_bins) or min(self.n_bins) < 2:
            raise ValueError(f"n_bins must hold numbers of at least 2, got {self.n_bins!r}.")

    def _share(self, positive: Floats, negative: Floats, unlabeled: Floats) -> float:
        shares = np.linspace(0, 1, 501)
        found = []
        for n_bins in self.n_bins:
            edges = np.quantile(unlabeled, np.arange(1, n_bins) / n_bins)
            p, q, u = (
                np.bincount(np.searchsorted(edges, sample), minlength=n_bins) / len(sample)
                for sample in (positive, negative, unlabeled)
            )
            # the distance is 2 - 2 sum sqrt(u m): the nearest mixture m has the largest sum
            affinity = np.sqrt(q + shares[:, None] * (p - q)) @ np.sqrt(u)
            found.append(shares[np.argmax(affinity)])
        return float(np.median(found))
