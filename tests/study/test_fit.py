"""Tests of study/fit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pnuauc.exceptions import InputError
from pnuauc.report.words import auc_words
from pnuauc.study.fit import FitSettings, fit_study
from pnuauc.study.payments import make_payments
from pnuauc.study.rows import ColumnRoles


def stacked(times, seed=0, n=110):
    """A hard table (best AUC .69), its rows ``times`` times, and fresh rows."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n + 4000) < 0.4
    X = rng.normal(size=(n + 4000, 6)) + 0.3 * hidden[:, None]
    y = [int(v) if i < 60 else None for i, v in enumerate(hidden[:n])]
    columns = {f"x{j}": np.tile(X[:n, j], times) for j in range(6)}
    return pa.table({**columns, "y": pa.array(y * times, pa.int8())}), X[n:], hidden[n:]


@pytest.mark.slow
def test_a_stacked_table_reads_no_better_than_it_is():
    """The same table stacked four times once read .92 where fresh rows gave .63."""
    settings = FitSettings(n_centers=30, importance=False, prior=0.4)
    once, fresh, truth = stacked(1)
    study = fit_study(stacked(4)[0], ColumnRoles("y"), settings)
    alone = fit_study(once, ColumnRoles("y"), settings)
    copies, auc = study.findings.copies, study.findings.auc
    assert copies["identical"] == 440
    assert any("count as" in note for note in auc.notes)
    assert alone.findings.copies["identical"] == 0
    scores = study.ranker.decision_function(
        study.encoder.transform(pa.table({f"x{j}": fresh[:, j] for j in range(6)}))
    )
    wins = (scores[truth][:, None] > scores[~truth]).mean()
    assert auc.low <= wins <= auc.high
    assert auc.value < 0.8
    # four copies of a row are no more information than one
    assert auc.high - auc.low > 0.8 * (alone.findings.auc.high - alone.findings.auc.low)


def test_percentiles_are_places_among_the_unlabelled_rows():
    rng = np.random.default_rng(1)
    labelled = np.arange(160) < 60
    x = rng.normal(size=160) + 3.0 * labelled  # labelled rows score far above
    y = [int(i < 40) if i < 60 else None for i in range(160)]
    table = pa.table({"x": x, "z": rng.normal(size=160), "y": pa.array(y, pa.int8())})
    settings = FitSettings(prior=0.2, n_centers=10, folds=2, top=5, importance=False)
    study = fit_study(table, ColumnRoles("y"), settings)
    scores = study.model.score(table)
    header, rows = study.findings.top.header, study.findings.top.rows
    assert len(rows) == 5
    for row in rows:
        line = dict(zip(header, row))
        place = line["row"] - 1
        assert y[place] is None
        assert line["score"] == pytest.approx(scores[place])
        below = 100 * np.mean(scores[~labelled] < scores[place])
        assert line["percentile"] == pytest.approx(below, abs=1.1)  # 100 rows
    assert max(row[header.index("percentile")] for row in rows) > 99


def test_scores_of_the_fit_are_those_of_the_model_that_is_kept():
    rng = np.random.default_rng(7)
    hidden = rng.random(300) < 0.4
    y = [int(v) if i < 40 else None for i, v in enumerate(hidden)]
    columns = {name: rng.normal(size=300) + hidden for name in "abc"}
    table = pa.table({**columns, "y": pa.array(y, pa.int8())})
    settings = FitSettings(top=6, importance=False, comparisons=False)
    study = fit_study(table, ColumnRoles("y"), settings)
    scores = study.model.score(table)[40:]
    model, top = study.model, study.findings.top
    expected = np.quantile(scores, np.linspace(0, 1, len(model.quantiles)))
    assert model.quantiles == pytest.approx(expected, abs=1e-9)
    assert [row[1] for row in top.rows] == pytest.approx(np.sort(scores)[::-1][:6], abs=1e-9)


