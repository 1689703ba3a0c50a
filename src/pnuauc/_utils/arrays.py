"""Types of arrays, and checks that numbers can be computed with."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]


#: Why there is nothing to rank by.
ALL_EQUAL = (
    "All rows are identical: no feature varies, so there is nothing to rank by. "
    "Give at least one column that differs between rows."
)

#: Fourth powers appear (variances of products), and sums of many: 1e75^4 = 1e300.
LARGEST = {"float64": 1e75, "float32": 1e15}


def read_rows(estimator: Any, X: Any, **options: Any) -> Any:
    """X, dense or CSR, of doubles or singles, as ``validate_data`` lets it pass."""
    kinds = [np.float64, np.float32]
    return validate_data(estimator, X, accept_sparse="csr", dtype=kinds, **options)


def check_range(X: Any, name: str = "X") -> None:
    """Refuse validated rows whose numbers are all too small, or some too large, to compute with."""
    values = X.data if sparse.issparse(X) else X
    if values.size == 0:
        return
    largest = float(max(values.max(), -values.min()))
    limit = LARGEST[values.dtype.name]
    if largest > limit:
        raise ValueError(
            f"{name} holds numbers as large as {largest:.3g}, too large to compute with in "
            f"{values.dtype}; rescale its columns, for example with StandardScaler."
        )
    if 0 < largest < 1 / limit:
        raise ValueError(
            f"{name} holds no number above {largest:.3g}, too small to compute with in "
            f"{values.dtype}; rescale its columns, for example with StandardScaler."
        )


def rows_differ(X: Any) -> bool:
    """Whether any column of X, dense or CSR, varies."""
    # column extremes of a large CSR matrix cost as much as a fit: ask them of a few rows first
    for rows in (X[:100], X):
        spread = rows.max(axis=0) - rows.min(axis=0)
        if spread.nnz if sparse.issparse(spread) else np.any(spread):
            return True
    return False


def finite(values: NDArray[Any], what: str = "The scores") -> NDArray[Any]:
    """The same values, or an error if they overflowed; NaN is never passed on."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"{what} are too large to compute: some number in the rows, or in the model, is out "
            "of all proportion; rescale the columns, for example with StandardScaler."
        )
    return values
