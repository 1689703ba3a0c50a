"""The working loop: review, label, know when to stop."""

from pnuauc.review.monitor import monitor_table
from pnuauc.review.review import Review

__all__ = ["Review", "monitor_table"]
