"""How members look at the columns: scaled for kernels, as they are for trees, and turned.

Fitted on all rows, labels unseen: this is where unlabelled rows help at no risk.

    standard(x) = (x - mean) / deviation                       missing stays missing
    squashed(x) = standardised z / sqrt(1 + (z / 3)^2)         missing becomes 0, with an indicator
    components(x) = squashed(x)'V, V the first principal axes of all rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.extmath import randomized_svd

__all__ = ["DenseView", "SparseView", "fit_view"]

Floats = NDArray[np.float64]

#: Where the squashing bends: values beyond three deviations are drawn in.
_BEND = 3.0
#: Principal axes at most; of text, where there is more to find, so many.
N_COMPONENTS, N_TEXT_COMPONENTS = 20, 100
#: Above so many columns the axes come from a randomised decomposition.
_FULL_COLUMNS = 1000
#: Rows of a block, for temporaries that stay small beside the input.
_BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class DenseView:
    """Statistics of dense columns.

    Attributes
    ----------
    mean, deviation : ndarray, shape (d,)
        Of the values that are there.
    squashed_mean, squashed_deviation : ndarray, shape (d,)
        Of the squashed standardised columns.
    holes : ndarray of int, shape (h,)
        Columns with missing values; each has an indicator at the end of the squashed view.
    hole_mean, hole_deviation : ndarray, shape (h,)
    axes : ndarray, shape (d + h, k)
        Principal axes of the squashed columns, as columns.
    lengths : ndarray, shape (k,)
        Standard deviations along them.
    """

    mean: Floats
    deviation: Floats
    squashed_mean: Floats
    squashed_deviation: Floats
    holes: NDArray[np.intp]
    hole_mean: Floats
    hole_deviation: Floats
    axes: Floats
    lengths: Floats

    is_sparse = False

    @property
    def n_features(self) -> int:
        return len(self.mean)

    @property
    def n_tree_columns(self) -> int:
        return len(self.mean) + self.axes.shape[1]

    def standard(self, X: NDArray[Any]) -> Floats:
        """(x - mean) / deviation, NaN where x is missing; shape (n, d)."""
        return (np.asarray(X, dtype=np.float64) - self.mean) / self.deviation

    def squashed(self, X: NDArray[Any]) -> Floats:
        """Columns for kernels, shape (n, d + h); nothing is missing."""
        out = np.empty((len(X), self.n_features + len(self.holes)))
        for start in range(0, len(X), _BLOCK):
            rows = slice(start, start + _BLOCK)
            out[rows] = self._squashed(X[rows])
        return out

    def _squashed(self, X: NDArray[Any]) -> Floats:
        z = _squash(self.standard(X))
        z -= self.squashed_mean
        z /= self.squashed_deviation
        if len(self.holes):
            marks = (np.isnan(z[:, self.holes]) - self.hole_mean) / self.hole_deviation
            z = np.concatenate([np.nan_to_num(z, copy=False, nan=0.0), marks], axis=1)
        elif np.isnan(z).any():  # missing for the first time at scoring
            z = np.nan_to_num(z, copy=False, nan=0.0)
        return z

    def components(self, X: NDArray[Any]) -> Floats:
        """Along the principal axes, shape (n, k)."""
        return self.squashed(X) @ self.axes

    def for_trees(self, X: NDArray[Any]) -> Floats:
        """Columns with their gaps, and components, side by side; shape (n, d + k)."""
        return np.concatenate([self.standard(X), self.components(X)], axis=1)

    def whitened(self, X: NDArray[Any]) -> Floats:
        """Components of unit spread, shape (n, k)."""
        return self.components(X) / self.lengths

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def rebuild(cls, arrays: Any, n_features: int) -> DenseView:
        """From a file's arrays, checked. Raises ValueError."""
        parts = {name: np.asarray(arrays[name]) for name in cls.__dataclass_fields__}
        holes = parts["holes"]
        if holes.dtype.kind != "i" or holes.ndim != 1 or len(holes) > n_features:
            raise ValueError("the view's list of gaps is no list of columns")
        if len(holes) and (holes.min() < 0 or holes.max() >= n_features):
            raise ValueError("the view has gaps in columns that are not there")
        d, h = n_features, len(holes)
        k = parts["lengths"].shape[0] if parts["lengths"].ndim == 1 else -1
        shapes = {
            "mean": (d,),
            "deviation": (d,),
            "squashed_mean": (d,),
            "squashed_deviation": (d,),
            "hole_mean": (h,),
            "hole_deviation": (h,),
            "axes": (d + h, k),
            "lengths": (k,),
        }
        for name, shape in shapes.items():
            _check_floats(parts[name], shape, name)
            if name.endswith(("deviation", "lengths")) and (parts[name] <= 0).any():
                raise ValueError(f"the view's {name} must be positive")
        return cls(**{**parts, "holes": holes.astype(np.intp)})


