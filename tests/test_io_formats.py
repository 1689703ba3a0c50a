"""The table of formats by types of column: fit on a file, score the same file, get the same scores.

Every cell of the table is one round trip: write, read, encode, fit, stream the file through the
model. The scores must be those of the rows in memory, and those that Parquet gives.
"""

from __future__ import annotations

import bz2
import datetime as dt
import decimal
import gzip
import io
import json
import lzma
import os
import struct
import subprocess
import sys
import threading
import uuid
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from pnuauc import AUCClassifier
from pnuauc.exceptions import InputError
from pnuauc.io import (
    OutputChoice,
    ReadOptions,
    TableEncoder,
    TableModel,
    as_table,
    read_table,
    score_file,
)
from pnuauc.io._columns import CellError
from pnuauc.io._formats import spooled
from pnuauc.io._tables import column_names, iter_batches, read_cells

N = 60
RNG = np.random.default_rng(0)
Y = np.where(np.arange(N) < 24, np.arange(N) % 2, -1)
SIGNAL = RNG.normal(size=N) + 2.0 * (Y == 1)
DAYS = np.datetime64("2024-01-20") + np.arange(N) * 3 + np.rint(SIGNAL).astype(int)
STAMPS = DAYS.astype("M8[us]") + np.arange(N) * np.timedelta64(5_000_001, "ms")


def some(values, missing):
    return [None if k % 7 == 3 and missing else v for k, v in enumerate(values)]


def dates(form):
    return [day.item().strftime(form) for day in DAYS]


TYPES = {
    "integers": pa.array(np.rint(10 * SIGNAL).astype(np.int32)),
    "integers with gaps": pa.array(some(np.rint(10 * SIGNAL).astype(int).tolist(), True)),
    "big integers": pa.array((SIGNAL * 1e6).astype(np.int64) + 2**52),
    "floats": pa.array(SIGNAL),
    "floats with gaps": pa.array(some(SIGNAL.tolist(), True)),
    "half floats": pa.array(SIGNAL.astype(np.float16)),
    "decimals": pa.array([decimal.Decimal(f"{v:.3f}") for v in SIGNAL]),
    "booleans": pa.array(SIGNAL > 0.5),
    "booleans with gaps": pa.array(some((SIGNAL > 0.5).tolist(), True)),
    "categories": pa.array(np.where(SIGNAL > 1, "big", np.where(SIGNAL > 0, "mid", "small"))),
    "categories with gaps": pa.array(some(np.where(SIGNAL > 1, "big", "small").tolist(), True)),
    "categories with blanks": pa.array(np.where(SIGNAL > 1, " big", "small ")),
    "empty strings": pa.array(np.where(SIGNAL > 1, "big", np.where(SIGNAL > 0, "", "small"))),
    "dictionary": pa.array(np.where(SIGNAL > 1, "big", "small")).dictionary_encode(),
    "free text": pa.array([f"row {k % 29} says {'win' if v > 1 else 'x'}{k % 41}"
                           for k, v in enumerate(SIGNAL)]),
    "days": pa.array(DAYS.astype("M8[D]")),
    "timestamps": pa.array(STAMPS),
    "timestamps with gaps": pa.array(some(STAMPS.tolist(), True), pa.timestamp("us")),
    "UTC": pa.array(STAMPS.tolist(), pa.timestamp("us", tz="UTC")),
    "Berlin": pa.array(STAMPS.tolist(), pa.timestamp("us", tz="Europe/Berlin")),
    "clock times": pa.array([dt.time(int(h), k % 60, 7) for k, h in enumerate(8 + 2 * SIGNAL)]),
    "durations": pa.array([dt.timedelta(hours=float(h), days=k % 3)
                           for k, h in enumerate(12 + np.rint(SIGNAL))]),
    "numbers as text": pa.array([f"{v:+.4f} " for v in SIGNAL]),
    "decimal commas": pa.array([f"{v:.3f}".replace(".", ",") for v in SIGNAL]),
    "thousands, commas": pa.array([f"{1000 * abs(v):,.2f}" for v in SIGNAL]),
    "thousands, dots": pa.array(
        [f"{1000 * abs(v):,.2f}".translate(str.maketrans(",.", ".,")) for v in SIGNAL]),
    "percents": pa.array([f"{v:.1f} %" for v in SIGNAL]),
    "money": pa.array([f"${1000 * abs(v):,.2f}" for v in SIGNAL]),
    "day first": pa.array(dates("%d/%m/%Y")),
    "month first": pa.array(dates("%m/%d/%Y")),
    "day first, dots": pa.array(dates("%d.%m.%Y")),
    "months in words": pa.array(dates("%d %b %Y")),
    "yes and no": pa.array(np.where(SIGNAL > 0.5, "Yes", "no")),
    "zip codes": pa.array([f"{1067 + 900 * (k % 12) * int(v > 0):05d}"
                           for k, v in enumerate(SIGNAL)]),
    "gaps in words": pa.array(some([f"{v:.3f}" for v in SIGNAL], True)).fill_null("N/A"),
}  # fmt: skip


