"""Gaussian-process regressions of the labels, averaged by their evidence.

For a kernel K and a noise level v, with labels t = +1 and -1 centred, C = K + v I and
a = t'C^-1 t / n, the posterior mean at x is k(x)'C^-1 t and the log evidence, scale of the
kernel maximised out, is

    -(n/2) log a - (1/2) log det C.

Every kernel, width and noise gets the weight exp(log evidence): with a few dozen labels that
chooses a smoothness much better than held-out rows can, since no row has to be held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms

from pnuauc._utils.arrays import Floats
from pnuauc._utils.stored import Parts, refuse
from pnuauc.core.basis import factor_two_chains

__all__ = ["KernelSum", "average_processes", "read_kernels", "sum_kernels"]

# Sums of Gaussian and Laplacian kernels on shared centres, as fast as their exponentials.


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


#: Single precision holds no larger rate; from the second on, distances a rounding error below 0
#: would count: among rows close to each other beside one that is very far away.
_LARGEST_RATE, _STEEP = 1e38, 1e6


@dataclass(frozen=True)
class _Chain:
    """Kernels of one power, each the one before squared repeatedly.

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
            rate = max(rate, -_LARGEST_RATE)
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
        if (chain.power == 1 or chain.rate < -_STEEP) and not rooted:
            np.maximum(room.distance, np.float32(0.0), out=room.distance)
        if chain.power == 1 and not rooted:
            np.sqrt(room.distance, out=room.distance)
            rooted = True
        with np.errstate(over="ignore"):  # exp(-inf) is 0
            kernel = np.multiply(room.distance, np.float32(chain.rate), out=room.kernel)
        np.exp(kernel, out=kernel)
        for squarings, coef in zip(chain.squarings, chain.coef, strict=True):
            for _ in range(squarings):
                np.multiply(kernel, kernel, out=kernel)
            out += kernel @ coef
    return out


# Gaussian-process regressions of the labels, averaged by their evidence.


#: Widths in multiples of the median distance between labelled rows; noise in kernel units.
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_NOISES = (1e-2, 1e-1, 1.0, 10.0)
#: Kernels with less than this share of the weight are left out, about half of them. With twice this
#: share scores of test rows correlated with those of all kernels at .9998 at worst (16 draws).
_NEGLIGIBLE = 5e-3
#: Gaussian and Laplacian kernels.
_POWERS = (2, 1)
#: Of a part in a model file: a fit has at most ten widths, and a centre for each labelled row.
_MAX_WIDTHS, _MAX_CENTERS = 100, 20_000


@dataclass(frozen=True, eq=False)
class KernelSum:
    """sum_j sum_i coef_ji exp(-(|x - c_i| / width_j)^power_j / power_j) + slope'x.

    Attributes
    ----------
    centers : ndarray, shape (n, d)
    widths : ndarray, shape (m,)
    powers : ndarray of int, shape (m,)
        2 for a Gaussian, 1 for a Laplacian kernel.
    coef : ndarray, shape (m, n)
    slope : ndarray, shape (d,)
        Of the linear kernel.
    """

    centers: Floats
    widths: Floats
    powers: NDArray[np.int64]
    coef: Floats
    slope: Floats

    kind = "kernels"

    def score(self, X: Floats) -> Floats:
        """Shape (n,)."""
        out = np.asarray(X @ self.slope)
        if len(self.widths):
            out += sum_kernels(X, self.centers, self.widths, self.powers, self.coef)
        return out

    def spec(self) -> dict[str, Any]:
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def rebuild(cls, parts: Parts, n_columns: int) -> KernelSum:
        """From a model file, every number checked."""
        centers, widths = read_kernels(parts, n_columns)
        m = len(widths)
        powers = parts.indices("powers", (m,), 1, 3)
        coef = parts.array("coef", "float", (m, len(centers))).astype(np.float64)
        slope = parts.array("slope", "float", (n_columns,)).astype(np.float64)
        return cls(centers, widths, powers, coef, slope)


