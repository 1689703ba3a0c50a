"""Score a file batch by batch: read, encode, score, write; memory does not grow with rows."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import IO, Any

import numpy as np

from pnuauc._utils.label_values import did_you_mean
from pnuauc.exceptions import InputError
from pnuauc.io.cells import is_text, pa, pc
from pnuauc.io.columns import cells_of
from pnuauc.io.formats import ReadOptions, find_source
from pnuauc.io.readers import iter_batches
from pnuauc.io.sources import Batch, FileSource
from pnuauc.io.write import (
    CHANCE_COLUMNS,
    SCORE_COLUMNS,
    TableWriter,
    atomic_file,
    count_formulas,
    output_format,
    without_formulas,
)
from pnuauc.model.compare import Comparison
from pnuauc.model.model import TableModel, cell_of, spell_reasons

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
        ``score``, ``percentile``, ``probability`` with its ends, and ``reasons``; ``id`` stands
        for the id columns, whatever their names; None takes all; of a table with the model's label
        column ``seen`` is always among them
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
    """What happened while scoring one table, or several.

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

    def add(self, scores: Any, fresh: dict[str, set[str]]) -> None:
        self.n_rows += len(scores)
        self.n_positive += int(np.count_nonzero(scores > 0))
        for name, levels in fresh.items():
            known = self.new_categories.setdefault(name, set())
            if len(known) < 100:
                known |= levels


@dataclass(frozen=True)
class _Rows:
    """A LIBSVM file to score, read as a source of tables is."""

    path: str | os.PathLike[str]
    options: ReadOptions | None
    n_features: int

    @property
    def name(self) -> str:
        return self.options.name if self.options and self.options.name else str(self.path)

    def batches(self) -> Iterator[Batch]:
        done = 0
        for pair in iter_batches(self.path, None, self.options, n_features=self.n_features):
            yield Batch(pair, self.name, done)
            done += pair[0].shape[0]


def score_file(
    model: TableModel,
    source: Any,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    choice: OutputChoice | None = None,
    options: ReadOptions | None = None,
    n_threads: int = 1,
    tell: Callable[[int], None] | None = None,
    summary: ScoreSummary | None = None,
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
    summary : of tables scored before, to go on with
    """
    choice = choice or OutputChoice()
    rows, kept, choice, numbered = _selected(
        model, _opened_rows(model, source, target, options), choice
    )
    summary = summary or ScoreSummary()
    summary.kept = summary.kept or tuple(kept)
    before = summary.n_rows
    reader = Comparison(model.encoder, model.scorer.views)
    with _opened(target, choice.strict) as (stream, path):
        sink = _Sink(TableWriter(stream, path), choice)
        for batch, name, first in _blocks(_read_ahead(rows.batches()), model):
            with cells_of(name):
                X, fresh, keys = reader.read(batch, name, first)
                scores = model.score_encoded(X, n_threads)
            summary.add(scores, fresh)
            copied = {name: batch.column(name) for name in kept}
            if numbered:
                done = summary.n_rows - before
                copied = {"row": pa.array(np.arange(done - len(scores) + 1, done + 1)), **copied}
            seen = None if model.seen is None else model.seen.find(keys)
            summary.n_seen += 0 if seen is None else int(seen[0].sum())
            output = _output(model, copied, scores, seen)
            if choice.reasons:
                chosen = _may_be_written(scores, choice)
                told = _reasons(model, X, batch, chosen, choice.reasons)
                output = output.take(chosen).append_column("reasons", told)
            sink.put(output)
            if tell:
                tell(summary.n_rows)
        if summary.n_rows == before:
            raise InputError(f"'{rows.name}' has a header but no rows.")
        _compare(reader.found(), summary, rows.name, choice.strict)
        summary.n_written += sink.close()
        summary.n_formulas += sink.n_formulas
    return summary


def _selected(
    model: TableModel, rows: Any, choice: OutputChoice
) -> tuple[Any, list[str], OutputChoice, bool]:
    """(the columns to read, those to copy, what is written in full, whether rows are numbered)."""
    kept: list[str] = []
    if not model.encoder.is_sparse:
        kept, columns = _columns_to_read(model, rows, choice)
        # of CSV only features that are plain numbers are parsed; all else comes as it is written
        plain = [
            c.name
            for c in model.encoder.columns_
            if c.kind == "number" and not c.lenient and not c.form and c.name not in kept
        ]
        floats = [n for n in plain if is_text(rows.schema.field(n).type)]
        files = isinstance(rows, FileSource)
        rows = rows.select(columns, floats) if files else rows.select(columns)
    ids = [name for name in model.card.get("ids", []) if name in kept] or ["row"]
    if choice.columns is not None:
        # "id" stands for whatever names the rows, unless there is a column of that name
        listed = [ids if name == "id" and name not in kept else [name] for name in choice.columns]
        labelled = model.encoder.is_sparse or model.card.get("label") in kept
        if model.seen is not None and labelled:
            # the fitted table, perhaps: its scores beside its labels must not be judged unmarked
            listed.append(["seen"])
        choice = replace(choice, columns=tuple(dict.fromkeys(chain.from_iterable(listed))))
    return rows, kept, choice, "row" in ids or "row" in (choice.columns or ())


def _compare(
    different: dict[str, list[str]], summary: ScoreSummary, name: str, strict: bool
) -> None:
    """Note which columns look different; refuse them where that was asked for."""
    if strict and different:
        raise InputError(
            f"'{name}' looks different from the table that was fitted: "
            f"{spell_differences(different)}. Nothing was written.",
            about="strict",
        )
    for column, said in different.items():
        known = summary.different.setdefault(column, [])
        known += [words for words in said if words not in known]


def _opened_rows(model: TableModel, source: Any, target: Any, options: ReadOptions | None) -> Any:
    """A source of batches, of a path too."""
    many = hasattr(source, "schema")
    named = not hasattr(target, "write")
    if named:
        output_format(target)
    if named and not many and os.path.exists(target) and os.path.samefile(source, target):
        raise InputError(f"'{target}' is the table itself; name another output.")
    found = source if many else find_source(source, options)
    if model.encoder.is_sparse == (many or found.kind != "libsvm"):
        known = "a LIBSVM file" if model.encoder.is_sparse else "a table with named columns"
        raise InputError(f"The model was fitted on {known}; '{found.name}' is not one.")
    if model.encoder.is_sparse:
        return _Rows(source, options, model.encoder.n_features_in_)
    return source if many else FileSource.open([source], options)


def _blocks(batches: Iterator[Batch], model: TableModel) -> Iterator[tuple[Any, str, int]]:
    """The batches, those of a wide model a few rows at a time: memory is bounded either way."""
    width = sum(model.encoder.encoding_.width(view) for view in model.scorer.views)
    step = max(1, _BLOCK_CELLS // width)
    for batch in batches:
        if isinstance(batch.table, tuple):  # sparse rows take what they hold
            yield batch.table, batch.name, batch.first_row
        else:
            for start in range(0, len(batch), step):
                yield batch.table.slice(start, step), batch.name, batch.first_row + start


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
    model: TableModel, rows: Any, choice: OutputChoice
) -> tuple[list[str], list[str]]:
    """(columns to copy, columns to read)."""
    names, name = rows.schema.names, rows.name
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
    """The same items, the next one read by another thread while the caller works on the last."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = pool.submit(next, batches, None)
            yield batch
