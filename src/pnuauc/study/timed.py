"""The past judges nothing, the future does: AUC of models that are fitted to earlier rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from pnuauc._utils.arrays import Floats, Indices
from pnuauc.committee import AutoAUCClassifier
from pnuauc.evaluation.heldout import HeldOut, cross_fit
from pnuauc.labels import Roles
from pnuauc.prior import ClassPrior
from pnuauc.priors import read_prior
from pnuauc.priors.base import read_belief
from pnuauc.study.rows import StudyRows

__all__ = ["past_to_future", "timed_findings"]

#: Spans of time that are judged one after the other, each by a model of all rows before it, begin
#: at these shares of the labelled rows.
_BEGINS = (0.4, 0.6, 0.8)
#: Rows of each labelled class that a model of the past needs.
_FEWEST = 3
_MOST_UNLABELED = 5000


def past_to_future(time: Floats, roles: Roles) -> list[tuple[Indices, Indices]]:
    """(rows before, rows of the span) for each span that can be judged; NaN is no time."""
    known = np.isfinite(time)
    labeled = known & (roles.codes >= 0)
    classes = [code for code in (1, 0) if (roles.codes == code).any()]
    if not labeled.any():
        return []
    edges = [*np.unique(np.quantile(time[labeled], _BEGINS, method="higher")), np.inf]
    splits = []
    for begin, end in pairwise(edges):
        past = np.flatnonzero(known & (time < begin))
        span = np.flatnonzero(known & (time >= begin) & (time < end))
        if any((roles.codes[past] == code).sum() < _FEWEST for code in classes):
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
    shuffled: dict[str, Any] | None,
    settings: Any,
) -> dict[str, Any]:
    """AUC on later rows beside the shuffled one, the share of positives over time, and a verdict.

    A model of the past has the members and weights that need no held-out rows.
    """
    assert rows.time is not None
    splits = past_to_future(rows.time, rows.roles)
    found: dict[str, Any] = {"column": column, "auc": None, "spans": [], "believe": None}
    if not splits:
        found["believe"] = (
            f"By '{column}' no later rows can be judged: too few labelled rows of each class come "
            "before others. Believe the shuffled AUC only if the table does not change over time."
        )
        return found
    model = clone(ranker)
    if isinstance(model, AutoAUCClassifier):
        model.set_params(cv=0, rivals=False)
    held = cross_fit([model], X, rows.roles, splits, groups=rows.groups)
    whole = _posterior(held, rows.roles, settings)
    found["auc"] = {**whole.auc(settings.level)._asdict(), "level": settings.level}
    for k in range(held.n_folds):
        own = np.flatnonzero(held.fold == k)
        span = _posterior(_only(held, k), rows.roles, settings)
        share = span.class_prior() if rows.roles.n_unlabeled else None
        first = float(rows.time[held.rows[own]].min())
        found["spans"].append(
            {
                "begins": _spelled(first, rows, column),
                "positive": int((held.codes[own] == 1).sum()),
                "negative": int((held.codes[own] == 0).sum()),
                "share": None if share is None else [share.value, share.low, share.high],
            }
        )
    found["believe"] = _verdict(found["auc"], shuffled)
    return found


def _only(held: HeldOut, fold: int) -> HeldOut:
    """One fold alone, as fold 0."""
    own = held.fold == fold
    names = ("rows", "codes", "fold", "scores", "worth", "groups")
    parts = {name: getattr(held, name)[own] for name in names}
    return replace(
        held, **{**parts, "fold": np.zeros(own.sum(), dtype=int)}, reference=[held.reference[fold]]
    )


def _posterior(held: HeldOut, roles: Roles, settings: Any) -> Any:
    share = roles.n_positive / max(roles.n_positive + roles.n_negative, 1)
    known = read_prior(settings.prior) if roles.n_unlabeled else ClassPrior.known(share)
    belief = read_belief(settings.belief)
    ones = np.ones((held.n_folds, 1))
    return held.posterior(
        ones,
        known,
        (belief.a, belief.b),
        random_labels=settings.sampling == "random",
        seed=settings.random_state,
    )


def _spelled(value: float, rows: StudyRows, column: str) -> str:
    """The first cell of a span, as the table holds it."""
    row = int(np.flatnonzero(rows.time == value)[0])
    return str(rows.spare.column(column)[row].as_py())


def _verdict(timed: dict[str, Any], shuffled: dict[str, Any] | None) -> str:
    later = f"Judged on later rows the AUC is {_limits(timed)}"
    if shuffled is None:
        return f"{later}: believe it."
    beside = f"on shuffled rows {_limits(shuffled)}"
    if timed["low"] <= shuffled["value"] <= timed["high"]:
        return (
            f"{later}, {beside}: no change over time can be seen, and both may be believed; the "
            "shuffled one rests on more rows."
        )
    return f"{later}, {beside}: the table changes over time. For rows to come believe the first."


def _limits(auc: dict[str, Any]) -> str:
    return f"{auc['value']:.3f} ({auc['low']:.3f} to {auc['high']:.3f})"
