"""Tables in: every format and frame gives the same table; bad files give one sentence."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from pnuauc.exceptions import InputError
from pnuauc.io import ReadOptions, as_table, read_table
from pnuauc.io._tables import column_names, iter_batches

TABLE = pa.table(
    {
        "size": [1.5, 2.0, None, 4.0],
        "shop": ["a", None, "b", "a"],
        "day": pa.array(
            np.array(["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"], "M8[s]")
        ),
        "y": pa.array([1, 0, None, None], pa.int64()),
    }
)


def write(table, path):
    kind = path.suffix
    if kind == ".parquet":
        pa.parquet.write_table(table, path)
    elif kind == ".feather":
        pa.feather.write_feather(table, path)
    elif kind == ".arrow":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        delimiter = "\t" if kind == ".tsv" else ","
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter=delimiter))
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".feather", ".arrow"])
def test_every_format_reads_the_same(tmp_path, ending):
    path = write(TABLE, tmp_path / f"table{ending}")
    whole = read_table(path)
    assert whole.column_names == TABLE.column_names == column_names(path)
    assert whole.to_pydict() == TABLE.to_pydict()
    batches = list(iter_batches(path, ["y", "size"], batch_rows=3))
    assert [b.num_rows for b in batches] == [3, 1]
    streamed = pa.Table.from_batches(batches).to_pydict()
    if ending in {".csv", ".tsv"}:  # cells as they are written
        assert streamed == {"y": ["1", "0", "", ""], "size": ["1.5", "2", "", "4"]}
        floats = iter_batches(path, ["y", "size"], floats=["y", "size"])
        streamed = pa.Table.from_batches(list(floats)).to_pydict()
    assert streamed == TABLE.select(["y", "size"]).to_pydict()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    path.write_text(TABLE_TEXT.replace(",", delimiter))
    assert read_table(path).column_names == ["a", "b", "y"]


TABLE_TEXT = "a,b,y\n1,x,1\n2,y,\n3,x,0\n"


def test_gzip(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(TABLE_TEXT.encode()))
    assert read_table(path).to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "x"], "y": [1, None, 0]}
    assert sum(b.num_rows for b in iter_batches(path)) == 3


def test_latin1_needs_its_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("name,y\nZoë,1\nUwe,0\n".encode("latin-1"))
    with pytest.raises(InputError, match="its encoding must be given"):
        read_table(path)
    table = read_table(path, ReadOptions(encoding="latin-1"))
    assert table.column("name").to_pylist() == ["Zoë", "Uwe"]


def test_libsvm_whole_and_streamed(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.random((50, 12)) * (rng.random((50, 12)) < 0.5))
    y = rng.integers(-1, 2, 50)
    path = tmp_path / "t.libsvm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    read, labels = read_table(path)
    np.testing.assert_allclose(read.toarray(), X.toarray(), atol=1e-12)
    np.testing.assert_array_equal(labels, y)
    parts = list(iter_batches(path, batch_rows=7, n_features=12))
    assert parts[0][0].shape == (7, 12)
    np.testing.assert_allclose(sparse.vstack([p[0] for p in parts]).toarray(), X.toarray())


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


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1, 2], "not a table"),
        (np.arange(3.0), "two dimensions"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column|duplicate"),
    ],
)
def test_frames_that_are_none(bad, message):
    with pytest.raises(ValueError, match=message):
        as_table(bad)


BAD_FILES = {
    "empty.csv": (b"", "is empty"),
    "header.csv": (b"a,b,y\n", "no rows"),
    "ragged.csv": (b"a,b,y\n1,2,3\n1,2\n", "unequal length"),
    "twice.csv": (b"a,a,y\n1,2,3\n", "more than one column named 'a'"),
    "table.xyz": (b"a,b\n1,2\n", "not an ending"),
    "no_ending": (b"a,b\n1,2\n", "no ending"),
    "fake.parquet": (b"PAR1 this is not parquet at all", "cannot be read as Parquet"),
    "cut.feather": (b"ARROW1\0\0 cut", "cannot be read as Arrow"),
    "bad.libsvm": (b"1 1:2 nonsense\n", "not LIBSVM"),
    "latin.csv": ("a,y\né,1\nü,0\n".encode("latin-1"), "not UTF-8"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_one_sentence(tmp_path, name):
    content, message = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError):
        list(iter_batches(path)) or read_table(path)


def test_no_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="a folder"):
        read_table(tmp_path)


def rows_or_refusal(path):
    """Rows read, at least 0, or None where the file is refused in one sentence; never a crash."""
    table = None
    try:
        table = read_table(path)
    except InputError as refusal:  # anything else fails the test
        told = str(refusal)
    if table is None:
        assert told.strip()
        assert "\n" not in told
        return None
    if path.suffix != ".libsvm":
        return table.num_rows
    X, y = table
    assert X.shape[0] == len(y)
    return len(y)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    content=st.binary(max_size=300),
    ending=st.sampled_from([".csv", ".parquet", ".arrow", ".libsvm"]),
)
@example(content=b"0", ending=".libsvm")  # a label alone is a row of zeros
def test_any_bytes_read_or_are_refused_in_one_sentence(tmp_path, content, ending):
    path = tmp_path / f"fuzz{ending}"
    path.write_bytes(content)
    rows = rows_or_refusal(path)
    assert rows is None or rows <= len(content)  # a row takes a byte at the least
    if (content, ending) == (b"0", ".libsvm"):
        assert rows == 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(where=st.integers(0, 10**6), value=st.integers(0, 255))
def test_damaged_parquet_reads_or_is_refused(tmp_path, where, value):
    buffer = io.BytesIO()
    pa.parquet.write_table(TABLE, buffer)
    data = bytearray(buffer.getvalue())
    data[where % len(data)] = value
    path = tmp_path / "fuzz.parquet"
    path.write_bytes(bytes(data))
    rows = rows_or_refusal(path)
    assert rows is None or rows >= 0  # a damaged count of rows is a count all the same
