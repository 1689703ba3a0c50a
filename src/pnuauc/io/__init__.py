"""Tables in, scores out, models in and out, safely."""

from pnuauc.io._encoder import TableEncoder
from pnuauc.io._model import TableModel
from pnuauc.io._modelfile import load_model, save_model
from pnuauc.io._scoring import OutputChoice, ScoreSummary, score_file
from pnuauc.io._tables import ReadOptions, as_table, read_table

__all__ = [
    "OutputChoice",
    "ReadOptions",
    "ScoreSummary",
    "TableEncoder",
    "TableModel",
    "as_table",
    "load_model",
    "read_table",
    "save_model",
    "score_file",
]
