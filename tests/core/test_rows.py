"""Tests of core/rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils import check_random_state

from pnuauc.core import rows as _rows
from pnuauc.core.basis import GaussianBasis, IdentityBasis
from pnuauc.core.rows import (
    ArrayRows,
    SomeRows,
    array_rows,
    count_rows,
    even_folds,
    group_numbers,
    grouped_folds,
    map_blocks,
    row_blocks,
)
from pnuauc.labels import read_roles
from pnuauc.metrics import (
    RoleStratifiedKFold,
)
from tests.conftest import gaussian_scores


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_even_folds_keep_groups_together_and_every_role_in_every_fold(data):
    codes = np.array(data.draw(st.lists(st.sampled_from([1, 0, -1]), min_size=2, max_size=40)))
    groups = np.array([data.draw(st.integers(0, 12)) for _ in codes])
    most = data.draw(st.integers(2, 5))
    fold = even_folds(codes.astype(np.int8), groups, most, np.random.RandomState(0))
    different = min(len(np.unique(groups[codes == c])) for c in np.unique(codes))
    if fold is None:
        return  # two roles of two groups each may still share one
    assert different >= 2
    assert fold.max() < min(most, different)
    for group in np.unique(groups):
        assert len(np.unique(fold[groups == group])) == 1
    for code in np.unique(codes):
        assert set(fold[codes == code]) == set(range(fold.max() + 1))


def test_a_role_of_one_row_and_its_copies_cannot_be_split():
    codes, groups = np.repeat([1, -1], [3, 30]).astype(np.int8), np.r_[0, 0, 0, 1:31]
    assert even_folds(codes, groups, 5, np.random.RandomState(0)) is None
    groups[0] = 99
    assert set(even_folds(codes, groups, 5, np.random.RandomState(0))) == {0, 1}


def test_grouped_folds_without_shuffling_are_those_of_seed_zero():
    y, scores, _ = gaussian_scores(0, (15, 20, 80), 0.3)
    codes = read_roles(y).codes
    groups = np.random.default_rng(3).integers(0, 25, len(y))
    fold, *others = (
        grouped_folds(codes, group_numbers(groups), 3, check_random_state(s)) for s in range(4)
    )
    assert all((fold != other).any() for other in others)
    for k, (train, test) in enumerate(RoleStratifiedKFold(3).split(scores, y, groups)):
        np.testing.assert_array_equal(test, np.flatnonzero(fold == k))
        np.testing.assert_array_equal(train, np.flatnonzero(fold != k))


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_blocks_are_mapped_in_order_whatever_the_threads(n_threads):
    assert list(map_blocks(lambda i: i * i, range(50), n_threads)) == [i * i for i in range(50)]


def test_errors_in_threads_are_passed_on():
    with pytest.raises(ZeroDivisionError):
        list(map_blocks(lambda i: 1 / i, [1, 0], 2))


def test_blocks_cover_all_rows_once():
    covered = [i for block in row_blocks(10, 4) for i in range(10)[block]]
    assert covered == list(range(10))


@settings(deadline=None)
@given(
    n=st.integers(1, 40),
    block_size=st.integers(1, 15),
    n_threads=st.integers(1, 3),
    n_folds=st.integers(1, 4),
    as_csr=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_row_is_visited_once_with_its_fold_and_weight(
    n, block_size, n_threads, n_folds, as_csr, seed
):
    rng = np.random.default_rng(seed)
    X, weight = rng.standard_normal((60, 2)), rng.random(60)
    index = rng.permutation(60)[:n]
    fold = np.sort(rng.integers(0, n_folds, n))
    rows = ArrayRows(
        sparse.csr_matrix(X) if as_csr else X,
        index,
        fold,
        weight[index],
        block_size=block_size,
        n_threads=n_threads,
    )

    def whole(block):
        dense = block.X.toarray() if as_csr else block.X
        assert len(np.unique(block.fold)) == 1
        assert block.place == slice(block.start, block.start + len(block))
        return np.c_[dense, block.fold, block.weight, np.arange(len(block)) + block.start]

    expected = np.c_[X[index], fold, weight[index], np.arange(n)]
    np.testing.assert_array_equal(np.concatenate(list(rows.map(whole))), expected)
    stacked = rows.reduce(whole, lambda a, b: np.concatenate([a, b]), np.empty((0, 5)))
    np.testing.assert_array_equal(stacked, expected)
    wanted = rng.random(60) < 0.5
    some = SomeRows(rows, lambda block: wanted[block.place])
    kept = expected[wanted[:n]]
    kept[:, 4] = np.arange(len(kept))  # positions are those among the wanted rows
    stacked = some.reduce(whole, lambda a, b: np.concatenate([a, b]), np.empty((0, 5)))
    np.testing.assert_array_equal(stacked, kept)
    assert count_rows(some) == len(kept)
    assert sum(len(part) for b in rows.map(list_by_fold) for _, part in b) == n


def list_by_fold(block):
    parts = list(block.by_fold())
    for k, part in parts:
        assert (part.fold == k).all()
    return parts


def test_blocks_with_several_folds_are_split_by_fold():
    """What a file's blocks look like; arrays never have such blocks."""
    X = np.arange(8.0)[:, None]
    (block,) = ArrayRows(X).map(lambda b: b)
    mixed = _rows.Block(8, lambda: X, 0, np.array([1, 0, 1, 2, 0, 0, 1, 2]), np.arange(8.0))
    found = {k: (part.X.ravel().tolist(), part.weight.tolist()) for k, part in mixed.by_fold()}
    assert found == {0: ([1, 4, 5],) * 2, 1: ([0, 2, 6],) * 2, 2: ([3, 7],) * 2}
    assert block.fold is None


def test_features_are_made_once_while_they_fit(monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 2))
    made = []
    original = GaussianBasis.features
    monkeypatch.setattr(
        GaussianBasis, "features", lambda self, X: made.append(len(X)) or original(self, X)
    )
    basis = GaussianBasis(5, random_state=0).fit(X)
    for budget, visits in ((30 * 5 * 8, 1), (30 * 5 * 8 - 1, 3)):
        monkeypatch.setattr(_rows, "CACHE_BYTES", budget)
        made.clear()
        rows = array_rows(X, {"U": np.arange(30)}, basis, block_size=7)["U"]
        for _ in range(3):
            found = np.concatenate(list(rows.map(lambda block: block.features(basis))))
            np.testing.assert_allclose(found, original(basis, X))
        assert sum(made) == visits * 30


def test_wide_rows_that_are_their_own_features_are_kept():
    X = sparse.random(50, 10_000, 0.001, format="csr", random_state=0)
    basis = IdentityBasis().fit(X)
    rows = array_rows(X, {"P": np.arange(10), "U": np.arange(10, 50)}, basis)
    assert all(next(r.map(lambda b: b.store is not None)) for r in rows.values())
    assert count_rows(rows["U"]) == 40


def test_the_hash_of_a_long_text_does_not_depend_on_its_neighbors():
    data = np.random.default_rng(0).integers(0, 256, 13_000_000).astype(np.uint8)
    ends = np.array([0, 5_000_000, 5_000_000, 5_000_009, 12_999_990, 13_000_000])
    alone = [
        _rows.byte_hashes(data[low:high], np.array([0, high - low]))[0]
        for low, high in itertools.pairwise(ends)
    ]
    np.testing.assert_array_equal(_rows.byte_hashes(data, ends), alone)
