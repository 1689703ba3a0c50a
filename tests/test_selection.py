"""Selection: equal to the literal method, whatever the blocks and threads; counts exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator

from pnuauc import AUCClassifier, AUCClassifierCV
from pnuauc._basis import GaussianBasis, MultiscaleBasis
from pnuauc._risks import gamma_bar
from pnuauc.exceptions import CorrectionWarning
from pnuauc.selection import PAPER_ALPHAS, PAPER_ETAS, TrainedGrid, deal_folds
from pnuauc.selection._choice import Candidates, Choice, Gain, explain, held_out_gain
from pnuauc.selection._counts import FoldCounts, count_below, with_next_above
from pnuauc.selection._criterion import Criterion, held_out_covariance
from tests.test_estimators import draw

GRID = {"etas": (-0.4, 0.0, 0.6), "alphas": (0.01, 1.0), "widths": ("0.5*median", "median")}


class FixedFolds:
    """Row i is held out in fold i mod k, within each role."""

    def __init__(self, k):
        self.k = k

    def split(self, X, y):
        y = np.nan_to_num(y, nan=-1)
        place = np.empty(len(y), dtype=int)
        for code in np.unique(y):
            place[y == code] = np.arange(np.sum(y == code)) % self.k
        for fold in range(self.k):
            yield np.flatnonzero(place != fold), np.flatnonzero(place == fold)


def half_tied(a, b):
    """Share of pairs a > b, ties half."""
    return np.mean((a[:, None] > b[None]) + 0.5 * (a[:, None] == b[None]))


def literal_risks(model, X, y, prior, centers):
    """The paper's cross-validation, candidate by candidate and pair by pair."""
    pnpu, pnnu = gamma_bar(prior, np.sum(y == 1), np.sum(y == 0))
    table = []
    for params in model.cv_results_["params"]:
        row = []
        for train, test in FixedFolds(4).split(X, y):
            single = AUCClassifier(
                risk="pnu",
                eta=params["eta"],
                alpha=params["alpha"],
                prior=prior,
                basis=GaussianBasis(width=params["width"], centers=centers),
            )
            try:
                single.fit(X[train], y[train])
            except CorrectionWarning:  # warnings are errors here: no minimum, no candidate
                row.append(np.nan)
                continue
            s, held = single.decision_function(X[test]), y[test]
            p, n, u = s[held == 1], s[held == 0], s[held == -1]
            pn = 1 - half_tied(p, n)
            if params["eta"] >= 0:
                other = (1 - half_tied(p, u) - prior / 2) / (1 - prior)
                row.append((1 - pnpu) * pn + pnpu * other)
            else:
                other = (1 - half_tied(u, n) - (1 - prior) / 2) / prior
                row.append((1 - pnnu) * pn + pnnu * other)
        table.append(row)
    table = np.array(table).T
    table[:, np.isnan(table).any(axis=0)] = np.nan
    return table


@pytest.mark.parametrize("seed", [0, 1])
def test_the_grid_equals_the_literal_method(seed):
    X, y, X_test, _ = draw(seed, sizes=(9, 14, 60))
    model = AUCClassifierCV("paper", prior=0.2, cv=FixedFolds(4), random_state=0, **GRID).fit(X, y)
    centers = model.best_estimator_.basis_.centers_
    expected = literal_risks(model, X, y, 0.2, centers)
    found = np.array([model.cv_results_[f"split{k}_test_risk"] for k in range(4)])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    best = model.best_params_
    plain = AUCClassifier(
        risk="pnu",
        eta=best["eta"],
        alpha=best["alpha"],
        prior=0.2,
        basis=GaussianBasis(width=best["width"], centers=centers),
    ).fit(X, y)
    for other in (plain, model.best_estimator_):
        np.testing.assert_allclose(
            model.decision_function(X_test), other.decision_function(X_test), rtol=1e-7, atol=1e-9
        )
    assert model.cv_results_["rank_test_risk"][model.best_index_] == 1


