"""Tests of estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from pnuauc import AUCClassifier, AUCClassifierCV, ClassPrior
from pnuauc.baselines import RankSVM
from pnuauc.core.basis import GaussianBasis, MultiscaleBasis
from pnuauc.core.risks import gamma_bar
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.exceptions import CorrectionWarning, LabelReadingWarning
from pnuauc.labels import read_roles
from pnuauc.losses import LOSSES


def test_a_selection_on_a_stacked_table_does_not_see_its_own_rows():
    """Noise, stacked four times: validation pairs are then as often won as lost."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(80, 4)), np.repeat([1, 0], 40)
    model = AUCClassifierCV(risk="pn", n_centers=60, random_state=0, verbose=False)
    model.fit(np.vstack([X] * 4), np.tile(y, 4))
    # with copies in other folds the best candidate wins nearly every held-out pair
    assert model.best_score_ < 0.7


TRAINABLE = [name for name in LOSSES if name != "zero_one"]


def draw(seed=0, sizes=(20, 40, 300), prior=0.2, d=3, distance=1.0):
    """Two Gaussians; labels 1/0/-1, and a clean test set."""
    rng = np.random.default_rng(seed)
    n_p, n_n, n_u = sizes

    def rows(positive):
        center = np.where(positive, distance / 2, -distance / 2)[:, None]
        return rng.standard_normal((len(positive), d)) + center

    hidden = np.r_[np.ones(n_p, bool), np.zeros(n_n, bool), rng.random(n_u) < prior]
    y = np.r_[np.ones(n_p, int), np.zeros(n_n, int), np.full(n_u, -1)]
    truth = rng.random(2000) < prior
    return rows(hidden), y, rows(truth), truth


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.PnuaucWarning")
@pytest.mark.parametrize(
    "settings",
    [{}, {"loss": "logistic"}, {"basis": "identity"}, {"basis": "linear", "loss": "hinge"}],
    ids=str,
)
@pytest.mark.slow
def test_check_estimator_passes_in_full(settings):
    check_estimator(AUCClassifier(prior=0.3, **settings), on_skip=None)


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.CorrectionWarning")
@pytest.mark.parametrize("loss", TRAINABLE)
@pytest.mark.parametrize(
    ("risk", "eta"), [("pn", 0), ("pu", 0), ("nu", 0), ("pnu", 0.5), ("pnu", -0.3)]
)
def test_every_loss_learns_from_every_risk(loss, risk, eta):
    X, y, X_test, truth = draw(distance=1.5)
    model = AUCClassifier(risk=risk, eta=eta, loss=loss, prior=0.2, basis="identity")
    scores = model.fit(X, y).decision_function(X_test)
    # the best possible AUC is .967; the NU risk on 40 negatives is the weakest
    assert roc_auc_score(truth, scores) > 0.9
    assert model.risk_ == risk
    assert model.n_iter_ >= 1


@pytest.mark.parametrize("setting", ["pn", "pu", "nu", "pnu"])
@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.PnuaucWarning")
def test_auto_takes_the_roles_that_the_data_has(setting):
    X, y, *_ = draw()
    keep = np.isin(y, [{"p": 1, "n": 0, "u": -1}[letter] for letter in setting])
    model = AUCClassifier(prior=0.2).fit(X[keep], y[keep])
    assert model.risk_ == setting
    assert (model.prior_ is not None) == ("u" in setting or setting == "pn")


def test_predict_calls_the_prior_share_of_unlabeled_rows_positive():
    X, y, *_ = draw(sizes=(30, 50, 1000))
    model = AUCClassifier(prior=0.15, random_state=0).fit(X, y)
    assert np.mean(model.predict(X[y == -1]) == 1) == pytest.approx(0.15, abs=1e-9)
    np.testing.assert_array_equal(model.predict(X) == 1, model.decision_function(X) > 0)
    labeled = AUCClassifier(risk="pn").fit(X[y >= 0], y[y >= 0])
    assert np.mean(labeled.predict(X[y >= 0]) == 1) == pytest.approx(30 / 80)


