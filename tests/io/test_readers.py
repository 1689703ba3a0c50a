"""Tests of io/readers."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from attack.archives import packed as zipped
from attack.archives import workbook
from pnuauc.exceptions import InputError, ReadingWarning
from pnuauc.io import (
    ReadOptions,
    read_table,
    score_file,
)
from pnuauc.io.readers import iter_batches, read_cells, reader_of
from tests.typed_tables import (
    FORMATS,
    TABLES,
    TYPES,
    fitted,
)


def archive(path, members):
    with zipfile.ZipFile(path, "w") as made:
        for name, text in members.items():
            made.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("members", "rows"),
    [
        ({"a.csv": "x,y\n1,2\n"}, 1), ({"folder/": "", "folder/a.csv": "x,y\n1,2\n3,4\n"}, 2),
        ({"a.csv": "x,y\n1,2\n", ".hidden": "?"}, 1),
        ({"a.csv": "x,y\n1,2\n", "__MACOSX/a": "?"}, 1),
        ({"a.csv": "x\n1\n", "b.csv": "x\n1\n"}, None), ({}, None), ({"a.dat": "x\n1\n"}, None),
        ({"a.tsv": "x\ty\n1\t2\n"}, 1),
    ],
)  # fmt: skip
def test_the_one_table_in_an_archive(tmp_path, members, rows):
    path = archive(tmp_path / "t.zip", members)
    if rows is None:
        with pytest.raises(InputError):
            read_table(path)
    else:
        found = read_table(path)
        assert (found.num_rows, found.column_names) == (rows, ["x", "y"])


def test_encrypted_members_are_told(tmp_path):
    path = archive(tmp_path / "t.zip", {"a.csv": "x\n1\n"})
    data = bytearray(path.read_bytes())
    for start in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[start] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="is encrypted"):
        read_table(path)


PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: pa.compress(text, "zstd", asbytes=True),
}


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
        path.write_bytes(PACK[ending](contents[kind]))
    read = read_table(path)
    if kind == ".libsvm":
        np.testing.assert_array_equal(read[0].toarray(), [[2, 0], [0, 3]])
        return
    assert read.to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert reader_of(path).schema().names == ["a", "b"]
    assert sum(batch.num_rows for batch in iter_batches(path)) == 2
    if ending != ".zip":  # cut short: one sentence
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(InputError):
            read_table(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"PAR1....", "it is a Parquet file; name it with the ending .parquet"),
        ("t.csv", b"PK\x03\x04....", "zip archive or an Excel workbook"),
        ("t.csv", b"\x1f\x8b\x08\0\0\0\0", "cannot be read as CSV"),
        ("t.csv", b"\xd0\xcf\x11\xe0....", "save it as .xlsx or CSV"),
        ("t.csv.gz", b"a,b\n1,2\n", "named as compressed by gzip, but it is not"),
        ("t.parquet", b"%PDF", r"named as Parquet, but it is a PDF\?"),
        ("t.dat", b"PAR1", r"is a Parquet file; name it with the ending \.parquet\."),
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
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b,y\n", "no rows"),
        ("t.csv", b"a,b,y\n1,2,3\n1,2\n", "unequal length"),
        ("t.csv", b"a,a,y\n1,2,3\n", "more than one column named 'a'"),
        ("t", b"a,b\n1,2\n", "no ending"),
        ("t.parquet", b"PAR1 this is not parquet at all", "cannot be read as Parquet"),
        ("t.feather", b"ARROW1\0\0 cut", "cannot be read as Arrow"),
        ("t.libsvm", b"1 1:2 nonsense\n", "not LIBSVM"),
        ("t.csv", b"a,y\n\x81,1\n\x8d,0\n", "not UTF-8"),
    ],
)
def test_files_that_are_not_what_they_say(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError):
        list(iter_batches(path)) or read_table(path)


def test_unknown_endings_can_be_told(tmp_path):
    path = tmp_path / "t.dat"
    path.write_bytes(b"a,b\n1,x\n")
    assert read_table(path, ReadOptions(format="csv")).num_rows == 1
    with pytest.raises(InputError, match="no format 'toml'"):
        read_table(path, ReadOptions(format="toml"))


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
    assert reader_of(path).schema().names == names


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


def test_json_lines_that_end_within_a_letter_are_refused(tmp_path):
    """Beyond the bytes that the encoding is told by."""
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 500 + b"\xc3")
    with pytest.raises(InputError, match=r"cut\.jsonl"):
        read_table(path)


@pytest.fixture(scope="module")
def expected():
    """Scores of the typed table in memory, by type of column."""
    return {kind: fitted(table).score(table) for kind, table in TABLES.items()}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.system
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


def test_a_value_may_hold_a_line_end(file):
    path = file('a,b\n"x\ny",1\n"z, w",2\n')
    assert read_table(path).to_pydict() == {"a": ["x\ny", "z, w"], "b": [1, 2]}
    (batch,) = iter_batches(path, floats=["b"])
    assert batch.to_pydict() == {"a": ["x\ny", "z, w"], "b": [1.0, 2.0]}


def test_missing_words_are_missing_numbers_and_texts_as_they_are_written(file):
    path = file("a;b\n1.5;NA\nNA;x\nnull;\n#N/A;null\n")
    (batch,) = iter_batches(path, floats=["a"])
    assert batch.to_pydict() == {"a": [1.5, None, None, None], "b": ["NA", "x", "", "null"]}
    (some,) = iter_batches(path, ["b"])
    assert some.to_pydict() == {"b": ["NA", "x", "", "null"]}
    assert str(batch.schema.field("a").type) == "double"


def test_a_letter_that_the_first_look_cuts_in_two(file):
    """The 65,536th byte is the first of two."""
    head = "a,b\n" + "x,1\n" * 16_382
    text = head + "y" * (65_535 - len(head)) + "é,2\n"
    path = file(text)
    reader_input = path.read_bytes()
    assert reader_input[65_535] == "é".encode()[0]
    table = read_table(path)
    assert table.num_rows == 16_383
    assert table.column("a")[-1].as_py().endswith("é")


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 20000000:1", "feature 20,000,000, where .* 4,194,304, in line 5"),
        ("0 99999999999999999999:1", "line 5"),
        ("1 a:b", "not LIBSVM text .* in line 5"), ("1 2:inf", "not a finite number in line 5"),
        ("nan 1:1", "label that is not a number in line 5"),
        ("1 0:1", "not LIBSVM text .* in line 5"), ("1 4194305:1", "feature 4,194,305, .* line 5"),
    ],
)  # fmt: skip
def test_libsvm_lines_are_counted_from_one(tmp_path, line, message, rows):
    path = tmp_path / "t.libsvm"
    path.write_text(f"1 1:1\n\n0 2:1\n# nothing\n{line}\n1 1:1\n")
    with pytest.raises(InputError, match=message):
        list(iter_batches(path, rows=rows))
    path.write_text("1 1:2\n0 7:1\n")
    with pytest.raises(InputError, match=r"feature 7, where features may number 3, in line 2"):
        list(iter_batches(path, n_features=3, rows=rows))


def test_libsvm_without_rows(tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("\n\n")
    with pytest.raises(InputError, match="has no rows"):
        read_table(path)
    path.write_text("1 4194304:1\n")
    assert read_table(path)[0].shape == (1, 4_194_304)


def test_what_a_file_says_of_itself(tmp_path):
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    (tmp_path / "t.jsonl").write_text('{"a": 1, "b": "x"}\n')
    expected = {"parquet": ("int64", 3), "arrow": ("int64", None), "csv": ("string", None),
                "jsonl": ("int64", 1)}  # fmt: skip
    for ending, (kind, n) in expected.items():
        reader = reader_of(tmp_path / f"t.{ending}")
        schema = reader.schema()
        assert (schema.names, str(schema.field("a").type)) == (["a", "b"], kind)
        assert reader.n_rows == n
    (second,) = iter_batches(tmp_path / "t.parquet", row_groups=[1])
    assert second.to_pydict() == {"a": [3], "b": [None]}
    parts = list(iter_batches(tmp_path / "t.arrow", ["b"], rows=2))
    assert [p.to_pydict() for p in parts] == [{"b": ["x", "y"]}, {"b": [None]}]


def test_a_name_outside_an_archive_says_the_format_of_one_inside(tmp_path):
    for name, inside, columns in (("t.csv.zip", "data", ["a", "b"]), ("t.zip", "t.tsv", ["a,b"])):
        with zipfile.ZipFile(tmp_path / name, "w") as made:
            made.writestr(inside, "a,b\n1,2\n")
        assert read_table(tmp_path / name).column_names == columns


@pytest.mark.parametrize("text", ['[{"a": 1},', '[{"a": 1\n2}]', '[{"a": "x\ny"}]'])
def test_a_json_list_is_read_with_its_line_ends(file, text):
    """A number or a word does not go on in the next line."""
    with pytest.raises(InputError, match="is not JSON in line 1"):
        read_table(file(text, "t.json"))


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


@pytest.mark.parametrize("form", sorted({*FORMATS} - {"json lines", "excel"}))
def test_every_format_reads_the_same(tmp_path, form):
    """But those of rows of Python values: JSON has no times."""
    name, write = FORMATS[form]
    path = tmp_path / name
    write(TABLE, path)
    whole = read_table(path)
    assert whole.column_names == TABLE.column_names == reader_of(path).schema().names
    assert whole.to_pydict() == TABLE.to_pydict()
    batches = list(iter_batches(path, ["y", "size"], rows=3))
    assert [b.num_rows for b in batches] == [3, 1]
    streamed = pa.Table.from_batches(batches).to_pydict()
    if ".csv" in name or ".tsv" in name:  # cells as they are written
        assert streamed == {"y": ["1", "0", "", ""], "size": ["1.5", "2.0", "", "4.0"]}
        floats = iter_batches(path, ["y", "size"], floats=["y", "size"])
        streamed = pa.Table.from_batches(list(floats)).to_pydict()
    assert streamed == TABLE.select(["y", "size"]).to_pydict()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    path.write_text(TABLE_TEXT.replace(",", delimiter))
    assert read_table(path).column_names == ["a", "b", "y"]


TABLE_TEXT = "a,b,y\n1,x,1\n2,y,\n3,x,0\n"


def test_windows_text_is_recognised_and_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("Größe,y\nZoë €,1\nUwe,0\n".encode("cp1252"))
    with pytest.warns(ReadingWarning, match="not UTF-8 text and is read as cp1252"):
        table = read_table(path)
    assert table.to_pydict() == {"Größe": ["Zoë €", "Uwe"], "y": [1, 0]}
    path.write_bytes("name,y\nZoë,1\nUwe,0\n".encode("latin-1"))
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
    parts = list(iter_batches(path, rows=7, n_features=12))
    assert parts[0][0].shape == (7, 12)
    np.testing.assert_allclose(sparse.vstack([p[0] for p in parts]).toarray(), X.toarray())


def test_no_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="a folder"):
        read_table(tmp_path)


SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"


SOUND = workbook(pa.table({"a": [1, 2, 3], "b": ["x", None, "é"]}))


def members():
    with zipfile.ZipFile(io.BytesIO(SOUND)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read(tmp_path, content):
    (tmp_path / "t.xlsx").write_bytes(content if isinstance(content, bytes) else zipped(content))
    return read_table(tmp_path / "t.xlsx")


def sheet(rows):
    parts = members()
    head, _, tail = parts[SHEET].partition(b"<sheetData>")
    return parts | {SHEET: head + b"<sheetData>" + rows + tail[tail.index(b"</sheetData>") :]}


def number(place, value=1):
    return f'<c r="{place}"><v>{value}</v></c>'.encode()


def text(place, value):
    return f'<c r="{place}" t="str"><v>{value}</v></c>'.encode()


HEADER = b'<row r="1">' + text("A1", "a") + text("B1", "b") + b"</row>"


def test_a_sound_workbook_is_read(tmp_path):
    assert read(tmp_path, SOUND).num_rows == 3


@pytest.mark.parametrize("claim", [b"A1", b"A1:A2", b"A1:XFD1048576", b"C7:D9"])
def test_a_false_dimension_changes_nothing(tmp_path, claim):
    """Cells beyond a dimension that was claimed too small were lost without a word."""
    parts = members()
    before, rest = parts[SHEET].split(b'<dimension ref="', 1)
    after = rest[rest.index(b'"') :]
    claimed = read(tmp_path, parts | {SHEET: before + b'<dimension ref="' + claim + after})
    assert claimed.equals(read(tmp_path, SOUND))


@pytest.mark.parametrize("place", [STRINGS, SHEET, "xl/workbook.xml", "[Content_Types].xml"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused(tmp_path, place, encoding):
    """Entities that grow a thousandfold, or that name a file of the reader's machine."""
    parts = members()
    body = parts[place].decode()
    body = body[body.index("?>") + 2 :] if body.startswith("<?xml") else body
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
    with pytest.raises(InputError, match="declares a document type"):
        read(tmp_path, parts | {place: (bomb + body).encode(encoding)})


