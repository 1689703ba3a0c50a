"""The metric of boosting libraries: its laws, and each library as it really is."""

from __future__ import annotations

import pickle
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

from pnuauc.boosting import AUCMetric
from pnuauc.exceptions import MissingRoleError
from pnuauc.labels import Roles
from pnuauc.metrics import auc_estimate

PRIOR = 0.2
N_LABELED = 150


def rows(n, rng):
    hidden = rng.random(n) < PRIOR
    return rng.normal(size=(n, 5)) + 0.8 * hidden[:, None] * [1, 1, 0, 0, 0], hidden.astype(int)


RNG = np.random.default_rng(0)
X, T = rows(300, RNG)
X_VALID, T_VALID = rows(1500, RNG)
Y_VALID = np.where(np.arange(1500) < N_LABELED, T_VALID, -1)
Y_NAN = np.where(Y_VALID < 0, np.nan, Y_VALID)


# The estimator.


@pytest.mark.parametrize("digits", [0, 1, 9], ids=["tied", "some tied", "distinct"])
@pytest.mark.parametrize("method", ["pn", "pu", "nu", "pu_raw", "nu_raw"])
def test_single_estimates_are_those_of_auc_estimate(method, digits):
    scores = np.round(X_VALID @ np.ones(5), digits)
    metric = AUCMetric(Y_VALID, PRIOR, method)
    assert metric.name == f"auc_{method}"
    assert metric(scores) == pytest.approx(auc_estimate(Y_VALID, scores, PRIOR, method).unbiased)
    assert metric.estimate(scores) == auc_estimate(Y_VALID, scores, PRIOR, method)


@pytest.mark.parametrize(
    ("roles", "prior", "name"),
    [
        ("PN", None, "auc_pn"),
        ("PNU", None, "auc_pn"),
        ("PNU", PRIOR, "auc_combined"),
        ("PU", None, "auc_pu_raw"),
        ("PU", PRIOR, "auc_pu"),
        ("NU", None, "auc_nu_raw"),
        ("NU", PRIOR, "auc_nu"),
    ],
)
def test_roles_and_prior_choose_the_estimator(roles, prior, name):
    codes = [code for letter, code in (("P", 1), ("N", 0), ("U", -1)) if letter in roles]
    metric = AUCMetric(Roles(np.repeat(np.array(codes, dtype=np.int8), 20)), prior)
    assert metric.name == name
    assert 0.0 < metric.std_error < 0.5


def test_one_estimator_for_all_scores():
    """The value is linear in the shares of pairs won, with the same weights for every score."""
    metric = AUCMetric(Y_VALID, PRIOR)
    rng = np.random.default_rng(3)
    singles, values = [], []
    for noise in (0.0, 1.0, 3.0, 10.0, 30.0, 100.0):
        scores = X_VALID @ np.ones(5) + noise * rng.normal(size=len(X_VALID))
        found = [auc_estimate(Y_VALID, scores, PRIOR, m).unbiased for m in ("pn", "pu", "nu")]
        singles.append(found)
        values.append(metric(scores))
    weights = np.linalg.lstsq(np.array(singles), np.array(values))[0]
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.array(singles) @ weights, values, atol=1e-12)


def test_the_combination_is_unbiased_and_tighter_than_pn():
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0, -1], [20, 20, 1000])
    values = []
    for _ in range(400):
        positive = np.r_[np.ones(20), np.zeros(20), rng.random(1000) < PRIOR]
        scores = rng.normal(size=1040) + 1.19 * positive  # AUC .8
        values.append([AUCMetric(y, PRIOR)(scores), AUCMetric(y)(scores)])
    combined, pn = np.array(values).T
    assert combined.mean() == pytest.approx(0.8, abs=4 * combined.std() / 20)
    assert combined.std() < 0.9 * pn.std()
    # what was announced before there was a score
    assert AUCMetric(y, PRIOR).std_error == pytest.approx(combined.std(), rel=0.15)
    assert AUCMetric(y).std_error == pytest.approx(pn.std(), rel=0.15)


