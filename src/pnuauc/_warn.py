"""Warnings, issued in one place."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

__all__ = ["warn"]


def warn(message: str, category: type[Warning]) -> None:
    """A warning that names the line which called the package, however deep it arose."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pnuauc."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
