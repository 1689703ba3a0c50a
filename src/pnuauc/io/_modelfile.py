"""One file for a model: a zip of JSON and plain arrays. Never a pickle, never an object.

    manifest.json   format, version, what the model is and how it was made, SHA-256 of the rest
    arrays.npz      centres, widths, coefficients, quantiles, the encoder's medians, means, scales
                    (numpy, allow_pickle=False)

The zip's comment holds the SHA-256 of the manifest, so that every byte that matters is covered.
The checksum tells damage, not malice; what makes a stranger's file safe to load is that no step
runs code from it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import platform
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pnuauc.exceptions import ModelFileError
from pnuauc.io._encoder import TableEncoder
from pnuauc.io._extras import need
from pnuauc.io._model import TableModel
from pnuauc.io._plain import plain
from pnuauc.io._writing import atomic_file

__all__ = ["FORMAT_VERSION", "load_model", "read_manifest", "save_model"]

FORMAT = "pnuauc-model"
FORMAT_VERSION = 2
_MEMBERS = ("arrays.npz",)
_ENCODER = "encoder/"
#: No part of a sensible model comes near this; a zip bomb does.
_MAX_BYTES = 512 * 2**20


def library_versions() -> dict[str, str]:
    """Versions of what a model depends on."""
    import scipy
    import sklearn

    import pnuauc

    return {
        "pnuauc": pnuauc.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def save_model(model: TableModel, path: str | os.PathLike[str]) -> None:
    """Write the model file, whole or not at all."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = model.arrays()
    arrays |= {f"{_ENCODER}{name}": values for name, values in model.encoder.arrays().items()}
    np.savez_compressed(buffer, **arrays)
    members = {"arrays.npz": buffer.getvalue()}
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "libraries": library_versions(),
        "encoder": model.encoder.spec(),
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
        "card": model.card,
    }
    text = json.dumps(plain(manifest), indent=1, ensure_ascii=False).encode("utf-8")
    with (
        atomic_file(path) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.comment = f"{FORMAT} sha256 {hashlib.sha256(text).hexdigest()}".encode()
        archive.writestr("manifest.json", text)
        for name, data in members.items():
            archive.writestr(name, data)


def load_model(path: str | os.PathLike[str]) -> TableModel:
    """Read a model file, from anyone; a :class:`ModelFileError` says why it cannot be."""
    manifest, members = _read_archive(Path(path))
    name = f"'{path}'"
    try:
        arrays = _read_arrays(members["arrays.npz"])
        encoder = TableEncoder.from_spec(
            manifest["encoder"],
            {k.removeprefix(_ENCODER): v for k, v in arrays.items() if k.startswith(_ENCODER)},
        )
        width = len(encoder.get_feature_names_out())
        basis = TableModel.basis_from(arrays, width)
        model = TableModel(
            encoder,
            basis,
            np.asarray(arrays["coef"], dtype=np.float64),
            float(arrays["threshold"][0]),
            np.asarray(arrays["quantiles"], dtype=np.float64),
            dict(manifest["card"]),
        )
        _check_shapes(model, width)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a crafted file makes the readers raise is one sentence
        raise ModelFileError(
            f"{name} is not a usable model ({type(error).__name__}: {_first(error)}); "
            "fit it again or ask for a fresh copy."
        ) from error
    return model


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest alone, checked for damage: what ``pnuauc inspect`` shows."""
    return _read_archive(Path(path))[0]


def _read_archive(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    if not path.exists():
        raise ModelFileError(f"There is no model file '{path}'; check the name and the folder.")
    if path.is_dir():
        raise ModelFileError(f"'{path}' is a folder, not a model file.")
    damaged = f"'{path}' is damaged or cut short; fit it again or ask for a fresh copy"
    try:
        with zipfile.ZipFile(path) as archive:
            wanted = {"manifest.json", *_MEMBERS}
            names = archive.namelist()
            if "manifest.json" not in names:
                raise ModelFileError(f"'{path}' is a zip file, but no pnuauc model.")
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            if sum(sizes.values()) > _MAX_BYTES:
                raise ModelFileError(f"'{path}' unpacks to more than a model can hold; refused.")
            text = archive.read("manifest.json")
            manifest = _read_json(path, text)
            if set(names) != wanted or len(names) != len(wanted):
                raise ModelFileError(f"{damaged}.")
            comment = f"{FORMAT} sha256 {hashlib.sha256(text).hexdigest()}".encode()
            if archive.comment != comment:
                raise ModelFileError(f"{damaged} (the checksum of its manifest differs).")
            members = {name: archive.read(name) for name in _MEMBERS}
    except ModelFileError:
        raise
    except PermissionError:
        raise ModelFileError(f"'{path}' may not be read; check its permissions.") from None
    except zipfile.BadZipFile as error:
        with path.open("rb") as stream:
            magic = stream.read(4)
        if magic == b"PK\x03\x04":
            raise ModelFileError(f"{damaged}.") from error
        raise ModelFileError(
            f"'{path}' is no pnuauc model (those are written by pnuauc fit)."
        ) from error
    except (OSError, EOFError, zlib.error, NotImplementedError, RuntimeError, ValueError) as error:
        raise ModelFileError(f"{damaged} ({_first(error)}).") from error
    for name, data in members.items():
        if hashlib.sha256(data).hexdigest() != manifest["sha256"].get(name):
            raise ModelFileError(f"{damaged} (the checksum of {name} differs).")
    return manifest, members


def _read_json(path: Path, text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"'{path}' is damaged: its manifest is no JSON.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"'{path}' is a zip file, but no pnuauc model.")
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"'{path}' is damaged: its format version is {version!r}.")
    if version < FORMAT_VERSION:
        raise ModelFileError(
            f"'{path}' was written by an older pnuauc (format version {version}): fit it again."
        )
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"'{path}' has format version {version}, this pnuauc reads up to {FORMAT_VERSION}: "
            "update with pip install --upgrade pnuauc."
        )
    kinds = {"encoder": dict, "sha256": dict, "card": dict, "libraries": dict}
    for key, kind in kinds.items():
        if not isinstance(manifest.get(key), kind):
            raise ModelFileError(f"'{path}' is damaged: its manifest lacks {key}.")
    return manifest


def _read_arrays(data: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(data)) as inner:
        if sum(info.file_size for info in inner.infolist()) > _MAX_BYTES:
            raise ModelFileError("The model's arrays unpack to more than a model can hold.")
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _check_shapes(model: TableModel, width: int) -> None:
    """A file with consistent checksums may still hold nonsense: one row must pass through."""
    for values in (model.coef, model.quantiles, np.array([model.threshold])):
        if values.ndim != 1 or not np.isfinite(values).all():
            raise ValueError("coefficients must be finite vectors")
    if not model.encoder.is_sparse:
        pa = need("pyarrow")
        empty = pa.table({c.name: pa.nulls(1) for c in model.encoder.columns_})
        encoded = model.encoder.encode(empty)
        if encoded.shape != (1, width) or not np.isfinite(encoded).all():
            raise ValueError("columns and encoder do not fit together")
    centers = getattr(model.basis, "centers_", None)
    if centers is not None and centers.shape[1] != width:
        raise ValueError("centres and columns do not fit together")
    row = np.zeros((1, width))
    scores = model.score_encoded(sparse.csr_matrix(row) if model.encoder.is_sparse else row)
    if scores.shape != (1,) or not math.isfinite(float(scores[0])):
        raise ValueError("coefficients and centres do not fit together")


def _first(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
