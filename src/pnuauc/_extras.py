"""Optional dependencies, imported where they are used; an error names the extra to install."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from pnuauc.exceptions import MissingExtraError

__all__ = ["need"]


def need(module: str, extra: str = "cli") -> Any:
    """Import ``module`` or say which extra brings it."""
    known = sys.modules.get(module)
    if known is not None:  # asked for once per column: a look-up, not an import
        return known
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise MissingExtraError(
            f"This needs {package}, which is not installed: "
            f"run pip install 'pnuauc[{extra}]' and try again."
        ) from error