def table_of(kind):
    return pa.table(
        {
            "id": [f"{k:08d}" for k in range(N)],
            "x": TYPES[kind],
            "noise": np.round(RNG.normal(size=N), 6),
            "y": pa.array([None if v < 0 else int(v) for v in Y]),
        }
    )


TABLES = {kind: table_of(kind) for kind in TYPES}


def frame_of(table):
    return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get, date_as_object=True)


def write_csv(table, path, **options):
    frame_of(table).to_csv(path, index=False, **options)


def write_lines(table, path):
    rows = [json.dumps(row, default=str) for row in table.to_pylist()]
    path.write_text("\n".join(rows) + "\n")


def write_excel(table, path):
    book = openpyxl.Workbook()
    book.active.append(table.column_names)
    for row in table.to_pylist():
        cells = [row[name] for name in table.column_names]
        # a workbook has no time zones and no halves of floats
        cells = [str(c) if getattr(c, "tzinfo", None) or isinstance(c, dt.timedelta)
                 else float(c) if isinstance(c, (np.floating, decimal.Decimal)) else c
                 for c in cells]  # fmt: skip
        book.active.append(cells)
    book.save(path)


def write_polars(table, path):
    plain = as_table(table)
    frame = pl.from_arrow(plain)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path)


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=17)


FORMATS = {
    "csv": ("t.csv", write_csv),
    "semicolons": ("t.csv", lambda table, path: write_csv(table, path, sep=";")),
    "tsv.gz": ("t.tsv.gz", lambda table, path: write_csv(table, path, sep="\t")),
    "utf-16": ("t.csv", lambda table, path: write_csv(table, path, encoding="utf-16")),
    "json lines": ("t.jsonl", write_lines),
    "excel": ("t.xlsx", write_excel),
    "parquet": ("t.parquet", lambda table, path: pa.parquet.write_table(table, path)),
    "feather": ("t.feather", lambda table, path: pa.feather.write_feather(table, path)),
    "arrow stream": ("t.arrow", write_stream),
    "polars arrow": ("t.arrow", write_polars),
    "polars parquet": ("t.parquet", write_polars),
}


def fitted(table):
    features = table.drop_columns(["id", "y"])
    encoder = TableEncoder().fit(features)
    X = encoder.transform(features)
    ranker = AUCClassifier(prior=0.3, n_centers=8, random_state=0).fit(X, Y)
    return TableModel.from_fitted(encoder, ranker, X, {"label": "y", "ids": ["id"]})


@pytest.fixture(scope="module")
def expected():
    """Scores of the typed table in memory, by type of column."""
    return {kind: fitted(table).score(table) for kind, table in TABLES.items()}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form", FORMATS)
def test_fit_then_score_the_same_file(tmp_path, expected, form, kind):
    name, write = FORMATS[form]
    path = tmp_path / name
    write(TABLES[kind], path)
    table = read_cells(path)
    model = fitted(table)
    score_file(model, path, tmp_path / "out.parquet")
    out = read_table(tmp_path / "out.parquet")
    scores = out.column("score").to_numpy()
    np.testing.assert_allclose(scores, model.score(table), rtol=0, atol=1e-9)
    assert out.column("id").to_pylist() == TABLES[kind].column("id").to_pylist()
    # the same model whatever the format; half floats are written with few digits, clocks of
    # workbooks in fractions of a day
    loose = {"half floats": 2e-3, "clock times": 1e-6}.get(kind, 1e-8)
    np.testing.assert_allclose(scores, expected[kind], rtol=0, atol=loose)


