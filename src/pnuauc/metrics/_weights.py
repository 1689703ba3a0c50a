"""Weights of the minimum-variance unbiased combination of PN, PU and NU.

w = S^-1 1 / (1' S^-1 1). Taken from the raw sample covariance matrix S such weights are noisy: with
10 to 100 rows of a role the combination mostly comes out worse than the best single estimate (by up
to 9%), and its own standard error reads 5 to 18% too low
(``python -m experiments weights``). So S is steadied twice:

- *coherence*: F_U is set to prior F_P + (1 - prior) F_N, which it estimates, so that PU - PN on a
  positive row is exactly prior/(1 - prior) F_P: a rank, without the noise of three samples;
- *shrinkage* of each role's block towards two Gaussians of equal width with the same AUC, which
  counts as much as ``MODEL_ROWS`` rows.

Any fixed weights that sum to 1 are unbiased, so a wrong model costs width, never truth. What an
uncertain prior adds is the covariance of the three estimates over the prior's distribution, summed
over its nodes; NU, which divides by the prior, takes part only where the prior is well away from 0,
PU where it is well away from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from pnuauc._arrays import Floats
from pnuauc._prior import ClassPrior
from pnuauc.metrics._counts import ScoreCounts
from pnuauc.metrics._moments import SINGLES, PairShares, placements, raw_to_auc, role_covariance

__all__ = ["MODEL_ROWS", "Weighed", "combination_weights", "steadied_covariance", "weigh"]

MODEL_ROWS = 100
#: NU divides by the prior and PU by the rest: where an uncertain prior may come nearer to 0 or 1
#: than this, the estimate that divides by it is left out of a combination.
_AWAY = 0.02
_NODES = 7


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weights of (PN, PU, NU), shape (3,), and what there is to say about them."""

    weights: Floats
    note: str | None = None


def weigh(counts: ScoreCounts, moments: PairShares, prior: ClassPrior) -> Weighed:
    """Weights that are best on average over the prior's distribution."""
    shares, mass = prior.nodes(_NODES)
    slope, offset = raw_to_auc(shares)
    values = slope * moments.raw - offset
    known = len(shares) == 1
    away = 0.0 if known else _AWAY
    allowed = np.array([True, bool(shares.max() < 1.0 - away), bool(shares.min() > away)])
    usable = np.asarray(allowed & np.isfinite(values).all(axis=0))
    note = None
    left_out = [SINGLES[k].upper() for k in (1, 2) if not allowed[k] and not known]
    if left_out:
        note = f"{' and '.join(left_out)} left out: the prior may be too near to an end."
    weights = np.zeros(3)
    if not usable.any():
        usable = np.asarray(np.isfinite(values).any(axis=0))
    if usable.sum() == 1:
        weights[usable] = 1.0
        return Weighed(weights, note)
    guess = float(values[:, np.flatnonzero(usable)[0]] @ mass)
    total = np.zeros((3, 3))
    for share, weight in zip(shares, mass, strict=True):
        inside = min(max(float(share), 1e-6), 1.0 - 1e-6)
        total += weight * steadied_covariance(counts, inside, guess)
    kept = np.flatnonzero(usable)
    centred = values[:, kept] - mass @ values[:, kept]
    matrix = total[np.ix_(kept, kept)] + (centred * mass[:, None]).T @ centred
    weights[kept] = combination_weights(matrix)
    return Weighed(weights, note)


def steadied_covariance(counts: ScoreCounts, prior: float, auc: float) -> Floats:
    """Covariance matrix of (PN, PU, NU), shape (3, 3), for choosing weights only.

    ``prior`` is the share of positives inside U, strictly between 0 and 1; ``auc`` any estimate.
    """
    roles = (counts.positive, counts.negative, counts.unlabeled)
    f_p, f_n = placements(counts.positive), placements(counts.negative)
    model = _binormal(round(float(np.clip(auc, 0.02, 0.98)), 3), prior)
    total = np.zeros((3, 3))
    for k, (role, projection) in enumerate(zip(roles, _projections(f_p, f_n, prior), strict=True)):
        n = int(role.sum())
        share = n / (n + MODEL_ROWS) if n > 1 else 0.0
        sample = n * role_covariance(role, projection) if n > 1 else model[k]
        total += (share * sample + (1.0 - share) * model[k]) / n
    return total


def _projections(f_p: Floats, f_n: Floats, prior: float) -> tuple[Floats, Floats, Floats]:
    """Projections of (PN, PU, NU) on rows of P, N, U with F_U = prior F_P + (1 - prior) F_N."""
    rest = 1.0 - prior
    f_u, zero = prior * f_p + rest * f_n, np.zeros_like(f_p)
    return (
        np.stack([f_n, f_u / rest, zero]),
        np.stack([1.0 - f_p, zero, (1.0 - f_u) / prior]),
        np.stack([zero, (1.0 - f_p) / rest, f_n / prior]),
    )


@lru_cache(maxsize=1)
def _gaussian_nodes() -> tuple[Floats, Floats]:
    """60 points and probabilities that integrate smooth functions against N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return nodes, weights / weights.sum()


@lru_cache(maxsize=256)
def _binormal(auc: float, prior: float) -> Floats:
    """Role covariances of the projections for N(d, 1) against N(0, 1), shape (3, 3, 3)."""
    nodes, weights = _gaussian_nodes()
    shift = np.sqrt(2.0) * special.ndtri(auc)
    points = (nodes + shift, nodes, np.concatenate([nodes + shift, nodes]))
    masses = (weights, weights, np.concatenate([prior * weights, (1.0 - prior) * weights]))
    blocks = []
    for k in range(3):
        f_p, f_n = special.ndtr(points[k] - shift), special.ndtr(points[k])
        x = _projections(f_p, f_n, prior)[k]
        x = x - (x @ masses[k])[:, None]
        blocks.append((x * masses[k]) @ x.T)
    return np.stack(blocks)


def combination_weights(covariance: Floats) -> Floats:
    """w = S^-1 1 / (1' S^-1 1), shape (k,); a singular S is solved in the least-squares sense."""
    ones = np.ones(len(covariance))
    solution = np.linalg.lstsq(covariance, ones, rcond=1e-12)[0]
    total = solution.sum()
    if not np.isfinite(total) or total <= 0:
        return np.asarray(np.eye(len(ones))[int(np.argmin(np.diag(covariance)))])
    return np.asarray(solution / total)
