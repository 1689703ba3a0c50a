"""Score a file batch by batch: read, encode, score, write; memory does not grow with rows."""

from __future__ import annotations

import os
import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any

import numpy as np

from pnuauc._utils.label_values import did_you_mean
from pnuauc.exceptions import InputError
from pnuauc.io.cells import pa, pc
from pnuauc.io.columns import cells_of
from pnuauc.io.encode import encode_cells
from pnuauc.io.readers import ReadOptions, column_names, detect_format, iter_batches
from pnuauc.io.write import (
    CHANCE_COLUMNS,
    SCORE_COLUMNS,
    TableWriter,
    atomic_file,
    count_formulas,
    output_format,
    without_formulas,
)
from pnuauc.model.compare import Comparison, in_forms_of
from pnuauc.model.model import TableModel, cell_of, spell_reasons

__all__ = ["OutputChoice", "ScoreSummary", "score_file", "spell_differences"]

#: Batches that may wait between reading and scoring.
_AHEAD = 2
#: Cells (64 MB) that are encoded at a time, however wide the model is.
_BLOCK_CELLS = 1 << 23
#: Columns that scoring adds.
_ADDED = ("row", "seen", *SCORE_COLUMNS, *CHANCE_COLUMNS, "reasons")


@dataclass(frozen=True)
class OutputChoice:
    """Which rows and columns of the scores are written, and in which order.

    Attributes
    ----------
    keep : column names to copy, beside the model's id and label columns that are there; where
        there is no id, the row number (from 1) is written as ``row``
    columns : names of the output's columns in order, among those of the table, ``row``, ``seen``,
        ``score``, ``percentile``, ``probability`` with its ends, and ``reasons``; None takes all;
        of a table with the model's label column ``seen`` is always among them
    sort : whether the highest scores come first; then what is written is held in memory
    top : write only this many rows, the highest scores first
    threshold : only rows that score at least this
    min_probability : only rows that are positive with at least this probability
    reasons : number of columns that move the score most to name with every written row;
        costs as many scorings as the table has columns
    strict : whether a table with a column that looks different from the fitted one is refused;
        then nothing is written
    spreadsheet : whether text in CSV and TSV that a spreadsheet would run as a formula gets an
        apostrophe in front; ids are changed by it, so they no longer join
    """

    keep: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    sort: bool = False
    top: int | None = None
    threshold: float | None = None
    spreadsheet: bool = False
    reasons: int = 0
    strict: bool = False
    min_probability: float | None = None


@dataclass
class ScoreSummary:
    """What happened while scoring.

    ``different`` says by column how it looks different from the table that was fitted.
    """

    n_rows: int = 0
    n_positive: int = 0
    n_written: int = 0
    n_formulas: int = 0
    n_seen: int = 0
    new_categories: dict[str, set[str]] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    different: dict[str, list[str]] = field(default_factory=dict)

    def joined(self, other: ScoreSummary) -> ScoreSummary:
        """The summary of both."""
        counts = ("n_rows", "n_positive", "n_written", "n_formulas", "n_seen")
        fresh = {name: set(levels) for name, levels in self.new_categories.items()}
        for name, levels in other.new_categories.items():
            fresh.setdefault(name, set()).update(levels)
        sums = {name: getattr(self, name) + getattr(other, name) for name in counts}
        different = {name: list(said) for name, said in self.different.items()}
        for name, said in other.different.items():
            different[name] = list(dict.fromkeys([*different.get(name, []), *said]))
        return ScoreSummary(
            **sums, new_categories=fresh, kept=self.kept or other.kept, different=different
        )

    def add(self, scores: Any, fresh: dict[str, set[str]]) -> None:
        self.n_rows += len(scores)
        self.n_positive += int(np.count_nonzero(scores > 0))
        for name, levels in fresh.items():
            known = self.new_categories.setdefault(name, set())
            if len(known) < 100:
                known |= levels


