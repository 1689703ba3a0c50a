"""The work of each command: from options to library calls and back to words."""

from __future__ import annotations

import importlib
import io
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from pnuauc._utils.extras import need
from pnuauc._utils.label_values import RoleCounts
from pnuauc._utils.progress import progress_bar
from pnuauc._utils.show import few
from pnuauc.cli.console import Voice, hints_for
from pnuauc.cli.files import (
    MODEL_ENDING,
    GivenTable,
    RowMeter,
    beside,
    check_outputs,
    existing_model,
    given_tables,
    scored_files,
)
from pnuauc.cli.options import Engine
from pnuauc.exceptions import InputError, ModelFileError
from pnuauc.io.cells import as_typed, is_number, tidy
from pnuauc.io.columns import cells_of
from pnuauc.io.formats import FORMATS, ReadOptions, detect_format, spooled
from pnuauc.io.readers import read_cells, reader_of
from pnuauc.io.write import (
    GROUP_COLUMN,
    RUN_COLUMN,
    SIGN,
    as_utf8,
    atomic_file,
    run_id_of,
    write_text,
    written_by_us,
    written_together,
)
from pnuauc.model.files import load_model, open_model, write_model
from pnuauc.model.model import TableModel
from pnuauc.model.scoring import OutputChoice, ScoreSummary, score_file, spell_differences
from pnuauc.report.page import review_csv, to_html
from pnuauc.report.words import (
    headline,
    interval,
    next_steps,
    percent,
    percents,
    prior_words,
    role_words,
    summary_rows,
    to_json,
    verdict,
)
from pnuauc.study.evaluate import evaluate_table
from pnuauc.study.evidence import check_belief, find_prior, prior_findings
from pnuauc.study.findings import ColumnComparison, Evaluation, Findings, PriorFinding, ScoreFinding
from pnuauc.study.fit import FIT_STAGES, FitSettings, fit_study
from pnuauc.study.payments import make_payments
from pnuauc.study.rows import SAMPLE_ROWS, ColumnRoles, LabelCodes, collected, study_rows


def fit_file(
    voice: Voice,
    table: Path | Sequence[Path],
    columns: ColumnRoles,
    settings: FitSettings,
    *,
    reading: ReadOptions,
    command: str,
    output: Path | None = None,
    report: Path | None = None,
    overwrite: bool = False,
    engine: Engine | None = None,
) -> Findings:
    """``pnuauc fit``; gives the findings to callers that go on from here."""
    given = given_tables(table, reading)
    model_path = output or given.beside(MODEL_ENDING)
    if model_path.suffix != MODEL_ENDING:
        model_path = model_path.with_name(model_path.name + MODEL_ENDING)
    report_path = report or model_path.with_suffix(".html")
    numbers_path = report_path.with_suffix(".json")
    review_path = report_path.with_suffix(".review.csv")
    held_path = model_path.with_suffix(".heldout.csv")
    outputs = [report_path, numbers_path, review_path, held_path]
    if settings.estimator is None:  # what is given as code is not written
        outputs.append(model_path)  # the model last
    inputs = list(given.paths)

    def check() -> None:
        check_outputs(outputs, inputs, overwrite=overwrite)

    check()
    with (
        progress_bar("Fit", voice.shows_progress, FIT_STAGES) as bar,
        given.opened(effective_n_jobs(settings.n_jobs or 1), RowMeter(bar), engine) as data,
    ):
        many = hasattr(data, "reduce")
        if many:
            inputs[:] = map(Path, data.part_names)
            check()
        with (
            nullcontext() if many else cells_of(given.first),
            # what libraries print while they learn is no part of the output
            nullcontext() if settings.estimator is None else redirect_stdout(io.StringIO()),
        ):
            study = fit_study(data, columns, settings, name=given.name, command=command)
    findings = study.findings
    names = ("report", "numbers", "review", "held_out", "model")
    findings.files = dict(zip(names, map(str, outputs), strict=False))
    with written_together(outputs, recheck=check) as files:
        report_file, numbers_file, review_file, held_file = files[:4]
        report_file.write(as_utf8(to_html(findings)))
        numbers_file.write(as_utf8(to_json(findings)))
        review_file.write(as_utf8(review_csv(findings.top, findings.run)))
        signed = [findings.run] * study.held_out.num_rows
        held = study.held_out.append_column(RUN_COLUMN, [need("pyarrow").array(signed, "string")])
        need("pyarrow.csv").write_csv(held, held_file)
        for model_file in files[4:]:
            write_model(study.model, model_file)
    _tell_fit(voice, findings)
    return findings


