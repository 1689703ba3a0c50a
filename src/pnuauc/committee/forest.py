"""Randomised trees by scikit-learn, each on rows of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree
from sklearn.utils.fixes import parse_version

from pnuauc._utils.stored import Parts, refuse
from pnuauc._utils.trees import grow_tree

__all__ = ["TAKES_MISSING", "Forest", "grow_trees"]

# Trees as plain arrays: what a model file may hold, and how such trees score rows.


#: Before 1.8 scikit-learn's trees may send a missing cell another way when they predict than when
#: they grow (48 of 400 small trees): there it stands for a value below all others, in both.
TAKES_MISSING = parse_version(sklearn.__version__) >= parse_version("1.8")

#: (row, tree) pairs that walk down together: their node numbers stay in the processor's cache.
_WALKERS = 1 << 16

#: Levels of a tree; scikit-learn's have some dozens. Trees of all forests of a model file together:
#: a committee has less than a thousand, and each is rebuilt one by one.
_MAX_DEPTH, _MAX_TREES = 1000, 20_000


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees side by side.

    Attributes
    ----------
    left, right : ndarray of int32, shape (n_nodes,)
        Children; a leaf's own number.
    feature : ndarray of int32, shape (n_nodes,)
    threshold : ndarray of float64, shape (n_nodes,)
        x <= threshold goes left.
    missing_left : ndarray of bool, shape (n_nodes,)
        Where a missing value (NaN) goes.
    value : ndarray of float64, shape (n_nodes,)
        What a leaf adds to the score; 0 at inner nodes.
    roots : ndarray of int32, shape (n_trees,)
    base : float
    single : bool
        Whether x is rounded to single precision first, as scikit-learn's forests do.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    roots: NDArray[np.int32]
    base: float = 0.0
    single: bool = True

    # -- making ------------------------------------------------------------------------------

    @classmethod
    def from_trees(cls, trees: Sequence[Any]) -> Forest:
        """Regression trees of a 0/1 target: the mean over them of a leaf's share of class 1."""
        parts = []
        for tree in trees:
            leaf = tree.children_left < 0
            parts.append(
                _Part(
                    tree.children_left,
                    tree.children_right,
                    tree.feature,
                    tree.threshold,
                    np.asarray(tree.missing_go_to_left, dtype=bool) | (not TAKES_MISSING),
                    np.where(leaf, tree.value[:, 0, 0] / len(trees), 0.0),
                    leaf,
                )
            )
        return cls._stacked(parts, 0.0, single=True)

    @classmethod
    def from_boosting(cls, model: Any) -> Forest:
        """scikit-learn's HistGradientBoostingClassifier of two classes: its log-odds."""
        parts = []
        for (predictor,) in model._predictors:
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            parts.append(
                _Part(
                    nodes["left"].astype(np.int64),
                    nodes["right"].astype(np.int64),
                    nodes["feature_idx"].astype(np.int64),
                    nodes["num_threshold"],
                    nodes["missing_go_to_left"].astype(bool),
                    np.where(leaf, nodes["value"], 0.0),
                    leaf,
                )
            )
        base = float(np.ravel(model._baseline_prediction)[0])
        return cls._stacked(parts, base, single=False)

    @classmethod
    def _stacked(cls, parts: Sequence[_Part], base: float, *, single: bool) -> Forest:
        sizes = np.array([len(p.leaf) for p in parts])
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        offset = np.repeat(roots, sizes)
        own = np.arange(sizes.sum())
        leaf = np.concatenate([p.leaf for p in parts])

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(p, name) for p in parts])

        def child(name: str) -> NDArray[np.int32]:
            return np.where(leaf, own, joined(name) + offset).astype(np.int32)

        return cls(
            child("left"),
            child("right"),
            np.where(leaf, 0, joined("feature")).astype(np.int32),
            np.where(leaf, 0.0, joined("threshold")),
            joined("missing_left") & ~leaf,
            joined("value"),
            roots,
            base,
            single,
        )

    # -- storing -----------------------------------------------------------------------------

    kind = "forest"

    def spec(self) -> dict[str, Any]:
        return {"base": self.base, "single": self.single}

    def arrays(self) -> dict[str, NDArray[Any]]:
        names = ("left", "right", "feature", "threshold", "value", "roots")
        stored = {name: getattr(self, name) for name in names}
        return {**stored, "missing_left": self.missing_left.astype(np.uint8)}

    @classmethod
    def rebuild(cls, parts: Parts, n_columns: int) -> Forest:
        """From a model file: nothing may point past an end or turn in circles."""
        parts.spend("trees", len(parts.array("roots", "integer", (None,))), _MAX_TREES)
        n = len(parts.array("left", "integer", (None,)))
        own = np.arange(n)
        left, right = (parts.indices(name, (n,), 0, n) for name in ("left", "right"))
        leaf = left == own
        if (left < own).any() or (right < own).any() or ((right == own) != leaf).any():
            raise refuse("a node of its forest comes before its parent or is half a leaf")
        roots = parts.indices("roots", (None,), 0, n)
        if not len(roots):
            raise refuse("its forest has no tree")
        reached = np.concatenate([left[~leaf], right[~leaf], roots])
        if len(np.unique(reached)) < len(reached):
            raise refuse("two nodes of its forest share a child")
        _check_depth(left, right, roots)
        threshold = parts.array("threshold", "float", (n,), finite=False)
        if np.isnan(threshold).any():
            raise refuse("a threshold of its forest is missing")
        return cls(
            left.astype(np.int32),
            right.astype(np.int32),
            parts.indices("feature", (n,), 0, n_columns).astype(np.int32),
            threshold.astype(np.float64),
            parts.array("missing_left", "byte", (n,)) != 0,
            parts.array("value", "float", (n,)).astype(np.float64),
            roots.astype(np.int32),
            parts.number("base"),
            parts.flag("single"),
        )

    # -- scoring -----------------------------------------------------------------------------

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    def score(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """base + sum of leaf values, shape (n,); X dense, NaN allowed."""
        X = np.asarray(X, dtype=np.float32 if self.single else np.float64)
        if self._compiled is not None:
            rows = np.ascontiguousarray(X if self.single else self._ranked(X))
            total = sum(tree.predict(rows)[:, 0] for tree in self._compiled)
            return np.asarray(total) + self.base
        X = X.astype(np.float64)
        step = max(1, _WALKERS // self.n_trees)
        blocks = [self._walk(X[start : start + step]) for start in range(0, len(X), step)]
        return np.concatenate([np.empty(0), *blocks]) + self.base

    @cached_property
    def _cuts(self) -> list[NDArray[np.float64]]:
        """By column the thresholds of its inner nodes, each once, ascending."""
        inner = self.left != np.arange(len(self.left))
        feature, threshold = self.feature[inner], self.threshold[inner]
        order = np.lexsort((threshold, feature))
        ends = np.searchsorted(feature[order], np.arange(int(self.feature.max()) + 2))
        parts = np.split(threshold[order], ends[1:-1])
        return [np.unique(part) for part in parts]

    def _ranks_of_thresholds(self) -> NDArray[np.float64]:
        out = np.zeros(len(self.left))
        for j, cuts in enumerate(self._cuts):
            mine = np.flatnonzero(self.feature == j)
            out[mine] = np.searchsorted(cuts, self.threshold[mine])
        return out

    def _ranked(self, X: NDArray[np.float64]) -> NDArray[np.float32]:
        """How many thresholds of its column each x exceeds: exact in single precision.

        x <= the k-th threshold if and only if that count is at most k.
        """
        out = np.zeros(X.shape, dtype=np.float32)
        for j, cuts in enumerate(self._cuts):
            if len(cuts):
                out[:, j] = np.searchsorted(cuts, X[:, j])
                out[np.isnan(X[:, j]), j] = np.nan
        return out

    def _walk(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        m, d = X.shape
        flat = np.ascontiguousarray(X).ravel()
        missing = bool(np.isnan(flat).any())
        at = np.tile(self.roots, m)
        place = np.arange(m * self.n_trees)
        offset = np.repeat(np.arange(m) * d, self.n_trees)
        node = at
        while True:
            inner = self.left[node] != node
            if not inner.all():
                place, offset, node = place[inner], offset[inner], node[inner]
            if not len(node):
                break
            x = flat[offset + self.feature[node]]
            go_left = x <= self.threshold[node]
            if missing:
                go_left = np.where(np.isnan(x), self.missing_left[node], go_left)
            node = np.where(go_left, self.left[node], self.right[node])
            at[place] = node
        return np.asarray(self.value[at].reshape(m, self.n_trees).sum(axis=1))

    @cached_property
    def _compiled(self) -> list[Any] | None:
        """The same trees as scikit-learn's own, which score in compiled code.

        Every number in them was checked or made here. None where its nodes have another layout
        than the one known, or trees do not lie one after the other.
        """
        known = {"left_child", "right_child", "feature", "threshold", "missing_go_to_left"}
        own, roots = np.arange(len(self.left)), self.roots
        tree = np.searchsorted(roots, own, side="right") - 1
        apart = (np.diff(roots) > 0).all() and roots[0] == 0
        if not known <= set(NODE_DTYPE.names) or not apart or (tree[self.left] != tree).any():
            return None
        if (tree[self.right] != tree).any():
            return None
        leaf = self.left == own
        nodes = np.zeros(len(own), dtype=NODE_DTYPE)
        first = roots[tree]
        nodes["left_child"] = np.where(leaf, -1, self.left - first)
        nodes["right_child"] = np.where(leaf, -1, self.right - first)
        nodes["feature"] = np.where(leaf, -2, self.feature)
        nodes["threshold"] = self.threshold if self.single else self._ranks_of_thresholds()
        nodes["missing_go_to_left"] = self.missing_left
        values = self.value[:, None, None]
        found = []
        for start, end in zip(roots, [*roots[1:], len(own)], strict=True):
            one = Tree(int(self.feature.max()) + 1, np.ones(1, dtype=np.intp), 1)
            one.__setstate__(
                {
                    "max_depth": _MAX_DEPTH,
                    "node_count": int(end - start),
                    "nodes": nodes[start:end].copy(),
                    "values": np.ascontiguousarray(values[start:end]),
                }
            )
            found.append(one)
        return found


def _check_depth(left: NDArray[Any], right: NDArray[Any], roots: NDArray[Any]) -> None:
    """Refuse trees that are mere chains: scoring walks down one level at a time."""
    level = roots
    for _ in range(_MAX_DEPTH):
        level = level[left[level] != level]
        if not len(level):
            return
        level = np.concatenate([left[level], right[level]])
    raise refuse(f"a tree of its forest is more than {_MAX_DEPTH} levels deep")


@dataclass(frozen=True, eq=False)
class _Part:
    """One tree in scikit-learn's numbering."""

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    leaf: NDArray[np.bool_]


# Randomised trees by scikit-learn, each on rows of its own.


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
    if missing and not TAKES_MISSING:
        X, missing = np.where(gaps, np.fmin.reduce(X, axis=0) - 1.0, X), False
        X[np.isnan(X)] = 0.0  # columns without a value
    trees = []
    with config_context(skip_parameter_validation=True):
        for rows in samples:
            mask = gaps[rows].any(axis=0) if missing else None
            mask = mask if mask is not None and mask.any() else None
            trees.append(grow_tree(tree, X[rows], target[rows], gaps=mask))
    return trees
