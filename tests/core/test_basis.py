"""Tests of core/basis."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from sklearn.utils.estimator_checks import check_estimator

from pnuauc.basis import GaussianBasis
from pnuauc.core.basis import (
    BASES,
    IdentityBasis,
    LinearKernelBasis,
    median_distance,
    sample_centers,
    squared_distances,
)
from pnuauc.core.moments import Moments
from pnuauc.core.rows import row_blocks


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((40, 5))


@pytest.mark.parametrize("name", BASES)
def test_every_basis_is_a_scikit_learn_transformer(name):
    check_estimator(BASES[name](), on_skip=None)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_equals_dense(name, dtype, rows):
    rows = (rows * (np.abs(rows) > 0.5)).astype(dtype)
    fixed = {"centers": rows[:7]} if name != "identity" else {}
    dense = BASES[name](**fixed).fit_transform(rows)
    from_csr = BASES[name](**fixed).fit_transform(sparse.csr_matrix(rows))
    if sparse.issparse(from_csr):
        from_csr = from_csr.toarray()
    assert dense.dtype == from_csr.dtype == dtype
    np.testing.assert_allclose(dense, from_csr, rtol=1e-4 if dtype == np.float32 else 1e-10)


def test_gaussian_formula(rows):
    basis = GaussianBasis(n_centers=9, width=1.7, random_state=0).fit(rows)
    expected = np.exp(-(cdist(rows, basis.centers_) ** 2) / (2 * 1.7**2))
    np.testing.assert_allclose(basis.transform(rows), expected, rtol=1e-12)


def test_linear_kernel_formula(rows):
    basis = LinearKernelBasis(n_centers=9, random_state=0).fit(rows)
    np.testing.assert_allclose(basis.transform(rows), rows @ basis.centers_.T)


def test_identity_returns_the_rows(rows):
    assert IdentityBasis().fit(rows).transform(rows) is rows


@pytest.mark.parametrize(("width", "factor"), [("median", 1), ("0.5*median", 0.5), ("2 median", 2)])
def test_width_as_a_multiple_of_the_median_distance(width, factor, rows):
    basis = GaussianBasis(width=width).fit(rows)
    assert basis.width_ == pytest.approx(factor * np.median(pdist(rows)))


@pytest.mark.parametrize("width", [0, -1.0, "mean", "x*median", np.inf, np.nan, "-1*median"])
def test_bad_widths_are_refused(width, rows):
    with pytest.raises(ValueError, match="width must be"):
        GaussianBasis(width=width).fit(rows)


def test_median_of_many_rows_is_close_to_the_median_of_all():
    rows = np.random.default_rng(1).standard_normal((4000, 3))
    # 1,000 of 4,000 rows: relative standard error about 1%; margin four times that
    assert median_distance(rows, 0) == pytest.approx(np.median(pdist(rows)), rel=0.04)


def test_large_offsets_cost_no_digits(rows):
    exact = cdist(rows, rows[:4]) ** 2
    np.testing.assert_allclose(squared_distances(rows + 1e6, rows[:4] + 1e6), exact, atol=1e-8)


def test_centers_do_not_depend_on_row_order_or_repetition(rows):
    once = sample_centers(rows, 100)
    np.testing.assert_array_equal(once, sample_centers(rows[::-1], 100))
    np.testing.assert_array_equal(once, sample_centers(rows.repeat(2, axis=0), 100))
    weight = np.r_[np.zeros(3), np.ones(37)]
    np.testing.assert_array_equal(
        sample_centers(rows, 100, weight=weight), sample_centers(rows[3:], 100)
    )
    csr = sparse.csr_matrix(rows)
    forward = sample_centers(csr, 100).toarray()
    np.testing.assert_array_equal(forward, sample_centers(csr[::-1], 100).toarray())


def test_identical_rows_are_refused():
    with pytest.raises(ValueError, match="no feature varies"):
        GaussianBasis().fit(np.ones((5, 2)))


@pytest.mark.parametrize("centers", [np.zeros((2, 3)), np.zeros(5)])
def test_centers_of_the_wrong_shape_are_refused(centers, rows):
    with pytest.raises(ValueError, match="centers must have shape"):
        GaussianBasis(centers=centers).fit(rows)
    with pytest.raises(ValueError, match="at least 1"):
        GaussianBasis(n_centers=0).fit(rows)


@pytest.mark.parametrize("cls", [GaussianBasis, LinearKernelBasis])
def test_wide_sparse_rows_are_never_densified(cls):
    rng = np.random.default_rng(0)
    n, d, per_row = 2000, 1_600_000, 50
    rows = sparse.csr_matrix(
        (rng.random(n * per_row), rng.integers(0, d, n * per_row), np.arange(n + 1) * per_row),
        shape=(n, d),
    )
    tracemalloc.start()
    basis = cls(n_centers=200, random_state=0).fit(rows)
    features = basis.transform(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert features.shape == (n, 200)
    # dense rows would take 25.6 GB, dense centres 2.6 GB; allow the transposed column pointers
    assert peak < 150e6


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
