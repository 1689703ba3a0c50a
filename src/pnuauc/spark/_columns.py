"""Columns of a Spark DataFrame under the names of ``_sources._matrix``, as arrow gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pnuauc._extras import need
from pnuauc._sources._matrix import FEATURES, as_matrix, check_cells
from pnuauc._sources._port import Batch
from pnuauc.exceptions import InputError
from pnuauc.io._arrow import pa
from pnuauc.spark._source import SparkSource

__all__ = ["feature_column", "frame_source", "named", "plain", "score_column"]


@dataclass(frozen=True)
class ArrowReader:
    """The record batches of a partition, checked."""

    def __call__(self, batches: Iterable[Any], number: int) -> Iterator[Batch]:
        name, first = f"Spark partition {number}", 0
        for table in batches:
            if FEATURES in table.schema.names:
                check_cells(as_matrix(table.column(FEATURES), name), name)
            yield Batch(table, name, first, number)
            first += table.num_rows


def frame_source(frame: Any, columns: Mapping[str, Any]) -> SparkSource:
    """Some columns of a DataFrame as a source: {name in ``_sources._matrix``: Column}."""
    given = {name: column.alias(name) for name, column in columns.items()}
    chosen = frame.select(*given.values())
    schema = pa.schema([(name, pa.null()) for name in given])  # only names are asked for
    return SparkSource(chosen, schema, ArrowReader())


def feature_column(frame: Any, features: Any) -> Any:
    """One column of arrays: of an array or vector column, or of several columns of numbers.

    Several columns become arrays in Spark itself: one array passes to Python twice as fast.
    """
    sf = need("pyspark.sql.functions", "spark")
    if isinstance(features, str):
        kind = _type_of(frame, features)
        if type(kind).__name__ == "VectorUDT":
            return need("pyspark.ml.functions", "spark").vector_to_array(named(features))
        if kind.typeName() != "array" or not _is_number(kind.elementType):
            raise InputError(
                f"Column {features!r} is of type {kind.simpleString()}; features are an array of "
                "numbers, a vector, or a list of columns."
            )
        single = kind.elementType.typeName() == "float"
        return named(features).cast("array<float>" if single else "array<double>")
    kinds = {name: _type_of(frame, name) for name in features}
    for name, kind in kinds.items():
        if not _is_number(kind):
            raise InputError(
                f"Column {name!r} is of type {kind.simpleString()}, not a number; encode it first, "
                "for example with StringIndexer and OneHotEncoder."
            )
    target = "float" if all(k.typeName() == "float" for k in kinds.values()) else "double"
    return sf.array(*(named(name).cast(target) for name in features))


def score_column(frame: Any, name: str) -> Any:
    """One number a row: a number, or the positive class's place of a vector of two."""
    if type(_type_of(frame, name)).__name__ == "VectorUDT":
        return need("pyspark.ml.functions", "spark").vector_to_array(named(name))[1]
    return named(name).cast("double")


def named(name: str) -> Any:
    """A column by its name, whatever characters are in it."""
    quoted = name.replace("`", "``")
    return need("pyspark.sql.functions", "spark").col(f"`{quoted}`")


def plain(value: Any) -> Any:
    """A parameter as JSON keeps it and pyspark can print it: a tuple becomes a list."""
    return list(value) if isinstance(value, tuple) else value


def _type_of(frame: Any, name: str) -> Any:
    if name not in frame.columns:
        known = ", ".join(frame.columns[:20])
        raise InputError(f"There is no column {name!r}; the DataFrame has {known}.")
    return frame.schema[name].dataType


def _is_number(kind: Any) -> bool:
    names = {"double", "float", "byte", "short", "integer", "long", "boolean"}
    return kind.typeName() in names or kind.typeName().startswith("decimal")
