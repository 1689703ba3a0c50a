"""The working loop: review, label, know when to stop."""

from pnuauc.review.audit import Audit
from pnuauc.review.expected import Outlook, outlook
from pnuauc.review.ledger import DECISIONS, Drawn, Ledger, check_decisions
from pnuauc.review.monitor import Drift, Monitoring, monitor_table, monitoring_page
from pnuauc.review.rank import PoolRanker, Ranking, draw_batch, explore_share
from pnuauc.review.review import Batch, Review, RoundStatus, Status

__all__ = [
    "DECISIONS",
    "Audit",
    "Batch",
    "Drawn",
    "Drift",
    "Ledger",
    "Monitoring",
    "Outlook",
    "PoolRanker",
    "Ranking",
    "Review",
    "RoundStatus",
    "Status",
    "check_decisions",
    "draw_batch",
    "explore_share",
    "monitor_table",
    "monitoring_page",
    "outlook",
]
