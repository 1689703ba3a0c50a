"""Tests of baselines/baselines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse, special, stats
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from pnuauc import AUCClassifier
from pnuauc.baselines import SAMULT, EntropyAUC, GenerativeAUC, RankSVM
from pnuauc.baselines.entropy import PairEntropy, SphericalGaussians
from pnuauc.baselines.everyday import samult_risk
from pnuauc.core import pairs
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.exceptions import LabelReadingWarning, MissingRoleError
from pnuauc.labels import Roles

PAIRWISE = [RankSVM, SAMULT, EntropyAUC, GenerativeAUC]


def small(seed=0, n_positive=5, n_negative=7, n_unlabeled=9, d=3):
    """Rows and labels 1, 0, -1, the classes half a unit apart."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0, -1], [n_positive, n_negative, n_unlabeled])
    shift = np.where(y == 1, 0.5, np.where(y == 0, -0.5, 0.0))
    return rng.normal(size=(len(y), d)) + shift[:, None], y


def margins(X, y, first, second, coef):
    """w'(x - x') for all pairs of two roles, formed."""
    return ((X[y == first][:, None] - X[y == second][None]) @ coef).ravel()


@pytest.mark.parametrize("kind", PAIRWISE)
@pytest.mark.parametrize("basis", ["gaussian", "linear", "identity"])
def test_sparse_rows_give_the_same_scores(kind, basis):
    X, y = small(n_unlabeled=30)
    X[np.abs(X) < 0.6] = 0.0
    settings = {"width": 1.5} if basis == "gaussian" else {}
    if kind is not SAMULT:
        settings["tol"] = 1e-6 if kind is RankSVM else 1e-9
    dense = kind(basis=basis, random_state=0, **settings).fit(X, y)
    thin = kind(basis=basis, random_state=0, **settings).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        thin.decision_function(sparse.csr_matrix(X)),
        dense.decision_function(X),
        atol=1e-2 if kind is RankSVM else 1e-5,  # the hinge's minimum is flat
    )


@pytest.mark.parametrize("kind", [SAMULT, EntropyAUC, GenerativeAUC])
def test_without_negatives_unlabeled_rows_stand_in_and_it_is_said(kind):
    X, y = small()
    X, y = X[y != 0], y[y != 0]
    with pytest.warns(LabelReadingWarning, match="9 unlabelled rows are taken for negatives"):
        found = kind(basis="identity").fit(X, np.where(y == 1, 1.0, np.nan))
    expected = kind(basis="identity").fit(X, np.where(y == 1, 1, 0))
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize("kind", [SAMULT, EntropyAUC, GenerativeAUC, RankSVM])
def test_needs_positives(kind):
    X, y = small()
    with pytest.raises(MissingRoleError, match="positive"):
        kind().fit(X[y != 1], y[y != 1])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RankSVM(pairs="nu"), "pairs"),
        (RankSVM(basis="cubic"), "basis must be"),
        (SAMULT(gamma=1.5), "gamma"),
        (EntropyAUC(entropy_weight=-1.0), "entropy_weight"),
        (GenerativeAUC(generative_model="poisson"), "generative_model"),
        (GenerativeAUC(generative_model="multinomial"), "Negative values"),
        (SAMULT(alpha=-1.0), "alpha"),
    ],
)
def test_bad_settings_are_one_clear_sentence(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*small())


@pytest.mark.parametrize(("kind", "low"), [("pu", -1), ("pn", 0)])
@pytest.mark.parametrize("alpha", [0.003, 0.1, 1.0])
def test_rank_svm_reaches_the_minimum_of_the_quadratic_programme(kind, low, alpha):
    X, y = small()
    differences = (X[y == 1][:, None] - X[y == low][None]).reshape(-1, X.shape[1])
    m = len(differences)
    # libsvm minimises |w|^2/2 + C sum of hinges; each pair enters once with each sign, so no offset
    both, sign = np.r_[differences, -differences], np.repeat([1, -1], m)
    machine = SVC(kernel="linear", C=1 / (4 * alpha * m), tol=1e-8).fit(both, sign)

    def objective(w):
        return np.maximum(0, 1 - differences @ w).mean() + alpha * w @ w

    reference = objective(machine.coef_[0])
    model = RankSVM(kind, basis="identity", alpha=alpha, tol=1e-6).fit(X, y)
    assert model.objective_ == pytest.approx(objective(model.coef_), rel=1e-10)
    assert model.objective_ == pytest.approx(reference, abs=5e-6)
    np.testing.assert_allclose(model.coef_, machine.coef_[0], atol=5e-3)


