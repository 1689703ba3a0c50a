"""The paper's bounds and variance theorem as functions, as printed and corrected.

Notation: nP, nN, nU rows of P, N, U; ``prior`` = tP, the share of positives **inside U**,
tN = 1 - tP; R_PN, R_PU, R_NU the three empirical risks; R_PNU(eta) = (1 - eta) R_PN + eta R_PU for
eta >= 0 and (1 + eta) R_PN - eta R_NU for eta < 0. Source: Sakai, Niu and Sugiyama,
"Semi-supervised AUC optimization based on positive-unlabeled learning", Machine Learning 107
(2018).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._utils.arrays import Floats, check_range
from pnuauc.core.losses import Loss, get_loss
from pnuauc.core.risks import check_prior, gamma_bar

__all__ = [
    "BoundConstants",
    "PrintedVariance",
    "RiskCovariance",
    "bound_constants",
    "confidence_term",
    "gamma_bar",
    "generalization_bound",
    "h_delta",
    "printed_variance",
    "risk_covariance",
    "variance_ratio",
]

LossLike = str | Loss | Callable[[Floats], Floats]


@dataclass(frozen=True)
class BoundConstants:
    """What the bounds assume about loss and model.

    Attributes
    ----------
    lipschitz : float
        L, Lipschitz constant of the loss on the margins that can occur.
    loss_bound : float
        C_l, upper bound of the loss on these margins.
    weight_norm, feature_norm : float
        C_w >= ||w||, C_phi >= ||phi(x)||.
    basis : {"non-negative", "any"}
        The paper uses ||a - b||^2 <= ||a||^2 + ||b||^2, true when a'b >= 0 (Gaussian basis), false
        in general; for "any" basis 2 ||a||^2 + 2 ||b||^2 takes its place, and 2 sqrt(2) in h
        becomes 4.
    zero_one_factor : float
        M with l_01 <= M l.
    """

    lipschitz: float
    loss_bound: float
    weight_norm: float
    feature_norm: float
    basis: str = "non-negative"
    zero_one_factor: float = 1.0

    def __post_init__(self) -> None:
        if self.basis not in {"non-negative", "any"}:
            raise ValueError(f"basis must be 'non-negative' or 'any', got {self.basis!r}.")
        for name in ("lipschitz", "loss_bound", "weight_norm", "feature_norm", "zero_one_factor"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}.")


@np.errstate(over="ignore", invalid="ignore")
def bound_constants(
    loss: str, weight_norm: float, feature_norm: float, basis: str = "non-negative"
) -> BoundConstants:
    """Constants of a loss on the margins |m| <= C_w max ||phi(x) - phi(x')||.

    The largest distance is sqrt(2) C_phi for a non-negative basis, 2 C_phi for any.

    Parameters
    ----------
    loss : {"squared", "exponential", "logistic"}
    weight_norm, feature_norm : float
    basis : {"non-negative", "any"}
    """
    margin = weight_norm * feature_norm * (np.sqrt(2.0) if basis == "non-negative" else 2.0)
    table = {
        "squared": (2.0 * (1.0 + margin), (1.0 + margin) ** 2, 1.0),
        "exponential": (float(np.exp(margin)), float(np.exp(margin)), 1.0),
        "logistic": (
            float(1.0 / (1.0 + np.exp(-margin))),
            float(np.logaddexp(0.0, margin)),
            float(1.0 / np.log(2.0)),
        ),
    }
    if loss not in table:
        raise ValueError(f"loss must be one of {', '.join(table)}, got {loss!r}.")
    lipschitz, bound, factor = table[loss]
    _check_finite(lipschitz, bound)
    return BoundConstants(lipschitz, bound, weight_norm, feature_norm, basis, factor)


@np.errstate(over="ignore", invalid="ignore")
def h_delta(delta: float, constants: BoundConstants) -> float:
    """h(delta) = c L C_l C_w C_phi + (3/2) sqrt(2 log(2/delta)).

    c = 2 sqrt(2) as printed, for a non-negative basis; c = 4 for any basis. The factor C_l and the
    scale of the second term are the paper's, which quotes them from a theorem for losses in
    [0, 1]; they are kept as printed.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}.")
    c = 2.0 * np.sqrt(2.0) if constants.basis == "non-negative" else 4.0
    size = constants.lipschitz * constants.loss_bound
    size *= constants.weight_norm * constants.feature_norm
    _check_finite(size)
    return float(c * size + 1.5 * np.sqrt(2.0 * np.log(2.0 / delta)))


