"""The unlabelled rows to look at next: who they are, how they score, and what speaks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc.io import TableModel
from pnuauc.labels import Roles

__all__ = ["top_rows"]

#: Values of a reviewed row that are shown beside its score; the others on demand.
_SHOWN_COLUMNS = 6
#: Columns whose values are listed with a row.
_LISTED_COLUMNS = 200
#: Columns that are tried as reasons, most important ones first.
_TRIED_COLUMNS = 60
_REASONS = 3


def top_rows(
    model: TableModel,
    X: Any,
    table: Any,
    ids: Any,
    roles: Roles,
    n_top: int,
    important: list[str] | None = None,
    *,
    numbers: NDArray[np.int64] | None = None,
    usual: Any = None,
) -> dict[str, Any]:
    """The unlabelled rows with the highest scores, to review next.

    ``numbers`` are the row numbers to show, from 0, shape (n,); by default the places in the
    table. ``usual`` are encoded rows whose means stand for a column that says nothing; by default
    the first unlabelled ones.

    Returns
    -------
    dict
        ``header`` and ``rows`` (row number, ids, score, percentile, a few columns), ``ids`` (names
        of the id columns, whose cells are the text that the table holds), ``columns`` and
        ``cells`` (all columns of each row, as text), ``probability`` (where the model has it) and
        ``reasons`` (columns whose value puts the row up, the strongest first). ``places`` are the
        places of the rows in the table, and no part of the findings.
    """
    rows = roles.unlabeled
    if not len(rows) or n_top < 1:
        nothing = ("header", "rows", "ids", "columns", "cells", "reasons", "places")
        return {key: [] for key in nothing}
    parts = np.array_split(rows, -(-len(rows) // 65_536))
    scores = np.concatenate([model.score_encoded(_rows(X, part)) for part in parts])
    order = np.argsort(-scores, kind="stable")[:n_top]
    chosen, best = rows[order], scores[order]
    percent = model.percentile(best)
    names = [] if ids is None else ids.column_names
    named = [[_text(v) for v in ids.column(name).take(chosen).to_pylist()] for name in names]
    used = [c.name for c in model.encoder.columns_]
    values = (
        _sparse_cells(table, chosen)
        if model.encoder.is_sparse
        else {name: table.column(name).take(chosen).to_pylist() for name in used[:_LISTED_COLUMNS]}
    )
    listed = list(values)
    shown = listed[:_SHOWN_COLUMNS]
    lines = [
        [
            int(row if numbers is None else numbers[row]) + 1,
            *(column[i] for column in named),
            float(best[i]),
            float(percent[i]),
            *(_cell(values[name][i]) for name in shown),
        ]
        for i, row in enumerate(chosen)
    ]
    usual = _rows(X, rows[:5000]) if usual is None else usual
    reasons = _reasons(model, _rows(X, chosen), usual, important or used)
    return {
        "header": ["row", *names, "score", "percentile", *shown],
        "rows": lines,
        "ids": list(names),
        "columns": listed,
        "n_columns": len(used) or len(listed),
        "cells": [[_text(values[name][i]) for name in listed] for i in range(len(chosen))],
        "probability": _probability(model, best),
        "reasons": [_spelled(found, values, i) for i, found in enumerate(reasons)],
        "places": chosen,
    }


def _sparse_cells(matrix: Any, rows: NDArray[np.intp]) -> dict[str, list[float]]:
    """Features that the rows have, those that most of them have first, with their values."""
    part = matrix[rows].tocsc()
    counts = np.diff(part.indptr)
    most = np.argsort(-counts, kind="stable")[: min(_LISTED_COLUMNS, np.count_nonzero(counts))]
    return {f"feature {j + 1}": part[:, [j]].toarray().ravel().tolist() for j in most}


def _rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a matrix, or of one matrix a view."""
    return {view: part[rows] for view, part in X.items()} if isinstance(X, dict) else X[rows]


def _probability(model: TableModel, scores: NDArray[np.float64]) -> list[float] | None:
    known = getattr(model, "probability", None)
    chances = None if known is None else known(scores)
    return None if chances is None else [float(p) for p in chances]


def _reasons(model: TableModel, X: Any, reference: Any, names: list[str]) -> list[list[str]]:
    """By row the columns without whose value it would score lower, the strongest first.

    A column's encoded values are replaced by their means over ``reference``, and the fall of the
    score is what the value adds. A fall below a tenth of the largest one is no reason.
    """
    views = X if isinstance(X, dict) else {model.scorer.views[0]: X}
    means = reference if isinstance(reference, dict) else {next(iter(views)): reference}
    base = model.score_encoded(X)
    falls, tried = [], names[:_TRIED_COLUMNS]
    if model.encoder.is_sparse:
        groups = {view: {name: [int(name.split()[-1]) - 1] for name in tried} for view in views}
    else:
        groups = {view: model.encoder.groups(view) for view in views}
    for name in tried:
        changed = {
            view: _replaced(rows, groups[view][name], means[view]) for view, rows in views.items()
        }
        whole = changed if isinstance(X, dict) else next(iter(changed.values()))
        falls.append(base - model.score_encoded(whole))
    if not falls:
        return [[] for _ in base]
    table = np.column_stack(falls)
    order = np.argsort(-table, axis=1)[:, :_REASONS]
    least = 0.1 * table.max(axis=1)
    return [
        [tried[j] for j in order[i] if table[i, j] > 0 and table[i, j] >= least[i]]
        for i in range(len(base))
    ]


def _replaced(rows: Any, columns: list[int], reference: Any) -> Any:
    """The rows with some columns at their mean over the reference rows; gaps do not count."""
    if sparse.issparse(rows):
        out = rows.tolil(copy=True)
        out[:, columns] = 0.0  # nearly all cells are: as good as the mean
        return out.tocsr()
    out = np.array(rows)
    known = np.asarray(reference[:, columns], dtype=np.float64)
    counts = np.maximum((~np.isnan(known)).sum(axis=0), 1)
    out[:, columns] = np.nansum(known, axis=0) / counts
    return out


def _spelled(names: list[str], values: dict[str, list[Any]], i: int) -> str:
    """Columns with their values: what speaks for the row."""
    parts = []
    for name in names:
        value = _text(values[name][i]) if name in values else None
        parts.append(name if value is None else f"{name} = {value or '(missing)'}")
    return ", ".join(parts)


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)[:60]


def _text(value: Any) -> str:
    """A cell as the table holds it."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
