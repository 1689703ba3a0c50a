"""Extremely randomised trees by scikit-learn, each on rows of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor

from pnuauc._committee._forest import Forest

__all__ = ["grow_trees", "scikit_trees"]

Ints: TypeAlias = NDArray[np.intp]


def grow_trees(
    X: NDArray[Any],
    samples: Sequence[Ints],
    codes: NDArray[Any],
    rng: np.random.RandomState,
    leaf: int = 1,
) -> Forest:
    """One tree for each sample; the score is the mean share of positives in the leaves reached.

    Parameters
    ----------
    X : ndarray, shape (n, d), NaN allowed
    samples : for each tree the numbers of its rows
    codes : ndarray, shape (n,), 1 or 0
    rng : RandomState
    leaf : least rows of a leaf
    """
    return Forest.from_trees(scikit_trees(X, samples, codes, rng, leaf))


def scikit_trees(
    X: NDArray[Any],
    samples: Sequence[Ints],
    codes: NDArray[Any],
    rng: np.random.RandomState,
    leaf: int = 1,
) -> list[Any]:
    """The same trees as scikit-learn's Tree objects.

    Those of ``ExtraTreesClassifier``: the variance of a 0/1 target is half its Gini impurity, so
    that a regression tree makes the same splits and its leaves hold the share of class 1. That
    class clones and checks once a tree; here one estimator is fitted again and again.
    """
    X = np.ascontiguousarray(X, dtype=np.float32)
    target = np.asarray(codes, dtype=np.float64)[:, None]
    tree = ExtraTreeRegressor(max_features="sqrt", min_samples_leaf=leaf, random_state=rng)
    missing = bool(np.isnan(X).any())  # only a checking fit looks where they are
    trees = []
    with config_context(skip_parameter_validation=True):
        for rows in samples:
            trees.append(tree.fit(X[rows], target[rows], check_input=missing).tree_)
    return trees
