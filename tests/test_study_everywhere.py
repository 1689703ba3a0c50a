"""Held-out rows among all unlabelled rows where these are, against loops over the whole table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pnuauc._row_hash import fold_of
from pnuauc._sources import MemorySource, RowKeys
from pnuauc._study import LabelCodes
from pnuauc._study._census import read_source_labels
from pnuauc._study._copies import Copies
from pnuauc._study._crossfit import CrossFit, Reference
from pnuauc._study._everywhere import placed_among_all
from pnuauc._study._findings import copies_findings
from pnuauc._study._rows import Origin
from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder
from pnuauc.io._columns import CellError
from pnuauc.labels import Roles
from pnuauc.metrics._counts import count_cells

N_P, N_N, N_U = 12, 15, 200
N = N_P + N_N + N_U


class Weighted:
    """A refit whose scores are a weighted sum of the columns."""

    def __init__(self, weights):
        self.weights = np.asarray(weights)

    def decision_function(self, X):
        return X @ self.weights


@pytest.fixture
def whole():
    rng = np.random.default_rng(0)
    labels = [1] * N_P + [0] * N_N + [None] * N_U
    order = rng.permutation(N)
    return pa.table(
        {
            "a": rng.normal(size=N).round(1),
            "b": rng.normal(size=N),
            "id": [f"r{k}" for k in range(N)],
            "y": pa.array([labels[k] for k in order], pa.int8()),
        }
    )


def setting(table, batch_rows, n_drawn=40, n_folds=3):
    source = MemorySource(table, batch_rows=batch_rows)
    reader, _ = read_source_labels(source, "y", LabelCodes())
    codes = reader(table)
    drawn = np.flatnonzero(codes == -1)[:n_drawn]
    rows = np.sort(np.concatenate([np.flatnonzero(codes >= 0), drawn]))
    keys = RowKeys(("id",), 0, True)
    origin = Origin(source, reader, keys, keys.order(table.take(pa.array(drawn))))
    features = table.select(["a", "b"])
    encoder = TableEncoder().fit(features)
    roles = Roles(codes[rows])
    refits = [Weighted([1.0, 0.2 * k]) for k in range(n_folds)]
    folds = [(np.flatnonzero(np.arange(len(rows)) % n_folds == k), refits[k])
             for k in range(n_folds)]  # fmt: skip
    X = encoder.transform(features.take(pa.array(rows)))
    copies = Copies(np.arange(len(rows)), 0, 0)
    own = np.random.default_rng(1).normal(size=len(rows))
    held = CrossFit(np.arange(len(rows)), roles, own, folds, copies)
    return held, X, origin, encoder, codes, keys


@pytest.mark.parametrize("batch_rows", [25, 1000])
def test_labelled_rows_are_placed_among_all_rows_of_their_fold(whole, batch_rows):
    held, X, origin, encoder, codes, keys = setting(whole, batch_rows)
    found = placed_among_all(held, X, origin, encoder, ("kernels",))
    everything = encoder.transform(whole.select(["a", "b"]))
    place = fold_of(keys.order(whole), 3)
    for k, (test, refit) in enumerate(held.folds):
        known = test[held.roles.codes[test] != -1]
        drawn = test[held.roles.codes[test] == -1]
        u = refit.decision_function(everything[(codes == -1) & (place == k)])
        own = refit.decision_function(X[known])
        anchors = np.unique(own)
        spread = refit.decision_function(X[drawn])
        scale = Reference.counted(anchors, count_cells(u, anchors), u.min(), u.max(), spread)
        np.testing.assert_allclose(found.scores[known], scale(own))
        np.testing.assert_array_equal(found.scores[drawn], held.scores[drawn])
    assert found.n_reference == N_U
    assert held.n_reference is None
    assert found.rows is held.rows


def test_a_fold_that_no_row_falls_into_keeps_its_places(whole):
    """Forty rows of U in twenty folds: some are empty."""
    labels = whole.column("y").to_pylist()
    few = [k for k in range(N) if labels[k] is not None]
    few += [k for k in range(N) if labels[k] is None][:12]
    table = whole.take(pa.array(sorted(few)))
    held, X, origin, encoder, codes, keys = setting(table, 1000, n_drawn=12, n_folds=20)
    found = placed_among_all(held, X, origin, encoder, ("kernels",))
    filled = set(fold_of(keys.order(table), 20)[codes == -1].tolist())
    assert 0 < len(filled) < 20
    for k, (test, _) in enumerate(held.folds):
        known = test[held.roles.codes[test] != -1]
        same = np.array_equal(found.scores[known], held.scores[known])
        assert same is (k not in filled or not len(known))
    assert found.n_reference == 12


def test_a_bad_cell_on_the_way_is_named(whole):
    held, X, origin, encoder, *_ = setting(whole, 50)
    cells = [str(v) for v in whole.column("b").to_pylist()]
    place = whole.column("y").to_pylist().index(None, 120)
    cells[place] = "oops"
    bad = MemorySource(whole.set_column(1, "b", [cells]), name="f.csv", batch_rows=50)
    broken = Origin(bad, origin.labels, origin.keys, origin.drawn)
    with pytest.raises(CellError, match=rf"'f\.csv': Column 'b'.*'oops' in row {place + 1}\)"):
        placed_among_all(held, X, broken, encoder, ("kernels",))
    with pytest.raises(InputError, match="no column"):
        read_source_labels(bad, "none", LabelCodes())


def test_copies_are_told_with_what_they_cost():
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), [4, 4, 4]))
    groups = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9])
    held = CrossFit(np.arange(12), roles, np.zeros(12), [], Copies(groups, 4, 3))
    assert copies_findings(held) == {
        "identical": 4, "near": 3, "rows_per_observation": pytest.approx((4 + 1 + 1) / 4)
    }  # fmt: skip
