"""Model files bent at random: every place of the manifest, every array, every byte."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from attack.containers import join, sealed, split

__all__ = ["HOSTILE", "bent_model", "places"]

#: Values that no place of a manifest expects.
HOSTILE: list[Any] = [
    *(None, True, False, -1, 0, 1, 3, 2**31, 2**62, -(2**63), 10**12, 1e308, -1e-320),
    *("", "x" * 50, "number", "text", "\x1b[2J", [], {}, [[]], [{}], [1, 2], {"a": {"b": 1}}),
]
_NUMBERS = [0, 1, -1, 2, 255, 2**31 - 1, 2**62, -(2**63), 1e308, -1e308, 1e-320, np.nan, np.inf]
_KINDS = ["float64", "float32", "int64", "int32", "uint8"]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a nest of dicts and lists, the inner nodes included."""
    if not isinstance(value, (dict, list)):
        return [path]
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        found += places(item, (*path, key))
    return found


def bent_model(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three changes of a sound file, with a right checksum four times out of five."""
    manifest, arrays = split(data)
    manifest = copy.deepcopy(manifest)
    declared = None
    for _ in range(rng.integers(1, 4)):
        draw = rng.random()
        if draw < 0.45:
            _bend_manifest(manifest, rng)
        elif draw < 0.85:
            _bend_array(arrays, rng)
        else:
            declared = _bend_declaration(arrays, rng)
    out = join(manifest, arrays, declared)
    if rng.random() < 0.1:
        return sealed(_bend_bytes(out[16:400], rng), out[400:-32])
    return _bend_bytes(out, rng) if rng.random() < 0.1 else out


def _bend_manifest(manifest: Any, rng: np.random.Generator) -> None:
    known = places(manifest)
    *way, last = known[rng.integers(len(known))]
    at = manifest
    for key in way:
        at = at[key]
    draw = rng.random()
    if draw < 0.2 and isinstance(at, dict):
        del at[last]
    elif draw < 0.3 and isinstance(at, dict):
        at[str(last) + "x"] = at.pop(last)
    elif draw < 0.4 and isinstance(at, list):
        at.append(at[last])
    elif draw < 0.5:
        *other, key = known[rng.integers(len(known))]
        source = manifest
        for step in other:
            source = source[step] if _holds(source, step) else {}
        at[last] = copy.deepcopy(source[key]) if _holds(source, key) else None
    else:
        at[last] = copy.deepcopy(HOSTILE[rng.integers(len(HOSTILE))])


def _holds(value: Any, key: Any) -> bool:
    if isinstance(value, dict):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(value)


def _bend_array(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    name = str(rng.choice(sorted(arrays))) if arrays else "coef"
    value = arrays.get(name, np.zeros(3))
    draw = rng.random()
    with np.errstate(all="ignore"):
        if draw < 0.5 and value.size:
            number = np.array(_NUMBERS[rng.integers(len(_NUMBERS))])
            value.reshape(-1)[rng.integers(value.size)] = number.astype(value.dtype)
        elif draw < 0.57:
            arrays[name] = value.astype(rng.choice(_KINDS))
        elif draw < 0.6 and value.nbytes < 20_000:  # far more of something than a fit has
            small = {k: v for k, v in arrays.items() if v.nbytes < 20_000}
            together = [k for k, v in small.items() if v.shape[:1] == value.shape[:1]]
            for key in together if rng.random() < 0.5 else [name]:
                arrays[key] = np.repeat(arrays[key], 1000, axis=0)
        elif draw < 0.8:
            forms = [value[1:], value[::-1], value.T, value[..., None], np.repeat(value, 2, axis=0)]
            arrays[name] = np.ascontiguousarray(forms[rng.integers(len(forms))])
        elif draw < 0.9:
            arrays.pop(name, None)
        else:
            other = str(rng.choice(sorted(arrays)))
            arrays[name], arrays[other] = arrays[other], value


def _bend_declaration(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> list[Any]:
    declared: list[Any] = [
        {"name": name, "dtype": value.dtype.name, "shape": list(value.shape)}
        for name, value in arrays.items()
    ]
    _bend_manifest({"arrays": declared}, rng)
    return declared


def _bend_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(rng.integers(1, 8)):
        if out:
            out[rng.integers(len(out))] = rng.integers(256)
    return bytes(out[: rng.integers(len(out) + 1)] if rng.random() < 0.2 else out)
