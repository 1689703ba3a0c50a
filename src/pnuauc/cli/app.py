"""The commands. Each parses, calls one function of the library and prints."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand, TyperGroup

from pnuauc.cli.console import Voice, guarded
from pnuauc.cli.options import check_choice, parse_belief, parse_count, parse_engine, parse_prior
from pnuauc.exceptions import InputError


def _without_type(params: list[Any]) -> list[Any]:
    """Flags show their help only; typer would print <bool> beside them."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = " "
    return params


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_type(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_type(super().get_params(ctx))


app = typer.Typer(
    name="pnuauc",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Rank rare positives when almost nothing is labelled.\n\n"
    "Start with `pnuauc demo`, or `pnuauc fit table.csv --label y`.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# typer reads these annotations at run time, so they are spelled for Python 3.10
Many = Optional[list[str]]  # noqa: UP045
Text = Optional[str]  # noqa: UP045
File = Optional[Path]  # noqa: UP045
Count = Optional[int]  # noqa: UP045
Number = Optional[float]  # noqa: UP045

# Panels of the help. What has none comes first, under Options: the five that matter most.
_first_option: Any = partial(typer.Option, metavar="COLUMN")
_labels_option: Any = partial(typer.Option, metavar="VALUE", rich_help_panel="Labels")
_model_option: Any = partial(typer.Option, metavar="NUMBER", rich_help_panel="Model and estimates")
_reading_option: Any = partial(typer.Option, metavar="VALUE", rich_help_panel="Reading")
_output_option: Any = partial(typer.Option, rich_help_panel="Output")

TableArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, JSON lines, Parquet, Arrow/Feather, Excel or LIBSVM file, also "
        "compressed; several files, a folder or a quoted pattern are one table; - reads "
        "standard input.",
        readable=False,  # the reader says what is wrong
    ),
]
ModelArgument = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Model file written by pnuauc fit.", readable=False),
]
LabelOption = Annotated[
    str,
    _first_option(
        "--label", "-l", help="Column of labels: 1 positive, 0 negative, empty unlabelled."
    ),
]
IdOption = Annotated[
    Many,
    _first_option("--id", help="Column that identifies rows (repeatable)."),
]
DropOption = Annotated[Many, _first_option("--drop", help="Column to leave out (repeatable).")]
PriorOption = Annotated[
    Text,
    _first_option(
        "--prior",
        metavar="SHARE",
        help="Share of positives among the unlabelled rows: 0.1, 10%, 0.05:0.15, or auto.",
    ),
]
PositiveOption = Annotated[
    Many, _labels_option("--positive", help="Label of positive rows (repeatable).")
]
NegativeOption = Annotated[
    Many, _labels_option("--negative", help="Label of negative rows (repeatable).")
]
UnlabeledOption = Annotated[
    Many, _labels_option("--unlabeled", help="Label of unlabelled rows (repeatable).")
]
BeliefOption = Annotated[
    Text,
    _labels_option(
        "--belief",
        metavar="SHARE",
        help="95% interval of that share before the data are used: 0.01:0.2.",
    ),
]
SamplingOption = Annotated[
    Text,
    _labels_option(
        "--sampling",
        help="random: the labelled rows were drawn at random, so their share of positives counts.",
    ),
]
LevelOption = Annotated[
    float,
    _model_option("--level", min=0.5, max=0.999, help="Confidence level of intervals."),
]
EngineOption = Annotated[
    Text,
    _model_option(
        "--engine", metavar="VALUE", help="dask or spark; default: read the files on this machine."
    ),
]
AddressOption = Annotated[
    Text,
    _model_option("--address", metavar="VALUE", help="Dask scheduler, such as tcp://host:8786."),
]
MasterOption = Annotated[
    Text,
    _model_option(
        "--master", metavar="VALUE", help="Spark master, or sc://host for Spark Connect."
    ),
]
SeedOption = Annotated[int, _model_option("--seed", help="Random seed.")]
CategoricalOption = Annotated[
    Many,
    _reading_option(
        "--categorical",
        metavar="COLUMN",
        help="Column of numeric codes to read as categories (repeatable).",
    ),
]
EmbeddingOption = Annotated[
    Many,
    _reading_option(
        "--embedding", help="Columns that are one vector: e for e0, e1, ... (repeatable)."
    ),
]
DecimalOption = Annotated[
    Text, _reading_option("--decimal", help="Decimal mark, . or , (default: detected).")
]
DateFormatOption = Annotated[
    Many,
    _reading_option(
        "--date-format",
        help="day-first, month-first or a format such as %d/%m/%Y; of one column: when=%d/%m/%Y.",
    ),
]
DelimiterOption = Annotated[
    Text, _reading_option("--delimiter", help="Delimiter of CSV files; default: detected.")
]
EncodingOption = Annotated[str, _reading_option("--encoding", help="Encoding of text files.")]
FormatOption = Annotated[
    Text,
    _reading_option(
        "--format",
        help="csv, tsv, jsonl, parquet, arrow, excel or libsvm; default: by the file name.",
    ),
]
SheetOption = Annotated[
    Text, _reading_option("--sheet", help="Sheet of Excel files; default: the first.")
]
OverwriteOption = Annotated[
    bool, _output_option("--overwrite", help="Replace files that pnuauc did not write.")
]
JsonOption = Annotated[bool, _output_option("--json", help="Print JSON and nothing else.")]
QuietOption = Annotated[bool, _output_option("--quiet", "-q", help="Print errors only.")]


