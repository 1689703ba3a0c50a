"""What a study says, against rankers whose scores are known and pairs by brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scipy import special
from sklearn.base import BaseEstimator

from pnuauc._committee import RankingOnly
from pnuauc._prior import ClassPrior, read_prior
from pnuauc._report import _words as words
from pnuauc._study import (
    ColumnRoles,
    FitSettings,
    LabelCodes,
    _importance,
    evaluate_table,
    find_prior,
    fit_study,
)
from pnuauc._study import _prior as study_prior
from pnuauc._study._committee import rival_findings
from pnuauc._study._copies import Copies, find_copies
from pnuauc._study._crossfit import (
    CrossFit,
    common_scale,
    cross_fit,
    fold_count,
)
from pnuauc._study._data import read_labels
from pnuauc._study._findings import (
    auc_findings,
    label_findings,
    prior_verdict,
    review_findings,
    score_histograms,
    unlabeled_effect,
)
from pnuauc._study._importance import importance_findings, permutation_importance
from pnuauc._study._review import top_rows
from pnuauc.exceptions import InputError, LabelReadingWarning
from pnuauc.labels import Roles, read_roles
from pnuauc.metrics import auc_estimate
from tests.conftest import wins


class Column(BaseEstimator):
    """Scores are one column: the first with unlabelled rows, the second without."""

    seen: list = []  # noqa: RUF012

    def __init__(self, risk="pnu", prior=0.2):
        self.risk, self.prior = risk, prior

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def decision_function(self, X):
        Column.seen.append(X.copy())
        return X[:, 0 if self.risk == "pnu" else 1]


def rows_and_roles(seed=0, sizes=(15, 25, 120), prior=0.2):
    """Column 0 tells the classes apart well, column 1 poorly, column 2 not at all."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(sizes[2]) < prior
    truth = np.concatenate([np.ones(sizes[0]), np.zeros(sizes[1]), hidden])
    X = rng.normal(size=(len(truth), 3)) + np.outer(truth, [2.0, 0.5, 0.0])
    return X, read_roles(np.repeat([1.0, 0.0, np.nan], sizes))


def of_all_rows(auc, power):
    """AUC of the model that is trained on all rows, from that of two refits on half of them."""
    gain = 1 - 0.5**power
    return auc + (1 - auc) * max(2 * auc - 1, 0) * gain


def held_out_of(scores, roles):
    copies = find_copies(np.arange(2.0 * len(roles)).reshape(-1, 2), roles)
    return CrossFit(np.arange(len(roles)), roles, np.asarray(scores, float), [], copies)


# --- with and without unlabelled rows -------------------------------------------------------------


def test_with_and_without_are_two_models_and_in_this_order():
    X, roles = rows_and_roles()
    ranker = Column()
    held_out, alone = (
        cross_fit(Column(risk), X, roles, np.arange(len(X)), n_folds=3, seed=0)
        for risk in ("pnu", "pn")
    )
    ranker.selection_ = type("Report", (), {"message": "said"})()
    found = unlabeled_effect(ranker, ranker, X, roles, held_out, None, 3, 0)
    p, n = roles.positive, roles.negative
    assert found["with"] == pytest.approx(wins(held_out.scores[p], held_out.scores[n]).mean())
    assert found["without"] == pytest.approx(wins(alone.scores[p], alone.scores[n]).mean())
    assert found["with"] > found["without"] + 0.1
    assert found["difference"] == pytest.approx(found["with"] - found["without"])
    assert found["low"] < found["difference"] < found["high"]
    assert found["method"] == "pn"  # nothing told the prior
    known = unlabeled_effect(ranker, ranker, X, roles, held_out, ClassPrior.known(0.2), 3, 0)
    assert known["method"] != "pn"
    assert known["difference"] > 0.1


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1, 1, None, None], "no labelled negatives"),
        ([0, 0, None, None], "no labelled positives"),
        ([1, 1, 0, 0], "no unlabelled rows"),
    ],
)
def test_without_three_roles_there_is_nothing_to_compare(y, words):
    ranker = Column()
    ranker.selection_ = type("Report", (), {"message": "said"})()
    roles = read_roles(y, positive_label=1, negative_label=0)
    found = unlabeled_effect(ranker, ranker, None, roles, None, None, 2, 0)
    assert found["difference"] is None
    assert words in found["message"]


# --- importance -----------------------------------------------------------------------------------


