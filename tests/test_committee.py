"""The default ranker: laws, known truths, and its members one by one."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from pnuauc import AutoAUCClassifier
from pnuauc._committee import MEMBERS, Committee, _estimator
from pnuauc._committee._held_out import (
    HeldOut,
    copies_held_out,
    leaning_weights,
    learned_weights,
    trial_weight,
)
from pnuauc._committee._members import Situation
from pnuauc._committee._processes import average_processes
from pnuauc._committee._ranking import weigh, weigh_apart
from pnuauc._committee._reasons import find_reasons
from pnuauc._committee._views import fit_view
from pnuauc._prior import ClassPrior
from pnuauc._stored import Parts
from pnuauc.datasets import make_thresholds, make_twonorm, sample_pnu
from pnuauc.exceptions import ModelFileError


def drawn(n_positive=6, n_negative=30, n_unlabeled=300, prior=0.2, seed=0):
    X, y = make_twonorm(3000, n_features=5, random_state=seed)
    return sample_pnu(X, y, n_positive, n_negative, n_unlabeled, prior, seed, n_test=500)


def text(sample):
    """Sparse non-negative rows with the same meaning."""
    return tuple(
        sparse.csr_matrix(np.maximum(np.hstack([X, -X]), 0.0)) for X in (sample.X, sample.X_test)
    )


def rebuilt(committee, n_features):
    spec = json.loads(json.dumps(committee.spec()))
    parts = Parts(spec, committee.arrays())
    found = Committee.rebuild(parts, n_features)
    parts.finish()
    return found


@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.PnuaucWarning")
def test_check_estimator():
    # two folds: fewer fits, the same promises
    check_estimator(AutoAUCClassifier(cv=2, random_state=0, verbose=False), on_skip=None)


SETTINGS = {"PNU": (6, 30, 300), "PN": (8, 40, 0), "PU": (12, 0, 300), "NU": (0, 40, 300)}


@pytest.fixture(scope="module")
def fitted():
    """setting -> (sample, model), each fitted once."""
    found = {}
    for name, sizes in SETTINGS.items():
        sample = drawn(*sizes)
        model = AutoAUCClassifier(prior=0.2, unlabeled_label=-1, verbose=False, random_state=0)
        found[name] = (sample, model.fit(sample.X, sample.y))
    return found


@pytest.mark.parametrize("setting", SETTINGS)
def test_ranks_well_with_any_roles(fitted, setting):
    sample, model = fitted[setting]
    # twonorm with five columns has a best AUC of .92; U with 80% negatives teaches N little
    least = 0.65 if setting == "NU" else 0.8
    assert roc_auc_score(sample.y_test, model.decision_function(sample.X_test)) > least
    assert {m.name for m in model.members_} <= set(MEMBERS)
    assert all(m.why and 0.5 <= m.auc_with <= 1 for m in model.members_)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_stored_committee_answers_as_the_fitted_one(fitted, setting):
    sample, model = fitted[setting]
    again = rebuilt(model.scorer_, sample.X.shape[1])
    scores = again.score(sample.X_test)
    np.testing.assert_allclose(
        scores - model.threshold_, model.decision_function(sample.X_test), atol=1e-12
    )
    np.testing.assert_allclose(
        again.probability(scores), model.predict_proba(sample.X_test)[:, 1], atol=1e-12
    )


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


def test_scaling_and_shifting_columns_changes_nothing(fitted):
    sample, model = fitted["PNU"]
    factor, offset = np.array([1e-3, 5.0, 100.0, 1.0, 2.0]), np.array([0.0, 1e4, -3.0, 7.0, 0.0])
    other = AutoAUCClassifier(prior=0.2, unlabeled_label=-1, verbose=False, random_state=0)
    other.fit(sample.X * factor + offset, sample.y)
    again = other.decision_function(sample.X_test * factor + offset)
    # thresholds of trees are compared in single precision, so a few rows may change leaves
    assert spearmanr(again, model.decision_function(sample.X_test)).statistic > 0.999


def test_the_order_of_rows_hardly_matters(fitted):
    sample, model = fitted["PNU"]
    order = np.random.RandomState(1).permutation(len(sample.y))
    other = AutoAUCClassifier(prior=0.2, unlabeled_label=-1, verbose=False, random_state=0)
    other.fit(sample.X[order], sample.y[order])
    # other centres, folds and trees: the same ranking but for that chance
    assert (
        spearmanr(
            other.decision_function(sample.X_test), model.decision_function(sample.X_test)
        ).statistic
        > 0.95
    )


def test_label_codes_do_not_matter(fitted):
    sample, model = fitted["PNU"]
    words = np.array(["?", "no", "yes"])[sample.y + 1]
    other = AutoAUCClassifier(
        prior=0.2,
        positive_label="yes",
        negative_label="no",
        unlabeled_label="?",
        verbose=False,
        random_state=0,
    ).fit(sample.X, words)
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
    model = AutoAUCClassifier(prior=0.3, cv=0, unlabeled_label=-1, verbose=False, random_state=0)
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
def test_sparse_rows(sizes):
    sample = drawn(*sizes)
    train, test = text(sample)
    model = AutoAUCClassifier(prior=0.2, unlabeled_label=-1, verbose=False, random_state=0)
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
def test_one_column_and_more_columns_than_rows(width):
    rng = np.random.RandomState(0)
    y = (rng.uniform(size=400) < 0.4).astype(int)
    X = rng.standard_normal((400, width))
    X[:, 0] += 3.0 * y
    X[:, : max(1, width // 10)] += 1.5 * y[:, None]
    labels = np.where(np.arange(400) < 60, y, -1)
    model = AutoAUCClassifier(prior=0.4, cv=0, unlabeled_label=-1, verbose=False, random_state=0)
    model.fit(X, labels)
    assert roc_auc_score(y[60:], model.decision_function(X[60:])) > 0.9


def test_many_labels_bring_boosting_and_learned_weights():
    X, y = make_thresholds(3000, table=1, random_state=0)
    sample = sample_pnu(X, y, 150, 450, 500, 0.3, 0, n_test=1000)
    model = AutoAUCClassifier(prior=0.3, unlabeled_label=-1, verbose=False, random_state=0)
    model.fit(sample.X, sample.y)
    weight = {m.name: m.weight for m in model.members_}
    assert {"kernels", "trees", "boosting", "logistic"} == set(weight)
    # rules of thresholds: what trees can see must weigh more than what they cannot
    assert weight["trees"] + weight["boosting"] > 2 * (weight["kernels"] + weight["logistic"])
    again = rebuilt(model.scorer_, X.shape[1])
    np.testing.assert_allclose(
        again.score(sample.X_test) - model.threshold_,
        model.decision_function(sample.X_test),
        atol=1e-12,
    )


def test_fewer_unlabelled_rows_can_be_asked_for():
    sample = drawn()
    model = AutoAUCClassifier(
        prior=0.2, cv=0, max_unlabeled=50, unlabeled_label=-1, verbose=False, random_state=0
    ).fit(sample.X, sample.y)
    again = AutoAUCClassifier(
        prior=0.2, cv=0, max_unlabeled=50, unlabeled_label=-1, verbose=False, random_state=0
    ).fit(sample.X, sample.y)
    np.testing.assert_array_equal(
        model.decision_function(sample.X_test), again.decision_function(sample.X_test)
    )


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
    model = AutoAUCClassifier(prior=0.2, cv=0, unlabeled_label=-1, verbose=False, random_state=0)
    model.fit(sample.X, sample.y)
    for ask in (model.predict_proba, model.predict_proba_interval):
        with pytest.raises(AttributeError, match="cv=0"):
            ask(sample.X)


# --- members --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_says_why_it_is_in(name):
    situations = [
        Situation(*roles, 10, is_sparse, non_negative=True)
        for roles in [
            (5, 45, 1000),
            (500, 500, 1000),
            (5, 0, 1000),
            (0, 20, 100),
            (9, 9, 0),
            (20, 80, 99),
        ]
        for is_sparse in (False, True)
    ]
    answers = [MEMBERS[name].why(s) for s in situations]
    assert MEMBERS[name].name == name
    assert any(answers)
    assert all(a is None or (a and isinstance(a, str)) for a in answers)


def test_somebody_always_sits():
    for roles in [(2, 2, 0), (5, 45, 1000), (2, 0, 10), (0, 2, 10), (5000, 5000, 0)]:
        for is_sparse in (False, True):
            situation = Situation(*roles, 1, is_sparse)
            assert any(member.why(situation) for member in MEMBERS.values())


def test_processes_agree_with_the_formula():
    """One kernel at a time by plain linear algebra, weighted by the evidence of all."""
    rng = np.random.RandomState(0)
    X, positive = rng.standard_normal((12, 3)), np.arange(12) < 5
    new = rng.standard_normal((4, 3))
    t = np.where(positive, 1.0, -1.0)
    t -= t.mean()
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    median = np.median(distance[np.triu_indices(12, 1)])
    to_new = np.linalg.norm(new[:, None] - X, axis=2)
    found = []
    for width in (0.25, 0.5, 1.0, 2.0, 4.0):
        s = width * median
        found.append((np.exp(-(distance**2) / (2 * s * s)), np.exp(-(to_new**2) / (2 * s * s))))
        found.append((np.exp(-distance / s), np.exp(-to_new / s)))
    unit = np.trace(X @ X.T) / 12
    found.append((X @ X.T / unit, new @ X.T / unit))
    means, evidences = [], []
    for K, k in found:
        for noise in (1e-2, 1e-1, 1.0, 10.0):
            C = K + noise * np.eye(12)
            means.append(k @ np.linalg.solve(C, t))
            scale = t @ np.linalg.solve(C, t) / 12
            evidences.append(-6 * np.log(scale) - np.linalg.slogdet(C)[1] / 2)
    weight = np.exp(np.array(evidences) - max(evidences))
    expected = (weight / weight.sum()) @ np.array(means)
    model = average_processes({"filled": X}, positive)["filled"]
    # kernels of negligible weight are left out
    np.testing.assert_allclose(model.score(new), expected, atol=1e-5)


def test_every_array_of_a_committee_is_asked_for(fitted):
    """A file that lacks any one part, or holds one more, is refused."""
    _, model = fitted["PNU"]
    spec, arrays = model.scorer_.spec(), model.scorer_.arrays()
    for name in arrays:
        less = {k: v for k, v in arrays.items() if k != name}
        with pytest.raises(ModelFileError):
            Committee.rebuild(Parts(json.loads(json.dumps(spec)), less), 5)
    parts = Parts(spec, {**arrays, "more": np.zeros(1)})
    Committee.rebuild(parts, 5)
    with pytest.raises(ModelFileError, match="does not write"):
        parts.finish()
    with pytest.raises(ModelFileError):
        Committee.rebuild(Parts(spec, arrays), 6)


# --- views ------------------------------------------------------------------------------------


def test_view_by_hand():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    X[::7, 1] = np.nan
    view = fit_view(X, 0)
    z = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    np.testing.assert_allclose(view.standard(X), z, atol=1e-12)
    gap = np.isnan(X[:, 1]).astype(float)
    filled = np.c_[np.nan_to_num(z), (gap - gap.mean()) / gap.std()]
    np.testing.assert_allclose(view.filled(X), filled, atol=1e-12)
    bent = filled / np.sqrt(1 + (filled / 3) ** 2)
    bent = (bent - bent.mean(axis=0)) / bent.std(axis=0)
    np.testing.assert_allclose(view.squashed(X), bent, atol=1e-10)
    covariance = np.cov(view.components(X).T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)


def test_columns_of_any_size_are_looked_at():
    X = np.c_[np.linspace(-1e300, 1e300, 50), np.full(50, 3.3), np.linspace(0, 1e-300, 50)]
    view = fit_view(X, 0)
    for look in (view.standard, view.filled, view.squashed, view.unit):
        assert np.isfinite(look(X)).all()


# --- weights and reasons ----------------------------------------------------------------------


def test_learned_weights_prefer_the_better_member():
    rng = np.random.RandomState(0)
    codes = np.repeat(np.array([1, 0], dtype=np.int8), 200)
    good, bad = codes + rng.standard_normal(400), rng.standard_normal(400)
    scores = np.column_stack([good, bad])
    weight = learned_weights(HeldOut(codes, scores, np.zeros(400, dtype=int), [scores]))
    assert weight[0] > 5 * weight[1] >= 0
    assert weight.sum() == pytest.approx(2.0)


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


# --- a member on trial, and a table in two views ------------------------------------------------


def test_boosting_counts_as_far_as_held_out_rows_favour_it():
    X, y = make_thresholds(4000, table=7, random_state=0)
    rules = sample_pnu(X, y, 40, 120, 300, 0.3, 0, n_test=0)
    X, y = make_twonorm(4000, n_features=10, random_state=0)
    smooth = sample_pnu(X, y, 40, 120, 300, 0.3, 0, n_test=0)
    weight = {}
    for name, sample in (("rules", rules), ("smooth", smooth)):
        model = AutoAUCClassifier(prior=0.3, unlabeled_label=-1, verbose=False, random_state=0)
        model.fit(sample.X, sample.y)
        weight[name] = {m.name: m.weight for m in model.members_}["boosting"]
        assert model.learned_weights_
        quick = model.set_params(cv=0).fit(sample.X, sample.y)
        assert "boosting" not in {m.name for m in quick.members_}  # nothing to judge it by
    assert weight["smooth"] < 0.8 < weight["rules"]


def test_leaning_weights_by_hand():
    """AUCs of 1, .5 and 0: e^(.5 / .08) is cut at e^2; a member on trial is left alone."""
    codes = np.array([1, 1, 0, 0], dtype=np.int8)
    scores = np.array([[2.0, 0, 1, 5], [2, 0, 1, 0], [1, 0, 2, 1], [1, 0, 2, 3]])
    held_out = HeldOut(codes, scores, np.zeros(4, dtype=int), [scores])
    found = leaning_weights(held_out, np.array([1.0, 1.0, 0.75, 3.0]), [3], None)
    np.testing.assert_allclose(found, [np.exp(2), 1.0, 0.75 * np.exp(-2), 3.0])
    near = scores.copy()
    near[:, 0] = [2.0, 1, 1, 1]  # AUC .75 beside .5
    held_out = HeldOut(codes, near, np.zeros(4, dtype=int), [near])
    found = leaning_weights(held_out, np.ones(4), [2, 3], None)
    np.testing.assert_allclose(found, [np.exp(0.125 / 0.08), np.exp(-0.125 / 0.08), 1.0, 1.0])


@pytest.mark.parametrize(
    ("n_positive", "leans"), [(9, False), (10, True)], ids=["nine positives", "ten"]
)
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


def test_held_out_scores_of_noise_are_noise():
    """Weights that saw the rows they are judged by find an AUC of .54 in noise."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((160, 4)), np.repeat([1, 0, -1], [20, 20, 120])
        model = AutoAUCClassifier(
            prior=0.3,
            members=["kernels", "processes"],
            cv=3,
            unlabeled_label=-1,
            random_state=seed,
        )
        found.append(model.fit(X, y).members_[0].auc_with)
    # the AUC of 20 and 20 rows scatters by .09: 2.5 standard errors of 40 draws
    assert np.mean(found) < 0.5 + 2.5 * 0.09 / np.sqrt(40)


