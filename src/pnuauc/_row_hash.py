"""A stable number for every row, the same however a table is cut, stored or typed.

    key = scramble(... step(step(0, cell_1), cell_2) ...)      64 bits, shape (n,)

A cell counts by what it says: -0.0 is 0.0, every missing value is one value, 3 in an integer
column is 3.0 in a float column. Which rows are drawn, in which order they come and which fold
holds them out follow from the key alone, so that files, partitions and machines agree without
talking to each other. Identical rows have one key. Arrow columns: :mod:`pnuauc._sources._keys`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["MISSING_CELL", "Keys", "byte_hashes", "combined", "fold_of", "matrix_keys",
           "number_bits", "shuffled", "whole_bits"]  # fmt: skip

Keys: TypeAlias = NDArray[np.uint64]

#: What a missing cell counts as.
MISSING_CELL = np.uint64(0x6D697373696E6721)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_WHOLE = np.uint64(0x77686F6C656E756D)
_FOLDS = 0x666F6C6473
#: Rows hashed at a time: what is worked on stays in a core's cache.
_BLOCK = 16_384


def matrix_keys(X: Any) -> Keys:
    """Keys of the rows of a matrix, shape (n, d) -> (n,): those of a table with these columns."""
    X = np.asarray(X)
    return combined(list(X.T), len(X))


def combined(columns: Sequence[NDArray[Any]], n_rows: int) -> Keys:
    """Keys of rows, shape (n,), from columns of numbers; names do not count.

    A column of uint64 is taken for what its cells count as already.
    """
    out = np.zeros(n_rows, dtype=np.uint64)
    for start in range(0, n_rows, _BLOCK):
        h = out[start : start + _BLOCK]
        spare = np.empty_like(h)
        for column in columns:
            cells = column[start : start + _BLOCK]
            h ^= cells if column.dtype == np.uint64 else number_bits(cells)
            h *= _STEP
            np.right_shift(h, np.uint64(29), out=spare)
            h ^= spare
            h += _ONE  # a column of zeros counts too
    return _scrambled(out)


def shuffled(keys: Keys, seed: int) -> Keys:
    """Another 64-bit number for each key: a one-to-one map that the seed chooses."""
    return _scrambled(keys ^ _scrambled(np.array([(seed + 1) % 2**64], dtype=np.uint64)))


def fold_of(keys: Keys, n_folds: int) -> NDArray[np.intp]:
    """The fold of each row, shape (n,); rows with the same key share it."""
    return (shuffled(keys, _FOLDS) % np.uint64(n_folds)).astype(np.intp)


def _scrambled(h: Keys) -> Keys:
    """The finaliser of splitmix64, one to one."""
    h = (h ^ (h >> np.uint64(30))) * _ONE
    h = (h ^ (h >> np.uint64(27))) * _TWO
    return np.asarray(h ^ (h >> np.uint64(31)))


def number_bits(values: NDArray[Any]) -> Keys:
    """What numbers count as, 64 bits each: those of the float, or of an integer that is none."""
    floats = np.add(values, 0.0, dtype=np.float64)  # -0.0 becomes 0.0
    bits: Keys = floats.view(np.uint64)
    if values.dtype.kind == "f":
        gaps = np.isnan(floats)
        if gaps.any():
            bits[gaps] = MISSING_CELL
    elif values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        for i in np.flatnonzero(np.abs(floats) >= 2.0**53):
            bits[i] = whole_bits(int(values[i]))
    return bits


def whole_bits(number: int) -> np.uint64:
    """What a whole number counts as: that of its float, where that says the same."""
    exact = np.array([float(number)])
    if int(exact[0]) == number:
        return np.uint64(exact.view(np.uint64)[0])
    return np.uint64(_scrambled(np.array([number % 2**64], dtype=np.uint64) ^ _WHOLE)[0])


def byte_hashes(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> Keys:
    """Hashes of byte strings laid end to end, shape (n,): string i is data[ends[i]:ends[i + 1]].

    The sum over a string of a random-looking number for (place, byte), then scrambled with its
    length.
    """
    out = np.diff(ends).astype(np.uint64) * _STEP
    for start in range(0, len(out), _BLOCK):
        edges = ends[start : start + _BLOCK + 1]
        lengths = np.diff(edges)
        full = np.flatnonzero(lengths)
        if len(full):
            first = edges[:-1] - edges[0]
            place = np.arange(edges[-1] - edges[0]) - np.repeat(first, lengths)
            terms = _scrambled(place.astype(np.uint64) * _STEP + data[edges[0] : edges[-1]])
            out[start + full] += np.add.reduceat(terms, first[full])
    return _scrambled(out + _TWO)
