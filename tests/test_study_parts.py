"""Parts of a study against their definitions: correlations, labels of a column, words."""

from __future__ import annotations

import datetime
import decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pnuauc._study import LabelCodes, _findings
from pnuauc._study._copies import Copies
from pnuauc._study._crossfit import CrossFit
from pnuauc._study._data import label_values, read_labels
from pnuauc._study._findings import _spelled, trained_on_all
from pnuauc._study._fit import _procedure
from pnuauc._study._importance import _correlations, _direction, _shuffled
from pnuauc.exceptions import InputError, LabelReadingWarning
from pnuauc.labels import read_roles
from tests.conftest import final_limits


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_correlations_are_those_of_every_column(kind):
    rng = np.random.default_rng(0)
    X = rng.random((80, 4)) * (rng.random((80, 4)) < 0.6) + [0.0, 2.0, 0.0, 5.0]
    X[:, 2] = 3.0  # constant: no correlation
    scores = X[:, 0] - 0.5 * X[:, 3] + rng.normal(size=80)
    expected = [np.corrcoef(X[:, j], scores)[0, 1] if j != 2 else 0.0 for j in range(4)]
    np.testing.assert_allclose(_correlations(kind(X), scores), expected, atol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_shuffling_keeps_the_other_columns_and_every_value(kind):
    X = np.random.default_rng(0).integers(0, 5, (40, 4)).astype(float)
    found = _shuffled(kind(X), [1, 3], np.random.default_rng(1))
    found = np.asarray(found.todense()) if sparse.issparse(found) else found
    np.testing.assert_array_equal(found[:, [0, 2]], X[:, [0, 2]])
    assert not np.array_equal(found[:, [1, 3]], X[:, [1, 3]])
    # both columns move together: the pairs of values are the same rows in another order
    assert sorted(map(tuple, found[:, [1, 3]])) == sorted(map(tuple, X[:, [1, 3]]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_words_of_a_direction_follow_its_sign(sign):
    values, scores = np.arange(50.0)[:, None], sign * np.arange(50.0)
    up = sign > 0
    assert _direction("x", values, ["x"], scores, False) == (
        f"{'higher' if up else 'lower'} values score higher"
    )
    assert _direction("x", values, ["x days"], scores, False) == (
        f"{'later' if up else 'earlier'} values score higher"
    )
    flag = (values > 25).astype(float)
    expected = f"{'true' if up else 'false'} scores higher"
    assert _direction("x", flag, ["x"], scores, True) == expected
    assert _direction("x", np.ones((50, 1)), ["x"], scores, False) is None
    assert _direction("x", values, ["x hash 0"], scores, False) is None


def test_the_best_category_has_rows_enough_and_the_highest_mean():
    inside = np.zeros((40, 3))
    inside[:4, 0] = inside[4:20, 1] = inside[20:, 2] = 1.0
    scores = np.r_[np.full(4, 9.0), np.full(16, 1.0), np.full(20, 2.0)]
    names = ["shop=a", "shop=b", "shop=c"]
    # four rows of "a" are too few to speak of
    assert _direction("shop", inside, names, scores, False) == "c scores highest"
    inside[4, 0], inside[4, 1] = 1.0, 0.0
    assert _direction("shop", inside, names, scores, False) == "a scores highest"
    assert _direction("shop", inside[:, :1], names[:1], scores, False) is None
    few = inside * (np.arange(40) % 10 == 0)[:, None]
    assert _direction("shop", few, names, scores, False) is None


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, 0, None], pa.int8()), [1.0, 0.0, np.nan]),
        (pa.array([decimal.Decimal("1"), decimal.Decimal("0")]), [1.0, 0.0]),
        (pa.array(["1", "0", ""]), [1.0, 0.0, np.nan]),
        (pa.array([0.5, 1.0]), [0.5, 1.0]),
    ],
)
def test_numbers_of_a_label_column_are_numbers(column, expected):
    found = label_values(pa.table({"y": column}), "y")
    assert found.dtype.kind in "fi"
    np.testing.assert_array_equal(found.astype(float), expected)


