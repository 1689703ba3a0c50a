"""Tests of evaluation/heldout."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from pnuauc import AutoAUCClassifier
from pnuauc.evaluation.heldout import HeldOut, cross_fit, row_worth
from pnuauc.labels import Roles
from pnuauc.selection import deal_folds
from tests.conftest import generated_sample, wins


def table(codes, scores, reference, groups=None):
    n = len(codes)
    groups = np.arange(n) if groups is None else groups
    codes = np.asarray(codes, dtype=np.int8)
    return HeldOut(
        np.arange(n),
        codes,
        np.zeros(n, dtype=int),
        np.asarray(scores, float)[:, None],
        [np.asarray(reference, float)[:, None]],
        False,
        row_worth(codes, groups, np.asarray(scores, float)[:, None]),
        groups,
    )


def test_places_are_shares_of_pairs_won():
    rng = np.random.default_rng(0)
    scores, reference = np.round(rng.normal(size=30), 1), np.round(rng.normal(size=50), 1)
    found = table(np.ones(30), scores, reference).places(np.ones((1, 1)))
    assert found == pytest.approx(np.clip(wins(scores, reference).mean(axis=1), 0.01, 0.99))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7])
def test_the_auc_of_both_classes_needs_no_share(share):
    """1/2 + mean place of P - mean place of N is the AUC whatever U holds."""
    rng = np.random.default_rng(1)
    positive, negative = rng.normal(1, 1, 4000), rng.normal(0, 1, 4000)
    hidden = rng.random(4000) < share
    unlabeled = rng.normal(hidden.astype(float), 1)
    codes = np.repeat([1, 0], 4000)
    held = table(codes, np.concatenate([positive, negative]), unlabeled)
    at = held.places(np.ones((1, 1)))
    assert held.auc(at) == pytest.approx(wins(positive[:2000], negative[:2000]).mean(), abs=0.02)
    alone = table(np.ones(4000), positive, unlabeled)
    assert alone.auc(alone.places(np.ones((1, 1))), share) == pytest.approx(0.76, abs=0.03)


def test_a_difference_is_paired_and_counts_groups():
    rng = np.random.default_rng(2)
    codes = np.repeat([1, 0], [40, 60])
    held = table(codes, rng.normal(size=100) + codes, rng.normal(size=500))
    a = held.places(np.ones((1, 1)))
    b = np.clip(a - 0.1 * codes + rng.normal(0, 0.05, 100), 0.001, 0.999)
    found = held.difference(a, b)
    d = a - b
    assert found.value == pytest.approx(d[codes == 1].mean() - d[codes == 0].mean())
    # every row four times over, said to be groups: the same error, not half of it
    many = table(
        np.repeat(codes, 4),
        np.repeat(held.scores[:, 0], 4),
        held.reference[0][:, 0],
        np.repeat(np.arange(100), 4),
    )
    again = many.difference(np.repeat(a, 4), np.repeat(b, 4))
    assert again.std_error == pytest.approx(found.std_error, rel=0.02)
    assert again.value == pytest.approx(found.value)


def test_labelled_rows_alone_give_the_same_places_auc_and_differences():
    rng = np.random.default_rng(4)
    codes = rng.permutation(np.repeat([1, 0, -1], [30, 50, 70]))
    held = table(codes, rng.normal(size=150), rng.normal(size=200), rng.integers(0, 60, 150))
    part, own = held.of_labeled(), np.flatnonzero(codes >= 0)
    assert part.codes.tolist() == codes[own].tolist()
    a, b = held.places(np.ones((1, 1))), rng.random(150)
    assert part.places(np.ones((1, 1))) == pytest.approx(a[own])
    assert part.auc(a[own]) == pytest.approx(held.auc(a))
    assert part.difference(a[own], b[own]) == pytest.approx(held.difference(a, b))


def test_rows_of_a_group_count_as_one_and_weights_as_kish_says():
    codes = np.array([1, 1, 1, 0, 0], dtype=np.int8)
    copies = np.array([[2.0], [2.0], [1.0], [0.0], [3.0]])
    worth = row_worth(codes, np.array([0, 0, 1, 2, 3]), copies)
    assert worth.tolist() == [0.5, 0.5, 1, 1, 1]
    v = np.array([1.0, 1.0, 4.0, 2.0, 2.0])
    worth = row_worth(codes, np.arange(5), copies, v)
    assert worth[:3].sum() == pytest.approx(6**2 / 18)
    assert worth[3:].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("alike", "fewest", "most"), [(0.0, 250, 400), (3.0, 40, 52)])
def test_rows_of_a_group_count_for_less_the_more_alike_they_are(alike, fewest, most):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    scores = rng.normal(size=400) + alike * rng.normal(size=40)[groups]
    worth = row_worth(np.ones(400, dtype=np.int8), groups, scores[:, None])
    assert fewest <= worth.sum() <= most


class LabeledOnly(LogisticRegression):
    """Logistic regression that leaves unlabelled rows out."""

    def fit(self, X, y):
        known = y.codes >= 0
        return super().fit(X[known], y.codes[known])


def test_any_model_is_held_out_by_refits_that_lack_the_fold():
    sample = generated_sample("twonorm", (20, 40, 300), 0.2)
    roles = Roles(sample.y.astype(np.int8))
    rows = {k: v for k, v in roles.by_letter.items() if len(v)}
    folds = deal_folds(rows, 4, sample.X, random_state=0)
    held = cross_fit([LabeledOnly()], sample.X, roles, folds.splits)
    assert sorted(held.rows) == list(range(len(roles)))
    for k in range(4):
        own = held.fold == k
        train = np.setdiff1d(np.arange(len(roles)), held.rows[own])
        scores = (
            LabeledOnly()
            .fit(sample.X[train], roles.take(train))
            .decision_function(sample.X[held.rows[own]])
        )
        assert np.corrcoef(scores, held.scores[own, 0])[0, 1] == pytest.approx(1.0)
        assert held.models[k].score(sample.X[held.rows[own]])[:, 0] == pytest.approx(
            held.scores[own, 0]
        )
    assert held.auc(held.places(np.ones((4, 1)))) > 0.9


def test_groups_never_stand_on_both_sides_and_the_truth_is_seen():
    """Eight nearly equal rows a customer, labels by customer, features that say nothing."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(120), 8)
    X = rng.normal(size=(120, 6))[group] + 0.01 * rng.normal(size=(960, 6))
    label = rng.integers(0, 2, 120)[group]
    y = np.where(group < 40, label, -1)
    model = AutoAUCClassifier(random_state=0, verbose=False)
    blind, aware = model.fit(X, y).auc_, model.fit(X, y, groups=group).auc_
    assert blind.value > 0.9  # neighbours of the same customer give the label away
    assert aware.low < 0.53 < aware.high
    held = model.held_out_
    assert all(len(np.unique(held.fold[held.groups == g])) == 1 for g in np.unique(held.groups))
