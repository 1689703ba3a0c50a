"""A fitted encoding as plain values: columns, fills, means, scales, category lists. Nothing else.

Two views of one definition:

- "kernels": numbers a distance can be taken of (filled, standardised, one-hot);
- "trees": numbers as they are, NaN where a cell is missing, one code column for long category
  lists.

Scoring needs no more than this, so a model file holds these values and no objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc.exceptions import InputError
from pnuauc.io._columns import DATE_PARTS, Column, level_codes, numbers, strings

__all__ = ["HASHED", "VIEWS", "Encoding", "SparseEncoding", "check_view", "encoding_from_spec"]

VIEWS = ("kernels", "trees")
#: Columns that a text column is hashed into.
HASHED = 32
#: Trees get a 0/1 column per category up to here, one column of codes beyond: a tree needs one
#: cut to set a category apart by its 0/1 column, but many such columns drown the others when
#: each split looks at a few columns drawn at random.
_FEW_LEVELS = 10
#: No table or sparse matrix has more encoded columns than this; a crafted file might claim to.
_MAX_WIDTH = 1_000_000
_MAX_SPARSE = 2**24

Floats = NDArray[np.float64]
#: One stretch of encoded columns: the table column it comes from and the names in the view.
_Stretch = tuple[str, list[str]]


def check_view(view: str) -> str:
    if view not in VIEWS:
        raise InputError(f"view must be one of {', '.join(map(repr, VIEWS))}, got {view!r}.")
    return view


def _of_kind(*kinds: str) -> cached_property[list[Column]]:
    return cached_property(lambda encoding: [c for c in encoding.columns if c.kind in kinds])


@dataclass(frozen=True, eq=False)
class Encoding:
    """What :class:`TableEncoder` learned of a table with named columns.

    A *slot* is one number per row: a number column has one, a date column four. Slots come in the
    order of the columns.

    Attributes
    ----------
    columns : tuple of Column
    fill, mean, scale : ndarray, shape (slots,)
        The value of a missing cell, then (value - mean) / scale.
    boolean_fill : ndarray, shape (boolean columns,)
    flagged : ndarray of int
        Which of the number and date columns, then the boolean ones, get a 0/1 column that says
        that the cell is missing; ascending.
    levels, rare : tuples of tuples of str
        By category column: the categories with a column of their own, and those that share one.
    ranks : tuple of ndarrays of int
        By category column: each level's place by frequency, the commonest 0.
    """

    columns: tuple[Column, ...]
    fill: Floats
    mean: Floats
    scale: Floats
    boolean_fill: Floats
    flagged: NDArray[np.intp]
    levels: tuple[tuple[str, ...], ...] = ()
    rare: tuple[tuple[str, ...], ...] = ()
    ranks: tuple[NDArray[np.intp], ...] = ()

    is_sparse = False

    _numeric = _of_kind("number", "date")
    _booleans = _of_kind("boolean")
    _categories = _of_kind("category")
    _texts = _of_kind("text")

    @cached_property
    def _first_slots(self) -> NDArray[np.intp]:
        """Of each number or date column the first slot: a date's parts are missing together."""
        steps = [len(DATE_PARTS) if c.kind == "date" else 1 for c in self._numeric]
        return np.cumsum([0, *steps])[:-1].astype(np.intp)

    @property
    def n_features_in(self) -> int:
        return len(self.columns)

    # ------------------------------------------------------------------ names

    def _stretches(self, view: str) -> list[_Stretch]:
        out: list[_Stretch] = []
        for column in self._numeric:
            dated = [f"{column.name} {part}" for part in DATE_PARTS]
            out.append((column.name, dated if column.kind == "date" else [column.name]))
        out += [(c.name, [c.name]) for c in self._booleans]
        if view == "kernels":
            sources = [*self._numeric, *self._booleans]
            out += [(sources[j].name, [f"{sources[j].name} is missing"]) for j in self.flagged]
        for column, levels, rare in zip(self._categories, self.levels, self.rare, strict=True):
            if view == "trees" and len(levels) > _FEW_LEVELS:
                out.append((column.name, [f"{column.name} code"]))
            else:
                shown = [*levels, "(rare)"] if rare else levels
                out.append((column.name, [f"{column.name}={level}" for level in shown]))
        for column in self._texts:
            out.append((column.name, [f"{column.name} hash {k}" for k in range(HASHED)]))
        return out

    def names(self, view: str = "kernels") -> list[str]:
        """Names of the encoded columns, in order."""
        return [name for _, names in self._stretches(check_view(view)) for name in names]

    def groups(self, view: str = "kernels") -> dict[str, list[int]]:
        """Which encoded columns each table column feeds."""
        out: dict[str, list[int]] = {}
        start = 0
        for source, names in self._stretches(check_view(view)):
            out.setdefault(source, []).extend(range(start, start + len(names)))
            start += len(names)
        return out

    @cached_property
    def _widths(self) -> dict[str, int]:
        return {view: sum(len(n) for _, n in self._stretches(view)) for view in VIEWS}

    def width(self, view: str = "kernels") -> int:
        return self._widths[check_view(view)]

    @property
    def same_for_trees(self) -> bool:
        """Whether the views differ by shifts and scales of the columns only."""
        return not len(self.flagged) and all(len(names) <= _FEW_LEVELS for names in self.levels)

    # ------------------------------------------------------------------ rows

    def encode(self, batch: Any, first_row: int = 0, view: str = "kernels") -> Floats:
        """Encode a record batch or table that has the columns; ``first_row`` is for messages."""
        find = _finder(batch)
        n, slots = batch.num_rows, len(self.fill)
        out = np.empty((n, self.width(view)))
        raw = out[:, :slots]
        for column, j in zip(self._numeric, self._first_slots, strict=True):
            cells = np.atleast_2d(numbers(column, find(column.name), first_row).T)
            raw[:, j : j + len(cells)] = cells.T
        end = slots + len(self._booleans)
        flags = out[:, slots:end]
        for j, column in enumerate(self._booleans):
            flags[:, j] = numbers(column, find(column.name), first_row)
        if view == "kernels":
            for j in self.flagged:
                k = j - len(self._numeric)
                out[:, end] = np.isnan(raw[:, self._first_slots[j]] if k < 0 else flags[:, k])
                end += 1
            _fill(raw, self.fill)
            _fill(flags, self.boolean_fill)
            raw -= self.mean
            raw /= self.scale
        for k, column in enumerate(self._categories):
            end = self._write_category(out, end, k, find(column.name), view)
        for column in self._texts:
            hashed = text_hasher().transform(strings(find(column.name)))
            out[:, end : end + HASHED] = hashed.toarray()
            end += HASHED
        return out

    def _write_category(self, out: Floats, start: int, k: int, values: Any, view: str) -> int:
        levels, rare = self.levels[k], self.rare[k]
        codes = level_codes(values, levels)  # -1: rare or never seen
        if view == "trees" and len(levels) > _FEW_LEVELS:
            order = np.append(self.ranks[k], len(levels))
            out[:, start] = order[codes]
            return start + 1
        width = len(levels) + bool(rare)
        block = out[:, start : start + width]
        block[:] = 0.0
        if rare:
            codes = np.where(codes < 0, len(levels), codes)
        known = np.flatnonzero(codes >= 0)
        block[known, codes[known]] = 1.0
        return start + width

    def new_categories(self, batch: Any) -> dict[str, set[str]]:
        """Categories of a batch that were not there when the encoding was fitted."""
        found = {}
        find = _finder(batch)
        for column, levels, rare in zip(self._categories, self.levels, self.rare, strict=True):
            fresh = set(strings(find(column.name).unique())) - set(levels) - set(rare)
            if fresh:
                found[column.name] = fresh
        return found

    # ------------------------------------------------------------------ in and out of a file

    def spec(self) -> dict[str, Any]:
        """What is not a number, as JSON values; the numbers are in :meth:`arrays`."""
        return {
            "kind": "table",
            "columns": [column.to_dict() for column in self.columns],
            "levels": [list(levels) for levels in self.levels],
            "rare": [list(levels) for levels in self.rare],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers by name: float64 or int64 vectors."""
        ranks = np.concatenate([np.empty(0, dtype=np.int64), *self.ranks]).astype(np.int64)
        return {
            "fill": self.fill,
            "mean": self.mean,
            "scale": self.scale,
            "boolean_fill": self.boolean_fill,
            "flagged": self.flagged.astype(np.int64),
            "ranks": ranks,
        }


@dataclass(frozen=True, eq=False)
class SparseEncoding:
    """What :class:`TableEncoder` learned of a CSR matrix: each column's largest absolute value."""

    scale: Floats

    is_sparse = True
    columns: tuple[Column, ...] = ()

    @property
    def n_features_in(self) -> int:
        return len(self.scale)

    def names(self, view: str = "kernels") -> list[str]:
        check_view(view)
        return [f"feature {j + 1}" for j in range(len(self.scale))]

    def groups(self, view: str = "kernels") -> dict[str, list[int]]:
        return {name: [j] for j, name in enumerate(self.names(view))}

    def width(self, view: str = "kernels") -> int:
        check_view(view)
        return len(self.scale)

    def encode(self, X: Any, first_row: int = 0, view: str = "kernels") -> Any:
        """Columns divided by their largest absolute value; trees take them as they are."""
        if X.shape[1] != len(self.scale):
            raise InputError(f"The model needs {len(self.scale)} features, got {X.shape[1]}.")
        if check_view(view) == "trees":
            return X
        out = sparse.csr_matrix(X, dtype=np.float64, copy=True)
        out.data *= (1.0 / self.scale)[out.indices]
        return out

    def new_categories(self, batch: Any) -> dict[str, set[str]]:
        return {}

    def spec(self) -> dict[str, Any]:
        return {"kind": "sparse"}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"scale": self.scale}