def noise_table(n=260, labelled=100, n_columns=6, seed=0):
    """Labels that have nothing to do with the columns."""
    rng = np.random.default_rng(seed)
    y = [int(rng.random() < 0.4) if i < labelled else None for i in range(n)]
    columns = {f"x{j}": rng.normal(size=n) for j in range(n_columns)}
    return pa.table({**columns, "y": pa.array(y, pa.int8())})


@pytest.mark.slow
def test_estimate_is_not_fooled_by_noise():
    """On pure noise the training AUC is high; the stated one must not rule chance out.

    Curves rise, so the AUC is at least one half, and the interval begins there. Six draws; 95%
    intervals miss it in more than 2 of 6 with probability 0.002.
    """
    missed, training = 0, []
    for seed in range(6):
        table = noise_table(seed=seed)
        study = fit_study(
            table, ColumnRoles("y"), FitSettings(prior=0.4, n_centers=30, folds=3, importance=False)
        )
        missed += "do not show that the model ranks better" not in auc_words(study.findings)
        labels = np.array(table.column("y").to_pylist()[:100])
        scores = study.model.score(table)[:100]
        wins = scores[labels == 1][:, None] > scores[labels == 0]
        training.append(wins.mean())
    assert np.mean(training) > 0.65  # so an estimate on training rows would have been a lie
    assert missed <= 2


def test_a_column_that_matters_is_found_and_is_the_reason_of_rows_to_review():
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
    findings = fit_study(table, ColumnRoles("y", ids=("id",)), settings).findings
    first, second = findings.importance.columns
    assert (first.column, second.column) == ("signal", "noise")
    assert first.drop > 0.2
    assert first.direction == "higher values score higher"
    assert abs(second.drop) < 0.06
    top = findings.top
    assert top.ids == ["id"]
    assert top.columns == ["noise", "signal"]
    for line, cells, reason in zip(top.rows, top.cells, top.reasons, strict=True):
        assert line[1] == f"{line[0] - 1:08d}"
        assert cells[1] == f"{table.column('signal')[line[0] - 1].as_py():.6g}"
        assert f"signal = {cells[1]}" in reason


@pytest.mark.slow
def test_model_card_and_findings_are_reproducible():
    table, _ = make_payments(200, labelled=60, share=0.2, seed=5)
    roles = ColumnRoles("is_fraud", ids=("payment_id",))
    settings = FitSettings(n_centers=10, folds=2)
    first, second = (fit_study(table, roles, settings) for _ in range(2))
    for key in ("auc", "prior", "importance", "unlabeled_effect", "top"):
        assert getattr(first.findings, key) == getattr(second.findings, key)
    np.testing.assert_array_equal(first.model.scorer.coef, second.model.scorer.coef)


@pytest.mark.slow
def test_beliefs_that_nothing_would_use():
    for belief, more, words in (
        ((0.1, 0.2), {"prior": 0.1}, "given is not estimated"),
        ((0.2, 0.1), {}, "0 <= low < high <= 1"),
        ("low", {}, "belief must be"),
    ):
        with pytest.raises(InputError, match=words):
            FitSettings(belief=belief, **more)


QUICK = {"prior": 0.25, "model": "average", "n_centers": 4, "folds": 2, "top": 3}


SHORT = {**QUICK, "importance": False, "comparisons": False}


