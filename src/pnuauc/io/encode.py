"""A table of mixed columns -> a matrix of numbers; what was learned is plain values."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pnuauc._utils.arrays import Floats
from pnuauc._utils.label_values import did_you_mean
from pnuauc._utils.show import few
from pnuauc._utils.stored import Parts, Stored, arrays_of, refuse
from pnuauc.exceptions import InputError
from pnuauc.io.cells import (
    DATE_ORDERS,
    is_form,
    is_number,
    is_text,
    is_vector,
    pa,
    pc,
    table_decimal,
    tidy,
    to_numpy,
)
from pnuauc.io.columns import (
    DATE_PARTS,
    ID,
    MISSING,
    Column,
    classify,
    numbers,
    strings,
    texts,
)
from pnuauc.io.frames import as_table
from pnuauc.io.text import Block, TextBlock, VectorBlock, block_from_parts

VIEWS = ("kernels", "trees")
#: Trees get a 0/1 column per category up to here, one column of codes beyond: a tree needs one
#: cut to set a category apart by its 0/1 column, but many such columns drown the others when
#: each split looks at a few columns drawn at random.
_FEW_LEVELS = 10
#: No table or sparse matrix has more columns, encoded columns or categories of a column than this;
#: a crafted file might claim to.
_MAX_COLUMNS, _MAX_WIDTH, _MAX_LEVELS = 50_000, 1_000_000, 10_000
_MAX_SPARSE = 2**24
#: Rows whose medians, means and categories are looked up; more would not move them.
FIT_ROWS = 200_000
#: Rows encoded at a time.
_BLOCK_ROWS = 65_536
#: Above this many bytes the encoded matrix is kept in float32.
_DOUBLE_BYTES = 2**30


def _check_view(view: str) -> str:
    if view not in VIEWS:
        raise InputError(f"view must be one of {', '.join(map(repr, VIEWS))}, got {view!r}.")
    return view


def _of_kind(*kinds: str) -> cached_property[list[Column]]:
    return cached_property(lambda encoding: [c for c in encoding.columns if c.kind in kinds])


@dataclass(frozen=True, eq=False)
class Cells:
    """What the cells of a batch say, each parsed once; the views are made of it.

    Attributes
    ----------
    batch : the record batch or table
    values : ndarray, shape (n, slots + boolean columns)
        Numbers and the parts of dates, then yes and no; NaN where missing.
    codes : list of int arrays, shape (n,)
        By category column: the place among its levels, then its rare ones; -1: never seen.
    gaps : list of int, by category column: missing cells
    fresh : dict of column name -> categories never seen
    odd : dict of column name -> texts that are not written as the column's form says
    """

    batch: Any
    values: Floats
    codes: list[NDArray[np.intp]]
    gaps: list[int]
    fresh: dict[str, set[str]]
    odd: dict[str, list[str]]


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
    blocks : tuple of Block
        Text and vectors: the last columns of the view "kernels".
    low, high : ndarray, shape (slots,)
        The range of all present values but 1% at each end, to know tables that look different.
    missing : ndarray, shape (columns,)
        Share of missing cells.
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
    blocks: tuple[Block, ...] = ()
    low: Floats = field(default_factory=partial(np.empty, 0))
    high: Floats = field(default_factory=partial(np.empty, 0))
    missing: Floats = field(default_factory=partial(np.empty, 0))

    is_sparse = False

    _numeric = _of_kind("number", "date")
    _booleans = _of_kind("boolean")
    _categories = _of_kind("category")

    @property
    def n_features_in(self) -> int:
        return len(self.columns)

    @cached_property
    def places(self) -> list[int]:
        """By column where :class:`Cells` has it: its first slot, or its place among categories.

        Booleans come after the slots; text and vectors are not there (-1).
        """
        free = {"slot": 0, "boolean": len(self.fill), "category": 0}
        out = []
        for column in self.columns:
            kind = "slot" if column.kind in {"number", "date"} else column.kind
            out.append(free.get(kind, -1))
            if kind in free:
                free[kind] += len(DATE_PARTS) if column.kind == "date" else 1
        return out

    @cached_property
    def _sources(self) -> list[tuple[Column, int]]:
        """Number and date columns, then boolean ones, and the first of their values."""
        at = {column.name: place for column, place in zip(self.columns, self.places, strict=True)}
        return [(column, at[column.name]) for column in [*self._numeric, *self._booleans]]

    # ------------------------------------------------------------------ names

    def _stretches(self, view: str) -> list[tuple[str, list[str]]]:
        """Of each stretch of encoded columns the table column it comes from, and the names."""
        out: list[tuple[str, list[str]]] = []
        for column, _ in self._sources:
            dated = [f"{column.name} {part}" for part in DATE_PARTS]
            out.append((column.name, dated if column.kind == "date" else [column.name]))
        if view == "kernels":
            flagged = [self._sources[j][0].name for j in self.flagged]
            out += [(name, [f"{name} is missing"]) for name in flagged]
        for column, levels, rare in zip(self._categories, self.levels, self.rare, strict=True):
            if view == "trees" and len(levels) > _FEW_LEVELS:
                out.append((column.name, [f"{column.name} code"]))
            else:
                shown = [*levels, "(rare)"] if rare else levels
                out.append((column.name, [f"{column.name}={level}" for level in shown]))
        if view == "kernels":
            for block in self.blocks:
                names = [f"{block.name} component {k + 1}" for k in range(block.width)]
                out.append((block.name, names))
        return out

    def names(self, view: str = "kernels") -> list[str]:
        """Names of the encoded columns, in order."""
        return [name for _, names in self._stretches(_check_view(view)) for name in names]

    def groups(self, *views: str) -> dict[str, list[int]]:
        """Which columns of these views, side by side, each table column feeds."""
        out: dict[str, list[int]] = {}
        start = 0
        for source, names in (found for view in views for found in self._stretches(view)):
            out.setdefault(source, []).extend(range(start, start + len(names)))
            start += len(names)
        return out

    @cached_property
    def _widths(self) -> dict[str, int]:
        return {view: sum(len(n) for _, n in self._stretches(view)) for view in VIEWS}

    def width(self, view: str = "kernels") -> int:
        return self._widths[_check_view(view)]

    @property
    def n_latent(self) -> int:
        """How many of the last columns of "kernels" are components of text and vectors."""
        return sum(block.width for block in self.blocks)

    @property
    def same_for_trees(self) -> bool:
        """Whether the views differ by shifts, scales and latent components only."""
        return not len(self.flagged) and all(len(names) <= _FEW_LEVELS for names in self.levels)

    # ------------------------------------------------------------------ rows

    def read(self, batch: Any, first_row: int = 0) -> Cells:
        """Parse a record batch or table that has the columns; ``first_row`` is for messages."""
        # asking arrow for a name is linear in the columns
        place = {name: j for j, name in enumerate(batch.schema.names)}
        n = batch.num_rows
        values = np.empty((n, len(self.fill) + len(self._booleans)))
        odd: dict[str, list[str]] = {}
        for column, j in self._sources:
            told = odd.setdefault(column.name, [])
            cells = numbers(column, batch.column(place[column.name]), first_row, told)
            values[:, j : j + (cells.shape[1] if cells.ndim == 2 else 1)] = cells.reshape(n, -1)
        codes, gaps, fresh = [], [], {}
        for column, levels, rare in zip(self._categories, self.levels, self.rare, strict=True):
            words = texts(batch.column(place[column.name]))
            found = pc.index_in(words, pa.array([*levels, *rare], words.type))
            if found.null_count:
                fresh[column.name] = set(words.filter(found.is_null()).unique().to_pylist())
            codes.append(to_numpy(pc.fill_null(found, -1)).astype(np.intp))
            gaps.append(pc.sum(pc.equal(words, MISSING)).as_py() or 0)
        return Cells(batch, values, codes, gaps, fresh, {k: v for k, v in odd.items() if v})

    def encode(self, cells: Cells, views: Sequence[str] = ("kernels",)) -> Floats:
        """Views of the cells side by side, shape (n, width)."""
        parts = [self._view(cells, _check_view(view)) for view in views]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _view(self, cells: Cells, view: str) -> Floats:
        n, end = cells.values.shape
        out = np.empty((n, self.width(view)))
        values = out[:, :end]
        values[:] = cells.values
        if view == "kernels":
            for j in self.flagged:
                out[:, end] = np.isnan(values[:, self._sources[j][1]])
                end += 1
            gaps = np.isnan(values)
            if gaps.any():  # most batches have none
                fill = np.concatenate([self.fill, self.boolean_fill])
                np.copyto(values, np.broadcast_to(fill, values.shape), where=gaps)
            slots = out[:, : len(self.fill)]
            with np.errstate(over="ignore"):  # a hostile scale: the score says that it is too large
                slots -= self.mean
                slots /= self.scale
        for k, codes in enumerate(cells.codes):
            end = self._write_category(out, end, k, codes, view)
        if view == "kernels":
            for block in self.blocks:
                out[:, end : end + block.width] = block.encode(cells.batch)
                end += block.width
        return out

    def _write_category(
        self, out: Floats, start: int, k: int, codes: NDArray[np.intp], view: str
    ) -> int:
        n_levels, rare = len(self.levels[k]), self.rare[k]
        codes = np.where((codes < 0) | (codes > n_levels), n_levels, codes)  # rare or never seen
        if view == "trees" and n_levels > _FEW_LEVELS:
            out[:, start] = np.append(self.ranks[k], n_levels)[codes]
            return start + 1
        width = n_levels + bool(rare)
        block = out[:, start : start + width]
        block[:] = 0.0
        known = np.flatnonzero(codes < width)
        block[known, codes[known]] = 1.0
        return start + width

    # ------------------------------------------------------------------ in and out of a file

    def spec(self) -> dict[str, Any]:
        """What is not a number, as JSON values; the numbers are in :meth:`arrays`."""
        return {
            "kind": "table",
            "columns": [column.to_dict() for column in self.columns],
            "levels": [list(levels) for levels in self.levels],
            "rare": [list(levels) for levels in self.rare],
            "n_blocks": len(self.blocks),
            **{f"block{i}": block.spec() for i, block in enumerate(self.blocks)},
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers by name: float64 or int64 vectors, and those of the blocks."""
        names = ("fill", "mean", "scale", "boolean_fill", "low", "high", "missing")
        return {
            **{name: getattr(self, name) for name in names},
            "flagged": self.flagged.astype(np.int64),
            "ranks": np.concatenate([np.empty(0), *self.ranks]).astype(np.int64),
            **arrays_of({f"block{i}": block for i, block in enumerate(self.blocks)}),
        }

    @classmethod
    def rebuild(cls, parts: Parts) -> Encoding:
        """From a model file: everything that sizes or indexes anything is checked."""
        columns = tuple(map(Column.from_dict, parts.items("columns", _MAX_COLUMNS)))
        if not columns or len({c.name for c in columns}) < len(columns):
            raise refuse("an encoder needs columns, each name once")
        n = Counter(column.kind for column in columns)
        slots = n["number"] + n["date"] * len(DATE_PARTS)
        n_sources = n["number"] + n["date"] + n["boolean"]
        levels, rare = (_read_levels(parts, key, n["category"]) for key in ("levels", "rare"))
        for own, others in zip(levels, rare, strict=True):
            if len({*own, *others}) < len(own) + len(others) or not (own or others):
                raise refuse("the categories of a column must differ")
        flagged = parts.indices("flagged", (None,), 0, n_sources)
        if (np.diff(flagged) <= 0).any():
            raise refuse("columns with missing cells must be named once each, in order")
        shapes = dict.fromkeys(("fill", "mean", "scale", "low", "high"), slots)
        shapes |= {"boolean_fill": n["boolean"], "missing": len(columns)}
        vectors = {
            name: parts.array(name, "float", (size,)).astype(np.float64)
            for name, size in shapes.items()
        }
        missing = vectors["missing"]
        if (vectors["scale"] <= 0).any() or (vectors["low"] > vectors["high"]).any():
            raise refuse("scales must be positive, and ranges not upside down")
        if ((missing < 0) | (missing > 1)).any():
            raise refuse("shares of missing cells are no shares")
        kinds = {column.name: column.kind for column in columns}
        encoding = cls(
            columns,
            flagged=flagged.astype(np.intp),
            levels=levels,
            rare=rare,
            ranks=_read_ranks(parts, levels),
            blocks=_read_blocks(parts, kinds),
            **vectors,
        )
        n_levels = sum(len(own) + 1 for own in levels)
        if slots + 2 * n_sources + encoding.n_latent + n_levels > _MAX_WIDTH:
            raise refuse("the encoding is too wide")
        return encoding


