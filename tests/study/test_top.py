"""Tests of study/top."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from pnuauc.labels import read_roles
from pnuauc.study.rows import StudyRows
from pnuauc.study.top import top_rows
from tests.conftest import roles_of


def test_no_rows_to_review_without_unlabelled_ones():
    for labels, n_top in (([1, 1, 0, 0], 5), ([1, 0, None], 0)):
        rows = StudyRows(None, read_roles(labels), None, np.arange(4), None)
        assert top_rows(None, None, rows, n_top).rows == []


def test_rows_to_review_that_tie_come_in_the_order_of_the_table():
    scores = np.random.default_rng(2).integers(0, 3, 500).astype(float)
    table = pa.table({"s": scores})
    model = SimpleNamespace(
        score_encoded=lambda X: X[:, 0], percentile=lambda s: 100 * s, probability=lambda s: None,
        encoder=SimpleNamespace(columns_=[SimpleNamespace(name="s")], is_sparse=False),
        reasons=lambda X, *more: [[] for _ in X],
    )  # fmt: skip
    roles = roles_of(50, 0, 450)
    found = top_rows(
        model, scores[:, None], StudyRows(table, roles, None, np.arange(500), None), 200
    )
    expected = sorted(range(50, 500), key=lambda i: (-scores[i], i))[:200]
    assert [line[0] for line in found.rows] == [i + 1 for i in expected]
    numbered = top_rows(
        model, scores[:, None], StudyRows(table, roles, None, np.arange(500) * 7, None), 3
    )
    assert [line[0] for line in numbered.rows] == [7 * i + 1 for i in expected[:3]]
    assert found.cells[0] == [f"{scores[expected[0]]:.6g}"]
    assert (found.probability, found.n_columns) == (None, 1)
