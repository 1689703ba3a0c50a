"""A model as one file: what it says (:mod:`_container` has the bytes), and the way back.

    manifest    format, version, libraries, encoder, scorer, threshold, card
    arrays      encoder/..., scorer/..., quantiles, typical (of tables), seen/... (hashes)

No part of the file is an object. Encoder and scorer are rebuilt by our own code from values that
are asked for by name, type and range, and the parts are held against each other.
"""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pnuauc._utils.show import jsonable
from pnuauc._utils.stored import Parts, refuse
from pnuauc.exceptions import InputError, ModelFileError
from pnuauc.io.cells import pa
from pnuauc.io.container import FORMAT_VERSION, read_container, write_container
from pnuauc.io.encode import VIEWS, TableEncoder
from pnuauc.io.write import atomic_file, is_run_id
from pnuauc.model.model import SeenRows, TableModel, read_scorer

FORMAT = "pnuauc-model"
_MAX_QUANTILES = 100_000
#: Characters of the command that a card keeps: one may name thousands of files.
_MAX_COMMAND, _MAX_IDS = 10_000, 1000


def library_versions() -> dict[str, str]:
    """Versions of what a model depends on."""
    import pnuauc

    found = {"pnuauc": pnuauc.__version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")}


def save_model(model: TableModel, path: str | os.PathLike[str]) -> None:
    """Write the model file, whole or not at all."""
    with atomic_file(path) as stream:
        write_model(model, stream)


def write_model(model: TableModel, stream: Any) -> None:
    """Write the model's bytes into an open file; InputError where it cannot be stored."""
    if model.unstorable is not None:
        raise InputError(model.unstorable)
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "libraries": library_versions(),
        "encoder": model.encoder.spec(),
        "scorer": model.scorer.spec(),
        "threshold": float(model.threshold),
        "card": _without_columns(jsonable(model.card)),
    }
    arrays: dict[str, Any] = {"quantiles": np.asarray(model.quantiles, dtype=np.float64)}
    if model.typical is not None:
        arrays["typical"] = np.asarray(model.typical, dtype=np.float64)
    if model.seen is not None:
        manifest["seen"] = {"key": model.seen.key}
        arrays |= {"seen/hashes": model.seen.hashes, "seen/scores": model.seen.scores}
    for name, part in (("encoder", model.encoder), ("scorer", model.scorer)):
        arrays |= {f"{name}/{key}": np.asarray(value) for key, value in part.arrays().items()}
    write_container(stream, manifest, arrays, check=_rebuild)


def load_model(path: str | os.PathLike[str]) -> TableModel:
    """Read a model file, from anyone; a :class:`ModelFileError` says why it cannot be."""
    return open_model(path)[0]


def open_model(path: str | os.PathLike[str]) -> tuple[TableModel, dict[str, Any]]:
    """(model, manifest) of one file, read once."""
    where = Path(path)
    if where.is_dir():
        raise ModelFileError(f"'{where}' is a folder, not a model file.")
    try:
        manifest, arrays = read_container(where)
        with np.errstate(all="ignore"):  # checks ask whether results are finite
            model = _rebuild(manifest, arrays)
        return model, {**manifest, "card": model.card}
    except ModelFileError as error:
        raise ModelFileError(f"'{where}' cannot be used as a model: {error}.") from None
    except FileNotFoundError:
        raise ModelFileError(
            f"There is no model file '{where}'; check the name and the folder."
        ) from None
    except PermissionError:
        raise ModelFileError(f"'{where}' may not be read; check its permissions.") from None
    except (OSError, ValueError) as error:  # a name with a null byte, a broken disk
        raise ModelFileError(f"'{where}' cannot be read ({_first(error)}).") from error
    except MemoryError:
        raise ModelFileError(f"There is not enough memory to read '{where}'.") from None


