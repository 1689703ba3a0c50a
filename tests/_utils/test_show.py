"""Tests of _utils/show."""

from __future__ import annotations

import numpy as np

from pnuauc._utils.show import jsonable


def test_plain_says_what_json_can():
    assert jsonable({1: np.int8(2), "a": [np.nan, float("inf"), np.bool_(True)], "s": {"x"}}) == {
        "1": 2,
        "a": [None, None, True],
        "s": ["x"],
    }
