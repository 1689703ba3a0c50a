"""Tests of committee/views."""

from __future__ import annotations

import numpy as np
import pytest

from pnuauc.committee.views import Look, fit_view


def test_view_by_hand():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    X[::7, 1] = np.nan
    view = fit_view(X, 0)
    z = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    look = Look(X, view)
    np.testing.assert_allclose(look.splits, z, atol=1e-12)
    gap = np.isnan(X[:, 1]).astype(float)
    filled = np.c_[np.nan_to_num(z), (gap - gap.mean()) / gap.std()]
    np.testing.assert_allclose(look.filled, filled, atol=1e-12)
    bent = filled / np.sqrt(1 + (filled / 3) ** 2)
    bent = (bent - bent.mean(axis=0)) / bent.std(axis=0)
    np.testing.assert_allclose(look.squashed, bent, atol=1e-10)
    covariance = np.cov(look.components.T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)


def test_columns_of_any_size_are_looked_at():
    X = np.c_[np.linspace(-1e300, 1e300, 50), np.full(50, 3.3), np.linspace(0, 1e-300, 50)]
    view = fit_view(X, 0)
    for name in ("splits", "filled", "squashed", "unit"):
        assert np.isfinite(getattr(Look(X, view), name)).all()


def test_rows_taken_after_a_look_are_as_before():
    X = np.random.RandomState(0).standard_normal((20, 3))
    view, rows = fit_view(X, 0), np.array([7, 2, 2])
    look = Look(X, view)
    before = look.take(rows)
    seen = {name: getattr(look, name) for name in ("squashed", "components", "trees")}
    after = look.take(rows)
    for name, values in seen.items():
        np.testing.assert_array_equal(vars(after)[name], values[rows])
        np.testing.assert_allclose(getattr(before, name), values[rows], atol=1e-14)


@pytest.mark.parametrize("n_levels", [20, 36, 60])
def test_axes_are_found_where_many_directions_are_alike(n_levels):
    """Beside numbers the columns of a category, each level as often as any other."""
    levels = np.tile(np.eye(n_levels), (8, 1))[:, 1:]
    for seed in range(30):
        numbers = np.random.default_rng(seed).standard_normal((len(levels), 3))
        axes = fit_view(np.hstack([numbers, levels]), 0).axes
        np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-9)
