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
from pnuauc._utils.stored import Parts, Stored, refuse
from pnuauc.core.basis import factor_two_chains
from pnuauc.core.solvers import LinearModel

__all__ = ["KernelSum", "average_processes"]

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
#: Distances kept at a time: half a megabyte stays in the processor's cache. Blocks are whole tiles
#: of a matrix product, the last one filled up, so that equal rows tie.
_BLOCK_CELLS, _TILE = 1 << 16, 32
#: Squared distances below this share of the squared lengths are rounding error of nought.
_ROUNDING = 1e-12
#: Single precision holds no larger rate; from the second on, distances a rounding error below 0
#: would count: among rows close to each other beside one that is very far away.
_LARGEST_RATE, _STEEP = 1e38, 1e6


#: Kernels of one power: it, the exponent of the first at unit distance, and for each kernel how
#: often the one before is squared, and its coefficients.
_Chain: TypeAlias = tuple[int, float, list[tuple[int, NDArray[np.float32]]]]


@dataclass(frozen=True, eq=False)
class KernelSum(Stored):
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

    @classmethod
    def of_model(cls, model: LinearModel) -> KernelSum:
        """The model of the paper: Gaussians of several widths on shared centres."""
        basis = model.basis
        m, d = len(basis.widths_), basis.centers_.shape[1]
        coef = model.coef.reshape(m, -1)
        return cls(basis.centers_, basis.widths_, np.full(m, 2), coef, np.zeros(d))

    def score(self, X: Floats) -> Floats:
        """Shape (n,); relative error of a kernel 1e-7 for the widest, 2e-5 at a 16th of its width.

        |x - c|^2 is the product of (x, |x|^2, 1) and (-2 c, 1, |c|^2)', both moved by the median
        centre; less a rounding error, so that it is at most 0 where a row is a centre.
        """
        out = np.zeros(len(X))
        if len(self.widths):
            unit = float(np.abs(self.coef).max(initial=0.0)) or 1.0
            chains = list(self._chains(self.coef / unit))
            (b, d), origin = self.centers.shape, np.median(self.centers, axis=0)
            moved = self.centers - origin
            lengths = np.vstack([np.ones(b), row_norms(moved, squared=True)])
            right = np.vstack([-2.0 * moved.T, (1.0 - _ROUNDING) * lengths])
            n_rows = _whole_tiles(min(max(_BLOCK_CELLS // b, 1), max(len(X), 1)))
            for start in range(0, len(X), n_rows):
                rows = X[start : start + n_rows] - origin
                left = np.zeros((_whole_tiles(len(rows)), d + 2))
                left[: len(rows), :d] = rows
                left[: len(rows), d] = np.einsum("ij,ij->i", rows, rows)
                left[: len(rows), d + 1] = 1.0
                squares = (left @ right).astype(np.float32)
                out[start : start + n_rows] = _summed(squares, chains)[: len(rows)]
            out *= unit
        return out + X @ self.slope if self.slope.any() else out

    def _chains(self, coef: Floats) -> Iterator[_Chain]:
        """All kernels; Gaussians, which read squared distances, before the roots are drawn."""
        for power in _POWERS:
            own = np.flatnonzero(self.powers == power)
            for chain in factor_two_chains(self.widths[own]) if len(own) else []:
                rate = -1.0 / (power * float(self.widths[own[chain[0][0]]]) ** power)
                rate = max(rate, -_LARGEST_RATE)
                steps = [(power * n, coef[own[j]].astype(np.float32)) for j, n in chain]
                yield power, rate, steps

    @classmethod
    def rebuild(cls, parts: Parts, n_columns: int) -> KernelSum:
        """From a model file, every number checked."""
        centers = parts.array("centers", "float", (None, n_columns))
        widths = parts.array("widths", "float", (None,), at_most=_MAX_WIDTHS).astype(np.float64)
        if not 0 < len(centers) <= _MAX_CENTERS:
            raise refuse(f"it has no centres, or more than {_MAX_CENTERS:,}")
        if not ((widths > 1e-150) & (widths < 1e150)).all():
            raise refuse("widths of its kernels are out of range")
        m = len(widths)
        powers = parts.indices("powers", (m,), 1, 3)
        coef = parts.array("coef", "float", (m, len(centers))).astype(np.float64)
        slope = parts.array("slope", "float", (n_columns,)).astype(np.float64)
        return cls(np.asarray(centers, dtype=np.float64), widths, powers, coef, slope)


def _whole_tiles(n: int) -> int:
    return -(-n // _TILE) * _TILE


def _summed(distance: NDArray[np.float32], chains: list[_Chain]) -> Floats:
    """The sums of a block of rows; squared distances, shape (n, b), which are overwritten."""
    out = np.zeros(len(distance))
    kernel = np.empty_like(distance)
    rooted = False
    for power, rate, steps in chains:
        if (power == 1 or rate < -_STEEP) and not rooted:
            np.maximum(distance, np.float32(0.0), out=distance)
        if power == 1 and not rooted:
            np.sqrt(distance, out=distance)
            rooted = True
        with np.errstate(over="ignore"):  # exp(-inf) is 0
            np.multiply(distance, np.float32(rate), out=kernel)
        np.exp(kernel, out=kernel)
        for squarings, coef in steps:
            for _ in range(squarings):
                np.multiply(kernel, kernel, out=kernel)
            out += kernel @ coef
    return out


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
