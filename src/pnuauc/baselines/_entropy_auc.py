"""sAUC-LS: logistic AUC on labelled pairs, entropy of the pairs with unlabelled rows."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._arrays import Floats
from pnuauc._design import Design
from pnuauc._pairs import between_gradient
from pnuauc.baselines._common import (
    DIRECT_PAIRS,
    ByRole,
    Coordinates,
    LinearRanker,
    Objective,
    fit_in_stages,
    pair_curvature,
    pair_gradient,
)
from pnuauc.losses import Logistic, SmoothLoss

__all__ = ["EntropyAUC", "entropy_objective"]

_LOGISTIC = Logistic()


@dataclass(frozen=True)
class LogisticPlusEntropy(SmoothLoss):
    """l(m) + h(m), h(m) = -s log s - (1-s) log(1-s) with s = 1/(1 + exp(-m)); h = l - m l'.

    h alone has two vanishing tails; together with the logistic loss l it has the tails that the
    smooth pair sums ask for (-m to the left; to the right (m + 2) exp(-m), the factor costing less
    than two of their eleven digits). The entropy is the difference of two such sums.
    """

    name = "logistic_plus_entropy"
    convex = False
    consistent = False
    lipschitz = 1.25
    linear_below = 40.0

    def value(self, margins: ArrayLike) -> Floats:
        return self.value_and_derivative(margins)[0]

    def derivative(self, margins: ArrayLike) -> Floats:
        return self.value_and_derivative(margins)[1]

    def value_and_derivative(self, margins: ArrayLike) -> tuple[Floats, Floats]:
        m = np.asarray(margins, dtype=np.float64)
        entropy, slope = _entropy(m)
        value, derivative = _LOGISTIC.value_and_derivative(m)
        return value + entropy, derivative + slope


def _entropy(m: Floats) -> tuple[Floats, Floats]:
    """h(m) and h'(m) = -m s(m) s(-m), elementwise; few temporaries, as this is where time goes."""
    size = np.abs(m)
    with np.errstate(under="ignore"):
        decay = np.exp(-size)
        total = decay + 1.0
        value = np.log(total)  # to 1e-16 absolutely, which is all that a mean needs
        decay /= total  # the probability of the less likely order
        size *= decay
        value += size
        decay /= total
        decay *= m
    return value, np.negative(decay, out=decay)


def entropy_gradient(a: Floats, b: Floats) -> tuple[float, Floats, Floats]:
    """(R, dR/da, dR/db) of R = mean_ij h(a_i - b_j), near-linear in len(a) + len(b)."""
    if a.size * b.size <= DIRECT_PAIRS:
        value, slope = _entropy(a[:, None] - b)
        n = float(value.size)
        return float(value.sum()) / n, slope.sum(axis=1) / n, -slope.sum(axis=0) / n
    both = between_gradient(LogisticPlusEntropy(), a, b)
    one = between_gradient(_LOGISTIC, a, b)
    return both[0] - one[0], both[1] - one[1], both[2] - one[2]


def entropy_objective(scores: ByRole, entropy_weight: float) -> tuple[float, ByRole]:
    """mean_PN l(m) + entropy_weight (mean_PU h(m) + mean_UN h(m)), and its gradient by role."""
    value, high, low = pair_gradient(_LOGISTIC, scores["P"], scores["N"])
    gradient = {"P": high, "N": low}
    if "U" in scores and entropy_weight > 0:
        above, p, u = entropy_gradient(scores["P"], scores["U"])
        below, v, n = entropy_gradient(scores["U"], scores["N"])
        value += entropy_weight * (above + below)
        gradient["P"] = high + entropy_weight * p
        gradient["N"] = low + entropy_weight * n
        gradient["U"] = entropy_weight * (u + v)
    return value, gradient


@dataclass(eq=False, repr=False)
class EntropyAUC(LinearRanker):
    """argmin_w mean_PN l(m) + entropy_weight (mean_PU h(m) + mean_UN h(m)) + alpha |w|^2.

    m = w'(phi(x) - phi(x')), l(m) = log(1 + exp(-m)), and h the entropy of the order of the pair,
    h = -s log s - (1-s) log(1-s) with s = 1/(1 + exp(-m)): every pair of a labelled and an
    unlabelled row should be ordered with confidence, one way or the other. Not convex; started
    from the minimum without entropy. Sums over pairs cost O(n log n) by :mod:`pnuauc._pairs`.

    Reference: method "sAUC-LS" of Sakai, Niu, Sugiyama 2018, which is Fujino, Ueda, "A
    semi-supervised AUC optimization method with generative models", ICDM 2016, without the
    generative model. **Reconstructed** from the description there, the article not being at hand:
    the entropy enters as a mean over pairs (not a sum), with one weight for P-U and U-N pairs, and
    the ridge is ours.

    Parameters
    ----------
    entropy_weight : float >= 0, default=1.0
        Without unlabelled rows, or at 0, this is logistic AUC on the labelled pairs.
    basis, n_centers, width, random_state
        Feature map, as in :class:`pnuauc.AUCClassifier`.
    alpha : float, default=0.1
        Ridge.
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.
    max_iter, tol : int, float
        Limits of L-BFGS.

    Attributes
    ----------
    coef_ : ndarray, shape (b,)
    intercept_ : float
    basis_ : fitted feature map
    objective_ : float
        The minimum that was reached, ridge included.
    n_iter_ : int
    """

    entropy_weight: float = 1.0
    _: KW_ONLY
    max_iter: int = 200
    tol: float = 1e-3

    def fit(self, X: Any, y: ArrayLike) -> EntropyAUC:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        X, roles = self._read_classes(X, y)
        if not np.isfinite(self.entropy_weight) or self.entropy_weight < 0:
            raise ValueError(
                f"entropy_weight must be a finite number >= 0; got {self.entropy_weight!r}."
            )
        design = Design.of(X, roles.by_letter, self._make_basis(X, roles))
        objective = functools.partial(entropy_objective, entropy_weight=self.entropy_weight)
        labelled = functools.partial(entropy_objective, entropy_weight=0.0)
        stages: list[tuple[Objective, Design]] = [(labelled, design.only("PN"))]
        if "U" in design.rows and self.entropy_weight > 0:
            stages.append((objective, design))
        # l'' = 1/4 at w = 0
        coordinates = Coordinates(pair_curvature(design, "N", 0.25), self.alpha)
        fit_in_stages(self, stages, coordinates)
        scores = design.scores(self.coef_)
        self.objective_ = objective(scores)[0] + self.alpha * float(self.coef_ @ self.coef_)
        self._set_threshold(scores["P"], scores["N"])
        return self
