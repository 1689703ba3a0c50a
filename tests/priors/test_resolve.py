"""Tests of priors/resolve."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from pnuauc.datasets import GENERATORS, make_twonorm, sample_pnu
from pnuauc.labels import read_roles
from pnuauc.priors import PlacementPrior
from pnuauc.priors.resolve import resolve_prior


def sample(n_p, n_n, n_u=300, prior=0.2, seed=0):
    X, y = make_twonorm(4000, random_state=seed)
    return sample_pnu(X, y, n_p, n_n, n_u, prior, seed)


def roles_of(s):
    return read_roles(s.y, unlabeled_label=-1)


@pytest.mark.parametrize("base", [BaseEstimator, object])
def test_a_given_estimator_is_cloned_and_foreign_ones_see_numbers(base) -> None:
    class Foreign(base):
        def fit(self, X, y):
            self.prior_ = float(np.isnan(y).mean()) / 10
            return self

    s = sample(30, 30, 240)
    model = Foreign()
    prior, fitted = resolve_prior(model, s.X, roles_of(s))
    assert prior.value == pytest.approx(0.08)
    assert not hasattr(model, "prior_")
    again, nothing = resolve_prior(fitted, s.X, roles_of(s))
    assert again == prior
    assert nothing is None


def model(**parameters):
    shared = {"unlabeled_label": -1, "random_state": 0, "on_unidentified": "ignore"}
    return PlacementPrior(**(shared | parameters))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer_and_another_one_nearly() -> None:
    X, y = GENERATORS["waveform"](3000, random_state=0)
    s = sample_pnu(X, y, 60, 60, 600, 0.2, 0)
    first, again, other = (model(random_state=seed).fit(s.X, s.y).prior_ for seed in (1, 1, 2))
    assert first == again
    assert abs(first - other) < 0.04
    order = np.random.default_rng(0).permutation(len(s.y))
    assert abs(model(random_state=1).fit(s.X[order], s.y[order]).prior_ - first) < 0.04


@pytest.mark.parametrize("sizes", [(2, 0), (2, 5), (5, 0), (3, 3), (12, 0)])
@pytest.mark.slow
def test_few_rows_give_a_modest_number_and_never_a_bold_one(sizes) -> None:
    """Two positives and five negatives once gave "99.9%": here at most half of U, and unsure."""
    X, y = GENERATORS["waveform"](3000, random_state=0)
    for seed in range(3):
        s = sample_pnu(X, y, *sizes, 300, 0.1, seed)
        fitted = model(random_state=seed).fit(s.X, s.y)
        assert fitted.prior_ < 0.5
        assert fitted.interval_[1] - fitted.interval_[0] > 0.1
