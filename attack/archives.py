"""Archives bent from inside: workbooks and zip files whose members are changed and packed again."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from datetime import datetime

import numpy as np
import pyarrow as pa

__all__ = ["bent_archive", "packed", "workbook"]

_WORDS = [
    *(
        b'r="ZZZ1"',
        b'r="A1048577"',
        b'r="A999999999999"',
        b'r="XFD1"',
        b'r="0"',
        b' t="s"',
        b' s="1"',
    ),
    *(b"<dimension ref='A1:XFD1048576'/>", b"<dimension ref='A1'/>", b"<row/>", b"<c/>", b"</row>"),
    *(b'<!DOCTYPE a [<!ENTITY b "c">]>', b"&b;", b"&#0;", b"<!--", b"]]>", b"<x>" * 200, b"1e999"),
    *(
        b'encoding="utf-7"',
        b'encoding="utf-16"',
        b"<v>-1</v>",
        b"<v>99999999999</v>",
        b"<t>\x00</t>",
        b"<t>" + b"x" * 40_000 + b"</t>",
    ),
]


def workbook(table: pa.Table) -> bytes:
    """The table as a small workbook with shared strings and dates; the same bytes every time."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(table.column_names)
    for row in table.to_pylist():
        sheet.append(list(row.values()))
    book.properties.created = book.properties.modified = datetime(2024, 1, 1)
    out = io.BytesIO()
    book.save(out)
    with zipfile.ZipFile(out) as archive:
        return packed(_with_shared({name: archive.read(name) for name in archive.namelist()}))


def _with_shared(members: dict[str, bytes]) -> dict[str, bytes]:
    """Every second text cell as Excel writes it, by its number in a list of all strings."""
    shared: list[bytes] = []

    def number(match: re.Match[bytes]) -> bytes:
        shared.append(match[1])
        return match[0] if len(shared) % 2 else b't="s"><v>%d</v></c>' % (len(shared) - 1)

    sheet, types = "xl/worksheets/sheet1.xml", "[Content_Types].xml"
    cell = rb't="inlineStr"><is><t>([^<]*)</t></is></c>'
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%b" />' % kind
    named = members[types].replace(b"</Types>", override + b"</Types>")
    changed = {sheet: re.sub(cell, number, members[sheet]), types: named}
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    strings = b"".join(b"<si><t>%b</t></si>" % value for value in shared)
    changed["xl/sharedStrings.xml"] = b'<sst xmlns="%b">%b</sst>' % (space, strings)
    return members | changed


def packed(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def bent_archive(
    data: bytes, rng: np.random.Generator, bend: Callable[[bytes, np.random.Generator], bytes]
) -> bytes:
    """One or two members bent, or words put into them; one in four times the archive itself."""
    if rng.random() < 0.25:
        return bend(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.integers(1, 3)):
        name = sorted(members)[rng.integers(len(members))]
        content = members[name]
        draw = rng.random()
        if draw < 0.05:
            members.pop(name)
            members.setdefault("left", b"")
        elif draw < 0.08 and name.endswith(".xml"):  # a part under any name, which others use
            new = name.removesuffix("xml") + "bin"
            members = {
                new if key == name else key: value.replace(
                    name.rpartition("/")[2].encode(), new.rpartition("/")[2].encode()
                )
                for key, value in members.items()
            }
        elif draw < 0.5:
            at, word = rng.integers(len(content) + 1), _WORDS[rng.integers(len(_WORDS))]
            over = len(word) if rng.random() < 0.5 else 0
            members[name] = content[:at] + word + content[at + over :]
        else:
            members[name] = bend(content, rng)
    return packed(members)
