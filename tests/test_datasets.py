"""Tests of datasets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pnuauc import datasets
from pnuauc.datasets import GENERATORS, sample_pnu


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_are_reproducible_and_keep_the_prior(name: str) -> None:
    make = GENERATORS[name]
    X, y = make(20_000, prior=0.2, random_state=3)
    again, _ = make(20_000, prior=0.2, random_state=3)
    np.testing.assert_array_equal(X, again)
    assert X.shape[0] == len(y) == 20_000
    assert set(np.unique(y)) == {0, 1}
    assert abs(y.mean() - 0.2) < 4 * np.sqrt(0.16 / 20_000)
    with pytest.raises(ValueError, match="prior"):
        make(10, prior=1.2)
    with pytest.raises(ValueError, match="n_samples"):
        make(0)


def test_gaussian_generators_have_the_moments_of_their_formula() -> None:
    n, a = 40_000, 2 / np.sqrt(20)
    for name, (mean_p, sd_p, mean_n, sd_n) in {
        "twonorm": (a, 1, -a, 1),
        "ringnorm": (a, 1, 0, 2),
    }.items():
        X, y = GENERATORS[name](n, random_state=0)
        for label, mean, sd in ((1, mean_p, sd_p), (0, mean_n, sd_n)):
            rows = X[y == label]
            margin = 5 * sd / np.sqrt(len(rows))
            assert np.abs(rows.mean(axis=0) - mean).max() < margin
            assert np.abs(rows.std(axis=0) - sd).max() < margin


def test_waveform_mean_is_the_mean_of_its_two_waves() -> None:
    X, y = datasets.make_waveform(40_000, random_state=0)
    i = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6 - np.abs(i - c), 0) for c in (11, 15, 7))
    assert np.abs(X[y == 1].mean(axis=0) - (h1 + h3) / 2).max() < 0.08
    assert np.abs(X[y == 0].mean(axis=0) - (h1 + 2 * h2 + h3) / 4).max() < 0.08


@settings(max_examples=60, deadline=None)
@given(
    n_positive=st.integers(0, 20),
    n_negative=st.integers(0, 20),
    n_unlabeled=st.integers(0, 60),
    prior=st.floats(0, 1),
    seed=st.integers(0, 100),
)
def test_samples_are_disjoint_and_exact(n_positive, n_negative, n_unlabeled, prior, seed) -> None:
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=200) < 0.5).astype(np.int8)
    X = np.arange(200.0)[:, None]
    drawn = sample_pnu(X, y, n_positive, n_negative, n_unlabeled, prior, seed, n_test=None)
    ids = np.concatenate([drawn.X[:, 0], drawn.X_test[:, 0]]).astype(int)
    assert sorted(ids) == list(range(200))
    assert (y[drawn.rows[drawn.y == 1]] == 1).all()
    assert (y[drawn.rows[drawn.y == 0]] == 0).all()
    np.testing.assert_array_equal(y[drawn.rows[drawn.y == -1]], drawn.y_unlabeled)
    np.testing.assert_array_equal(y[drawn.X_test[:, 0].astype(int)], drawn.y_test)
    assert drawn.y_unlabeled.sum() == round(prior * n_unlabeled)
    assert [(drawn.y == c).sum() for c in (1, 0, -1)] == [n_positive, n_negative, n_unlabeled]


def test_binomial_draws_scatter_around_the_prior() -> None:
    X, y = datasets.make_banana(2000, random_state=0)
    counts = [
        sample_pnu(X, y, 0, 0, 400, 0.2, i, unlabeled_draw="binomial").y_unlabeled.sum()
        for i in range(300)
    ]
    assert abs(np.mean(counts) - 80) < 4 * 8 / np.sqrt(300)
    assert 6.5 < np.std(counts) < 9.5  # sqrt(400 * .2 * .8) = 8


def test_scaling_uses_training_rows_only_and_sparse_rows_stay_sparse() -> None:
    X, y = datasets.make_banana(500, random_state=0)
    X = np.column_stack([X * [1, 1000], np.ones(500)])
    drawn = sample_pnu(X, y, 10, 10, 200, 0.3, 0, scale="standard")
    np.testing.assert_allclose(drawn.X.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(drawn.X.std(axis=0), [1, 1, 0], atol=1e-9)
    assert np.abs(drawn.X_test[:, :2].mean(axis=0)).max() > 1e-6
    thin = sample_pnu(sparse.csr_matrix(X), y, 10, 10, 200, 0.3, 0)
    assert sparse.issparse(thin.X)
    assert sparse.issparse(thin.X_test)
    with pytest.raises(ValueError, match="dense rows"):
        sample_pnu(sparse.csr_matrix(X), y, 10, 10, 200, 0.3, 0, scale="standard")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_positive": 60}, "50 positive rows but 60 labelled"),
        ({"n_unlabeled": 90, "prior": 0.0}, "negative rows"),
        ({"prior": 1.5}, "prior"),
        ({"n_negative": -1}, "negative"),
        ({"unlabeled_draw": "maybe"}, "unlabeled_draw"),
        ({"scale": "log"}, "scale"),
        ({"y": np.repeat([-1, 1], 50)}, "0/1"),
        ({"y": np.zeros(3)}, "100 rows"),
    ],
)
def test_bad_requests_get_one_sentence(arguments, message) -> None:
    request = {"n_positive": 5, "n_negative": 5, "n_unlabeled": 20, "prior": 0.3} | arguments
    y = request.pop("y", np.repeat([0, 1], 50))
    with pytest.raises(ValueError, match=message):
        sample_pnu(np.zeros((100, 1)), y, **request)
