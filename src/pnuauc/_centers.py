"""Centres drawn from the rows, and distances to them: dense or CSR, which is never densified."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from pnuauc._ranges import ALL_EQUAL

__all__ = [
    "first_centers",
    "gaussian_exponents",
    "median_distance",
    "sample_centers",
    "squared_distances",
]

#: Rows drawn to find the median distance: half a million pairs place the median within about 0.3%.
MEDIAN_ROWS = 1000


def sample_centers(
    X: Any, n_centers: int, random_state: Any = None, weight: NDArray[Any] | None = None
) -> Any:
    """Draw ``n_centers`` rows without replacement; repeated rows count once, order is sorted.

    With all rows taken, the result depends on the set of rows only: not on their order, on
    repetitions, or on whether a repetition is written as a weight.
    """
    rows = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    if len(rows) > n_centers:
        rng = check_random_state(random_state)
        rows = np.sort(rng.choice(rows, size=n_centers, replace=False))
    chosen = X[rows]
    if sparse.issparse(chosen):
        return chosen[_distinct_sparse_rows(chosen)]
    return np.unique(chosen, axis=0)


def first_centers(X: Any, n_centers: int, weight: NDArray[Any] | None = None) -> Any:
    """The first ``n_centers`` distinct rows of positive weight, shape (at most n_centers, d).

    Rows that are drawn from elsewhere come in the order of their hashes, so these are the rows of
    the whole table whose hashes are smallest: the same however the table is cut.
    """
    rows = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    n_looked = n_centers
    while True:
        looked = rows[:n_looked]
        if sparse.issparse(X):
            first = _distinct_sparse_rows(X[looked])
        else:
            first = np.unique(X[looked], axis=0, return_index=True)[1]
        if len(first) >= n_centers or n_looked >= len(rows):
            return X[looked[np.sort(first)[:n_centers]]]
        n_looked *= 2  # copies of a row stand side by side


def _distinct_sparse_rows(rows: Any) -> NDArray[np.intp]:
    """Indices of the distinct rows of a CSR matrix, in an order that depends on content only."""
    rows = rows.copy()
    rows.sum_duplicates()
    keys: dict[bytes, int] = {}
    for i in range(rows.shape[0]):
        span = slice(rows.indptr[i], rows.indptr[i + 1])
        columns = np.asarray(rows.indices[span], dtype=np.int64)
        keys.setdefault(columns.tobytes() + np.asarray(rows.data[span]).tobytes(), i)
    return np.array([keys[key] for key in sorted(keys)], dtype=np.intp)


def median_distance(
    X: Any, random_state: Any = None, sample_weight: ArrayLike | None = None
) -> float:
    """Median Euclidean distance between distinct rows, over at most 1,000 rows drawn at random.

    The paper takes it over all n^2 pairs; on 1,000 rows the difference is below sampling noise.
    """
    if X.shape[0] < 2:
        raise ValueError("The median distance needs at least 2 rows; got n_samples = 1.")
    weight = None if sample_weight is None else np.asarray(sample_weight)
    rows = sample_centers(X, MEDIAN_ROWS, random_state, weight)
    distances = squared_distances(rows, rows)[np.triu_indices(rows.shape[0], k=1)]
    median = float(np.sqrt(np.median(distances))) if len(distances) else 0.0
    if median <= 0:
        raise ValueError(ALL_EQUAL)
    return median


def gaussian_exponents(X: Any, centers: Any, width: float) -> NDArray[Any]:
    """-|x - c|^2 / (2 width^2) for all rows and centres: (n, d), (b, d) -> (n, b).

    Dense rows: norms and width ride along in the matrix product, (x, |x|^2, 1) times
    (c, -1/2, -|c|^2/2)' / width^2, which saves four passes over the (n, b) result.
    """
    if sparse.issparse(X) or sparse.issparse(centers):
        out = squared_distances(X, centers)
        out *= -0.5 / width**2
        return out
    n, d = X.shape
    origin = _middle(centers)
    left = np.empty((n, d + 2), dtype=X.dtype)
    np.subtract(X, origin, out=left[:, :d])
    left[:, d] = row_norms(left[:, :d], squared=True)
    left[:, d + 1] = 1.0
    moved = np.asarray(centers - origin, dtype=np.float64)
    right = np.empty((d + 2, len(moved)))
    right[:d] = moved.T
    right[d] = -0.5
    right[d + 1] = -0.5 * row_norms(moved, squared=True)
    right /= width**2
    product: NDArray[Any] = left @ right.astype(X.dtype)
    np.minimum(product, 0.0, out=product)
    return product


def _middle(centers: NDArray[Any]) -> NDArray[Any]:
    """Where most of the centres are; one of them far away does not move it."""
    return np.asarray(np.median(centers, axis=0), dtype=centers.dtype)


def squared_distances(X: Any, centers: Any) -> NDArray[Any]:
    """|x - c|^2 for all rows and centres by one matrix product: (n, d), (b, d) -> (n, b).

    Dense rows are first moved by the centres' median, so a large common offset costs no digits,
    nor does one centre far away; CSR rows are not (that would densify them).
    """
    if not sparse.issparse(X) and not sparse.issparse(centers):
        origin = _middle(centers)
        X = X - origin
        centers = centers - origin
    out: NDArray[Any] = safe_sparse_dot(X, centers.T, dense_output=True)
    out *= -2.0
    out += row_norms(X, squared=True)[:, np.newaxis]
    out += row_norms(centers, squared=True)
    np.maximum(out, 0.0, out=out)
    return out