@pytest.mark.parametrize("kind", TYPES)
def test_a_model_scores_every_format_alike(tmp_path, expected, kind):
    """Fitted on Parquet, scored on CSV and JSON lines: what a cell says counts, not its type."""
    model = fitted(TABLES[kind])
    for form in ("csv", "json lines"):
        name, write = FORMATS[form]
        write(TABLES[kind], tmp_path / name)
        score_file(model, tmp_path / name, tmp_path / "out.csv")
        scores = read_table(tmp_path / "out.csv").column("score").to_numpy()
        loose = 2e-3 if kind == "half floats" else 1e-8
        np.testing.assert_allclose(scores, expected[kind], rtol=0, atol=loose)


def kinds_of(cells, **options):
    table = pa.table({"c": list(cells), "n": np.arange(len(cells)) % 7})
    encoder = TableEncoder(**options).fit(table)
    found = [c for c in encoder.columns_ if c.name == "c"]
    return found[0] if found else None, " ".join(encoder.notes_), encoder, table


@pytest.mark.parametrize(
    ("cells", "kind", "values", "note"),
    [
        (["1,5", "2,25", "3"], "number", [1.5, 2.25, 3], "numbers with a decimal comma"),
        (["1.234,5", "7,1", "0,5"], "number", [1234.5, 7.1, 0.5], "decimal comma"),
        (["1,234", "567", "12,001"], "number", [1234, 567, 12001], "thousands marks"),
        (["1 234,5", "5,5", "-3"], "number", [1234.5, 5.5, -3], "decimal comma"),
        (["1'000.5", "3", "2"], "number", [1000.5, 3, 2], "thousands marks"),
        (["12%", "3.5 %", "-1%"], "number", [0.12, 0.035, -0.01], "percents"),
        (["€ 5,20", "€ 1.000,00", "-€3,00"], "number", [5.2, 1000, -3], "amounts of money"),
        (["$1,000.00", "-$5", "+$3.5"], "number", [1000, -5, 3.5], "amounts of money"),
        (["+5", " -3", "7 "], "number", [5, -3, 7], None),
        (["1e3", ".5", "-2."], "number", [1000, 0.5, -2], None),
        (["13:45", "1:05 pm", "12:00 am"], "number", [49500, 47100, 0], "times of the day"),
        (["1 days 00:00:01", "-1 days +23:00:00", "PT1H"], "number", [86401, -3600, 3600],
         "durations"),
        (["Yes", "no", "YES"], "boolean", [1, 0, 1], "yes or no"),
        (["t", "f", "T"], "boolean", [1, 0, 1], "yes or no"),
    ],
)  # fmt: skip
def test_how_cells_are_written(cells, kind, values, note):
    column, notes, encoder, table = kinds_of(cells)
    assert column.kind == kind
    trees = encoder.transform(table, view="trees")[:, encoder.groups("trees")["c"]]
    np.testing.assert_allclose(trees[:, 0], values, rtol=1e-12)
    assert (note in notes) if note else "'c'" not in notes


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["31/01/2024", "05/02/2024"], "2024-02-05"),
        (["01/31/2024", "02/05/2024"], "2024-02-05"),
        (["31.01.2024", "05.02.2024"], "2024-02-05"),
        (["01.02.2024", "05.02.2024"], "2024-02-05"),
        (["31-Jan-2024", "5-Feb-2024"], "2024-02-05"),
        (["January 31, 2024", "Feb 5, 2024"], "2024-02-05"),
        (["2024/01/31", "2024/02/05"], "2024-02-05"),
        (["20 Jan 2024 10:00 PM", "5 Feb 2024 12:00 AM"], "2024-02-05"),
        (["2024-01-31T05:00:00Z", "2024-02-05T02:00:00+02:00"], "2024-02-05"),
        (["31/01/24", "05/02/24"], "2024-02-05"),
    ],
)
def test_dates_in_many_clothes(cells, first):
    column, _, encoder, table = kinds_of(cells)
    assert column.kind == "date"
    days = encoder.transform(table, view="trees")[1, encoder.groups("trees")["c"][0]]
    assert days == np.datetime64(first).astype(int)


