"""A fitted model that is linear in its parameters: what all our estimators come down to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pnuauc._arrays import Floats
from pnuauc._design import block_scores
from pnuauc._shown import ShownAsTable

__all__ = ["LinearModel"]


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(ShownAsTable):
    """score(x) = coef'phi(x).

    Attributes
    ----------
    basis : fitted basis, phi
    coef : ndarray, shape (number of features,)
    parameters : dict
        The settings it was fitted with.
    corrected : bool
        Whether the empirical risk had no minimum and was corrected.
    """

    basis: Any
    coef: Floats
    parameters: dict[str, float] = field(default_factory=dict)
    corrected: bool = False

    def score(self, X: Any, n_threads: int = 1) -> Floats:
        """Scores of rows, ndarray or CSR of shape (n, d), as shape (n,)."""
        return block_scores(X, self.basis, self.coef, n_threads=n_threads)

    decision_function = score
