"""Tests of cli/files."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

pytest.importorskip("typer")

from pnuauc.cli import files


def test_the_meter_shows_rows_done_in_each_visit(monkeypatch):
    shown = []

    @contextmanager
    def bar(title, show):
        shown.append("open")
        yield lambda stage, share, detail: shown.append((round(share, 2), detail))
        shown.append("closed")

    monkeypatch.setattr(files, "progress_bar", bar)
    meter = files.RowMeter(SimpleNamespace(shows_progress=True))
    meter.source = SimpleNamespace(n_rows=None)
    meter(1000)
    meter.close()
    meter.source.n_rows = 4000
    for n in (1000, 3000, 2000):
        meter(n)
    meter.close()
    assert shown == [
        "open", (0.0, "1,000"), "closed",
        "open", (0.25, "1,000 of 4,000"), (1.0, "4,000 of 4,000"), "closed",
        "open", (0.5, "2,000 of 4,000"), "closed",
    ]  # fmt: skip
    quiet = files.RowMeter(SimpleNamespace(shows_progress=False))
    quiet(5)
    assert shown[-1] == "closed"
