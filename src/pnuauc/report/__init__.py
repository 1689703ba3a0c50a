"""Findings (one dict) -> text, JSON, HTML. Nothing is computed here, only said."""

from __future__ import annotations

from typing import Any

from pnuauc._utils.show import dump_json
from pnuauc.report.page import review_columns, review_csv, to_html
from pnuauc.report.words import headline, next_steps, summary_rows

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


def to_json(findings: dict[str, Any]) -> str:
    """The findings as JSON; NaN and infinities are null."""
    return dump_json(findings)


def to_text(findings: dict[str, Any]) -> str:
    """The findings in plain lines, for a terminal or a log."""
    rows = summary_rows(findings)
    width = max(len(name) for name, _ in rows)
    lines = [*headline(findings), ""]
    lines += [f"{name:<{width}}  {value}" for name, value in rows]
    notes = [*findings.get("warnings", []), *findings["table"]["notes"]]
    if notes:
        lines += ["", *(f"- {note}" for note in notes)]
    lines += ["", "What to do next"]
    lines += [f"{i}. {step}" for i, step in enumerate(next_steps(findings), 1)]
    return "\n".join(lines)
