"""Scores of every row by models that did not see it: what the ranks of P, N and U rest on.

A row of P and a positive row of U must be scored alike, or their ranks would differ for no other
reason. So every row, labelled or not, belongs to one fold; a fold's models are trained on the
other folds and score that fold only. (Scoring U by the mean of all models would make its
scores less noisy than those of the labelled rows.) Folds are compared with one another, so each is
centred and scaled by the scores of its unlabelled rows.

Where both classes are labelled, a family is the sum of two normal scores: one model of P against
N, and one of P against all other rows, which learns from U too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import ExtraTreeRegressor

from pnuauc._arrays import Floats, Indices, Mask
from pnuauc._categories import category_weights
from pnuauc._row_groups import even_folds, grouped_folds, row_groups
from pnuauc._trees import grow_tree
from pnuauc.labels import Roles
from pnuauc.priors._distances import (
    cross_sums,
    gaussian,
    median_distance,
    squared_distances,
    within_sums,
)

__all__ = ["FAMILIES", "LABELLED", "Rows", "auc_and_z", "prepare", "usable"]


#: (train, test) -> scores of the test rows
Scorer: TypeAlias = Callable[[Indices, Indices], Floats]

_N_FOLDS = 5
_N_COMPONENTS = 10
#: Trees of P against N for each fold: they have few rows, so they cost little.
_TREES_PER_FOLD = 24


class Rows(NamedTuple):
    """Rows ready for scoring.

    X : ndarray (squashed and standardised) or CSR, shape (n, d)
    codes : shape (n,), 1 positive, 0 negative, -1 unlabelled
    groups, fold : shape (n,), identical rows have one number and share a fold
    rng : source of all draws
    n_trees, n_centers : sizes of the models of P against the rest
    """

    X: Any
    codes: NDArray[np.int8]
    groups: Indices
    fold: Indices
    rng: np.random.RandomState
    n_trees: int
    n_centers: int

    @property
    def is_labelled(self) -> Mask:
        return self.codes >= 0

    @property
    def has_both(self) -> bool:
        return bool((self.codes == 0).any() and (self.codes == 1).any())

    @property
    def rows_a_case(self) -> float:
        """Rows for each different row, in the labelled class that has most copies."""
        known = [
            self.groups[self.codes == code] for code in np.unique(self.codes[self.is_labelled])
        ]
        return max(len(groups) / len(np.unique(groups)) for groups in known)


def prepare(
    X: Any, roles: Roles, rng: np.random.RandomState, *, n_trees: int, n_centers: int
) -> Rows:
    """Rows in folds, split by role; dense columns squashed and standardised.

    Identical rows share a fold: a labelled row's copy in the training rows would give its role
    away, and lift P above the positives of U. Where a role is copies of one row, that cannot be.
    Where only N and U are there, N plays the part of P: the scores then rise with the share of N.
    """
    codes = roles.codes.astype(np.int8)
    if not (codes == 1).any():
        codes = np.where(codes == 0, 1, codes).astype(np.int8)
    # numbered as they come: keys of float32 and float64 rows differ, the folds must not
    _, first, number = np.unique(row_groups(X), return_index=True, return_inverse=True)
    groups: Indices = np.argsort(np.argsort(first))[number]
    fold = even_folds(codes, groups, _N_FOLDS, rng)
    if fold is None:
        groups = np.arange(len(codes))
        fold = grouped_folds(
            codes, groups, min(_N_FOLDS, *np.unique(codes, return_counts=True)[1]), rng
        )
    if isinstance(X, np.ndarray):
        X = squashed(X)
    return Rows(X, codes, groups, fold, rng, n_trees, n_centers)


def squashed(X: NDArray[Any]) -> Floats:
    """asinh((x - median) / scale), then mean 0 and deviation 1; constant columns are dropped.

    The scale is the interquartile range over that of a normal law, or the standard deviation where
    that is smaller: columns with a few huge values would otherwise be one spike for distances
    and for trees that draw thresholds uniformly. The columns of categories have a deviation below
    1, so that together they weigh as much as one column a category.
    """
    rows: Floats = X.astype(np.float64)
    # a constant column may have a deviation of rounding errors: compare its ends instead
    rows = rows[:, rows.max(axis=0) > rows.min(axis=0)]
    low, median, high = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
    deviation = rows.std(axis=0)
    quartile = (high - low) / 1.349
    scale = np.where(quartile > 0, np.minimum(quartile, deviation), deviation)
    rows = np.arcsinh((rows - median) / np.where(scale > 0, scale, 1.0))
    rows -= rows.mean(axis=0)
    deviation = rows.std(axis=0)
    rows /= np.where(deviation > 0, deviation, 1.0)
    return rows * category_weights(rows)


def usable(families: tuple[str, ...], rows: Rows) -> tuple[str, ...]:
    """Those that can work with the roles at hand; the default ones where none is named."""
    if not families:
        families = ("forest", "kernel") if isinstance(rows.X, np.ndarray) else ("linear",)
        return (*families, "distance") if rows.has_both else families
    kept = tuple(name for name in families if name != "distance" or rows.has_both)
    if not kept:
        raise ValueError(
            'The scorer "distance" needs labelled rows of both classes; name another in scorers.'
        )
    return kept


def _forest(rows: Rows) -> Floats:
    """Extremely randomised trees on the columns and their first principal components."""
    X = _with_components(rows)
    against_rest = _out_of_bag_forest(rows, X)
    if not rows.has_both:
        return against_rest
    return _normal(against_rest) + _normal(_trees_of_labelled(rows, X))


def _kernel(rows: Rows) -> Floats:
    """Logistic regression on Gaussian features of both classes (and of U).

    Centres come from the training rows of each fold: a row that is its own centre looks like
    nothing else in high dimension, and would be scored by that.
    """
    half = rows.n_centers // 2
    width = 0.5 * median_distance(rows.X, rows.rng)

    def fit_and_score(use: Indices, centers: Any, test: Indices) -> Floats:
        target = rows.codes[use] == 1
        features = [gaussian(squared_distances(rows.X[i], centers), width) for i in (use, test)]
        logistic = LogisticRegression(C=1.0, class_weight="balanced", tol=1e-3, max_iter=1000)
        return np.asarray(logistic.fit(features[0], target).decision_function(features[1]))

    def centers_of(*groups: Indices) -> Any:
        return rows.X[np.concatenate([rows.rng.permutation(group)[:half] for group in groups])]

    def against_rest(train: Indices, test: Indices) -> Floats:
        target = rows.codes[train] == 1
        return fit_and_score(train, centers_of(train[target], train[~target]), test)

    def of_labelled(train: Indices, test: Indices) -> Floats:
        groups = [train[rows.codes[train] == code] for code in (1, 0, -1)]
        return fit_and_score(np.concatenate(groups[:2]), centers_of(*groups), test)

    if not rows.has_both:
        return _held_out(against_rest, rows)
    return _normal(_held_out(against_rest, rows)) + _normal(_held_out(of_labelled, rows))


def _linear(rows: Rows) -> Floats:
    """Ridge regression of the class on the columns themselves."""
    against_rest = _held_out(lambda train, test: _ridge(rows, train, test), rows)
    if not rows.has_both:
        return against_rest
    return _normal(against_rest) + _normal(_linear_of_labelled(rows))


def _linear_of_labelled(rows: Rows) -> Floats:
    def score(train: Indices, test: Indices) -> Floats:
        return _ridge(rows, train[rows.is_labelled[train]], test)

    return _held_out(score, rows)


def _ridge(rows: Rows, use: Indices, test: Indices) -> Floats:
    model = RidgeClassifier(alpha=1.0, class_weight="balanced", solver="sparse_cg")
    model.fit(rows.X[use], rows.codes[use] == 1)
    return np.asarray(model.decision_function(rows.X[test]))


def _distance(rows: Rows) -> Floats:
    """Mean distance to N minus mean distance to P, and a shrunken linear discriminant.

    The first is the function whose means the energy distance compares; the row itself is left out.
    """
    P, N, U = (rows.X[rows.codes == code] for code in (1, 0, -1))
    (p_to_n, n_to_p), (_, u_to_p), (_, u_to_n) = (
        cross_sums(A, B, 1.0) for A, B in ((P, N), (P, U), (N, U))
    )
    n_p, n_n = P.shape[0], N.shape[0]
    nearer: Floats = np.empty(len(rows.codes))
    nearer[rows.codes == 1] = p_to_n / n_n - within_sums(P, 1.0) / (n_p - 1)
    nearer[rows.codes == 0] = within_sums(N, 1.0) / (n_n - 1) - n_to_p / n_p
    nearer[rows.codes == -1] = u_to_n / n_n - u_to_p / n_p
    if not isinstance(rows.X, np.ndarray):
        return nearer
    return _normal(nearer) + _normal(_held_out(_discriminant(rows), rows))


def _discriminant(rows: Rows) -> Scorer:
    """Difference of the class means, whitened by their covariance shrunk half-way to a sphere."""

    def score(train: Indices, test: Indices) -> Floats:
        classes = [rows.X[train[rows.codes[train] == code]] for code in (1, 0)]
        means = [X.mean(axis=0) for X in classes]
        within = np.concatenate([X - mean for X, mean in zip(classes, means, strict=True)])
        scatter = within.T @ within / len(within)
        # one row a class has no scatter at all: then the direction is the difference itself
        sphere = np.trace(scatter) / len(scatter) or 1.0
        shrunk = 0.5 * scatter + 0.5 * sphere * np.eye(len(scatter))
        return np.asarray(rows.X[test] @ np.linalg.solve(shrunk, means[0] - means[1]))

    return score


#: A new family is one function and one line here.
FAMILIES: dict[str, Callable[[Rows], Floats]] = {
    "forest": _forest,
    "kernel": _kernel,
    "distance": _distance,
    "linear": _linear,
}


def _with_components(rows: Rows) -> NDArray[np.float32]:
    """Columns and their first principal components: trees cut along single columns only."""
    X = rows.X
    some = X[np.sort(rows.rng.permutation(len(X))[:2000])]
    _, vectors = np.linalg.eigh(some.T @ some)
    components = vectors[:, ::-1][:, :_N_COMPONENTS]
    return np.hstack([X, X @ components]).astype(np.float32)


def _trees_of_labelled(rows: Rows, X: NDArray[np.float32]) -> Floats:
    def score(train: Indices, test: Indices) -> Floats:
        use = train[rows.is_labelled[train]]
        target = (rows.codes[use] == 1).astype(np.float64)
        total = np.zeros(len(test))
        for _ in range(_TREES_PER_FOLD):
            total += _tree(X[use], target, 2, rows.rng).predict(X[test])[:, 0]
        return total

    return _held_out(score, rows)


#: Models of P against N alone, for the references.
LABELLED: dict[str, Callable[[Rows], Floats]] = {
    "forest": lambda rows: _trees_of_labelled(rows, _with_components(rows)),
    "linear": _linear_of_labelled,
}


def _out_of_bag_forest(rows: Rows, X: NDArray[np.float32]) -> Floats:
    """Mean vote of the trees whose bag left the row and its copies out; bags hold 63% of each role.

    An own loop, not ``ExtraTreesClassifier(oob_score=True)``: what class weights do to the bags
    differs between versions of scikit-learn, and here bags must leave out rows of all roles alike.
    """
    roles = [np.flatnonzero(rows.codes == code) for code in np.unique(rows.codes)]
    target = (rows.codes == 1).astype(np.float64)
    votes, voters = np.zeros(len(target)), np.zeros(len(target))
    for _ in range(rows.n_trees):
        drawn = rows.rng.uniform(size=rows.groups.max() + 1)
        in_bag = np.concatenate([_held(role, drawn[rows.groups[role]]) for role in roles])
        known: Mask = np.zeros(len(drawn), dtype=bool)
        known[rows.groups[in_bag]] = True
        left_out = np.flatnonzero(~known[rows.groups])
        tree = _tree(X[in_bag], target[in_bag], 3, rows.rng)
        votes[left_out] += tree.predict(X[left_out])[:, 0]
        voters[left_out] += 1
    return votes / np.maximum(voters, 1)


def _held(role: Indices, drawn: Floats) -> Indices:
    """The rows of a role that a bag holds, those drawn lowest: at least one, and not all."""
    held = min(max(1, round(0.632 * len(role))), len(role) - 1)
    return role[np.argsort(drawn, kind="stable")[:held]]


def _tree(X: NDArray[np.float32], target: Floats, leaf: int, rng: np.random.RandomState) -> Any:
    """One tree with both classes of equal weight; squared error splits as the Gini index does."""
    share = target.mean()
    weight = np.where(target == 1, 0.5 / share, 0.5 / (1 - share))
    tree = ExtraTreeRegressor(
        min_samples_leaf=leaf, max_features="sqrt", random_state=rng.randint(2**31 - 1)
    )
    return grow_tree(tree, X, target, weight)


def _held_out(score: Scorer, rows: Rows) -> Floats:
    """Scores of every fold by a model of the others, on the scale of the fold's U."""
    scores: Floats = np.empty(len(rows.codes))
    for fold in range(int(rows.fold.max()) + 1):
        test, train = np.flatnonzero(rows.fold == fold), np.flatnonzero(rows.fold != fold)
        fresh = score(train, test)
        of_u = fresh[rows.codes[test] == -1]
        scores[test] = (fresh - of_u.mean()) / (of_u.std() or 1.0)
    return scores


def _normal(scores: Floats) -> Floats:
    """Normal scores: quantiles of the ranks, so that two models count alike in a sum."""
    return np.asarray(ndtri((rankdata(scores) - 0.5) / len(scores)))


def auc_and_z(above: Floats, below: Floats) -> tuple[float, float]:
    """AUC of two samples of scores, and its distance from 1/2 in errors of the null hypothesis."""
    n, m = len(above), len(below)
    ordered = np.sort(below)
    wins = np.searchsorted(ordered, above, "left") + np.searchsorted(ordered, above, "right")
    auc = float(wins.sum()) / (2 * n * m)
    return auc, (auc - 0.5) / float(np.sqrt((n + m + 1) / (12 * n * m)))
