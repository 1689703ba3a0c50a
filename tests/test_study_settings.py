"""What is asked of a study reaches what it does: seeds, folds and levels, by doing it once more."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from pnuauc import AUCClassifierCV
from pnuauc._committee import AutoAUCClassifier, RankingOnly
from pnuauc._placement import CROSS_FIT_DISCOUNT, place_scores
from pnuauc._prior import ClassPrior
from pnuauc._study import ColumnRoles, FitSettings, evaluate_table, fit_study
from pnuauc._study._committee import (
    LabelledTrees,
    labelled_only,
    quietly,
    rival_findings,
    selection_message,
)
from pnuauc._study._copies import Copies, find_copies
from pnuauc._study._crossfit import CrossFit, cross_fit, evaluation_rows
from pnuauc._study._findings import (
    held_out_placement,
    label_findings,
    selection_findings,
    unlabeled_effect,
)
from pnuauc._study._importance import column_importance
from pnuauc._study._prior import find_prior
from pnuauc._study._rows import study_rows
from pnuauc.labels import Roles
from pnuauc.metrics import compare_auc
from tests.conftest import gaussian_scores, roles_of

SIZES = (14, 20, 70)
QUICK = {"prior": 0.25, "model": "average", "n_centers": 4, "top": 5}


def rows_of(sizes=SIZES, prior=0.25):
    y, x, hidden = gaussian_scores(0, sizes, prior, 1.5)
    rng = np.random.default_rng(1)
    X = np.column_stack([x, rng.normal(size=len(x)), rng.normal(size=len(x))])
    return X, y, hidden


def table_of(X, y):
    labels = pa.array([None if np.isnan(v) else int(v) for v in y], pa.int8())
    return pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "y": labels})


@pytest.fixture(scope="module")
def study():
    X, y, _ = rows_of()
    settings = FitSettings(**QUICK, folds=3, level=0.8, random_state=7, evaluation_unlabeled=50)
    return fit_study(table_of(X, y), ColumnRoles("y"), settings), settings


def in_the_order_of(found, settings):
    """Encoded rows and roles as a study has them: in the order of the rows' keys."""
    X, y, _ = rows_of()
    rows = study_rows(table_of(X, y), ColumnRoles("y"), 200_000, settings.random_state)
    return found.encoder.transform(rows.table), rows.roles


def test_a_study_holds_out_as_many_folds_as_are_asked_for_by_its_seed(study):
    found, settings = study
    held = found.held_out
    assert len(held.folds) == 3
    assert held.roles.n_unlabeled == 50
    assert held.training_share == pytest.approx(2 / 3)
    tests = np.concatenate([test for test, _ in held.folds])
    assert sorted(tests) == list(range(len(held.roles)))
    ordered, roles = in_the_order_of(found, settings)
    used = evaluation_rows(roles, 50, 7)
    np.testing.assert_array_equal(used, held.rows)
    again = cross_fit(quietly(found.ranker), ordered, roles, used, n_folds=3, seed=7)
    np.testing.assert_allclose(again.scores, held.scores)
    prior = ClassPrior.known(0.25)
    method = found.findings["auc"]["method"]
    importance = column_importance(held, ordered, found.encoder, prior, method, seed=7)
    assert found.findings["importance"]["columns"] == importance
    effect = unlabeled_effect(
        found.ranker, quietly(found.ranker), ordered, roles, held, prior, 3, settings.random_state
    )
    assert found.findings["unlabeled_effect"] == effect


def test_a_study_has_the_level_that_is_asked_for(study):
    findings = study[0].findings
    assert findings["auc"]["level"] == 0.8
    assert findings["review"]["level"] == 0.8
    assert findings["roc"]["level"] == 0.8
    assert findings["settings"]["level"] == 0.8
    assert (findings["review"]["k"], len(findings["top"]["rows"])) == (5, 5)
    assert findings["labels"] == label_findings(roles_of(*SIZES)) | {
        "positive_label": "1", "negative_label": "0",
        "announcement": findings["labels"]["announcement"],
    }  # fmt: skip
    assert findings["table"]["rows"] == sum(SIZES)
    assert findings["table"]["kinds"] == {"number": 3}
    assert findings["table"]["n_encoded"] == 3
    assert findings["rivals"] == []
    assert findings["created"].endswith("+00:00")
    assert "." not in findings["created"]


def test_what_was_chosen_is_told(study):
    ranker = study[0].ranker
    told = selection_findings(ranker)
    assert (told["model"], told["basis"], told["loss"]) == ("average", "gaussian", "squared")
    assert told["n_centers"] == 4
    assert told["n_candidates"] == len(ranker.cv_results_["mean_test_risk"])
    assert told["n_kept"] == sum(w > 0 for w in ranker.cv_results_["weight"])
    assert told["n_corrected"] == ranker.n_corrected_
    assert told["best"] == {k: v for k, v in ranker.best_params_.items() if np.isfinite(v)}
    assert told["message"] == selection_message(ranker)


def test_an_estimated_prior_has_the_level_and_the_seed_of_the_study():
    X, y, _ = rows_of((12, 12, 50))
    roles = Roles(np.nan_to_num(y, nan=-1).astype(np.int8))
    one, other = (find_prior(None, X, roles, random_state=s) for s in (3, 4))
    wide = find_prior(None, X, roles, random_state=3, level=0.99)
    assert wide.value == one.value != other.value
    assert (one.level, wide.level) == (0.95, 0.99)
    assert wide.low <= one.low < one.high <= wide.high
    assert wide.interval != one.interval


