"""Tests of selection/choice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pnuauc.core.basis import parse_width
from pnuauc.selection import PAPER_ALPHAS, PAPER_ETAS
from pnuauc.selection.choice import (
    PAPER_WIDTHS,
    Candidates,
    Gain,
    average,
    explain,
    held_out_gain,
    order_of,
    pick,
)
from pnuauc.selection.criterion import (
    Criterion,
)


def test_the_grids_are_those_of_the_paper():
    """Ridges 10^-3 to 10, eta from -.9 to .9 in tenths, widths from 1/8 to 2 medians."""
    np.testing.assert_allclose(PAPER_ALPHAS, 10.0 ** np.arange(-3, 2))
    np.testing.assert_allclose(PAPER_ETAS, np.arange(-9, 10) / 10)
    assert [parse_width(width) for width in PAPER_WIDTHS] == [(2.0**k, True) for k in range(-3, 2)]


def test_ties_go_to_the_simpler_candidate():
    """Smaller abs(eta), then larger ridge, then larger width; risk first, NaN last."""
    candidates = Candidates.from_grid([1.0, 2.0], [-0.5, 0.0, 0.5], [0.1, 1.0])
    order = order_of(np.zeros(12), candidates)
    keys = [
        (abs(p["eta"]), -p["alpha"], -p["width"])
        for p in map(candidates.parameters, order.tolist())
    ]
    assert keys == sorted(keys)
    risks = np.arange(12.0)[::-1].copy()
    risks[11] = np.nan
    np.testing.assert_array_equal(order_of(risks, candidates), [*range(10, -1, -1), 11])
    single = pick(risks, candidates)
    assert (single.kept.tolist(), single.weights.tolist()) == ([10], [1.0])


def test_average_weighs_by_the_excess_risk():
    candidates = Candidates.from_grid([1.0], [0.0], [0.1, 1.0, 10.0, 100.0, 1000.0])
    risks = np.array([[0.2, 0.1, 0.15, 0.1 + 7.5 * 0.02, np.nan]])
    found = average(Criterion("simple", risks, {}, 0.04), candidates, 0.5)
    # exp(-7.5) is below a thousandth of the best and is cut, the others share by exp(-excess / .02)
    assert found.kept.tolist() == [1, 2, 0]
    weights = np.exp(-np.array([0.0, 0.05, 0.1]) / 0.02)
    np.testing.assert_allclose(found.weights, weights / weights.sum())
    sure = average(Criterion("simple", risks, {}, 0.0), candidates, 0.5)
    assert (sure.kept.tolist(), sure.weights.tolist()) == ([1], [1.0])
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="temperature"):
            average(Criterion("simple", risks, {}, 0.1), candidates, wrong)
    with pytest.raises(ValueError, match="No candidate"):
        average(Criterion("simple", np.full((2, 5), np.nan), {}, 0.1), candidates, 0.5)


def a_criterion(seed=0, n_folds=4, gap=0.0):
    """Risks of 12 candidates on some folds; those with eta = 0 lie ``gap`` above the others."""
    candidates = Candidates.from_grid([1.0, 2.0], [-0.5, 0.0, 0.5], [0.1, 1.0])
    rng = np.random.default_rng(seed)
    risks = 0.3 + 0.05 * rng.normal(size=(n_folds, 12)) + gap * (candidates.eta == 0)
    return Criterion("combined", risks, {"all": (0.2, 0.3, 0.5)}, 0.04), candidates


def test_without_a_fold_the_noise_grows_with_what_is_left():
    criterion, _ = a_criterion()
    for k in range(4):
        rest = criterion.without(k)
        np.testing.assert_array_equal(rest.fold_risks, np.delete(criterion.fold_risks, k, axis=0))
        assert rest.noise == pytest.approx(0.04 * np.sqrt(4 / 3))


@pytest.mark.parametrize("gap", [0.0, 0.1, -0.1])
def test_the_gain_is_judged_by_folds_that_did_not_choose(gap):
    """Against loops: weights from the other folds, risks of this one, Nadeau and Bengio's error."""
    criterion, candidates = a_criterion(gap=gap)
    found = held_out_gain(criterion, candidates, 0.7)
    gains = []
    for k in range(4):
        own, risks = (
            criterion.fold_risks[k],
            np.delete(criterion.fold_risks, k, axis=0).mean(axis=0),
        )
        totals = []
        for allowed in (np.ones(12, bool), candidates.eta == 0):
            weights = np.exp(-(risks - risks[allowed].min()) / (0.7 * 0.04 * np.sqrt(4 / 3)))
            weights = np.where(allowed & (weights > 1e-3), weights, 0.0)
            totals.append(weights @ own / weights.sum())
        gains.append(totals[1] - totals[0])
    error = np.std(gains, ddof=1) * np.sqrt(1 / 4 + 1 / 3)
    assert found.value == pytest.approx(np.mean(gains))
    assert found.std_error == pytest.approx(error)
    assert found.clear is bool(abs(np.mean(gains)) > stats.t.ppf(0.975, 3) * error)