@dataclass(frozen=True)
class _Path:
    """One file to score."""

    path: str | os.PathLike[str]
    options: ReadOptions | None

    @property
    def name(self) -> str:
        return self.options.name if self.options and self.options.name else str(self.path)

    @property
    def kind(self) -> str:
        return detect_format(self.path, self.options)

    def names(self) -> list[str]:
        return column_names(self.path, self.options)

    def batches(
        self, model: TableModel, columns: Sequence[str] | None, kept: Sequence[str]
    ) -> Iterator[tuple[Any, str, int]]:
        # of CSV only features that are plain numbers are parsed; all else comes as it is written
        floats = [
            c.name
            for c in model.encoder.columns_
            if c.kind == "number" and not c.lenient and not c.form and c.name not in kept
        ]
        width = model.encoder.n_features_in_ if model.encoder.is_sparse else None
        done = 0
        for batch in iter_batches(
            self.path, columns, self.options, floats=floats, n_features=width
        ):
            yield batch, self.name, done
            done += batch[0].shape[0] if isinstance(batch, tuple) else batch.num_rows


@dataclass(frozen=True)
class _Source:
    """A table in several files to score (see :mod:`pnuauc.io.sources`)."""

    source: Any
    kind = "files"

    @property
    def name(self) -> str:
        return str(self.source.name)

    def names(self) -> list[str]:
        return list(self.source.schema.names)

    def batches(
        self, model: TableModel, columns: Sequence[str] | None, kept: Sequence[str]
    ) -> Iterator[tuple[Any, str, int]]:
        for batch in self.source.select(columns).batches():
            yield batch.table, batch.name, batch.first_row


def score_file(
    model: TableModel,
    source: Any,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    choice: OutputChoice | None = None,
    options: ReadOptions | None = None,
    n_threads: int = 1,
    tell: Callable[[int], None] | None = None,
) -> ScoreSummary:
    """Write ``target`` with the kept columns, ``score`` and ``percentile`` of every row, in order.

    A model that knows probabilities adds the column ``probability`` and the ends of its 90%
    interval, ``probability_low`` and ``probability_high``.

    Parameters
    ----------
    source : a path, or a table in files (:mod:`pnuauc.io.sources`)
    target : a path, or a binary stream that gets CSV
    choice : which rows and columns, in which order
    n_threads : threads that score
    tell : called with the number of rows done
    """
    choice = choice or OutputChoice()
    rows = _Source(source) if hasattr(source, "schema") else _Path(source, options)
    if not hasattr(target, "write"):
        output_format(target)
        if isinstance(rows, _Path) and os.path.exists(target) and os.path.samefile(source, target):
            raise InputError(f"'{target}' is the table itself; name another output.")
    if (rows.kind == "libsvm") != model.encoder.is_sparse:
        known = "a LIBSVM file" if model.encoder.is_sparse else "a table with named columns"
        raise InputError(f"The model was fitted on {known}; '{rows.name}' is not one.")
    kept, columns = _columns_to_read(model, rows, choice)
    listed = choice.columns
    if listed is not None and model.seen is not None and model.card.get("label") in kept:
        # the fitted table, perhaps: its scores beside its labels must not be judged unmarked
        choice = replace(choice, columns=tuple(dict.fromkeys([*listed, "seen"])))
    numbered = not set(kept) & set(model.card.get("ids", [])) or "row" in (choice.columns or ())
    summary = ScoreSummary(kept=tuple(kept))
    reader = _Reader(model)
    with _opened(target, choice.strict) as (stream, path):
        sink = _Sink(TableWriter(stream, path), choice)
        # rows of these formats have types of their own, and one output column has one
        as_text = rows.kind in {"jsonl", "excel"}
        for batch, name, first in _blocks(_read_ahead(rows.batches(model, columns, kept)), model):
            with cells_of(name):
                X, fresh = reader.read(batch, name, first)
                scores = model.score_encoded(X, n_threads)
            summary.add(scores, fresh)
            copied = {name: batch.column(name) for name in kept}
            if as_text:
                copied = {name: values.cast("string") for name, values in copied.items()}
            if numbered:
                done = summary.n_rows
                copied = {"row": pa.array(np.arange(done - len(scores) + 1, done + 1)), **copied}
            seen = None if model.encoder.is_sparse else model.find_seen(batch)
            summary.n_seen += 0 if seen is None else int(seen[0].sum())
            output = _output(model, copied, scores, seen)
            if choice.reasons:
                chosen = _may_be_written(scores, choice)
                told = _reasons(model, X, batch, chosen, choice.reasons)
                output = output.take(chosen).append_column("reasons", told)
            sink.put(output)
            if tell:
                tell(summary.n_rows)
        if summary.n_rows == 0:
            raise InputError(f"'{rows.name}' has a header but no rows.")
        summary.different = reader.different()
        if choice.strict and summary.different:
            raise InputError(
                f"'{rows.name}' looks different from the table that was fitted: "
                f"{spell_differences(summary.different)}. Nothing was written.",
                about="strict",
            )
        summary.n_written = sink.close()
        summary.n_formulas = sink.n_formulas
    return summary