def test_an_evaluation_has_the_level_that_is_asked_for():
    labels, scores, _ = gaussian_scores(1, (20, 20, 100), 0.2)
    cells = pa.array([None if np.isnan(v) else int(v) for v in labels], pa.int8())
    table = pa.table({"s": scores, "t": -scores, "y": cells})
    found = evaluate_table(table, "y", ["s", "t"], level=0.7, prior=(0.1, 0.3))
    one = found["scores"]["s"]
    assert {told["level"] for told in one["methods"].values()} == {0.7}
    assert (one["auc"]["level"], one["sensitivity"]["level"]) == (0.7, 0.7)
    assert found["comparison"]["level"] == 0.7
    estimated = evaluate_table(table, "y", ["s"], level=0.7)
    assert estimated["prior"]["level"] == 0.7
    only = np.isnan(labels) | (labels == 1)
    open_ = evaluate_table(table.filter(pa.array(only)), "y", ["s"], level=0.7)
    assert open_["scores"]["s"]["sensitivity"]["level"] == 0.7


# --- rivals ---------------------------------------------------------------------------------------


def test_rivals_are_judged_on_the_folds_of_the_committee():
    """Each rival refitted without every fold, and compared as any two columns of scores."""
    X, y, _ = rows_of((16, 18, 50))
    roles = Roles(np.nan_to_num(y, nan=-1).astype(np.int8))
    rows = np.sort(np.random.default_rng(0).permutation(84)[:70])
    taken = roles.take(rows)
    copies = find_copies(X[rows], taken)
    scores = np.random.default_rng(1).normal(size=70) + (taken.codes == 1)
    held = CrossFit(rows, taken, scores, [()] * 2, copies)
    settings = SimpleNamespace(random_state=5, n_jobs=None, level=0.9)
    prior = ClassPrior.known(0.25)
    lines = rival_findings(RankingOnly(AutoAUCClassifier()), X, held, prior, "pn", 2, settings)
    assert [line["name"] for line in lines] == [
        "PNU-AUC of the paper", "ExtraTrees, labelled rows"
    ]  # fmt: skip
    rivals = (
        AUCClassifierCV(selection="paper", prior=prior, random_state=5),
        LabelledTrees(300, 5),
    )
    for line, rival in zip(lines, rivals):
        alone = cross_fit(rival, X[rows], taken, np.arange(70), n_folds=2, seed=5, copies=copies)
        pair = compare_auc(taken, scores, alone.scores, prior, "pn", 0.9)
        expected = {"auc": pair.value_b, "committee": pair.value_a, "difference": pair.difference,
                    "low": pair.low, "high": pair.high}  # fmt: skip
        assert line.pop("method") == pair.method == "pn"
        assert {k: v for k, v in line.items() if k != "name"} == pytest.approx(expected)
    assert rival_findings(AUCClassifierCV(), X, held, prior, "pn", 2, settings) == []


def test_a_committee_without_unlabelled_rows_knows_no_prior():
    ranker = AutoAUCClassifier(prior=0.2, verbose=True)
    quiet = quietly(ranker)
    assert isinstance(quiet, RankingOnly)
    assert quiet.committee.verbose is False
    folds = [(None, SimpleNamespace(weights_={"trees": 1.0 + k})) for k in range(2)]
    alone = labelled_only(quiet, SimpleNamespace(folds=folds))
    assert [one.weights for one in alone] == [{"trees": 1.0}, {"trees": 2.0}]
    assert [(o.committee.prior, o.committee.max_unlabeled) for o in alone] == [(None, 0)] * 2
    names = (
        SimpleNamespace(name="trees"),
        SimpleNamespace(name="mine"),
        SimpleNamespace(name="linear"),
    )
    for members, words in (
        (names[:1], "randomised trees: members"),
        (names[:2], "randomised trees and mine: members"),
        (names, "randomised trees, mine and a straight logistic regression: members"),
    ):
        ranker.members_ = members
        assert selection_message(ranker).startswith(words)


# --- places and copies ----------------------------------------------------------------------------


def test_single_rows_are_judged_by_places_discounted_for_refits_and_copies():
    rng = np.random.default_rng(0)
    roles = roles_of(10, 12, 60)
    groups = np.arange(82)
    groups[1] = groups[0]  # two positives that are the same
    held = CrossFit(np.arange(82), roles, rng.normal(size=82), [()] * 3, Copies(groups, 2, 0))
    effect = held.copies.design_effect(roles)
    assert effect == pytest.approx((8 + 4) / 10)
    prior = ClassPrior.known(0.2)
    found = held_out_placement(held, prior)
    places = held.places
    expected = place_scores(places[:10], places[10:22], prior, discount=CROSS_FIT_DISCOUNT * effect)
    for k in (3, 20):
        assert found.top(k, 60, 0.9) == expected.top(k, 60, 0.9)
    plain = place_scores(places[:10], places[10:22], prior)
    assert found.top(20, 60, 0.9) != plain.top(20, 60, 0.9)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-3])
def test_near_copies_do_not_depend_on_the_units_of_a_column(scale):
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:8] = X[8:16] + 1e-4
    roles = roles_of(40, 0, 160)
    assert find_copies(X * [scale, 1.0, 1.0], roles).n_near == 16
    constant = np.column_stack([X, np.full(200, 7.0)])
    assert find_copies(constant, roles).n_near == 16
