"""The ledger of a review: which rows were drawn, with what probability, and what was decided.

One file of JSON lines that only grows. A line is a whole batch or a whole file of decisions, so
that a kill in the middle of writing leaves all of it or nothing: what comes after the last line
end was never acknowledged, and is cut off before the next line is written.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from pnuauc._utils.show import few
from pnuauc.exceptions import InputError
from pnuauc.review.audit import Draw

__all__ = ["DECISIONS", "Drawn", "Ledger", "read_decision"]

#: Words for what a reviewer says of a row; the last two leave it undecided.
DECISIONS = ("positive", "negative", "unsure", "skip")
_SPELLINGS = {
    **{word: word for word in DECISIONS},
    **dict.fromkeys(("1", "1.0", "yes", "y", "true", "p", "+"), "positive"),
    **dict.fromkeys(("0", "0.0", "no", "n", "false", "-"), "negative"),
    **dict.fromkeys(("?", "u", "maybe"), "unsure"),
    **dict.fromkeys(("s", "skipped"), "skip"),
}


def read_decision(text: Any) -> str | None:
    """The decision that a cell stands for: "" where it is empty, None where it is no decision.

    Examples
    --------
    >>> read_decision(" Yes"), read_decision(0), read_decision(""), read_decision("perhaps")
    ('positive', 'negative', '', None)
    """
    word = "" if text is None or text != text else str(text).strip().lower()
    return _SPELLINGS.get(word.lstrip("'")) if word else ""


@dataclass(frozen=True)
class Drawn:
    """A row of a batch: how it was drawn, "score" or "explore", with what probability, and its
    place in the reading order (see :mod:`pnuauc.review.expected`)."""

    id: str
    probability: float
    score: float
    by: str
    place: float


@dataclass
class _Batch:
    rows: list[Drawn]
    date: str


@dataclass
class Ledger:
    """Batches in their order and the last decision on every row.

    Attributes
    ----------
    batches : list of batches, round r at place r - 1
    decisions : dict from id to (decision, date), the last one of each row
    by_hand : ids with a decision that no batch had drawn before, and the round after which it came
    """

    path: Path
    batches: list[_Batch] = field(default_factory=list)
    decisions: dict[str, tuple[str, str]] = field(default_factory=dict)
    by_hand: dict[str, int] = field(default_factory=dict)
    _drawn: dict[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """What the file holds; a file that is not there is an empty ledger."""
        ledger = cls(path)
        text = path.read_bytes() if path.exists() else b""
        for number, line in enumerate(text.split(b"\n")[:-1], start=1):
            try:
                ledger._take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise InputError(
                    f"Line {number} of '{path}' is not a line of a ledger; restore the file from a "
                    "copy, or start the review in another folder."
                ) from None
        return ledger

    # ------------------------------------------------------------------ growing

    def add_batch(self, rows: Sequence[Drawn]) -> int:
        """Append a batch; gives its round, the first one 1."""
        again = [row.id for row in rows if row.id in self._drawn]
        if again:
            raise ValueError(f"Rows {few(again)} were drawn before.")
        self._append({"drawn": [list(astuple(r)) for r in rows]})
        return len(self.batches)

    def add_decisions(self, decisions: Mapping[str, str]) -> None:
        """Append decisions, by id; see :func:`pnuauc.review.decisions.check_decisions`."""
        unknown = set(decisions.values()) - set(DECISIONS)
        if unknown:
            raise ValueError(f"{few(sorted(unknown))} are no decisions.")
        if decisions:
            self._append({"decisions": dict(decisions)})

    def _append(self, entry: dict[str, Any]) -> None:
        entry = {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds")
        } | entry
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        with open(self.path, "a+b") as stream:
            stream.seek(0)
            whole = stream.read().rfind(b"\n") + 1
            stream.truncate(whole)
            stream.seek(whole)
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        date = str(entry["date"])
        if "drawn" in entry:
            rows = [
                Drawn(str(i), float(p), float(s), str(by), float(u))
                for i, p, s, by, u in entry["drawn"]
            ]
            self.batches.append(_Batch(rows, date))
            self._drawn |= {row.id: len(self.batches) for row in rows}
            return
        for name, decision in entry["decisions"].items():
            if name not in self._drawn:
                self.by_hand.setdefault(name, len(self.batches))
            self.decisions[name] = (str(decision), date)

    # ------------------------------------------------------------------ reading

    def decision(self, name: str) -> str | None:
        """positive, negative, unsure or skip; None where nothing was said of the row."""
        found = self.decisions.get(name)
        return None if found is None else found[0]

    @property
    def labels(self) -> dict[str, int]:
        """1 and 0 by id, of the rows that are decided."""
        known = {"positive": 1, "negative": 0}
        return {i: known[word] for i, (word, _) in self.decisions.items() if word in known}

    @property
    def seen(self) -> set[str]:
        """Rows that are no longer in the pool: drawn, or decided by hand."""
        return {*self._drawn, *self.by_hand}

    @property
    def open_rows(self) -> list[Drawn]:
        """Rows of the last batch of which nothing was said yet."""
        last = self.batches[-1].rows if self.batches else []
        return [row for row in last if row.id not in self.decisions]

    @property
    def n_complete(self) -> int:
        """Batches at the beginning of which every row has an entry."""
        for k, batch in enumerate(self.batches):
            if any(row.id not in self.decisions for row in batch.rows):
                return k
        return len(self.batches)

    def draws(self, pool: Collection[str]) -> Iterator[Draw]:
        """The random draws from the rows of ``pool``, in order, for :class:`Audit`.

        A row that stays undecided counts as a positive: a bound for "positive or undecided" is one
        for "positive". Only batches in which every row has an entry count: which rows are decided
        first may depend on what they are.
        """
        left, found = len(pool), 0
        for k, batch in enumerate(self.batches[: self.n_complete]):
            by_hand = [i for i, after in self.by_hand.items() if after == k and i in pool]
            left -= len(by_hand)
            found += sum(self.decision(i) != "negative" for i in by_hand)
            for row in sorted(batch.rows, key=lambda row: row.by == "explore"):
                positive = self.decision(row.id) != "negative"
                if row.by == "explore":
                    yield Draw(left, found, positive)
                left -= 1
                found += positive

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Header and rows for a CSV file: all that is known of every drawn or decided row."""
        header = ["id", "round", "probability", "score", "drawn_by", "decision", "date"]
        rows = [
            [row.id, k, row.probability, row.score, row.by, *self._entry(row.id, batch.date)]
            for k, batch in enumerate(self.batches, start=1)
            for row in batch.rows
        ]
        rows += [[i, k, "", "", "hand", *self._entry(i, "")] for i, k in self.by_hand.items()]
        return header, rows

    def _entry(self, name: str, drawn: str) -> tuple[str, str]:
        return self.decisions.get(name, ("", drawn))