def a_table(sizes=(8, 12, 40), seed=0, **columns):
    """Two columns of numbers, of which the first tells, one of words with gaps, ids, labels."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    tells = np.r_[np.ones(sizes[0]), np.zeros(sizes[1]), rng.random(sizes[2]) < 0.25]
    labels = [1] * sizes[0] + [0] * sizes[1] + [None] * sizes[2]
    return pa.table(
        {
            "x": rng.normal(size=n) + 2 * tells,
            "z": rng.normal(size=n),
            "w": pa.array([["a", "b", "c", None][k % 4] for k in range(n)]),
            "i": [f"r{k}" for k in range(n)],
            "y": pa.array(labels, pa.int8()),
            **columns,
        }
    )


COLUMNS = ColumnRoles("y", ids=("i",))


@pytest.mark.parametrize("folds", [2, 5])
@pytest.mark.parametrize(
    ("groups", "n_folds"),
    [((1, 1, 1), (3, 3)), ((2, 1, 1), (3, 3)), ((1, 1, 1, 1), (2, 4)), ((3, 1, 1, 1), (2, 4)),
     ((1, 1), None), ((2, 1), None), ((3, 1), None), ((3,), None)],
)  # fmt: skip
@pytest.mark.slow
def test_three_different_rows_of_a_class_can_be_held_back(groups, n_folds, folds):
    """Two rows of a class are left to every refit, whatever is copied and however many folds."""
    n_p = sum(groups)
    table = a_table((n_p, 12, 40)).select(["x", "z", "y"])
    first = np.repeat(np.cumsum([0, *groups[:-1]]), groups)
    table = table.take(pa.array(np.r_[first, n_p : table.num_rows]))
    study = fit_study(table, ColumnRoles("y"), FitSettings(**{**SHORT, "folds": folds}))
    if n_folds is None:
        assert study.evidence is study.findings.auc is None
        assert "at least 3 different rows" in study.findings.auc_reason
        assert "rivals" not in study.findings.to_dict()
        card = study.model.card
        assert card["auc_reason"] == study.findings.auc_reason
        assert (card["label"], card["ids"], "top" in card) == ("y", [], False)
    else:
        held = study.evidence.held_out
        assert held.n_folds == n_folds[folds == 5]
        for k in range(held.n_folds):
            assert 0 < np.sum(held.codes[held.fold == k] == 1) <= n_p - 1
        assert study.findings.auc.low <= study.findings.auc.value


def test_sparse_rows_are_fitted_as_they_are():
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.random((60, 8)) * (rng.random((60, 8)) < 0.5))
    labels = np.repeat([1.0, 0.0, np.nan], [8, 12, 40])
    settings = FitSettings(**{**SHORT, "n_centers": None, "basis": "linear"})
    study = fit_study((X, labels), ColumnRoles("y"), settings)
    scores = study.model.score(X)
    best = 20 + np.argsort(-scores[20:])[:3]
    assert [line[0] - 1 for line in study.findings.top.rows] == best.tolist()
    assert study.findings.table.kinds == {"sparse feature": 8}
    assert study.findings.leaks == []
    encoded = study.encoder.transform(X)
    np.testing.assert_allclose(study.ranker.decision_function(encoded), scores)


def test_a_column_that_knows_the_label_is_told_first():
    known = pa.array([1.0] * 8 + [0.0] * 52)
    findings = fit_study(a_table(k=known), COLUMNS, FitSettings(**SHORT)).findings
    assert len(findings.leaks) >= 1
    assert "Column 'k' separates" in findings.leaks[0]
    assert findings.warnings[: len(findings.leaks)] == findings.leaks
    assert fit_study(a_table(), COLUMNS, FitSettings(**SHORT)).findings.leaks == []


def test_an_unlabelled_row_like_a_labelled_one_keeps_its_probability():
    table = a_table().select(["x", "z", "y"])
    cells = {name: table.column(name).to_numpy().copy() for name in "xz"}
    for column in cells.values():
        column[25] = column[3]
    table = pa.table({**cells, "y": table.column("y")})
    model = fit_study(table, ColumnRoles("y"), FitSettings(**SHORT)).model
    seen, held_out = model.find_seen(table)
    assert np.flatnonzero(seen).tolist() == [*range(20), 25]
    own = model.score_encoded(model.encode(table))
    assert held_out[25] == pytest.approx(own[25], abs=1e-9)
    assert held_out[3] == held_out[25]


def test_rivals_have_no_part_in_the_importance_of_a_column():
    """It is that of the members, with rivals beside them or without."""
    table, found = a_table((20, 30, 150)), []
    for comparisons in (True, False):
        settings = FitSettings(folds=3, comparisons=comparisons)
        findings = fit_study(table, COLUMNS, settings).findings
        assert bool(findings.rivals) == comparisons
        found.append({c.column: c.drop for c in findings.importance.columns})
    assert found[0] == pytest.approx(found[1])
    assert found[0]["x"] > 0.1 > found[0]["z"]
