"""Results against known truth: lines whose loss would change what a number means."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm
from sklearn.base import BaseEstimator

from pnuauc import AUCClassifier, AUCClassifierCV, ClassPrior, compare_auc
from pnuauc._study import ColumnRoles
from pnuauc._study._crossfit import cross_fit
from pnuauc._study._findings import review_findings, unlabeled_effect
from pnuauc._study._importance import permutation_importance
from pnuauc._study._rows import study_rows
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.labels import read_roles
from pnuauc.metrics import roc_curve_estimate, threshold_estimate

# --- rates from positives and unlabelled rows -----------------------------------------------------


def exact_mixture(n_positive=40, n_negative=160, seed=0):
    """U holds every labelled positive's score and all negatives': rates of U are exactly those."""
    rng = np.random.default_rng(seed)
    p, n = rng.normal(1, 1, n_positive), rng.normal(0, 1, n_negative)
    y = [1] * n_positive + [None] * (n_positive + n_negative)
    return y, np.concatenate([p, p, n]), p, n, n_positive / (n_positive + n_negative)


def test_false_positive_rate_is_that_of_the_hidden_negatives():
    y, scores, p, n, prior = exact_mixture()
    for at in (-0.5, 0.0, 0.7, 1.5):
        found = threshold_estimate(y, scores, prior, threshold=at)
        assert found.false_positive_rate.value == pytest.approx(np.mean(n >= at))
        assert found.recall.value == pytest.approx(np.mean(p >= at))
        flagged = np.sum(p >= at) + np.sum(n >= at)
        assert found.precision.value == pytest.approx(np.sum(p >= at) / flagged)
        assert found.expected_positives.value == pytest.approx(np.sum(p >= at))
        assert found.n_flagged == flagged
    roc = roc_curve_estimate(y, scores, prior, "pu", max_points=10_000)
    for at, fpr, tpr in zip(roc.thresholds[1:-1], roc.fpr[1:-1], roc.tpr[1:-1]):
        assert fpr == pytest.approx(np.mean(n >= at))
        assert tpr == pytest.approx(np.mean(p >= at))


def test_limits_of_the_false_positive_rate_are_scaled_like_the_rate():
    """With positives without number only U is random: (Wilson limit of r_U - prior r_P) / rest."""
    rng = np.random.default_rng(0)
    p, u, prior = np.linspace(0, 4, 400_001), rng.normal(0.5, 1.2, 300), 0.3
    found = threshold_estimate([1] * len(p) + [None] * 300, np.r_[p, u], prior, threshold=1.0)
    recall, rate, z = 0.75, np.mean(u >= 1.0), norm.ppf(0.975)
    middle = (rate + z**2 / 600) / (1 + z**2 / 300)
    half = z / (1 + z**2 / 300) * np.sqrt(rate * (1 - rate) / 300 + (z / 600) ** 2)
    for limit, end in (
        (found.false_positive_rate.low, middle - half),
        (found.false_positive_rate.high, middle + half),
    ):
        expected = np.clip((end - prior * recall) / (1 - prior), 0, 1)
        assert limit == pytest.approx(expected, abs=2e-3)


def test_an_unsure_prior_widens_the_rate_by_its_own_part():
    """d fpr / d prior = (r_U - r_P) / (1 - prior)^2, added in squares."""
    y, scores, p, n, prior = exact_mixture(400, 1600)
    error = 0.04
    unsure = ClassPrior(prior, 0.0, 1.0, std_error=error, source="test")
    at = 1.0
    known, told = (
        threshold_estimate(y, scores, q, threshold=at).false_positive_rate for q in (prior, unsure)
    )
    r_u = (np.sum(p >= at) + np.sum(n >= at)) / 2000
    extra = norm.ppf(0.975) * error * abs(r_u - np.mean(p >= at)) / (1 - prior) ** 2
    for end in ("low", "high"):
        plain, wide = (abs(getattr(f, end) - f.value) for f in (known, told))
        assert wide == pytest.approx(np.hypot(plain, extra), rel=0.05)


# --- comparisons ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pu", "nu"])
def test_an_unsure_prior_widens_a_difference(method):
    """Var = mean over priors of the variance + variance over priors of the difference."""
    rng = np.random.default_rng(3)
    hidden = rng.random(3000) < 0.3
    truth = np.r_[np.ones(200), np.zeros(200), hidden]
    y = np.r_[np.ones(200), np.zeros(200), np.full(3000, np.nan)]
    a, b = (truth * strength + rng.normal(size=3400) for strength in (1.0, 0.2))
    unsure = ClassPrior(0.3, 0.2, 0.4, std_error=0.05, source="test")
    told = compare_auc(y, a, b, unsure, method)
    known = compare_auc(y, a, b, 0.3, method)
    values, weights = unsure.nodes(60)
    at = 0.0
    for single, scale in (("pu", 1 - values), ("nu", values)):
        raw = compare_auc(y, a, b, None, f"{single}_raw").difference
        at += told.weights.get(single, 0.0) * raw / scale
    spread = np.sqrt(weights @ (at - weights @ at) ** 2)
    assert spread > 0.1 * known.std_error  # else the test would show nothing
    assert told.std_error == pytest.approx(np.hypot(known.std_error, spread), rel=0.1)
    assert told.high - told.low > 1.02 * (known.high - known.low)


# --- one prior, whoever asks ----------------------------------------------------------------------


def rows(n_negative, seed=0):
    X, y = make_twonorm(3000, random_state=seed)
    s = sample_pnu(X, y, 40, n_negative, 300, 0.2, seed)
    return s.X, read_roles(s.y, unlabeled_label=-1)


@pytest.mark.parametrize("n_negative", [0, 40])
def test_table_and_estimators_use_the_same_prior(n_negative):
    pytest.importorskip("pyarrow")
    from pnuauc import fit_table

    X, roles = rows(n_negative)
    pa = pytest.importorskip("pyarrow")
    labels = [None if code == -1 else int(code) for code in roles]
    table = pa.table({**{f"x{j}": X[:, j] for j in range(5)}, "y": pa.array(labels, pa.int8())})
    quick = {"n_centers": 10, "folds": 2, "importance": False, "random_state": 0}
    fit = fit_table(table, "y", **quick)
    order = study_rows(table, ColumnRoles("y"), 10_000, 0).numbers  # the order of the fit
    encoded, roles = fit.encoder.transform(table.drop_columns(["y"]))[order], roles.take(order)
    for kind in (AUCClassifier, AUCClassifierCV):
        model = kind(prior="auto", n_centers=10, random_state=0).fit(encoded, roles)
        assert fit.findings["prior"]["value"] == model.class_prior_.value
        assert fit.findings["prior"]["std_error"] == model.class_prior_.std_error
    given = fit_table(table, "y", prior=(0.1, 0.3), **quick)
    assert given.findings["prior"]["value"] == pytest.approx(0.2)


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


# --- what a fit says about itself -----------------------------------------------------------------


class ByColumn(BaseEstimator):
    """Scores are columns: the first with unlabelled rows, the second for labelled rows alone."""

    def __init__(self, risk="pnu", prior=None, verbose=False, weights=(1.0,)):
        self.risk, self.prior, self.verbose, self.weights = risk, prior, verbose, weights

    def fit(self, X, y):
        self.selection_ = SimpleNamespace(message="")
        return self

    def decision_function(self, X):
        if self.risk == "pn":
            return X[:, 1]
        return X[:, : len(self.weights)] @ np.array(self.weights)


def scored_rows(strengths, n_labelled=300, n_unlabeled=3000, prior=0.3, seed=0):
    """Columns x_j = strength_j * class + noise; roles; the hidden classes of all rows."""
    rng = np.random.default_rng(seed)
    classes = np.r_[np.repeat([1, 0], n_labelled), rng.random(n_unlabeled) < prior].astype(int)
    X = np.outer(classes, strengths) + rng.normal(size=(len(classes), len(strengths)))
    labels = np.r_[np.repeat([1.0, 0.0], n_labelled), np.full(n_unlabeled, np.nan)]
    return X, read_roles(labels), classes


def test_effect_of_unlabelled_rows_is_with_minus_without():
    """With them the score is good (AUC Phi(2.5 / sqrt 2)), without them it is noise (1/2)."""
    X, roles, _ = scored_rows([2.5, 0.0])
    ranker, rows = ByColumn(), np.arange(len(roles))
    held_out = cross_fit(ranker, X, roles, rows, n_folds=3, seed=0)
    prior = ClassPrior.known(0.3)
    found = unlabeled_effect(ranker.fit(X, roles), ranker, X, roles, held_out, prior, 3, 0)
    assert found["with"] == pytest.approx(norm.cdf(2.5 / np.sqrt(2)), abs=0.02)
    assert found["without"] == pytest.approx(0.5, abs=0.04)
    assert found["difference"] == pytest.approx(found["with"] - found["without"], abs=0.01)
    assert found["low"] > 0.4
    assert found["p_value"] < 1e-6
    worse = cross_fit(ByColumn("pn"), X, roles, rows, n_folds=3, seed=0)
    swapped = unlabeled_effect(
        ranker.fit(X, roles), ByColumn("pnu"), X[:, ::-1], roles, worse, prior, 3, 0
    )
    assert swapped["difference"] < -0.4


@pytest.mark.parametrize("k", [30, 300, 3000])
def test_expected_positives_are_those_of_the_top_k(k):
    X, roles, classes = scored_rows([2.0], n_labelled=400)
    held_out = cross_fit(ByColumn(), X, roles, np.arange(len(roles)), n_folds=2, seed=0)
    prior = ClassPrior.known(0.3)
    found = review_findings(held_out, prior, roles.n_unlabeled, k, 0.95)
    unlabeled = roles.unlabeled
    top = unlabeled[np.argsort(-X[unlabeled, 0])[:k]]
    truth = classes[top].sum()
    assert found["expected"]["low"] - 1 <= truth <= found["expected"]["high"] + 1
    assert found["expected"]["value"] == pytest.approx(truth, rel=0.1)
    share = truth / classes[unlabeled].sum()
    assert found["recall"]["value"] == pytest.approx(share, rel=0.12)
    assert found["by_chance"] == pytest.approx(0.3 * k)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_importance_shuffles_a_column_and_does_not_erase_it(kind):
    """score = class signal + noise column: without the noise the AUC would rise, not stay."""
    X, roles, _ = scored_rows([2.0, 0.0])
    X = kind(X)
    held_out = cross_fit(
        ByColumn(weights=(1.0, 2.0)), X, roles, np.arange(len(roles)), n_folds=2, seed=0
    )
    found = permutation_importance(
        held_out, X, {"signal": [0], "noise": [1]}, ClassPrior.known(0.3), "combined", seed=0
    )
    drops = {item["column"]: item["drop"] for item in found}
    expected = norm.cdf(2 / np.sqrt(2 * 5)) - 0.5
    assert drops["signal"] == pytest.approx(expected, abs=0.05)
    # erasing the noise would raise the AUC to Phi(2 / sqrt 2): a drop of -.19
    assert abs(drops["noise"]) < 0.03
    assert next(iter(drops)) == "signal"


def test_percentiles_are_places_among_the_unlabelled_rows():
    """Many labelled positives score high: among all rows the same scores stand lower."""
    pa = pytest.importorskip("pyarrow")
    from pnuauc import fit_table

    X, roles, _ = scored_rows([3.0], n_labelled=150, n_unlabeled=300, prior=0.05)
    labels = [None if code == -1 else int(code) for code in roles]
    table = pa.table({"x": X[:, 0], "y": pa.array(labels, pa.int8())})
    quick = {"n_centers": 10, "folds": 2, "importance": False, "top": 40}
    fit = fit_table(table, "y", prior=0.05, **quick)
    scores = fit.model.score(table)
    unlabeled = scores[roles.unlabeled]
    header = fit.findings["top"]["header"]
    shown = [row[header.index("percentile")] for row in fit.findings["top"]["rows"]]
    top = np.sort(unlabeled)[::-1][:40]
    places = np.array([np.mean(unlabeled <= score) for score in top])
    unit = 100 if max(shown) > 1 else 1
    np.testing.assert_allclose(np.array(shown) / unit, places, atol=0.01)
    among_all = np.array([np.mean(scores <= score) for score in top])
    assert np.abs(places - among_all).max() > 0.1  # else the test would show nothing
