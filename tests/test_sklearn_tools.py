"""scikit-learn's own tools with partly labelled y: they work, or a sentence says what does."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict, cross_val_score, learning_curve
from sklearn.neighbors import KNeighborsClassifier

from pnuauc import AUCClassifier
from pnuauc.metrics import RoleStratifiedKFold, held_out_scores, make_auc_scorer

RNG = np.random.default_rng(0)
HIDDEN = RNG.random(160) < 0.3
X = RNG.normal(size=(160, 2)) + 1.5 * HIDDEN[:, None]
CODES = np.where(np.arange(160) < 60, HIDDEN.astype(int), -1)
MODEL = AUCClassifier(prior=0.3, n_centers=20, random_state=0)
LABELLED = CODES >= 0


def partly(kind):
    return np.where(CODES < 0, np.nan, CODES) if kind == "missing" else CODES


@pytest.mark.parametrize("kind", ["missing", "-1"])
def test_cross_val_predict_is_refused_with_what_to_take(kind):
    """It numbers the label values anew, so nobody can tell who was unlabelled."""
    with pytest.raises(ValueError, match=r"pnuauc\.metrics\.held_out_scores"):
        cross_val_predict(
            MODEL, X, partly(kind), method="decision_function", cv=RoleStratifiedKFold(3)
        )


@pytest.mark.parametrize("kind", ["missing", "-1"])
def test_held_out_scores_are_those_of_the_folds(kind):
    y = partly(kind)
    splitter = RoleStratifiedKFold(3, shuffle=True, random_state=0)
    scores = held_out_scores(MODEL, X, y, cv=3)
    for train, test in splitter.split(X, y):
        alone = MODEL.fit(X[train], y[train]).decision_function(X[test])
        np.testing.assert_array_equal(scores[test], alone)
    frame = pd.DataFrame(X, columns=["a", "b"]).set_index(np.arange(160)[::-1])
    np.testing.assert_allclose(held_out_scores(MODEL, frame, pd.Series(y), cv=splitter), scores)
    assert roc_auc_score(HIDDEN, scores) > 0.8


def test_held_out_scores_take_probabilities_too():
    labels = (CODES == 1).astype(int)
    scores = held_out_scores(KNeighborsClassifier(5), X, labels, cv=2)
    assert set(np.round(5 * scores)) <= set(range(6))


@pytest.mark.parametrize("kind", ["missing", "-1"])
def test_cross_val_score_and_learning_curve_with_our_scorer_and_folds(kind):
    y = partly(kind)
    tools = {"scoring": make_auc_scorer(0.3), "cv": RoleStratifiedKFold(3)}
    values = cross_val_score(MODEL, X, y, **tools)
    assert ((values > 0.6) & (values <= 1.2)).all()
    _, train, test = learning_curve(
        MODEL, X, y, train_sizes=[0.5, 1.0], shuffle=True, random_state=0, **tools
    )
    assert train.shape == test.shape == (2, 3)
    assert np.isfinite(test).all()


def test_calibration_takes_a_fitted_model_and_the_labelled_rows():
    fitted = MODEL.fit(X, CODES)
    calibrated = CalibratedClassifierCV(FrozenEstimator(fitted), method="sigmoid")
    calibrated.fit(X[LABELLED], CODES[LABELLED])
    chances = calibrated.predict_proba(X)[:, 1]
    assert roc_auc_score(HIDDEN, chances) == pytest.approx(
        roc_auc_score(HIDDEN, fitted.decision_function(X)), abs=0.02
    )


def test_stacking_takes_fitted_models_and_the_labelled_rows():
    models = [
        ("narrow", MODEL.fit(X, CODES)),
        ("wide", AUCClassifier(prior=0.3, n_centers=5, random_state=1).fit(X, CODES)),
    ]
    stack = StackingClassifier(models, LogisticRegression(), cv="prefit")
    stack.fit(X[LABELLED], CODES[LABELLED])
    assert roc_auc_score(HIDDEN, stack.predict_proba(X)[:, 1]) > 0.8
    with pytest.raises(ValueError, match=r'fitted models and cv="prefit" on the labelled rows'):
        StackingClassifier(models, LogisticRegression(), cv=2).fit(X, CODES)


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
