"""Tests of priors/energy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from pnuauc.datasets import GENERATORS, make_twonorm, sample_pnu
from pnuauc.exceptions import (
    PnuaucWarning,
)
from pnuauc.labels import read_roles
from pnuauc.prior import read_prior
from pnuauc.priors import EnergyDistancePrior
from pnuauc.priors.resolve import resolve_prior
from tests.conftest import generated_sample


def test_an_estimator_must_be_fitted_to_be_read() -> None:
    with pytest.raises(ValueError, match="fitted estimator"):
        read_prior(EnergyDistancePrior())
    s = sample(40, 40)
    fitted = EnergyDistancePrior(random_state=0).fit(s.X, s.y)
    assert read_prior(fitted) is fitted.estimate_
    assert fitted.estimate_.value == fitted.prior_
    assert fitted.estimate_.source == "estimated by EnergyDistancePrior"


def sample(n_p, n_n, n_u=300, prior=0.2, seed=0):
    X, y = make_twonorm(4000, random_state=seed)
    return sample_pnu(X, y, n_p, n_n, n_u, prior, seed)


def test_what_cannot_be_told_is_a_warning_where_both_classes_carry_the_fit() -> None:
    """All rows from one law."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((160, 3)), np.repeat([1.0, 0.0, np.nan], [30, 30, 100])
    with pytest.warns(PnuaucWarning, match="not identified"):
        found, _ = resolve_prior(EnergyDistancePrior(), X, read_roles(y), random_state=0)
    assert not found.identified


def draw(name="twonorm", n_p=40, n_n=40, n_u=400, prior=0.2, seed=0, **options):
    return generated_sample(name, (n_p, n_n, n_u), prior, seed, **options)


def brute_force(P, N, U, alpha, statistic):
    def mean(A, B):
        return (cdist(A, B) ** alpha).mean()

    def parts(p_factor, n_factor):
        pp, nn = mean(P, P) * p_factor, mean(N, N) * n_factor
        return mean(N, U) - mean(P, U) + mean(P, N) - nn, 2 * mean(P, N) - pp - nn

    v, u = parts(1, 1), parts(len(P) / (len(P) - 1), len(N) / (len(N) - 1))
    if statistic == "guarded" and u[1] < v[1] / 2:
        share = (v[1] / 2 - u[1]) / (v[1] - u[1])
        return ((1 - share) * u[0] + share * v[0]) / (v[1] / 2)
    chosen = v if statistic == "V" else u
    return chosen[0] / chosen[1]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 50),
    shift=st.floats(-1e6, 1e6),
    scale=st.floats(1e-3, 1e3),
    statistic=st.sampled_from(["U", "V", "guarded"]),
)
def test_energy_ignores_shift_scale_and_order_and_mirrors(seed, shift, scale, statistic) -> None:
    s = draw(n_p=8, n_n=20, n_u=60, seed=seed)
    model = EnergyDistancePrior(statistic=statistic, on_unidentified="ignore", random_state=0)
    value = model.fit(s.X, s.y).diagnostics_[f"estimate_{statistic.lower()}"]
    order = np.random.default_rng(seed).permutation(len(s.y))
    moved = model.fit(s.X[order] * scale + shift, s.y[order])
    margin = 1e-6 + 1e-9 * abs(shift) / scale
    assert moved.diagnostics_[f"estimate_{statistic.lower()}"] == pytest.approx(value, abs=margin)
    swapped = np.where(s.y == -1, -1, 1 - s.y)
    mirrored = model.fit(s.X, swapped).diagnostics_[f"estimate_{statistic.lower()}"]
    assert mirrored == pytest.approx(1 - value, abs=1e-9)


def test_guard_acts_where_the_unbiased_denominator_fails() -> None:
    """Three rows a class of one law: U's denominator is often below 0, the guarded ratio finite."""
    acted = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 2)), np.repeat([1, 0, -1], [3, 3, 54])
        model = EnergyDistancePrior(on_unidentified="ignore", random_state=0).fit(X, y)
        P, N, U = (X[y == c] for c in (1, 0, -1))
        assert model.diagnostics_["estimate_guarded"] == pytest.approx(
            brute_force(P, N, U, 1, "guarded")
        )
        acted += model.diagnostics_["denominator"] <= 0
    assert acted > 10


def test_a_narrow_class_of_five_rows_is_told_apart() -> None:
    """Ringnorm: a permutation test on V-statistics sees it in one draw of seven only."""
    p_values = []
    for seed in range(20):
        s = draw("ringnorm", n_p=5, n_n=45, n_u=50, seed=seed)
        model = EnergyDistancePrior(on_unidentified="ignore", random_state=0).fit(s.X, s.y)
        p_values.append(model.diagnostics_["p_value"])
    assert np.mean(np.array(p_values) <= 0.1) > 0.8


def test_v_statistic_leans_to_the_labelled_share_and_u_does_not() -> None:
    """Labelled half and half, prior .1, five rows a class: V is pulled up, U is not."""
    estimates = {"u": [], "v": []}
    for seed in range(150):
        s = draw(n_p=5, n_n=5, n_u=300, prior=0.1, seed=seed)
        model = EnergyDistancePrior(on_unidentified="ignore", random_state=0).fit(s.X, s.y)
        for kind in "uv":
            estimates[kind].append(model.diagnostics_[f"estimate_{kind}"])
    assert np.mean(estimates["v"]) > 0.16
    assert abs(np.median(estimates["u"]) - 0.1) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_p", "n_n"), [("waveform", 5, 45), ("twonorm", 25, 25), ("banana", 20, 80)]
)
def test_energy_intervals_cover(name: str, n_p: int, n_n: int) -> None:
    """90% intervals hold the truth in 85 to 95% of 400 draws (one error of the count: 1.5%)."""
    X, y = GENERATORS[name](20_000, prior=0.5, random_state=7)
    covered = 0
    for seed in range(400):
        s = sample_pnu(X, y, n_p, n_n, 300, 0.1, seed, unlabeled_draw="binomial", n_test=1)
        model = EnergyDistancePrior(on_unidentified="ignore", random_state=0).fit(s.X, s.y)
        covered += model.interval_[0] <= 0.1 <= model.interval_[1]
    assert 0.85 <= covered / 400 <= 0.95
