"""The default ranker: a committee of members that see a table in different ways."""

from pnuauc.committee.estimator import AutoAUCClassifier
from pnuauc.committee.members import MEMBERS
from pnuauc.committee.models import Committee
from pnuauc.committee.reasons import Reason, find_reasons

__all__ = ["MEMBERS", "AutoAUCClassifier", "Committee", "Reason", "find_reasons"]
