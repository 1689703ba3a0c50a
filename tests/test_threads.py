"""Threads of BLAS and OpenMP: one where more save nothing, and all of them back afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from pnuauc import AutoAUCClassifier, _threads
from pnuauc._committee import _estimator
from pnuauc._study import ColumnRoles, FitSettings, fit_study
from pnuauc._threads import one_blas_thread, one_thread_for_few

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


def test_few_rows(two):
    for n, expected in ((20_000, {1}), (20_001, {2})):
        with one_thread_for_few(n):
            assert set(threads(*BOTH)) == expected


@pytest.mark.parametrize("few", [True, False])
def test_a_fit_of_few_rows_uses_one_thread(monkeypatch, two, few):
    """The tool's from the prior on, the committee's from its members on."""
    monkeypatch.setattr(_threads, "FEW_ROWS", 60 if few else 59)
    rng = np.random.default_rng(0)
    y = pa.array([1] * 10 + [0] * 10 + [None] * 40, pa.int8())
    table = pa.table({"x": rng.normal(size=60), "z": rng.normal(size=60), "y": y})
    settings = FitSettings(prior=0.2, model="average", n_centers=5, importance=False,
                           comparisons=False)  # fmt: skip
    seen = {}

    def look(stage, *more):
        seen.setdefault(stage, set(threads(*BOTH)))

    fit_study(table, ColumnRoles("y"), settings, tick=look)
    assert seen["columns"] == {2}
    assert seen["model"] == ({1} if few else {2})
    fit_members = _estimator.fit_members
    monkeypatch.setattr(
        _estimator, "fit_members", lambda *args: look("members") or fit_members(*args)
    )
    X, labels = rng.normal(size=(60, 2)), [1] * 10 + [0] * 10 + [None] * 40
    AutoAUCClassifier(prior=0.2, members=["trees"], cv=2).fit(X, labels)
    assert seen["members"] == seen["model"]