def test_whether_day_or_month_comes_first_is_asked():
    with pytest.raises(InputError, match=r"'01/02/2024'.*date_format must be 'day-first'"):
        kinds_of(["01/02/2024", "03/04/2024"])
    for given, day in (("day-first", "2024-02-01"), ("month-first", "2024-01-02")):
        _, notes, encoder, table = kinds_of(["01/02/2024", "03/04/2024"], date_format=given)
        days = encoder.transform(table, view="trees")[0, encoder.groups("trees")["c"][0]]
        assert days == np.datetime64(day).astype(int)
        assert "first, such as '01/02/2024'" in notes
    column, _, _, _ = kinds_of(["20240102", "20240304"], date_format={"c": "%Y%m%d"})
    assert (column.kind, column.form) == ("date", "%Y%m%d")
    with pytest.raises(InputError, match="says not how dates are written"):
        kinds_of(["a", "b"], date_format="dd/mm")
    with pytest.raises(InputError, match="no column 'd' to read as dates"):
        kinds_of(["a", "b"], date_format={"d": "day-first"})


def test_decimal_marks_can_be_said():
    column, _, _, _ = kinds_of(["1,5", "2,5", "3,5"], decimal=".")
    assert column.kind == "category"
    _, _, encoder, table = kinds_of(["1.234", "5.678", "12.001"], decimal=",")
    trees = encoder.transform(table, view="trees")
    assert trees[0, encoder.groups("trees")["c"][0]] == 1234
    with pytest.raises(InputError, match="decimal must be"):
        kinds_of(["1", "2"], decimal=";")


def test_one_column_with_decimal_commas_settles_the_others():
    table = pa.table({"sure": ["1,5", "2,25", "0,1"], "c": ["1.234", "5.678", "12.001"]})
    encoder = TableEncoder().fit(table)
    trees = encoder.transform(table, view="trees")
    assert trees[0, encoder.groups("trees")["c"][0]] == 1234
    assert trees[0, encoder.groups("trees")["sure"][0]] == 1.5


def test_cells_that_are_written_otherwise_count_as_missing_if_there_were_some():
    cells = ["1,5", "2,5", "?"] + ["3,5"] * 30
    column, notes, encoder, table = kinds_of(cells)
    assert column.lenient
    assert "cells such as '?' as missing" in notes
    assert np.isnan(encoder.transform(table, view="trees")[2, encoder.groups("trees")["c"][0]])
    strict, _, encoder, table = kinds_of(["1,5", "2,5", "4,5"])
    assert not strict.lenient
    with pytest.raises(CellError, match=r"'c' holds text \('x' in row 2\)"):
        encoder.transform(table.set_column(0, "c", [["1,5", "x", "2"]]))


def test_leading_zeros_are_no_numbers():
    assert kinds_of(["01234", "90210", "10115"] * 4)[0].kind == "category"
    assert kinds_of(["007", "5", "6"] * 4)[0].kind == "category"
    # one stray cell among many does not make codes of measurements
    assert kinds_of([*map(str, range(100, 350)), "05"])[0].kind == "number"


@pytest.mark.parametrize("version", ["1.2.10", "10.4.3"])
def test_versions_are_no_dates(version):
    assert kinds_of([version, "1.2.9", "1.3.4"] * 4)[0].kind == "category"


# ---------------------------------------------------------------------------- frames


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(np.arange(N)[::-1]),
        pd.Index([f"r{k}" for k in range(N)], name="x"),
        pd.MultiIndex.from_arrays([np.arange(N) % 3, np.arange(N)]),
        pd.date_range("2024-01-01", periods=N),
    ],
)
def test_the_index_of_a_frame_is_left_behind(index):
    frame = pd.DataFrame({"x": SIGNAL, "b": np.where(SIGNAL > 0, "p", "q")})
    X = TableEncoder().fit_transform(frame)
    np.testing.assert_array_equal(TableEncoder().fit_transform(frame.set_index(index)), X)
    assert as_table(frame.set_index(index)).column_names == ["x", "b"]