def read_kernels(parts: Parts, n_columns: int) -> tuple[Floats, Floats]:
    """Centres, shape (b, d), and widths, shape (m,), of a model file."""
    centers = parts.array("centers", "float", (None, n_columns))
    widths = parts.array("widths", "float", (None,), at_most=_MAX_WIDTHS).astype(np.float64)
    if len(centers) > _MAX_CENTERS:
        raise refuse(f"it has more than {_MAX_CENTERS:,} centres, which no fit of pnuauc has")
    if not ((widths > 1e-150) & (widths < 1e150)).all():
        raise refuse("widths of its kernels are out of range")
    return np.asarray(centers, dtype=np.float64), widths


def average_processes(
    views: Mapping[str, Floats], positive: NDArray[np.bool_]
) -> dict[str, KernelSum]:
    """The mean of all regressions by their evidence, one sum of kernels for every view.

    Parameters
    ----------
    views : dict of name -> labelled rows, shape (n, d_name)
    positive : ndarray of bool, shape (n,)
    """
    target = np.where(positive, 1.0, -1.0)
    target -= target.mean()
    found = [(name, *item) for name, rows in views.items() for item in _fits(rows, target)]
    log_evidence = np.array([evidence for *_, evidence in found])
    weight = np.exp(log_evidence - log_evidence.max())
    weight /= weight.sum()
    return {name: _combined(name, rows, found, weight) for name, rows in views.items()}


def _fits(rows: Floats, target: Floats) -> Iterator[tuple[int, float, Floats, float]]:
    """(power, width, coefficients, log evidence); power 0 is the linear kernel."""
    distance = cdist(rows, rows)
    apart = distance[np.triu_indices(len(rows), 1)]
    median = float(np.median(apart)) or float(apart.mean()) or 1.0
    for power in _POWERS:
        for factor in _WIDTHS:
            kernel = _kernel(distance, factor * median, power)
            for coef, evidence in _regressions(kernel, target):
                yield power, factor * median, coef, evidence
    kernel = rows @ rows.T
    unit = float(np.trace(kernel)) / len(rows) or 1.0
    for coef, evidence in _regressions(kernel / unit, target):
        yield 0, 1.0, coef / unit, evidence


def _regressions(kernel: Floats, target: Floats) -> Iterator[tuple[Floats, float]]:
    """C^-1 t and log evidence for every noise, by Cholesky: cheaper than a spectrum for all."""
    n = len(target)
    systems = np.repeat(kernel[None], len(_NOISES), axis=0)
    systems.reshape(len(_NOISES), -1)[:, :: n + 1] += np.reshape(_NOISES, (-1, 1))
    for lower in np.linalg.cholesky(systems):
        # a lower factor in C order is an upper one in Fortran order: no copy
        coef = linalg.lapack.dpotrs(lower.T, target)[0]
        scale = float(target @ coef) / n
        yield coef, -0.5 * n * np.log(scale) - float(np.log(lower.diagonal()).sum())


def _combined(name: str, rows: Floats, found: list[Any], weight: Floats) -> KernelSum:
    sums: dict[tuple[int, float], Floats] = {}
    heard: dict[tuple[int, float], float] = {}
    for (view, power, width, coef, _), w in zip(found, weight, strict=True):
        if view == name:
            key = (power, width)
            sums[key] = sums.get(key, 0.0) + w * coef
            heard[key] = heard.get(key, 0.0) + w
    linear = sums.pop((0, 1.0))
    kept = [key for key in sums if heard[key] > _NEGLIGIBLE]
    return KernelSum(
        rows,
        np.array([width for _, width in kept]),
        np.array([power for power, _ in kept], dtype=np.int64),
        np.array([sums[key] for key in kept]).reshape(len(kept), len(rows)),
        rows.T @ linear,
    )


def _kernel(distance: Floats, width: float, power: int) -> Floats:
    """exp(-(distance / width)^power / power)."""
    out = distance * (-1.0 / width)
    if power == 2:
        out *= out
        out *= -0.5
    return np.asarray(np.exp(out, out=out))
