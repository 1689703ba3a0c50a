"""Tests of evaluation/sklearn_tools."""

from __future__ import annotations

import pickle
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB

from pnuauc import AUCClassifier
from pnuauc.evaluation.estimate import (
    unbiased_auc,
)
from pnuauc.metrics import (
    RoleStratifiedKFold,
    RoleStratifiedShuffleSplit,
    ScoreCounts,
    auc_estimate,
    compare_auc,
    cross_fit_auc,
    held_out_scores,
    make_auc_scorer,
)
from tests.conftest import gaussian_scores


@pytest.mark.parametrize("n", [2, 3, 5])
def test_folds_need_as_many_rows_of_every_role(n):
    y = [1] * n + [0] * 20 + [None] * 30
    folds = list(RoleStratifiedKFold(n).split(y, y))
    assert [sum(i < n for i in test) for _, test in folds] == [1] * n
    with pytest.raises(ValueError, match=f"needs at least {n + 1} rows"):
        next(RoleStratifiedKFold(n + 1).split(y, y))
    splits = RoleStratifiedShuffleSplit(3, test_size=0.5, random_state=0)
    for train, test in splits.split(y, y):
        assert not set(train) & set(test)
        assert min(train) < n
        assert min(test) < n


def test_grouped_folds_without_some_role_are_refused():
    """Two groups of positives for three folds; and all positives in one group."""
    y = np.repeat([1, 0, -1], [4, 12, 30])
    for n_groups, n_folds in ((2, 3), (1, 2)):
        groups = np.r_[np.arange(4) % n_groups, 10 + np.arange(42)]
        with pytest.raises(ValueError, match=f"at least {n_folds} groups with rows of every role"):
            list(RoleStratifiedKFold(n_folds).split(y, y, groups))
    groups = np.r_[np.arange(4) % 2, 10 + np.arange(42)]
    for _, test in RoleStratifiedKFold(2).split(y, y, groups):
        assert [int(np.sum(y[test] == code)) for code in (1, 0, -1)] == [2, 6, 15]


Y, SCORES, _ = gaussian_scores(0, (25, 40, 300), 0.2, 1.2)

PU = np.where(Y == 0, np.nan, Y)


class Fixed:
    def __init__(self, classes, **answers):
        self.classes_ = np.array(classes)
        for name, values in answers.items():
            setattr(self, name, lambda X, values=values: np.asarray(values))


@pytest.mark.parametrize(
    ("y", "prior", "method", "same"),
    [
        (Y, 0.2, "auto", "combined"), (Y, None, "auto", "pn"), (PU, None, "auto", "pu_raw"),
        (PU, 0.2, "auto", "pu"), (np.where(Y == 1, np.nan, Y), None, "auto", "nu_raw"),
        (Y, (0.1, 0.3), "pu", "pu"), (Y, 0.2, "nu", "nu"),
    ],
)  # fmt: skip
def test_a_scorer_is_the_unbiased_estimate(y, prior, method, same):
    ranker = Fixed([0, 1], decision_function=SCORES)
    codes = {"positive_label": 1, "negative_label": 0}
    found = make_auc_scorer(prior, method, **codes)(ranker, SCORES[:, None], y)
    value = None if prior is None else np.mean(prior)
    expected = auc_estimate(y, SCORES, value, same, **codes)
    assert found == pytest.approx(expected.unbiased)


@pytest.mark.parametrize("proba", [False, True])
def test_held_out_scores_come_from_models_of_the_other_folds(proba):
    rng = np.random.default_rng(5)
    y = np.repeat([1, 0], 30)
    X = rng.normal(size=(60, 2)) + y[:, None]

    model = GaussianNB() if proba else LogisticRegression()
    found = held_out_scores(model, X, y, cv=3)
    folds = RoleStratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
    for train, test in folds:
        fitted = clone(model).fit(X[train], y[train])
        own = fitted.predict_proba(X[test])[:, 1] if proba else fitted.decision_function(X[test])
        np.testing.assert_allclose(found[test], own)
    by_splitter = held_out_scores(model, X, y, cv=StratifiedKFold(2))
    assert np.isfinite(by_splitter).all()
    assert not np.array_equal(by_splitter, found)


EXAMPLE = Path(__file__).parents[2] / "examples" / "tune_gradient_boosting.py"


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


RNG = np.random.default_rng(0)

HIDDEN = RNG.random(160) < 0.3

X = RNG.normal(size=(160, 2)) + 1.5 * HIDDEN[:, None]

CODES = np.where(np.arange(160) < 60, HIDDEN.astype(int), -1)

MODEL = AUCClassifier(prior=0.3, n_centers=20, random_state=0)


def partly(kind):
    return np.where(CODES < 0, np.nan, CODES) if kind == "missing" else CODES


@pytest.mark.parametrize("kind", ["missing", "-1"])
def test_cross_val_predict_is_refused_with_what_to_take(kind):
    """It numbers the label values anew, so nobody can tell who was unlabelled."""
    with pytest.raises(ValueError, match=r"pnuauc\.metrics\.held_out_scores"):
        cross_val_predict(
            MODEL, X, partly(kind), method="decision_function", cv=RoleStratifiedKFold(3)
        )


@pytest.mark.parametrize("options", [{}, {"ensemble": False}, {"cv": RoleStratifiedKFold(2)}])
def test_calibration_with_unlabelled_rows_is_refused(options):
    """It took -1 for a third class and gave probabilities of the wrong one without a word."""
    words = r"FrozenEstimator\(model\) on the labelled rows|held_out_scores"
    with pytest.raises(ValueError, match=words):
        CalibratedClassifierCV(MODEL, **options).fit(X, CODES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="NaN"):
            CalibratedClassifierCV(MODEL, **options).fit(X, partly("missing"))
    every = CalibratedClassifierCV(AUCClassifier(n_centers=5), **options)
    assert every.fit(X, HIDDEN.astype(int)).predict_proba(X).shape == (160, 2)