@pytest.mark.parametrize("selection", ["paper", "average"])
def test_blocks_and_threads_do_not_change_the_result(selection, monkeypatch):
    from pnuauc import _rows

    X, y, X_test, _ = draw(sizes=(10, 20, 900))
    model = AUCClassifierCV(selection, prior=0.2, random_state=0)
    whole = clone(model).fit(X, y)
    monkeypatch.setattr(_rows, "CACHE_BYTES", 0)  # no features kept: both passes recompute
    for changed in ({"block_size": 37}, {"n_jobs": 2}, {"n_jobs": 3, "block_size": 101}):
        other = clone(model).set_params(**changed).fit(X, y)
        for key in ("mean_test_risk", "weight"):
            np.testing.assert_allclose(whole.cv_results_[key], other.cv_results_[key], atol=1e-10)
        a, b = whole.decision_function(X_test), other.decision_function(X_test)
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8 * np.ptp(a))


@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 30)),
    values=st.integers(1, 50),
    seed=st.integers(0, 99),
)
def test_counts_are_exact_with_ties(sizes, values, seed):
    rng = np.random.default_rng(seed)
    p, n, u = (rng.integers(0, values, (3, size)).astype(float) for size in sizes)
    cut = sizes[2] // 2
    marks = with_next_above(np.c_[p, n])
    total = count_below(marks, u[:, :cut].copy()) + count_below(marks, u[:, cut:].copy())
    counts = FoldCounts(p, n, *np.split(total, 2, axis=1), sizes[2])
    risks = counts.risks(0.3)
    spread = counts.unlabeled_spread()
    for c in range(3):
        assert risks["PN"][c] == pytest.approx(1 - half_tied(p[c], n[c]))
        assert risks["PU"][c] == pytest.approx((1 - half_tied(p[c], u[c]) - 0.15) / 0.7)
        assert risks["NU"][c] == pytest.approx((1 - half_tied(u[c], n[c]) - 0.35) / 0.3)
        above = [half_tied(p[c], x[None]) for x in u[c]]
        below = [half_tied(x[None], n[c]) for x in u[c]]
        np.testing.assert_allclose(spread[c], np.cov(above, below, bias=True), atol=1e-12)


def test_held_out_covariance_is_that_of_repeated_draws():
    """400 draws of one candidate; variances agree within 25%, correlations within 0.15."""
    rng = np.random.default_rng(0)
    prior, sizes = 0.2, (20, 40, 300)
    found, estimated = [], []
    for _ in range(400):
        p, n = rng.normal(1, 1, (1, sizes[0])), rng.normal(0, 1, (1, sizes[1]))
        u = rng.normal(rng.random((1, sizes[2])) < prior, 1)
        total = count_below(with_next_above(np.c_[p, n]), u)
        counts = FoldCounts(p, n, *np.split(total, 2, axis=1), sizes[2])
        risks = counts.risks(prior)
        found.append([risks[part][0] for part in ("PN", "PU", "NU")])
        estimated.append(held_out_covariance([counts], prior))
    simulated, mean = np.cov(np.array(found).T), np.mean(estimated, axis=0)
    np.testing.assert_allclose(np.diag(mean), np.diag(simulated), rtol=0.25)
    scale = np.sqrt(np.outer(np.diag(simulated), np.diag(simulated)))
    np.testing.assert_allclose(mean / scale, simulated / scale, atol=0.15)


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.PnuaucWarning")
@pytest.mark.parametrize("validation", ["simple", "variance", "combined"])
@pytest.mark.parametrize("setting", ["pn", "pu", "nu", "pnu"])
@pytest.mark.parametrize("selection", ["paper", "average"])
def test_every_setting_learns(setting, selection, validation):
    X, y, X_test, truth = draw(sizes=(12, 30, 400), distance=1.5)
    keep = np.isin(y, [{"p": 1, "n": 0, "u": -1}[letter] for letter in setting])
    model = AUCClassifierCV(selection, prior=0.2, validation=validation, random_state=0, **GRID)
    model.fit(X[keep], y[keep])
    assert model.risk_ == setting
    # 12 positives in three dimensions; the best possible is .967
    assert roc_auc_score(truth, model.decision_function(X_test)) > 0.85
    assert 0 < model.best_score_ < 1.2
    weights = np.array(list(model.selection_.criterion_weights.values()))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights >= 0).all()


