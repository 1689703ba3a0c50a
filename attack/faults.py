"""Kills and errors at every call that changes the disk, while several files are replaced.

A child process replaces three files; before or after its k-th call of open, write, fsync, rename,
chmod, unlink it is killed, or the call fails. The law: each file is old or new and whole, the last
one is new only if all are, what the message said is true, and after an error nothing is left over.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack.runner import Target
from pnuauc.exceptions import OutputError
from pnuauc.io import write
from pnuauc.io.write import written_together

__all__ = ["FAULTS", "FAULT_CASES", "PLACES", "WAYS", "strike"]

WAYS = ("kill", "error")
#: Places to strike at; a replacement of three files has fewer.
PLACES = 80
#: Four beginnings (how many files there were), the ways to fail, the places.
FAULT_CASES = 4 * len(WAYS) * PLACES
_NAMES = ("a.html", "b/a.json", "a.pnuauc")
_CALLS = ("open", "write", "fsync", "replace", "fchmod", "fchown", "unlink")


def strike(folder: Path, existing: int, place: int, how: str) -> str:
    """Attack a replacement in an empty folder; what was left, or an ``AssertionError``."""
    (folder / "b").mkdir()
    for name in _NAMES[:existing]:
        (folder / name).write_text("old " + name)
    said = _in_child(folder, place, how)
    found = [_generation(folder / name, k < existing) for k, name in enumerate(_NAMES)]
    assert set(found) <= {"old", "new"}, f"a file is broken: {found}"
    assert found == sorted(found), f"replaced out of order: {found}"  # new before old
    state = found[0] if len(set(found)) == 1 else "mixed"
    if said == "struck nowhere":
        assert state == "new", f"nothing went wrong, but {found}"
        return said
    left = [p.name for p in folder.rglob(".pnuauc-*")]
    if how == "error":
        assert not left, f"left over: {left}"
        assert "nothing was replaced" not in said or state == "old", f"said {said!r}, but {found}"
        for name, generation in zip(_NAMES, found, strict=True):
            assert said == "done" or f"{name}'" in said, f"{name} is not named: {said}"
            assert said != "done" or generation == "new", f"said done, but {found}"
    assert all(name.endswith(".part") for name in left), f"left over: {left}"
    return f"{how}: {state}"


def _generation(path: Path, existed: bool) -> str:
    text = path.read_text() if path.exists() else "" if existed else f"old {_name(path)}"
    return {f"old {_name(path)}": "old", f"new {_name(path)}": "new"}.get(text, "broken")


def _name(path: Path) -> str:
    return next(name for name in _NAMES if path.match(name))


def _replace_all(folder: Path) -> str:
    try:
        with written_together([folder / name for name in _NAMES]) as streams:
            for name, stream in zip(_NAMES, streams, strict=True):
                stream.write(b"new " + name.encode())
    except OutputError as error:
        return str(error)
    except OSError as error:
        return f"nothing was replaced: {error} " + " ".join(f"{name}'" for name in _NAMES)
    return "done"


def _in_child(folder: Path, place: int, how: str) -> str:
    """What the child said; a killed child says nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the other process
        tell, calls = os.write, 0

        def around(plain: Any) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                hit()
                result = plain(*arguments, **options)
                hit()
                return result

            return call

        def hit() -> None:
            nonlocal calls
            calls += 1
            if calls == place and how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            # a call that has been made cannot fail any more: errors strike before
            if calls == place and how == "error" and calls % 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        said = "?"
        try:
            os.close(reader)
            for name in _CALLS:
                setattr(os, name, around(getattr(os, name)))
            write._File.write = around(write._File.write)  # type: ignore[method-assign]
            said = _replace_all(folder)
            if calls < place or (how == "error" and place % 2 == 0):
                said = "struck nowhere"
        finally:
            tell(writer, said.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def _faults() -> Callable[[int], str]:
    scratch = Path(tempfile.mkdtemp(prefix="pnuauc-attack-"))

    def case(number: int) -> str:
        existing, rest = number % 4, number // 4
        folder = scratch / str(number)
        folder.mkdir()
        outcome = strike(folder, existing, rest // len(WAYS) + 1, WAYS[rest % len(WAYS)])
        shutil.rmtree(folder)
        last = number >= 4 * len(WAYS) * (PLACES - 1)
        assert not last or outcome == "struck nowhere", "more calls than places"
        return outcome

    return case


FAULTS = Target("faults while files are replaced", _faults)
