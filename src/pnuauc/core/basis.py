"""Feature maps phi(x) of the linear-in-parameter model g(x) = w'phi(x).

scikit-learn transformers; they never see labels. Dense (float32, float64) and CSR rows are both
legal and CSR is never densified: only the (rows, centres) products are dense.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter

from pnuauc._utils.arrays import ALL_EQUAL, check_range, finite, read_rows
from pnuauc.core.rows import row_groups, sparse_contents

#: Rows drawn to find the median distance: half a million pairs place the median within about 0.3%.
MEDIAN_ROWS = 1000


def sample_centers(
    X: Any, n_centers: int, random_state: Any = None, weight: NDArray[Any] | None = None
) -> Any:
    """Draw ``n_centers`` rows without replacement; repeated rows count once, order is sorted.

    With all rows taken, the result depends on the set of rows only: not on their order, on
    repetitions, or on whether a repetition is written as a weight.
    """
    rows = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    if len(rows) > n_centers:
        rng = check_random_state(random_state)
        rows = np.sort(rng.choice(rows, size=n_centers, replace=False))
    chosen = X[rows]
    if not sparse.issparse(chosen):
        return np.unique(chosen, axis=0)
    place = {content: i for i, content in enumerate(sparse_contents(chosen))}
    return chosen[[place[content] for content in sorted(place)]]


def first_centers(X: Any, n_centers: int, weight: NDArray[Any] | None = None) -> Any:
    """The first ``n_centers`` distinct rows of positive weight, shape (at most n_centers, d).

    Rows that are drawn from elsewhere come in the order of their hashes, so these are the rows of
    the whole table whose hashes are smallest: the same however the table is cut.
    """
    rows = X if weight is None else X[weight > 0]
    first = np.unique(row_groups(rows), return_index=True)[1]
    return rows[np.sort(first)[:n_centers]]


def median_distance(
    X: Any, random_state: Any = None, sample_weight: ArrayLike | None = None
) -> float:
    """Median Euclidean distance between distinct rows, over at most 1,000 rows drawn at random.

    The paper takes it over all n^2 pairs; on 1,000 rows the difference is below sampling noise.
    """
    if X.shape[0] < 2:
        raise ValueError("The median distance needs at least 2 rows; got n_samples = 1.")
    weight = None if sample_weight is None else np.asarray(sample_weight)
    rows = sample_centers(X, MEDIAN_ROWS, random_state, weight)
    distances = squared_distances(rows, rows)[np.triu_indices(rows.shape[0], k=1)]
    median = float(np.sqrt(np.median(distances))) if len(distances) else 0.0
    if median <= 0:
        raise ValueError(ALL_EQUAL)
    return median


def gaussian_exponents(X: Any, centers: Any, width: float) -> NDArray[Any]:
    """-|x - c|^2 / (2 width^2) for all rows and centres: (n, d), (b, d) -> (n, b).

    Dense rows: norms and width ride along in the matrix product, (x, |x|^2, 1) times
    (c, -1/2, -|c|^2/2)' / width^2, which saves four passes over the (n, b) result.
    """
    if sparse.issparse(X) or sparse.issparse(centers):
        out = squared_distances(X, centers)
        out *= -0.5 / width**2
        return out
    n, d = X.shape
    origin = _middle(centers)
    left = np.empty((n, d + 2), dtype=X.dtype)
    np.subtract(X, origin, out=left[:, :d])
    left[:, d] = row_norms(left[:, :d], squared=True)
    left[:, d + 1] = 1.0
    moved = np.asarray(centers - origin, dtype=np.float64)
    right = np.empty((d + 2, len(moved)))
    right[:d] = moved.T
    right[d] = -0.5
    right[d + 1] = -0.5 * row_norms(moved, squared=True)
    right /= width**2
    product: NDArray[Any] = left @ right.astype(X.dtype)
    np.minimum(product, 0.0, out=product)
    return product


def _middle(centers: NDArray[Any]) -> NDArray[Any]:
    """Where most of the centres are; one of them far away does not move it."""
    return np.asarray(np.median(centers, axis=0), dtype=centers.dtype)


def squared_distances(X: Any, centers: Any) -> NDArray[Any]:
    """|x - c|^2 for all rows and centres by one matrix product: (n, d), (b, d) -> (n, b).

    Dense rows are first moved by the centres' median, so a large common offset costs no digits,
    nor does one centre far away; CSR rows are not (that would densify them).
    """
    if not sparse.issparse(X) and not sparse.issparse(centers):
        origin = _middle(centers)
        X = X - origin
        centers = centers - origin
    out: NDArray[Any] = safe_sparse_dot(X, centers.T, dense_output=True)
    out *= -2.0
    out += row_norms(X, squared=True)[:, np.newaxis]
    out += row_norms(centers, squared=True)
    np.maximum(out, 0.0, out=out)
    return out


class _ScaleMixin:
    """What a selection asks of a basis, answered by one that has a single scale.

    A scale is one of several feature maps of the same size that are candidates for each other.
    """

    n_scales = 1
    #: Whether features take no more memory than the rows they are made of.
    row_sized = False
    #: Whether features lie in [0, 1].
    bounded = False

    @property
    def scale_widths(self) -> NDArray[np.float64]:
        """Width of every scale, shape (n_scales,); NaN where a scale has none."""
        return np.array([getattr(self, "width_", np.nan)])

    def scales(self, X: Any, reuse: bool = True) -> Iterator[tuple[int, Any]]:
        """(j, features of scale j, shape (n, n_features)) for every scale.

        With ``reuse`` an array holds good until the next one is asked for.
        """
        yield 0, self.features(X)  # type: ignore[attr-defined]

    def scale(self, j: int) -> Any:
        """The fitted feature map of scale j alone."""
        return self.keep([j])

    def keep(self, wanted: Sequence[int]) -> Any:
        """The fitted feature map of some of the scales, side by side."""
        if list(wanted) != [0]:
            raise IndexError(f"This basis has scale 0 only; got {list(wanted)}.")
        return self


class _Basis(_ScaleMixin, TransformerMixin, BaseEstimator):
    """A feature map of ours: a transformer of dense or CSR rows, in their precision."""

    @abstractmethod
    def features(self, X: Any) -> Any:
        """``transform`` without validation, for rows that were validated already."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