def test_grid_search_over_a_pipeline_with_any_index():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    from pnuauc.metrics import RoleStratifiedKFold, make_auc_scorer

    frame = pd.DataFrame({"x": SIGNAL, "b": np.where(SIGNAL > 0, "p", "q")})
    frame.index = RNG.permutation(N) + 1000
    search = GridSearchCV(
        make_pipeline(TableEncoder(), AUCClassifier(prior=0.3, n_centers=5, random_state=0)),
        {"aucclassifier__alpha": [0.1, 1.0]},
        scoring=make_auc_scorer(prior=0.3),
        cv=RoleStratifiedKFold(2),
    )
    search.fit(frame, np.where(Y < 0, np.nan, Y))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series(pd.period_range("2024-01", periods=N, freq="M")), "date"),
        (pd.Series(SIGNAL.astype(np.float16)), "number"),
        (pd.Series(pd.arrays.SparseArray(np.where(SIGNAL > 1, SIGNAL, 0.0))), "number"),
        (pd.Series([1 if k % 2 else "a" for k in range(N)], dtype=object), "category"),
        (pd.Series(np.where(SIGNAL > 0, "a", "b"), dtype="string[pyarrow]"), "category"),
        (pd.Series(SIGNAL, dtype="double[pyarrow]"), "number"),
        (pd.Series(np.where(SIGNAL > 0, "a", "b")).astype("category"), "category"),
        (pd.Series([dt.date(2024, 1, 1 + k % 28) for k in range(N)]), "date"),
        (pd.Series([uuid.UUID(int=k % 4) for k in range(N)]), "category"),
    ],
)
def test_columns_that_only_pandas_has(column, kind):
    frame = pd.DataFrame({"c": column, "x": SIGNAL})
    encoder = TableEncoder().fit(frame)
    assert {c.name: c.kind for c in encoder.columns_}["c"] == kind
    assert np.isfinite(encoder.transform(frame)).all()


def test_periods_from_a_parquet_file(tmp_path):
    frame = pd.DataFrame({"p": pd.period_range("2024-01", periods=5, freq="M"), "x": range(5)})
    frame.to_parquet(tmp_path / "p.parquet")
    read = read_table(tmp_path / "p.parquet").column("p").to_pylist()
    assert read[1] == dt.datetime(2024, 2, 1)


def test_types_that_no_model_can_use_are_left_out_in_a_sentence(tmp_path):
    table = pa.table(
        {
            "bytes": [bytes([k]) for k in range(N)],
            "fixed": pa.array([bytes([k, k]) for k in range(N)], pa.binary(2)),
            "list": [[k] for k in range(N)],
            "struct": [{"a": k} for k in range(N)],
            "span": pa.array([(k, 0, 0) for k in range(N)], pa.month_day_nano_interval()),
            "uuid": pa.array([uuid.UUID(int=k % 5).bytes for k in range(N)], pa.uuid()),
            "x": SIGNAL,
        }
    )
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    encoder = TableEncoder().fit(read_table(tmp_path / "t.arrow"))
    assert [c.name for c in encoder.columns_] == ["uuid", "x"]
    notes = " ".join(encoder.notes_)
    for name in ("bytes", "fixed", "list", "struct", "span"):
        assert f"Column '{name}' holds values of type" in notes


# ---------------------------------------------------------------------------- files


def packed(path, data):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("__MACOSX/._t.csv", "junk")
            archive.writestr("folder/t.csv", data)
        return
    pack = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": lambda text: pa.compress(text, "zstd", asbytes=True),
    }
    path.write_bytes(pack[path.suffix](data))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst", ".zip"])
@pytest.mark.parametrize("kind", [".csv", ".parquet", ".libsvm", ".jsonl"])
def test_compressed_files(tmp_path, ending, kind):
    contents = {
        ".csv": b"a,b\n1,x\n2,y\n",
        ".libsvm": b"1 1:2\n0 2:3\n",
        ".jsonl": b'{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n',
    }
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), buffer)
    contents[".parquet"] = buffer.getvalue()
    path = tmp_path / f"t{kind}{ending}"
    if ending == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"t{kind}", contents[kind])
    else:
        packed(path, contents[kind])
    read = read_table(path)
    if kind == ".libsvm":
        np.testing.assert_array_equal(read[0].toarray(), [[2, 0], [0, 3]])
        return
    assert read.to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert column_names(path) == ["a", "b"]
    assert sum(batch.num_rows for batch in iter_batches(path)) == 2
    if ending != ".zip":  # cut short: one sentence
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(InputError):
            read_table(path)


