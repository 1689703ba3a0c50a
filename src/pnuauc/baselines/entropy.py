"""sAUC-LS and OptAG: logistic AUC with the entropy of pairs, and a generative term."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_non_negative

from pnuauc._utils.arrays import Floats
from pnuauc.baselines.common import (
    ByRole,
    LinearRanker,
    Objective,
    fit_in_stages,
    intercept_of,
    pair_curvature,
)
from pnuauc.core.design import Design, block_scores
from pnuauc.core.losses import LOSSES, SmoothLoss
from pnuauc.core.pairs import between_gradient
from pnuauc.labels import UNLABELED, Roles

# Generative models of the two classes for :class:`GenerativeAUC`: log p(x|+) - log p(x|-).


def _total(X: Any) -> Floats:
    return np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()


class SphericalGaussians:
    """Each class N(mu, I/tau), with mu ~ N(mu0, I/(rho tau)) and tau ~ Gamma(a, b); MAP estimates.

    mu = (n m + rho mu0)/(n + rho),
    tau = ((n+1) d/2 + a - 1) / (b + S/2 + n rho |m - mu0|^2 / (2 (n + rho))),
    m and S the class's mean and sum of squared distances to it. The hyper-parameters are set from
    all rows, labelled or not, so that the prior weighs as much as one row: mu0 their mean,
    rho = 1, a - 1 = d/2 and b = d v/2 with v their mean variance (mode of tau at 1/v).

    ``log_ratio`` gives log p(x|+) - log p(x|-). CSR rows are never shifted.
    """

    rho = 1.0

    def fit(self, X: Any, roles: Roles) -> SphericalGaussians:
        """Estimate from all rows X and the rows of each class."""
        center = _total(X) / X.shape[0]
        variance = max(float(_distances(X, center).mean()) / X.shape[1], np.finfo(float).tiny)
        self.classes = [
            self._estimate(X[rows], center, variance) for rows in (roles.positive, roles.negative)
        ]
        return self

    def _estimate(self, X: Any, center: Floats, variance: float) -> tuple[Floats, float]:
        """mu and tau of a class."""
        (n, d), rho, mean = X.shape, self.rho, _total(X) / X.shape[0]
        step = mean - center
        rate = 0.5 * (d * rho * variance + max(float(_distances(X, mean).sum()), 0.0))
        rate += n * rho * float(step @ step) / (2.0 * (n + rho))
        return center + n / (n + rho) * step, 0.5 * d * (n + 1.0 + rho) / rate

    def log_ratio(self, X: Any) -> Floats:
        high, low = (
            0.5 * len(mu) * np.log(tau) - 0.5 * tau * _distances(X, mu) for mu, tau in self.classes
        )
        return np.asarray(high - low)


def _distances(X: Any, point: Floats) -> Floats:
    """|x - point|^2 of every row."""
    if not sparse.issparse(X):
        return np.asarray(row_norms(X - point, squared=True))
    return np.asarray(row_norms(X, squared=True) - 2.0 * (X @ point) + float(point @ point))


class MultinomialClasses:
    """Each class a multinomial over columns with a Dirichlet(2) prior: naive Bayes.

    theta_j = (c_j + 1) / sum_k (c_k + 1), c the class's column totals (Laplace's rule), and
    log p(x|+) - log p(x|-) = sum_j x_j (log theta+_j - log theta-_j). For counts or other
    non-negative weights.
    """

    def fit(self, X: Any, roles: Roles) -> MultinomialClasses:
        """Estimate from the rows of each class; of all rows X only the sign is checked."""
        check_non_negative(X, "the multinomial model of counts: use the Gaussian model")
        labeled = np.flatnonzero(roles.codes != UNLABELED)
        log_theta = MultinomialNB().fit(X[labeled], roles.codes[labeled]).feature_log_prob_
        self.weights = log_theta[1] - log_theta[0]
        return self

    def log_ratio(self, X: Any) -> Floats:
        return np.asarray(X @ self.weights).ravel()


GENERATIVE_MODELS: dict[str, Any] = {
    "gaussian": SphericalGaussians,
    "multinomial": MultinomialClasses,
}


# sAUC-LS: logistic AUC on labelled pairs, entropy of the pairs with unlabelled rows.


@dataclass(frozen=True)
class PairEntropy(SmoothLoss):
    """h(m) = -s log s - (1-s) log(1-s) with s = 1/(1 + exp(-m)); h = l - m l', l logistic loss."""

    name = "pair_entropy"
    convex = False
    consistent = False
    lipschitz = 0.25
    line = 0.0

    def value_and_derivative(self, margins: ArrayLike) -> tuple[Floats, Floats]:
        m = np.asarray(margins, dtype=np.float64)
        value, slope = LOSSES["logistic"].value_and_derivative(m)
        return value - m * slope, m * slope * (1.0 + slope)