def _tell_fit(voice: Voice, findings: Findings) -> None:
    files = findings.files or {}
    for sentence in headline(findings):
        voice.say(sentence, style="bold")
    voice.say()
    voice.rows(summary_rows(findings))
    voice.remark(*findings.warnings, *findings.table.notes, *hints_for(findings))
    voice.say()
    voice.rows(
        [
            *([("Model", files["model"])] if "model" in files else []),
            ("Report", f"{files['report']} (open it in a browser)"),
            ("Held-out scores", files["held_out"]),
            ("To review", f"{files['review']} ({len(findings.top.rows)} rows)"),
        ]
    )
    voice.say("\nWhat to do next", style="bold")
    for i, step in enumerate(next_steps(findings), 1):
        voice.say(f"{i}. {step}")
    voice.data(findings.to_dict())


def evaluate_file(
    voice: Voice,
    table: Path | Sequence[Path],
    label: str,
    scores: list[str],
    *,
    reading: ReadOptions,
    engine: Engine | None = None,
    ids: Sequence[str] = (),
    **settings: Any,
) -> Evaluation:
    """``pnuauc evaluate``, with the settings of :func:`evaluate_table`."""
    given = given_tables(table, reading)
    with ExitStack() as stack:
        if ids and len(given.paths) > 1:
            data, scores = _joined(voice, given, label, scores, ids)
            ids = ()  # each names one row
        else:
            bar = stack.enter_context(progress_bar("Evaluate", voice.shows_progress))
            data = stack.enter_context(given.opened(meter=RowMeter(bar), engine=engine))
            scores = scores or ["score"]
        if isinstance(data, tuple):
            raise InputError(f"'{given.first}' is a LIBSVM file, which has no score columns.")
        found = evaluate_table(data, label, scores, ids=ids, **settings)
    voice.remark(*found.warnings, *hints_for(found))
    voice.say(f"{role_words(found.labels)} rows.")
    if p := found.prior:
        voice.say(
            f"Share of positives among the unlabelled: {percent(p.value)} ({percents(p)}), "
            f"{p.source}."
        )
    for name, result in found.scores.items():
        _tell_scores(voice, name, result)
    _tell_comparisons(voice, found.comparisons)
    voice.data(found.to_dict())
    return found


def _joined(
    voice: Voice, given: GivenTable, label: str, scores: list[str], ids: Sequence[str]
) -> tuple[Any, list[str]]:
    """Rows of several files with the same ids, and the score columns of all of them."""
    whole: Any = None
    columns: list[str] = []
    for path in given.paths:
        table = read_cells(path, given.reading)
        lacking = [name for name in ids if name not in table.column_names]
        if lacking:
            raise InputError(f"'{path}' has no column '{lacking[0]}' to join by.")
        keys = [tidy(table.column(name).cast("string")) for name in ids]
        for name, values in zip(ids, keys, strict=True):
            table = table.set_column(table.column_names.index(name), name, values)
        if table.group_by(list(ids)).aggregate([]).num_rows < table.num_rows:
            raise InputError(f"'{path}' has several rows of one id; rows cannot be joined.")
        others = [n for n in table.column_names if n not in ids]
        own = [n for n in others if n in scores] if scores else _score_columns(table, others, label)
        taken: list[str] = [] if whole is None else whole.column_names
        names = {n: f"{n} ({path.stem})" if n in taken else n for n in own}
        wanted = {label, "seen", GROUP_COLUMN} - {*taken, *own}
        marks = [n for n in others if n in wanted]
        kept = [*ids, *own, *marks]
        part = table.select(kept).rename_columns([names.get(n, n) for n in kept])
        columns += names.values()
        whole = part if whole is None else whole.join(part, list(ids), join_type="inner")
    assert whole is not None
    if not whole.num_rows:
        raise InputError("No id is in all of these files.")
    voice.remark(f"{whole.num_rows:,} rows are in all {len(given.paths)} files.")
    return whole, columns


