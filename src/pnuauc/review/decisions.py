"""Decisions that come back from a reviewer: read, checked against the ledger, none dropped."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pnuauc._utils.label_values import nearest
from pnuauc._utils.show import few
from pnuauc.exceptions import InputError
from pnuauc.io.readers import as_table, read_cells
from pnuauc.review.ledger import DECISIONS, Ledger, read_decision

__all__ = ["Checked", "check_decisions", "id_text"]


@dataclass
class Checked:
    """``new``: decisions to append, by id; ``notes``: one sentence for everything else."""

    new: dict[str, str]
    notes: list[str]


def id_text(value: Any) -> str:
    """An id as text, the same for 17, 17.0 and "17".

    Examples
    --------
    >>> id_text(17.0), id_text(" a1 "), id_text(None)
    ('17', 'a1', '')
    """
    if value is None or value != value:
        return ""
    whole = isinstance(value, float) and value == int(value)
    return str(int(value) if whole else value).strip()


def check_decisions(
    decisions: Any, known: Mapping[str, int], ledger: Ledger, *, id: str, relabel: bool = False
) -> Checked:
    """Read decisions and compare them with the table and the ledger.

    Parameters
    ----------
    decisions : dict from id to decision, a frame or a file with the columns ``id`` and "decision"
        Decisions are positive (1, yes), negative (0, no), unsure and skip; empty cells are rows
        that nobody has looked at yet.
    known : ids of the table
    id : name of the id column; a column "id" is read where it is not there
    relabel : whether a decision may replace an earlier one

    Raises
    ------
    InputError
        One sentence for each kind of trouble: unknown ids, cells that are no decision, an id with
        two decisions, decisions that differ from earlier ones. Then nothing is taken in.
    """
    pairs, where = _pairs(decisions, id)
    found: dict[str, str] = {}
    odd: dict[str, list[Any]] = defaultdict(list)
    for line, raw, cell in pairs:
        # spreadsheets are given '=1 for =1
        name = raw[1:] if raw not in known and raw[:1] == "'" and raw[1:] in known else raw
        decision = read_decision(cell)
        if decision == "":
            odd["empty"].append(name)
        elif name not in known:
            odd["unknown"].append((line, name))
        elif decision is None:
            odd["unread"].append((line, cell))
        elif name in found:
            odd["twice" if found[name] == decision else "conflict"].append(name)
        else:
            found[name] = decision
    for name, decision in found.items():
        before = ledger.decision(name)
        if before == decision:
            odd["again"].append(name)
        elif before in {"positive", "negative"}:
            odd["changed"].append(name)
    problems = _problems(odd, known, where)
    if odd["changed"] and not relabel:
        i = odd["changed"][0]
        problems.append(
            f"{_rows(odd['changed'])} have another decision than before ('{i}' was "
            f"{ledger.decision(i)}, is {found[i]} here); say relabel to replace earlier decisions."
        )
    if problems:
        about = "relabel" if len(problems) == 1 and "relabel" in problems[0] else None
        raise InputError(" ".join(["Nothing was taken in.", *problems]), about=about)
    new = {name: word for name, word in found.items() if ledger.decision(name) != word}
    seen = ledger.seen
    odd["hand"] = [name for name in new if name not in seen]
    return Checked(
        new, [f"{_rows(odd[kind])}: {note}" for kind, note in _NOTES.items() if odd[kind]]
    )


_NOTES = {
    "twice": "given twice with the same decision; counted once.",
    "again": "decided as before; nothing to change.",
    "changed": "given another decision than before; replaced.",
    "empty": "without a decision; left open.",
    "hand": "not drawn by the review; taken as picked by hand, with unknown odds.",
}


def _problems(
    odd: Mapping[str, list[Any]],
    known: Mapping[str, int],
    where: str,
) -> list[str]:
    out = []
    if unknown := odd.get("unknown"):
        line, name = unknown[0]
        near = nearest(name, list(known)) if len(known) <= 10_000 else None
        meant = "" if near is None else f" (did you mean '{near}'?)"
        out.append(
            f"{_count(unknown, 'id is', 'ids are')} not in the table, the first is '{name}' in row "
            f"{line}{meant}; correct or remove it."
        )
    if unread := odd.get("unread"):
        line, cell = unread[0]
        out.append(
            f"{_count(unread, 'cell holds', 'cells hold')} no decision, the first is "
            f"{str(cell)!r} in row {line}; write {', '.join(DECISIONS)}, or leave the cell empty."
        )
    if conflict := odd.get("conflict"):
        out.append(f"{_rows(conflict)} have two different decisions in {where}; keep one of them.")
    return out


def _count(items: list[Any], one: str, many: str) -> str:
    return f"{len(items):,} {one if len(items) == 1 else many}"


def _rows(names: list[str]) -> str:
    return f"{_count(names, 'row', 'rows')} ({few(names, 3)})"


def _pairs(decisions: Any, id: str) -> tuple[list[tuple[int, str, Any]], str]:
    """(row number, id, cell) of each decision, and what to call their source."""
    if isinstance(decisions, Mapping):
        items = [(id_text(name), cell) for name, cell in decisions.items()]
        return [(k, name, cell) for k, (name, cell) in enumerate(items, start=1)], "the decisions"
    named = isinstance(decisions, (str, os.PathLike))
    where = f"'{decisions}'" if named else "the decisions"
    table = read_cells(decisions) if named else as_table(decisions)
    names = getattr(table, "column_names", [])
    column = id if id in names else "id"
    missing = next((name for name in (column, "decision") if name not in names), None)
    if missing is not None:
        raise InputError(
            f"{where[0].upper()}{where[1:]} must have the columns '{id}' and 'decision'; there is "
            f"no '{missing}' among {few(names, 10) or 'no columns'}."
        )
    ids, cells = (table.column(name).to_pylist() for name in (column, "decision"))
    first = 2 if named else 1  # the header is row 1 of a file
    return [
        (k, id_text(i), c) for k, (i, c) in enumerate(zip(ids, cells, strict=True), first)
    ], where
