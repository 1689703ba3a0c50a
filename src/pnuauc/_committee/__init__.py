"""The default ranker: a committee of members that see a table in different ways."""

from pnuauc._committee._estimator import AutoAUCClassifier
from pnuauc._committee._members import MEMBERS
from pnuauc._committee._models import Committee
from pnuauc._committee._ranking import RankingOnly
from pnuauc._committee._reasons import Reason, find_reasons

__all__ = ["MEMBERS", "AutoAUCClassifier", "Committee", "RankingOnly", "Reason", "find_reasons"]
