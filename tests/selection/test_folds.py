"""Tests of selection/folds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

from pnuauc.core.basis import MultiscaleBasis
from pnuauc.selection import FoldedRows, TrainedGrid, deal_folds
from pnuauc.selection.folds import read_cv


def test_folds_deal_every_row_once_and_evenly():
    rows = {"P": np.arange(7), "N": np.arange(7, 30), "U": np.arange(30, 130)}
    folds = deal_folds(rows, 5, random_state=0)
    assert folds.n_folds == 5
    for role, mine in rows.items():
        parts = folds.rows[role]
        assert sorted(np.concatenate(parts).tolist()) == mine.tolist()
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        assert folds.size(role) == len(mine)
    again = deal_folds(rows, 5, random_state=0)
    other = deal_folds(rows, 5, random_state=1)
    assert all(np.array_equal(a, b) for a, b in zip(folds.rows["U"], again.rows["U"]))
    assert not all(np.array_equal(a, b) for a, b in zip(folds.rows["U"], other.rows["U"]))


def test_two_rows_of_a_class_are_enough_and_one_is_not():
    few = {"P": np.arange(2), "N": np.arange(2, 9), "U": np.arange(9, 30)}
    assert deal_folds(few, 5, random_state=0).n_folds == 2
    with pytest.raises(ValueError, match="at least 2 rows"):
        deal_folds({**few, "P": np.arange(1)}, 5, random_state=0)
    with pytest.raises(ValueError, match="at least 2 folds"):
        deal_folds(few, 1, random_state=0)


def copied(seed, sizes, copies):
    """Labelled rows of which some stand there several times."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    group = np.arange(n)
    for first, *rest in copies:
        group[rest] = first
    ends = np.cumsum(sizes)
    rows = {role: np.arange(b - k, b) for role, b, k in zip("PNU", ends, sizes)}
    return rng.normal(size=(n, 3))[group], rows


@pytest.mark.parametrize("seed", range(5))
def test_identical_labeled_rows_share_a_fold(seed):
    """Copies within a class and across classes; U has no label to give away."""
    copies = [(0, 3, 5), (1, 12), (14, 15, 16, 17), (30, 31)]
    X, rows = copied(seed, (9, 21, 40), copies)
    folds = deal_folds(rows, 4, X, random_state=seed)
    place = np.full(70, -1)
    for role in "PNU":
        for k, part in enumerate(folds.rows[role]):
            place[part] = k
            assert len(part)
    assert folds.n_folds == 4
    assert place.min() == 0  # every row has a fold
    for first, *rest in copies[:3]:
        assert (place[rest] == place[first]).all()
    # a plain deal does not keep them together
    plain = [deal_folds(rows, 4, random_state=s).rows["P"] for s in range(20)]
    assert any(
        {0, 3, 5} & set(part.tolist()) not in (set(), {0, 3, 5}) for d in plain for part in d
    )


@pytest.mark.parametrize("role", ["P", "N"])
def test_copies_share_a_fold_where_one_class_is_labeled(role):
    X, rows = copied(3, (12, 0, 40), [(0, 4, 9), (1, 2)])
    folds = deal_folds({role: rows["P"], "U": rows["U"]}, 4, X, random_state=0)
    assert (folds.n_folds, set(folds.rows)) == (4, {role, "U"})
    place = {int(i): k for k, part in enumerate(folds.rows[role]) for i in part}
    assert sorted(place) == list(range(12))
    assert place[0] == place[4] == place[9]
    assert place[1] == place[2]
    assert folds.size("U") == 40


def test_copies_leave_as_many_folds_as_there_are_different_rows():
    X, rows = copied(0, (6, 21, 40), [(0, 1, 2), (3, 4)])  # positives: three different rows
    assert deal_folds(rows, 5, X, random_state=0).n_folds == 3
    X, rows = copied(0, (6, 21, 40), [tuple(range(6))])  # one: no split keeps it from itself
    folds = deal_folds(rows, 5, X, random_state=0)
    assert folds.n_folds == 5
    assert sorted(len(part) for part in folds.rows["P"]) == [1, 1, 1, 1, 2]
    few = copied(0, (4, 21, 40), [tuple(range(4))])
    assert deal_folds(few[1], 5, few[0], random_state=0).n_folds == 4


