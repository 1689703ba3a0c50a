"""Gaussian features for the priors that need them; rows dense or CSR, the answer always dense."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc.priors._distances import squared_distances

__all__ = ["gaussian", "median_distance", "stack"]

Floats: TypeAlias = NDArray[np.float64]


def gaussian(squared: Floats, width: float) -> Floats:
    """exp(-|x - c|^2 / (2 width^2)) from squared distances."""
    features: Floats = np.exp(squared / (-2 * width**2))
    return features


def median_distance(X: Any, rng: np.random.RandomState, max_rows: int = 300) -> float:
    """Median Euclidean distance over the pairs of at most ``max_rows`` rows; never 0."""
    rows = rng.permutation(X.shape[0])[:max_rows]
    distance = np.sqrt(squared_distances(X[rows], X[rows])[np.triu_indices(len(rows), 1)])
    median = float(np.median(distance))
    # more than half of the pairs may be copies of one row: fall back to the mean, above 0 here
    return median if median > 0 else float(distance.mean()) or 1.0


def stack(*samples: Any) -> Any:
    """Samples under one another, dense or CSR as they came."""
    if isinstance(samples[0], np.ndarray):
        return np.concatenate(samples)
    return sparse.vstack(samples, format="csr")
