"""How members look at the columns: standardized, soft-clipped, rotated; fitted without labels.

    standard(x) = (x - mean) / deviation              missing stays missing
    splits(x) = standard(x), or columns of its own    what trees and boosting read
    filled(x) = standard(x), 0 where missing          with an indicator for columns with gaps
    squashed(x) = z / sqrt(1 + (z / 3)^2), z = filled(x), standardised once more
    components(x) = filled(x)'V                       V the first principal axes of all rows
    latent(x) = components of text and vectors        as the table's encoder made them

The yes/no columns of categories are narrower than the others (see ``pnuauc.core.categories``): all
levels of a category together weigh as much as one number in distances and principal axes.

This is where unlabelled rows help at no risk: they say how wide a column is and which columns go
together.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd

from pnuauc._utils.arrays import Floats
from pnuauc._utils.stored import Parts, Stored, refuse
from pnuauc.core.categories import category_weights
from pnuauc.core.moments import Moments
from pnuauc.core.rows import Block, RowsElsewhere

__all__ = ["DenseView", "Look", "SparseView", "View", "fit_view", "read_view", "see"]


#: Where the squashing bends: values beyond three deviations are drawn in.
_BEND = 3.0
#: Principal axes at most; in text there is more to find.
N_COMPONENTS, N_TEXT_COMPONENTS = 20, 100
#: Components of text beside columns that a class prior is estimated from.
_PRIOR_LATENT = 10
#: Number of rows that text is compared with to find its components.
_TEXT_CENTERS = 1000
#: Cells (128 MB) up to which rows are multiplied by the axes themselves, ten times as fast.
_AXES_CELLS = 1 << 24
#: Above this number of columns the axes come from a randomised decomposition.
_FULL_COLUMNS = 1000
#: Axes along which rows vary less than this share of the most are rounding error.
_FLAT = 1e-3
#: Rows of a block, for temporaries that stay small beside the input.
_BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class DenseView(Stored):
    """Statistics of dense columns: d common ones, ``n_latent`` components, e for trees alone.

    Of the common ones mean and deviation (larger for categories) of the values that are there,
    smallest value and range; ``holes`` are the h that have gaps, each with an indicator at the end
    of the filled view; ``axes``, shape (d + h, k), the principal ones of that view and ``lengths``
    the deviations along them. ``own``: what trees and boosting read in place of the common ones;
    e = 0: the same.
    """

    mean: Floats
    deviation: Floats
    low: Floats
    span: Floats
    holes: NDArray[np.int64]
    hole_mean: Floats
    hole_deviation: Floats
    squashed_mean: Floats
    squashed_deviation: Floats
    axes: Floats
    lengths: Floats
    own_mean: Floats
    own_deviation: Floats
    n_latent: int = 0

    kind = "dense"
    is_sparse = False

    @property
    def widths(self) -> dict[str, int]:
        """Number of columns of each view."""
        d, h, k = len(self.mean), len(self.holes), len(self.lengths)
        e = len(self.own_mean) or d
        known = {"trees": e + k, "splits": e, "unit": d, "filled": d + h, "squashed": d + h}
        return {**known, "components": k, "whitened": k, "latent": self.n_latent}

    def _common(self, X: NDArray[Any]) -> Floats:
        return np.asarray(X[:, : len(self.mean)], dtype=np.float64)

    def splits(self, look: Look) -> Floats:
        if not len(self.own_mean):
            return _scaled(self._common(look.raw), self.mean, self.deviation)
        own = np.asarray(look.raw[:, len(self.mean) + self.n_latent :], dtype=np.float64)
        return _scaled(own, self.own_mean, self.own_deviation)

    def latent(self, look: Look) -> Floats:
        d = len(self.mean)
        return np.asarray(look.raw[:, d : d + self.n_latent], dtype=np.float64)

    def filled(self, look: Look) -> Floats:
        z = _scaled(self._common(look.raw), self.mean, self.deviation)
        gaps = np.isnan(z)
        if not gaps.any() and not len(self.holes):
            return z
        marks = (gaps[:, self.holes] - self.hole_mean) / self.hole_deviation
        return np.concatenate([np.where(gaps, 0.0, z), marks], axis=1)

    def squashed(self, look: Look) -> Floats:
        out = np.empty((len(look), self.widths["squashed"]))
        for rows, block in look.blocks():
            part = _squash(block.filled)
            part -= self.squashed_mean
            out[rows] = np.divide(part, self.squashed_deviation, out=part)
        return out

    def unit(self, look: Look) -> Floats:
        """Columns brought to [0, 1]; missing values at their mean."""
        out = _scaled(self._common(look.raw), self.low, self.span)
        gaps = np.isnan(out)
        return np.where(gaps, (self.mean - self.low) / self.span, out) if gaps.any() else out

    def components(self, look: Look) -> Floats:
        out = np.empty((len(look), len(self.lengths)))
        for rows, block in look.blocks():
            out[rows] = block.filled @ self.axes
        return out

    def whitened(self, look: Look) -> Floats:
        """Components of unit spread."""
        return np.asarray(look.components / self.lengths)

    def trees(self, look: Look) -> Floats:
        """Columns with their gaps, and components, side by side."""
        return np.concatenate([look.splits, look.components], axis=1)

    def turned(self, known: NDArray[Any], elsewhere: RowsElsewhere, n_folds: int) -> DenseView:
        """The same with the principal axes of all rows: those given, and those elsewhere."""
        d = self.widths["filled"]
        if not 2 <= d <= _FULL_COLUMNS:
            return self
        start = Moments.from_rows(Look(known, self).filled)
        rows = elsewhere.through(partial(see, self, "filled")).rows(n_folds, _BLOCK)
        found = rows.reduce(_block_moments, operator.add, start)
        axes, lengths = _axes_of(found.covariance, min(N_COMPONENTS, d))
        return replace(self, axes=axes, lengths=lengths)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_own": len(self.own_mean), "n_latent": self.n_latent}

    @classmethod
    def rebuild(cls, parts: Parts, n_features: int, most: int) -> DenseView:
        """From a model file, every number checked; none or ``most`` columns are for trees alone."""
        n_own = parts.integer("n_own", 0, most)
        if n_own not in (0, most):
            raise refuse("its trees do not read the columns that the table has for them")
        n_latent = parts.integer("n_latent", 0, n_features)
        holes = parts.indices("holes", (None,), 0, n_features - n_latent)
        if (np.diff(holes) <= 0).any():
            raise refuse("columns with missing values are not named once each, in order")
        lengths = parts.array("lengths", "float", (None,), at_most=N_COMPONENTS).astype(np.float64)
        d, h, k = n_features - n_latent, len(holes), len(lengths)
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(("mean", "deviation", "low", "span"), (d,)),
            **dict.fromkeys(("hole_mean", "hole_deviation"), (h,)),
            **dict.fromkeys(("squashed_mean", "squashed_deviation"), (d + h,)),
            "axes": (d + h, k),
            **dict.fromkeys(("own_mean", "own_deviation"), (n_own,)),
        }
        found = {n: np.asarray(parts.array(n, "float", s), float) for n, s in shapes.items()}
        found["lengths"] = lengths
        for name in found:
            if name.endswith(("deviation", "span", "lengths")) and (found[name] <= 0).any():
                raise refuse(f"{name} of its view must be positive")
        return cls(holes=holes, n_latent=n_latent, **found)


@dataclass(frozen=True, eq=False)
class SparseView(Stored):
    """Latent components of sparse rows: (x'C) W, C some of the rows, W = eigenvectors of C'C.

    With all rows for C these are the right singular vectors of the rows (latent semantic
    analysis); with a draw they are near enough. C'W, of size columns x components, is made while
    it is small.

    Attributes
    ----------
    centers : CSR matrix, shape (m, d)
    turn : ndarray, shape (m, k)
    """

    centers: Any
    turn: Floats

    kind = "sparse"
    is_sparse = True
    #: Sparse rows have no columns for trees.
    own_mean = np.zeros(0)

    @property
    def widths(self) -> dict[str, int]:
        """Number of columns of each view."""
        return {"raw": self.centers.shape[1], "components": self.turn.shape[1]}

    def components(self, look: Look) -> Floats:
        """Rows along the axes, brought to unit length (texts differ in length, not in kind)."""
        X, axes = look.raw, self._axes
        found = np.asarray((X @ self.centers.T) @ self.turn if axes is None else X @ axes)
        length = np.sqrt(np.einsum("ij,ij->i", found, found))
        return found / np.where(length > 0, length, 1.0)[:, None]

    @cached_property
    def _axes(self) -> Floats | None:
        if self.centers.shape[1] * self.turn.shape[1] > _AXES_CELLS:
            return None
        return np.asarray(self.centers.T @ self.turn)

    def arrays(self) -> dict[str, NDArray[Any]]:
        c = self.centers
        named = {f"centers_{k}": getattr(c, k) for k in ("data", "indices", "indptr")}
        return {**named, "turn": self.turn}

    @classmethod
    def rebuild(cls, parts: Parts, n_features: int, most: int) -> SparseView:
        """From a model file, every number checked."""
        centers = parts.sparse_centers(n_features, _TEXT_CENTERS)
        turn = parts.array("turn", "float", (centers.shape[0], None), at_most=_TEXT_CENTERS)
        if turn.shape[1] > N_TEXT_COMPONENTS:
            raise refuse(f"it has more than {N_TEXT_COMPONENTS} components")
        turn = turn.astype(np.float64)
        return cls(centers, turn)


View: TypeAlias = DenseView | SparseView


def read_view(parts: Parts, n_features: int, n_own: int) -> View:
    """A view of a model file; trees may have ``n_own`` further columns."""
    kinds: dict[str, Any] = {view.kind: view for view in (DenseView, SparseView)}
    found: View = kinds[parts.text("kind", kinds)].rebuild(parts, n_features, n_own)
    return found


class Look:
    """Rows through a view; what was looked at once is remembered.

    Its attributes are the columns as the view's methods of that name see them.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n, d)
    view : View
    """

    def __init__(self, X: Any, view: View) -> None:
        self.raw = X
        self.view: Any = view

    def __len__(self) -> int:
        return int(self.raw.shape[0])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.view.widths:
            raise AttributeError(name)
        found = getattr(self.view, name)(self)
        setattr(self, name, found)
        return found

    def take(self, rows: NDArray[np.intp]) -> Look:
        """Some of the rows, and of what was looked at."""
        found = Look(self.raw[rows], self.view)
        seen = vars(self).items()
        vars(found).update({name: v[rows] for name, v in seen if name not in ("raw", "view")})
        return found

    def blocks(self) -> Iterator[tuple[slice, Look]]:
        """Few rows at a time: of many a second view would be in memory at once."""
        if len(self) <= _BLOCK:
            yield slice(None), self
            return
        for start in range(0, len(self), _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield rows, Look(self.raw[rows], self.view)

    @property
    def for_prior(self) -> Any:
        """What a class prior is estimated from: the columns, and the first components of text.

        Each column would be brought to deviation 1, and a hundred components would drown the
        columns. Text alone is handed over as a sparse matrix, which is taken as it is.
        """
        if self.view.is_sparse or not self.view.n_latent:
            return self.raw if self.view.is_sparse else self.squashed
        if not len(self.view.mean):
            return sparse.csr_matrix(self.latent)
        return np.concatenate([self.squashed, self.latent[:, :_PRIOR_LATENT]], axis=1)

    @property
    def complete(self) -> Any:
        """All columns, none missing: for estimators from elsewhere."""
        return self.raw if self.view.is_sparse else self._with_latent(self.filled)

    @property
    def gapped(self) -> Any:
        """The same for those that take missing values."""
        return self.raw if self.view.is_sparse else self._with_latent(self.splits)

    def _with_latent(self, X: Floats) -> Floats:
        return np.concatenate([X, self.latent], axis=1) if self.view.n_latent else X


def see(view: View, name: str, X: Any) -> Any:
    """One view of some rows."""
    return getattr(Look(X, view), name)


def fit_view(X: Any, random_state: Any, n_own: int = 0, n_latent: int = 0) -> View:
    """The view of these rows (a draw of all rows will do).

    The last ``n_own`` columns are for trees, the ``n_latent`` before them for text and vectors.
    """
    rng = check_random_state(random_state)
    return _fit_sparse(X, rng) if sparse.issparse(X) else _fit_dense(X, rng, n_own, n_latent)


def _fit_sparse(X: Any, rng: np.random.RandomState) -> SparseView:
    n = X.shape[0]
    rows = np.sort(rng.choice(n, _TEXT_CENTERS, replace=False)) if n > _TEXT_CENTERS else slice(n)
    centers = sparse.csr_matrix(X[rows], dtype=np.float64)
    m = centers.shape[0]
    values, vectors = _largest((centers @ centers.T).toarray(), min(m, N_TEXT_COMPONENTS))
    keep = values > 1e-10 * max(values[0], 1e-300)
    return SparseView(centers, _signed(vectors[:, keep]) / np.sqrt(values[keep]))


def _fit_dense(X: NDArray[Any], rng: np.random.RandomState, n_own: int, n_latent: int) -> DenseView:
    X = np.asarray(X, dtype=np.float64)
    d = X.shape[1] - n_own
    X, _, own = np.split(X, [d - n_latent, d], axis=1)
    gaps = np.isnan(X)
    d = X.shape[1]
    holes = np.flatnonzero(gaps.any(axis=0) & ~gaps.all(axis=0))
    hole_mean = gaps[:, holes].mean(axis=0)
    mean, deviation = _moments(X, gaps)
    weights = category_weights(X)
    empty = gaps.all(axis=0)
    low = np.where(empty, 0.0, np.min(X, axis=0, initial=np.inf, where=~gaps))
    high = np.where(empty, 0.0, np.max(X, axis=0, initial=-np.inf, where=~gaps))
    span = high / 2 - low / 2  # halves: the range of numbers near the largest would overflow
    width = d + len(holes)
    view = DenseView(
        mean,
        deviation / weights,
        low,
        np.where(span > 0, 2 * span, 1.0) / weights,
        holes.astype(np.int64),
        hole_mean,
        np.sqrt(hole_mean * (1 - hole_mean)),
        np.zeros(width),
        np.ones(width),
        np.zeros((width, 0)),
        np.zeros(0),
        *_moments(own, np.isnan(own)),
        n_latent,
    )
    filled = Look(X, view).filled
    z = _squash(filled)
    middle, unit = _moments(z, np.zeros(z.shape, dtype=bool))
    unit[:d] /= weights
    axes, lengths = _principal_axes(filled, rng)
    return replace(view, squashed_mean=middle, squashed_deviation=unit, axes=axes, lengths=lengths)


def _block_moments(block: Block) -> Moments:
    return Moments.from_rows(block.X)


def _scaled(X: Floats, middle: Floats, unit: Floats) -> Floats:
    """(X - middle) / unit in one new array: fresh memory is most of the time here."""
    out = X - middle
    out /= unit
    return out


def _squash(z: Floats) -> Floats:
    """z / sqrt(1 + (z / bend)^2) in one new array."""
    out = z / _BEND
    out *= out
    out += 1.0
    np.sqrt(out, out=out)
    return np.divide(z, out, out=out)


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


def _principal_axes(Z: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
    n, d = Z.shape
    k = min(N_COMPONENTS, d, n - 1)
    if d < 2 or k < 1:
        return np.zeros((d, 0)), np.zeros(0)
    centred = Z - Z.mean(axis=0)
    if d <= _FULL_COLUMNS:
        return _axes_of(centred.T @ centred / n, k)
    _, spread, rows = randomized_svd(centred, k, n_iter=3, random_state=rng)
    return _long_axes(rows.T, spread / np.sqrt(n))


def _axes_of(covariance: Floats, k: int) -> tuple[Floats, Floats]:
    values, vectors = _largest(covariance, k)
    return _long_axes(vectors, np.sqrt(np.maximum(values, 0.0)))


def _largest(gram: Floats, k: int) -> tuple[Floats, Floats]:
    """The k largest eigenvalues, falling, and their vectors.

    All are computed: where many are equal (one-hot columns of a long category) LAPACK's search for
    some of them fails, or finds vectors that are not orthogonal.
    """
    values, vectors = np.linalg.eigh(gram)
    return values[: -k - 1 : -1], vectors[:, : -k - 1 : -1]


def _long_axes(axes: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """Without those that are rounding error."""
    keep = lengths > _FLAT * max(float(lengths.max()), 1e-300)
    return np.ascontiguousarray(_signed(axes)[:, keep]), lengths[keep]


def _signed(axes: Floats) -> Floats:
    """A fixed sign: eigenvectors come with either, and trees would see mirrored columns."""
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(axes * np.where(signs == 0, 1.0, signs))
