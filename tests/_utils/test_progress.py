"""Tests of _utils/progress."""

from __future__ import annotations

import pytest

from pnuauc._utils.progress import Progress, progress_bar


def test_stages_take_their_share_of_one_bar_that_never_goes_back():
    shown = []
    bar = Progress(lambda text, share: shown.append((text, share)), {"read": 1, "fit": 3})
    bar("read", 0.0)
    bar("fit", 0.0)
    bar.inside(0.5, "trees")
    bar.inside(0.2)
    bar.inside(0.0, "row 7")
    assert [share for _, share in shown] == pytest.approx([0.0, 0.25, 0.625, 0.625, 0.625])
    assert [text for text, _ in shown] == ["read", "fit", "fit, trees", "fit", "fit, row 7"]


def test_work_inside_an_open_bar_moves_that_bar(capsys):
    with progress_bar("whole", False, {"one": 1, "two": 1}) as outer:
        outer("one", 0.0)
        with progress_bar("part", True) as inner:  # draws nothing of its own
            inner("member", 0.5)
        assert outer._share == 0.25
        with progress_bar("part", True, {"two": 1}) as inner:
            inner("two", 0.5)
        assert outer._share == 0.75
    assert capsys.readouterr().err == ""
