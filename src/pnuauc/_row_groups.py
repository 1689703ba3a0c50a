"""Identical rows, and folds that keep rows of a group together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._arrays import Floats, Indices
from pnuauc._row_hash import matrix_keys

__all__ = ["even_folds", "grouped_folds", "row_groups"]


def grouped_folds(
    codes: NDArray[np.int8], groups: Any, n_folds: int, rng: np.random.RandomState
) -> Indices:
    """Fold of each row: large groups first, each where it evens out the roles most.

    What counts is the share of each role that a fold holds: three positives weigh as much as a
    thousand unlabelled rows if the table has no more of them.
    """
    number = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    role = np.unique(codes, return_inverse=True)[1].ravel()
    n_roles = int(role.max()) + 1
    counts = np.zeros((int(number.max()) + 1, n_roles))
    np.add.at(counts, (number, role), 1.0)
    shares = counts / counts.sum(axis=0)
    single = counts.sum(axis=1) == 1
    of_group: Indices = np.zeros(len(counts), dtype=np.intp)
    load = np.zeros((n_folds, n_roles))
    several = rng.permutation(np.flatnonzero(~single))
    for group in several[np.argsort(-shares[several].max(axis=1), kind="stable")]:
        cost = (load * shares[group]).sum(axis=1)
        best = np.flatnonzero(cost <= cost.min() + 1e-12)
        chosen = best[np.argmin(load[best].sum(axis=1))]
        of_group[group] = chosen
        load[chosen] += shares[group]
    for r in range(n_roles):
        ones = rng.permutation(np.flatnonzero(single & (counts[:, r] == 1)))
        of_group[ones] = _filled(load[:, r] * counts[:, r].sum(), len(ones))
    return of_group[number]


def even_folds(
    codes: NDArray[np.int8], groups: Any, most: int, rng: np.random.RandomState
) -> Indices | None:
    """Fold of each row, groups kept together and every role in every fold; at most ``most`` folds.

    None where no two folds can be had: a role is copies of one row, or groups tie roles together.
    """
    roles = [codes == code for code in np.unique(codes)]
    different = min(len(np.unique(groups[role])) for role in roles)
    for n_folds in range(min(most, different), 1, -1):
        fold = grouped_folds(codes, groups, n_folds, rng)
        if all(len(np.unique(fold[role])) == n_folds for role in roles):
            return fold
    return None


def _filled(load: Floats, n: int) -> Indices:
    """Folds for n single rows, so that the fullest and the emptiest fold differ least."""
    out: Indices = np.empty(n, dtype=np.intp)
    level = np.round(load).astype(np.intp)
    # the emptiest folds are raised to a common level, then filled in turn
    order = np.argsort(level, kind="stable")
    done = 0
    for k in range(1, len(order)):
        gap = int(level[order[k]] - level[order[0]])
        need = min(gap * k, n - done)
        out[done : done + need] = np.resize(order[:k], need)
        level[order[:k]] += gap
        done += need
    out[done:] = np.resize(order, n - done)
    return out


def row_groups(X: Any) -> Indices:
    """Number of each row's content, shape (n,): identical rows have the same number.

    X : ndarray or CSR matrix, shape (n, d)
    """
    if not sparse.issparse(X):
        return np.unique(matrix_keys(X), return_inverse=True)[1].astype(np.intp).ravel()
    rows = sparse.csr_matrix(X, copy=True)
    rows.eliminate_zeros()
    rows.sort_indices()
    spans = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    known: dict[bytes, int] = {}
    keys = (rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in spans)
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.intp)
