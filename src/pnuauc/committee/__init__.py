"""The default ranker: a committee of members that see a table in different ways."""

from pnuauc.committee.estimator import AutoAUCClassifier, Reason, find_reasons
from pnuauc.committee.members import MEMBERS
from pnuauc.committee.models import Committee

__all__ = ["MEMBERS", "AutoAUCClassifier", "Committee", "Reason", "find_reasons"]
