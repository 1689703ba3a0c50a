"""Rows that belong together though nobody said so: columns that look like names of groups.

Rows of one customer are alike; rows of two customers are not, however near the customers' numbers
are. In a column that measures something, rows of neighbouring values are as alike as rows of one
value. So rows of one value are compared with rows of the next one, in all other columns. Where
labels go by value, rows of one value are alike by their class as well, which does no harm: what the
class can explain is taken off. Without any column, labelled rows that lie much nearer to another
labelled row than the spacing of the rows around them explains were labelled group by group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from pnuauc._utils.arrays import Floats, Indices
from pnuauc.committee import AutoAUCClassifier
from pnuauc.core.rows import row_groups
from pnuauc.io.cells import is_text, pa, pc
from pnuauc.io.encode import TableEncoder, kernels_of
from pnuauc.labels import Roles
from pnuauc.study.evidence import auc_finding, evidence_of
from pnuauc.study.findings import AUCFinding, Suspected
from pnuauc.study.rows import StudyRows, filled_cells
from pnuauc.tuning import TOGETHER

#: Triples of rows that are compared, and rows that are looked at for near ones.
_TRIPLES, _MOST_LABELED, _MOST_OTHERS = 4000, 400, 4000
#: Rows from which means and spreads of columns are taken.
_MOST_ROWS_SCALED = 20_000


@dataclass(frozen=True, eq=False)
class Suspect:
    """Rows that may belong together: the column that says so, or None; n labelled rows share."""

    column: str | None
    n: int
    groups: Indices


def suspect_groups(
    rows: StudyRows,
    X: Any,
    encoder: TableEncoder,
    ranker: Any,
    stated: AUCFinding | None,
    settings: Any,
    folds: int,
) -> Suspected | None:
    """What may belong together, and the AUC if it does beside the one that is stated."""
    kernels, own = kernels_of(X, encoder), encoder.groups("kernels")
    suspect = find_groups(rows.table, rows.spare, kernels, rows.roles, own)
    if suspect is None:
        return None
    if suspect.column is None:
        said = (
            f"Some rows seem to belong together: {suspect.n:,} labelled rows lie far nearer to "
            "another one than rows lie elsewhere."
        )
    else:
        said = (
            f"Column '{suspect.column}' seems to name groups: rows of one value are alike, and "
            f"{suspect.n:,} labelled rows share theirs."
        )
    again, auc = clone(ranker), None
    try:
        if isinstance(again, AutoAUCClassifier):
            again.set_params(rivals=False).fit(X, rows.roles, groups=suspect.groups)
        evidence = evidence_of(again, X, rows.roles, settings, cv=folds, groups=suspect.groups)
        if evidence.doubt is None:
            auc = auc_finding(evidence.posterior, settings.level)
    except ValueError:  # the rows of a class are one group
        pass
    if auc is None:
        said += " No AUC can be stated with them kept together."
    else:
        alone, which = (
            ("", "it") if stated is None else (f"{stated.value:.3f} as stated, ", "the latter")
        )
        said += (
            f" AUC {alone}{auc.value:.3f} ({auc.low:.3f} to {auc.high:.3f}) with them kept "
            f"together: believe {which} for rows of groups that were never labelled."
        )
    column = "the column that says so" if suspect.column is None else f"'{suspect.column}'"
    said += f" Give {column} as the group, or 'none' if there are no groups."
    return Suspected(suspect.column, suspect.n, auc, said)


def find_groups(read: Any, spare: Any, X: Any, roles: Roles, own: dict[str, Any]) -> Suspect | None:
    """The strongest suspicion, or None.

    Parameters
    ----------
    read, spare : tables of n rows, whose columns the model reads, and does not; one that names
        groups with one label each gives labels away only where it is read
    X : ndarray, shape (n, d), or CSR; the rows as kernels read them
    own : name of a column -> columns of X that were made of it
    """
    if sparse.issparse(X):
        return None
    scaled, found = _scaling(X), []
    for table in (read, spare):
        for name in table.column_names:
            values = _names(table, name)
            if values is None:
                continue
            labeled = np.flatnonzero(roles.codes >= 0)
            _, number, sizes = np.unique(values[labeled], return_inverse=True, return_counts=True)
            n = int((sizes[number] > 1).sum())
            if n < TOGETHER.shared.value:
                continue
            others = np.setdiff1d(np.arange(X.shape[1]), own.get(name, []))
            strength = _alike(values, roles.codes, partial(scaled, columns=others))
            if table is read:
                strength = max(strength, _one_class(values[labeled], roles.codes[labeled]))
            if strength > 0:
                found.append((strength, Suspect(name, n, values)))
    return max(found, key=lambda item: item[0])[1] if found else _near_rows(scaled, roles)


def _scaling(X: Any) -> Callable[..., Floats]:
    """Rows -> columns of mean 0 and standard deviation 1, cut at 3; empty cells in the middle."""
    some = np.asarray(X[:: -(-len(X) // _MOST_ROWS_SCALED)], dtype=np.float64)
    with np.errstate(all="ignore"):
        mean, spread = np.nan_to_num(np.nanmean(some, axis=0)), np.nanstd(some, axis=0)
    spread = np.where(spread > 0, spread, 1.0)

    def scaled(rows: Indices, columns: Any = slice(None)) -> Floats:
        cells = np.nan_to_num((X[rows] - mean) / spread)[:, columns]
        return np.asarray(np.clip(cells, -3.0, 3.0))

    return scaled


def _names(table: Any, name: str) -> Indices | None:
    """Number of each row's value in its order, if they can be names: text or whole numbers.

    Rows with an empty cell have a value of their own each.
    """
    values = table.column(name)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        cells = values.drop_null().to_numpy()
        if not (np.isfinite(cells) & (cells == np.floor(cells))).all():
            return None
    elif not (is_text(values.type) or pa.types.is_integer(values.type)):
        return None
    coded = values.combine_chunks().dictionary_encode()
    n_values = len(coded.dictionary)
    filled = filled_cells(table, [name])
    fewest, most_rows = TOGETHER.values.value
    if not filled.sum() / most_rows <= n_values < 0.95 * filled.sum() or n_values < fewest:
        return None
    order = np.empty(n_values, dtype=np.intp)
    order[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(n_values)
    places = coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
    return np.where(filled, order[places], n_values + np.arange(len(places)))


def _triples(values: Indices) -> tuple[Indices, Indices, Indices]:
    """Rows (a, b, c): a and b of one value, c of the next; each row may be a once."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(values))
    order = order[np.argsort(values[order], kind="stable")]
    starts = np.flatnonzero(np.diff(values[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    value = np.repeat(np.arange(len(sizes)), sizes)  # of each row in this order
    usable = np.flatnonzero((sizes[value] > 1) & (value < len(sizes) - 1))
    a = rng.permutation(usable)[:_TRIPLES]
    own, next_ = value[a], value[a] + 1
    shift = 1 + rng.integers(0, np.maximum(sizes[own] - 1, 1))
    b = starts[own] + (a - starts[own] + shift) % sizes[own]
    c = starts[next_] + rng.integers(0, sizes[next_])
    return order[a], order[b], order[c]


def _alike(values: Indices, codes: Any, scaled: Callable[..., Floats]) -> float:
    """Errors by which rows of one value are nearer than rows of two, in all columns or in one."""
    a, b, c = _triples(values)
    own = scaled(a)
    if len(a) < TOGETHER.values.value[0] or not own.shape[1]:
        return 0.0
    same, next_ = (own - scaled(b)) ** 2, (own - scaled(c)) ** 2
    # a column of its own as well: a name may tell a few columns only
    gaps = np.column_stack([(next_ - same).mean(axis=1), next_ - same])
    usual, spread = next_.mean(axis=0), 2.0 * own.var(axis=0)
    usual, spread = np.append(usual.mean(), usual), np.append(spread.mean(), spread)
    explained, unsure = _by_class(values, codes, scaled)
    gap = gaps.mean(axis=0) - explained
    error = np.hypot(gaps.std(axis=0) / np.sqrt(len(a) / 3.0), unsure)  # a row in three triples
    with np.errstate(all="ignore"):
        strength = np.nan_to_num(gap / error)
    # rows of neighbouring values are strangers, in this column of X, or it measures what X does
    strange = usual > 0.5 * spread
    matters = strange & (gap > TOGETHER.nearer.value * usual)
    return float(np.max(strength, where=matters & (strength > TOGETHER.errors.value), initial=0.0))


def _by_class(values: Indices, codes: Any, scaled: Callable[..., Floats]) -> tuple[Floats, Floats]:
    """How much nearer rows of one value are by their class, at most, and its standard error.

    2 t (1 - t) d^2 <= d^2 / 2 where class means are d apart, times the correlation of the classes
    of a value's rows; the mean over columns first. Labels of one class alone say nothing of that
    correlation, and their distance from U is taken for d.
    """
    labeled = np.flatnonzero(codes >= 0)
    parts, together = [np.flatnonzero(codes == code) for code in (1, 0, -1)], 1.0
    if len(parts[0]) and len(parts[1]):
        a, b, c = (codes[labeled[rows]] for rows in _triples(values[labeled]))
        usual = (a == c).mean() if len(a) else 0.0
        together = (
            float(np.clip(((a == b).mean() - usual) / (1.0 - usual), 0, 1)) if usual < 1 else 1.0
        )
    first, second = [part[:_TRIPLES] for part in parts if len(part)][:2]
    means, variances = [], []
    for part in (first, second):
        cells = scaled(part)
        means.append(cells.mean(axis=0))
        variances.append(cells.var(axis=0) / len(np.unique(values[part])))
    distance = means[0] - means[1]
    error = together * np.abs(distance) * np.sqrt(variances[0] + variances[1])
    explained = 0.5 * together * distance**2
    whole = np.sqrt((error**2).sum()) / len(error)
    return np.append(explained.mean(), explained), np.append(whole, error)


def _one_class(values: Indices, codes: Any) -> float:
    """Minus the log of the chance that labels agree within values, as those of neighbours do."""
    a, b, c = _triples(values)
    agree, usual = codes[a] == codes[b], codes[a] == codes[c]
    if not len(a) or not agree.all() or len(np.unique(codes)) < 2:
        return 0.0
    n = len(np.unique(values[a]))
    chance = ((usual.sum() + 1.0) / (len(usual) + 2.0)) ** n
    return float(-np.log(chance)) if chance < TOGETHER.chance.value else 0.0


def _near_rows(scaled: Callable[..., Floats], roles: Roles) -> Suspect | None:
    """Labelled rows whose nearest row is labelled and far nearer than the rows around lead to."""
    rng = np.random.default_rng(0)
    parts = ((np.flatnonzero(roles.codes >= 0), _MOST_LABELED), (roles.unlabeled, _MOST_OTHERS))
    rows = np.concatenate([rng.permutation(part)[:most] for part, most in parts])
    points = scaled(rows)
    single = np.sort(np.unique(row_groups(points), return_index=True)[1])  # one of each copy
    rows, points = rows[single], points[single]
    known = np.flatnonzero(roles.codes[rows] >= 0)
    share, nearer = TOGETHER.near.value
    if len(rows) < 100 or points.shape[1] < 2:
        return None
    distance, near = NearestNeighbors(n_neighbors=61).fit(points).kneighbors(points[known])
    d1, d20, d60 = distance[:, 1], distance[:, 20], distance[:, 60]
    with np.errstate(all="ignore"):
        # distances grow as rank^(1/dimension); below 2 dimensions nearest rows are near by nature
        steepness = np.clip(np.log(d60 / d20) / np.log(3.0), 0.0, 0.5)
        close = d1 < nearer * d20 * 20.0 ** -np.nan_to_num(steepness, nan=0.5)
    mate = near[:, 1]
    close &= roles.codes[rows[mate]] >= 0
    if close.sum() < max(4, share * len(known)):
        return None
    ends = (rows[known[close]], rows[mate[close]])
    n = len(roles)
    graph = sparse.coo_matrix((np.ones(len(ends[0])), ends), (n, n))
    groups = csgraph.connected_components(graph, directed=False)[1]
    return Suspect(None, int(close.sum()), np.asarray(groups, dtype=np.intp))