def test_answers_in_the_users_labels():
    X, y, *_ = draw()
    words = np.array(["ok", "fraud", "?"], dtype=object)[y]
    model = AUCClassifier(
        prior=0.2, positive_label="fraud", negative_label="ok", unlabeled_label="?"
    ).fit(X, words)
    assert model.classes_.tolist() == ["ok", "fraud"]
    assert set(model.predict(X)) == {"ok", "fraud"}
    with pytest.warns(LabelReadingWarning, match="name it as the negative label"):
        classic = AUCClassifier(prior=0.2).fit(X[y != 0], np.where(y[y != 0] == 1, 1, -1))
    assert classic.risk_ == "pu"


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.CorrectionWarning")
@pytest.mark.parametrize("basis", ["gaussian", "linear", "identity"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_weight_of_two_equals_a_row_twice(basis, loss):
    X, y, *_ = draw(sizes=(8, 10, 40))
    count = np.random.default_rng(1).integers(0, 3, len(y))
    count[:20] = np.maximum(count[:20], 1)
    model = AUCClassifier(prior=0.2, basis=basis, loss=loss, n_centers=500, tol=1e-9)
    weighted = clone(model).fit(X, y, sample_weight=count)
    repeated = clone(model).fit(X.repeat(count, axis=0), y.repeat(count))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=1e-5, atol=1e-6
    )


def test_order_of_rows_changes_nothing():
    X, y, X_test, _ = draw(sizes=(10, 20, 60))
    order = np.random.default_rng(0).permutation(len(y))
    first = AUCClassifier(prior=0.2).fit(X, y).decision_function(X_test)
    second = AUCClassifier(prior=0.2).fit(X[order], y[order]).decision_function(X_test)
    np.testing.assert_allclose(first, second, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("basis", ["gaussian", "linear", "identity"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_give_the_same_model(basis, dtype):
    X, y, X_test, _ = draw()
    X, X_test = ((x * (np.abs(x) > 0.3)).astype(dtype) for x in (X, X_test))
    model = AUCClassifier(prior=0.2, basis=basis, n_centers=1000, random_state=0)
    dense = clone(model).fit(X, y).decision_function(X_test)
    csr = clone(model).fit(sparse.csr_matrix(X), y).decision_function(sparse.csr_matrix(X_test))
    np.testing.assert_allclose(csr, dense, rtol=1e-6, atol=1e-2 if dtype == np.float32 else 1e-6)


def test_wide_identity_is_solved_without_a_square_matrix(monkeypatch):
    from pnuauc.core import design

    X, y, *_ = draw(d=30)
    model = AUCClassifier(prior=0.2, basis="identity", risk="pu")
    formed = clone(model).fit(X, y)
    monkeypatch.setattr(design, "MATRIX_FREE_ABOVE", 10)
    free = clone(model).fit(X, y)
    assert free.n_iter_ > 1
    np.testing.assert_allclose(free.coef_, formed.coef_, rtol=1e-6, atol=1e-9)
    from_csr = clone(model).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(from_csr.coef_, formed.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_million_columns_fit_and_predict():
    rng = np.random.default_rng(0)
    n, d, per_row = 600, 1_600_000, 40
    y = np.repeat([1, 0, -1], [50, 50, 500])
    columns = rng.integers(0, d, (n, per_row))
    columns[y == 1, :5] = np.arange(5)  # five words that positives share
    columns[100:150, :5] = np.arange(5)
    X = sparse.csr_matrix(
        (np.ones(n * per_row), columns.ravel(), np.arange(n + 1) * per_row), shape=(n, d)
    )
    for basis in ("linear", "identity"):
        model = AUCClassifier(prior=0.1, basis=basis, random_state=0).fit(X, y)
        scores = model.decision_function(X)
        assert scores[100:150].min() > np.median(scores[150:])


def test_threads_and_blocks_do_not_change_the_model(monkeypatch):
    from pnuauc.core import rows as _rows

    X, y, X_test, _ = draw(sizes=(20, 30, 3000))
    one = AUCClassifier(prior=0.2, random_state=0).fit(X, y).decision_function(X_test)
    two = AUCClassifier(prior=0.2, random_state=0, n_jobs=2).fit(X, y).decision_function(X_test)
    np.testing.assert_array_equal(one, two)
    monkeypatch.setattr(_rows, "block_length", lambda X, basis: 77)
    other = AUCClassifier(prior=0.2, random_state=0).fit(X, y).decision_function(X_test)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_works_in_the_scikit_learn_world():
    X, y, X_test, truth = draw()
    pipeline = make_pipeline(StandardScaler(), AUCClassifier(prior=0.2, random_state=0))
    search = GridSearchCV(
        pipeline,
        {"aucclassifier__alpha": [0.01, 1.0], "aucclassifier__eta": [0.0, 0.5]},
        scoring=make_scorer(
            lambda t, s: roc_auc_score(t[t >= 0], s[t >= 0]), response_method="decision_function"
        ),
        cv=3,
    ).fit(X, y)
    assert roc_auc_score(truth, search.decision_function(X_test)) > 0.8
    copied = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(copied.decision_function(X), search.decision_function(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_column_names(frame):
    """As scikit-learn's own estimators do; its 1.7 reads no names from polars 2."""
    X, y, *_ = draw(d=2)
    table = frame({"age": X[:, 0], "sum": X[:, 1]})
    if not hasattr(StandardScaler().fit(table), "feature_names_in_"):
        pytest.skip("this scikit-learn reads no names from these frames")
    model = AUCClassifier(prior=0.2).fit(table, y)
    assert model.feature_names_in_.tolist() == ["age", "sum"]


def test_a_prior_estimator_object_is_fitted_on_the_rows():
    class Fixed:
        def get_params(self, deep=True):
            return {}

        def fit(self, X, y):
            self.prior_ = 0.25
            return self

    X, y, *_ = draw()
    assert AUCClassifier(prior=Fixed()).fit(X, y).prior_ == 0.25


@pytest.mark.parametrize("setting", ["pu", "pnu"])
def test_without_a_prior_the_default_estimator_is_fitted(setting):
    X, y, X_test, truth = draw(sizes=(40, 60, 400), distance=2.0)
    keep = np.isin(y, [{"p": 1, "n": 0, "u": -1}[letter] for letter in setting])
    model = AUCClassifier(random_state=0).fit(X[keep], np.where(y == -1, np.nan, y)[keep])
    assert model.prior_ == pytest.approx(model.prior_estimator_.prior_)
    assert abs(model.prior_ - 0.2) < 0.15  # truth .2; well separated classes
    assert roc_auc_score(truth, model.decision_function(X_test)) > 0.9


def test_corrections_are_visible_and_warned_of_once():
    X, y, *_ = draw(sizes=(5, 12, 60))
    model = AUCClassifier(risk="nu", prior=0.2, alpha=0.01, random_state=0)
    with pytest.warns(CorrectionWarning, match="negative curvature") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert model.correction_.kind == "eigenvalue_floor"
    assert model.correction_.n_negative > 0
    assert AUCClassifier(risk="pn").fit(X, y).correction_.kind == "none"


BAD = [
    ({"loss": "zero_one"}, {}, "zero_one"),
    ({}, {"X": np.full((360, 3), np.nan)}, "NaN"),
    ({}, {"X": np.full((360, 3), np.inf)}, "infinity"),
    ({}, {"X": np.ones((360, 3))}, "no feature varies"),
    ({}, {"X": np.ones((360, 3)) * 1j}, "[Cc]omplex"),
    ({}, {"X": np.full((360, 3), "a")}, "could not convert string|dtype"),
    ({}, {"X": np.ones((5, 3))}, "inconsistent numbers of samples"),
    ({}, {"X": np.ones((1, 3)), "y": [1]}, "1 sample"),
    ({}, {"y": np.full(360, -1)}, "one class only"),
    ({"risk": "pn"}, {"y": np.r_[1, 1, np.full(358, -1)]}, "needs at least 1 negative row"),
    ({"risk": "pu"}, {"y": np.r_[1, np.full(359, -1)]}, "at least 2 positive rows"),
    ({"risk": "nu"}, {"y": np.r_[1, np.zeros(359)]}, "unlabelled row"),
]


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.LabelReadingWarning")
@pytest.mark.parametrize(("params", "data", "message"), BAD, ids=lambda v: str(v)[:40])
def test_bad_input_gets_one_clear_sentence(params, data, message):
    X, y, *_ = draw()
    given_data = {"X": X, "y": y, **data}
    with pytest.raises(ValueError, match=message):
        AUCClassifier(**{"prior": 0.2, **params}).fit(given_data["X"], given_data["y"])


@settings(max_examples=25, deadline=None)
@given(
    n_p=st.integers(2, 6),
    n_n=st.integers(2, 6),
    n_u=st.integers(1, 12),
    d=st.integers(1, 4),
    basis=st.sampled_from(["gaussian", "linear", "identity"]),
    loss=st.sampled_from(TRAINABLE),
    eta=st.sampled_from([-1.0, -0.4, 0.0, 0.4, 1.0]),
)
@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.CorrectionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_small_data_gives_finite_scores(n_p, n_n, n_u, d, basis, loss, eta):
    X, y, X_test, _ = draw(sizes=(n_p, n_n, n_u), d=d)
    model = AUCClassifier(risk="pnu", eta=eta, prior=0.3, basis=basis, loss=loss).fit(X, y)
    assert np.isfinite(model.decision_function(X_test)).all()


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.CorrectionWarning")
def test_an_estimated_prior_of_one_gives_no_auc():
    class Everything(BaseEstimator):
        def fit(self, X, y):
            self.prior_ = 1.0
            return self

    X, y, *_ = draw(sizes=(20, 0, 100))
    y = np.where(y == -1, np.nan, y)
    model = AUCClassifier(prior=Everything(), random_state=0).fit(X, y)
    assert model.prior_ == 0.99
    for weight in (None, np.ones(len(y))):
        with pytest.raises(ValueError, match="undefined at prior=1"):
            model.score(X, y, weight)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"risk": "best"}, "'risk' parameter of AUCClassifier must be"),
        ({"eta": 2.0}, "'eta' parameter of AUCClassifier must be"),
        ({"alpha": -1.0}, "'alpha' parameter of AUCClassifier must be"),
        ({"width": "wide"}, "width must be"),
        ({"prior": 2.0}, r"must lie in \[0, 1\]"),
        ({"prior": "half"}, "prior must be a number"),
        ({"loss": "huber"}, "squared"),
        ({"basis": "spline"}, "'basis' parameter of AUCClassifier must be"),
        ({"n_centers": 0}, "'n_centers' parameter of AUCClassifier must be"),
    ],
)
def test_settings_are_checked_before_any_work(params, message):
    with pytest.raises(ValueError, match=message):
        AUCClassifier(**{"prior": 0.2, **params}).fit("no rows", "no labels")


def rows(n_negative, seed=0):
    X, y = make_twonorm(3000, random_state=seed)
    s = sample_pnu(X, y, 40, n_negative, 300, 0.2, seed)
    return s.X, read_roles(s.y, unlabeled_label=-1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AUCClassifier, AUCClassifierCV])
def test_random_state_fixes_an_estimated_prior_and_the_scores(kind):
    X, roles = rows(0)
    first, second, other = (
        kind(n_centers=10, random_state=seed).fit(X, roles) for seed in (0, 0, 1)
    )
    assert first.prior_ == second.prior_
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    assert first.prior_ != other.prior_


@pytest.mark.parametrize("kind", [AUCClassifier, AUCClassifierCV])
def test_estimators_take_every_form_of_a_prior(kind):
    X, roles = rows(40)
    number = kind(prior=0.2, n_centers=10, random_state=0).fit(X, roles)
    assert number.prior_estimator_ is None
    for prior in ((0.1, 0.3), ClassPrior.from_interval(0.1, 0.3), number.class_prior_):
        model = kind(prior=prior, n_centers=10, random_state=0).fit(X, roles)
        assert model.prior_ == pytest.approx(0.2)
        np.testing.assert_allclose(model.decision_function(X), number.decision_function(X))
    estimate = ClassPrior(0.0, 0.0, 0.05, std_error=0.02, source="estimated by hand")
    model = kind(prior=estimate, n_centers=10, random_state=0).fit(X, roles)
    assert (model.prior_, model.class_prior_.value) == (0.01, 0.0)


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
@pytest.mark.slow
def test_blocks_and_threads_do_not_change_the_result(selection, monkeypatch):
    from pnuauc.core import rows as _rows

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
@pytest.mark.slow
def test_other_losses_refit_every_candidate(loss):
    X, y, X_test, truth = draw(sizes=(8, 12, 60), distance=2.0)
    model = AUCClassifierCV(
        prior=0.2, loss=loss, etas=(0.0, 0.5), alphas=(0.1,), widths=("median",), cv=2, tol=1e-5
    ).fit(X, y)
    assert roc_auc_score(truth, model.decision_function(X_test)) > 0.9
    assert model.n_iter_ > 1


def test_refitting_and_the_grid_agree(monkeypatch):
    """The matrix-free road of wide linear models against the moments, on the same folds."""
    from pnuauc.core import design

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
    assert "unlabelled rows" in report.message
    axes = model.plot_selection()
    assert len(axes) == 3
    assert set(report.to_dict()) >= {"curves", "gain", "message"}


@pytest.mark.parametrize("basis", ["multiscale", PolynomialFeatures(2)], ids=str)
def test_every_basis_of_the_plain_estimator(basis):
    X, y, X_test, truth = draw(sizes=(15, 30, 200), distance=1.5)
    model = AUCClassifierCV(prior=0.2, basis=basis, n_centers=20, random_state=0, **GRID).fit(X, y)
    assert len(model.cv_results_["weight"]) == 6  # no widths to choose among
    assert roc_auc_score(truth, model.decision_function(X_test)) > 0.85
    alone = model.best_estimator_
    single = AUCClassifier(
        risk="pnu", prior=0.2, basis=alone.basis_, eta=alone.eta, alpha=alone.alpha
    )
    assert single.basis is alone.basis_
    assert alone.coef_.shape == model.coef_.shape
    assert 0.8 < alone.score(X_test, truth.astype(int)) <= 1.0


class Overlapping(FixedFolds):
    def split(self, X, y):
        for train, test in super().split(X, y):
            yield train, np.r_[test, 0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"selection": "best"}, "'selection' parameter of AUCClassifierCV must be"),
        ({"validation": "auc"}, "'validation' parameter of AUCClassifierCV must be"),
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


def test_engine_is_two_passes(monkeypatch):
    """Features are made twice per row, however many candidates there are."""
    X, y, *_ = draw(sizes=(10, 20, 300))
    seen = []
    from pnuauc.core import rows as _rows

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


def test_score_of_a_ranker_without_prior_is_the_share_of_pairs_won():
    X, y, *_ = draw()
    keep = y != 0
    y = np.where(y == 1, 1.0, np.nan)[keep]
    model = RankSVM(random_state=0).fit(X[keep], y)
    scores = model.decision_function(X[keep])
    won = np.mean(scores[y == 1][:, None] > scores[np.isnan(y)])
    assert model.score(X[keep], y) == pytest.approx(won)
    assert model.score(X[keep], y, np.ones(len(y))) == pytest.approx(won)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 6), st.integers(2, 6), st.integers(5, 20), st.integers(1, 3))
def test_any_small_data_gives_finite_scores_selection(n_p, n_n, n_u, d):
    X, y, X_test, _ = draw(sizes=(n_p, n_n, n_u), d=d)
    model = AUCClassifierCV(prior=0.3, cv=2, **GRID).fit(X, y)
    assert np.isfinite(model.decision_function(X_test)).all()
