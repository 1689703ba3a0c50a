"""Validation and choice, part by part: equal to their definitions, by brute force."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
from scipy import stats

from pnuauc import AUCClassifierCV
from pnuauc._basis import MultiscaleBasis, parse_width
from pnuauc._design import Design
from pnuauc._linear import LinearModel
from pnuauc._risks import gamma_bar, pnu_risk
from pnuauc._rows import ArrayRows
from pnuauc._solvers import solve_ridge
from pnuauc.losses import get_loss
from pnuauc.selection import FoldedRows, TrainedGrid, deal_folds
from pnuauc.selection._choice import (
    PAPER_ALPHAS,
    PAPER_ETAS,
    PAPER_WIDTHS,
    Candidates,
    Gain,
    average,
    explain,
    held_out_gain,
    order_of,
    pick,
)
from pnuauc.selection._counts import FoldCounts
from pnuauc.selection._criterion import (
    Criterion,
    _least_variance,
    _least_variance_simplex,
    held_out_covariance,
    validation_risks,
)
from pnuauc.selection._trainers import RefitTrainer, make_trainer
from tests.conftest import wins


def folds_of(seed=0, n_candidates=3, sizes=((4, 6, 30), (5, 6, 31)), digits=1):
    """Held-out scores of some candidates by fold: lists of (P, N, U), with ties."""
    rng = np.random.default_rng(seed)
    return [
        [np.round(rng.normal(m, 1.0, (n_candidates, n)), digits) for m, n in zip((1, 0, 0.3), size)]
        for size in sizes
    ]


def counts_of(folds):
    out = []
    for p, n, u in folds:
        counts = FoldCounts.from_labelled(p, n)
        marks, ranked = counts.marks, np.sort(u, axis=1)
        sides = (
            np.array([r.searchsorted(m, side=side) for r, m in zip(ranked, marks)])
            for side in ("left", "right")
        )
        out.append(counts.with_unlabelled(np.concatenate(list(sides), axis=1), u.shape[1]))
    return out


def test_risks_of_a_fold_are_sums_over_pairs():
    prior = 0.3
    for (p, n, u), counts in zip(folds_of(), counts_of(folds_of())):
        risks = counts.risks(prior)
        for c in range(3):
            pn, pu, un = (1 - wins(a[c], b[c]).mean() for a, b in ((p, n), (p, u), (u, n)))
            assert risks["PN"][c] == pytest.approx(pn)
            assert risks["PU"][c] == pytest.approx((pu - prior / 2) / (1 - prior))
            assert risks["NU"][c] == pytest.approx((un - (1 - prior) / 2) / prior)
    assert np.isnan(counts.risks(None)["PU"]).all()


def test_covariance_is_that_of_the_projections():
    """Placements of each role's rows, pooled over folds; mean over candidates."""
    prior, folds = 0.3, folds_of()
    expected = np.zeros((3, 3))
    n_candidates = 3
    for c in range(n_candidates):
        on_p, on_n, on_u = [], [], []
        for p, n, u in ([part[c] for part in fold] for fold in folds):
            zeros = [np.zeros(len(part)) for part in (p, n, u)]
            pn, pu, un = wins(p, n), wins(p, u), wins(u, n)
            on_p.append([pn.mean(1), pu.mean(1) / (1 - prior), zeros[0]])
            on_n.append([pn.mean(0), zeros[1], un.mean(0) / prior])
            on_u.append([zeros[2], pu.mean(0) / (1 - prior), un.mean(1) / prior])
        for rows in (on_p, on_n):
            pooled = np.concatenate(rows, axis=1)
            expected += np.cov(pooled) / pooled.shape[1] / n_candidates
        total = sum(part[0].shape[0] for part in on_u)
        spread = np.mean([np.cov(part, bias=True) for part in on_u], axis=0)
        expected += spread / total / n_candidates
    np.testing.assert_allclose(held_out_covariance(counts_of(folds), prior), expected, atol=1e-12)
    labelled = held_out_covariance(counts_of(folds), None)
    assert labelled[0, 0] == pytest.approx(expected[0, 0])
    assert np.count_nonzero(labelled) == 1


def random_covariance(seed):
    rows = np.random.default_rng(seed).normal(size=(3, 4))
    return rows @ rows.T


