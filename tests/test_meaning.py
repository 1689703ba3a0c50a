"""Results against known truth: lines whose loss would change what a number means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from pnuauc import AUCClassifier, AUCClassifierCV, ClassPrior, compare_auc
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
    a, b = (truth * strength + rng.normal(size=3400) for strength in (2.5, 0.5))
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
    encoded = fit.encoder.transform(table.drop_columns(["y"]))
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