def test_a_fold_is_weighed_by_the_others():
    """Own weights, a member on trial by the rows of other folds, by hand; k's labels are unseen."""
    rng = np.random.default_rng(0)
    codes = np.tile(np.array([1, 0, 0, -1], dtype=np.int8), 30)
    fold = np.repeat(np.arange(3), 40)
    scores = rng.standard_normal((120, 3)) + 0.5 * (codes == 1)[:, None]
    held_out = HeldOut(codes, scores, fold, [scores[fold == k] for k in range(3)])
    members = [MEMBERS[name] for name in ("kernels", "trees", "boosting")]
    situation = Situation(30, 60, 30, 3, False)
    known = ClassPrior.known(0.2)
    whole, _ = weigh(members, held_out, situation, known)
    apart = weigh_apart(members, held_out, situation, known)
    other = codes.copy()
    other[fold == 1] = np.where(codes[fold == 1] == 1, 0, np.where(codes[fold == 1] == 0, 1, -1))
    swapped = HeldOut(other, scores, fold, held_out.reference)
    np.testing.assert_array_equal(weigh_apart(members, swapped, situation, known)[1], apart[1])
    rest = fold != 1
    alone = HeldOut(codes[rest], scores[rest], fold[rest], held_out.reference)
    assert apart[1, :2].tolist() == [1.0, 1.0]  # those do not lean, whatever the other folds say
    assert apart[1, 2] == trial_weight(alone, np.ones(3), 2, known)
    many = replace(situation, n_positive=400, n_negative=400)
    np.testing.assert_allclose(
        weigh_apart(members, held_out, many, known)[1], learned_weights(alone), rtol=1e-12
    )
    np.testing.assert_array_equal(weigh_apart(members[:1], held_out, many, known), np.ones((3, 1)))
    assert not np.allclose(apart[1], whole)
    # places: of fold 1's positives among fold 1's reference, both by fold 1's weights
    total = (scores * apart[1]).sum(axis=1)
    others = total[fold == 1]
    expected = [(others < s).mean() / 2 + (others <= s).mean() / 2 for s in total[codes == 1]]
    mine = (fold == 1)[codes == 1]
    positive, _ = held_out.places(apart)
    np.testing.assert_allclose(positive[mine], np.array(expected)[mine])
    # together: among the references of all folds, each brought to mean 0 and deviation 1
    joined = HeldOut(codes, scores, fold, held_out.reference, together=True)
    sums = (scores * apart[fold]).sum(axis=1)
    scaled = sums.copy()
    for k in range(3):
        scaled[fold == k] = (sums[fold == k] - sums[fold == k].mean()) / sums[fold == k].std()
    expected = [(scaled < s).mean() / 2 + (scaled <= s).mean() / 2 for s in scaled]
    for found, code in zip(joined.places(apart), (1, 0), strict=True):
        by_fold = [np.array(expected)[(fold == k) & (codes == code)] for k in range(3)]
        np.testing.assert_allclose(found, np.concatenate(by_fold))
    # a class that is in one fold only: nothing to weigh by without it
    lonely = np.where(fold == 2, codes, np.where(codes == 1, 0, codes)).astype(np.int8)
    kept = HeldOut(lonely, scores, fold, held_out.reference)
    np.testing.assert_array_equal(weigh_apart(members, kept, situation, known)[2], np.ones(3))


