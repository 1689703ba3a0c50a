"""Edges of a study: places among all rows, reasons for no number, what is told and what is kept."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pnuauc._estimators_cv import AUCClassifierCV
from pnuauc._prior import ClassPrior
from pnuauc._role_counts import RoleCounts
from pnuauc._sources import MemorySource, RowKeys
from pnuauc._study import ColumnRoles, FitSettings, LabelCodes, _findings, _reference, fit_study
from pnuauc._study._census import read_source_labels
from pnuauc._study._committee import LabelledTrees, labelled_only, quietly, selection_message
from pnuauc._study._copies import Copies, find_copies
from pnuauc._study._crossfit import CrossFit, evaluation_rows
from pnuauc._study._data import check_enough, label_values
from pnuauc._study._evaluate import evaluate_table
from pnuauc._study._fit import _card
from pnuauc._study._importance import _strongest
from pnuauc._study._prior import find_prior, prior_findings
from pnuauc._study._reference import place_among_all
from pnuauc._study._review import _sparse_cells, top_rows
from pnuauc.exceptions import InputError
from pnuauc.labels import Roles
from pnuauc.metrics import auc_estimate, roc_curve_estimate
from tests.conftest import final_limits, gaussian_scores, roles_of, wins


def held_out(sizes, prior=0.2, distance=1.5, seed=0, n_folds=5):
    _, scores, _ = gaussian_scores(seed, sizes, prior, distance)
    n = len(scores)
    same = Copies(np.arange(n), 0, 0)
    return CrossFit(np.arange(n), roles_of(*sizes), scores, [()] * n_folds, same)


# --- places among all rows ------------------------------------------------------------------------


class Summed:
    """A model whose score is a column, less its threshold."""

    columns_ = ()

    def __init__(self, threshold=0.0, card=None):
        self.threshold, self.quantiles, self.card = threshold, None, card

    def encode(self, table, first_row=0):
        return np.asarray(table.column("s"))

    def score_encoded(self, X):
        return X - self.threshold


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("batch_rows", [70, 1000])
def test_threshold_and_quantiles_are_those_of_all_unlabelled_rows(monkeypatch, share, batch_rows):
    """One score in three was drawn; cells between them are narrow, so little is lost."""
    n = 600
    scores, labelled = np.random.default_rng(11).normal(size=n), np.arange(n) % 10 == 0
    table = pa.table({"s": scores, "id": [f"r{k}" for k in range(n)],
                      "y": pa.array([1 if k else None for k in labelled], pa.int8())})  # fmt: skip
    source = MemorySource(table, batch_rows=batch_rows) if batch_rows < n else MemorySource(table)
    reader, counts = read_source_labels(source, "y", LabelCodes(positive=[1]))
    keys = RowKeys(("id",), 0, True)
    origin = SimpleNamespace(
        labels=reader, keys=keys, source=source,
        everything=lambda encoder: SimpleNamespace(source=source.select(["y", "s"])),
    )  # fmt: skip
    monkeypatch.setattr(_reference, "replace", _replaced)
    model = Summed(0.25)
    model.encoder = None
    u = scores[~labelled]
    leaders = place_among_all(model, origin, u[::3] - 0.25, share, 7, ["id"])
    assert model.threshold == pytest.approx(np.quantile(u, 1 - share), abs=0.05)
    assert np.mean(u > model.threshold) == pytest.approx(share, abs=0.01)
    expected = np.quantile(u, np.linspace(0, 1, 1001)) - model.threshold
    assert (model.quantiles[0], model.quantiles[-1]) == pytest.approx((expected[0], expected[-1]))
    inside = slice(30, -30)
    np.testing.assert_allclose(model.quantiles[inside], expected[inside], atol=0.12)
    best = np.flatnonzero(~labelled)[np.argsort(-u)[:7]]
    assert leaders.row.tolist() == best.tolist()
    np.testing.assert_allclose(leaders.score, scores[best] - model.threshold)
    assert leaders.table.column("id").to_pylist() == [f"r{k}" for k in best]
    named = leaders.rows(counts, ["id"], source)
    assert named.roles.n_unlabeled == len(named.numbers) == 7
    assert named.ids.column("id").to_pylist() == [f"r{k}" for k in best]


def _replaced(thing, **changes):
    """As dataclasses.replace; a model of ours is no dataclass."""
    if isinstance(thing, Summed):
        return Summed(thing.threshold, changes["card"])
    return dataclasses.replace(thing, **changes)


# --- the AUC of a study ---------------------------------------------------------------------------


def test_a_refuted_prior_gives_its_reason_and_no_number():
    held = held_out((40, 0, 400), prior=0.02, distance=3.0)
    found = _findings.auc_findings(held, ClassPrior.known(0.9), 0.95)
    assert (found["auc"], found["auc_methods"]) == (None, {})
    assert "refuted" in found["auc_reason"]
    raw = wins(held.scores[:40], held.scores[40:]).mean()
    assert found["auc_raw"]["value"] == pytest.approx(raw)


def test_negatives_and_unlabelled_rows_tell_their_share_of_pairs():
    held = held_out((0, 50, 300))
    found = _findings.auc_findings(held, ClassPrior.known(0.2), 0.9)
    assert found["auc_raw"]["method"] == "nu_raw"
    raw = wins(held.scores[50:], held.scores[:50]).mean()
    assert found["auc_raw"]["value"] == pytest.approx(raw)
    assert set(found["auc_methods"]) == {"nu"}
    assert found["roc"] is None


def test_the_curve_of_a_study_is_that_of_its_scores():
    held = held_out((60, 80, 0))
    found = _findings.auc_findings(held, None, 0.9)
    curve = roc_curve_estimate(held.roles, held.scores, None, "pn", level=0.9, max_points=200)
    for name in ("fpr", "tpr", "band_low", "band_high"):
        assert found["roc"][name] == np.round(getattr(curve, name), 5).tolist()
    assert (found["roc"]["method"], found["roc"]["level"]) == ("pn", 0.9)
    assert found["auc_raw"] is None
    assert "sensitivity" not in found
    exact = auc_estimate(held.roles, held.scores, None, "pn", 0.9,
                         variance_factor=held.variance_factor)  # fmt: skip
    told = [found["auc"][name] for name in ("low", "value", "high")]
    assert told == pytest.approx(final_limits((exact.low, exact.value, exact.high), 0.8, True))


def test_histograms_have_twenty_four_bins_between_the_half_per_cents():
    roles = roles_of(3, 0, 4000)
    scores = np.r_[0.1, 0.2, 0.3, np.random.default_rng(0).normal(size=4000)]
    edges = np.array(_findings.score_histograms(roles, scores)["edges"])
    assert len(edges) == 25
    assert (edges[0], edges[-1]) == pytest.approx(tuple(np.quantile(scores, [0.005, 0.995])))
    np.testing.assert_allclose(np.diff(edges), np.diff(edges)[0])


# --- priors and labels ----------------------------------------------------------------------------


def test_a_prior_that_was_drawn_for_says_how_many_rows():
    X, roles = np.random.default_rng(0).normal(size=(60, 2)), roles_of(10, 10, 40)
    X[:10] += 2.0
    whole = find_prior(None, X, roles, method="energy")
    drawn = find_prior(None, X, roles, method="energy", n_unlabeled=4000)
    assert drawn.value == whole.value
    assert drawn.source == f"{whole.source} on 40 of the unlabelled rows, drawn at random"
    assert find_prior(None, X, roles, method="energy", n_unlabeled=40).source == whole.source
    assert find_prior(0.3, X, roles) == ClassPrior.known(0.3)
    assert find_prior(0.3, X[:20], roles_of(10, 10, 0)) is None


def test_a_prior_in_rows_and_in_the_population():
    found = prior_findings(ClassPrior(0.2, 0.1, 0.3, 0.95, 0.05), RoleCounts(30, 20, 150))
    assert found["population"] == pytest.approx((30 + 30) / 200)
    assert found["positives_unlabeled"] == pytest.approx((30, 15, 45))
    assert found["posterior"] is None
    assert prior_findings(None, RoleCounts(30, 20, 150)) is None


@pytest.mark.parametrize(("n", "dots"), [(1, False), (10, False), (11, True)])
def test_columns_that_there_are(n, dots):
    table = pa.table({f"c{k}": [1] for k in range(n)})
    with pytest.raises(InputError, match="There is no column 'y'") as caught:
        label_values(table, "y")
    told = str(caught.value)
    assert ("..." in told) is dots
    assert f"'c{min(n, 10) - 1}'" in told
    assert "'c10'" not in told
    assert ("delimiter" in told) is (n == 1)
    assert caught.value.about == ("delimiter" if n == 1 else None)


def test_labels_of_a_type_that_cannot_be_labels():
    days = pa.table({"y": [dt.date(2024, 1, 1)], "l": [[1]]})
    for name in ("y", "l"):
        with pytest.raises(InputError, match=f"Label column '{name}' holds"):
            label_values(days, name)
    money = pa.table({"y": [decimal.Decimal("1.0"), None]})
    np.testing.assert_array_equal(label_values(money, "y"), [1.0, np.nan])
    flags = pa.table({"y": pa.array([True, None])})
    assert label_values(flags, "y").tolist() == [True, None]


@pytest.mark.parametrize(
    ("counts", "word", "other"),
    [((3, 0, 9), "positive", "negative"), ((0, 3, 9), "negative", "positive")],
)
def test_labels_of_one_class_that_are_too_few_are_named(counts, word, other):
    with pytest.raises(InputError, match=f"holds 3 {word} rows and no {other} one: with {word}"):
        check_enough(RoleCounts(*counts), "y")
    with pytest.raises(InputError, match=f"holds 1 {word} row and"):
        check_enough(RoleCounts(*(min(n, 1) for n in counts[:2]), 9), "y")


def test_what_is_said_of_columns_reaches_the_encoder():
    roles = ColumnRoles("y", categorical=("k",), decimal=",", date_format={"d": "day-first"})
    encoder = roles.encoder()
    assert (encoder.categorical, encoder.decimal) == (("k",), ",")
    assert encoder.date_format == {"d": "day-first"}
    table = pa.table(
        {"k": [1, 2] * 9, "p": ["1.234", "5.678"] * 9, "d": ["01/02/2024", "03/04/2024"] * 9}
    )
    columns = encoder.fit(table).columns_
    assert [(c.name, c.kind, c.form) for c in columns] == [
        ("k", "category", ""), ("p", "number", "n,."), ("d", "date", "dmy")
    ]  # fmt: skip


def test_near_copies_are_looked_for_with_seed_0_unless_told():
    """1,000 labelled rows, of which 400 are looked at; a tenth of them has a near copy."""
    X = np.random.default_rng(0).normal(size=(1000, 3))
    X[:50] = X[50:100] + 1e-6
    roles = roles_of(1000, 0, 0)
    found = [find_copies(X, roles, seed).n_near for seed in range(4)]
    assert find_copies(X, roles).n_near == found[0]
    assert found[0] != found[1]
    assert all(20 < n < 60 for n in found)


def test_evaluation_rows_are_all_labelled_ones_and_so_many_others():
    order = np.random.default_rng(0).permutation(62)
    roles = Roles(roles_of(5, 7, 50).codes[order])
    for n in (50, 60):
        assert evaluation_rows(roles, n, 0).tolist() == list(range(62))
    some = evaluation_rows(roles, 49, 0)
    assert len(set(some)) == 61
    assert set(roles.positive) | set(roles.negative) <= set(some.tolist())
    assert (np.diff(some) > 0).all()
    other = evaluation_rows(roles, 20, 1)
    assert other.tolist() != evaluation_rows(roles, 20, 0).tolist()


# --- rankers for refits ---------------------------------------------------------------------------


def test_a_single_model_without_unlabelled_rows_sees_labelled_pairs_alone():
    ranker = AUCClassifierCV(prior=0.2, n_centers=7, verbose=True)
    quiet = quietly(ranker)
    assert (quiet.verbose, quiet.n_centers) == (False, 7)
    assert ranker.verbose is True
    alone = labelled_only(quiet, held_out((9, 9, 30), n_folds=3))
    assert [(one.risk, one.prior, one.n_centers) for one in alone] == [("pn", None, 7)] * 3
    ranker.selection_ = SimpleNamespace(message="said")
    assert selection_message(ranker) == "said"


def test_trees_of_labelled_rows_do_not_look_at_the_others():
    rng, roles = np.random.default_rng(0), roles_of(20, 20, 50)
    X, new = rng.normal(size=(90, 3)), rng.normal(size=(30, 3))
    X[:20, 0] += 3.0
    first = LabelledTrees(20, 0).fit(X, roles)
    moved = X.copy()
    moved[40:] += 100.0
    scores = first.decision_function(new)
    again = LabelledTrees(20, 0).fit(moved, roles)
    np.testing.assert_array_equal(again.decision_function(new), scores)
    # every tree knows its own rows
    np.testing.assert_allclose(first.decision_function(X[:40]), np.arange(40) < 20, atol=1e-12)
    assert not np.array_equal(LabelledTrees(20, 1).fit(X, roles).decision_function(new), scores)


# --- what is told, what is kept -------------------------------------------------------------------


def small_table(n_p, n_n, n_u):
    labels = pa.array([1] * n_p + [0] * n_n + [None] * n_u, pa.int8())
    x, z = np.random.default_rng(0).normal(size=(2, n_p + n_n + n_u))
    x[:n_p] += 1.0
    return pa.table({"x": x, "z": z, "y": labels})


def test_two_rows_of_a_class_cannot_be_held_back():
    settings = FitSettings(prior=0.2, n_centers=4, model="paper", importance=False)
    study = fit_study(small_table(2, 20, 40), ColumnRoles("y"), settings)
    assert study.held_out is None
    assert study.findings["auc"] is None
    assert "at least 3 different rows" in study.findings["auc_reason"]
    assert "rivals" not in study.findings
    card = study.model.card
    assert card["auc_reason"] == study.findings["auc_reason"]
    assert (card["label"], card["ids"]) == ("y", [])
    assert "top" not in card


def test_a_card_holds_no_rows():
    findings = dict.fromkeys(("pnuauc", "labels", "prior", "auc", "top", "scores", "roc"), 1)
    findings |= {"table": {"rows": 5}, "selection": {"model": "auto"}}
    card = _card(findings, ColumnRoles("y", ids=("a", "b")))
    assert card == {
        "pnuauc": 1, "labels": 1, "prior": 1, "auc": 1, "label": "y", "ids": ["a", "b"],
        "table": {"rows": 5}, "selection": {"model": "auto"},
    }  # fmt: skip


def test_an_evaluation_gives_every_method_that_the_roles_allow():
    labels, scores, _ = gaussian_scores(5, (30, 40, 200), 0.25)
    cells = pa.array([None if np.isnan(v) else int(v) for v in labels], pa.int8())
    table = pa.table({"s": scores, "y": cells})
    found = evaluate_table(table, "y", ["s"], prior=0.25, level=0.9)["scores"]["s"]
    assert set(found["methods"]) == {"pn", "pu", "nu", "combined", "pu_raw", "nu_raw"}
    for name, told in found["methods"].items():
        assert told["value"] == pytest.approx(auc_estimate(labels, scores, 0.25, name, 0.9).value)
        assert told["level"] == 0.9
    assert 0.25 in found["sensitivity"]["priors"]
    assert found["auc"]["method"] == auc_estimate(labels, scores, 0.25, "auto", 0.9).method
    chosen = evaluate_table(table, "y", ["s"], prior=0.25, method="pu")["scores"]["s"]["auc"]
    assert (chosen["method"], chosen["level"]) == ("pu", 0.95)


def test_a_value_that_came_after_counting_is_refused():
    source = MemorySource(pa.table({"y": [1, 0, None, 1]}))
    reader, counts = read_source_labels(source, "y", LabelCodes())
    assert counts.counts == (2, 1, 1)
    assert reader(pa.table({"y": [0, None, 1]})).tolist() == [0, -1, 1]
    with pytest.raises(InputError, match="was not there when labels were counted"):
        reader(pa.table({"y": [0, 2]}))


# --- ties -----------------------------------------------------------------------------------------


def test_columns_and_cells_that_tie_stay_in_their_order():
    """600 features of three strengths: the first of each strength come first."""
    related = np.random.default_rng(0).integers(1, 4, 600) * np.tile([0.1, -0.1], 300)
    expected = sorted(range(600), key=lambda j: (-abs(round(related[j], 9)), j))[:300]
    found = _strongest(SimpleNamespace(is_sparse=True), np.round(related, 9), 300)
    assert list(found.values()) == [[j] for j in expected]
    X = sparse.csr_matrix(np.random.default_rng(1).random((6, 150)) < 0.4).astype(float)
    counts = np.asarray(X.sum(axis=0)).ravel()
    most = sorted(np.flatnonzero(counts), key=lambda j: (-counts[j], j))
    assert list(_sparse_cells(X, np.arange(6))) == [f"feature {j + 1}" for j in most]


def test_rows_to_review_that_tie_come_in_the_order_of_the_table():
    scores = np.random.default_rng(2).integers(0, 3, 500).astype(float)
    table = pa.table({"s": scores})
    model = SimpleNamespace(
        score_encoded=lambda X: X[:, 0], percentile=lambda s: 100 * s, probability=lambda s: None,
        encoder=SimpleNamespace(columns_=[SimpleNamespace(name="s")], is_sparse=False),
        reasons=lambda X, n, tried: [[] for _ in X],
    )  # fmt: skip
    roles = roles_of(50, 0, 450)
    found = top_rows(model, scores[:, None], table, None, roles, 200)
    expected = sorted(range(50, 500), key=lambda i: (-scores[i], i))[:200]
    assert [line[0] for line in found["rows"]] == [i + 1 for i in expected]
    numbered = top_rows(model, scores[:, None], table, None, roles, 3, numbers=np.arange(500) * 7)
    assert [line[0] for line in numbered["rows"]] == [7 * i + 1 for i in expected[:3]]
    assert found["header"] == ["row", "score", "percentile", "s"]
    assert found["cells"][0] == [f"{scores[expected[0]]:.6g}"]
    assert (found["probability"], found["n_columns"]) == (None, 1)
