"""Tests of core/moments."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pnuauc.core.moments import Moments
from pnuauc.core.rows import row_blocks
from tests.core.test_risks import MAKERS, PRIOR, brute_force


def reference(rows, weight=None):
    """Count, mean and scatter in extended precision."""
    x = np.asarray(rows, dtype=np.longdouble)
    w = np.ones(len(x), dtype=np.longdouble) if weight is None else weight.astype(np.longdouble)
    mean = (w[:, None] * x).sum(axis=0) / w.sum()
    c = x - mean
    return float(w.sum()), mean, (w[:, None, None] * c[:, :, None] * c[:, None, :]).sum(axis=0)


def assert_same(found, n, mean, scatter, rtol):
    scale = np.abs(np.asarray(scatter, dtype=float)).max()
    assert found.n == pytest.approx(n, rel=1e-15)
    np.testing.assert_allclose(found.mean, np.asarray(mean, dtype=float), rtol=rtol)
    np.testing.assert_allclose(
        found.scatter, np.asarray(scatter, dtype=float), rtol=rtol, atol=rtol * scale
    )


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4, 1e8])
def test_offsets_do_not_lose_the_variance(offset):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((500, 4)) + offset
    assert_same(Moments.from_rows(rows), *reference(rows), rtol=1e-12)


@given(
    st.integers(1, 60),
    st.integers(1, 5),
    st.lists(st.integers(0, 60), max_size=5),
    st.sampled_from([0.0, 1e3, 1e8]),
    st.booleans(),
)
def test_split_and_merge_equals_whole(n, b, cuts, offset, weighted):
    rng = np.random.default_rng(n * 7 + b)
    rows = rng.standard_normal((n, b)) + offset
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    edges = [0, *sorted(min(c, n) for c in cuts), n]
    total = Moments.zero(b)
    for low, high in itertools.pairwise(edges):
        part = None if weight is None else weight[low:high]
        total = total + Moments.from_rows(rows[low:high], part)
    assert_same(total, *reference(rows, weight), rtol=1e-12)


def test_weight_of_two_equals_a_row_twice():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((30, 3))
    weight = rng.integers(0, 4, 30).astype(float)
    weighted = Moments.from_rows(rows, weight)
    repeated = Moments.from_rows(rows.repeat(weight.astype(int), axis=0))
    assert_same(weighted, repeated.n, repeated.mean, repeated.scatter, rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_and_matrix_free_agree_with_dense(weighted):
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.4)
    weight = rng.random(40) + 0.5 if weighted else None
    dense = Moments.from_rows(rows, weight)
    assert_same(
        Moments.from_rows(sparse.csr_matrix(rows), weight),
        dense.n,
        dense.mean,
        dense.scatter,
        rtol=1e-12,
    )
    for given_rows in (rows, sparse.csr_matrix(rows)):
        lazy = Moments.matrix_free(given_rows, weight)
        v = rng.standard_normal(6)
        np.testing.assert_allclose(lazy.scatter @ v, dense.scatter @ v, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(lazy.mean, dense.mean)


def test_float32_rows_merge_in_double():
    rng = np.random.default_rng(3)
    rows = (rng.standard_normal((4000, 3)) + 100).astype(np.float32)
    total = Moments.zero(3)
    for block in row_blocks(4000, 300):
        total = total + Moments.from_rows(rows[block])
    assert total.scatter.dtype == np.float64
    assert_same(total, *reference(rows), rtol=1e-4)
    np.testing.assert_allclose(total.mean, rows.astype(float).mean(axis=0), rtol=1e-7)


def test_no_rows_are_neutral():
    empty = Moments.from_rows(np.empty((0, 2)))
    some = Moments.from_rows(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert (empty + some).n == (some + empty).n == 2
    assert empty.n == 0


@pytest.mark.parametrize("name", MAKERS)
def test_moments_path_equals_scores_path(name):
    rng = np.random.default_rng(0)
    rows = {role: rng.standard_normal((n, 4)) + 3 for role, n in zip("PNU", (6, 8, 30))}
    moments = {role: Moments.from_rows(r) for role, r in rows.items()}
    risk = MAKERS[name]()
    form = risk.quadratic_form(moments)
    for _ in range(3):
        w = rng.standard_normal(4)
        from_scores = risk.value("squared", {role: r @ w for role, r in rows.items()})
        assert form.value(w) == pytest.approx(from_scores, rel=1e-11)
    lazy = risk.quadratic_form({role: Moments.matrix_free(r) for role, r in rows.items()})
    assert lazy.value(w) == pytest.approx(from_scores, rel=1e-11)
    mixed = risk.quadratic_form({**moments, "N": Moments.matrix_free(rows["N"])})
    assert mixed.value(w) == pytest.approx(from_scores, rel=1e-11)


def test_printed_nu_matrix_of_the_paper_is_not_the_risk():
    """The paper prints (1 - prior)/prior before H_NU; summing over pairs needs 1/prior."""
    rng = np.random.default_rng(3)
    rows = {role: rng.standard_normal((n, 3)) for role, n in zip("PNU", (5, 9, 30))}
    m = {role: Moments.from_rows(r) for role, r in rows.items()}
    w = np.array([1.0, -0.5, 0.25])
    rest = 1 - PRIOR
    d = m["U"].mean - m["N"].mean
    between = m["U"].covariance + m["N"].covariance + np.outer(d, d)
    inner = 2 * rest / PRIOR * m["N"].scatter / 8
    printed = 1 - 2 * w @ d / PRIOR + w @ (rest / PRIOR * between - inner) @ w
    right = 1 - 2 * w @ d / PRIOR + w @ (between / PRIOR - inner) @ w
    summed = brute_force("nu", "squared", {role: r @ w for role, r in rows.items()})
    assert right == pytest.approx(summed, rel=1e-12)
    assert abs(printed - summed) > 0.1