def test_a_document_type_is_refused_whatever_the_part_is_called(tmp_path):
    parts = members()
    other = "xl/worksheets/sheet1.bin"
    body = parts.pop(SHEET).decode().partition("?>")[2] or members()[SHEET].decode()
    parts = {k: v.replace(b"sheet1.xml", b"sheet1.bin") for k, v in parts.items()}
    assert read(tmp_path, parts | {other: body.encode()}).num_rows == 3
    with pytest.raises(InputError, match="declares a document type"):
        read(tmp_path, parts | {other: f'<!DOCTYPE a [<!ENTITY b "c">]>{body}'.encode()})
    # a picture is no XML, and none of our business
    assert read(tmp_path, members() | {"xl/media/a.png": b"\x89PNG", "empty": b""}).num_rows == 3


@pytest.mark.parametrize(
    ("length", "cells"), [(32_767, 2), (32_768, 1), (32_000, 2000)], ids=["fits", "cell", "all"]
)
def test_one_long_string_in_many_cells_is_refused(tmp_path, length, cells):
    """A shared string is stored once and costs its length in every cell."""
    parts = members()
    start, _, _ = parts[STRINGS].partition(b"<si>")
    parts[STRINGS] = start + b"<si><t>" + b"x" * length + b"</t></si></sst>"
    rows = (
        f'<row r="{k}"><c r="A{k}" t="s"><v>0</v></c></row>'.encode() for k in range(2, 2 + cells)
    )
    content = parts | {SHEET: sheet(HEADER + b"".join(rows))[SHEET]}
    if (length, cells) == (32_767, 2):
        assert read(tmp_path, content).num_rows == cells
    else:
        with pytest.raises(InputError, match="than a sheet can have, a cell"):
            read(tmp_path, content)


