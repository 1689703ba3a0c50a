"""Held-out labelled rows placed among all unlabelled rows, where these are."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._row_hash import fold_of
from pnuauc._sources import Batch, RowKeys
from pnuauc._study._census import LabelReader
from pnuauc._study._crossfit import CrossFit, Reference
from pnuauc._study._rows import Origin
from pnuauc.io import TableEncoder
from pnuauc.io._columns import cells_of
from pnuauc.io._model import encode_batch
from pnuauc.labels import UNLABELED
from pnuauc.metrics._counts import count_cells

__all__ = ["placed_among_all"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _FoldCounts:
    """Unlabelled rows of one fold under the refit without it: cells between labelled scores.

    cells : ndarray of int, shape (2K + 1,), as :func:`pnuauc.metrics._counts.count_cells` has them
    low, high : the smallest and the largest score
    """

    cells: NDArray[np.int64]
    low: float = np.inf
    high: float = -np.inf

    def __add__(self, other: _FoldCounts) -> _FoldCounts:
        return _FoldCounts(
            self.cells + other.cells, min(self.low, other.low), max(self.high, other.high)
        )


@dataclass(frozen=True, eq=False)
class _ManyCounts:
    """Those of all folds; what is summed over batches."""

    folds: tuple[_FoldCounts, ...]

    def __add__(self, other: _ManyCounts) -> _ManyCounts:
        return _ManyCounts(tuple(map(operator.add, self.folds, other.folds)))


@dataclass(frozen=True, eq=False)
class _Count:
    """A batch -> counts of its unlabelled rows, each scored by the refit without its fold.

    anchors : for each fold the distinct scores of the labelled rows that it holds out
    """

    labels: LabelReader
    keys: RowKeys
    encoder: TableEncoder
    views: tuple[str, ...]
    refits: tuple[Any, ...]
    anchors: tuple[Floats, ...]

    def __call__(self, batch: Batch) -> _ManyCounts:
        rows = np.flatnonzero(self.labels(batch.table) == UNLABELED)
        if not len(rows):
            return nothing_counted(self.anchors)
        with cells_of(batch.name):
            X = encode_batch(self.encoder, batch.table, self.views, batch.first_row)
        folds = fold_of(self.keys.order(batch.table)[rows], len(self.refits))
        found = []
        for k, (refit, anchors) in enumerate(zip(self.refits, self.anchors, strict=True)):
            own = rows[folds == k]
            scores = refit.decision_function(X[own]) if len(own) else np.empty(0)
            low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
            found.append(_FoldCounts(count_cells(scores, anchors), float(low), float(high)))
        return _ManyCounts(tuple(found))


def nothing_counted(anchors: tuple[Floats, ...]) -> _ManyCounts:
    """No rows in any cell."""
    empty = (np.zeros(2 * len(points) + 1, dtype=np.int64) for points in anchors)
    return _ManyCounts(tuple(map(_FoldCounts, empty)))


def placed_among_all(
    held_out: CrossFit, X: Any, origin: Origin, encoder: TableEncoder, views: tuple[str, ...]
) -> CrossFit:
    """The same, each labelled row by its place among all unlabelled rows of its fold.

    One visit of all rows. A fold of unlabelled rows is what their keys name, and they are scored
    by the refit without that fold; those few that took part in other refits did so without a label.
    The unlabelled rows of ``held_out`` are left as they are: evenly spaced on this scale.

    Parameters
    ----------
    X : the encoded rows that ``held_out.rows`` are numbers of
    """
    codes = held_out.roles.codes
    known = [test[codes[test] != UNLABELED] for test, _ in held_out.folds]
    raw = [
        np.asarray(refit.decision_function(X[held_out.rows[rows]])) if len(rows) else np.empty(0)
        for rows, (_, refit) in zip(known, held_out.folds, strict=True)
    ]
    anchors = tuple(np.unique(scores) for scores in raw)
    refits = tuple(refit for _, refit in held_out.folds)
    count = _Count(origin.labels, origin.keys, encoder, views, refits, anchors)
    everything = origin.everything(encoder).source
    counted = everything.reduce(count, operator.add, nothing_counted(anchors))
    scores = held_out.scores.copy()
    for k, (rows, points, own) in enumerate(zip(known, anchors, raw, strict=True)):
        fold, (drawn, refit) = counted.folds[k], held_out.folds[k]
        if not len(rows) or not fold.cells.sum():
            continue  # no row of U in this fold: the places among the drawn ones stay
        unlabeled = drawn[codes[drawn] == UNLABELED]
        spread = refit.decision_function(X[held_out.rows[unlabeled]])
        scale = Reference.counted(points, fold.cells, fold.low, fold.high, spread)
        scores[rows] = scale(own)
    n_all = int(sum(fold.cells.sum() for fold in counted.folds))
    return replace(held_out, scores=scores, n_reference=n_all)
