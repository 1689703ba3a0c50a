"""Dask DataFrames and Arrays as parts of a table with the columns of ``_sources._matrix``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pnuauc._sources._matrix import FEATURES, check_cells, matrix_table
from pnuauc._sources._parts import slices
from pnuauc._sources._port import Batch
from pnuauc.dask._source import DaskSource
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa

__all__ = ["collection_source", "feature_names", "is_collection"]


@dataclass(frozen=True)
class PartitionReader:
    """A partition -> batches, in the task that has it.

    columns : names of the columns of ``_sources._matrix`` that are wanted
    places : of each, the name (of the matrix, the names) in a DataFrame; None where a partition is
        a dict of arrays by the names in ``columns``
    n_features : columns of the matrix
    dtype : of the matrix
    """

    columns: tuple[str, ...]
    places: Mapping[str, Any] | None
    n_features: int = 0
    dtype: str = "float64"

    @property
    def schema(self) -> Any:
        features = pa.list_(pa.from_numpy_dtype(np.dtype(self.dtype)), self.n_features)
        return pa.schema([(c, features if c == FEATURES else pa.null()) for c in self.columns])

    def select(self, columns: Sequence[str]) -> PartitionReader:
        return replace(self, columns=tuple(columns))

    def __call__(self, part: Any, number: int) -> Iterable[Batch]:
        name = f"Dask partition {number}"
        places = self.places or {column: column for column in self.columns}
        columns = {column: part[places[column]] for column in self.columns}
        try:
            if FEATURES in columns:
                X = _as_numbers(columns[FEATURES], self.dtype)
                columns[FEATURES] = check_cells(X, "the matrix")
            table = matrix_table(columns, self.columns)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} cannot be read: {error}") from error
        return slices(table, name, number)


def _as_numbers(part: Any, dtype: str) -> Any:
    if hasattr(part, "to_numpy"):
        return part.to_numpy(dtype=dtype, na_value=np.nan)
    if hasattr(part, "toarray"):
        raise TypeError("chunks are sparse matrices; only dense ones are read")
    return np.asarray(part, dtype=dtype)


def collection_source(client: Any, **collections: Any) -> DaskSource:
    """Collections of one value per row, and one matrix, as a source; None ones are left out."""
    given = {name: c for name, c in collections.items() if c is not None}
    for name, collection in given.items():
        if not is_collection(collection):
            raise TypeError(
                f"The {name} must be a Dask DataFrame, Series or Array; got "
                f"{type(collection).__name__}. For rows in memory take the estimator of pnuauc."
            )
    matrix = given.get(FEATURES)
    n_features = 0 if matrix is None else int(matrix.shape[1])
    reader = PartitionReader(tuple(given), None, n_features, _dtype(matrix))
    if any(hasattr(collection, "chunks") for collection in given.values()):
        return DaskSource(_from_arrays(given), reader, client)
    cut, places = _from_frames(given)
    return DaskSource(cut, replace(reader, places=places), client)


def _from_frames(given: Mapping[str, Any]) -> tuple[Callable[..., list[Any]], dict[str, Any]]:
    """(columns -> partitions, where each column is in them).

    All are put into one DataFrame: taken by itself, a column may be cut otherwise, as Dask joins
    files of which little is read.
    """
    frame: Any = None
    places: dict[str, Any] = {}
    for name, collection in given.items():
        if name == FEATURES:
            frame, places[name] = collection, list(collection.columns)
            continue
        places[name] = f"__pnuauc_{name}__"
        if frame is None:
            frame = collection.to_frame(name=places[name])
        else:
            frame = frame.assign(**{places[name]: collection})

    def cut(columns: Sequence[str]) -> list[Any]:
        wanted = [places[name] for name in columns]
        names = [n for place in wanted for n in (place if isinstance(place, list) else [place])]
        return list(frame[names].to_delayed())

    return cut, places


def _from_arrays(given: Mapping[str, Any]) -> Callable[..., list[Any]]:
    """columns -> partitions, each a dict with a piece of every collection."""
    chunked = _aligned(
        {n: c if hasattr(c, "chunks") else c.to_dask_array() for n, c in given.items()}
    )
    parts = {name: list(collection.to_delayed().ravel()) for name, collection in chunked.items()}
    counts = {name: len(found) for name, found in parts.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} {n}" for name, n in counts.items())
        raise ValueError(
            f"Collections that belong together have different numbers of partitions ({found}); "
            "take them from one DataFrame, or rechunk them."
        )

    def cut(columns: Sequence[str]) -> list[Any]:
        rows = zip(*(parts[name] for name in columns), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    return cut


def is_collection(value: Any) -> bool:
    """Whether Dask holds it in partitions."""
    return hasattr(value, "to_delayed") and (hasattr(value, "chunks") or hasattr(value, "_meta"))


def feature_names(X: Any) -> list[str] | None:
    """Names of a DataFrame's columns, where all are text, as scikit-learn keeps them."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _aligned(given: dict[str, Any]) -> dict[str, Any]:
    """Arrays in the row chunks of the first, whose sizes are known, and one chunk of columns."""
    cut = None
    out = {}
    for name, collection in given.items():
        if collection.ndim == 2 and len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        if cut is not None and collection.chunks[0] != cut and not np.isnan(cut).any():
            collection = collection.rechunk({0: cut})
        cut = collection.chunks[0] if cut is None else cut
        out[name] = collection
    return out


def _dtype(matrix: Any) -> str:
    """float32 where every column is; float64 otherwise."""
    if matrix is None:
        return "float64"
    kinds = [matrix.dtype] if hasattr(matrix, "chunks") else list(matrix.dtypes)
    return "float32" if all(kind == np.float32 for kind in kinds) else "float64"
