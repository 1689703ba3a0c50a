"""Which estimate is taken, what is told, and defaults of what works on counts and blocks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pnuauc import ClassPrior
from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError, PriorRefutedError
from pnuauc.labels import Roles, read_roles
from pnuauc.metrics import (
    ScoreCounts,
    auc_estimate,
    auc_from_counts,
    compare_auc,
    prior_sensitivity,
    roc_curve_estimate,
    threshold_estimate,
)
from pnuauc.metrics._compare import LabeledPairs, compare_counted
from pnuauc.metrics._conditional import REFUTED, conditional
from pnuauc.metrics._counts import check_scores
from pnuauc.metrics._estimate import CROSS_FIT_VARIANCE, _size_notes, choose_method, unbiased_auc
from pnuauc.metrics._moments import moments_of
from pnuauc.metrics._sensitivity import sensitivity_from_counts
from tests.conftest import gaussian_scores, wins

Y, SCORES, _ = gaussian_scores(0, (15, 20, 80), 0.3, digits=1)
OTHER = np.round(SCORES + np.random.default_rng(1).normal(0, 0.8, len(SCORES)), 1)
ROLES = read_roles(Y)


def of_roles(letters, *columns):
    """Roles and columns of the rows of P, N, U that ``letters`` names."""
    kept = np.concatenate([ROLES.by_letter[letter] for letter in letters])
    return Roles(ROLES.codes[kept]), *(column[kept] for column in columns)


# --- two models -----------------------------------------------------------------------------------


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
    pair = LabeledPairs(Roles(ROLES.codes[labelled]), SCORES[labelled], OTHER[labelled])
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


def test_models_that_rank_alike_keep_their_common_weights():
    """No single estimate is tighter where none has an error."""
    same = compare_auc(Y, SCORES, np.exp(SCORES), 0.3, "combined")
    own = auc_estimate(Y, SCORES, 0.3, "combined").weights
    assert same.weights == pytest.approx(dict(own))
    assert any("same weights" in note for note in same.notes)
    assert (same.difference, same.std_error, same.p_value) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(("value", "left_out"), [(0.0, "nu"), (1.0, "pu")])
def test_a_comparison_leaves_out_what_the_prior_may_undo(value, left_out):
    prior = ClassPrior(value, max(value - 0.1, 0.0), min(value + 0.1, 1.0), 0.95, 0.05, "estimated")
    for seed in range(4):
        other = SCORES + np.random.default_rng(seed).normal(0, 0.5, len(SCORES))
        found = compare_auc(Y, SCORES, other, prior, "combined")
        assert found.weights[left_out] == 0.0
        assert sum(found.weights.values()) == pytest.approx(1.0)
        assert np.isfinite([found.difference, found.std_error, found.low, found.high]).all()


@pytest.mark.parametrize("sizes", [(2, 7, 30), (7, 2, 30), (7, 9, 2), (2, 2, 2)])
def test_two_rows_of_a_role_show_their_spread(sizes):
    """Paired and alone: the variance of two row means, over two."""
    y, a, _ = gaussian_scores(5, sizes, 0.4)
    b = a + np.random.default_rng(2).normal(0, 1.0, len(a))
    rows = [np.flatnonzero(role) for role in (y == 1, y == 0, np.isnan(y))]
    for method, first, second in (("pn", 0, 1), ("pu_raw", 0, 2), ("nu_raw", 2, 1)):
        pairs = [wins(s[rows[first]], s[rows[second]]) for s in (a, b)]

        def variance(d):
            return sum(m.var(ddof=1) / len(m) for m in (d.mean(1), d.mean(0)))

        alone = auc_estimate(y, a, None, method)
        assert alone.std_error**2 == pytest.approx(variance(pairs[0]), abs=1e-12)
        paired = compare_auc(y, a, b, None, method)
        assert paired.std_error**2 == pytest.approx(variance(pairs[0] - pairs[1]), abs=1e-12)


# --- one model ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letters", "method", "needs"),
    [
        ("PN", "pu", "unlabelled"), ("PN", "nu", "unlabelled"), ("PU", "pn", "negative"),
        ("PU", "nu", "negative"), ("NU", "pn", "positive"), ("NU", "pu_raw", "positive"),
    ],
)  # fmt: skip
def test_the_role_that_is_missing_is_named(letters, method, needs):
    with pytest.raises(MissingRoleError, match=f"'{method}' needs {needs} rows: y holds"):
        auc_estimate(*of_roles(letters, SCORES), 0.3, method)


@pytest.mark.parametrize("method", ["pn", "pu", "nu", "combined", "pu_raw", "nu_raw"])
def test_a_prior_is_told_where_it_was_used(method):
    found = auc_estimate(Y, SCORES, (0.2, 0.4), method)
    used = method in {"pu", "nu", "combined"}
    assert found.prior == (pytest.approx(0.3) if used else None)
    assert found.prior_std_error == (pytest.approx(0.1 / 1.959964, rel=1e-6) if used else None)
    as_dict = found.to_dict()
    assert as_dict["weights"] == dict(found.weights)
    assert as_dict["notes"] == list(found.notes)
    assert json.loads(json.dumps(as_dict))["value"] == found.value
    rivals = {"pu_raw": "against an unlabelled row", "nu_raw": "against a negative"}
    for name, words in rivals.items():
        assert any(words in note for note in found.notes) is (method == name)


@pytest.mark.parametrize(
    ("letters", "method", "words"),
    [
        ("PU", "pu", "positives beat unlabelled rows in 100.0% of pairs"),
        ("PNU", "pu", "positives beat unlabelled rows in 100.0% of pairs"),
        ("NU", "nu", "unlabelled rows beat negatives in 100.0% of pairs"),
        ("PNU", "nu", "unlabelled rows beat negatives in 100.0% of pairs"),
    ],
)
def test_the_pairs_that_refute_a_prior_are_told(letters, method, words):
    """P above U above N: half of U can be neither positive nor negative."""
    y = np.repeat(np.array([1, 0, -1], np.int8), [40, 40, 200])
    kept = np.isin(y, [{"P": 1, "N": 0, "U": -1}[letter] for letter in letters])
    scores = np.arange(280.0) + 1000.0 * np.repeat([2, 0, 1], [40, 40, 200])
    for prior in (0.5, ClassPrior(0.5, 0.46, 0.54, 0.95, 0.02, "estimated")):
        with pytest.raises(PriorRefutedError, match=r"A prior of 0\.5 is refuted") as caught:
            auc_estimate(Roles(y[kept]), scores[kept], prior, method)
        assert words in str(caught.value)
    nothing = prior_sensitivity(Roles(y[kept]), scores[kept], [0.4, 0.5, 0.6], method)
    assert nothing.method == method
    assert np.isnan([nothing.value, nothing.std_error, nothing.low, nothing.high]).all()


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
        limits = [part.limits(level) for level in (0.95, REFUTED)]
        seen.add(tuple(ends is None for ends in limits))
        if limits[1] is None:
            with pytest.raises(PriorRefutedError):
                auc_estimate(y, scores, prior, "pu")
            continue
        found = auc_estimate(y, scores, prior, "pu")
        low, high = limits[0] or limits[1]
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
            (min(part.limits(0.9995)[0], end), max(part.limits(0.9995)[1], end))
        )
    assert seen == {(False, False), (True, False), (True, True)}


def test_auto_leaves_out_what_it_must():
    """A prior that the labels cannot tell, and one that P against U refutes but N does not."""
    doubted = ClassPrior(0.3, 0.25, 0.35, 0.95, 0.02, "estimated", "The data cannot tell it.")
    found = auc_estimate(Y, SCORES, doubted)
    assert found.method == "pn"
    assert any("the prior cannot be told from these labels" in note for note in found.notes)
    assert not any("refuted" in note for note in found.notes)
    y = np.repeat([1.0, 0.0, np.nan], [30, 30, 300])
    scores = np.random.default_rng(0).normal(np.repeat([6.0, 0.0, 0.0], [30, 30, 300]))
    with pytest.raises(PriorRefutedError):
        auc_estimate(y, scores, 0.4, "pu")
    assert 0 <= auc_estimate(y, scores, 0.4, "nu").value <= 1
    alone = auc_estimate(y, scores, 0.4)
    assert alone.method == "pn"
    told = [note for note in alone.notes if "left out" in note]
    assert len(told) == 1
    assert "A prior of 0.4 is refuted" in told[0]
    assert (alone.value, alone.low) == (1.0, auc_estimate(y, scores, None, "pn").low)


@pytest.mark.parametrize(("prior", "without"), [(0.0, "nu"), (1.0, "pu")])
def test_a_combination_at_an_end_of_the_prior(prior, without):
    """NU has no meaning at 0, PU none at 1: the others are weighed, nearly as next to the end."""
    counts = ScoreCounts.from_rows(Y, SCORES)
    p, n, u = (SCORES[ROLES.by_letter[letter]] for letter in "PNU")
    single = {"pn": wins(p, n).mean(), "pu": wins(p, u).mean(), "nu": wins(u, n).mean()}
    found = auc_estimate(Y, SCORES, ClassPrior.known(prior), "combined")
    assert found.weights[without] == 0.0
    assert np.count_nonzero(list(found.weights.values())) == 2
    expected = sum(w * single[name] for name, w in found.weights.items())
    assert found.unbiased == pytest.approx(expected)
    assert unbiased_auc(counts, prior, "combined") == pytest.approx(expected)


def test_an_unsure_prior_at_an_end_has_no_unbiased_estimate():
    for value, method in ((0.0, "nu"), (1.0, "pu")):
        prior = ClassPrior(value, abs(value - 0.1), value, 0.95, 0.3, "estimated")
        found = auc_estimate(Y, SCORES, prior, method)
        assert found.unbiased is None
        assert 0 <= found.low <= found.value <= found.high <= 1
    other = auc_estimate(Y, SCORES, ClassPrior(0.0, 0.0, 0.1, 0.95, 0.05, "estimated"), "pu")
    assert other.unbiased == pytest.approx(auc_estimate(Y, SCORES, 0.0, "pu").unbiased)


@pytest.mark.parametrize(
    ("scores", "method", "value"),
    [([1, 1, 1, 1, 1, 1], "pn", 0.5), ([1, 1, 1, 1, 1, 0], "pu_raw", 0.75),
     ([1, 1, 1, 1, 1, 2], "pu_raw", 0.25), ([1, 1, 1, 1, 1, 0], "nu_raw", 0.25)],
)  # fmt: skip
def test_one_row_that_differs_decides(scores, method, value):
    found = auc_estimate([1, 1, 0, 0, None, None], scores, None, method)
    assert (found.value, found.unbiased) == (value, value)
    assert ("All scores are equal" in " ".join(found.notes)) is (value == 0.5)
    assert (found.low < value < found.high) is (value != 0.5)


@pytest.mark.parametrize("role", [0, 1, 2])
def test_few_rows_of_any_role_of_a_combination_are_told(role):
    word = ("positive", "negative", "unlabelled")[role]
    for few, words in ((1, f"One {word} row"), (9, f"Only 9 {word} rows"), (10, None)):
        n = tuple(few if r == role else 50 for r in range(3))
        assert [note.startswith(words) for note in _size_notes("combined", n)] == (
            [] if words is None else [True]
        )


def test_an_unsure_prior_of_one_is_not_undefined():
    """Only a prior that is known leaves no other share to look at."""
    unsure = ClassPrior(1.0, 0.9, 1.0, 0.95, 0.05, "estimated")
    assert choose_method("pu", (5, 5, 5), unsure)[0] == "pu"
    with pytest.raises(ValueError, match="undefined at prior=1"):
        choose_method("pu", (5, 5, 5), ClassPrior.known(1.0))
    assert choose_method("pn", (5, 5, 5), ClassPrior.known(1.0))[0] == "pn"


# --- counts and scores ----------------------------------------------------------------------------


def test_defaults_of_what_takes_counts_are_those_of_what_takes_rows():
    counts = ScoreCounts.from_rows(Y, SCORES)
    for prior, method in ((0.3, "pu"), ((0.2, 0.4), "pu"), ((0.2, 0.4), "combined")):
        plain = auc_estimate(Y, SCORES, prior, method, 0.95, prior_level=0.95, variance_factor=1.0)
        assert auc_from_counts(counts, prior, method).to_dict() == plain.to_dict()
    curve = sensitivity_from_counts(counts, [0.1, 0.4], "pu").to_dict()
    assert (curve["priors"], curve["level"], curve["method"]) == ([0.1, 0.4], 0.95, "pu")
    for k, prior in enumerate(curve["priors"]):
        one = auc_estimate(Y, SCORES, prior, "pu", 0.95, variance_factor=1.0)
        for name in ("value", "std_error", "low", "high"):
            assert curve[name][k] == getattr(one, name)
    assert CROSS_FIT_VARIANCE == 1.5  # docs/truth.md says where it comes from


@pytest.mark.parametrize("role", [1, 0])
@pytest.mark.parametrize("off", [0.5, 1.5, 2.5, 3.5])
def test_a_labelled_score_off_the_anchors_is_refused(role, off):
    for others in ([1, 0], [1 - role] * 2):
        y, scores = [*others, role, None], [1.0, 2.0, off, 0.7]
        with pytest.raises(ValueError, match="not among the anchors"):
            ScoreCounts.from_block(y, scores, [1.0, 2.0, 3.0])
    free = ScoreCounts.from_block([1, 0, None], [1.0, 2.0, off], [3.0, 1.0, 2.0, 1.0])
    assert free.anchors.tolist() == [1.0, 2.0, 3.0]
    assert free.unlabeled.tolist() == [int(2 * off - 1 == k) for k in range(7)]
    with pytest.raises(ValueError, match="anchors holds NaN"):
        ScoreCounts.from_block([1, 0], [1.0, 2.0], [1.0, 2.0, np.nan])


def test_scores_behind_a_mask():
    plain = np.ma.MaskedArray([1.0, 2.0], mask=[False, False])
    assert check_scores(plain).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="masked"):
        check_scores(np.ma.MaskedArray([1.0, 2.0], mask=[False, True]))
    large = 2**53
    with pytest.raises(ValueError, match="floats cannot tell apart"):
        check_scores(np.array([0, large, large + 1]))
    assert check_scores(np.array([0, large, large + 2])).tolist() == [0.0, 2.0**53, 2.0**53 + 2]
    assert check_scores(np.array([True, False])).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match=r"NaN \(first in row 2\)"):
        check_scores([1, 2, None])


def test_a_curve_and_a_threshold_say_what_they_are_of():
    y = np.where(Y == 0, np.nan, Y)
    at = threshold_estimate(y, SCORES, (0.2, 0.4), k=40, level=0.8)
    assert (at.prior, at.level) == (pytest.approx(0.3), 0.8)
    assert threshold_estimate(y, SCORES, k=40).prior is None
    told = at.to_dict()
    for name in ("precision", "expected_positives"):
        assert told[name]["low"] < told[name]["value"] < told[name]["high"]
    assert told["expected_positives"]["high"] == pytest.approx(at.n_flagged * at.precision.high)
    curve = roc_curve_estimate(y, SCORES, (0.2, 0.4), level=0.8)
    same = auc_estimate(y, SCORES, (0.2, 0.4), "pu", 0.8)
    assert (curve.auc, curve.method, curve.level) == (same, "pu", 0.8)
    for missing, prior in (("positive", 0.3), ("unlabelled", None)):
        kept = Y == 0 if missing == "positive" else Y == 1
        roles = Roles(ROLES.codes[kept])
        with pytest.raises(MissingRoleError, match=f"A ROC curve needs {missing} rows"):
            roc_curve_estimate(roles, SCORES[kept], prior, "pu")
