"""Labels: every coding a user may bring is read as documented, or refused in one sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pnuauc.exceptions import LabelReadingWarning, MissingRoleError
from pnuauc.labels import read_roles

QUIET = [
    [1, 0, None],
    [1, 0, -1],
    (1.0, 0.0, float("nan")),
    np.array([1.0, 0.0, np.nan]),
    np.array([1, 0, -1], dtype=np.int8),
    np.array([True, False, None], dtype=object),
    np.array(["1", "0", ""]),
    np.ma.array([1, 0, 0], mask=[False, False, True]),
    pd.Series([1, 0, None], dtype="Int64"),
    pd.Series([True, False, None], dtype="boolean"),
    pd.Series(["1", "0", None], dtype="string"),
    pd.Series(pd.Categorical([1, 0, None])),
    pd.Series([1, 0, np.nan]),
    pl.Series([1, 0, None]),
    pl.Series([True, False, None]),
    pa.array([1, 0, None]),
    pa.chunked_array([[1], [0, None]]),
]


@pytest.mark.parametrize("y", QUIET, ids=lambda y: f"{type(y).__module__}.{type(y).__name__}")
def test_default_codes_in_every_container(y):
    roles = read_roles(y)
    assert roles.codes.tolist() == [1, 0, -1]
    assert roles.setting == "PNU"
    assert roles.announcement is None


@pytest.mark.parametrize(
    ("y", "codes", "word"),
    [
        ([1, -1, 1], [1, -1, 1], "negative_label=-1"),
        ([1.0, -1.0, np.nan], [1, -1, -1], "negative_label=-1"),
        (["no", "yes"], [0, 1], "'yes' is read as positive"),
        (pd.Series(pd.Categorical(["p", "n", None])), [1, 0, -1], "'p' is read as positive"),
        ([2, 1, 2], [1, 0, 1], "is read as positive"),
        (["fraud", None], [1, -1], "missing labels as unlabelled"),
    ],
)
def test_ambiguous_codings_are_announced(y, codes, word):
    with pytest.warns(LabelReadingWarning, match=word):
        roles = read_roles(y)
    assert roles.codes.tolist() == codes
    assert word in roles.announcement


def test_parameters_settle_the_reading():
    assert read_roles([1, -1], negative_label=-1).codes.tolist() == [1, 0]
    roles = read_roles(
        ["bad", "good", "?", "unknown"],
        positive_label="bad",
        negative_label="good",
        unlabeled_label=["?", "unknown"],
    )
    assert roles.codes.tolist() == [1, 0, -1, -1]
    assert roles.classes.tolist() == ["good", "bad"]
    assert read_roles([0, 1, None], positive_label=0, negative_label=1).codes.tolist() == [1, 0, -1]


def test_classes_answer_in_the_users_coding():
    with pytest.warns(LabelReadingWarning):
        assert read_roles([-1, 1]).classes.tolist() == [-1, 1]
    assert read_roles([True, None]).classes.tolist() == [False, True]
    assert read_roles([0, None, 0]).classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("y", "given", "word"),
    [
        ([], {}, "0 sample"),
        ([1, 2, 3], {}, "3 label values"),
        ([0.5, 1.0], {}, "Unknown label type: continuous"),
        ([np.inf, 1.0], {}, "infinity"),
        ([1j, 0], {}, "[Cc]omplex"),
        (["a", "a"], {}, "one class"),
        ([1, 2], {"positive_label": 1, "negative_label": 0}, "belong to no role: 2"),
        ([1, 0], {"positive_label": 1, "negative_label": 1}, "given twice"),
        ([[1, 0], [0, 1]], {}, "1d array"),
        ([{}, 1, None], {}, "row 0"),
        (None, {}, "requires y to be passed"),
        (3, {}, "one-dimensional"),
    ],
)
def test_bad_labels_get_one_sentence(y, given, word):
    with pytest.raises(ValueError, match=word) as error:
        read_roles(y, **given)
    assert "\n" not in str(error.value)


def test_missing_role_is_named():
    roles = read_roles([1, None, None])
    roles.require("positive", "unlabeled", purpose="the PU risk")
    with pytest.raises(MissingRoleError, match="the PN risk needs negative rows"):
        roles.require("positive", "negative", purpose="the PN risk")
    with pytest.raises(MissingRoleError, match="at least 2 positive rows and there is only 1"):
        roles.require("positive", purpose="the PU risk", at_least=2)


@given(
    st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=50),
    st.sampled_from([np.int8, np.int64, np.float32, np.float64, object, "str"]),
)
@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.LabelReadingWarning")
def test_codes_survive_any_dtype(codes, dtype):
    y = np.array(codes).astype(dtype)
    assert read_roles(y).codes.tolist() == codes


@given(
    st.lists(
        st.one_of(st.none(), st.integers(-2, 2), st.floats(), st.text(max_size=3), st.booleans()),
        max_size=20,
    )
)
@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.LabelReadingWarning")
def test_any_list_is_read_or_refused(y):
    try:
        roles = read_roles(y)
    except ValueError:  # refused; any other error fails the test
        return
    assert len(roles) == len(y)
    assert roles.n_positive + roles.n_negative + roles.n_unlabeled == len(y)
    assert len(roles.classes) == 2
