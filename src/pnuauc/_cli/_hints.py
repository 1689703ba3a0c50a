"""Which option answers a message of the library: only the command line names its options."""

from __future__ import annotations

import re
import shlex
from typing import Any

__all__ = ["hints_for", "with_hint"]

#: By ``about`` of an error of :mod:`pnuauc.exceptions`.
_HINTS = {
    "labels": "Use --positive, --negative and --unlabeled to name label values.",
    "positive": "Use --positive to name it, for example --positive fraud.",
    "zeros": "Use --unlabeled 0 if 0 means not looked at, --negative 0 if it means negative.",
    "prior": "Use --prior to give it, for example --prior 0.1.",
    "delimiter": "Use --delimiter to set it, for example --delimiter semicolon.",
    "encoding": "Use --encoding to set it, for example --encoding latin-1.",
    "format": "Use --format to name it, for example --format csv.",
    "dates": "Use --date-format day-first or --date-format month-first.",
    "cells": "Use --decimal, --date-format or --categorical to have cells read differently.",
    "drop": "Use --drop to leave a column out.",
    "output": "Use -o to name another file.",
    "max_unlabeled": "Use --max-unlabeled to draw more of them, or all.",
}


def with_hint(error: Exception) -> str:
    """The error's sentence, and the option that answers it where there is one."""
    text = " ".join(str(error).split())
    hint = _HINTS.get(getattr(error, "about", None) or "")
    if hint is not None and "for example" in hint:
        hint = _with_own_example(hint, text)
    return text if hint is None else f"{text} {hint}"


def _with_own_example(hint: str, text: str) -> str:
    """The hint with the values that the message itself offers, where it does: 'a' or to 'b'."""
    option = hint.rpartition("for example ")[2].split()[0]
    offered = re.search(r"('[^']+'|[\w-]+) or (?:to )?('[^']+'|[\w-]+)[.;]", text)
    if option not in {"--positive", "--encoding"} or offered is None:
        return hint
    first, second = (shlex.quote(value.strip("'")) for value in offered.groups())
    return f"Use {option} {first} or {option} {second}."


def hints_for(findings: dict[str, Any]) -> list[str]:
    """The options that answer what is doubtful in the findings of a fit or an evaluation."""
    topics = []
    if announced := findings["labels"].get("announcement"):
        topics.append("zeros" if announced.startswith("Every row is labelled") else "labels")
    if (findings.get("prior") or {}).get("doubt"):
        topics.append("prior")
    if findings.get("leaks"):
        topics.append("drop")
    drawn = (findings.get("settings") or {}).get("max_unlabeled", "all")
    if drawn != "all" and findings["labels"]["unlabeled"] > drawn:
        topics.append("max_unlabeled")
    columns = (findings.get("table") or {}).get("columns", [])
    if any(column.get("form") not in {None, "", "ymd"} for column in columns):
        topics.append("cells")
    return [_HINTS[topic] for topic in topics]
