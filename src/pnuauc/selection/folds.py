"""Folds by role: every fold holds its share of positive, negative and unlabelled rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pnuauc._utils.arrays import Indices
from pnuauc.core.rows import even_folds, row_groups

__all__ = ["FoldedRows", "deal_folds", "read_cv"]


@dataclass(frozen=True, eq=False, repr=False)
class FoldedRows:
    """Row numbers by role and fold: ``rows["P"][k]`` are the positives held out in fold k."""

    rows: dict[str, list[Indices]]
    n_folds: int

    def __repr__(self) -> str:
        sizes = ", ".join(f"{role}={self.size(role)}" for role in self.rows)
        return f"FoldedRows({self.n_folds} folds of {sizes})"

    def size(self, role: str) -> int:
        return sum(map(len, self.rows.get(role, [])))

    def refolded(self, role: str, index: Indices, place: Indices) -> FoldedRows:
        """The same, but for one role whose folds are given: row index[i] in fold place[i]."""
        dealt = [index[place == k] for k in range(self.n_folds)]
        return FoldedRows({**self.rows, role: dealt}, self.n_folds)


def deal_folds(
    rows: Mapping[str, Indices],
    cv: Any,
    X: Any = None,
    labels: Any = None,
    random_state: Any = None,
    groups: Indices | None = None,
) -> FoldedRows:
    """Split the rows of every role into folds.

    Parameters
    ----------
    rows : dict of role letter -> row numbers
    cv : int, splitter, or list of (train, test) row numbers
        An int deals the rows of each role out at random; identical labelled rows share a fold.
        Test sets must share no row; rows in no test set are always trained on.
    X : ndarray or CSR matrix, shape (n, d), optional
        Decides which rows are identical, and what a splitter sees.
    labels : ndarray, shape (n,)
        What a splitter sees as y: 1, 0 and NaN.

    groups : ndarray of int, shape (n,), optional
        Rows of one group share a fold, whatever their roles; a class in fewer groups than folds
        makes fewer folds.

    Fewer different positives (or negatives) than folds: as many folds as there are.
    """
    n_positive, n_negative = (len(rows.get(role, ())) for role in "PN")
    labeled = [n for n in (n_positive, n_negative) if n]
    if min(labeled) < 2:
        raise ValueError(
            "Cross-validation needs at least 2 rows of each labelled class that is present; "
            f"there are {n_positive} positive and {n_negative} negative rows. "
            "Use AUCClassifier with fixed settings instead."
        )
    cv = read_cv(cv)
    if isinstance(cv, int):
        rng = check_random_state(random_state)
        if groups is not None:
            return _by_group(rows, cv, groups, rng)
        together, n_folds = _copies_together(rows, cv, X, rng)
        folds = {}
        for role, index in rows.items():
            if role in together:
                place = together[role]
            else:
                place = rng.permutation(np.arange(len(index)) % n_folds)
            if len(index):
                folds[role] = [index[place == k] for k in range(n_folds)]
        return FoldedRows(folds, n_folds)
    return _from_splitter(rows, cv, X, labels)


def _by_group(
    rows: Mapping[str, Indices], cv: int, groups: Indices, rng: np.random.RandomState
) -> FoldedRows:
    """Folds of whole groups: labelled rows dealt evenly, groups of U alone at random."""
    held = {role: rows[role] for role in "PN" if len(rows.get(role, ()))}
    index = np.concatenate(list(held.values()))
    codes = np.repeat(np.arange(len(held), dtype=np.int8), [len(part) for part in held.values()])
    place = even_folds(codes, groups[index], cv, rng)
    if place is None:
        raise ValueError(
            "The labelled rows of a class belong to one group, so none can be held out: label rows "
            "of another group, or fit without groups."
        )
    n_folds = int(place.max()) + 1
    fold_of_group = rng.randint(0, n_folds, int(groups.max()) + 1)
    fold_of_group[groups[index]] = place
    folds = {}
    for role, part in rows.items():
        if len(part):
            own = fold_of_group[groups[part]]
            folds[role] = [part[own == k] for k in range(n_folds)]
    return FoldedRows(folds, n_folds)


def _copies_together(
    rows: Mapping[str, Indices], cv: int, X: Any, rng: np.random.RandomState
) -> tuple[dict[str, Indices], int]:
    """Fold of every labelled row by role, copies in one fold, and the number of folds.

    A copy in the training part gives the label of its twin away. No role is given where no labelled
    row has a copy, and where a class is copies of one row, which no split can keep from itself.
    Unlabelled rows have no label to give away.
    """
    held = {role: rows[role] for role in "PN" if len(rows.get(role, ()))}
    sizes = [len(part) for part in held.values()]
    no_copies: tuple[dict[str, Indices], int] = {}, min(cv, *sizes)
    if X is None:
        return no_copies
    groups = row_groups(X[np.concatenate(list(held.values()))])
    if groups.max() + 1 == sum(sizes):
        return no_copies
    codes = np.repeat(np.arange(len(held), dtype=np.int8), sizes)
    place = even_folds(codes, groups, cv, rng)
    if place is None:
        return no_copies
    by_role = np.split(place, np.cumsum(sizes)[:-1])
    return dict(zip(held, by_role, strict=True)), int(place.max()) + 1


def read_cv(cv: Any) -> Any:
    """A number of folds, a splitter, or a list of (train, test) row numbers; else an error."""
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds; got {cv}.")
        return int(cv)
    if (not hasattr(cv, "split") and not isinstance(cv, (list, tuple))) or isinstance(cv, str):
        raise ValueError(
            "cv must be a number of folds, a splitter with split(X, y) or a list of (train, test) "
            f"row numbers; got {cv!r}."
        )
    return cv


def _from_splitter(rows: Mapping[str, Indices], cv: Any, X: Any, labels: Any) -> FoldedRows:
    splits = cv if isinstance(cv, (list, tuple)) else cv.split(X, labels)
    tests = [np.asarray(test) for _, test in splits]
    place = np.full(len(labels), -1)
    for k, test in enumerate(tests):
        if (place[test] >= 0).any():
            raise ValueError(
                "The test sets of cv overlap; use a splitter that holds every row out at most "
                "once, such as RoleStratifiedKFold."
            )
        place[test] = k
    folds = {}
    for role, index in rows.items():
        if len(index):
            folds[role] = [index[place[index] == k] for k in range(len(tests))]
            # a fold of its own, never held out
            folds[role].append(index[place[index] < 0])
    return FoldedRows(folds, len(tests))
