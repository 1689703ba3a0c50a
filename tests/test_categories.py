"""Yes/no columns of categories: found among other columns, and weighed as one column a category."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from pnuauc import AutoAUCClassifier
from pnuauc._categories import category_weights, find_categories
from pnuauc.datasets import make_banana, sample_pnu
from pnuauc.priors import PlacementPrior


def _levels(rng, n, n_levels):
    """One 0/1 column a level; every level has rows."""
    codes = np.concatenate([np.arange(n_levels), rng.integers(0, n_levels, n - n_levels)])
    return np.eye(n_levels)[rng.permutation(codes)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["number", "constant", 2, 3, 5, 9]), min_size=1, max_size=7),
    st.integers(0, 2**31 - 1),
)
def test_categories_are_found_wherever_they_stand(kinds, seed):
    """Against the truth: neighbours, constant columns and numbers in any order."""
    rng = np.random.default_rng(seed)
    blocks, wanted, d = [], [], 0
    for kind in kinds:
        if isinstance(kind, int):
            blocks.append(_levels(rng, 2000, kind) * 3.0 - 1.0)
            wanted.append(list(range(d, d + kind)))
        else:
            blocks.append(
                rng.standard_normal((2000, 1)) if kind == "number" else np.ones((2000, 1))
            )
        d += blocks[-1].shape[1]
    X = np.hstack(blocks)
    assert find_categories(X) == wanted
    squares = category_weights(X) ** 2
    inside = np.isin(np.arange(d), np.concatenate([[], *wanted]))
    assert squares[inside].sum() == pytest.approx(len(wanted))
    assert (squares[~inside] == 1).all()
    assert len(np.unique(squares[inside])) <= 1


def test_a_level_that_is_missing_or_rare_stays_with_its_category():
    """Levels of few rows clash with no neighbour: they must not be left over as free columns."""
    rng = np.random.default_rng(0)
    codes = rng.choice(6, 3000, p=[0.5, 0.3, 0.19, 0.004, 0.003, 0.003])
    other = rng.choice(4, 3000, p=[0.003, 0.4, 0.4, 0.197])
    X = np.hstack([np.eye(6)[codes], np.eye(4)[other]])
    X[rng.random(3000) < 0.1, :6] = np.nan
    found = find_categories(X)
    assert [len(columns) for columns in found] in ([6, 4], [7, 3])
    assert [j for columns in found for j in columns] == list(range(10))


def test_free_yes_no_columns_are_no_category():
    rng = np.random.default_rng(0)
    rare = (rng.random((1000, 60)) < 0.04).astype(float)
    common = (rng.random((1000, 20)) < 0.5).astype(float)
    alternatives = (rng.random((1000, 1)) < 0.3).astype(float)
    for X in (rare, common, alternatives):
        assert find_categories(X) == []
    assert find_categories(np.hstack([alternatives, 1 - alternatives])) == [[0, 1]]
    assert find_categories(np.zeros((0, 3))) == []


def _draws(n_p, n_n, n_levels=40):
    """Three draws of two good columns; three of the same beside a category that says nothing."""
    X, y = make_banana(4000, random_state=0)
    codes = np.random.default_rng(1).integers(0, n_levels, len(y))
    for table in (X, np.hstack([X, np.eye(n_levels)[codes]])):
        for seed in range(3):
            yield sample_pnu(table, y, n_p, n_n, 800, prior=0.2, random_state=seed)


def test_a_category_of_noise_costs_the_ranking_little():
    """Mean of three draws: at most .05 of AUC (each level as a column of deviation 1: .09)."""
    aucs = []
    for s in _draws(20, 80):
        model = AutoAUCClassifier(prior=0.2, cv=0, random_state=0).fit(s.X, s.y)
        aucs.append(roc_auc_score(s.y_test, model.decision_function(s.X_test)))
    plain, beside = np.mean(aucs[:3]), np.mean(aucs[3:])
    assert plain > 0.85
    assert beside > plain - 0.05


def test_a_category_of_noise_leaves_the_prior_alone():
    """Mean width of three intervals: at most 1.35 times that without it (unweighted: 1.75)."""
    widths = []
    for s in _draws(40, 40):
        low, high = PlacementPrior(random_state=0).fit(s.X, s.y).interval_
        assert low <= 0.2 <= high
        widths.append(high - low)
    assert np.mean(widths[3:]) < 1.35 * np.mean(widths[:3])
