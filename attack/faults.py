"""Kills and errors at every call that changes the disk, while several files are replaced together.

A child process replaces three files; before or after its k-th call of open, write, fsync, link,
rename, chmod, unlink it is killed, or the call fails. The law: afterwards all files are old or all
are new, what the message said is true, and nothing is left over once somebody looks, as
``finish_commits`` does for every command. Only when its guard is killed as well (``how`` is "kill
all", or a machine that stops) may the files be mixed until somebody looks.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pnuauc.exceptions import OutputError
from pnuauc.io import _together
from pnuauc.io._after_kill import finish_commits
from pnuauc.io._together import written_together

__all__ = ["WAYS", "Outcome", "attack_replacement", "count_calls", "wait_for_the_guard"]

WAYS = ("kill", "kill all", "error")

_NAMES = ("a.pnuauc", "a.html", "b/a.json")
_CALLS = ("open", "write", "fsync", "link", "replace", "fchmod", "unlink")


@dataclass(frozen=True)
class Outcome:
    """What one attack left: generations of the files before and after somebody looked."""

    how: str
    state: tuple[str, ...]
    settled: tuple[str, ...]
    message: str | None
    leftovers: tuple[str, ...]

    @property
    def problems(self) -> list[str]:
        found = []
        if len(set(self.settled)) != 1 or not set(self.settled) <= {"old", "new"}:
            found.append(f"files are mixed: {self.settled}")
        if self.how != "kill all" and len(set(self.state)) != 1:
            found.append(f"files were mixed until somebody looked: {self.state}")
        if self.message and "nothing was replaced" in self.message and "new" in self.state:
            found.append("said that nothing was replaced, but it was")
        if self.message == "done" and set(self.state) != {"new"}:
            found.append("said done, but it was not")
        if self.leftovers:
            found.append(f"left over: {self.leftovers}")
        return found


def _prepare(folder: Path, existing: int) -> None:
    (folder / "b").mkdir()
    for name in _NAMES[:existing]:
        (folder / name).write_text("old " + name)


def _replace_all(folder: Path) -> str:
    try:
        with written_together([folder / name for name in _NAMES]) as streams:
            for name, stream in zip(_NAMES, streams, strict=True):
                stream.write(b"new " + name.encode())
    except OutputError as error:
        return str(error)
    except OSError as error:
        return f"nothing was replaced: {error}"  # nothing was committed: the law checks it
    return "done"


def _patched(strike: Callable[[], None]) -> None:
    """Call ``strike`` before and after every call that changes the disk, in this process."""

    def around(plain: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            strike()
            result = plain(*arguments, **options)
            strike()
            return result

        return call

    for name in _CALLS:
        setattr(os, name, around(getattr(os, name)))
    _together._File.write = around(_together._File.write)  # type: ignore[method-assign]


def count_calls(folder: Path, existing: int = 3) -> int:
    """Places at which an attack can strike."""
    return int(_in_child(folder, existing, None, "count")[1])


def attack_replacement(folder: Path, existing: int, place: int, how: str) -> Outcome:
    """Strike at ``place`` in one of the :data:`WAYS`; the folder must be empty."""
    _, message = _in_child(folder, existing, place, how)
    folders = [folder, folder / "b"]
    if how == "kill":
        wait_for_the_guard(folders)
    state = _generations(folder, existing)
    for one in folders if place % 2 else reversed(folders):
        finish_commits(one)
    leftovers = [p.name for p in folder.rglob("*") if p.name.startswith(".pnuauc-")]
    return Outcome(how, state, _generations(folder, existing), message or None, tuple(leftovers))


def wait_for_the_guard(folders: Sequence[Path]) -> None:
    """Until no journal is left, for ten seconds at most."""
    until = time.monotonic() + 10
    while time.monotonic() < until and any(list(f.glob(".pnuauc-*.commit")) for f in folders):
        time.sleep(0.005)


def _generations(folder: Path, existing: int) -> tuple[str, ...]:
    found = []
    for k, name in enumerate(_NAMES):
        path = folder / name
        text = path.read_text() if path.exists() else ""
        absent = text == "" and k >= existing  # it was not there, and is not
        known = {"old " + name: "old", "new " + name: "new"}
        found.append("old" if absent else known.get(text, "broken"))
    return tuple(found)


def _in_child(folder: Path, existing: int, place: int | None, how: str) -> tuple[int, str]:
    """(exit status, what the child said); a killed child says nothing."""
    _prepare(folder, existing)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the other process
        said = b"?"
        try:
            os.close(reader)
            tell = os.write
            calls = 0

            def strike() -> None:
                nonlocal calls
                calls += 1
                if calls == place and how.startswith("kill"):
                    os.kill(os.getpid(), signal.SIGKILL)
                # a call that has been made cannot fail any more: errors strike before
                if calls == place and how == "error" and calls % 2:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            if how == "kill all":
                _together._guarded = lambda folders: nullcontext()
            _patched(strike)
            message = _replace_all(folder)
            said = (str(calls) if how == "count" else message).encode()
        finally:
            tell(writer, said)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said_text = stream.read()
    _, status = os.waitpid(child, 0)
    return status, said_text
