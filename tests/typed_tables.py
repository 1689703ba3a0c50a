"""A column of every type, and writers of every format: what the tests of files share."""

from __future__ import annotations

import datetime as dt
import decimal
import json

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from pnuauc import AUCClassifier
from pnuauc.io import (
    TableEncoder,
    TableModel,
    as_table,
)

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
