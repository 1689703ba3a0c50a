"""EM, Hellinger and the permutation test of the energy distance, by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from pnuauc.labels import Roles
from pnuauc.priors import PRIORS, EMPrior, HellingerPrior, PlacementPrior, _quantification
from pnuauc.priors._binormal import RankCounts, Shape, bin_shares
from pnuauc.priors._energy import _guarded, _permutation_p_value, _RowMeans
from pnuauc.priors._fit_test import _binormal_statistic
from pnuauc.priors._placement import _rows_to_use


def scores(seed=0, sizes=(40, 60, 300), share=0.3):
    rng = np.random.default_rng(seed)
    hidden = rng.random(sizes[2]) < share
    return rng.normal(1, 1, sizes[0]), rng.normal(0, 1, sizes[1]), rng.normal(hidden, 1)


@pytest.mark.parametrize("seed", range(3))
def test_em_ends_at_the_most_likely_share(seed) -> None:
    p, n, u = scores(seed)
    target = np.repeat([1, 0], [len(p), len(n)])
    model = LogisticRegression(class_weight="balanced").fit(np.r_[p, n][:, None], target)
    odds = np.exp(model.decision_function(u[:, None]))
    best = minimize_scalar(
        lambda t: -np.log(t * odds + 1 - t).sum(), bounds=(0, 1), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    assert EMPrior()._share(p, n, u) == pytest.approx(best.x, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_hellinger_is_the_median_over_numbers_of_bins(seed) -> None:
    p, n, u = scores(seed)
    found = []
    for n_bins in (4, 9, 15):
        edges = np.r_[-np.inf, np.quantile(u, np.arange(1, n_bins) / n_bins), np.inf]
        shares = [
            np.array([((a < s) & (s <= b)).mean() for a, b in itertools.pairwise(edges)])
            for s in (p, n, u)
        ]
        grid = np.linspace(0, 1, 501)
        gaps = [np.sum((np.sqrt(shares[2]) - np.sqrt(t * shares[0] + (1 - t) * shares[1])) ** 2)
                for t in grid]  # fmt: skip
        found.append(grid[np.argmin(gaps)])
    assert HellingerPrior(n_bins=(4, 9, 15))._share(p, n, u) == pytest.approx(np.median(found))


@pytest.mark.parametrize("level", [0.9, 0.6])
def test_intervals_are_quantiles_of_resampled_scores(level, monkeypatch) -> None:
    """The scorer and the share replaced by simple ones, so that every draw can be repeated."""
    p, n, u = scores()
    every = np.concatenate([p, n, u])
    monkeypatch.setitem(_quantification.LABELLED, "linear", lambda rows: every[rows.X[:, 0]])
    monkeypatch.setattr(_quantification, "prepare", lambda X, *_, **__: _Given(X))
    model = HellingerPrior(scorer="linear", n_bootstrap=40, level=level, random_state=3)
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), [40, 60, 300]))
    estimate, told = model._estimate(np.arange(400)[:, None], roles)
    rng = np.random.RandomState(3)
    for size in (40, 60, 300):
        rng.permutation(size)
    drawn = [model._share(*(rng.choice(s, len(s)) for s in (p, n, u))) for _ in range(40)]
    value = model._share(p, n, u)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    assert estimate.value == value
    assert estimate.interval == (min(low, value), max(high, value))
    assert estimate.std_error == pytest.approx(np.std(drawn))
    assert told["auc"] == pytest.approx((p[:, None] > n).mean())
    assert told["auc_z"] == pytest.approx((told["auc"] - 0.5) / np.sqrt(101 / (12 * 40 * 60)))
    assert estimate.doubt is None
    monkeypatch.setitem(_quantification.LABELLED, "linear", lambda rows: -every[rows.X[:, 0]])
    assert "cannot be told apart" in model._estimate(np.arange(400)[:, None], roles)[0].doubt


class _Given:
    def __init__(self, X):
        self.X = X


def test_at_most_so_many_rows_of_a_role_are_used(monkeypatch) -> None:
    seen = []

    def prepared(X, roles, *_, **__):
        seen.append((X[:, 0], roles.codes))
        return _Given(X)

    monkeypatch.setattr(_quantification, "prepare", prepared)
    monkeypatch.setitem(_quantification.LABELLED, "linear", lambda rows: rows.X[:, 0] * 1.0)
    codes = np.repeat(np.array([1, 0, -1], np.int8), [10, 20, 70])
    for limit, left in ((15, [10, 15, 15]), (None, [10, 20, 70]), (2, [2, 2, 2])):
        model = EMPrior(scorer="linear", max_rows=limit, n_bootstrap=2, random_state=0)
        model._estimate(np.arange(100)[:, None], Roles(codes))
        rows, roles = seen[-1]
        assert [(roles == code).sum() for code in (1, 0, -1)] == left
        np.testing.assert_array_equal(roles, codes[rows])
        assert (np.diff(rows) > 0).all()


# --- energy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.3, 1.5])
def test_the_permutation_test_counts_relabellings(shift) -> None:
    rng = np.random.default_rng(6)
    P, N = rng.normal(shift, 1, (9, 2)), rng.normal(size=(14, 2))
    rows = np.vstack([P, N])

    def energy(chosen):
        is_p = np.zeros(23, bool)
        is_p[chosen] = True
        A, B = rows[is_p], rows[~is_p]
        within = [cdist(S, S).sum() / (len(S) * (len(S) - 1)) for S in (A, B)]
        return 2 * cdist(A, B).mean() - sum(within)

    again = np.random.RandomState(2)
    drawn = [energy(again.permutation(23)[:9]) for _ in range(199)]
    expected = (1 + sum(e >= energy(np.arange(9)) - 1e-9 for e in drawn)) / 200
    assert _permutation_p_value(P, N, 1.0, np.random.RandomState(2)) == pytest.approx(expected)


def test_relabellings_that_are_all_equal_are_ties() -> None:
    same = np.ones((5, 2))
    assert _permutation_p_value(same, same, 1.0, np.random.RandomState(0)) == 1.0


def test_the_guard_brings_the_denominator_to_half_of_vs() -> None:
    assert _guarded(0.2, 1.0, 0.5, 1.4) == 0.2  # U's is above half of V's: nothing moves
    assert _guarded(0.2, 0.1, 0.5, 1.0) == pytest.approx((0.2 + 4 / 9 * 0.3) / 0.5)


def test_energy_errors_and_interval_by_definition() -> None:
    """Variances of the projections, Satterthwaite's freedom and Fieller's set on a grid."""
    rng = np.random.default_rng(7)
    P, N, U = rng.normal(1, 1, (12, 2)), rng.normal(0, 1, (15, 2)), rng.normal(0.3, 1, (40, 2))
    means = _RowMeans.of(P, N, U, 1.0)

    def mean(A, B):
        return cdist(A, B).mean(axis=1) * (len(B) / (len(B) - 1) if A is B else 1)

    grid = np.linspace(0, 1, 1001)
    by_role = np.array(
        [
            [np.var(row, ddof=1) / len(row) for row in (
                mean(P, N) - mean(P, U) + 2 * t * (mean(P, P) - mean(P, N)),
                mean(N, U) + mean(N, P) - 2 * mean(N, N) + 2 * t * (mean(N, N) - mean(N, P)),
                mean(U, N) - mean(U, P),
            )]
            for t in grid
        ]
    ).T  # fmt: skip
    np.testing.assert_allclose(means.variances(grid), by_role, rtol=1e-6)
    variance = by_role.sum(axis=0)
    freedom = variance**2 / sum(v**2 / (n - 1) for v, n in zip(by_role, (12, 15, 40)))
    A, B = means.linear_form("U")
    for level in (0.5, 0.9):
        kept = grid[np.abs(A - grid * B) <= stats.t.ppf(0.5 + level / 2, freedom) * variance**0.5]
        assert means.interval(level) == pytest.approx((kept[0], kept[-1]))


# --- placement ----------------------------------------------------------------------------------


def test_expected_counts_below_half_a_row_count_as_half() -> None:
    best, edges = Shape(0.02, 4.0, 0.0), np.linspace(0, 1, 9)[1:-1]
    positive, unlabeled = np.r_[20.0, 5, 1, 1, 1, 1, 1, 0], np.arange(20.0, 100.0, 10.0)
    counts = RankCounts(edges, positive, np.zeros(8), unlabeled)
    pooled = counts.pooled_share(np.array([best.share]))
    p, q = (v.ravel() for v in bin_shares(edges, pooled, np.array([4.0]), np.array([0.0])))
    u = best.share * p + (1 - best.share) * q
    assert (30 * p).min() < 0.1
    total = sum(
        np.sum((seen - seen.sum() * law) ** 2 / np.maximum(seen.sum() * law, 0.5))
        for seen, law in ((positive, p), (unlabeled, u))
    )
    assert _binormal_statistic(counts, best, np.arange(8)) == (pytest.approx(total), 5)


def test_rows_that_are_used() -> None:
    """All but a class of one row; of a longer role as many as are allowed, in order."""
    codes = np.array([1, 0, 0, 0, -1, -1, -1, -1, -1], np.int8)
    every = _rows_to_use(Roles(codes), None, np.random.RandomState(0))
    assert every.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    some = _rows_to_use(Roles(codes), 3, np.random.RandomState(0))
    assert some[:3].tolist() == [1, 2, 3]
    assert len(some) == 6
    assert (np.diff(some) > 0).all()
    two = np.array([1, 1, 0, -1, -1], np.int8)
    kept = _rows_to_use(Roles(two), 2, np.random.RandomState(0))
    assert kept.tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize(("n_p", "mirrored"), [(1, True), (2, False)])
def test_two_rows_of_a_class_take_part(n_p, mirrored) -> None:
    rng = np.random.default_rng(8)
    codes = np.repeat(np.array([1, 0, -1], np.int8), [n_p, 20, 100])
    X = rng.normal(size=(len(codes), 2)) + 2.0 * (rng.random(len(codes)) < 0.3)[:, None]
    X[:n_p] = 4.0 + rng.normal(size=(n_p, 2))
    model = PlacementPrior(random_state=0, on_unidentified="ignore").fit(X, Roles(codes))
    assert ("known_class" in model.diagnostics_) is mirrored


def test_defaults_are_those_that_were_measured() -> None:
    """docs/priors.md and the experiments rest on them: another value is another estimator."""
    expected = {
        "placement": {"n_trees": 50, "n_centers": 100, "spread_sd": 0.25, "max_rows": 10_000},
        "energy": {"alpha": 1.0, "max_rows": None, "identification_level": 0.1},
        "penalized_l1": {"n_centers": 200, "n_shares": 100, "n_folds": 5, "n_bootstrap": 200,
                         "max_rows": 20_000, "widths": (0.125, 0.25, 0.5, 1.0, 2.0),
                         "alphas": (1e-4, 1e-3, 1e-2, 1e-1, 1.0)},
        "pearson": {"n_centers": 50, "n_shares": 25, "n_folds": 3, "n_bootstrap": 200,
                    "n_iterations": 40, "max_rows": 5000, "widths": (0.25, 0.5, 1.0),
                    "alphas": (1e-3, 1e-2)},
        "em": {"n_bootstrap": 50, "max_rows": 10_000},
        "hellinger": {"n_bins": (5, 10, 20, 30, 40), "n_bootstrap": 50, "max_rows": 10_000},
    }  # fmt: skip
    for name, values in expected.items():
        found = PRIORS[name]().get_params()
        assert {key: found[key] for key in values} == values
        assert (found["level"], found["on_unidentified"]) == (0.9, "raise")
