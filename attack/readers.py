"""Tables of every format, bent byte by byte and word by word, and the law their readers obey."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from attack.archives import bent_archive, packed, workbook
from pnuauc.exceptions import InputError, MissingExtraError
from pnuauc.io import TableEncoder, read_table
from pnuauc.io.readers import iter_batches, reader_of

__all__ = ["bent_bytes", "bent_file", "read_and_judge", "sound_files"]

_WORDS = [
    *(
        b",",
        b";",
        b"\t",
        b"|",
        b'"',
        b"'",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ),
    *(b"nan", b"inf", b"-inf", b"1e999", b"-0", b"1e-400", b"0x10", b"1_000", b"NULL", b"\xc3\x28"),
    *(b"99999999999999999999", b"1:1", b"20000000:1", b"-1:1", b":", b"qid:1", b"#", b"\x1b[2J"),
    *(b"{", b"}", b"[", b"]", b"null", b"true", b'{"a":' * 50, b"2024-02-30", b"1,5", b"12.345,6"),
]
_INTEGERS = [0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1]


def sound_files() -> dict[str, bytes]:
    """A small sound file of every format, by the name it is read under."""
    rng = np.random.default_rng(0)
    n = 24
    table = pa.table(
        {
            "id": [f"r{i}" for i in range(n)],
            "a": rng.normal(size=n).round(3),
            "b": pa.array([None if i % 5 == 0 else i for i in range(n)], pa.int64()),
            "kind": pa.array(["x", "y", "z"] * 8).dictionary_encode(),
            "when": pa.array(np.arange(n).astype("datetime64[D]")),
            "flag": [i % 3 == 0 for i in range(n)],
            "y": pa.array([None if i > 8 else i % 2 for i in range(n)], pa.int8()),
        }
    )
    plain = table.set_column(3, "kind", table.column("kind").cast(pa.string()))
    csv = io.BytesIO()
    pa.csv.write_csv(plain, csv)
    files = {"t.csv": csv.getvalue(), "t.csv.gz": gzip.compress(csv.getvalue())}
    files["t.tsv"] = csv.getvalue().replace(b",", b"\t")
    for name, codec in (("t.parquet", "snappy"), ("plain.parquet", "none")):
        out = io.BytesIO()
        pa.parquet.write_table(table, out, compression=codec, row_group_size=10)
        files[name] = out.getvalue()
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
    files["t.arrow"] = out.getvalue()
    out = io.BytesIO()
    pa.feather.write_feather(table, out, compression="lz4")
    files["t.feather"] = out.getvalue()
    lines = [f"{i % 2} 1:{i} {2 + i % 7}:0.{i + 1} 12:-1e-3" for i in range(n)]
    files["t.libsvm"] = "\n".join(lines).encode()
    rows = plain.drop_columns(["when"]).to_pylist()
    files["t.jsonl"] = "\n".join(json.dumps(row) for row in rows).encode()
    files["t.xlsx"] = workbook(plain)
    files["t.csv.zip"] = packed({"t.csv": csv.getvalue()})
    files["t.csv.xz"] = lzma.compress(csv.getvalue())
    files["t.csv.bz2"] = bz2.compress(csv.getvalue())
    files["t.csv.zst"] = pa.compress(csv.getvalue(), "zstd", asbytes=True)
    files["wide.csv"] = csv.getvalue().decode().encode("utf-16")
    return files


#: Files that lend bytes to others; a number, so that new formats leave the old cases as they were.
_LENDERS = 9


def bent_file(name: str, files: dict[str, bytes], number: int) -> bytes:
    """The case of that number: the sound file of that name, bent."""
    rng = np.random.default_rng([3, number])
    bend = partial(bent_bytes, others=list(files.values())[:_LENDERS])
    if name.endswith((".xlsx", ".zip")):
        return bent_archive(files[name], rng, bend)
    return bend(files[name], rng)


def bent_bytes(data: bytes, rng: np.random.Generator, others: list[bytes]) -> bytes:
    """One to four changes: bytes, numbers, words, stretches cut, doubled, moved or borrowed."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(out) + 1))
        length = int(min(2 ** rng.integers(0, 9), len(out)))
        draw = rng.integers(9)
        if draw == 0 and out:
            out[min(at, len(out) - 1)] ^= int(1 << rng.integers(8))
        elif draw == 1 and out:
            out[min(at, len(out) - 1)] = int(rng.integers(256))
        elif draw == 2:
            width = int(rng.choice([1, 2, 4, 8]))
            number = _INTEGERS[rng.integers(len(_INTEGERS))] % 2 ** (8 * width)
            out[at : at + width] = number.to_bytes(width, "little")
        elif draw == 3:
            out[at:at] = _WORDS[rng.integers(len(_WORDS))]
        elif draw == 4:
            word = _WORDS[rng.integers(len(_WORDS))]
            out[at : at + len(word)] = word
        elif draw == 5:
            del out[at : at + length]
        elif draw == 6:
            out[at:at] = out[at : at + length] * int(rng.integers(1, 4))
        elif draw == 7:
            other = others[rng.integers(len(others))]
            start = int(rng.integers(len(other)))
            out[at : at + length] = other[start : start + length]
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out)


def read_and_judge(path: Path, deep: bool) -> str:
    """ "read" or "refused" (one sentence); anything else raises.

    ``deep`` also reads batch by batch, which must agree, and encodes the table.
    """
    try:
        table = read_table(path)
    except (InputError, MissingExtraError) as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "\n" not in refusal.strip(), "more than one line"
        assert len(refusal) > 10, "no sentence"
        return "refused"
    if isinstance(table, tuple):
        matrix, labels = table
        assert matrix.shape[0] == len(labels)
        assert np.isfinite(matrix.data).all(), "not finite"
        n_rows, names = matrix.shape[0], []
    else:
        table.validate(full=True)
        n_rows, names = table.num_rows, table.column_names
    if deep:
        _read_again(path, table, n_rows, names)
    return "read"


def _read_again(path: Path, table: Any, n_rows: int, names: list[str]) -> None:
    try:
        assert reader_of(path).schema().names == names, "names differ"
        counts = [b[0].shape[0] if isinstance(b, tuple) else b.num_rows for b in iter_batches(path)]
        assert sum(counts) == n_rows, "batches and table have different rows"
        features = table[0] if isinstance(table, tuple) else table
        encoded = TableEncoder().fit(features).transform(features)
    except InputError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "\n" not in refusal.strip(), "more than one line"
        return
    values = encoded.data if hasattr(encoded, "indptr") else encoded
    assert np.isfinite(values).all(), "the encoder gives numbers that are not finite"