@pytest.mark.parametrize(("kind", "left_out"), [("pu", 0), ("pn", -1)])
def test_rank_svm_uses_only_its_pairs(kind, left_out):
    X, y = small()
    whole = RankSVM(kind, basis="identity").fit(X, y)
    keep = y != left_out
    part = RankSVM(kind, basis="identity", unlabeled_label=-1).fit(X[keep], y[keep])
    np.testing.assert_allclose(whole.coef_, part.coef_, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
def test_samult_is_ridge_regression_on_formed_pairs(gamma):
    X, y = small()
    rows, weights = [], []
    for first, second, share in ((1, 0, 1 - gamma), (1, -1, gamma), (-1, 0, gamma)):
        pair = (X[y == first][:, None] - X[y == second][None]).reshape(-1, X.shape[1])
        rows.append(pair)
        weights.append(np.full(len(pair), share / len(pair)))
    D, w = np.concatenate(rows), np.concatenate(weights)
    expected = np.linalg.solve((D.T * w) @ D + 0.2 * np.eye(3), (D.T * w).sum(axis=1))
    model = SAMULT(gamma, basis="identity", alpha=0.2).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-10)


scores = st.lists(st.integers(-3, 3), min_size=1, max_size=6).map(np.array)


@given(scores, scores, st.integers(1, 3), st.integers(1, 3))
def test_samult_needs_no_prior_for_the_zero_one_loss(positive, negative, a, b):
    """U made of a copies of P and b of N: the identity is exact, ties included."""
    unlabeled = np.r_[np.tile(positive, a), np.tile(negative, b)]
    found = samult_risk(1.0).value("zero_one", {"P": positive, "N": negative, "U": unlabeled})
    assert found - 0.5 == pytest.approx(pairs.between("zero_one", positive, negative), abs=1e-12)


def test_samult_without_unlabeled_rows_is_pn_auc():
    X, y = small()
    X, y = X[y >= 0], y[y >= 0]
    expected = AUCClassifier(risk="pn", alpha=0.3, random_state=0).fit(X, y)
    found = SAMULT(alpha=0.3, random_state=0).fit(X, y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)


def entropy(m):
    return special.entr(special.expit(m)) + special.entr(special.expit(-m))


def brute_objective(w, X, y, weight, alpha):
    value = np.log1p(np.exp(-margins(X, y, 1, 0, w))).mean() + alpha * w @ w
    for pair in ((1, -1), (-1, 0)):
        value += weight * entropy(margins(X, y, *pair, w)).mean()
    return value


@pytest.mark.parametrize("weight", [1.0, 10.0])
@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_entropy_auc_stops_at_a_minimum_of_the_formed_objective(weight, alpha):
    X, y = small()
    model = EntropyAUC(weight, basis="identity", alpha=alpha, tol=1e-8).fit(X, y)
    arguments = (X, y, weight, alpha)
    assert model.objective_ == pytest.approx(brute_objective(model.coef_, *arguments), rel=1e-9)
    slope = optimize.approx_fprime(model.coef_, brute_objective, 1e-7, *arguments)
    assert np.abs(slope).max() < 1e-5
    nearby = optimize.minimize(brute_objective, model.coef_, arguments, method="Nelder-Mead")
    assert nearby.fun > model.objective_ - 1e-7


