"""Tests of study/leaks."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest

from experiments.paper_sets import DENSE, load
from pnuauc.datasets import sample_pnu
from pnuauc.io import TableEncoder
from pnuauc.labels import Roles
from pnuauc.study.leaks import find_leaks


def honest(seed, n_p=50, n_n=100, n_u=1500, prior=0.1, n_columns=6, shift=0.8):
    rng = np.random.default_rng(seed)
    hidden = np.r_[np.ones(n_p), np.zeros(n_n), rng.random(n_u) < prior].astype(bool)
    columns = {f"x{j}": rng.normal(shift * hidden * (j < 3)) for j in range(n_columns)}
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), [n_p, n_n, n_u]))
    return columns, hidden, roles, rng


def named(columns, roles):
    table = pa.table({k: pa.array(v, from_pandas=True) for k, v in columns.items()})
    found = find_leaks(table, TableEncoder(()).fit(table).columns_, roles)
    return [sentence.split("'")[1] for sentence in found], found


@pytest.mark.parametrize("n_n", [100, 0])
def test_honest_columns_raise_no_alarm(n_n):
    for seed in range(20):
        columns, _, roles, _ = honest(seed, n_n=n_n)
        assert named(columns, roles)[0] == []


@pytest.mark.parametrize("seed", range(5))
def test_a_column_filled_in_after_review_is_named(seed):
    """It agrees with the label in 80% of labelled rows, and is "no" for every other row."""
    columns, hidden, roles, rng = honest(seed)
    agrees = rng.random(len(hidden)) < 0.8
    columns["reviewed"] = np.where(roles.codes < 0, 0, np.where(agrees, hidden, ~hidden)) + 0
    names, found = named(columns, roles)
    assert names == ["reviewed"]
    assert "leave it out" in found[0]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_column_that_is_filled_for_labelled_rows_is_named(share):
    columns, _, roles, rng = honest(0)
    blank = (roles.codes < 0) | (rng.random(len(roles)) > share)
    columns["note"] = np.where(blank, np.nan, rng.normal(size=len(roles)))
    assert named(columns, roles)[0] == ["note"]


@pytest.mark.parametrize("n_n", [100, 0])
def test_a_noisy_copy_of_the_label_is_named(n_n):
    """The label with noise of a tenth of its spread's size; unlabelled rows hold a 0."""
    columns, _, roles, rng = honest(1, n_n=n_n)
    copy = (roles.codes == 1) + 0.4 * rng.normal(size=len(roles))
    names, _ = named({**columns, "copy": copy}, roles)
    assert names == ["copy"]
    known = (roles.codes == 1) + 0.01 * rng.normal(size=(2, len(roles)))
    twice = {"it's a copy": known[0], "it's another": known[1]}
    assert len(named({**columns, **twice}, roles)[1]) == 2


def test_a_category_that_only_labelled_positives_have_is_named():
    columns, _, roles, rng = honest(2, n_n=0)
    words = rng.choice(["a", "b", "c"], len(roles)).astype(object)
    words[: int(0.8 * roles.n_positive)] = "confirmed"
    assert named({**columns, "status": words}, roles)[0] == ["status"]


def test_a_shift_that_all_columns_share_is_how_rows_were_picked():
    """Reviewers looked at rows with high values: every column shows it, so none is a suspect."""
    columns, _, roles, _ = honest(3)
    picked = {k: v + 0.8 * (roles.codes >= 0) for k, v in columns.items()}
    assert named(picked, roles)[0] == []


@pytest.mark.skipif("PNUAUC_DATA" not in os.environ, reason="PNUAUC_DATA is not set")
@pytest.mark.parametrize("n", [(50, 100), (50, 0), (20, 20)])
@pytest.mark.slow
def test_at_most_one_benchmark_set_in_fifteen_raises_an_alarm(n):
    """Two draws each, counted together: the one set is skin_nonskin, whose blue says it all."""
    alarmed = set()
    for name in DENSE:
        X, y = load(name)
        n_u = 600 if name in {"usps", "image"} else 1000
        for seed in (0, 112):
            sample = sample_pnu(X, y, *n, n_u, 0.1, random_state=seed)
            columns = {f"c{j}": np.asarray(sample.X[:, j], float) for j in range(sample.X.shape[1])}
            if named(columns, Roles(sample.y.astype(np.int8)))[0]:
                alarmed.add(name)
    assert len(alarmed) <= 1
