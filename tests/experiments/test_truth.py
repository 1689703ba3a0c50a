"""Tests of experiments/truth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pnuauc.report import words
from pnuauc.study.fit import FitSettings, fit_study
from pnuauc.study.rows import ColumnRoles


def rare_table(n_p, n_n, n_u, prior, seed=0, shift=2.2):
    """Two useful columns of six; labels, hidden truth, and fresh rows."""
    rng = np.random.default_rng(seed)
    hidden = np.r_[np.ones(n_p), np.zeros(n_n), rng.random(n_u) < prior].astype(bool)
    X = rng.normal(size=(len(hidden), 6))
    X[:, :2] += shift * hidden[:, None] / 1.4
    y = [1] * n_p + [0] * n_n + [None] * n_u
    table = pa.table({**{f"x{j}": X[:, j] for j in range(6)}, "y": pa.array(y, pa.int8())})
    fresh = np.r_[np.ones(1500), np.zeros(1500)].astype(bool)
    X_new = rng.normal(size=(3000, 6))
    X_new[:, :2] += shift * fresh[:, None] / 1.4
    return table, hidden[n_p + n_n :], X_new, fresh


def test_the_top_speaks_of_the_rows_asked_for():
    table, hidden, _, _ = rare_table(40, 60, 900, 0.1)
    for top in (7, 20):
        chosen = FitSettings(n_centers=40, importance=False, top=top, prior=float(hidden.mean()))
        found = fit_study(table, ColumnRoles("y"), chosen).findings
        assert found.review.k == top
        assert f"the {top} unlabelled rows" in " ".join(words.headline(found))


def test_rows_of_the_top_are_as_likely_as_their_number_says():
    """The same posterior: probabilities of the rows to review add up to the count expected."""
    table, _, _, _ = rare_table(20, 40, 400, 0.1)
    chosen = FitSettings(importance=False, comparisons=False, prior=0.1)
    study = fit_study(table, ColumnRoles("y"), chosen)
    top, review = study.findings.top, study.findings.review
    assert sum(top.probability) == pytest.approx(review.expected.value, abs=0.3)
    rows = study.encoder.transform(table)
    chances = study.ranker.predict_proba(rows)[:, 1]
    np.testing.assert_allclose(study.model.probability(study.model.score(table))[:, 0], chances)
