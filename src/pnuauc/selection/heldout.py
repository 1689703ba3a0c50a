"""Every candidate scores the rows held out of its training, and the scores are counted.

Labelled rows are few, and their scores are kept: they are the marks. Unlabelled rows pass by in
blocks and leave behind how many of them lie below each mark. Above some hundred labelled rows of
a class in a fold, marks are thinned: see :class:`pnuauc.selection.criterion.Marks`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.core.design import joined
from pnuauc.core.rows import Block, Rows
from pnuauc.selection.criterion import FoldCounts, Marks, count_below
from pnuauc.selection.trainers import Fitted

__all__ = ["count_held_out"]


def count_held_out(
    rows: Mapping[str, Rows], basis: Any, fitted: Mapping[int, Fitted]
) -> list[FoldCounts]:
    """How the rows of some folds rank under the candidates trained without them.

    fitted : fold -> candidates in the order (scale, eta, ridge); those without coefficients are
        not scored, and all their scores are zero
    """
    score = _FoldScores(basis, fitted)
    positive, negative = (score.labeled(rows.get(role)) for role in "PN")
    labeled = {}
    for k in fitted:
        (p, weight_p), (n, weight_n) = positive[k], negative[k]
        labeled[k] = FoldCounts.from_labeled(p, n, weight_p, weight_n)
    if "U" not in rows:
        return list(labeled.values())
    marks = {k: Marks.of(c) for k, c in labeled.items()}
    nothing: dict[int, Any] = {}
    wanted = {k: m.wanted for k, m in marks.items()}
    count = functools.partial(_count, score=score, marks=wanted)
    counted = rows["U"].reduce(count, _add_counts, nothing)
    return [
        c.with_unlabeled(marks[k].spread(counted[k][0]), counted[k][1]) if k in counted else c
        for k, c in labeled.items()
    ]


def _count(
    block: Block, score: _FoldScores, marks: dict[int, NDArray[np.floating]]
) -> dict[int, tuple[NDArray[np.float64], float]]:
    return {k: (score.below(k, part, marks[k]), part.mass) for k, part in score.parts(block)}


def _add_counts(a: dict[int, Any], b: dict[int, Any]) -> dict[int, Any]:
    merged = dict(a)
    for k, (below, n) in b.items():
        merged[k] = (a[k][0] + below, a[k][1] + n) if k in a else (below, n)
    return merged


class _FoldScores:
    """Coefficients by fold and scale, and the scores of a block by them."""

    def __init__(self, basis: Any, fitted: Mapping[int, Fitted]) -> None:
        self.basis, self.n_candidates = basis, len(next(iter(fitted.values())).coef)
        self.places: dict[int, list[NDArray[np.intp]]] = {}
        self.coefs: dict[int, list[NDArray[np.float64]]] = {}
        for k, one in fitted.items():
            usable = np.flatnonzero(~np.isnan(one.coef[:, 0]))
            scale = usable // (self.n_candidates // basis.n_scales)
            self.places[k] = [usable[scale == j] for j in range(basis.n_scales)]
            self.coefs[k] = [one.coef[index] for index in self.places[k]]

    def parts(self, block: Block) -> Iterator[tuple[int, Block]]:
        """(fold, its rows), without the rows that are not held out here."""
        return ((k, part) for k, part in block.by_fold() if k in self.places)

    def scores(self, k: int, block: Block) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """(candidates of a scale, their scores, shape (candidates, rows)) for every scale."""
        for j, features in block.scales(self.basis):
            coef = self.coefs[k][j].astype(features.dtype, copy=False)
            if isinstance(features, np.ndarray):
                yield self.places[k][j], coef @ features.T
            else:
                yield self.places[k][j], np.ascontiguousarray((features @ coef.T).T)

    def _labeled_parts(self, block: Block) -> list[tuple[int, NDArray[Any], Any]]:
        """(fold, scores of all candidates, weights), candidates that were not fitted at zero."""
        found = []
        for k, part in self.parts(block):
            out = np.zeros((self.n_candidates, len(part)), dtype=part.X.dtype)
            for index, scores in self.scores(k, part):
                out[index] = scores
            found.append((k, out, part.weight))
        return found

    def labeled(self, rows: Rows | None) -> dict[int, tuple[NDArray[Any], NDArray[Any] | None]]:
        """Scores of a role's rows, shape (n_candidates, n), and their weights, by fold."""
        found: dict[int, list[Any]] = {k: [] for k in self.places}
        if rows is not None:
            for parts in rows.map(self._labeled_parts):
                for k, *scores_and_weight in parts:
                    found[k].append(scores_and_weight)
        nothing = [np.zeros((self.n_candidates, 0)), None]
        out = {}
        for k, of_fold in found.items():
            scores, weights = zip(*(of_fold or [nothing]), strict=True)
            out[k] = np.concatenate(scores, axis=1), joined(weights)
        return out

    def below(self, k: int, block: Block, marks: NDArray[Any]) -> NDArray[np.float64]:
        """How many rows lie below each mark, scale by scale: a scale's scores are still in the
        cache when they are sorted."""
        found = np.zeros(marks.shape)
        for index, scores in self.scores(k, block):
            found[index] = count_below(marks[index], scores, block.weight)
        return found
