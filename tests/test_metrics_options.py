"""What is asked for reaches the numbers: levels, priors, methods, folds; words at their edges."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB

from pnuauc import metrics
from pnuauc._prior import ClassPrior
from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError
from pnuauc.labels import Roles
from pnuauc.metrics import (
    RoleStratifiedKFold,
    RoleStratifiedShuffleSplit,
    auc_estimate,
    compare_auc,
    held_out_scores,
    make_auc_scorer,
    prior_sensitivity,
    roc_curve_estimate,
    threshold_estimate,
)
from pnuauc.metrics._estimate import _size_notes, choose_method
from pnuauc.metrics._moments import moments_of
from pnuauc.metrics._roc import _roc_method
from pnuauc.metrics._scorers import _scores_of
from pnuauc.metrics._splitters import _both_sides
from pnuauc.metrics._weights import weigh
from tests.conftest import gaussian_scores

Y, SCORES, _ = gaussian_scores(0, (25, 40, 300), 0.2, 1.2)
OTHER = SCORES + np.random.default_rng(1).normal(0, 0.8, len(SCORES))
PU = np.where(Y == 0, np.nan, Y)


# --- levels and priors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda prior, **o: auc_estimate(Y, SCORES, prior, "combined", **o),
        lambda prior, **o: auc_estimate(PU, SCORES, prior, "pu", **o),
        lambda prior, **o: compare_auc(Y, SCORES, OTHER, prior, "pu", **o),
        lambda prior, **o: compare_auc(Y, SCORES, OTHER, prior, "combined", **o),
        lambda prior, **o: roc_curve_estimate(PU, SCORES, prior, "pu", **o).auc,
        lambda prior, **o: threshold_estimate(PU, SCORES, prior, k=30, **o).precision,
        lambda prior, **o: threshold_estimate(PU, SCORES, prior, k=30, **o).false_positive_rate,
    ],
)
def test_an_interval_of_the_prior_has_the_level_that_is_said(ask):
    for level in (0.95, 0.5):
        said = ask((0.1, 0.3), prior_level=level)
        same = ask(ClassPrior.from_interval(0.1, 0.3, level))
        assert (said.low, said.high) == (same.low, same.high)
    # narrow enough that the scores refute no share of either
    wide, narrow = ask((0.15, 0.25), prior_level=0.5), ask((0.15, 0.25), prior_level=0.95)
    assert wide.high - wide.low > narrow.high - narrow.low
    default = ask((0.15, 0.25))
    assert (default.low, default.high) == (narrow.low, narrow.high)


def test_the_band_of_a_curve_follows_the_level_of_the_prior():
    for level in (0.95, 0.5):
        said = roc_curve_estimate(PU, SCORES, (0.1, 0.3), "pu", prior_level=level)
        same = roc_curve_estimate(PU, SCORES, ClassPrior.from_interval(0.1, 0.3, level), "pu")
        np.testing.assert_array_equal(said.fpr_high, same.fpr_high)


@pytest.mark.parametrize(
    "ask",
    [
        lambda **o: auc_estimate(Y, SCORES, 0.2, "combined", **o),
        lambda **o: auc_estimate(PU, SCORES, 0.2, "pu", **o),
        lambda **o: auc_estimate(PU, SCORES, None, "pu_raw", **o),
        lambda **o: auc_estimate(Y, SCORES, None, "pn", **o),
        lambda **o: compare_auc(Y, SCORES, OTHER, 0.2, **o),
        lambda **o: threshold_estimate(PU, SCORES, 0.2, k=30, **o).lift,
        lambda **o: threshold_estimate(PU, SCORES, 0.2, k=30, **o).recall,
        lambda **o: threshold_estimate(PU, SCORES, (0.1, 0.3), k=30, **o).precision,
    ],
)
def test_a_higher_level_is_wider_and_95_is_the_default(ask):
    widths = [(r.high - r.low) for r in (ask(level=0.5), ask(level=0.9), ask(level=0.95))]
    assert widths[0] < widths[1] < widths[2]
    default = ask()
    assert default.high - default.low == pytest.approx(widths[2])
    for wrong in (0.0, 1.0, 1.5, -0.1):
        with pytest.raises(ValueError, match="level"):
            ask(level=wrong)


def test_curves_have_the_level_that_is_asked_for():
    low, high = (roc_curve_estimate(Y, SCORES, method="pn", level=level) for level in (0.5, 0.95))
    assert (high.band_high >= low.band_high).all()
    assert (high.tpr_high - high.tpr_low).mean() > 1.5 * (low.tpr_high - low.tpr_low).mean()
    assert low.auc.level == 0.5
    curves = [prior_sensitivity(PU, SCORES, [0.1, 0.2], level=level) for level in (0.5, 0.95)]
    assert (curves[1].high - curves[1].low > curves[0].high - curves[0].low).all()
    wider = prior_sensitivity(PU, SCORES, [0.1, 0.2], variance_factor=4.0)
    assert (wider.std_error > 1.5 * curves[1].std_error).all()
    assert len(prior_sensitivity(PU, SCORES).priors) == 25
    assert prior_sensitivity(PU, SCORES).priors[[0, -1]].tolist() == [0.02, 0.5]
    for wrong in ([], [[0.1]]):
        with pytest.raises(ValueError, match="one-dimensional"):
            prior_sensitivity(PU, SCORES, wrong)


def test_defaults_of_the_public_functions():
    """Documented, and what tables of the docs were made with."""
    expected = {
        "auc_estimate": {"method": "auto", "level": 0.95, "prior_level": 0.95,
                         "variance_factor": 1.0},
        "compare_auc": {"method": "auto", "level": 0.95, "prior_level": 0.95},
        "roc_curve_estimate": {"method": "auto", "level": 0.95, "max_points": 1000,
                               "prior_level": 0.95},
        "threshold_estimate": {"k": None, "threshold": None, "level": 0.95, "prior_level": 0.95},
        "prior_sensitivity": {"method": "auto", "level": 0.95, "variance_factor": 1.0},
        "make_auc_scorer": {"method": "auto", "prior_level": 0.95},
        "held_out_scores": {"cv": 5}, "RoleStratifiedKFold": {"n_splits": 5, "shuffle": False},
        "RoleStratifiedShuffleSplit": {"n_splits": 10, "test_size": None, "train_size": None},
    }  # fmt: skip
    for name, values in expected.items():
        found = inspect.signature(getattr(metrics, name)).parameters
        assert {key: found[key].default for key in values} == values, name


# --- methods and words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "prior", "method", "chosen"),
    [
        ((5, 5, 5), 0.2, "auto", "combined"), ((5, 5, 5), None, "auto", "pn"),
        ((5, 5, 0), 0.2, "auto", "pn"), ((5, 0, 5), 0.2, "auto", "pu"), ((0, 5, 5),
        0.2, "auto", "nu"),
        ((5, 0, 5), 0.2, "combined", "pu"), ((5, 5, 5), None, "pu_raw", "pu_raw"),
        ((5, 5, 5), 0.2, "nu", "nu"), ((5, 0, 0), 0.2, "auto", MissingRoleError),
        ((5, 0, 5), 0.2, "pn", MissingRoleError), ((5, 0, 5),
        None, "auto", PriorNotIdentifiedError),
        ((5, 5, 5), None, "combined", PriorNotIdentifiedError), ((5, 5, 5), 1.0, "pu", ValueError),
        ((5, 5, 5), 0.0, "nu", ValueError), ((5, 5, 5), 0.0, "pu", "pu"), ((5, 5, 5),
        1.0, "nu", "nu"),
        ((5, 5, 5), 0.2, "other", ValueError),
    ],
)  # fmt: skip
def test_which_method_is_used(n, prior, method, chosen):
    known = None if prior is None else ClassPrior.known(prior)
    if isinstance(chosen, str):
        assert choose_method(method, n, known)[0] == chosen
    else:
        with pytest.raises(chosen):
            choose_method(method, n, known)


@pytest.mark.parametrize(
    ("method", "n", "words"),
    [
        ("combined", (10, 10, 10), []), ("combined", (9, 10, 1),
        ["Only 9 positive", "One unlabelled"]),
        ("pn", (9, 1, 1), ["Only 9 positive", "One negative"]), ("pu_raw", (10, 2, 3),
        ["Only 3 unl"]),
        ("nu", (1, 11, 10), []),
    ],
)  # fmt: skip
def test_few_rows_are_told(method, n, words):
    found = _size_notes(method, n)
    assert len(found) == len(words)
    assert all(note.startswith(word) for note, word in zip(found, words))


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [(0.01, 0.02, "NU left out"), (0.99, 0.02, "PU left out"), (0.5, 0.05, None)],
)
def test_an_estimate_that_the_prior_may_undo_is_left_out_and_told(value, error, words):
    low, high = max(value - 2 * error, 0.0), min(value + 2 * error, 1.0)
    prior = ClassPrior(value, low, high, std_error=error, source="estimated")
    counts = metrics.ScoreCounts.from_rows(Y, SCORES)
    found = weigh(counts, moments_of(counts), prior)
    assert (found.note is None) is (words is None)
    assert words is None or found.note.startswith(f"{words}: the prior")
    assert (found.weights == 0).sum() == (0 if words is None else 1)


@pytest.mark.parametrize(
    ("sizes", "prior", "method"),
    [
        ((5, 10, 100), 0.2, "pn"), ((5, 9, 100), 0.2, "pu"), ((5, 9, 100), None, "pn"),
        ((5, 9, 100), 1.0, "pn"), ((5, 0, 100), 0.2, "pu"), ((5, 0, 100), None, None),
        ((0, 5, 100), 0.2, None), ((5, 0, 100), 1.0, None), ((5, 5, 0), 0.2, "pn"),
    ],
)  # fmt: skip
def test_the_method_of_a_curve(sizes, prior, method):
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), sizes))
    known = None if prior is None else ClassPrior.known(prior)
    if method is None:
        with pytest.raises(ValueError):
            _roc_method("auto", roles, known)
    else:
        assert _roc_method("auto", roles, known) == method


# --- scorers and folds ----------------------------------------------------------------------------


class Fixed:
    def __init__(self, classes, **answers):
        self.classes_ = np.array(classes)
        for name, values in answers.items():
            setattr(self, name, lambda X, values=values: np.asarray(values))


def test_scores_of_any_estimator_rise_with_the_positive_class():
    table = [[0.2, 0.8], [0.6, 0.4]]
    assert _scores_of(Fixed([0, 1], decision_function=[1, 2]), None, 1).tolist() == [1, 2]
    assert _scores_of(Fixed([1, 2], decision_function=[1, 2]), None, 1).tolist() == [-1, -2]
    assert _scores_of(Fixed([0, 1], predict_proba=table), None, 1).tolist() == [0.8, 0.4]
    assert _scores_of(Fixed([1, 2], predict_proba=table), None, 1).tolist() == [0.2, 0.6]
    assert _scores_of(Fixed([1, 2], predict=[1, 2]), None, 1).tolist() == [1, 2]
    both = Fixed([0, 1], predict_proba=table, decision_function=[5, 6], predict=[0, 1])
    assert _scores_of(both, None, 1).tolist() == [5, 6]
    with pytest.raises(ValueError, match="without the positive label 3"):
        _scores_of(Fixed([0, 1], predict_proba=table), None, 3)
    with pytest.raises(TypeError, match="has no decision_function"):
        _scores_of(Fixed([0, 1]), None, 1)


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


@pytest.mark.parametrize("shuffle", [False, True])
def test_folds_by_role_are_scikit_learns_folds_of_the_roles(shuffle):
    options = {"shuffle": shuffle, "random_state": 3 if shuffle else None}
    ours = list(RoleStratifiedKFold(4, **options).split(SCORES, Y))
    codes = np.nan_to_num(Y, nan=-1).astype(int)
    theirs = list(StratifiedKFold(4, **options).split(SCORES, codes))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a[1], b[1])
    one = [list(RoleStratifiedKFold(2, shuffle=True, random_state=s).split(SCORES, Y, SCORES))
           for s in (0, 0, 1)]  # fmt: skip
    np.testing.assert_array_equal(one[0][0][1], one[1][0][1])
    assert not np.array_equal(one[0][0][1], one[2][0][1])


def test_random_splits_by_role_are_scikit_learns_splits_of_the_roles():
    codes = np.nan_to_num(Y, nan=-1).astype(int)
    options = {"test_size": 0.25, "train_size": 0.5, "random_state": 2}
    ours = list(RoleStratifiedShuffleSplit(3, **options).split(SCORES, Y))
    theirs = list(StratifiedShuffleSplit(3, **options).split(SCORES, codes))
    assert len(ours) == 3
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(np.sort(a[0]), np.sort(b[0]))
        np.testing.assert_array_equal(np.sort(a[1]), np.sort(b[1]))


def test_a_role_that_rounding_left_out_of_a_side_gets_one_row():
    codes = np.array([1, 1, 0, 0, 0, -1, -1], np.int8)
    train, test = _both_sides(codes, [0, 1, 2, 3, 5], [4, 6])
    assert (sorted(train), sorted(test)) == ([1, 2, 3, 5], [0, 4, 6])
    train, test = _both_sides(codes, [0, 2], [1, 3, 4, 5, 6])
    assert (sorted(train), sorted(test)) == ([0, 2, 5], [1, 3, 4, 6])
    same = _both_sides(codes, [0, 2, 5], [1, 3, 6])
    assert [part.tolist() for part in same] == [[0, 2, 5], [1, 3, 6]]


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


# --- what auto and an unsure prior come to --------------------------------------------------------


def drawn(n_u, seed=0, sizes=(25, 30)):
    """(y, scores) with 30% positives among the unlabelled rows."""
    rng = np.random.default_rng(seed)
    hidden = np.arange(n_u) < 0.3 * n_u
    scores = np.r_[rng.normal(1, 1, sizes[0]), rng.normal(0, 1, sizes[1]), rng.normal(hidden, 1)]
    return np.repeat([1.0, 0.0, np.nan], [*sizes, n_u]), scores


def test_auto_takes_unlabelled_rows_where_they_cut_a_tenth_of_the_width():
    ratios = []
    for n_u in (5, 10, 15, 20, 30, 60, 150):
        for seed in range(3):
            y, scores = drawn(n_u, seed, (40, 15))
            auto, both, alone = (
                metrics.auc_estimate(y, scores, 0.3, m) for m in ("auto", "combined", "pn")
            )
            ratio = (both.high - both.low) / (alone.high - alone.low)
            assert auto.method == ("combined" if ratio <= 0.9 else "pn")
            expected = both if ratio <= 0.9 else alone
            assert (auto.value, auto.low, auto.high) == (
                expected.value,
                expected.low,
                expected.high,
            )
            told = "help little" if ratio > 0.95 else "cut the width"
            assert any(told in note and f"{ratio:.2f}" in note for note in both.notes)
            assert ("combined" in auto.notes[0]) is (ratio <= 0.9)
            ratios.append(ratio)
    close = np.sort(np.abs(np.array(ratios) - 0.9))
    assert close[0] < 0.02  # some near the limit, on both sides
    assert min(ratios) < 0.9 < 0.95 < max(ratios)


def test_an_unsure_prior_is_summed_over_its_nodes():
    """21 of them: the mean, and the mean variance with the spread of the estimates."""
    y, scores = drawn(300)
    prior = ClassPrior(0.3, 0.24, 0.36, 0.95, 0.03, "estimated by hand")
    found = metrics.auc_estimate(y, scores, prior, "pu")
    shares, mass = prior.nodes(21)
    at = [metrics.auc_estimate(y, scores, float(share), "pu") for share in shares]
    values = np.array([a.unbiased for a in at])
    assert ((values > 0) & (values < 1)).all()
    assert found.value == pytest.approx(mass @ values, rel=1e-6)
    variance = mass @ ([a.std_error**2 for a in at] + (values - mass @ values) ** 2)
    assert found.std_error == pytest.approx(np.sqrt(variance), rel=1e-6)
    assert found.low < min(a.low for a in at) + 0.05
    assert found.prior_std_error == 0.03
    assert found.unbiased == pytest.approx(metrics.auc_estimate(y, scores, 0.3, "pu").unbiased)
