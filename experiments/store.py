"""Results on disk: one CSV file an experiment, one line a row, appended when it is finished.

A line is the key (experiment, data set, setting, method, seed), a fingerprint of the configuration,
"ok" or "failed", the columns of the experiment's kind, a note and the run that made it. Numbers are
stored to six digits; lists and dictionaries as JSON.

A line is written by one call and synced; a process killed in the middle of it leaves a last line
without its newline, which the next run cuts off. So no row is lost, repeated or half there.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["KEY", "Row", "Store", "add_run", "as_text", "identity", "read_rows"]

KEY = ("experiment", "data_set", "setting", "method", "seed")

Row = dict[str, str]


def identity(row: Row) -> tuple[str, ...]:
    """What tells a row of one configuration from every other."""
    return (*(row[field] for field in KEY), row["fingerprint"])


def read_rows(path: Path) -> list[Row]:
    """All whole rows of a results file; none where there is no file."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    return list(csv.DictReader(io.StringIO(whole)))


class Store(contextlib.AbstractContextManager["Store"]):
    """The results file of one experiment, open for appending by this process alone."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.fields = (*KEY, "fingerprint", "status", *columns, "note", "run")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise RuntimeError(
                f"Another run is writing {path.name}: wait for it, or stop it."
            ) from None
        try:
            self._mend()
        except ValueError:
            self.close()
            raise
        self.rows = read_rows(path)
        self._known = {identity(row): row for row in self.rows}

    def _mend(self) -> None:
        """Cut off a line that a killed process left unfinished; write or check the header."""
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(self._file, whole)
        header = ",".join(self.fields) + "\n"
        if whole == 0:
            self._write([header])
        elif not content.startswith(header.encode()):
            raise ValueError(f"{self.path.name} has other columns than {header.strip()}.")

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            os.write(self._file, line.encode("utf-8"))
        os.fsync(self._file)

    def status(self, key: tuple[str, ...], fingerprint: str) -> str | None:
        """ "ok" or "failed" for a row that is there, None for one that is not."""
        row = self._known.get((*key, fingerprint))
        return None if row is None else row["status"]

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Write rows that are not there yet."""
        lines = []
        for values in rows:
            row = {field: as_text(values.get(field, "")) for field in self.fields}
            known = self._known.get(identity(row))
            if known is not None and known["status"] == "ok":
                continue
            buffer = io.StringIO()
            csv.DictWriter(buffer, self.fields, lineterminator="\n").writerow(row)
            lines.append(buffer.getvalue())
            self._known[identity(row)] = row
            self.rows.append(row)
        self._write(lines)

    def close(self) -> None:
        os.close(self._file)  # releases the lock

    def __exit__(self, *_: object) -> None:
        self.close()


def as_text(value: Any) -> str:
    """One line of text: numbers short, line breaks gone."""
    if isinstance(value, float):  # NumPy's double is one
        return f"{value:.6g}"
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value)
    return " ".join(str(value).split())


def add_run(folder: Path, run: dict[str, Any]) -> None:
    """Versions and configuration of a run, one JSON line in ``runs.jsonl``; rows name the run."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "runs.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(run, sort_keys=True) + "\n")
