"""Tests of committee/estimator."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info, threadpool_limits

from pnuauc import AUCClassifier, AutoAUCClassifier
from pnuauc._utils import threads as _threads
from pnuauc._utils.stored import Parts
from pnuauc.baselines import LabeledOnly, RankSVM
from pnuauc.committee import MEMBERS, Committee, find_reasons
from pnuauc.committee import estimator as _estimator
from pnuauc.committee.members import Situation
from pnuauc.datasets import make_banana, make_thresholds, make_twonorm, sample_pnu
from pnuauc.exceptions import (
    ModelFileError,
)
from pnuauc.metrics import make_auc_scorer
from tests.committee.samples import SETTINGS, auto, drawn, rebuilt


def _draws(n_p, n_n, n_levels=40):
    """Three draws of two good columns; three of the same beside a category that says nothing."""
    X, y = make_banana(4000, random_state=0)
    codes = np.random.default_rng(1).integers(0, n_levels, len(y))
    for table in (X, np.hstack([X, np.eye(n_levels)[codes]])):
        for seed in range(3):
            yield sample_pnu(table, y, n_p, n_n, 800, prior=0.2, random_state=seed)


@pytest.mark.slow
def test_a_category_of_noise_costs_the_ranking_little():
    """Mean of three draws: at most .05 of AUC (each level as a column of deviation 1: .09)."""
    aucs = []
    for s in _draws(20, 80):
        model = AutoAUCClassifier(prior=0.2, cv=0, random_state=0).fit(s.X, s.y)
        aucs.append(roc_auc_score(s.y_test, model.decision_function(s.X_test)))
    plain, beside = np.mean(aucs[:3]), np.mean(aucs[3:])
    assert plain > 0.85
    assert beside > plain - 0.05


def text(sample):
    """Sparse non-negative rows with the same meaning."""
    return tuple(
        sparse.csr_matrix(np.maximum(np.hstack([X, -X]), 0.0)) for X in (sample.X, sample.X_test)
    )


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.PnuaucWarning")
@pytest.mark.slow
def test_check_estimator():
    # two folds: fewer fits, the same promises
    reason = "weights are odds of having been labelled: what is stated rests on them, no fit does"
    expected = dict.fromkeys(
        (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        reason,
    )
    model = AutoAUCClassifier(cv=2, random_state=0, verbose=False)
    check_estimator(model, on_skip=None, on_fail="raise", expected_failed_checks=expected)


@pytest.mark.parametrize("setting", SETTINGS)
def test_ranks_well_with_any_roles(fitted, setting):
    sample, model = fitted[setting]
    # twonorm with five columns has a best AUC of .92; U with 80% negatives teaches N little
    least = 0.65 if setting == "NU" else 0.8
    assert roc_auc_score(sample.y_test, model.decision_function(sample.X_test)) > least
    assert {m.name for m in model.members_} <= set(MEMBERS)
    assert all(m.why and 0.5 <= m.auc_with <= 1 for m in model.members_)


@pytest.mark.parametrize("setting", SETTINGS)
def test_probabilities_never_fall_as_scores_grow(fitted, setting):
    sample, model = fitted[setting]
    order = np.argsort(model.decision_function(sample.X_test))
    p = model.predict_proba(sample.X_test)[order, 1]
    low, high = model.predict_proba_interval(sample.X_test)[order].T
    assert (np.diff(p) >= -1e-12).all()
    assert (low <= high).all()
    assert (low >= 0).all()
    assert (high <= 1).all()
    np.testing.assert_allclose(model.predict_proba(sample.X_test).sum(axis=1), 1.0)


def test_probabilities_of_u_have_the_prior_as_their_mean(fitted):
    sample, model = fitted["PNU"]
    p = model.predict_proba(sample.X[sample.y == -1])[:, 1]
    # the grid of places and 2,001 quantiles leave a rounding error well below this margin
    assert p.mean() == pytest.approx(0.2, abs=0.02)


@pytest.mark.slow
def test_scaling_and_shifting_columns_changes_nothing(fitted):
    sample, model = fitted["PNU"]
    factor, offset = np.array([1e-3, 5.0, 100.0, 1.0, 2.0]), np.array([0.0, 1e4, -3.0, 7.0, 0.0])
    other = auto()
    other.fit(sample.X * factor + offset, sample.y)
    again = other.decision_function(sample.X_test * factor + offset)
    # thresholds of trees are compared in single precision, so a few rows may change leaves
    assert spearmanr(again, model.decision_function(sample.X_test)).statistic > 0.999


def test_label_codes_do_not_matter(fitted):
    sample, model = fitted["PNU"]
    words = np.array(["?", "no", "yes"])[sample.y + 1]
    codes = {"positive_label": "yes", "negative_label": "no", "unlabeled_label": "?"}
    other = auto(**codes).fit(sample.X, words)
    np.testing.assert_array_equal(
        other.decision_function(sample.X_test), model.decision_function(sample.X_test)
    )
    assert set(other.predict(sample.X_test)) == {"no", "yes"}


def test_missing_cells_are_ranked_and_can_carry_the_signal():
    rng = np.random.RandomState(0)
    y = (rng.uniform(size=600) < 0.3).astype(int)
    X = rng.standard_normal((600, 3))
    X[(y == 1) & (rng.uniform(size=600) < 0.8), 0] = np.nan
    labels = np.where(np.arange(600) < 80, y, -1)
    model = auto(prior=0.3, cv=0)
    model.fit(X, labels)
    scores = model.decision_function(X[80:])
    # the gap alone tells 80% of the positives: an AUC of .9
    assert np.isfinite(scores).all()
    assert roc_auc_score(y[80:], scores) > 0.85
    committee = rebuilt(model.scorer_, 3)
    np.testing.assert_allclose(
        committee.score(X) - model.threshold_, model.decision_function(X), atol=1e-12
    )


@pytest.mark.parametrize("sizes", [(10, 30, 300), (12, 0, 300)])
@pytest.mark.slow
def test_sparse_rows(sizes):
    sample = drawn(*sizes)
    train, test = text(sample)
    model = auto()
    model.fit(train, sample.y)
    assert {"logistic", "latent", "words"} <= {m.name for m in model.members_}
    assert roc_auc_score(sample.y_test, model.decision_function(test)) > 0.75
    again = rebuilt(model.scorer_, train.shape[1])
    np.testing.assert_allclose(
        again.score(test) - model.threshold_, model.decision_function(test), atol=1e-12
    )
    reasons = model.reasons(test[:3])
    assert [len(r) for r in reasons] == [3, 3, 3]


@pytest.mark.parametrize("width", [1, 1500])
@pytest.mark.slow
def test_one_column_and_more_columns_than_rows(width):
    rng = np.random.RandomState(0)
    y = (rng.uniform(size=400) < 0.4).astype(int)
    X = rng.standard_normal((400, width))
    X[:, 0] += 3.0 * y
    X[:, : max(1, width // 10)] += 1.5 * y[:, None]
    labels = np.where(np.arange(400) < 60, y, -1)
    model = auto(prior=0.4, cv=0)
    model.fit(X, labels)
    assert roc_auc_score(y[60:], model.decision_function(X[60:])) > 0.9


@pytest.mark.slow
def test_many_labels_bring_boosting_and_learned_weights():
    X, y = make_thresholds(3000, table=1, random_state=0)
    sample = sample_pnu(X, y, 150, 450, 500, 0.3, 0, n_test=1000)
    model = auto(prior=0.3)
    model.fit(sample.X, sample.y)
    weight = {m.name: m.weight for m in model.members_}
    assert {"kernels", "trees", "boosting", "logistic"} == set(weight)
    # rules of thresholds: what trees can see must weigh more than what they cannot
    assert weight["trees"] + weight["boosting"] > 2 * (weight["kernels"] + weight["logistic"])
    again = rebuilt(model.scorer_, X.shape[1]).score(sample.X_test) - model.threshold_
    np.testing.assert_allclose(again, model.decision_function(sample.X_test), atol=1e-12)


def test_fewer_unlabelled_rows_can_be_asked_for():
    sample = drawn()
    first, second = (auto(cv=0, max_unlabeled=50).fit(sample.X, sample.y) for _ in range(2))
    scores = first.decision_function(sample.X_test)
    np.testing.assert_array_equal(second.decision_function(sample.X_test), scores)


def test_bad_requests_get_a_sentence():
    sample = drawn()
    for settings_, words in [
        ({"members": ["oracle"]}, "no member 'oracle'"),
        ({"members": ["latent"]}, "None of the members"),
        ({"cv": 1}, "cv must be"),
    ]:
        with pytest.raises(ValueError, match=words):
            AutoAUCClassifier(prior=0.2, unlabeled_label=-1, **settings_).fit(sample.X, sample.y)
    with pytest.raises(NotFittedError):
        AutoAUCClassifier().predict_proba(sample.X)
    model = auto(prior=0.2, cv=0)
    model.fit(sample.X, sample.y)
    for ask in (model.predict_proba, model.predict_proba_interval):
        with pytest.raises(AttributeError, match="cv=0"):
            ask(sample.X)


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_says_why_it_is_in(name):
    situations = [
        Situation(*roles, 10, is_sparse, n_latent=5, non_negative=True)
        for roles in [(5, 45), (500, 500), (5, 0), (0, 20), (9, 9), (20, 80)]
        for is_sparse in (False, True)
    ]
    answers = [MEMBERS[name].why(s) for s in situations]
    assert MEMBERS[name].name == name
    assert any(answers)
    assert all(a is None or (a and isinstance(a, str)) for a in answers)


def test_reasons_of_a_linear_truth():
    rng = np.random.RandomState(0)
    X, w = rng.standard_normal((6, 4)), np.array([3.0, -1.0, 0.0, 0.5])
    typical = np.array([0.1, 0.2, 0.3, 0.4])
    found = find_reasons(lambda Z: Z @ w, X, typical, 4)
    for row, reasons in zip(X, found, strict=True):
        expected = w * (row - typical)
        assert {r.column: r.effect for r in reasons} == pytest.approx(dict(enumerate(expected)))
        assert [abs(r.effect) for r in reasons] == sorted(
            (abs(r.effect) for r in reasons), reverse=True
        )
        assert all(r.value == row[r.column] and r.typical == typical[r.column] for r in reasons)


def test_reasons_of_columns_that_belong_together():
    X, w = np.array([[1.0, 0.0, 5.0]]), np.array([1.0, 2.0, 0.1])
    found = find_reasons(
        lambda Z: Z @ w, X, np.array([0.0, 1.0, 0.0]), 2, {"kind": [0, 1], "size": [2]}
    )
    assert {r.column: r.effect for r in found[0]} == pytest.approx({"kind": -1.0, "size": 0.5})


def test_reasons_of_sparse_rows_leave_words_out():
    X = sparse.csr_matrix(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
    w = np.array([3.0, 9.0, -1.0])
    first, empty = find_reasons(lambda Z: Z @ w, X, None, 5)
    assert [(r.column, r.effect) for r in first] == [(0, 3.0), (2, -2.0)]
    assert empty == []


@pytest.mark.slow
def test_boosting_counts_as_far_as_held_out_rows_favour_it():
    X, y = make_thresholds(4000, table=7, random_state=0)
    rules = sample_pnu(X, y, 40, 120, 300, 0.3, 0, n_test=0)
    X, y = make_twonorm(4000, n_features=10, random_state=0)
    smooth = sample_pnu(X, y, 40, 120, 300, 0.3, 0, n_test=0)
    weight = {}
    for name, sample in (("rules", rules), ("smooth", smooth)):
        model = auto(prior=0.3)
        model.fit(sample.X, sample.y)
        weight[name] = {m.name: m.weight for m in model.members_}["boosting"]
        assert model.learned_weights_
        quick = model.set_params(cv=0).fit(sample.X, sample.y)
        assert "boosting" not in {m.name for m in quick.members_}  # nothing to judge it by
    assert weight["smooth"] < weight["rules"]


@pytest.mark.parametrize(
    ("n_positive", "leans"), [(9, False), (10, True)], ids=["nine positives", "ten"]
)
@pytest.mark.slow
def test_weights_lean_from_ten_positives_on(n_positive, leans):
    X, y = make_twonorm(2000, n_features=4, random_state=0)
    sample = sample_pnu(X, y, n_positive, 30, 200, 0.2, 0)
    model = AutoAUCClassifier(prior=0.2, unlabeled_label=-1, random_state=0)
    weights = {m.name: m.weight for m in model.fit(sample.X, sample.y).members_}
    fixed = {"kernels": 1.0, "trees": 1.0, "processes": 0.75}
    assert [weights[name] != fixed[name] for name in fixed] == [leans] * 3
    assert ("forest" in weights) == ("linear" in weights) == leans
    assert model.learned_weights_ == leans


def test_the_linear_member_is_a_logistic_regression_of_the_labelled_rows():
    """Against scikit-learn's, on columns squashed by hand; it leads where a straight line does."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 12))
    hidden = X @ rng.standard_normal(12) + 2.0 * rng.standard_normal(600) > 2.0
    y = np.where(np.arange(600) < 90, hidden, -1)
    model = AutoAUCClassifier(prior=0.25, unlabeled_label=-1, random_state=0).fit(X, y)
    (seat,) = (s for s in model.scorer_.seats if s.name == "linear")
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    z = z / np.sqrt(1 + (z / 3) ** 2)
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    plain = LogisticRegression(C=0.1, class_weight="balanced", max_iter=1000)
    plain.fit(z[:90], hidden[:90])
    (part,) = seat.parts
    np.testing.assert_allclose(part.model.coef, plain.coef_[0], rtol=1e-3, atol=1e-4)
    members = {m.name: m for m in model.members_}
    assert members["linear"].auc > members["forest"].auc
    assert members["linear"].weight > 0.5 > 2 * members["forest"].weight