def _read_levels(parts: Parts, key: str, n: int) -> tuple[tuple[str, ...], ...]:
    lists = parts.items(key, n)
    if len(lists) != n or not all(isinstance(own, list) for own in lists):
        raise refuse(f"{key} and category columns do not fit together")
    if not all(isinstance(level, str) for own in lists for level in own):
        raise refuse(f"{key} must be lists of texts")
    if key == "levels" and any(len(own) > _MAX_LEVELS for own in lists):
        raise refuse(f"a column has more than {_MAX_LEVELS:,} categories")
    return tuple(map(tuple, lists))


def _read_ranks(parts: Parts, levels: Sequence[Sequence[str]]) -> tuple[NDArray[np.intp], ...]:
    ends = np.cumsum([0, *map(len, levels)])
    values = parts.indices("ranks", (int(ends[-1]),), 0, _MAX_LEVELS).astype(np.intp)
    found = tuple(np.split(values, ends[1:-1])) if levels else ()
    if any((np.sort(own) != np.arange(len(own))).any() for own in found):
        raise refuse("ranks must number the categories of a column")
    return found


def _read_blocks(parts: Parts, kinds: Mapping[str, str]) -> tuple[Block, ...]:
    """Every text and vector column in one block, and in no other."""
    n = parts.integer("n_blocks", 0, len(kinds))
    blocks = tuple(parts.part(f"block{i}", block_from_parts, kinds) for i in range(n))
    read = sorted(name for block in blocks for name in block.columns)
    if read != sorted(name for name, kind in kinds.items() if kind in {"text", "vector"}):
        raise refuse("the blocks do not read the text and vector columns")
    return blocks


