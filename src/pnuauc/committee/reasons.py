"""Which columns, or words of a text, move a row's score: each is replaced by the typical value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from pnuauc._utils.arrays import Floats, Mask
from pnuauc.io.encode import TableEncoder
from pnuauc.io.text import TextBlock

__all__ = ["Reason", "find_reasons", "name_words"]

#: Words of a row that are tried: those of largest weight (sparse rows), the rarest (text); and
#: words of a text that are named at most.
_HEAVIEST, _RAREST, _NAMED = 200, 60, 4


@dataclass(frozen=True)
class Reason:
    """A column's part in a row's score.

    column : str or int; value, typical : float, in the column's units (of a group of columns:
    how many of them differ from the typical ones, and 0); effect : float, what the score loses
    when the value is replaced by the typical one; words : of a text those that matter.
    """

    column: Any
    value: float
    typical: float
    effect: float
    words: tuple[str, ...] = ()


def find_reasons(
    score: Callable[[Any], Floats],
    X: Any,
    typical: Floats | None,
    n_reasons: int,
    groups: Mapping[Any, Sequence[int]] | None = None,
    names: Any = None,
    only: Set[int] | None = None,
) -> list[list[Reason]]:
    """For each row its strongest reasons; see :meth:`AutoAUCClassifier.reasons`.

    ``only``: of sparse rows these columns alone are tried.
    """
    if sparse.issparse(X):
        rows = sparse.csr_matrix(X)
        return [_of_words(score, rows[i], n_reasons, names, only) for i in range(rows.shape[0])]
    assert typical is not None
    X = np.array(X, dtype=np.float64)
    if groups is None:
        groups = {(j if names is None else str(names[j])): [j] for j in range(X.shape[1])}
    chosen = {label: list(columns) for label, columns in groups.items()}
    base, differs = score(X), _differ(X, typical)
    effects = np.zeros((len(X), len(chosen)))
    for g, columns in enumerate(chosen.values()):
        rows = differs[:, columns].any(axis=1)
        if rows.any():  # a typical value has no effect: nothing to compute
            changed = X[rows]
            changed[:, columns] = typical[columns]
            effects[rows, g] = base[rows] - score(changed)
    found = []
    for row, odd, moved in zip(X, differs, effects, strict=True):
        reasons = []
        for g in _strongest(moved, n_reasons):
            label, columns = list(chosen.items())[g]
            j, n_odd = columns[0], float(odd[columns].sum())
            values = (float(row[j]), float(typical[j])) if len(columns) == 1 else (n_odd, 0.0)
            reasons.append(Reason(label, *values, float(moved[g])))
        found.append(reasons)
    return found


def _differ(values: Floats, typical: Floats) -> Mask:
    return np.asarray(values != typical)  # a missing value differs from everything


def _strongest(effects: Floats, n: int) -> list[int]:
    return [int(j) for j in np.argsort(-np.abs(effects), kind="stable")[:n]]


def _of_words(
    score: Callable[[Any], Floats], row: Any, n_reasons: int, names: Any, only: Set[int] | None
) -> list[Reason]:
    """Each word of a sparse row left out in turn."""
    places = np.argsort(-np.abs(row.data), kind="stable")
    if only is not None:
        places = places[[int(j) in only for j in row.indices[places]]]
    places = places[:_HEAVIEST]
    if not len(places):
        return []
    copies = sparse.vstack([row] * (len(places) + 1), format="csr")
    copies.data[np.arange(len(places)) * row.nnz + places] = 0.0
    scores = score(copies)
    effects = scores[-1] - scores[:-1]
    columns, values = row.indices[places].tolist(), row.data[places]
    return [
        Reason(
            columns[j] if names is None else str(names[columns[j]]),
            float(values[j]),
            0.0,
            float(effects[j]),
        )
        for j in _strongest(effects, n_reasons)
    ]


def name_words(
    found: list[list[Reason]],
    score: Callable[[Any], Floats],
    X: Floats,
    table: Any,
    encoder: TableEncoder,
    views: Sequence[str],
) -> list[list[Reason]]:
    """The same reasons; those that are a text name its words, the strongest first.

    Parameters
    ----------
    found : for each row its reasons
    score : encoded rows -> scores
    X : encoded rows, shape (n, d)
    table : arrow table of the same rows
    """
    blocks = {block.name: block for block in getattr(encoder.encoding_, "blocks", ())}
    columns = encoder.groups(*views) if blocks else {}

    def named(reason: Reason, i: int) -> Reason:
        block = blocks.get(reason.column)
        if block is None:
            return reason
        if not isinstance(block, TextBlock):
            return replace(reason, words=("(vector)",))
        words, without = block.without_words(table, i, _RAREST)
        changed = np.repeat(X[i : i + 1], len(words) + 1, axis=0)
        changed[:-1, columns[block.name]] = without
        scores = score(changed)
        moved = np.sign(reason.effect) * (scores[-1] - scores[:-1])
        matter = [words[j] for j in np.argsort(-moved, kind="stable")[:_NAMED] if moved[j] > 0]
        return replace(reason, words=tuple(matter) or ("(no word of its own)",))

    return [[named(reason, i) for reason in reasons] for i, reasons in enumerate(found)]
