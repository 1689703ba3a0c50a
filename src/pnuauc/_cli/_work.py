"""From options to library calls and back to words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pnuauc._cli._console import Voice
from pnuauc._cli._hints import hints_for
from pnuauc._cli._options import Engine
from pnuauc._cli._outputs import check_outputs
from pnuauc._cli._tables import MODEL_ENDING, RowMeter, existing_model, given_tables, n_threads
from pnuauc._progress import progress_bar
from pnuauc._report import headline, review_csv, summary_rows, to_html, to_json
from pnuauc._report._words import interval, percent, percents, prior_words, role_words, verdict
from pnuauc._role_counts import RoleCounts
from pnuauc._study import (
    SAMPLE_ROWS,
    ColumnRoles,
    FitSettings,
    check_belief,
    collected,
    evaluate_table,
    find_prior,
    fit_study,
    prior_findings,
    study_rows,
)
from pnuauc.exceptions import InputError, ModelFileError
from pnuauc.io import ReadOptions, TableModel
from pnuauc.io._columns import cells_of
from pnuauc.io._modelfile import open_model, write_model
from pnuauc.io._together import written_together
from pnuauc.io._writing import as_utf8

__all__ = ["evaluate_file", "fit_file", "inspect_model", "prior_of_file"]

_STAGES = {
    "columns": "Looking at the columns ...",
    "prior": "Estimating the prior ...",
    "model": "Choosing and fitting the model ...",
    "all rows": "Scoring all unlabelled rows ...",
    "held-out rows": "Placing held-out rows among all unlabelled rows ...",
    "rivals": "Comparing with other models ...",
    "importance": "Shuffling columns ...",
}


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
) -> dict[str, Any]:
    """``pnuauc fit``; gives the findings to callers that go on from here."""
    given = given_tables(table, reading)
    model_path = output or given.beside(MODEL_ENDING)
    if model_path.suffix != MODEL_ENDING:
        model_path = model_path.with_name(model_path.name + MODEL_ENDING)
    report_path = report or model_path.with_suffix(".html")
    numbers_path = report_path.with_suffix(".json")
    review_path = report_path.with_suffix(".review.csv")
    outputs = [model_path, report_path, numbers_path, review_path]
    inputs = list(given.paths)

    def check() -> None:
        check_outputs(outputs, inputs, overwrite=overwrite)

    check()
    voice.stage(f"Reading {given.name} ...")
    meter = RowMeter(voice)
    with given.opened(n_threads(settings.n_jobs or 1), meter, engine) as data:
        many = hasattr(data, "reduce")
        if many:
            inputs[:] = map(Path, data.part_names)
            check()
        with _stages(voice, meter) as tick, nullcontext() if many else cells_of(given.first):
            study = fit_study(
                data,
                columns,
                settings,
                name=given.name,
                command=command,
                verbose=voice.shows_progress and not many,
                tick=tick,
            )
    findings = study.findings
    names = ("model", "report", "numbers", "review")
    findings["files"] = dict(zip(names, map(str, outputs), strict=True))
    with written_together(outputs, recheck=check) as files:
        model_file, report_file, numbers_file, review_file = files
        write_model(study.model, model_file)
        report_file.write(as_utf8(to_html(findings)))
        numbers_file.write(as_utf8(to_json(findings)))
        review_file.write(as_utf8(review_csv(findings["top"])))
    _tell_fit(voice, findings)
    return findings


def _tell_fit(voice: Voice, findings: dict[str, Any]) -> None:
    files = findings["files"]
    for sentence in headline(findings):
        voice.say(sentence, style="bold")
    voice.say()
    voice.rows(summary_rows(findings))
    voice.remark(*findings["warnings"], *hints_for(findings), *findings["table"]["notes"])
    voice.say()
    voice.rows(
        [
            ("Model", files["model"]),
            ("Report", f"{files['report']} (open it in a browser)"),
            ("To review", f"{files['review']} ({len(findings['top']['rows'])} rows)"),
        ]
    )
    voice.data(findings)


@contextmanager
def _stages(voice: Voice, meter: RowMeter) -> Iterator[Callable[[str, float], None]]:
    """A line for each stage, and a bar while folds are held out.

    The bar opens with its first tick and closes with its last: before it, the ranker draws one of
    its own, and two at a time would overwrite each other.
    """
    with ExitStack() as stack:
        bars: list[Callable[[str, float], None]] = []

        def tick(stage: str, share: float) -> None:
            meter.close()
            if stage in _STAGES:
                voice.stage(_STAGES[stage])
                return
            if not bars:
                bar = progress_bar("Held-out estimate", voice.shows_progress)
                bars.append(stack.enter_context(bar))
            bars[0](stage, share)
            if share >= 1.0:
                stack.close()
                bars.clear()

        try:
            yield tick
        finally:
            meter.close()


def evaluate_file(
    voice: Voice,
    table: Path | Sequence[Path],
    label: str,
    scores: list[str],
    *,
    reading: ReadOptions,
    engine: Engine | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """``pnuauc evaluate``, with the settings of :func:`evaluate_table`."""
    given, meter = given_tables(table, reading), RowMeter(voice)
    with given.opened(meter=meter, engine=engine) as data:
        if isinstance(data, tuple):
            raise InputError(f"'{given.first}' is a LIBSVM file, which has no score columns.")
        try:
            found = evaluate_table(data, label, scores, **settings)
        finally:
            meter.close()
    voice.remark(*found["warnings"], *hints_for(found))
    voice.say(f"{role_words(found['labels'])} rows.")
    if found["prior"]:
        p = found["prior"]
        voice.say(
            f"Share of positives among the unlabelled: {percent(p['value'])} ({percents(p)}), "
            f"{p['source']}."
        )
    for name, result in found["scores"].items():
        _tell_scores(voice, name, result)
    if found["comparison"]:
        _tell_comparison(voice, found["comparison"])
    voice.data(found)
    return found


def _tell_scores(voice: Voice, name: str, result: dict[str, Any]) -> None:
    if result["auc"]:
        voice.say(f"AUC of '{name}': {interval(result['auc'])}", style="bold")
    else:
        voice.say(
            f"The AUC of '{name}' depends on the share of positives among the unlabelled rows; "
            "give it (--prior 0.1), have it estimated (--prior auto), or read it off here:",
            style="bold",
        )
        curve = result["sensitivity"]
        keys = ("priors", "value", "low", "high")
        rows = [[f"{v:.4g}" for v in row] for row in zip(*(curve[k] for k in keys), strict=True)]
        voice.table(["prior", "AUC", "low", "high"], rows)
    rows = [
        [key, *(f"{e[k]:.4f}" for k in ("value", "std_error", "low", "high"))]
        for key, e in result["methods"].items()
        if not key.endswith("_raw") or not result["auc"] or result["auc"]["method"] == key
    ]
    if len(rows) > 1:
        voice.table(["rows used", "value", "std. error", "low", "high"], rows)


def _tell_comparison(voice: Voice, result: dict[str, Any]) -> None:
    voice.say(
        f"'{result['a']}' minus '{result['b']}': {result['difference']:+.4f} "
        f"({result['low']:+.4f} to {result['high']:+.4f}), p = {result['p_value']:.3g} by "
        f"{result['method']}: {verdict(result['p_value'])}.",
        style="bold",
    )
    if result["method"].endswith("_raw"):
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
    messages: list[str] = []
    meter = RowMeter(voice)
    with collected(messages):
        with given_tables(table, reading).opened(meter=meter, engine=engine) as data:
            rows = study_rows(data, columns, SAMPLE_ROWS, seed)
        meter.close()
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
        )
    findings = prior_findings(found, roles)
    assert found is not None  # there are unlabelled rows
    assert findings is not None
    _tell_prior(voice, findings, roles)
    warnings = [*messages, *encoder.notes_]
    voice.remark(*filter(None, (found.doubt, found.note, *warnings)))
    voice.data({**findings, "n_unlabeled": roles.n_unlabeled, "warnings": warnings})


def _tell_prior(voice: Voice, found: dict[str, Any], roles: RoleCounts) -> None:
    told = prior_words({"prior": found, "labels": {"unlabeled": roles.n_unlabeled}})
    voice.say(told, style="bold")
    source = f"{found['source'][0].upper()}{found['source'][1:]} from {roles.describe()}"
    if not found["told"]:
        voice.say(f"{source}: {percent(found['value'])}, anything from {percents(found)}.")
        return
    voice.say(f"{source}.")
    whole = percent(found["population"])
    voice.say(f"If rows were labelled inside this table, not added to it: {whole} of all rows.")
    if found["labels_to_halve"]:
        voice.say(
            f"{percent(found['share_of_positives_known'])} of all positives here are labelled. "
            f"Labels of {found['labels_to_halve']:,} unlabelled rows drawn at random would halve "
            "the error."
        )


def inspect_model(voice: Voice, path: Path) -> None:
    """``pnuauc inspect``: the card, after the whole file was checked."""
    where = existing_model(path)
    model, manifest = open_model(where)  # a card is shown only of a file that would score
    try:
        rows = _card_rows(model, manifest)
        remarks = [str(remark) for remark in model.card.get("warnings", [])]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise ModelFileError(
            f"The card of '{where}' is not one that pnuauc writes; the model itself can be used."
        ) from None
    voice.say(f"Model {where}", style="bold")
    voice.rows(rows)
    voice.remark(*remarks)
    voice.data(manifest)


def _card_rows(model: TableModel, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    card = model.card
    return [
        ("Made", f"{card.get('created', '?')} by pnuauc {manifest['libraries']['pnuauc']}"),
        ("Table", f"{card['table']['name']}, label {card['label']}"),
        *summary_rows(card),
        ("Needs", ", ".join(f"{c.name} ({c.kind})" for c in model.encoder.columns_)),
        ("Libraries", ", ".join(f"{k} {v}" for k, v in manifest["libraries"].items())),
        ("Checksums", "intact"),
        ("Command", str(card.get("command"))),
    ]