def test_trial_weight_by_hand():
    codes = np.array([1, 1, 0, 0, 0, 0], dtype=np.int8)
    good, bad = np.array([3.0, 2.0, 1.0, 0.0, 0.5, 0.2]), np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    behind = np.array([3.0, 0.45, 1.0, 0.0, 0.5, 0.2])  # 6 of 8 pairs in order
    ahead = HeldOut(codes, np.c_[behind, good], np.zeros(6, dtype=int), [np.zeros((0, 2))])
    assert trial_weight(ahead, np.ones(2), 1, None) == 8.0
    close = np.r_[np.arange(30.0) + 30, np.arange(30.0)]  # one pair of 900 out of order
    close[[0, 59]] = 29.5, 29.7
    many = np.repeat(np.array([1, 0], dtype=np.int8), 30)
    near = HeldOut(
        many, np.c_[np.arange(60.0)[::-1], close], np.zeros(60, dtype=int), [np.zeros((0, 2))]
    )
    assert trial_weight(near, np.ones(2), 1, None) == pytest.approx(np.exp(-1 / 900 / 0.05))
    for alone, expected in [(good, 1.0), (bad, 0.0), (behind, 0.0)]:
        held_out = HeldOut(codes, np.c_[good, alone], np.zeros(6, dtype=int), [np.zeros((0, 2))])
        assert trial_weight(held_out, np.ones(2), 1, None) == pytest.approx(expected)


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


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_copies_are_counted_within_their_fold(kind):
    """By brute force: rows of the same fold with the same content."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (30, 3)).astype(float)
    folds = [rng.permutation(30)[:8], np.array([], dtype=int), np.arange(5)]
    wanted = [sum((X[i] == X[j]).all() for j in rows) for rows in folds for i in rows]
    assert copies_held_out(kind(X), folds).tolist() == wanted
    assert copies_held_out(kind(X), []).tolist() == []


def test_labelled_copies_are_placed_as_their_like_in_u(monkeypatch):
    """Of four identical positives each counts 1/4 where it was held out, 3/4 where U has it."""
    sample = drawn(n_positive=12)
    X = sample.X.copy()
    copies = np.flatnonzero(sample.y == 1)[:4]
    X[copies] = X[copies[0]]
    seen = {}

    def noted(positive, negative, prior, n_rarer, counts):
        seen.update(places=(positive, negative), counts=counts)
        return kept(positive, negative, prior, n_rarer, counts)

    kept = _estimator.calibrate
    monkeypatch.setattr(_estimator, "calibrate", noted)
    model = AutoAUCClassifier(prior=0.2, unlabeled_label=-1, verbose=False, random_state=0)
    model.fit(X, sample.y)
    (positive, negative), (ones, zeros) = seen["places"], seen["counts"]
    assert sorted(ones.tolist()) == [0.25] * 4 + [0.75] * 4 + [1.0] * 8
    assert zeros.tolist() == [1.0] * len(negative) == [1.0] * 30
    at = model.scorer_.places(model.scorer_.score(X[copies]))
    np.testing.assert_allclose(positive[12:], at)
    assert len(set(positive[:12][ones[:12] == 0.25])) == 1  # held out together, one place
