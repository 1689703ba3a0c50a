"""The commands. Each parses, calls one function of the library and prints."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from pnuauc.cli import options as o
from pnuauc.cli.console import Voice, guarded
from pnuauc.cli.options import (
    Codes,
    Columns,
    Count,
    Engine,
    File,
    Number,
    Output,
    Reading,
    Text,
    parse_belief,
    parse_count,
    parse_prior,
    parse_share,
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
        run = guarded(o.with_groups(function))
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
    version: bool = o.first(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


@command("fit payments.parquet --label is_fraud --id payment_id")
def fit(
    *,
    table: list[Path] = o.TABLE,
    label: str = o.LABEL,
    output: File = o.first(
        None, "--output", "-o", metavar="FILE", help="Model file; default: beside the table."
    ),
    prior: Text = o.PRIOR,
    codes: Codes,
    belief: Text = o.BELIEF,
    sampling: Text = o.labels(
        None,
        one_of=("random",),
        help="random: the labelled rows were drawn at random, so their share of positives counts.",
    ),
    model: Text = o.model(
        None,
        one_of=("auto", "average", "paper"),
        metavar="VALUE",
        help="auto (a committee of several models), average or paper (the AUC risk alone).",
    ),
    estimator: Text = o.model(
        None,
        metavar="MODULE:NAME",
        help="A classifier of yours, such as lightgbm:LGBMClassifier: judged, reported and "
        "compared with our model, but not written to a file.",
    ),
    basis: Text = o.model(
        None,
        one_of=("gaussian", "linear", "identity"),
        metavar="VALUE",
        help="gaussian, linear or identity; for average and paper.",
    ),
    centers: Count = o.model(None, min=1, help="Centers of the basis; for average and paper."),
    max_unlabeled: str = o.model(
        "200000", help="Unlabelled rows to sample for fitting, or all; scoring uses all."
    ),
    folds: int = o.model(5, min=2, help="Folds of the held-out estimates."),
    level: float = o.LEVEL,
    engine: Engine,
    jobs: int = o.JOBS,
    seed: int = o.SEED,
    columns: Columns,
    reading: Reading,
    report: File = o.output(None, metavar="FILE", help="HTML report; default: beside the model."),
    top: int = o.output(20, min=0, metavar="NUMBER", help="Rows to list for review."),
    overwrite: bool = o.OVERWRITE,
    printed: Output,
) -> None:
    """Learn a ranking from a table; write the model, a report (HTML) and its numbers (JSON)."""
    from pnuauc.cli.work import fit_file
    from pnuauc.study.fit import FitSettings

    settings = FitSettings(
        prior=parse_prior(prior),
        belief=parse_belief(belief),
        sampling=sampling,
        model=model,
        estimator=o.load_estimator(estimator),
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
    model: Path = o.MODEL,
    table: list[Path] = o.TABLE,
    output: File = o.first(
        None, "--output", "-o", metavar="FILE", help="Scores; default: beside the table."
    ),
    top: Count = o.first(
        None, min=1, metavar="NUMBER", help="Only the rows with the highest scores."
    ),
    keep: list[str] = o.first([], help="Column to copy beside ids (repeatable); 'all' copies all."),
    sort: bool = o.first(False, "--sort", help="Highest scores first."),
    reasons: int = o.first(
        0, min=0, metavar="NUMBER", help="Columns to name that change each score most."
    ),
    jobs: int = o.JOBS,
    reading: Reading,
    min_probability: Text = o.first(
        None, metavar="SHARE", help="Only rows at least so likely to be positive: 0.5 or 50%."
    ),
    threshold: Number = o.output(
        None,
        metavar="NUMBER",
        help="Only rows with at least this score; 0 is the model's own threshold, which as many "
        "unlabelled rows exceed as are estimated to be positive.",
    ),
    columns: Text = o.output(
        None, metavar="VALUE", help="Output columns in order: id,score,percentile."
    ),
    spreadsheet: bool = o.output(
        False, "--spreadsheet", help="Put ' before text that a spreadsheet would run."
    ),
    strict: bool = o.output(
        False, "--strict", help="Refuse a table with columns unlike those of the fit."
    ),
    overwrite: bool = o.OVERWRITE,
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
    table: list[Path] = o.TABLE,
    score: list[str] = o.first([], "--score", "-s", help="Score column; several are compared."),
    label: str = o.LABEL,
    id_: list[str] = o.first(
        [], "--id", help="Join the files by this column, instead of one below the other."
    ),
    group: list[str] = o.GROUP,
    prior: Text = o.PRIOR,
    codes: Codes,
    method: str = o.model(
        "auto",
        one_of=("auto", "pn", "pu", "nu", "combined", "pu_raw", "nu_raw"),
        metavar="VALUE",
        help="auto, pn, pu, nu, combined, pu_raw or nu_raw.",
    ),
    level: float = o.LEVEL,
    engine: Engine,
    reading: Reading,
    printed: Output,
) -> None:
    """AUC with interval of any model's scores from partly labelled rows; compare several."""
    from pnuauc.cli.work import evaluate_file

    evaluate_file(
        Voice.of(printed),
        table,
        label,
        score,
        ids=id_,
        groups=group,
        codes=codes.read(),
        prior=prior and (parse_prior(prior) or "auto"),
        method=method,
        level=level,
        reading=reading.options(),
        engine=engine,
    )


