"""One tree by scikit-learn, the way that its own forests take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats, Mask


def grow_tree(
    tree: Any,
    X: NDArray[np.float32],
    target: Floats,
    weight: Floats | None = None,
    gaps: Mask | None = None,
) -> Any:
    """The ``Tree`` of a regressor fitted to C-ordered rows, shape (n, d), and targets.

    ``fit`` would check each tree's rows and options anew, half of the time of a small tree.

    weight : shape (n,), of the rows; gaps : shape (d,), columns with NaN, None without any
    """
    more = {"check_input": False, "missing_values_in_feature_mask": gaps}
    return tree._fit(X, target, sample_weight=weight, **more).tree_