def test_importance_shuffles_columns_and_nothing_else():
    X, roles = rows_and_roles()
    fit = cross_fit(Column(), X, roles, np.arange(len(X)), n_folds=3, seed=0)
    Column.seen = []
    groups = {"signal": [0], "pair": [1, 2]}
    found = permutation_importance(fit, X, groups, 0.2, "pn", seed=0, repeats=2)
    blocks = iter(Column.seen)
    for test, _ in fit.folds:
        before = X[fit.rows[test]]
        several = iter(np.split(next(blocks), 4))
        for columns in groups.values():
            others = [c for c in range(3) if c not in columns]
            for _ in range(2):
                block = next(several)
                np.testing.assert_array_equal(block[:, others], before[:, others])
                assert not np.array_equal(block[:, columns], before[:, columns])
                # rows of the group move together: the same rows in another order
                assert sorted(map(tuple, block[:, columns])) == sorted(
                    map(tuple, before[:, columns])
                )
    assert next(blocks, None) is None
    assert [item["column"] for item in found] == ["signal", "pair"]
    assert found[0]["drop"] > 0.25
    assert found[0]["spread"] > 0
    assert found[1]["drop"] == found[1]["spread"] == 0.0  # the ranker does not look at them
    base = auc_estimate(fit.roles, fit.scores, 0.2, "pn").value
    assert found[0]["drop"] == pytest.approx(base - 0.5, abs=0.15)


def test_importance_does_not_depend_on_how_much_is_scored_together(monkeypatch):
    X, roles = rows_and_roles()
    fit = cross_fit(Column(), X, roles, np.arange(len(X)), n_folds=3, seed=0)
    groups = {"signal": [0], "pair": [1, 2]}
    together = permutation_importance(fit, X, groups, 0.2, "pn", seed=0)
    monkeypatch.setattr(_importance, "_CALL_CELLS", 1)
    assert permutation_importance(fit, X, groups, 0.2, "pn", seed=0) == together


def test_importance_is_measured_on_some_unlabelled_rows(monkeypatch):
    X, roles = rows_and_roles()
    fit = cross_fit(Column(), X, roles, np.arange(len(X)), n_folds=3, seed=0)
    every = permutation_importance(fit, X, {"signal": [0]}, 0.2, "pn", seed=0, repeats=4)
    monkeypatch.setattr(_importance, "SHUFFLED_UNLABELED", 30)
    Column.seen = []
    some = permutation_importance(fit, X, {"signal": [0]}, 0.2, "pn", seed=0, repeats=4)
    n_labeled = roles.n_positive + roles.n_negative
    assert sum(map(len, Column.seen)) == 4 * (n_labeled + 30)
    # the same labelled rows: what is left is the luck of the shuffles
    assert some[0]["drop"] == pytest.approx(every[0]["drop"], abs=0.1)


def test_importance_says_how_or_why_not():
    assert "3 shuffles" in importance_findings([{"column": "a"}], 4)["procedure"]
    none = importance_findings([], 77)
    assert none["columns"] == []
    assert none["procedure"] == "Not measured."
    assert none["n_columns"] == 77


# --- the AUC of a study ---------------------------------------------------------------------------


def test_auc_of_a_study_is_that_of_its_scores():
    X, roles = rows_and_roles()
    s = X[:, 0]
    p, n, u = (s[rows] for rows in (roles.positive, roles.negative, roles.unlabeled))
    found = auc_findings(held_out_of(s, roles), ClassPrior.known(0.2), 0.9)
    assert set(found["auc_methods"]) == {"combined", "pn", "pu", "nu"}
    assert found["auc_methods"]["pn"]["value"] == pytest.approx(of_all_rows(wins(p, n).mean(), 0.5))
    pu, nu = (wins(p, u).mean() - 0.1) / 0.8, min((wins(u, n).mean() - 0.4) / 0.2, 1.0)
    assert found["auc_methods"]["pu"]["value"] == pytest.approx(of_all_rows(pu, 0.5))
    assert found["auc_methods"]["nu"]["value"] == pytest.approx(of_all_rows(nu, 0.5))
    assert found["auc_raw"]["value"] == pytest.approx(wins(p, u).mean())
    assert found["auc_raw"]["method"] == "pu_raw"
    assert found["auc"]["level"] == 0.9
    assert found["auc"]["low"] < found["auc"]["value"] < found["auc"]["high"]
    roc = found["roc"]
    assert (roc["fpr"][0], roc["tpr"][-1]) == (0, 1)
    assert np.all(np.diff(roc["tpr"]) >= 0)


