"""Folds by role: every fold holds its share of positive, negative and unlabelled rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pnuauc._arrays import Indices
from pnuauc._row_groups import even_folds, row_groups

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
) -> FoldedRows:
    """Split the rows of every role into folds.

    Parameters
    ----------
    rows : dict of role letter -> row numbers
    cv : int, splitter, or list of (train, test) row numbers
        An int deals the rows of each role out at random; identical labelled rows share a fold.
        Test sets must share no row; rows in no test set are always trained on.
    X : ndarray or CSR matrix, shape (n, d), optional
        What tells which rows are identical, and what a splitter sees.
    labels : ndarray, shape (n,)
        What a splitter sees as y: 1, 0 and NaN.

    Fewer different positives (or negatives) than folds: as many folds as there are.
    """
    n_positive, n_negative = (len(rows.get(role, ())) for role in "PN")
    labelled = [n for n in (n_positive, n_negative) if n]
    if min(labelled) < 2:
        raise ValueError(
            "Cross-validation needs at least 2 rows of each labelled class that is present; "
            f"there are {n_positive} positive and {n_negative} negative rows. "
            "Use AUCClassifier with fixed settings instead."
        )
    cv = read_cv(cv)
    if isinstance(cv, int):
        rng = check_random_state(random_state)
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


def _copies_together(
    rows: Mapping[str, Indices], cv: int, X: Any, rng: np.random.RandomState
) -> tuple[dict[str, Indices], int]:
    """Fold of every labelled row by role, copies in one fold, and the number of folds.

    A copy in the training part gives the label of its twin away. No role is told where no labelled
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
