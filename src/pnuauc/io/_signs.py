"""Which files pnuauc wrote: it leaves a sign in each, so that it replaces its own and no others."""

from __future__ import annotations

import os
from pathlib import Path

from pnuauc._extras import need
from pnuauc.io._arrow import pa
from pnuauc.io._container import MAGIC

__all__ = ["SIGN", "written_by_us"]

#: In reports and their numbers near the start; in Parquet and Arrow files a key of the schema.
SIGN = "pnuauc"
_HEAD_BYTES = 2**16
#: What scoring adds to a table.
_ADDED = {"score", "percentile", "probability", "probability_high", "reasons"}


def written_by_us(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a model, a report, its numbers or a table of scores that pnuauc wrote.

    An empty file counts as ours: nothing is lost with it.
    """
    where = Path(path)
    try:
        with where.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError:
        return False
    if not head or head.startswith(MAGIC):
        return True
    if head.startswith((b"PAR1", b"ARROW1")):
        return _schema_has_sign(where)
    text = head.decode("utf-8", "replace")
    start = text[:4096].lower()
    if start.lstrip().startswith("<!doctype html"):
        return f'name="generator" content="{SIGN}' in start
    if start.lstrip().startswith("{"):
        return f'"{SIGN}":' in start
    return _has_scores(text, where)


def _has_scores(text: str, path: Path) -> bool:
    """Whether a line of names ends with what scoring adds, or has two of it, in any order.

    One is enough in a file that is named as scores are by default.
    """
    enough = 1 if ".scored." in path.name else 2
    header = text.splitlines()[0] if text.splitlines() else ""
    for delimiter in (",", "\t"):
        names = [name.strip().strip('"') for name in header.split(delimiter)]
        if names[-1] in _ADDED or len(_ADDED.intersection(names)) >= enough:
            return True
    return False


def _schema_has_sign(path: Path) -> bool:
    try:
        if path.suffix.lower() in {".parquet", ".pq"}:
            schema = need("pyarrow.parquet").read_schema(path)
        else:
            with pa.OSFile(os.fspath(path)) as source:
                schema = pa.ipc.open_file(source).schema
    except (OSError, ValueError, KeyError):
        return False
    return SIGN.encode() in (schema.metadata or {})
