"""Extremely randomised trees, all of them grown together, a level at a time.

scikit-learn grows a tree of a hundred rows in less time than it takes to set it up. Here the nodes
of one level, of all trees, are split by the same few array operations (three times as fast with a
hundred rows, slower from some hundreds on, where scikit-learn is asked):

    of each open node: sqrt(d) columns drawn at random, and more while none of them varies; one
    threshold each, uniform between the smallest and the largest value; the split of least
    impurity, sum over sides of n p (1 - p), is kept.

A node is a leaf when it holds one class only or nothing varies. A missing value goes to a side
drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor

from pnuauc._committee._forest import Forest

__all__ = ["grow_trees"]

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]
#: Of the nodes at one depth: tree, left child, feature, threshold, missing_left, value.
Level: TypeAlias = dict[str, NDArray[Any]]

#: Up to so many rows our own trees are grown faster (measured).
_TOGETHER = 300
#: Values that are looked at together.
_CELLS = 1 << 18


@dataclass(frozen=True, eq=False)
class _Split:
    """The best split seen so far of every open node."""

    impurity: Floats
    feature: Ints
    threshold: Floats
    missing_left: NDArray[np.bool_]

    @classmethod
    def none(cls, n: int) -> _Split:
        zeros = np.zeros(n, dtype=np.intp)
        return cls(np.full(n, np.inf), zeros, np.zeros(n), np.zeros(n, dtype=bool))

    def put(self, nodes: Ints, *found: NDArray[Any]) -> None:
        fields = (self.impurity, self.feature, self.threshold, self.missing_left)
        for field, values in zip(fields, found, strict=True):
            field[nodes] = values


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
    leaf : least rows of a leaf, heeded in large samples
    """
    if max(len(sample) for sample in samples) > _TOGETHER:
        return Forest.from_trees(scikit_trees(X, samples, codes, rng, leaf))
    X = np.ascontiguousarray(X, dtype=np.float32)
    positive = np.asarray(codes, dtype=np.float64)
    levels: list[Level] = []
    n_trees = n_nodes = 0
    for some in _batches(samples, _n_drawn(X)):
        grown = _grown(X, some, positive, rng)
        for level in grown:
            level["tree"] += n_trees
            level["left"] += np.where(level["left"] < 0, 0, n_nodes)
        levels += grown
        n_trees += len(some)
        n_nodes += sum(len(level["tree"]) for level in grown)
    return _assembled(levels, n_trees)


def scikit_trees(
    X: NDArray[Any],
    samples: Sequence[Ints],
    codes: NDArray[Any],
    rng: np.random.RandomState,
    leaf: int = 1,
) -> list[Any]:
    """The same by scikit-learn, as its Tree objects.

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


def _n_drawn(X: NDArray[Any]) -> int:
    return max(1, int(np.sqrt(X.shape[1])))


def _batches(samples: Sequence[Ints], n_drawn: int) -> Iterator[Sequence[Ints]]:
    """Trees that are grown at the same time, so many that temporaries stay in the cache."""
    largest = max(len(sample) for sample in samples)
    step = max(1, _CELLS // (largest * n_drawn))
    for start in range(0, len(samples), step):
        yield samples[start : start + step]


def _grown(
    X: NDArray[np.float32], samples: Sequence[Ints], positive: Floats, rng: np.random.RandomState
) -> list[Level]:
    """Nodes level by level; ``left`` is a child's number, the right one follows; -1 for a leaf."""
    rows = np.concatenate(samples)
    sizes = np.array([len(sample) for sample in samples])
    levels: list[Level] = []
    tree, first = np.arange(len(samples)), 0
    while True:
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        hits = np.add.reduceat(positive[rows], starts)
        best = _Split.none(len(sizes))
        mixed = np.flatnonzero((hits > 0) & (hits < sizes))
        if len(mixed):
            _search(X, positive, rows, starts, sizes, mixed, best, rng)
        inner = np.flatnonzero(np.isfinite(best.impurity))
        children = np.full(len(sizes), -1, dtype=np.intp)
        children[inner] = first + len(sizes) + 2 * np.arange(len(inner))
        levels.append(
            {
                "tree": tree,
                "left": children,
                "feature": best.feature,
                "threshold": best.threshold,
                "missing_left": best.missing_left,
                "value": hits / sizes,
            }
        )
        if not len(inner):
            return levels
        first += len(sizes)
        rows, sizes = _divided(X, rows, starts, sizes, inner, best)
        tree = np.repeat(tree[inner], 2)


