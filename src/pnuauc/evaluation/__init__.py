"""AUC of any model's scores from partly labelled data: estimates, intervals, comparisons.

Everywhere ``prior`` is the share of positives **inside the unlabelled rows**.
"""

from pnuauc.core.ranks import ScoreCounts
from pnuauc.evaluation.compare import AUCComparison, compare_auc
from pnuauc.evaluation.estimate import AUCEstimate, auc_estimate, auc_from_counts
from pnuauc.evaluation.roc import (
    Interval,
    RocEstimate,
    RocEstimateDisplay,
    ThresholdEstimate,
    roc_curve_estimate,
    threshold_estimate,
)
from pnuauc.evaluation.sensitivity import (
    PriorSensitivity,
    breaking_odds,
    odds_bounds,
    prior_sensitivity,
)
from pnuauc.evaluation.sklearn_tools import (
    AUCScorer,
    RoleStratifiedKFold,
    RoleStratifiedShuffleSplit,
    cross_fit_auc,
    held_out_scores,
    make_auc_scorer,
)

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
    "breaking_odds",
    "compare_auc",
    "cross_fit_auc",
    "held_out_scores",
    "make_auc_scorer",
    "odds_bounds",
    "prior_sensitivity",
    "roc_curve_estimate",
    "threshold_estimate",
]