def _score_columns(table: Any, names: Sequence[str], label: str) -> list[str]:
    """``score`` if there is one, else every column of numbers but the label."""
    if "score" in names:
        return ["score"]
    others = [n for n in names if n not in {label, "seen"}]
    return [n for n in others if is_number(as_typed(table.column(n)).type)]


def _tell_scores(voice: Voice, name: str, result: ScoreFinding) -> None:
    if result.auc:
        voice.say(f"AUC of '{name}': {interval(result.auc)}", style="bold")
    else:
        voice.say(
            f"The AUC of '{name}' depends on the share of positives among the unlabelled rows; "
            "give it (--prior 0.1), have it estimated (--prior auto), or read it off here:",
            style="bold",
        )
        curve = result.sensitivity
        lines = zip(curve.priors, curve.value, curve.low, curve.high, strict=True)
        rows = [[f"{v:.4g}" for v in line] for line in lines]
        voice.table(["prior", "AUC", "low", "high"], rows)
    rows = [
        [key, *(f"{v:.4f}" for v in (e.value, e.std_error, e.low, e.high))]
        for key, e in result.methods.items()
        if not key.endswith("_raw") or not result.auc or result.auc.method == key
    ]
    if len(rows) > 1:
        voice.table(["rows used", "value", "std. error", "low", "high"], rows)


def _tell_comparisons(voice: Voice, results: list[ColumnComparison]) -> None:
    many = len(results) > 1
    for result in results:
        shown = f"p = {result.p_value:.3g}"
        if many:
            shown += f", {result.p_adjusted:.3g} as one of {len(results)} comparisons (Holm),"
        voice.say(
            f"'{result.a}' minus '{result.b}': {result.difference:+.4f} "
            f"({result.low:+.4f} to {result.high:+.4f}), {shown} by "
            f"{result.method}: {verdict(result.p_adjusted)}.",
            style="bold",
        )
    if any(result.method.endswith("_raw") for result in results):
        voice.say("In units of pairs won, not of AUC: no prior was given, and none is needed.")


def prior_of_file(
    voice: Voice,
    table: Path | Sequence[Path],
    columns: ColumnRoles,
    *,
    method: str,
    belief: tuple[float, float] | None,
    level: float,
    seed: int,
    reading: ReadOptions,
    engine: Engine | None = None,
) -> None:
    """``pnuauc prior``."""
    check_belief(belief, method=method)
    if columns.propensity is not None:
        raise InputError("The share by known chances of labelling is estimated by pnuauc fit.")
    messages: list[str] = []
    with collected(messages):
        with (
            progress_bar("Prior", voice.shows_progress) as bar,
            given_tables(table, reading).opened(meter=RowMeter(bar), engine=engine) as data,
        ):
            rows = study_rows(data, columns, SAMPLE_ROWS, seed)
        roles = rows.counts
        if roles.setting not in {"PU", "NU", "PNU"}:
            raise InputError(
                f"Label column '{columns.label}' holds {roles.describe()}; an estimate needs "
                "unlabelled rows, and labelled ones of at least one class."
            )
        encoder = columns.encoder().fit(rows.table)
        X = encoder.transform(rows.table)
        found = find_prior(
            None,
            X,
            rows.roles,
            method=method,
            belief=belief,
            level=level,
            random_state=seed,
            n_unlabeled=roles.n_unlabeled,
            groups=rows.groups,
        )
    findings = prior_findings(found, roles)
    assert found is not None  # there are unlabelled rows
    assert findings is not None
    _tell_prior(voice, findings, roles)
    warnings = [*messages, *encoder.notes_]
    voice.remark(*filter(None, (found.doubt, found.note, *warnings)))
    voice.data({**findings.to_dict(), "n_unlabeled": roles.n_unlabeled, "warnings": warnings})


