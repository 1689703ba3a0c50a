"""Categories among the columns: adjacent yes/no columns of which a row has one.

Brought to deviation 1 each, the columns of one category with 40 levels would weigh as much in
distances and principal axes as 40 numbers, and rare levels most of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats, Mask

#: Rows that are looked at, evenly spaced; least share of them that has a level of a category.
_ROWS, _SHARE = 20_000, 0.5


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
    if not len(X):
        return []
    X = X[:: -(-len(X) // _ROWS)]
    # runs of columns with two values, each with the rows that have the larger one
    runs: list[list[tuple[int, Mask]]] = [[]]
    for j, column in enumerate(np.ascontiguousarray(X.T)):
        low, high = np.fmin.reduce(column), np.fmax.reduce(column)
        if not ((column == low) | (column == high) | np.isnan(column)).all():
            runs.append([])
        elif low < high:
            runs[-1].append((j, column == high))
    return [columns for run in runs for columns in _split(run)]


def _split(run: list[tuple[int, Mask]]) -> list[list[int]]:
    """The categories of a run: cut after the last column that shares a row with the next one.

    A piece too small to be a category belongs to the one before it, if no row has both.
    """
    pieces: list[list[tuple[int, Mask]]] = [[]]
    for j, level in run:
        clashes = [i for i, (_, other) in enumerate(pieces[-1]) if (level & other).any()]
        if clashes:
            piece = pieces.pop()
            pieces += [piece[: clashes[-1] + 1], piece[clashes[-1] + 1 :]]
        pieces[-1].append((j, level))
    found: list[tuple[list[int], Mask]] = []
    follows = False  # whether the piece stands right behind the last category
    for piece in filter(None, pieces):
        columns, rows = [j for j, _ in piece], np.logical_or.reduce([level for _, level in piece])
        if len(piece) > 1 and rows.mean() >= _SHARE:
            found.append((columns, rows))
            follows = True
        elif follows and not (found[-1][1] & rows).any():
            found[-1] = (found[-1][0] + columns, found[-1][1] | rows)
        else:
            follows = False
    return [columns for columns, _ in found]