def test_average_is_the_weighted_mean_of_standardised_scores():
    X, y, X_test, _ = draw(sizes=(10, 20, 200))
    model = AUCClassifierCV("average", prior=0.2, temperature=2.0, random_state=0, **GRID).fit(X, y)
    risks, noise = model.cv_results_["mean_test_risk"], model.selection_.noise
    assert noise > 0
    expected = np.nan_to_num(np.exp(-(risks - np.nanmin(risks)) / (2.0 * noise)))
    expected[expected <= 1e-3] = 0
    weights = model.cv_results_["weight"]
    np.testing.assert_allclose(weights, expected / expected.sum(), atol=1e-12)
    total = 0
    for i in np.flatnonzero(weights):
        params = model.cv_results_["params"][i]
        single = AUCClassifier(
            risk="pnu",
            eta=params["eta"],
            alpha=params["alpha"],
            prior=0.2,
            basis=GaussianBasis(width=params["width"], centers=model.basis_.centers_),
        ).fit(X, y)
        scores = single.decision_function(X_test) / single.decision_function(X).std()
        total = total + weights[i] * scores
    ours = model.decision_function(X_test)
    np.testing.assert_allclose(ours - ours.mean(), total - total.mean(), atol=1e-7)


def test_one_positive_per_fold_and_fewer():
    for n_positive in (5, 3, 2):
        X, y, X_test, truth = draw(sizes=(n_positive, 30, 300), distance=2.0)
        model = AUCClassifierCV(prior=0.2, random_state=0, etas=(-0.3, 0.0)).fit(X, y)
        assert roc_auc_score(truth, model.decision_function(X_test)) > 0.8
        assert np.isfinite(model.best_score_)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_other_losses_refit_every_candidate(loss):
    X, y, X_test, truth = draw(sizes=(8, 12, 60), distance=2.0)
    model = AUCClassifierCV(
        prior=0.2, loss=loss, etas=(0.0, 0.5), alphas=(0.1,), widths=("median",), cv=2, tol=1e-5
    ).fit(X, y)
    assert roc_auc_score(truth, model.decision_function(X_test)) > 0.9
    assert model.n_iter_ > 1


def test_refitting_and_the_grid_agree(monkeypatch):
    """The matrix-free road of wide linear models against the moments, on the same folds."""
    from pnuauc import _design as design

    X, y, X_test, _ = draw(sizes=(10, 20, 100), d=4)
    settings = {"etas": (0.0, 0.5), "alphas": (0.1, 1.0), "basis": "identity", "prior": 0.2}
    model = AUCClassifierCV("average", random_state=0, **settings)
    grid = clone(model).fit(X, y)
    monkeypatch.setattr(design, "MATRIX_FREE_ABOVE", 2)
    refitted = clone(model).fit(X, y)
    np.testing.assert_allclose(
        grid.cv_results_["mean_test_risk"], refitted.cv_results_["mean_test_risk"], atol=1e-12
    )
    np.testing.assert_allclose(
        grid.decision_function(X_test), refitted.decision_function(X_test), rtol=1e-6, atol=1e-6
    )


