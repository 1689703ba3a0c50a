"""Groups in the Dask estimator."""

from __future__ import annotations

import numpy as np
import pytest

import pnuauc.estimators
from pnuauc.dask import DaskAUCClassifierCV

da = pytest.importorskip("dask.array")


def test_labelled_rows_of_one_group_share_a_fold(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.full(300, np.nan)
    y[:80] = rng.random(80) < 0.5
    X[:80, 0] += y[:80]
    groups = np.arange(300) // 4
    dealt, deal = [], pnuauc.estimators.deal_folds
    monkeypatch.setattr(
        pnuauc.estimators, "deal_folds", lambda *a: dealt.append((a, deal(*a))) or dealt[-1][1]
    )
    X, y, names = (da.from_array(v, chunks=(100, *v.shape[1:])) for v in (X, y, groups))
    settings = {"prior": 0.4, "widths": [1.0], "n_centers": 10, "random_state": 0}
    DaskAUCClassifierCV(**settings).fit(X, y, groups=names)
    arguments, folds = dealt[0]
    told = arguments[-1]
    for role in "PN":
        for other in "PN":
            for j, a in enumerate(folds.rows[role]):
                for k, b in enumerate(folds.rows[other]):
                    assert j == k or not set(told[a]) & set(told[b])
    DaskAUCClassifierCV(**settings).fit(X, y)
    assert dealt[1][0][-1] is None
