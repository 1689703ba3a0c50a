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

from pnuauc._committee._kernel_sums import sum_kernels
from pnuauc._stored import Parts, refuse

__all__ = ["KernelSum", "average_processes"]

Floats: TypeAlias = NDArray[np.float64]

#: Widths in multiples of the median distance between labelled rows; noise in kernel units.
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_NOISES = (1e-2, 1e-1, 1.0, 10.0)
#: Kernels with less than this share of the weight are left out, about half of them. With twice this
#: share scores of test rows correlated with those of all kernels at .9998 at worst (16 draws).
_NEGLIGIBLE = 5e-3
#: Gaussian and Laplacian kernels.
_POWERS = (2, 1)


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
        centers = parts.array("centers", "float", (None, n_columns)).astype(np.float64)
        widths = parts.array("widths", "float", (None,)).astype(np.float64)
        if not ((widths > 1e-150) & (widths < 1e150)).all():
            raise refuse("widths of its kernels are out of range")
        m = len(widths)
        powers = parts.indices("powers", (m,), 1, 3)
        coef = parts.array("coef", "float", (m, len(centers))).astype(np.float64)
        slope = parts.array("slope", "float", (n_columns,)).astype(np.float64)
        return cls(centers, widths, powers, coef, slope)


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
