"""The ledger of a review: which rows were drawn, with what probability, and what was decided.

One file of JSON lines that only grows. A line is a whole batch or a whole file of decisions, so
that a kill in the middle of writing leaves all of it or nothing: what comes after the last line
end was never acknowledged, and is cut off before the next line is written.
"""

from __future__ import annotations

import datetime
import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pnuauc._utils.label_values import did_you_mean
from pnuauc._utils.show import few
from pnuauc.exceptions import InputError
from pnuauc.io.frames import as_table
from pnuauc.io.readers import read_cells

#: Words for what a reviewer says of a row; the last two leave it undecided.
DECISIONS = ("positive", "negative", "unsure", "skip")
_SPELLINGS = {
    **{word: word for word in ("", *DECISIONS)},
    **dict.fromkeys(("1", "1.0", "yes", "y", "true", "p", "+"), "positive"),
    **dict.fromkeys(("0", "0.0", "no", "n", "false", "-"), "negative"),
    **dict.fromkeys(("?", "u", "maybe"), "unsure"),
    **dict.fromkeys(("s", "skipped"), "skip"),
}


class Drawn(NamedTuple):
    """A row of a batch: how it was drawn, "score" or "explore", and with what probability."""

    id: str
    probability: float
    score: float
    by: str


class Round(NamedTuple):
    """After a complete round: rows of the pool left, positives found, rows without a decision,
    and each random draw as :meth:`pnuauc.review.Audit.update` takes it."""

    n_left: int
    found: int
    undecided: int
    draws: list[tuple[int, int, bool]]