def test_styles_by_the_million_are_refused(tmp_path):
    parts = members()
    styles = parts["xl/styles.xml"].replace(b"</cellXfs>", b"<xf/>" * 250_000 + b"</cellXfs>")
    with pytest.raises(InputError, match="more than 200,000 tags in"):
        read(tmp_path, parts | {"xl/styles.xml": styles})


def test_a_json_line_of_many_blocks_is_read(tmp_path):
    """Its pieces are joined once: a line of 100 MB took half a minute."""
    text = "".join(map(chr, range(0x100, 0x180))) * 20_000  # letters of two bytes each
    lines = [json.dumps({"a": text[k:], "b": k}, ensure_ascii=False) for k in range(3)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    assert read_table(tmp_path / "t.jsonl").to_pydict() == {
        "a": [text[k:] for k in range(3)],
        "b": [0, 1, 2],
    }


def test_what_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path):
    parts = members() | {STRINGS: members()[STRINGS] + b" " * (80 * 2**20)}
    content = zipped(parts)
    assert len(content) < 2**18
    with pytest.raises(InputError, match="unpacks to 80 MB, more than 100 times its size"):
        read(tmp_path, content)


def test_rows_that_only_a_number_claims_are_refused(tmp_path):
    far = b'<row r="999999999999">' + number("A999999999999") + b"</row>"
    with pytest.raises(InputError, match="more than a sheet can have"):
        read(tmp_path, sheet(HEADER + far))


