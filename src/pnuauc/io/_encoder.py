"""A table of mixed columns -> a matrix of numbers; what was learned is plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pnuauc._shown import few
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa, pc
from pnuauc.io._cells import is_form, is_text, table_decimal
from pnuauc.io._columns import Column, classify, numbers, strings
from pnuauc.io._dates import DATE_ORDERS
from pnuauc.io._encoding import Encoding, SparseEncoding, check_view, encoding_from_spec
from pnuauc.io._frames import as_table

__all__ = ["TableEncoder"]

#: Rows whose medians, means and categories are looked up; more would not move them.
FIT_ROWS = 200_000
#: Rows encoded at a time.
_BLOCK_ROWS = 65_536
#: Above this many bytes the encoded matrix is kept in float32.
_DOUBLE_BYTES = 2**30

Floats = NDArray[np.float64]


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
    - text (more distinct strings): letter triples hashed into 32 columns, of length 1;
    - dates: days since 1970, month, weekday, hour, then as numbers.

    The view "trees" is made for splits: numbers, dates and booleans as they are, NaN where a cell
    is missing; categories as above up to 10, beyond that one column of codes, the commonest 0;
    text as above.

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

    Attributes
    ----------
    columns_ : list of Column
    notes_ : list of str
    encoding_ : Encoding or SparseEncoding
        What was learned, as plain values.
    groups_ : dict of column name -> indices of the encoded columns it feeds, view "kernels"
        :meth:`groups` gives those of either view.

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

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Look at every column; ``y`` is ignored."""
        table = as_table(X)
        self.notes_: list[str] = []
        if sparse.issparse(table):
            return self._learned(SparseEncoding(_largest(table)))
        columns = self._choose_columns(table)
        if not columns:
            why = " ".join(self.notes_[:5]) or "the table has no feature columns."
            raise InputError(f"No column is left to learn from: {why}")
        n = table.num_rows
        if n > FIT_ROWS:
            rng = np.random.default_rng(self.random_state)
            table = table.take(np.sort(rng.choice(n, FIT_ROWS, replace=False)))
        return self._learned(_learn(table, columns, self.max_categories))

    def _learned(self, encoding: Encoding | SparseEncoding) -> TableEncoder:
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

    def groups(self, view: str = "kernels") -> dict[str, list[int]]:
        """Column name -> indices of the encoded columns it feeds."""
        check_is_fitted(self, "encoding_")
        return self.encoding_.groups(view)

    def _choose_columns(self, table: Any) -> list[Column]:
        names = table.column_names
        categorical = set(self.categorical)
        unknown = sorted(categorical - set(names))
        if unknown:
            raise InputError(f"There is no column {unknown[0]!r} to treat as categorical.")
        chosen: list[Column] = []
        twins = _Twins()
        decimal = self._decimal(table)
        formats = self._date_formats(names)
        for j, name in enumerate(names):
            values = table.column(j)
            column, note = classify(
                name,
                values,
                categorical=name in categorical,
                decimal=decimal,
                date_format=formats.get(name, formats.get(None)),
            )
            twin = None if column is None else twins.of(name, values)
            if twin is not None:
                column, note = None, f"Column '{name}' equals column '{twin}'; left out."
            if note:
                self.notes_.append(note)
            if column is not None:
                chosen.append(column)
        return chosen

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
                raise InputError(f"There is no column {name!r} to read as dates.")
            if form not in DATE_ORDERS and ("%" not in form or not is_form("date", form)):
                raise InputError(
                    f"{form!r} does not say how dates are written; pass day-first, month-first or "
                    "a format such as %d/%m/%Y."
                )
        return formats

    def transform(self, X: Any, view: str = "kernels") -> Any:
        """Encode rows: an array, shape (n, features), or CSR if fitted on CSR.

        Columns are found by name, in any order; further columns are ignored; a missing column is
        an error. ``view`` is "kernels" or "trees".
        """
        check_is_fitted(self, "encoding_")
        check_view(view)
        table = as_table(X)
        if sparse.issparse(table) != self.is_sparse:
            raise InputError("The encoder was fitted on a sparse matrix, or got one, but not both.")
        if self.is_sparse:
            _check_finite(table)
            return self.encoding_.encode(table, view=view)
        self.check_columns(table.column_names)
        n, width = table.num_rows, self.encoding_.width(view)
        dtype = np.float64 if 8 * n * width <= _DOUBLE_BYTES else np.float32
        if n <= _BLOCK_ROWS and dtype is np.float64:
            return self.encode(table, view=view)
        out = np.empty((n, width), dtype=dtype)
        for start in range(0, n, _BLOCK_ROWS):
            part = table.slice(start, _BLOCK_ROWS)
            out[start : start + part.num_rows] = self.encode(part, start, view)
        return out

    def encode(self, batch: Any, first_row: int = 0, view: str = "kernels") -> Any:
        """Encode one batch whose columns were checked; ``first_row`` is for messages."""
        return self.encoding_.encode(batch, first_row, view)

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks a column the model needs."""
        there = set(names)
        lacking = [c.name for c in self.columns_ if c.name not in there]
        if lacking:
            shown = ", ".join(repr(name) for name in lacking[:5])
            more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
            raise InputError(
                f"The table lacks column {shown}{more}, which the model needs; its columns are "
                f"{few(names, 10)}."
            )

    def new_categories(self, batch: Any) -> dict[str, set[str]]:
        """Categories of a batch that were not there when the encoder was fitted."""
        return self.encoding_.new_categories(batch)

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
    def from_spec(cls, spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TableEncoder:
        """The fitted encoder that :meth:`spec` and :meth:`arrays` describe.

        Every number that sizes or indexes anything is checked: a ``ValueError`` says what is
        wrong with a damaged or crafted description.
        """
        encoder = cls()
        encoder.notes_ = []
        return encoder._learned(encoding_from_spec(spec, arrays))


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
    """Medians, means, scales, flags and categories of the rows."""
    places = {name: j for j, name in enumerate(table.column_names)}
    gaps, boolean_gaps, boolean_fills, categories = [], [], [], []
    standards: list[tuple[float, float, float]] = []
    for column in columns:
        values = table.column(places[column.name])
        if column.kind in {"number", "date"}:
            cells = numbers(column, values)
            parts = [cells] if cells.ndim == 1 else list(cells.T)
            gaps.append(bool(np.isnan(parts[0]).any()))
            standards += map(_standard, parts)
        elif column.kind == "boolean":
            cells = numbers(column, values)
            boolean_gaps.append(bool(np.isnan(cells).any()))
            boolean_fills.append(float(np.nansum(cells) > np.count_nonzero(cells == 0)))
        elif column.kind == "category":
            categories.append(_levels(strings(values), max_categories))
    fill, mean, scale = np.array(standards, dtype=np.float64).reshape(-1, 3).T.copy()
    flagged = np.flatnonzero([*gaps, *boolean_gaps])
    levels, rare, ranks = zip(*categories, strict=True) if categories else ((), (), ())
    boolean_fill = np.array(boolean_fills, dtype=np.float64)
    return Encoding(tuple(columns), fill, mean, scale, boolean_fill, flagged, levels, rare, ranks)


def _standard(cells: Floats) -> tuple[float, float, float]:
    """(median, mean, standard deviation) after filling gaps by the median; no spread counts as 1.

    Huge and tiny numbers are brought near 1 first, so that their squares are numbers too.
    """
    gaps = np.isnan(cells)
    present = cells[~gaps] if gaps.any() else cells
    if not len(present):
        return 0.0, 0.0, 1.0
    fill = float(np.median(present))
    largest = float(np.abs(present).max())
    unit = largest if largest > 1e100 or 0 < largest < 1e-100 else 1.0
    filled = (np.where(gaps, fill, cells) if gaps.any() else cells) / unit
    mean, spread = float(filled.mean()), float(filled.std())
    # below this the spread is the rounding error of equal values
    error = len(filled) * abs(mean) * np.finfo(np.float64).eps
    if not spread > max(error, 0.0):
        return fill, mean * unit, unit
    return fill, mean * unit, spread * unit


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


class _Twins:
    """Finds columns that hold the same values, by a digest: linear in the columns."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[str, Any]] = {}

    def of(self, name: str, values: Any) -> str | None:
        """The name of an earlier column with the same values, or None; remembers this one."""
        key = _digest(values)
        earlier = self._seen.setdefault(key, (name, values))
        if earlier[0] == name:
            return None
        return earlier[0] if earlier[1].equals(values) else None


def _digest(values: Any) -> bytes:
    """The same for equal columns; different, but for chance, for others."""
    digest = hashlib.blake2b(str(values.type).encode(), digest_size=16)
    for chunk in values.chunks:
        if chunk.null_count:
            gaps = pc.is_null(chunk).to_numpy(zero_copy_only=False)
            digest.update(np.packbits(gaps).tobytes())
            chunk = chunk.drop_null()  # what lies beneath a gap is anything
        if pa.types.is_integer(chunk.type) or pa.types.is_floating(chunk.type):
            plain = np.ascontiguousarray(chunk.to_numpy(zero_copy_only=False))
            digest.update(plain.view(np.uint8).data)
        else:  # written out, a slice of a column is as a column of its own
            digest.update(pa.record_batch([chunk], ["values"]).serialize())
    return digest.digest()
