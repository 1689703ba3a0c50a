"""Tests of committee/forest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from pnuauc._utils.stored import Parts
from pnuauc.committee import forest as _forest
from pnuauc.committee.forest import Forest, grow_trees
from pnuauc.exceptions import ModelFileError

#: Older trees of scikit-learn are not asked about missing cells.
MISSING = [False, True] if _forest.TAKES_MISSING else [False]


@pytest.mark.parametrize("n_labeled", [30, 300])
@pytest.mark.parametrize("missing", MISSING)
def test_a_forest_of_arrays_is_scikit_learns(n_labeled, missing):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((900, 8))
    y = (X[:n_labeled, 0] + X[:n_labeled, 1] * X[:n_labeled, 2] > 0.5).astype(int)
    if missing:
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    trees = grow_trees(X, [np.arange(n_labeled)] * 20, y, rng)
    shares = np.mean([tree.predict(X.astype(np.float32))[:, 0] for tree in trees], axis=0)
    boosting = HistGradientBoostingClassifier(random_state=0).fit(X[:n_labeled], y)
    pairs = [
        (Forest.from_trees(trees), shares),
        (Forest.from_boosting(boosting), boosting.decision_function(X)),
    ]
    for forest, expected in pairs:
        np.testing.assert_allclose(forest.score(X), expected, atol=1e-12)
        again = Forest.rebuild(Parts(forest.spec(), forest.arrays()), 8)
        np.testing.assert_array_equal(again.score(X), forest.score(X))


def small_forest():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 3))
    return Forest.from_trees(grow_trees(X, [np.arange(40)] * 3, X[:, 0] > 0, rng))


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize("leaf", [1, 4])
def test_grown_trees_are_those_of_the_classifier(leaf, best, missing):
    """Same seed, same splits; a tie between two splits may be broken by rounding (1 tree in 20)."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((90, 6)).astype(np.float32)
    codes = (X[:, 0] + rng.standard_normal(90) > 0).astype(int)
    if missing:
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    theirs = np.random.RandomState(3)
    samples = [np.arange(90)] * 60
    grown = grow_trees(X, samples, codes, np.random.RandomState(3), leaf, best=best)
    kind = DecisionTreeClassifier if best else ExtraTreeClassifier
    model = kind(max_features="sqrt", min_samples_leaf=leaf, random_state=theirs)
    same = 0
    for tree in grown:
        single = model.fit(X, codes).tree_
        same += np.array_equal(tree.feature, single.feature) and np.allclose(
            tree.value[:, 0, 0], single.value[:, 0, 1] / single.value[:, 0].sum(axis=1)
        )
    assert same >= 57


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_forest_with_a_changed_number_is_refused_or_harmless(data):
    """Whatever one entry becomes, the forest is refused or every walk ends inside of it."""
    forest = small_forest()
    arrays = {name: values.copy() for name, values in forest.arrays().items()}
    name = data.draw(st.sampled_from(["left", "right", "feature", "roots"]))
    place = data.draw(st.integers(0, len(arrays[name]) - 1))
    arrays[name][place] = data.draw(st.integers(-3, len(arrays["left"]) + 3))
    try:
        changed = Forest.rebuild(Parts(forest.spec(), arrays), 3)
    except ModelFileError:
        return
    assert np.isfinite(changed.score(np.random.RandomState(1).standard_normal((300, 3)))).all()


def test_forests_that_turn_in_circles_are_refused():
    forest = small_forest()
    inner = np.flatnonzero(forest.left != np.arange(len(forest.left)))
    for name, place, value in [
        ("left", inner[1], 0),  # back to the root
        ("left", inner[0], int(forest.right[inner[0]])),  # two parents
        ("right", inner[0], len(forest.left)),  # past the end
        ("feature", inner[0], 3),  # a column that is not there
        ("right", inner[0], len(forest.left) - 1),  # into another tree
        ("roots", 1, 0),  # trees that are not one after the other
    ]:
        arrays = {k: v.copy() for k, v in forest.arrays().items()}
        arrays[name][place] = value
        with pytest.raises(ModelFileError):
            Forest.rebuild(Parts(forest.spec(), arrays), 3)
