"""Workbooks that claim more than they hold: refused in one sentence, or read as far as cells go."""

from __future__ import annotations

import io
import zipfile

import pyarrow as pa
import pytest

from attack.archives import packed, workbook
from pnuauc.exceptions import InputError
from pnuauc.io import read_table

SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
SOUND = workbook(pa.table({"a": [1, 2, 3], "b": ["x", None, "é"]}))


def members():
    with zipfile.ZipFile(io.BytesIO(SOUND)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read(tmp_path, content):
    (tmp_path / "t.xlsx").write_bytes(content if isinstance(content, bytes) else packed(content))
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


def test_what_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path):
    parts = members() | {STRINGS: members()[STRINGS] + b" " * (80 * 2**20)}
    content = packed(parts)
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
