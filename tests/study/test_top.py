"""Tests of study/top."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from pnuauc.io.draw import RowKeys
from pnuauc.io.sources import MemorySource
from pnuauc.labels import Roles, read_roles
from pnuauc.study import LabelCodes, top
from pnuauc.study.rows import StudyRows, read_source_labels
from pnuauc.study.top import place_among_all, top_rows
from tests.conftest import roles_of


class Summed:
    """A model whose score is a column, less its threshold."""

    columns_ = ()

    def __init__(self, threshold=0.0, card=None):
        self.threshold, self.quantiles, self.card = threshold, None, card

    def encode(self, table, first_row=0):
        return np.asarray(table.column("s"))

    def score_encoded(self, X):
        return X - self.threshold


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("batch_rows", [70, 1000])
def test_threshold_and_quantiles_are_those_of_all_unlabelled_rows(monkeypatch, share, batch_rows):
    """One score in three was drawn; cells between them are narrow, so little is lost."""
    n = 600
    scores, labelled = np.random.default_rng(11).normal(size=n), np.arange(n) % 10 == 0
    table = pa.table({"s": scores, "id": [f"r{k}" for k in range(n)],
                      "y": pa.array([1 if k else None for k in labelled], pa.int8())})  # fmt: skip
    source = MemorySource(table, batch_rows=batch_rows) if batch_rows < n else MemorySource(table)
    reader, counts = read_source_labels(source, "y", LabelCodes(positive=[1]))
    keys = RowKeys(("id",), 0, True)
    origin = SimpleNamespace(
        labels=reader, keys=keys, source=source,
        everything=lambda encoder: SimpleNamespace(source=source.select(["y", "s"])),
    )  # fmt: skip
    monkeypatch.setattr(top, "replace", _replaced)
    model = Summed(0.25)
    model.encoder = None
    u = scores[~labelled]
    leaders = place_among_all(model, origin, u[::3] - 0.25, share, 7, ["id"], counts)
    assert model.threshold == pytest.approx(np.quantile(u, 1 - share), abs=0.05)
    assert np.mean(u > model.threshold) == pytest.approx(share, abs=0.01)
    expected = np.quantile(u, np.linspace(0, 1, 1001)) - model.threshold
    assert (model.quantiles[0], model.quantiles[-1]) == pytest.approx((expected[0], expected[-1]))
    inside = slice(30, -30)
    np.testing.assert_allclose(model.quantiles[inside], expected[inside], atol=0.12)
    best = np.flatnonzero(~labelled)[np.argsort(-u)[:7]]
    assert leaders.numbers.tolist() == best.tolist()
    np.testing.assert_array_equal(leaders.table.column("s"), scores[best])
    assert leaders.ids.column("id").to_pylist() == [f"r{k}" for k in best]
    assert leaders.roles.n_unlabeled == 7


def _replaced(thing, **changes):
    """As dataclasses.replace; a model of ours is no dataclass."""
    if isinstance(thing, Summed):
        return Summed(thing.threshold, changes["card"])
    return dataclasses.replace(thing, **changes)


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


def reviewed(n_columns=250, n_rows=30, n_top=4, important=None, every=1):
    """(findings, columns that were tried as reasons, X)."""
    X = np.random.default_rng(5).normal(size=(n_rows, n_columns))
    table = pa.table({f"c{j}": X[:, j] for j in range(n_columns)})
    tried = []

    def reasons(rows, n, names, *more):
        tried.append((len(rows), n, list(names)))
        return [[] for _ in rows]

    encoder = SimpleNamespace(
        columns_=[SimpleNamespace(name=name) for name in table.column_names], is_sparse=False
    )
    model = SimpleNamespace(
        encoder=encoder, score_encoded=lambda rows: rows[:, 0], percentile=lambda s: 10 * s,
        reasons=reasons, probability=lambda s: None,
    )  # fmt: skip
    codes = np.where(np.arange(n_rows) % 3 == 0, 1, -1).astype(np.int8)
    found = top_rows(
        model,
        X,
        StudyRows(table, Roles(codes), None, every * np.arange(n_rows), None),
        n_top,
        important,
    )
    return found, tried, X, codes


def test_columns_of_a_row_to_review():
    """200 are listed, 60 tried as reasons."""
    found, tried, X, codes = reviewed()
    names = [f"c{j}" for j in range(250)]
    assert (found.columns, found.n_columns) == (names[:200], 250)
    assert tried == [(4, 60, names[:60])]
    best = [i for i in np.argsort(-X[:, 0]) if codes[i] == -1][:4]
    for line, cells, i in zip(found.rows, found.cells, best, strict=True):
        assert line == [i + 1, X[i, 0], 10 * X[i, 0]]
        assert len(cells) == 200
    assert reviewed(important=names[9::-1])[1] == [(4, 10, names[9::-1])]
    moved = reviewed(every=7)[0]
    assert [line[0] for line in moved.rows] == [7 * i + 1 for i in best]
    assert reviewed(n_top=0)[0].rows == []
    assert len(reviewed(n_top=1)[0].rows) == 1


def test_many_rows_are_scored_in_parts():
    found, _, X, codes = reviewed(2, 150_000, 3)
    best = [i for i in np.argsort(-X[:, 0])[:20] if codes[i] == -1][:3]
    assert [line[0] - 1 for line in found.rows] == best
