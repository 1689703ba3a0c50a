"""Limits that a study states, each from both sides, and its defaults."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

from pnuauc._prior import ClassPrior
from pnuauc._role_counts import RoleCounts
from pnuauc._sources import MemorySource
from pnuauc._study import (
    FitSettings,
    LabelCodes,
    evaluate_table,
    find_prior,
)
from pnuauc._study._census import read_source_labels
from pnuauc._study._copies import Copies
from pnuauc._study._crossfit import CrossFit
from pnuauc._study._findings import _of_final_model, prior_verdict
from pnuauc._study._importance import _direction, _strongest, importance_findings
from pnuauc._study._prior import _posterior
from pnuauc._study._reference import _edges
from pnuauc._study._review import top_rows
from pnuauc._study._rows import _checked, _numbers_rows
from pnuauc.exceptions import InputError
from pnuauc.labels import Roles
from pnuauc.metrics import auc_estimate
from tests.conftest import final_limits, roles_of


def test_settings_of_a_fit():
    """Those of the command line's help and of the measurements in the documentation."""
    assert vars(FitSettings()) == {
        "prior": None, "belief": None, "model": None, "basis": None, "n_centers": None, "folds": 5,
        "evaluation_unlabeled": 5000, "max_unlabeled": 200_000, "top": 20, "importance": True,
        "comparisons": True, "level": 0.95, "n_jobs": None, "random_state": 0,
    }  # fmt: skip


def test_rows_to_draw():
    assert (_checked("all"), _checked(2), _checked(np.int64(7))) == (200_000, 2, 7)
    for wrong in (1, 0, -5, 2.5, "some"):
        with pytest.raises(InputError, match="must be 2 or more, or 'all'"):
            _checked(wrong)
    assert _numbers_rows((1, 40), 40)
    assert _numbers_rows((0, 39), 40)
    assert not _numbers_rows((1, 41), 40)
    assert not _numbers_rows((1, 39), 40)
    assert not _numbers_rows(None, 40)


# --- what held-out scores say ---------------------------------------------------------------------