def test_words_of_a_label_column_are_words():
    for column in (
        pa.array(["yes", "no", None]),
        pa.array(["yes", "no", None]).dictionary_encode(),
    ):
        found = label_values(pa.table({"y": column}), "y")
        assert found.dtype == object
        assert found.tolist() == ["yes", "no", None]
    for column in ([datetime.date(2024, 1, 1)], [[1, 2]]):
        with pytest.raises(InputError, match="it must hold labels"):
            label_values(pa.table({"y": column}), "y")
    with pytest.raises(InputError, match=r"no column 'y'; the columns are 'a'\. Is the delimiter"):
        label_values(pa.table({"a": [1]}), "y")
    many = pa.table({f"c{k}": [1] for k in range(11)})
    with pytest.raises(InputError, match=r"'c9', \.\.\.\.$"):
        label_values(many, "y")


@pytest.mark.parametrize(
    ("n_ones", "n_zeros", "asked"), [(9, 41, True), (8, 41, False), (10, 40, False)]
)
def test_zeros_are_asked_about_from_fifty_rows_and_four_fifths_on(n_ones, n_zeros, asked):
    table = pa.table({"y": [1] * n_ones + [0] * n_zeros})
    if asked:
        with pytest.warns(LabelReadingWarning, match="9 are 1 and 41 are 0"):
            read_labels(table, "y", LabelCodes())
    else:
        assert read_labels(table, "y", LabelCodes()).announcement is None


def test_labels_are_spelled_without_a_point():
    assert [_spelled(label) for label in (1.0, 0.5, "1.0", True, 3)] == [
        "1",
        "0.5",
        "1.0",
        "True",
        "3",
    ]


def test_more_rows_do_nothing_for_a_coin_and_little_for_a_perfect_model():
    """a + (1 - a) (2 a - 1) (1 - share^power)."""
    assert trained_on_all(np.array([0.3, 0.5, 1.0]), 0.8, 0.25).tolist() == [0.3, 0.5, 1.0]
    found = trained_on_all(0.8, 0.8, 0.5)
    assert found == pytest.approx(0.8 + 0.2 * 0.6 * (1 - np.sqrt(0.8)))
    assert trained_on_all(0.8, 1.0, 0.5) == 0.8


@pytest.mark.parametrize("n_negative", [0, 30])
@given(
    ends=st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted),
    n_folds=st.integers(2, 10),
)
def test_limits_of_the_final_model_keep_their_order(ends, n_folds, n_negative):
    """0 <= low <= value <= high <= 1, by the formula; nothing to learn and no width stay so."""
    roles = SimpleNamespace(n_positive=20, n_negative=n_negative)
    held = SimpleNamespace(roles=roles, training_share=1 - 1 / n_folds)
    found = _findings._limits_of_final_model(held, *np.array(ends))
    assert 0 <= found[0] <= found[1] <= found[2] <= 1
    expected = final_limits(ends, held.training_share, n_negative > 0)
    assert found == pytest.approx(expected, abs=1e-12)
    point = _findings._limits_of_final_model(held, *np.full(3, min(ends[1], 0.5)))
    assert point == pytest.approx(np.full(3, min(ends[1], 0.5)))


@pytest.mark.parametrize(("n_used", "identical"), [(40, 0), (30, 0), (40, 6)])
def test_the_procedure_tells_of_rows_left_out_and_of_copies(n_used, identical):
    roles = read_roles([1] * 5 + [0] * 5 + [None] * 40)
    copies = Copies(np.zeros(50, dtype=np.intp), identical, 0)
    taken = roles.take(np.arange(10 + n_used))
    held_out = CrossFit(np.arange(10 + n_used), taken, np.zeros(10 + n_used), [], copies)
    told = _procedure(4, held_out, roles)
    assert told.startswith("4 folds by role")
    assert ("30 of 40 unlabelled rows, drawn at random" in told) == (n_used < 40)
    assert ("6 rows have an identical twin" in told) == (identical > 0)
    assert ("twin" in told) == (identical > 0)
