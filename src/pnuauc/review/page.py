"""A batch as a page that opens from disk, and as a sheet for those who prefer one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from pnuauc._utils.extras import need
from pnuauc._utils.show import visible
from pnuauc.model.model import cell_text
from pnuauc.report.page import safe_cell

__all__ = ["review_page", "review_sheet"]

#: Cells longer than this are shown as text to read, not in the grid of values.
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
    """One self-contained HTML file: no server, nothing fetched; decisions stay in the browser.

    Parameters
    ----------
    key : what distinguishes this batch from all others, for the browser's store
    cells : ``pyarrow.Table`` with one row for each id
    marks, reasons : for each row the words to mark, and what speaks for it
    """
    jinja2 = need("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pnuauc.review", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    texts = _long_columns(cells)
    rows = []
    for k, line in enumerate(cells.to_pylist()):
        shown = {column: visible(cell_text(value)) for column, value in line.items()}
        rows.append(
            {
                "id": ids[k],
                "texts": [[c, shown[c]] for c in texts if shown[c]],
                "cells": [[c, text] for c, text in shown.items() if c not in texts],
                "marks": list(marks[k]),
                "reasons": visible(reasons[k]),
            }
        )
    data = {"key": key, "download": f"decisions-{round}.csv", "rows": rows}
    page: str = environment.get_template("review.html.j2").render(
        name=visible(name), round=round, data=_inside_script(jinja2, data)
    )
    return page


def _inside_script(jinja2: Any, data: Any) -> Any:
    """JSON inside a script element: what could end the element, or open a comment, is escaped."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False)
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return jinja2.utils.markupsafe.Markup(text)


def _long_columns(cells: Any) -> list[str]:
    long = []
    for name in cells.column_names:
        texts = [v for v in cells.column(name).to_pylist() if isinstance(v, str)]
        if any(len(text) > _LONG for text in texts):
            long.append(name)
    return long


def review_sheet(
    id: str, ids: Sequence[str], decided: Sequence[str], cells: Any, reasons: Sequence[str]
) -> str:
    """CSV with the ids, an empty column "decision" to fill in, and the columns of the rows.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    own = {id, "decision", "reason"}
    names = [name if name not in own else f"{name} (column)" for name in cells.column_names]
    writer.writerow([safe_cell(name) for name in [id, "decision", *names, "reason"]])
    for k, line in enumerate(cells.to_pylist()):
        values = [cell_text(value) for value in line.values()]
        writer.writerow([safe_cell(cell) for cell in [ids[k], decided[k], *values, reasons[k]]])
    return out.getvalue()
