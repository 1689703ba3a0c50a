"""``pnuauc score``: one table into one file, or many files into one or into a folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pnuauc._cli._console import Voice
from pnuauc._cli._outputs import check_outputs
from pnuauc._cli._tables import (
    GivenTable,
    beside,
    existing_model,
    given_tables,
    n_threads,
    scored_files,
)
from pnuauc._extras import need
from pnuauc._progress import progress_bar
from pnuauc._shown import few
from pnuauc.io import OutputChoice, ReadOptions, ScoreSummary, TableModel, load_model, score_file
from pnuauc.io._formats import FORMATS, spooled
from pnuauc.io._tables import column_names, detect_format

__all__ = ["score_table"]


def score_table(
    voice: Voice,
    model: Path,
    table: Path | Sequence[Path],
    output: Path | None,
    *,
    choice: OutputChoice,
    reading: ReadOptions,
    jobs: int,
    overwrite: bool = False,
) -> None:
    """``pnuauc score``; what goes to standard output is CSV and nothing else."""
    where = existing_model(model)
    fitted = load_model(where)
    given = given_tables(table, reading)
    if given.is_many:
        _score_many(voice, fitted, where, given, output, choice, jobs, overwrite)
        return
    path = given.first
    target = output or (Path("-") if str(path) == "-" else _scored(path, reading))
    if str(target) != "-":
        check_outputs([target], [path, where], overwrite=overwrite)
    with spooled(path, reading) as (path, reading):
        if choice.keep and "all" in choice.keep:
            choice = replace(choice, keep=column_names(path, reading))
        n_rows = _count_rows(path)
        _score(voice, fitted, [(path, target)], choice, n_rows, jobs, target, reading)


def _score_many(
    voice: Voice,
    fitted: TableModel,
    model: Path,
    given: GivenTable,
    output: Path | None,
    choice: OutputChoice,
    jobs: int,
    overwrite: bool,
) -> None:
    """One output for all files, or one for each in a folder; each appears when it is complete."""
    source = given.source()
    inputs = [model, *(file.path for file in source.files)]
    target = output or given.beside(".scored")
    whole = str(target) == "-" or (target.suffix.lower() in FORMATS and not target.is_dir())
    if choice.keep and "all" in choice.keep:
        choice = replace(choice, keep=source.schema.names)
    tables = [source] if whole else source.one_by_one()
    targets = [target] if whole else scored_files(given, source, target)
    if str(target) != "-":
        for path in targets:
            path.parent.mkdir(parents=True, exist_ok=True)
        check_outputs(targets, inputs, overwrite=overwrite)
    _score(voice, fitted, zip(tables, targets, strict=True), choice, source.n_rows, jobs, target)


def _score(
    voice: Voice,
    fitted: TableModel,
    tables: Iterable[tuple[Any, Path]],
    choice: OutputChoice,
    n_rows: int | None,
    jobs: int,
    target: Path,
    reading: ReadOptions | None = None,
) -> None:
    """Score each table into its file, "-" for standard output; then tell of all of them."""
    if str(target) == "-":
        voice = Voice(json=False, quiet=True)
    total = ScoreSummary()
    with _telling(voice, n_rows) as tell:
        for table, path in tables:
            summary = score_file(
                fitted,
                table,
                sys.stdout.buffer if str(path) == "-" else path,
                choice=choice,
                options=reading,
                n_threads=n_threads(jobs),
                tell=lambda rows, before=total.n_rows: tell(before + rows),  # type: ignore[misc]
            )
            total = total.joined(summary)
    _tell_summary(voice, fitted, total, target)


@contextmanager
def _telling(voice: Voice, total: int | None) -> Iterator[Callable[[int], None]]:
    """A function that shows how many rows are scored, and the time that is left."""
    with progress_bar("Scoring", voice.shows_progress) as bar:
        of = f" of {total:,}" if total else ""
        yield lambda rows: bar("rows", rows / total if total else 0.0, f"{rows:,}{of}")


def _tell_summary(voice: Voice, fitted: TableModel, summary: ScoreSummary, target: Path) -> None:
    if summary.n_formulas:
        voice.remark(
            f"{summary.n_formulas:,} cells begin with = + - @ or a tab, which a spreadsheet would "
            "run as formulas; to open the file there, use --spreadsheet."
        )
    for name, levels in summary.new_categories.items():
        shown = few(sorted(levels))
        voice.remark(f"Column '{name}' has categories the model never saw, read as rare: {shown}.")
    if fitted.card.get("label") in summary.kept:
        voice.remark(
            "The table holds labels: an AUC of rows that the model was fitted on is too high "
            "(the honest one is in the model's report)."
        )
    written = "" if summary.n_written == summary.n_rows else f", {summary.n_written:,} written"
    voice.say(
        f"Scored {summary.n_rows:,} rows, {summary.n_positive:,} above the model's "
        f"threshold{written}: {target}"
    )
    voice.data(
        {
            "output": str(target),
            "rows": summary.n_rows,
            "above_threshold": summary.n_positive,
            "written": summary.n_written,
            "kept": list(summary.kept),
            "new_categories": {k: sorted(v) for k, v in summary.new_categories.items()},
        }
    )


def _scored(table: Path, reading: ReadOptions) -> Path:
    """Where scores go: beside the table, in its format if scores can be written so, else CSV."""
    same = detect_format(table, reading) in {"csv", "tsv", "parquet", "arrow"}
    return beside(table, None if same and reading.format is None else ".scored.csv")


def _count_rows(table: Path) -> int | None:
    """Rows of a Parquet file, for the progress bar; other formats would have to be read."""
    if table.suffix.lower() not in {".parquet", ".pq"} or not table.is_file():
        return None
    try:
        return int(need("pyarrow.parquet").read_metadata(table).num_rows)
    except (OSError, ValueError):
        return None  # the reader proper says what is wrong
