"""The command line: parse, call, print, exit code. No numerics."""

from __future__ import annotations

import contextlib
import sys

from pnuauc._cli._signals import leave_at_once

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``pnuauc`` command."""
    leave_at_once()
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
    from pnuauc._cli._app import app
    from pnuauc._cli._console import exit_code_of

    raise SystemExit(exit_code_of(lambda: app(prog_name="pnuauc", standalone_mode=False)))
