"""compare_auc: against brute force, DeLong's paired test, and simulation under no difference."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError
from pnuauc.metrics import auc_estimate, compare_auc
from pnuauc.priors import ClassPrior
from tests.conftest import wins


def make(seed, n_p=25, n_n=40, n_u=300, prior=0.3, gap=0.3, digits=None):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n_u) < prior
    truth = np.concatenate([np.ones(n_p), np.zeros(n_n), hidden])
    signal = rng.normal(truth, 1.0)
    a, b = (signal + rng.normal(0, s, len(truth)) for s in (0.5, 0.5 + gap))
    if digits is not None:
        a, b = np.round(a, digits), np.round(b, digits)
    return np.repeat([1.0, 0.0, np.nan], [n_p, n_n, n_u]), a, b


def brute(y, a, b, method, prior):
    """Difference and its variance from the matrices of pairs, projections subtracted row-wise."""
    groups = {"p": y == 1, "n": y == 0, "u": np.isnan(y)}
    left, right, slope = {
        "pn": ("p", "n", 1.0),
        "pu": ("p", "u", 1 / (1 - prior)),
        "nu": ("u", "n", 1 / prior),
    }[method]
    d = slope * (wins(a[groups[left]], a[groups[right]]) - wins(b[groups[left]], b[groups[right]]))
    rows, columns = d.mean(1), d.mean(0)
    return d.mean(), rows.var(ddof=1) / len(rows) + columns.var(ddof=1) / len(columns)


@pytest.mark.parametrize("digits", [None, 0])
@pytest.mark.parametrize("method", ["pn", "pu", "nu"])
def test_singles_equal_brute_force(method, digits):
    y, a, b = make(0, digits=digits)
    result = compare_auc(y, a, b, 0.3, method)
    difference, variance = brute(y, a, b, method, 0.3)
    assert result.difference == pytest.approx(difference, abs=1e-12)
    assert result.std_error**2 == pytest.approx(variance, rel=1e-9)
    assert result.value_a == pytest.approx(auc_estimate(y, a, 0.3, method).value)
    assert result.value_b == pytest.approx(auc_estimate(y, b, 0.3, method).value)
    assert (result.p_value < 0.05) == (not result.low <= 0 <= result.high)
    json.dumps(result.to_dict())


def test_pn_equals_delongs_paired_variance():
    """Independent form: rankdata placements, 2 x 2 covariance matrices."""
    y, a, b = make(1)
    p, n = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    v10, v01 = [], []
    for s in (a, b):
        ranks = stats.rankdata(np.concatenate([s[p], s[n]]))
        v10.append((ranks[: len(p)] - stats.rankdata(s[p])) / len(n))
        v01.append(1 - (ranks[len(p) :] - stats.rankdata(s[n])) / len(p))
    matrix = np.cov(v10) / len(p) + np.cov(v01) / len(n)
    contrast = np.array([1.0, -1.0])
    expected = contrast @ matrix @ contrast
    assert abs(compare_auc(y, a, b, method="pn").std_error ** 2 - expected) < 1e-12


def test_pu_p_value_needs_no_prior():
    y, a, b = make(2)
    raw = compare_auc(y, a, b, method="pu")
    assert raw.method == "pu_raw"
    assert "No prior" in " ".join(raw.notes)
    for prior in (0.1, 0.6, (0.1, 0.5)):
        known = compare_auc(y, a, b, prior, "pu")
        assert known.p_value == pytest.approx(raw.p_value)
        if isinstance(prior, float):
            assert known.difference == pytest.approx(raw.difference / (1 - prior))
        else:  # the mean of 1 / (1 - prior) over the interval's distribution, a little above at .3
            assert 1 / 0.7 < known.difference / raw.difference < 1.1 / 0.7
    pu_rows = y != 0
    auto = compare_auc(y[pu_rows], a[pu_rows], b[pu_rows])
    assert auto.p_value == pytest.approx(raw.p_value)


def test_antisymmetry_and_identity():
    y, a, b = make(3)
    for method in ("pn", "pu", "nu", "combined"):
        one, other = (compare_auc(y, *pair, 0.3, method) for pair in ((a, b), (b, a)))
        assert one.difference == pytest.approx(-other.difference)
        assert one.p_value == pytest.approx(other.p_value)
        same = compare_auc(y, a, np.exp(a), 0.3, method)
        assert (same.difference, same.p_value) == (0.0, 1.0)


def test_combined_is_never_wider_than_the_best_single():
    for seed in range(20):
        y, a, b = make(seed)
        best = min(compare_auc(y, a, b, 0.3, m).std_error for m in ("pn", "pu", "nu"))
        assert compare_auc(y, a, b, 0.3, "combined").std_error <= best * (1 + 1e-9)


@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined"])
def test_level_of_the_test_under_no_difference(method):
    """600 draws of two equally good models: 5% tests reject 2.2 to 7.8% (3.2 binomial errors)."""
    rejected = 0
    for seed in range(600):
        y, a, b = make(1000 + seed, gap=0.0)
        rejected += compare_auc(y, a, b, 0.3, method).p_value < 0.05
    assert 0.022 <= rejected / 600 <= 0.078


def test_a_difference_without_variance_is_not_called_certain():
    result = compare_auc([1, 1, 0, 0], [4, 3, 2, 1], [1, 2, 3, 4])
    assert (result.difference, result.p_value, result.low, result.high) == (1.0, 1.0, -1.0, 1.0)
    assert any("no variance" in note for note in result.notes)


def test_bad_input():
    y, a, b = make(0)
    with pytest.raises(PriorNotIdentifiedError):
        compare_auc(y, a, b, method="combined")
    with pytest.raises(ValueError, match="scores_b has 3 rows"):
        compare_auc(y, a, b[:3])
    with pytest.raises(MissingRoleError):
        compare_auc(y[y == 1], a[y == 1], b[y == 1])
    with pytest.raises(ValueError, match="method must be"):
        compare_auc(y, a, b, method="best")


@pytest.mark.parametrize("width", [0.02, 0.25])
def test_values_subtract_and_priors_that_the_scores_refute_do_not_count(width):
    """Positives and U alone, scores that part the classes, a prior of .3 that may be .1 or .5.

    Under shares far above that of U's positives both models would rank better than perfectly. The
    first model's value is the one that it has by itself (margin .02: there only its own scores
    refute priors), and the mean over all priors, each value moved inside [0, 1], would be higher.
    """
    rng = np.random.default_rng(5)
    hidden = rng.random(400) < 0.3
    y = np.r_[np.ones(25), np.full(400, np.nan)]
    z = np.r_[np.ones(25, dtype=bool), hidden]
    a, b = (rng.normal(size=425) + 2.2 * z for _ in range(2))
    prior = ClassPrior.from_interval(0.3 - width, min(0.3 + width, 0.6))
    found = compare_auc(y, a, b, prior)
    assert found.difference == pytest.approx(found.value_a - found.value_b)
    assert found.low <= found.difference <= found.high
    alone = auc_estimate(y, a, prior)
    assert found.value_a == pytest.approx(alone.value, abs=0.02)
    shares, mass = prior.nodes()
    raw = auc_estimate(y, a, method="pu_raw").value
    naive = mass @ np.clip((raw - shares / 2) / (1 - shares), 0, 1)
    assert naive - found.value_a > (0.02 if width == 0.25 else -0.005)
