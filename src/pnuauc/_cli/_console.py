"""What every command shares: where words go, what errors become, exit codes."""

from __future__ import annotations

import errno
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from pnuauc._cli._hints import with_hint
from pnuauc._json import dump_json

__all__ = ["Voice", "guarded"]


def printable(text: str) -> str:
    """Without control characters: a stranger's model or table must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


class Voice:
    """Results to standard output; progress and remarks to standard error.

    ``json``: only JSON on standard output. ``quiet``: only errors and what was asked for.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json, self.quiet = json, quiet
        self.out = Console(highlight=False, soft_wrap=True)
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def talks(self) -> bool:
        return not (self.json or self.quiet)

    @property
    def shows_progress(self) -> bool:
        return self.talks and self.err.is_terminal

    def say(self, text: str = "", style: str | None = None) -> None:
        if self.talks:
            self.out.print(printable(text), style=style, markup=False)

    def remark(self, text: str) -> None:
        """A warning: on standard error, unless quiet."""
        if not self.quiet:
            self.err.print(printable(f"! {text}"), style="yellow", markup=False)

    def stage(self, text: str) -> None:
        if self.shows_progress:
            self.err.print(text, style="dim", markup=False)

    def rows(self, rows: list[tuple[str, str]]) -> None:
        """Name and value, one line each, aligned."""
        if not self.talks:
            return
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in rows:
            grid.add_row(name, _escaped(value))
        self._print_table(grid)

    def table(self, header: list[str], rows: list[list[str]], title: str | None = None) -> None:
        if not self.talks:
            return
        table = Table(*header, title=title, title_justify="left", title_style="bold")
        for column in table.columns[1:]:
            column.justify = "right"
        for row in rows:
            table.add_row(*map(_escaped, row))
        self._print_table(table)

    def _print_table(self, table: Table) -> None:
        # outside a terminal lines are not cut to 80 columns: logs and pipes get whole values
        console = self.out if self.out.is_terminal else Console(highlight=False, width=250)
        console.print(table, soft_wrap=False)

    def data(self, value: dict[str, Any]) -> None:
        """The JSON of ``--json``."""
        if self.json:
            sys.stdout.write(dump_json(value) + "\n")


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(printable(text))


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Errors as one sentence: exit code 2 for the user's input, 1 for everything else."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _only_own_warnings():
                command(*args, **kwargs)
        except (typer.Exit, typer.Abort, SystemExit):
            raise
        except KeyboardInterrupt:
            _fail("Interrupted; nothing half-written is left behind.", 1)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of a pipe left: not an error, and no one reads it
            raise typer.Exit(1) from None
        except Exception as error:
            if os.environ.get("PNUAUC_DEBUG"):
                raise
            _fail(*_sentence(error))

    return run


def _sentence(error: Exception) -> tuple[str, int]:
    from pnuauc.exceptions import (
        InputError,
        MissingExtraError,
        MissingRoleError,
        PriorNotIdentifiedError,
    )

    text = with_hint(error)
    if isinstance(error, (InputError, MissingRoleError, PriorNotIdentifiedError)):
        return text, 2
    if isinstance(error, MissingExtraError):
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
            "The disk is full (or a limit on file sizes was met): nothing was written; free some "
            "space and run it again."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"No permission to read or write{where}; check its permissions."
    reason = error.strerror or str(error).strip() or type(error).__name__
    return f"The system refused to read or write{where}: {reason}."


def _fail(message: str, code: int) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(printable(f"Error: {message}"), style="red", markup=False)
    raise typer.Exit(code)


@contextmanager
def _only_own_warnings() -> Iterator[None]:
    """Warnings of other libraries do not concern the user of a command line."""
    with warnings.catch_warnings():
        if not os.environ.get("PNUAUC_DEBUG"):
            warnings.simplefilter("ignore")
        yield
