"""Score a file batch by batch: read, encode, score, write; memory does not grow with rows."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pnuauc.exceptions import InputError
from pnuauc.io._extras import need
from pnuauc.io._model import TableModel
from pnuauc.io._tables import ReadOptions, column_names, detect_format, iter_batches
from pnuauc.io._writing import TableWriter, atomic_file, output_format

__all__ = ["ScoreSummary", "score_file"]

#: Batches that may wait between reading and scoring.
_AHEAD = 2


@dataclass
class ScoreSummary:
    """What happened while scoring: rows, rows called positive, categories never seen before."""

    n_rows: int = 0
    n_positive: int = 0
    new_categories: dict[str, set[str]] = field(default_factory=dict)
    kept: tuple[str, ...] = ()

    def add(self, scores: Any, fresh: dict[str, set[str]]) -> None:
        self.n_rows += len(scores)
        self.n_positive += int(np.count_nonzero(scores > 0))
        for name, levels in fresh.items():
            known = self.new_categories.setdefault(name, set())
            if len(known) < 100:
                known |= levels


def score_file(
    model: TableModel,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    keep: Sequence[str] | None = None,
    options: ReadOptions | None = None,
    n_threads: int = 1,
    tell: Callable[[int], None] | None = None,
) -> ScoreSummary:
    """Write ``target`` with the kept columns, ``score`` and ``percentile`` of every row, in order.

    Parameters
    ----------
    keep : column names to copy; None copies the model's id and label columns that are there, or,
        if none is, the row number (from 1) as ``row``
    n_threads : threads that score
    tell : called with the number of rows done
    """
    output_format(target)
    if (detect_format(source) == "libsvm") != model.encoder.is_sparse:
        known = "a LIBSVM file" if model.encoder.is_sparse else "a table with named columns"
        raise InputError(f"The model was fitted on {known}; '{source}' is not one.")
    kept, columns = _columns_to_read(model, source, keep, options)
    summary = ScoreSummary(kept=tuple(kept))
    # of CSV only features that are numbers are parsed: an id 007 must not come back as 7, and a
    # label column that starts with empty cells has no type to infer
    floats = [c.name for c in model.encoder.columns_ if c.kind == "number" and not c.lenient]
    texts = [name for name in columns or [] if name not in floats]
    width = model.encoder.n_features_in_ if model.encoder.is_sparse else None
    batches = iter_batches(source, columns, options, text=texts, floats=floats, n_features=width)
    with atomic_file(target) as stream:
        writer = TableWriter(stream, target)
        for batch in _read_ahead(batches):
            scores = _score_batch(model, batch, summary, n_threads)
            writer.write(_output(model, batch, scores, kept, summary.n_rows - len(scores)))
            if tell:
                tell(summary.n_rows)
        if summary.n_rows == 0:
            raise InputError(f"'{source}' has a header but no rows.")
        writer.close()
    return summary


def _columns_to_read(
    model: TableModel, source: Any, keep: Sequence[str] | None, options: ReadOptions | None
) -> tuple[list[str], list[str] | None]:
    """(columns to copy, columns to read); LIBSVM has neither."""
    if model.encoder.is_sparse:
        return [], None
    names = column_names(source, options)
    model.encoder.check_columns(names)
    if keep is None:
        roles = [*model.card.get("ids", []), model.card.get("label")]
        kept = [name for name in roles if name in names]
    else:
        kept = list(dict.fromkeys(keep))
        lacking = [name for name in kept if name not in names]
        if lacking:
            raise InputError(f"'{source}' has no column {lacking[0]!r} to keep.")
    clash = [name for name in kept if name in {"score", "percentile"}]
    if clash:
        raise InputError(
            f"'{source}' has a column {clash[0]!r}, the name of an output column; rename it."
        )
    return kept, list(dict.fromkeys([*kept, *(c.name for c in model.encoder.columns_)]))


def _score_batch(model: TableModel, batch: Any, summary: ScoreSummary, n_threads: int) -> Any:
    if model.encoder.is_sparse:
        X, fresh = model.encode(batch[0]), {}
    else:
        X = model.encode(batch, summary.n_rows)
        fresh = model.encoder.new_categories(batch)
    scores = model.score_encoded(X, n_threads)
    summary.add(scores, fresh)
    return scores


def _output(model: TableModel, batch: Any, scores: Any, kept: list[str], first: int) -> Any:
    pa = need("pyarrow")
    if kept:
        columns = {name: batch.column(name) for name in kept}
    else:
        columns = {"row": pa.array(np.arange(first + 1, first + 1 + len(scores)))}
    columns["score"] = pa.array(scores)
    columns["percentile"] = pa.array(np.round(model.percentile(scores), 3))
    return pa.RecordBatch.from_pydict(columns)


def _read_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """The same items, read by another thread while the caller works on the last one."""
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(_AHEAD)
    stopped = threading.Event()

    def put(item: tuple[str, Any]) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for batch in batches:
                if not put(("batch", batch)):
                    return
            put(("end", None))
        except BaseException as error:  # handed over and raised in the caller's thread
            put(("error", error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            kind, item = waiting.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield item
    finally:
        stopped.set()
        thread.join(timeout=5)
