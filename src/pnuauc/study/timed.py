"""The past judges nothing, the future does: AUC of models that are fitted to earlier rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from pnuauc._utils.arrays import Floats, Indices
from pnuauc.committee import AutoAUCClassifier
from pnuauc.evaluation.heldout import cross_fit
from pnuauc.labels import Roles
from pnuauc.study.evidence import auc_finding, posterior_of
from pnuauc.study.findings import AUCFinding, Span, Timed
from pnuauc.study.rows import StudyRows
from pnuauc.tuning import LATER

_MOST_UNLABELED = 5000


def past_to_future(time: Floats, roles: Roles) -> list[tuple[Indices, Indices]]:
    """(rows before, rows of the span) for each span that can be judged; NaN is no time."""
    known = np.isfinite(time)
    labeled = known & (roles.codes >= 0)
    classes = [code for code in (1, 0) if (roles.codes == code).any()]
    if not labeled.any():
        return []
    edges = [*np.unique(np.quantile(time[labeled], LATER.begins.value, method="higher")), np.inf]
    splits = []
    for begin, end in pairwise(edges):
        past = np.flatnonzero(known & (time < begin))
        span = np.flatnonzero(known & (time >= begin) & (time < end))
        if any((roles.codes[past] == code).sum() < LATER.fewest.value for code in classes):
            continue
        unlabeled = span[roles.codes[span] < 0]
        needs = [*classes, *([-1] if roles.n_unlabeled else [])]
        if any(not (roles.codes[rows] == code).any() for code in needs for rows in (past, span)):
            continue
        step = -(-len(unlabeled) // _MOST_UNLABELED) or 1
        splits.append((past, np.union1d(span[roles.codes[span] >= 0], unlabeled[::step])))
    return splits


def timed_findings(
    ranker: Any,
    X: Any,
    rows: StudyRows,
    column: str,
    shuffled: AUCFinding | None,
    settings: Any,
) -> Timed:
    """AUC on later rows beside the shuffled one, the share of positives over time, and a verdict.

    A model of the past has the members and weights that need no held-out rows.
    """
    assert rows.time is not None
    splits = past_to_future(rows.time, rows.roles)
    if not splits:
        return Timed(
            column,
            None,
            [],
            f"By '{column}' no later rows can be judged: too few labelled rows of each class come "
            "before others. Believe the shuffled AUC only if the table does not change over time.",
        )
    model = clone(ranker)
    if isinstance(model, AutoAUCClassifier):
        model.set_params(cv=0, rivals=False)
    held = cross_fit([model], X, rows.roles, splits, groups=rows.groups)
    auc, spans = auc_finding(posterior_of(held, rows.roles, settings), settings.level), []
    for k in range(held.n_folds):
        span = held.of_fold(k)
        share = None
        if rows.roles.n_unlabeled:
            prior = posterior_of(span, rows.roles, settings).class_prior()
            share = [prior.value, prior.low, prior.high]
        first = int(span.rows[np.argmin(rows.time[span.rows])])
        begins = str(rows.spare.column(column)[first].as_py())  # as the table holds it
        positive, negative = (int((span.codes == code).sum()) for code in (1, 0))
        spans.append(Span(begins, positive, negative, share))
    return Timed(column, auc, spans, _verdict(auc, shuffled))


def _verdict(timed: AUCFinding, shuffled: AUCFinding | None) -> str:
    later = f"Judged on later rows the AUC is {_limits(timed)}"
    if shuffled is None:
        return f"{later}: believe it."
    beside = f"on shuffled rows {_limits(shuffled)}"
    if timed.low <= shuffled.value <= timed.high:
        return (
            f"{later}, {beside}: no change over time can be seen, and both may be believed; the "
            "shuffled one rests on more rows."
        )
    return f"{later}, {beside}: the table changes over time. For rows to come believe the first."


def _limits(auc: AUCFinding) -> str:
    return f"{auc.value:.3f} ({auc.low:.3f} to {auc.high:.3f})"