def test_rows_left_out_are_no_rows(tmp_path):
    rows = b'<row r="2">' + number("A2") + b'</row><row r="1048576">' + number("A1048576", 2)
    assert read(tmp_path, sheet(HEADER + rows + b"</row>"))["a"].to_pylist() == [1, 2]


def test_columns_that_only_a_letter_claims_are_refused(tmp_path):
    """25 bytes a row that would become 16,384 cells each."""
    rows = b"".join(b"<row>" + number("XFD1") + b"</row>" for _ in range(500))
    with pytest.raises(InputError, match="16,384 columns, most of them empty"):
        read(tmp_path, sheet(HEADER + rows))
    with pytest.raises(InputError, match="more than a sheet can have"):
        read(tmp_path, sheet(HEADER + b"<row>" + number("ZZZ2") + b"</row>"))


@pytest.mark.parametrize("part", [SHEET, STRINGS])
def test_data_that_never_begin_are_refused(tmp_path, part):
    with pytest.raises(InputError, match="cannot be read as Excel"):
        read(tmp_path, members() | {part: b"<!--" + b" " * 10**6 + b"-->" + members()[part]})


def test_the_cached_value_of_a_formula_is_read(tmp_path):
    formula = b'<row r="2"><c r="A2"><f>1+1</f><v>2</v></c>' + number("B2", 5) + b"</row>"
    assert read(tmp_path, sheet(HEADER + formula)).to_pydict() == {"a": [2], "b": [5]}


