"""The rows behind the mathematics: features of each role, visited in blocks. Rows end here.

Everything downstream asks for one of three things: moments by role, scores by role for given
coefficients, or the transpose product. Memory is bounded by the block, unless the features fit a
stated budget and are asked for again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._moments import Moments, fold, row_blocks
from pnuauc.basis import IdentityBasis

__all__ = ["Design", "block_scores", "default_block_size", "ranking_threshold", "upper_threshold"]

#: Bytes of one block of features: small enough to stay in a core's cache, large enough for BLAS.
BLOCK_BYTES = 4 * 2**20
#: Features of all rows are kept between visits while they fit this many bytes.
CACHE_BYTES = 256 * 2**20
#: Rows per role that a threshold is read off.
THRESHOLD_ROWS = 20_000
#: Above this many features a b x b scatter is not formed.
MATRIX_FREE_ABOVE = 2000


def default_block_size(n_features: int) -> int:
    """Rows per block so that a float64 block of features takes about 4 MiB."""
    return int(np.clip(BLOCK_BYTES // (8 * max(n_features, 1)), 256, 65536))


class Design:
    """Feature rows by role.

    Parameters
    ----------
    X : ndarray or CSR, shape (n, d)
        Validated rows.
    rows : dict of role letter -> row numbers
    basis : fitted basis with ``features(X_block)``
    n_features : int
        b, the number of features the basis makes.
    weights : ndarray, shape (n,), optional
        Frequency weights.
    block_size : int, optional
    n_threads : int, default=1
    """

    def __init__(
        self,
        X: Any,
        rows: Mapping[str, NDArray[np.intp]],
        basis: Any,
        n_features: int,
        weights: NDArray[Any] | None = None,
        block_size: int | None = None,
        n_threads: int = 1,
    ) -> None:
        self.X = X
        self.rows = {role: index for role, index in rows.items() if len(index)}
        self.basis = basis
        self.n_features = n_features
        self.block_size = block_size or default_block_size(n_features)
        self.n_threads = n_threads
        self.weights = {
            role: None if weights is None else np.asarray(weights[index], dtype=np.float64)
            for role, index in self.rows.items()
        }
        self._cache: dict[tuple[str, int], Any] | None = None

    @property
    def matrix_free(self) -> bool:
        """Whether moments keep the rows instead of a b x b scatter."""
        return isinstance(self.basis, IdentityBasis) and self.n_features > MATRIX_FREE_ABOVE

    def role_weights(self, role: str) -> NDArray[np.float64]:
        """Weights of a role's rows; ones where none were given."""
        weight = self.weights[role]
        return np.ones(len(self.rows[role])) if weight is None else weight

    def moments(self) -> dict[str, Moments]:
        """Moments of the features by role, in one pass over the rows."""
        if self.matrix_free:
            return {
                role: Moments.matrix_free(self.X[index], self.weights[role])
                for role, index in self.rows.items()
            }
        return {role: self._role_moments(role) for role in self.rows}

    def _role_moments(self, role: str) -> Moments:
        index, weight = self.rows[role], self.weights[role]

        def summarise(block: slice) -> Moments:
            features = self.basis.features(self.X[index[block]])
            if weight is None and getattr(self.basis, "bounded", False):
                return Moments.from_bounded_rows(features)
            return Moments.from_rows(features, None if weight is None else weight[block])

        blocks = row_blocks(len(index), self.block_size)
        return fold(
            summarise, blocks, Moments.__add__, Moments.zero(self.n_features), self.n_threads
        )

    def scores(self, coef: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """w'phi(x) by role."""
        out = {role: np.empty(len(index)) for role, index in self.rows.items()}
        for role, block, features in self._visit():
            out[role][block] = features @ coef
        return out

    def pullback(self, gradient: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """sum_i gradient_i phi(x_i) over all rows of the given roles, shape (b,)."""
        total = np.zeros(self.n_features)
        for role, block, features in self._visit():
            if role in gradient:
                total += features.T @ gradient[role][block]
        return total

    def thinned(self, n_rows: int) -> Design:
        """The same design on at most ``n_rows`` evenly spaced rows of each role."""
        if max(map(len, self.rows.values())) <= n_rows:
            return self
        rows = {r: i[:: -(-len(i) // n_rows)] for r, i in self.rows.items()}
        small = Design(self.X, rows, self.basis, self.n_features)
        small.weights = {
            r: None if w is None else w[:: -(-len(w) // n_rows)] for r, w in self.weights.items()
        }
        return small

    def _visit(self) -> Iterator[tuple[str, slice, Any]]:
        n = sum(map(len, self.rows.values()))
        keep = isinstance(self.basis, IdentityBasis) or 8 * n * self.n_features <= CACHE_BYTES
        if self._cache is None:
            self._cache = {}
        for role, index in self.rows.items():
            for block in row_blocks(len(index), self.block_size):
                features = self._cache.get((role, block.start))
                if features is None:
                    features = self.basis.features(self.X[index[block]])
                    if keep:
                        self._cache[role, block.start] = features
                yield role, block, features


def block_scores(
    X: Any,
    basis: Any,
    coef: NDArray[np.float64],
    block_size: int | None = None,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """w'phi(x) for every row, in blocks: shape (n,)."""
    out = np.empty(X.shape[0])

    def score(block: slice) -> None:
        out[block] = basis.features(X[block]) @ coef

    blocks = row_blocks(X.shape[0], block_size or default_block_size(len(coef)))
    fold(score, blocks, lambda total, _: total, None, n_threads)
    return out


def upper_threshold(
    scores: NDArray[np.float64], share: float, weight: NDArray[Any] | None = None
) -> float:
    """A score t that at most ``share`` of the (weighted) scores exceed.

    Half way between the two neighbouring scores, so that no training row sits on the cut and
    rounding cannot flip it.
    """
    order = np.argsort(scores, kind="stable")
    mass = np.cumsum(np.ones(len(scores)) if weight is None else np.asarray(weight)[order])
    # the tiny allowance keeps a share that is a whole number of rows from tipping by rounding
    place = min(np.searchsorted(mass, (1.0 - share) * mass[-1] * (1 - 1e-12)), len(scores) - 1)
    ranked = scores[order]
    above = np.searchsorted(ranked, ranked[place], side="right")
    upper = ranked[above] if above < len(ranked) else ranked[place]
    return float(ranked[place] + 0.5 * (upper - ranked[place]))


def ranking_threshold(design: Design, coef: NDArray[np.float64], prior: float | None) -> float:
    """The score that a share ``prior`` of the unlabelled rows exceeds.

    Without unlabelled rows (or prior): the score that as many labelled rows exceed as there are
    positives among them. Read off at most 20,000 rows of each role, evenly spaced: that places
    the share within a third of a percent and saves a pass over the rows.
    """
    small = design.thinned(THRESHOLD_ROWS)
    scores = small.scores(coef)
    if "U" in scores and prior is not None:
        return upper_threshold(scores["U"], prior, small.weights["U"])
    known = [role for role in "PN" if role in scores]
    weight = [design.role_weights(role) for role in known]
    share = float(weight[0].sum() / sum(w.sum() for w in weight)) if "P" in known else 0.0
    mass = [
        np.full(len(scores[role]), w.sum() / len(scores[role])) if len(scores[role]) < len(w) else w
        for role, w in zip(known, weight, strict=True)
    ]
    pooled = np.concatenate([scores[role] for role in known])
    return upper_threshold(pooled, share, np.concatenate(mass))
