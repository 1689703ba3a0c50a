"""Rows that occur very often, found in one visit and counted in a second.

A draw by key takes identical rows together or not at all. That is fair as long as no row occurs
often; where one does (a table of a few categories has nothing else), its copies are drawn one by
one instead, by a key and a running number: copies are alike, so it does not matter which they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pnuauc._row_hash import Keys, shuffled

__all__ = ["OFTEN", "KeyCounts"]

#: A row occurs often if it is more than one in so many.
OFTEN = 10_000
#: Counters: no row that is more than one in so many can be missed.
_COUNTERS = 2 * OFTEN


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """Counts of the commonest keys, each too low by at most ``lost`` (Misra and Gries).

    keys : ndarray of uint64, ascending
    counts : ndarray of int, as many
    lost : int, at most the number of rows / 20,000; 0 while the keys are fewer
    """

    keys: Keys
    counts: NDArray[np.int64]
    lost: int = 0

    @classmethod
    def of(cls, keys: Keys) -> KeyCounts:
        """Counts of some rows."""
        return cls(*np.unique(keys, return_counts=True))._cut()

    def __add__(self, other: KeyCounts) -> KeyCounts:
        both = np.concatenate([self.keys, other.keys])
        keys, place = np.unique(both, return_inverse=True)
        counts = np.zeros(len(keys), dtype=np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, other.counts]))
        return KeyCounts(keys, counts, self.lost + other.lost)._cut()

    def _cut(self) -> KeyCounts:
        if len(self.keys) <= _COUNTERS:
            return self
        step = int(np.partition(self.counts, -_COUNTERS - 1)[-_COUNTERS - 1])
        kept = self.counts > step
        return KeyCounts(self.keys[kept], self.counts[kept] - step, self.lost + step)

    def candidates(self, n_rows: int) -> Keys:
        """Keys that may belong to one row in 10,000, among them all that do; ascending."""
        return self.keys[self.counts + self.lost >= _least(n_rows)]

    def drawn(self, n_rows: int, limit: int) -> tuple[Keys, NDArray[np.intp]]:
        """(place in the draw, which key) of all copies whose place is not above ``limit``.

        Copy i of a key that occurs often has a place of its own, shuffled(key + i); copies of the
        others share the place of their key.
        """
        places, which = [], []
        for j, (key, n) in enumerate(zip(self.keys, self.counts, strict=True)):
            place = np.full(int(n), key)
            if n >= _least(n_rows):
                place = shuffled(place + np.arange(int(n), dtype=np.uint64), 1)
            place = place[place <= np.uint64(limit)]
            places.append(place)
            which.append(np.full(len(place), j, dtype=np.intp))
        return np.concatenate(places), np.concatenate(which)


def _least(n_rows: int) -> float:
    return max(n_rows / OFTEN, 2.0)
