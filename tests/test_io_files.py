"""Files: compressed, misnamed, piped, bent; LIBSVM; and the columns, order and errors of scores."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import subprocess
import sys
import threading
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from pnuauc.exceptions import InputError
from pnuauc.io import (
    OutputChoice,
    ReadOptions,
    read_table,
    score_file,
)
from pnuauc.io._columns import CellError
from pnuauc.io._formats import spooled
from pnuauc.io._tables import column_names, iter_batches
from tests.typed_tables import (
    TABLES,
    TYPES,
    N,
    fitted,
    frame_of,
    write_csv,
    write_excel,
    write_lines,
)

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
        ("t.dat", b"a,b\n1,2\n", "'.dat' is not an ending that names a format"),
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
        try:
            pa.parquet.write_table(table, path)
        except pa.ArrowNotImplementedError:  # views of text as Parquet: not before pyarrow 19
            pa.parquet.write_table(table.drop_columns(["view"]), path)
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


def test_json_lines_that_end_within_a_letter_are_refused(tmp_path):
    """Beyond the bytes that the encoding is told by."""
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 500 + b"\xc3")
    with pytest.raises(InputError, match=r"cut\.jsonl"):
        read_table(path)