class Ledger:
    """Batches in their order and the last decision on every row.

    Attributes
    ----------
    batches : list of lists of Drawn, round r at place r - 1; ``drawn`` has the same rows by id
    decisions : dict from id to (decision, date), the last one of each row
    by_hand : ids with a decision that no batch had drawn before, and the round after which it came
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.batches: list[list[Drawn]] = []
        self.drawn: dict[str, Drawn] = {}
        self._dates: list[str] = []
        self.decisions: dict[str, tuple[str, str]] = {}
        self.by_hand: dict[str, int] = {}
        text = path.read_bytes() if path.exists() else b""
        for number, line in enumerate(text.split(b"\n")[:-1], start=1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise InputError(
                    f"Line {number} of '{path}' is not a line of a ledger; restore the file from a "
                    "copy, or start the review in another folder."
                ) from None

    def add_batch(self, rows: Sequence[Drawn]) -> None:
        """Append a batch."""
        self._append({"drawn": rows})

    def add_decisions(self, decisions: Mapping[str, str]) -> None:
        """Append decisions, by id; see :func:`check_decisions`."""
        if decisions:
            self._append({"decisions": decisions})

    def _append(self, entry: dict[str, Any]) -> None:
        now = datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds")
        entry = {"date": now} | entry
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        with open(self.path, "a+b") as stream:
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        date = str(entry["date"])
        if "drawn" in entry:
            rows = [Drawn(str(i), float(p), float(s), str(by)) for i, p, s, by in entry["drawn"]]
            self.batches.append(rows)
            self._dates.append(date)
            self.drawn |= {row.id: row for row in rows}
            return
        for name, decision in entry["decisions"].items():
            if name not in self.drawn:
                self.by_hand.setdefault(name, len(self.batches))
            self.decisions[name] = (str(decision), date)

    def decision(self, name: str) -> str | None:
        """positive, negative, unsure or skip; None where nothing was said of the row."""
        return self.decisions.get(name, (None, ""))[0]

    @property
    def labels(self) -> dict[str, int]:
        """1 and 0 by id, of the rows that are decided."""
        known = {"positive": 1, "negative": 0}
        return {i: known[word] for i, (word, _) in self.decisions.items() if word in known}

    @property
    def seen(self) -> set[str]:
        """Rows that are no longer in the pool: drawn, or decided by hand."""
        return {*self.drawn, *self.by_hand}

    @property
    def open_rows(self) -> list[Drawn]:
        """Rows of the last batch of which nothing was said yet."""
        last = self.batches[-1] if self.batches else []
        return [row for row in last if row.id not in self.decisions]

    def rounds(self, pool: Collection[str]) -> Iterator[Round]:
        """The state of ``pool`` after each round, up to the first with a row without an entry:
        which rows are decided first may depend on what they are.

        For the random draws a row that stays undecided counts as a positive: a bound for "positive
        or undecided" is one for "positive".
        """
        size = left = len(pool)
        found = refuted = 0
        for k, batch in enumerate(self.batches):
            if any(row.id not in self.decisions for row in batch):
                return
            draws = []
            by_hand = [(i, "hand") for i, after in self.by_hand.items() if after == k and i in pool]
            drawn = sorted(((row.id, row.by) for row in batch), key=lambda r: r[1] != "score")
            for name, by in (*by_hand, *drawn):
                decision = self.decision(name)
                if by == "explore":
                    draws.append((left, size - left - refuted, decision != "negative"))
                left -= 1
                found += decision == "positive"
                refuted += decision == "negative"
            yield Round(left, found, size - left - found - refuted, draws)

    def table(self) -> list[list[Any]]:
        """Lines of a CSV file: the header, then what is known of every drawn or decided row."""
        lines: list[list[Any]] = [
            ["id", "round", "probability", "score", "drawn_by", "decision", "date"]
        ]
        for k, (batch, date) in enumerate(zip(self.batches, self._dates, strict=True), start=1):
            for i, p, s, by in batch:
                lines.append([i, k, p, s, by, *self.decisions.get(i, ("", date))])
        return lines + [[i, k, "", "", "hand", *self.decisions[i]] for i, k in self.by_hand.items()]


# Decisions that come back from a reviewer: read, checked against the ledger, none dropped.


def id_text(value: Any) -> str:
    """An id as text, the same for 17, 17.0 and "17".

    Examples
    --------
    >>> id_text(17.0), id_text(" a1 "), id_text(None)
    ('17', 'a1', '')
    """
    if value is None or value != value:
        return ""
    return str(int(value) if isinstance(value, float) and value == int(value) else value).strip()


#: What happens to rows that are not simply taken in.
_NOTES = {
    "twice": "given twice with the same decision; counted once.",
    "again": "decided as before; nothing to change.",
    "changed": "given another decision than before; replaced.",
    "empty": "without a decision; left open.",
    "hand": "not drawn by the review; taken as picked by hand, with unknown odds.",
}


def check_decisions(
    decisions: Any, known: Mapping[str, int], ledger: Ledger, *, id: str, relabel: bool = False
) -> tuple[dict[str, str], list[str]]:
    """Decisions to append, by id, and one sentence for each kind of row that is not.

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
    found: dict[str, str] = {}
    odd: dict[str, list[Any]] = defaultdict(list)  # kind -> (row number, id or cell)
    for line, raw, cell in _pairs(decisions, id):
        # spreadsheets are given '=1 for =1
        name = raw[1:] if raw not in known and raw[:1] == "'" and raw[1:] in known else raw
        word = "" if cell is None or cell != cell else str(cell).strip().lower().lstrip("'")
        if word == "":
            odd["empty"].append((line, name))
        elif name not in known:
            odd["unknown"].append((line, name))
        elif word not in _SPELLINGS:
            odd["unread"].append((line, cell))
        elif name in found:
            same = found[name] == _SPELLINGS[word]
            odd["twice" if same else "conflict"].append((line, name))
        else:
            found[name] = _SPELLINGS[word]
            before = ledger.decision(name)
            if before == found[name]:
                odd["again"].append((line, name))
            elif before in {"positive", "negative"}:
                odd["changed"].append((line, name))
    problems = []
    if odd["unknown"]:
        line, name = odd["unknown"][0]
        meant = did_you_mean(name, known) if len(known) <= 10_000 else ""
        problems.append(
            f"{_count(odd['unknown'], 'id is', 'ids are')} not in the table, the first is '{name}' "
            f"in row {line}{meant}; correct or remove it."
        )
    if odd["unread"]:
        line, cell = odd["unread"][0]
        problems.append(
            f"{_count(odd['unread'], 'cell holds', 'cells hold')} no decision, the first is "
            f"{str(cell)!r} in row {line}; write {', '.join(DECISIONS)}, or leave the cell empty."
        )
    if odd["conflict"]:
        problems.append(f"{_rows(odd['conflict'])} have two different decisions; keep one of them.")
    about = None
    if odd["changed"] and not relabel:
        i = odd["changed"][0][1]
        about = None if problems else "relabel"
        problems.append(
            f"{_rows(odd['changed'])} have another decision than before ('{i}' was "
            f"{ledger.decision(i)}, is {found[i]} here); say relabel to replace earlier decisions."
        )
    if problems:
        raise InputError(" ".join(["Nothing was taken in.", *problems]), about=about)
    new = {name: word for name, word in found.items() if ledger.decision(name) != word}
    seen = ledger.seen
    odd["hand"] = [(0, name) for name in new if name not in seen]
    return new, [f"{_rows(odd[kind])}: {note}" for kind, note in _NOTES.items() if odd[kind]]


def _count(items: list[Any], one: str, many: str) -> str:
    return f"{len(items):,} {one if len(items) == 1 else many}"


def _rows(found: list[Any]) -> str:
    return f"{_count(found, 'row', 'rows')} ({few([name for _, name in found], 3)})"


def _pairs(decisions: Any, id: str) -> list[tuple[int, str, Any]]:
    """(row number, id, cell) of each decision."""
    first, named = 1, isinstance(decisions, (str, os.PathLike))
    if isinstance(decisions, Mapping):
        ids, cells = list(decisions), list(decisions.values())
    else:
        table = read_cells(decisions) if named else as_table(decisions)
        names = getattr(table, "column_names", [])
        column = id if id in names else "id"
        missing = next((name for name in (column, "decision") if name not in names), None)
        if missing is not None:
            where = f"'{decisions}'" if named else "The decisions"
            raise InputError(
                f"{where} must have the columns '{id}' and 'decision'; there is no '{missing}' "
                f"among {few(names, 10) or 'no columns'}."
            )
        ids, cells = (table.column(name).to_pylist() for name in (column, "decision"))
        first += named  # the header is row 1 of a file
    return [(k, id_text(i), c) for k, (i, c) in enumerate(zip(ids, cells, strict=True), first)]