@pytest.mark.slow
def test_held_out_scores_of_noise_are_noise():
    """Weights that saw the rows they are judged by find an AUC of .54 in noise."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((160, 4)), np.repeat([1, 0, -1], [20, 20, 120])
        model = auto(prior=0.3, members=["kernels", "processes"], cv=3, random_state=seed)
        held = model.fit(X, y).held_out_
        found.append(held.auc(held.places(model.fold_weights_)))
    # the AUC of 20 and 20 rows scatters by .09: 2.5 standard errors of 40 draws
    assert np.mean(found) < 0.5 + 2.5 * 0.09 / np.sqrt(40)


def test_one_unlabelled_row_gets_a_sentence():
    with pytest.raises(ValueError, match="One unlabelled row"):
        auto().fit(np.arange(12.0)[:, None], [1, 0] * 5 + [1, -1])


def test_rows_that_are_all_labelled_are_placed_among_rows_no_model_knows():
    """Among rows that trees have learned held-out ones stand where no random rows could."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = (rng.random(400) < 0.3).astype(int)
        X = rng.standard_normal((400, 5)) + 0.3 * y[:, None]
        model = auto(members=["trees"], cv=3, random_state=seed).fit(X, y)
        assert model.posterior_.misfit > 0.01
        held = model.held_out_
        raw = held.auc(held.places(model.fold_weights_))
        assert model.auc_.value == pytest.approx(raw, abs=0.03)


