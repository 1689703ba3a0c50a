"""Quantiles and degrees of freedom that every interval uses."""

from __future__ import annotations

import numpy as np
from scipy import special

from pnuauc._arrays import Floats

__all__ = ["check_level", "satterthwaite", "t_quantile"]


def check_level(level: float) -> float:
    """The confidence level, strictly between 0 and 1."""
    if not 0.0 < float(level) < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, for example 0.95, got {level}.")
    return float(level)


def satterthwaite(parts: Floats, n: tuple[int, int, int]) -> float:
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