def _some_threads(value: int) -> int:
    if value == 0:
        raise InputError("--jobs 0 means no threads; give 1 or more, or -1 for all cores.")
    return value


JobsOption = Annotated[
    int,
    _model_option("--jobs", "-j", callback=_some_threads, help="Threads; -1 uses all cores."),
]


def _show_version(value: bool) -> None:
    if value:
        from pnuauc import __version__

        typer.echo(f"pnuauc {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        _first_option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    pass


@app.command(
    cls=_Command, epilog="Example: pnuauc fit payments.parquet --label is_fraud --id payment_id"
)
@guarded
def fit(
    table: TableArgument,
    label: LabelOption = "label",
    id_: IdOption = None,
    output: Annotated[
        File,
        _first_option(
            "--output", "-o", metavar="FILE", help="Model file; default: beside the table."
        ),
    ] = None,
    prior: PriorOption = None,
    drop: DropOption = None,
    embedding: EmbeddingOption = None,
    positive: PositiveOption = None,
    negative: NegativeOption = None,
    unlabeled: UnlabeledOption = None,
    belief: BeliefOption = None,
    sampling: SamplingOption = None,
    model: Annotated[
        Text,
        _model_option(
            "--model",
            metavar="VALUE",
            help="auto (a committee of several models), average or paper (the AUC risk alone).",
        ),
    ] = None,
    basis: Annotated[
        Text,
        _model_option(
            "--basis", metavar="VALUE", help="gaussian, linear or identity; for average and paper."
        ),
    ] = None,
    centers: Annotated[
        Count,
        _model_option("--centers", min=1, help="Centers of the basis; for average and paper."),
    ] = None,
    max_unlabeled: Annotated[
        str,
        _model_option(
            "--max-unlabeled",
            help="Unlabelled rows to sample for fitting, or all; scoring uses all.",
        ),
    ] = "200000",
    folds: Annotated[
        int,
        _model_option("--folds", min=2, help="Folds of the held-out estimates."),
    ] = 5,
    level: LevelOption = 0.95,
    engine: EngineOption = None,
    address: AddressOption = None,
    master: MasterOption = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    categorical: CategoricalOption = None,
    decimal: DecimalOption = None,
    date_format: DateFormatOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = "utf8",
    format_: FormatOption = None,
    sheet: SheetOption = None,
    report: Annotated[
        File,
        _output_option("--report", metavar="FILE", help="HTML report; default: beside the model."),
    ] = None,
    top: Annotated[
        int,
        _output_option("--top", min=0, metavar="NUMBER", help="Rows to list for review."),
    ] = 20,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn a ranking from a table; write the model, a report (HTML) and its numbers (JSON)."""
    from pnuauc.cli.work import fit_file
    from pnuauc.study import FitSettings

    check_choice("--model", model, ("auto", "average", "paper"))
    check_choice("--basis", basis, ("gaussian", "linear", "identity"))
    check_choice("--sampling", sampling, ("random",))
    settings = FitSettings(
        prior=parse_prior(prior),
        belief=parse_belief(belief),
        sampling=sampling,
        model=model,
        basis=basis,
        n_centers=centers,
        max_unlabeled=parse_count(max_unlabeled, "--max-unlabeled"),
        folds=folds,
        top=top,
        level=level,
        n_jobs=jobs,
        random_state=seed,
    )
    codes = _codes(positive, negative, unlabeled)
    columns = _columns(label, id_, drop, categorical, codes, decimal, date_format, embedding)
    fit_file(
        Voice(json=json, quiet=quiet),
        table,
        columns,
        settings,
        output=output,
        report=report,
        reading=_reading(delimiter, encoding, format_, sheet),
        command=shlex.join(["pnuauc", *sys.argv[1:]]),
        overwrite=overwrite,
        engine=parse_engine(engine, address, master),
    )


@app.command(
    cls=_Command, epilog="Example: pnuauc score payments.pnuauc new.parquet -o scored.parquet"
)
@guarded
def score(
    model: ModelArgument,
    table: TableArgument,
    output: Annotated[
        File,
        _first_option("--output", "-o", metavar="FILE", help="Scores; default: beside the table."),
    ] = None,
    top: Annotated[
        Count,
        _first_option(
            "--top", min=1, metavar="NUMBER", help="Only the rows with the highest scores."
        ),
    ] = None,
    keep: Annotated[
        Many,
        _first_option("--keep", help="Column to copy (repeatable); 'all' copies all."),
    ] = None,
    sort: Annotated[bool, _first_option("--sort", help="Highest scores first.")] = False,
    reasons: Annotated[
        int,
        _first_option(
            "--reasons",
            min=0,
            metavar="NUMBER",
            help="Columns to name that change each score most.",
        ),
    ] = 0,
    jobs: JobsOption = -1,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = "utf8",
    format_: FormatOption = None,
    sheet: SheetOption = None,
    threshold: Annotated[
        Number,
        _output_option("--threshold", metavar="NUMBER", help="Only rows with at least this score."),
    ] = None,
    columns: Annotated[
        Text,
        _output_option(
            "--columns", metavar="VALUE", help="Output columns in order: id,score,percentile."
        ),
    ] = None,
    spreadsheet: Annotated[
        bool,
        _output_option("--spreadsheet", help="Put ' before text that a spreadsheet would run."),
    ] = False,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score every row of a table, batch by batch: memory does not grow with rows."""
    from pnuauc.cli.work import score_table
    from pnuauc.model.scoring import OutputChoice

    listed = None if columns is None else [name.strip() for name in columns.split(",")]
    score_table(
        Voice(json=json, quiet=quiet),
        model,
        table,
        output,
        choice=OutputChoice(keep, listed, sort, top, threshold, spreadsheet, reasons),
        reading=_reading(delimiter, encoding, format_, sheet),
        jobs=jobs,
        overwrite=overwrite,
    )


@app.command(
    cls=_Command, epilog="Example: pnuauc evaluate scored.csv --score ours --score theirs --label y"
)
@guarded
def evaluate(
    table: TableArgument,
    score: Annotated[
        Many,
        _first_option("--score", "-s", help="Score column; several are compared."),
    ] = None,
    label: LabelOption = "label",
    prior: PriorOption = None,
    positive: PositiveOption = None,
    negative: NegativeOption = None,
    unlabeled: UnlabeledOption = None,
    method: Annotated[
        str,
        _model_option(
            "--method", metavar="VALUE", help="auto, pn, pu, nu, combined, pu_raw or nu_raw."
        ),
    ] = "auto",
    engine: EngineOption = None,
    address: AddressOption = None,
    master: MasterOption = None,
    level: LevelOption = 0.95,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = "utf8",
    format_: FormatOption = None,
    sheet: SheetOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """AUC with interval of any model's scores from partly labelled rows; compare several."""
    from pnuauc.cli.work import evaluate_file
    from pnuauc.evaluation.estimate import METHODS

    check_choice("--method", method, METHODS)
    evaluate_file(
        Voice(json=json, quiet=quiet),
        table,
        label,
        score or ["score"],
        codes=_codes(positive, negative, unlabeled),
        prior=parse_prior(prior),
        estimate_prior=prior is not None,
        method=method,
        level=level,
        reading=_reading(delimiter, encoding, format_, sheet),
        engine=parse_engine(engine, address, master),
    )


@app.command(cls=_Command, epilog="Example: pnuauc prior payments.parquet --label is_fraud")
@guarded
def prior(
    table: TableArgument,
    label: LabelOption = "label",
    id_: IdOption = None,
    drop: DropOption = None,
    positive: PositiveOption = None,
    negative: NegativeOption = None,
    unlabeled: UnlabeledOption = None,
    belief: BeliefOption = None,
    method: Annotated[
        str,
        _model_option(
            "--method",
            metavar="VALUE",
            help="auto, placement, energy or penalized_l1.",
        ),
    ] = "auto",
    level: LevelOption = 0.95,
    engine: EngineOption = None,
    address: AddressOption = None,
    master: MasterOption = None,
    seed: SeedOption = 0,
    categorical: CategoricalOption = None,
    decimal: DecimalOption = None,
    date_format: DateFormatOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = "utf8",
    format_: FormatOption = None,
    sheet: SheetOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Estimate how many of the unlabelled rows are positive."""
    from pnuauc.cli.work import prior_of_file
    from pnuauc.priors import PRIORS

    check_choice("--method", method, ("auto", *PRIORS))
    codes = _codes(positive, negative, unlabeled)
    columns = _columns(label, id_, drop, categorical, codes, decimal, date_format)
    prior_of_file(
        Voice(json=json, quiet=quiet),
        table,
        columns,
        method=method,
        belief=parse_belief(belief),
        level=level,
        seed=seed,
        reading=_reading(delimiter, encoding, format_, sheet),
        engine=parse_engine(engine, address, master),
    )


@app.command(cls=_Command, epilog="Example: pnuauc inspect payments.pnuauc")
@guarded
def inspect(
    model: ModelArgument,
    json: JsonOption = False,
) -> None:
    """Show a model's card: data, labels, prior, AUC, columns, versions, warnings."""
    from pnuauc.cli.work import inspect_model

    inspect_model(Voice(json=json), model)


@app.command(
    cls=_Command, epilog="Example: pnuauc review papers.csv --label relevant --id doi --batch 50"
)
@guarded
def review(
    table: Annotated[
        File, typer.Argument(help="Table to review; not needed to go on as begun.")
    ] = None,
    label: Annotated[
        Text, typer.Option("--label", "-l", help="Column of labels; default: label, if there.")
    ] = None,
    id_: Annotated[
        Text, typer.Option("--id", help="Column that names rows; default: their number.")
    ] = None,
    output: Annotated[
        File, typer.Option("--output", "-o", help="Folder of the review; default: by the table.")
    ] = None,
    add: Annotated[
        File, typer.Option("--add", help="File of decisions to take in: columns id, decision.")
    ] = None,
    relabel: Annotated[
        bool, typer.Option("--relabel", help="Let decisions replace earlier ones.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Say where the review stands; draw nothing.")
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="Rows of a round.")] = 100,
    explore: Annotated[
        str, typer.Option(help="Share of a round that is drawn at random, or auto.")
    ] = "0.1",
    stop_at_recall: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Share of all positives to prove found.")
    ] = 0.95,
    level: LevelOption = 0.95,
    model: Annotated[
        File, typer.Option("--model", help="Rank by this model; default: learn in every round.")
    ] = None,
    drop: DropOption = None,
    categorical: CategoricalOption = None,
    positive: PositiveOption = None,
    negative: NegativeOption = None,
    unlabeled: UnlabeledOption = None,
    seed: Annotated[Count, typer.Option("--seed", help="Random seed; default: by chance.")] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Review rows round by round: what to look at next, what may be hidden, when to stop."""
    from pnuauc.cli.work import review_table

    settings = {
        "label": label,
        "id": id_,
        "batch": batch,
        "explore": explore,
        "stop_at_recall": stop_at_recall,
        "alpha": round(1.0 - level, 6),
        "model": model,
        "drop": drop or (),
        "categorical": categorical or (),
        "positive_label": positive or None,
        "negative_label": negative or None,
        "unlabeled_label": unlabeled or None,
        "random_state": seed,
    }
    review_table(
        Voice(json=json, quiet=quiet),
        table,
        output,
        settings,
        add=add,
        relabel=relabel,
        draw=add is None and not status,
    )


@app.command(
    cls=_Command, epilog="Example: pnuauc monitor payments.pnuauc new.parquet --label is_fraud"
)
@guarded
def monitor(
    model: ModelArgument,
    table: Annotated[Path, typer.Argument(help="New rows, with the columns of the model.")],
    label: Annotated[
        Text, typer.Option("--label", "-l", help="Column of new labels, a fair sample.")
    ] = None,
    positive: PositiveOption = None,
    negative: NegativeOption = None,
    unlabeled: UnlabeledOption = None,
    report: Annotated[File, typer.Option("--report", help="HTML file to write.")] = None,
    level: LevelOption = 0.95,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = "utf8",
    format_: FormatOption = None,
    sheet: SheetOption = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Is a model still good? Drift of columns and scores, AUC on new labels; exit code 3: refit."""
    from pnuauc.cli.work import monitor_file

    refit = monitor_file(
        Voice(json=json, quiet=quiet),
        model,
        table,
        label,
        codes=_codes(positive, negative, unlabeled),
        report=report,
        level=level,
        reading=_reading(delimiter, encoding, format_, sheet),
        overwrite=overwrite,
    )
    if refit:
        raise typer.Exit(3)


@app.command(cls=_Command, epilog="Example: pnuauc demo")
@guarded
def demo(
    folder: Annotated[
        Path,
        _first_option("--folder", metavar="FOLDER", help="Where to write; created if missing."),
    ] = Path("pnuauc-demo"),
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
) -> None:
    """Run everything once on generated card payments, in under a minute; ends with a report."""
    from pnuauc.cli.work import run_demo

    run_demo(Voice(quiet=quiet), folder, jobs)


@app.command(
    cls=_Command,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Example: pnuauc reproduce table4",
)
@guarded
def reproduce(
    context: typer.Context,
    name: Annotated[
        Text, typer.Argument(metavar="NAME", help="Experiment, for example table4.")
    ] = None,
) -> None:
    """Run one of the paper's experiments; needs a source checkout."""
    from pnuauc.cli.work import run_experiment

    if name is None:
        raise InputError("Name an experiment, for example: pnuauc reproduce table4.")
    code = run_experiment([name, *context.args])
    if code:
        raise typer.Exit(code)


def _codes(positive: Any, negative: Any, unlabeled: Any) -> Any:
    from pnuauc.study import LabelCodes

    return LabelCodes(positive or None, negative or None, unlabeled or None)


def _columns(
    label: str,
    ids: Any,
    drop: Any,
    categorical: Any,
    codes: Any,
    decimal: Any,
    date_format: Any,
    embedding: Any = (),
) -> Any:
    from pnuauc.study import ColumnRoles

    ids, drop, categorical = (tuple(names or ()) for names in (ids, drop, categorical))
    formats = _date_formats(date_format)
    vectors = tuple(embedding or ())
    return ColumnRoles(label, ids, drop, categorical, codes, decimal, formats, vectors)


def _reading(delimiter: str | None, encoding: str, format_: str | None, sheet: str | None) -> Any:
    from pnuauc.io.readers import ReadOptions

    named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
    mark = named.get(delimiter, delimiter) if delimiter else None
    return ReadOptions(mark, encoding, format_, sheet)


def _date_formats(given: list[str] | None) -> Any:
    """One format for all, or formats by column where they are written column=format."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    pairs = [item.split("=", 1) for item in given]
    if any(len(pair) < 2 for pair in pairs):
        raise InputError("Give --date-format once for all columns, or as column=format for each.")
    return dict(pairs)