@pytest.mark.parametrize("seed", range(6))
def test_weights_of_least_variance(seed):
    s = random_covariance(seed)
    grid = np.linspace(0, 1, 20_001)
    for other in (1, 2):
        w = np.zeros((len(grid), 3))
        w[:, 0], w[:, other] = 1 - grid, grid
        best = grid[np.einsum("ki,ij,kj->k", w, s, w).argmin()]
        assert _least_variance(s, other) == pytest.approx(best, abs=1e-4)
    found = np.array(_least_variance_simplex(s))
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    steps = np.linspace(0, 1, 101)
    corners = np.array(
        [(a, b, 1 - a - b) for a, b in itertools.product(steps, steps) if a + b <= 1]
    )
    lowest = np.einsum("ki,ij,kj->k", corners, s, corners).min()
    assert found @ s @ found <= lowest + 1e-6 * np.trace(s)


def test_equal_risks_leave_labelled_pairs_alone():
    assert _least_variance(np.ones((3, 3)), 1) == 0.0
    assert sum(_least_variance_simplex(np.zeros((3, 3)))) == pytest.approx(1)


@pytest.mark.parametrize("name", ["simple", "variance", "combined"])
def test_validation_risk_is_the_weighted_sum_of_its_parts(name):
    prior, folds = 0.3, folds_of()
    counts, etas = counts_of(folds), np.array([-0.5, 0.0, 0.5])
    found = validation_risks(counts, etas, "PNU", prior, name)
    s = held_out_covariance(counts, prior)
    if name == "simple":
        pnpu, pnnu = gamma_bar(prior, 9, 12)
    elif name == "variance":
        pnpu, pnnu = _least_variance(s, 1), _least_variance(s, 2)
    if name == "combined":
        weights = [_least_variance_simplex(s)] * 3
    else:
        plus, minus = (1 - pnpu, pnpu, 0.0), (1 - pnnu, 0.0, pnnu)
        weights = [minus, plus, plus]  # by the sign of eta
    for k, fold in enumerate(counts):
        risks = fold.risks(prior)
        for c, w in enumerate(weights):
            expected = w[0] * risks["PN"][c] + w[1] * risks["PU"][c] + w[2] * risks["NU"][c]
            assert found.fold_risks[k, c] == pytest.approx(expected)
    typical = np.array(weights[2])
    assert found.noise == pytest.approx(np.sqrt(typical @ s @ typical))


def test_unusable_candidates_have_no_say():
    prior, counts = 0.3, counts_of(folds_of())
    usable = np.array([True, False, True])
    some = [c.of(usable) for c in counts]
    etas = np.array([0.0, 0.5, 0.5])
    found = validation_risks(counts, etas, "PNU", prior, "combined", usable)
    alone = validation_risks(some, etas[usable], "PNU", prior, "combined")
    assert np.isnan(found.fold_risks[:, 1]).all()
    np.testing.assert_allclose(found.fold_risks[:, usable], alone.fold_risks)
    assert found.noise == pytest.approx(alone.noise)


@pytest.mark.parametrize(("setting", "part"), [("PN", "PN"), ("PU", "PU"), ("NU", "NU")])
def test_two_roles_leave_no_choice_of_weights(setting, part):
    counts = counts_of(folds_of())
    prior = None if setting == "PN" else 0.3
    found = validation_risks(counts, np.zeros(3), setting, prior, "combined")
    for k, fold in enumerate(counts):
        np.testing.assert_allclose(found.fold_risks[k], fold.risks(prior)[part])


def test_mean_and_error_over_the_folds_that_have_a_value():
    risks = np.array([[0.1, 0.4, np.nan], [0.3, np.nan, np.nan], [0.8, 0.6, np.nan]])
    found = Criterion("simple", risks, {}, 0.1)
    np.testing.assert_allclose(found.mean, [0.4, 0.5, np.nan])
    np.testing.assert_allclose(found.std[:2], [np.std(risks[:, 0]), 0.1])
    expected = [np.std(risks[:, 0], ddof=1) / np.sqrt(3), np.std([0.4, 0.6], ddof=1) / np.sqrt(2)]
    np.testing.assert_allclose(found.std_error[:2], expected)


