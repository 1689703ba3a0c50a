"""The bytes of a model file: a manifest, plain arrays, a checksum. No compression, no objects.

    8 bytes   magic
    4 bytes   version of the format, little-endian
    4 bytes   length m of the manifest, little-endian
    m bytes   manifest, JSON in UTF-8, padded with blanks to a multiple of 8
    arrays    one after the other in the manifest's order, little-endian, row by row, each padded
              with zeros to a multiple of 8
    32 bytes  SHA-256 of all that precedes

The manifest declares name, type and shape of every array and these must fill the file to the
byte, so that nothing is allocated that the file does not hold. Nothing is compressed: a file
cannot grow when it is read. The checksum detects damage; against malice stand the bounds here and
the checks of the code that rebuilds a part (:mod:`pnuauc._utils.stored`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.show import exact_json
from pnuauc._utils.stored import refuse

MAGIC = b"\x8fPNUAUC\n"
FORMAT_VERSION = 2
#: Bytes of a whole file. A model of 200 centres and 10,000 columns takes 16 MB.
MAX_FILE = 256 * 2**20
#: Bytes, nesting and values of a manifest: Python takes up to 70 bytes of memory for a value.
MAX_MANIFEST = 16 * 2**20
MAX_DEPTH = 24
MAX_VALUES = 1_000_000
MAX_ARRAYS = 1000
_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("float64", "float32", "int64", "int32", "uint8")
}
_HEAD = struct.Struct("<8sII")
_SUM_BYTES = 32


def write_container(
    stream: IO[bytes],
    manifest: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    check: Callable[[dict[str, Any], dict[str, NDArray[Any]]], object] = lambda *_: None,
) -> None:
    """Write the file; ``manifest`` gets the key ``arrays``, which says what follows.

    What could not be read back is not written: ``check`` rebuilds a model from both.
    """
    stored = {name: _storable(name, value) for name, value in arrays.items()}
    declared = [
        {"name": name, "dtype": value.dtype.name, "shape": list(value.shape)}
        for name, value in stored.items()
    ]
    content = {**manifest, "arrays": declared}
    text = exact_json(content).encode("utf-8")
    text += b" " * _padding(len(text))
    parsed = parse_manifest(text)
    del parsed["arrays"]
    check(parsed, stored)
    total = _HEAD.size + len(text) + _SUM_BYTES
    total += sum(value.nbytes + _padding(value.nbytes) for value in stored.values())
    if total > MAX_FILE or len(stored) > MAX_ARRAYS:
        raise refuse(f"The model would take {total:,} bytes; a model file has at most {MAX_FILE:,}")
    checksum = hashlib.sha256()

    def put(data: Any) -> None:
        checksum.update(data)
        stream.write(data)

    put(_HEAD.pack(MAGIC, FORMAT_VERSION, len(text)))
    put(text)
    for value in stored.values():
        put(value.tobytes())
        put(b"\0" * _padding(value.nbytes))
    stream.write(checksum.digest())


def _storable(name: str, value: NDArray[Any]) -> NDArray[Any]:
    if value.dtype == np.bool_:
        value = value.astype(np.uint8)
    if value.dtype.name not in _DTYPES:
        raise TypeError(f"array {name} of type {value.dtype} cannot be stored")
    return np.ascontiguousarray(value, dtype=_DTYPES[value.dtype.name])


def _padding(n: int) -> int:
    return -n % 8


def read_container(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(manifest, arrays) of a file; :class:`ModelFileError` (without its name) if it is not one.

    The file is held once, and the arrays are views of it; beside it, the manifest's values.
    """
    with _open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        head = stream.read(_HEAD.size)
        start = _HEAD.size + _manifest_length(head, size)
        content = memoryview(bytearray(size))
        content[: _HEAD.size] = head
        if stream.readinto(content[_HEAD.size :]) != size - _HEAD.size:  # type: ignore[attr-defined]
            raise refuse("it is cut short")
    if hashlib.sha256(content[:-_SUM_BYTES]).digest() != content[-_SUM_BYTES:]:
        raise refuse("it is damaged (its checksum differs)")
    manifest = parse_manifest(bytes(content[_HEAD.size : start]))
    return manifest, _arrays(manifest.pop("arrays", None), content[start:-_SUM_BYTES])


