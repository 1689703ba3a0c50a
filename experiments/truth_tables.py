"""Tables on which honest numbers are hard: drawn by formula, with labels of every row.

Each function takes a number of rows and a generator and returns ``(X, y)``, X of shape (n, d) and
y in {0, 1}, half of the rows positive; the draw of P, N and U is made from such a pool.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["TABLES", "heavy_tails", "near_separable", "rare_clusters", "skewed_mix", "stacked_base"]


def _labels(n: int, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(n) < 0.5).astype(np.int8)


def heavy_tails(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Five columns of Student's t with 1.5 degrees of freedom, three log-normal ones (sd 2)."""
    y = _labels(n, rng)
    shift = y[:, None] * np.array([1.5, 1.0, 0.6, 0.0, 0.0])
    tails = rng.standard_t(1.5, (n, 5)) + shift
    amounts = np.exp(2.0 * (rng.standard_normal((n, 3)) + 0.5 * y[:, None]))
    return np.hstack([tails, amounts]), y


def rare_clusters(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positives in four tight clusters (45, 25, 10 and 5%); the other 15% look like negatives."""
    y = _labels(n, rng)
    centres = np.array(
        [[3, 0, 0, 3, 0, 0], [0, 3, -3, 0, 0, 0], [-3, 0, 0, 0, 3, 3], [0, -3, 3, -3, 0, 0]]
    )
    X = rng.standard_normal((n, 6)) * 1.5
    kind = rng.choice(5, n, p=[0.45, 0.25, 0.10, 0.05, 0.15])
    inside = (y == 1) & (kind < 4)
    X[inside] = centres[kind[inside]] + 0.6 * rng.standard_normal((int(inside.sum()), 6))
    return X, y


def near_separable(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ten columns, one good (shift of 3 deviations); the AUC of the best ranking is .99."""
    y = _labels(n, rng)
    X = rng.standard_normal((n, 10))
    X[:, 0] += 3.0 * y
    X[:, 1] += 0.8 * y
    return X, y


def skewed_mix(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts, shares, flags and amounts: skewed columns of different kinds, positives mild."""
    y = _labels(n, rng)
    X = np.column_stack(
        [
            rng.poisson(0.6 + 1.2 * y),
            rng.beta(0.4 + 0.8 * y, 2.0),
            rng.random(n) < 0.04 + 0.25 * y,
            np.exp(1.5 * rng.standard_normal(n) + 0.8 * y),
            rng.gamma(0.5, 3.0, n),
            rng.geometric(0.3 - 0.1 * y),
        ]
    ).astype(float)
    return X, y


def stacked_base(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A hard problem (best AUC about .76); the experiment stacks the drawn table twice."""
    y = _labels(n, rng)
    return rng.standard_normal((n, 8)) + 0.35 * y[:, None], y


TABLES: dict[str, Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]] = {
    "heavy_tails": heavy_tails,
    "rare_clusters": rare_clusters,
    "near_separable": near_separable,
    "skewed_mix": skewed_mix,
    "stacked": stacked_base,
}