def test_the_parts_and_the_estimator_have_the_same_defaults():
    """Loss, limits of the solver, temperature: whoever uses the grid alone gets the same."""
    ours = AUCClassifierCV().get_params()
    assert (ours["max_iter"], ours["tol"], ours["temperature"]) == (500, 1e-6, 0.5)
    shared = set()
    for part in (TrainedGrid, TrainedGrid.choose, make_trainer, RefitTrainer):
        for name, parameter in inspect.signature(part).parameters.items():
            if ours.get(name) is not None and parameter.default is not parameter.empty:
                assert parameter.default == ours[name], (part, name)
                shared.add(name)
    assert shared >= {"loss", "max_iter", "tol", "selection", "temperature"}


def test_the_grids_are_those_of_the_paper():
    """Ridges 10^-3 to 10, eta from -.9 to .9 in tenths, widths from 1/8 to 2 medians."""
    np.testing.assert_allclose(PAPER_ALPHAS, 10.0 ** np.arange(-3, 2))
    np.testing.assert_allclose(PAPER_ETAS, np.arange(-9, 10) / 10)
    assert [parse_width(width) for width in PAPER_WIDTHS] == [(2.0**k, True) for k in range(-3, 2)]


def test_candidates_are_every_combination():
    found = Candidates.from_grid([1.0, 2.0], [-0.5, 0.0, 0.5], [0.1, 1.0])
    every = list(itertools.product([1.0, 2.0], [-0.5, 0.0, 0.5], [0.1, 1.0]))
    assert len(found) == 12
    assert [tuple(found.parameters(i).values()) for i in range(12)] == every
    assert list(found.parameters(0)) == ["width", "eta", "alpha"]


def test_ties_go_to_the_simpler_candidate():
    """Smaller abs(eta), then larger ridge, then larger width; risk first, NaN last."""
    candidates = Candidates.from_grid([1.0, 2.0], [-0.5, 0.0, 0.5], [0.1, 1.0])
    order = order_of(np.zeros(12), candidates)
    keys = [
        (abs(p["eta"]), -p["alpha"], -p["width"])
        for p in map(candidates.parameters, order.tolist())
    ]
    assert keys == sorted(keys)
    risks = np.arange(12.0)[::-1].copy()
    risks[11] = np.nan
    np.testing.assert_array_equal(order_of(risks, candidates), [*range(10, -1, -1), 11])
    single = pick(risks, candidates)
    assert (single.kept.tolist(), single.weights.tolist()) == ([10], [1.0])


def test_average_weighs_by_the_excess_risk():
    candidates = Candidates.from_grid([1.0], [0.0], [0.1, 1.0, 10.0, 100.0, 1000.0])
    risks = np.array([[0.2, 0.1, 0.15, 0.1 + 7.5 * 0.02, np.nan]])
    found = average(Criterion("simple", risks, {}, 0.04), candidates, 0.5)
    # exp(-7.5) is below a thousandth of the best and is cut, the others share by exp(-excess / .02)
    assert found.kept.tolist() == [1, 2, 0]
    weights = np.exp(-np.array([0.0, 0.05, 0.1]) / 0.02)
    np.testing.assert_allclose(found.weights, weights / weights.sum())
    sure = average(Criterion("simple", risks, {}, 0.0), candidates, 0.5)
    assert (sure.kept.tolist(), sure.weights.tolist()) == ([1], [1.0])
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="temperature"):
            average(Criterion("simple", risks, {}, 0.1), candidates, wrong)
    with pytest.raises(ValueError, match="No candidate"):
        average(Criterion("simple", np.full((2, 5), np.nan), {}, 0.1), candidates, 0.5)


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
def test_identical_labelled_rows_share_a_fold(seed):
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
def test_copies_share_a_fold_where_one_class_is_labelled(role):
    X, rows = copied(3, (12, 0, 40), [(0, 4, 9), (1, 2)])
    folds = deal_folds({role: rows["P"], "U": rows["U"]}, 4, X, random_state=0)
    assert (folds.n_folds, set(folds.rows)) == (4, {role, "U"})
    place = {int(i): k for k, part in enumerate(folds.rows[role]) for i in part}
    assert sorted(place) == list(range(12))
    assert place[0] == place[4] == place[9]
    assert place[1] == place[2]
    assert folds.size("U") == 40


