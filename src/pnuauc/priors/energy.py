"""Priors from P, N and U by energy distance (Kawakubo, du Plessis, Sugiyama 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.utils import check_random_state

from pnuauc._utils.arrays import Floats
from pnuauc.core.basis import squared_distances
from pnuauc.core.design import joined
from pnuauc.labels import Roles
from pnuauc.prior import ClassPrior
from pnuauc.priors.base import BasePrior, Estimate, take

#: Entries of one block of the distance matrix: 4 million doubles are 32 MB.
_BLOCK = 1 << 22


def distance_sums(A: Any, B: Any, exponent: float) -> tuple[Floats, Floats]:
    """Sums of |a - b|^exponent over b, shape (n_A,), and over a, shape (n_B,).

    Where A is B the distance of a row to itself is exactly 0.
    """
    over_b, over_a = np.zeros(A.shape[0]), np.zeros(B.shape[0])
    width = min(B.shape[0], 4096)
    height = max(1, _BLOCK // width)
    for top in range(0, A.shape[0], height):
        for left in range(0, B.shape[0], width):
            rows, columns = slice(top, top + height), slice(left, left + width)
            squared = squared_distances(A[rows], B[columns])
            if A is B:
                np.fill_diagonal(squared[max(left - top, 0) :, max(top - left, 0) :], 0.0)
            distance = squared ** (0.5 * exponent)
            over_b[rows] += distance.sum(axis=1)
            over_a[columns] += distance.sum(axis=0)
    return over_b, over_a


@dataclass(kw_only=True, eq=False, repr=False)
class EnergyDistancePrior(BasePrior):
    """The mixture of P and N nearest to U in energy distance, in closed form.

    With D_AB the mean of |a - b|^alpha between roles,

        prior = (D_NU - D_PU + D_PN - D_NN) / (2 D_PN - D_PP - D_NN),  clipped to [0, 1].

    Parameters
    ----------
    alpha : float in (0, 2)
        Exponent of the distance.
    statistic : {"guarded", "U", "V"}
        Whether the means within a role leave out the zero distances of rows to themselves ("U",
        divide by n (n - 1), unbiased numerator and denominator) or not ("V", divide by n^2, as the
        paper has it). "V" pulls the estimate towards the share of positives among the **labelled**
        rows, the more the fewer they are; "U" does not, but with five positives its denominator may
        come near 0. "guarded" is "U", moved towards "V" until its denominator is half of V's.
    max_rows : int or None
        Rows of each role at most, drawn at random.
    level : float
        Level of ``interval_``.
    identification_level : float
        P and N must differ at this level (permutation test of their energy distance).
    on_unidentified : {"raise", "warn", "ignore"}
        What to do when they do not.
    positive_label, negative_label, unlabeled_label : value or list of values, optional
        As in :func:`pnuauc.labels.read_roles`.
    random_state : int, RandomState or None

    Attributes
    ----------
    prior_ : float
        Share of positives **inside U**.
    interval_ : tuple of float
        All t for which the unbiased linear form L(t) = A - t B, of mean 0 at the truth, is within
        its error (Fieller): errors from the Hoeffding projections of every role, Student quantile
        with Satterthwaite's degrees of freedom. The same for every ``statistic``. [0, 1] when the
        data say nothing.
    std_error_ : float
        Error of A / B to first order.
    diagnostics_ : dict
        ``numerator``, ``denominator`` (unbiased A and B), ``estimate_u``, ``estimate_v``,
        ``estimate_guarded`` (before clipping), ``labeled_share``, ``p_value`` (P against N),
        ``subsampling_std_error``.

    Notes
    -----
    No distance within U is needed: time is O((n_P + n_N) (n_P + n_N + n_U)), memory one block.

    Examples
    --------
    >>> from pnuauc.datasets import make_twonorm, sample_pnu
    >>> X, y = make_twonorm(4000, random_state=0)
    >>> sample = sample_pnu(X, y, 20, 80, 1000, prior=0.2, random_state=0)
    >>> model = EnergyDistancePrior(random_state=0).fit(sample.X, sample.y)
    >>> model.interval_[0] < 0.2 < model.interval_[1]
    True
    """

    alpha: float = 1.0
    statistic: str = "guarded"
    identification_level: float = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 < self.alpha < 2:
            raise ValueError(f"alpha must lie strictly between 0 and 2, got {self.alpha}.")
        if self.statistic not in ("guarded", "U", "V"):
            raise ValueError(f'statistic must be "guarded", "U" or "V", got {self.statistic!r}.')
        if not 0 < self.identification_level < 1:
            raise ValueError(
                "identification_level must lie strictly between 0 and 1, "
                f"got {self.identification_level}."
            )

    def _estimate(self, X: Any, roles: Roles) -> Estimate:
        rng = check_random_state(self.random_state)
        parts = (take(X[rows], self.max_rows, rng) for rows in roles.by_letter.values())
        P, N, U = (part.astype(np.float64) for part in parts)
        means = _RowMeans(P, N, U, self.alpha)
        numerator, denominator = means.linear_form("U")
        numerator_v, denominator_v = means.linear_form("V")
        values = {
            "U": _ratio(numerator, denominator),
            "V": _ratio(numerator_v, denominator_v),
            "guarded": _guarded(numerator, denominator, numerator_v, denominator_v),
        }
        prior = float(np.clip(values[self.statistic], 0, 1))
        p_value = _permutation_p_value(P, N, self.alpha, rng)
        variances = means.variances(np.array([prior]))[:, 0]
        thinned = (variances * (1 - means.sizes / np.array(roles.counts))).sum()
        scale = abs(denominator) or np.inf
        diagnostics = {
            "numerator": numerator,
            "denominator": denominator,
            "estimate_u": values["U"],
            "estimate_v": values["V"],
            "estimate_guarded": values["guarded"],
            "labeled_share": roles.n_positive / (roles.n_positive + roles.n_negative),
            "p_value": p_value,
            "subsampling_std_error": float(np.sqrt(thinned)) / scale,
        }
        estimate = ClassPrior(
            prior if np.isfinite(prior) else 0.5,
            *means.interval(self.level),
            self.level,
            float(np.sqrt(variances.sum())) / scale if np.isfinite(scale) else np.inf,
            doubt=self._doubt(denominator, p_value),
        )
        return estimate, diagnostics

    def _doubt(self, denominator: float, p_value: float) -> str | None:
        if p_value <= self.identification_level and (denominator > 0 or self.statistic != "U"):
            return None
        return (
            "The positive and the negative rows cannot be distinguished by their distances "
            f"(p = {p_value:.2f}), so the prior is not identified: label more rows, drop columns "
            "that only add noise or bring columns to one scale."
        )


class _RowMeans:
    """For every row its mean distance to the rows of another role (its own: without itself).

    p : to N, U and P; n : to P, U and N; u : to P and N
    """

    def __init__(self, P: Any, N: Any, U: Any, alpha: float) -> None:
        pairs = ((P, N), (P, U), (N, U), (P, P), (N, N))
        (pn, np_), (pu, up), (nu, un), (pp, _), (nn, _) = (
            distance_sums(A, B, alpha) for A, B in pairs
        )
        self.sizes = np.array([len(pn), len(nu), len(up)])
        n_p, n_n, n_u = self.sizes
        self.p = pn / n_n, pu / n_u, pp / (n_p - 1)
        self.n = np_ / n_p, nu / n_u, nn / (n_n - 1)
        self.u = up / n_p, un / n_n

    def linear_form(self, statistic: str) -> tuple[float, float]:
        """A and B of prior = A / B."""
        (d_pn, d_pu, d_pp), (_, d_nu, d_nn) = (
            [values.mean() for values in role] for role in (self.p, self.n)
        )
        if statistic == "V":
            d_pp *= 1 - 1 / self.sizes[0]
            d_nn *= 1 - 1 / self.sizes[1]
        return float(d_nu - d_pu + d_pn - d_nn), float(2 * d_pn - d_pp - d_nn)

    def variances(self, shares: Floats) -> Floats:
        """Var L(t) role by role, shape (3, n_t), from first-order projections of A - t B.

        Row means carry the noise of the other role's rows, so each second-order term is counted
        twice: the variance errs on the large side.
        """
        (p_n, p_u, p_p), (n_p, n_u, n_n), (u_p, u_n) = self.p, self.n, self.u
        # each projection is a + t b, so its variance is a quadratic in t: no (n_t, n) table
        parts = (
            (p_n - p_u, 2 * (p_p - p_n)),
            (n_u + n_p - 2 * n_n, 2 * (n_n - n_p)),
            (u_n - u_p, np.zeros(len(u_n))),
        )
        variances = []
        for a, b in parts:
            c = np.cov(a, b)
            quadratic = c[0, 0] + 2 * shares * c[0, 1] + shares**2 * c[1, 1]
            variances.append(np.maximum(quadratic, 0.0) / len(a))
        return np.array(variances)

    def interval(self, level: float) -> tuple[float, float]:
        """Hull of the t in [0, 1] that the data do not reject."""
        shares = np.linspace(0, 1, 1001)
        numerator, denominator = self.linear_form("U")
        by_role = self.variances(shares)
        variance = by_role.sum(axis=0)
        tiny = np.finfo(float).tiny
        freedom = variance**2 / np.maximum(
            (by_role**2 / (self.sizes - 1)[:, None]).sum(axis=0), tiny
        )
        quantile = student.ppf(0.5 + level / 2, np.maximum(freedom, 1))
        kept = np.abs(numerator - shares * denominator) <= quantile * np.sqrt(variance)
        if not kept.any():
            # the unclipped ratio and all its error lie outside [0, 1]: the nearest end remains
            end = float(np.clip(_ratio(numerator, denominator), 0, 1))
            return end, end
        return float(shares[kept][0]), float(shares[kept][-1])


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator != 0 else np.nan


def _guarded(
    numerator: float, denominator: float, numerator_v: float, denominator_v: float
) -> float:
    """Ratio on the way from U to V, at the first point whose denominator is half of V's."""
    lack = denominator_v / 2 - denominator
    way = lack / (denominator_v - denominator) if lack > 0 else 0.0
    return _ratio(
        numerator + way * (numerator_v - numerator),
        denominator + way * (denominator_v - denominator),
    )