class EveryThird:
    """Row i is held out in fold i mod 3, but for the last six rows, which never are."""

    def split(self, X, y):
        rows = np.arange(len(y) - 6)
        for k in range(3):
            yield rows[rows % 3 != k], rows[rows % 3 == k]


def test_a_splitter_deals_its_test_sets_and_keeps_the_rest_for_training():
    rows = {"P": np.arange(9), "N": np.arange(9, 21), "U": np.arange(21, 51)}
    labels = np.repeat([1.0, 0.0, np.nan], [9, 12, 30])
    folds = deal_folds(rows, EveryThird(), np.zeros((51, 1)), labels)
    assert folds.n_folds == 3
    for role, mine in rows.items():
        for k in range(3):
            expected = [i for i in mine if i < 45 and i % 3 == k]
            assert folds.rows[role][k].tolist() == expected
        assert folds.rows[role][3].tolist() == [i for i in mine if i >= 45]

    class Overlapping:
        def split(self, X, y):
            yield from ((np.arange(5, 51), np.arange(5)), (np.arange(4), np.arange(4, 51)))

    with pytest.raises(ValueError, match="overlap"):
        deal_folds(rows, Overlapping(), np.zeros((51, 1)), labels)
    with pytest.raises(ValueError, match=r"StratifiedKFold cannot .*; RoleStratifiedKFold deals"):
        deal_folds(rows, StratifiedKFold(3), np.zeros((51, 1)), labels)


