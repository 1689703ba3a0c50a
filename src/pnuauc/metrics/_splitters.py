"""Splits in which every fold has its share of positives, negatives and unlabelled rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import check_random_state

from pnuauc._label_column import label_codes
from pnuauc._row_groups import grouped_folds
from pnuauc.labels import ROLES, Roles, read_roles

__all__ = ["RoleStratifiedKFold", "RoleStratifiedShuffleSplit"]

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


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
        roles = read_roles(y, **label_codes(self))
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
        roles = read_roles(y, **label_codes(self))
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
