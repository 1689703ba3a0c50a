"""AUC of any model's scores from partly labelled data: estimates, intervals, comparisons.

Everywhere ``prior`` is the share of positives **inside the unlabelled rows**.
"""

from pnuauc.metrics._compare import AUCComparison, compare_auc
from pnuauc.metrics._counts import ScoreCounts
from pnuauc.metrics._display import RocEstimateDisplay
from pnuauc.metrics._estimate import (
    AUCEstimate,
    auc_estimate,
    auc_from_counts,
)
from pnuauc.metrics._held_out import held_out_scores
from pnuauc.metrics._proportions import Interval
from pnuauc.metrics._roc import (
    RocEstimate,
    ThresholdEstimate,
    roc_curve_estimate,
    threshold_estimate,
)
from pnuauc.metrics._scorers import AUCScorer, make_auc_scorer
from pnuauc.metrics._sensitivity import PriorSensitivity, prior_sensitivity
from pnuauc.metrics._splitters import RoleStratifiedKFold, RoleStratifiedShuffleSplit

__all__ = [
    "AUCComparison",
    "AUCEstimate",
    "AUCScorer",
    "Interval",
    "PriorSensitivity",
    "RocEstimate",
    "RocEstimateDisplay",
    "RoleStratifiedKFold",
    "RoleStratifiedShuffleSplit",
    "ScoreCounts",
    "ThresholdEstimate",
    "auc_estimate",
    "auc_from_counts",
    "compare_auc",
    "held_out_scores",
    "make_auc_scorer",
    "prior_sensitivity",
    "roc_curve_estimate",
    "threshold_estimate",
]
