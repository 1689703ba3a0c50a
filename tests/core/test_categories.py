"""Tests of core/categories."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pnuauc.core.categories import category_weights, find_categories


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