def test_rows_without_copies_are_dealt_as_if_nobody_had_looked():
    X, rows = copied(0, (9, 21, 40), [(30, 31)])  # a copy in U does not count
    looked, plain = deal_folds(rows, 4, X, random_state=1), deal_folds(rows, 4, random_state=1)
    for role in "PNU":
        for a, b in zip(looked.rows[role], plain.rows[role], strict=True):
            np.testing.assert_array_equal(a, b)


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


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_refits_side_by_side_are_refits_one_by_one(loss):
    """Order (eta, ridge), spread over all training rows, and the longest of the iterations."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(1.0, 1.0, (8, 2)), rng.normal(0.0, 1.0, (52, 2))]
    place = {"P": np.arange(8), "N": np.arange(8, 20), "U": np.arange(20, 60)}
    fold = {role: np.sort(np.arange(len(rows)) % 2) for role, rows in place.items()}
    rows = {role: ArrayRows(X, index, fold[role]) for role, index in place.items()}
    basis = MultiscaleBasis(5, ("median", "2*median"), random_state=0).fit(X)
    risks = [pnu_risk(eta, 0.2) for eta in (-0.5, 0.0, 0.5)]
    trainer = RefitTrainer(rows, basis, risks, (10.0, 1e-3), get_loss(loss), tol=1e-10)
    for out, scale in (((), 0), ((1,), 1)):
        whole = trainer.train(out, scale, range(3))
        parts = [trainer.train(out, scale, [e]) for e in range(3)]
        np.testing.assert_allclose(whole.coef, np.concatenate([p.coef for p in parts]))
        assert whole.n_iter == max(p.n_iter for p in parts)
        assert (whole.n_iter == 1) == (loss == "squared")
        kept = np.concatenate([index[~np.isin(fold[r], out)] for r, index in place.items()])
        features = basis.scale(scale).features(X[kept])
        np.testing.assert_allclose(whole.spread, np.std(features @ whole.coef.T, axis=0))
        for e, risk in enumerate(risks):
            design = Design.of(
                X, {r: i[~np.isin(fold[r], out)] for r, i in place.items()}, basis.scale(scale)
            )
            for a, alpha in enumerate((10.0, 1e-3)):
                w = whole.coef[2 * e + a]
                if whole.corrected[2 * e + a]:
                    continue
                assert value_at(risk, loss, design, w, alpha) <= min(
                    value_at(risk, loss, design, other, alpha)
                    for other in (0.999 * w, 1.001 * w, w + 1e-3, w - 1e-3)
                )
    if loss == "logistic":  # so that the longest is not also the shortest
        assert len({p.n_iter for p in parts}) > 1


def value_at(risk, loss, design, coef, alpha):
    """The objective: risk of the scores plus ridge."""
    return risk.value(get_loss(loss), design.scores(coef)) + alpha * coef @ coef


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


@pytest.mark.parametrize(("n", "step"), [(1900, 1), (3999, 1), (4000, 2), (6100, 3)])
def test_rankings_are_compared_on_some_rows(n, step):
    """About 2,000, evenly spaced within each role."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 2))
    rows = {"P": np.arange(40), "N": np.arange(40, 101), "U": np.arange(101, n)}
    basis = MultiscaleBasis(4, ("median",), random_state=0).fit(X)
    folds = deal_folds(rows, 2, random_state=0)
    grid = TrainedGrid.from_arrays(X, folds, basis, (0.0,), (1.0,), 0.2)
    one, other = (LinearModel(basis.keep([0]), rng.standard_normal(4), {}) for _ in range(2))
    # a visitor has the rows fold by fold
    seen = np.concatenate([np.concatenate(folds.rows[role])[::step] for role in "PNU"])
    expected = stats.spearmanr(one.score(X[seen]), other.score(X[seen])).statistic
    assert grid.rank_correlation(one, other) == pytest.approx(expected)
    flat = LinearModel(basis.keep([0]), np.zeros(4), {})
    assert grid.rank_correlation(one, flat) is None
    assert grid.rank_correlation(flat, one) is None


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


