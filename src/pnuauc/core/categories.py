"""Categories among the columns: adjacent yes/no columns of which a row has one.

Brought to deviation 1 each, the columns of one category with 40 levels would weigh as much in
distances and principal axes as 40 numbers, and rare levels most of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats, Mask

__all__ = ["category_weights", "find_categories"]


#: Rows that are looked at, evenly spaced; least share of them that has a level of a category.
_ROWS, _SHARE = 20_000, 0.5
#: Rows that are enough to recognize most numeric columns.
_FIRST = 50


def category_weights(X: NDArray[Any]) -> Floats:
    """What columns of deviation 1 are to be multiplied by, shape (d,).

    sqrt(G / K) for the K columns of G categories, so that together they weigh as much as G columns;
    1 for all others. One weight for all: among themselves categories keep their proportions, and a
    table of nothing but categories is left as it is.

    Parameters
    ----------
    X : ndarray, shape (n, d), NaN allowed

    Examples
    --------
    >>> X = np.column_stack([np.arange(6.0), np.eye(3)[[0, 1, 2, 0, 1, 2]]])
    >>> category_weights(X).round(3).tolist()
    [1.0, 0.577, 0.577, 0.577]
    """
    weights = np.ones(X.shape[1])
    found = find_categories(X)
    if found:
        columns = np.concatenate(found)
        weights[columns] = np.sqrt(len(found) / len(columns))
    return weights


def find_categories(X: NDArray[Any]) -> list[list[int]]:
    """Columns of each category, in their order; constant columns are passed over.

    A column takes part if it has two values; a row has that level where the larger one stands.
    Neighbours belong together as long as no row has two of them, and are a category if at least
    half of the rows have one.
    """
    X = X[:: -(-len(X) // _ROWS)] if len(X) else X
    found = _Categories(len(X))
    for j, may in enumerate(_at_most_two(X[:_FIRST])):
        if not may:
            found.end()
            continue
        values = np.ascontiguousarray(X[:, j])
        known = values[~np.isnan(values)] if np.isnan(values).any() else values
        low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
        if low == high:
            continue
        if ((known == low) | (known == high)).all():
            found.take(j, values == high)
        else:
            found.end()
    found.end()
    return [columns for columns, _ in found.whole]


def _at_most_two(X: NDArray[Any]) -> Mask:
    """Columns whose first rows do not rule it out, shape (d,): most numbers are seen at once."""
    if not len(X):
        return np.ones(X.shape[1], dtype=bool)
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    return np.asarray(((low == X) | (high == X) | np.isnan(X)).all(axis=0))


class _Categories:
    """Categories so far, and the run of columns at hand, of which no row has two."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.whole: list[tuple[list[int], Mask]] = []
        self.run: list[tuple[int, Mask]] = []
        #: Whether the run follows the last category without another column between.
        self.follows = False

    def take(self, j: int, has: Mask) -> None:
        """One more column: those before the last that shares a row with it are a piece."""
        clashes = [place for place, (_, level) in enumerate(self.run) if (level & has).any()]
        self._cut(clashes[-1] + 1 if clashes else 0)
        self.run.append((j, has))

    def end(self) -> None:
        """A column of another kind, or none."""
        self._cut(len(self.run))
        self.follows = False

    def _cut(self, first: int) -> None:
        """The ``first`` columns of the run: a category, the rest of the last one, or neither."""
        if not first:
            return
        piece, self.run = self.run[:first], self.run[first:]
        columns = [j for j, _ in piece]
        rows = np.logical_or.reduce([level for _, level in piece])
        if first > 1 and rows.sum() >= _SHARE * self.n:
            self.whole.append((columns, rows))
            self.follows = True
        elif self.follows and not (self.whole[-1][1] & rows).any():
            before, known = self.whole[-1]
            self.whole[-1] = (before + columns, known | rows)
        else:
            self.follows = False