@dataclass(frozen=True, eq=False)
class SparseView:
    """Latent components of sparse rows: x'V, V the first right singular vectors of all rows.

    axes : ndarray, shape (d, k)
    """

    axes: Floats

    is_sparse = True

    @property
    def n_features(self) -> int:
        return len(self.axes)

    def components(self, X: Any) -> Floats:
        """Rows along the axes, brought to unit length (texts differ in length, not in kind)."""
        found = np.asarray(X @ self.axes)
        length = np.sqrt(np.einsum("ij,ij->i", found, found))
        return found / np.where(length > 0, length, 1.0)[:, None]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"axes": self.axes}

    @classmethod
    def rebuild(cls, arrays: Any, n_features: int) -> SparseView:
        """From a file's arrays, checked. Raises ValueError."""
        axes = np.asarray(arrays["axes"])
        k = axes.shape[1] if axes.ndim == 2 else -1
        _check_floats(axes, (n_features, k), "axes")
        return cls(axes)


def fit_view(X: Any, seed: int) -> DenseView | SparseView:
    """The view of these rows (a draw of all rows will do)."""
    return _fit_sparse(X, seed) if sparse.issparse(X) else _fit_dense(X, seed)


def _fit_sparse(X: Any, seed: int) -> SparseView:
    k = min(N_TEXT_COMPONENTS, min(X.shape) - 1)
    if k < 1:
        return SparseView(np.zeros((X.shape[1], 0)))
    _, _, axes = randomized_svd(sparse.csr_matrix(X), k, n_iter=3, random_state=seed)
    return SparseView(np.ascontiguousarray(axes.T, dtype=np.float64))


def _fit_dense(X: NDArray[Any], seed: int) -> DenseView:
    gaps = np.isnan(X)
    holes = np.flatnonzero(gaps.any(axis=0) & ~gaps.all(axis=0))
    hole_mean = gaps[:, holes].mean(axis=0)
    mean, deviation = _moments(np.asarray(X, dtype=np.float64), gaps)
    z = _squash((X - mean) / deviation)
    squashed_mean, squashed_deviation = _moments(z, gaps)
    hole_deviation = np.sqrt(hole_mean * (1 - hole_mean))
    view = DenseView(
        mean,
        deviation,
        squashed_mean,
        squashed_deviation,
        holes,
        hole_mean,
        hole_deviation,
        np.zeros((X.shape[1] + len(holes), 0)),
        np.zeros(0),
    )
    axes, lengths = _principal_axes(view.squashed(X), seed)
    return DenseView(**{**vars(view), "axes": axes, "lengths": lengths})


def _squash(z: Floats) -> Floats:
    return z / np.sqrt(1.0 + (z / _BEND) ** 2)


def _moments(X: Floats, gaps: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Mean and deviation of the values that are there; 0 and 1 where none is or none differs."""
    count = np.maximum((~gaps).sum(axis=0), 1)
    # scaled first: the squares of 1e200 would overflow
    largest = np.max(np.abs(X), axis=0, initial=0.0, where=~gaps)
    unit = np.where(largest > 0, largest, 1.0)
    scaled = np.where(gaps, 0.0, X / unit)
    mean = scaled.sum(axis=0) / count
    centred = np.where(gaps, 0.0, scaled - mean)
    deviation = np.sqrt((centred**2).sum(axis=0) / count)
    # a constant column must not be blown up by its rounding error
    flat = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return mean * unit, np.where(flat, 1.0, deviation * unit)


def _principal_axes(Z: Floats, seed: int) -> tuple[Floats, Floats]:
    """Axes with more than a thousandth of the largest spread, at most ``N_COMPONENTS``."""
    n, d = Z.shape
    k = min(N_COMPONENTS, d, n - 1)
    if d < 2 or k < 1:
        return np.zeros((d, 0)), np.zeros(0)
    centred = Z - Z.mean(axis=0)
    if d <= _FULL_COLUMNS:
        values, vectors = linalg.eigh(centred.T @ centred / n, subset_by_index=[d - k, d - 1])
        lengths, axes = np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1]
    else:
        _, spread, rows = randomized_svd(centred, k, n_iter=3, random_state=seed)
        lengths, axes = spread / np.sqrt(n), rows.T
    keep = lengths > 1e-3 * lengths.max(initial=0.0)
    # a fixed sign: eigenvectors come with either, and trees would see mirrored columns
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.ascontiguousarray((axes * signs)[:, keep]), lengths[keep]


def _check_floats(values: NDArray[Any], shape: tuple[int, ...], name: str) -> None:
    if values.dtype.kind != "f" or values.shape != shape or not np.isfinite(values).all():
        raise ValueError(f"the view's {name} must be finite numbers of shape {shape}")