def test_a_cross_fitted_auc_counts_groups_and_takes_any_splits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    y = np.where(X[:, 0] + rng.normal(size=240) > 0, 1, 0)
    plain = cross_fit_auc(LogisticRegression(), X, y)
    assert plain.low < plain.value < plain.high
    # every row four times over: told as groups the interval stays, untold it halves
    many, often = np.repeat(np.arange(240), 4), np.repeat(y, 4)
    told = cross_fit_auc(LogisticRegression(), X[many], often, groups=many)
    assert told.high - told.low == pytest.approx(plain.high - plain.low, rel=0.1)
    later = cross_fit_auc(LogisticRegression(), X, y, cv=TimeSeriesSplit(3))
    assert later.n_positive + later.n_negative == 180
    with pytest.raises(ValueError, match="out of every test set"):
        held_out_scores(LogisticRegression(), X, y, TimeSeriesSplit(3))
    splits = list(KFold(3).split(X))
    assert np.isfinite(held_out_scores(LogisticRegression(), X, y, splits)).all()
    ordered = np.argsort(y)
    with pytest.raises(ValueError, match="no positive row to train on"):
        cross_fit_auc(LogisticRegression(), X[ordered], y[ordered], cv=KFold(2))


@pytest.mark.parametrize("n_unlabeled", [0, 120])
def test_a_cross_fitted_auc_needs_rows_to_place_scores_among(n_unlabeled):
    """A row by itself would be in the middle of its own scale: an AUC of .5, without an error."""
    rng = np.random.default_rng(0)
    hidden = np.arange(200) % 2
    X = rng.normal(size=(200, 2)) + 2 * hidden[:, None]
    y = np.where(np.arange(200) < 200 - n_unlabeled, hidden, -1)
    for cv, groups in ((LeaveOneOut(), None), (LeaveOneGroupOut(), np.arange(200) // 4 * 2 + y)):
        with pytest.raises(ValueError, match=r"of cv holds out .* a scale of their own"):
            cross_fit_auc(LogisticRegression(), X, y, prior=0.5, cv=cv, groups=groups)
    assert cross_fit_auc(LogisticRegression(), X, y, prior=0.5, cv=KFold(5)).value > 0.8


def test_weights_reach_the_scorer_by_metadata_routing():
    rng = np.random.default_rng(3)
    y = np.repeat([1, 0], 60)
    X = rng.normal(size=(120, 2)) + y[:, None]
    weight = rng.uniform(0.1, 5.0, 120)
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)
        scorer = make_auc_scorer().set_score_request(sample_weight=True)
        found = cross_val_score(
            model, X, y, scoring=scorer, cv=StratifiedKFold(2), params={"sample_weight": weight}
        )
        plain = cross_val_score(model, X, y, scoring=make_auc_scorer(), cv=StratifiedKFold(2))
    expected, unweighted = [], []
    for train, test in StratifiedKFold(2).split(X, y):
        scores = LogisticRegression().fit(X[train], y[train]).decision_function(X[test])
        expected.append(roc_auc_score(y[test], scores, sample_weight=weight[test]))
        unweighted.append(roc_auc_score(y[test], scores))
    assert found == pytest.approx(expected)
    assert plain == pytest.approx(unweighted)


def test_metadata_routing_brings_groups_to_the_splitter():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), rng.choice([1, 0, -1], 90)
    groups = np.repeat(np.arange(30), 3)
    seen = []

    class Watched(GaussianNB):
        def fit(self, X, y):
            seen.append(set(np.round(X[:, 0], 12)))
            return super().fit(X, y)

    scorer = make_auc_scorer(method="pn")
    with config_context(enable_metadata_routing=True):
        for scoring in (scorer, scorer.set_score_request(groups=True, sample_weight=False)):
            found = cross_validate(
                Watched(),
                X,
                y,
                cv=RoleStratifiedKFold(3),
                scoring={"auc": scoring},
                params={"groups": groups},
            )
    plain = cross_val_score(GaussianNB(), X, y, cv=RoleStratifiedKFold(3), scoring=scorer)
    assert found["test_auc"].shape == plain.shape
    with pytest.raises(TypeError, match="sample_weight and groups, not weights"):
        scorer.set_score_request(weights=True)
    held = held_out_scores(Watched(), X, y, cv=3, groups=groups)
    assert np.isfinite(held).all()
    for rows in seen:
        inside = np.isin(np.round(X[:, 0], 12), list(rows)).reshape(30, 3)
        assert (inside.all(axis=1) | ~inside.any(axis=1)).all()


def test_groups_widen_intervals_of_estimates_and_comparisons():
    rng = np.random.default_rng(0)
    y, a = np.repeat([1, 0], 60), rng.normal(size=120) + np.repeat([1, 0], 60)
    b = a + rng.normal(size=120)
    many = np.repeat(np.arange(120), 5)
    once, often = auc_estimate(y, a), auc_estimate(y[many], a[many], groups=many)
    assert (often.low, often.high) == pytest.approx((once.low, once.high), abs=0.01)
    assert any("60 positive" in note or "300 positive" in note for note in often.notes)
    single = compare_auc(y, a, b)
    assert compare_auc(y[many], a[many], b[many], groups=many).std_error == pytest.approx(
        single.std_error, rel=0.02
    )
