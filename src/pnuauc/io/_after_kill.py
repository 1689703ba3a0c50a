"""After a kill: finish what a dead process had committed, and remove what it left.

The same file is the guard of a commit: started with the process that commits and the folders, it
waits for that process to end, and then does its duty there. So it needs nothing but Python's own
library.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - not POSIX: no locks, and so no cleaning up
    fcntl = None  # type: ignore[assignment]

__all__ = ["finish_commits", "lock", "lstat"]

_OURS = re.compile(r"\.pnuauc-[0-9a-f]{16}\.(part|old|commit)")
_MAX_JOURNAL = 2**16
#: Seconds to wait for somebody else's commit, which takes milliseconds.
_PATIENCE = 2.0


def finish_commits(folder: Path) -> None:
    """Finish what a killed process had committed in this folder, and remove what it left.

    Only files of ours, of this user, that no living process has locked.
    """
    if fcntl is None:
        return
    try:
        names = [entry.name for entry in os.scandir(folder) if _OURS.fullmatch(entry.name)]
        if not names:
            return
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        # who holds the folder's lock is in the middle of a commit, and alive
        if not lock(handle, seconds=_PATIENCE):
            return
        journals = [folder / name for name in names if name.endswith(".commit")]
        unfinished = [journal for journal in journals if not _finish(journal)]
        if not unfinished:
            for name in names:
                if not name.endswith(".commit"):
                    _remove(folder / name)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    with _abandoned(path) as handle:
        if handle is not None:
            with contextlib.suppress(OSError):
                path.unlink()


def _finish(journal: Path) -> bool:
    """Do what a journal of a killed process says; False if it could not be done."""
    with _abandoned(journal) as handle:
        # what others can write to, others may have written
        if handle is None or os.fstat(handle).st_mode & 0o022:
            return True
        try:
            said = json.loads(os.read(handle, _MAX_JOURNAL))
            main = Path(said) if isinstance(said, str) else None
            moves = [] if main is not None else [_move(*move) for move in said]
        except (ValueError, TypeError, OSError):
            main, moves = None, []  # killed while it wrote the journal: nothing was replaced yet
        if main is not None and _OURS.fullmatch(main.name) and main.parent != journal.parent:
            finish_commits(main.parent)
            if lstat(main) is not None:
                return False
        try:
            _do(moves)
            journal.unlink()
        except OSError:
            return False
        return True


def _do(moves: list[tuple[Path, Path, Path | None]]) -> None:
    for part, final, _ in moves:
        if lstat(part) is not None:
            os.replace(part, final)
    for _, _, backup in moves:
        if backup is not None and lstat(backup) is not None:
            backup.unlink()


def _move(part: str, final: str, backup: str | None) -> tuple[Path, Path, Path | None]:
    """The three names, if they are such as we write: side by side, and ours."""
    new, old = Path(part), None if backup is None else Path(backup)
    for path, ending in ((new, ".part"), (old, ".old")):
        if path is None:
            continue
        if not _OURS.fullmatch(path.name) or path.suffix != ending:
            raise ValueError("not our name")
        if path.parent != Path(final).parent:
            raise ValueError("not side by side")
        found = lstat(path)
        if found is not None and not (stat.S_ISREG(found.st_mode) and _is_own(found)):
            raise ValueError("not our file")
    return new, Path(final), old


@contextlib.contextmanager
def _abandoned(path: Path) -> Iterator[int | None]:
    """The open file, if it is ours and no living process holds its lock; else None."""
    handle = None
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        found = os.fstat(handle)
        free = stat.S_ISREG(found.st_mode) and _is_own(found) and lock(handle)
    except OSError:
        free = False
    try:
        yield handle if free else None
    finally:
        if handle is not None:
            os.close(handle)


def _is_own(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def lstat(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def lock(handle: int, *, seconds: float = 0.0) -> bool:
    """Whether the file could be locked within that time; where there are no locks, it could not."""
    if fcntl is None:
        return False
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        except OSError:
            return False
        else:
            return True


def _watch(process: int, folders: list[str]) -> None:
    """Wait for the end of the process that started this one, then finish what it began."""
    sys.stdin.buffer.read()  # ends when the other end of the pipe is closed
    until = time.monotonic() + _PATIENCE
    while os.getppid() == process and time.monotonic() < until:
        time.sleep(0.002)  # it is dying: its locks are not free yet
    for folder in folders:
        finish_commits(Path(folder))


if __name__ == "__main__":
    _watch(int(sys.argv[1]), sys.argv[2:])
