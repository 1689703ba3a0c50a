"""The rows behind the mathematics: features of each role, visited in blocks. Rows end here.

Everything downstream asks for one of three things: moments by role, scores by role for given
coefficients, or the transpose product.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._utils.arrays import Floats, Indices
from pnuauc.core.basis import IdentityBasis
from pnuauc.core.moments import Moments, moments_of
from pnuauc.core.rows import ArrayRows, Block, Rows, SomeRows, array_rows, block_length, count_rows

#: Rows per role that a threshold is read off.
THRESHOLD_ROWS = 20_000
#: Above this many features a b x b scatter is not formed.
MATRIX_FREE_ABOVE = 2000


class Design:
    """Feature rows by role.

    Parameters
    ----------
    rows : dict of role letter -> visitor of its rows (see :mod:`pnuauc.core.rows`)
    basis : fitted basis
    """

    def __init__(self, rows: Mapping[str, Rows], basis: Any) -> None:
        self.rows, self.basis = dict(rows), basis
        self.n_features = basis.n_features * basis.n_scales

    @classmethod
    def of(
        cls,
        X: Any,
        index: Mapping[str, Indices],
        basis: Any,
        weight: NDArray[Any] | None = None,
        n_threads: int = 1,
    ) -> Design:
        """The design of rows in memory, by their row numbers."""
        return cls(array_rows(X, index, basis, weight, n_threads=n_threads), basis)

    @functools.cached_property
    def weights(self) -> dict[str, Floats | None]:
        """Weights of each role's rows, shape (n,), None where none were given."""
        return {
            role: joined(rows.map(lambda block: block.weight)) for role, rows in self.rows.items()
        }

    def moments(self) -> dict[str, Moments]:
        """Moments of the features by role, in one pass over the rows."""
        basis = self.basis
        if is_matrix_free(basis):
            whole = {role: joined(rows.map(lambda b: b.X)) for role, rows in self.rows.items()}
            return {role: Moments.matrix_free(X, self.weights[role]) for role, X in whole.items()}

        def summarize(block: Block) -> Moments:
            return moments_of(block.features(basis), block.weight, basis)

        zero = Moments.zero(self.n_features)
        return {
            role: rows.reduce(summarize, Moments.__add__, zero) for role, rows in self.rows.items()
        }

    def scores(self, coef: Floats) -> dict[str, Floats]:
        """w'phi(x) by role."""
        basis = self.basis
        return {
            role: joined(rows.map(lambda block: block.features(basis) @ coef))
            for role, rows in self.rows.items()
        }

    def pullback(self, gradient: Mapping[str, Floats]) -> Floats:
        """sum_i gradient_i phi(x_i) over all rows of the given roles, shape (b,)."""
        basis, total = self.basis, np.zeros(self.n_features)
        for role, slope in gradient.items():

            def product(block: Block, slope: Floats = slope) -> Floats:
                return np.asarray(block.features(basis).T @ slope[block.place])

            total = self.rows[role].reduce(product, np.add, total)
        return total

    def only(self, roles: str) -> Design:
        """The same without the other roles."""
        return Design({role: rows for role, rows in self.rows.items() if role in roles}, self.basis)

    def thinned(self, n_rows: int) -> Design:
        """The same design on at most ``n_rows`` evenly spaced rows of each role."""
        return Design({role: thinned(rows, n_rows) for role, rows in self.rows.items()}, self.basis)


def is_matrix_free(basis: Any) -> bool:
    """Whether the features are the rows themselves, and too many to be squared."""
    return isinstance(basis, IdentityBasis) and basis.n_features > MATRIX_FREE_ABOVE


def joined(parts: Iterable[Any]) -> Any:
    """Arrays or CSR matrices of neighbouring blocks as one; None where the blocks have none."""
    parts = list(parts)
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    return (
        sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    )


def thinned(rows: Rows, n_rows: int) -> Rows:
    """At most ``n_rows`` evenly spaced rows."""
    step = -(-count_rows(rows) // n_rows)
    if step <= 1:
        return rows
    return SomeRows(rows, lambda block: (block.start + np.arange(len(block))) % step == 0)


def block_scores(X: Any, basis: Any, coef: Floats, n_threads: int = 1) -> Floats:
    """w'phi(x) for every row, in blocks: shape (n,)."""
    if not X.shape[0]:
        return np.empty(0)
    rows = ArrayRows(X, block_size=block_length(X, basis), n_threads=n_threads)
    scores = joined(rows.map(lambda block: basis.features(block.X) @ coef))
    return np.asarray(scores, dtype=np.float64)


def upper_threshold(scores: Floats, share: float, weight: NDArray[Any] | None = None) -> float:
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


def ranking_threshold(design: Design, coef: Floats, prior: float | None) -> float:
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
    total = {role: design.rows[role].reduce(lambda b: b.mass, operator.add, 0.0) for role in known}
    share = total["P"] / sum(total.values()) if "P" in known else 0.0
    mass = []
    for role in known:
        weight = small.weights[role]
        weight = np.ones(len(scores[role])) if weight is None else weight
        mass.append(weight * (total[role] / weight.sum()))
    pooled = np.concatenate([scores[role] for role in known])
    return upper_threshold(pooled, share, np.concatenate(mass))
