"""Tests of _utils/arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pnuauc._utils.arrays import rows_differ


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_rows_that_are_all_equal(kind):
    X = np.ones((150, 3))
    assert not rows_differ(kind(X))
    for row in (0, 99, 100, 149):
        bent = X.copy()
        bent[row, 1] = 0.0
        assert rows_differ(kind(bent))