def _blocks(batches: Iterator[Any], model: TableModel) -> Iterator[tuple[Any, str, int]]:
    """The batches, those of a wide model a few rows at a time: memory is bounded either way."""
    width = sum(model.encoder.encoding_.width(view) for view in model.scorer.views)
    step = max(1, _BLOCK_CELLS // width)
    for batch, name, first in batches:
        if isinstance(batch, tuple):  # sparse rows take what they hold
            yield batch, name, first
        else:
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step), name, first + start


@contextmanager
def _opened(target: Any, strict: bool) -> Iterator[tuple[Any, Any]]:
    """(stream, path that says the format); a path's file appears only when it is complete."""
    if not hasattr(target, "write"):
        with atomic_file(target) as stream:
            yield stream, target
    elif strict:  # nothing is handed on of a table that may be refused at its end
        with tempfile.TemporaryFile() as stream:
            yield stream, "scores.csv"
            stream.seek(0)
            shutil.copyfileobj(stream, target)
    else:
        yield target, "scores.csv"
    if hasattr(target, "flush"):
        target.flush()


class _Reader:
    """Batches -> encoded rows, each file in its own way of writing; remembers what is strange."""

    def __init__(self, model: TableModel) -> None:
        self.model = model
        self._seen: tuple[str, Any] | None = None
        self._encoder = model.encoder
        self._compared = Comparison()

    def read(self, batch: Any, name: str, first: int) -> tuple[Any, dict[str, set[str]]]:
        """(what the scorer reads, categories never seen)."""
        views = self.model.scorer.views
        if self.model.encoder.is_sparse:
            return self.model.encoder.encode(batch[0], views=views), {}
        if self._seen != (name, batch.schema):
            self._seen = (name, batch.schema)
            self._encoder, told = in_forms_of(self.model.encoder, batch)
            self._compared.forms |= told
        encoding: Any = self._encoder.encoding_
        cells = encoding.read(batch, first)
        self._compared.add(encoding, cells)
        return encode_cells(self._encoder, cells, views), cells.fresh

    def different(self) -> dict[str, list[str]]:
        encoding: Any = self.model.encoder.encoding_
        return {} if encoding.is_sparse else self._compared.found(encoding)


def spell_differences(different: dict[str, list[str]]) -> str:
    """The columns that look different, and how: 'rate' (12% missing, 1% when fitted), ..."""
    return "; ".join(f"'{name}' ({', '.join(said)})" for name, said in different.items())


class _Sink:
    """Chooses rows and columns and writes them, at once or, if they are sorted, at the end."""

    def __init__(self, writer: TableWriter, choice: OutputChoice) -> None:
        self.writer, self.choice = writer, choice
        self.waits = choice.sort or choice.top is not None
        self._waiting: list[Any] = []
        self._n_waiting = self._n_written = 0
        self.n_formulas = 0

    def put(self, batch: Any) -> None:
        if self.choice.threshold is not None:
            batch = batch.filter(pc.greater_equal(batch.column("score"), self.choice.threshold))
        if (least := self.choice.min_probability) is not None:
            if "probability" not in batch.schema.names:
                raise InputError(
                    "This model states no probabilities (its card says why: pnuauc inspect); "
                    "choose rows by their number or their score."
                )
            batch = batch.filter(pc.greater_equal(batch.column("probability"), least))
        if not self.waits:
            self._write(batch)
            return
        self._waiting.append(batch)
        self._n_waiting += batch.num_rows
        top = self.choice.top
        if top is not None and self._n_waiting > max(2 * top, 100_000):
            self._waiting = self._best().to_batches()
            self._n_waiting = sum(part.num_rows for part in self._waiting)

    def _best(self) -> Any:
        """The waiting rows, highest score first, at most ``top``; ties in the order of the file."""
        table = pa.Table.from_batches(self._waiting)
        scores = table.column("score").to_numpy()
        return table.take(np.argsort(-scores, kind="stable")[: self.choice.top])

    def _write(self, batch: Any) -> None:
        columns = self.choice.columns
        if columns is not None:
            lacking = [name for name in columns if name not in batch.schema.names]
            if lacking:
                names = batch.schema.names
                raise InputError(
                    f"There is no output column {lacking[0]!r}{did_you_mean(lacking[0], names)}; "
                    f"there are {', '.join(map(repr, names))}."
                )
            batch = batch.select(list(columns))
        if self.writer.kind in {"csv", "tsv"}:
            if self.choice.spreadsheet:
                batch = without_formulas(batch)
            else:
                self.n_formulas += count_formulas(batch)
        self.writer.write(batch)
        self._n_written += batch.num_rows

    def close(self) -> int:
        if self.waits and self._waiting:
            best = self._best().combine_chunks()
            for batch in best.to_batches() or [self._waiting[0].slice(0, 0)]:
                self._write(batch)
        self.writer.close()
        return self._n_written


