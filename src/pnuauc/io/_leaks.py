"""Columns that know the label: what separates a role from all other rows perfectly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.io._columns import Column, numbers, strings
from pnuauc.labels import Roles

__all__ = ["find_leaks"]

#: Fewer rows than this separate by luck too often to be worth a word.
_FEWEST = 5


def find_leaks(table: Any, columns: list[Column], roles: Roles) -> list[str]:
    """One sentence for each column that separates perfectly.

    Looked for: positives, negatives or labelled rows against all others, by a threshold, by
    categories or by being filled in. Unlabelled rows hold positives, so a column that sets the
    labelled positives apart from *all* other rows knows who was labelled, not who is positive.
    """
    groups = {
        "the positive rows": roles.codes == 1,
        "the negative rows": roles.codes == 0,
        "the labelled rows": roles.codes >= 0,
    }
    groups = {
        name: mask
        for name, mask in groups.items()
        if mask.sum() >= _FEWEST and (~mask).sum() >= _FEWEST
    }
    if roles.n_unlabeled == 0:
        # P against N alone: perfect separation may simply be an easy problem, but say so
        groups.pop("the labelled rows", None)
        groups.pop("the negative rows", None)
    found = []
    for column in columns:
        how = _separates(column, table.column(column.name), groups)
        if how:
            found.append(
                f"Column '{column.name}' separates {how} from all others perfectly: does it know "
                "the label? If so leave it out."
            )
    return found


def _separates(column: Column, values: Any, groups: dict[str, NDArray[np.bool_]]) -> str | None:
    if column.kind in {"category", "text"}:
        texts = strings(values)
        for name, mask in groups.items():
            levels = set(texts[mask])
            # many different texts are disjoint by nature; a leak is a few that repeat
            if len(levels) <= mask.sum() / 2 and levels.isdisjoint(texts[~mask]):
                return name
        return None
    cells = numbers(column, values)
    cells = cells if cells.ndim == 1 else cells[:, 0]
    missing = np.isnan(cells)
    for name, mask in groups.items():
        filled = ~missing
        if (filled == mask).all() or (missing == mask).all():
            return f"{name} (by which cells are filled)"
        inside, outside = cells[mask & filled], cells[~mask & filled]
        if len(inside) < mask.sum() or not len(outside):
            continue
        if inside.min() > outside.max() or inside.max() < outside.min():
            return name
    return None
