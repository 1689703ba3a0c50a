"""Numbers that can be computed with: neither squares nor their squares may leave the range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["LARGEST", "check_range", "finite"]

#: Fourth powers appear (variances of products), and sums of many: 1e75^4 = 1e300.
LARGEST = {"float64": 1e75, "float32": 1e15}


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


def finite(values: NDArray[Any], what: str = "The scores") -> NDArray[Any]:
    """The same values, or an error: what overflowed is told, never handed on as NaN."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"{what} are too large to compute: some number in the rows, or in the model, is out "
            "of all proportion; rescale the columns, for example with StandardScaler."
        )
    return values
