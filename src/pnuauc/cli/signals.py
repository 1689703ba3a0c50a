"""Ctrl-C and its kin: an exit code of 128 plus the signal's number, whenever it comes."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

_NUMBERS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Stopped(KeyboardInterrupt):
    """Somebody asked the process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def leave_at_once() -> None:
    """Outside of a command there is nothing to clean up: one word, and out."""
    _answer_with(_leave)


@contextlib.contextmanager
def stopped_politely() -> Iterator[None]:
    """Inside, a signal raises :class:`Stopped`, so that files in the making are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.getsignal(number) for number in _NUMBERS}
    _answer_with(_raise)
    try:
        yield
    finally:
        for number, action in former.items():
            signal.signal(number, action)


def _answer_with(handler: Any) -> None:
    for number in _NUMBERS:
        # ignored signals (nohup, background jobs) stay ignored
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(number: int, frame: Any) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, b"Interrupted.\n")
    os._exit(128 + number)


def _raise(number: int, frame: Any) -> NoReturn:
    raise Stopped(number)