def test_a_grid_counts_its_rows_twice_and_then_stops():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) + (np.arange(60) < 15)[:, None]
    rows = {"P": np.arange(10), "N": np.arange(10, 30), "U": np.arange(30, 60)}
    shares = []
    basis = MultiscaleBasis(10, ("median",), random_state=0).fit(X)
    folds = deal_folds(rows, 3, random_state=0)
    TrainedGrid.from_arrays(
        X, folds, basis, (0.0, 0.5), (0.1, 1.0), 0.2, tick=lambda stage, share: shares.append(share)
    ).train()
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("selection", ["average", "paper"])
def test_models_without_a_fold_are_chosen_without_it(selection):
    """By brute force: trained without the fold, and weighed as if there were only the others."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2)) + 0.5 * (np.arange(60) < 15)[:, None]
    folds = deal_folds({"P": np.arange(15), "N": np.arange(15, 60)}, 3, random_state=0)
    basis = MultiscaleBasis(8, ("0.3*median", "median"), random_state=0).fit(X)
    grid = TrainedGrid.from_arrays(X, folds, basis, (0.0,), (0.01, 1.0), None).train()
    models = grid.choose(selection, "simple", temperature=0.5).fold_models()
    for k, model in enumerate(models):
        others = {role: lists[:k] + lists[k + 1 :] for role, lists in folds.rows.items()}
        alone = TrainedGrid.from_arrays(X, FoldedRows(others, 2), basis, (0.0,), (0.01, 1.0), None)
        criterion = alone.train().judge("simple")
        rest = criterion.fold_risks.mean(axis=0)
        if selection == "paper":
            weights = np.arange(4) == rest.argmin()
        else:
            weights = np.exp(-(rest - rest.min()) / (0.5 * criterion.noise))
        scores = np.zeros(60)
        for c in range(4):
            scale = np.unravel_index(c, grid.shape)[0]
            fitted = grid.fitted[k].take(np.array([c]))
            spread = fitted.spread[0] if selection == "average" else 1.0
            one = basis.scale(int(scale)).features(X) @ fitted.coef[0]
            scores += weights[c] / weights.sum() * one / spread
        np.testing.assert_allclose(model.basis.features(X) @ model.coef, scores, atol=1e-8)
    assert not np.allclose(*(m.coef[:8] for m in models[:2]))


ETAS = {"PNU": (-0.5, 0.0, 0.5), "PU": (1.0,), "NU": (-1.0,)}

ALPHAS = (0.01, 1.0)


def rows_of(roles, n_labeled=12, n_unlabeled=40):
    """Row numbers by role: so many of each labelled class, then U."""
    sizes = [n_unlabeled if role == "U" else n_labeled for role in roles]
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return dict(zip(roles, parts, strict=True))


def grid_of(X, folds, roles, basis):
    return TrainedGrid.from_arrays(X, folds, basis, ETAS[roles], ALPHAS, 0.3).train()


@pytest.fixture
def basis_of():
    return lambda X: MultiscaleBasis(8, ("0.3*median", "median"), random_state=0).fit(X)


@pytest.mark.parametrize("roles", ETAS)
def test_judged_apart_is_judged_as_if_the_fold_did_not_exist(roles, basis_of):
    """Risks, weights of the criterion and noise are those of a grid of the other folds."""
    rows = rows_of(roles)
    n = sum(map(len, rows.values()))
    X = np.random.default_rng(1).standard_normal((n, 2)) + (np.arange(n) < 12)[:, None]
    folds = deal_folds(rows, 4, random_state=0)
    grid = grid_of(X, folds, roles, basis_of(X))
    for k in range(4):
        others = {role: lists[:k] + lists[k + 1 :] for role, lists in folds.rows.items()}
        alone = grid_of(X, FoldedRows(others, 3), roles, grid.basis)
        usable = alone.usable & ~np.isnan(grid.fitted[k].coef[:, 0])
        apart, expected = (
            grid.judge_apart(k, "combined"),
            alone._judged(alone.counts, "combined", usable),
        )
        np.testing.assert_allclose(apart.fold_risks, expected.fold_risks)
        assert apart.noise == pytest.approx(expected.noise)
        assert apart.weights["all"] == pytest.approx(expected.weights["all"])


def test_candidates_without_coefficients_are_out_of_the_running(basis_of):
    """One that had no minimum without this fold cannot be chosen for it."""
    rows = rows_of("PNU")
    X = np.random.default_rng(1).standard_normal((64, 2)) + (np.arange(64) < 12)[:, None]
    grid = grid_of(X, deal_folds(rows, 3, random_state=0), "PNU", basis_of(X))
    best = int(np.nanargmin(grid.judge_apart(1, "combined").mean))
    grid.fitted[1].coef[best] = np.nan
    assert np.isnan(grid.judge_apart(1, "combined").mean[best])
    assert not np.isnan(grid.judge_apart(0, "combined").mean[best])


def test_the_table_of_a_choice():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) + (np.arange(120) < 20)[:, None]
    rows = {"P": np.arange(20), "N": np.arange(20, 50), "U": np.arange(50, 120)}
    basis = MultiscaleBasis(8, ("median", "2*median"), random_state=0).fit(X)
    folds = deal_folds(rows, 3, random_state=0)
    grid = TrainedGrid.from_arrays(X, folds, basis, (-0.3, 0.0, 0.6), (0.1, 1.0), 0.2).train()
    chosen = grid.choose("average", "combined", 1.0)
    table, criterion = chosen.table(), chosen.criterion
    np.testing.assert_allclose(table["mean_test_score"], 1 - criterion.mean)
    values = np.where(np.isnan(criterion.mean), np.inf, criterion.mean)
    np.testing.assert_array_equal(table["rank_test_risk"], stats.rankdata(values, method="min"))
    for k in range(3):
        np.testing.assert_array_equal(table[f"split{k}_test_risk"], criterion.fold_risks[k])
    assert table["weight"].sum() == pytest.approx(1)
    np.testing.assert_allclose(table["weight"][chosen.choice.kept], chosen.choice.weights)
    assert table["params"][0] == {"width": table["param_width"][0], "eta": -0.3, "alpha": 0.1}


@pytest.mark.parametrize("cv", [2, 7, np.int64(3)])
def test_numbers_of_folds(cv):
    assert read_cv(cv) == cv
    assert type(read_cv(cv)) is int
    for wrong in (1, 0, -2, True, 2.5, "5", None, object()):
        with pytest.raises(ValueError, match="cv must be"):
            read_cv(wrong)
    pairs = [(np.arange(3), np.arange(3, 6))]
    assert read_cv(pairs) is pairs


@pytest.mark.slow
def test_on_noise_held_out_rows_rank_by_chance(basis_of):
    """Mean AUC .5 within .035 (3 standard errors of 60 draws are .056); chosen by the other folds
    alone, which were trained on the fold, it is 5 points higher."""
    apart, beside = [], []
    for seed in range(60):
        X = np.random.default_rng(seed).standard_normal((40, 2))
        folds = deal_folds({"P": np.arange(8), "N": np.arange(8, 40)}, 4, random_state=seed)
        basis = MultiscaleBasis(20, ("0.1*median", "0.3*median", "median"), random_state=0).fit(X)
        grid = TrainedGrid.from_arrays(X, folds, basis, (0.0,), (1e-3, 1e-1, 1e1), None).train()
        chosen = grid.choose("paper", "simple")
        choices = [chosen.decide(chosen.criterion.without(k)) for k in range(4)]
        others = [chosen._combined(grid.fitted[k].take(c.kept), c) for k, c in enumerate(choices)]
        for found, models in ((apart, chosen.fold_models()), (beside, others)):
            found.append(np.mean([held_out_auc(m, X, folds, k) for k, m in enumerate(models)]))
    assert abs(np.mean(apart) - 0.5) < 0.035
    assert np.mean(beside) - np.mean(apart) > 0.03


def held_out_auc(model, X, folds, k):
    positive, negative = (model.score(X[folds.rows[role][k]]) for role in "PN")
    gap = positive[:, None] - negative
    return np.mean((gap > 0) + 0.5 * (gap == 0))


def test_groups_stay_in_one_fold_whatever_their_roles_and_splitters_refuse_by_role():
    rng = np.random.default_rng(0)
    roles = np.repeat([1, 0, -1], [20, 30, 100])
    groups = rng.integers(0, 40, 150)
    rows = {
        letter: np.flatnonzero(roles == code)
        for letter, code in zip("PNU", (1, 0, -1), strict=True)
    }
    folds = deal_folds(rows, 5, random_state=0, groups=groups)
    for train, held in folds.splits:
        assert not set(groups[train]) & set(groups[held])
        assert {1, 0} <= set(roles[held])
    labels = np.where(roles < 0, np.nan, roles)
    X = np.zeros((150, 1))
    with pytest.raises(ValueError, match="no positive row to train on"):
        deal_folds(rows, KFold(5), X, labels)
    shuffled = rng.permutation(150)
    rows = {
        letter: np.flatnonzero(roles[shuffled] == c)
        for letter, c in zip("PNU", (1, 0, -1), strict=True)
    }
    with pytest.raises(ValueError, match="as TimeSeriesSplit does"):
        deal_folds(rows, TimeSeriesSplit(3), X, labels[shuffled])
    assert deal_folds(rows, GroupKFold(4), X, labels[shuffled], groups=groups).n_folds == 4


def test_rows_without_copies_are_dealt_as_if_nobody_had_looked():
    X, rows = copied(0, (9, 21, 40), [(30, 31)])  # a copy in U does not count
    looked, plain = deal_folds(rows, 4, X, random_state=1), deal_folds(rows, 4, random_state=1)
    for role in "PNU":
        for a, b in zip(looked.rows[role], plain.rows[role], strict=True):
            np.testing.assert_array_equal(a, b)