def test_nothing_is_compared_with_a_ranking_worse_than_chance():
    """The stated AUC is at least 1/2: less a difference from .4, a rival of .65 would have .85."""
    compared = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((160, 4)), np.repeat([1, 0, -1], [20, 20, 120])
        model = auto(members=["kernels"], cv=3, rivals=True, random_state=seed).fit(X, y)
        held = model.held_out_
        is_worse = held.auc(held.places(model.fold_weights_)) < model.auc_.low
        compared.add((is_worse, bool(model.rivals_), model.members_[0].auc is None))
    assert compared == {(True, False, True), (False, True, False)}


@pytest.mark.slow
def test_trees_may_have_columns_of_their_own():
    """What trees alone can see is in the further columns: the others must not read them."""
    rng = np.random.RandomState(0)
    y = (rng.uniform(size=600) < 0.3).astype(int)
    common, own = (
        rng.standard_normal((600, 2)) + y[:, None],
        rng.standard_normal((600, 1)) + 3 * y[:, None],
    )
    own[rng.uniform(size=600) < 0.1] = np.nan
    X, labels = np.c_[common, own], np.where(np.arange(600) < 90, y, -1)
    options = {"prior": 0.3, "cv": 0, "unlabeled_label": -1, "verbose": False, "random_state": 0}
    both = AutoAUCClassifier(n_tree_columns=1, **options).fit(X, labels)
    alone = AutoAUCClassifier(members=["kernels"], **options).fit(common, labels)
    kernels = AutoAUCClassifier(members=["kernels"], n_tree_columns=1, **options).fit(X, labels)
    np.testing.assert_allclose(
        kernels.decision_function(X), alone.decision_function(common), atol=1e-12
    )
    trees = AutoAUCClassifier(members=["trees"], n_tree_columns=1, **options).fit(X, labels)
    assert roc_auc_score(y[90:], trees.decision_function(X[90:])) > 0.9
    assert both.scorer_.views == ("kernels", "trees")
    spec, arrays = json.loads(json.dumps(both.scorer_.spec())), both.scorer_.arrays()
    again = Committee.from_parts(Parts(spec, arrays), {"kernels": 2, "trees": 1})
    np.testing.assert_array_equal(again.score(X), both.scorer_.score(X))
    for widths in ({"kernels": 2, "trees": 2}, {"kernels": 2, "trees": 0}):
        with pytest.raises(ModelFileError):
            Committee.from_parts(Parts(spec, arrays), widths)
    for bad in (-1, 3):
        with pytest.raises(ValueError, match="n_tree_columns"):
            AutoAUCClassifier(n_tree_columns=bad, **options).fit(X, labels)


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


