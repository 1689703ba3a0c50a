"""A table of mixed columns -> a matrix of numbers, by scikit-learn's own transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from pnuauc.exceptions import InputError
from pnuauc.io._columns import DATE_PARTS, Column, classify, numbers, strings
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
    transformers_ : dict of fitted scikit-learn transformers
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
        self._name_features()
        return self

    def _fit_sparse(self, X: Any) -> TableEncoder:
        self.columns_ = []
        self.transformers_["sparse"] = MaxAbsScaler().fit(X)
        self.n_features_in_ = X.shape[1]
        self.groups_ = {f"feature {j + 1}": [j] for j in range(X.shape[1])}
        self._names = [f"feature {j + 1}" for j in range(X.shape[1])]
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
            self.transformers_["number"] = make_pipeline(
                SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
            ).fit(values)
        if flags.shape[1]:
            self.transformers_["boolean"] = SimpleImputer(
                strategy="most_frequent", keep_empty_features=True
            ).fit(flags)
        both = np.hstack([self._one_per_column(values), flags])
        if np.isnan(both).any():
            self.transformers_["missing"] = MissingIndicator(error_on_new=False).fit(both)

    def _fit_categories(self, table: Any) -> None:
        texts = self._texts(table, "category")
        if texts is not None:
            self.transformers_["category"] = OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                min_frequency=max(2, table.num_rows // 1000),
                max_categories=self.max_categories,
                sparse_output=False,
            ).fit(texts)

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
        n, width = table.num_rows, len(self._names)
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
            imputer, scaler = (step for _, step in self.transformers_["number"].steps)
            # without a gap imputing only copies; most batches have none
            filled = imputer.transform(values) if np.isnan(values).any() else values
            parts.append(scaler.transform(filled))
        if "boolean" in self.transformers_:
            parts.append(self.transformers_["boolean"].transform(flags))
        if "missing" in self.transformers_:
            both = np.hstack([self._one_per_column(values), flags])
            parts.append(self.transformers_["missing"].transform(both))
        if "category" in self.transformers_:
            # new categories are documented to join the rare ones: no warning per batch
            encoder = self.transformers_["category"]
            parts.append(_quietly(encoder.transform, self._texts(batch, "category")))
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
        known = self.transformers_["category"].categories_
        columns = [c for c in self.columns_ if c.kind == "category"]
        for column, levels in zip(columns, known, strict=True):
            seen = set(strings(batch.column(column.name).unique()))
            fresh = seen - set(levels)
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

    def _name_features(self) -> None:
        """Names of the encoded columns, in order, and which table column each comes from."""
        names: list[tuple[str, str]] = []
        for column in self._of_kind("number", "date"):
            if column.kind == "date":
                names += [(column.name, f"{column.name} {part}") for part in DATE_PARTS]
            else:
                names.append((column.name, column.name))
        names += [(c.name, c.name) for c in self._of_kind("boolean")]
        if "missing" in self.transformers_:
            sources = [*self._of_kind("number", "date"), *self._of_kind("boolean")]
            for j in self.transformers_["missing"].features_:
                names.append((sources[j].name, f"{sources[j].name} is missing"))
        if "category" in self.transformers_:
            for column, levels in zip(self._of_kind("category"), self._levels(), strict=True):
                names += [(column.name, f"{column.name}={level}") for level in levels]
        for column in self._of_kind("text"):
            names += [(column.name, f"{column.name} hash {k}") for k in range(_HASHED)]
        self._names = [feature for _, feature in names]
        self.groups_ = {}
        for j, (source, _) in enumerate(names):
            self.groups_.setdefault(source, []).append(j)

    def _levels(self) -> list[list[str]]:
        """Names of the one-hot columns by category column; the rare ones share one."""
        encoder = self.transformers_["category"]
        result = []
        for levels, rare in zip(encoder.categories_, encoder.infrequent_categories_, strict=True):
            rare_set = set() if rare is None else set(rare)
            kept = [str(level) for level in levels if level not in rare_set]
            result.append([*kept, "(rare)"] if rare_set else kept)
        return result

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the encoded columns."""
        check_is_fitted(self, "transformers_")
        return np.asarray(self._names, dtype=object)

    def restore(self, columns: list[Column], transformers: dict[str, Any]) -> TableEncoder:
        """Put a fitted encoder back together from its parts, as a model file holds them."""
        self.columns_, self.transformers_, self.notes_ = columns, transformers, []
        if self.is_sparse:
            width = int(transformers["sparse"].n_features_in_)
            self.n_features_in_ = width
            self._names = [f"feature {j + 1}" for j in range(width)]
            self.groups_ = {name: [j] for j, name in enumerate(self._names)}
        else:
            self.n_features_in_ = len(columns)
            self._name_features()
        return self


def text_hasher() -> HashingVectorizer:
    """The stateless transformer of text columns; a model file may hold this one and no other."""
    return HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=_HASHED)


def _same(a: Any, b: Any) -> bool:
    """Whether two arrow columns hold the same values; a look at the head nearly always settles."""
    if a.type != b.type or a.null_count != b.null_count:
        return False
    return bool(a.slice(0, 100).equals(b.slice(0, 100)) and a.equals(b))


def _quietly(function: Any, argument: Any) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Found unknown categories", category=UserWarning)
        return function(argument)
