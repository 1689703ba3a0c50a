"""Scores with weights, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pnuauc._arrays import Floats, Indices
from pnuauc.losses import Loss

Slopes: TypeAlias = tuple[float, Floats, Floats]
WithinSlopes: TypeAlias = tuple[float, Floats]


@dataclass(frozen=True)
class Sample:
    """Scores with weights that sum to one, so that weighted sums are means and do not overflow."""

    scores: Floats
    weight: Floats
    size: float

    @cached_property
    def order(self) -> Indices:
        return np.argsort(self.scores)

    def restore(self, ranked: Floats) -> Floats:
        """Undo the sorting."""
        out = np.empty_like(ranked)
        out[self.order] = ranked
        return out


def read(scores: ArrayLike, weight: ArrayLike | None, name: str) -> Sample:
    """Check scores and weights; the errors call them by ``name``."""
    values = _vector(scores, f"scores {name}")
    if values.size == 0:
        raise ValueError(f"The scores {name} are empty; at least one score is needed.")
    if weight is None:
        size = float(values.size)
        return Sample(values, np.full(values.size, 1.0 / size), size)
    weights = _vector(weight, f"weights of {name}")
    if weights.size != values.size:
        raise ValueError(
            f"The weights of {name} have length {weights.size} but there are {values.size} scores;"
            " give one weight per score."
        )
    if np.any(weights < 0.0):
        where = int(np.argmax(weights < 0.0))
        raise ValueError(f"The weights of {name} must not be negative; number {where} is.")
    size = float(weights.sum())
    if size == 0.0:
        raise ValueError(f"The weights of {name} are all zero; at least one must be positive.")
    return Sample(values, weights / size, size)


def _vector(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"The {name} must be real numbers, got dtype {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(f"The {name} must be one-dimensional, got shape {array.shape}.")
    array = array.astype(np.float64)
    if not np.all(np.isfinite(array)):
        where = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"The {name} must be finite; number {where} is {array[where]}.")
    return array


def require_pairs(sample: Sample) -> None:
    if sample.size <= 1.0:
        raise ValueError(
            "Pairs within one sample need two rows (a total weight above 1), got a total weight of"
            f" {sample.size:g}."
        )


def require_derivative(loss: Loss) -> None:
    if not loss.has_derivative:
        raise ValueError(f"The {loss.name} loss has values but no gradient; ask for its value.")