TITLED = ["Report of January, 2024", "", "id;a;b;y", "x;1,5;2;1", "y;2,5;3;", "z;0,5;1;0"]


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
@pytest.mark.parametrize("padded", [False, True])
def test_a_title_above_the_names_is_left_out(tmp_path, ending, padded):
    """Also where the title is filled up with empty cells, as spreadsheets export it."""
    path, rows = tmp_path / f"t{ending}", [line.split(";") for line in TITLED]
    if padded:
        rows = [row + [""] * (4 - len(row)) for row in rows]
    if ending == ".csv":
        path.write_text("\n".join(";".join(row) for row in rows) + "\n")
    else:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([cell or None for cell in row])
        book.save(path)
    with pytest.warns(ReadingWarning, match=r"above the names in line 3 left out as a title"):
        table = read_table(path)
    assert table.column_names == ["id", "a", "b", "y"]
    assert table.column("id").to_pylist() == ["x", "y", "z"]
    assert table.equals(read_table(path, ReadOptions(header=3)))
    assert read_table(path, ReadOptions(header=4)).column("x").to_pylist() == ["y", "z"]
    with pytest.raises(InputError, match="no names in line 90"):
        read_table(path, ReadOptions(header=90))


def test_names_that_are_one_short_are_no_title(tmp_path):
    """As R writes them: still refused, not taken for a title."""
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,2.5,1\n2,3.5,0\n")
    with pytest.raises(InputError, match="unequal length"):
        read_table(path)
