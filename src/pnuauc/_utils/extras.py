"""Optional dependencies and warnings."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import FrameType
from typing import Any

from pnuauc.exceptions import MissingExtraError


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


def warn(message: str, category: type[Warning]) -> None:
    """A warning that names the line which called the package, however deep it arose."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pnuauc."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
