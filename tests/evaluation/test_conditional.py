"""Tests of evaluation/conditional."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pnuauc import ClassPrior
from pnuauc.core.ranks import moments_of, raw_to_auc
from pnuauc.evaluation.conditional import (
    Conditional,
    conditionals,
    mixture_limits,
    role_extremes,
)
from pnuauc.exceptions import PriorRefutedError
from pnuauc.metrics import (
    ScoreCounts,
    auc_estimate,
)
from pnuauc.tuning import INTERVALS
from tests.conftest import gaussian_scores

REFUTED = INTERVALS.refuted.value
USUAL, USUAL_ROWS = INTERVALS.usual.value, INTERVALS.usual_rows.value


def at_each(*parts):
    """(value, apart, spread, df) of each prior."""
    return Conditional(*np.array(parts, dtype=float).T)


def conditional(moments, prior, weights, inflation=1.0):
    """(value, apart, spread, df) at one prior."""
    found = conditionals(moments, np.array([prior]), np.array(weights), inflation)
    return tuple(float(part[0]) for part in vars(found).values())


def limits(part, level):
    """Of one prior, or None."""
    low, high = at_each(part).limits(level)[:, 0]
    return None if np.isnan(low) else (low, high)


PN = (1.0, 0.0, 0.0)


@pytest.mark.parametrize("turned", [False, True])
def test_a_known_prior_is_refuted_only_where_it_is_far_beyond(turned):
    """Every pair won: the estimate at 1 or above, its limits those of .95, then of .999, then none.

    Turned round, every pair is lost, and all is mirrored.
    """
    y = np.repeat([1.0, np.nan], [12, 60])
    scores = np.r_[np.arange(100.0, 112.0), np.arange(60.0)] * (-1 if turned else 1)
    moments = moments_of(ScoreCounts.from_rows(y, scores))
    seen = set()
    for prior in np.linspace(0.0, 0.5, 26).tolist():
        part = conditional(moments, prior, np.eye(3)[1])
        both = [limits(part, level) for level in (0.95, REFUTED)]
        seen.add(tuple(ends is None for ends in both))
        if both[1] is None:
            with pytest.raises(PriorRefutedError):
                auc_estimate(y, scores, prior, "pu")
            continue
        found = auc_estimate(y, scores, prior, "pu")
        low, high = both[0] or both[1]
        end = 0.0 if turned else 1.0
        assert (found.value, found.std_error) == (end, 0.0)
        assert (found.low, found.high) == (min(low, end), max(high, end))
        assert found.unbiased == pytest.approx(end + (end - 0.5) * prior / (1 - prior))
        assert any(f"nearest AUC is {end:.0f}" in note for note in found.notes) is (prior > 0)
        words = "Every pair is misranked" if turned else "Not one pair is misranked"
        assert any(words in note for note in found.notes) is (prior == 0)
        assert sum("misranked" in note for note in found.notes) == (prior == 0)
        wide = auc_estimate(y, scores, prior, "pu", 0.9995)
        assert (wide.low, wide.high) == pytest.approx(
            (min(limits(part, 0.9995)[0], end), max(limits(part, 0.9995)[1], end))
        )
    assert seen == {(False, False), (True, False), (True, True)}


def drawn(sizes, seed=0, prior=0.3):
    y, scores, _ = gaussian_scores(seed, sizes, prior, 1.0, digits=1)
    ends = np.cumsum(sizes)[:-1]
    return y, scores, np.split(scores, ends)


@pytest.mark.parametrize("method", ["pu", "nu", "combined"])
def test_an_unsure_prior_is_mixed_over_its_nodes(method):
    """Value and error: means over 21 nodes, weighed by what each keeps, and their scatter."""
    y, scores, _ = drawn((15, 20, 90))
    prior = ClassPrior(0.3, 0.2, 0.4, 0.95, 0.06, "estimated")
    found = auc_estimate(y, scores, prior, method, 0.9, variance_factor=1.4)
    moments = moments_of(ScoreCounts.from_rows(y, scores))
    weights = np.array([found.weights.get(name, 0.0) for name in ("pn", "pu", "nu")])
    shares, mass = prior.nodes(21)
    parts = conditionals(moments, shares, weights, 1.4)
    low, high, kept = mixture_limits(parts, mass, 0.9)
    inside = np.clip(parts.value, 0, 1)
    value = min(max(kept @ inside, low), high)
    raw = np.nan_to_num(raw_to_auc(shares)[0]) * weights
    rows = 1.4 * np.einsum("ki,ij,kj->k", raw, moments.by_role.sum(axis=0), raw)
    error = np.sqrt(kept @ (rows + (inside - kept @ inside) ** 2))
    assert (found.value, found.low, found.high, found.std_error) == pytest.approx(
        (value, min(low, value), max(high, value), error)
    )
    assert found.unbiased == pytest.approx(conditional(moments, 0.3, weights)[0])
    assert (found.prior, found.prior_std_error) == (0.3, 0.06)
    assert sum(found.weights.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("prior", [0.05, 0.3, 0.7])
def test_variances_of_the_two_extremes_follow_from_the_prior(prior):
    """Against 200,000 rows of each role: classes alike (one uniform) and classes apart."""
    rng = np.random.default_rng(0)
    n = 200_000
    hidden = rng.random(n) < prior
    for shift, matrix in ((0.0, role_extremes(prior)[0]), (2.0, role_extremes(prior)[1])):
        p, neg = rng.random(n) + shift, rng.random(n)
        u = rng.random(n) + shift * hidden
        y = np.repeat([1.0, 0.0, np.nan], n)
        moments = moments_of(ScoreCounts.from_rows(y, np.concatenate([p, neg, u])))
        assert np.abs(n * moments.by_role - matrix).max() < 0.002


@given(st.floats(-0.2, 1.2), st.floats(0, 0.01), st.floats(1e-3, 0.5), st.sampled_from([3.0, 20.0]))
@settings(max_examples=100, deadline=None)
def test_a_mixture_of_two_like_priors_has_the_limits_of_one(value, apart, spread, df):
    part = (value, apart, spread, df)
    closed = limits(part, 0.95) or limits(part, REFUTED)
    mixed = mixture_limits(at_each(part, part), np.array([0.3, 0.7]), 0.95)
    # where all but the last chance is outside [0, 1], either may call it refuted
    if closed is None or mixed is None:
        assert closed == mixed or value < 0 or value > 1
        return
    # an estimate above 1 refutes what is next to 1, too; there the mixture goes on to the end,
    # unless it refutes every AUC at .95: then the wider limits of that prior stand in as they are
    if limits(part, 0.95) is None and mixed[:2] == pytest.approx(closed):
        return
    low, high = (0.0 if value < 0 else closed[0]), (1.0 if value > 1 else closed[1])
    assert mixed[0] == pytest.approx(low, abs=0.004)
    assert mixed[1] == pytest.approx(high, abs=0.004)


def projected(role, prior, apart, draws=20_001):
    """Raw projections of (PN, PU, NU) on evenly spaced rows of a role, and their masses.

    Classes alike: every placement is one uniform variable. Apart: positives beat negatives, and
    placements within the own class are uniform.
    """
    v = (np.arange(draws) + 0.5) / draws
    zero, one = np.zeros(draws), np.ones(draws)

    def rows(f_p, f_n):
        f_u = prior * f_p + (1 - prior) * f_n
        return {
            "P": [f_n, f_u, zero], "N": [1 - f_p, zero, 1 - f_u], "U": [zero, 1 - f_p, f_n]
        }[role]  # fmt: skip

    if not apart:
        return np.array(rows(v, v)), one / draws
    positive, negative = np.array(rows(v, one)), np.array(rows(zero, v))
    if role == "U":
        mass = np.r_[prior * one, (1 - prior) * one] / draws
        return np.concatenate([positive, negative], axis=1), mass
    return (positive if role == "P" else negative), one / draws


def by_hand(moments, prior, weights, inflation):
    """(value, apart, spread, df), one role after the other."""
    at = prior
    slope = np.array([1.0, 1 / (1 - at), 1 / at])
    offset = np.array([0.0, 0.5 * at / (1 - at), 0.5 * (1 - at) / at])
    value = sum(w * (s * r - o) for w, s, r, o in zip(weights, slope, moments.raw, offset) if w)
    raw = np.array([w * s if w else 0.0 for w, s in zip(weights, slope)])
    fewest = min(n for n in moments.n if n)
    a = (min(max(value, 0.0), 1.0) * fewest + 0.5) / (fewest + 1)
    total_apart = total_spread = above = below = 0.0
    for r, (role, n) in enumerate(zip("PNU", moments.n)):
        alike, apart = (_variance(raw, *projected(role, at, side)) for side in (False, True))
        if n == 0 or alike + apart < 1e-9:
            continue
        seen = n * raw @ moments.by_role[r] @ raw
        span = alike - apart
        if span > 1e-6:
            rows = 4 * a * (1 - a) * n if n > 1 else 0.0
            k = min(max((seen - apart) / (4 * a * (1 - a) * span), 0.0), 3.0)
            k = 3.0 if n == 1 else (rows * k + USUAL_ROWS * USUAL) / (rows + USUAL_ROWS)
            base, rise = apart, 4 * k * span
        else:
            rows = n if n > 1 else 0
            base = (rows * seen + USUAL_ROWS * max(apart, alike)) / (rows + USUAL_ROWS)
            rise = 0.0
        total_apart, total_spread = total_apart + base / n, total_spread + rise / n
        part = (base + rise * a * (1 - a)) / n
        above += part
        below += part**2 / (n - 1 + USUAL_ROWS) if n > 1 else 0.0
    df = above**2 / below if below > 0 else np.inf
    return value, inflation * total_apart, inflation * total_spread, df


def _variance(raw, values, mass):
    found = raw @ values
    return mass @ (found - mass @ found) ** 2


@pytest.mark.parametrize(
    "sizes",
    [
        *[(12, 30, 200), (1, 40, 300), (25, 1, 90), (9, 14, 1), (1, 1, 5)],
        *[(2, 40, 300), (25, 2, 90), (9, 14, 2), (2, 2, 2)],
    ],
)
@pytest.mark.parametrize("prior", [0.1, 0.45, 0.6])
@pytest.mark.parametrize(
    "weights", [(1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0), (0.3, 0.5, 0.2), (0.8, 0.6, -0.4)]
)
def test_the_variance_of_an_estimate_by_hand(sizes, prior, weights):
    """Also with one or two rows of a role, and where U scatters more with the classes apart."""
    y, scores, _ = gaussian_scores(3, sizes, prior, distance=1.3, digits=1)
    moments = moments_of(ScoreCounts.from_rows(y, scores))
    made = conditional(moments, prior, weights, 1.5)
    expected = by_hand(moments, prior, weights, 1.5)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("df", [4.0, np.inf])
def test_limits_hold_every_auc_within_t_errors(df):
    """Against a fine grid of [0, 1]: which a have (value - a)^2 <= t^2 V(a)?"""
    grid = np.linspace(0, 1, 100_001)
    t = stats.t.ppf(0.95, df) if np.isfinite(df) else stats.norm.ppf(0.95)
    variances = [(0.0, 0.05), (0.002, 0.01), (0.001, 0.0)]
    cases = [(v, *s, df) for v in (-0.2, -0.01, 0.0, 0.4, 1.0, 1.02, 1.2) for s in variances]
    found = at_each(*cases).limits(0.9)
    for ends, (value, apart, spread, _) in zip(found.T, cases, strict=True):
        inside = grid[(value - grid) ** 2 <= t**2 * (apart + spread * grid * (1 - grid)) + 1e-15]
        expected = (inside[0], inside[-1]) if len(inside) else (np.nan, np.nan)
        assert ends == pytest.approx(expected, abs=2e-5, nan_ok=True)


@pytest.mark.parametrize("value", [-0.3, -0.05, 0.5, 1.05, 1.3])
def test_confidence_never_falls_along_the_aucs(value):
    """It is t((a - value) / sqrt(V(a))), but for what lies behind an estimate outside [0, 1]."""
    grid = np.linspace(0, 1, 501)
    found = at_each((value, 0.0005, 0.05, 12.0)).distribution(grid)[0]
    plain = stats.t.cdf((grid - value) / np.sqrt(0.0005 + 0.05 * grid * (1 - grid)), 12)
    assert (np.diff(found) >= 0).all()
    if 0 <= value <= 1:
        np.testing.assert_allclose(found, plain)
    elif value < 0:
        np.testing.assert_allclose(found, [plain[k:].min() for k in range(501)])
    else:
        np.testing.assert_allclose(found, [plain[: k + 1].max() for k in range(501)])


def test_limits_under_several_priors_are_quantiles_of_the_mixture():
    parts = [(0.7, 0.001, 0.004, 30.0), (0.8, 0.002, 0.003, 20.0)]
    mass = np.array([0.3, 0.7])
    low, high, kept = mixture_limits(at_each(*parts), mass, 0.9)
    np.testing.assert_allclose(kept, mass, atol=1e-3)
    below = kept @ at_each(*parts).distribution(np.array([low, high]))
    assert below == pytest.approx([0.05, 0.95], abs=2e-3)
    # an estimate far above 1 under one prior: that prior keeps what confidence lies inside
    above = (1.3, 0.001, 0.0, 50.0)
    _, _, kept = mixture_limits(at_each(parts[0], above), mass, 0.9)
    assert kept[0] > 0.999
    assert mixture_limits(at_each(above), np.ones(1), 0.9) is None
