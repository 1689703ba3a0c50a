"""Identical rows: found, kept in one fold, and counted as what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pnuauc import AUCClassifierCV
from pnuauc._row_groups import even_folds, row_groups
from pnuauc._study import ColumnRoles, FitSettings, fit_study
from pnuauc._study._copies import Copies, find_copies
from pnuauc._study._crossfit import common_scale, fold_count
from pnuauc.labels import Roles, read_roles
from pnuauc.metrics import RoleStratifiedKFold
from pnuauc.priors import PlacementPrior
from pnuauc.selection import deal_folds


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_identical_rows_are_found(kind):
    rows = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [1.0, 0.5], [0.0, 2.0], [3.0, 3.0]])
    copies = find_copies(kind(rows), Roles(np.array([1, 1, 1, 0, -1, -1], np.int8)))
    groups = copies.groups
    assert groups[0] == groups[2]
    assert groups[1] == groups[4]
    assert len(set(groups.tolist())) == 4
    assert copies.n_rows == 4
    apart = find_copies(kind(np.eye(6, 2)), Roles(np.array([1, 1, 1, 0, -1, -1], np.int8)))
    assert apart.groups[0] != apart.groups[1]  # the same number in another column
    # P has sizes 2 and 1: (4 + 1) / 3
    assert copies.design_effect(Roles(np.array([1, 1, 1, 0, -1, -1], np.int8))) == pytest.approx(
        5 / 3
    )


@given(st.lists(st.integers(0, 12), min_size=30, max_size=80), st.integers(0, 2**31 - 1))
@settings(max_examples=50, deadline=None)
def test_groups_stay_together_and_folds_are_even(groups, seed):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([groups, 100 + np.arange(30)])  # and 30 rows that are alone
    codes = np.resize(np.array([1, 0, -1], np.int8), len(groups))
    rng.shuffle(codes)
    roles = Roles(codes)
    splitter = RoleStratifiedKFold(3, shuffle=True, random_state=seed)
    seen = np.zeros(len(groups), int)
    for train, test in splitter.split(groups, roles, groups):
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(len(groups)))
        seen[test] += 1
    assert (seen == 1).all()


def test_single_rows_are_split_evenly_by_role():
    roles = read_roles([1] * 10 + [0] * 23 + [None] * 101)
    splitter = RoleStratifiedKFold(5, shuffle=True, random_state=0)
    sizes = [
        np.bincount(roles.codes[test] + 1, minlength=3)
        for _, test in splitter.split(roles.codes, roles, np.arange(134))
    ]
    assert (np.ptp(sizes, axis=0) <= 1).all()


def test_a_role_in_one_group_cannot_be_split():
    roles = read_roles([1, 1, 1, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="groups with rows of every role"):
        list(RoleStratifiedKFold(2).split(roles.codes, roles, [0, 0, 0, 1, 2, 3, 4]))
    copies = find_copies(np.array([[1.0]] * 3 + [[2.0], [3.0], [4.0], [5.0]]), roles)
    assert fold_count(roles, copies, 5) == 1


def test_near_copies_are_hinted_at():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    codes = np.full(400, -1, np.int8)
    codes[:20], codes[20:60] = 1, 0
    roles = Roles(codes)
    assert find_copies(X, roles).n_near == 0
    X[200:220] = X[:20] + 0.001 * rng.normal(size=(20, 5))
    assert find_copies(X, roles).n_near >= 20


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


def stacked(times, seed=0, n=110):
    """A hard table (best AUC .69), its rows ``times`` times, and fresh rows."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n + 4000) < 0.4
    X = rng.normal(size=(n + 4000, 6)) + 0.3 * hidden[:, None]
    y = [int(v) if i < 60 else None for i, v in enumerate(hidden[:n])]
    columns = {f"x{j}": np.tile(X[:n, j], times) for j in range(6)}
    return pa.table({**columns, "y": pa.array(y * times, pa.int8())}), X[n:], hidden[n:]