def _search(
    X: NDArray[np.float32],
    positive: Floats,
    rows: Ints,
    starts: Ints,
    sizes: Ints,
    nodes: Ints,
    best: _Split,
    rng: np.random.RandomState,
) -> None:
    """Fill in the best split of these nodes by a few columns, or by the first that varies."""
    d, wanted = X.shape[1], _n_drawn(X)
    keys = rng.random_sample((len(nodes), d))
    columns = np.argpartition(keys, wanted - 1, axis=1)[:, :wanted]
    entries, begins = _entries(starts[nodes], sizes[nodes])
    values = X[rows[entries][:, None], np.repeat(columns, sizes[nodes], axis=0)]
    varies, threshold, gaps_left = _thresholds(values, begins, rng)
    goes_left = _goes_left(values, threshold, gaps_left, sizes[nodes])
    impurity = _impurity(goes_left, positive[rows[entries]], begins, sizes[nodes])
    impurity[~varies] = np.inf
    at, pick = np.arange(len(nodes)), impurity.argmin(axis=1)
    best.put(nodes, impurity[at, pick], columns[at, pick], threshold[at, pick], gaps_left[at, pick])
    left = np.flatnonzero(~varies.any(axis=1))
    order = np.argsort(keys[left], axis=1)
    start = wanted
    while start < d and len(left):
        columns = order[:, start : 2 * start]
        own = nodes[left]
        entries, begins = _entries(starts[own], sizes[own])
        values = X[rows[entries][:, None], np.repeat(columns, sizes[own], axis=0)]
        varies, threshold, gaps_left = _thresholds(values, begins, rng)
        found = varies.any(axis=1)
        at, pick = np.flatnonzero(found), varies.argmax(axis=1)[found]
        none = np.zeros(len(at))  # a single candidate needs no comparison
        best.put(own[at], none, columns[at, pick], threshold[at, pick], gaps_left[at, pick])
        left, order = left[~found], order[~found]
        start *= 2


def _thresholds(
    values: NDArray[np.float32], begins: Ints, rng: np.random.RandomState
) -> tuple[NDArray[np.bool_], Floats, NDArray[np.bool_]]:
    """By node and column: whether it varies there, a threshold, and where missing values go."""
    low = np.fmin.reduceat(values, begins).astype(np.float64)
    high = np.fmax.reduceat(values, begins).astype(np.float64)
    u = rng.random_sample(low.shape)
    threshold = low * (1.0 - u) + high * u
    # rounding must not put the largest value on the left; where all are missing nothing varies
    threshold = np.where(threshold >= high, low, threshold)
    return high > low, threshold, rng.random_sample(low.shape) < 0.5


def _entries(starts: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Places of some nodes' rows, node after node, and where each node begins among them."""
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
    return np.arange(sizes.sum()) + np.repeat(starts - begins, sizes), begins


def _goes_left(
    values: NDArray[np.float32], threshold: Floats, gaps_left: Any, sizes: Ints
) -> NDArray[np.bool_]:
    out = values <= np.repeat(threshold, sizes, axis=0)
    gaps = np.isnan(values)
    if gaps.any():
        out |= gaps & np.repeat(gaps_left, sizes, axis=0)
    return np.asarray(out)


def _impurity(goes_left: NDArray[np.bool_], positive: Floats, begins: Ints, sizes: Ints) -> Floats:
    """sum over both sides of n p (1 - p), shape (nodes, columns)."""
    n_left = np.add.reduceat(goes_left, begins, dtype=np.float64)
    hits_left = np.add.reduceat(goes_left * positive[:, None], begins)
    hits = np.add.reduceat(positive, begins)[:, None]
    n_right, hits_right = sizes[:, None] - n_left, hits - hits_left
    with np.errstate(invalid="ignore", divide="ignore"):  # a column that does not vary here
        return np.asarray(
            hits_left * (1 - hits_left / n_left) + hits_right * (1 - hits_right / n_right)
        )


def _divided(
    X: NDArray[np.float32], rows: Ints, starts: Ints, sizes: Ints, inner: Ints, best: _Split
) -> tuple[Ints, Ints]:
    """Rows of the children, left before right, node after node, and how many each has."""
    entries, begins = _entries(starts[inner], sizes[inner])
    kept = rows[entries]
    node = np.repeat(np.arange(len(inner)), sizes[inner])
    values = X[kept, best.feature[inner][node]]
    left = values <= best.threshold[inner][node]
    left |= np.isnan(values) & best.missing_left[inner][node]
    n_left = np.add.reduceat(left, begins, dtype=np.intp)
    order = np.argsort(2 * node + ~left, kind="stable")
    return kept[order], np.column_stack([n_left, sizes[inner] - n_left]).ravel()


def _assembled(levels: list[Level], n_trees: int) -> Forest:
    """One list of nodes, tree after tree, parents before children."""
    found = {name: np.concatenate([level[name] for level in levels]) for name in levels[0]}
    order = np.argsort(found["tree"], kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    found = {name: values[order] for name, values in found.items()}
    own, leaf = np.arange(len(order)), found["left"] < 0
    return Forest(
        np.where(leaf, own, place[found["left"]]).astype(np.int32),
        np.where(leaf, own, place[found["left"] + 1 - leaf]).astype(np.int32),
        np.where(leaf, 0, found["feature"]).astype(np.int32),
        np.where(leaf, 0.0, found["threshold"]),
        found["missing_left"] & ~leaf,
        np.where(leaf, found["value"] / n_trees, 0.0),
        np.flatnonzero(np.diff(found["tree"], prepend=-1)).astype(np.int32),
    )
