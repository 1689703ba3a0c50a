"""Generated tables on which estimates go wrong and which the benchmark sets do not resemble.

Each of ``HARD_SETS`` takes ``n_samples``, ``prior`` (the share of positives) and ``random_state``,
and returns X and y (1, 0), as the generators of :mod:`pnuauc.datasets` do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

__all__ = ["HARD_SETS"]

Table: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int8]]


def _heavy(y: NDArray[np.int8], rng: np.random.RandomState) -> NDArray[np.float64]:
    """Twelve columns with heavy tails: four log-normal and two Student ones carry the class."""
    X = rng.standard_t(1.5, size=(len(y), 12))
    X[:, :4] = np.exp(1.5 * rng.standard_normal((len(y), 4)) + 0.9 * y[:, None])
    X[:, 4:6] += 0.7 * y[:, None]
    return X


def _clusters(y: NDArray[np.int8], rng: np.random.RandomState) -> NDArray[np.float64]:
    """Positives in four tight clusters of 50, 30, 15 and 5% inside one wide cloud of negatives."""
    X = 1.5 * rng.standard_normal((len(y), 8))
    centers = np.array([[3, 0, 0, 0], [0, 3, 0, 0], [0, 0, 3, 0], [-2, -2, -2, 2]])
    which = rng.choice(4, size=len(y), p=[0.5, 0.3, 0.15, 0.05])
    tight = centers[which] + 0.5 * rng.standard_normal((len(y), 4))
    X[:, :4] = np.where(y[:, None] == 1, tight, X[:, :4])
    return X


def _separable(y: NDArray[np.int8], rng: np.random.RandomState) -> NDArray[np.float64]:
    """Fifteen normal columns, three of which separate the classes almost wholly (AUC .999)."""
    X = rng.standard_normal((len(y), 15))
    X[:, :3] += y[:, None] * np.array([3.0, 2.5, 2.0])
    return X


def _skewed(y: NDArray[np.int8], rng: np.random.RandomState) -> NDArray[np.float64]:
    """Squared gamma columns, three of twelve informative, and six rare binary ones."""
    shape = np.concatenate([np.full(3, 0.3), np.ones(9)])
    informative = np.arange(12) < 3
    power = shape + informative * np.where(y == 1, 2.0, 1.0)[:, None]
    amounts = rng.gamma(power) ** 2
    flags = rng.uniform(size=(len(y), 6)) < np.where(y == 1, 0.35, 0.2)[:, None]
    return np.hstack([amounts, flags])


def _make(
    columns: Callable[..., NDArray[np.float64]],
    n_samples: int = 20_000,
    *,
    prior: float = 0.5,
    random_state: Any = None,
) -> Table:
    rng = check_random_state(random_state)
    y = (rng.uniform(size=n_samples) < prior).astype(np.int8)
    return columns(y, rng), y


HARD_SETS: dict[str, Callable[..., Table]] = {
    "heavy": partial(_make, _heavy),
    "clusters": partial(_make, _clusters),
    "separable": partial(_make, _separable),
    "skewed": partial(_make, _skewed),
}