def test_a_stacked_table_reads_no_better_than_it_is():
    """The same table stacked four times once read .92 where fresh rows gave .63."""
    settings = FitSettings(n_centers=30, importance=False, prior=0.4)
    once, fresh, truth = stacked(1)
    study = fit_study(stacked(4)[0], ColumnRoles("y"), settings)
    alone = fit_study(once, ColumnRoles("y"), settings)
    copies, auc = study.findings["copies"], study.findings["auc"]
    assert copies["identical"] == 440
    assert copies["rows_per_observation"] == pytest.approx(4)
    assert alone.findings["copies"]["identical"] == 0
    scores = study.ranker.decision_function(
        study.encoder.transform(pa.table({f"x{j}": fresh[:, j] for j in range(6)}))
    )
    wins = (scores[truth][:, None] > scores[~truth]).mean()
    assert auc["low"] <= wins <= auc["high"]
    assert auc["value"] < 0.8
    # four copies of a row are no more information than one
    assert auc["high"] - auc["low"] > 0.8 * (
        alone.findings["auc"]["high"] - alone.findings["auc"]["low"]
    )


def test_common_scale_keeps_order_and_ignores_the_refit_s_scale():
    rng = np.random.default_rng(0)
    raw = rng.standard_t(1.2, 300)
    roles = Roles(np.where(np.arange(300) < 60, np.arange(300) % 2, -1).astype(np.int8))
    scale = common_scale(raw, roles)
    order = np.argsort(raw)
    assert (np.diff(scale[order]) >= 0).all()
    np.testing.assert_allclose(common_scale(1e6 * raw - 3, roles), scale, atol=1e-6)
    far = raw.copy()
    far[order[-1]] = 1e12  # one row far out moves no other
    np.testing.assert_allclose(common_scale(far, roles)[order[:-1]], scale[order[:-1]], atol=1e-6)


def test_folds_of_a_selection_keep_labelled_copies_together_and_change_nothing_without_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    rows = {"P": np.arange(0, 20), "N": np.arange(20, 60), "U": np.arange(60, 300)}
    plain, seen = (deal_folds(rows, 5, given, random_state=3) for given in (None, X))
    for role in rows:
        for a, b in zip(plain.rows[role], seen.rows[role], strict=True):
            np.testing.assert_array_equal(a, b)
    # every labelled row three times, one positive also among the negatives
    X[:15] = np.repeat(X[:5], 3, axis=0)
    X[20:59] = np.repeat(X[20:33], 3, axis=0)
    X[59] = X[0]
    folds = deal_folds(rows, 5, X, random_state=3)
    assert folds.n_folds == 5
    groups = row_groups(X)
    for k in range(5):
        held = set(groups[np.concatenate([folds.rows["P"][k], folds.rows["N"][k]])])
        others = [folds.rows[role][j] for role in "PN" for j in range(5) if j != k]
        assert not held & set(groups[np.concatenate(others)])
    for role, index in rows.items():
        sizes = [len(part) for part in folds.rows[role]]
        assert min(sizes) > 0
        np.testing.assert_array_equal(np.sort(np.concatenate(folds.rows[role])), index)


def test_a_class_of_one_repeated_row_is_split_all_the_same():
    X = np.ones((20, 2))
    rows = {"P": np.arange(6), "N": np.arange(6, 20)}
    assert deal_folds(rows, 5, X, random_state=0).n_folds == 5
    X[10:] = np.arange(20).reshape(10, 2)
    X[:3] = 7.5  # two different positives: two folds
    assert deal_folds(rows, 5, X, random_state=0).n_folds == 2


