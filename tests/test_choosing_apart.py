"""A fold is judged by candidates that it had no part in choosing."""

import numpy as np
import pytest

from pnuauc._basis import IdentityBasis, MultiscaleBasis
from pnuauc.selection import FoldedRows, TrainedGrid, deal_folds

ETAS = {"PNU": (-0.5, 0.0, 0.5), "PU": (1.0,), "NU": (-1.0,)}
ALPHAS = (0.01, 1.0)


def rows_of(roles, n_labelled=12, n_unlabeled=40):
    """Row numbers by role: so many of each labelled class, then U."""
    sizes = [n_unlabeled if role == "U" else n_labelled for role in roles]
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


def test_unlabelled_rows_that_judge_are_evenly_spaced(monkeypatch, basis_of):
    """Above the limit every so many of them: here every third, whatever their fold."""
    monkeypatch.setattr("pnuauc.selection._grid._JUDGING_ROWS", 20)
    rows = rows_of("PNU", n_unlabeled=60)
    X = np.random.default_rng(2).standard_normal((84, 2))
    folds = deal_folds(rows, 3, random_state=0)
    grid = grid_of(X, folds, "PNU", basis_of(X))
    some = np.concatenate(folds.rows["U"])[::3]
    thinned = folds.rows | {"U": [part[np.isin(part, some)] for part in folds.rows["U"]]}
    judging = {role: list(visitor.map(lambda b: b.X)) for role, visitor in grid._judging.items()}
    for role, blocks in judging.items():
        np.testing.assert_array_equal(np.concatenate(blocks), X[np.concatenate(thinned[role])])


@pytest.mark.parametrize("n_positive", [2, 3])
def test_too_few_rows_to_leave_two_folds_out(n_positive, basis_of):
    """The PU risk needs two positives; else the other folds choose, trained on this one."""
    rows = {"P": np.arange(n_positive), "U": np.arange(n_positive, 60)}
    X = np.random.default_rng(3).standard_normal((60, 2)) + (np.arange(60) < 3)[:, None]
    grid = TrainedGrid.from_arrays(
        X, deal_folds(rows, 5, random_state=0), basis_of(X), (1.0,), ALPHAS, 0.1
    )
    if n_positive == 2:  # a fold less leaves one
        with pytest.raises(ValueError, match="at least 2 positive rows"):
            grid.train()
        return
    chosen = grid.train().choose("paper", "simple")
    for k, model in enumerate(chosen.fold_models()):
        best = chosen.decide(chosen.criterion.without(k))
        expected = chosen._combined(grid.fitted[k].take(best.kept), best)
        np.testing.assert_array_equal(model.coef, expected.coef)


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


def test_candidates_without_coefficients_are_out_of_the_running(basis_of):
    """One that had no minimum without this fold cannot be chosen for it."""
    rows = rows_of("PNU")
    X = np.random.default_rng(1).standard_normal((64, 2)) + (np.arange(64) < 12)[:, None]
    grid = grid_of(X, deal_folds(rows, 3, random_state=0), "PNU", basis_of(X))
    best = int(np.nanargmin(grid.judge_apart(1, "combined").mean))
    grid.fitted[1].coef[best] = np.nan
    assert np.isnan(grid.judge_apart(1, "combined").mean[best])
    assert not np.isnan(grid.judge_apart(0, "combined").mean[best])


@pytest.mark.parametrize("n_labelled", [49, 50])
def test_from_fifty_rows_of_the_rarer_class_on_the_other_folds_choose(n_labelled, basis_of):
    rows = rows_of("PNU", n_labelled=n_labelled)
    n = sum(map(len, rows.values()))
    X = (
        np.random.default_rng(4).standard_normal((n, 2))
        + 0.3 * (np.arange(n) < n_labelled)[:, None]
    )
    grid = grid_of(X, deal_folds(rows, 3, random_state=0), "PNU", basis_of(X))
    chosen = grid.choose()
    for k, model in enumerate(chosen.fold_models()):
        apart, beside = grid.judge_apart(k, "combined"), chosen.criterion.without(k)
        assert not np.allclose(apart.mean, beside.mean)
        choice = chosen.decide(apart if n_labelled < 50 else beside)
        expected = chosen._combined(grid.fitted[k].take(choice.kept), choice)
        np.testing.assert_array_equal(model.coef, expected.coef)


def test_a_basis_of_one_column():
    """One coefficient a candidate: every fold's model is the column, whatever is chosen."""
    X = np.random.default_rng(5).standard_normal((64, 1)) + (np.arange(64) < 12)[:, None]
    folds = deal_folds(rows_of("PNU"), 3, random_state=0)
    basis = IdentityBasis().fit(X)
    for model in grid_of(X, folds, "PNU", basis).choose().fold_models():
        np.testing.assert_array_equal(np.argsort(model.score(X)), np.argsort(X[:, 0]))
