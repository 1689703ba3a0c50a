"""Which columns move a row's score, in the units of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Reason", "find_reasons"]

Floats: TypeAlias = NDArray[np.float64]

#: Words of one text that are tried, those of largest weight.
_MAX_WORDS = 200


@dataclass(frozen=True)
class Reason:
    """A column's part in a row's score.

    column : str or int; value, typical : float, in the column's units (of a group of columns:
    how many of them differ from the typical ones, and 0); effect : float, what the score loses
    when the value is replaced by the typical one.
    """

    column: Any
    value: float
    typical: float
    effect: float


def find_reasons(
    score: Callable[[Any], Floats],
    X: Any,
    typical: Floats | None,
    n_reasons: int,
    groups: Mapping[str, Sequence[int]] | None = None,
    names: Any = None,
    only: Set[int] | None = None,
) -> list[list[Reason]]:
    """For each row its strongest reasons; see :meth:`AutoAUCClassifier.reasons`.

    ``only``: of sparse rows these columns alone are tried.
    """
    if sparse.issparse(X):
        return _of_sparse(score, sparse.csr_matrix(X), n_reasons, names, only)
    assert typical is not None
    chosen: dict[Any, Sequence[int]]
    if groups is None:
        chosen = {(j if names is None else str(names[j])): [j] for j in range(X.shape[1])}
    else:
        chosen = dict(groups)
    X = np.array(X, dtype=np.float64)
    base = score(X)
    effects = np.zeros((len(X), len(chosen)))
    for g, columns in enumerate(chosen.values()):
        columns = list(columns)
        differs = _differ(X[:, columns], typical[columns]).any(axis=1)
        if differs.any():  # a typical value has no effect: nothing to compute
            changed = X[differs]
            changed[:, columns] = typical[columns]
            effects[differs, g] = base[differs] - score(changed)
    labels = list(chosen)
    found = []
    for row, moved in zip(X, effects, strict=True):
        strongest = np.argsort(-np.abs(moved), kind="stable")[:n_reasons]
        found.append(
            [_reason(labels[g], list(chosen[labels[g]]), row, typical, moved[g]) for g in strongest]
        )
    return found


def _differ(values: Floats, typical: Floats) -> NDArray[np.bool_]:
    return np.asarray(values != typical)  # a missing value differs from everything


def _reason(label: Any, columns: list[int], row: Floats, typical: Floats, effect: float) -> Reason:
    if len(columns) == 1:
        return Reason(label, float(row[columns[0]]), float(typical[columns[0]]), float(effect))
    differing = int(_differ(row[columns], typical[columns]).sum())
    return Reason(label, float(differing), 0.0, float(effect))


def _of_sparse(
    score: Callable[[Any], Floats], X: Any, n_reasons: int, names: Any, only: Set[int] | None
) -> list[list[Reason]]:
    """Each word of a row left out in turn."""
    base = score(X)
    found: list[list[Reason]] = []
    for i in range(X.shape[0]):
        row = X[i]
        places = np.argsort(-np.abs(row.data), kind="stable")
        if only is not None:
            places = places[[int(j) in only for j in row.indices[places]]]
        places = places[:_MAX_WORDS]
        if not len(places):
            found.append([])
            continue
        copies = sparse.vstack([row] * len(places), format="csr")
        copies.data[np.arange(len(places)) * row.nnz + places] = 0.0
        effects = base[i] - score(copies)
        strongest = np.argsort(-np.abs(effects), kind="stable")[:n_reasons]
        columns, values = row.indices[places], row.data[places]
        found.append(
            [
                Reason(
                    int(columns[j]) if names is None else str(names[columns[j]]),
                    float(values[j]),
                    0.0,
                    float(effects[j]),
                )
                for j in strongest
            ]
        )
    return found