def test_the_report_is_read_off_the_validation_risks():
    criterion, candidates = a_criterion()
    risks = criterion.fold_risks.copy()
    risks[:, 3] = np.nan
    criterion = Criterion("combined", risks, {"all": (0.2, 0.3, 0.5)}, 0.04)
    choice = average(criterion, candidates, 1.0)
    report = explain(criterion, candidates, choice, Gain(0.02, 0.01, True))
    mean, error = criterion.mean, criterion.std_error
    for name in ("eta", "width", "alpha"):
        values = getattr(candidates, name)
        assert [point["value"] for point in report.curves[name]] == sorted(set(values))
        for point in report.curves[name]:
            own = np.flatnonzero((values == point["value"]) & ~np.isnan(mean))
            best = own[np.argmin(mean[own])]
            assert point["risk"] == mean[best]
            assert point["std_error"] == error[best]
            weight = sum(
                w for i, w in zip(choice.kept, choice.weights) if values[i] == point["value"]
            )
            assert point["kept"] == pytest.approx(weight)
    best = choice.kept[0]
    near = [p["value"] for p in report.curves["eta"] if p["risk"] <= mean[best] + error[best]]
    assert (report.eta_low, report.eta_high) == (min(near), max(near))
    assert report.eta_mean == pytest.approx(choice.weights @ candidates.eta[choice.kept])
    assert (report.gain, report.gain_std_error) == (0.02, 0.01)
    assert (report.n_dropped, report.noise, report.criterion) == (1, 0.04, "combined")
    assert "2.0 points higher" in report.message
    assert "(standard error 1.0): the unlabelled rows helped." in report.message
    assert "1 of 12 candidates had an empirical risk without a minimum" in report.message
    assert report.to_dict()["criterion_weights"] == {"all": [0.2, 0.3, 0.5]}
    harm = explain(criterion, candidates, choice, Gain(-0.02, 0.01, True))
    assert "rows did harm" in harm.message
    assert "2.0 points lower" in harm.message
    open_ = explain(criterion, candidates, choice, Gain(-0.02, 0.01, False))
    assert "made no clear difference" in open_.message
    assert "cannot be estimated" in explain(criterion, candidates, choice, None).message
    fixed = Candidates.from_grid([1.0, 2.0, 3.0], [0.5], [0.1, 1.0, 2.0, 3.0])
    assert "fixed weight" in explain(criterion, fixed, choice, None).message


@pytest.mark.parametrize("gain", [0.1, -0.1])
def test_a_clear_gain_is_found(gain):
    """Validation risks with a known gain: found where the choice can see it, and not invented."""
    candidates = Candidates.from_grid([1.0], [0.0, 0.5], [0.1, 1.0])
    risks = np.array([0.3, 0.31, 0.3 - gain, 0.31 - gain])
    folds = risks + 0.005 * np.random.default_rng(0).standard_normal((5, 4))
    criterion = Criterion("combined", folds, {"all": (1.0, 0.0, 0.0)}, 0.01)
    found = held_out_gain(criterion, candidates, 0.5)
    # candidates that use U are passed over where they are worse: no harm is done
    assert found.value == pytest.approx(max(gain, 0.0), abs=0.01)
    assert found.clear == (gain > 0)
    assert found.std_error < 0.01
    assert held_out_gain(criterion.among(candidates.eta == 0), candidates, 0.5).value == 0.0
    only = Candidates.from_grid([1.0], [0.5], [0.1, 1.0])
    assert held_out_gain(criterion, only, 0.5) is None
