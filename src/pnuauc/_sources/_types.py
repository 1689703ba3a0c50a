"""One type for a column of several files, or a sentence that says which files disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa
from pnuauc.io._cells import is_number, is_text

__all__ = ["settled_schema"]


def settled_schema(
    schemas: Sequence[tuple[str, Any]], partitions: Mapping[str, Any] | None = None
) -> Any:
    """The schema that all files fit.

    Parameters
    ----------
    schemas : (name of the file, its schema), in order
    partitions : columns that folders name, with their types
    """
    first_name, first = schemas[0]
    fields = []
    for column in first.names:
        kinds = []
        for name, schema in schemas:
            if column not in schema.names:
                raise InputError(
                    f"'{name}' has no column {column!r}, which '{first_name}' has; all files of a "
                    "table need the same columns."
                )
            kinds.append((name, schema.field(column).type))
        fields.append((column, _settled(column, kinds)))
    for name, schema in schemas:
        extra = next((column for column in schema.names if column not in first.names), None)
        if extra is not None:
            raise InputError(
                f"'{name}' has a column {extra!r}, which '{first_name}' lacks; all files of a "
                "table need the same columns."
            )
    for column, kind in (partitions or {}).items():
        if column in first.names:
            raise InputError(
                f"Column {column!r} is in '{first_name}' and in the name of its folder; leave it "
                "out of one."
            )
        fields.append((column, kind))
    return pa.schema(fields)


def _settled(column: str, kinds: Sequence[tuple[str, Any]]) -> Any:
    name, kind = kinds[0]
    for other_name, other in kinds[1:]:
        joint = _joint(kind, other)
        if joint is None:
            raise InputError(
                f"Column {column!r} holds {other} in '{other_name}' but {kind} in '{name}'; write "
                "it in one type in all files, or leave the column out of them."
            )
        kind = joint
    return kind


def _joint(a: Any, b: Any) -> Any | None:
    """The type that holds the values of both, or None."""
    types = pa.types
    if a == b or types.is_null(b):
        return a
    if types.is_null(a):
        return b
    if types.is_dictionary(a) or types.is_dictionary(b):
        plain = [t.value_type if types.is_dictionary(t) else t for t in (a, b)]
        values = _joint(*plain)
        return None if values is None else pa.dictionary(pa.int32(), values)
    if is_text(a) and is_text(b):
        return pa.large_string()
    if types.is_integer(a) and types.is_integer(b):
        return pa.int64()
    if is_number(a) and is_number(b):
        return pa.float64()
    dated = (types.is_timestamp, types.is_date)
    if any(is_a(a) for is_a in dated) and any(is_a(b) for is_a in dated):
        zones = {t.tz for t in (a, b) if types.is_timestamp(t)}
        return pa.timestamp("us", zones.pop()) if len(zones) == 1 else None
    return None
