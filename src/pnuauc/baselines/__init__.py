"""The competitors: one scikit-learn estimator a file, all with the labels of the core.

``BASELINES[name].search(X)`` is a ``GridSearchCV`` over the paper's candidates with role-stratified
folds; ``BASELINES[name].make(seed)`` the bare estimator.
"""

from pnuauc.baselines.entropy import EntropyAUC, GenerativeAUC
from pnuauc.baselines.everyday import (
    SAMULT,
    BaggingPU,
    ElkanNoto,
    LabeledOnly,
    PositiveVsUnlabeled,
    SemiSupervised,
)
from pnuauc.baselines.rank_svm import RankSVM
from pnuauc.baselines.registry import BASELINES, Baseline
from pnuauc.baselines.ss_rank_boost import SSRankBoost

__all__ = [
    "BASELINES",
    "SAMULT",
    "BaggingPU",
    "Baseline",
    "ElkanNoto",
    "EntropyAUC",
    "GenerativeAUC",
    "LabeledOnly",
    "PositiveVsUnlabeled",
    "RankSVM",
    "SSRankBoost",
    "SemiSupervised",
]
