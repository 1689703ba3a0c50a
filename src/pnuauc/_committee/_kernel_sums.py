"""Sums of Gaussian and Laplacian kernels on shared centres, as fast as their exponentials.

    sum_j sum_i coef_ji exp(-(|x - c_i| / width_j)^power_j / power_j)

One matrix product gives all distances, one exponential the widest kernel of each power; a kernel of
half the width is that one squared, ``power`` times over. The product is float64, so that a large
common offset or a near centre costs no digits; what follows is float32, four times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from pnuauc._basis import factor_two_chains

__all__ = ["sum_kernels"]

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]

#: Distances kept at a time: half a megabyte stays in the processor's cache. Blocks are whole tiles
#: of a matrix product, the last one filled up, so that equal rows tie.
_BLOCK_CELLS, _TILE = 1 << 16, 32
#: Squared distances below this share of the squared lengths are rounding error of nought.
_ROUNDING = 1e-12


def sum_kernels(
    X: Any, centers: Any, widths: Floats, powers: NDArray[np.integer[Any]], coef: Floats
) -> Floats:
    """Shape (n,); relative error of a kernel 1e-7 for the widest, 2e-5 for one 16 times narrower.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    centers : ndarray, shape (b, d)
    widths, powers : ndarray, shape (m,)
        Power 2 is a Gaussian, 1 a Laplacian kernel.
    coef : ndarray, shape (m, b)
    """
    out = np.zeros(len(X))
    unit = float(np.abs(coef).max(initial=0.0)) or 1.0
    chains = _chains(widths, powers, coef / unit)
    distances = _Squares.of(centers)
    n_rows = _whole_tiles(min(max(_BLOCK_CELLS // len(centers), 1), max(len(X), 1)))
    room = _Room.of(n_rows, *centers.shape)
    for start in range(0, len(X), n_rows):
        rows = X[start : start + n_rows]
        part = room.first(_whole_tiles(len(rows)))
        distances.fill(rows, part)
        out[start : start + n_rows] = _summed(part, chains)[: len(rows)]
    return np.multiply(out, unit, out=out)


def _whole_tiles(n: int) -> int:
    return -(-n // _TILE) * _TILE


@dataclass(frozen=True)
class _Chain:
    """Kernels of one power, each the one before squared so many times.

    rate : float, exponent of the first at unit distance
    squarings : list of int, coef : list of ndarray, shape (b,)
    """

    power: int
    rate: float
    squarings: list[int]
    coef: list[Singles]


def _chains(widths: Floats, powers: NDArray[np.integer[Any]], coef: Floats) -> tuple[_Chain, ...]:
    """All kernels; Gaussians, which read squared distances, before the roots are drawn."""
    found = []
    for power in (2, 1):
        own = np.flatnonzero(powers == power)
        for chain in factor_two_chains(widths[own]) if len(own) else []:
            rate = -1.0 / (power * float(widths[own[chain[0][0]]]) ** power)
            squarings = [power * halvings for _, halvings in chain]
            found.append(_Chain(power, rate, squarings, [_single(coef[own[j]]) for j, _ in chain]))
    return tuple(found)


def _single(values: Floats) -> Singles:
    return values.astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Room:
    """Arrays that every block of rows uses again.

    left : shape (n, d + 2); squared : (n, b); distance, kernel : float32, (n, b)
    """

    left: Floats
    squared: Floats
    distance: Singles
    kernel: Singles

    @classmethod
    def of(cls, n: int, b: int, d: int) -> _Room:
        singles = np.empty((2, n, b), dtype=np.float32)
        return cls(np.zeros((n, d + 2)), np.empty((n, b)), *singles)

    def first(self, n: int) -> _Room:
        return _Room(self.left[:n], self.squared[:n], self.distance[:n], self.kernel[:n])


@dataclass(frozen=True, eq=False)
class _Squares:
    """What squared distances to centres need of these, found once.

    origin : ndarray, shape (d,), the median of the centres, which rows and centres are moved by
    right : ndarray, shape (d + 2, b): (x, |x|^2, 1) times (-2 c, 1, |c|^2)' is |x - c|^2; less a
    rounding error, so that it is at most 0 where a row is a centre
    """

    origin: Floats
    right: Floats

    @classmethod
    def of(cls, centers: Any) -> _Squares:
        centers = np.asarray(centers, dtype=np.float64)
        origin = np.median(centers, axis=0)
        moved = centers - origin
        lengths = np.vstack([np.ones(len(moved)), row_norms(moved, squared=True)])
        return cls(origin, np.vstack([-2.0 * moved.T, (1.0 - _ROUNDING) * lengths]))

    def fill(self, rows: Any, room: _Room) -> None:
        """|x - c|^2 of the rows in ``room.distance``; the room may be larger."""
        n, d = rows.shape
        left = room.left
        np.subtract(rows, self.origin, out=left[:n, :d])
        np.einsum("ij,ij->i", left[:n, :d], left[:n, :d], out=left[:n, d])
        left[:n, d + 1] = 1.0
        np.matmul(left, self.right, out=room.squared)
        np.copyto(room.distance, room.squared, casting="same_kind")


def _summed(room: _Room, chains: tuple[_Chain, ...]) -> Floats:
    """The sums of a block of rows; ``room.distance`` holds squared distances and then is lost."""
    out = np.zeros(len(room.distance))
    rooted = False
    for chain in chains:
        if chain.power == 1 and not rooted:
            np.maximum(room.distance, np.float32(0.0), out=room.distance)
            np.sqrt(room.distance, out=room.distance)
            rooted = True
        kernel = np.multiply(room.distance, np.float32(chain.rate), out=room.kernel)
        np.exp(kernel, out=kernel)
        for squarings, coef in zip(chain.squarings, chain.coef, strict=True):
            for _ in range(squarings):
                np.multiply(kernel, kernel, out=kernel)
            out += kernel @ coef
    return out
