"""Tests of study/everywhere."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from pnuauc.io.draw import RowKeys
from pnuauc.io.sources import MemorySource
from pnuauc.study import (
    LabelCodes,
)
from pnuauc.study import (
    everywhere as _reference,
)
from pnuauc.study.everywhere import place_among_all
from pnuauc.study.rows import read_source_labels


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
    monkeypatch.setattr(_reference, "replace", _replaced)
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
