"""Tests of selection/grid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pnuauc.core.basis import MultiscaleBasis
from pnuauc.core.design import Design
from pnuauc.core.risks import pnu_risk
from pnuauc.core.solvers import solve_ridge
from pnuauc.selection import PAPER_ALPHAS, PAPER_ETAS, TrainedGrid, deal_folds
from tests.conftest import wins


class EveryThird:
    """Row i is held out in fold i mod 3, but for the last six rows, which never are."""

    def split(self, X, y):
        rows = np.arange(len(y) - 6)
        for k in range(3):
            yield rows[rows % 3 != k], rows[rows % 3 == k]


def test_kept_candidates_without_a_minimum_are_counted():
    """Those whose quadratic form on all rows has a negative eigenvalue, once for each ridge."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) + (np.arange(60) < 15)[:, None]
    rows = {"P": np.arange(10), "N": np.arange(10, 30), "U": np.arange(30, 60)}
    basis = MultiscaleBasis(8, ("0.3*median", "median"), random_state=0).fit(X)
    etas, alphas, prior = (-0.9, 0.2, 0.95), (0.1, 1.0), 0.6
    folds = deal_folds(rows, 3, random_state=0)
    grid = TrainedGrid.from_arrays(X, folds, basis, etas, alphas, prior).train()
    chosen = grid.choose("average", "simple", temperature=100.0)  # keeps everything
    assert len(chosen.choice.kept) == 12
    lowest = [
        np.linalg.eigvalsh(
            pnu_risk(eta, prior)
            .quadratic_form(Design.of(X, rows, basis.scale(j)).moments())
            .quadratic
        ).min()
        for j in range(2)
        for eta in etas
    ]
    expected = 2 * sum(low < -1e-9 for low in lowest)
    assert 0 < expected < 12
    assert chosen.n_corrected == expected
    assert chosen.n_iter == 1


@pytest.mark.parametrize(("role", "part"), [("P", "PU"), ("N", "NU")])
def test_one_labeled_class_is_judged_against_unlabeled_rows(role, part):
    """Held-out risks by brute force; nothing is made up for the class that is not there."""
    rng = np.random.default_rng(0)
    sign = 1 if role == "P" else -1
    X = rng.standard_normal((50, 2)) + sign * (np.arange(50) < 12)[:, None]
    rows = {role: np.arange(12), "U": np.arange(12, 50)}
    basis = MultiscaleBasis(6, ("median",), random_state=0).fit(X)
    folds = deal_folds(rows, 3, random_state=0)
    grid = TrainedGrid.from_arrays(X, folds, basis, (float(sign),), (1.0,), 0.2).train()
    risks, features = grid.judge("combined").fold_risks[:, 0], basis.scale(0).features(X)
    for k, (fitted, counts) in enumerate(zip(grid.fitted, grid.counts)):
        scores = features @ fitted.coef[0]
        labeled, unlabeled = (scores[folds.rows[r][k]] for r in (role, "U"))
        own = [len(labeled), 0] if role == "P" else [0, len(labeled)]
        assert counts.masses.tolist() == [*own, len(unlabeled)]
        won = wins(labeled, unlabeled).mean()
        expected = (1 - won - 0.1) / 0.8 if role == "P" else (won - 0.4) / 0.2
        assert risks[k] == pytest.approx(expected)
    assert grid.setting == part


