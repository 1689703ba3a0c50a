"""AUC of any model's scores from partly labelled data: estimates, intervals, comparisons."""

from pnuauc.metrics._counts import ScoreCounts
from pnuauc.metrics._estimate import (
    AUCEstimate,
    PriorSensitivity,
    auc_estimate,
    auc_from_counts,
    prior_sensitivity,
)

__all__ = [
    "AUCEstimate",
    "PriorSensitivity",
    "ScoreCounts",
    "auc_estimate",
    "auc_from_counts",
    "prior_sensitivity",
]
