"""A table of mixed columns -> a matrix of numbers, learnt by scikit-learn's transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from pnuauc._stored import Parts, refuse
from pnuauc.exceptions import InputError
from pnuauc.io._columns import DATE_PARTS, KINDS, Column, classify, numbers, strings
from pnuauc.io._encoder_state import (
    MAX_SPARSE,
    MAX_WIDTH,
    STATES,
    Categories,
    Flags,
    Gaps,
    Numbers,
    Scales,
)
from pnuauc.io._tables import as_table

__all__ = ["TableEncoder"]

#: Rows whose medians, means and categories are looked up; more would not move them.
FIT_ROWS = 200_000
#: Rows encoded at a time.
_BLOCK_ROWS = 65_536
#: Above this many bytes the encoded matrix is kept in float32.
_DOUBLE_BYTES = 2**30
_HASHED = 32


class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns -> numbers that a distance can be taken of; the same at fit and at scoring.

    - numbers: missing cells take the median, then mean 0 and variance 1; columns with missing
      cells get a 0/1 column that says so;
    - booleans: 0/1, a missing cell takes the commoner value (and its 0/1 column);
    - categories (up to 100 distinct strings): one 0/1 column each, missing is a category; the 30
      commonest are kept, those of fewer than max(2, n/1000) rows are one group, which new
      categories join at scoring (without such a group they are all zeros);
    - text (more distinct strings): letter triples hashed into 32 columns, of length 1;
    - dates: days since 1970, month, weekday, hour, then as numbers;
    - constant and empty columns, copies of other columns, columns that name or number the rows
      are left out, and ``notes_`` says so.

    CSR matrices stay sparse: each column is divided by its largest absolute value.
    Medians, means and categories come from at most 200,000 rows, drawn at random.

    Parameters
    ----------
    categorical : sequence of str
        Columns to treat as categories though they hold numbers.
    max_categories : int, default=30
    random_state : int

    Attributes
    ----------
    columns_ : list of Column
    notes_ : list of str
    transformers_ : dict of kind -> plain fitted values that encode it
    groups_ : dict of column name -> indices of the encoded columns it feeds

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, None, 3.0], "shop": ["a", "b", "a", "b"]})
    >>> TableEncoder().fit(frame).get_feature_names_out().tolist()
    ['size', 'size is missing', 'shop=a', 'shop=b']
    """

    def __init__(
        self, categorical: Sequence[str] = (), max_categories: int = 30, random_state: int = 0
    ) -> None:
        self.categorical = categorical
        self.max_categories = max_categories
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Look at every column; ``y`` is ignored."""
        table = as_table(X)
        self.notes_: list[str] = []
        self.transformers_: dict[str, Any] = {}
        if sparse.issparse(table):
            return self._fit_sparse(table)
        self.columns_ = self._choose_columns(table)
        if not self.columns_:
            raise InputError(
                "No column is left to learn from: " + " ".join(self.notes_[:5])
                if self.notes_
                else "No column is left to learn from: the table has no feature columns."
            )
        n = table.num_rows
        if n > FIT_ROWS:
            rng = np.random.default_rng(self.random_state)
            table = table.take(np.sort(rng.choice(n, FIT_ROWS, replace=False)))
        self._fit_numbers(table)
        self._fit_categories(table)
        texts = [c.name for c in self.columns_ if c.kind == "text"]
        if texts:
            self.transformers_["text"] = text_hasher()
        self.n_features_in_ = len(self.columns_)
        return self

    def _fit_sparse(self, X: Any) -> TableEncoder:
        self.columns_ = []
        self.transformers_["sparse"] = Scales(MaxAbsScaler().fit(X).scale_)
        self.n_features_in_ = X.shape[1]
        return self

    @property
    def is_sparse(self) -> bool:
        """Whether it was fitted on a sparse matrix."""
        return "sparse" in self.transformers_

    def _choose_columns(self, table: Any) -> list[Column]:
        unknown = [name for name in self.categorical if name not in table.column_names]
        if unknown:
            raise InputError(f"There is no column {unknown[0]!r} to treat as categorical.")
        chosen: list[Column] = []
        for name in table.column_names:
            values = table.column(name)
            column, note = classify(name, values, categorical=name in self.categorical)
            if column is not None:
                twin = next((c for c in chosen if _same(values, table.column(c.name))), None)
                if twin is not None:
                    column, note = None, f"Column '{name}' equals column '{twin.name}'; left out."
            if note:
                self.notes_.append(note)
            if column is not None:
                chosen.append(column)
        return chosen

    def _fit_numbers(self, table: Any) -> None:
        values, flags = self._numbers(table), self._booleans(table)
        if values.shape[1]:
            imputer = SimpleImputer(strategy="median", keep_empty_features=True)
            scaler = StandardScaler().fit(imputer.fit_transform(values))
            self.transformers_["number"] = Numbers(imputer.statistics_, scaler.mean_, scaler.scale_)
        if flags.shape[1]:
            imputer = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
            self.transformers_["boolean"] = Flags(imputer.fit(flags).statistics_)
        both = np.hstack([self._one_per_column(values), flags])
        if np.isnan(both).any():
            self.transformers_["missing"] = Gaps(np.flatnonzero(np.isnan(both).any(axis=0)))

    def _fit_categories(self, table: Any) -> None:
        texts = self._texts(table, "category")
        if texts is not None:
            encoder = OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                min_frequency=max(2, table.num_rows // 1000),
                max_categories=self.max_categories,
            ).fit(texts)
            rare = [[] if r is None else list(r) for r in encoder.infrequent_categories_]
            kept = [
                [level for level in levels if level not in set(few)]
                for levels, few in zip(encoder.categories_, rare, strict=True)
            ]
            self.transformers_["category"] = Categories(kept, rare)

    def transform(self, X: Any) -> Any:
        """Encode rows: an array, shape (n, features), or CSR if fitted on CSR.

        Columns are found by name, in any order; further columns are ignored; a missing column is
        an error.
        """
        check_is_fitted(self, "transformers_")
        table = as_table(X)
        if sparse.issparse(table) != self.is_sparse:
            raise InputError("The encoder was fitted on a sparse matrix, or got one, but not both.")
        if self.is_sparse:
            if table.shape[1] != self.n_features_in_:
                raise InputError(
                    f"The model needs {self.n_features_in_} features, got {table.shape[1]}."
                )
            return self.transformers_["sparse"].transform(table)
        self.check_columns(table.column_names)
        n, width = table.num_rows, self.n_features_out
        dtype = np.float64 if 8 * n * width <= _DOUBLE_BYTES else np.float32
        out = np.empty((n, width), dtype=dtype)
        for start in range(0, n, _BLOCK_ROWS):
            part = table.slice(start, _BLOCK_ROWS)
            out[start : start + part.num_rows] = self.encode(part, start)
        return out

    def encode(self, batch: Any, first_row: int = 0) -> NDArray[np.float64]:
        """Encode one batch whose columns were checked; ``first_row`` is for messages."""
        values, flags = self._numbers(batch, first_row), self._booleans(batch, first_row)
        parts: list[Any] = []
        if "number" in self.transformers_:
            parts.append(self.transformers_["number"].transform(values))
        if "boolean" in self.transformers_:
            parts.append(self.transformers_["boolean"].transform(flags))
        if "missing" in self.transformers_:
            both = np.hstack([self._one_per_column(values), flags])
            parts.append(self.transformers_["missing"].transform(both))
        if "category" in self.transformers_:
            parts.append(self.transformers_["category"].transform(self._texts(batch, "category")))
        if "text" in self.transformers_:
            texts = self._texts(batch, "text")
            hasher = self.transformers_["text"]
            parts += [hasher.transform(column).toarray() for column in texts.T]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks a column the model needs."""
        lacking = [c.name for c in self.columns_ if c.name not in set(names)]
        if lacking:
            shown = ", ".join(repr(name) for name in lacking[:5])
            more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
            raise InputError(
                f"The table lacks column {shown}{more}, which the model needs; its columns are "
                f"{', '.join(map(repr, list(names)[:10]))}{', ...' if len(names) > 10 else ''}."
            )

    def new_categories(self, batch: Any) -> dict[str, set[str]]:
        """Categories of a batch that were not there when the encoder was fitted."""
        if "category" not in self.transformers_:
            return {}
        found = {}
        for j, column in enumerate(self._of_kind("category")):
            seen = set(strings(batch.column(column.name).unique()))
            fresh = self.transformers_["category"].unseen(j, seen)
            if fresh:
                found[column.name] = fresh
        return found

    def _of_kind(self, *kinds: str) -> list[Column]:
        return [c for c in self.columns_ if c.kind in kinds]

    def _numbers(self, batch: Any, first_row: int = 0) -> NDArray[np.float64]:
        columns = self._of_kind("number", "date")
        width = sum(len(DATE_PARTS) if c.kind == "date" else 1 for c in columns)
        out = np.empty((batch.num_rows, width))
        j = 0
        for column in columns:
            values = numbers(column, batch.column(column.name), first_row)
            step = 1 if values.ndim == 1 else values.shape[1]
            out[:, j : j + step] = values.reshape(len(values), step)
            j += step
        return out

    def _one_per_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of a date's parts the first: they are missing together."""
        keep, j = [], 0
        for column in self._of_kind("number", "date"):
            keep.append(j)
            j += len(DATE_PARTS) if column.kind == "date" else 1
        return values if len(keep) == values.shape[1] else values[:, keep]

    def _booleans(self, batch: Any, first_row: int = 0) -> NDArray[np.float64]:
        columns = self._of_kind("boolean")
        out = np.empty((batch.num_rows, len(columns)))
        for j, column in enumerate(columns):
            out[:, j] = numbers(column, batch.column(column.name), first_row)
        return out

    def _texts(self, batch: Any, kind: str) -> Any:
        columns = self._of_kind(kind)
        if not columns:
            return None
        out = np.empty((batch.num_rows, len(columns)), dtype=object)
        for j, column in enumerate(columns):
            out[:, j] = strings(batch.column(column.name))
        return out

    def _named(self) -> list[tuple[str, str]]:
        """(table column, name) of every encoded column, in order."""
        if self.is_sparse:
            return [(f"feature {j + 1}",) * 2 for j in range(self.n_features_in_)]
        return self._dense_names()

    @property
    def groups_(self) -> dict[str, list[int]]:
        """Encoded columns that each table column feeds."""
        groups: dict[str, list[int]] = {}
        for j, (source, _) in enumerate(self._named()):
            groups.setdefault(source, []).append(j)
        return groups

    @property
    def n_features_out(self) -> int:
        """Number of encoded columns, without making their names."""
        states = [state for kind, state in self.transformers_.items() if kind != "text"]
        return sum(state.width for state in states) + _HASHED * len(self._of_kind("text"))

    def _dense_names(self) -> list[tuple[str, str]]:
        names: list[tuple[str, str]] = []
        for column in self._of_kind("number", "date"):
            if column.kind == "date":
                names += [(column.name, f"{column.name} {part}") for part in DATE_PARTS]
            else:
                names.append((column.name, column.name))
        names += [(c.name, c.name) for c in self._of_kind("boolean")]
        if "missing" in self.transformers_:
            sources = [*self._of_kind("number", "date"), *self._of_kind("boolean")]
            for j in self.transformers_["missing"].columns:
                names.append((sources[j].name, f"{sources[j].name} is missing"))
        if "category" in self.transformers_:
            levels = self.transformers_["category"].names()
            for column, found in zip(self._of_kind("category"), levels, strict=True):
                names += [(column.name, f"{column.name}={level}") for level in found]
        for column in self._of_kind("text"):
            names += [(column.name, f"{column.name} hash {k}") for k in range(_HASHED)]
        return names

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the encoded columns."""
        check_is_fitted(self, "transformers_")
        return np.asarray([name for _, name in self._named()], dtype=object)

    def spec(self) -> dict[str, Any]:
        """What is fitted, without the numbers: for a model file."""
        check_is_fitted(self, "transformers_")
        return {
            "columns": [column.to_dict() for column in self.columns_],
            "n_features": self.n_features_in_,
            "hashed": _HASHED if "text" in self.transformers_ else 0,
            **{kind: {} for kind in STATES if kind in self.transformers_},
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers of :meth:`spec`, as plain arrays by name."""
        return {
            f"{kind}/{name}": value
            for kind in STATES
            if kind in self.transformers_
            for name, value in self.transformers_[kind].arrays().items()
        }

    @classmethod
    def from_spec(cls, spec: Any, arrays: dict[str, NDArray[Any]]) -> TableEncoder:
        """The encoder that :meth:`spec` and :meth:`arrays` describe, every number checked."""
        return cls.from_parts(Parts(spec, arrays, "encoder"))

    @classmethod
    def from_parts(cls, parts: Parts) -> TableEncoder:
        """:meth:`from_spec` from a part of a model file."""
        self = cls()
        self.notes_, self.transformers_ = [], {}
        self.columns_ = [_read_column(item) for item in parts.items("columns", MAX_WIDTH)]
        if len({c.name for c in self.columns_}) != len(self.columns_):
            raise refuse("two of its columns have one name")
        n_sparse = parts.integer("n_features", 1, MAX_SPARSE)
        widths = self._stored_widths(n_sparse)
        for kind, state in STATES.items():
            if kind in widths and parts.has(kind):
                part = parts.sub(kind)
                self.transformers_[kind] = state.from_parts(part, widths[kind])
                part.finish()
            elif kind in widths and kind != "missing":
                raise refuse(f"its encoder says nothing of its {kind} columns")
        n_texts = len(self._of_kind("text"))
        if parts.integer("hashed", 0, _HASHED) != (_HASHED if n_texts else 0):
            raise refuse("its text columns are hashed in a way that pnuauc does not know")
        if n_texts:
            self.transformers_["text"] = text_hasher()
        parts.finish()
        if not self.is_sparse and n_sparse != len(self.columns_):
            raise refuse("its columns and their number do not fit together")
        self.n_features_in_ = n_sparse
        if not self.is_sparse and self.n_features_out > MAX_WIDTH:
            raise refuse(f"it has more than {MAX_WIDTH:,} encoded columns")
        return self

    def _stored_widths(self, n_sparse: int) -> dict[str, int]:
        """Columns that each kind of state must have, given the table's columns."""
        if not self.columns_:
            return {"sparse": n_sparse}
        values = self._of_kind("number", "date")
        flags = len(self._of_kind("boolean"))
        widths = {
            "number": sum(len(DATE_PARTS) if c.kind == "date" else 1 for c in values),
            "boolean": flags,
            "missing": len(values) + flags,
            "category": len(self._of_kind("category")),
        }
        return {kind: width for kind, width in widths.items() if width}


def _read_column(item: Any) -> Column:
    parts = Parts(item, {}, "column")
    column = Column(
        parts.text("name"), parts.text("kind", KINDS), parts.text("type"), parts.flag("lenient")
    )
    parts.finish()
    return column


def text_hasher() -> HashingVectorizer:
    """The stateless transformer of text columns: there is but this one, and no file holds it."""
    return HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=_HASHED)


def _same(a: Any, b: Any) -> bool:
    """Whether two arrow columns hold the same values; a look at the head nearly always settles."""
    if a.type != b.type or a.null_count != b.null_count:
        return False
    return bool(a.slice(0, 100).equals(b.slice(0, 100)) and a.equals(b))
