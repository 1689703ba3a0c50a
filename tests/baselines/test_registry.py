"""Tests of baselines/registry."""

import importlib.util
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from pnuauc.baselines import (
    BASELINES,
    SAMULT,
    BaggingPU,
    ElkanNoto,
    EntropyAUC,
    GenerativeAUC,
    LabeledOnly,
    PositiveVsUnlabeled,
    RankSVM,
    SemiSupervised,
    SSRankBoost,
)
from pnuauc.datasets import make_twonorm, sample_pnu

HAS_PULEARN = importlib.util.find_spec("pulearn") is not None

needs_pulearn = pytest.mark.skipif(not HAS_PULEARN, reason="pulearn is not installed")

PULEARN = {"elkan_noto", "bagging_pu"}

ESTIMATORS = [
    RankSVM(),
    SSRankBoost(n_rounds=20),
    EntropyAUC(),
    GenerativeAUC(),
    SAMULT(),
    LabeledOnly(),
    LabeledOnly(SVC()),
    SemiSupervised(),
    SemiSupervised(SelfTrainingClassifier(LogisticRegression())),
    PositiveVsUnlabeled(),
    pytest.param(ElkanNoto(), marks=needs_pulearn),
    pytest.param(BaggingPU(n_estimators=5), marks=needs_pulearn),
]


@pytest.fixture(scope="module")
def sample():
    X, y = make_twonorm(2000, random_state=0)
    return sample_pnu(X, y, 15, 30, 200, prior=0.3, random_state=1)


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.LabelReadingWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.slow
def test_check_estimator(estimator):
    check_estimator(estimator, on_skip=None)


def test_labeled_only_is_the_classifier_on_labeled_rows(sample):
    labeled = sample.y >= 0
    expected = LogisticRegression().fit(sample.X[labeled], sample.y[labeled])
    found = LabeledOnly(LogisticRegression()).fit(sample.X, sample.y)
    np.testing.assert_allclose(
        found.decision_function(sample.X_test), expected.decision_function(sample.X_test)
    )


def test_positive_vs_unlabeled_leaves_negatives_out(sample):
    keep = sample.y != 0
    expected = LogisticRegression().fit(sample.X[keep], sample.y[keep] == 1)
    found = PositiveVsUnlabeled(LogisticRegression()).fit(sample.X, sample.y)
    np.testing.assert_allclose(
        found.decision_function(sample.X_test) - found.intercept_,
        expected.decision_function(sample.X_test),
    )


def test_semi_supervised_hands_over_all_rows(sample):
    expected = LabelSpreading(kernel="knn").fit(sample.X, sample.y)
    found = SemiSupervised().fit(sample.X, sample.y)
    np.testing.assert_allclose(
        found.decision_function(sample.X_test), expected.predict_proba(sample.X_test)[:, 1] - 0.5
    )


@pytest.mark.parametrize("kind", [ElkanNoto, BaggingPU])
def test_a_missing_extra_is_named(monkeypatch, kind, sample):
    monkeypatch.setitem(sys.modules, "pulearn", None)
    with pytest.raises(ImportError, match=r"pnuauc\[pulearn\]"):
        kind().fit(sample.X, sample.y)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_learns_and_takes_its_grid(name, sample):
    if name in PULEARN and not HAS_PULEARN:
        pytest.skip("pulearn is not installed")
    baseline = BASELINES[name]
    model = baseline.make(0)
    for parameter, values in baseline.grid.items():
        model.set_params(**{parameter: values[0]})
    model.fit(sample.X, sample.y)
    # twonorm with 45 labelled rows; the weakest here, gradient boosting, reaches .71
    assert roc_auc_score(sample.y_test, model.decision_function(sample.X_test)) > 0.65


def test_the_papers_candidates():
    kernel = {"width", "alpha"}
    assert set(BASELINES["rank_svm"].grid) == kernel
    assert BASELINES["rank_svm"].scoring == "pu_raw"
    boost = BASELINES["ss_rank_boost"].grid
    assert boost == {"discount": (1e-3, 1e-2, 1e-1), "n_neighbors": (2, 3, 4, 5, 6, 7)}
    for name in ("entropy_auc", "generative_auc"):
        assert set(BASELINES[name].grid) == {*kernel, "entropy_weight"}
        assert BASELINES[name].grid["entropy_weight"] == (1.0, 10.0)
        assert len(BASELINES[name].grid["width"]) == len(BASELINES[name].grid["alpha"]) == 5


@pytest.mark.slow
def test_search_selects_by_role_stratified_folds(sample):
    search = BASELINES["samult"].search(sample.X, random_state=0, n_splits=3)
    search.fit(sample.X, sample.y)
    assert len(search.cv_results_["params"]) == 75
    assert all(isinstance(width, float) for width in search.param_grid["width"])
    assert roc_auc_score(sample.y_test, search.decision_function(sample.X_test)) > 0.9
    assert BASELINES["svc"].search().get_params()["estimator"] is not None


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.LabelReadingWarning")
def test_search_without_negatives_or_prior(sample):
    keep = sample.y != 0
    search = BASELINES["rank_svm"].search(sample.X, random_state=0, n_splits=2)
    search.param_grid = {"alpha": [0.01, 0.1]}
    search.fit(sample.X[keep], sample.y[keep])
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize("name", ["ss_rank_boost", "entropy_auc", "generative_auc", "samult"])
def test_text_settings_take_sparse_counts(name):
    rng = np.random.default_rng(0)
    truth = np.repeat([1, 0], [120, 240])
    rate = np.where(truth[:, None] == 1, np.linspace(0.05, 0.4, 40), np.linspace(0.4, 0.05, 40))
    X = sparse.csr_matrix(rng.poisson(rate).astype(float))
    y = np.full(360, -1)
    y[:20], y[-40:] = 1, 0
    baseline = BASELINES[name].on_text()
    assert "width" not in baseline.grid
    scores = baseline.make(0).fit(X, y).decision_function(X)
    assert roc_auc_score(truth, scores) > 0.85


def test_pulearn_takes_no_sparse_rows(sample):
    with pytest.raises(TypeError, match="sparse"):
        BaggingPU().fit(sparse.csr_matrix(sample.X), sample.y)
