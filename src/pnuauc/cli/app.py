"""The commands. Each parses, calls one function of the library and prints."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pnuauc.cli.console import Voice, guarded
from pnuauc.cli.options import (
    BeliefOption,
    CategoricalOption,
    Codes,
    Columns,
    Count,
    DropOption,
    Engine,
    File,
    GroupOption,
    JobsOption,
    JsonOption,
    LabelOption,
    LevelOption,
    Many,
    ModelArgument,
    Number,
    Output,
    OverwriteOption,
    PriorOption,
    QuietOption,
    Reading,
    SeedOption,
    TableArgument,
    Text,
    check_choice,
    first_option,
    labels_option,
    load_estimator,
    model_option,
    output_option,
    parse_belief,
    parse_count,
    parse_prior,
    parse_share,
    with_groups,
)
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


def command(example: str, **settings: Any) -> Callable[..., Any]:
    """A command whose errors are one sentence, with an example below its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        run = guarded(with_groups(function))
        app.command(cls=_Command, epilog=f"Example: pnuauc {example}", **settings)(run)
        return run

    return register


def _show_version(value: bool) -> None:
    if value:
        from pnuauc import __version__

        typer.echo(f"pnuauc {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        first_option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@command("fit payments.parquet --label is_fraud --id payment_id")
def fit(
    *,
    table: TableArgument,
    label: LabelOption = "label",
    output: Annotated[
        File,
        first_option(
            "--output", "-o", metavar="FILE", help="Model file; default: beside the table."
        ),
    ] = None,
    prior: PriorOption = None,
    codes: Codes,
    belief: BeliefOption = None,
    sampling: Annotated[
        Text,
        labels_option(
            "--sampling",
            help="random: the labelled rows were drawn at random, so their share of positives "
            "counts.",
        ),
    ] = None,
    model: Annotated[
        Text,
        model_option(
            "--model",
            metavar="VALUE",
            help="auto (a committee of several models), average or paper (the AUC risk alone).",
        ),
    ] = None,
    estimator: Annotated[
        Text,
        model_option(
            "--estimator",
            metavar="MODULE:NAME",
            help="A classifier of yours, such as lightgbm:LGBMClassifier: judged, reported and "
            "compared with our model, but not written to a file.",
        ),
    ] = None,
    basis: Annotated[
        Text,
        model_option(
            "--basis", metavar="VALUE", help="gaussian, linear or identity; for average and paper."
        ),
    ] = None,
    centers: Annotated[
        Count,
        model_option("--centers", min=1, help="Centers of the basis; for average and paper."),
    ] = None,
    max_unlabeled: Annotated[
        str,
        model_option(
            "--max-unlabeled",
            help="Unlabelled rows to sample for fitting, or all; scoring uses all.",
        ),
    ] = "200000",
    folds: Annotated[
        int, model_option("--folds", min=2, help="Folds of the held-out estimates.")
    ] = 5,
    level: LevelOption = 0.95,
    engine: Engine,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    columns: Columns,
    reading: Reading,
    report: Annotated[
        File,
        output_option("--report", metavar="FILE", help="HTML report; default: beside the model."),
    ] = None,
    top: Annotated[
        int, output_option("--top", min=0, metavar="NUMBER", help="Rows to list for review.")
    ] = 20,
    overwrite: OverwriteOption = False,
    printed: Output,
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
        estimator=load_estimator(estimator),
        basis=basis,
        n_centers=centers,
        max_unlabeled=parse_count(max_unlabeled, "--max-unlabeled"),
        folds=folds,
        top=top,
        level=level,
        n_jobs=jobs,
        random_state=seed,
    )
    fit_file(
        Voice.of(printed),
        table,
        columns.roles(label, codes),
        settings,
        output=output,
        report=report,
        reading=reading.options(),
        command=shlex.join(["pnuauc", *sys.argv[1:]]),
        overwrite=overwrite,
        engine=engine,
    )


@command("score payments.pnuauc new.parquet -o scored.parquet")
def score(
    *,
    model: ModelArgument,
    table: TableArgument,
    output: Annotated[
        File,
        first_option("--output", "-o", metavar="FILE", help="Scores; default: beside the table."),
    ] = None,
    top: Annotated[
        Count,
        first_option(
            "--top", min=1, metavar="NUMBER", help="Only the rows with the highest scores."
        ),
    ] = None,
    keep: Annotated[
        Many,
        first_option("--keep", help="Column to copy beside ids (repeatable); 'all' copies all."),
    ] = None,
    sort: Annotated[bool, first_option("--sort", help="Highest scores first.")] = False,
    reasons: Annotated[
        int,
        first_option(
            "--reasons",
            min=0,
            metavar="NUMBER",
            help="Columns to name that change each score most.",
        ),
    ] = 0,
    jobs: JobsOption = -1,
    reading: Reading,
    min_probability: Annotated[
        Text,
        first_option(
            "--min-probability",
            metavar="SHARE",
            help="Only rows at least so likely to be positive: 0.5 or 50%.",
        ),
    ] = None,
    threshold: Annotated[
        Number,
        output_option(
            "--threshold",
            metavar="NUMBER",
            help="Only rows with at least this score; 0 is the model's own threshold, which as "
            "many unlabelled rows exceed as are estimated to be positive.",
        ),
    ] = None,
    columns: Annotated[
        Text,
        output_option(
            "--columns", metavar="VALUE", help="Output columns in order: id,score,percentile."
        ),
    ] = None,
    spreadsheet: Annotated[
        bool,
        output_option("--spreadsheet", help="Put ' before text that a spreadsheet would run."),
    ] = False,
    strict: Annotated[
        bool,
        output_option("--strict", help="Refuse a table with columns unlike those of the fit."),
    ] = False,
    overwrite: OverwriteOption = False,
    printed: Output,
) -> None:
    """Score every row of a table, batch by batch: memory does not grow with rows."""
    from pnuauc.cli.work import score_table
    from pnuauc.model.scoring import OutputChoice

    least = None if min_probability is None else parse_share(min_probability, "--min-probability")
    listed = None if columns is None else [name.strip() for name in columns.split(",")]
    score_table(
        Voice.of(printed),
        model,
        table,
        output,
        choice=OutputChoice(
            keep, listed, sort, top, threshold, spreadsheet, reasons, strict, least
        ),
        reading=reading.options(),
        jobs=jobs,
        overwrite=overwrite,
    )


@command("evaluate scored.csv --score ours --score theirs --label y")
def evaluate(
    *,
    table: TableArgument,
    score: Annotated[
        Many, first_option("--score", "-s", help="Score column; several are compared.")
    ] = None,
    label: LabelOption = "label",
    id_: Annotated[
        Many,
        first_option("--id", help="Join the files by this column, instead of one below the other."),
    ] = None,
    group: GroupOption = None,
    prior: PriorOption = None,
    codes: Codes,
    method: Annotated[
        str,
        model_option(
            "--method", metavar="VALUE", help="auto, pn, pu, nu, combined, pu_raw or nu_raw."
        ),
    ] = "auto",
    level: LevelOption = 0.95,
    engine: Engine,
    reading: Reading,
    printed: Output,
) -> None:
    """AUC with interval of any model's scores from partly labelled rows; compare several."""
    from pnuauc.cli.work import evaluate_file
    from pnuauc.evaluation.estimate import METHODS

    check_choice("--method", method, METHODS)
    evaluate_file(
        Voice.of(printed),
        table,
        label,
        score or [],
        ids=id_ or (),
        groups=group or (),
        codes=codes.read(),
        prior=parse_prior(prior),
        estimate_prior=prior is not None,
        method=method,
        level=level,
        reading=reading.options(),
        engine=engine,
    )


@command("prior payments.parquet --label is_fraud")
def prior(
    *,
    table: TableArgument,
    label: LabelOption = "label",
    codes: Codes,
    belief: BeliefOption = None,
    method: Annotated[
        str,
        model_option("--method", metavar="VALUE", help="auto, placement, energy or penalized_l1."),
    ] = "auto",
    level: LevelOption = 0.95,
    engine: Engine,
    seed: SeedOption = 0,
    columns: Columns,
    reading: Reading,
    printed: Output,
) -> None:
    """Estimate how many of the unlabelled rows are positive."""
    from pnuauc.cli.work import prior_of_file
    from pnuauc.priors import PRIORS

    check_choice("--method", method, ("auto", *PRIORS))
    prior_of_file(
        Voice.of(printed),
        table,
        columns.roles(label, codes),
        method=method,
        belief=parse_belief(belief),
        level=level,
        seed=seed,
        reading=reading.options(),
        engine=engine,
    )


@command("inspect payments.pnuauc")
def inspect(model: ModelArgument, json: JsonOption = False) -> None:
    """Show a model's card: data, labels, prior, AUC, columns, versions, warnings."""
    from pnuauc.cli.work import inspect_model

    inspect_model(Voice(json=json), model)


@command("review papers.csv --label relevant --id doi --batch 50")
def review(
    *,
    table: Annotated[
        File, typer.Argument(help="Table to review; not needed to go on as begun.")
    ] = None,
    label: Annotated[
        Text, first_option("--label", "-l", help="Column of labels; default: label, if there.")
    ] = None,
    id_: Annotated[
        Text, first_option("--id", help="Column that names rows; default: their number.")
    ] = None,
    output: Annotated[
        File,
        first_option(
            "--output", "-o", metavar="FOLDER", help="Folder of the review; default: by the table."
        ),
    ] = None,
    add: Annotated[
        File,
        first_option(
            "--add", metavar="FILE", help="File of decisions to take in: columns id, decision."
        ),
    ] = None,
    relabel: Annotated[
        bool, first_option("--relabel", help="Let decisions replace earlier ones.")
    ] = False,
    status: Annotated[
        bool, first_option("--status", help="Say where the review stands; draw nothing.")
    ] = False,
    batch: Annotated[
        int, first_option("--batch", min=1, metavar="NUMBER", help="Rows of a round.")
    ] = 100,
    codes: Codes,
    explore: Annotated[
        str,
        model_option("--explore", help="Share of a round that is drawn at random, or auto."),
    ] = "0.1",
    stop_at_recall: Annotated[
        float,
        model_option(
            "--stop-at-recall", min=0.01, max=0.999, help="Share of all positives to prove found."
        ),
    ] = 0.95,
    level: LevelOption = 0.95,
    model: Annotated[
        File,
        model_option(
            "--model", metavar="FILE", help="Rank by this model; default: learn in every round."
        ),
    ] = None,
    drop: DropOption = None,
    categorical: CategoricalOption = None,
    seed: Annotated[Count, model_option("--seed", help="Random seed; default: by chance.")] = None,
    printed: Output,
) -> None:
    """Review rows round by round: what to look at next, what may be hidden, when to stop."""
    from pnuauc.cli.work import review_table

    settings = {
        "label": label,
        "id": id_,
        "batch": batch,
        "explore": explore if explore == "auto" else parse_share(explore, "--explore"),
        "stop_at_recall": stop_at_recall,
        "alpha": round(1.0 - level, 6),
        "model": model,
        "drop": drop or (),
        "categorical": categorical or (),
        **{f"{role}_label": value for role, value in vars(codes.read()).items()},
        "random_state": seed,
    }
    review_table(
        Voice.of(printed),
        table,
        output,
        settings,
        add=add,
        relabel=relabel,
        draw=add is None and not status,
    )


@command("monitor payments.pnuauc new.parquet --label is_fraud")
def monitor(
    *,
    model: ModelArgument,
    table: Annotated[Path, typer.Argument(help="New rows, with the columns of the model.")],
    label: Annotated[
        Text, first_option("--label", "-l", help="Column of new labels, a fair sample.")
    ] = None,
    report: Annotated[
        File, first_option("--report", metavar="FILE", help="HTML file to write.")
    ] = None,
    codes: Codes,
    level: LevelOption = 0.95,
    reading: Reading,
    overwrite: OverwriteOption = False,
    printed: Output,
) -> None:
    """Is a model still good? Drift of columns and scores, AUC on new labels; exit code 3: refit."""
    from pnuauc.cli.work import monitor_file

    refit = monitor_file(
        Voice.of(printed),
        model,
        table,
        label,
        codes=codes.read(),
        report=report,
        level=level,
        reading=reading.options(),
        overwrite=overwrite,
    )
    if refit:
        raise typer.Exit(3)


@command("demo")
def demo(
    folder: Annotated[
        Path,
        first_option("--folder", metavar="FOLDER", help="Where to write; created if missing."),
    ] = Path("pnuauc-demo"),
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
) -> None:
    """Run everything once on generated card payments, in under a minute; ends with a report."""
    from pnuauc.cli.work import run_demo

    run_demo(Voice(quiet=quiet), folder, jobs)


@command(
    "reproduce table4",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
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