@np.errstate(over="ignore", invalid="ignore")
def confidence_term(
    setting: str,
    constants: BoundConstants,
    *,
    n_positive: int = 0,
    n_negative: int = 0,
    n_unlabeled: int = 0,
    prior: float,
    gamma: float = 0.5,
    delta: float = 0.05,
) -> float:
    """Width of Theorems 1 and 2: I(f) <= R(f) + this for all f, with probability 1 - delta.

    - "pu":   h(delta/2) (1/(tN sqrt(min(nP, nU))) + tP/(tN sqrt(nP)))
    - "nu":   h(delta/2) (1/(tP sqrt(min(nN, nU))) + tN/(tP sqrt(nN)))
    - "pnpu": h(delta/3) ((1-gamma)/sqrt(min(nP, nN)) + gamma x the bracket of "pu")
    - "pnnu": h(delta/3) ((1-gamma)/sqrt(min(nP, nN)) + gamma x the bracket of "nu")

    Parameters
    ----------
    setting : {"pu", "nu", "pnpu", "pnnu"}
    constants : BoundConstants
    n_positive, n_negative, n_unlabeled : int
    prior : float
        Share of positives inside the unlabelled rows, strictly between 0 and 1.
    gamma : float in [0, 1]
    delta : float
    """
    check_prior(prior)
    if setting not in {"pu", "nu", "pnpu", "pnnu"}:
        raise ValueError(f"setting must be 'pu', 'nu', 'pnpu' or 'pnnu', got {setting!r}.")
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must lie in [0, 1], got {gamma}.")
    rows = {"positive": n_positive, "negative": n_negative, "unlabelled": n_unlabeled}
    needed = {"pu": ("positive", "unlabelled"), "nu": ("negative", "unlabelled")}
    for role in needed.get(setting, tuple(rows)):
        if rows[role] < 1:
            raise ValueError(f"The {setting!r} bound needs at least one {role} row.")
    if setting.endswith("pu"):
        n, own, other = n_positive, prior, 1.0 - prior
    else:
        n, own, other = n_negative, 1.0 - prior, prior
    bracket = 1.0 / (other * np.sqrt(min(n, n_unlabeled))) + own / (other * np.sqrt(n))
    if setting in {"pu", "nu"}:
        width = h_delta(delta / 2.0, constants) * bracket
    else:
        labeled = (1.0 - gamma) / np.sqrt(min(n_positive, n_negative))
        width = h_delta(delta / 3.0, constants) * (labeled + gamma * bracket)
    _check_finite(width)
    return float(width)


@np.errstate(over="ignore", invalid="ignore")
def generalization_bound(
    risk: float, setting: str, constants: BoundConstants, **sizes: float
) -> float:
    """M (R(f) + confidence term) >= 1 - AUC(f) with probability 1 - delta.

    ``risk`` is the empirical risk of ``setting``; ``sizes`` go to :func:`confidence_term`. Above 1
    the bound is vacuous, which at realistic sizes is the rule: it shows rates, not values.
    """
    term = confidence_term(setting, constants, **sizes)  # type: ignore[arg-type]
    bound = constants.zero_one_factor * (risk + term)
    _check_finite(bound)
    return float(bound)


@dataclass(frozen=True, eq=False)
class RiskCovariance:
    """Covariance matrix of the empirical (R_PN, R_PU, R_NU) of one fixed score.

    Attributes
    ----------
    matrix : ndarray, shape (3, 3)
    """

    matrix: Floats

    def variance(self, eta: ArrayLike) -> Floats:
        """Var R_PNU(eta), same shape as ``eta`` in [-1, 1]."""
        eta = np.asarray(eta, dtype=float)
        if np.any(np.abs(eta) > 1):
            raise ValueError("eta must lie in [-1, 1].")
        weights = np.stack([1.0 - np.abs(eta), np.maximum(eta, 0.0), np.maximum(-eta, 0.0)])
        return np.asarray(np.einsum("i...,ij,j...->...", weights, self.matrix, weights))

    def ratio(self, eta: ArrayLike) -> Floats:
        """r(eta) = Var R_PNU(eta) / Var R_PN, of Figures 1 and 2."""
        if not self.matrix[0, 0] > 0:
            raise ValueError("The PN risk of these scores does not vary: there is no ratio to it.")
        return np.asarray(self.variance(eta) / self.matrix[0, 0])

    @property
    def gamma_pnpu(self) -> float:
        """argmin of Var R_PNPU(gamma) = (V_PN - C) / (V_PN + V_PU - 2 C); may leave [0, 1]."""
        return self._gamma(1)

    @property
    def gamma_pnnu(self) -> float:
        """argmin of Var R_PNNU(gamma); may leave [0, 1]."""
        return self._gamma(2)

    def _gamma(self, k: int) -> float:
        v, other, c = self.matrix[0, 0], self.matrix[k, k], self.matrix[0, k]
        return float((v - c) / (v + other - 2.0 * c))


