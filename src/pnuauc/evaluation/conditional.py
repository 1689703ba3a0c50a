"""An AUC estimate at one prior: its value, and how it scatters as a function of the true AUC.

How far an estimate scatters depends on the AUC itself: rows of a model with AUC .999 hardly ever
show a misranked pair, so a variance read off the rows is near zero just where it is least sure. So
the variance is a function of the true AUC a,

    V(a) = sum over roles r of  [v_r(1) + 4 a (1 - a) k_r (v_r(1/2) - v_r(1))] / n_r,

where v_r(1) and v_r(1/2) are the variances of a row's projection when the classes are apart and
when they are alike: both follow from the prior alone. k_r is read off the rows and pulled towards
``USUAL``, the more so the less the rows can tell (4 a (1 - a) n_r of them carry the information).
One row shows nothing: the largest possible k_r, 3, stands in. Limits are the two a at which
|estimate - a| = t sqrt(V(a)): Wilson's idea for a share, closed form, inside [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from pnuauc._utils.arrays import Floats
from pnuauc.core.ranks import PairShares, raw_to_auc
from pnuauc.exceptions import PriorNotIdentifiedError
from pnuauc.prior import ClassPrior, read_prior

__all__ = [
    "REFUTED",
    "Conditional",
    "check_level",
    "conditionals",
    "known_prior",
    "missing_prior",
    "mixture_limits",
    "role_extremes",
    "satterthwaite",
    "t_quantile",
]


def check_level(level: float) -> float:
    """The confidence level, strictly between 0 and 1."""
    if not 0.0 < float(level) < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, for example 0.95, got {level}.")
    return float(level)


def satterthwaite(parts: Floats, n: tuple[float, ...]) -> float:
    """Degrees of freedom (sum v_r)^2 / sum v_r^2 / (n_r - 1) of a variance summed over roles.

    A role of one row carries an upper bound instead of an estimate and counts as known.
    """
    rows = np.asarray(n, dtype=float)
    known = rows < 2
    noise = float(np.sum(np.where(known, 0.0, parts**2 / np.where(known, 1.0, rows - 1.0))))
    return float(parts.sum() ** 2 / noise) if noise > 0 else np.inf


def t_quantile(level: float, df: float) -> float:
    """Two-sided quantile; the normal one for infinite degrees of freedom."""
    upper = 0.5 + level / 2.0
    return float(special.stdtrit(df, upper) if np.isfinite(df) else special.ndtri(upper))


def known_prior(prior: Any, level: float = 0.95) -> ClassPrior | None:
    """As :func:`pnuauc.prior.read_prior`, but "auto" is refused: scores cannot identify it."""
    if isinstance(prior, str) and prior == "auto":
        raise ValueError(
            'prior="auto" needs rows to estimate it from, and a metric sees scores only: fit an '
            "estimator of pnuauc.priors and pass it as prior."
        )
    return read_prior(prior, level)


def missing_prior(purpose: str) -> PriorNotIdentifiedError:
    """The error for a request that needs a prior and got none."""
    return PriorNotIdentifiedError(
        f"{purpose} needs the share of positives among the unlabelled rows: give the prior as a "
        "number or an interval, or have it estimated (pnuauc.priors). To rank or compare models "
        "no prior is needed: method 'pu_raw' does without.",
        about="prior",
    )


#: k_r of two Gaussians is .6 to 1; of an outlier that loses to everything, 3.
USUAL = 1.2
#: Rows that the usual value counts for.
USUAL_ROWS = 10.0
#: Confidence at which a prior under which no AUC in [0, 1] fits is called refuted.
REFUTED = 0.999
#: A placement that is 0 or 1 has the variance a (1 - a), three times 4 a (1 - a) / 12.
_LARGEST = 3.0
#: Covariances by role where the classes are alike, whatever the prior.
_ALIKE = np.zeros((3, 3, 3))
_ALIKE[0, :2, :2] = _ALIKE[1, ::2, ::2] = 1.0 / 12.0
_ALIKE[2, 1:, 1:] = np.array([[1.0, -1.0], [-1.0, 1.0]]) / 12.0


@dataclass(frozen=True, eq=False)
class Conditional:
    """Estimate at one prior; V(a) = apart + spread a (1 - a) with ``df`` degrees of freedom."""

    value: float
    apart: float
    spread: float
    df: float

    def limits(self, level: float) -> tuple[float, float] | None:
        """All a in [0, 1] that the estimate does not refute; None where it refutes every one.

        (value - a)^2 <= q V(a) with q = t^2 is (1 + q s) a^2 - (2 v + q s) a + v^2 - q p <= 0.
        """
        q = t_quantile(level, self.df) ** 2
        v, p, s = self.value, self.apart, self.spread
        root = q * (4.0 * s * v * (1.0 - v) + q * s * s + 4.0 * p * (1.0 + q * s))
        if root < 0.0:
            return None
        ends = (2.0 * v + q * s + np.array([-1.0, 1.0]) * np.sqrt(root)) / (2.0 * (1.0 + q * s))
        if ends[0] > 1.0 or ends[1] < 0.0:
            return None
        return float(max(ends[0], 0.0)), float(min(ends[1], 1.0))

    def distribution(self, grid: Floats) -> Floats:
        """Confidence that the AUC is at most each a of ``grid``: t((a - value) / sqrt(V(a)))."""
        error = np.sqrt(np.maximum(self.apart + self.spread * grid * (1.0 - grid), 1e-18))
        z = (grid - self.value) / error
        below = special.stdtr(self.df, z) if np.isfinite(self.df) else special.ndtr(z)
        # from an estimate outside [0, 1] the nearest a looks worse than some behind it, where the
        # estimate scatters more: the curve goes on level there
        if self.value < 0.0:
            return np.asarray(np.minimum.accumulate(below[::-1])[::-1])
        return np.asarray(np.maximum.accumulate(below))


def role_extremes(prior: float | Floats) -> tuple[Floats, Floats]:
    """Covariances of a row's raw projections by role, classes alike and classes apart.

    Each of shape (*shape of prior, 3, 3, 3): order of roles P, N, U and of estimates PN, PU, NU, as
    in :mod:`pnuauc.core.ranks`. Alike: all placements are one uniform variable. Apart: every
    positive beats every negative, and placements within the own class are uniform.
    """
    t = np.asarray(prior, dtype=float)
    rest = 1.0 - t
    alike = np.broadcast_to(_ALIKE, (*t.shape, 3, 3, 3))
    apart = np.zeros(alike.shape)
    apart[..., 0, 1, 1], apart[..., 1, 2, 2] = t * t / 12.0, rest * rest / 12.0
    mean_pu, mean_nu = t / 2.0 + rest, rest / 2.0 + t
    apart[..., 2, 1, 1] = t / 3.0 + rest - mean_pu**2
    apart[..., 2, 2, 2] = rest / 3.0 + t - mean_nu**2
    apart[..., 2, 1, 2] = apart[..., 2, 2, 1] = 0.5 - mean_pu * mean_nu
    return alike, apart


def conditionals(
    moments: PairShares, priors: Floats, weights: Floats, inflation: float = 1.0
) -> list[Conditional]:
    """The estimate weights @ (PN, PU, NU) at each of ``priors``.

    Parameters
    ----------
    moments : PairShares
    priors : ndarray, shape (J,)
        Shares of positives inside U; PN does not look at them.
    weights : ndarray, shape (3,)
        Sum to 1.
    inflation : float
        Factor of the variance, for scores that are less than independent.
    """
    slope, offset = raw_to_auc(priors)
    used = weights != 0.0
    value = np.where(used, weights * (slope * moments.raw - offset), 0.0).sum(axis=1)
    raw_weights = np.where(used, weights * slope, 0.0)
    squares = raw_weights[:, :, None] * raw_weights[:, None, :]
    alike, apart = (
        (squares[:, None] * matrix).sum(axis=(2, 3)) for matrix in role_extremes(priors)
    )
    n = np.asarray(moments.n, dtype=float)
    seen = n * (squares[:, None] * moments.by_role).sum(axis=(2, 3))
    base, slope_a = _by_role(value, seen, alike, apart, n)
    rows = np.maximum(n, 1.0)
    # a role that has no weight has no variance under either extreme
    involved = (n > 0) & (alike + apart > 0)
    base, slope_a = (np.where(involved, part / rows, 0.0) for part in (base, slope_a))
    a = _inside(value, n)[:, None]
    parts = base + slope_a * a * (1.0 - a)
    noise = np.where(n > 1, parts**2 / (rows - 1.0 + USUAL_ROWS), 0.0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(noise > 0, parts.sum(axis=1) ** 2 / noise, np.inf)
    columns = value, inflation * base.sum(axis=1), inflation * slope_a.sum(axis=1), df
    return [Conditional(*map(float, line)) for line in zip(*columns, strict=True)]


def _inside(value: Floats, n: Floats) -> Floats:
    """The estimates as if one more pair of rows had been a draw, shape (J,)."""
    fewest = float(n[n > 0].min())
    return np.asarray((np.clip(value, 0.0, 1.0) * fewest + 0.5) / (fewest + 1.0))


def _by_role(
    value: Floats, seen: Floats, alike: Floats, apart: Floats, n: Floats
) -> tuple[Floats, Floats]:
    """Constant part and factor of a (1 - a) of each role's variance of one row, (J, 3) each."""
    span = alike - apart
    a = _inside(value, n)[:, None]
    informative = n * 4.0 * a * (1.0 - a)
    reading = (seen - apart) / np.maximum(4.0 * a * (1.0 - a) * span, 1e-12)
    # one row shows no spread at all
    weight = np.where(n > 1, informative, 0.0)
    k = weight * np.clip(reading, 0.0, _LARGEST) + USUAL_ROWS * USUAL
    k = np.where(n == 1, _LARGEST, k / (weight + USUAL_ROWS))
    # at priors near 1/2 an apart U scatters more than an alike one: then no dependence on a is used
    steady = (np.where(n > 1, n * seen, 0.0) + USUAL_ROWS * np.maximum(apart, alike)) / (
        np.where(n > 1, n, 0.0) + USUAL_ROWS
    )
    rising = span > 1e-9
    return np.where(rising, apart, steady), np.where(rising, 4.0 * k * span, 0.0)


