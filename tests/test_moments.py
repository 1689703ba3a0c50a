"""Moments: centred, mergeable, exact to rounding."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pnuauc._moments import Moments
from pnuauc._rows import row_blocks
from pnuauc.basis import GaussianBasis


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["free", "bounded", "weighted", "sparse"])
def test_what_travels_is_half_and_arrives_as_it_was(kind, dtype):
    """A summary that was shipped must equal one that stayed, or a lost worker would show."""
    rng = np.random.default_rng(0)
    rows = rng.random((700, 60)).astype(dtype)
    total = Moments.zero(60)
    for block in row_blocks(700, 110):
        if kind == "bounded":
            part = Moments.from_bounded_rows(rows[block])
        elif kind == "free":
            part = Moments.from_rows(rows[block])
        else:
            some = sparse.csr_matrix(rows[block]) if kind == "sparse" else rows[block]
            part = Moments.from_rows(some, rng.random(some.shape[0]))
        total = total + part
    shipped = pickle.dumps(total)
    assert len(shipped) < 0.6 * total.scatter.nbytes
    arrived = pickle.loads(shipped)
    np.testing.assert_array_equal(arrived.scatter, total.scatter)
    np.testing.assert_array_equal(arrived.mean, total.mean)
    np.testing.assert_array_equal(arrived.mean_low, total.mean_low)
    np.testing.assert_array_equal((arrived + part).scatter, (total + part).scatter)


def test_no_rows_are_neutral():
    empty = Moments.from_rows(np.empty((0, 2)))
    some = Moments.from_rows(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert (empty + some).n == (some + empty).n == 2
    assert empty.n == 0


@pytest.mark.parametrize("factor", [0.125, 1.0, 2.0, 4.0])
def test_bounded_single_rows_keep_their_scatter(factor):
    """Wide Gaussians are nearly constant features: raw sums in single would lose the variance.

    Margins: 1e-5 of the largest entry against double precision and between two splits, and no
    eigenvalue below minus 1e-6 of the largest (raw sums: 4e-4, and a negative one).
    """
    X = np.random.default_rng(0).standard_normal((5000, 8))
    basis = GaussianBasis(40, f"{factor}*median", random_state=0).fit(X)
    exact = Moments.from_rows(basis.features(X))
    single = basis.features(X.astype(np.float32))
    assert single.dtype == np.float32
    scale = np.abs(exact.scatter).max()
    totals = []
    for size in (5000, 700):
        total = Moments.zero(40)
        for block in row_blocks(5000, size):
            total = total + Moments.from_bounded_rows(single[block])
        totals.append(total.scatter)
        np.testing.assert_allclose(total.scatter, exact.scatter, atol=1e-5 * scale)
        np.testing.assert_allclose(total.mean, exact.mean, rtol=1e-5, atol=1e-7)
        values = np.linalg.eigvalsh(total.scatter)
        assert values[0] > -1e-6 * values[-1]
    np.testing.assert_allclose(*totals, atol=1e-5 * scale)
    double = Moments.from_bounded_rows(basis.features(X))
    np.testing.assert_allclose(double.scatter, exact.scatter, atol=1e-11 * scale)
