"""Rows that occur more than once: which are identical, and which nearly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc.core.rows import row_groups
from pnuauc.labels import Roles

__all__ = ["Copies", "find_copies"]

Numbers = NDArray[np.intp]
#: A labelled row whose nearest other row is nearer than this share of the usual distance.
_NEAR = 0.05
#: Near copies are hinted at from this many labelled rows, and this share of them.
_FEWEST, _LEAST_SHARE = 3, 0.05
_MOST_LABELLED, _MOST_ROWS = 400, 4000


@dataclass(frozen=True, eq=False)
class Copies:
    """Identical rows of a table.

    Attributes
    ----------
    groups : ndarray of int, shape (n,)
        Rows with the same number are identical in every column that the model sees.
    n_rows : int
        Rows that have at least one identical other row.
    n_near : int
        Labelled rows with a near copy, 0 where they are few.
    """

    groups: Numbers
    n_rows: int
    n_near: int

    def design_effect(self, roles: Roles) -> float:
        """How many rows count as one: sum of squared group sizes over rows, worst labelled role."""
        worst = 1.0
        for rows in (roles.positive, roles.negative):
            if len(rows):
                sizes = np.unique(self.groups[rows], return_counts=True)[1]
                worst = max(worst, float((sizes**2).sum() / sizes.sum()))
        return worst


def find_copies(X: Any, roles: Roles, seed: int = 0) -> Copies:
    """Identical rows of X, and a hint at near ones.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n, d)
    roles : Roles, of length n
    """
    groups = row_groups(X)
    sizes = np.bincount(groups)
    n_rows = int(sizes[sizes > 1].sum())
    near = 0 if sparse.issparse(X) else _near(X, roles, groups, seed)
    return Copies(groups, n_rows, near)


def _near(X: Any, roles: Roles, groups: Numbers, seed: int) -> int:
    """Labelled rows much nearer to another row than rows usually are, identical ones aside."""
    rng = np.random.default_rng(seed)
    labelled = np.concatenate([roles.positive, roles.negative])
    if len(labelled) > _MOST_LABELLED:
        labelled = rng.choice(labelled, _MOST_LABELLED, replace=False)
    others = np.arange(len(X))
    if len(others) > _MOST_ROWS:
        others = np.union1d(rng.choice(others, _MOST_ROWS, replace=False), labelled)
    if len(labelled) < _FEWEST or len(others) < 20 or X.shape[1] < 2:
        return 0
    spread = X[others].std(axis=0)
    scaled = X / np.where(spread > 0, spread, 1.0)
    nearest = _nearest(scaled, labelled, others, groups)
    usual = _nearest(scaled, rng.choice(others, min(len(others), 200), False), others, groups)
    limit = _NEAR * float(np.median(usual[np.isfinite(usual)], axis=0)) if len(usual) else 0.0
    found = int((nearest < limit).sum())
    return found if found >= max(_FEWEST, _LEAST_SHARE * len(labelled)) else 0


def _nearest(X: Any, rows: Numbers, others: Numbers, groups: Numbers) -> NDArray[np.float64]:
    """Distance of each row to the nearest of ``others`` that is not identical to it."""
    squares = (X[others] ** 2).sum(axis=1)
    out = np.empty(len(rows))
    for start in range(0, len(rows), 256):
        part = rows[start : start + 256]
        square = (X[part] ** 2).sum(axis=1)[:, None] + squares - 2.0 * X[part] @ X[others].T
        square[groups[part][:, None] == groups[others]] = np.inf
        out[start : start + 256] = np.sqrt(np.maximum(square.min(axis=1), 0.0))
    return out