@dataclass(frozen=True, eq=False)
class SparseEncoding(Stored):
    """What :class:`TableEncoder` learned of a CSR matrix: each column's largest absolute value."""

    scale: Floats

    kind = "sparse"
    is_sparse = True
    columns: tuple[Column, ...] = ()
    n_latent = 0
    same_for_trees = True

    @property
    def n_features_in(self) -> int:
        return len(self.scale)

    def names(self, view: str = "kernels") -> list[str]:
        return [f"feature {j + 1}" for j in range(len(self.scale))]

    def groups(self, *views: str) -> dict[str, list[int]]:
        return {name: [j] for j, name in enumerate(self.names())}

    def width(self, view: str = "kernels") -> int:
        return len(self.scale)

    def read(self, X: Any, first_row: int = 0) -> Any:
        if X.shape[1] != len(self.scale):
            raise InputError(f"The model needs {len(self.scale)} features, got {X.shape[1]}.")
        return X

    def encode(self, X: Any, views: Sequence[str] = ("kernels",)) -> Any:
        """Columns divided by their largest absolute value; trees take them as they are."""
        if _check_view(*views) == "trees":
            return X
        out = sparse.csr_matrix(X, dtype=np.float64, copy=True)
        out.data *= (1.0 / self.scale)[out.indices]
        return out

    @classmethod
    def rebuild(cls, parts: Parts) -> SparseEncoding:
        scale = parts.array("scale", "float", (None,), at_most=_MAX_SPARSE).astype(np.float64)
        if not len(scale) or (scale <= 0).any():
            raise refuse("the scales of a sparse encoding must be positive")
        return cls(scale)


