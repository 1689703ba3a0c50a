"""Folds by role: labels as they are named, groups kept together, roles that cannot be spread."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import check_random_state

from pnuauc._row_groups import grouped_folds
from pnuauc.exceptions import LabelReadingWarning, PriorNotIdentifiedError
from pnuauc.labels import read_roles
from pnuauc.metrics import (
    AUCScorer,
    RoleStratifiedKFold,
    RoleStratifiedShuffleSplit,
    auc_estimate,
    make_auc_scorer,
)
from tests.conftest import gaussian_scores, wins

NAMES = ("positive_label", "negative_label", "unlabeled_label")


@pytest.mark.parametrize("role", NAMES)
def test_folds_read_labels_as_they_are_named(role):
    """Two values of one role are one stratum, whichever role it is."""
    y = np.array(["a", "b", "c", "c", "d", "d", "a", "b"])
    codes = dict(zip((role, *(n for n in NAMES if n != role)), (["a", "b"], "c", "d")))
    for splitter in (
        RoleStratifiedKFold(2, **codes),
        RoleStratifiedShuffleSplit(2, test_size=0.5, random_state=0, **codes),
    ):
        assert [getattr(splitter, name) for name in NAMES] == [codes[name] for name in NAMES]
        for train, test in splitter.split(y, y):
            for rows in (train, test):
                assert sorted(np.where(y[rows] == "b", "a", y[rows])) == [*"aacd"]


def test_two_unclear_values_are_read_in_sorted_order():
    """By folds and scorers, as by scikit-learn's classifiers; the estimate itself refuses."""
    y = np.where(np.arange(40) % 4 == 0, "x", "w")
    scores = np.random.default_rng(0).normal(y == "x", 1.0)
    with pytest.raises(ValueError, match="which"):
        auc_estimate(y, scores)
    with pytest.warns(LabelReadingWarning, match="'x' is read as positive"):
        folds = list(RoleStratifiedKFold(5).split(y, y))
    assert [int(np.sum(y[test] == "x")) for _, test in folds] == [2] * 5

    class Given:
        def predict(self, X):
            return X[:, 0]

    with pytest.warns(LabelReadingWarning, match="'x' is read as positive"):
        found = make_auc_scorer()(Given(), scores[:, None], y)
    assert found == pytest.approx(wins(scores[y == "x"], scores[y == "w"]).mean())
    assert AUCScorer(None, "pn")(Given(), scores[:, None], y == "x") == found
    with pytest.raises(PriorNotIdentifiedError, match="'pu' needs the share") as caught:
        AUCScorer(None, "pu")(Given(), scores[:, None], np.where(y == "x", 1.0, np.nan))
    assert caught.value.about == "prior"


def test_grouped_folds_without_shuffling_are_those_of_seed_zero():
    y, scores, _ = gaussian_scores(0, (15, 20, 80), 0.3)
    codes = read_roles(y).codes
    groups = np.random.default_rng(3).integers(0, 25, len(y))
    fold, *others = (grouped_folds(codes, groups, 3, check_random_state(s)) for s in range(4))
    assert all((fold != other).any() for other in others)
    for k, (train, test) in enumerate(RoleStratifiedKFold(3).split(scores, y, groups)):
        np.testing.assert_array_equal(test, np.flatnonzero(fold == k))
        np.testing.assert_array_equal(train, np.flatnonzero(fold != k))


def test_grouped_folds_without_some_role_are_refused():
    """Two groups of positives for three folds; and all positives in one group."""
    y = np.repeat([1, 0, -1], [4, 12, 30])
    for n_groups, n_folds in ((2, 3), (1, 2)):
        groups = np.r_[np.arange(4) % n_groups, 10 + np.arange(42)]
        with pytest.raises(ValueError, match=f"at least {n_folds} groups with rows of every role"):
            list(RoleStratifiedKFold(n_folds).split(y, y, groups))
    groups = np.r_[np.arange(4) % 2, 10 + np.arange(42)]
    for _, test in RoleStratifiedKFold(2).split(y, y, groups):
        assert [int(np.sum(y[test] == code)) for code in (1, 0, -1)] == [2, 6, 15]


@pytest.mark.parametrize("role", [0, 1, 2])
def test_folds_want_as_many_rows_as_there_are_folds_of_every_role(role):
    word = ("positive", "negative", "unlabelled")[role]
    for few in (1, 2, 3):
        y = np.repeat([1, 0, -1], [few if r == role else 9 for r in range(3)])
        for splitter, least in (
            (RoleStratifiedKFold(3), 3),
            (RoleStratifiedShuffleSplit(1, test_size=0.5, random_state=0), 2),
        ):
            if few < least:
                with pytest.raises(ValueError, match=f"the {word} rows are too few"):
                    next(splitter.split(y, y))
                continue
            train, test = next(splitter.split(y, y))
            assert set(y[train]) == set(y[test]) == {1, 0, -1}
    none = np.repeat([1.0, 0.0, np.nan], [0 if r == role else 9 for r in range(3)])
    codes = {"positive_label": 1.0, "negative_label": 0.0}
    assert len(list(RoleStratifiedKFold(3, **codes).split(none, none))) == 3
