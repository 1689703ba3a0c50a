"""The rows to review as CSV: the same rows as in the report, all their columns."""

from __future__ import annotations

import csv
import io
from typing import Any

__all__ = ["review_csv"]


def review_csv(top: dict[str, Any]) -> str:
    """CSV with row number, ids, score, percentile, probability, reason and all columns.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    if not top["rows"]:
        return "row,score,percentile\n"
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    n_ids = len(top["ids"])
    chances = top.get("probability")
    taken = {"row", *top["ids"], "score", "percentile", "probability", "reason"}
    columns = [name if name not in taken else f"{name} (column)" for name in top["columns"]]
    extra = ["probability"] if chances else []
    writer.writerow(
        [_safe(c) for c in ["row", *top["ids"], "score", "percentile", *extra, "reason", *columns]]
    )
    for i, line in enumerate(top["rows"]):
        chance = [chances[i]] if chances else []
        cells = [_safe(cell) for cell in top["cells"][i]]
        ids = [_safe(cell) for cell in line[1 : 1 + n_ids]]
        numbers = line[1 + n_ids : 3 + n_ids]
        writer.writerow([line[0], *ids, *numbers, *chance, _safe(top["reasons"][i]), *cells])
    return out.getvalue()


def _safe(cell: str) -> str:
    """Text that begins like a formula is made text for good; negative numbers stay numbers."""
    if cell[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        try:
            float(cell)
        except ValueError:
            return f"'{cell}"
    return cell
