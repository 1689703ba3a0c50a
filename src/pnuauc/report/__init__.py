"""Findings -> text, JSON, HTML. Nothing is computed here, only said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pnuauc._utils.show import dump_json
from pnuauc.report.page import review_columns, review_csv, to_html
from pnuauc.report.words import headline, next_steps, summary_rows

if TYPE_CHECKING:
    from pnuauc.study.findings import Findings

__all__ = [
    "headline",
    "next_steps",
    "review_columns",
    "review_csv",
    "summary_rows",
    "to_html",
    "to_json",
    "to_text",
]


def to_json(found: Findings) -> str:
    """The findings as JSON; NaN and infinities are null."""
    return dump_json(found.to_dict())


def to_text(found: Findings) -> str:
    """The findings in plain lines, for a terminal or a log."""
    rows = summary_rows(found)
    width = max(len(name) for name, _ in rows)
    lines = [*headline(found), "", *(f"{name:<{width}}  {value}" for name, value in rows)]
    notes = [*found.warnings, *found.table.notes]
    lines += ["", *(f"- {note}" for note in notes)] if notes else []
    steps = enumerate(next_steps(found), 1)
    return "\n".join([*lines, "", "What to do next", *(f"{i}. {step}" for i, step in steps)])