def test_a_selection_on_a_stacked_table_does_not_see_its_own_rows():
    """Noise, stacked four times: validation pairs are then as often won as lost."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(80, 4)), np.repeat([1, 0], 40)
    model = AUCClassifierCV(risk="pn", n_centers=60, random_state=0, verbose=False)
    model.fit(np.vstack([X] * 4), np.tile(y, 4))
    # with copies in other folds the best candidate wins nearly every held-out pair
    assert model.best_score_ < 0.7


def test_copies_do_not_make_the_prior_surer():
    """Every row four times: the error stays. Counted as rows, they would halve it."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        hidden = rng.random(400) < 0.25
        shift = np.r_[np.ones(15), np.zeros(25), hidden]
        X = rng.standard_normal((440, 3)) + 1.2 * shift[:, None]
        y = np.r_[np.ones(15), np.zeros(25), np.full(400, -1)]
        once, often = (
            PlacementPrior(random_state=0, on_unidentified="ignore")
            .fit(np.tile(X, (n, 1)), np.tile(y, n))
            .std_error_
            for n in (1, 4)
        )
        ratios.append(often / once)
    assert min(ratios) > 0.8
    assert max(ratios) < 1.25


def planted(n_labelled, n_near, n_rows=300, d=4, among_labelled=False):
    """Labelled rows first, the first n_near of them with a twin a millionth away."""
    rng = np.random.default_rng(n_labelled + n_near)
    X = rng.normal(size=(n_rows, d))
    twin = np.arange(n_near) + (n_near if among_labelled else n_labelled)
    X[twin] = X[:n_near] + 1e-6
    codes = np.full(n_rows, -1, dtype=np.int8)
    codes[:n_labelled] = np.arange(n_labelled) % 2
    return X, Roles(codes)


@pytest.mark.parametrize(
    ("n_labelled", "n_near", "hinted"),
    [
        (40, 2, 0),
        (40, 3, 3),
        (60, 3, 3),
        (61, 3, 0),
        (100, 4, 0),
        (100, 5, 5),
        (3, 3, 3),
        (2, 2, 0),
    ],
)
def test_near_copies_are_hinted_at_from_three_and_a_twentieth_on(n_labelled, n_near, hinted):
    X, roles = planted(n_labelled, n_near)
    found = find_copies(X, roles)
    assert (found.n_near, found.n_rows) == (hinted, 0)
    assert find_copies(X * [1e3, 1.0, 1e-3, 7.0] + 5.0, roles).n_near == hinted  # whatever the unit
    assert find_copies(sparse.csr_matrix(X), roles).n_near == 0  # not looked for


def test_few_rows_or_one_column_show_no_near_copies():
    for n_rows, hinted in ((19, 0), (20, 3)):
        assert find_copies(*planted(5, 3, n_rows)).n_near == hinted
    X, roles = planted(40, 10)
    assert find_copies(X[:, :2], roles).n_near >= 10
    assert find_copies(X[:, :1], roles).n_near == 0


def test_near_copies_are_looked_for_among_some_rows_of_many():
    """At most 400 labelled rows are asked, among all labelled and at most 4,000 other rows."""
    X, roles = planted(500, 500, 3000)
    assert find_copies(X, roles).n_near == 400
    X, roles = planted(200, 100, 6000, among_labelled=True)
    assert find_copies(X, roles).n_near == 200
    X, roles = planted(200, 200, 6000)  # twins among the unlabelled rows: some are not drawn
    assert 100 < find_copies(X, roles).n_near < 190


def test_rows_that_count_as_one():
    """sum of squared group sizes over rows, of the labelled class where it is largest."""
    groups = np.array([0, 0, 0, 1, 2, 2, 3, 4, 4, 4, 4, 4])
    codes = np.array([1, 1, 1, 1, 0, 0, 0, -1, -1, -1, -1, -1], dtype=np.int8)
    copies = Copies(groups, 10, 0)
    assert copies.design_effect(Roles(codes)) == pytest.approx((9 + 1) / 4)
    assert copies.design_effect(Roles(np.where(codes == 1, -1, codes))) == pytest.approx(5 / 3)
    assert copies.design_effect(Roles(np.full(12, -1, dtype=np.int8))) == 1.0
    X = np.random.default_rng(0).normal(size=(5, 2))[groups]
    assert find_copies(X, Roles(codes)).n_rows == 10
