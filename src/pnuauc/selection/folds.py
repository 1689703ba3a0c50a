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
from pnuauc.labels import ROLES


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

    @property
    def splits(self) -> list[tuple[Indices, Indices]]:
        """(rows to train on, rows held out) of every fold."""
        found = []
        for k in range(self.n_folds):
            lists = [p for parts in self.rows.values() for j, p in enumerate(parts) if j != k]
            held = np.concatenate([parts[k] for parts in self.rows.values()])
            found.append((np.sort(np.concatenate(lists)), held))
        return found

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
        makes fewer folds. A splitter is given them.

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
    if not isinstance(cv, int):
        return _from_splitter(rows, cv, X, labels, groups)
    rng = check_random_state(random_state)
    place, n_folds = _together(rows, cv, X, rng, groups)
    folds = {}
    for role, index in rows.items():
        if len(index):
            own = place.get(role)
            own = rng.permutation(np.arange(len(index)) % n_folds) if own is None else own
            folds[role] = [index[own == k] for k in range(n_folds)]
    return FoldedRows(folds, n_folds)


def _together(
    rows: Mapping[str, Indices], cv: int, X: Any, rng: np.random.RandomState, groups: Indices | None
) -> tuple[dict[str, Indices], int]:
    """Folds of the roles whose rows must stay together, and the number of folds.

    Copies of a labelled row share a fold: in the training part one would give the label of its twin
    away. No role is given where no labelled row has a copy, and where a class is copies of one
    row, which no split can keep from itself. With ``groups`` unlabelled rows follow theirs; groups
    of U alone are dealt at random.
    """
    held = {role: rows[role] for role in "PN" if len(rows.get(role, ()))}
    index, sizes = np.concatenate(list(held.values())), [len(part) for part in held.values()]
    place = None
    if groups is not None or X is not None:
        own = row_groups(X[index]) if groups is None else groups[index]
        if groups is not None or own.max() + 1 < len(index):
            codes = np.repeat(np.arange(len(held), dtype=np.int8), sizes)
            place = even_folds(codes, own, cv, rng)
    if place is None:
        if groups is None:
            return {}, min(cv, *sizes)
        raise ValueError(
            "The labelled rows of a class belong to one group, so none can be held out: label rows "
            "of another group, or fit without groups."
        )
    n_folds = int(place.max()) + 1
    found = dict(zip(held, np.split(place, np.cumsum(sizes)[:-1]), strict=True))
    if groups is not None and "U" in rows:
        of_group = rng.randint(0, n_folds, int(groups.max()) + 1)
        of_group[groups[index]] = place
        found["U"] = of_group[groups[rows["U"]]]
    return found, n_folds


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


def _from_splitter(
    rows: Mapping[str, Indices], cv: Any, X: Any, labels: Any, groups: Indices | None
) -> FoldedRows:
    given = () if groups is None else (groups,)
    try:
        splits = list(cv if isinstance(cv, (list, tuple)) else cv.split(X, labels, *given))
    except ValueError as error:
        raise ValueError(
            f"{type(cv).__name__} cannot split these rows, whose labels are 1, 0 and NaN where "
            f"unlabelled ({error}); RoleStratifiedKFold deals out every role."
        ) from error
    place, dealt = np.full(len(labels), -1), []
    for k, (train, test) in enumerate(splits):
        dealt.append(np.asarray(train))
        if (place[np.asarray(test)] >= 0).any():
            raise ValueError(
                "The test sets of cv overlap; use a splitter that holds every row out at most "
                "once, such as RoleStratifiedKFold."
            )
        place[np.asarray(test)] = k
    folds = {}
    for role, index in rows.items():
        if len(index):
            # the last is never held out
            folds[role] = [index[place[index] == k] for k in [*range(len(dealt)), -1]]
            for k, train in enumerate(dealt):
                _check_split(k, role, index, place, train)
    return FoldedRows(folds, len(dealt))


def _check_split(k: int, role: str, index: Indices, place: Indices, train: Indices) -> None:
    """A split must hold out rows of every role, and train on those of all other splits."""
    word = next(r.word for r in ROLES if r.letter == role)
    held = place[index] == k
    if held.all() or not held.any():
        lacking = "train on" if held.any() else "hold out"
        raise ValueError(
            f"Split {k} of cv has no {word} row to {lacking}: every split needs rows "
            "of every role on both sides. RoleStratifiedKFold deals them out evenly."
        )
    if not np.isin(index[~held & (place[index] >= 0)], train).all():
        raise ValueError(
            f"Split {k} of cv leaves {word} rows out of both sides, as "
            "TimeSeriesSplit does: candidates are trained on all rows that are not held out. "
            "Choose the model by RoleStratifiedKFold and judge it by such splits with "
            "pnuauc.cross_fit_auc."
        )