def test_seed_fixes_everything():
    X, y, X_test, _ = draw(sizes=(10, 20, 300))
    first, second, third = (
        AUCClassifierCV(prior=0.2, random_state=s, n_centers=30).fit(X, y).decision_function(X_test)
        for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


def test_the_report_explains_the_choice():
    X, y, *_ = draw(sizes=(10, 20, 300))
    model = AUCClassifierCV(prior=0.2, random_state=0, **{**GRID, "etas": (-0.9, 0.0, 0.6)})
    model.fit(X, y)
    report = model.selection_
    # at eta = -0.9 the risk has no minimum on these few negatives: no candidate, and told so
    assert [p["value"] for p in report.curves["eta"]] == [0.0, 0.6]
    assert report.n_dropped == 4
    assert "4 of 12 candidates" in report.message
    assert sum(p["kept"] for p in report.curves["alpha"]) == pytest.approx(1.0)
    assert report.eta_low <= model.best_params_["eta"] <= report.eta_high
    assert report.gain_std_error > 0
    assert -1 <= report.rank_correlation <= 1
    assert "unlabelled rows" in report.message
    axes = model.plot_selection()
    assert len(axes) == 3
    assert set(report.to_dict()) >= {"curves", "gain", "message"}


def test_gain_is_told_from_folds_that_did_not_choose():
    """The definition written out: weigh without fold k, judge on fold k, for all k."""
    X, y, *_ = draw(sizes=(10, 20, 200))
    grid = {**GRID, "etas": (0.0, 0.3, 0.6)}
    model = AUCClassifierCV(prior=0.2, random_state=0, temperature=0.7, **grid).fit(X, y)
    table = model.cv_results_
    risks = np.array([table[f"split{k}_test_risk"] for k in range(5)])
    noise = model.selection_.noise * np.sqrt(5 / 4)
    gains = []
    for k in range(5):
        rest = np.delete(risks, k, axis=0).mean(axis=0)
        means = []
        for among in (np.full(len(rest), True), table["param_eta"] == 0):
            weights = among * np.exp(-(rest - rest[among].min()) / (0.7 * noise))
            weights[weights <= 1e-3] = 0.0
            means.append(weights @ risks[k] / weights.sum())
        gains.append(means[1] - means[0])
    assert model.selection_.gain == pytest.approx(np.mean(gains), abs=1e-12)
    # Nadeau and Bengio: 1/5 + 1/4 in place of 1/5
    error = np.std(gains, ddof=1) * np.sqrt(0.45)
    assert model.selection_.gain_std_error == pytest.approx(error, abs=1e-12)


NOISE_GRIDS = {
    "24 candidates": ((-0.6, -0.3, 0.0, 0.3, 0.6, 0.9), (0.01, 1.0), ("0.5*median", "median")),
    "95 candidates": (PAPER_ETAS, PAPER_ALPHAS, ("median",)),
}


@pytest.mark.parametrize("grid", NOISE_GRIDS)
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
    assert "cannot tell what the unlabelled rows changed" in alone.message


@pytest.mark.parametrize("gain", [0.1, -0.1])
def test_a_clear_gain_is_found(gain):
    """Validation risks with a known gain: found where the choice can see it, and not invented."""
    candidates = Candidates.from_grid([1.0], [0.0, 0.5], [0.1, 1.0])
    risks = np.array([0.3, 0.31, 0.3 - gain, 0.31 - gain])
    folds = risks + 0.005 * np.random.default_rng(0).standard_normal((5, 4))
    criterion = Criterion("combined", folds, {"all": (1.0, 0.0, 0.0)}, 0.01)
    found = held_out_gain(criterion, candidates, 0.5)
    # candidates that use U are passed over where they are worse: no harm is done
    assert found.value == pytest.approx(max(gain, 0.0), abs=0.01)
    assert found.clear == (gain > 0)
    assert found.std_error < 0.01
    assert held_out_gain(criterion.among(candidates.eta == 0), candidates, 0.5).value == 0.0
    only = Candidates.from_grid([1.0], [0.5], [0.1, 1.0])
    assert held_out_gain(criterion, only, 0.5) is None


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Gain(0.03, 0.01, True), " 3.0 points higher than those chosen among labelled rows only "
         "(standard error 1.0): the unlabelled rows helped."),
        (Gain(-0.03, 0.01, True), " 3.0 points lower than those chosen among labelled rows only "
         "(standard error 1.0): the unlabelled rows did harm."),
        (Gain(0.03, 0.02, False), "the unlabelled rows made no clear difference."),
        (None, "These folds cannot tell what the unlabelled rows changed."),
    ],
)  # fmt: skip
def test_the_verdict_in_words(found, words):
    candidates = Candidates.from_grid([1.0], [-0.5, 0.0, 0.5], [0.1])
    folds = np.array([[0.30, 0.21, 0.20], [0.32, 0.22, 0.22]])
    criterion = Criterion("combined", folds, {"all": (1.0, 0.0, 0.0)}, 0.01)
    choice = Choice(np.array([2, 1]), np.array([0.75, 0.25]))
    report = explain(criterion, candidates, choice, found)
    assert report.message.endswith(words)
    # the best risk is .21 with standard error .01: .215 lies within, .31 does not
    assert "2 candidates kept, mean eta +0.38 (any eta from 0 to 0.5 is" in report.message
    assert (report.eta_low, report.eta_high) == (0.0, 0.5)
    assert report.to_dict()["criterion_weights"] == {"all": [1.0, 0.0, 0.0]}
    assert report.to_dict()["eta_mean"] == pytest.approx(0.375)
    assert [point["kept"] for point in report.curves["eta"]] == [0.0, 0.25, 0.75]
    assert [point["risk"] for point in report.curves["eta"]] == pytest.approx([0.31, 0.215, 0.21])
    errors = [point["std_error"] for point in report.curves["eta"]]
    assert errors == pytest.approx([0.01, 0.005, 0.01])


