"""Where a command may write: never over its inputs, another output, or files of others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pnuauc.exceptions import InputError
from pnuauc.io._signs import written_by_us
from pnuauc.io._writing import check_writable

__all__ = ["check_outputs"]


def check_outputs(
    outputs: Sequence[Path], inputs: Sequence[Path] = (), *, overwrite: bool = False
) -> None:
    """Refuse outputs that are inputs, each other (also through links), or files of somebody else.

    Files that pnuauc wrote are replaced without asking; ``overwrite`` allows others too.
    """
    taken = {_identity(path): path for path in inputs}
    for path in outputs:
        check_writable(path)
        same = taken.get(_identity(path))
        if same is not None:
            what = "an input" if same in inputs else "another output"
            known = f"'{path}'" if path == same else f"'{path}' is the same file as '{same}', which"
            raise InputError(f"{known} is {what} of this command; name another file to write.")
        taken[_identity(path)] = path
        if not overwrite and path.exists() and not written_by_us(path):
            raise InputError(
                f"'{path}' already exists and was not written by pnuauc; name another file, or "
                "replace it with --overwrite."
            )


def _identity(path: Path) -> tuple[int | str, ...]:
    """The same for two names of one file, be it there or not."""
    try:
        found = os.stat(path)
    except OSError:
        resolved = path.resolve()
        try:
            folder = os.stat(resolved.parent)
        except OSError:
            return (str(resolved),)
        return (folder.st_dev, folder.st_ino, resolved.name)
    return (found.st_dev, found.st_ino)
