"""Priors from one labelled class and U: optimality, brute force, laws of the placement model."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from pnuauc.datasets import GENERATORS, make_twonorm, sample_pnu
from pnuauc.priors import ClassPrior, PearsonPrior, PenalizedL1Prior, PlacementPrior
from pnuauc.priors._placement import _bin_counts, placement_posterior

SHARES = np.array([0.1, 0.4, 0.9])


def features(seed=0, n_p=40, n_u=120, b=9):
    rng = np.random.default_rng(seed)
    p, u = rng.uniform(0.2, 1, size=(n_p, b)), rng.uniform(0, 0.9, size=(n_u, b))
    return p.mean(axis=0), u


def objective(coef, mean_p, u, share, alpha, conjugate):
    r = u @ coef - 1
    return share * (mean_p @ coef - 1) - conjugate(r).mean() - alpha * coef @ coef / 2


@pytest.mark.parametrize("alpha", [0.01, 0.3])
@pytest.mark.parametrize("model", [PenalizedL1Prior(), PearsonPrior(n_iterations=4000)])
def test_coefficients_maximise_the_penalised_divergence(model, alpha) -> None:
    """A bounded quasi-Newton search from the answer and from 0 finds nothing better."""
    mean_p, u = features()
    answer = model._solve(mean_p, u, SHARES, alpha)
    assert answer.min() >= 0
    for coef, share in zip(answer.T, SHARES, strict=True):

        def loss(a, share=share):
            return -objective(a, mean_p, u, share, alpha, model._conjugate)

        for start in (coef, np.zeros_like(coef)):
            found = minimize(loss, start, method="L-BFGS-B", bounds=[(0, None)] * len(coef))
            assert loss(coef) <= found.fun + 1e-6 * (1 + abs(found.fun))


def test_penalised_l1_equals_the_printed_formula() -> None:
    """sum_l max(0, beta_l) beta_l / alpha - t + 1 on the rows that were fitted."""
    mean_p, u = features()
    model, alpha = PenalizedL1Prior(), 0.02
    coef = model._solve(mean_p, u, SHARES, alpha)
    for a, t in zip(coef.T, SHARES, strict=True):
        beta = t * mean_p - u.mean(axis=0)
        printed = (np.maximum(beta, 0) * beta).sum() / alpha - t + 1
        ours = t * (mean_p @ a - 1) - model._conjugate(u @ a - 1).mean()
        assert ours == pytest.approx(printed)


@pytest.mark.parametrize("model", [PenalizedL1Prior(), PearsonPrior()])
def test_conjugate_is_the_supremum_over_ratios_up_to_one(model) -> None:
    ratio = np.linspace(0, 1, 10_001)
    f = 1 - ratio if isinstance(model, PenalizedL1Prior) else (ratio - 1) ** 2 / 2
    for r in (-1, -0.6, 0, 0.5, 3):
        assert model._conjugate(np.array(r)) == pytest.approx((ratio * r - f).max(), abs=1e-6)


def test_separated_classes_are_counted() -> None:
    """No overlap: matching and placement find the share up to the noise of P (nP = 150)."""
    X, y = make_twonorm(6000, random_state=0)
    X = X + 3 * (2 * y[:, None] - 1)
    s = sample_pnu(X, y, 150, 0, 800, 0.35, 0)
    for model in (PenalizedL1Prior, PearsonPrior, PlacementPrior):
        fitted = model(unlabeled_label=-1, random_state=0).fit(s.X, s.y)
        assert abs(fitted.prior_ - 0.35) < 0.1


# --- placements ---------------------------------------------------------------------------------


def scores(prior, shift, seed, n_p=100, n_u=1000, spread=1.0):
    """P ~ N(0, 1); N ~ N(-shift, spread^2): a binormal ROC curve, as the model has it."""
    rng = np.random.default_rng(seed)
    positive = rng.uniform(size=n_u) < prior
    u = np.where(positive, rng.standard_normal(n_u), rng.normal(-shift, spread, size=n_u))
    return rng.standard_normal(n_p), u


@pytest.mark.parametrize(
    ("prior", "shift", "margin"),
    [(0.1, 2.5, 0.03), (0.2, 1.5, 0.04), (0.5, 2.5, 0.06), (0.9, 3.0, 0.13)],
)
def test_placement_finds_the_prior_of_its_own_model_and_covers(prior, shift, margin) -> None:
    values, covered = [], 0
    for seed in range(60):
        posterior, _, _ = placement_posterior(
            *scores(prior, shift, seed), n_draws=8, random_state=seed
        )
        found = ClassPrior.from_posterior(*posterior, level=0.9)
        values.append(found.value)
        covered += found.low <= prior <= found.high
    assert abs(np.mean(values) - prior) < margin  # a posterior mean: pulled down near 1
    assert covered >= 0.75 * 60  # 90% nominal; three errors of the count below


def test_placement_ignores_monotone_maps_and_order() -> None:
    p, u = scores(0.3, 1.5, 0)
    first = placement_posterior(p, u, random_state=0)[0]
    mapped = placement_posterior(np.exp(p), np.exp(u), random_state=0)[0]
    np.testing.assert_allclose(first.weights, mapped.weights)
    shuffled = placement_posterior(p[::-1], np.roll(u, 17), random_state=0)[0]
    np.testing.assert_allclose(first.weights, shuffled.weights)


def test_bins_count_each_unlabelled_row_once_and_agree_with_brute_force() -> None:
    p, u = scores(0.3, 1.0, 1, n_p=57, n_u=200)
    places, counts = _bin_counts(p, u, np.random.RandomState(0))
    edges = np.sort(p)[::-1][places - 1]
    expected = [np.sum(u > edges[0])]
    expected += [np.sum((u <= a) & (u > b)) for a, b in pairwise(edges)]
    expected += [np.sum(u <= edges[-1])]
    np.testing.assert_array_equal(counts, expected)
    _, tied = _bin_counts(np.zeros(57), np.zeros(200), np.random.RandomState(0))
    assert tied.sum() == 200
    assert np.count_nonzero(tied) > 5  # ties spread over the bins instead of filling one


@pytest.mark.parametrize("n_positive", [2, 5, 12])
def test_few_positives_still_give_a_number_or_a_sentence(n_positive: int) -> None:
    X, y = GENERATORS["ringnorm"](3000, random_state=0)
    s = sample_pnu(X, y, n_positive, 0, 300, 0.2, 0)
    model = PlacementPrior(unlabeled_label=-1, random_state=0, on_unidentified="ignore")
    model.fit(s.X, s.y)
    unsure = model.interval_[1] - model.interval_[0] > 0.1  # so few rows cannot say much
    assert unsure or not model.diagnostics_["identified"]
    for scorer in ("kernel", "linear"):
        model.set_params(scorers=(scorer,)).fit(s.X, s.y)
        assert 0 < model.prior_ < 1


def test_forest_scorer_ignores_the_scale_of_columns() -> None:
    X, y = make_twonorm(3000, random_state=0)
    s = sample_pnu(X, y, 60, 0, 300, 0.2, 0)
    model = PlacementPrior(scorers=("forest",), unlabeled_label=-1, random_state=0)
    stretched = s.X * np.logspace(-6, 6, 20, base=2)  # powers near two keep most splits exact
    assert model.fit(s.X, s.y).prior_ == pytest.approx(model.fit(stretched, s.y).prior_, abs=0.02)
