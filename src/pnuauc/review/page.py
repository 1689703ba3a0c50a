"""A batch as a page that opens from disk, and as a sheet for those who prefer one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pnuauc._utils.extras import need
from pnuauc._utils.show import visible
from pnuauc.model.model import cell_text
from pnuauc.report.page import csv_text, fill_template

#: Columns with a text cell longer than this are shown as text to read, not in the grid of values.
_LONG = 60


def review_page(
    name: str,
    round: int,
    key: str,
    ids: Sequence[str],
    cells: Any,
    marks: Sequence[Sequence[str]],
    reasons: Sequence[str],
) -> str:
    """The page of a batch: no server, nothing fetched; decisions stay in the browser.

    Parameters
    ----------
    key : what distinguishes this batch from all others, for the browser's store
    cells : ``pyarrow.Table`` with one row for each id
    marks, reasons : for each row the words to mark, and what speaks for it
    """
    lines = cells.to_pylist()
    texts = [
        name
        for name in cells.column_names
        if any(isinstance(line[name], str) and len(line[name]) > _LONG for line in lines)
    ]
    rows = []
    for i, line, mark, reason in zip(ids, lines, marks, reasons, strict=True):
        shown = {column: visible(cell_text(value)) for column, value in line.items()}
        rows.append(
            {
                "id": i,
                "texts": [[c, shown[c]] for c in texts if shown[c]],
                "cells": [[c, text] for c, text in shown.items() if c not in texts],
                "marks": list(mark),
                "reasons": visible(reason),
            }
        )
    data = {"key": key, "download": f"decisions-{round}.csv", "rows": rows}
    # inside a script element: what could end the element, or open a comment, is escaped
    text = json.dumps(data, ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    script = need("jinja2").utils.markupsafe.Markup(text)
    return fill_template("review.html.j2", name=visible(name), round=round, data=script)


def review_sheet(
    id: str, ids: Sequence[str], decided: Sequence[str], cells: Any, reasons: Sequence[str]
) -> str:
    """CSV with the ids, an empty column "decision" to fill in, and the columns of the rows."""
    own = {id, "decision", "reason"}
    names = [name if name not in own else f"{name} (column)" for name in cells.column_names]
    lines = [[id, "decision", *names, "reason"]]
    for i, word, line, reason in zip(ids, decided, cells.to_pylist(), reasons, strict=True):
        lines.append([i, word, *map(cell_text, line.values()), reason])
    return csv_text(lines)
