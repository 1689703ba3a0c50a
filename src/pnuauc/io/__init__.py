"""Tables in, scores out, models in and out, safely."""

from pnuauc.io._columns import Column, numbers
from pnuauc.io._encoder import TableEncoder
from pnuauc.io._extras import need
from pnuauc.io._leaks import find_leaks
from pnuauc.io._model import TableModel
from pnuauc.io._modelfile import FORMAT_VERSION, load_model, open_model, read_manifest, save_model
from pnuauc.io._plain import plain
from pnuauc.io._scoring import ScoreSummary, score_file
from pnuauc.io._tables import (
    FORMATS,
    ReadOptions,
    as_table,
    column_names,
    detect_format,
    iter_batches,
    read_table,
)
from pnuauc.io._writing import atomic_file, check_writable, write_text

__all__ = [
    "FORMATS",
    "FORMAT_VERSION",
    "Column",
    "ReadOptions",
    "ScoreSummary",
    "TableEncoder",
    "TableModel",
    "as_table",
    "atomic_file",
    "check_writable",
    "column_names",
    "detect_format",
    "find_leaks",
    "iter_batches",
    "load_model",
    "need",
    "numbers",
    "open_model",
    "plain",
    "read_manifest",
    "read_table",
    "save_model",
    "score_file",
    "write_text",
]
