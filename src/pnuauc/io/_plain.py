"""Anything -> what JSON can say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["plain", "visible"]


def plain(value: Any) -> Any:
    """JSON without numpy's types; numbers that JSON cannot say become null.

    Examples
    --------
    >>> plain({"a": np.float32(1), "b": (float("nan"), np.arange(2))})
    {'a': 1.0, 'b': [None, [0, 1]]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
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


def visible(text: str) -> str:
    """Text without control characters: what strangers wrote must not steer terminal or page.

    Examples
    --------
    >>> "\\x1b" in visible("a\\x1b[2Jb")
    False
    """
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
