"""Tests of evaluation/compare."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from pnuauc import ClassPrior, compare_auc
from pnuauc.evaluation.compare import LabeledPairs, compare_counted, holm
from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError
from pnuauc.labels import Roles, read_roles
from pnuauc.metrics import auc_estimate
from tests.conftest import gaussian_scores, wins

Y, SCORES, _ = gaussian_scores(0, (15, 20, 80), 0.3, digits=1)

OTHER = np.round(SCORES + np.random.default_rng(1).normal(0, 0.8, len(SCORES)), 1)

ROLES = read_roles(Y)


def of_roles(letters, *columns):
    """Roles and columns of the rows of P, N, U that ``letters`` names."""
    kept = np.concatenate([ROLES.by_letter[letter] for letter in letters])
    return Roles(ROLES.codes[kept]), *(column[kept] for column in columns)


@pytest.mark.parametrize(
    ("letters", "prior", "method", "chosen"),
    [
        ("PNU", None, "auto", "pn"), ("PN", None, "auto", "pn"), ("PU", None, "auto", "pu_raw"),
        ("NU", None, "auto", "nu_raw"), ("PNU", None, "pu", "pu_raw"), ("PNU", None, "pn", "pn"),
        ("PNU", None, "nu", "nu_raw"), ("PU", None, "pu", "pu_raw"), ("NU", None, "nu", "nu_raw"),
        ("PU", 0.3, "auto", "pu"), ("NU", 0.3, "auto", "nu"), ("PNU", 0.3, "nu", "nu"),
        ("PNU", 0.3, "auto", "combined"), ("PNU", 0.3, "pu_raw", "pu_raw"),
        ("PU", None, "nu", MissingRoleError), ("NU", None, "pu", MissingRoleError),
        ("PNU", None, "combined", PriorNotIdentifiedError), ("P", None, "auto", MissingRoleError),
        ("U", None, "auto", MissingRoleError),
    ],
)  # fmt: skip
def test_which_pairs_two_models_are_compared_on(letters, prior, method, chosen):
    rows = of_roles(letters, SCORES, OTHER)
    if not isinstance(chosen, str):
        with pytest.raises(chosen):
            compare_auc(*rows, prior, method)
        return
    found = compare_auc(*rows, prior, method)
    assert found.method == chosen
    told = any("No prior given" in note for note in found.notes)
    assert told is (prior is None and chosen.endswith("_raw"))
    if chosen.endswith("_raw"):
        p, n, u = (ROLES.by_letter[letter] for letter in "PNU")
        first, second = (p, u) if chosen == "pu_raw" else (u, n)
        gap = [wins(s[first], s[second]).mean() for s in (SCORES, OTHER)]
        assert (found.value_a, found.value_b) == pytest.approx(tuple(gap))
        assert found.difference == pytest.approx(gap[0] - gap[1])


@pytest.mark.parametrize("prior", [0.3, (0.2, 0.4)])
@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined"])
def test_blocks_of_unlabelled_rows_are_compared_as_one_table(method, prior):
    """Counts of three blocks, added; levels of the prior and of the limits as by default."""
    u = ROLES.unlabeled
    labelled = np.r_[ROLES.positive, ROLES.negative]
    pair = LabeledPairs(Roles(ROLES.codes[labelled]), (SCORES[labelled], OTHER[labelled]))
    first, *others = (pair.count(SCORES[b], OTHER[b]) for b in np.split(u, [30, 31]))
    merged = sum(others, start=first)
    for column, cells in zip((SCORES, OTHER), merged.cells):
        anchors = np.unique(column[labelled])
        assert cells[1::2].tolist() == [int(np.sum(column[u] == a)) for a in anchors]
        assert cells[0] == np.sum(column[u] < anchors[0])
        assert cells[-1] == np.sum(column[u] > anchors[-1])
        assert cells.sum() == len(u)
    found, whole = compare_counted(pair, merged, prior, method), compare_auc(
        Y, SCORES, OTHER, prior, method, 0.95, prior_level=0.95
    )  # fmt: skip
    made, expected = found.to_dict(), whole.to_dict()
    assert made.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, float):
            assert made[name] == pytest.approx(value), name
    assert made["notes"] == list(whole.notes)
    assert json.loads(json.dumps(expected))["p_value"] == whole.p_value


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


@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined"])
@pytest.mark.slow
def test_level_of_the_test_under_no_difference(method):
    """600 draws of two equally good models: 5% tests reject 2.2 to 7.8% (3.2 binomial errors)."""
    rejected = 0
    for seed in range(600):
        y, a, b = make(1000 + seed, gap=0.0)
        rejected += compare_auc(y, a, b, 0.3, method).p_value < 0.05
    assert 0.022 <= rejected / 600 <= 0.078


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


@pytest.mark.parametrize("seed", range(6))
def test_a_combined_comparison_takes_common_weights_or_the_tightest_single_one(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, 0.0, np.nan], (15, 20, 80))
    a, b = rng.normal(size=(2, 115)) + np.outer([1.0, 0.5], np.nan_to_num(y))
    if seed % 2:
        b = a + 0.3 * b  # nearly the same model
    prior = ClassPrior.known(0.3)
    found = compare_auc(y, a, b, prior, "combined")
    own = [auc_estimate(y, s, prior, "combined").weights for s in (a, b)]
    mean = np.array([(own[0][name] + own[1][name]) / 2 for name in ("pn", "pu", "nu")])
    used = np.array([found.weights[name] for name in ("pn", "pu", "nu")])
    errors = {name: compare_auc(y, a, b, prior, name) for name in ("pn", "pu", "nu")}
    differences = np.array([one.difference for one in errors.values()])
    tightest = min(errors, key=lambda name: errors[name].std_error)
    if np.count_nonzero(used) == 1:
        assert found.weights[tightest] == 1.0
        assert found.std_error == pytest.approx(errors[tightest].std_error)
        assert f"'{tightest}' alone is tightest" in found.notes[-1]
    else:
        np.testing.assert_allclose(used, mean)
        assert found.std_error <= errors[tightest].std_error + 1e-12
        assert "same weights" in found.notes[-1]
    assert found.difference == pytest.approx(used @ differences)


SWAPPED = np.where(np.isnan(Y), Y, 1 - Y)

PRIORS = [
    ClassPrior.known(0.3),
    ClassPrior(0.3, 0.2, 0.4, 0.95, 0.05, "estimated"),
    ClassPrior(0.04, 0.0, 0.12, 0.95, 0.03, "estimated"),
    ClassPrior.from_posterior([0.1, 0.3, 0.6], [1.0, 2.0, 1.0]),
]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined"])
def test_turned_scores_turn_a_difference(method, prior):
    partner = {"pu": "nu", "nu": "pu"}
    found = compare_auc(Y, SCORES, OTHER, prior, method)
    turned = compare_auc(Y, OTHER, SCORES, prior, method)
    swapped = compare_auc(
        SWAPPED,
        -SCORES,
        -OTHER,
        prior.complement(),
        partner.get(method, method),
    )
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    assert (turned.value_a, turned.value_b) == pytest.approx((found.value_b, found.value_a))
    for name in ("difference", "std_error", "low", "high", "p_value", "value_a", "value_b"):
        assert getattr(swapped, name) == pytest.approx(getattr(found, name), abs=1e-6), name
    back = {partner.get(name, name): w for name, w in swapped.weights.items()}
    assert found.weights == pytest.approx(back, abs=1e-6)


def test_a_difference_without_variance_is_open():
    y = [1, 1, 0, 0]
    same = compare_auc(y, [4, 3, 2, 1], [40, 30, 20, 10])
    assert (same.difference, same.p_value, same.low, same.high) == (0.0, 1.0, 0.0, 0.0)
    assert "rank the rows alike" in same.notes[-1]
    turned = compare_auc(y, [4, 3, 2, 1], [1, 2, 3, 4])
    assert (turned.difference, turned.p_value, turned.low, turned.high) == (1.0, 1.0, -1.0, 1.0)
    assert "same difference" in turned.notes[-1]


def test_holm_rejects_what_its_steps_reject():
    """Step down: the smallest against alpha / m, the next against alpha / (m - 1), ..."""
    rng = np.random.default_rng(0)
    for m in (1, 2, 5, 9):
        for p in rng.random((50, m)) ** 3:
            for alpha in (0.01, 0.05, 0.3):
                rejected = np.zeros(m, dtype=bool)
                for k, i in enumerate(np.argsort(p)):
                    if p[i] > alpha / (m - k):
                        break
                    rejected[i] = True
                assert ((holm(p) <= alpha) == rejected).all()
