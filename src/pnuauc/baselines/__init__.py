"""The competitors: one scikit-learn estimator a file, all with the labels of the core.

``BASELINES[name].search(X)`` is a ``GridSearchCV`` over the paper's candidates with role-stratified
folds; ``BASELINES[name].make(seed)`` the bare estimator.
"""

from pnuauc.baselines._entropy_auc import EntropyAUC
from pnuauc.baselines._everyday import (
    BaggingPU,
    ElkanNoto,
    LabeledOnly,
    PositiveVsUnlabeled,
    SemiSupervised,
)
from pnuauc.baselines._generative_auc import GenerativeAUC
from pnuauc.baselines._rank_svm import RankSVM
from pnuauc.baselines._registry import BASELINES, Baseline
from pnuauc.baselines._samult import SAMULT
from pnuauc.baselines._ss_rank_boost import SSRankBoost

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
