"""The unlabelled rows to look at next: their ids, scores and reasons."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats
from pnuauc.committee import Reason
from pnuauc.io.write import CHANCE_COLUMNS
from pnuauc.model.model import TableModel, cell_of, cell_text, spell_reasons
from pnuauc.study.findings import TopRows
from pnuauc.study.rows import StudyRows

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
    rows: StudyRows,
    n_top: int,
    important: list[str] | None = None,
    *,
    scores: Floats | None = None,
) -> TopRows:
    """The unlabelled rows with the highest scores, to review next.

    ``important`` columns are tried as reasons, best first; by default those of the table.
    ``scores`` are those of the unlabelled rows, where they are known.
    """
    unlabeled, table = rows.roles.unlabeled, rows.table
    if not len(unlabeled) or n_top < 1:
        return TopRows()
    if scores is None:
        parts = np.array_split(unlabeled, -(-len(unlabeled) // 65_536))
        scores = np.concatenate([model.score_encoded(X[part]) for part in parts])
    order = np.argsort(-scores, kind="stable")[:n_top]
    chosen, best = unlabeled[order], scores[order]
    ids = {} if rows.ids is None else {n: rows.ids.column(n) for n in rows.ids.column_names}
    named = [map(cell_text, cells.take(chosen).to_pylist()) for cells in ids.values()]
    used = [column.name for column in model.encoder.columns_]
    if model.encoder.is_sparse:
        cells, values = None, _sparse_cells(table, chosen)
    else:
        cells = table.take(chosen)
        values = {name: cells.column(name).to_pylist() for name in used[:_LISTED_COLUMNS]}
    shown = list(values)[:_SHOWN_COLUMNS]
    tried = (important or used)[:_TRIED_COLUMNS]
    reasons = [_speaks(found) for found in model.reasons(X[chosen], len(tried), tried, cells)]
    columns = [
        (rows.numbers[chosen] + 1).tolist(),
        *named,
        best.tolist(),
        model.percentile(best).tolist(),
        *([_cell(value) for value in values[name]] for name in shown),
    ]
    found = TopRows(
        ["row", *ids, "score", "percentile", *shown],
        [list(line) for line in zip(*columns, strict=True)],
        list(ids),
        list(values),
        [[cell_text(value) for value in line] for line in zip(*values.values(), strict=True)],
        [
            spell_reasons(found, partial(cell_of, table, int(row)) if used else None)
            for row, found in zip(chosen, reasons, strict=True)
        ],
        [[word for reason in found for word in reason.words] for found in reasons],
    )
    found.n_columns = len(used) or len(values)
    chances = model.probability(best)
    for j, name in enumerate(CHANCE_COLUMNS):
        setattr(found, name, None if chances is None else chances[:, j].tolist())
    return found


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