def test_sensitivity_of_a_study_is_the_auc_at_each_prior():
    X, roles = rows_and_roles()
    rows = np.sort(np.concatenate([roles.positive, roles.unlabeled]))
    scores, some = X[rows, 0], roles.take(rows)
    found = auc_findings(held_out_of(scores, some), ClassPrior.from_interval(0.1, 0.3, 0.95), 0.95)
    assert found["auc"]["method"] == "pu"
    curve = found["sensitivity"]
    assert min(curve["priors"]) <= 0.1 / 1.5
    assert max(curve["priors"]) == pytest.approx(0.3)
    assert curve["at"] == pytest.approx(0.2)
    assert curve["at"] in curve["priors"]
    assert len(curve["priors"]) + curve["refuted"] >= 25
    raw = wins(scores[some.positive], scores[some.unlabeled]).mean()
    expected = [of_all_rows(min((raw - t / 2) / (1 - t), 1.0), 0.25) for t in curve["priors"]]
    np.testing.assert_allclose(curve["value"], expected)


def test_an_untold_prior_carries_no_auc():
    X, roles = rows_and_roles()
    doubtful = replace(ClassPrior.known(0.2), doubt="Because.", source="estimated")
    both = auc_findings(held_out_of(X[:, 0], roles), doubtful, 0.95)
    assert set(both["auc_methods"]) == {"pn"}
    assert both["auc"]["method"] == "pn"
    assert both["roc"]["method"] == "pn"
    assert "sensitivity" not in both
    rows = np.sort(np.concatenate([roles.positive, roles.unlabeled]))
    alone = auc_findings(held_out_of(X[rows, 0], roles.take(rows)), doubtful, 0.95)
    assert alone["auc"] is None
    assert alone["auc_methods"] == {}
    assert "cannot be told" in alone["auc_reason"]
    assert alone["auc_raw"]["method"] == "pu_raw"


def test_copies_widen_the_interval_of_a_study():
    """Every labelled row twice: as many rows, half the observations."""
    X, roles = rows_and_roles()
    fit = held_out_of(X[:, 0], roles)
    twice = np.concatenate([np.arange(len(X)), np.concatenate([roles.positive, roles.negative])])
    codes = np.where(roles.codes == -1, np.nan, roles.codes.astype(float))[twice]
    doubled = read_roles(codes)
    copied = CrossFit(
        twice, doubled, X[twice, 0], [], find_copies(np.column_stack([twice, twice]), doubled)
    )
    assert fit.variance_factor > 1
    assert copied.variance_factor == pytest.approx(2 * fit.variance_factor)


def test_verdict_on_the_prior():
    few, some = (read_roles([1] * k + [0] * 12 + [None] * 50) for k in (2, 12))
    assert prior_verdict(None, some) == {}
    assert prior_verdict(ClassPrior.known(0.2), few) == {"told": True}
    narrow = ClassPrior(0.2, 0.1, 0.3, 0.95, 0.05, "estimated")
    assert prior_verdict(narrow, some) == {"told": True}
    wide = replace(narrow, low=0.05, high=0.95)
    for prior, roles in ((narrow, few), (wide, some), (replace(narrow, doubt="Why."), some)):
        verdict = prior_verdict(prior, roles)
        assert not verdict["told"]
        assert verdict["needed"].startswith("Label the unlabelled rows. ")  # there are 50
    many = read_roles([1] * 2 + [0] * 12 + [None] * 101)
    assert "100 of the unlabelled rows" in prior_verdict(narrow, many)["needed"]
    assert prior_verdict(replace(narrow, doubt="Why."), some)["reason"] == "Why."
    assert "2 positive" in prior_verdict(narrow, few)["reason"]
    assert "these columns" in prior_verdict(wide, some)["reason"]


# --- rows to review -------------------------------------------------------------------------------