def risk_covariance(
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    n_positive: int,
    n_negative: int,
    n_unlabeled: float,
    prior: float,
    loss: LossLike = "squared",
) -> RiskCovariance:
    """The correct variances: Hoeffding's decomposition, finite nU, pairs that share rows counted.

    With a(x, z) = l(g(x) - g(z)) and E over the populations, the first-order projections are

    - on a positive p:  PN: E_N a(p, N);  PU: [E_U a(p, U) - tP (E_P a(p, P) + E_P a(P, p))] / tN
    - on a negative n:  PN: E_P a(P, n);  NU: [E_U a(U, n) - tN (E_N a(n, N) + E_N a(N, n))] / tP
    - on an unlabelled u:  PU: E_P a(P, u) / tN;  NU: E_N a(u, N) / tP

    Their covariances over n_role give all covariances and the first-order variances; what pairs
    add beyond their rows gives the second-order terms, over nP nN, nP nU, nN nU and, within a
    role, n (n - 1)/2. The sum is exact at any size. The within-role terms are U-statistics.

    Parameters
    ----------
    positive, negative : array-like, shape (mP,), (mN,)
        Scores that stand for the two populations (large samples); U is their mixture.
    n_positive, n_negative, n_unlabeled : int
        Sizes of the samples the risks are computed on; ``n_unlabeled`` may be infinite.
    prior : float
        Share of positives inside the unlabelled rows, strictly between 0 and 1.
    loss : str or callable
        "squared", "exponential", "logistic", "zero_one", or a function of the margin.
    """
    _check_sizes(prior, n_positive, n_negative, n_unlabeled)
    losses, p, n, u = _population(positive, negative, prior, loss)
    t_p, t_n, zero = prior, 1.0 - prior, np.zeros(len(p))
    over_p, over_n, over_u = losses @ p, losses @ n, losses @ u  # of a point that should win
    p_over, n_over, u_over = p @ losses, n @ losses, u @ losses  # of one that should lose
    on_p = np.stack([over_n, (over_u - t_p * (over_p + p_over)) / t_n, zero])
    on_n = np.stack([p_over, zero, (u_over - t_n * (over_n + n_over)) / t_p])
    on_u = np.stack([zero, p_over / t_n, over_n / t_p])
    matrix = (
        _covariance(on_p, p) / n_positive
        + _covariance(on_n, n) / n_negative
        + _covariance(on_u, u) / n_unlabeled
    )
    # Var of a U-statistic of order two: 4 z1/n + 2 z2/(n (n-1)), z2 the pure pair part
    even = 0.5 * (losses + losses.T)
    within_p, within_n = (
        2.0 * _interaction(even, role, role) / (k * (k - 1))
        for role, k in ((p, n_positive), (n, n_negative))
    )
    pn, pu, un = (_interaction(losses, *roles) for roles in ((p, n), (p, u), (u, n)))
    matrix[0, 0] += pn / (n_positive * n_negative)
    matrix[1, 1] += (pu / (n_positive * n_unlabeled) + t_p**2 * within_p) / t_n**2
    matrix[2, 2] += (un / (n_negative * n_unlabeled) + t_n**2 * within_n) / t_p**2
    _check_finite(matrix)
    return RiskCovariance(matrix)


def variance_ratio(
    eta: ArrayLike, positive: ArrayLike, negative: ArrayLike, **sizes: Any
) -> Floats:
    """r(eta) = Var R_PNU(eta) / Var R_PN for eta in [-1, 1]: below 1, unlabelled rows make the
    empirical risk more stable. ``positive``, ``negative`` and ``sizes``: :func:`risk_covariance`.
    """
    return risk_covariance(positive, negative, **sizes).ratio(eta)


