"""Several files that are replaced together: after a failure all are old, or all are new.

1. Each file is written beside its target under an unpredictable name that is created exclusively,
   locked, flushed to the disk and given the mode of the file it replaces.
2. For more than one file a journal with all names is written and flushed. From here the new files
   count: should the process be killed, a guard that was started before finishes the work at once;
   should the guard be killed with it, whoever next writes or reads here does.
3. The files get their names, the journal goes. An error on the way is rolled back.

Ctrl-C and other polite signals wait while 2 and 3 last, which is milliseconds.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pnuauc._json import exact_json
from pnuauc.exceptions import OutputError
from pnuauc.io import _after_kill
from pnuauc.io._after_kill import finish_commits, lock, lstat

__all__ = ["POLITE_SIGNALS", "written_together"]

#: Seconds that another process may take to replace the same files.
_PATIENCE = 60.0
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
        former = lstat(self.final)
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
    private = lstat(final) is not None  # perhaps nobody else may read the old file
    while True:
        part = final.with_name(f".pnuauc-{secrets.token_hex(8)}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            handle = os.open(part, flags, 0o600 if private else 0o666)
        except FileExistsError:
            continue
        lock(handle, seconds=_PATIENCE)
        # somebody who cleans up may have taken it for a leftover before it was locked
        if os.fstat(handle).st_nlink:
            return _Draft(path, final, part, _File(handle, "wb"))
        os.close(handle)


def _commit(drafts: list[_Draft]) -> None:
    folders = sorted({draft.final.parent for draft in drafts})
    with contextlib.ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_locked_folder(folder))
        if len(drafts) == 1:
            try:
                os.replace(drafts[0].part, drafts[0].final)
            except OSError as error:
                raise OutputError(_untouched(error, [drafts[0].target])) from error
            _sync(folders)
            return
        stack.enter_context(_guarded(folders))
        journals: list[Path] = []
        renamed: list[_Draft] = []
        try:
            for draft in drafts:
                draft.backup = _backup(draft.final)
            _write_journals(drafts, folders, journals)
            for draft in drafts:
                os.replace(draft.part, draft.final)
                renamed.append(draft)
            _sync(folders)
        except BaseException as error:
            _roll_back(drafts, renamed, journals, error)
        _forget(drafts, journals)


@contextlib.contextmanager
def _guarded(folders: list[Path]) -> Iterator[None]:
    """Inside, a process of its own waits for the end of this one, to finish what it began.

    In a session of its own, so that what is sent to the whole group does not reach it. Where none
    can be started, the journal still serves whoever comes next.
    """
    command = [sys.executable, "-I", "-S", _after_kill.__file__, str(os.getpid())]
    guard = None
    if os.name == "posix":
        with contextlib.suppress(OSError, ValueError, TypeError):
            guard = subprocess.Popen(
                [*command, *map(os.fspath, folders)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
    try:
        yield
    finally:
        if guard is not None:
            guard.kill()
            guard.communicate()


def _backup(final: Path) -> Path | None:
    """Another name for the old file, so that it can come back."""
    if lstat(final) is None:
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


def _write_journals(drafts: list[_Draft], folders: list[Path], written: list[Path]) -> None:
    """One journal with all the names, and before it one in each other folder that names it.

    ``written`` gets their paths, the first the one that counts.
    """
    main, *others = (folder / f".pnuauc-{secrets.token_hex(8)}.commit" for folder in folders)
    names = [
        [os.fspath(d.part), os.fspath(d.final), d.backup and os.fspath(d.backup)] for d in drafts
    ]
    for path, content in [*((other, os.fspath(main)) for other in others), (main, names)]:
        written.insert(0, path)
        # names in another encoding hold lone surrogates, which json.loads takes back
        _write_journal(path, exact_json(content).encode("utf-8", "surrogatepass"))
        _sync([path.parent])


def _write_journal(path: Path, text: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if os.write(handle, text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    finally:
        os.close(handle)


def _roll_back(
    drafts: list[_Draft], renamed: list[_Draft], journals: list[Path], error: BaseException
) -> None:
    """Bring the old files back, then raise what says how that went."""
    stuck = []
    # first the journal: with it, a kill from here on would bring the new files back
    _forget([], journals)
    for draft in renamed:
        try:
            if draft.backup is None:
                draft.final.unlink()
            else:
                os.replace(draft.backup, draft.final)
        except OSError:
            stuck.append(draft.target)
    _forget([d for d in drafts if d.target not in stuck], [])
    if stuck:
        names = ", ".join(f"'{path}'" for path in stuck)
        raise OutputError(
            f"The outputs could not be replaced ({error}), and neither could the old files be "
            f"brought back: {names} new, the others old."
        ) from error
    if isinstance(error, OSError):
        raise OutputError(_untouched(error, [d.target for d in drafts])) from error
    raise error


def _forget(drafts: list[_Draft], journals: list[Path]) -> None:
    for path in [*journals, *(d.backup for d in drafts)]:
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()


def _untouched(error: OSError, paths: Sequence[Path]) -> str:
    names = [f"'{path}'" for path in paths]
    shown = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    state = "is as it was" if len(names) == 1 else "are as they were"
    reason = error.strerror or str(error) or type(error).__name__
    return f"Writing failed ({reason}): nothing was replaced, {shown} {state}."


@contextlib.contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Two processes that replace the same files do so one after the other."""
    handle = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
    try:
        if handle is not None:
            lock(handle, seconds=_PATIENCE)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _sync(folders: Sequence[Path]) -> None:
    """Names on the disk too; not every file system can."""
    if os.name != "posix":
        return
    for folder in folders:
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