def test_rows_to_review_and_what_to_expect_of_them():
    X, roles = rows_and_roles(sizes=(40, 40, 400))
    fit = held_out_of(common_scale(X[:, 0], roles), roles)
    prior = ClassPrior.known(0.2)
    found = {k: review_findings(fit, prior, 400, k, 0.95) for k in (20, 200, 400, 900)}
    assert [found[k]["k"] for k in (20, 400, 900)] == [20, 400, 400]
    assert found[20]["by_chance"] == pytest.approx(4.0)
    # all rows hold the prior's share; the top holds more than chance, and nearly all positives
    assert found[400]["expected"]["value"] == pytest.approx(80, rel=0.02)
    assert found[20]["expected"]["value"] > 12
    assert found[200]["expected"]["value"] > found[20]["expected"]["value"]
    assert found[200]["recall"]["value"] > 0.85
    assert found[20]["told"]
    assert review_findings(fit, None, 400, 20, 0.95) is None
    assert review_findings(fit, prior, 400, 0, 0.95) is None
    # negatives that stand where positives do take hope away
    worse = held_out_of(
        np.where(roles.codes == 0, fit.scores[roles.positive].max(), fit.scores), roles
    )
    less = review_findings(worse, prior, 400, 20, 0.95)
    assert less["expected"]["value"] < found[20]["expected"]["value"] - 2


def test_a_wide_interval_of_the_top_is_told_where_it_begins_above_chance():
    """Between 3 and 20 of 20 says something where a random 20 hold two at most."""
    rng = np.random.default_rng(0)
    roles = read_roles(np.repeat([1, 0, -1], [53, 107, 2000]), unlabeled_label=-1)
    scores = rng.standard_normal(2160)
    scores[:53] += 1.6
    scores[160:260] += 1.6
    fit = held_out_of(common_scale(scores, roles), roles)
    for high, told in ((0.138, True), (0.3, False)):
        prior = ClassPrior(0.05, 0.005, high, 0.95, 0.04)
        found = review_findings(fit, prior, 2000, 20, 0.95)
        low, width = found["expected"]["low"], found["expected"]["high"] - found["expected"]["low"]
        assert width >= 16
        assert found["told"] is (low > 20 * high) is told


def test_percentiles_are_places_among_the_unlabelled_rows():
    rng = np.random.default_rng(1)
    labelled = np.arange(160) < 60
    x = rng.normal(size=160) + 3.0 * labelled  # labelled rows score far above
    y = [int(i < 40) if i < 60 else None for i in range(160)]
    table = pa.table({"x": x, "z": rng.normal(size=160), "y": pa.array(y, pa.int8())})
    settings = FitSettings(prior=0.2, n_centers=10, folds=2, top=5, importance=False)
    study = fit_study(table, ColumnRoles("y"), settings)
    scores = study.model.score(table)
    header, rows = study.findings["top"]["header"], study.findings["top"]["rows"]
    assert len(rows) == 5
    for row in rows:
        line = dict(zip(header, row))
        place = line["row"] - 1
        assert y[place] is None
        assert line["score"] == pytest.approx(scores[place])
        assert line["x"] == pytest.approx(x[place])
        below = 100 * np.mean(scores[~labelled] < scores[place])
        assert line["percentile"] == pytest.approx(below, abs=1.1)  # 100 rows
    assert max(row[header.index("percentile")] for row in rows) > 99
    features = table.drop_columns(["y"])
    X = study.model.encoder.transform(features)
    single = top_rows(study.model, X, features, None, read_roles(y), 1)
    assert [row[0] for row in single["rows"]] == [rows[0][0]]


def test_no_rows_to_review_without_unlabelled_ones():
    roles = read_roles([1, 1, 0, 0])
    assert top_rows(None, None, None, None, roles, 5)["rows"] == []
    some = read_roles([1, 0, None])
    assert top_rows(None, None, None, None, some, 0)["rows"] == []


# --- small parts ----------------------------------------------------------------------------------


def test_histograms_hold_every_row_once():
    X, roles = rows_and_roles()
    scores = X[:, 0].copy()
    scores[roles.unlabeled[0]] = 50.0  # far out: gathered at the end of the axis
    found = score_histograms(roles, scores, bins=10)
    edges = np.array(found["edges"])
    assert len(edges) == 11
    assert edges[0] <= scores[roles.positive].min()
    assert scores[roles.positive].max() <= edges[-1] < 50
    for name, rows in (
        ("positive", roles.positive),
        ("negative", roles.negative),
        ("unlabeled", roles.unlabeled),
    ):
        key = next(k for k in found if k.startswith(name[:5]))
        inside = np.clip(scores[rows], edges[0], edges[-1])
        expected = [np.mean((inside >= a) & (inside < b)) for a, b in pairwise(edges)]
        expected[-1] += np.mean(inside == edges[-1])
        np.testing.assert_allclose(found[key], expected, atol=1e-12)
    flat = score_histograms(roles, np.zeros(len(roles)))
    assert flat["edges"][-1] == flat["edges"][0] + 1


