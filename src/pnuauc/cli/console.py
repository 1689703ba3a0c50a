"""What every command shares: where words go, what errors become, exit codes."""

from __future__ import annotations

import errno
import functools
import os
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pnuauc._utils.show import dump_json, visible
from pnuauc.cli.signals import stopped_politely
from pnuauc.exceptions import (
    EngineError,
    InputError,
    MissingExtraError,
    MissingRoleError,
    OutputError,
    PriorNotIdentifiedError,
    ReadingWarning,
)

if TYPE_CHECKING:
    from pnuauc.study.findings import Evaluation, Findings


# Which option answers a message of the library: only the command line names its options.


#: By ``about`` of an error of :mod:`pnuauc.exceptions`.
_HINTS = {
    "labels": "Use --positive, --negative and --unlabeled to name label values.",
    "positive": "Use --positive to name it, for example --positive fraud.",
    "zeros": "Use --unlabeled 0 if 0 means not looked at, --negative 0 if it means negative.",
    "sampling": "If the labelled rows were drawn at random, say --sampling random: the share of "
    "positives among them then counts, and numbers get sharper.",
    "prior": "Use --prior to give it, for example --prior 0.1.",
    "delimiter": "Use --delimiter to set it, for example --delimiter semicolon.",
    "encoding": "Use --encoding to set it, for example --encoding latin-1.",
    "strict": "Leave out --strict to score it all the same.",
    "header": "Use --header to name the line, for example --header 3.",
    "format": "Use --format to name it, for example --format csv.",
    "dates": "Use --date-format day-first or --date-format month-first.",
    "cells": "Use --decimal, --date-format or --categorical to have cells read differently.",
    "drop": "Use --drop to leave a column out.",
    "output": "Use -o to name another file.",
    "groups": "Use --group to name the column of groups, or --group none if there are none.",
    "relabel": "Use --relabel to replace earlier decisions.",
    "max_unlabeled": "Use --max-unlabeled to draw more of them, or all.",
}


def with_hint(error: Exception) -> str:
    """The error's sentence, and the option that answers it where there is one."""
    text = " ".join(str(error).split())
    hint = _HINTS.get(getattr(error, "about", None) or "")
    if hint is not None and "for example" in hint:
        hint = _with_own_example(hint, text)
    return text if hint is None else f"{text} {hint}"


def _with_own_example(hint: str, text: str) -> str:
    """The hint with the values that the message itself offers, where it does: 'a' or to 'b'."""
    option = hint.rpartition("for example ")[2].split()[0]
    offered = re.search(r"('[^']+'|[\w-]+) or (?:to )?('[^']+'|[\w-]+)[.;]", text)
    if option not in {"--positive", "--encoding"} or offered is None:
        return hint
    first, second = (shlex.quote(value.strip("'")) for value in offered.groups())
    return f"Use {option} {first} or {option} {second}."


def hints_for(found: Findings | Evaluation) -> list[str]:
    """The options that answer what is doubtful in the findings of a fit or an evaluation."""
    topics = []
    if announced := found.labels.announcement:
        topics.append("zeros" if announced.startswith("Every row is labelled") else "labels")
    if found.prior and found.prior.doubt:
        topics.append("prior")
    from pnuauc.study.findings import Findings

    if isinstance(found, Findings):
        settings, groups, table = found.settings, found.groups, found.table
        if found.labels_look_random and not settings["sampling"]:
            topics.append("sampling")
        if found.leaks:
            topics.append("drop")
        if found.suspected or (groups and groups.columns == table.ids):
            topics.append("groups")
        drawn = settings["max_unlabeled"]
        if drawn != "all" and found.labels.unlabeled > drawn:
            topics.append("max_unlabeled")
        if any(column.form not in {"", "ymd"} for column in table.columns):
            topics.append("cells")
    return [_HINTS[topic] for topic in topics]


#: Its number everywhere; Windows has no such signal.
_SIGPIPE = 13


