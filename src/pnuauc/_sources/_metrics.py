"""AUC of score columns wherever they live: labelled scores are gathered, the others counted."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._sources._matrix import LABEL, LabelCodes, read_labels
from pnuauc._sources._port import Batch, Source
from pnuauc.exceptions import InputError
from pnuauc.labels import UNLABELED, Roles
from pnuauc.metrics._compare import LabeledPairs, PairCounts
from pnuauc.metrics._counts import ScoreCounts, check_scores
from pnuauc.metrics._estimate import unbiased_auc

__all__ = ["SCORE", "SECOND_SCORE", "count_pairs", "count_scores", "unbiased_score"]

SCORE, SECOND_SCORE = "score", "second_score"


def count_scores(source: Source, **label_codes: Any) -> ScoreCounts:
    """Counts of a source with the columns label and score, merged over all its batches."""
    codes, _, _ = read_labels(source, **label_codes)
    roles, scores = _labelled(source, codes, (SCORE,))
    counts = ScoreCounts.from_roles(roles, scores[0])
    count = functools.partial(_count, codes=codes, anchors=counts.anchors)
    return source.reduce(count, operator.add, counts)


def count_pairs(source: Source, **label_codes: Any) -> tuple[LabeledPairs, PairCounts]:
    """Labelled rows, and counts of the others, of a source with a label and two scores."""
    codes, _, _ = read_labels(source, **label_codes)
    roles, scores = _labelled(source, codes, (SCORE, SECOND_SCORE))
    labeled = LabeledPairs(roles, *scores)
    nothing = labeled.count(np.empty(0), np.empty(0))
    count = functools.partial(_count_both, codes=codes, labeled=labeled)
    return labeled, source.reduce(count, operator.add, nothing)


def unbiased_score(counts: ScoreCounts, prior: Any, method: str = "auto") -> float:
    """What ranks models: the unbiased AUC, without a prior the share of pairs won."""
    if method == "auto" and prior is None and not (counts.n_positive and counts.n_negative):
        method = "pu_raw" if counts.n_positive else "nu_raw"
    return unbiased_auc(counts, prior, method)


def _labelled(
    source: Source, codes: LabelCodes, names: tuple[str, ...]
) -> tuple[Roles, NDArray[np.float64]]:
    """Roles and scores, shape (columns, n), of the labelled rows."""
    gather = functools.partial(_gather, codes=codes, names=names)
    found = source.select([LABEL, *names]).reduce(
        gather, _side_by_side, np.empty((1 + len(names), 0))
    )
    return Roles(found[0].astype(np.int8)), found[1:]


def _gather(batch: Batch, codes: LabelCodes, names: tuple[str, ...]) -> NDArray[np.float64]:
    roles = codes(batch.table)
    known = np.flatnonzero(roles != UNLABELED)
    scores = [_scores(batch, name)[known] for name in names]
    return np.stack([roles[known].astype(np.float64), *scores])


def _side_by_side(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([a, b], axis=1)


def _scores(batch: Batch, name: str) -> NDArray[np.float64]:
    column = batch.table.column(name)
    if column.null_count:
        raise InputError(f"The scores in {batch.name} have missing values; score these rows first.")
    return check_scores(column.to_numpy(zero_copy_only=False), name=f"{name} in {batch.name}")


def _count(batch: Batch, codes: LabelCodes, anchors: NDArray[np.float64]) -> ScoreCounts:
    scores = _scores(batch, SCORE)[codes(batch.table) == UNLABELED]
    unlabeled = Roles(np.full(len(scores), UNLABELED, dtype=np.int8))
    return ScoreCounts.from_roles(unlabeled, scores, anchors)


def _count_both(batch: Batch, codes: LabelCodes, labeled: LabeledPairs) -> PairCounts:
    rows = codes(batch.table) == UNLABELED
    return labeled.count(_scores(batch, SCORE)[rows], _scores(batch, SECOND_SCORE)[rows])
