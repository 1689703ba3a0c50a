"""Studies: held-out estimates are honest, and effects are what they say."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse, stats

from pnuauc._cli._options import parse_belief, parse_prior
from pnuauc._study import (
    ColumnRoles,
    FitSettings,
    LabelCodes,
    evaluate_table,
    find_prior,
    fit_study,
    make_payments,
    prior_findings,
)
from pnuauc._study._crossfit import CrossFit, common_scale, cross_fit, evaluation_rows
from pnuauc._study._importance import (
    MAX_SHUFFLED,
    _direction,
    column_importance,
    importance_findings,
)
from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder
from pnuauc.labels import read_roles
from pnuauc.priors import Beta, PlacementPrior
from pnuauc.priors._resolve import resolve_prior


def noise_table(n=260, labelled=100, n_columns=6, seed=0):
    """Labels that have nothing to do with the columns."""
    rng = np.random.default_rng(seed)
    y = [int(rng.random() < 0.4) if i < labelled else None for i in range(n)]
    columns = {f"x{j}": rng.normal(size=n) for j in range(n_columns)}
    return pa.table({**columns, "y": pa.array(y, pa.int8())})


def test_estimate_is_not_fooled_by_noise():
    """On pure noise the training AUC is high; the held-out one must allow one half.

    Six draws; 95% intervals miss one half in more than 2 of 6 with probability 0.002.
    """
    missed, training = 0, []
    for seed in range(6):
        table = noise_table(seed=seed)
        study = fit_study(
            table, ColumnRoles("y"), FitSettings(prior=0.4, n_centers=30, folds=3, importance=False)
        )
        auc = study.findings["auc"]
        missed += not auc["low"] <= 0.5 <= auc["high"]
        labels = np.array(table.column("y").to_pylist()[:100])
        scores = study.model.score(table)[:100]
        wins = scores[labels == 1][:, None] > scores[labels == 0]
        training.append(wins.mean())
    assert np.mean(training) > 0.65  # so an estimate on training rows would have been a lie
    assert missed <= 2


class Recorder:
    """A ranker that remembers what it was fitted on."""

    fitted: ClassVar[list] = []

    def __init__(self, scale=1.0):
        self.scale = scale

    def get_params(self, deep=True):
        return {"scale": self.scale}

    def set_params(self, **parameters):
        return self

    def fit(self, X, y):
        Recorder.fitted.append((X[:, 0].astype(int).tolist(), y.codes.tolist()))
        # every refit on a scale of its own
        self.factor = 10.0 ** len(Recorder.fitted)
        return self

    def decision_function(self, X):
        return self.factor * (X[:, 1] + len(Recorder.fitted))


def test_no_row_is_scored_by_a_model_that_saw_it():
    rng = np.random.default_rng(0)
    codes = np.array([1] * 10 + [0] * 20 + [-1] * 60, dtype=float)
    roles = read_roles(np.where(codes == -1, np.nan, codes))
    X = np.column_stack([np.arange(90), rng.normal(size=90)])
    Recorder.fitted = []
    result = cross_fit(Recorder(), X, roles, np.arange(90), n_folds=5, seed=0)
    assert len(Recorder.fitted) == 5
    for (test, _), (seen, labels) in zip(result.folds, Recorder.fitted):
        assert not set(result.rows[test]) & set(seen)
        assert sorted([*result.rows[test], *seen]) == list(range(90))
        np.testing.assert_array_equal(labels, codes[seen])
    # scales of the refits are gone: unlabelled scores of each fold are normal quantiles
    for test, _ in result.folds:
        part = result.scores[test][result.roles.codes[test] == -1]
        expected = stats.norm.ppf((np.arange(len(part)) + 0.5) / len(part))
        np.testing.assert_allclose(np.sort(part), expected, atol=1e-9)


def test_evaluation_rows_keep_every_label():
    roles = read_roles([1] * 5 + [0] * 6 + [None] * 100)
    rows = evaluation_rows(roles, 20, 0)
    assert len(rows) == len(set(rows)) == 31
    assert set(range(11)) <= set(rows)
    np.testing.assert_array_equal(evaluation_rows(roles, 1000, 0), np.arange(111))


def test_importance_finds_the_column_that_matters():
    rng = np.random.default_rng(0)
    hidden = rng.random(300) < 0.4
    y = [int(v) if i < 150 else None for i, v in enumerate(hidden)]
    table = pa.table(
        {
            "noise": rng.normal(size=300),
            "signal": rng.normal(size=300) + 2 * hidden,
            "y": pa.array(y, pa.int8()),
        }
    )
    settings = FitSettings(prior=0.4, n_centers=20, folds=3)
    columns = fit_study(table, ColumnRoles("y"), settings).findings["importance"]["columns"]
    assert columns[0]["column"] == "signal"
    assert columns[0]["drop"] > 0.2
    assert abs(columns[1]["drop"]) < 0.06


class Counting:
    """A ranker by one column that counts the rows it scores."""

    rows = 0

    def __init__(self, column, sign=1.0):
        self.column, self.sign = column, sign

    def decision_function(self, X):
        Counting.rows += X.shape[0]
        part = X[:, [self.column]]
        return self.sign * np.asarray(part.todense() if sparse.issparse(part) else part).ravel()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("width", [5, 1000])
def test_importance_of_wide_and_sparse_tables_at_a_bounded_cost(kind, width):
    rng = np.random.default_rng(0)
    n, column = 400, 3
    y = np.repeat([1, 0, -1], [50, 50, 300])
    X = rng.random((n, width)) * (rng.random((n, width)) < 0.5)
    X[:50, column] += 1.0
    if kind == "sparse":
        X = sparse.csr_matrix(X)
        encoder = TableEncoder().fit(X)
    else:
        encoder = TableEncoder().fit(X)
        X = encoder.transform(X)
    ranker = Counting(column, sign=-1.0)
    rows = np.arange(n)
    scores = ranker.decision_function(X)
    fit = CrossFit(rows, read_roles(y), scores, [(rows, ranker)], None)
    fit = CrossFit(rows, fit.roles, common_scale(scores, fit.roles), fit.folds, None)
    Counting.rows = 0
    found = column_importance(fit, X, encoder, 0.2, "pn", seed=0)
    assert len(found) == min(width, MAX_SHUFFLED)
    assert Counting.rows == 3 * n * len(found)
    strongest = max(found, key=lambda item: abs(item["drop"]))
    assert strongest["column"] == ("feature 4" if kind == "sparse" else "x3")
    assert strongest["direction"] == "lower values score higher"
    assert sum(item["drop"] != 0 for item in found) == 1  # the ranker looks at no other
    told = importance_findings(found, width)["procedure"]
    assert ("Of 1,000 columns the 30" in told) == (width == 1000)


def test_directions_of_every_kind_of_column():
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "up": np.arange(n) + rng.normal(size=n),
            "bent": (np.arange(n) - 99.5) ** 2,
            "when": pd.date_range("2024-01-01", periods=n)[::-1],
            "shop": np.where(np.arange(n) > 150, "late", "early"),
            "flag": np.arange(n) > 100,
        }
    )
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    names = encoder.get_feature_names_out()
    scores = np.arange(n) / n
    found = {
        name: _direction(name, X[:, columns], names[columns].tolist(), scores, name == "flag")
        for name, columns in encoder.groups_.items()
    }
    assert found == {
        "up": "higher values score higher",
        "bent": "no single direction",
        "when": "earlier values score higher",
        "shop": "late scores highest",
        "flag": "true scores higher",
    }


def test_rows_to_review_come_with_reasons_columns_and_ids_as_they_are():
    rng = np.random.default_rng(0)
    hidden = rng.random(300) < 0.4
    table = pa.table(
        {
            "id": [f"{k:08d}" for k in range(300)],
            "noise": rng.normal(size=300),
            "signal": rng.normal(size=300) + 3 * hidden,
            "y": pa.array([int(v) if i < 150 else None for i, v in enumerate(hidden)], pa.int8()),
        }
    )
    settings = FitSettings(prior=0.4, n_centers=20, folds=3, top=5)
    top = fit_study(table, ColumnRoles("y", ids=("id",)), settings).findings["top"]
    assert top["ids"] == ["id"]
    assert top["columns"] == ["noise", "signal"]
    for line, cells, reason in zip(top["rows"], top["cells"], top["reasons"], strict=True):
        assert line[1] == f"{line[0] - 1:08d}"
        assert cells[1] == f"{table.column('signal')[line[0] - 1].as_py():.6g}"
        assert f"signal = {cells[1]}" in reason


def test_model_card_and_findings_are_reproducible():
    table, _ = make_payments(200, labelled=60, share=0.2, seed=5)
    roles = ColumnRoles("is_fraud", ids=("payment_id",))
    settings = FitSettings(n_centers=10, folds=2)
    first, second = (fit_study(table, roles, settings) for _ in range(2))
    for key in ("auc", "prior", "importance", "unlabeled_effect", "top"):
        assert first.findings[key] == second.findings[key]
    np.testing.assert_array_equal(first.model.scorer.coef, second.model.scorer.coef)


def test_order_of_rows_does_not_matter_to_the_prior():
    table, _ = make_payments(200, labelled=60, share=0.2, seed=5)
    shuffled = table.take(np.random.default_rng(0).permutation(200))
    found = []
    for data in (table, shuffled):
        settings = FitSettings(n_centers=10, folds=2, importance=False)
        roles = ColumnRoles("is_fraud", ids=("payment_id",))
        found.append(fit_study(data, roles, settings).findings["prior"])
    # folds are drawn by row number, so it is another draw, well within the error
    assert abs(found[0]["value"] - found[1]["value"]) < 0.5 * found[0]["std_error"]


def test_top_rows_are_the_highest_unlabelled_scores():
    table, _ = make_payments(200, labelled=60, share=0.2, seed=5)
    settings = FitSettings(n_centers=10, folds=2, top=7, importance=False)
    study = fit_study(table, ColumnRoles("is_fraud", ids=("payment_id",)), settings)
    scores = study.model.score(table)
    unlabeled = [i for i, v in enumerate(table.column("is_fraud").to_pylist()) if v is None]
    expected = sorted(unlabeled, key=lambda i: -scores[i])[:7]
    assert [row[0] - 1 for row in study.findings["top"]["rows"]] == expected
    ids = table.column("payment_id").to_pylist()
    assert [row[1] for row in study.findings["top"]["rows"]] == [ids[i] for i in expected]


def test_given_prior_and_interval():
    roles = read_roles([1] * 10 + [None] * 90)
    prior = find_prior((0.1, 0.3), None, roles)
    assert (prior.value, prior.low, prior.high) == (pytest.approx(0.2), 0.1, 0.3)
    assert prior.std_error == pytest.approx(0.2 / (2 * 1.959964), rel=1e-6)
    assert prior_findings(prior, roles)["population"] == pytest.approx((10 + 0.2 * 90) / 100)
    assert find_prior(0.2, None, read_roles([1, 0])) is None


@pytest.mark.parametrize("text", ["0", "1", "2", "-0.1", "x", "0.3:0.1", "0.1:0.2:0.3", ""])
def test_priors_that_are_none(text):
    with pytest.raises(InputError, match="--prior takes"):
        parse_prior(text)


@pytest.mark.parametrize("text", ["0.1", "x", "0.3:0.1", "0.1:0.1", "-0.1:0.2", "0:1.1", "0:.1:.2"])
def test_beliefs_that_are_none(text):
    with pytest.raises(InputError, match="--belief takes"):
        parse_belief(text)


def test_a_belief_reaches_the_estimate():
    """A study starts from it as the estimator does; with flat columns it is all there is."""
    rng = np.random.default_rng(4)
    X = np.r_[rng.normal(2, 1, (40, 2)), rng.normal(2, 1, (60, 2)), rng.normal(0, 1, (240, 2))]
    roles = read_roles([1] * 40 + [None] * 300)
    for belief in ((0.0, 0.1), (0.5, 1.0), Beta(2, 5)):
        found = find_prior(None, X, roles, belief=belief, level=0.9)
        alone = PlacementPrior(belief=belief, level=0.9)
        expected, _ = resolve_prior(alone, X, roles, random_state=0)
        assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
        assert found.source.endswith(f"with the belief {belief}")
    low, high = (find_prior(None, X, roles, belief=b).value for b in ((0.0, 0.1), (0.5, 1.0)))
    assert low < find_prior(None, X, roles).value < high


def test_beliefs_that_nothing_would_use():
    for belief, more, words in (
        ((0.1, 0.2), {"prior": 0.1}, "given is not estimated"),
        ((0.2, 0.1), {}, "0 <= low < high <= 1"),
        ("low", {}, "belief must be"),
    ):
        with pytest.raises(InputError, match=words):
            FitSettings(belief=belief, **more)


def test_evaluate_reads_codes_and_several_columns():
    table = pa.table({"s": [3.0, 2.0, 1.0, 0.5], "y": ["good", "good", "bad", "bad"]})
    found = evaluate_table(table, "y", ["s"], codes=LabelCodes(positive=["good"], negative=["bad"]))
    assert found["scores"]["s"]["auc"]["value"] == 1.0


def test_payments_are_what_they_say():
    table, fraud = make_payments(4000, seed=9)
    labels = table.column("is_fraud").to_pylist()
    assert labels.count(1) == 53
    assert sum(v is not None for v in labels) == 160
    assert all(fraud[i] == bool(v) for i, v in enumerate(labels) if v is not None)
    assert 0.04 < fraud.mean() < 0.08
