"""Rows that belong together though nobody said so: columns that look like names of groups.

Rows of one customer are alike; rows of two customers are not, however near the customers' numbers
are. In a column that measures something, rows of neighbouring values are as alike as rows of one
value. So rows of one value are compared with rows of the next one, in all other columns. Without
any column, labelled rows that lie much nearer to another labelled row than the spacing of the rows
around them explains were labelled group by group.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from pnuauc.io.encode import TableEncoder
from pnuauc.labels import Roles
from pnuauc.model.model import kernels_of
from pnuauc.study.evidence import auc_finding
from pnuauc.study.findings import AUCFinding, Suspected
from pnuauc.study.rows import StudyRows, filled_cells

__all__ = ["Suspect", "find_groups", "suspect_groups"]

#: Values of a column that may name groups: at least so many, with few rows of each.
_FEWEST_VALUES, _MOST_ROWS = 20, 60
#: Pairs of rows that are compared, and how many errors apart the two kinds of pairs must be.
_PAIRS, _ERRORS = 4000, 4.5
#: Rows of one value are nearer than those of the next by this much, or it does not matter.
_NEARER = 0.95
#: Labelled rows that share a value with another, at least; and near ones as a share of all.
_FEWEST, _LEAST_SHARE = 4, 0.3
#: Chance that values repeat within one class only, were they no names.
_CHANCE = 1e-4
#: A near row is nearer than this share of what the 20th and 60th nearest rows lead to expect.
_NEAR, _MOST_LABELED, _MOST_OTHERS = 0.4, 400, 4000
#: Rows from which means and spreads of columns are taken.
_MOST_ROWS_SCALED = 20_000


@dataclass(frozen=True, eq=False)
class Suspect:
    """Rows that may belong together: the column that says so, or None; n labelled rows share."""

    column: str | None
    n: int
    groups: Indices


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
    scaled = _Scaled.of(X)
    found = []
    for table in (read, spare):
        for name in table.column_names:
            values = _names(table, name)
            if values is None:
                continue
            others = np.setdiff1d(np.arange(X.shape[1]), own.get(name, []))
            strength, n = _strength(values, scaled.of_columns(others), roles, table is read)
            if strength > 0:
                found.append((strength, Suspect(name, n, values)))
    if found:
        return max(found, key=lambda item: item[0])[1]
    return _near_rows(scaled, roles)


def suspect_groups(
    rows: StudyRows,
    X: Any,
    encoder: TableEncoder,
    ranker: Any,
    stated: AUCFinding | None,
    level: float,
) -> Suspected | None:
    """What may belong together, and the AUC if it does beside the one that is stated."""
    kernels, own = kernels_of(X, encoder), encoder.groups("kernels")
    suspect = find_groups(rows.table, rows.spare, kernels, rows.roles, own)
    if suspect is None:
        return None
    name, n, auc = suspect.column, suspect.n, None
    if name is None:
        said = (
            f"Some rows seem to belong together: {n:,} labelled rows lie far nearer to another "
            "one than rows lie elsewhere."
        )
    else:
        said = (
            f"Column '{name}' seems to name groups: rows of one value are alike, and {n:,} "
            "labelled rows share theirs."
        )
    if isinstance(ranker, AutoAUCClassifier) and stated is not None:
        again = clone(ranker).set_params(rivals=False)
        try:
            posterior = again.fit(X, rows.roles, groups=suspect.groups).posterior_
        except ValueError:  # the rows of a class are one group
            said += " No AUC can be estimated with them kept together."
        else:
            auc = auc_finding(posterior, level)
            said += (
                f" AUC {stated.value:.3f} as stated, {auc.value:.3f} ({auc.low:.3f} to "
                f"{auc.high:.3f}) with them kept together: believe the second for rows of groups "
                "that were never labelled."
            )
    column = "the column that says so" if name is None else f"'{name}'"
    said += f" Give {column} as the group, or 'none' if there are no groups."
    return Suspected(name, n, auc, said)


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Rows of X with mean 0 and standard deviation 1, far cells at 3; empty cells in the middle."""

    X: Any
    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, X: Any) -> _Scaled:
        some = np.asarray(X[:: -(-len(X) // _MOST_ROWS_SCALED)], dtype=np.float64)
        with np.errstate(all="ignore"):
            mean, spread = np.nanmean(some, axis=0), np.nanstd(some, axis=0)
        return cls(X, np.nan_to_num(mean), np.where(spread > 0, spread, 1.0))

    def of_columns(self, columns: Indices) -> _Scaled:
        return _Scaled(self.X[:, columns], self.mean[columns], self.spread[columns])

    def __getitem__(self, rows: Indices) -> Floats:
        moved = (self.X[rows] - self.mean) / self.spread
        return np.asarray(np.clip(np.nan_to_num(moved), -3.0, 3.0))


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
    if not _FEWEST_VALUES <= n_values < 0.95 * filled.sum():
        return None
    if filled.sum() > _MOST_ROWS * n_values:
        return None
    order = np.empty(n_values, dtype=np.intp)
    order[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(n_values)
    places = coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
    return np.where(filled, order[places], n_values + np.arange(len(places)))


def _strength(values: Indices, X: _Scaled, roles: Roles, is_read: bool) -> tuple[float, int]:
    """How surely rows of one value belong together, 0 for not, and the labelled rows that do."""
    labeled = np.flatnonzero(roles.codes >= 0)
    _, number, sizes = np.unique(values[labeled], return_inverse=True, return_counts=True)
    n = int((sizes[number] > 1).sum())
    if n < _FEWEST:
        return 0.0, n
    alike = _alike(values, X)
    return max(alike, _one_class(values[labeled], roles.codes[labeled]) if is_read else 0.0), n


def _triples(values: Indices) -> tuple[Indices, Indices, Indices]:
    """Rows (a, b, c): a and b of one value, c of the next, each value in turn."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(values))
    order = order[np.argsort(values[order], kind="stable")]
    starts = np.flatnonzero(np.diff(values[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    usable = np.flatnonzero(sizes[:-1] > 1)
    if not len(usable):
        return (np.empty(0, dtype=np.intp),) * 3
    chosen = np.resize(rng.permutation(usable), min(_PAIRS, 3 * len(usable)))
    a = rng.integers(0, sizes[chosen])
    b = (a + 1 + rng.integers(0, sizes[chosen] - 1)) % sizes[chosen]
    c = rng.integers(0, sizes[chosen + 1])
    return (order[starts[chosen] + a], order[starts[chosen] + b], order[starts[chosen + 1] + c])


def _alike(values: Indices, X: _Scaled) -> float:
    """Errors by which rows of one value are nearer than rows of two, in all columns or in one."""
    a, b, c = _triples(values)
    if len(a) < _FEWEST_VALUES or not len(X.mean):
        return 0.0
    own = X[a]
    same, next_ = (own - X[b]) ** 2, (own - X[c]) ** 2
    # a column of its own as well: a name may tell a few columns only
    gaps = np.column_stack([(next_ - same).mean(axis=1), next_ - same])
    usual = np.append(next_.mean(), next_.mean(axis=0))
    error = gaps.std(axis=0) / np.sqrt(len(a) / 3.0)  # each row may stand in three triples
    with np.errstate(all="ignore"):
        strength = np.nan_to_num(gaps.mean(axis=0) / error)
    # rows of neighbouring values are strangers, in this column of X, or it measures what X does
    spread = 2.0 * own.var(axis=0)
    strange = usual > 0.5 * np.append(spread.mean(), spread)
    matters = strange & (gaps.mean(axis=0) > (1.0 - _NEARER) * usual)
    return float(np.max(strength, where=matters & (strength > _ERRORS), initial=0.0))


def _one_class(values: Indices, codes: Any) -> float:
    """Minus the log of the chance that labels agree within values, as those of neighbours do."""
    if len(np.unique(codes)) < 2:
        return 0.0
    a, b, c = _triples(values)
    agree, usual = codes[a] == codes[b], codes[a] == codes[c]
    if not len(a) or not agree.all():
        return 0.0
    n = len(np.unique(values[a]))
    chance = ((usual.sum() + 1.0) / (len(usual) + 2.0)) ** n
    return float(-np.log(chance)) if chance < _CHANCE else 0.0


def _near_rows(X: _Scaled, roles: Roles) -> Suspect | None:
    """Labelled rows whose nearest row is labelled and far nearer than the rows around lead to."""
    rng = np.random.default_rng(0)
    labeled = np.flatnonzero(roles.codes >= 0)
    if len(labeled) > _MOST_LABELED:
        labeled = rng.choice(labeled, _MOST_LABELED, replace=False)
    others = roles.unlabeled
    if len(others) > _MOST_OTHERS:
        others = rng.choice(others, _MOST_OTHERS, replace=False)
    rows = np.concatenate([labeled, others])
    rows = rows[np.sort(np.unique(row_groups(X[rows]), return_index=True)[1])]  # one of each copy
    known = np.flatnonzero(roles.codes[rows] >= 0)
    if len(known) < _FEWEST or len(rows) < 100 or len(X.mean) < 2:
        return None
    points = X[rows]
    distance, near = NearestNeighbors(n_neighbors=61).fit(points).kneighbors(points[known])
    d1, d20, d60 = distance[:, 1], distance[:, 20], distance[:, 60]
    with np.errstate(all="ignore"):
        # distances grow as rank^(1/dimension); below 2 dimensions nearest rows are near by nature
        steepness = np.clip(np.log(d60 / d20) / np.log(3.0), 0.0, 0.5)
        close = d1 < _NEAR * d20 * 20.0 ** -np.nan_to_num(steepness, nan=0.5)
    mate = near[:, 1]
    close &= roles.codes[rows[mate]] >= 0
    if close.sum() < max(_FEWEST, _LEAST_SHARE * len(known)):
        return None
    ends = (rows[known[close]], rows[mate[close]])
    n = len(roles)
    graph = sparse.coo_matrix((np.ones(len(ends[0])), ends), (n, n))
    groups = csgraph.connected_components(graph, directed=False)[1]
    return Suspect(None, int(close.sum()), np.asarray(groups, dtype=np.intp))