def _tell_prior(voice: Voice, found: PriorFinding, roles: RoleCounts) -> None:
    voice.say(prior_words(found, roles.n_unlabeled), style="bold")
    voice.say(f"{found.source[0].upper()}{found.source[1:]} from {roles.describe()}.")
    whole = percent(found.population or 0.0)
    voice.say(f"If rows were labelled inside this table, not added to it: {whole} of all rows.")
    if found.labels_to_halve:
        voice.say(
            f"{percent(found.share_of_positives_known)} of all positives here are labelled. "
            f"Labels of {found.labels_to_halve:,} unlabelled rows drawn at random would halve "
            "the interval."
        )


#: Remarks of a card, and characters of each of its lines, that are printed: terminals are slow.
_MOST_REMARKS, _MOST_CHARACTERS = 1000, 10_000


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + " ... (--json)"


def review_table(
    voice: Voice,
    table: Path | None,
    folder: Path | None,
    settings: dict[str, Any],
    *,
    add: Path | None,
    relabel: bool,
    draw: bool,
) -> None:
    """``pnuauc review``: take decisions in, or draw the next rows; then say where it stands."""
    from pnuauc.review.review import Review

    where = folder or (_only_review() if table is None else beside(table, ".review"))
    if settings["model"] is not None:
        settings = {**settings, "model": existing_model(settings["model"])}
    if table is None:
        found = Review.open(where)
    else:
        voice.stage(f"Reading {table.name} ...")
        found = Review(table, where, **settings)
    files: dict[str, str] = {}
    notes: list[str] = []
    if add is not None:
        notes = found.add(add, relabel=relabel)
        files["labelled"] = str(found.folder / "labelled.parquet")
        with atomic_file(files["labelled"]) as stream:
            need("pyarrow.parquet").write_table(found.labelled(), stream)
    if draw:
        voice.stage("Ranking the rows ...")
        batch = found.next_batch()
        files |= {"page": str(batch.page), "sheet": str(batch.sheet)}
    status = found.status()
    first, *rest = status.sentences()
    voice.say(first, style="bold")
    for sentence in rest:
        voice.say(sentence)
    voice.remark(*notes)
    named = {
        "page": "Page (open it in a browser)",
        "sheet": "Sheet",
        "labelled": "Table with all labels, for pnuauc fit --propensity probability",
    }
    voice.rows([(named[key], path) for key, path in files.items()])
    again = f"pnuauc review -o {shlex.quote(str(found.folder))}"
    if draw:
        sheet = shlex.quote(files["sheet"])
        voice.say(f"Then: {again} --add {sheet} (or the CSV that the page exports)")
    elif add is not None and status.n_left:
        voice.say(f"For the next rows: {again}")
    voice.data({**status.to_dict(), "notes": notes, "files": files})


def monitor_file(
    voice: Voice,
    model: Path,
    table: Path,
    label: str | None,
    *,
    codes: LabelCodes,
    report: Path | None,
    level: float,
    reading: ReadOptions,
    overwrite: bool,
) -> bool:
    """``pnuauc monitor``; gives whether to fit again."""
    from pnuauc.review.monitor import monitor_table, monitoring_page

    where = existing_model(model)
    if report is not None:
        check_outputs([report], [where, table], overwrite=overwrite)
    with spooled(table, reading) as (path, options):
        data = read_cells(path, options)
    rows = data[0] if isinstance(data, tuple) else data
    named = {f"{role}_label": value for role, value in vars(codes).items()}
    with cells_of(table):
        found = monitor_table(load_model(where), rows, label, level=level, **named)
    first, *rest = found.sentences()
    voice.say(first, style="bold")
    for sentence in rest:
        voice.say(sentence)
    lines = [[d.name, f"{d.effect:+.2f}", f"{d.low:+.2f}", f"{d.high:+.2f}"] for d in found.columns]
    if lines:
        voice.table(["column", "change", "low", "high"], lines[:5])
    if report is not None:
        write_text(report, monitoring_page(found, where.name))
        voice.rows([("Report", str(report))])
    voice.data(found.to_dict())
    return found.refit