def test_a_prior_that_is_too_large_does_not_end_a_run():
    scores = np.r_[np.full(20, 2.0), np.linspace(-1, 1, 200)]
    y = Roles(np.repeat(np.array([1, -1], dtype=np.int8), [20, 200]))
    assert AUCMetric(y, 0.6)(scores) > 1.0
    with pytest.raises(ValueError, match="refuted"):
        auc_estimate(y, scores, 0.6)


@pytest.mark.slow
def test_the_best_of_many_rounds_is_flattered_and_the_rows_kept_aside_are_not():
    """Rounds that all rank alike: the largest of 100 values is luck, the other half says so."""
    rng = np.random.default_rng(2)
    y = np.repeat([1, 0, -1], [20, 20, 200])
    best, honest = [], []
    for seed in range(60):
        positive = np.r_[np.ones(20), np.zeros(20), rng.random(200) < PRIOR]
        metric = AUCMetric(y, PRIOR, holdout=0.5, random_state=seed)
        rounds = [positive + rng.normal(size=240) for _ in range(100)]
        values = [metric(scores) for scores in rounds]
        best.append(max(values))
        honest.append(metric.honest(rounds[int(np.argmax(values))]).unbiased)
    true = 0.760  # of N(1, 1) against N(0, 1)
    assert np.mean(best) > true + 0.08
    assert np.mean(honest) == pytest.approx(true, abs=3 * np.std(honest) / np.sqrt(60))


@pytest.mark.parametrize("method", ["pn", "pu", "combined"])
def test_stopping_sees_its_rows_only(method):
    metric = AUCMetric(Y_VALID, PRIOR, method, holdout=0.5)
    scores = X_VALID @ np.ones(5)
    assert metric(scores) == pytest.approx(metric.estimate(scores).unbiased, abs=0.02)
    if method != "combined":  # whose weights the estimate takes from the scores
        assert metric(scores) == pytest.approx(metric.estimate(scores).unbiased)


def test_stopping_and_honest_rows_are_different_rows_of_every_role():
    metric = AUCMetric(Y_VALID, PRIOR, holdout=0.5)
    scores = X_VALID @ np.ones(5)
    stop, kept = metric.estimate(scores), metric.honest(scores)
    for name in ("n_positive", "n_negative", "n_unlabeled"):
        total = getattr(auc_estimate(Y_VALID, scores, PRIOR), name)
        assert getattr(stop, name) + getattr(kept, name) == total
        assert abs(getattr(stop, name) - getattr(kept, name)) <= 1


def test_codes_of_labels():
    scores = X_VALID @ np.ones(5)
    positive = (Y_VALID == 1).astype(int)
    known = AUCMetric(np.where(positive == 1, 1, -1).astype(np.int8), positive_label=1)
    coded = AUCMetric(unlabeled_label=0, positive_label=1)
    assert coded(scores, positive) == known(scores)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert AUCMetric()(scores, np.where(positive == 1, 1, -1)) == known(scores)


def test_bad_use_gets_a_sentence():
    with pytest.raises(ValueError, match="got 300 scores"):
        AUCMetric(Y_VALID)(np.zeros(300))
    with pytest.raises(ValueError, match="No labels"):
        AUCMetric()(np.zeros(300))
    with pytest.raises(ValueError, match="No labels yet"):
        _ = AUCMetric().std_error
    with pytest.raises(ValueError, match=r"holdout=0\.5"):
        AUCMetric(Y_VALID).honest(X_VALID[:, 0])
    with pytest.raises(ValueError, match="holdout is a share"):
        AUCMetric(Y_VALID, holdout=1.5)
    with pytest.raises(MissingRoleError):
        AUCMetric(Y_VALID[Y_VALID == 1], positive_label=1)
    with pytest.raises(ValueError, match="NaN"):
        AUCMetric(Y_VALID)(np.full(len(Y_VALID), np.nan))


# LightGBM.


LGB = {"objective": "binary", "metric": "None", "verbose": -1, "num_threads": 1, "seed": 0}


@pytest.fixture(scope="module")
def lgb():
    return pytest.importorskip("lightgbm", reason="pip install 'pnuauc[boosting]'")


def lgb_train(lgb, metric, y, n_rounds=40, **settings):
    seen: dict = {}
    booster = lgb.train(
        LGB,
        lgb.Dataset(X, T),
        n_rounds,
        valid_sets=[lgb.Dataset(X_VALID, y)],
        feval=metric,
        callbacks=[lgb.early_stopping(8, verbose=False, **settings), lgb.record_evaluation(seen)],
    )
    return booster, seen["valid_0"]


