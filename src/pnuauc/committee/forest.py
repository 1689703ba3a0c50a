"""Trees grown by scikit-learn and kept as plain arrays: what a model file may hold."""

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

from pnuauc._utils.arrays import Floats
from pnuauc._utils.stored import Parts, Stored, refuse
from pnuauc._utils.trees import grow_tree

__all__ = ["TAKES_MISSING", "Forest", "grow_trees"]

Ints: TypeAlias = NDArray[np.intp]

#: Before 1.8 scikit-learn's trees may send a missing cell another way when they predict than when
#: they grow (48 of 400 small trees): there it stands for a value below all others, in both.
TAKES_MISSING = parse_version(sklearn.__version__) >= parse_version("1.8")

#: Levels of a tree; scikit-learn's have some dozens. Trees of all forests of a model file together:
#: a committee has less than a thousand, and each is rebuilt one by one.
_MAX_DEPTH, _MAX_TREES = 1000, 20_000


@dataclass(frozen=True, eq=False)
class Forest(Stored):
    """Trees side by side, the nodes of one after those of the other.

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
        Ascending, the first is 0.
    base : float
    single : bool
        Whether x is rounded to single precision first, as scikit-learn's forests do.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Floats
    missing_left: NDArray[np.bool_]
    value: Floats
    roots: NDArray[np.int32]
    base: float = 0.0
    single: bool = True

    # -- making ------------------------------------------------------------------------------

    @classmethod
    def from_trees(cls, trees: Sequence[Any]) -> Forest:
        """Regression trees of a 0/1 target: the mean over them of a leaf's share of class 1."""
        return cls._stacked(
            [tree.children_left < 0 for tree in trees],
            left=[tree.children_left for tree in trees],
            right=[tree.children_right for tree in trees],
            feature=[tree.feature for tree in trees],
            threshold=[tree.threshold for tree in trees],
            missing_left=[
                tree.missing_go_to_left.astype(bool) | (not TAKES_MISSING) for tree in trees
            ],
            value=[tree.value[:, 0, 0] / len(trees) for tree in trees],
        )

    @classmethod
    def from_boosting(cls, model: Any) -> Forest:
        """scikit-learn's HistGradientBoostingClassifier of two classes: its log-odds."""
        nodes = [predictor.nodes for (predictor,) in model._predictors]
        names = {
            "left": "left",
            "right": "right",
            "feature": "feature_idx",
            "threshold": "num_threshold",
            "missing_left": "missing_go_to_left",
            "value": "value",
        }
        return cls._stacked(
            [tree["is_leaf"].astype(bool) for tree in nodes],
            float(np.ravel(model._baseline_prediction)[0]),
            single=False,
            **{ours: [tree[theirs] for tree in nodes] for ours, theirs in names.items()},
        )

    @classmethod
    def _stacked(
        cls,
        leaves: Sequence[NDArray[np.bool_]],
        base: float = 0.0,
        single: bool = True,
        **nodes: Any,
    ) -> Forest:
        """From the nodes of each tree, children numbered within it."""
        sizes = [len(leaf) for leaf in leaves]
        roots = np.cumsum([0, *sizes[:-1]])
        leaf, first, own = np.concatenate(leaves), np.repeat(roots, sizes), np.arange(sum(sizes))
        joined = {name: np.concatenate(parts) for name, parts in nodes.items()}
        left, right = (
            np.where(leaf, own, joined[name].astype(np.int64) + first) for name in ("left", "right")
        )
        return cls(
            left.astype(np.int32),
            right.astype(np.int32),
            np.where(leaf, 0, joined["feature"]).astype(np.int32),
            np.where(leaf, 0.0, joined["threshold"]),
            joined["missing_left"].astype(bool) & ~leaf,
            np.where(leaf, joined["value"], 0.0),
            roots.astype(np.int32),
            base,
            single,
        )

    # -- storing -----------------------------------------------------------------------------

    kind = "forest"

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "base": self.base, "single": self.single}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), "missing_left": self.missing_left.astype(np.uint8)}

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
        if not len(roots) or roots[0] or (np.diff(roots) <= 0).any():
            raise refuse("the trees of its forest do not follow each other")
        tree = np.searchsorted(roots, own, side="right")
        reached = np.concatenate([left[~leaf], right[~leaf], roots])
        apart = (tree[left] == tree).all() and (tree[right] == tree).all()
        if not apart or len(np.unique(reached)) < len(reached):
            raise refuse("two nodes or trees of its forest share a child")
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

    def score(self, X: NDArray[Any]) -> Floats:
        """base + sum of leaf values, shape (n,); X dense, NaN allowed."""
        rows = X if self.single else self._ranked(np.asarray(X, dtype=np.float64))
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        return np.asarray(sum(tree.predict(rows)[:, 0] for tree in self._compiled) + self.base)

    @cached_property
    def _cuts(self) -> list[Floats]:
        """By column the thresholds of its inner nodes, each once, ascending."""
        inner = self.left != np.arange(len(self.left))
        feature, threshold = self.feature[inner], self.threshold[inner]
        return [np.unique(threshold[feature == j]) for j in range(int(self.feature.max()) + 1)]

    def _ranked(self, X: Floats) -> NDArray[np.float32]:
        """How many thresholds of its column each x exceeds: exact in single precision.

        x <= the k-th threshold if and only if that count is at most k.
        """
        out = np.zeros(X.shape, dtype=np.float32)
        for j, cuts in enumerate(self._cuts):
            if len(cuts):
                out[:, j] = np.searchsorted(cuts, X[:, j])
                out[np.isnan(X[:, j]), j] = np.nan
        return out

    @cached_property
    def _compiled(self) -> list[Any]:
        """The trees as scikit-learn's own, which score in compiled code.

        Every number in them was checked or made here.
        """
        own = np.arange(len(self.left))
        leaf = self.left == own
        ends = [*self.roots[1:], len(own)]
        first = np.repeat(self.roots, np.subtract(ends, self.roots))
        threshold = self.threshold
        if not self.single:
            threshold = np.zeros(len(own))
            for j, cuts in enumerate(self._cuts):
                mine = self.feature == j
                threshold[mine] = np.searchsorted(cuts, self.threshold[mine])
        nodes = np.zeros(len(own), dtype=NODE_DTYPE)
        nodes["left_child"] = np.where(leaf, -1, self.left - first)
        nodes["right_child"] = np.where(leaf, -1, self.right - first)
        nodes["feature"] = np.where(leaf, -2, self.feature)
        nodes["threshold"] = threshold
        nodes["missing_go_to_left"] = self.missing_left
        found = []
        for start, end in zip(self.roots, ends, strict=True):
            one = Tree(int(self.feature.max()) + 1, np.ones(1, dtype=np.intp), 1)
            one.__setstate__(
                {
                    "max_depth": _MAX_DEPTH,
                    "node_count": int(end - start),
                    "nodes": nodes[start:end].copy(),
                    "values": np.ascontiguousarray(self.value[start:end, None, None]),
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