_Made = TypeVar("_Made", bound="_CenterBasis")


class _CenterBasis(ClassNamePrefixFeaturesOutMixin, _Basis):
    """Shared by the bases that are built on centres: choose them, remember them."""

    n_centers: int
    centers: ArrayLike | None
    random_state: Any

    @property
    def n_features(self) -> int:
        """Features per scale."""
        return int(self.centers_.shape[0])

    @property
    def _n_features_out(self) -> int:
        return self.n_features * self.n_scales

    def _with_centers(self: _Made, centers: Any) -> _Made:
        """Fitted with these centers."""
        self.n_centers, self.centers_ = centers.shape[0], centers
        self.n_features_in_ = int(centers.shape[1])
        return self

    def _fit_centers(self, X: Any, sample_weight: ArrayLike | None) -> Any:
        X = read_rows(self, X)
        check_range(X)
        if self.centers is not None:
            given: Any = self.centers
            fixed = given if sparse.issparse(given) else np.asarray(given, dtype=X.dtype)
            if fixed.ndim != 2 or fixed.shape[1] != X.shape[1]:
                raise ValueError(
                    f"centers must have shape (n_centers, {X.shape[1]}), as X has "
                    f"{X.shape[1]} features; got {fixed.shape}."
                )
            self.centers_ = fixed
        else:
            if self.n_centers < 1:
                raise ValueError(f"The number of centres must be at least 1, got {self.n_centers}.")
            weight = check_weights(sample_weight, X)
            self.centers_ = sample_centers(X, self.n_centers, self.random_state, weight)
        return X

    def transform(self, X: Any) -> NDArray[Any]:
        """Rows -> features: (n, d) -> (n, number of features), in the precision of X."""
        check_is_fitted(self)
        return finite(self.features(read_rows(self, X, reset=False)), "The features")


@dataclass(eq=False, repr=False)
class GaussianBasis(_CenterBasis):
    """phi_l(x) = exp(-|x - c_l|^2 / (2 width^2)).

    Parameters
    ----------
    n_centers : int, default=200
        Centres drawn from the rows without replacement; all distinct rows if there are fewer.
    width : float or str, default="median"
        A number, "median" (the median distance between rows) or a multiple, such as
        "0.5*median".
    centers : array-like or CSR, shape (b, d), optional
        Use these centres instead of drawing.
    random_state : int, RandomState or None

    Attributes
    ----------
    centers_ : ndarray or CSR, shape (b, d)
    width_ : float

    Examples
    --------
    >>> X = [[0.0], [2.0]]
    >>> GaussianBasis(width=2.0, centers=[[0.0]]).fit_transform(X).round(3)
    array([[1.   ],
           [0.607]])
    """

    n_centers: int = 200
    width: float | str = "median"
    centers: ArrayLike | None = None
    random_state: Any = None

    bounded = True

    @classmethod
    def from_parts(cls, centers: Any, width: float) -> GaussianBasis:
        """A fitted basis from its centres, shape (b, d), and its width."""
        basis = cls(width=float(width))._with_centers(centers)
        basis.width_ = float(width)
        return basis

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> GaussianBasis:
        """Choose the centres and the width; ``y`` is ignored."""
        X = self._fit_centers(X, sample_weight)
        factor, relative = parse_width(self.width)
        self.width_ = factor
        if relative:
            self.width_ *= median_distance(X, self.random_state, sample_weight)
        return self

    def features(self, X: Any) -> NDArray[Any]:
        out = gaussian_exponents(X, self.centers_, self.width_)
        np.exp(out, out=out)
        return out