class Fixed:
    """Rows of one number are held out together."""

    def __init__(self, place):
        self.place = place

    def split(self, X, y):
        for k in np.unique(self.place):
            yield np.flatnonzero(self.place != k), np.flatnonzero(self.place == k)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("validation", ["simple", "variance", "combined"])
def test_weight_of_two_equals_a_row_twice(loss, validation):
    X, y, X_test, _ = draw(sizes=(9, 12, 40))
    rng = np.random.default_rng(0)
    count = rng.integers(0, 4, len(y))
    count[:21] = np.maximum(count[:21], 1)
    place = np.arange(len(y)) % 3
    repeated, group = np.repeat(np.arange(len(y)), count), np.repeat(place, count)
    grid = {"etas": (0.0, 0.4), "alphas": (0.1, 1.0), "widths": ("median", "2*median")}
    model = AUCClassifierCV(
        validation=validation, prior=0.2, n_centers=500, loss=loss, tol=1e-10, **grid
    )
    one = clone(model).set_params(cv=Fixed(place)).fit(X, y, sample_weight=count)
    two = clone(model).set_params(cv=Fixed(group)).fit(X[repeated], y[repeated])
    tight = {"rtol": 1e-9} if loss == "squared" else {"rtol": 1e-3, "atol": 1e-4}
    for key in ("mean_test_risk", "weight"):
        np.testing.assert_allclose(one.cv_results_[key], two.cv_results_[key], **tight)
    assert one.selection_.noise == pytest.approx(two.selection_.noise, rel=1e-3)
    ours, theirs = one.decision_function(X_test), two.decision_function(X_test)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("basis", ["multiscale", PolynomialFeatures(2)], ids=str)
def test_every_basis_of_the_plain_estimator(basis):
    X, y, X_test, truth = draw(sizes=(15, 30, 200), distance=1.5)
    model = AUCClassifierCV(prior=0.2, basis=basis, n_centers=20, random_state=0, **GRID).fit(X, y)
    assert len(model.cv_results_["weight"]) == 6  # no widths to choose among
    assert roc_auc_score(truth, model.decision_function(X_test)) > 0.85
    alone = model.best_estimator_
    single = AUCClassifier(
        risk="pnu", prior=0.2, basis=model._best.basis, eta=alone.eta, alpha=alone.alpha
    )
    assert single.basis is model._best.basis
    assert alone.coef_.shape == model.coef_.shape
    assert 0.8 < alone.score(X_test, truth.astype(int)) <= 1.0


def test_the_splitters_of_metrics_fit_in():
    from pnuauc.metrics import RoleStratifiedKFold

    X, y, X_test, truth = draw(sizes=(12, 20, 200), distance=1.5)
    splitter = RoleStratifiedKFold(3, shuffle=True, random_state=0)
    model = AUCClassifierCV(prior=0.2, cv=splitter, random_state=0, **GRID)
    keep = y != 0
    model.fit(X[keep], np.where(y == 1, 1, np.nan)[keep])
    assert model.cv_results_["split2_test_risk"].shape == (4,)
    assert roc_auc_score(truth, model.decision_function(X_test)) > 0.8


