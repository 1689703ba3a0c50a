"""The options of all commands, each once; a command takes a group of them as one parameter."""

# ruff: noqa: RUF009  typer reads options from defaults

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, get_type_hints

import typer

from pnuauc.exceptions import InputError

if TYPE_CHECKING:
    from pnuauc.io.formats import ReadOptions
    from pnuauc.study.rows import ColumnRoles, LabelCodes

# typer reads annotations at run time, so they are spelled for Python 3.10
Text = Optional[str]  # noqa: UP045
File = Optional[Path]  # noqa: UP045
Count = Optional[int]  # noqa: UP045
Number = Optional[float]  # noqa: UP045


def option(default: Any, *names: str, one_of: tuple[str, ...] = (), **settings: Any) -> Any:
    """An option; without names it is called as its parameter is."""
    found = typer.Option(default, *names, **settings)
    found.one_of = one_of
    return found


# Panels of the help. What has none comes first, under Options: the few that matter most.
first = partial(option, metavar="COLUMN")
labels = partial(option, metavar="VALUE", rich_help_panel="Labels")
model = partial(option, metavar="NUMBER", rich_help_panel="Model and estimates")
reading = partial(option, metavar="VALUE", rich_help_panel="Reading")
output = partial(option, rich_help_panel="Output")


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A parameter whose type is a dataclass becomes one option for each of its fields."""
    hints = get_type_hints(command)
    groups: dict[str, Any] = {
        n: kind for n, kind in hints.items() if dataclasses.is_dataclass(kind)
    }
    flat: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            flat[name] = parameter.replace(annotation=hints[name])
            continue
        own = get_type_hints(groups[name])
        for field in dataclasses.fields(groups[name]):
            flat[field.name] = parameter.replace(
                name=field.name, default=field.default, annotation=own[field.name]
            )
    choices = {name: getattr(p.default, "one_of", ()) for name, p in flat.items()}
    choices = {name: known for name, known in choices.items() if known}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, known in choices.items():
            if given[name] not in (None, *known):
                shown = ", ".join(known)
                raise InputError(f"--{name} must be one of {shown}; got {given[name]!r}.")
        for name, kind in groups.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in dataclasses.fields(kind)})
        command(**given)

    run.__signature__ = inspect.Signature(list(flat.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in flat.items()}
    return run


def _some_threads(value: int) -> int:
    if value == 0:
        raise InputError("--jobs 0 means no threads; give 1 or more, or -1 for all cores.")
    return value


TABLE = typer.Argument(
    metavar="TABLE",
    help="CSV, TSV, JSON lines, Parquet, Arrow/Feather, Excel or LIBSVM file, also compressed; "
    "several files, a folder or a quoted pattern are one table; - reads standard input.",
    readable=False,  # the reader says what is wrong
)
MODEL = typer.Argument(metavar="MODEL", help="Model file written by pnuauc fit.", readable=False)
LABEL = first(
    "label", "--label", "-l", help="Column of labels: 1 positive, 0 negative, empty unlabelled."
)
PRIOR = first(
    None,
    metavar="SHARE",
    help="Share of positives among the unlabelled rows: 0.1, 10%, 0.05:0.15, or auto.",
)
BELIEF = labels(
    None,
    metavar="SHARE",
    help="What is known of the share of positives before the data are used, a 95% interval: "
    "0.01:0.2.",
)
DROP = first([], "--drop", help="Column to leave out (repeatable).")
GROUP = first(
    [],
    "--group",
    help="Column whose rows of one value belong together, such as customer (repeatable); none: "
    "rows of one id do not.",
)
CATEGORICAL = reading(
    [],
    "--categorical",
    metavar="COLUMN",
    help="Column of numeric codes to read as categories (repeatable).",
)
LEVEL = model(0.95, min=0.5, max=0.999, help="Confidence level of intervals.")
SEED = model(0, help="Random seed.")
JOBS = model(-1, "--jobs", "-j", callback=_some_threads, help="Threads; -1 uses all cores.")
OVERWRITE = output(False, "--overwrite", help="Replace files that pnuauc did not write.")
JSON = output(False, "--json", help="Print JSON and nothing else.")
QUIET = output(False, "--quiet", "-q", help="Print errors only.")


@dataclass(frozen=True)
class Codes:
    """Which values of the label column stand for what."""

    positive: list[str] = labels([], help="Label of positive rows (repeatable).")
    negative: list[str] = labels([], help="Label of negative rows (repeatable).")
    unlabeled: list[str] = labels([], help="Label of unlabelled rows (repeatable).")

    def read(self) -> LabelCodes:
        from pnuauc.study.rows import LabelCodes

        return LabelCodes(self.positive or None, self.negative or None, self.unlabeled or None)


@dataclass(frozen=True)
class Columns:
    """What the columns are."""

    ids: list[str] = first([], "--id", help="Column that identifies rows (repeatable).")
    drop: list[str] = DROP
    groups: list[str] = GROUP
    time: Text = first(None, help="Column of dates or numbers: judge later rows by earlier ones.")
    propensity: Text = first(None, help="Column of chances with which labelled rows were picked.")
    categorical: list[str] = CATEGORICAL
    embedding: list[str] = reading(
        [], help="Columns that are one vector: e for e0, e1, ... (repeatable)."
    )
    decimal: Text = reading(None, help="Decimal mark, . or , (default: detected).")
    date_format: list[str] = reading(
        [],
        help="day-first, month-first or a format such as %d/%m/%Y; of one column: when=%d/%m/%Y.",
    )

    def roles(self, label: str, codes: Codes) -> ColumnRoles:
        from pnuauc.study.rows import ColumnRoles

        given: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in vars(self).items()
        }
        given["date_format"] = self._date_formats()
        return ColumnRoles(label, codes=codes.read(), **given)

    def _date_formats(self) -> Any:
        """One format for all, or formats by column where they are written column=format."""
        given = self.date_format
        if len(given) <= 1 and "=" not in "".join(given):
            return given[0] if given else None
        if not all("=" in item for item in given):
            raise InputError("Give --date-format once for all columns, or column=format for each.")
        return dict(item.split("=", 1) for item in given)


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    delimiter: Text = reading(None, help="Delimiter of CSV files; default: detected.")
    encoding: str = reading("utf8", help="Encoding of text files.")
    format_: Text = reading(
        None,
        "--format",
        help="csv, tsv, jsonl, parquet, arrow, excel or libsvm; default: by the file name.",
    )
    sheet: Text = reading(None, help="Sheet of Excel files; default: the first.")
    header: Count = reading(
        None, min=1, metavar="NUMBER", help="Line that holds the names; default: found."
    )

    def options(self) -> ReadOptions:
        from pnuauc.io.formats import ReadOptions

        named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
        mark = named.get(self.delimiter, self.delimiter) if self.delimiter else None
        return ReadOptions(mark, self.encoding, self.format_, self.sheet, header=self.header)


@dataclass(frozen=True)
class Engine:
    """Where the files are visited; here, unless ``engine`` names another place."""

    engine: Text = model(
        None,
        one_of=("dask", "spark"),
        metavar="VALUE",
        help="dask or spark; default: read the files on this machine.",
    )
    address: Text = model(None, metavar="VALUE", help="Dask scheduler, such as tcp://host:8786.")
    master: Text = model(
        None, metavar="VALUE", help="Spark master, or sc://host for Spark Connect."
    )

    def __post_init__(self) -> None:
        for name, value, needed in (
            ("--address", self.address, "dask"),
            ("--master", self.master, "spark"),
        ):
            if value is not None and self.engine != needed:
                raise InputError(f"{name} goes with --engine {needed}.")

    def files(self, source: Any) -> AbstractContextManager[Any]:
        """The files as a source of the engine, which is loaded when it is asked for."""
        if self.engine == "dask":
            from pnuauc.dask.source import dask_files

            return dask_files(source, self.address)
        from pnuauc.spark.source import spark_files

        return spark_files(source, self.master)


@dataclass(frozen=True)
class Output:
    """How much is printed."""

    json: bool = JSON
    quiet: bool = QUIET


# Texts of options -> values.


def load_estimator(text: str | None) -> Any:
    """An object "module:name", or what a class or function of that name gives without arguments.

    Modules are looked for in the working folder too, as by ``python -m``.
    """
    if text is None:
        return None
    module, _, name = text.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = functools.reduce(getattr, name.split("."), importlib.import_module(module))
        if isinstance(found, type) or not hasattr(found, "fit"):
            found = found()
    except Exception as error:  # of their code, any
        said = str(error).split("\n")[0] or type(error).__name__
        raise InputError(
            "--estimator takes module:name of a scikit-learn classifier, such as "
            f"sklearn.svm:SVC; {text!r} could not be made ({said})."
        ) from error
    finally:
        sys.path.remove(os.getcwd())
    return found


def _shares(text: str) -> list[float]:
    """Numbers between colons, 10% for 0.1; empty where one of them is no number."""
    try:
        return [
            float(part.strip().rstrip("%")) / (100.0 if part.strip().endswith("%") else 1.0)
            for part in text.split(":")
        ]
    except ValueError:
        return []


def parse_prior(text: str | None) -> float | tuple[float, float] | None:
    """A number or an interval; None or "auto" means: estimate.

    Examples
    --------
    >>> parse_prior("10%"), parse_prior("0.05:0.15"), parse_prior("auto")
    (0.1, (0.05, 0.15), None)
    """
    if text is None or text.strip().lower() == "auto":
        return None
    values = _shares(text)
    if len(values) not in (1, 2) or not 0.0 < values[0] <= values[-1] < 1.0:
        raise InputError(
            f"--prior takes the share of positives among the unlabelled rows, a number between 0 "
            f"and 1 (0.1 or 10%), an interval (0.05:0.15) or auto; got {text!r}."
        )
    return values[0] if len(values) == 1 else (values[0], values[1])


def parse_belief(text: str | None) -> tuple[float, float] | None:
    """An interval of 95% ("0.01:0.2", "1%:20%"), whose ends may be 0 and 1."""
    if text is None:
        return None
    values = _shares(text)
    if len(values) != 2 or not 0.0 <= values[0] < values[1] <= 1.0:
        raise InputError(
            "--belief takes what is known beforehand of the share of positives among the "
            f"unlabelled rows, an interval inside 0 and 1 (0.01:0.2 or 1%:20%); got {text!r}."
        )
    return values[0], values[1]


def parse_share(text: str, name: str) -> float:
    """A share ("0.1", "10%")."""
    values = _shares(text)
    if len(values) != 1 or not 0.0 <= values[0] <= 1.0:
        raise InputError(f"{name} takes a share from 0 to 1 (0.1 or 10%); got {text!r}.")
    return values[0]


def parse_count(text: str, name: str) -> int | str:
    """A whole number of at least 2, or "all"."""
    word = text.strip().lower().replace("_", "")
    if word == "all":
        return word
    if not word.isdecimal() or int(word) < 2:
        raise InputError(f"{name} takes a number of rows, 2 or more, or all; got {text!r}.")
    return int(word)