def _gathered(notes: Mapping[str, str]) -> list[str]:
    """Notes by column; what is said of three columns or more is one sentence."""
    alike: dict[str, list[str]] = {}
    for name, note in notes.items():
        said = note.replace(f"'{name}'", "", 1).partition(", such as")[0]
        alike.setdefault(said, []).append(name)
    found = []
    for said, names in alike.items():
        if len(names) < 3 or not said.startswith("Column  is "):
            found += [notes[name] for name in names]
        else:
            rest = said.removeprefix("Column  is ").rstrip(".")
            found.append(f"{len(names)} columns ({few(names)}) are {rest}.")
    return found


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns -> numbers, the same at fit and at scoring, in two views.

    The view "kernels" is made for distances:

    - numbers: missing cells take the median, then mean 0 and variance 1; columns with missing
      cells get a 0/1 column that says so;
    - booleans: 0/1, a missing cell takes the commoner value (and its 0/1 column);
    - categories (up to 100 distinct strings): one 0/1 column each, missing is a category; the 30
      commonest are kept, those of fewer than max(2, n/1000) rows are one group, which new
      categories join at scoring (without such a group they are all zeros);
    - text (several words, mostly distinct): all text columns of a row are one document, its words
      and letters by TF-IDF through at most 100 latent components of all rows (of 15,000 drawn at
      random where there are more), of length 1;
    - vectors (lists of numbers, or ``embedding``): the same number of principal components;
    - dates: days since 1970, month, weekday, hour, then as numbers.

    The view "trees" is made for splits: numbers, dates and booleans as they are, NaN where a cell
    is missing; categories as above up to 10, beyond that one column of codes, the commonest 0; no
    text and no vectors.

    In both, constant and empty columns, copies of other columns, columns that name or number the
    rows are left out, and ``notes_`` says so. CSR matrices stay sparse: each column is divided by
    its largest absolute value (kernels) or left as it is (trees).
    Medians, means and categories come from at most 200,000 rows, drawn at random.

    Parameters
    ----------
    categorical : sequence of str
        Columns to treat as categories though they hold numbers.
    max_categories : int, default=30
    random_state : int
    decimal : "." or ",", optional
        The decimal mark of numbers that are text; None looks at the cells.
    date_format : str or dict of column name -> str, optional
        How dates that are text are written: "day-first", "month-first" or a format such as
        "%d/%m/%Y"; None looks at the cells, and asks if 01/02/2024 is all it sees.
    embedding : sequence of str
        Columns that are one vector together, by what their names begin with: "e" for e0, e1, ...

    Attributes
    ----------
    columns_ : list of Column
    notes_ : list of str
    ids_ : list of str
        Columns that name or number the rows; no features.
    encoding_ : Encoding or SparseEncoding
        What was learned, as plain values.
    groups_ : dict of column name -> indices of the encoded columns it feeds, view "kernels"
        :meth:`groups` gives those of any views, side by side.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, None, 3.0], "shop": ["a", "b", "a", "b"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'size is missing', 'shop=a', 'shop=b']
    >>> encoder.transform(frame, view="trees")[:, 0]
    array([ 1.,  2., nan,  3.])
    """

    categorical: Sequence[str] = ()
    max_categories: int = 30
    random_state: int = 0
    decimal: str | None = None
    date_format: str | Mapping[str, str] | None = None
    embedding: Sequence[str] = ()

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Look at every column; ``y`` is ignored."""
        table = as_table(X)
        self.notes_: list[str] = []
        self.ids_: list[str] = []
        if sparse.issparse(table):
            return self.learned(SparseEncoding(_largest(table)))
        columns = self._choose_columns(table)
        n = table.num_rows
        if n > FIT_ROWS:
            rng = np.random.default_rng(self.random_state)
            table = table.take(np.sort(rng.choice(n, FIT_ROWS, replace=False)))
        blocks = self._fit_blocks(table, columns)
        read = {name for block in blocks for name in block.columns}
        columns = [c for c in columns if c.name in read or c.kind not in {"text", "vector"}]
        if not columns:
            why = " ".join(self.notes_[:5]) or "the table has no feature columns."
            raise InputError(f"No column is left to learn from: {why}")
        return self.learned(replace(_learn(table, columns, self.max_categories), blocks=blocks))

    def _fit_blocks(self, table: Any, columns: list[Column]) -> tuple[Block, ...]:
        """One block for all text, one for each vector; uninformative ones are left out."""
        texts = [c.name for c in columns if c.kind == "text"]
        vectors = [c.name for c in columns if c.kind == "vector"]
        stems = [[name for name in vectors if _has_stem(name, stem)] for stem in self.embedding]
        alone = [[name] for name in vectors if not any(name in names for names in stems)]
        wanted: list[tuple[Any, list[str]]] = [(TextBlock, texts)] if texts else []
        wanted += [(VectorBlock, names) for names in [*stems, *alone] if names]
        found = [(maker.fit(names, table, self.random_state), names) for maker, names in wanted]
        for block, names in found:
            if block is None:
                told = "Column" if len(names) == 1 else "Columns"
                shown = ", ".join(f"'{name}'" for name in names[:5])
                why = "no words that some rows share" if names is texts else "all vectors are alike"
                self.notes_.append(f"{told} {shown}: {why}; left out.")
        return tuple(block for block, _ in found if block is not None)

    def learned(self, encoding: Encoding | SparseEncoding) -> TableEncoder:
        """Take over what was learned."""
        if not hasattr(self, "notes_"):
            self.notes_, self.ids_ = [], []
        self.encoding_ = encoding
        self.columns_: list[Column] = list(encoding.columns)
        self.n_features_in_ = encoding.n_features_in
        return self

    @property
    def is_sparse(self) -> bool:
        """Whether it was fitted on a sparse matrix."""
        return self.encoding_.is_sparse

    @property
    def groups_(self) -> dict[str, list[int]]:
        return self.groups()

    def groups(self, *views: str) -> dict[str, list[int]]:
        """Column name -> indices of the columns of these views, side by side, that it feeds."""
        check_is_fitted(self, "encoding_")
        return self.encoding_.groups(*(views or ("kernels",)))

    @property
    def views(self) -> tuple[str, ...]:
        """What a committee reads; trees have their own where it differs by more than scale."""
        return ("kernels",) if self.encoding_.same_for_trees else VIEWS

    def layout(self, views: Sequence[str]) -> dict[str, int]:
        """Which of the columns of these views, side by side, are of a kind of their own."""
        check_is_fitted(self, "encoding_")
        own = self.encoding_.width("trees") if "trees" in views else 0
        return {"n_tree_columns": own, "n_latent_columns": self.encoding_.n_latent}

    def _choose_columns(self, table: Any) -> list[Column]:
        names = table.column_names
        categorical = set(self.categorical)
        unknown = sorted(categorical - set(names))
        if unknown:
            near = did_you_mean(unknown[0], names)
            raise InputError(f"There is no column {unknown[0]!r}{near} to treat as categorical.")
        chosen: list[Column] = []
        notes: dict[str, str] = {}
        seen: dict[bytes, tuple[str, Any]] = {}
        decimal = self._decimal(table)
        formats = self._date_formats(names)
        embedded = self._embedded(table)
        for j, name in enumerate(names):
            values = table.column(j)
            if name in embedded:
                chosen.append(Column(name, "vector", str(values.type)))
                continue
            column, note = classify(
                name,
                values,
                categorical=name in categorical,
                decimal=decimal,
                date_format=formats.get(name, formats.get(None)),
            )
            if column is not None:  # the digest makes the search linear in the columns
                twin, earlier = seen.setdefault(_digest(values), (name, values))
                if twin != name and earlier.equals(values):
                    column, note = None, f"Column '{name}' equals column '{twin}'; left out."
            if note:
                notes[name] = note
            if column is not None and column.kind == ID:
                self.ids_.append(name)
            elif column is not None:
                chosen.append(column)
        self.notes_ += _gathered(notes)
        return chosen

    def _embedded(self, table: Any) -> set[str]:
        """Columns of numbers that are part of a vector."""
        found: set[str] = set()
        for stem in self.embedding:
            named = [name for name in table.column_names if _has_stem(name, stem)]
            kinds = [table.schema.field(name).type for name in named]
            if stem in table.column_names and is_vector(table.schema.field(stem).type):
                continue
            if len(named) < 2 or not all(map(is_number, kinds)):
                raise InputError(
                    f"There is no embedding {stem!r}: it must be a column of lists of numbers, or "
                    f"columns of numbers named {stem}0, {stem}1 and so on."
                )
            found.update(named)
        return found

    def _decimal(self, table: Any) -> str | None:
        """The decimal mark of text: as given, or a comma where one column leaves no doubt."""
        if self.decimal not in {None, ".", ","}:
            raise InputError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        if self.decimal is not None:
            return self.decimal
        places = [j for j, kind in enumerate(table.schema.types) if is_text(kind)]
        return table_decimal(table.column(j) for j in places)

    def _date_formats(self, names: Sequence[str]) -> dict[str | None, str]:
        """Formats by column name; None stands for all others."""
        given = self.date_format
        formats: dict[Any, str] = {None: given} if isinstance(given, str) else dict(given or {})
        for name, form in formats.items():
            if name is not None and name not in names:
                near = did_you_mean(name, names)
                raise InputError(f"There is no column {name!r}{near} to read as dates.")
            if form not in DATE_ORDERS and ("%" not in form or not is_form("date", form)):
                raise InputError(
                    f"{form!r} does not say how dates are written; pass day-first, month-first or "
                    "a format such as %d/%m/%Y."
                )
        return formats

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def transform(self, X: Any, view: str = "kernels") -> Any:
        """Encode rows: an array, shape (n, features), or CSR if fitted on CSR.

        Columns are found by name, in any order; further columns are ignored; a missing column is
        an error. ``view`` is "kernels" or "trees".
        """
        return self.views_of(X, (_check_view(view),))

    def views_of(self, X: Any, views: Sequence[str]) -> Any:
        """Several views of a table side by side, each cell parsed once."""
        check_is_fitted(self, "encoding_")
        table = as_table(X)
        if sparse.issparse(table) != self.is_sparse:
            raise InputError("The encoder was fitted on a sparse matrix, or got one, but not both.")
        if self.is_sparse:
            _check_finite(table)
            return self.encode(table, views=views)
        self.check_columns(table.column_names)
        n, width = table.num_rows, sum(self.encoding_.width(view) for view in views)
        dtype = np.float64 if 8 * n * width <= _DOUBLE_BYTES else np.float32
        if n <= _BLOCK_ROWS and dtype is np.float64:
            return self.encode(table, views=views)
        out = np.empty((n, width), dtype=dtype)
        for start in range(0, n, _BLOCK_ROWS):
            part = table.slice(start, _BLOCK_ROWS)
            out[start : start + part.num_rows] = self.encode(part, start, views)
        return out

    def encode(self, batch: Any, first_row: int = 0, views: Sequence[str] = ("kernels",)) -> Any:
        """Encode one batch whose columns were checked; ``first_row`` is for messages."""
        return self.encoding_.encode(self.encoding_.read(batch, first_row), views)

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks a column the model needs."""
        there = set(names)
        lacking = [c.name for c in self.columns_ if c.name not in there]
        if lacking:
            shown = ", ".join(repr(name) for name in lacking[:5])
            more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
            raise InputError(
                f"The table lacks column {shown}{more}, which the model needs"
                f"{did_you_mean(lacking[0], names)}; its columns are {few(names, 10)}."
            )

    def get_feature_names_out(
        self, input_features: Any = None, view: str = "kernels"
    ) -> NDArray[Any]:
        """Names of the encoded columns."""
        check_is_fitted(self, "encoding_")
        return np.asarray(self.encoding_.names(view), dtype=object)

    # ------------------------------------------------------------------ in and out of a file

    def spec(self) -> dict[str, Any]:
        """What was learned, apart from the numbers, as JSON values."""
        check_is_fitted(self, "encoding_")
        return self.encoding_.spec()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers that were learned, by name: vectors of float64 or int64."""
        check_is_fitted(self, "encoding_")
        return self.encoding_.arrays()

    @classmethod
    def rebuild(cls, parts: Parts) -> TableEncoder:
        """The fitted encoder of a model file: every number that sizes or indexes is checked."""
        kinds: dict[str, Any] = {"table": Encoding, "sparse": SparseEncoding}
        return cls().learned(kinds[parts.text("kind", kinds)].rebuild(parts))


