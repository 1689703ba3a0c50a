"""Tests of committee/kernels."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from pnuauc.committee.kernels import KernelSum, average_processes
from pnuauc.core.basis import MultiscaleBasis
from pnuauc.core.solvers import LinearModel


def test_processes_agree_with_the_formula():
    """One kernel at a time by plain linear algebra, weighted by the evidence of all."""
    rng = np.random.RandomState(0)
    X, positive = rng.standard_normal((12, 3)), np.arange(12) < 5
    new = rng.standard_normal((4, 3))
    t = np.where(positive, 1.0, -1.0)
    t -= t.mean()
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    median = np.median(distance[np.triu_indices(12, 1)])
    to_new = np.linalg.norm(new[:, None] - X, axis=2)
    found = []
    for width in (0.25, 0.5, 1.0, 2.0, 4.0):
        s = width * median
        found.append((np.exp(-(distance**2) / (2 * s * s)), np.exp(-(to_new**2) / (2 * s * s))))
        found.append((np.exp(-distance / s), np.exp(-to_new / s)))
    unit = np.trace(X @ X.T) / 12
    found.append((X @ X.T / unit, new @ X.T / unit))
    means, evidences = [], []
    for K, k in found:
        for noise in (1e-2, 1e-1, 1.0, 10.0):
            C = K + noise * np.eye(12)
            means.append(k @ np.linalg.solve(C, t))
            scale = t @ np.linalg.solve(C, t) / 12
            evidences.append(-6 * np.log(scale) - np.linalg.slogdet(C)[1] / 2)
    weight = np.exp(np.array(evidences) - max(evidences))
    expected = (weight / weight.sum()) @ np.array(means)
    model = average_processes({"filled": X}, positive)["filled"]
    # kernels of negligible weight are left out
    np.testing.assert_allclose(model.score(new), expected, atol=1e-5)


def test_distances_to_labelled_rows_are_exact_at_them():
    """However many rows are scored together; far from 0 as well."""
    rng = np.random.RandomState(0)
    X, positive = rng.standard_normal((30, 3)) + 1e3, np.arange(30) < 9
    model = average_processes({"filled": X}, positive)["filled"]
    assert len(model.widths)
    together = model.score(X)
    by_hand = X @ model.slope
    for width, power, coef in zip(model.widths, model.powers, model.coef, strict=True):
        distance = np.linalg.norm(X[:, None] - X, axis=2)
        by_hand += np.exp(-((distance / width) ** power) / power) @ coef
    np.testing.assert_allclose(together, by_hand, atol=1e-5)  # kernels are float32
    np.testing.assert_allclose(
        [model.score(X[i : i + 1])[0] for i in range(30)], together, atol=1e-11
    )


def test_fast_kernels_are_the_formula():
    """Both kernel models against their formulas in double precision; equal rows tie."""
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((3000, 7)), rng.standard_normal((90, 7))
    X[::3] = X[0]
    X[1] = centers[4]
    distance = cdist(X, centers)
    coef, slope = rng.standard_normal((4, 90)), rng.standard_normal(7)
    widths, powers = np.array([8.0, 4.0, 1.0, 3.0]), np.array([2, 2, 2, 1])
    model = KernelSum(centers, widths, powers, coef, slope)
    exact = X @ slope
    for width, power, c in zip(widths, powers, coef):
        exact += np.exp(-((distance / width) ** power) / power) @ c
    basis = MultiscaleBasis.from_parts(centers, widths)
    sums = KernelSum.of_model(LinearModel(basis, coef.ravel()))
    plain = sum(np.exp(-((distance / w) ** 2) / 2) @ c for w, c in zip(widths, coef))
    for found, wanted in ((model.score(X), exact), (sums.score(X), plain)):
        np.testing.assert_allclose(found, wanted, atol=2e-4)  # 360 terms of 1e-6 each at most
        assert np.corrcoef(found, wanted)[0, 1] > 1 - 1e-10
        assert np.ptp(found[::3]) < 1e-12