@pytest.mark.parametrize("n_folds", [5, 2])
@pytest.mark.parametrize("counts", [(40, 40, 0), (40, 0, 40), (0, 40, 40)])
def test_the_final_model_errs_less_than_refits_by_measured_powers(n_folds, counts):
    """Error times share^power where there is most to learn: least, usual and largest gain."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], 40)
    refits = auc_estimate(y, rng.normal(y, 1.0))
    rows = np.arange(80)
    copies = Copies(rows, 0, 0)
    held_out = CrossFit(rows, roles_of(*counts), np.zeros(80), [()] * n_folds, copies)
    found = _of_final_model(refits, held_out)
    ends = (refits.low, refits.value, refits.high)
    expected = final_limits(ends, 1 - 1 / n_folds, all(counts[:2]))
    assert [found.low, found.value, found.high] == pytest.approx(expected)
    assert found.std_error == refits.std_error


@pytest.mark.parametrize(
    ("width", "counts", "doubt", "told"),
    [
        (0.79, (3, 3, 101), None, True), (0.81, (3, 3, 101), None, False),
        (0.1, (2, 9, 101), None, False), (0.1, (9, 2, 101), None, False),
        (0.1, (3, 0, 101), None, True), (0.1, (2, 0, 101), None, False),
        (0.1, (9, 9, 101), "why", False),
    ],
)  # fmt: skip
def test_when_labels_tell_the_prior(width, counts, doubt, told):
    """Three rows of each class that is labelled, no doubt, and an interval below .8."""
    prior = ClassPrior(0.1, 0.1, 0.1 + width, 0.95, 0.05, "estimated by hand", doubt=doubt)
    found = prior_verdict(prior, RoleCounts(*counts, 1, 0, None))
    assert found["told"] is told
    if told:
        assert set(found) == {"told"}
    else:
        assert "Label 100 of the unlabelled rows" in found["needed"]
        there = prior_verdict(prior, RoleCounts(*counts[:2], 100, 1, 0, None))
        assert there["needed"].startswith("Label the unlabelled rows. ")
        few = min(n for n in counts[:2]) < 10
        expected = doubt or ("With 2 positive" if counts[0] == 2 else "With ")
        assert found["reason"].startswith(expected)
        assert ("these columns" in found["reason"]) is (not few and doubt is None)


def test_a_given_prior_is_told_and_none_is_nothing():
    assert prior_verdict(ClassPrior.known(0.2), RoleCounts(1, 0, 9, 1, 0, None)) == {"told": True}
    assert prior_verdict(None, RoleCounts(1, 1, 9, 1, 0, None)) == {}
    wide = ClassPrior(0.1, 0.0, 1.0, 0.95, 0.5, "estimated by hand")
    reason = prior_verdict(wide, RoleCounts(10, 10, 9, 1, 0, None))["reason"]
    assert reason.startswith("With these columns")


def test_priors_that_an_evaluation_shows():
    rng = np.random.default_rng(1)
    y = [1] * 40 + [0] * 60 + [None] * 300
    table = pa.table({"s": rng.normal(size=400), "y": pa.array(y, pa.int8())})
    shown = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
    alone = evaluate_table(
        table.filter(pa.compute.invert(pa.compute.equal(table["y"], 0)).fill_null(True)), "y", ["s"]
    )
    assert alone["scores"]["s"]["sensitivity"]["priors"] == shown
    known = evaluate_table(table, "y", ["s"], prior=0.123456)
    assert known["scores"]["s"]["sensitivity"]["priors"] == sorted([*shown, 0.1235])
    assert known["scores"]["s"]["sensitivity"]["level"] == 0.95


def test_a_prior_rests_on_so_many_rows():
    rng = np.random.default_rng(2)
    for n, told in ((20_000, False), (20_001, True)):
        X = np.r_[rng.normal(3, 1, 10), rng.normal(0, 1, 10 + n)][:, None]
        source = find_prior(None, X, roles_of(10, 10, n), method="energy").source
        assert ("on 20,000 of the unlabelled rows" in source) is told


def test_points_of_a_chart():
    """Every second of 160 points, and all of 159."""
    for n, left in ((160, 80), (159, 159), (80, 80), (240, 80)):
        shares = np.linspace(0.1, 0.9, n)
        assert len(_posterior(ClassPrior.from_posterior(shares, np.ones(n)))["shares"]) == left
    shares = np.linspace(0.1, 0.9, 50)
    for ratio, left in ((1.2e-3, 50), (0.8e-3, 49)):
        weights = np.ones(50)
        weights[20] = ratio
        assert len(_posterior(ClassPrior.from_posterior(shares, weights))["shares"]) == left


def test_cells_that_scores_are_counted_in():
    edges = _edges(np.arange(100_000.0))
    assert len(edges) == 4095
    assert np.diff(edges).max() <= 100_000 / 4096 + 2


# --- labels and columns ---------------------------------------------------------------------------


def test_so_many_different_labels_are_measurements():
    for n, words in ((10_000, "Label column 'y':"), (10_001, "more than 10,000 different values")):
        table = pa.table({"y": np.arange(n) + 5})
        with pytest.raises(InputError, match=words):
            read_source_labels(MemorySource(table), "y", LabelCodes())


def with_correlation(wanted, n=400):
    """(values, scores) of a rank correlation just so."""
    rng = np.random.default_rng(3)
    values, noise = np.arange(n, dtype=float), rng.permutation(n).astype(float)
    steps = np.linspace(-0.3, 0.4, 1401)
    found = [spearmanr(values, noise + step * values)[0] for step in steps]
    step = steps[np.argmin(np.abs(np.array(found) - wanted))]
    return values[:, None], noise + step * values


@pytest.mark.parametrize(
    ("correlation", "words"),
    [
        (0.09, "no single direction"),
        (0.11, "higher values"),
        (-0.09, "no single"),
        (-0.11, "lower"),
    ],
)
def test_directions_are_told_from_a_correlation_of_a_tenth_on(correlation, words):
    values, scores = with_correlation(correlation)
    assert spearmanr(values[:, 0], scores)[0] == pytest.approx(correlation, abs=0.005)
    assert _direction("x", values, ["x"], scores, False).startswith(words)


def test_columns_that_are_shuffled():
    encoder = SimpleNamespace(
        is_sparse=False, groups_={f"c{j}": [2 * j, 2 * j + 1] for j in range(40)}
    )
    related = np.random.default_rng(4).normal(size=80)
    found = _strongest(encoder, related, 30)
    strength = np.abs(related).reshape(40, 2).max(axis=1)
    assert list(found) == [f"c{j}" for j in np.argsort(-strength)[:30]]
    assert all(found[name] == encoder.groups_[name] for name in found)
    wide = _strongest(SimpleNamespace(is_sparse=True), related, 5)
    assert wide == {f"feature {j + 1}": [j] for j in np.argsort(-np.abs(related))[:5]}
    told = importance_findings([{"column": "a"}] * 30, 40)
    assert "at most 500 unlabelled" in told["procedure"]
    assert "Of 40 columns the 30" in told["procedure"]
    assert "Of" not in importance_findings([{"column": "a"}] * 30, 30)["procedure"]
    assert importance_findings([], 3)["procedure"] == "Not measured."


# --- rows to review -------------------------------------------------------------------------------


def reviewed(n_columns=250, n_rows=30, n_top=4, important=None, **options):
    """(findings, columns that were tried as reasons, X)."""
    X = np.random.default_rng(5).normal(size=(n_rows, n_columns))
    table = pa.table({f"c{j}": X[:, j] for j in range(n_columns)})
    tried = []

    def reasons(rows, n, names):
        tried.append((len(rows), n, list(names)))
        return [[] for _ in rows]

    encoder = SimpleNamespace(
        columns_=[SimpleNamespace(name=name) for name in table.column_names], is_sparse=False
    )
    model = SimpleNamespace(
        encoder=encoder, score_encoded=lambda rows: rows[:, 0], percentile=lambda s: 10 * s,
        reasons=reasons, probability=lambda s: None,
    )  # fmt: skip
    codes = np.where(np.arange(n_rows) % 3 == 0, 1, -1).astype(np.int8)
    found = top_rows(model, X, table, None, Roles(codes), n_top, important, **options)
    return found, tried, X, codes


def test_columns_of_a_row_to_review():
    """Six beside the score, 200 on demand, 60 tried as reasons."""
    found, tried, X, codes = reviewed()
    names = [f"c{j}" for j in range(250)]
    assert found["header"] == ["row", "score", "percentile", *names[:6]]
    assert (found["columns"], found["n_columns"]) == (names[:200], 250)
    assert tried == [(4, 60, names[:60])]
    best = [i for i in np.argsort(-X[:, 0]) if codes[i] == -1][:4]
    for line, cells, i in zip(found["rows"], found["cells"], best, strict=True):
        assert line == [i + 1, X[i, 0], 10 * X[i, 0], *X[i, :6]]
        assert len(cells) == 200
    assert reviewed(important=names[9::-1])[1] == [(4, 10, names[9::-1])]
    numbers = np.arange(30) * 7
    moved = reviewed(numbers=numbers)[0]
    assert [line[0] for line in moved["rows"]] == [7 * i + 1 for i in best]
    assert reviewed(n_top=0)[0]["rows"] == []
    assert len(reviewed(n_top=1)[0]["rows"]) == 1


def test_many_rows_are_scored_in_parts():
    found, _, X, codes = reviewed(2, 150_000, 3)
    best = [i for i in np.argsort(-X[:, 0])[:20] if codes[i] == -1][:3]
    assert [line[0] - 1 for line in found["rows"]] == best
