"""Distances between rows, and Gaussians of them; rows dense or CSR, the answer always dense.

Sums go block by block: memory does not grow with the product of row counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from pnuauc._arrays import Floats

__all__ = [
    "centre",
    "cross_sums",
    "gaussian",
    "median_distance",
    "squared_distances",
    "within_sums",
]

# Entries of one block of the distance matrix: 4 million doubles are 32 MB.
_BLOCK = 1 << 22


def centre(*samples: Any) -> list[Any]:
    """Dense samples as float64 minus their common mean; sparse ones as they are.

    |a - b|^2 is computed as |a|^2 + |b|^2 - 2 a'b, which loses all digits when the rows lie far
    from the origin. Sparse rows cannot be centred without filling them, and text has no offset.
    """
    if not isinstance(samples[0], np.ndarray):
        return [sample.astype(np.float64) for sample in samples]
    total = sum(sample.sum(axis=0, dtype=np.float64) for sample in samples)
    mean = total / sum(sample.shape[0] for sample in samples)
    return [sample.astype(np.float64) - mean for sample in samples]


def squared_distances(A: Any, B: Any) -> Floats:
    """|a_i - b_j|^2, shape (n_A, n_B), for dense or CSR rows; never below 0."""
    if isinstance(A, np.ndarray) or A.nnz >= B.nnz:
        product = safe_sparse_dot(A, B.T, dense_output=True)
    else:  # a sparse product reorders its right side: let that be the smaller one
        product = safe_sparse_dot(B, A.T, dense_output=True).T
    squared = _squared_norms(A)[:, None] + _squared_norms(B)[None, :]
    squared -= 2 * product
    np.maximum(squared, 0, out=squared)
    return squared


def gaussian(squared: Floats, width: float) -> Floats:
    """exp(-|x - c|^2 / (2 width^2)) from squared distances."""
    return np.asarray(np.exp(squared / (-2 * width**2)))


def median_distance(X: Any, rng: np.random.RandomState, max_rows: int = 300) -> float:
    """Median Euclidean distance over the pairs of at most ``max_rows`` rows; never 0."""
    rows = rng.permutation(X.shape[0])[:max_rows]
    distance = np.sqrt(squared_distances(X[rows], X[rows])[np.triu_indices(len(rows), 1)])
    median = float(np.median(distance))
    # more than half of the pairs may be copies of one row: fall back to the mean, above 0 here
    return median if median > 0 else float(distance.mean()) or 1.0


def cross_sums(A: Any, B: Any, exponent: float) -> tuple[Floats, Floats]:
    """Sums of |a - b|^exponent over b, shape (n_A,), and over a, shape (n_B,)."""
    over_b, over_a = np.zeros(A.shape[0]), np.zeros(B.shape[0])
    for rows, columns in _blocks(A.shape[0], B.shape[0]):
        distance = squared_distances(A[rows], B[columns])
        _power(distance, exponent)
        over_b[rows] += distance.sum(axis=1)
        over_a[columns] += distance.sum(axis=0)
    return over_b, over_a


def within_sums(A: Any, exponent: float) -> Floats:
    """Sums of |a_i - a_j|^exponent over j, shape (n_A,); the term i = j is exactly 0."""
    sums = np.zeros(A.shape[0])
    for rows, columns in _blocks(A.shape[0], A.shape[0]):
        distance = squared_distances(A[rows], A[columns])
        same = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
        distance[same - rows.start, same - columns.start] = 0
        _power(distance, exponent)
        sums[rows] += distance.sum(axis=1)
    return sums


def _power(squared: Floats, exponent: float) -> None:
    if exponent == 1:
        np.sqrt(squared, out=squared)
    else:
        np.power(squared, exponent / 2, out=squared)


def _squared_norms(A: Any) -> Floats:
    if isinstance(A, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", A, A))
    return np.asarray(A.multiply(A).sum(axis=1)).ravel()


def _blocks(n: int, m: int) -> Iterator[tuple[slice, slice]]:
    width = min(m, 4096)
    height = max(1, _BLOCK // width)
    for top in range(0, n, height):
        for left in range(0, m, width):
            yield slice(top, min(top + height, n)), slice(left, min(left + width, m))
