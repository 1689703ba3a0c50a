"""Splits in which every fold has its share of positives, negatives and unlabelled rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import check_random_state

from pnuauc._row_hash import matrix_keys
from pnuauc.labels import ROLES, Roles, read_roles

__all__ = ["RoleStratifiedKFold", "RoleStratifiedShuffleSplit", "grouped_folds", "row_groups"]

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def _roles_of(splitter: Any, y: Any) -> Roles:
    return read_roles(
        y,
        positive_label=splitter.positive_label,
        negative_label=splitter.negative_label,
        unlabeled_label=splitter.unlabeled_label,
        unclear="sorted",
    )


def _check_counts(roles: Roles, least: int, what: str) -> None:
    for role, n in zip(ROLES, roles.counts, strict=True):
        if 0 < n < least:
            raise ValueError(
                f"{what} needs at least {least} rows of every role that occurs, but y holds "
                f"{roles.describe()}; the {role.word} rows are too few: use fewer folds."
            )


class RoleStratifiedKFold(StratifiedKFold):
    """K folds, stratified by role: each holds n_role / K rows of P, N and U, within one.

    Unlike :class:`sklearn.model_selection.StratifiedKFold` it reads missing labels, keeps groups of
    rows together if they are given, and refuses, rather than warns, when a role has fewer rows than
    there are folds.

    Parameters
    ----------
    n_splits : int
    shuffle : bool
    random_state : int, RandomState or None
        Only with ``shuffle=True``.
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.

    Examples
    --------
    >>> y = [1, 1, 0, 0, None, None, None, None]
    >>> [test.tolist() for _, test in RoleStratifiedKFold(2).split(y, y)]
    [[0, 2, 4, 5], [1, 3, 6, 7]]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        positive_label: Any = None,
        negative_label: Any = None,
        unlabeled_label: Any = None,
    ) -> None:
        super().__init__(n_splits=n_splits, shuffle=shuffle, random_state=random_state)
        self.positive_label = positive_label
        self.negative_label = negative_label
        self.unlabeled_label = unlabeled_label

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield (train, test) row numbers; ``y`` in any coding.

        ``groups``, one number or name per row, keeps rows of one group in one fold: copies of a
        row, or rows of one customer. Folds are then as even by role as the groups allow.
        """
        roles = _roles_of(self, y)
        what = f"A split into {self.n_splits} folds"
        if groups is None:
            _check_counts(roles, self.n_splits, what)
            yield from super().split(np.zeros(len(roles)), roles.codes)
            return
        seed = self.random_state if self.shuffle else 0
        fold = grouped_folds(roles.codes, groups, self.n_splits, check_random_state(seed))
        for k in range(self.n_splits):
            test = np.flatnonzero(fold == k)
            missing = set(roles.codes) - set(roles.codes[fold != k])
            if missing or not set(roles.codes) <= set(roles.codes[test]):
                raise ValueError(
                    f"{what} needs at least {self.n_splits} groups with rows of every role that "
                    f"occurs; y holds {roles.describe()}: use fewer folds."
                )
            yield np.flatnonzero(fold != k), test


def grouped_folds(
    codes: NDArray[np.int8], groups: Any, n_folds: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
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
    of_group: NDArray[np.intp] = np.zeros(len(counts), dtype=np.intp)
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


def _filled(load: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Folds for n single rows, so that the fullest and the emptiest fold differ least."""
    out: NDArray[np.intp] = np.empty(n, dtype=np.intp)
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


def row_groups(X: Any) -> NDArray[np.intp]:
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


class RoleStratifiedShuffleSplit(StratifiedShuffleSplit):
    """Random splits with the same shares of P, N and U in train and test.

    Parameters
    ----------
    n_splits : int
    test_size, train_size : float, int or None
    random_state : int, RandomState or None
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: Any = None,
        train_size: Any = None,
        random_state: Any = None,
        positive_label: Any = None,
        negative_label: Any = None,
        unlabeled_label: Any = None,
    ) -> None:
        super().__init__(
            n_splits=n_splits,
            test_size=test_size,
            train_size=train_size,
            random_state=random_state,
        )
        self.positive_label = positive_label
        self.negative_label = negative_label
        self.unlabeled_label = unlabeled_label

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield (train, test) row numbers; ``y`` in any coding, ``groups`` is ignored."""
        roles = _roles_of(self, y)
        _check_counts(roles, 2, "A stratified split")
        for train, test in super().split(np.zeros(len(roles)), roles.codes):
            # scikit-learn may round a small role out of one side; one row of it is moved there
            yield _both_sides(roles.codes, train, test)


def _both_sides(codes: NDArray[np.int8], train: Any, test: Any) -> Split:
    """Every role that occurs on both sides, moving one row where rounding left a side empty."""
    train, test = np.asarray(train), np.asarray(test)
    for role in np.unique(codes):
        if not np.any(codes[test] == role):
            moved = train[codes[train] == role][:1]
            train, test = np.setdiff1d(train, moved), np.concatenate([test, moved])
        elif not np.any(codes[train] == role):
            moved = test[codes[test] == role][:1]
            train, test = np.concatenate([train, moved]), np.setdiff1d(test, moved)
    return train, test