def _only_review() -> Path:
    """The review in this folder, where there is one only."""
    found = sorted(path.parent for path in Path().glob("*/review.json"))
    if len(found) == 1:
        return found[0]
    listed = f": {few([str(path) for path in found])}" if found else ""
    raise InputError(
        f"There are {len(found)} reviews in this folder{listed}; name one with -o, or a table to "
        "begin."
    )


def inspect_model(voice: Voice, path: Path) -> None:
    """``pnuauc inspect``: the card, after the whole file was checked."""
    where = existing_model(path)
    model, manifest = open_model(where)  # a card is shown only of a file that would score
    try:
        rows = _card_rows(model, manifest)
        remarks = [_cut(str(remark)) for remark in model.card.get("warnings", [])]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise ModelFileError(
            f"The card of '{where}' is not one that pnuauc writes; the model itself can be used."
        ) from None
    voice.say(f"Model {where}", style="bold")
    voice.rows([(name, _cut(value)) for name, value in rows])
    more = len(remarks) - _MOST_REMARKS
    remarks[_MOST_REMARKS:] = [f"And {more:,} further remarks (--json)."] if more > 0 else []
    voice.remark(*remarks, *_mixture(where, model))
    voice.data(manifest)


def _mixture(path: Path, model: TableModel) -> list[str]:
    """Names the files beside a model that another run of ``pnuauc fit`` wrote."""
    beside = [
        path.with_suffix(ending) for ending in (".html", ".json", ".review.csv", ".heldout.csv")
    ]
    others = [p for p in beside if run_id_of(p) not in (None, model.card.get("run"))]
    if not others:
        return []
    named = ", ".join(f"'{other}'" for other in others)
    return [
        f"Not of the same fit as '{path}': {named}. A fit was interrupted, or files were copied "
        "here; run pnuauc fit again."
    ]


def _card_rows(model: TableModel, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    card = model.card
    return [
        ("Made", f"{card.get('created', '?')} by pnuauc {manifest['libraries']['pnuauc']}"),
        ("Table", f"{card['table']['name']}, label {card['label']}"),
        *summary_rows(Findings.from_dict(card)),
        ("Needs", ", ".join(f"{c.name} ({c.kind})" for c in model.encoder.columns_)),
        ("Libraries", ", ".join(f"{k} {v}" for k, v in manifest["libraries"].items())),
        ("Checksums", "intact"),
        ("Command", str(card.get("command"))),
    ]


# ``pnuauc score``: one table into one file, or many files into one or into a folder.


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
    """``pnuauc score``; what goes to standard output is CSV and nothing else.

    Of many files: one output for all, or one for each in a folder; each appears when complete.
    """
    where = existing_model(model)
    fitted = load_model(where)
    voice.remark(*_mixture(where, fitted))
    given = given_tables(table, reading)
    with ExitStack() as stack:
        if given.is_many:
            target = output or given.beside(".scored")
            source: Any = given.source()
            inputs = [file.path for file in source.files]
            if str(target) == "-" or (target.suffix.lower() in FORMATS and not target.is_dir()):
                tables, targets = [source], [target]
            else:
                tables, targets = source.one_by_one(), scored_files(given, source, target)
                for path in targets:
                    path.parent.mkdir(parents=True, exist_ok=True)
        else:
            target, inputs = output or _scored(given.first, reading), [given.first]
            targets = [target]
        to_stdout = str(target) == "-"
        if not to_stdout:
            check_outputs(targets, [where, *inputs], overwrite=overwrite)
        if not given.is_many:
            path, reading = stack.enter_context(spooled(given.first, reading))
            tables, source = [path], reader_of(path, reading)
        if "all" in (choice.keep or ()):
            schema = source.schema if given.is_many else source.schema()
            choice = replace(choice, keep=schema.names)
        voice = Voice(quiet=True) if to_stdout else voice
        bar = stack.enter_context(progress_bar("Scoring", voice.shows_progress))
        n_rows = source.n_rows
        of = f" of {n_rows:,}" if n_rows else ""
        total = ScoreSummary()
        for data, path in zip(tables, targets, strict=True):
            score_file(
                fitted,
                data,
                sys.stdout.buffer if to_stdout else path,
                choice=choice,
                options=reading,
                n_threads=effective_n_jobs(jobs),
                tell=lambda rows: bar("rows", rows / n_rows if n_rows else 0.0, f"{rows:,}{of}"),
                summary=total,
            )
    _tell_summary(voice, fitted, total, target)


def _tell_summary(voice: Voice, fitted: TableModel, summary: ScoreSummary, target: Path) -> None:
    if summary.n_formulas:
        voice.remark(
            f"{summary.n_formulas:,} cells begin with = + - @ or a tab, which a spreadsheet would "
            "run as formulas; to open the file there, use --spreadsheet."
        )
    for name, levels in summary.new_categories.items():
        shown = few(sorted(levels))
        voice.remark(f"Column '{name}' has categories the model never saw, read as rare: {shown}.")
    if summary.different:
        voice.remark(
            "Columns that look different from the table that was fitted: "
            f"{spell_differences(summary.different)}. Scores may be wrong; --strict refuses such "
            "tables."
        )
    if summary.n_seen:
        where = (
            "Held-out scores of them are in the file .heldout.csv beside the model; probabilities "
            "are from there."
        )
        if np.isnan(fitted.seen.scores).all():  # type: ignore[union-attr]
            where = "They were too few to hold any back."
        voice.remark(
            f"{summary.n_seen:,} rows were labelled when the model was fitted (column seen): their "
            f"score knows the label, so an AUC of them is too high. {where}"
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
            "different": summary.different,
        }
    )


