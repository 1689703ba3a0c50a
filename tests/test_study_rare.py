"""Cases of a study that are seldom met: a prior that is not told, views of trees, members."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse, stats

from pnuauc._committee import AutoAUCClassifier
from pnuauc._prior import ClassPrior
from pnuauc._role_counts import RoleCounts
from pnuauc._sources import MemorySource
from pnuauc._study import ColumnRoles, LabelCodes, _census, _importance
from pnuauc._study._census import read_source_labels
from pnuauc._study._committee import LabelledTrees, committee_findings
from pnuauc._study._copies import Copies
from pnuauc._study._crossfit import CrossFit
from pnuauc._study._findings import auc_findings, prior_verdict, selection_findings
from pnuauc._study._importance import column_importance, permutation_importance
from pnuauc._study._prior import prior_findings
from pnuauc._study._rows import study_rows
from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder
from pnuauc.io._model import encode_views, grouped_columns
from pnuauc.metrics import auc_estimate
from tests.conftest import gaussian_scores, roles_of

SIZES = (20, 25, 90)


def held_out(scores, folds=((), ())):
    n = len(scores)
    return CrossFit(np.arange(n), roles_of(*SIZES), scores, list(folds), Copies(np.arange(n), 0, 0))


@pytest.mark.parametrize(("width", "told"), [(0.79, True), (0.81, False)])
def test_a_wide_prior_leaves_the_auc_to_labelled_pairs(width, told):
    """It is identified, but an interval of four fifths of everything says nothing."""
    _, scores, _ = gaussian_scores(0, SIZES, 0.3, 1.5)
    prior = ClassPrior(0.4, 0.05, 0.05 + width, 0.95, 0.2, "estimated")
    assert prior_verdict(prior, roles_of(*SIZES))["told"] is told
    found = auc_findings(held_out(scores), prior, 0.95)
    assert (set(found["auc_methods"]) == {"pn"}) is not told
    if not told:
        held = held_out(scores)
        alone = auc_estimate(held.roles, scores, None, "pn", variance_factor=held.variance_factor)
        gain = 1 - 0.5**0.5
        moved = alone.value + (1 - alone.value) * (2 * alone.value - 1) * gain
        assert found["auc"]["method"] == "pn"
        assert found["auc"]["value"] == pytest.approx(moved)
        assert "sensitivity" not in found


@dataclass
class Member:
    name: str
    weight: float


def test_members_of_a_committee_are_told_with_their_titles():
    ranker = AutoAUCClassifier()
    ranker.members_ = [Member("trees", 0.5), Member("mine", 0.25)]
    found = committee_findings(ranker)
    assert found == {
        "model": "auto",
        "members": [
            {"name": "trees", "weight": 0.5, "title": "randomised trees"},
            {"name": "mine", "weight": 0.25, "title": "mine"},
        ],
        "message": "randomised trees and mine: members that suit the table, their scores summed.",
    }
    assert selection_findings(ranker) == found


class OneColumn:
    """Scores are one encoded column."""

    def __init__(self, column):
        self.column = column

    def decision_function(self, X):
        return X[:, self.column]


def test_a_column_is_shuffled_in_both_views(monkeypatch):
    """A ranker that reads only the trees' code of a category still loses by its shuffling."""
    n = sum(SIZES)
    rng = np.random.default_rng(0)
    truth = np.r_[np.ones(20), np.zeros(25), rng.random(90) < 0.3]
    words = np.array([f"w{'x' * k}" for k in range(12)])
    shop = words[np.where(truth == 1, rng.integers(8, 12, n), rng.integers(0, 9, n))]
    table = pa.table({"noise": rng.normal(size=n), "shop": shop})
    encoder = TableEncoder().fit(table)
    views = ("kernels", "trees")
    X = encode_views(encoder, table, views)
    (code,) = [j for j in grouped_columns(encoder, views)["shop"] if j >= encoder.encoding_.width()]
    ranker = OneColumn(code)
    half = np.arange(n) % 2
    folds = [(np.flatnonzero(half == k), ranker) for k in range(2)]
    held = held_out(X[:, code], folds)
    found = column_importance(held, X, encoder, 0.3, "pn", seed=0)
    drops = {item["column"]: item["drop"] for item in found}
    assert abs(drops["shop"]) > 0.05
    assert drops["noise"] == pytest.approx(0.0, abs=0.05)
    groups = grouped_columns(encoder, views)
    direct = permutation_importance(held, X, {k: groups[k] for k in drops}, 0.3, "pn", seed=0)
    assert {i["column"]: i["drop"] for i in direct}.keys() == drops.keys()
    assert [item["drop"] for item in found] == sorted(drops.values(), reverse=True)
    again = column_importance(held, X, encoder, 0.3, "pn", seed=0)
    assert again == found
    monkeypatch.setattr(_importance, "MAX_SHUFFLED", 1)
    assert len(column_importance(held, X, encoder, 0.3, "pn", seed=0)) == 1