def test_lightgbm_train_takes_minus_one(lgb):
    metric = AUCMetric(prior=PRIOR)
    booster, seen = lgb_train(lgb, metric.lightgbm, Y_VALID)
    values = seen["auc"]
    assert booster.best_iteration == 1 + int(np.argmax(values)) < len(values)
    expected = AUCMetric(Y_VALID, PRIOR)
    for k in (1, booster.best_iteration):  # later trees are dropped
        scores = booster.predict(X_VALID, num_iteration=k)
        assert values[k - 1] == pytest.approx(expected(scores))
    assert metric.std_error == expected.std_error


def test_lightgbm_train_makes_negatives_of_nan(lgb):
    """Why the labels must be -1, or go to the metric."""
    _, seen = lgb_train(lgb, AUCMetric().lightgbm, Y_NAN)
    _, as_zero = lgb_train(lgb, AUCMetric().lightgbm, np.nan_to_num(Y_NAN))
    assert seen == as_zero
    _, right = lgb_train(lgb, AUCMetric(Y_NAN).lightgbm, Y_NAN)
    booster, _ = lgb_train(lgb, AUCMetric(Y_NAN).lightgbm, Y_NAN)
    scores = booster.predict(X_VALID, num_iteration=1)
    assert right["auc_pn"][0] == pytest.approx(auc_estimate(Y_VALID, scores, method="pn").value)


def test_lightgbm_learns_minus_one_as_a_negative_unless_it_weighs_nothing(lgb):
    """The folds of ``lgb.cv`` are learned from as well as judged."""

    def learned(y, weight=None):
        return lgb.train(LGB, lgb.Dataset(X_VALID, y, weight=weight), 10).predict(X_VALID)

    ignored = (Y_VALID != -1).astype(float)
    np.testing.assert_array_equal(learned(Y_VALID), learned((Y_VALID == 1).astype(int)))
    of_any_class = np.where(Y_VALID == -1, 1, Y_VALID)
    np.testing.assert_array_equal(learned(Y_VALID, ignored), learned(of_any_class, ignored))
    metric, data = AUCMetric(prior=PRIOR), lgb.Dataset(X_VALID, Y_VALID, weight=ignored)
    found = lgb.cv(LGB, data, 20, nfold=3, feval=metric.lightgbm)
    assert found["valid auc-mean"][-1] > 0.5 + found["valid auc-stdv"][-1]


def test_lightgbm_min_delta_waits_for_more_than_noise(lgb):
    metric = AUCMetric(Y_VALID, PRIOR)
    eager, _ = lgb_train(lgb, metric.lightgbm, Y_VALID)
    calm, _ = lgb_train(lgb, metric.lightgbm, Y_VALID, min_delta=metric.std_error)
    assert calm.best_iteration < eager.best_iteration


EXAMPLE = Path(__file__).parents[1] / "examples" / "stop_boosting.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside the tests")
def test_the_example_of_stopping_shows_what_it_says(lgb):
    reported, honest, true = runpy.run_path(str(EXAMPLE))["run"](12).mean(axis=0)
    assert reported > true + 0.03
    assert honest < reported - 0.03


def test_lightgbm_classifier_refuses_minus_one_so_roles_come_by_closure(lgb):
    metric = AUCMetric(Y_VALID, PRIOR)
    model = lgb.LGBMClassifier(n_estimators=40, metric="None", verbose=-1, n_jobs=1)

    def fit(y):
        with warnings.catch_warnings():  # newer versions rename eval_set
            warnings.simplefilter("ignore")
            return model.fit(
                X,
                T,
                eval_set=[(X_VALID, y)],
                eval_metric=metric.lightgbm,
                callbacks=[lgb.early_stopping(8, verbose=False)],
            )

    for refused, message in ((Y_VALID, "unseen labels"), (Y_NAN, "NaN")):
        with pytest.raises(ValueError, match=message):
            fit(refused)
    fit((Y_VALID == 1).astype(int))
    values = model.evals_result_["valid_0"]["auc_combined"]
    assert model.best_iteration_ == 1 + int(np.argmax(values)) < len(values)
    assert max(values) == pytest.approx(metric(model.predict_proba(X_VALID)[:, 1]))