def _has_stem(name: str, stem: str) -> bool:
    """Whether a name is the stem and a number."""
    return name.startswith(stem) and name[len(stem) :].lstrip(" _.-").isdecimal()


def kernels_of(X: Any, encoder: TableEncoder) -> Any:
    """The view "kernels" of rows encoded for any scorer: it always comes first."""
    return X if encoder.is_sparse else X[:, : encoder.encoding_.width("kernels")]


def _largest(X: Any) -> Floats:
    """The largest absolute value of each column of a CSR matrix, 1 where all are 0."""
    _check_finite(X)
    largest = np.zeros(X.shape[1])
    np.maximum.at(largest, X.indices, np.abs(X.data))
    return np.where(largest > 0, largest, 1.0)


def _check_finite(X: Any) -> None:
    bad = np.flatnonzero(~np.isfinite(X.data))
    if len(bad):
        row = int(np.searchsorted(X.indptr, bad[0], side="right"))
        raise InputError(
            f"The sparse matrix holds {X.data[bad[0]]} in row {row}, feature "
            f"{X.indices[bad[0]] + 1}; leave the cell out or write a number."
        )


def _learn(table: Any, columns: list[Column], max_categories: int) -> Encoding:
    """Medians, means, scales, ranges, flags and categories of the rows."""
    places = {name: j for j, name in enumerate(table.column_names)}
    standards: list[tuple[float, ...]] = []
    boolean_fills, categories, missing = [], [], []
    for column in columns:
        values = table.column(places[column.name])
        if column.kind in {"number", "date", "boolean"}:
            cells = numbers(column, values).reshape(len(values), -1)
            missing.append(float(np.isnan(cells[:, 0]).mean()))
            if column.kind == "boolean":
                boolean_fills.append(float(np.nansum(cells) > np.count_nonzero(cells == 0)))
            else:
                standards += map(_standard, cells.T)
        elif column.kind == "category":
            words = strings(values)
            missing.append(float((words == MISSING).mean()))
            categories.append(_levels(words, max_categories))
        else:
            missing.append(n_missing(values) / max(len(values), 1))
    fill, mean, scale, low, high = np.array(standards, dtype=float).reshape(-1, 5).T.copy()
    levels, rare, ranks = zip(*categories, strict=True) if categories else ((), (), ())
    shares = [
        share
        for kinds in ({"number", "date"}, {"boolean"})
        for column, share in zip(columns, missing, strict=True)
        if column.kind in kinds
    ]
    return Encoding(
        tuple(columns), fill, mean, scale, np.array(boolean_fills, dtype=float),
        np.flatnonzero(shares), levels, rare, ranks, low=low, high=high,
        missing=np.array(missing, dtype=float),
    )  # fmt: skip


