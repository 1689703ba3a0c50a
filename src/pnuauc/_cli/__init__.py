"""The command line: parse, call, print, exit code. No numerics."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``pnuauc`` command."""
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

    app()