def encoding_from_spec(
    spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Encoding | SparseEncoding:
    """Put an encoding together from :meth:`spec` and :meth:`arrays`, from any source.

    Everything that sizes or indexes anything is checked; a ``ValueError`` says what is wrong.
    """
    kind = spec.get("kind")
    if kind == "sparse":
        scale = _vector(arrays, "scale", None)
        if not len(scale) or len(scale) > _MAX_SPARSE or not (scale > 0).all():
            raise ValueError("the scales of a sparse encoding must be positive")
        return SparseEncoding(scale)
    if kind != "table":
        raise ValueError(f"there is no encoding of kind {str(kind)[:40]!r}")
    columns = tuple(Column.from_dict(item) for item in _items(spec, "columns"))
    if not columns or len({c.name for c in columns}) < len(columns):
        raise ValueError("an encoding needs columns, each name once")
    kinds = [c.kind for c in columns]
    slots = sum({"number": 1, "date": len(DATE_PARTS)}.get(kind, 0) for kind in kinds)
    n_sources = kinds.count("number") + kinds.count("date") + kinds.count("boolean")
    levels, rare = (_level_lists(spec, key, kinds.count("category")) for key in ("levels", "rare"))
    for kept, others in zip(levels, rare, strict=True):
        if len({*kept, *others}) < len(kept) + len(others) or not (kept or others):
            raise ValueError("the categories of a column must differ")
    scale = _vector(arrays, "scale", slots)
    if not (scale > 0).all():
        raise ValueError("scales must be positive")
    encoding = Encoding(
        columns,
        _vector(arrays, "fill", slots),
        _vector(arrays, "mean", slots),
        scale,
        _vector(arrays, "boolean_fill", kinds.count("boolean")),
        _flagged(arrays, n_sources),
        levels,
        rare,
        _ranks(arrays, levels),
    )
    n_hashed = HASHED * kinds.count("text")
    if slots + 2 * n_sources + n_hashed + sum(len(kept) + 1 for kept in levels) > _MAX_WIDTH:
        raise ValueError("the encoding is too wide")
    return encoding


def _vector(arrays: Mapping[str, Any], name: str, length: int | None) -> Floats:
    values = arrays.get(name)
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != np.float64:
        raise ValueError(f"{name} must be a vector of float64")
    if length is not None and len(values) != length:
        raise ValueError(f"{name} has {len(values)} values, the columns need {length}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite")
    return values


def _integers(arrays: Mapping[str, Any], name: str) -> NDArray[np.intp]:
    values = arrays.get(name)
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != np.int64:
        raise ValueError(f"{name} must be a vector of int64")
    return values.astype(np.intp)


def _flagged(arrays: Mapping[str, Any], n_sources: int) -> NDArray[np.intp]:
    values = _integers(arrays, "flagged")
    inside = (values >= 0).all() and (values < n_sources).all()
    if not inside or (np.diff(values) <= 0).any():
        raise ValueError("flagged must be ascending places of number, date and boolean columns")
    return values


def _ranks(
    arrays: Mapping[str, Any], levels: Sequence[Sequence[str]]
) -> tuple[NDArray[np.intp], ...]:
    values = _integers(arrays, "ranks")
    ends = np.cumsum([len(kept) for kept in levels], dtype=np.intp)
    if len(values) != (ends[-1] if len(ends) else 0):
        raise ValueError("ranks and categories do not fit together")
    parts = tuple(np.split(values, ends[:-1])) if len(ends) else ()
    if any(not np.array_equal(np.sort(part), np.arange(len(part))) for part in parts):
        raise ValueError("ranks must number the categories of a column")
    return parts


def _items(spec: Mapping[str, Any], key: str) -> list[Any]:
    items = spec.get(key)
    if not isinstance(items, list):
        raise ValueError(f"{key} must be a list")
    return items


def _level_lists(spec: Mapping[str, Any], key: str, n: int) -> tuple[tuple[str, ...], ...]:
    lists = _items(spec, key)
    if len(lists) != n:
        raise ValueError(f"{key} and category columns do not fit together")
    for levels in lists:
        if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
            raise ValueError(f"{key} must be lists of texts")
    return tuple(tuple(levels) for levels in lists)


def _fill(block: Floats, fill: Floats) -> None:
    missing = np.isnan(block)
    if missing.any():  # most batches have none
        np.copyto(block, np.broadcast_to(fill, block.shape), where=missing)


def _finder(batch: Any) -> Callable[[str], Any]:
    """Columns by name, each looked up at once: asking arrow for names is linear in the columns."""
    places = {name: j for j, name in enumerate(batch.schema.names)}
    return lambda name: batch.column(places[name])


def text_hasher() -> Any:
    """Letter triples hashed into columns, of length 1: has no state, so none is stored."""
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=HASHED)
