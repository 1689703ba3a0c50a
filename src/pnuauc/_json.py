"""JSON, written in one place."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

__all__ = ["dump_json", "exact_json", "jsonable", "visible"]


def jsonable(value: Any) -> Any:
    """The same value made of dicts, lists, strings, numbers and None only.

    Numbers that JSON does not have (NaN, infinities) become None.

    Examples
    --------
    >>> jsonable({"a": np.float32(1), "b": (float("nan"), np.arange(2))})
    {'a': 1.0, 'b': [None, [0, 1]]}
    """
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray):
        return [jsonable(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        # half of a surrogate pair (a file name in another encoding) is no text
        return value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)


def dump_json(value: Any, *, ensure_ascii: bool = False) -> str:
    """JSON text, indented, of anything that :func:`jsonable` reads."""
    return json.dumps(jsonable(value), indent=1, ensure_ascii=ensure_ascii, allow_nan=False)


def exact_json(value: Any) -> str:
    """JSON text on one line that reads back as the same value, or an error.

    Examples
    --------
    >>> exact_json({"a": [1, 0.5, None]})
    '{"a": [1, 0.5, null]}'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def visible(text: str) -> str:
    """Text without control characters: what strangers wrote must not steer terminal or page.

    Examples
    --------
    >>> "\\x1b" in visible("a\\x1b[2Jb")
    False
    """
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