def n_missing(values: Any) -> int:
    """Missing cells of a column of text or vectors."""
    return int((tidy(values) if is_text(values.type) else values).null_count)


def _standard(cells: Floats) -> tuple[float, ...]:
    """(median, mean, standard deviation, low, high) of a column.

    Mean and deviation are those after filling gaps by the median; no spread counts as 1. Low and
    high leave out 1% at each end. Huge and tiny numbers are brought near 1 first, so that their
    squares are numbers too.
    """
    gaps = np.isnan(cells)
    present = cells[~gaps] if gaps.any() else cells
    if not len(present):
        return 0.0, 0.0, 1.0, 0.0, 0.0
    fill = float(np.median(present))
    ends = len(present) // 100, len(present) - 1 - len(present) // 100
    low, high = (float(x) for x in np.partition(present, ends)[list(ends)])
    largest = float(np.abs(present).max())
    unit = largest if largest > 1e100 or 0 < largest < 1e-100 else 1.0
    filled = (np.where(gaps, fill, cells) if gaps.any() else cells) / unit
    mean, spread = float(filled.mean()), float(filled.std())
    # below this the spread is the rounding error of equal values
    error = len(filled) * abs(mean) * np.finfo(np.float64).eps
    scale = spread * unit if spread > max(error, 0.0) else unit
    return fill, mean * unit, scale, low, high


