"""Columns that may know the label: found by how strongly they separate, one reason each.

If rows were labelled without looking at a column, its unlabelled values are a mixture of those of
positives and negatives: on average they rank between the two, and where most positives are, some
unlabelled rows must be too. A column that was filled in after review, or copied from the label,
breaks this. Strength alone is no proof (an honest column may be that good), so it counts only where
the rest of the table comes nowhere near.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pnuauc._utils.arrays import Floats
from pnuauc.core.ranks import pairs_won
from pnuauc.io.columns import Column, numbers, strings
from pnuauc.labels import Roles

#: Fewer rows than this separate by luck too often to be worth a word.
_FEWEST = 5
#: Unlabelled rows outside of the labelled ones: by this much of the AUC, in null standard errors.
_OUTSIDE, _ERRORS = 0.06, 5.0
#: A shift that many columns share is how rows were picked for labelling, not a leak.
_ABOVE_OTHERS = 3.0
#: Most positives are where at most this share of the unlabelled rows is.
_NEARLY_NONE = 0.005
#: One column this good less two errors, and then still better than the next by this much (logit).
_STRONG, _GAP = 0.85, 0.8
_MOST_SUSPECTS = 5


class _Reading(NamedTuple):
    """One ordering of the rows by one column."""

    column: str
    strength: float  # distance from a coin of P against N, or against U without N; may be NaN
    outside: float  # AUC by which unlabelled rows lie outside of the labelled ones
    error: float  # null standard error of what is larger


def find_leaks(table: Any, columns: list[Column], roles: Roles) -> list[str]:
    """One sentence for each column that may know the label, the strongest reasons first.

    Looked for, in this order: columns that set positives, negatives or labelled rows apart
    perfectly (by a threshold, by categories or by which cells are filled); columns whose
    unlabelled values lie outside of the labelled ones; columns that put most positives where hardly
    any unlabelled row is; one column that separates far better than all the others.
    """
    groups = _groups(roles)
    perfect, readings, empty = [], [], []
    for column in columns:
        if column.kind == "vector":
            continue
        values = table.column(column.name)
        how = _separates(column, values, groups)
        if how:
            said = f"separates {how} from all others perfectly: does it know the label?"
            perfect.append((column.name, said))
            continue
        for ordering in _orderings(column, values, roles):
            readings.append(_reading(column.name, ordering, roles))
            if _most_where_none(ordering, roles):
                said = (
                    "puts most labelled positives where hardly any unlabelled row is, as if no "
                    "unlabelled row were positive: was it filled in for labelled rows only?"
                )
                empty.append((column.name, said))
    named: dict[str, str] = {}
    for name, said in [*perfect, *_outside(readings), *empty, *_far_ahead(readings)]:
        named.setdefault(name, f"Column '{name}' {said} If so leave it out.")
    return list(named.values())[: max(_MOST_SUSPECTS, len(perfect))]


def _outside(readings: list[_Reading]) -> list[tuple[str, str]]:
    """Unlabelled rows beyond the labelled ones, more than the other columns show."""
    usual = float(np.median([r.outside for r in readings])) if readings else 0.0
    said = (
        "separates labelled from unlabelled rows in a way that no mixture of positives and "
        "negatives explains: was it filled in when rows were labelled?"
    )
    return [
        (r.column, said)
        for r in sorted(readings, key=lambda r: -r.outside)
        if r.outside > max(_OUTSIDE, _ERRORS * r.error, _ABOVE_OTHERS * usual)
    ]


def _far_ahead(readings: list[_Reading]) -> list[tuple[str, str]]:
    """The one column that is far better than all others, if there is one."""
    best: dict[str, _Reading] = {}
    for r in sorted(readings, key=lambda r: -r.strength):
        if np.isfinite(r.strength):
            best.setdefault(r.column, r)
    if len(best) < 3:
        return []
    first, second = list(best.values())[:2]
    sure = 0.5 + first.strength - 2.0 * first.error
    logits = special.logit(np.clip([sure, 0.5 + second.strength], 1e-6, 1.0 - 1e-6))
    if sure < _STRONG or logits[0] - logits[1] < _GAP:
        return []
    said = (
        f"alone ranks with an AUC of {0.5 + first.strength:.2f}, the next best, "
        f"'{second.column}', with {0.5 + second.strength:.2f}: is it a copy of the label, or known "
        "only after it?"
    )
    return [(first.column, said)]


def _orderings(column: Column, values: Any, roles: Roles) -> list[Floats]:
    """Orders of the rows that the column gives, NaN for rows left out."""
    if column.kind in {"category", "text"}:
        texts = strings(values)
        levels, level = np.unique(texts, return_inverse=True)
        if len(levels) > len(texts) / 10 or len(levels) < 2:
            return []
        return [_by_level(level.ravel(), roles)]
    cells = _cells(column, values)
    missing = np.isnan(cells)
    if missing.all():
        return []
    return [(~missing).astype(float), cells] if missing.any() else [cells]


def _cells(column: Column, values: Any) -> Floats:
    """Numbers; of dates the days."""
    cells = numbers(column, values)
    return cells if cells.ndim == 1 else cells[:, 0]


def _by_level(level: NDArray[np.intp], roles: Roles) -> Floats:
    """Levels in the order of their share of positives, each half ordered by the other half."""
    out = np.empty(len(level))
    half = np.arange(len(level)) % 2
    known = roles.codes == 1 if roles.n_positive else roles.codes != 0
    for side in (0, 1):
        other = half != side
        total = np.bincount(level[other], minlength=level.max() + 1)
        hits = np.bincount(level[other & known], minlength=level.max() + 1)
        share = (hits + known[other].mean()) / (total + 1.0)
        out[half == side] = share[level[half == side]]
    return out


def _reading(name: str, ordering: Floats, roles: Roles) -> _Reading:
    parts = [ordering[rows] for rows in (roles.positive, roles.negative, roles.unlabeled)]
    p, n, u = (part[~np.isnan(part)] for part in parts)
    pn, pu, un = (_wins(a, b) for a, b in ((p, n), (p, u), (u, n)))
    outside, error = 0.0, _null_error(p, n if len(n) else u)
    if np.isfinite([pn, pu, un]).all():
        side = 1.0 if pn >= 0.5 else -1.0
        beyond = [-side * (pu - 0.5), -side * (un - 0.5)]
        outside = max(*beyond, 0.0)
        error = _null_error(p, u) if beyond[0] > beyond[1] else _null_error(n, u)
    known = next((share for share in (pn, pu, un) if np.isfinite(share)), np.nan)
    return _Reading(name, abs(known - 0.5), outside, error)


def _wins(a: Floats, b: Floats) -> float:
    """Share of pairs (a, b) that a wins, ties one half; NaN with too few rows."""
    if min(len(a), len(b)) < _FEWEST:
        return float("nan")
    return pairs_won(np.sort(a), np.sort(b))


def _null_error(a: Floats, b: Floats) -> float:
    """Standard error of a share of pairs won when nothing separates, less where values tie."""
    n, m = max(len(a), 1), max(len(b), 1)
    ties = np.unique(np.concatenate([a, b]), return_counts=True)[1] / (len(a) + len(b) or 1)
    return float(np.sqrt((n + m + 1) / (12.0 * n * m) * (1.0 - float((ties**3).sum()))))


def _most_where_none(ordering: Floats, roles: Roles) -> bool:
    """Whether some end of the order holds half of the positives and nearly no unlabelled row."""
    p, u = ordering[roles.positive], ordering[roles.unlabeled]
    p, u = p[~np.isnan(p)], u[~np.isnan(u)]
    if len(p) < 2 * _FEWEST or len(u) < 3.0 / _NEARLY_NONE:
        return False
    for sign in (1.0, -1.0):
        cut = np.median(sign * p)
        share = float((sign * p >= cut).mean())
        # three more rows: the upper limit of a share that was seen to be zero
        if ((sign * u >= cut).sum() + 3.0) / len(u) < _NEARLY_NONE * share:
            return True
    return False


def _groups(roles: Roles) -> dict[str, NDArray[np.bool_]]:
    # P against N alone: perfect separation may simply be an easy problem, but say so
    groups = {"the positive rows": roles.codes == 1}
    if roles.n_unlabeled:
        groups |= {"the negative rows": roles.codes == 0, "the labelled rows": roles.codes >= 0}
    return {
        name: mask
        for name, mask in groups.items()
        if mask.sum() >= _FEWEST and (~mask).sum() >= _FEWEST
    }


def _separates(column: Column, values: Any, groups: dict[str, NDArray[np.bool_]]) -> str | None:
    if column.kind in {"category", "text"}:
        texts = strings(values)
        for name, mask in groups.items():
            levels = set(texts[mask])
            # many different texts are disjoint by nature; a leak is a few that repeat
            if len(levels) <= mask.sum() / 2 and levels.isdisjoint(texts[~mask]):
                return name
        return None
    cells = _cells(column, values)
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