def _permutation_p_value(
    P: Any, N: Any, alpha: float, rng: np.random.RandomState, n_draws: int = 199
) -> float:
    """Share of relabellings whose energy distance is that of P and N or more (500 rows)."""
    P, N = take(P, 250, rng), take(N, 250, rng)
    rows = joined([P, N])
    n, m = P.shape[0], N.shape[0]
    distance = squared_distances(rows, rows)
    np.fill_diagonal(distance, 0)
    distance **= alpha / 2
    is_p = np.zeros((n + m, n_draws + 1))
    is_p[:n, 0] = 1
    for draw in range(1, n_draws + 1):
        is_p[rng.permutation(n + m)[:n], draw] = 1
    reached = distance @ is_p
    within_p = (is_p * reached).sum(axis=0)
    across = ((1 - is_p) * reached).sum(axis=0)
    within_n = distance.sum() - within_p - 2 * across
    # U-statistics: V's self-distances favour wide samples and hide a narrow class of five rows
    energy = 2 * across / (n * m) - within_p / (n * (n - 1)) - within_n / (m * (m - 1))
    # ties count: rounding must not make equal relabellings look smaller
    ties = energy[1:] >= energy[0] - 1e-9 * abs(distance).mean()
    return float((1 + ties.sum()) / (n_draws + 1))
