"""Tests of study/payments."""

from __future__ import annotations

from pnuauc.study.payments import make_payments


def test_payments_are_what_they_say():
    table, fraud = make_payments(4000, seed=9)
    labels = table.column("is_fraud").to_pylist()
    assert labels.count(1) == 53
    assert sum(v is not None for v in labels) == 160
    assert all(fraud[i] == bool(v) for i, v in enumerate(labels) if v is not None)
    assert 0.04 < fraud.mean() < 0.08
