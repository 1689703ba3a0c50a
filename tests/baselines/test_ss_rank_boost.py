"""Tests of baselines/ss_rank_boost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from pnuauc.baselines import SSRankBoost
from pnuauc.datasets import make_twonorm, sample_pnu


def rows(seed, n_positive=4, n_negative=6, n_unlabeled=10, d=3, digits=1):
    """Coarse values, so that columns have ties, zeros and values on both sides of zero."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0, -1], [n_positive, n_negative, n_unlabeled])
    X = rng.normal(size=(len(y), d)) + 0.7 * (y == 1)[:, None]
    X[rng.uniform(size=X.shape) < 0.4] = 0.0
    return np.round(X, digits) + 0.0, y


def pair_table(X, y, share, discount):
    """Weight of every ordered pair (i above j) at H = 0, shape (n, n)."""
    table = np.outer(y == 1, y == 0) / (np.sum(y == 1) * np.sum(y == 0))
    high, low = np.zeros(len(y)), np.zeros(len(y))
    high[y == -1], low[y == -1] = share, 1 - share
    if high.any() and low.any():
        table = table + discount * np.outer(high / high.sum(), low / low.sum())
    return table


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 1e-3, 0.1, 1.0]), st.integers(1, 4))
def test_every_round_is_the_best_of_all_thresholds(seed, discount, k):
    X, y = rows(seed)
    model = SSRankBoost(discount, k, n_rounds=6).fit(X, y)
    start = pair_table(X, y, model.pseudo_positive_, discount)
    H = np.zeros(len(y))
    cuts = [(j, c) for j in range(X.shape[1]) for c in np.unique(X[:, j])[:-1]]
    assert model.losses_[0] == pytest.approx(np.log(start.sum()), abs=1e-9)
    for t in range(len(model.weights_)):
        table = start * np.exp(-(H[:, None] - H[None]))

        def sides(h, table=table):
            change = h[:, None].astype(int) - h[None]
            return table[change == 1].sum(), table[change == -1].sum()

        edges = [abs(np.subtract(*sides(X[:, j] > c))) for j, c in cuts]
        fires = X[:, model.columns_[t]] > model.thresholds_[t]
        right, wrong = sides(fires)
        # the program works with weights relative to the heaviest group, hence the tolerance
        assert abs(right - wrong) == pytest.approx(max(edges), abs=1e-9 * table.sum())
        guard = model.smoothing * table.sum()
        expected = 0.5 * np.log((right + guard) / (wrong + guard))
        assert model.weights_[t] == pytest.approx(expected, abs=1e-9)
        H += model.weights_[t] * fires
        loss = np.log((start * np.exp(-(H[:, None] - H[None]))).sum())
        assert model.losses_[t + 1] == pytest.approx(loss, abs=1e-9)
    np.testing.assert_allclose(model.decision_function(X) - model.intercept_, H, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_sparse_rows_boost_alike(seed):
    X, y = rows(seed, digits=6)  # fine values: no two rankers tie, so both make the same choice
    dense = SSRankBoost(n_rounds=20).fit(X, y)
    thin = SSRankBoost(n_rounds=20).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.losses_, dense.losses_, atol=1e-9)
    new = np.random.default_rng(seed).normal(size=(50, 3))
    np.testing.assert_array_equal(
        thin.decision_function(sparse.csr_matrix(new)), thin.decision_function(new)
    )


def test_the_loss_falls_every_round():
    X, y = rows(0, 10, 20, 50, d=8, digits=3)
    assert np.all(np.diff(SSRankBoost(0.1, n_rounds=60).fit(X, y).losses_) < 1e-12)


def test_neighbors_vote_by_share():
    X, y = rows(1, n_unlabeled=30, digits=6)
    neighbors = KNeighborsClassifier(3).fit(X[y >= 0], y[y >= 0])
    model = SSRankBoost(n_neighbors=3, n_rounds=1).fit(X, y)
    expected = neighbors.predict_proba(X[y == -1])[:, 1]
    np.testing.assert_allclose(model.pseudo_positive_, expected)


def test_more_neighbors_than_labeled_rows_take_them_all():
    X, y = rows(2)
    model = SSRankBoost(n_neighbors=99, n_rounds=1).fit(X, y)
    np.testing.assert_allclose(model.pseudo_positive_, 4 / 10)


def test_no_discount_is_rank_boost_on_the_labeled_rows():
    X, y = rows(3, digits=6)
    semi = SSRankBoost(0.0, n_rounds=15).fit(X, y)
    plain = SSRankBoost(n_rounds=15).fit(X[y >= 0], y[y >= 0])
    np.testing.assert_allclose(semi.losses_, plain.losses_, atol=1e-12)
    # thresholds lie between neighbours, which unlabelled rows may be; the orders are the same
    np.testing.assert_allclose(semi.weights_, plain.weights_, atol=1e-12)


def test_unlabeled_rows_help_where_neighbors_tell_the_truth():
    """Twenty columns of equal worth and few labels: neighbours see all columns at once."""
    gains = []
    for seed in range(8):
        X, y = make_twonorm(2500, random_state=seed)
        s = sample_pnu(X, y, 5, 20, 500, prior=0.3, random_state=seed)
        scores = [
            SSRankBoost(discount, 3).fit(s.X, s.y).decision_function(s.X_test)
            for discount in (0.1, 0.0)
        ]
        gains.append(np.subtract(*(roc_auc_score(s.y_test, v) for v in scores)))
    # mean gain about .04, its spread over seeds .02
    assert np.mean(gains) > 0.01


def test_many_rounds_on_separable_rows_stay_finite():
    X = np.arange(20.0)[:, None]
    y = np.r_[np.zeros(8), np.ones(4), -np.ones(8)]
    model = SSRankBoost(0.1, 1, n_rounds=3000, smoothing=1e-6).fit(X, y)
    assert np.isfinite(model.losses_).all()
    assert np.isfinite(model.decision_function(X)).all()


def test_neighboring_floats_are_told_apart():
    low = np.float32(1.0)
    X = np.array([[low], [np.nextafter(low, np.float32(2))]] * 3, dtype=np.float32)
    model = SSRankBoost(n_rounds=1).fit(X, [0, 1] * 3)
    assert (np.diff(model.decision_function(X[:2])) > 0).all()


def test_no_edge_means_no_ranker():
    X, y = np.array([[0.0], [1.0]] * 4), [0, 0, 1, 1] * 2
    model = SSRankBoost().fit(X, y)
    assert len(model.weights_) == 0
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(X)[0])


def test_a_million_columns_are_never_filled_in():
    """A dense copy would need 16 GB; the entries are 40,000."""
    rng = np.random.default_rng(0)
    n, d = 2000, 1_000_000
    columns = rng.integers(0, d, size=(n, 20))
    columns[:1000, 0] = 7  # the first half shares a word, and so do the positives
    data = np.ones(n * 20)
    X = sparse.csr_matrix((data, columns.ravel(), np.arange(0, 20 * n + 1, 20)), shape=(n, d))
    X.sum_duplicates()
    y = np.full(n, -1)
    y[:30], y[-70:] = 1, 0
    model = SSRankBoost(n_rounds=10).fit(X, y)
    assert model.columns_[0] == 7
    truth = np.arange(n) < 1000
    assert roc_auc_score(truth, model.decision_function(X)) > 0.95


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"discount": -1.0}, "discount"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_rounds": 2.5}, "n_rounds"),
        ({"smoothing": 0.0}, "smoothing"),
    ],
)
def test_bad_settings_are_one_clear_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        SSRankBoost(**settings).fit(*rows(0))
