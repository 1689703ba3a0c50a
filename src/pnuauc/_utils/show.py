"""JSON, text for strangers' eyes, and results as one line or as a table in a notebook."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from html import escape
from typing import Any

import numpy as np


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


#: Longer texts are cut in a one-line repr.
_LONGEST = 60


def few(values: Iterable[Any], most: int = 5) -> str:
    """The first values, for a sentence.

    Examples
    --------
    >>> few(["a", "b", "c"], 2)
    "'a', 'b', ..."
    """
    known = list(values)
    return ", ".join(map(repr, known[:most])) + (", ..." if len(known) > most else "")


class ShownAsTable:
    """Base of dataclasses that are results: short ``repr``, and a table in a notebook."""

    def _shown(self) -> list[tuple[str, Any]]:
        """Names and values, in the order of the fields; what is empty is left out."""
        pairs = [(f.name, getattr(self, f.name)) for f in fields(self) if f.repr]  # type: ignore[arg-type]
        return [(name, value) for name, value in pairs if not _empty(value)]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain numbers, strings, lists and dicts: ready for JSON (NaN is None)."""
        found: dict[str, Any] = jsonable(asdict(self))  # type: ignore[call-overload]
        return found

    def __repr__(self) -> str:
        parts = (f"{name}={_short(value)}" for name, value in self._shown())
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), value) for name, value in self._shown()]
        return html_table(type(self).__name__, rows)


def html_table(title: str, rows: list[tuple[str, Any]]) -> str:
    """Two columns; every character of names and values is text, never markup."""
    cell = 'style="text-align: left; vertical-align: top"'
    lines = (
        f"<tr><th {cell}>{escape(name)}</th><td {cell}>{_lines(value)}</td></tr>"
        for name, value in rows
    )
    caption = f'<caption style="text-align: left">{escape(title)}</caption>'
    return f"<table>{caption}<tbody>{''.join(lines)}</tbody></table>"


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, tuple, list, dict)) and not value)


def _lines(value: Any) -> str:
    if isinstance(value, (tuple, list)) and all(isinstance(item, str) for item in value):
        return "<br>".join(escape(item) for item in value)
    return escape(_text(value))


def _text(value: Any) -> str:
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray):
        shape = " x ".join(map(str, value.shape))
        if value.size and value.dtype.kind in "biuf":
            return f"{shape} numbers, {value.min():.4g} to {value.max():.4g}"
        return f"{shape} values"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_text(item)}" for key, item in value.items())
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return ", ".join(map(_text, value))
    return str(value)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    text = repr(value) if isinstance(value, str) else _text(value)
    if isinstance(value, (tuple, list, Mapping)):
        return f"<{len(value)}>" if len(text) > _LONGEST else f"({text})"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