def mixture_limits(
    parts: list[Conditional], weights: Floats, level: float
) -> tuple[float, float, Floats] | None:
    """Limits under a mixture over priors, and the weights that priors keep.

    A prior under which the estimate refutes AUCs in [0, 1] keeps as much of its weight as the
    confidence that falls inside. What remains is mixed as it is: a single prior gives
    :meth:`Conditional.limits`, and a prior that is almost known almost the same. Where the mixture
    refutes every AUC at ``level``, the mean of the limits at each prior stands in, wider ones
    where that prior alone refutes every AUC, too; None where all priors do so at ``REFUTED``.
    """
    grid = np.concatenate(
        [np.linspace(0.0, 0.9, 181), 1.0 - np.geomspace(0.0995, 1e-5, 140), [1.0]]
    )
    curves = np.stack([part.distribution(grid) for part in parts])
    kept = weights * (curves[:, -1] - curves[:, 0])
    if float(kept.sum()) < (1.0 - REFUTED) / 2.0:
        return None
    kept = kept / kept.sum()
    mixed = kept @ curves
    tail = (1.0 - level) / 2.0
    if mixed[-1] > tail and mixed[0] < 1.0 - tail:
        low, high = np.interp([tail, 1.0 - tail], mixed, grid)
        return float(low), float(high), kept
    alone = [part.limits(level) or part.limits(max(level, REFUTED)) for part in parts]
    share = np.array([weight if ends else 0.0 for weight, ends in zip(kept, alone, strict=True)])
    if not share.any():
        return None
    low, high = share @ np.array([ends or (0.0, 0.0) for ends in alone]) / share.sum()
    return float(low), float(high), kept
