"""Model files taken apart and put together by an attacker: no bounds, no checks, right checksums.

Written from the description of the format, not with the library's own writer, which refuses to
write nonsense.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np

__all__ = ["MAGIC", "join", "sealed", "split"]

MAGIC = b"\x8fPNUAUC\n"


def split(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(manifest without ``arrays``, arrays by name) of a sound file."""
    assert data[:8] == MAGIC
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    (length,) = struct.unpack_from("<I", data, 12)
    manifest = json.loads(data[16 : 16 + length])
    arrays, at = {}, 16 + length
    for item in manifest.pop("arrays"):
        dtype = np.dtype(item["dtype"]).newbyteorder("<")
        count = int(np.prod(item["shape"], dtype=int))
        value = np.frombuffer(data, dtype, count, at).reshape(item["shape"])
        arrays[item["name"]] = value.copy()
        at += value.nbytes + -value.nbytes % 8
    assert at == len(data) - 32
    return manifest, arrays


def join(
    manifest: dict[str, Any], arrays: dict[str, np.ndarray], declared: list[Any] | None = None
) -> bytes:
    """A file with a right checksum; ``declared`` replaces the list of arrays by a lie."""
    true = [
        {"name": name, "dtype": value.dtype.name, "shape": list(value.shape)}
        for name, value in arrays.items()
    ]
    content = {**manifest, "arrays": true if declared is None else declared}
    blobs = b"".join(_padded(value.tobytes()) for value in arrays.values())
    return sealed(json.dumps(content).encode(), blobs)


def sealed(text: bytes, blobs: bytes = b"", version: int = 2) -> bytes:
    """Any manifest and any bytes, framed as a model file."""
    text += b" " * (-len(text) % 8)
    body = struct.pack("<8sII", MAGIC, version, len(text)) + text + blobs
    return body + hashlib.sha256(body).digest()


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 8)