class _Console(Console):
    """Leaves a closed pipe to :func:`guarded`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class Voice:
    """Results to standard output; progress and remarks to standard error.

    ``json``: only JSON on standard output. ``quiet``: only errors and what was asked for.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json, self.quiet = json, quiet
        self.out = _Console(highlight=False, soft_wrap=True)
        self.err = _Console(stderr=True, highlight=False, soft_wrap=True)

    @classmethod
    def of(cls, printed: Any) -> Voice:
        """As the options ``--json`` and ``--quiet`` ask."""
        return cls(json=printed.json, quiet=printed.quiet)

    @property
    def talks(self) -> bool:
        return not (self.json or self.quiet)

    @property
    def shows_progress(self) -> bool:
        return self.talks and self.err.is_terminal

    def say(self, text: str = "", style: str | None = None) -> None:
        if self.talks:
            self.out.print(visible(text), style=style, markup=False)

    def remark(self, *texts: str) -> None:
        """Warnings: on standard error, unless quiet."""
        for text in () if self.quiet else texts:
            self.err.print(visible(f"! {text}"), style="yellow", markup=False)

    def stage(self, text: str) -> None:
        if self.shows_progress:
            self.err.print(visible(text), style="dim", markup=False)

    def rows(self, rows: list[tuple[str, str]]) -> None:
        """Name and value, one line each, aligned."""
        if not self.talks:
            return
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in rows:
            grid.add_row(_escaped(name), _escaped(value))
        self._print_table(grid)

    def table(self, header: list[str], rows: list[list[str]]) -> None:
        if not self.talks:
            return
        table = Table(*map(_escaped, header))
        for column in table.columns[1:]:
            column.justify = "right"
        for row in rows:
            table.add_row(*map(_escaped, row))
        self._print_table(table)

    def _print_table(self, table: Table) -> None:
        # outside a terminal lines are not cut to 80 columns: logs and pipes get whole values
        console = self.out if self.out.is_terminal else _Console(highlight=False, width=250)
        console.print(table, soft_wrap=False)

    def data(self, value: dict[str, Any]) -> None:
        """The JSON of ``--json``."""
        if self.json:
            # in ASCII: any terminal can show it, and none is steered by it
            sys.stdout.write(dump_json(value, ensure_ascii=True) + "\n")


def _escaped(text: str) -> str:
    return escape(visible(text))


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Errors as one sentence: exit code 2 for the user's input, 1 for everything else."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with stopped_politely(), _only_own_warnings():
                command(*args, **kwargs)
                sys.stdout.flush()  # what cannot be printed is found here, not at the very end
        except (typer.Exit, typer.Abort, SystemExit):
            raise
        except KeyboardInterrupt as error:
            number = getattr(error, "number", signal.SIGINT)
            _fail("Interrupted; no file is half written.", 128 + number)
        except BrokenPipeError:
            _silence(
                sys.stdout
            )  # the reader of a pipe left: not an error, and nobody is left to read a message
            raise typer.Exit(128 + _SIGPIPE) from None
        except Exception as error:
            if os.environ.get("PNUAUC_DEBUG"):
                raise
            _fail(*_sentence(error))

    return run


def exit_code_of(run: Callable[[], Any]) -> int:
    """Run the command line; what the parser complains about is one sentence too."""
    try:
        return int(run() or 0)
    except typer.Abort:
        return 1
    except InputError as error:  # of an option's own check
        _print_error(str(error))
        return 2
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if "\n" in message:  # the help, for a command without arguments
            error.show()  # type: ignore[attr-defined]
        else:
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "pnuauc"
            stop = "" if message[-1:] in ".?!" else "."
            _print_error(f"{message}{stop} '{path} --help' lists the options.")
        return int(getattr(error, "exit_code", 2))


def _silence(stream: Any) -> None:
    """Send what is left in a buffer nowhere, so that flushing it at the end raises nothing."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _sentence(error: Exception) -> tuple[str, int]:
    text = with_hint(error)
    if isinstance(error, (InputError, MissingRoleError, PriorNotIdentifiedError)):
        return text, 2
    if isinstance(error, (MissingExtraError, EngineError, OutputError)):
        return text, 1
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table; give fewer rows or columns.", 1
    if isinstance(error, OSError):
        return _system_sentence(error), 1
    if isinstance(error, ValueError):
        return text, 2
    return (
        f"Something unexpected happened ({type(error).__name__}: {text}); run again with "
        "PNUAUC_DEBUG=1 in the environment to see where, and please report it.",
        1,
    )


def _system_sentence(error: OSError) -> str:
    where = f" '{error.filename}'" if error.filename else " the output"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            "The disk is full (or a file is above the allowed size): no file is half written; "
            "free some space and run it again."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"No permission to read or write{where}; check its permissions."
    reason = error.strerror or str(error).strip() or type(error).__name__
    return f"The system refused to read or write{where}: {reason}."


def _fail(message: str, code: int) -> None:
    _print_error(message)
    raise typer.Exit(code)


def _print_error(message: str) -> None:
    console = _Console(stderr=True, highlight=False, soft_wrap=True)
    with suppress(OSError):  # nobody listens any more
        console.print(visible(f"Error: {message}"), style="red", markup=False)


@contextmanager
def _only_own_warnings() -> Iterator[None]:
    """Warnings of other libraries do not concern the user of a command line."""
    with warnings.catch_warnings():
        if not os.environ.get("PNUAUC_DEBUG"):
            warnings.simplefilter("ignore")
            warnings.simplefilter("once", ReadingWarning)
            warnings.showwarning = _show_warning
        yield


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    console = _Console(stderr=True, highlight=False, soft_wrap=True)
    said = with_hint(message) if isinstance(message, Warning) else message
    with suppress(OSError):
        console.print(visible(f"! {said}"), style="yellow", markup=False)
