"""The unlabelled rows of highest score, wherever they are, and what there is to say of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats
from pnuauc._utils.label_values import RoleCounts
from pnuauc.committee import Reason
from pnuauc.io.cells import pa
from pnuauc.io.columns import cells_of
from pnuauc.io.draw import RowKeys
from pnuauc.io.labels import LabelReader
from pnuauc.io.sources import Batch
from pnuauc.io.write import CHANCE_COLUMNS
from pnuauc.labels import UNLABELED, Roles
from pnuauc.model.model import N_QUANTILES, TableModel, cell_of, cell_text, spell_reasons
from pnuauc.study.findings import TopRows
from pnuauc.study.rows import Origin, StudyRows, ids_of

#: Cells that all scores are counted in, of equal share among those of the draw.
_CELLS = 4096


#: Columns that leaders have beside those of the table.
_SCORE, _ORDER, _PART, _ROW = (f"\0{name}" for name in ("score", "order", "part", "row"))


@dataclass(frozen=True, eq=False)
class _Placed:
    """Scores of some rows: counts by cell, the lowest and highest, and the leaders.

    leaders : pyarrow.Table of unlabelled rows of highest score, highest first; equal scores in the
        order of their keys
    """

    counts: NDArray[np.int64]
    low: float
    high: float
    leaders: Any


def place_among_all(
    model: TableModel,
    origin: Origin,
    scores: Floats,
    share: float,
    n_top: int,
    ids: Sequence[str],
    counts: RoleCounts,
) -> StudyRows:
    """Set the model's threshold and quantiles by all unlabelled rows; give the highest of them.

    Parameters
    ----------
    scores : ndarray
        Of the unlabelled rows that were drawn: they say where to count finely. What is read off
        between two cells lies on a line, so that a quantile is off by 1/4096 of the rows at most.
    share : float
        Of the unlabelled rows that are to be called positive.
    counts : RoleCounts of the whole table
    """
    used = origin.everything(model.encoder).source.schema.names
    needed = [*used, *(name for name in ids if name not in used)]
    edges = _edges(scores)
    place = functools.partial(
        _place,
        model=replace(model, card={}),
        labels=origin.labels,
        keys=origin.keys,
        edges=edges,
        n_top=n_top,
    )
    join = functools.partial(_join, n_top=n_top)
    found: Any = origin.source.select(needed).reduce(place, join, None)
    points = np.concatenate([[found.low], edges, [found.high]])
    below = np.concatenate([[0.0], np.cumsum(found.counts) / found.counts.sum()])
    step = float(np.interp(1.0 - share, below, points))
    model.quantiles = np.interp(np.linspace(0, 1, N_QUANTILES), below, points) - step
    model.threshold += step
    leaders = found.leaders
    part, row = (leaders.column(name).to_numpy() for name in (_PART, _ROW))
    leaders = leaders.drop_columns([_SCORE, _ORDER, _PART, _ROW])
    roles = Roles(np.full(len(row), UNLABELED, dtype=np.int8))
    return StudyRows(leaders, roles, ids_of(leaders, ids, part, origin.source), row, counts)


def _edges(scores: Floats) -> Floats:
    """Points between neighbouring scores, evenly spaced in rank: no drawn row lies on one."""
    known = np.unique(scores)
    if len(known) < 2:
        return known
    ranked = np.sort(scores)
    wanted = ranked[np.linspace(0, len(ranked) - 1, _CELLS + 1).astype(np.intp)[1:-1]]
    place = np.unique(np.clip(np.searchsorted(known, wanted), 1, len(known) - 1))
    return np.asarray((known[place - 1] + known[place]) / 2)


def _place(
    batch: Batch, model: TableModel, labels: LabelReader, keys: RowKeys, edges: Floats, n_top: int
) -> _Placed | None:
    index = np.flatnonzero(labels(batch.table) == UNLABELED)
    if not len(index):
        return None
    with cells_of(batch.name):
        scores = model.score_encoded(model.encode(batch.table, batch.first_row))[index]
    cells = np.bincount(np.searchsorted(edges, scores, side="right"), minlength=len(edges) + 1)
    least = np.partition(scores, -n_top)[-n_top] if 0 < n_top < len(scores) else -np.inf
    first = scores >= least if n_top else np.zeros(len(scores), dtype=bool)
    best = index[first]
    table = batch.take(best)
    added = {
        _SCORE: scores[first],
        _ORDER: keys.order(table),
        _PART: np.full(len(best), batch.part, dtype=np.int64),
        _ROW: batch.first_row + best.astype(np.int64),
    }
    for name, values in added.items():
        table = table.append_column(name, pa.array(values))
    return _Placed(cells, float(scores.min()), float(scores.max()), _first(table, n_top))


def _first(table: Any, n: int) -> Any:
    return table.sort_by([(_SCORE, "descending"), (_ORDER, "ascending")]).slice(0, n)


def _join(a: _Placed | None, b: _Placed | None, n_top: int) -> _Placed | None:
    if a is None or b is None:
        return a if b is None else b
    both = pa.concat_tables([a.leaders, b.leaders]).unify_dictionaries()
    leaders = _first(both, n_top)
    return _Placed(a.counts + b.counts, min(a.low, b.low), max(a.high, b.high), leaders)


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
    tried = (important or used)[:_TRIED_COLUMNS]
    reasons = [_speaks(found) for found in model.reasons(X[chosen], len(tried), tried, cells)]
    columns = [
        (rows.numbers[chosen] + 1).tolist(),
        *named,
        best.tolist(),
        model.percentile(best).tolist(),
    ]
    found = TopRows(
        ["row", *ids, "score", "percentile"],
        [list(line) for line in zip(*columns, strict=True)],
        list(ids),
        list(values),
        [[cell_text(value) for value in line] for line in zip(*values.values(), strict=True)],
        [
            spell_reasons(found, functools.partial(cell_of, table, int(row)) if used else None)
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