def test_entropy_over_many_pairs_equals_the_table():
    rng = np.random.default_rng(0)
    for spread in (0.1, 3.0, 100.0):
        a, b = spread * rng.normal(size=300), spread * rng.normal(size=200)
        m = a[:, None] - b
        table, slope = entropy(m), -m * special.expit(m) * special.expit(-m)
        value, high, low = pairs.between_gradient(PairEntropy(), a, b)
        assert value == pytest.approx(table.mean(), rel=1e-9)
        np.testing.assert_allclose(high, slope.sum(axis=1) / m.size, atol=1e-9 / 300)
        np.testing.assert_allclose(low, -slope.sum(axis=0) / m.size, atol=1e-9 / 200)


@pytest.mark.parametrize("drop", [True, False])
def test_entropy_auc_without_entropy_is_logistic_auc(drop):
    X, y = small()
    expected = AUCClassifier(risk="pn", loss="logistic", basis="identity", tol=1e-9).fit(
        X[y >= 0], y[y >= 0]
    )
    model = EntropyAUC(1.0 if drop else 0.0, basis="identity", tol=1e-9)
    model.fit(*((X[y >= 0], y[y >= 0]) if drop else (X, y)))
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)


def test_gaussian_classes_maximise_the_posterior():
    X, y = small(d=2)
    model = SphericalGaussians().fit(X, Roles(y))
    center, v, d = X.mean(axis=0), X.var(axis=0).mean(), 2
    points = np.array([[0.3, -1.0], [2.0, 0.5]])
    log_density = []
    for label in (1, 0):
        rows = X[y == label]

        def negative_posterior(p, rows=rows):
            mu, tau = p[:2], np.exp(p[2])
            value = 0.5 * d * len(rows) * np.log(tau) - 0.5 * tau * ((rows - mu) ** 2).sum()
            value += 0.5 * d * np.log(tau) - 0.5 * tau * ((mu - center) ** 2).sum()
            return -(value + 0.5 * d * np.log(tau) - 0.5 * d * v * tau)

        best = optimize.minimize(negative_posterior, np.zeros(3), tol=1e-12)
        mu, tau = best.x[:2], np.exp(best.x[2])
        log_density.append(stats.multivariate_normal(mu, np.eye(2) / tau).logpdf(points))
    np.testing.assert_allclose(
        model.log_ratio(points), log_density[0] - log_density[1], rtol=1e-4, atol=1e-5
    )
    thin = SphericalGaussians().fit(sparse.csr_matrix(X), Roles(y))
    np.testing.assert_allclose(thin.log_ratio(sparse.csr_matrix(points)), model.log_ratio(points))


@pytest.mark.parametrize("kind", ["gaussian", "multinomial"])
def test_generative_score_is_the_stated_sum_at_a_minimum(kind):
    X, y = small()
    X = np.abs(X)
    model = GenerativeAUC(2.0, kind, basis="identity", alpha=0.1, tol=1e-8).fit(X, y)
    ratio = model.generative_.log_ratio(X)[:, None] / model.ratio_scale_
    assert model.ratio_scale_ == pytest.approx(ratio.std() * model.ratio_scale_)
    extended = np.c_[X, ratio]
    np.testing.assert_allclose(
        model.decision_function(X) - model.intercept_, extended @ model.coef_, atol=1e-10
    )
    arguments = (extended, y, 2.0, 0.1)
    slope = optimize.approx_fprime(model.coef_, brute_objective, 1e-7, *arguments)
    assert np.abs(slope).max() < 1e-5


def test_the_generative_model_helps_where_it_is_true():
    """Two spherical Gaussians, few labels, many columns: the ratio is the right answer."""
    gains = []
    for seed in range(5):
        X, y = make_twonorm(1500, random_state=seed)
        s = sample_pnu(X, y, 5, 20, 200, prior=0.2, random_state=seed)
        both = [
            roc_auc_score(s.y_test, kind(random_state=0).fit(s.X, s.y).decision_function(s.X_test))
            for kind in (GenerativeAUC, EntropyAUC)
        ]
        gains.append(both[0] - both[1])
    assert np.mean(gains) > 0
