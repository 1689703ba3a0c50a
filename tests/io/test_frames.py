"""Tests of io/frames."""

from __future__ import annotations

import datetime as dt
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy import sparse

from pnuauc.exceptions import InputError
from pnuauc.io import (
    as_table,
)
from pnuauc.io.frames import array_of, check_names, plain_types


def test_names_that_occur_twice_are_shown_up_to_five():
    with pytest.raises(InputError, match="named 'a', 'b', 'c', 'd', 'e'; rename"):
        check_names([*"abcdefabcdef"])
    check_names([*"abc"])


def test_times_that_are_missing_among_other_values_are_missing():
    """NaT became the word: pandas gives it an isoformat, numpy a type of its own."""
    values = [
        1,
        "a",
        pd.NaT,
        pd.NA,
        None,
        np.datetime64("NaT"),
        np.float32("nan"),
        dt.date(2024, 1, 2),
    ]
    expected = ["1", "a", None, None, None, None, None, "2024-01-02"]
    assert array_of(values).to_pylist() == expected
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    assert as_table(frame).column("c").to_pylist() == expected


def test_matrices_and_batches_are_tables():
    thin = sparse.coo_matrix([[1.0, 0.0], [0.0, 2.0]])
    assert as_table(thin).format == "csr"
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})
    assert as_table(batch).to_pydict() == {"a": [1, 2]}
    assert as_table(np.array([[1, 2], [3, 4]])).to_pydict() == {"x0": [1, 3], "x1": [2, 4]}
    with pytest.raises(InputError, match="more than one column named 'a'"):
        as_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(InputError, match="more than one column named 'a'"):
        as_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InputError, match="A list is not a table"):
        as_table([1, 2])


def test_values_of_several_types_in_one_column_are_text():
    import decimal
    import fractions

    values = [1, "a", None, float("nan"), 2.5, True, np.int64(3), fractions.Fraction(1, 2),
              decimal.Decimal("1.50")]  # fmt: skip
    assert array_of(values).to_pylist() == [
        "1", "a", None, None, "2.5", "True", "3", "1/2", "1.50"
    ]  # fmt: skip
    with pytest.raises(InputError, match="Column 'c' holds a dict"):
        array_of([1, "a", {}], "c")
    with pytest.raises(InputError, match="two dimensions"):
        as_table(np.arange(3))


def test_intervals_of_pandas_and_numbers_beyond_64_bits_are_text():
    frame = pd.DataFrame({"cut": pd.cut([0.5, 1.5, np.nan], [0, 1, 2]), "big": [2**70, 1, None]})
    table = as_table(frame)
    assert table.column("cut").to_pylist() == ["(0.0, 1.0]", "(1.0, 2.0]", None]
    assert table.column("big").to_pylist() == [str(2**70), "1", None]


def test_types_that_arrow_stores_but_cannot_compute_with():
    words, halves = ["a", None, "b"], [np.float16(1.5), None, np.float16(2)]
    arrays = {
        "view": pa.array(words, pa.string_view()), "half": pa.array(halves, pa.float16()),
        "runs": pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", "b"])),
        "half runs": pa.RunEndEncodedArray.from_arrays(
            [2, 3], pa.array(np.array([1.5, 2.0], np.float16))
        ),
        "shelf": pa.array(words).dictionary_encode(), "plain": pa.array([1, 2, 3]),
        "bytes": pa.array([b"a", None, b"b"], pa.binary_view()),
    }  # fmt: skip
    expected = {
        "view": words, "half": [1.5, None, 2.0], "runs": ["a", "a", "b"],
        "half runs": [1.5, 1.5, 2.0], "shelf": words, "plain": [1, 2, 3],
        "bytes": [b"a", None, b"b"],
    }  # fmt: skip
    try:
        pa.compute.run_end_decode(arrays["half runs"])
    except pa.ArrowNotImplementedError:  # not before pyarrow 19
        del arrays["half runs"], expected["half runs"]
    for made in (pa.table(arrays), pa.RecordBatch.from_pydict(arrays)):
        plain = plain_types(made)
        assert type(plain) is type(made)
        assert plain.to_pydict() == expected
        kinds = [str(plain.schema.field(name).type) for name in ("view", "half", "plain")]
        assert kinds == ["large_string", "float", "int64"]
        assert pa.types.is_dictionary(plain.schema.field("shelf").type)
    untouched = pa.table({"a": [1]})
    assert plain_types(untouched) is untouched


class Marked(pa.ExtensionType):
    """A type of somebody else's, stored as ``storage``."""

    def __init__(self, storage):
        super().__init__(storage, "somebody.marked")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls(storage_type)


def test_extension_types_are_what_they_store():
    def stored(kind, values, storage):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, storage))

    ids = [uuid.UUID(int=7), None, uuid.UUID(int=2**100)]
    arrays = {
        "flag": stored(pa.bool8(), [1, None, 0], pa.int8()),
        "id": stored(pa.uuid(), [v and v.bytes for v in ids], pa.binary(16)),
        "number": stored(Marked(pa.int32()), [5, None, 6], pa.int32()),
        "half": stored(Marked(pa.float16()), np.array([1.5, 2.0, 2.5], np.float16), pa.float16()),
        "views": pa.DictionaryArray.from_arrays(
            [1, None, 0], pa.array(["a", "b"], pa.string_view())
        ),
    }
    expected = {
        "flag": [1, None, 0], "id": [v and str(v) for v in ids], "number": [5, None, 6],
        "half": [1.5, 2.0, 2.5],
        "views": ["b", None, "a"],
    }  # fmt: skip
    kinds = ["int8", "large_string", "int32", "float"]
    for made in (pa.table(arrays), pa.RecordBatch.from_pydict(arrays)):
        plain = plain_types(made)
        assert type(plain) is type(made)
        assert plain.to_pydict() == expected
        assert [str(kind) for kind in plain.schema.types[:4]] == kinds
        assert pa.types.is_dictionary(plain.schema.types[4])


def test_frames_of_every_library():
    data = {"a": [1.0, 2.0], "b": ["x", "y"]}
    for frame in (
        pd.DataFrame(data),
        pl.DataFrame(data),
        pl.LazyFrame(data),
        pa.table(data),
        pa.RecordBatch.from_pydict(data),
    ):
        assert as_table(frame).to_pydict() == data
    assert as_table(np.arange(6.0).reshape(3, 2)).column_names == ["x0", "x1"]
    assert as_table(sparse.eye(3)).shape == (3, 3)
