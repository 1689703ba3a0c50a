"""Tables of one feature matrix: rows x, a label, perhaps a weight and an id, wherever they live.

Dask and Spark give such tables to ``fit``. Labels and a draw of the unlabelled rows come to the
driver; all other unlabelled rows are visited where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._design import MATRIX_FREE_ABOVE
from pnuauc._ranges import LARGEST
from pnuauc._sources._draw import RowKeys, draw_rows
from pnuauc._sources._port import Batch, Source
from pnuauc._sources._unlabeled import AllUnlabeled
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa, pc
from pnuauc.labels import UNLABELED, Roles, read_roles
from pnuauc.losses import get_loss

__all__ = [
    "FEATURES",
    "ID",
    "LABEL",
    "WEIGHT",
    "LabelCodes",
    "as_matrix",
    "check_cells",
    "fit_on_source",
    "matrix_table",
    "read_labels",
]

FEATURES, LABEL, WEIGHT, ID = "features", "label", "weight", "id"
#: Unlabelled rows that come to the driver: centres, prior and threshold rest on them.
DRAWN_ROWS = 20_000
#: More distinct labels than this are measurements.
_MOST_LABELS = 1000


def matrix_table(columns: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Numpy columns -> arrow table; the matrix becomes a column of lists and is not copied."""
    made = []
    for name in names:
        values = columns[name]
        if name == FEATURES:
            flat = pa.array(np.ascontiguousarray(values).ravel())
            values = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
        made.append(values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True))
    lengths = {name: len(column) for name, column in zip(names, made, strict=True)}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(
            f"Columns that belong together have different numbers of rows ({found}); cut them into "
            "the same partitions."
        )
    return pa.table(made, names=list(names))


def check_cells(X: NDArray[Any], where: str) -> NDArray[Any]:
    """X itself, if it can be computed with; the error names where it comes from."""
    if X.size and not max(X.max(), -X.min()) <= LARGEST[X.dtype.name]:  # not so for NaN either
        raise InputError(
            f"{where} holds NaN, infinity or numbers too large to compute with; fill these cells "
            "in, drop the rows or rescale the columns."
        )
    return X


def as_matrix(column: Any, where: str = "X") -> NDArray[Any]:
    """A column of lists -> shape (n, d), without a copy; missing cells are refused."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values = column.flatten()
    if column.null_count or values.null_count:
        raise InputError(f"{where} holds missing values; fill them in or drop these rows.")
    n = len(column)
    if n and len(values) % n:
        raise InputError(f"The rows of {where} differ in their number of features.")
    return np.asarray(values.to_numpy(zero_copy_only=False).reshape(n, -1 if n else 0))


def read_matrix(batch: Batch) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """(X, weights or None) of all rows of a batch."""
    table = batch.table
    X = as_matrix(table.column(FEATURES), batch.name)
    if WEIGHT not in table.schema.names:
        return X, None
    weight = table.column(WEIGHT).to_numpy(zero_copy_only=False).astype(np.float64)
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise InputError(f"Weights in {batch.name} must be finite and not negative.")
    return X, weight


@dataclass(frozen=True)
class LabelCodes:
    """The role of every label value, as :func:`pnuauc.labels.read_roles` read them together."""

    values: tuple[Any, ...]
    codes: tuple[int, ...]

    def __call__(self, table: Any) -> NDArray[np.int8]:
        """Roles of the rows of a table, shape (n,)."""
        column = table.column(LABEL)
        lookup = np.array([*self.codes, UNLABELED], dtype=np.int8)
        if not self.values:
            return np.full(len(column), UNLABELED, dtype=np.int8)
        known = pa.array(self.values, type=column.type)
        index = pc.fill_null(pc.index_in(column, value_set=known), len(self.values))
        return np.asarray(lookup[index.to_numpy(zero_copy_only=False)])


def read_labels(source: Source, **label_codes: Any) -> tuple[LabelCodes, Roles, dict[int, int]]:
    """(roles of the values, what they are called, rows of each role), from one visit of labels.

    The second has a row for every distinct value: it knows the two classes.
    """
    nothing: dict[Any, int] = {}
    counts = source.select([LABEL]).reduce(_count_labels, _add_counts, nothing)
    if len(counts) > _MOST_LABELS:
        raise InputError(
            f"The labels take more than {_MOST_LABELS} values; they must be classes.",
            about="labels",
        )
    values = sorted((v for v in counts if v is not None), key=_by_kind)
    seen: list[Any] = [*values, *([None] if None in counts else [])]
    roles = read_roles(np.array(seen, dtype=object), **label_codes)
    n_rows = dict.fromkeys((1, 0, UNLABELED), 0)
    for value, code in zip(seen, roles, strict=True):
        n_rows[code] += counts[value]
    return LabelCodes(tuple(values), tuple(roles.codes[: len(values)].tolist())), roles, n_rows


def _by_kind(value: Any) -> tuple[str, Any]:
    return ("", value) if isinstance(value, (bool, int, float)) else (type(value).__name__, value)


def _count_labels(batch: Batch) -> dict[Any, int]:
    column = batch.table.column(LABEL)
    found: dict[Any, int] = {}
    for item in column.value_counts():
        value, n = item["values"].as_py(), item["counts"].as_py()
        value = None if value is None or value != value or value == "" else value
        found[value] = found.get(value, 0) + n
    # enough to be refused; a column of measurements must not be carried to the driver
    return dict(list(found.items())[: _MOST_LABELS + 1])


def _add_counts(a: dict[Any, int], b: dict[Any, int]) -> dict[Any, int]:
    merged = dict(a)
    for value, n in b.items():
        if value in merged or len(merged) <= _MOST_LABELS + 1:
            merged[value] = merged.get(value, 0) + n
    return merged


def fit_on_source(estimator: Any, source: Source, label_codes: Mapping[str, Any]) -> Any:
    """Fit an :class:`AUCClassifierCV` to a source with the columns of this module."""
    if get_loss(estimator.loss).name != "squared":
        raise ValueError(
            f"loss={estimator.loss!r} visits the rows many times and keeps a score of each; tables "
            "in partitions are fitted with the squared loss, which needs their moments only."
        )
    codes, roles, n_rows = read_labels(source, **label_codes)
    names = source.schema.names
    # which hashes are small, and so which rows are centres, follows the seed
    seed = estimator.random_state if isinstance(estimator.random_state, (int, np.integer)) else 0
    named = ID in names
    keys = RowKeys((ID if named else FEATURES,), int(seed), named)
    drawn = draw_rows(source, keys, codes, DRAWN_ROWS, n_rows[UNLABELED])
    X, weight = read_matrix(Batch(drawn.table, "X"))
    if estimator.basis == "identity" and X.shape[1] > MATRIX_FREE_ABOVE:
        raise ValueError(
            f"The linear model of {X.shape[1]} columns keeps all rows; tables in partitions are "
            f"fitted with at most {MATRIX_FREE_ABOVE} columns, or with another basis."
        )
    known = Roles(drawn.codes, roles.positive_label, roles.negative_label, roles.announcement)
    unlabeled = drawn.codes == UNLABELED
    elsewhere = AllUnlabeled(source, read_matrix, codes, keys, drawn.key[unlabeled])
    return estimator._fit_with(X, known, weight, elsewhere if unlabeled.any() else None)
