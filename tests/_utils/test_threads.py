"""Tests of _utils/threads."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from pnuauc._utils.threads import one_blas_thread, one_thread_for_few

BOTH = ("blas", "openmp")


def threads(*libraries):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] in libraries]


@pytest.fixture
def two():
    with threadpool_limits(2):
        before = threads(*BOTH)
        if set(before) != {2}:
            pytest.skip("the libraries have one thread only")
        yield before
        assert threads(*BOTH) == before


@pytest.mark.parametrize(
    ("limit", "libraries"), [(one_blas_thread, BOTH[:1]), (lambda: one_thread_for_few(1), BOTH)]
)
def test_fits_in_threads_leave_the_setting_as_it_was(two, limit, libraries):
    """Limits overlap without nesting: the first to enter is the first to leave."""
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with limit():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    with limit():
        assert set(threads(*libraries)) == {1}
        thread.start()
        assert inside.wait(10)
    leave.set()
    thread.join(10)
    assert threads(*BOTH) == two
    with limit():
        assert set(threads(*libraries)) == {1}
