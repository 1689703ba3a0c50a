"""AUCClassifier: scikit-learn's contract, the user's data, and bad input."""

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
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from pnuauc import AUCClassifier, AUCClassifierCV, AutoAUCClassifier
from pnuauc.baselines import LabeledOnly, RankSVM
from pnuauc.exceptions import CorrectionWarning, LabelReadingWarning, MissingRoleError
from pnuauc.losses import LOSSES
from pnuauc.metrics import RoleStratifiedKFold, make_auc_scorer

TRAINABLE = [name for name in LOSSES if name != "zero_one"]


def draw(seed=0, sizes=(20, 40, 300), prior=0.2, d=3, distance=1.0):
    """Two Gaussians; labels 1/0/-1, and a clean test set."""
    rng = np.random.default_rng(seed)
    n_p, n_n, n_u = sizes

    def rows(positive):
        centre = np.where(positive, distance / 2, -distance / 2)[:, None]
        return rng.standard_normal((len(positive), d)) + centre

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


def test_predict_calls_the_prior_share_of_unlabelled_rows_positive():
    X, y, *_ = draw(sizes=(30, 50, 1000))
    model = AUCClassifier(prior=0.15, random_state=0).fit(X, y)
    assert np.mean(model.predict(X[y == -1]) == 1) == pytest.approx(0.15, abs=1e-9)
    np.testing.assert_array_equal(model.predict(X) == 1, model.decision_function(X) > 0)
    labelled = AUCClassifier(risk="pn").fit(X[y >= 0], y[y >= 0])
    assert np.mean(labelled.predict(X[y >= 0]) == 1) == pytest.approx(30 / 80)


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
    from pnuauc import _design as design

    X, y, *_ = draw(d=30)
    model = AUCClassifier(prior=0.2, basis="identity", risk="pu")
    formed = clone(model).fit(X, y)
    monkeypatch.setattr(design, "MATRIX_FREE_ABOVE", 10)
    free = clone(model).fit(X, y)
    assert free.n_iter_ > 1
    np.testing.assert_allclose(free.coef_, formed.coef_, rtol=1e-6, atol=1e-9)
    from_csr = clone(model).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(from_csr.coef_, formed.coef_, rtol=1e-6, atol=1e-9)


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
    from pnuauc import _rows

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


def test_a_users_transformer_as_basis():
    X, y, X_test, truth = draw()
    model = AUCClassifier(prior=0.2, basis=PolynomialFeatures(2)).fit(X, y)
    assert roc_auc_score(truth, model.decision_function(X_test)) > 0.8
    assert len(model.coef_) == 10


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
    ({"prior": 1.5}, {}, r"must lie in \[0, 1\]"),
    ({"prior": "half"}, {}, "prior must be a number"),
    ({"eta": 2.0}, {}, "'eta' parameter of AUCClassifier must be"),
    ({"risk": "up"}, {}, "'risk' parameter of AUCClassifier must be"),
    ({"loss": "huber"}, {}, "squared"),
    ({"loss": "zero_one"}, {}, "zero_one"),
    ({"basis": "spline"}, {}, "'basis' parameter of AUCClassifier must be"),
    ({"width": -1}, {}, "'width' parameter of AUCClassifier must be"),
    ({"alpha": -1}, {}, "alpha"),
    ({"n_centers": 0}, {}, "'n_centers' parameter of AUCClassifier must be"),
    ({}, {"X": np.full((360, 3), np.nan)}, "NaN"),
    ({}, {"X": np.full((360, 3), np.inf)}, "infinity"),
    ({}, {"X": np.ones((360, 3))}, "no feature varies"),
    ({"basis": "identity"}, {"X": np.ones((360, 3))}, "no feature varies"),
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


def test_missing_roles_have_their_own_error():
    X, y, *_ = draw()
    with pytest.raises(MissingRoleError):
        AUCClassifier(risk="nu", prior=0.2).fit(X[y != 0], np.where(y[y != 0] == 1, 1, np.nan))


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