def test_held_out_scores_are_those_of_models_that_did_not_see_the_fold():
    """Labelled pairs by brute force: the squared loss has its minimum in closed form."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2)) + (np.arange(40) < 12)[:, None]
    rows = {"P": np.arange(12), "N": np.arange(12, 40)}
    basis = MultiscaleBasis(8, ("median",), random_state=0).fit(X)
    folds = deal_folds(rows, 3, random_state=0)
    grid = TrainedGrid.from_arrays(X, folds, basis, (0.0,), (0.1,), None).train()
    risks = grid.judge("pn").fold_risks[:, 0]
    features = basis.scale(0).features(X)
    for k in range(3):
        held = {role: folds.rows[role][k] for role in "PN"}
        p, n = (features[np.setdiff1d(rows[role], held[role])] for role in "PN")
        gap = p.mean(0) - n.mean(0)
        matrix = np.cov(p.T, bias=True) + np.cov(n.T, bias=True) + np.outer(gap, gap)
        coef = np.linalg.solve(matrix + 0.1 * np.eye(len(gap)), gap)
        scores = features @ coef
        expected = 1 - wins(scores[held["P"]], scores[held["N"]]).mean()
        assert risks[k] == pytest.approx(expected)


def test_a_fold_without_unlabelled_rows_leaves_labelled_pairs():
    folds = folds_of(sizes=((4, 6, 30), (5, 6, 0)))
    found = held_out_covariance(counts_of(folds), 0.3)
    np.testing.assert_allclose(found, held_out_covariance(counts_of(folds), None))
    assert found[0, 0] > 0


@pytest.mark.parametrize(("role", "part"), [("P", "PU"), ("N", "NU")])
def test_one_labelled_class_is_judged_against_unlabelled_rows(role, part):
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
        labelled, unlabelled = (scores[folds.rows[r][k]] for r in (role, "U"))
        assert (counts.positive.shape[1], counts.negative.shape[1]) == (
            (len(labelled), 0) if role == "P" else (0, len(labelled))
        )
        assert counts.n_unlabeled == len(unlabelled)
        won = wins(labelled, unlabelled).mean()
        expected = (1 - won - 0.1) / 0.8 if role == "P" else (won - 0.4) / 0.2
        assert risks[k] == pytest.approx(expected)
    assert grid.setting == part


# --- what is told about a choice ------------------------------------------------------------------


def a_criterion(seed=0, n_folds=4, gap=0.0):
    """Risks of 12 candidates on some folds; those with eta = 0 lie ``gap`` above the others."""
    candidates = Candidates.from_grid([1.0, 2.0], [-0.5, 0.0, 0.5], [0.1, 1.0])
    rng = np.random.default_rng(seed)
    risks = 0.3 + 0.05 * rng.normal(size=(n_folds, 12)) + gap * (candidates.eta == 0)
    return Criterion("combined", risks, {"all": (0.2, 0.3, 0.5)}, 0.04), candidates


def test_without_a_fold_the_noise_grows_with_what_is_left():
    criterion, _ = a_criterion()
    for k in range(4):
        rest = criterion.without(k)
        np.testing.assert_array_equal(rest.fold_risks, np.delete(criterion.fold_risks, k, axis=0))
        assert rest.noise == pytest.approx(0.04 * np.sqrt(4 / 3))


@pytest.mark.parametrize("gap", [0.0, 0.1, -0.1])
def test_the_gain_is_judged_by_folds_that_did_not_choose(gap):
    """Against loops: weights from the other folds, risks of this one, Nadeau and Bengio's error."""
    criterion, candidates = a_criterion(gap=gap)
    found = held_out_gain(criterion, candidates, 0.7)
    gains = []
    for k in range(4):
        own, risks = (
            criterion.fold_risks[k],
            np.delete(criterion.fold_risks, k, axis=0).mean(axis=0),
        )
        totals = []
        for allowed in (np.ones(12, bool), candidates.eta == 0):
            weights = np.exp(-(risks - risks[allowed].min()) / (0.7 * 0.04 * np.sqrt(4 / 3)))
            weights = np.where(allowed & (weights > 1e-3), weights, 0.0)
            totals.append(weights @ own / weights.sum())
        gains.append(totals[1] - totals[0])
    error = np.std(gains, ddof=1) * np.sqrt(1 / 4 + 1 / 3)
    assert found.value == pytest.approx(np.mean(gains))
    assert found.std_error == pytest.approx(error)
    assert found.clear is bool(abs(np.mean(gains)) > stats.t.ppf(0.975, 3) * error)


