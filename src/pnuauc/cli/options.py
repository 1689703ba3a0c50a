"""The options of all commands, each once; a command takes a group of them as one parameter."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, get_type_hints

import typer

from pnuauc.exceptions import InputError

if TYPE_CHECKING:
    from pnuauc.io.readers import ReadOptions
    from pnuauc.study import ColumnRoles, LabelCodes

# typer reads these annotations at run time, so they are spelled for Python 3.10
Many = Optional[list[str]]  # noqa: UP045
Text = Optional[str]  # noqa: UP045
File = Optional[Path]  # noqa: UP045
Count = Optional[int]  # noqa: UP045
Number = Optional[float]  # noqa: UP045

# Panels of the help. What has none comes first, under Options: the few that matter most.
first_option: Any = partial(typer.Option, metavar="COLUMN")
labels_option: Any = partial(typer.Option, metavar="VALUE", rich_help_panel="Labels")
model_option: Any = partial(typer.Option, metavar="NUMBER", rich_help_panel="Model and estimates")
reading_option: Any = partial(typer.Option, metavar="VALUE", rich_help_panel="Reading")
output_option: Any = partial(typer.Option, rich_help_panel="Output")


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A parameter whose type is a dataclass becomes one option for each of its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    flat: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if not dataclasses.is_dataclass(hints[name]):
            flat[name] = parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY)
            continue
        groups[name] = kind = hints[name]
        own = get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            flat[field.name] = inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=own[field.name],
            )

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in dataclasses.fields(kind)})
        command(**given)

    run.__signature__ = inspect.Signature(list(flat.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in flat.items()}
    return run


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
    first_option(
        "--label", "-l", help="Column of labels: 1 positive, 0 negative, empty unlabelled."
    ),
]
PriorOption = Annotated[
    Text,
    first_option(
        "--prior",
        metavar="SHARE",
        help="Share of positives among the unlabelled rows: 0.1, 10%, 0.05:0.15, or auto.",
    ),
]
BeliefOption = Annotated[
    Text,
    labels_option(
        "--belief",
        metavar="SHARE",
        help="95% interval of that share before the data are used: 0.01:0.2.",
    ),
]
DropOption = Annotated[Many, first_option("--drop", help="Column to leave out (repeatable).")]
GroupOption = Annotated[
    Many,
    first_option(
        "--group",
        help="Column whose rows of one value belong together, such as customer (repeatable); "
        "none: rows of one id do not.",
    ),
]
CategoricalOption = Annotated[
    Many,
    reading_option(
        "--categorical",
        metavar="COLUMN",
        help="Column of numeric codes to read as categories (repeatable).",
    ),
]
LevelOption = Annotated[
    float, model_option("--level", min=0.5, max=0.999, help="Confidence level of intervals.")
]
SeedOption = Annotated[int, model_option("--seed", help="Random seed.")]
OverwriteOption = Annotated[
    bool, output_option("--overwrite", help="Replace files that pnuauc did not write.")
]
JsonOption = Annotated[bool, output_option("--json", help="Print JSON and nothing else.")]
QuietOption = Annotated[bool, output_option("--quiet", "-q", help="Print errors only.")]


def _some_threads(value: int) -> int:
    if value == 0:
        raise InputError("--jobs 0 means no threads; give 1 or more, or -1 for all cores.")
    return value


JobsOption = Annotated[
    int,
    model_option("--jobs", "-j", callback=_some_threads, help="Threads; -1 uses all cores."),
]


@dataclass(frozen=True)
class Codes:
    """Which values of the label column stand for what."""

    positive: Annotated[
        Many, labels_option("--positive", help="Label of positive rows (repeatable).")
    ] = None
    negative: Annotated[
        Many, labels_option("--negative", help="Label of negative rows (repeatable).")
    ] = None
    unlabeled: Annotated[
        Many, labels_option("--unlabeled", help="Label of unlabelled rows (repeatable).")
    ] = None

    def read(self) -> LabelCodes:
        from pnuauc.study import LabelCodes

        return LabelCodes(self.positive or None, self.negative or None, self.unlabeled or None)


@dataclass(frozen=True)
class Columns:
    """What the columns are."""

    id_: Annotated[Many, first_option("--id", help="Column that identifies rows (repeatable).")] = (
        None
    )
    drop: DropOption = None
    group: GroupOption = None
    time: Annotated[
        Text,
        first_option(
            "--time", help="Column of dates or numbers: judge later rows by earlier ones."
        ),
    ] = None
    categorical: CategoricalOption = None
    embedding: Annotated[
        Many,
        reading_option(
            "--embedding", help="Columns that are one vector: e for e0, e1, ... (repeatable)."
        ),
    ] = None
    decimal: Annotated[
        Text, reading_option("--decimal", help="Decimal mark, . or , (default: detected).")
    ] = None
    date_format: Annotated[
        Many,
        reading_option(
            "--date-format",
            help="day-first, month-first or a format such as %d/%m/%Y; of one column: "
            "when=%d/%m/%Y.",
        ),
    ] = None

    def roles(self, label: str, codes: Codes) -> ColumnRoles:
        from pnuauc.study import ColumnRoles

        return ColumnRoles(
            label,
            tuple(self.id_ or ()),
            tuple(self.drop or ()),
            tuple(self.categorical or ()),
            codes.read(),
            self.decimal,
            self._date_formats(),
            tuple(self.embedding or ()),
            tuple(self.group or ()),
            self.time,
        )

    def _date_formats(self) -> Any:
        """One format for all, or formats by column where they are written column=format."""
        given = self.date_format
        if not given:
            return None
        if len(given) == 1 and "=" not in given[0]:
            return given[0]
        pairs = [item.split("=", 1) for item in given]
        if any(len(pair) < 2 for pair in pairs):
            raise InputError("Give --date-format once for all columns, or column=format for each.")
        return dict(pairs)


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    delimiter: Annotated[
        Text, reading_option("--delimiter", help="Delimiter of CSV files; default: detected.")
    ] = None
    encoding: Annotated[str, reading_option("--encoding", help="Encoding of text files.")] = "utf8"
    format_: Annotated[
        Text,
        reading_option(
            "--format",
            help="csv, tsv, jsonl, parquet, arrow, excel or libsvm; default: by the file name.",
        ),
    ] = None
    sheet: Annotated[
        Text, reading_option("--sheet", help="Sheet of Excel files; default: the first.")
    ] = None
    header: Annotated[
        Count,
        reading_option(
            "--header", min=1, metavar="NUMBER", help="Line that holds the names; default: found."
        ),
    ] = None

    def options(self) -> ReadOptions:
        from pnuauc.io.readers import ReadOptions

        named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
        mark = named.get(self.delimiter, self.delimiter) if self.delimiter else None
        return ReadOptions(mark, self.encoding, self.format_, self.sheet, header=self.header)


@dataclass(frozen=True)
class Engine:
    """Where the files are visited; here, unless ``engine`` names another place."""

    engine: Annotated[
        Text,
        model_option(
            "--engine",
            metavar="VALUE",
            help="dask or spark; default: read the files on this machine.",
        ),
    ] = None
    address: Annotated[
        Text,
        model_option("--address", metavar="VALUE", help="Dask scheduler, such as tcp://host:8786."),
    ] = None
    master: Annotated[
        Text,
        model_option(
            "--master", metavar="VALUE", help="Spark master, or sc://host for Spark Connect."
        ),
    ] = None

    def __post_init__(self) -> None:
        check_choice("--engine", self.engine, ("dask", "spark"))
        for option, value, needed in (
            ("--address", self.address, "dask"),
            ("--master", self.master, "spark"),
        ):
            if value is not None and self.engine != needed:
                raise InputError(f"{option} goes with --engine {needed}.")

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

    json: JsonOption = False
    quiet: QuietOption = False


# Texts of options -> values.


def check_choice(option: str, value: str | None, choices: Iterable[str]) -> None:
    """Refuse a value that is not among the choices, before any file is read; None is no value.

    Examples
    --------
    >>> check_choice("--basis", "linear", ["gaussian", "linear"])
    """
    known = list(choices)
    if value is not None and value not in known:
        raise InputError(f"{option} must be one of {', '.join(known)}; got {value!r}.")


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


def parse_prior(text: str | None) -> float | tuple[float, float] | None:
    """A number ("0.1", "10%") or an interval ("0.05:0.15"); None or "auto" means: estimate.

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
    """An interval of 95% ("0.01:0.2", "1%:20%"), whose ends may be 0 and 1.

    Examples
    --------
    >>> parse_belief("0:20%")
    (0.0, 0.2)
    """
    if text is None:
        return None
    values = _shares(text)
    if len(values) != 2 or not 0.0 <= values[0] < values[1] <= 1.0:
        raise InputError(
            "--belief takes what is known beforehand of the share of positives among the "
            f"unlabelled rows, an interval inside 0 and 1 (0.01:0.2 or 1%:20%); got {text!r}."
        )
    return values[0], values[1]


def _shares(text: str) -> list[float]:
    """Numbers between colons, 10% for 0.1; none where one of them is no number."""
    try:
        return [
            float(part.strip().rstrip("%")) / (100.0 if part.strip().endswith("%") else 1.0)
            for part in text.split(":")
        ]
    except ValueError:
        return []


def parse_share(text: str, option: str) -> float:
    """A share ("0.1", "10%").

    Examples
    --------
    >>> parse_share("10%", "--explore")
    0.1
    """
    values = _shares(text)
    if len(values) != 1 or not 0.0 <= values[0] <= 1.0:
        raise InputError(f"{option} takes a share from 0 to 1 (0.1 or 10%); got {text!r}.")
    return values[0]


def parse_count(text: str, option: str) -> int | str:
    """A whole number of at least 2, or "all".

    Examples
    --------
    >>> parse_count("1000", "--max-unlabeled"), parse_count("all", "--max-unlabeled")
    (1000, 'all')
    """
    word = text.strip().lower().replace("_", "")
    if word == "all":
        return word
    if not word.isdecimal() or int(word) < 2:
        raise InputError(f"{option} takes a number of rows, 2 or more, or all; got {text!r}.")
    return int(word)
