"""Frames of any library -> pyarrow tables of plain types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from pnuauc._utils.extras import need
from pnuauc.exceptions import InputError
from pnuauc.io.cells import is_number, is_text, pa, pc

#: Values that are text beside others, as they are or by the names of their types.
_PLAIN = (str, int, float, bool, np.generic)
_SPELLED = {"Decimal", "Fraction", "UUID", "Timedelta", "Period"}


def as_table(data: Any) -> Any:
    """Any pandas, polars, pyarrow or narwhals frame, or a numpy array -> ``pyarrow.Table``.

    numpy columns are named x0, x1, ...; one-dimensional arrays are refused. scipy.sparse
    matrices come back as CSR, unchanged in meaning. A pandas index is left behind.

    Examples
    --------
    >>> import numpy as np
    >>> as_table(np.eye(2)).column_names
    ['x0', 'x1']
    """
    if isinstance(data, pa.Table):
        table = data
    elif isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    elif sparse.issparse(data):
        return data.tocsr()
    elif isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise InputError(
                f"A table needs two dimensions, got an array of shape {data.shape}. Reshape your "
                "data: one row is array.reshape(1, -1)."
            )
        if np.iscomplexobj(data):
            raise InputError("Complex data not supported: a table holds real numbers.")
        table = pa.table({f"x{j}": array_of(column) for j, column in enumerate(data.T)})
    elif type(data).__module__.startswith("pandas") and hasattr(data, "columns"):
        table = _pandas(data)
    else:
        table = _foreign_frame(data)
    check_names(table.column_names)
    return plain_types(table)


def needs_encoding(data: Any) -> bool:
    """Whether data is a frame with a column that is neither of numbers nor of booleans."""
    if isinstance(data, np.ndarray) or sparse.issparse(data) or not hasattr(data, "columns"):
        return False
    kinds: Any = getattr(data, "dtypes", None)
    if kinds is None:  # pyarrow has a list of types, narwhals types by name
        kinds = data.schema.types if hasattr(data.schema, "types") else data.schema.values()
    plain = ("int", "uint", "float", "double", "halffloat", "decimal", "bool", "sparse[")
    return not all(str(kind).lower().startswith(plain) for kind in kinds)


def check_names(names: Sequence[str], path: Any = "the table") -> None:
    """Refuse repeated column names."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        shown = ", ".join(repr(name) for name in twice[:5])
        raise InputError(f"'{path}' has more than one column named {shown}; rename them.")


