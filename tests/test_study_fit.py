"""Parts of a fit, each against doing it once more: prior, ranker, places, rows, reasons, stages."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier

from pnuauc import AUCClassifierCV
from pnuauc._committee import AutoAUCClassifier, RankingOnly
from pnuauc._prior import ClassPrior
from pnuauc._study import ColumnRoles, FitSettings, _rows, find_prior, fit_study
from pnuauc._study import _fit as study_fit
from pnuauc._study._committee import rival_findings
from pnuauc._study._copies import Copies
from pnuauc._study._crossfit import CrossFit, cross_fit
from pnuauc._study._findings import held_out_placement
from pnuauc._study._importance import column_importance
from pnuauc._study._rows import StudyRows, study_rows
from pnuauc.baselines import LabeledOnly
from pnuauc.io import TableEncoder
from pnuauc.labels import Roles
from pnuauc.metrics import compare_auc
from tests.conftest import roles_of

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


# --- the prior ------------------------------------------------------------------------------------


def test_the_prior_of_a_fit_has_its_belief_level_and_seed():
    X, roles = np.random.default_rng(0).normal(size=(60, 2)), roles_of(12, 12, 36)
    X[:12] += 2.0
    rows = SimpleNamespace(roles=roles, counts=SimpleNamespace(n_unlabeled=500))
    settings = FitSettings(belief=(0.1, 0.4), level=0.8, random_state=3)
    found = study_fit._prior(settings, X, rows, [])
    more = {"belief": (0.1, 0.4), "level": 0.8, "random_state": 3, "n_unlabeled": 500}
    expected = find_prior(None, X, roles, **more)
    assert (found.interval, found.value, found.level) == (expected.interval, expected.value, 0.8)
    assert found.source == expected.source
    assert "on 36 of the unlabelled rows" in found.source
    other = find_prior(None, X, roles, **{**more, "random_state": 0})
    assert other.value != found.value


@pytest.mark.parametrize("doubt", [None, "Too few rows."])
def test_a_doubtful_prior_is_told(monkeypatch, doubt):
    prior = ClassPrior(0.2, 0.1, 0.3, 0.95, 0.05, "estimated", doubt=doubt)
    monkeypatch.setattr(study_fit, "find_prior", lambda *args, **options: prior)
    rows = SimpleNamespace(roles=None, counts=SimpleNamespace(n_unlabeled=9))
    messages = []
    assert study_fit._prior(FitSettings(), None, rows, messages) is prior
    told = ["The prior is doubtful: Too few rows. Give it if you know it."]
    assert messages == (told if doubt else [])
    monkeypatch.setattr(study_fit, "find_prior", lambda *args, **options: None)
    assert study_fit._prior(FitSettings(), None, rows, []) is None


# --- rows that were drawn -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["average", "auto"])
def test_unlabelled_rows_elsewhere_take_part_only_if_all_are_asked_for(monkeypatch, kind):
    monkeypatch.setattr(_rows, "SAMPLE_ROWS", 20)
    table = a_table().select(["x", "z", "i", "y"])
    prior = ClassPrior.known(0.25)

    def ranker():
        if kind == "average":
            return AUCClassifierCV(prior=prior, n_centers=4, verbose=False, random_state=0)
        return AutoAUCClassifier(prior=prior, members=["kernels"], verbose=False, random_state=0)

    def fitted(max_unlabeled, asked):
        rows = study_rows(table, COLUMNS, max_unlabeled, 0)
        encoder = TableEncoder().fit(rows.table)
        X = encoder.transform(rows.table)
        plain, own = ranker().fit(X, rows.roles), ranker()
        study_fit._fit_ranker(own, X, rows, encoder, FitSettings(max_unlabeled=asked))
        return plain.decision_function(X), own.decision_function(X), rows.roles.n_unlabeled

    for drawn, asked in ((20, 20), (40, "all")):  # a draw, all of them at hand
        plain, own, n = fitted(drawn, asked)
        assert n == drawn
        np.testing.assert_array_equal(own, plain)
    plain, own, n = fitted("all", "all")
    assert n == 20
    assert np.abs(own - plain).max() > 1e-6


def test_threshold_and_best_rows_of_a_draw_come_from_all_rows():
    """One of its parts after the other; the ranker is moved with the model."""
    table = a_table((8, 12, 90))
    study = fit_study(table, COLUMNS, FitSettings(**SHORT, max_unlabeled=30))
    unlabeled = table.slice(20)
    scores = study.model.score(unlabeled)
    assert np.mean(scores > 0) == pytest.approx(0.25, abs=2 / 30)
    ranker = study.ranker
    assert ranker.intercept_ == -ranker.threshold_
    assert study.model.threshold == pytest.approx(ranker.threshold_)
    np.testing.assert_allclose(ranker.decision_function(study.encoder.transform(unlabeled)), scores)
    best = np.argsort(-scores)[:3]
    top = study.findings["top"]
    assert [line[:2] for line in top["rows"]] == [[21 + i, f"r{20 + i}"] for i in best]
    assert [line[2] for line in top["rows"]] == pytest.approx(scores[best].tolist())
    procedure = study.findings["auc_procedure"]
    assert "30 of 90 unlabelled rows" in procedure
    assert "placed among all" not in procedure
    assert study.held_out.n_reference is None


def test_stages_of_a_fit_are_told_as_they_begin(monkeypatch):
    monkeypatch.setattr(_rows, "SAMPLE_ROWS", 30)
    folds = [("held-out folds", 0.0), ("held-out folds", 0.5), ("held-out folds", 1.0)]
    begin = [("columns", 0.0), ("prior", 0.0), ("model", 0.0)]
    for n, more, middle in (
        (90, {"max_unlabeled": "all", "comparisons": True},
         [("all rows", 0.0), *folds, ("held-out rows", 0.0), ("rivals", 0.0)]),
        (30, {"max_unlabeled": "all"}, folds),
    ):  # fmt: skip
        told = []
        study = fit_study(
            a_table((8, 12, n)), COLUMNS, FitSettings(**{**SHORT, **more}),
            tick=lambda stage, share, told=told: told.append((stage, share)),
        )  # fmt: skip
        assert told == [*begin, *middle, ("importance", 0.0)]
        assert study.held_out.n_reference == (90 if n == 90 else None)
        findings = study.findings
        assert ("rivals" in findings, "unlabeled_effect" in findings) == (n == 90, n == 90)
        assert findings["importance"]["procedure"] == "Not measured."


def test_the_time_of_a_fit_is_between_its_begin_and_its_end(monkeypatch):
    readings = iter([100.0, 112.3456])
    clock = SimpleNamespace(perf_counter=lambda: next(readings))
    monkeypatch.setattr(study_fit, "time", clock)
    study = fit_study(a_table(), COLUMNS, FitSettings(**SHORT))
    assert study.findings["seconds"] == 12.3
    assert study.model.card["table"] == study.findings["table"]


# --- what is said at the top of a report ----------------------------------------------------------


def header(encoder, columns=COLUMNS, counts=(8, 12, 40)):
    rows = SimpleNamespace(counts=study_fit.RoleCounts(*counts))
    return study_fit._header("shop", "fit it", rows, columns, encoder, FitSettings(top=7))


def test_columns_are_counted_by_kind():
    table = a_table(f=pa.array([True, False] * 30)).select(["x", "z", "w", "f"])
    encoder = TableEncoder().fit(table)
    encoder.notes_.append("A note.")
    found = header(encoder, ColumnRoles("y", ("i",), ("d", "e")))
    told = found["table"]
    assert told["kinds"] == {"number": 2, "category": 1, "boolean": 1}
    assert (told["name"], told["rows"], told["label"]) == ("shop", 60, "y")
    assert (told["ids"], told["dropped"]) == (["i"], ["d", "e"])
    assert [column["name"] for column in told["columns"]] == ["x", "z", "w", "f"]
    assert told["n_encoded"] == encoder.transform(table).shape[1]
    assert told["notes"][-1] == "A note."
    assert (found["command"], found["settings"]["top"]) == ("fit it", 7)
    assert found["labels"]["unlabeled"] == 40
    assert found["created"].endswith("+00:00")
    assert len(found["created"]) == len("2026-01-31T12:34:56+00:00")
    thin = header(TableEncoder().fit(sparse.csr_matrix(np.eye(4, 9))))["table"]
    assert (thin["kinds"], thin["n_encoded"]) == ({"sparse feature": 9}, 9)


def test_the_procedure_is_told_in_whole_sentences():
    """Each remark once, in this order, where it applies."""
    ends = ("4 folds by role: ", "rows that each of them lacked.")
    draw = "30 of 1,234 unlabelled rows, drawn at random, take part. "
    among = "Labelled rows are placed among all 1,234 unlabelled ones. "
    twins = "1,006 rows have an identical twin; identical rows are kept in one fold. "
    roles = roles_of(5, 5, 30)
    plain = None
    for n_u, reference, identical, said in (
        (30, None, 0, ()), (1234, None, 0, (draw,)), (30, 1234, 0, (among,)),
        (30, None, 1006, (twins,)), (1234, 1234, 1006, (draw, among, twins)),
    ):  # fmt: skip
        copies = Copies(np.arange(40), identical, 0)
        held = CrossFit(np.arange(40), roles, np.zeros(40), [], copies, reference)
        told = study_fit._procedure(4, held, study_fit.RoleCounts(5, 5, n_u))
        plain = plain or told
        assert told.startswith(ends[0])
        assert told.endswith(ends[1])
        before, after = plain.split("A score counts by its place")
        assert told == before + "".join(said) + "A score counts by its place" + after


@pytest.mark.parametrize(("n", "kept"), [(50_000, 50_000), (50_001, 25_001)])
def test_so_many_rows_place_a_score(n, kept):
    X = np.arange(float(n))[:, None]
    found = study_fit._reference_rows(X, Roles(np.full(n, -1, np.int8)))
    np.testing.assert_array_equal(found, X if n == kept else X[::2])
    assert len(found) == kept


# --- what cannot be held back, computed with or trusted -------------------------------------------


@pytest.mark.parametrize("folds", [2, 5])
@pytest.mark.parametrize(
    ("groups", "n_folds"),
    [((1, 1, 1), (3, 3)), ((2, 1, 1), (3, 3)), ((1, 1, 1, 1), (2, 4)), ((3, 1, 1, 1), (2, 4)),
     ((1, 1), None), ((2, 1), None), ((3, 1), None), ((3,), None)],
)  # fmt: skip
def test_three_different_rows_of_a_class_can_be_held_back(groups, n_folds, folds):
    """Two rows of a class are left to every refit, whatever is copied and however many folds."""
    n_p = sum(groups)
    table = a_table((n_p, 12, 40)).select(["x", "z", "y"])
    first = np.repeat(np.cumsum([0, *groups[:-1]]), groups)
    table = table.take(pa.array(np.r_[first, n_p : table.num_rows]))
    study = fit_study(table, ColumnRoles("y"), FitSettings(**{**SHORT, "folds": folds}))
    if n_folds is None:
        assert study.held_out is study.findings["auc"] is None
        assert "at least 3 different rows" in study.findings["auc_reason"]
    else:
        held = study.held_out
        assert len(held.folds) == n_folds[folds == 5]
        for test, _ in held.folds:
            assert 0 < np.sum(held.roles.codes[test] == 1) <= n_p - 2
        assert study.findings["auc"]["low"] <= study.findings["auc"]["value"]


def test_sparse_rows_are_fitted_as_they_are():
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.random((60, 8)) * (rng.random((60, 8)) < 0.5))
    labels = np.repeat([1.0, 0.0, np.nan], [8, 12, 40])
    settings = FitSettings(**{**SHORT, "n_centers": None, "basis": "linear"})
    study = fit_study((X, labels), ColumnRoles("y"), settings)
    scores = study.model.score(X)
    best = 20 + np.argsort(-scores[20:])[:3]
    assert [line[0] - 1 for line in study.findings["top"]["rows"]] == best.tolist()
    assert study.findings["table"]["kinds"] == {"sparse feature": 8}
    assert study.findings["leaks"] == []
    encoded = study.encoder.transform(X)
    np.testing.assert_allclose(study.ranker.decision_function(encoded), scores)


def test_a_column_that_knows_the_label_is_told_first():
    known = pa.array([1.0] * 8 + [0.0] * 52)
    findings = fit_study(a_table(k=known), COLUMNS, FitSettings(**SHORT)).findings
    assert len(findings["leaks"]) >= 1
    assert "Column 'k' separates" in findings["leaks"][0]
    assert findings["warnings"][: len(findings["leaks"])] == findings["leaks"]
    assert fit_study(a_table(), COLUMNS, FitSettings(**SHORT)).findings["leaks"] == []


# --- the committee --------------------------------------------------------------------------------


def test_a_committee_reads_both_views_and_its_probabilities_are_those_of_held_out_rows():
    """Gaps are told to trees in a view of their own; report and new rows have one posterior."""
    gaps = pa.array([None if k % 7 == 0 else float(k % 5) for k in range(80)])
    table, prior = a_table((8, 12, 60), z=gaps), ClassPrior.known(0.25)
    settings = FitSettings(prior=0.25, folds=2, top=4, importance=False, random_state=5)
    study = fit_study(table, COLUMNS, settings)
    encoding = study.encoder.encoding_
    assert study.ranker.n_tree_columns == encoding.width("trees") > 0
    assert study.model.scorer.views == ("kernels", "trees")
    placement = held_out_placement(study.held_out, prior)
    calibration = study_fit.Calibration.of_placement(placement)
    for scorer in (study.model.scorer, study.ranker.scorer_):
        np.testing.assert_array_equal(scorer.calibration.curves, calibration.curves)
    shown = study.findings["top"]["probability"]
    best = np.array([line[2] for line in study.findings["top"]["rows"]])
    assert shown == pytest.approx(study.model.probability(best)[:, 0].tolist())
    method = study.findings["auc"]["method"]
    assert [line["method"] for line in study.findings["rivals"]] == [method] * 2


def test_sparse_rivals_are_a_straight_line_and_trees_of_labelled_rows():
    """On the folds of the committee, of which some rows count as copies."""
    rng = np.random.default_rng(0)
    roles = roles_of(12, 14, 30)
    X = rng.random((56, 6)) * (rng.random((56, 6)) < 0.6)
    X[:12, 0] += 1.0
    X = sparse.csr_matrix(X)
    copies = Copies(np.arange(56) // 2, 56, 0)  # folds of pairs: not what the rows themselves say
    scores = rng.normal(size=56) + (roles.codes == 1)
    held = CrossFit(np.arange(56), roles, scores, [()] * 2, copies)
    settings = SimpleNamespace(random_state=5, n_jobs=None, level=0.9)
    prior = ClassPrior.known(0.25)
    lines = rival_findings(RankingOnly(AutoAUCClassifier()), X, held, prior, "pn", 2, settings)
    rivals = (
        AUCClassifierCV(
            selection="paper", basis="linear", prior=prior, verbose=False, random_state=5
        ),
        LabeledOnly(ExtraTreesClassifier(300, random_state=5)),
    )
    assert len(lines) == 2
    for line, rival in zip(lines, rivals):
        alone = cross_fit(rival, X, roles, np.arange(56), n_folds=2, seed=5, copies=copies)
        pair = compare_auc(roles, scores, alone.scores, prior, "pn", 0.9)
        assert (line["auc"], line["low"]) == pytest.approx((pair.value_b, pair.low))


# --- rows to review -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("importance", "tried"),
    [(None, ["a", "b"]), ({"columns": []}, ["a", "b"]), ({"columns": ["b"]}, ["b"])],
)
def test_columns_that_were_measured_are_tried_as_reasons(importance, tried):
    seen = []
    X = np.array([[3.0, 0.0], [1.0, 5.0], [2.0, 5.0]])
    model = SimpleNamespace(
        encoder=SimpleNamespace(
            columns_=[SimpleNamespace(name=n) for n in ("a", "b")], is_sparse=False
        ),
        score_encoded=lambda rows: rows[:, 0], percentile=lambda s: s, probability=lambda s: None,
        reasons=lambda rows, n, names: [seen.append((n, list(names))) or [] for _ in rows],
    )  # fmt: skip
    rows = StudyRows(
        pa.table({"a": X[:, 0], "b": X[:, 1]}), roles_of(0, 1, 2), None, np.array([40, 50, 60]),
        study_fit.RoleCounts(0, 1, 2),
    )  # fmt: skip
    findings = {}
    if importance is not None:
        findings["importance"] = {"columns": [{"column": n} for n in importance["columns"]]}
    found = study_fit._top(model, X, rows, None, findings, FitSettings(top=1))
    assert seen == [(len(tried), tried)]
    assert [line[0] for line in found["rows"]] == [61]


def test_where_the_prior_is_not_told_columns_are_measured_by_pairs_won(monkeypatch):
    prior = ClassPrior(0.3, 0.02, 0.98, 0.95, 0.25, "estimated", doubt="Because.")
    monkeypatch.setattr(study_fit, "find_prior", lambda *args, **options: prior)
    table, columns = a_table((14, 0, 50)).select(["x", "z", "y"]), ColumnRoles("y")
    settings = FitSettings(**{**QUICK, "prior": None, "comparisons": False}, random_state=2)
    study = fit_study(table, columns, settings)
    findings = study.findings
    assert (findings["auc"], findings["auc_raw"]["method"]) == (None, "pu_raw")
    X = study.encoder.transform(study_rows(table, columns, 99, 2).table)
    measured = column_importance(study.held_out, X, study.encoder, prior, "pu_raw", seed=2)
    assert findings["importance"]["columns"] == measured
    assert [item["column"] for item in measured] == ["x", "z"]
    assert findings["warnings"] == [
        "The prior is doubtful: Because. Give it if you know it."
    ]  # fmt: skip
    assert not findings["prior"]["told"]
