"""Priors from P and U by partial distribution matching: the share at which t p(x|+1) fits under p.

The estimator minimises over t a lower bound of a penalised L1 distance between t p(x|+1) and p(x),
infinite where t p(x|+1) > p(x). With r(x) = a'phi(x) - 1, a >= 0:

    D(t) = max_a  t mean_P r - mean_U r - alpha |a|^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pnuauc._utils.arrays import Floats, Indices
from pnuauc._utils.threads import one_blas_thread
from pnuauc.core.basis import median_distance, squared_distances
from pnuauc.core.design import joined
from pnuauc.labels import Roles
from pnuauc.prior import ClassPrior
from pnuauc.priors.base import BasePrior, Estimate, take


@dataclass(kw_only=True, eq=False, repr=False)
class PenalizedL1Prior(BasePrior):
    """Penalised L1 distribution matching (du Plessis, Niu, Sugiyama 2017): what the paper uses.

    beta_l(t) = t mean_P phi_l - mean_U phi_l;  penL1(t) = sum_l max(0, beta_l) beta_l / alpha
    - t + 1, minimised over a grid of t. Gaussian basis; for each t the width and ridge alpha with
    the highest held-out objective, and the held-out objective is what is minimised. Where there is
    no positive row, N takes the place of P and the answer is one minus its share.

    Parameters
    ----------
    n_centers : int
        Centres, drawn from all rows.
    widths : tuple of float
        Candidates, in units of the median distance between rows.
    alphas : tuple of float
        Candidates of the ridge (lambda in the paper).
    n_shares : int
        Grid of t: 1/n_shares, 2/n_shares, ..., 1.
    n_folds, n_bootstrap : int
    max_rows : int or None
        Largest number of rows of each role to use, drawn at random.
    level : float
        Level of ``interval_`` (percentiles of the bootstrap).
    on_unidentified : {"raise", "warn", "ignore"}
        What to do when P and U cannot be distinguished.
    positive_label, negative_label, unlabeled_label : value or list of values, optional
        As in :func:`pnuauc.labels.read_roles`.
    random_state : int, RandomState or None

    Attributes
    ----------
    prior_ : float
        Share of positives **inside U**.
    interval_, std_error_ : noise only. The estimate is biased upwards where the classes overlap,
        so no interval around it can hold its level; ``diagnostics_["note"]`` says so.
    diagnostics_ : dict
        ``width``, ``alpha`` (chosen at the minimum), ``curve`` (t, penL1(t)), ``rise_z`` (by how
        many errors the curve is higher at t = 1 than at its minimum), ``note``.
    """

    n_centers: int = 200
    widths: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0)
    alphas: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    n_shares: int = 100
    n_folds: int = 5
    n_bootstrap: int = 200
    max_rows: int | None = 20_000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("n_centers", "n_shares", "n_folds", "n_bootstrap"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be at least 2, got {getattr(self, name)}.")
        for name in ("widths", "alphas"):
            if not len(getattr(self, name)) or min(getattr(self, name)) <= 0:
                raise ValueError(f"{name} must hold positive numbers, got {getattr(self, name)}.")

    def _require(self, roles: Roles) -> None:
        known = "positive" if roles.n_positive or not roles.n_negative else "negative"
        roles.require(known, "unlabeled", purpose=type(self).__name__, at_least=2)

    def _estimate(self, X: Any, roles: Roles) -> Estimate:
        known = roles.positive if roles.n_positive else roles.negative
        # many small systems: with BLAS threads they take two to four times the processor time
        with one_blas_thread():
            share, diagnostics = self._share(X[known], X[roles.unlabeled])
        if roles.n_positive:
            return share, diagnostics
        return share.complement(), {**diagnostics, "known_class": "negative"}

    def _share(self, known: Any, unlabeled: Any) -> Estimate:
        """Share of the class of ``known`` (n_known, d) inside ``unlabeled`` (n_unlabeled, d)."""
        rng = check_random_state(self.random_state)
        known, unlabeled = (
            take(rows, self.max_rows, rng).astype(np.float64) for rows in (known, unlabeled)
        )
        shares = np.linspace(0, 1, self.n_shares + 1)[1:]
        value_p, value_u, chosen = self._held_out_values(known, unlabeled, shares, rng)
        curve = value_p.mean(axis=0) - value_u.mean(axis=0)
        prior = float(shares[curve.argmin()])
        again = (
            _resampled_mean(value_p, rng) - _resampled_mean(value_u, rng)
            for _ in range(self.n_bootstrap)
        )
        replicates = np.array([shares[resampled.argmin()] for resampled in again])
        tail = (1 - self.level) / 2
        low, high = np.quantile(replicates, [tail, 1 - tail])
        z = _rise_to_one(value_p, value_u, int(curve.argmin()))
        doubt = None
        if z < 1.645:
            doubt = (
                "All of the unlabelled rows could come from the labelled class, so the prior is "
                "not identified: either U holds one class only, or this estimate cannot tell the "
                "classes apart; a ranking may still be good."
            )
        nearest = int(np.abs(shares - prior).argmin())
        estimate = ClassPrior(
            prior,
            float(min(low, prior)),
            float(max(high, prior)),
            self.level,
            float(replicates.std(ddof=1)),
            doubt=doubt,
        )
        return estimate, {
            "width": chosen[nearest][0],
            "alpha": chosen[nearest][1],
            "curve": (shares, curve),
            "rise_z": z,
            "note": "biased upwards where the classes overlap; the interval covers noise only",
        }

    def _held_out_values(
        self, known: Any, unlabeled: Any, shares: Floats, rng: np.random.RandomState
    ) -> tuple[Floats, Floats, list[tuple[float, float]]]:
        """t r(x) for rows of P and r(x) for rows of U, r fitted without the row's fold.

        D(t) is a maximum over functions r, and what a candidate (width, alpha) attains on held-out
        rows is a lower bound of it free of overfitting: for each t the highest one serves.

        Returns arrays (n_known, n_t), (n_unlabeled, n_t) and the (width, alpha) of each t.
        """
        rows = joined([known, unlabeled])
        centers = rows[rng.permutation(rows.shape[0])[: self.n_centers]]
        squared = squared_distances(known, centers), squared_distances(unlabeled, centers)
        median = median_distance(rows, rng)
        n_folds = min(self.n_folds, known.shape[0], unlabeled.shape[0])
        folds = [rng.permutation(np.arange(len(s)) % n_folds) for s in squared]
        best = np.full(len(shares), -np.inf)
        values = [np.zeros((len(s), len(shares))) for s in squared]
        chosen = [(0.0, 0.0)] * len(shares)
        for width in self.widths:
            features = [np.exp(s / (-2 * (width * median) ** 2)) for s in squared]
            heights = self._cross_fit(features, folds, shares)
            for alpha in self.alphas:
                new = (heights[0] / alpha - 1) * shares, heights[1] / alpha - 1
                reached = new[0].mean(axis=0) - new[1].mean(axis=0)
                better = np.flatnonzero(reached > best)
                best[better] = reached[better]
                for i in better:
                    chosen[i] = (width * median, alpha)
                for old, fresh in zip(values, new, strict=True):
                    old[:, better] = fresh[:, better]
        return values[0], values[1], chosen

    def _cross_fit(
        self, features: list[Floats], folds: list[Indices], shares: Floats
    ) -> list[Floats]:
        """alpha a'phi(x) of every row for every t, where max(0, beta(t)) / alpha maximizes D(t)."""
        found = [np.empty((len(part), len(shares))) for part in features]
        for fold in range(folds[0].max() + 1):
            p, u = (
                f[own != fold].mean(axis=0)[:, None] for f, own in zip(features, folds, strict=True)
            )
            coef = np.maximum(p * shares - u, 0)
            for part, own, heights in zip(features, folds, found, strict=True):
                heights[own == fold] = part[own == fold] @ coef
        return found


def _resampled_mean(values: Floats, rng: np.random.RandomState) -> Floats:
    n = len(values)
    return np.asarray(rng.multinomial(n, np.full(n, 1 / n)) @ values / n)


def _rise_to_one(value_p: Floats, value_u: Floats, lowest: int) -> float:
    """D(1) - D(t at the minimum) in standard errors; small when U may be one class only."""
    rise_p, rise_u = (values[:, -1] - values[:, lowest] for values in (value_p, value_u))
    variance = rise_p.var(ddof=1) / len(rise_p) + rise_u.var(ddof=1) / len(rise_u)
    return float((rise_p.mean() - rise_u.mean()) / np.sqrt(variance)) if variance > 0 else 0.0