def _columns_to_read(
    model: TableModel, rows: _Path | _Source, choice: OutputChoice
) -> tuple[list[str], list[str] | None]:
    """(columns to copy, columns to read); LIBSVM has neither."""
    if model.encoder.is_sparse:
        return [], None
    names, name = rows.names(), rows.name
    model.encoder.check_columns(names)
    there = set(names)
    lacking = next((column for column in choice.keep or () if column not in there), None)
    if lacking is not None:
        near = did_you_mean(lacking, names)
        raise InputError(f"'{name}' has no column {lacking!r} to keep{near}.")
    roles = [*model.card.get("ids", []), model.card.get("label")]
    listed = [column for column in choice.columns or () if column not in _ADDED]
    asked = [*roles, *(choice.keep or ()), *listed]
    kept = [column for column in dict.fromkeys(asked) if column in there]
    clash = [column for column in kept if column in _ADDED]
    if clash:
        raise InputError(
            f"'{name}' has a column {clash[0]!r}, the name of an output column; rename it."
        )
    return kept, list(dict.fromkeys([*kept, *(c.name for c in model.encoder.columns_)]))


def _output(model: TableModel, copied: dict[str, Any], scores: Any, seen: Any = None) -> Any:
    """The columns of a batch; rows labelled at fitting have the probability of their held-out score
    (none, where they were not held out): their own is that of a row whose label is known.
    """
    columns = dict(copied)
    if seen is not None:
        columns["seen"] = pa.array(seen[0])
    columns["score"] = pa.array(scores)
    columns["percentile"] = pa.array(np.round(model.percentile(scores), 3))
    chances = model.probability(scores)
    if chances is not None:
        if seen is not None and seen[0].any():
            chances[seen[0]] = np.nan
            known = seen[0] & np.isfinite(seen[1])
            if known.any():
                chances[known] = model.probability(seen[1][known])
        for j, name in enumerate(CHANCE_COLUMNS):
            columns[name] = pa.array(chances[:, j], from_pandas=True)
    return pa.RecordBatch.from_pydict(columns)


def _may_be_written(scores: Any, choice: OutputChoice) -> Any:
    """Row numbers in the batch, ascending, without those that the choice rules out already."""
    rows = np.arange(len(scores))
    if choice.threshold is not None:
        rows = rows[scores >= choice.threshold]
    if choice.top is not None:
        rows = np.sort(rows[np.argsort(-scores[rows], kind="stable")[: choice.top]])
    return rows


def _reasons(model: TableModel, X: Any, batch: Any, rows: Any, n_reasons: int) -> Any:
    """What moves the scores of these rows of the batch, as a column of text."""
    cells = None if model.encoder.is_sparse else batch.take(pa.array(rows))
    found = model.reasons(X[rows], n_reasons, table=cells) if len(rows) else []
    told = []
    for i, reasons in zip(rows, found, strict=True):
        named = None if model.encoder.is_sparse else partial(cell_of, batch, int(i))
        told.append(spell_reasons([r for r in reasons if r.effect], named))
    return pa.array(told, "string")


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