def _rebuild(manifest: dict[str, Any], arrays: dict[str, Any]) -> TableModel:
    parts = Parts(manifest, arrays)
    parts.text("format", [FORMAT])
    parts.integer("version", FORMAT_VERSION, FORMAT_VERSION)
    libraries = parts.mapping("libraries")
    if len(libraries) > 100 or not all(isinstance(v, str) for v in libraries.values()):
        raise refuse("its list of libraries is malformed")
    encoder = parts.part("encoder", TableEncoder.rebuild)
    widths = {view: encoder.encoding_.width(view) for view in VIEWS}
    scorer = read_scorer(parts.sub("scorer"), widths)
    threshold = parts.number("threshold")
    quantiles = parts.array("quantiles", "float", (None,))
    if not 2 <= len(quantiles) <= _MAX_QUANTILES or (np.diff(quantiles) < 0).any():
        raise refuse("the quantiles of its scores are out of order")
    typical = None
    if "typical" in arrays:
        shape = (sum(widths[view] for view in scorer.views),)
        typical = parts.array("typical", "float", shape).astype(np.float64)
    card = _check_card(parts.mapping("card"), encoder)
    seen = _read_seen(parts.sub("seen")) if parts.has("seen") else None
    parts.finish()
    model = TableModel(encoder, scorer, threshold, quantiles, card, typical, seen)
    _try_a_row(model)
    return model


def _read_seen(part: Parts) -> SeenRows:
    key = part.integer("key", 0, 2**62)
    hashes = part.array("hashes", "integer", (None,)).astype(np.int64)
    scores = part.array("scores", "float", (len(hashes),), finite=False).astype(np.float64)
    if (hashes[1:] < hashes[:-1]).any() or np.isinf(scores).any():  # a difference may overflow
        raise refuse("the rows that it has seen are out of order")
    part.finish()
    return SeenRows(key, hashes, scores)


def _without_columns(card: dict[str, Any]) -> dict[str, Any]:
    """The card without what the encoder says already: what stands twice can contradict."""
    if len(card.get("command") or "") > _MAX_COMMAND:
        card = {**card, "command": card["command"][: _MAX_COMMAND - 4] + " ..."}
    table = card.get("table")
    if not isinstance(table, dict) or "columns" not in table:
        return card
    return {**card, "table": {k: v for k, v in table.items() if k != "columns"}}


def _check_card(card: dict[str, Any], encoder: TableEncoder) -> dict[str, Any]:
    """The card with the encoder's columns; what scoring reads of it is checked, and agrees."""
    label, ids = card.get("label"), card.get("ids", [])
    listed = isinstance(ids, list) and all(isinstance(name, str) for name in ids)
    if not isinstance(label, (str, type(None))) or not listed:
        raise refuse("its card does not name the label and the ids")
    if "run" in card and not is_run_id(card["run"]):
        raise refuse("its card names no run of pnuauc fit")
    if len(str(card.get("command"))) > _MAX_COMMAND or len(ids) > _MAX_IDS:
        raise refuse("its card is longer than any fit makes it")
    names = {column.name for column in encoder.columns_}
    if label in names or names.intersection(ids):
        raise refuse("its card calls a feature the label or an id")
    table = card.get("table", {})
    if not isinstance(table, dict):
        raise refuse("its card does not describe the table")
    width = encoder.encoding_.width()
    if table.get("n_encoded", width) != width:
        raise refuse("its card and its encoder count columns differently")
    if table:
        card["table"] = {**table, "columns": [column.to_dict() for column in encoder.columns_]}
    return card


def _try_a_row(model: TableModel) -> None:
    """An empty row must get a finite score."""
    encoder = model.encoder
    row: Any
    if encoder.is_sparse:
        row = sparse.csr_matrix((1, encoder.encoding_.width()))
    else:
        row = pa.table({c.name: pa.nulls(1) for c in encoder.columns_})
    try:
        scores = model.score(row)
    except InputError:
        raise refuse("it gives an empty row a score that is not a number") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise refuse("its parts do not fit together") from None
    if scores.shape != (1,):
        raise refuse("it does not give one score to one row")


def _first(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