@dataclass(eq=False, repr=False)
class MultiscaleBasis(_CenterBasis):
    """Gaussian features of several widths on the same centres, phi = (phi_1, ..., phi_k):

    phi_{j,l}(x) = exp(-|x - c_l|^2 / (2 width_j^2)).

    One distance product serves all widths, and widths a factor of two apart share one
    exponential: K(s/2) = K(s)^4.

    Parameters
    ----------
    n_centers : int, default=200
    widths : sequence of float or str
        Each as the ``width`` of :class:`GaussianBasis`.
    centers : array-like or CSR, shape (b, d), optional
    random_state : int, RandomState or None

    Attributes
    ----------
    centers_ : ndarray or CSR, shape (b, d)
    widths_ : ndarray, shape (k,)
    """

    n_centers: int = 200
    widths: Sequence[float | str] = ("0.5*median", "median", "2*median")
    centers: ArrayLike | None = None
    random_state: Any = None

    bounded = True

    @classmethod
    def from_parts(cls, centers: Any, widths: ArrayLike) -> MultiscaleBasis:
        """A fitted basis from its centres, shape (b, d), and its widths, shape (k,)."""
        values = np.array(widths, dtype=np.float64)
        basis = cls(widths=values.tolist())._with_centers(centers)
        basis.widths_ = values
        return basis

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> MultiscaleBasis:
        """Choose the centres and the widths; ``y`` is ignored."""
        X = self._fit_centers(X, sample_weight)
        parsed = [parse_width(width) for width in self.widths]
        if not parsed:
            raise ValueError("widths must name at least one width.")
        relative = any(r for _, r in parsed)
        median = median_distance(X, self.random_state, sample_weight) if relative else 1.0
        self.widths_ = np.array([f * median if r else f for f, r in parsed])
        return self

    @property
    def n_scales(self) -> int:  # type: ignore[override]
        return len(self.widths)

    @property
    def scale_widths(self) -> NDArray[np.float64]:
        """Width of every scale, shape (n_scales,)."""
        return self.widths_

    def scale(self, j: int) -> GaussianBasis:
        """The fitted Gaussian basis of width j alone."""
        return GaussianBasis.from_parts(self.centers_, float(self.widths_[j]))

    def keep(self, wanted: Sequence[int]) -> MultiscaleBasis:
        """The fitted basis of some of the widths, side by side."""
        return MultiscaleBasis.from_parts(self.centers_, self.widths_[list(wanted)])

    def scales(self, X: Any, reuse: bool = True) -> Iterator[tuple[int, NDArray[Any]]]:
        """(j, features of width j, shape (n, b)) for every width, widest of each chain first."""
        chains = factor_two_chains(self.widths_)
        widest = self.widths_[chains[0][0][0]]
        exponents = gaussian_exponents(X, self.centers_, widest)
        for i, chain in enumerate(chains):
            out = exponents if i == len(chains) - 1 else np.empty_like(exponents)
            if i:
                np.multiply(exponents, (widest / self.widths_[chain[0][0]]) ** 2, out=out)
                np.exp(out, out=out)
            else:
                np.exp(exponents, out=out)
            for j, halvings in chain:
                for step in range(2 * halvings):
                    out = np.multiply(out, out, out=out if reuse or step else None)
                yield j, out

    def features(self, X: Any) -> NDArray[Any]:
        """All scales side by side, shape (n, k b), for rows that were validated already."""
        b = self.n_features
        out = np.empty((X.shape[0], b * self.n_scales), dtype=X.dtype)
        for j, block in self.scales(X):
            out[:, j * b : (j + 1) * b] = block
        return out


def factor_two_chains(widths: NDArray[np.float64]) -> list[list[tuple[int, int]]]:
    """Widths in groups, widest first, each its predecessor halved k times: [(index, k), ...].

    At most 4 halvings in a row: each squaring doubles the relative error of the exponential.
    """
    order = np.argsort(-widths, kind="stable")
    chains: list[list[tuple[int, int]]] = []
    for j in order:
        for chain in chains:
            ratio = np.log2(widths[chain[-1][0]] / widths[j])
            halvings = round(float(ratio))
            total = sum(h for _, h in chain) + halvings
            if abs(ratio - halvings) < 1e-12 and total <= 4:
                chain.append((int(j), halvings))
                break
        else:
            chains.append([(int(j), 0)])
    return chains


