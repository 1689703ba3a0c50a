"""Tests of committee/members."""

from __future__ import annotations

from pnuauc.committee import MEMBERS
from pnuauc.committee.members import Situation


def test_somebody_always_sits():
    for roles in [(2, 2), (5, 45), (2, 0), (0, 2), (5000, 5000)]:
        for is_sparse in (False, True):
            situation = Situation(*roles, 1, is_sparse)
            assert any(member.why(situation) for member in MEMBERS.values())