@pytest.mark.parametrize("weighted", [False, True])
def test_a_grid_by_brute_force(weighted):
    """Fits without a fold, counts of that fold and fits on all rows, in blocks of seven rows.

    The last six rows are in no fold. A weight of two counts as two rows.
    """
    rng = np.random.default_rng(6)
    X = rng.standard_normal((66, 2)) + (np.arange(66) < 12)[:, None]
    rows = {"P": np.arange(12), "N": np.arange(12, 30), "U": np.arange(30, 66)}
    labels = np.repeat([1.0, 0.0, np.nan], [12, 18, 36])
    weight = rng.integers(1, 3, 66).astype(float) if weighted else None
    folds = deal_folds(rows, EveryThird(), X, labels)
    basis = MultiscaleBasis(5, ("0.5*median", "median"), random_state=0).fit(X)
    etas, alphas, prior = (-0.3, 0.0, 0.4), (0.1, 1.0), 0.3
    grid = TrainedGrid.from_arrays(
        X, folds, basis, etas, alphas, prior, weight=weight, block_size=7
    ).train()
    times = np.ones(66) if weight is None else weight

    def repeated(index):
        return np.repeat(index, times[index].astype(int))

    def solved(kept, j, eta, alpha):
        design = Design.of(X, {r: repeated(i) for r, i in kept.items()}, basis.scale(j))
        form = pnu_risk(eta, prior).quadratic_form(design.moments())
        return solve_ridge(form, [alpha])[0].coef

    every = list(itertools.product(range(2), etas, alphas))
    for k in range(3):
        out = {r: i[(i < 60) & (i % 3 == k)] for r, i in rows.items()}
        kept = {r: np.setdiff1d(i, out[r]) for r, i in rows.items()}
        risks = grid.counts[k].risks(prior)
        for c, (j, eta, alpha) in enumerate(every):
            coef = grid.fitted[k].coef[c]
            if not grid.usable[c]:
                continue
            np.testing.assert_allclose(coef, solved(kept, j, eta, alpha), rtol=1e-7, atol=1e-9)
            scores = basis.scale(j).features(X) @ coef
            p, n, u = (scores[repeated(out[r])] for r in "PNU")
            pn, pu, un = (1 - wins(a, b).mean() for a, b in ((p, n), (p, u), (u, n)))
            assert risks[0][c] == pytest.approx(pn)
            assert risks[1][c] == pytest.approx((pu - prior / 2) / (1 - prior))
            assert risks[2][c] == pytest.approx((un - (1 - prior) / 2) / prior)
    assert grid.usable.sum() >= 8
    chosen = np.array([7, 0, 10, 3])  # in any order
    found = grid.fit_all(chosen)
    for coef, spread, c in zip(found.coef, found.spread, chosen):
        expected = solved(rows, *every[c])
        np.testing.assert_allclose(coef, expected, rtol=1e-7, atol=1e-9)
        scores = basis.scale(every[c][0]).features(X[repeated(np.arange(66))]) @ expected
        assert spread == pytest.approx(scores.std())
    alone = grid.judge("pn")
    zero = grid.candidates.eta == 0
    assert np.isnan(alone.fold_risks[:, ~zero]).all()
    by_fold = np.array([counts.risks(None)[0] for counts in grid.counts])
    np.testing.assert_allclose(alone.fold_risks[:, zero], by_fold[:, zero])
    assert alone.weights == {"all": (1.0, 0.0, 0.0)}


NOISE_GRIDS = {
    "24 candidates": ((-0.6, -0.3, 0.0, 0.3, 0.6, 0.9), (0.01, 1.0), ("0.5*median", "median")),
    "95 candidates": (PAPER_ETAS, PAPER_ALPHAS, ("median",)),
}


@pytest.mark.parametrize("grid", NOISE_GRIDS)
@pytest.mark.slow
def test_noise_shows_no_gain(grid):
    """200 draws without any signal: the mean claim is zero within one of its standard errors, and
    "helped" is said in at most 5% of them; a single pick claims nothing."""
    etas, alphas, widths = NOISE_GRIDS[grid]
    rows = {"P": np.arange(10), "N": np.arange(10, 30), "U": np.arange(30, 100)}
    gains, helped = [], 0
    for seed in range(200):
        X = np.random.default_rng(seed).standard_normal((100, 2))
        basis = MultiscaleBasis(10, widths, random_state=seed).fit(X)
        folds = deal_folds(rows, 5, random_state=1000 + seed)
        trained = TrainedGrid.from_arrays(X, folds, basis, etas, alphas, prior=0.2).train()
        report = trained.choose("average", "combined").report
        gains.append(report.gain)
        helped += "helped" in report.message
    assert abs(np.mean(gains)) < np.std(gains, ddof=1) / np.sqrt(200)
    assert helped <= 10
    alone = trained.choose("paper", "simple").report
    assert alone.gain is None
    assert "cannot be estimated from these folds" in alone.message