@pytest.mark.parametrize("kind", [AUCClassifier, AutoAUCClassifier])
@pytest.mark.slow
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
    assert max(expected.values()) > 1.0  # an estimate outside [0, 1] is moved inside
    expected = {name: np.clip(value, 0.0, 1.0) for name, value in expected.items()}
    for name, left_out in (("pu", 0), ("nu", 1), ("pn", -1)):
        keep = y != left_out
        codes = np.where(y == -1, np.nan, y)[keep]
        assert model.score(X[keep], codes) == pytest.approx(expected[name])
        assert model.score(X[keep], codes, np.ones(keep.sum())) == pytest.approx(expected[name])
        # weights are of labelled rows
        drawn = np.random.default_rng(1).integers(1, 4, keep.sum())
        count = np.where(np.isnan(codes), 1, drawn)
        twice = model.score(X[keep].repeat(count, axis=0), codes.repeat(count))
        assert model.score(X[keep], codes, count) == pytest.approx(twice)
    scorer = make_auc_scorer(prior=0.2)
    assert model.score(X, y) == pytest.approx(np.clip(scorer(model, X, y), 0.0, 1.0))
    assert model.score(X, y) != pytest.approx(expected["pn"])


BOTH = ("blas", "openmp")


def threads(*libraries):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] in libraries]


@pytest.fixture
def two():
    with threadpool_limits(2):
        before = threads(*BOTH)
        if set(before) != {2}:
            pytest.skip("the libraries have one thread only")
        yield before
        assert threads(*BOTH) == before


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.slow
def test_a_fit_of_few_rows_uses_one_thread(monkeypatch, two, few):
    """From its members on; `two` checks that the limit is lifted afterwards."""
    monkeypatch.setattr(_threads, "FEW_ROWS", 60 if few else 59)
    rng = np.random.default_rng(0)
    seen = {}

    def look(stage):
        seen.setdefault(stage, set(threads(*BOTH)))

    fit_members = _estimator.fit_members
    monkeypatch.setattr(
        _estimator, "fit_members", lambda *args: look("members") or fit_members(*args)
    )
    X, labels = rng.normal(size=(60, 2)), [1] * 10 + [0] * 10 + [None] * 40
    AutoAUCClassifier(prior=0.2, members=["trees"], cv=2).fit(X, labels)
    assert seen["members"] == ({1} if few else {2})
