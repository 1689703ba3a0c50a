"""Randomised trees by scikit-learn, each on rows of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from pnuauc._committee import _forest
from pnuauc._trees import grow_tree

__all__ = ["grow_trees"]

Ints: TypeAlias = NDArray[np.intp]


def grow_trees(
    X: NDArray[Any],
    samples: Sequence[Ints],
    codes: NDArray[Any],
    rng: np.random.RandomState,
    leaf: int = 1,
    *,
    best: bool = False,
) -> list[Any]:
    """One tree for each sample, scikit-learn's Tree objects.

    Those of ``ExtraTreesClassifier``, with ``best`` those of ``RandomForestClassifier``: the
    variance of a 0/1 target is half its Gini impurity, so that a regression tree makes the same
    splits and its leaves hold the share of class 1. These classes clone and check once a tree;
    here one estimator is fitted again and again.

    Parameters
    ----------
    X : ndarray, shape (n, d), NaN allowed
    samples : for each tree the numbers of its rows, a row perhaps more than once
    codes : ndarray, shape (n,), 1 or 0
    rng : RandomState
    leaf : least rows of a leaf
    best : whether a column is split at its best place instead of a random one
    """
    X = np.ascontiguousarray(X, dtype=np.float32)
    target = np.asarray(codes, dtype=np.float64)[:, None]
    kind = DecisionTreeRegressor if best else ExtraTreeRegressor
    tree = kind(max_features="sqrt", min_samples_leaf=leaf, random_state=rng)
    gaps = np.isnan(X)
    missing = bool(gaps.any())
    if missing and not _forest.TAKES_MISSING:
        X, missing = np.where(gaps, np.fmin.reduce(X, axis=0) - 1.0, X), False
        X[np.isnan(X)] = 0.0  # columns without a value
    trees = []
    with config_context(skip_parameter_validation=True):
        for rows in samples:
            mask = gaps[rows].any(axis=0) if missing else None
            mask = mask if mask is not None and mask.any() else None
            trees.append(grow_tree(tree, X[rows], target[rows], gaps=mask))
    return trees