def _pandas(data: Any) -> Any:
    """Column by column: the index stays behind, and names need not be text."""
    names = [str(name) for name in data.columns]
    check_names(names)
    columns = []
    for j, name in enumerate(names):
        series = data.iloc[:, j]
        kind = str(series.dtype)
        if kind.startswith("period["):
            series = series.dt.to_timestamp()
        elif kind.startswith("Sparse["):
            series = series.sparse.to_dense()
        elif "interval" in str(series.cat.categories.dtype if kind == "category" else kind):
            series = series.astype("string")  # what pandas.cut gives
        try:
            columns.append(pa.array(series, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            columns.append(_mixed(series, name, error))
    return pa.Table.from_arrays(columns, names=names)


def _mixed(values: Iterable[Any], name: str, error: Exception) -> Any:
    """Numbers, text and the like in one column: text, as any file would have them."""
    out: list[str | None] = []
    for value in values:
        kind = type(value).__name__
        gap = isinstance(value, (float, np.generic)) and value != value
        if value is None or gap or kind in {"NAType", "NaTType"}:  # NaT has an isoformat too
            out.append(None)
        elif isinstance(value, _PLAIN) or hasattr(value, "isoformat") or kind in _SPELLED:
            out.append(str(value))
        else:
            first = str(error).strip().splitlines()[0]
            raise InputError(
                f"Column '{name}' holds a {kind} among its values ({first})."
            ) from error
    return pa.array(out, pa.large_string())


def array_of(values: Any, name: str = "") -> Any:
    """An arrow array of Python or numpy values; mixed ones become text."""
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError, ValueError) as error:
        return _mixed(values, name, error)


def joint_type(a: Any, b: Any) -> Any | None:
    """The type that holds the values of both, or None."""
    types = pa.types
    if a == b or types.is_null(b):
        return a
    if types.is_null(a):
        return b
    if types.is_dictionary(a) or types.is_dictionary(b):
        values = joint_type(*(t.value_type if types.is_dictionary(t) else t for t in (a, b)))
        return None if values is None else pa.dictionary(pa.int32(), values)
    if is_text(a) and is_text(b):
        return pa.large_string()
    if types.is_integer(a) and types.is_integer(b):
        return pa.int64()
    if is_number(a) and is_number(b):
        return pa.float64()
    if all(types.is_timestamp(t) or types.is_date(t) for t in (a, b)):
        zones = {t.tz for t in (a, b) if types.is_timestamp(t)}
        return pa.timestamp("us", zones.pop()) if len(zones) == 1 else None
    return None


def _foreign_frame(data: Any) -> Any:
    narwhals = need("narwhals")
    try:
        frame = narwhals.from_native(data)
    except TypeError:
        raise InputError(
            f"A {type(data).__name__} is not a table; pass a pandas, polars or pyarrow frame, a "
            "numpy array or a scipy.sparse matrix."
        ) from None
    if hasattr(frame, "collect"):
        frame = frame.collect()
    names = [str(name) for name in frame.columns]
    check_names(names)
    try:
        return frame.to_arrow().rename_columns(names)
    except (pa.ArrowException, TypeError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"The frame holds values that Arrow cannot hold ({first}).") from error


def plain_types(data: Any) -> Any:
    """A table or record batch without the types that arrow stores but cannot compute with.

    Views, half floats and short decimals get wider types, extension types what they store, UUIDs
    text. Times that Python cannot hold are refused here, before anything else meets them.
    """
    for j, kind in enumerate(data.schema.types):
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            _check_times(data.schema.names[j], data.column(j))
    if all(map(_is_plain, data.schema.types)):
        return data
    columns = [_plain(data.column(j)) for j in range(data.num_columns)]
    maker = pa.Table if isinstance(data, pa.Table) else pa.RecordBatch
    return maker.from_arrays(columns, names=data.schema.names)


def _check_times(name: str, values: Any) -> None:
    kind = values.type
    if getattr(kind, "tz", None):
        try:
            pa.scalar(0, kind).as_py()
        except (ValueError, LookupError):
            raise InputError(
                f"Column '{name}' has the time zone {kind.tz[:60]!r}, which is not known here; "
                "write its times in UTC, or leave the column out.",
                about="drop",
            ) from None
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    ends = pc.min_max(values.cast(whole)).as_py().values()
    try:
        for end in ends:
            pa.scalar(end, whole).cast(kind).as_py()
    except OverflowError:
        raise InputError(
            f"Column '{name}' holds a time outside of the years 1 to 9999, or a duration of more "
            "than 2.7 million years; make such cells empty, or leave the column out.",
            about="drop",
        ) from None


def _is_plain(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_plain(kind.value_type) and not pa.types.is_nested(kind.value_type)
    return not (
        isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_float16(kind)
        or pa.types.is_decimal32(kind)
        or pa.types.is_decimal64(kind)
        or pa.types.is_run_end_encoded(kind)
    )


def _plain(values: Any) -> Any:
    if isinstance(values, pa.ChunkedArray):
        chunks = values.unify_dictionaries().chunks or [values.combine_chunks()]
        return pa.chunked_array([_plain(chunk) for chunk in chunks])
    kind = values.type
    if _is_plain(kind):
        return values
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            texts = [None if v is None else str(v) for v in values.to_pylist()]
            return pa.array(texts, pa.large_string())
        return _plain(values.storage)
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(values))
    if pa.types.is_dictionary(kind):
        # a dictionary says that the values are categories: it stays one, of plain text
        if pa.types.is_nested(kind.value_type):  # which arrow cannot decode
            return values.dictionary.take(values.indices)
        return pa.DictionaryArray.from_arrays(values.indices, _plain(values.dictionary))
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_decimal(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    return values.cast(pa.float32())
