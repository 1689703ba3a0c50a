"""Every competitor by name: how to make it, the candidates to choose from, and by what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

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
from pnuauc.baselines.ss_rank_boost import SSRankBoost
from pnuauc.core.basis import median_distance
from pnuauc.evaluation import RoleStratifiedKFold, make_auc_scorer

#: Multiples of the median distance. Widest first: with five positives many candidates tie in
#: cross-validation, GridSearchCV then takes the first, and the smoothest is the safest.
WIDTHS = (2.0, 1.0, 0.5, 0.25, 0.125)
_RIDGES = (1e-3, 1e-2, 1e-1, 1e0, 1e1)
_KERNEL = {"width": tuple(f"{w:g}*median" for w in WIDTHS), "alpha": _RIDGES}


@dataclass(frozen=True)
class Baseline:
    """A competitor with its hyper-parameter candidates.

    Attributes
    ----------
    name : str
        Its key in ``BASELINES``.
    make : callable, random_state -> unfitted estimator
    grid : mapping
        Candidates, empty where the estimator is used as it is. The paper's where the paper has
        the method, ours for SAMULT.
    scoring : {"pn", "pu_raw"}
        What cross-validation goes by on held-out rows: the AUC of labelled pairs, or the share of
        P-U pairs won, which needs no prior.
    paper_name : str or None
        What Sakai, Niu, Sugiyama (2018) call it.
    """

    name: str
    make: Callable[[Any], Any]
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    scoring: str = "pn"
    paper_name: str | None = None

    def on_text(self) -> Baseline:
        """The same with the paper's settings for text: linear kernels, multinomial classes."""
        known = self.make(None).get_params()
        wanted = {"basis": "linear", "generative_model": "multinomial"}
        settings = {name: value for name, value in wanted.items() if name in known}
        grid = {name: values for name, values in self.grid.items() if name != "width"}
        return replace(self, make=lambda seed: self.make(seed).set_params(**settings), grid=grid)

    def search(
        self, X: Any = None, random_state: Any = None, n_splits: int = 5, n_jobs: int | None = None
    ) -> Any:
        """GridSearchCV over ``grid`` with role-stratified folds, or the bare estimator without one.

        With ``X`` the widths are multiples of the median distance of these rows, found once, as
        in the paper; without, of each fit's own rows.
        """
        estimator = self.make(random_state)
        if not self.grid:
            return estimator
        grid = {name: list(values) for name, values in self.grid.items()}
        if X is not None and "width" in grid:
            unit = median_distance(X, random_state)
            grid["width"] = [unit * factor for factor in WIDTHS]
        folds = RoleStratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        scorer = make_auc_scorer(method=self.scoring)
        return GridSearchCV(estimator, grid, scoring=scorer, cv=folds, n_jobs=n_jobs)


def _trees(kind: type) -> Callable[[Any], Any]:
    return lambda seed: LabeledOnly(kind(n_estimators=300, random_state=seed))


_ALL = (
    Baseline(
        "rank_svm",
        lambda seed: RankSVM("pu", random_state=seed),
        _KERNEL,
        scoring="pu_raw",
        paper_name="PU-RSVM",
    ),
    Baseline("rank_svm_pn", lambda seed: RankSVM("pn", random_state=seed), _KERNEL),
    Baseline(
        "ss_rank_boost",
        lambda seed: SSRankBoost(),
        {"discount": (1e-3, 1e-2, 1e-1), "n_neighbors": (2, 3, 4, 5, 6, 7)},
        paper_name="SSRankboost",
    ),
    Baseline(
        "entropy_auc",
        lambda seed: EntropyAUC(random_state=seed),
        {**_KERNEL, "entropy_weight": (1.0, 10.0)},
        paper_name="sAUC-LS",
    ),
    Baseline(
        "generative_auc",
        lambda seed: GenerativeAUC(random_state=seed),
        {**_KERNEL, "entropy_weight": (1.0, 10.0)},
        paper_name="OptAG",
    ),
    Baseline(
        "samult",
        lambda seed: SAMULT(random_state=seed),
        {**_KERNEL, "gamma": (0.25, 0.5, 0.75)},
    ),
    Baseline("logistic_regression", lambda seed: LabeledOnly(LogisticRegression(max_iter=1000))),
    Baseline("extra_trees", _trees(ExtraTreesClassifier)),
    Baseline("random_forest", _trees(RandomForestClassifier)),
    Baseline("svc", lambda seed: LabeledOnly(SVC(class_weight="balanced"))),
    Baseline(
        "gradient_boosting",
        lambda seed: LabeledOnly(GradientBoostingClassifier(random_state=seed)),
    ),
    Baseline(
        "hist_gradient_boosting",
        lambda seed: LabeledOnly(HistGradientBoostingClassifier(random_state=seed)),
    ),
    Baseline(
        "positive_vs_unlabeled",
        lambda seed: PositiveVsUnlabeled(
            LogisticRegression(class_weight="balanced", max_iter=1000)
        ),
    ),
    Baseline("label_spreading", lambda seed: SemiSupervised(LabelSpreading(kernel="knn"))),
    Baseline(
        "self_training",
        lambda seed: SemiSupervised(SelfTrainingClassifier(LogisticRegression(max_iter=1000))),
    ),
    Baseline(
        "elkan_noto",
        lambda seed: ElkanNoto(LogisticRegression(max_iter=1000), random_state=seed),
    ),
    Baseline("bagging_pu", lambda seed: BaggingPU(random_state=seed)),
)

#: Name -> competitor. The last two need ``pnuauc[pulearn]``.
BASELINES: dict[str, Baseline] = {baseline.name: baseline for baseline in _ALL}