def test_common_scale_is_the_place_among_unlabelled_scores():
    roles = read_roles([1, 1, 1, 0, None, None, None, None])
    scores = np.array([2.5, 1.0, 9.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    found = common_scale(scores, roles)
    z = special.ndtri([0.125, 0.375, 0.625, 0.875])
    np.testing.assert_allclose(found[4:], z)
    assert found[0] == pytest.approx((z[1] + z[2]) / 2)  # between the second and the third
    assert found[1] == pytest.approx(z[0])  # a tie stands where the unlabelled row does
    unit = 3.25 - 1.75  # their middle half
    assert found[2] == pytest.approx(z[3] + 0.5)  # far beyond: half a unit, no more
    assert found[3] == pytest.approx(z[0] - 0.5 * 1.0 / unit)
    lowest = common_scale(np.array([-50.0, *scores[1:]]), roles)
    assert lowest[0] == pytest.approx(z[0] - 0.5)
    # without unlabelled rows, or with equal ones: centred and scaled
    for labels in ([1, 1, 0, 0], [1, 0, None, None]):
        values = np.array([1.0, 2.0, 5.0, 5.0])
        scaled = common_scale(values, read_roles(labels))
        np.testing.assert_allclose(scaled, (values - values.mean()) / values.std())
    np.testing.assert_array_equal(common_scale(np.ones(4), read_roles([1, 1, 0, 0])), 0.0)


def test_as_many_folds_as_different_rows():
    roles = read_roles([1] * 4 + [0] * 6 + [None] * 20)
    rows = np.arange(30.0)[:, None] * [1.0, 2.0]
    assert fold_count(roles, find_copies(rows, roles), 10) == 4
    assert fold_count(roles, find_copies(rows, roles), 3) == 3
    rows[1] = rows[0]
    assert fold_count(roles, find_copies(rows, roles), 10) == 3


def test_labels_are_told_as_they_were_read():
    found = label_findings(read_roles([1.0, 1.0, 0.0, None, None, None]))
    assert (found["positive"], found["negative"], found["unlabeled"]) == (2, 1, 3)
    assert (found["setting"], found["positive_label"]) == ("PNU", "1")
    spelled = label_findings(read_roles(["a", "b"], positive_label="a", negative_label="b"))
    assert (spelled["positive_label"], spelled["negative_label"]) == ("a", "b")


def test_a_prior_of_many_rows_rests_on_some(monkeypatch):
    X, roles = rows_and_roles(sizes=(30, 30, 300))
    whole = find_prior(None, X, roles)
    monkeypatch.setattr(study_prior, "PRIOR_ROWS", 100)
    part = find_prior(None, X, roles)
    assert "100 of the unlabelled rows" in part.source
    assert "of the unlabelled rows" not in whole.source
    assert abs(part.value - whole.value) < 3 * whole.std_error + 0.1
    assert find_prior(None, X, roles, method="energy").source != ""
    with pytest.raises(ValueError, match="method must be auto"):
        find_prior(None, X, roles, method="guess")


def test_evaluation_without_a_prior_gives_a_range():
    rng = np.random.default_rng(0)
    y = [1] * 30 + [None] * 200
    scores = rng.normal(size=230) + np.r_[np.full(30, 1.5), np.zeros(200)]
    table = pa.table({"s": scores, "y": pa.array(y, pa.int8())})
    found = evaluate_table(table, "y", ["s"])
    assert found["prior"] is None
    assert found["scores"]["s"]["auc"] is None
    curve = found["scores"]["s"]["sensitivity"]
    for prior, value in zip(curve["priors"], curve["value"]):
        if value is not None and np.isfinite(value):
            known = auc_estimate(read_roles(y), scores, prior, "pu").value
            assert value == pytest.approx(known)
    raw = wins(scores[:30], scores[30:]).mean()
    assert found["scores"]["s"]["methods"]["pu_raw"]["value"] == pytest.approx(raw)
    assert set(found["scores"]["s"]["methods"]) == {"pu_raw"}


def test_evaluation_compares_the_first_with_the_second():
    rng = np.random.default_rng(0)
    truth = np.arange(80) < 40
    columns = {"good": truth * 2.0 + rng.normal(size=80), "bad": rng.normal(size=80)}
    table = pa.table({**columns, "y": truth.astype(np.int8)})
    found = evaluate_table(table, "y", ["good", "bad"])["comparison"]
    aucs = [wins(columns[c][truth], columns[c][~truth]).mean() for c in ("good", "bad")]
    assert (found["a"], found["b"]) == ("good", "bad")
    assert found["difference"] == pytest.approx(aucs[0] - aucs[1])
    assert found["p_value"] < 0.01
    for wrong in ([], ["good", "bad", "y"]):
        with pytest.raises(ValueError, match="one score column, or two"):
            evaluate_table(table, "y", wrong)


# --- reading labels -------------------------------------------------------------------------------


def labelled(values):
    return pa.table({"y": values})


def test_how_labels_were_read_is_told_where_it_may_surprise():
    zeros = labelled([1] * 5 + [0] * 95)
    with pytest.warns(LabelReadingWarning, match="0 is read as negative"):
        roles = read_labels(zeros, "y", LabelCodes())
    assert "5 are 1 and 95 are 0" in roles.announcement
    assert roles.counts == (5, 95, 0)
    with pytest.warns(LabelReadingWarning, match="1, 0 and -1"):
        roles = read_labels(labelled([1, 0, -1, -1]), "y", LabelCodes())
    assert "positive, negative and unlabelled" in roles.announcement
    assert roles.counts == (1, 1, 2)
    # few rows, many positives, or named codes: nothing to ask
    for quiet in (labelled([1] * 2 + [0] * 38), labelled([1] * 50 + [0] * 50)):
        assert read_labels(quiet, "y", LabelCodes()).announcement is None
    named = LabelCodes(positive=[1], negative=[0])
    assert read_labels(zeros, "y", named).announcement is None


def test_a_named_label_that_does_not_occur():
    few, many = labelled(list("abc")), labelled(list("abcdefg"))
    with pytest.raises(InputError, match=r"never holds 'A'.*mean 'a'.*it holds 'a', 'b', 'c'\."):
        read_labels(few, "y", LabelCodes(positive=["A"], negative=["b"]))
    with pytest.raises(InputError, match=r"'a', 'b', 'c', 'd', 'e', \.\.\.\.$"):
        read_labels(many, "y", LabelCodes(positive=["x"], negative=["b"]))


@pytest.mark.parametrize(
    ("n_n", "method"), [(20, "combined"), (20, "pn"), (0, "pu"), (0, "pu_raw")]
)
@pytest.mark.parametrize("prior", [0.2, (0.1, 0.3)])
def test_a_rival_and_the_committee_subtract_to_their_difference(n_n, method, prior):
    """By one way of counting; by labelled pairs, all lines tell the same of the committee."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.array([1, 0, -1], np.int8), [20, n_n, 60])
    rows = np.arange(len(codes))
    hidden = (codes == 1) | (rows >= len(codes) - 12)
    X = rng.normal(size=(len(codes), 3)) + 0.7 * hidden[:, None]
    scores = rng.normal(size=len(codes)) + hidden
    held_out = CrossFit(rows, Roles(codes), scores, [(None, None)] * 2, Copies(rows, 0, 0))
    lines = rival_findings(
        RankingOnly(), X, held_out, read_prior(prior), method, 2, FitSettings(folds=2)
    )
    assert len(lines) == (2 if n_n else 1)
    assert lines[0]["name"].startswith("PNU-AUC" if n_n else "PU-AUC")
    if method == "pn" or (method == "pu" and prior == 0.2):  # nothing to integrate over
        direct = auc_estimate(held_out.roles, scores, read_prior(prior), method).value
        assert [line["committee"] for line in lines] == pytest.approx([direct] * len(lines))
    for line in lines:
        assert line["committee"] - line["auc"] == pytest.approx(line["difference"], abs=1e-9)
        assert line["low"] <= line["difference"] <= line["high"]
        sentence = words.rival_words(line)
        # without a prior it is no AUC
        measure = "share of pairs won" if method == "pu_raw" else "AUC"
        assert f": {measure} in refits" in sentence
        for value in (line["auc"], line["committee"], line["difference"]):
            assert f"{value:.3f}" in sentence
