"""Tests of cli/files."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("typer")

from pnuauc._utils.progress import Progress
from pnuauc.cli import files


def test_the_meter_shows_rows_done_in_each_visit():
    shown = []
    bar = Progress(lambda text, share: shown.append((text, share)), {"a": 1, "b": 3})
    meter = files.RowMeter(bar)
    bar("b", 0.5)
    for n in (0, 1000, 2000, 0, 500):
        meter(n)
    assert shown[-1] == ("b, visit 2 of the files: 500 rows", 0.25 + 0.75 / 2)
    meter.source = SimpleNamespace(n_rows=4000)
    meter(3500)
    assert shown[-1][0] == "b, visit 2 of the files: 4,000 of 4,000 rows"
