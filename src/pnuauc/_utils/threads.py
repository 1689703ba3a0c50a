"""One thread of BLAS, or of all libraries, where more would only wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from threadpoolctl import threadpool_limits

#: Up to this many rows a fit is many small systems and trees: threads of BLAS and OpenMP save
#: nothing there, and wait for each other on a busy machine.
FEW_ROWS = 20_000
_in_use = {"blas": threading.Lock(), "openmp": threading.Lock()}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS works with one thread inside, unless another fit has settled that already."""
    with _one_thread("blas"):
        yield


@contextmanager
def one_thread_for_few(n_rows: int) -> Iterator[None]:
    """BLAS and OpenMP work with one thread inside where there are few rows."""
    with ExitStack() as limits:
        if n_rows <= FEW_ROWS:
            for library in _in_use:
                limits.enter_context(_one_thread(library))
        yield


@contextmanager
def _one_thread(library: str) -> Iterator[None]:
    """A library has one setting per process.

    Fits that run at the same time in several threads must not each save and restore what another
    has set, or one thread is left behind for good: whoever comes first sets the limit and takes it
    back, the others leave it alone.
    """
    if not _in_use[library].acquire(blocking=False):
        yield
        return
    try:
        with threadpool_limits(1, user_api=library):
            yield
    finally:
        _in_use[library].release()
