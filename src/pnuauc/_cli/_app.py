"""The commands. Each parses, calls one function of the library and prints."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from pnuauc._cli._console import Voice, guarded
from pnuauc._cli._options import check_choice, parse_belief, parse_count, parse_engine, parse_prior
from pnuauc.exceptions import InputError

app = typer.Typer(
    name="pnuauc",
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

TableArgument = Annotated[
    list[Path],
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet, Arrow/Feather, Excel or LIBSVM file, also "
        "compressed; several files, a folder or a pattern in quotes are one table; - reads "
        "standard input."
    ),
]
LabelOption = Annotated[
    str,
    typer.Option(
        "--label", "-l", help="Column of labels: 1 positive, 0 negative, empty unlabelled."
    ),
]
PositiveOption = Annotated[Many, typer.Option("--positive", help="Label value that is positive.")]
NegativeOption = Annotated[Many, typer.Option("--negative", help="Label value that is negative.")]
UnlabeledOption = Annotated[
    Many, typer.Option("--unlabeled", help="Label value that means unlabelled.")
]
PriorOption = Annotated[
    Text,
    typer.Option(
        "--prior",
        help="Share of positives among the unlabelled rows: 0.1, 10%, 0.05:0.15, or auto.",
    ),
]
BeliefOption = Annotated[
    Text,
    typer.Option(
        "--belief",
        help="What is known of that share before it is estimated, as an interval: 0.01:0.2.",
    ),
]
DropOption = Annotated[Many, typer.Option("--drop", help="Column to leave out (repeatable).")]
IdOption = Annotated[Many, typer.Option("--id", help="Column that names rows (repeatable).")]
CategoricalOption = Annotated[
    Many,
    typer.Option(
        "--categorical", help="Column of numeric codes to read as categories (repeatable)."
    ),
]
DelimiterOption = Annotated[
    Text, typer.Option("--delimiter", help="Delimiter of CSV files; detected by default.")
]
EncodingOption = Annotated[str, typer.Option("--encoding", help="Encoding of text files.")]
FormatOption = Annotated[
    Text,
    typer.Option(
        "--format", help="csv, tsv, jsonl, parquet, arrow, excel or libsvm; default: by the ending."
    ),
]
SheetOption = Annotated[
    Text, typer.Option("--sheet", help="Sheet of Excel files; default: the first.")
]
DecimalOption = Annotated[
    Text,
    typer.Option("--decimal", help="Decimal mark, . or , (detected by default)."),
]
DateFormatOption = Annotated[
    Many,
    typer.Option(
        "--date-format",
        help="day-first, month-first or a format such as %d/%m/%Y; of one column: when=%d/%m/%Y.",
    ),
]


def _some_threads(value: int) -> int:
    if value == 0:
        raise InputError(
            "--jobs 0 would be no threads at all; give 1 or more, or -1 for all cores."
        )
    return value


JobsOption = Annotated[
    int,
    typer.Option("--jobs", "-j", callback=_some_threads, help="Threads; -1 takes all cores."),
]
EngineOption = Annotated[
    Text,
    typer.Option(
        "--engine", help="dask or spark: visit the files on a cluster; default: on this machine."
    ),
]
AddressOption = Annotated[
    Text, typer.Option("--address", help="Dask scheduler, such as tcp://host:8786.")
]
MasterOption = Annotated[
    Text, typer.Option("--master", help="Spark master, or sc://host for Spark Connect.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace files that pnuauc did not write.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
LevelOption = Annotated[
    float, typer.Option("--level", min=0.5, max=0.999, help="Confidence of intervals.")
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
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: pnuauc fit payments.parquet --label is_fraud --id payment_id")
@guarded
def fit(
    table: TableArgument,
    label: LabelOption = "label",
    output: Annotated[
        File, typer.Option("--output", "-o", help="Model file; default: beside the table.")
    ] = None,
    report: Annotated[
        File, typer.Option("--report", help="HTML report; default: beside the model.")
    ] = None,
    id_: IdOption = None,
    drop: DropOption = None,
    categorical: CategoricalOption = None,
    positive: PositiveOption = None,
    negative: NegativeOption = None,
    unlabeled: UnlabeledOption = None,
    decimal: DecimalOption = None,
    date_format: DateFormatOption = None,
    prior: PriorOption = None,
    belief: BeliefOption = None,
    model: Annotated[
        str | None,
        typer.Option(help="auto (committee of several kinds), average or paper (AUC risk alone)."),
    ] = None,
    basis: Annotated[
        str | None, typer.Option(help="gaussian, linear or identity; for average and paper.")
    ] = None,
    centers: Annotated[
        int | None, typer.Option(min=1, help="Centres of the feature map, likewise.")
    ] = None,
    max_unlabeled: Annotated[
        str,
        typer.Option(help="Unlabelled rows to draw for fitting, or all; scoring uses all."),
    ] = "200000",
    engine: EngineOption = None,
    address: AddressOption = None,
    master: MasterOption = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the held-out estimate.")] = 5,
    top: Annotated[int, typer.Option(min=0, help="Rows to list for review.")] = 20,
    level: LevelOption = 0.95,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = "utf8",
    format_: FormatOption = None,
    sheet: SheetOption = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn a ranking from a table; write the model, a report (HTML) and its numbers (JSON)."""
    from pnuauc._cli._work import fit_file
    from pnuauc._study import FitSettings

    check_choice("--model", model, ("auto", "average", "paper"))
    check_choice("--basis", basis, ("gaussian", "linear", "identity"))
    settings = FitSettings(
        prior=parse_prior(prior),
        belief=parse_belief(belief),
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
    columns = _columns(label, id_, drop, categorical, codes, decimal, date_format)
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


@app.command(epilog="Example: pnuauc score payments.pnuauc new.parquet -o scored.parquet")
@guarded
def score(
    model: Annotated[Path, typer.Argument(help="Model file written by pnuauc fit.")],
    table: TableArgument,
    output: Annotated[
        File, typer.Option("--output", "-o", help="Scores; default: beside the table.")
    ] = None,
    keep: Annotated[
        Many, typer.Option("--keep", help="Column to copy (repeatable); 'all' copies all.")
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="Highest scores first.")] = False,
    top: Annotated[
        Count, typer.Option("--top", min=1, help="Only the rows with the highest scores.")
    ] = None,
    threshold: Annotated[
        Number, typer.Option("--threshold", help="Only rows that score at least this.")
    ] = None,
    reasons: Annotated[
        int,
        typer.Option("--reasons", min=0, help="Name this many columns that move each score most."),
    ] = 0,
    columns: Annotated[
        Text, typer.Option("--columns", help="Output columns in order: id,score,percentile.")
    ] = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = "utf8",
    format_: FormatOption = None,
    sheet: SheetOption = None,
    jobs: JobsOption = -1,
    spreadsheet: Annotated[
        bool,
        typer.Option("--spreadsheet", help="Put ' before text that a spreadsheet would run."),
    ] = False,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score every row of a table, batch by batch: memory does not grow with rows."""
    from pnuauc._cli._score import score_table
    from pnuauc.io import OutputChoice

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


@app.command(epilog="Example: pnuauc evaluate scored.csv --score ours --score theirs --label y")
@guarded
def evaluate(
    table: TableArgument,
    score: Annotated[
        Many, typer.Option("--score", "-s", help="Score column; two are compared.")
    ] = None,
    label: LabelOption = "label",
    positive: PositiveOption = None,
    negative: NegativeOption = None,
    unlabeled: UnlabeledOption = None,
    prior: PriorOption = None,
    method: Annotated[
        str, typer.Option(help="auto, pn, pu, nu, combined, pu_raw or nu_raw.")
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
    """AUC with interval of any model's scores, from whatever is labelled; compare two."""
    from pnuauc._cli._work import evaluate_file
    from pnuauc.metrics._estimate import METHODS

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


@app.command(epilog="Example: pnuauc prior payments.parquet --label is_fraud")
@guarded
def prior(
    table: TableArgument,
    label: LabelOption = "label",
    id_: IdOption = None,
    drop: DropOption = None,
    categorical: CategoricalOption = None,
    positive: PositiveOption = None,
    negative: NegativeOption = None,
    unlabeled: UnlabeledOption = None,
    decimal: DecimalOption = None,
    date_format: DateFormatOption = None,
    method: Annotated[
        str, typer.Option(help="auto, placement, energy, penalized_l1, pearson, em or hellinger.")
    ] = "auto",
    belief: BeliefOption = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    master: MasterOption = None,
    level: LevelOption = 0.95,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = "utf8",
    format_: FormatOption = None,
    sheet: SheetOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Estimate how many of the unlabelled rows are positive."""
    from pnuauc._cli._work import prior_of_file
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


@app.command(epilog="Example: pnuauc inspect payments.pnuauc")
@guarded
def inspect(
    model: Annotated[Path, typer.Argument(help="Model file written by pnuauc fit.")],
    json: JsonOption = False,
) -> None:
    """Show a model's card: data, labels, prior, AUC, columns, versions, warnings."""
    from pnuauc._cli._work import inspect_model

    inspect_model(Voice(json=json), model)


@app.command(epilog="Example: pnuauc demo")
@guarded
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write; created if missing.")] = Path(
        "pnuauc-demo"
    ),
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
) -> None:
    """The whole story on made-up card payments, in under a minute; ends with a report to open."""
    from pnuauc._cli._demo import run_demo

    run_demo(Voice(quiet=quiet), folder, jobs)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Example: pnuauc reproduce table4",
)
@guarded
def reproduce(
    context: typer.Context,
    name: Annotated[Text, typer.Argument(help="Experiment, for example table4.")] = None,
) -> None:
    """Run one of the paper's experiments; needs a source checkout."""
    from pnuauc._cli._reproduce import run_experiment

    if name is None:
        raise InputError("Name an experiment, for example: pnuauc reproduce table4.")
    code = run_experiment([name, *context.args])
    if code:
        raise typer.Exit(code)


def _codes(positive: Any, negative: Any, unlabeled: Any) -> Any:
    from pnuauc._study import LabelCodes

    return LabelCodes(positive or None, negative or None, unlabeled or None)


def _columns(
    label: str, ids: Any, drop: Any, categorical: Any, codes: Any, decimal: Any, date_format: Any
) -> Any:
    from pnuauc._study import ColumnRoles

    ids, drop, categorical = (tuple(names or ()) for names in (ids, drop, categorical))
    formats = _date_formats(date_format)
    return ColumnRoles(label, ids, drop, categorical, codes, decimal, formats)


def _reading(delimiter: str | None, encoding: str, format_: str | None, sheet: str | None) -> Any:
    from pnuauc.io import ReadOptions

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
