"""Every tuned constant says what it trades and where it comes from."""

from __future__ import annotations

import dataclasses

import pytest

from pnuauc import tuning

FIELDS = [
    (type(room).__name__, field.name, getattr(room, field.name))
    for room in (
        tuning.POSTERIOR,
        tuning.INTERVALS,
        tuning.COMMITTEE,
        tuning.TOGETHER,
        tuning.LATER,
        tuning.DIFFERENT,
    )
    for field in dataclasses.fields(room)
]


@pytest.mark.parametrize(("room", "name", "constant"), FIELDS)
def test_a_constant_has_a_reason_and_a_source(room, name, constant):
    assert isinstance(constant, tuning.Tuned), f"{room}.{name}"
    assert len(constant.trades.split()) >= 8, f"{room}.{name} does not say what it trades"
    assert constant.source.startswith(("python -m experiments ", "reason: ")), f"{room}.{name}"