@dataclass(frozen=True)
class PrintedVariance:
    """Theorem 3 as printed (nU infinite, pairs treated as independent): the psi's and what follows.

    Kept for comparison with the paper. It is wrong: pairs share rows, so Var R_PN is of order
    1/nP + 1/nN, not 1/(nP nN). Use :func:`risk_covariance`.
    """

    psi_pn: float
    psi_pu: float
    psi_pp: float
    psi_nu: float
    psi_nn: float

    @property
    def gamma_pnpu(self) -> float:
        """(psi_PN - psi_PP/2) / (psi_PN + psi_PU - psi_PP)."""
        return (self.psi_pn - self.psi_pp / 2) / (self.psi_pn + self.psi_pu - self.psi_pp)

    @property
    def gamma_pnnu(self) -> float:
        """(psi_PN - psi_NN/2) / (psi_PN + psi_NU - psi_NN)."""
        return (self.psi_pn - self.psi_nn / 2) / (self.psi_pn + self.psi_nu - self.psi_nn)

    def variance(self, eta: float) -> float:
        """(1-g)^2 psi_PN + g^2 psi_PU + (1-g) g psi_PP for g = eta >= 0; NU, NN, g = -eta below."""
        g = abs(eta)
        own, cross = (self.psi_pu, self.psi_pp) if eta >= 0 else (self.psi_nu, self.psi_nn)
        return (1 - g) ** 2 * self.psi_pn + g**2 * own + (1 - g) * g * cross


def printed_variance(
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    n_positive: int,
    n_negative: int,
    prior: float,
    loss: LossLike = "squared",
) -> PrintedVariance:
    """Theorem 3 exactly as printed.

    tau_PN,PU and tau_PN,NU are not defined in the paper; they are read like the others, as
    covariances of the two losses over the row they share. Arguments as in
    :func:`risk_covariance`; ``prior`` is the share of positives inside the unlabelled rows.
    """
    _check_sizes(prior, n_positive, n_negative, np.inf)
    losses, p, n, u = _population(positive, negative, prior, loss)
    t_p, t_n = prior, 1.0 - prior
    tau_p = _covariance(np.stack([losses @ n, losses @ u, losses @ p]), p)
    tau_n = _covariance(np.stack([p @ losses, u @ losses, losses @ n]), n)
    var_pn, var_pp, var_nn = (
        float(a @ (losses - a @ losses @ b) ** 2 @ b) for a, b in ((p, n), (p, p), (n, n))
    )
    _check_finite(tau_p, tau_n, var_pn, var_pp, var_nn)
    of_p, of_n = t_p / (t_n * n_positive), t_n / (t_p * n_negative)
    return PrintedVariance(
        psi_pn=var_pn / (n_positive * n_negative),
        psi_pu=float(of_p**2 * var_pp - of_p / t_n * tau_p[1, 2]),
        psi_pp=float((tau_p[0, 1] - t_p * tau_p[0, 2]) / (t_n * n_positive)),
        psi_nu=float(of_n**2 * var_nn - of_n / t_p * tau_n[1, 2]),
        psi_nn=float((tau_n[0, 1] - t_n * tau_n[0, 2]) / (t_p * n_negative)),
    )


def _population(
    positive: ArrayLike, negative: ArrayLike, prior: float, loss: LossLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """Losses l(x_i - x_j) of all pairs of the points of both classes, shape (m, m), and what P, N
    and U weigh on the points, each of shape (m,)."""
    function = get_loss(loss).value if isinstance(loss, (str, Loss)) else loss
    points = [_scores(positive, "positive"), _scores(negative, "negative")]
    x, is_positive = np.concatenate(points), np.repeat([True, False], [len(a) for a in points])
    p, n = is_positive / len(points[0]), ~is_positive / len(points[1])
    return function(x[:, None] - x[None, :]), p, n, prior * p + (1.0 - prior) * n


def _covariance(projections: Floats, mass: Floats) -> Floats:
    """Covariance of rows under probabilities ``mass``."""
    centered = projections - (projections @ mass)[:, None]
    return np.asarray((centered * mass) @ centered.T)


def _interaction(losses: Floats, a: Floats, b: Floats) -> float:
    """Variance of a pair loss, i from a and j from b, that neither point alone explains."""
    rows, columns = losses @ b, a @ losses
    rest = losses - rows[:, None] - columns + a @ rows
    return float(a @ rest**2 @ b)


def _scores(scores: ArrayLike, name: str) -> Floats:
    values = np.asarray(scores, dtype=float)
    if values.ndim != 1 or len(values) < 2 or not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be a one-dimensional array of at least two finite scores.")
    check_range(values, name)
    return values


def _check_finite(*values: ArrayLike) -> None:
    if not all(np.isfinite(value).all() for value in values):
        raise ValueError(
            "The losses of these scores, weights or features are too large to compute with; "
            "rescale them."
        )


def _check_sizes(prior: float, n_positive: int, n_negative: int, n_unlabeled: float) -> None:
    check_prior(prior)
    if min(n_positive, n_negative) < 2 or n_unlabeled < 1:
        raise ValueError("Variances need at least two positives, two negatives and one unlabelled.")
