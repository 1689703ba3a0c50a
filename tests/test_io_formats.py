"""The table of formats by types of column: fit on a file, score the same file, get the same scores.

Every cell of the table is one round trip: write, read, encode, fit, stream the file through the
model. The scores must be those of the rows in memory, and those that Parquet gives.
"""

from __future__ import annotations

import numpy as np
import pytest

from pnuauc.io import (
    read_table,
    score_file,
)
from pnuauc.io._tables import read_cells
from tests.typed_tables import FORMATS, TABLES, TYPES, fitted


@pytest.fixture(scope="module")
def expected():
    """Scores of the typed table in memory, by type of column."""
    return {kind: fitted(table).score(table) for kind, table in TABLES.items()}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form", FORMATS)
def test_fit_then_score_the_same_file(tmp_path, expected, form, kind):
    name, write = FORMATS[form]
    path = tmp_path / name
    write(TABLES[kind], path)
    table = read_cells(path)
    model = fitted(table)
    score_file(model, path, tmp_path / "out.parquet")
    out = read_table(tmp_path / "out.parquet")
    scores = out.column("score").to_numpy()
    np.testing.assert_allclose(scores, model.score(table), rtol=0, atol=1e-9)
    assert out.column("id").to_pylist() == TABLES[kind].column("id").to_pylist()
    # the same model whatever the format; half floats are written with few digits, clocks of
    # workbooks in fractions of a day
    loose = {"half floats": 2e-3, "clock times": 1e-6}.get(kind, 1e-8)
    np.testing.assert_allclose(scores, expected[kind], rtol=0, atol=loose)


@pytest.mark.parametrize("kind", TYPES)
def test_a_model_scores_every_format_alike(tmp_path, expected, kind):
    """Fitted on Parquet, scored on CSV and JSON lines: what a cell says counts, not its type."""
    model = fitted(TABLES[kind])
    for form in ("csv", "json lines"):
        name, write = FORMATS[form]
        write(TABLES[kind], tmp_path / name)
        score_file(model, tmp_path / name, tmp_path / "out.csv")
        scores = read_table(tmp_path / "out.csv").column("score").to_numpy()
        loose = 2e-3 if kind == "half floats" else 1e-8
        np.testing.assert_allclose(scores, expected[kind], rtol=0, atol=loose)
