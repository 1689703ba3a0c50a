"""One BLAS thread while our own threads work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

__all__ = ["one_blas_thread"]

_in_use = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS works with one thread inside, unless another fit has settled that already.

    BLAS has one setting per process. Fits that run at the same time in several threads must not
    each save and restore what another has set, or one thread is left behind for good: whoever
    comes first sets the limit and takes it back, the others leave it alone.
    """
    if not _in_use.acquire(blocking=False):
        yield
        return
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        _in_use.release()
