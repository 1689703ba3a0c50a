"""The unlabelled rows to look at next: their ids, scores and reasons."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.committee import Reason
from pnuauc.io.write import CHANCE_COLUMNS
from pnuauc.labels import Roles
from pnuauc.model.model import TableModel, cell_of, cell_text, spell_reasons

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
    scores: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    """The unlabelled rows with the highest scores, to review next.

    ``numbers`` are the row numbers to show, from 0, shape (n,); by default the places in the
    table. ``scores`` are those of the unlabelled rows, where they are known.

    Returns
    -------
    dict
        ``header`` and ``rows`` (row number, ids, score, percentile, a few columns), ``ids`` (names
        of the id columns, whose cells are the text that the table holds), ``columns`` and
        ``cells`` (all columns of each row, as text), ``probability`` with the ends of its 90%
        interval (where the model has it) and ``reasons`` (columns whose value puts the row up, the
        strongest first) and ``marks`` (the words of texts among these reasons).
    """
    rows = roles.unlabeled
    if not len(rows) or n_top < 1:
        nothing = ("header", "rows", "ids", "columns", "cells", "reasons", "marks")
        return {key: [] for key in nothing}
    if scores is None:
        parts = np.array_split(rows, -(-len(rows) // 65_536))
        scores = np.concatenate([model.score_encoded(X[part]) for part in parts])
    order = np.argsort(-scores, kind="stable")[:n_top]
    chosen, best = rows[order], scores[order]
    percent = model.percentile(best)
    names = [] if ids is None else ids.column_names
    named = [[cell_text(v) for v in ids.column(name).take(chosen).to_pylist()] for name in names]
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
    tried = (important or used)[:_TRIED_COLUMNS]
    cells = None if model.encoder.is_sparse else table.take(chosen)
    reasons = [_speaks(found) for found in model.reasons(X[chosen], len(tried), tried, cells)]
    chances = model.probability(best)
    return {
        "header": ["row", *names, "score", "percentile", *shown],
        "rows": lines,
        "ids": list(names),
        "columns": listed,
        "n_columns": len(used) or len(listed),
        "cells": [[cell_text(values[name][i]) for name in listed] for i in range(len(chosen))],
        **{
            name: None if chances is None else chances[:, j].tolist()
            for j, name in enumerate(CHANCE_COLUMNS)
        },
        "reasons": [
            spell_reasons(found, partial(cell_of, table, int(row)) if used else None)
            for row, found in zip(chosen, reasons, strict=True)
        ],
        "marks": [[word for reason in found for word in reason.words] for found in reasons],
    }


def _sparse_cells(matrix: Any, rows: NDArray[np.intp]) -> dict[str, list[float]]:
    """Features that the rows have, those that most of them have first, with their values."""
    part = matrix[rows].tocsc()
    counts = np.diff(part.indptr)
    most = np.argsort(-counts, kind="stable")[: min(_LISTED_COLUMNS, np.count_nonzero(counts))]
    return {f"feature {j + 1}": part[:, [j]].toarray().ravel().tolist() for j in most}


def _speaks(reasons: list[Reason]) -> list[Reason]:
    """What puts a row up; an effect below a tenth of the largest is no reason."""
    up = [reason for reason in reasons if reason.effect > 0]
    return [reason for reason in up if reason.effect >= 0.1 * up[0].effect][:_REASONS]


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)[:60]