# XGBoost.


@pytest.fixture(scope="module")
def xgb():
    return pytest.importorskip("xgboost", reason="pip install 'pnuauc[boosting]'")


def xgb_train(xgb, metric, y, **settings):
    seen: dict = {}
    booster = xgb.train(
        {"objective": "binary:logistic", "nthread": 1, **settings},
        xgb.DMatrix(X, T),
        30,
        evals=[(xgb.DMatrix(X_VALID, y), "valid")],
        custom_metric=metric,
        early_stopping_rounds=8,
        evals_result=seen,
        verbose_eval=False,
    )
    return booster, seen["valid"]


def test_xgboost_train_takes_minus_one_and_maximises(xgb):
    metric = AUCMetric(prior=PRIOR)
    booster, seen = xgb_train(xgb, metric.xgboost, Y_VALID, disable_default_eval_metric=1)
    assert list(seen) == ["auc"]
    assert booster.best_iteration == int(np.argmax(seen["auc"])) < len(seen["auc"]) - 1
    upto = (0, booster.best_iteration + 1)
    scores = booster.predict(xgb.DMatrix(X_VALID), iteration_range=upto)
    assert booster.best_score == pytest.approx(AUCMetric(Y_VALID, PRIOR)(scores), abs=1e-6)


def test_xgboost_computes_log_loss_on_minus_one_unless_told_not_to(xgb):
    _, seen = xgb_train(xgb, AUCMetric(Y_VALID, PRIOR).xgboost, Y_VALID)
    assert set(seen) == {"logloss", "auc_combined"}
    assert min(seen["logloss"]) < 0.0  # no log-loss is negative


def test_xgboost_refuses_nan(xgb):
    with pytest.raises(xgb.core.XGBoostError, match="NaN"):
        xgb_train(xgb, AUCMetric().xgboost, Y_NAN, disable_default_eval_metric=1)


@pytest.mark.parametrize("labels_by", ["library", "closure"])
def test_xgboost_classifier(xgb, labels_by):
    metric = AUCMetric(Y_VALID if labels_by == "closure" else None, PRIOR)
    model = xgb.XGBClassifier(
        n_estimators=30,
        early_stopping_rounds=8,
        eval_metric=metric.xgboost,
        disable_default_eval_metric=1,
        n_jobs=1,
    ).fit(X, T, eval_set=[(X_VALID, Y_VALID)], verbose=False)
    (values,) = model.evals_result()["validation_0"].values()
    assert model.best_iteration == int(np.argmax(values)) < len(values) - 1
    scores = model.predict_proba(X_VALID)[:, 1]
    assert max(values) == pytest.approx(metric(scores, Y_VALID), abs=1e-6)
    stored = pickle.loads(pickle.dumps(model))
    assert (stored.predict_proba(X_VALID)[:, 1] == scores).all()


# CatBoost.


def test_catboost_refuses_minus_one_so_roles_come_by_closure():
    catboost = pytest.importorskip("catboost", reason="pip install 'pnuauc[boosting]'")
    metric = AUCMetric(Y_VALID, PRIOR)

    def fit(y):
        model = catboost.CatBoostClassifier(
            iterations=40,
            eval_metric=metric.catboost,
            early_stopping_rounds=8,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
            random_seed=0,
        )
        return model.fit(X, T, eval_set=(X_VALID, y))

    for refused in (Y_VALID, Y_NAN):
        with pytest.raises(catboost.CatBoostError, match="not present in the learn dataset"):
            fit(refused)
    model = fit((Y_VALID == 1).astype(int))
    seen = model.get_evals_result()
    (name,) = (key for key in seen["validation"] if key != "Logloss")
    values = seen["validation"][name]
    assert model.get_best_iteration() == int(np.argmax(values))
    best = model.predict(X_VALID, prediction_type="RawFormulaVal")
    assert max(values) == pytest.approx(metric(best))
    whole = model.predict(X, prediction_type="RawFormulaVal", ntree_end=1)
    assert seen["learn"][name][0] == pytest.approx(auc_estimate(T, whole).value)


# Loops that maximise a number.