def test_score_is_the_auc_of_labelled_rows():
    X, y, X_test, truth = draw()
    committee = AutoAUCClassifier(prior=0.2, cv=0, members=["kernels", "trees"], random_state=0)
    for model in (AUCClassifier(prior=0.2), RankSVM(random_state=0), LabeledOnly(SVC()), committee):
        model.fit(X, y)
        scores = model.decision_function(X_test)
        assert model.score(X_test, truth.astype(int)) == pytest.approx(roc_auc_score(truth, scores))
        weight = np.random.default_rng(0).random(len(truth))
        expected = roc_auc_score(truth, scores, sample_weight=weight)
        assert model.score(X_test, truth.astype(int), weight) == pytest.approx(expected)


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


@pytest.mark.parametrize("kind", [AUCClassifier, AutoAUCClassifier])
def test_score_uses_unlabelled_rows_with_the_fitted_prior(kind):
    X, y, *_ = draw(sizes=(20, 40, 300))
    model = kind(prior=0.2, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    p, n, u = (scores[y == code] for code in (1, 0, -1))
    expected = {
        "pu": (np.mean(p[:, None] > u) - 0.1) / 0.8,
        "nu": (np.mean(u[:, None] > n) - 0.4) / 0.2,
        "pn": np.mean(p[:, None] > n),
    }
    for name, left_out in (("pu", 0), ("nu", 1), ("pn", -1)):
        keep = y != left_out
        codes = np.where(y == -1, np.nan, y)[keep]
        assert model.score(X[keep], codes) == pytest.approx(expected[name])
        assert model.score(X[keep], codes, np.ones(keep.sum())) == pytest.approx(expected[name])
        count = np.random.default_rng(1).integers(1, 4, keep.sum())
        twice = model.score(X[keep].repeat(count, axis=0), codes.repeat(count))
        assert model.score(X[keep], codes, count) == pytest.approx(twice)
    scorer = make_auc_scorer(prior=0.2)
    assert model.score(X, y) == pytest.approx(scorer(model, X, y))
    assert model.score(X, y) != pytest.approx(expected["pn"])


def test_score_of_a_ranker_without_prior_is_the_share_of_pairs_won():
    X, y, *_ = draw()
    keep = y != 0
    y = np.where(y == 1, 1.0, np.nan)[keep]
    model = RankSVM(random_state=0).fit(X[keep], y)
    scores = model.decision_function(X[keep])
    won = np.mean(scores[y == 1][:, None] > scores[np.isnan(y)])
    assert model.score(X[keep], y) == pytest.approx(won)
    assert model.score(X[keep], y, np.ones(len(y))) == pytest.approx(won)


def test_search_without_scoring_tunes_for_auc():
    X, y, *_ = draw(sizes=(20, 30, 100))
    y = np.where(y == -1, np.nan, y)
    folds = RoleStratifiedKFold(3)
    model = AUCClassifier(prior=0.2, random_state=0, n_centers=30)
    search = GridSearchCV(model, {"alpha": [0.01, 1.0]}, cv=folds).fit(X, y)
    scorer = make_auc_scorer(prior=0.2)
    told = GridSearchCV(model, {"alpha": [0.01, 1.0]}, cv=folds, scoring=scorer).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], told.cv_results_["mean_test_score"]
    )
    assert len(cross_val_score(model, X, y, cv=folds)) == 3


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.PnuaucWarning")
@pytest.mark.parametrize("model", [AUCClassifier(), AUCClassifierCV(n_centers=20, cv=3)], ids=str)
def test_random_state_fixes_the_prior_too(model):
    X, y, X_test, _ = draw(sizes=(30, 0, 300))
    y = np.where(y == 1, 1.0, np.nan)
    one, two = (clone(model).set_params(random_state=0).fit(X, y) for _ in range(2))
    assert one.prior_ == two.prior_
    np.testing.assert_array_equal(one.decision_function(X_test), two.decision_function(X_test))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"risk": "best"}, "'risk' parameter of AUCClassifier must be"),
        ({"eta": 2.0}, "'eta' parameter of AUCClassifier must be"),
        ({"alpha": -1.0}, "'alpha' parameter of AUCClassifier must be"),
        ({"width": "wide"}, "width must be"),
        ({"prior": 2.0}, "prior"),
        ({"n_centers": 0}, "'n_centers' parameter of AUCClassifier must be"),
    ],
)
def test_settings_are_checked_before_any_work(params, message):
    with pytest.raises(ValueError, match=message):
        AUCClassifier(**{"prior": 0.2, **params}).fit("no rows", "no labels")
