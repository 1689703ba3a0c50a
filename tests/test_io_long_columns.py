"""Columns longer than what is looked at to find their form."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pnuauc.io import TableEncoder, _cells
from pnuauc.io._cells import recognise


@pytest.fixture
def answers(monkeypatch):
    """200 times yes or no, of which every fourth is looked at; the sixth is not."""
    monkeypatch.setattr(_cells, "_LOOKED_AT", 50)
    cells = ["yes" if i % 8 else "no" for i in range(200)]
    cells[5] = "maybe"
    return cells


def test_an_odd_answer_that_was_not_looked_at_is_told(answers):
    found = recognise(pa.array(answers))
    assert (found.kind, found.form, found.odd) == ("boolean", "", "maybe")
    assert found.share == pytest.approx(199 / 200)
    answers[5] = "yes"
    whole = recognise(pa.array(answers))
    assert (whole.kind, whole.odd, whole.share) == ("boolean", None, 1.0)


def test_an_odd_answer_is_missing_wherever_it_stands(answers):
    """It was refused at the fit where it was not among the cells that were looked at."""
    x = np.random.default_rng(0).normal(size=200)
    for cells, place in ((answers, 5), (["maybe", *answers[1:5], "yes", *answers[6:]], 0)):
        table = pa.table({"c": cells, "x": x})
        encoder = TableEncoder().fit(table)
        (column,) = [c for c in encoder.columns_ if c.name == "c"]
        assert (column.kind, column.lenient) == ("boolean", True)
        assert "cells such as 'maybe' as missing" in " ".join(encoder.notes_)
        trees = encoder.transform(table, view="trees")[:, encoder.groups("trees")["c"][0]]
        assert np.flatnonzero(np.isnan(trees)).tolist() == [place]
        known = [float(cell == "yes") for cell in cells if cell != "maybe"]
        assert trees[~np.isnan(trees)].tolist() == known