@command("prior payments.parquet --label is_fraud")
def prior(
    *,
    table: list[Path] = o.TABLE,
    label: str = o.LABEL,
    codes: Codes,
    belief: Text = o.BELIEF,
    method: str = o.model(
        "auto",
        one_of=("auto", "placement", "energy", "penalized_l1"),
        metavar="VALUE",
        help="auto, placement, energy or penalized_l1.",
    ),
    level: float = o.LEVEL,
    engine: Engine,
    seed: int = o.SEED,
    columns: Columns,
    reading: Reading,
    printed: Output,
) -> None:
    """Estimate how many of the unlabelled rows are positive."""
    from pnuauc.cli.work import prior_of_file

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
def inspect(model: Path = o.MODEL, json: bool = o.JSON) -> None:
    """Show a model's card: data, labels, prior, AUC, columns, versions, warnings."""
    from pnuauc.cli.work import inspect_model

    inspect_model(Voice(json=json), model)


@command("review papers.csv --label relevant --id doi --batch 50")
def review(
    *,
    table: File = typer.Argument(None, help="Table to review; not needed to go on as begun."),
    label: Text = o.first(
        None, "--label", "-l", help="Column of labels; default: label, if there."
    ),
    id_: Text = o.first(None, "--id", help="Column that names rows; default: their number."),
    output: File = o.first(
        None,
        "--output",
        "-o",
        metavar="FOLDER",
        help="Folder of the review; default: by the table.",
    ),
    add: File = o.first(
        None, metavar="FILE", help="File of decisions to take in: columns id, decision."
    ),
    relabel: bool = o.first(False, "--relabel", help="Let decisions replace earlier ones."),
    status: bool = o.first(False, "--status", help="Say where the review stands; draw nothing."),
    batch: int = o.first(100, min=1, metavar="NUMBER", help="Rows of a round."),
    codes: Codes,
    explore: str = o.model("0.1", help="Share of a round that is drawn at random, or auto."),
    stop_at_recall: float = o.model(
        0.95, min=0.01, max=0.999, help="Share of all positives to prove found."
    ),
    level: float = o.LEVEL,
    model: File = o.model(
        None, metavar="FILE", help="Rank by this model; default: learn in every round."
    ),
    drop: list[str] = o.DROP,
    categorical: list[str] = o.CATEGORICAL,
    group: list[str] = o.GROUP,
    seed: Count = o.model(None, help="Random seed; default: by chance."),
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
        "drop": drop,
        "categorical": categorical,
        "group": group,
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
    model: Path = o.MODEL,
    table: Path = typer.Argument(help="New rows, with the columns of the model."),
    label: Text = o.first(None, "--label", "-l", help="Column of new labels, a fair sample."),
    report: File = o.first(None, metavar="FILE", help="HTML file to write."),
    codes: Codes,
    level: float = o.LEVEL,
    reading: Reading,
    overwrite: bool = o.OVERWRITE,
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
    folder: Path = o.first(
        "pnuauc-demo", metavar="FOLDER", help="Where to write; created if missing."
    ),
    jobs: int = o.JOBS,
    quiet: bool = o.QUIET,
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
    name: Text = typer.Argument(None, metavar="NAME", help="Experiment, for example table4."),
) -> None:
    """Run one of the paper's experiments; needs a source checkout."""
    from pnuauc.cli.work import run_experiment

    if name is None:
        raise InputError("Name an experiment, for example: pnuauc reproduce table4.")
    code = run_experiment([name, *context.args])
    if code:
        raise typer.Exit(code)