def _scored(table: Path, reading: ReadOptions) -> Path:
    """Where scores go: beside the table, in its format if scores can be written so, else CSV."""
    if str(table) == "-":
        return table
    same = detect_format(table, reading) in {"csv", "tsv", "parquet", "arrow"}
    return beside(table, None if same and reading.format is None else ".scored.csv")


# ``pnuauc demo``: fit, score, evaluate, on data whose truth is known and kept aside.


#: Seeds of the reviewed table and of the month after.
_SEED, _NEXT_SEED = 1, 2


def run_demo(voice: Voice, folder: Path, jobs: int) -> None:
    """Write the demo's files into ``folder`` and run every command on them."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'{folder}' is a file; name a folder for the demo (--folder).")
    folder.mkdir(parents=True, exist_ok=True)
    table, fraud = make_payments(seed=_SEED)
    later, later_fraud = make_payments(3000, labelled=0, seed=_NEXT_SEED)
    first, second = folder / "payments.parquet", folder / "next_month.csv"
    _write(table, first)
    _write(later.drop_columns(["is_fraud"]), second)
    labels = table.column("is_fraud").to_pylist()
    voice.say(
        f"A bank has {len(table):,} card payments. Reviewers looked at "
        f"{sum(v is not None for v in labels)} and found {labels.count(1)} frauds; nobody looked "
        "at the rest.\n"
    )
    command = f"pnuauc fit {first} --label is_fraud --id payment_id"
    voice.say(f"$ {command}", style="cyan")
    findings = fit_file(
        voice,
        first,
        ColumnRoles("is_fraud", ids=("payment_id",)),
        FitSettings(n_jobs=jobs),
        reading=ReadOptions(),
        command=command,
    )
    scored = folder / "next_month.scored.csv"
    files = findings.files or {}
    model = Path(files["model"])
    voice.say(f"\n$ pnuauc score {model} {second}", style="cyan")
    score_table(
        voice, model, second, scored, choice=OutputChoice(), reading=ReadOptions(), jobs=jobs
    )
    _tell_truth(voice, scored, later_fraud, folder, findings)
    verdicts = dict(zip(table.column("payment_id").to_pylist(), fraud, strict=True))
    _review_to_stop(voice, first, model, verdicts)
    voice.say(f"\nOpen {files['report']} in a browser.", style="bold green")


def _tell_truth(voice: Voice, scored: Path, truth: Any, folder: Path, findings: Findings) -> None:
    """The data are made up, so for once the answer can be checked."""
    table = need("pyarrow.csv").read_csv(scored)
    checked = folder / "next_month.checked.csv"
    _write(table.append_column("is_fraud", [np.asarray(truth, dtype=np.int8)]), checked)
    voice.say("\nThe payments are made up, so the truth about the next month is known:")
    voice.say(f"$ pnuauc evaluate {checked} --label is_fraud --negative 0", style="cyan")
    codes = LabelCodes(negative=["0"])
    evaluate_file(voice, checked, "is_fraud", ["score"], codes=codes, reading=ReadOptions())
    auc, labels = findings.auc, findings.labels
    assert auc is not None
    voice.say(
        f"The fit, which saw {labels.positive + labels.negative} labels, had estimated "
        f"{auc.value:.3f} ({auc.low:.3f} to {auc.high:.3f})."
    )


def _review_to_stop(voice: Voice, table: Path, model: Path, truth: dict[Any, Any]) -> None:
    """Rounds of ``pnuauc review`` with the truth for a reviewer, until it expects to be done."""
    from pnuauc.review.review import Review

    voice.say("\nNow reviewers work through the rows that nobody looked at, 500 a round:")
    command = f"pnuauc review {table} --label is_fraud --id payment_id --batch 500 --model {model}"
    voice.say(f"$ {command}", style="cyan")
    settings: dict[str, Any] = {"label": "is_fraud", "id": "payment_id", "batch": 500}
    folder = beside(table, ".review")
    found = Review(table, folder, model=model, random_state=_SEED, **settings)
    verdicts = {str(name): int(fraud) for name, fraud in truth.items()}
    status, lines = found.status(), []
    while status.n_left and not status.expected_stop:
        batch = found.next_batch()
        found.add({name: verdicts[name] for name in batch.ids})
        status = found.status()
        high = "" if status.expected is None else f"{status.expected.hidden.high:.0f}"
        recall = "" if status.expected_recall is None else f"{status.expected_recall:.0%}"
        lines.append([str(status.round), str(status.n_read), str(status.found), high, recall])
    voice.table(
        ["round", "read", "found", "expected hidden, at most", "expected recall, at least"], lines
    )
    for sentence in status.sentences():
        voice.say(sentence)
    total = sum(verdicts.values())
    voice.say(f"In truth {status.known + status.found} of {total} frauds are known now.")


def _write(table: Any, path: Path) -> None:
    if path.exists() and not (written_by_us(path) or _same_header(table, path)):
        raise InputError(f"'{path}' was not written by the demo; name another folder (--folder).")
    with atomic_file(path) as stream:
        if path.suffix == ".parquet":
            signed = table.replace_schema_metadata({SIGN: SIGN})
            need("pyarrow.parquet").write_table(signed, stream)
        else:
            need("pyarrow.csv").write_csv(table, stream)


def _same_header(table: Any, path: Path) -> bool:
    with path.open("rb") as stream:
        first = stream.readline(10_000).decode("utf-8", "replace")
    return first.strip().replace('"', "") == ",".join(table.column_names)


# ``pnuauc reproduce``: hands over to the experiments of the checkout that this file is in.


def run_experiment(arguments: list[str]) -> int:
    """Run ``experiments.main(arguments)`` of the checkout that this file is in.

    Never of the folder one happens to stand in: whoever filled that could run anything.
    """
    checkout = Path(__file__).resolve().parents[3]
    inside = Path(__file__).resolve().parents[2] == checkout / "src"
    if not (inside and (checkout / "experiments" / "__init__.py").is_file()):
        raise InputError(
            "The paper's experiments are not part of the installed package; get the source, "
            "install it with pip install --editable . and run the command again."
        )
    sys.path.insert(0, str(checkout))
    experiments = importlib.import_module("experiments")
    home = Path(str(experiments.__file__)).resolve().parent
    if home != checkout / "experiments" or not hasattr(experiments, "main"):
        raise InputError("This checkout's experiments/ has no main function to run.")
    return int(experiments.main(arguments) or 0)