def _levels(
    texts: NDArray[Any], max_categories: int
) -> tuple[tuple[str, ...], tuple[str, ...], NDArray[np.intp]]:
    """(categories with a column of their own, the others, frequency ranks of the former).

    Those of fewer than max(2, n/1000) rows are put together; so are the rarest beyond
    ``max_categories``, the shared column counted.
    """
    found, counts = np.unique(texts, return_counts=True)
    common = counts >= max(2, len(texts) // 1000)
    if common.sum() + 1 > max_categories:
        commonest = np.argsort(counts, kind="stable")[len(counts) - max(max_categories - 1, 0) :]
        among = np.zeros(len(counts), dtype=bool)
        among[commonest] = True
        common &= among
    kept = tuple(str(level) for level in found[common])
    others = tuple(str(level) for level in found[~common])
    order = np.argsort(-counts[common], kind="stable")
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = np.arange(len(order))
    return kept, others, ranks


def _digest(values: Any) -> bytes:
    """The same for equal columns; different, but for chance, for others."""
    digest = hashlib.blake2b(str(values.type).encode(), digest_size=16)
    for chunk in values.chunks:
        gaps = pc.is_null(chunk).to_numpy(zero_copy_only=False)
        digest.update(np.packbits(gaps).tobytes())
        # what lies beneath a gap is anything; written out, a slice is as a column of its own
        digest.update(pa.record_batch([chunk.drop_null()], ["values"]).serialize())
    return digest.digest()