def test_a_gain_needs_both_kinds_of_candidates_and_two_folds():
    criterion, candidates = a_criterion()
    only = Candidates.from_grid([1.0, 2.0], [0.0], [0.1, 1.0])
    assert held_out_gain(Criterion("x", criterion.fold_risks[:, :4], {}, 0.1), only, 1.0) is None
    none = Candidates.from_grid([1.0, 2.0], [0.5], [0.1, 1.0])
    assert held_out_gain(Criterion("x", criterion.fold_risks[:, :4], {}, 0.1), none, 1.0) is None
    two = Criterion("x", criterion.fold_risks[:2], {}, 0.1)
    assert held_out_gain(two, candidates, 1.0) is not None
    gone = criterion.fold_risks.copy()
    gone[1:] = np.nan
    with pytest.raises(ValueError, match="No candidate"):
        held_out_gain(Criterion("x", gone, {}, 0.1), candidates, 1.0)


def test_the_report_is_read_off_the_validation_risks():
    criterion, candidates = a_criterion()
    risks = criterion.fold_risks.copy()
    risks[:, 3] = np.nan
    criterion = Criterion("combined", risks, {"all": (0.2, 0.3, 0.5)}, 0.04)
    choice = average(criterion, candidates, 1.0)
    report = explain(criterion, candidates, choice, Gain(0.02, 0.01, True), 0.9)
    mean, error = criterion.mean, criterion.std_error
    for name in ("eta", "width", "alpha"):
        values = getattr(candidates, name)
        assert [point["value"] for point in report.curves[name]] == sorted(set(values))
        for point in report.curves[name]:
            own = np.flatnonzero((values == point["value"]) & ~np.isnan(mean))
            best = own[np.argmin(mean[own])]
            assert point["risk"] == mean[best]
            assert point["std_error"] == error[best]
            weight = sum(
                w for i, w in zip(choice.kept, choice.weights) if values[i] == point["value"]
            )
            assert point["kept"] == pytest.approx(weight)
    best = choice.kept[0]
    near = [p["value"] for p in report.curves["eta"] if p["risk"] <= mean[best] + error[best]]
    assert (report.eta_low, report.eta_high) == (min(near), max(near))
    assert report.eta_mean == pytest.approx(choice.weights @ candidates.eta[choice.kept])
    assert (report.gain, report.gain_std_error, report.rank_correlation) == (0.02, 0.01, 0.9)
    assert (report.n_dropped, report.noise, report.criterion) == (1, 0.04, "combined")
    assert "2.0 points higher" in report.message
    assert "(standard error 1.0): the unlabelled rows helped." in report.message
    assert "1 of 12 candidates had an empirical risk without a minimum" in report.message
    assert report.to_dict()["criterion_weights"] == {"all": [0.2, 0.3, 0.5]}
    harm = explain(criterion, candidates, choice, Gain(-0.02, 0.01, True))
    assert "rows did harm" in harm.message
    assert "2.0 points lower" in harm.message
    open_ = explain(criterion, candidates, choice, Gain(-0.02, 0.01, False))
    assert "made no clear difference" in open_.message
    assert "cannot tell" in explain(criterion, candidates, choice, None).message
    fixed = Candidates.from_grid([1.0, 2.0, 3.0], [0.5], [0.1, 1.0, 2.0, 3.0])
    assert "fixed weight" in explain(criterion, fixed, choice, None).message


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
        return solve_ridge(form, [alpha]).coef[0]

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
            assert risks["PN"][c] == pytest.approx(pn)
            assert risks["PU"][c] == pytest.approx((pu - prior / 2) / (1 - prior))
            assert risks["NU"][c] == pytest.approx((un - (1 - prior) / 2) / prior)
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
    by_fold = np.array([counts.risks(None)["PN"] for counts in grid.counts])
    np.testing.assert_allclose(alone.fold_risks[:, zero], by_fold[:, zero])
    assert alone.weights == {"all": (1.0, 0.0, 0.0)}
