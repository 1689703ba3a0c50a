"""The command line: parse, call, print, exit code. No numerics."""

from __future__ import annotations

import contextlib
import os
import sys

from pnuauc.cli.signals import leave_at_once

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``pnuauc`` command."""
    leave_at_once()
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a letter gets its number
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.stderr.write(
            f"pnuauc: the command line needs {error.name}, which is not installed: "
            "run pip install 'pnuauc[cli]' and try again.\n"
        )
        raise SystemExit(1) from None
    from pnuauc.cli.app import app
    from pnuauc.cli.console import exit_code_of

    raise SystemExit(exit_code_of(lambda: app(prog_name="pnuauc", standalone_mode=False)))


def _open_closed_streams() -> None:
    """Standard streams that are closed lead nowhere: no other file may get their numbers."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
