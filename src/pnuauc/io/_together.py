"""Several files that are replaced together: after a failure all are old, or all are new.

1. Each file is written beside its target under an unpredictable name that is created exclusively,
   locked, flushed to the disk and given the mode of the file it replaces.
2. For more than one file a journal with all names is written and flushed. From here the new files
   count: should the process be killed, whoever next writes or reads here finishes the work.
3. The files get their names, the journal goes. An error on the way is rolled back.

Ctrl-C and other polite signals wait while 2 and 3 last, which is milliseconds.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import secrets
import shutil
import signal
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pnuauc.exceptions import OutputError

try:
    import fcntl
except ImportError:  # pragma: no cover - not POSIX: no locks, and so no cleaning up
    fcntl = None  # type: ignore[assignment]

__all__ = ["POLITE_SIGNALS", "finish_commits", "written_together"]

_OURS = re.compile(r"\.pnuauc-[0-9a-f]{16}\.(part|old|commit)")
_MAX_JOURNAL = 2**16
POLITE_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class _File(io.FileIO):
    """A file that remembers that writing to it failed, however the error travels."""

    failure: OSError | None = None

    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise


@dataclass(eq=False)
class _Draft:
    """A file in the making: ``final`` is the target with links followed."""

    target: Path
    final: Path
    part: Path
    raw: _File
    stream: IO[bytes] = field(init=False)
    backup: Path | None = None

    def __post_init__(self) -> None:
        self.stream = io.BufferedWriter(self.raw)

    def settle(self) -> None:
        """All bytes on the disk, with the mode (and, where allowed, the group) of the old file."""
        self.stream.flush()
        former = _stat(self.final)
        if former is not None and hasattr(os, "fchmod"):
            with contextlib.suppress(OSError):
                os.fchown(self.raw.fileno(), -1, former.st_gid)
            os.fchmod(self.raw.fileno(), stat.S_IMODE(former.st_mode))
        os.fsync(self.raw.fileno())

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self.stream.close()
        with contextlib.suppress(OSError):
            self.raw.close()
        with contextlib.suppress(OSError):
            self.part.unlink()


@contextlib.contextmanager
def written_together(
    paths: Sequence[Path], recheck: Callable[[], object] = lambda: None
) -> Iterator[list[IO[bytes]]]:
    """Binary files that get their names together, when all of them are complete.

    ``recheck`` is called when all is written and nothing is replaced yet; what it raises counts
    as any error: all is left as it was.
    """
    for folder in {path.resolve().parent for path in paths}:
        finish_commits(folder)
    drafts: list[_Draft] = []
    try:
        for path in paths:
            drafts.append(_draft(path))
        yield [draft.stream for draft in drafts]
        for draft in drafts:
            draft.settle()
        recheck()
        with _signals_wait():
            _commit(drafts)
    except BaseException as error:
        failure = next((d.raw.failure for d in drafts if d.raw.failure is not None), None)
        if failure is None and isinstance(error, OutputError):
            raise
        if failure is not None and not isinstance(error, KeyboardInterrupt):
            raise OutputError(_untouched(failure, paths)) from error
        raise
    finally:
        for draft in drafts:
            draft.drop()


def _draft(path: Path) -> _Draft:
    final = path.resolve()
    private = _stat(final) is not None  # perhaps nobody else may read the old file
    while True:
        part = final.with_name(f".pnuauc-{secrets.token_hex(8)}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            handle = os.open(part, flags, 0o600 if private else 0o666)
        except FileExistsError:
            continue
        _lock(handle, wait=True)
        # somebody who cleans up may have taken it for a leftover before it was locked
        if os.fstat(handle).st_nlink:
            return _Draft(path, final, part, _File(handle, "wb"))
        os.close(handle)


def _commit(drafts: list[_Draft]) -> None:
    with contextlib.ExitStack() as stack:
        for folder in sorted({draft.final.parent for draft in drafts}):
            stack.enter_context(_locked_folder(folder))
        if len(drafts) == 1:
            try:
                os.replace(drafts[0].part, drafts[0].final)
            except OSError as error:
                raise OutputError(_untouched(error, [drafts[0].target])) from error
            _sync_folders(drafts)
            return
        journal = None
        renamed: list[_Draft] = []
        try:
            for draft in drafts:
                draft.backup = _backup(draft.final)
            journal = stack.enter_context(_journal(drafts))
            for draft in drafts:
                os.replace(draft.part, draft.final)
                renamed.append(draft)
            _sync_folders(drafts)
        except BaseException as error:
            _roll_back(drafts, renamed, journal, error)
        _forget(drafts, journal)


def _backup(final: Path) -> Path | None:
    """Another name for the old file, so that it can come back."""
    if _stat(final) is None:
        return None
    while True:
        backup = final.with_name(f".pnuauc-{secrets.token_hex(8)}.old")
        try:
            os.link(final, backup)
        except FileExistsError:
            continue
        except OSError:  # not every file system has hard links
            with final.open("rb") as old, backup.open("xb") as copy:
                shutil.copyfileobj(old, copy)
            shutil.copystat(final, backup)
        return backup


@contextlib.contextmanager
def _journal(drafts: list[_Draft]) -> Iterator[Path]:
    path = drafts[0].final.with_name(f".pnuauc-{secrets.token_hex(8)}.commit")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        names = [
            [os.fspath(d.part), os.fspath(d.final), d.backup and os.fspath(d.backup)]
            for d in drafts
        ]
        text = json.dumps(names).encode("ascii")
        if os.write(handle, text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
        _sync_folders(drafts)
        yield path
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(handle)


def _roll_back(
    drafts: list[_Draft], renamed: list[_Draft], journal: Path | None, error: BaseException
) -> None:
    """Bring the old files back, then raise what says how that went."""
    stuck = []
    # first the journal: with it, a kill from here on would bring the new files back
    if journal is not None:
        with contextlib.suppress(OSError):
            journal.unlink()
    for draft in renamed:
        try:
            if draft.backup is None:
                draft.final.unlink()
            else:
                os.replace(draft.backup, draft.final)
        except OSError:
            stuck.append(draft.target)
    _forget([d for d in drafts if d.target not in stuck], None)
    if stuck:
        names = ", ".join(f"'{path}'" for path in stuck)
        raise OutputError(
            f"The outputs could not be replaced ({error}), and neither could the old files be "
            f"brought back: {names} new, the others old."
        ) from error
    if isinstance(error, OSError):
        raise OutputError(_untouched(error, [d.target for d in drafts])) from error
    raise error


def _forget(drafts: list[_Draft], journal: Path | None) -> None:
    for path in [journal, *(d.backup for d in drafts)]:
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()


def _untouched(error: OSError, paths: Sequence[Path]) -> str:
    names = [f"'{path}'" for path in paths]
    shown = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    state = "is as it was" if len(names) == 1 else "are as they were"
    reason = error.strerror or str(error) or type(error).__name__
    return f"Writing failed ({reason}): nothing was replaced, {shown} {state}."


# ---------------------------------------------------------------------- after a kill


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
        guard = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        # who holds the folder's lock is in the middle of a commit, and alive
        if not _lock(guard, wait=False):
            return
        for name in names:
            if name.endswith(".commit"):
                _finish(folder / name)
        for name in names:
            if not name.endswith(".commit"):
                _remove(folder / name)
    finally:
        os.close(guard)


def _remove(path: Path) -> None:
    with _abandoned(path) as handle:
        if handle is not None:
            with contextlib.suppress(OSError):
                path.unlink()


def _finish(journal: Path) -> None:
    """Do what a journal of a killed process says."""
    with _abandoned(journal) as handle:
        # what others can write to, others may have written
        if handle is None or os.fstat(handle).st_mode & 0o022:
            return
        try:
            moves = json.loads(os.read(handle, _MAX_JOURNAL))
            checked = [_move(*move) for move in moves]
        except (ValueError, TypeError, OSError):
            checked = []  # it was killed while it wrote the journal: nothing was replaced yet
        with contextlib.suppress(OSError):
            for part, final, _ in checked:
                if _stat(part) is not None:
                    os.replace(part, final)
            for _, _, backup in checked:
                if backup is not None and _stat(backup) is not None:
                    backup.unlink()
            journal.unlink()


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
        found = _stat(path)
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
        free = stat.S_ISREG(found.st_mode) and _is_own(found) and _lock(handle, wait=False)
    except OSError:
        free = False
    try:
        yield handle if free else None
    finally:
        if handle is not None:
            os.close(handle)


def _is_own(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _lock(handle: int, *, wait: bool) -> bool:
    """Whether the file could be locked; where locks do not exist, it could not."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Two processes that replace the same files do so one after the other."""
    handle = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    try:
        if handle is not None:
            _lock(handle, wait=True)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _sync_folders(drafts: list[_Draft]) -> None:
    """Names on the disk too; not every file system can."""
    for folder in sorted({draft.final.parent for draft in drafts}):
        if fcntl is None:
            return
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """Signals that ask to stop are answered when the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    former = {number: signal.getsignal(number) for number in POLITE_SIGNALS}
    handled = [n for n, action in former.items() if callable(action)]
    # a signal that arrives between two of these calls is answered by one handler or the other
    for number in handled:
        signal.signal(number, lambda n, frame: waiting.append(n))
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, former[number])
        for number in waiting[:1]:
            os.kill(os.getpid(), number)
