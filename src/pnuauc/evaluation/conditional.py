"""AUC estimates at given priors: their values, and how they scatter as a function of the true AUC.

How far an estimate scatters depends on the AUC itself: rows of a model with AUC .999 hardly ever
show a misranked pair, so a variance read off the rows is near zero just where it is least sure. So
the variance is a function of the true AUC a,

    V(a) = sum over roles r of  [v_r(1) + 4 a (1 - a) k_r (v_r(1/2) - v_r(1))] / n_r,

where v_r(1) and v_r(1/2) are the variances of a row's projection when the classes are apart and
when they are alike: both follow from the prior alone. k_r is read off the rows and pulled towards
the usual value (tuning), the more so the less the rows can tell: 4 a (1 - a) n_r of them do.
One row shows nothing: the largest possible k_r, 3, stands in. Limits are the two a at which
|estimate - a| = t sqrt(V(a)): Wilson's idea for a share, closed form, inside [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pnuauc._utils.arrays import Floats
from pnuauc.core.ranks import PairShares, raw_to_auc
from pnuauc.exceptions import PriorNotIdentifiedError
from pnuauc.prior import ClassPrior, read_prior
from pnuauc.tuning import INTERVALS

#: A placement that is 0 or 1 has the variance a (1 - a), three times 4 a (1 - a) / 12.
_LARGEST = 3.0
#: Covariances by role where the classes are alike, whatever the prior.
_ALIKE = np.zeros((3, 3, 3))
_ALIKE[0, :2, :2] = _ALIKE[1, ::2, ::2] = 1.0 / 12.0
_ALIKE[2, 1:, 1:] = np.array([[1.0, -1.0], [-1.0, 1.0]]) / 12.0
#: Possible AUCs, dense towards 1.
_GRID = np.concatenate([np.linspace(0.0, 0.9, 181), 1.0 - np.geomspace(0.0995, 1e-5, 140), [1.0]])


def check_level(level: float) -> None:
    """An error unless the confidence level lies strictly between 0 and 1."""
    if not 0.0 < float(level) < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, for example 0.95, got {level}.")


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


def satterthwaite(parts: Floats, freedom: ArrayLike) -> Any:
    """Degrees of freedom (sum v_r)^2 / sum (v_r^2 / f_r) of variances summed over the last axis.

    A part without degrees of freedom (one row carries an upper bound, no estimate) is known.
    """
    f = np.asarray(freedom, dtype=float)
    noise = np.where(f > 0, parts**2 / np.where(f > 0, f, 1.0), 0.0).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(noise > 0, parts.sum(axis=-1) ** 2 / noise, np.inf)


def t_quantile(level: float, df: ArrayLike) -> Any:
    """Two-sided quantile; the normal one for infinite degrees of freedom."""
    upper, finite = 0.5 + level / 2.0, np.isfinite(df)
    return np.where(
        finite, special.stdtrit(np.where(finite, df, 1.0), upper), special.ndtri(upper)
    )[()]


@dataclass(frozen=True, eq=False)
class Conditional:
    """Estimates at J priors; V(a) = apart + spread a (1 - a) with ``df``; arrays of shape (J,)."""

    value: Floats
    apart: Floats
    spread: Floats
    df: Floats

    def limits(self, level: float) -> Floats:
        """All a in [0, 1] that an estimate does not refute, shape (2, J); NaN where there is none.

        (value - a)^2 <= q V(a) with q = t^2 is (1 + q s) a^2 - (2 v + q s) a + v^2 - q p <= 0.
        """
        q = t_quantile(level, self.df) ** 2
        v, p, s = self.value, self.apart, self.spread
        root = q * (4.0 * s * v * (1.0 - v) + q * s * s + 4.0 * p * (1.0 + q * s))
        half = np.sqrt(np.maximum(root, 0.0))
        low, high = np.stack([2.0 * v + q * s - half, 2.0 * v + q * s + half]) / (
            2.0 * (1.0 + q * s)
        )
        possible = (root >= 0.0) & (low <= 1.0) & (high >= 0.0)
        return np.where(possible, np.clip([low, high], 0.0, 1.0), np.nan)

    def distribution(self, grid: Floats) -> Floats:
        """Confidence that the AUC is at most each a: t((a - value) / sqrt(V(a))), shape (J, n)."""
        v, p, s, df = (x[:, None] for x in (self.value, self.apart, self.spread, self.df))
        z = (grid - v) / np.sqrt(np.maximum(p + s * grid * (1.0 - grid), 1e-18))
        finite = np.isfinite(df)
        below = np.where(finite, special.stdtr(np.where(finite, df, 1.0), z), special.ndtr(z))
        # from an estimate outside [0, 1] the nearest a looks worse than some behind it, where the
        # estimate scatters more: the curve goes on level there
        from_right = np.minimum.accumulate(below[:, ::-1], axis=1)[:, ::-1]
        return np.where(v < 0.0, from_right, np.maximum.accumulate(below, axis=1))

    def inside(self) -> Floats:
        """Confidence in AUCs between 0 and 1, shape (J,)."""
        return np.asarray(np.diff(self.distribution(np.array([0.0, 1.0])))[:, 0])


def role_extremes(prior: Floats) -> tuple[Floats, Floats]:
    """Covariances of a row's raw projections by role, classes alike and classes apart.

    Each of shape (*shape of prior, 3, 3, 3): order of roles P, N, U and of estimates PN, PU, NU, as
    in :mod:`pnuauc.core.ranks`. Alike: all placements are one uniform variable. Apart: every
    positive beats every negative, and placements within the own class are uniform.
    """
    t = np.asarray(prior, dtype=float)
    rest = 1.0 - t
    apart = np.zeros((*t.shape, 3, 3, 3))
    apart[..., 0, 1, 1], apart[..., 1, 2, 2] = t * t / 12.0, rest * rest / 12.0
    mean_pu, mean_nu = t / 2.0 + rest, rest / 2.0 + t
    apart[..., 2, 1, 1] = t / 3.0 + rest - mean_pu**2
    apart[..., 2, 2, 2] = rest / 3.0 + t - mean_nu**2
    apart[..., 2, 1, 2] = apart[..., 2, 2, 1] = 0.5 - mean_pu * mean_nu
    return np.broadcast_to(_ALIKE, apart.shape), apart


def conditionals(
    moments: PairShares, priors: Floats, weights: Floats, inflation: float = 1.0
) -> Conditional:
    """The estimate weights @ (PN, PU, NU) at each of ``priors``.

    Parameters
    ----------
    moments : PairShares
    priors : ndarray, shape (J,); PN does not look at them
    weights : ndarray, shape (3,); sum to 1
    inflation : factor of the variance, for scores that are less than independent
    """
    slope, offset = raw_to_auc(priors)
    used = weights != 0.0
    value = np.where(used, weights * (slope * moments.raw - offset), 0.0).sum(axis=1)
    raw_weights = np.where(used, weights * slope, 0.0)
    squares = (raw_weights[:, :, None] * raw_weights[:, None, :])[:, None]
    n = np.asarray(moments.n, dtype=float)
    usual, usual_rows = INTERVALS.usual.value, INTERVALS.usual_rows.value
    # variances of one row by role, shape (J, 3): alike, apart, and as the rows show them
    alike, apart = ((squares * matrix).sum(axis=(2, 3)) for matrix in role_extremes(priors))
    seen = n * (squares * moments.by_role).sum(axis=(2, 3))
    # the estimates as if one more pair of rows had been a draw
    fewest = float(n[n > 0].min())
    a = ((np.clip(value, 0.0, 1.0) * fewest + 0.5) / (fewest + 1.0))[:, None]
    span, uncertain = alike - apart, 4.0 * a * (1.0 - a)
    several = n > 1  # one row shows no spread at all
    weight = np.where(several, n * uncertain, 0.0)
    reading = (seen - apart) / np.maximum(uncertain * span, 1e-12)
    k = weight * np.clip(reading, 0.0, _LARGEST) + usual_rows * usual
    k = np.where(n == 1, _LARGEST, k / (weight + usual_rows))
    # at priors near 1/2 an apart U scatters more than an alike one: then no dependence on a is used
    steady = np.where(several, n * seen, 0.0) + usual_rows * np.maximum(apart, alike)
    steady /= np.where(several, n, 0.0) + usual_rows
    rising = span > 1e-9
    # a role that has no weight has no variance under either extreme
    rows = np.where((n > 0) & (alike + apart > 0), np.maximum(n, 1.0), np.inf)
    base = np.where(rising, apart, steady) / rows
    rise = np.where(rising, 4.0 * k * span, 0.0) / rows
    df = satterthwaite(base + rise * a * (1.0 - a), np.where(several, n - 1.0 + usual_rows, 0.0))
    return Conditional(value, inflation * base.sum(axis=1), inflation * rise.sum(axis=1), df)


def mixture_limits(
    parts: Conditional, weights: Floats, level: float
) -> tuple[float, float, Floats] | None:
    """Limits under a mixture over J priors, and the weights that priors keep, shape (J,).

    A prior under which the estimate refutes AUCs in [0, 1] keeps as much of its weight as the
    confidence that falls inside. Where the mixture refutes every AUC at ``level``, or there is one
    prior alone, the mean of the limits at each prior stands in; None where all of them refute
    every AUC at the level that refutes.
    """
    kept = weights
    if len(weights) > 1:
        curves = parts.distribution(_GRID)
        kept = weights * (curves[:, -1] - curves[:, 0])
        if float(kept.sum()) < (1.0 - INTERVALS.refuted.value) / 2.0:
            return None
        kept = kept / kept.sum()
        mixed, tail = kept @ curves, (1.0 - level) / 2.0
        if mixed[-1] > tail and mixed[0] < 1.0 - tail:
            low, high = np.interp([tail, 1.0 - tail], mixed, _GRID)
            return float(low), float(high), kept
    # the true prior lies beyond the limits now and then: only far beyond it is refuted
    alone = parts.limits(level)
    wider = parts.limits(max(level, INTERVALS.refuted.value))
    alone = np.where(np.isnan(alone), wider, alone)
    share = np.where(np.isnan(alone[0]), 0.0, kept)
    if not share.any():
        return None
    low, high = np.nan_to_num(alone) @ share / share.sum()
    return float(low), float(high), kept