def test_folds_share_out_every_role():
    rows = {"P": np.arange(7), "N": np.arange(7, 40), "U": np.arange(40, 240)}
    folded = deal_folds(rows, 5, random_state=0)
    for role, index in rows.items():
        parts = folded.rows[role]
        assert sorted(np.concatenate(parts)) == sorted(index)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert deal_folds({**rows, "P": np.arange(3)}, 5, random_state=0).n_folds == 3


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.PnuaucWarning")
def test_check_estimator_passes_in_full():
    check_estimator(AUCClassifierCV(prior=0.3, **GRID), on_skip=None)


class Overlapping(FixedFolds):
    def split(self, X, y):
        for train, test in super().split(X, y):
            yield train, np.r_[test, 0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"selection": "best"}, "'selection' parameter of AUCClassifierCV must be"),
        ({"validation": "auc"}, "'validation' parameter of AUCClassifierCV must be"),
        ({"basis": "spline"}, "'basis' parameter of AUCClassifierCV must be"),
        ({"risk": "un"}, "'risk' parameter of AUCClassifierCV must be"),
        ({"loss": "cubic"}, "'loss' parameter of AUCClassifierCV must be"),
        ({"n_centers": 0}, "'n_centers' parameter of AUCClassifierCV must be"),
        ({"widths": ["wide"]}, "width must be"),
        ({"block_size": 0}, "'block_size' parameter of AUCClassifierCV must be"),
        ({"etas": []}, "etas must be a non-empty"),
        ({"alphas": 0.1}, "alphas must be a non-empty"),
        ({"widths": "median"}, "widths must be a non-empty"),
        ({"etas": [2.0]}, "eta must be"),
        ({"alphas": [-1.0]}, "alpha"),
        ({"cv": 1}, "at least 2 folds"),
        ({"cv": "five"}, "cv must be"),
        ({"cv": Overlapping(3)}, "overlap"),
        ({"temperature": 0}, "'temperature' parameter of AUCClassifierCV must be"),
        ({"prior": "high"}, "prior must be a number"),
    ],
)
def test_bad_settings_get_one_sentence(params, message):
    X, y, *_ = draw(sizes=(6, 9, 40))
    with pytest.raises(ValueError, match=message):
        AUCClassifierCV(**{"prior": 0.2, **GRID, **params}).fit(X, y)
    if not isinstance(params.get("cv"), Overlapping):  # all but that needs no look at the rows
        with pytest.raises(ValueError, match=message):
            AUCClassifierCV(**{"prior": 0.2, **GRID, **params}).fit("no rows", y)


def test_one_labelled_row_cannot_be_validated():
    X, y, *_ = draw(sizes=(1, 9, 40))
    with pytest.raises(ValueError, match="at least 2 rows of each labelled class"):
        AUCClassifierCV(prior=0.2).fit(X, y)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 6), st.integers(2, 6), st.integers(5, 20), st.integers(1, 3))
def test_any_small_data_gives_finite_scores(n_p, n_n, n_u, d):
    X, y, X_test, _ = draw(sizes=(n_p, n_n, n_u), d=d)
    model = AUCClassifierCV(prior=0.3, cv=2, **GRID).fit(X, y)
    assert np.isfinite(model.decision_function(X_test)).all()


def test_engine_is_two_passes(monkeypatch):
    """Features are made twice per row, however many candidates there are."""
    X, y, *_ = draw(sizes=(10, 20, 300))
    seen = []
    from pnuauc import _rows

    monkeypatch.setattr(_rows, "CACHE_BYTES", 0)
    original = MultiscaleBasis.scales

    def counted(self, rows):
        seen.append(rows.shape[0])
        return original(self, rows)

    monkeypatch.setattr(MultiscaleBasis, "scales", counted)
    monkeypatch.setattr(
        MultiscaleBasis, "features", lambda self, rows: _features(self, rows, original)
    )
    AUCClassifierCV("paper", prior=0.2, random_state=0).fit(X, y)
    assert sum(seen) == 2 * len(X)


def _features(basis, rows, scales):
    out = [None] * basis.n_scales
    for j, block in scales(basis, rows):
        out[j] = block.copy()
    return np.concatenate(out, axis=1)
