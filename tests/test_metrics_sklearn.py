"""Scorers and splitters inside scikit-learn's model selection, and the worked example."""

from __future__ import annotations

import pickle
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from pnuauc.exceptions import PriorNotIdentifiedError
from pnuauc.metrics import (
    RoleStratifiedKFold,
    RoleStratifiedShuffleSplit,
    ScoreCounts,
    auc_estimate,
    make_auc_scorer,
)
from pnuauc.metrics._estimate import unbiased_auc

EXAMPLE = Path(__file__).parents[1] / "examples" / "tune_gradient_boosting.py"


def pu_data(seed=0, n_p=60, n_u=600, prior=0.2):
    """X, y with y 1 positive, 0 unlabelled, and the hidden classes."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.ones(n_p), rng.random(n_u) < prior])
    return rng.normal(truth[:, None], 1.0, (n_p + n_u, 3)), np.repeat([1, 0], [n_p, n_u]), truth


class Scores(BaseEstimator):
    """Not a classifier: hands back a column of X through one named method."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        RandomForestClassifier(20, random_state=0),
        LinearRegression(),
        Scores(),
    ],
)
def test_scorer_is_auc_estimate_of_the_models_scores(model):
    X, y, _ = pu_data()
    model.fit(X, y)
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X)
    elif hasattr(model, "predict_proba"):
        scores = model.predict_proba(X)[:, 1]
    else:
        scores = model.predict(X)
    scorer = make_auc_scorer(0.2, unlabeled_label=0)
    expected = unbiased_auc(ScoreCounts.from_rows(y, scores, unlabeled_label=0), 0.2)
    assert scorer(model, X, y) == expected
    assert pickle.loads(pickle.dumps(scorer))(model, X, y) == expected


def test_scorer_finds_the_positive_class_whatever_the_codes():
    X, y, _ = pu_data()
    named = np.where(y == 1, "P", "U")  # sorted order puts P first
    codes = {"positive_label": "P", "unlabeled_label": "U"}
    numeric = make_auc_scorer(0.2, unlabeled_label=0)
    for model in (LogisticRegression(), RandomForestClassifier(20, random_state=0)):
        expected = numeric(model.fit(X, y), X, y)
        found = make_auc_scorer(0.2, **codes)(model.fit(X, named), X, named)
        assert found == pytest.approx(expected, abs=0.02)
        assert found > 0.6
    three = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    model = LogisticRegression().fit(X, three)
    assert make_auc_scorer(0.2)(model, X, three) > 0.6
    blind = DummyClassifier().fit(X, np.resize([0, 2, 3], len(y)))
    with pytest.raises(ValueError, match="without the positive label"):
        make_auc_scorer(method="pn")(blind, X, y)


def test_prior_is_not_needed_to_tune_on_pu():
    X, y, _ = pu_data(n_p=40, n_u=300)
    folds = RoleStratifiedKFold(4, shuffle=True, random_state=0, unlabeled_label=0)
    grid = {"C": [1e-4, 1e-2, 1.0, 100.0]}
    picks, curves = [], []
    for prior in (None, 0.2):
        search = GridSearchCV(
            LogisticRegression(), grid, cv=folds, scoring=make_auc_scorer(prior, unlabeled_label=0)
        ).fit(X, y)
        picks.append(search.best_params_)
        curves.append(search.cv_results_["mean_test_score"])
    assert picks[0] == picks[1]
    np.testing.assert_allclose((curves[0] - 0.1) / 0.8, curves[1])
    with pytest.raises(PriorNotIdentifiedError):
        make_auc_scorer(method="pu", unlabeled_label=0)(search, X, y)


def test_cross_val_score_on_pnu_data_estimates_the_hidden_auc():
    X, y, truth = pu_data(3, 300, 3000)
    y = np.where((truth == 0) & (np.arange(len(y)) % 10 == 0), 2, y)  # 2 marks known negatives
    codes = {"negative_label": 2, "unlabeled_label": 0}
    prior = truth[y == 0].mean()

    class Fixed(Scores):
        def decision_function(self, X):
            return X.sum(axis=1)

    estimate = cross_val_score(
        Fixed(), X, y, cv=RoleStratifiedKFold(**codes), scoring=make_auc_scorer(prior, **codes)
    ).mean()
    hidden = auc_estimate(truth, X.sum(axis=1)).value
    assert estimate == pytest.approx(hidden, abs=0.03)


@given(st.integers(2, 6), st.integers(0, 20), st.integers(6, 20), st.integers(6, 60), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_fold_has_its_share_of_every_role(k, n_n, n_p, n_u, shuffle):
    n_n = 0 if n_n < k else n_n
    y = np.random.default_rng(0).permutation(
        np.repeat(np.array([1, 0, None], dtype=object), [n_p, n_n, n_u])
    )
    kinds = np.array([{1: 0, 0: 1}.get(v, 2) for v in y])
    seen = []
    folds = RoleStratifiedKFold(k, shuffle=shuffle, random_state=0 if shuffle else None)
    for train, test in folds.split(np.zeros((len(y), 1)), y):
        assert len(np.intersect1d(train, test)) == 0
        seen.append(test)
        for role, n in enumerate((n_p, n_n, n_u)):
            assert abs(np.count_nonzero(kinds[test] == role) - n / k) < 1
    assert np.array_equal(np.sort(np.concatenate(seen)), np.arange(len(y)))
    assert folds.get_n_splits() == k


@given(st.integers(2, 30), st.integers(2, 30), st.floats(0.1, 0.5), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_shuffle_split_keeps_every_role_on_both_sides(n_p, n_n, size, seed):
    y = np.repeat([1, 0, -1], [n_p, n_n, 100])
    splitter = RoleStratifiedShuffleSplit(3, test_size=size, random_state=seed)
    for train, test in splitter.split(y, y):
        assert len(np.intersect1d(train, test)) == 0
        assert len(train) + len(test) == len(y)
        for role in (1, 0, -1):
            share = np.mean(y[test] == role) - np.mean(y == role)
            assert abs(share) < 2.5 / len(test)
            assert np.any(y[train] == role)
            assert np.any(y[test] == role)


def test_splitters_refuse_roles_that_are_too_small():
    y = [1] * 3 + [None] * 50
    with pytest.raises(ValueError, match="positive rows are too few"):
        next(RoleStratifiedKFold(5).split(y, y))
    with pytest.raises(ValueError, match="at least 2 rows"):
        next(RoleStratifiedShuffleSplit(1).split(y[2:], y[2:]))
    assert "unlabeled_label" in repr(RoleStratifiedKFold(3, unlabeled_label=0))


def test_scorer_bad_input():
    with pytest.raises(ValueError, match="method must be"):
        make_auc_scorer(method="best")
    X, y, _ = pu_data()
    with pytest.raises(ValueError, match="sample_weight"):
        make_auc_scorer(0.2)(Scores(), X, y, sample_weight=y)
    with pytest.raises(TypeError, match="no decision_function"):
        make_auc_scorer(method="pn")(object(), X, y)


def test_worked_example_runs():
    """The example, made small: tuned without a negative, its estimate is near the hidden AUC."""
    example = runpy.run_path(str(EXAMPLE), run_name="example")
    outcome = example["run"](
        n_positive=150, n_unlabeled=3000, max_iter=20, grid={"max_depth": [2, 3]}
    )
    assert abs(outcome["estimate"].value - outcome["hidden_auc"]) < 0.12
    assert outcome["estimate"].method == "pu"
    assert outcome["estimate"].n_negative == 0