def test_a_study_without_a_prior_has_no_verdict():
    assert prior_verdict(None, SimpleNamespace(counts=(1, 2, 3))) == {}


# --- rows of a study ------------------------------------------------------------------------------


def numbered(n_u):
    """Five labelled rows of each class and n_u others; a column counts all rows."""
    n = 10 + n_u
    labels = pa.array([1] * 5 + [0] * 5 + [None] * n_u, pa.int8())
    x = np.random.default_rng(0).normal(size=n)
    return pa.table({"x": x, "k": np.arange(n), "i": [f"r{j}" for j in range(n)], "y": labels})


@pytest.mark.parametrize("max_unlabeled", [30, 31, "all"])
def test_rows_that_are_all_used_are_no_draw(max_unlabeled):
    table = numbered(30)
    rows = study_rows(table, ColumnRoles("y", ids=("i",)), max_unlabeled, 0)
    assert (rows.origin, rows.notes) == (None, ())
    assert rows.table.column_names == ["x", "k"]
    assert (len(rows.roles), rows.counts.counts) == (40, (5, 5, 30))
    assert sorted(rows.numbers.tolist()) == list(range(40))
    names = rows.ids.column("i").to_pylist()
    assert names == [f"r{j}" for j in rows.numbers]
    np.testing.assert_array_equal(rows.table.column("k"), rows.numbers)


def test_rows_that_are_drawn_are_told_and_a_column_that_counts_them_left_out():
    rows = study_rows(numbered(30), ColumnRoles("y", ids=("i",)), 29, 0)
    assert rows.roles.counts == (5, 5, 29)
    assert rows.counts.counts == (5, 5, 30)
    assert rows.table.column_names == ["x"]
    assert rows.notes[0] == "Column 'k' numbers the rows; left out."
    assert rows.notes[1].startswith("Fitted on 29 of 30 unlabelled rows")
    assert len(rows.origin.drawn) == 29
    assert rows.origin.source.schema.names == ["x", "k", "i", "y"]
    again = study_rows(numbered(30), ColumnRoles("y", ids=("i",)), 29, 0)
    assert again.numbers.tolist() == rows.numbers.tolist()
    drawn = {tuple(study_rows(numbered(30), ColumnRoles("y", ids=("i",)), 29, s).numbers)
             for s in range(4)}  # fmt: skip
    assert len(drawn) > 1


def test_sparse_rows_are_used_as_they_are():
    X = sparse.coo_matrix(np.eye(6))
    labels = np.array([1.0, 1, 0, 0, np.nan, np.nan])
    rows = study_rows((X, labels), ColumnRoles("label"), 2, 0)
    assert rows.table.format == "csr"
    assert (rows.roles.counts, rows.numbers.tolist()) == ((2, 2, 2), list(range(6)))
    assert (rows.origin, rows.ids, rows.notes) == (None, None, ())


def test_trees_of_labelled_rows_vote():
    """Leaves are pure, so a score is a share of the trees; several of them disagree."""
    rng = np.random.default_rng(0)
    X, roles = rng.normal(size=(60, 3)), roles_of(20, 20, 20)
    for n_trees in (1, 8):
        scores = LabelledTrees(n_trees, 0).fit(X, roles).decision_function(rng.normal(size=(40, 3)))
        np.testing.assert_allclose(scores * n_trees, np.round(scores * n_trees), atol=1e-9)
        assert (len(np.unique(np.round(scores, 9))) > 2) is (n_trees == 8)
    assert (LabelledTrees().n_trees, LabelledTrees().random_state) == (300, 0)


# --- counts and charts ----------------------------------------------------------------------------


def test_labels_are_counted_until_they_are_too_many(monkeypatch):
    """Three may be labels: a fourth is still counted, so that it can be told, and then no more."""
    monkeypatch.setattr(_census, "_MOST_LABELS", 3)
    three, more = Counter("aabc"), Counter("bdd")
    assert _census._add(three, more) == Counter("aabbcdd")
    four = Counter("abcd")
    assert _census._add(four, Counter("ae")) == four
    for cells, told in (("abc", False), ("abcd", True)):
        source = MemorySource(pa.table({"y": list(cells * 2)}), batch_rows=3)
        with pytest.raises(InputError) as caught:
            read_source_labels(source, "y", LabelCodes())
        assert ("more than 3 different values" in str(caught.value)) is told


def test_a_posterior_is_drawn_as_a_density():
    """Its cells are narrow near 0: weights alone would draw another curve."""
    edges = np.linspace(0, 1, 401) ** 2
    shares = (edges[1:] + edges[:-1]) / 2
    law = stats.beta(3, 12)
    prior = ClassPrior.from_posterior(shares, np.diff(law.cdf(edges)))
    found = prior_findings(prior, RoleCounts(5, 5, 90))["posterior"]
    density = law.pdf(found["shares"])
    assert len(found["shares"]) > 60
    np.testing.assert_allclose(found["density"], density / law.pdf(2 / 13), atol=0.02)
    assert max(found["density"]) == pytest.approx(1.0, abs=0.01)
