"""Tables in, scores out, models in and out, safely.

The names of models live in :mod:`pnuauc.model` and are loaded when asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pnuauc.io.encode import TableEncoder
from pnuauc.io.formats import ReadOptions
from pnuauc.io.frames import as_table
from pnuauc.io.readers import read_table
from pnuauc.io.text import embed

if TYPE_CHECKING:
    from pnuauc.model.files import load_model, save_model
    from pnuauc.model.model import TableModel
    from pnuauc.model.scoring import OutputChoice, ScoreSummary, score_file

__all__ = [
    "OutputChoice",
    "ReadOptions",
    "ScoreSummary",
    "TableEncoder",
    "TableModel",
    "as_table",
    "embed",
    "load_model",
    "read_table",
    "save_model",
    "score_file",
]

_HOMES = {
    "OutputChoice": "scoring",
    "ScoreSummary": "scoring",
    "TableModel": "model",
    "load_model": "files",
    "save_model": "files",
    "score_file": "scoring",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pnuauc.io' has no attribute {name!r}")
    return getattr(importlib.import_module(f"pnuauc.model.{_HOMES[name]}"), name)