def entropy_objective(scores: ByRole, entropy_weight: float) -> tuple[float, ByRole]:
    """mean_PN l(m) + entropy_weight (mean_PU h(m) + mean_UN h(m)), and its gradient by role."""
    value, high, low = between_gradient("logistic", scores["P"], scores["N"])
    gradient = {"P": high, "N": low}
    if "U" in scores and entropy_weight > 0:
        above, p, u = between_gradient(PairEntropy(), scores["P"], scores["U"])
        below, v, n = between_gradient(PairEntropy(), scores["U"], scores["N"])
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
    from the minimum without entropy. Sums over pairs cost O(n log n) by :mod:`pnuauc.core.pairs`.

    Reference: method "sAUC-LS" of Sakai, Niu, Sugiyama 2018, which is Fujino, Ueda, "A
    semi-supervised AUC optimization method with generative models", ICDM 2016, without the
    generative model. **Reconstructed** from the description there, the article not being at hand:
    the entropy enters as a mean over pairs (not a sum), with one weight for P-U and U-N pairs, and
    the ridge is ours.

    Parameters
    ----------
    entropy_weight : float >= 0, default=1.0
        Without unlabelled rows, or at 0, this is logistic AUC on the labelled pairs.
    basis, n_centers, width, alpha, random_state : as in :class:`pnuauc.AUCClassifier`
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`
    max_iter, tol : int, float
        Limits of L-BFGS.

    Attributes
    ----------
    objective_ : float
        Value of the objective at the solution, ridge included.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearRanker._parameter_constraints,
        "entropy_weight": [Interval(Real, 0, None, closed="left")],
    }

    entropy_weight: float = 1.0
    _: KW_ONLY
    max_iter: int = 200
    tol: float = 1e-3

    def _train(self, X: Any, roles: Roles) -> float:
        design = Design.of(X, roles.by_letter, self._make_basis(X, roles))
        objective = functools.partial(entropy_objective, entropy_weight=self.entropy_weight)
        labeled = functools.partial(entropy_objective, entropy_weight=0.0)
        stages: list[tuple[Objective, Design]] = [(labeled, design.only("PN"))]
        if "U" in design.rows and self.entropy_weight > 0:
            stages.append((objective, design))
        # l'' = 1/4 at w = 0
        fit_in_stages(self, stages, pair_curvature(design, "N", 0.25))
        scores = design.scores(self.coef_)
        self.objective_ = objective(scores)[0] + self.alpha * float(self.coef_ @ self.coef_)
        return intercept_of(scores["P"], scores["N"])


# OptAG: logistic AUC with entropy, and a generative model's log-likelihood ratio in the score.


@dataclass(eq=False, repr=False)
class GenerativeAUC(EntropyAUC):
    """:class:`EntropyAUC` with g(x) = w'phi(x) + w0 log(p(x|+)/p(x|-)) / s, w0 learned with w.

    argmin over (w, w0) of mean_PN l(m) + entropy_weight (mean_PU h(m) + mean_UN h(m))
    + alpha (|w|^2 + w0^2), m = g(x) - g(x'), l logistic loss and h entropy of a pair's order. The
    classes p(x|+), p(x|-) are estimated once, by MAP, from the labelled rows:

    - "gaussian": N(mu, I/tau) with a Gaussian prior on mu and a Gamma prior on tau, both centred
      on all rows, unlabelled ones included, and as strong as one row;
    - "multinomial": naive Bayes for counts with a Dirichlet prior (CSR text).

    s, the standard deviation of the log ratio over the training rows, puts it on the scale of the
    other features. Unlabelled rows enter through the entropy and the centre of the priors.

    Reference: method "OptAG" of Sakai, Niu, Sugiyama 2018, from Fujino, Ueda, "A semi-supervised
    AUC optimization method with generative models", ICDM 2016. **Reconstructed** from the
    description in the former (densities and their priors in its footnote), the article not being
    at hand; the hyper-parameters of the priors, s and the ridge are ours.

    Parameters
    ----------
    entropy_weight, basis, n_centers, width, alpha, max_iter, tol, random_state
        As in :class:`EntropyAUC`.
    generative_model : {"gaussian", "multinomial"}, default="gaussian"
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`

    Attributes
    ----------
    coef_ : ndarray, shape (b + 1,)
        w, then w0.
    generative_ : fitted generative model with ``log_ratio(X)``
    ratio_scale_ : float
        s.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **EntropyAUC._parameter_constraints,
        "generative_model": [StrOptions(set(GENERATIVE_MODELS))],
    }

    generative_model: str = "gaussian"

    def _make_basis(self, X: Any, roles: Roles) -> Any:
        self.generative_ = GENERATIVE_MODELS[self.generative_model]().fit(X, roles)
        # Ratios of labelled rows from estimates that leave each row out were rejected: with five
        # positives the left-out mean is so much worse that w0 often came out negative.
        spread = float(np.std(self.generative_.log_ratio(X)))
        self.ratio_scale_ = spread if spread > 0 else 1.0
        return self._with_ratio(super()._make_basis(X, roles))

    def _with_ratio(self, basis: Any) -> RatioBasis:
        return RatioBasis(basis, self.generative_, self.ratio_scale_)

    def _scores(self, X: Any) -> Floats:
        return block_scores(X, self._with_ratio(self.basis_), self.coef_)


class RatioBasis:
    """(phi(x), log ratio(x) / scale): one feature more than ``basis`` has, at the end."""

    n_scales, bounded = 1, False

    def __init__(self, basis: Any, model: Any, scale: float) -> None:
        self.basis, self.model, self.scale = basis, model, scale
        self.n_features = basis.n_features * basis.n_scales + 1
        self.row_sized = basis.row_sized

    def features(self, X: Any) -> Any:
        """Features of validated rows, shape (n, b + 1); CSR where those of ``basis`` are."""
        features = self.basis.features(X)
        ratio = (self.model.log_ratio(X) / self.scale)[:, None]
        if sparse.issparse(features):
            return sparse.hstack([features, ratio], format="csr")
        return np.hstack([features, ratio])
