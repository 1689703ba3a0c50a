"""Every candidate scores the rows held out of its training, and the scores are counted.

Labelled rows are few, and their scores are kept: they are the anchors. Unlabelled rows pass by in
blocks and leave behind how many of them lie below each anchor.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats, Indices
from pnuauc.core.design import joined
from pnuauc.core.rows import Block, Rows, add_by_fold
from pnuauc.selection.criterion import FoldCounts, count_below
from pnuauc.selection.trainers import Fitted

#: For each scale the places of its candidates, and their coefficients.
_ByScale: TypeAlias = list[tuple[Indices, Floats]]


def count_held_out(
    rows: Mapping[str, Rows], basis: Any, fitted: Mapping[int, Fitted]
) -> list[FoldCounts]:
    """How the rows of some folds rank under the candidates trained without them.

    fitted : fold -> candidates in the order (scale, eta, ridge); those without coefficients are
        not scored, and all their scores are zero
    """
    models = {k: _by_scale(one.coef, basis.n_scales) for k, one in fitted.items()}
    n_candidates = len(next(iter(fitted.values())).coef)
    nothing: dict[int, Any] = {}
    score = functools.partial(_all_scores, basis=basis, models=models, n=n_candidates)
    labeled = [rows[r].reduce(score, add_by_fold, nothing) if r in rows else {} for r in "PN"]
    counts, nobody = {}, [(np.zeros((n_candidates, 0)), None)]
    for k in fitted:
        scores, weights = [], []
        for of_role in labeled:
            found = zip(*of_role.get(k, nobody), strict=True)
            scores.append(np.concatenate(next(found), axis=1))
            weights.append(joined(next(found)))
        counts[k] = FoldCounts.from_labeled(*scores, *weights)
    if "U" in rows:
        marks = {k: c.marks for k, c in counts.items()}
        count = functools.partial(_count, basis=basis, models=models, marks=marks)
        for k, below in rows["U"].reduce(count, add_by_fold, nothing).items():
            counts[k] = counts[k].with_unlabeled(below)
    return list(counts.values())


def _by_scale(coef: Floats, n_scales: int) -> _ByScale:
    usable = np.flatnonzero(~np.isnan(coef[:, 0]))
    scale = usable // (len(coef) // n_scales)
    return [(usable[scale == j], coef[usable[scale == j]]) for j in range(n_scales)]


def _scores(block: Block, basis: Any, models: _ByScale) -> Iterator[tuple[Indices, NDArray[Any]]]:
    """(candidates of a scale, their scores, shape (candidates, rows)) for every scale."""
    for j, features in block.scales(basis):
        places, coef = models[j]
        coef = coef.astype(features.dtype, copy=False)
        if isinstance(features, np.ndarray):
            yield places, coef @ features.T
        else:
            yield places, np.ascontiguousarray((features @ coef.T).T)


def _all_scores(
    block: Block, basis: Any, models: Mapping[int, _ByScale], n: int
) -> dict[int, list[tuple[NDArray[Any], Any]]]:
    """Fold -> (scores of all n candidates, weights)."""
    found = {}
    for k, part in block.by_fold():
        if k in models:
            out = np.zeros((n, len(part)), dtype=part.X.dtype)
            for places, scores in _scores(part, basis, models[k]):
                out[places] = scores
            found[k] = [(out, part.weight)]
    return found


def _count(
    block: Block, basis: Any, models: Mapping[int, _ByScale], marks: Mapping[int, NDArray[Any]]
) -> dict[int, Floats]:
    """Fold -> rows below each mark, and all rows, shape (c, 2K + 1). Scale by scale: scores that
    are sorted at once are still in the cache."""
    found = {}
    for k, part in block.by_fold():
        if k in models:
            n_candidates, n_marks = marks[k].shape
            found[k] = below = np.zeros((n_candidates, n_marks + 1))
            below[:, -1] = part.mass
            for places, scores in _scores(part, basis, models[k]):
                below[places, :-1] = count_below(marks[k][places], scores, part.weight)
    return found
