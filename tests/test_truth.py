"""Words follow numbers: every number printed is possible, no sentence contradicts another."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pnuauc._placement import place_scores
from pnuauc._prior import ClassPrior
from pnuauc._report import _words as words
from pnuauc._study import ColumnRoles, FitSettings, fit_study
from pnuauc._study._copies import Copies
from pnuauc._study._crossfit import CrossFit
from pnuauc._study._findings import (
    auc_findings,
    copies_findings,
    prior_verdict,
    review_findings,
    trained_on_all,
)
from pnuauc.labels import Roles

EDGES = st.sampled_from([0.0, 1e-9, 0.001, 0.5, 0.999, 1.0])


@st.composite
def held_out(draw):
    """Held-out scores at the edges: few rows, no negatives, perfect or hopeless rankings."""
    n_p = draw(st.sampled_from([3, 5, 20, 100]))
    n_n = draw(st.sampled_from([0, 3, 20, 100]))
    n_u = draw(st.sampled_from([30, 300]))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    shift = draw(st.sampled_from([-3.0, 0.0, 1.0, 8.0]))
    codes = np.repeat(np.array([1, 0, -1], np.int8), [n_p, n_n, n_u])
    scores = rng.normal(shift * (codes == 1))
    if draw(st.booleans()):
        scores = np.round(scores)
    copies = Copies(np.arange(len(codes)) // draw(st.sampled_from([1, 2])), 0, 0)
    return CrossFit(np.arange(len(codes)), Roles(codes), scores, [(None, None)] * 5, copies)


@st.composite
def priors(draw):
    kind = draw(st.sampled_from(["known", "interval", "estimate", "doubtful", "posterior"]))
    value = draw(st.one_of(EDGES, st.floats(0, 1)))
    if kind == "known":
        return ClassPrior.known(value)
    other = draw(st.one_of(EDGES, st.floats(0, 1)))
    low, high = min(value, other), max(value, other)
    if kind == "interval":
        return ClassPrior.from_interval(low, high)
    if kind == "posterior":
        weights = draw(st.lists(st.floats(0.01, 1), min_size=5, max_size=5))
        return ClassPrior.from_posterior(np.linspace(0.01, 0.99, 5), weights, source="estimated")
    doubt = "P and U look alike." if kind == "doubtful" else None
    return ClassPrior(value, low, high, 0.95, (high - low) / 4, "estimated", doubt)


def findings_of(held, prior, k):
    roles = held.roles
    found = {
        "labels": {"unlabeled": roles.n_unlabeled},
        "prior": {**prior.to_dict(), **prior_verdict(prior, roles)},
        "copies": copies_findings(held),
        "review": review_findings(held, prior, roles.n_unlabeled, k, 0.95),
        **auc_findings(held, prior, 0.95),
    }
    return found


@given(held_out(), priors(), st.sampled_from([1, 20, 300]))
@settings(max_examples=60, deadline=None)
def test_numbers_are_possible_and_sentences_agree(held, prior, k):
    found = findings_of(held, prior, k)
    labels, auc, review = found["labels"], found["auc"], found["review"]
    for estimate in [auc, found["auc_raw"], *found["auc_methods"].values()]:
        if estimate is not None:
            assert 0 <= estimate["low"] <= estimate["value"] <= estimate["high"] <= 1
            assert np.isfinite(estimate["std_error"])
    told = words.headline(found)
    text = " ".join(told)
    assert "nan" not in text.lower()
    assert "inf" not in text.replace("information", "")
    for share in re.findall(r"(-?[\d.]+)%", text):
        assert 0 <= float(share) <= 100
    # the top speaks of the rows asked for, and of no more positives than rows
    rows = min(k, labels["unlabeled"])
    assert review["k"] == rows
    assert 0 <= review["expected"]["low"] <= review["expected"]["high"] <= rows
    if review["told"]:
        assert f"{rows:,}" in told[-1] or rows == 1
        assert review["expected"]["high"] - review["expected"]["low"] < rows
    else:
        assert "cannot be told" in told[-1]
    # what cannot be told is not told
    if not found["prior"]["told"]:
        assert "are positive cannot be told" in text
        assert f"{found['prior']['value']:.1%}" not in told[1]
        assert auc is None or auc["method"] == "pn"
        assert "would hold" not in told[-1]
    if auc is None:
        assert "picked at random, the model puts" not in text
    elif auc["low"] <= 0.5:
        assert "do not show that the model ranks better" in text
    else:
        assert "do not show" not in text
    curve = found.get("sensitivity")
    if curve is not None:
        assert auc["method"] == curve["method"]
        assert all(0 <= v <= 1 for name in ("low", "value", "high") for v in curve[name])
        assert curve["priors"][0] <= curve["at"] <= curve["priors"][-1]
        # the headline averages over the curve: it cannot lie outside of all of it
        assert auc["low"] >= min(curve["low"]) - 0.02
        assert auc["high"] <= max(curve["high"]) + 0.02


def test_what_more_rows_gain():
    """Nothing at a coin or at perfection, something between, and less with more training rows."""
    grid = np.linspace(0, 1, 101)
    for share in (0.5, 0.8, 0.9):
        moved = trained_on_all(grid, share, 0.75)
        assert (moved >= grid - 1e-12).all()
        assert (np.diff(moved) > 0).all()
        assert moved[-1] == 1
        np.testing.assert_allclose(moved[grid <= 0.5], grid[grid <= 0.5])
    assert trained_on_all(0.9, 0.5, 0.25) > trained_on_all(0.9, 0.8, 0.25) > 0.9


def rare_table(n_p, n_n, n_u, prior, seed=0, shift=2.2):
    """Two useful columns of six; labels, hidden truth, and fresh rows."""
    rng = np.random.default_rng(seed)
    hidden = np.r_[np.ones(n_p), np.zeros(n_n), rng.random(n_u) < prior].astype(bool)
    X = rng.normal(size=(len(hidden), 6))
    X[:, :2] += shift * hidden[:, None] / 1.4
    y = [1] * n_p + [0] * n_n + [None] * n_u
    table = pa.table({**{f"x{j}": X[:, j] for j in range(6)}, "y": pa.array(y, pa.int8())})
    fresh = np.r_[np.ones(1500), np.zeros(1500)].astype(bool)
    X_new = rng.normal(size=(3000, 6))
    X_new[:, :2] += shift * fresh[:, None] / 1.4
    return table, hidden[n_p + n_n :], X_new, fresh


def fresh_auc(study, X, truth):
    table = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    scores = study.ranker.decision_function(study.encoder.transform(table))
    return (scores[truth][:, None] > scores[~truth]).mean()


QUICK = FitSettings(n_centers=40, importance=False)


def test_a_prior_at_its_floor_makes_no_false_claim(monkeypatch):
    """9% positives, an estimate of 0 with the interval 0 to 12%: once that gave an AUC of .927
    (.902 to .946) where fresh rows gave .968, "some 3 rows", and a table cell of 2,476."""
    floored = ClassPrior(0.0, 0.0, 0.118, 0.95, 0.06, "estimated by EnergyDistancePrior")
    monkeypatch.setattr("pnuauc._study._fit.find_prior", lambda *args, **kwargs: floored)
    table, hidden, fresh, truth = rare_table(30, 100, 1500, 0.09)
    study = fit_study(table, ColumnRoles("y"), QUICK)
    found = study.findings
    auc = found["auc"]
    assert auc["low"] <= fresh_auc(study, fresh, truth) <= auc["high"]
    for each in found["auc_methods"].values():
        assert 0 <= each["low"] <= each["value"] <= each["high"] <= 1
        assert each["std_error"] < 0.5 or each["method"] == "nu"
    order = np.argsort(-study.model.score(table.slice(130)), kind="stable")[:20]
    expected = found["review"]["expected"]
    assert expected["low"] <= hidden[order].sum() <= expected["high"]
    sentence = words.prior_words(found)
    assert "0.0% to 11.8%" in sentence
    assert "0 to 177 rows" in sentence


def test_two_positives_tell_neither_prior_nor_auc():
    """2 P and 5 N once gave "about 99.9% ... some 1,492 rows"."""
    table, _, _, _ = rare_table(2, 5, 300, 0.1)
    found = fit_study(table, ColumnRoles("y"), QUICK).findings
    assert found["auc"] is None
    assert not found["prior"]["told"]
    text = " ".join(words.headline(found))
    assert "cannot be told from these labels" in text
    assert "Label 100 of the unlabelled rows" in text
    assert not re.search(r"some [\d,]+ rows", text)
    assert len(found["top"]["rows"]) == 20  # the ranking needs no prior


def test_the_top_speaks_of_the_rows_asked_for():
    table, hidden, _, _ = rare_table(40, 60, 900, 0.1)
    for top in (7, 20):
        chosen = FitSettings(n_centers=40, importance=False, top=top, prior=float(hidden.mean()))
        found = fit_study(table, ColumnRoles("y"), chosen).findings
        assert found["review"]["k"] == top
        assert f"the {top} unlabelled rows" in words.review_words(found)


def test_rows_of_the_top_are_as_likely_as_their_number_says():
    """The same posterior: probabilities of the rows to review add up to the count expected."""
    table, _, _, _ = rare_table(20, 40, 400, 0.1)
    chosen = FitSettings(importance=False, comparisons=False, prior=0.1)
    study = fit_study(table, ColumnRoles("y"), chosen)
    top, review = study.findings["top"], study.findings["review"]
    assert sum(top["probability"]) == pytest.approx(review["expected"]["value"], abs=0.3)
    rows = study.encoder.transform(table)
    chances = study.ranker.predict_proba(rows)[:, 1]
    np.testing.assert_allclose(study.model.probability(study.model.score(table))[:, 0], chances)


def test_a_stated_prior_that_cannot_be_is_said_to_be_refuted():
    table, _, _, _ = rare_table(60, 0, 900, 0.03, shift=6.0)
    chosen = FitSettings(n_centers=40, importance=False, prior=0.6)
    found = fit_study(table, ColumnRoles("y"), chosen).findings
    assert found["auc"] is None
    assert "refuted" in found["auc_reason"]
    assert "refuted" in words.headline(found)[0]


def test_placement_and_prior_agree_on_all_rows():
    found = place_scores([0.9] * 20, [0.3] * 30, ClassPrior.known(0.1))
    assert found.top(500, 500).value == pytest.approx(50, abs=2)