def _open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    # a pipe or a terminal would keep open() waiting; NONBLOCK does not, and means nothing to files
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise refuse("it is not a regular file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _manifest_length(head: bytes, size: int) -> int:
    if head[:4] == b"PK\x03\x04":
        raise refuse(
            "it is a zip file, as models of format 1 were; those held objects that cannot be "
            "opened safely: fit it again with this version"
        )
    if len(head) < _HEAD.size or head[:8] != MAGIC:
        raise refuse("it is not a pnuauc model (those are written by pnuauc fit)")
    _, version, length = _HEAD.unpack(head)
    if version > FORMAT_VERSION:
        raise refuse(
            f"it has format version {version}, this pnuauc reads {FORMAT_VERSION}: update with "
            "pip install --upgrade pnuauc"
        )
    if version != FORMAT_VERSION:
        raise refuse(f"it is damaged: its format version is {version}")
    if size > MAX_FILE:
        raise refuse(f"it has {size:,} bytes, a model file at most {MAX_FILE:,}")
    if length > MAX_MANIFEST:
        raise refuse(f"its manifest has {length:,} bytes, at most {MAX_MANIFEST:,} are read")
    if length + _HEAD.size + _SUM_BYTES > size:
        raise refuse("it is cut short")
    return int(length)


def parse_manifest(text: bytes) -> dict[str, Any]:
    """JSON within bounds: bytes, nesting, number of values; no NaN, no key twice."""
    if len(text) > MAX_MANIFEST:
        raise refuse(f"the manifest has {len(text):,} bytes, at most {MAX_MANIFEST:,} are read")
    marks = sum(text.count(c) for c in (b",", b":", b"[", b"{"))
    if max(marks, text.count(b'"')) > MAX_VALUES:
        raise refuse(f"the manifest has more than {MAX_VALUES:,} values")
    if _depth(text) > MAX_DEPTH:
        raise refuse(f"the manifest is nested more than {MAX_DEPTH} deep")
    try:
        manifest = json.loads(
            text.decode("utf-8"),
            parse_int=_whole_number,
            parse_float=_finite_number,
            parse_constant=_no_constant,
            object_pairs_hook=_no_key_twice,
        )
        # a lone surrogate is legal JSON and no text: printing it would fail later
        exact_json(manifest).encode("utf-8")
    except (ValueError, RecursionError):
        raise refuse("its manifest is not JSON that pnuauc writes") from None
    if not isinstance(manifest, dict):
        raise refuse("its manifest is not JSON that pnuauc writes")
    return manifest


def _depth(text: bytes) -> int:
    """Nesting of brackets outside strings; exact for valid JSON."""
    bare = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    letters = np.frombuffer(bare, dtype=np.uint8)
    # the parity of the quotes so far tells inside from outside; eight bits are enough for that
    outside = np.cumsum(letters == ord('"'), dtype=np.uint8) % 2 == 0
    steps = (outside & np.isin(letters, list(b"[{"))).astype(np.int8)
    steps -= (outside & np.isin(letters, list(b"]}"))).astype(np.int8)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _whole_number(text: str) -> int:
    if len(text) > 20:
        raise ValueError("a whole number of more than 20 digits")
    return int(text)


def _finite_number(text: str) -> float:
    value = float(text) if len(text) <= 40 else math.nan
    if not math.isfinite(value):
        raise ValueError("a number that is not finite")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _arrays(declared: Any, content: memoryview) -> dict[str, NDArray[Any]]:
    """Views by name; together they take all of the content, no more and no less."""
    if not isinstance(declared, list) or len(declared) > MAX_ARRAYS:
        raise refuse("its manifest does not list the arrays")
    found: dict[str, NDArray[Any]] = {}
    start = 0
    for item in declared:
        name, dtype, shape = _checked(item)
        n_bytes = math.prod(shape) * dtype.itemsize
        stop = start + n_bytes + _padding(n_bytes)
        if name in found or stop > len(content):
            raise refuse("its arrays and its size do not fit together")
        if bytes(content[start + n_bytes : stop]).strip(b"\0"):
            raise refuse("it has bytes where none belong")
        found[name] = np.frombuffer(content[start : start + n_bytes], dtype).reshape(shape)
        start = stop
    if start != len(content):
        raise refuse("its arrays and its size do not fit together")
    return found


def _checked(item: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    if not isinstance(item, dict) or set(item) != {"name", "dtype", "shape"}:
        raise refuse("its manifest does not describe the arrays")
    name, dtype, shape = item["name"], item["dtype"], item["shape"]
    sides = isinstance(shape, list) and len(shape) <= 3 and all(type(n) is int for n in shape)
    if not isinstance(name, str) or dtype not in list(_DTYPES) or not sides:
        raise refuse("its manifest does not describe the arrays")
    # also the sides beside a zero are bounded: numpy multiplies them
    if min(shape, default=0) < 0 or math.prod(max(side, 1) for side in shape) > MAX_FILE:
        raise refuse("it declares an array that no model file can hold")
    return name, _DTYPES[dtype], tuple(shape)
