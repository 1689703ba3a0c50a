"""Groups in the Dask estimator."""

from __future__ import annotations

import numpy as np
import pytest

import pnuauc.estimators
from pnuauc.dask import DaskAUCClassifierCV

da = pytest.importorskip("dask.array")


@pytest.mark.parametrize("each", [1, 2], ids="{} labelled in a group of four".format)
def test_rows_of_one_group_are_never_on_both_sides_of_a_split(monkeypatch, each):
    """Labelled ones, drawn ones and those that stay in the partitions."""
    rng = np.random.default_rng(0)
    groups = np.arange(300) // 4
    X = rng.normal(size=(300, 2))
    X[:, 1] = groups  # by which a row is known again
    y = np.where((np.arange(300) % 4 < each) & (groups < 20), groups % 2, np.nan)
    seen, build = [], pnuauc.estimators.TrainedGrid.from_arrays
    monkeypatch.setattr(
        pnuauc.estimators.TrainedGrid,
        "from_arrays",
        lambda *given, **named: seen.append((given, named)) or build(*given, **named),
    )
    rows, labels, names = (
        da.from_array(v, chunks=(100, *v.shape[1:])) for v in (X, y, groups.astype(str))
    )
    settings = {"prior": 0.4, "widths": [1.0], "n_centers": 10, "random_state": 0, "cv": 4}
    DaskAUCClassifierCV(**settings).fit(rows, labels, groups=names)
    (known, folds, *_), named = seen[0]
    fold_of: dict = {}
    for parts in folds.rows.values():
        for k, part in enumerate(parts):
            for group in known[part, 1]:
                assert fold_of.setdefault(group, k) == k
    found = named["elsewhere"].rows(folds.n_folds, 50)
    for X_block, fold in found.map(lambda block: (block.read(), block.fold)):
        for group, k in zip(X_block[:, 1], fold, strict=True):
            assert fold_of.setdefault(group, k) == k
    assert len(fold_of) == 75
