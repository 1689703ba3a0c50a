"""Scores behind the priors, part by part: who trains, who is scored, and by which formula."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from pnuauc.labels import Roles
from pnuauc.priors import _scorers
from pnuauc.priors._scorers import FAMILIES, LABELLED, auc_and_z, prepare, squashed, usable
from tests.conftest import wins


def table(sizes, seed=0, d=4, shift=1.0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.array([1, 0, -1], np.int8), sizes))
    X = rng.normal(size=(len(codes), d))
    X[codes == 1] += shift
    return X, Roles(codes)


def rows_of(sizes, seed=0, container=np.asarray, n_centers=12, **options):
    X, roles = table(sizes, seed, **options)
    return prepare(container(X), roles, np.random.RandomState(seed), n_trees=50,
                   n_centers=n_centers)  # fmt: skip


# --- rows ready for scoring -----------------------------------------------------------------------


def test_columns_are_squashed_by_the_smaller_of_two_spreads():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.uniform(-3, 3, 500),  # quartiles far apart: the deviation is smaller
            rng.standard_cauchy(500),  # heavy tails: the quartiles are
            np.where(rng.random(500) < 0.9, 0.0, rng.normal(5, 1, 500)),  # quartiles meet
            np.full(500, 7.0),
        ]
    )
    found = squashed(X.astype(np.float32))
    assert found.shape == (500, 3)
    for j in range(3):
        column = X[:, j].astype(np.float32).astype(float)
        iqr = stats.iqr(column) / (2 * 1.349 / 2)
        spread = min(iqr, column.std()) if iqr > 0 else column.std()
        bent = np.arcsinh((column - np.median(column)) / spread)
        np.testing.assert_allclose(found[:, j], (bent - bent.mean()) / bent.std(), atol=1e-9)
    assert stats.iqr(X[:, 0]) / 1.349 > X[:, 0].std() > stats.iqr(X[:, 1]) / 1.349


def test_folds_are_even_within_roles_and_keep_copies_together():
    X, roles = table((12, 17, 60))
    rows = prepare(X, roles, np.random.RandomState(0), n_trees=50, n_centers=2)
    for code in (1, 0, -1):
        sizes = np.bincount(rows.fold[roles.codes == code], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(rows.groups, np.arange(89))
    assert rows.rows_a_case == 1.0
    assert rows.has_both
    np.testing.assert_array_equal(rows.is_labelled, roles.codes >= 0)
    twice = prepare(np.vstack([X, X]), Roles(np.r_[roles.codes, roles.codes]),
                    np.random.RandomState(0), n_trees=50, n_centers=2)  # fmt: skip
    np.testing.assert_array_equal(twice.fold[:89], twice.fold[89:])
    np.testing.assert_array_equal(twice.groups, np.tile(np.arange(89), 2))
    assert twice.rows_a_case == 2.0


def test_copies_of_the_class_that_has_most():
    X, roles = table((12, 10, 60))
    extra = np.flatnonzero(roles.codes == 1)[:6]
    both = prepare(np.vstack([X, X[extra]]), Roles(np.r_[roles.codes, roles.codes[extra]]),
                   np.random.RandomState(0), n_trees=50, n_centers=2)  # fmt: skip
    assert both.rows_a_case == 18 / 12


def test_negatives_alone_play_the_part_of_positives():
    rows = rows_of((0, 9, 40))
    assert sorted(set(rows.codes.tolist())) == [-1, 1]
    assert (rows.codes == 1).sum() == 9
    assert not rows.has_both


def test_a_role_of_copies_of_one_row_is_dealt_row_by_row():
    X, roles = table((6, 0, 40))
    X[roles.codes == 1] = 3.0
    rows = prepare(X, roles, np.random.RandomState(0), n_trees=50, n_centers=2)
    assert len(set(rows.fold[roles.codes == 1])) == 5
    np.testing.assert_array_equal(rows.groups, np.arange(46))
    few = prepare(X[np.r_[np.flatnonzero(roles.codes == 1)[:3], np.flatnonzero(roles.codes < 0)]],
                  Roles(np.repeat(np.array([1, -1], np.int8), [3, 40])), np.random.RandomState(0),
                  n_trees=50, n_centers=2)  # fmt: skip
    assert few.fold.max() == 2


def test_families_that_can_work():
    dense, thin = rows_of((9, 9, 40)), rows_of((9, 9, 40), container=sparse.csr_matrix)
    alone = rows_of((9, 0, 40))
    assert usable((), dense) == ("forest", "kernel", "distance")
    assert usable((), alone) == ("forest", "kernel")
    assert usable((), thin) == ("linear", "distance")
    assert usable(("distance", "linear"), alone) == ("linear",)
    assert usable(("distance", "linear"), dense) == ("distance", "linear")
    with pytest.raises(ValueError, match="both classes"):
        usable(("distance",), alone)


# --- held out -------------------------------------------------------------------------------------


def test_every_fold_is_scored_by_the_others_on_the_scale_of_its_unlabelled_rows():
    rows = rows_of((10, 10, 50))
    value = np.random.default_rng(1).normal(size=70)
    seen = []

    def score(train, test):
        assert not set(train) & set(test)
        assert len(train) + len(test) == 70
        seen.append(test)
        return 3.0 * value[test] + len(seen)

    found = _scorers._held_out(score, rows)
    assert sorted(np.concatenate(seen)) == list(range(70))
    for test in seen:
        of_u = value[test][rows.codes[test] == -1]
        np.testing.assert_allclose(found[test], (value[test] - of_u.mean()) / of_u.std())
    flat = _scorers._held_out(lambda train, test: np.full(len(test), 4.0), rows)
    assert (flat == 0).all()


def test_normal_scores():
    values = np.array([3.0, -1.0, 3.0, 10.0, 0.0])
    places = (np.array([3.5, 1, 3.5, 5, 2]) - 0.5) / 5
    np.testing.assert_allclose(_scorers._normal(values), stats.norm.ppf(places))


@pytest.mark.parametrize("digits", [1, 8])
def test_auc_and_its_distance_from_chance(digits):
    rng = np.random.default_rng(2)
    a, b = np.round(rng.normal(0.4, 1, 30), digits), np.round(rng.normal(size=45), digits)
    auc, z = auc_and_z(a, b)
    assert auc == pytest.approx(wins(a, b).mean())
    assert z == pytest.approx((auc - 0.5) / np.sqrt(76 / (12 * 30 * 45)))


# --- trees ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "held"), [(2, 1), (3, 2), (4, 3), (10, 6), (100, 63)])
def test_a_bag_holds_two_thirds_of_a_role_those_drawn_lowest(n, held):
    role, drawn = np.arange(100, 100 + n), np.random.default_rng(n).random(n)
    expected = role[np.argsort(drawn)[:held]]
    np.testing.assert_array_equal(_scorers._held(role, drawn), expected)


@pytest.mark.parametrize("leaf", [2, 3])
def test_both_classes_have_equal_weight_in_a_tree(leaf):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    target = (np.arange(60) < 12).astype(float)
    tree = _scorers._tree(X, target, leaf, np.random.RandomState(0))
    assert tree.value.ravel()[0] == pytest.approx(0.5)
    assert tree.weighted_n_node_samples[0] == pytest.approx(60)
    assert tree.n_node_samples[tree.children_left < 0].min() >= leaf
    assert tree.node_count > 5
    again = _scorers._tree(X, target, leaf, np.random.RandomState(1))
    assert not np.array_equal(again.threshold, tree.threshold)


def test_components_stand_beside_the_columns():
    rows = rows_of((30, 30, 300), d=14)
    found = _scorers._with_components(rows)
    assert found.dtype == np.float32
    assert found.shape == (360, 24)
    np.testing.assert_allclose(found[:, :14], rows.X, atol=1e-6)
    _, _, axes = np.linalg.svd(rows.X, full_matrices=False)
    expected = rows.X @ axes.T[:, :10]
    np.testing.assert_allclose(np.abs(found[:, 14:]), np.abs(expected), atol=1e-3)


def recorded(monkeypatch):
    """Trees that remember their rows (the first column numbers them) and vote their own number."""
    bags = []

    def tree(X, target, leaf, rng):
        bags.append((X[:, 0].astype(int), target, leaf))
        number = float(len(bags))
        return SimpleNamespace(predict=lambda Y: np.full((len(Y), 1), number))

    monkeypatch.setattr(_scorers, "_tree", tree)
    return bags


def test_votes_come_from_trees_that_saw_neither_the_row_nor_its_copies(monkeypatch):
    X, roles = table((8, 8, 24))
    X[5], X[7] = X[3], X[3]
    rows = prepare(X, roles, np.random.RandomState(0), n_trees=60, n_centers=2)
    bags = recorded(monkeypatch)
    numbered = np.column_stack([np.arange(40.0), X]).astype(np.float32)
    found = _scorers._out_of_bag_forest(rows, numbered)
    assert len(bags) == 60
    votes = [[] for _ in range(40)]
    for number, (bag, target, leaf) in enumerate(bags, start=1):
        assert leaf == 3
        np.testing.assert_array_equal(target, rows.codes[bag] == 1)
        assert [(rows.codes[bag] == c).sum() for c in (1, 0, -1)] == [5, 5, 15]
        known = set(rows.groups[bag])
        for i in range(40):
            if rows.groups[i] not in known:
                votes[i].append(number)
    np.testing.assert_allclose(found, [np.mean(v) if v else 0.0 for v in votes])
    assert len({tuple(sorted(bag)) for bag, _, _ in bags}) == 60


def test_trees_of_the_labelled_rows(monkeypatch):
    rows = rows_of((10, 15, 40))
    bags = recorded(monkeypatch)
    numbered = np.column_stack([np.arange(65.0), rows.X]).astype(np.float32)
    assert (_scorers._trees_of_labelled(rows, numbered) == 0).all()  # all rows of a fold alike
    assert len(bags) == 5 * 24
    for k, (bag, target, leaf) in enumerate(bags):
        fold = k // 24
        expected = np.flatnonzero((rows.fold != fold) & (rows.codes >= 0))
        np.testing.assert_array_equal(bag, expected)
        np.testing.assert_array_equal(target, rows.codes[bag] == 1)
        assert leaf == 2


@pytest.mark.parametrize("sizes", [(12, 12, 60), (12, 0, 60)])
def test_a_forest_is_of_all_rows_and_where_it_can_of_the_labelled_ones(sizes):
    rows = rows_of(sizes)
    twin = rows._replace(rng=copy.deepcopy(rows.rng))
    X = _scorers._with_components(twin)
    expected = _scorers._out_of_bag_forest(twin, X)
    if sizes[1]:
        parts = (expected, _scorers._trees_of_labelled(twin, X))
        expected = sum(stats.norm.ppf((stats.rankdata(s) - 0.5) / 84) for s in parts)
    np.testing.assert_allclose(FAMILIES["forest"](rows), expected)


# --- linear, kernel, distance ---------------------------------------------------------------------


def weighted_ridge(X, target):
    """Ridge of +-1 on the columns, classes of equal weight, the intercept free."""
    sign = np.where(target, 1.0, -1.0)
    w = len(X) / 2 / np.where(target, target.sum(), (~target).sum())
    centre, level = w @ X / w.sum(), w @ sign / w.sum()
    A = (X - centre).T * w
    coef = np.linalg.solve(A @ (X - centre) + np.eye(X.shape[1]), A @ (sign - level))
    return lambda Y: (Y - centre) @ coef + level


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_linear_scores_are_those_of_a_balanced_ridge(container):
    rows = rows_of((15, 20, 80), container=container)
    dense = np.asarray(sparse.csr_matrix(rows.X).todense())
    labelled = LABELLED["linear"](rows)
    for fold in range(5):
        test, train = rows.fold == fold, rows.fold != fold
        use = train & (rows.codes >= 0)
        fresh = weighted_ridge(dense[use], rows.codes[use] == 1)(dense[test])
        of_u = fresh[rows.codes[test] == -1]
        np.testing.assert_allclose(labelled[test], (fresh - of_u.mean()) / of_u.std(), atol=0.02)
    alone = rows_of((15, 0, 80), container=container)
    dense = np.asarray(sparse.csr_matrix(alone.X).todense())
    found = FAMILIES["linear"](alone)
    for fold in range(5):
        test, train = alone.fold == fold, alone.fold != fold
        fresh = weighted_ridge(dense[train], alone.codes[train] == 1)(dense[test])
        of_u = fresh[alone.codes[test] == -1]
        np.testing.assert_allclose(found[test], (fresh - of_u.mean()) / of_u.std(), atol=0.02)


@pytest.mark.parametrize("sizes", [(15, 0, 60), (12, 14, 60)])
def test_kernel_scores_are_those_of_a_logistic_regression_on_gaussians(sizes):
    rows = rows_of(sizes)
    rng = copy.deepcopy(rows.rng)
    pairs = cdist(rows.X, rows.X)
    picked = rng.permutation(len(pairs))[:300]
    width = 0.5 * np.median(pairs[np.ix_(picked, picked)][np.triu_indices(len(picked), 1)])

    def by_hand(groups_of):
        out = np.empty(len(pairs))
        for fold in range(5):
            test, train = np.flatnonzero(rows.fold == fold), np.flatnonzero(rows.fold != fold)
            groups, use = groups_of(train)
            centers = np.concatenate([rng.permutation(group)[:6] for group in groups])
            features = np.exp(-(pairs[:, centers] ** 2) / (2 * width**2))
            model = LogisticRegression(class_weight="balanced", tol=1e-3, max_iter=1000)
            fresh = model.fit(features[use], rows.codes[use] == 1).decision_function(features[test])
            of_u = fresh[rows.codes[test] == -1]
            out[test] = (fresh - of_u.mean()) / of_u.std()
        return out

    def against_rest(train):
        target = rows.codes[train] == 1
        return [train[target], train[~target]], train

    def of_labelled(train):
        groups = [train[rows.codes[train] == code] for code in (1, 0, -1)]
        return groups, np.concatenate(groups[:2])

    expected = by_hand(against_rest)
    if sizes[1]:
        normal = [stats.norm.ppf((stats.rankdata(s) - 0.5) / len(s))
                  for s in (expected, by_hand(of_labelled))]  # fmt: skip
        expected = normal[0] + normal[1]
    np.testing.assert_allclose(FAMILIES["kernel"](rows), expected, atol=1e-6)


def test_distances_to_the_classes_leave_the_row_itself_out():
    thin = rows_of((8, 11, 30), container=sparse.csr_matrix)
    dense = np.asarray(thin.X.todense())
    every = cdist(dense, dense)
    expected = []
    for i in range(len(dense)):
        others = np.arange(len(dense)) != i
        to = [every[i, others & (thin.codes == code)].mean() for code in (0, 1)]
        expected.append(to[0] - to[1])
    np.testing.assert_allclose(FAMILIES["distance"](thin), expected, atol=1e-6)


def test_the_discriminant_is_whitened_half_way():
    rows = rows_of((9, 12, 30))
    train, test = np.arange(35), np.arange(35, 51)
    P, N = (rows.X[train[rows.codes[train] == code]] for code in (1, 0))
    within = np.vstack([P - P.mean(axis=0), N - N.mean(axis=0)])
    scatter = within.T @ within / len(within)
    shrunk = 0.5 * scatter + 0.5 * np.trace(scatter) / 4 * np.eye(4)
    direction = np.linalg.solve(shrunk, P.mean(axis=0) - N.mean(axis=0))
    found = _scorers._discriminant(rows)(train, test)
    np.testing.assert_allclose(found, rows.X[test] @ direction)
    single = np.array([np.flatnonzero(rows.codes == code)[0] for code in (1, 0)])
    gap = rows.X[single[0]] - rows.X[single[1]]
    np.testing.assert_allclose(_scorers._discriminant(rows)(single, test), 2 * rows.X[test] @ gap)
    assert FAMILIES["distance"](rows).shape == (51,)