@dataclass(eq=False, repr=False)
class LinearKernelBasis(_CenterBasis):
    """phi_l(x) = x'c_l, the basis of the paper's text experiments.

    Parameters
    ----------
    n_centers : int, default=200
    centers : array-like or CSR, shape (b, d), optional
        Use these centres instead of drawing.
    random_state : int, RandomState or None

    Attributes
    ----------
    centers_ : ndarray or CSR, shape (b, d)
    """

    n_centers: int = 200
    centers: ArrayLike | None = None
    random_state: Any = None

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> LinearKernelBasis:
        """Choose the centres; ``y`` is ignored."""
        self._fit_centers(X, sample_weight)
        return self

    def features(self, X: Any) -> NDArray[Any]:
        return np.asarray(safe_sparse_dot(X, self.centers_.T, dense_output=True))


class IdentityBasis(OneToOneFeatureMixin, _Basis):
    """phi(x) = x: linear models in the d features themselves. CSR rows stay CSR."""

    row_sized = True
    n_features_in_: int

    @classmethod
    def from_parts(cls, n_features: int) -> IdentityBasis:
        """A fitted basis of rows with ``n_features`` columns."""
        basis = cls()
        basis.n_features_in_ = int(n_features)
        return basis

    @property
    def n_features(self) -> int:
        return int(self.n_features_in_)

    def fit(self, X: Any, y: Any = None) -> IdentityBasis:
        """Remember the number of features; ``y`` is ignored."""
        read_rows(self, X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows as they are."""
        check_is_fitted(self)
        return read_rows(self, X, reset=False)

    def features(self, X: Any) -> Any:
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


#: Names that ``AUCClassifier(basis=...)`` understands.
BASES: dict[str, type] = {
    "gaussian": GaussianBasis,
    "multiscale": MultiscaleBasis,
    "linear": LinearKernelBasis,
    "identity": IdentityBasis,
}


class TransformerBasis(_ScaleMixin):
    """A user's transformer as a basis: its output, whole, is the one scale."""

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Fit the transformer, with weights where it takes them; ``y`` is ignored."""
        fit_basis(self.transformer, X, sample_weight)
        self.n_features = int(self.features(X[:1]).shape[1])
        return self

    def features(self, X: Any) -> Any:
        """The transformer's features, shape (n, n_features)."""
        return self.transformer.transform(X)

    def keep(self, wanted: Sequence[int]) -> Any:
        """The one scale there is; a basis of ours needs no wrapping any more."""
        whole = super().keep(wanted)
        return self.transformer if isinstance(self.transformer, _ScaleMixin) else whole


def make_basis(basis: Any, n_centers: int, width: float | str, random_state: Any) -> Any:
    """An unfitted basis from its name, or a clone of a transformer, with ``features(X)``.

    Settings that a basis does not know (the width of a linear kernel, say) are left out.
    """
    if not isinstance(basis, str):
        return TransformerBasis(clone(basis))
    if basis not in BASES:
        known = ", ".join(map(repr, BASES))
        raise ValueError(f"basis must be one of {known} or a transformer; got {basis!r}.")
    made = BASES[basis]()
    wanted = {"n_centers": n_centers, "width": width, "random_state": random_state}
    return made.set_params(**{k: v for k, v in wanted.items() if k in made.get_params()})


def fit_basis(
    basis: Any, X: Any, sample_weight: ArrayLike | None = None, in_order: bool = False
) -> Any:
    """Fit a feature map to the rows, with weights where both sides know of them.

    ``in_order``: the rows come in the order of their hashes, and the first are the centres.
    """
    if in_order and isinstance(basis, _CenterBasis):
        weight = check_weights(sample_weight, X)
        basis.set_params(centers=first_centers(X, basis.get_params()["n_centers"], weight))
    if sample_weight is not None and has_fit_parameter(basis, "sample_weight"):
        return basis.fit(X, sample_weight=sample_weight)
    return basis.fit(X)


def check_weights(sample_weight: ArrayLike | None, X: Any) -> NDArray[np.float64] | None:
    """Weights as a float64 array, shape (n,), finite, >= 0 and not all zero; None stays None."""
    if sample_weight is None:
        return None
    weight: NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True
    )
    if not weight.any():
        raise ValueError("All sample weights are zero: at least two rows need a positive weight.")
    return weight


def parse_width(width: float | str) -> tuple[float, bool]:
    """(factor, relative to the median?) of a width given as number, "median" or "0.5*median"."""
    if isinstance(width, str):
        match = re.fullmatch(r"\s*(?:([0-9.eE+-]+)\s*\*?\s*)?median\s*", width)
        try:
            factor = float(match.group(1) or 1.0) if match else np.nan
        except ValueError:
            factor = np.nan
        relative = True
    else:
        factor, relative = float(width), False
    if not (np.isfinite(factor) and factor > 0):
        raise ValueError(
            f"width must be a positive number, 'median' or a multiple such as '0.5*median'; "
            f"got {width!r}."
        )
    return factor, relative