def test_zip_archives(tmp_path):
    packed(tmp_path / "plain.zip", b"a,b\n1,x\n")
    assert read_table(tmp_path / "plain.zip").num_rows == 1
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    with pytest.raises(InputError, match="holds 2 files"):
        read_table(tmp_path / "two.zip")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"PAR1....", "it is a Parquet file; name it with the ending .parquet"),
        ("t.csv", b"PK\x03\x04....", "zip archive or an Excel workbook"),
        ("t.csv", b"\x1f\x8b\x08\0\0\0\0", "compressed by gzip; name it with the ending .gz"),
        ("t.csv", b"\xd0\xcf\x11\xe0....", "save it as .xlsx or CSV"),
        ("t.csv", b"<!DOCTYPE html><html>", "a web page"),
        ("t.csv", b"a\0,\0b\0\n\0" * 9, "UTF-16 text without a mark"),
        ("t.xls", b"\xd0\xcf\x11\xe0....", "an old Excel workbook"),
        ("t.xlsx", b"a,b\n1,2\n", "named as Excel, but its content is not"),
        ("t.xlsx", b"PK\x03\x04 nonsense", "cannot be read as Excel"),
        ("t.parquet", b"a,b\n1,2\n", "named as Parquet, but its content is not"),
        ("t.dat", b"a,b\n1,2\n", "'.dat' is no ending that says a format"),
        ("t.db", b"SQLite format 3\0", "a SQLite database"),
        ("t.feather", b"FEA1....", "cannot be read as Arrow"),
        ("t.jsonl", b'{"a": 1}\n{"a": }\n', "not JSON in line 2"),
        ("t.jsonl", b'{"a": 1}\n[1]\n', "holds a list in line 2"),
        ("t.json", b"[1, 2]", "holds a int in row 1"),
    ],
)
def test_files_that_are_not_what_they_say(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_unknown_endings_can_be_told(tmp_path):
    path = tmp_path / "t.dat"
    path.write_bytes(b"a,b\n1,x\n")
    assert read_table(path, ReadOptions(format="csv")).num_rows == 1
    with pytest.raises(InputError, match="no format 'toml'"):
        read_table(path, ReadOptions(format="toml"))


@pytest.mark.parametrize("address", ["https://example.org/t.csv", "s3://bucket/t.parquet"])
def test_addresses_are_not_fetched(address):
    with pytest.raises(InputError, match="nothing is fetched from the network"):
        read_table(address)


def test_json_lists_of_rows_and_late_keys(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('[{"a": 1},\n {"a": 2.5, "b": "x"}]')
    assert read_table(path).to_pydict() == {"a": [1.0, 2.5], "b": [None, "x"]}


def test_sheets(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["a", "b", None])
    book.active.append([1, "x", None])
    book.active.append([None, None, None])
    book.create_sheet("second").append(["c"])
    book["second"].append([5])
    book.save(tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx").to_pydict() == {"a": [1], "b": ["x"]}
    second = read_table(tmp_path / "t.xlsx", ReadOptions(sheet="second"))
    assert second.to_pydict() == {"c": [5]}
    with pytest.raises(InputError, match="no sheet 'third'; it has 'Sheet', 'second'"):
        read_table(tmp_path / "t.xlsx", ReadOptions(sheet="third"))


def test_headers_longer_than_the_first_look(tmp_path):
    names = [f"a column with a long name, number {k}" for k in range(3000)]
    path = tmp_path / "wide.csv"
    pd.DataFrame([range(3000)], columns=names).to_csv(path, index=False)
    assert column_names(path) == names


# ---------------------------------------------------------------------------- LIBSVM


@pytest.mark.parametrize("bad", ["1 5:x", "1 2:3 1:4", "nonsense", "1 3:nan", "1 3:inf", "nan 1:2"])
def test_libsvm_errors_name_their_line(tmp_path, bad):
    lines = [f"{k % 2} 1:{k} 3:2" for k in range(1, 1001)]
    lines[10] = "# a comment alone"
    lines[400] = bad
    path = tmp_path / "t.libsvm"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"line 401\b"):
        read_table(path)
    with pytest.raises(InputError, match=r"line 401\b"):
        list(iter_batches(path, batch_rows=64, n_features=5))


def test_libsvm_indices_are_bounded(tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("1 1:2\n0 20000000:1\n")
    with pytest.raises(InputError, match=r"feature 20,000,000 in line 2; features may number"):
        read_table(path)
    path.write_text("1 1:2\n0 7:1\n")
    with pytest.raises(InputError, match=r"feature 7 in line 2; the model has 3"):
        list(iter_batches(path, n_features=3))
    path.write_text("1 1:2\n0 99999999999999999999:1\n")
    with pytest.raises(InputError, match="line 2"):
        read_table(path)


# ---------------------------------------------------------------------------- what is not ours


def test_invalid_text_and_offsets_are_refused(tmp_path):
    offsets = pa.array([0, 2, 4], pa.int32()).buffers()[1]
    bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff\xfe\xfd\xfc")])
    table = pa.table({"a": bad, "x": [1, 2]})
    pa.parquet.write_table(table, tmp_path / "text.parquet")
    pa.feather.write_feather(table, tmp_path / "text.arrow", compression="uncompressed")
    good = pa.table({"a": ["ab", "cd"]})
    pa.feather.write_feather(good, tmp_path / "far.arrow", compression="uncompressed")
    written = (tmp_path / "far.arrow").read_bytes()
    assert written.count(struct.pack("<3i", 0, 2, 4)) == 1
    far = written.replace(struct.pack("<3i", 0, 2, 4), struct.pack("<3i", 0, 2, 10**8))
    (tmp_path / "far.arrow").write_bytes(far)
    for name in ("text.parquet", "text.arrow", "far.arrow"):
        for read in (read_table, lambda path: list(iter_batches(path))):
            with pytest.raises(InputError) as caught:
                read(tmp_path / name)
            assert "\n" not in str(caught.value)


_FUZZ = """
import sys, numpy as np
from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder, read_table
from pnuauc.io._tables import iter_batches
data = open(sys.argv[1], "rb").read()
rng = np.random.default_rng(int(sys.argv[2]))
path = sys.argv[1] + ".fuzz" + sys.argv[3]
for _ in range(int(sys.argv[4])):
    changed = bytearray(data)
    for where in rng.integers(0, len(data), rng.integers(1, 6)):
        changed[where] = rng.integers(0, 256)
    if rng.random() < 0.1:
        changed = changed[: rng.integers(1, len(data))]
    open(path, "wb").write(changed)
    for use in (lambda: TableEncoder().fit_transform(read_table(path)),
                lambda: [TableEncoder().fit(b) for b in iter_batches(path)]):
        try:
            use()
        except InputError:
            pass
print("alive")
"""


@pytest.mark.parametrize("ending", [".arrow", ".parquet"])
def test_mutated_arrow_files_never_kill_the_process(tmp_path, ending):
    """In a process of its own, which a wild pointer would end."""
    table = pa.table(
        {kind: TYPES[kind] for kind in ("floats with gaps", "free text", "dictionary", "Berlin")}
        | {"view": pa.array([f"a longer text {k}" for k in range(N)], pa.string_view())}
    )
    path = tmp_path / "t"
    if ending == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=25)
    else:
        pa.parquet.write_table(table, path)
    command = [sys.executable, "-c", _FUZZ, str(path), "0", ending, "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "alive"


# ---------------------------------------------------------------------------- pipes


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_pipes_are_read_once_and_not_waited_for(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="a pipe or device"):
        read_table(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"a,b\n1,x\n2,y\n"))
    writer.start()
    with spooled(pipe) as (path, options):
        assert read_table(path, options).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    writer.join()
    assert not path.exists()
    monkeypatch.setattr("pnuauc.io._formats._PATIENCE", 0.05)
    with pytest.raises(InputError, match="no program writes"), spooled(pipe):
        pass


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.jsonl", "t.csv.gz", "t.xlsx"])
def test_standard_input_is_known_by_its_content(tmp_path, monkeypatch, name):
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    path = tmp_path / name
    if name.endswith(".gz"):
        packed(path, b"a,b\n1,x\n2,y\n")
    else:
        write = {".csv": write_csv, ".jsonl": write_lines, ".xlsx": write_excel,
                 ".parquet": lambda t, p: pa.parquet.write_table(t, p),
                 ".arrow": lambda t, p: pa.feather.write_feather(t, p)}  # fmt: skip
        write[path.suffix](table, path)
    with path.open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        with spooled("-") as (copy, options):
            assert read_table(copy, options).to_pydict() == table.to_pydict()
        assert options.name == "standard input"


# ---------------------------------------------------------------------------- scores out


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored")
    table = TABLES["floats"]
    pa.parquet.write_table(table, folder / "in.parquet", row_group_size=7)
    return fitted(table), folder, fitted(table).score(table)


def output(scored, **choice):
    model, folder, _ = scored
    summary = score_file(
        model, folder / "in.parquet", folder / "out.csv", choice=OutputChoice(**choice)
    )
    return read_table(folder / "out.csv"), summary


def test_sorted_top_and_threshold(scored):
    scores = scored[2]
    order = np.argsort(-scores, kind="stable")
    whole, _ = output(scored, sort=True)
    np.testing.assert_allclose(whole.column("score").to_numpy(), scores[order])
    top, summary = output(scored, top=5)
    assert top.column("id").to_pylist() == [f"{k:08d}" for k in order[:5]]
    assert (summary.n_rows, summary.n_written) == (N, 5)
    cut = float(np.sort(scores)[40])
    above, _ = output(scored, threshold=cut)
    assert above.column("id").to_pylist() == [f"{k:08d}" for k in np.flatnonzero(scores >= cut)]
    for sort in (True, False):
        choice = OutputChoice(threshold=1e9, sort=sort, columns=["score"])
        model, folder, _ = scored
        summary = score_file(model, folder / "in.parquet", folder / "none.csv", choice=choice)
        assert summary.n_written == 0
        assert (folder / "none.csv").read_text().strip('"\n') == "score"


def test_columns_of_the_output(scored):
    table, _ = output(scored, columns=["score", "id"])
    assert table.column_names == ["score", "id"]
    with pytest.raises(InputError, match="no output column 'nope'; there are 'id', 'y', 'score'"):
        output(scored, columns=["nope"])


def test_a_model_without_probabilities_writes_none(scored):
    table, _ = output(scored)
    assert scored[0].probability(scored[2]) is None
    assert table.column_names == ["id", "y", "score", "percentile"]


@pytest.mark.parametrize("choice", [{}, {"top": 5}, {"threshold": 0.0}, {"sort": True}])
def test_reasons_are_told_of_the_rows_that_are_written(scored, choice):
    """The first reason of each row: replacing its value by the mean moves the score so much."""
    model, folder, _ = scored
    table, _ = output(scored, reasons=1, **choice)
    whole = read_table(folder / "in.parquet")
    features = model.encoder.transform(whole)
    rows = {str(name): i for i, name in enumerate(whole.column("id").to_pylist())}
    assert table.num_rows
    for name, score, reason in zip(
        *(table.column(c).to_pylist() for c in ("id", "score", "reasons")), strict=True
    ):
        i = rows[str(name)]
        column, effect = reason.split(" = ")[0], float(reason.split("(")[-1].rstrip(")"))
        changes = {}
        for own, columns in model.encoder.groups_.items():
            changed = features[i].copy()
            changed[columns] = model.typical[columns]
            changes[own] = score - float(model.score_encoded(changed[None, :])[0])
        assert abs(changes[column]) == pytest.approx(max(map(abs, changes.values())), rel=1e-6)
        assert effect == pytest.approx(changes[column], rel=0.06, abs=1e-6)
        value = whole.column(column)[i].as_py()
        assert reason.startswith(f"{column} = {'(missing)' if value is None else f'{value:.6g}'}")


def test_scores_to_a_stream_are_csv(scored):
    model, folder, _ = scored
    stream = io.BytesIO()
    score_file(model, folder / "in.parquet", stream, choice=OutputChoice(columns=["id", "score"]))
    lines = stream.getvalue().decode().splitlines()
    assert lines[0].replace('"', "") == "id,score"
    assert len(lines) == N + 1


def test_bad_cells_are_named_with_file_column_and_row(tmp_path):
    table = TABLES["floats"]
    model = fitted(table)
    lines = frame_of(table).to_csv(index=False).splitlines()
    lines[42] = lines[42].replace(lines[42].split(",")[1], "oops")
    (tmp_path / "bad.csv").write_text("\n".join(lines))
    with pytest.raises(CellError, match=r"bad\.csv': Column 'x' holds text \('oops' in row 42\)"):
        score_file(model, tmp_path / "bad.csv", tmp_path / "out.csv")
    # a cell that arrow does not parse, but that says a number, is read
    lines[42] = lines[42].replace("oops", "+1.5")
    (tmp_path / "good.csv").write_text("\n".join(lines))
    score_file(model, tmp_path / "good.csv", tmp_path / "out.csv")
    assert read_table(tmp_path / "out.csv").num_rows == N
