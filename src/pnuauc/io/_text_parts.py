"""Arrow text taken apart: who matches a pattern, and the numbers in its named parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.io._arrow import pa, pc

__all__ = [
    "Floats",
    "Mask",
    "cast",
    "fields",
    "fraction",
    "hours_of",
    "integer",
    "matches",
    "to_numpy",
]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


def matches(pattern: str, values: Any) -> Mask:
    return to_numpy(pc.fill_null(pc.match_substring_regex(values, pattern), False)).astype(bool)


def cast(values: Any) -> Floats:
    return to_numpy(values.cast(pa.float64()))


def to_numpy(values: Any) -> NDArray[Any]:
    if isinstance(values, pa.ChunkedArray):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def fields(values: Any, pattern: str) -> tuple[dict[str, Any], Mask]:
    """The named parts of each cell as arrow text ("" where it is not there), and who matches."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    found = pc.extract_regex(values, pattern)
    good = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    names = [found.type.field(i).name for i in range(found.type.num_fields)]
    parts = {name: pc.struct_field(found, [name]).cast(pa.string()) for name in names}
    return {name: pc.fill_null(part, "") for name, part in parts.items()}, good


def integer(texts: Any, default: int = 0) -> NDArray[np.int64]:
    filled = pc.if_else(pc.equal(texts, ""), str(default), texts)
    return np.asarray(filled.cast(pa.int64()).to_numpy(zero_copy_only=False))


def fraction(texts: Any) -> Floats:
    return cast(pc.binary_join_element_wise("0.", texts, "0", ""))


def hours_of(parts: dict[str, Any]) -> NDArray[np.int64]:
    """Hours on a clock of 24, whether or not a cell says am or pm."""
    hours = integer(parts["H"])
    if "p" not in parts:
        return hours
    half = np.asarray(pc.utf8_lower(pc.utf8_slice_codeunits(parts["p"], 0, 1)).to_pylist())
    hours = np.where((half == "a") & (hours == 12), 0, hours)
    return np.where((half == "p") & (hours < 12), hours + 12, hours)
