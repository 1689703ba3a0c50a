"""Findings (one dict) -> text, JSON, HTML. Nothing is computed here, only said."""

from __future__ import annotations

import json
from typing import Any

from pnuauc._report._html import to_html
from pnuauc._report._words import headline, summary_rows
from pnuauc.io._plain import plain

__all__ = ["headline", "plain", "summary_rows", "to_html", "to_json", "to_text"]


def to_json(findings: dict[str, Any]) -> str:
    """The findings as JSON; numbers that JSON cannot say are null."""
    return json.dumps(plain(findings), indent=1, ensure_ascii=False)


def to_text(findings: dict[str, Any]) -> str:
    """The findings in plain lines, for a terminal or a log."""
    rows = summary_rows(findings)
    width = max(len(name) for name, _ in rows)
    lines = [*headline(findings), ""]
    lines += [f"{name:<{width}}  {value}" for name, value in rows]
    notes = [*findings.get("warnings", []), *findings["table"]["notes"]]
    if notes:
        lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines)
