"""What there is to say about the committee: its members, its rivals, the reasons of a row."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import ExtraTreesClassifier

from pnuauc._committee import AutoAUCClassifier, RankingOnly
from pnuauc._committee._forest import Forest
from pnuauc._committee._grow import grow_trees
from pnuauc._estimators_cv import AUCClassifierCV
from pnuauc._study._crossfit import CrossFit, cross_fit
from pnuauc.baselines import LabeledOnly
from pnuauc.labels import Roles
from pnuauc.metrics import compare_auc

__all__ = ["committee_findings", "labelled_only", "quietly", "rival_findings", "selection_message"]

_SAID = {
    "kernels": "AUC risk on Gaussians",
    "whitened": "AUC risk on whitened components",
    "trees": "randomised trees",
    "forest": "a random forest",
    "processes": "Gaussian processes",
    "boosting": "gradient boosting",
    "linear": "a straight logistic regression",
    "logistic": "logistic regression",
    "latent": "logistic regression on latent components",
    "words": "naive Bayes",
}


def committee_findings(ranker: AutoAUCClassifier) -> dict[str, Any]:
    """Members with their reasons, weights and held-out AUCs."""
    members = [
        {**dataclasses.asdict(member), "title": _SAID.get(member.name, member.name)}
        for member in ranker.members_
    ]
    return {"model": "auto", "members": members, "message": selection_message(ranker)}


def selection_message(ranker: Any) -> str:
    """One sentence on how the model was chosen."""
    if not isinstance(ranker, AutoAUCClassifier):
        return str(ranker.selection_.message)
    names = [_SAID.get(member.name, member.name) for member in ranker.members_]
    listed = ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
    return f"{listed}: members that suit the table, their scores summed."


def quietly(ranker: Any) -> Any:
    """An unfitted copy for refits: no bar, and of a committee the scores alone."""
    quiet = clone(ranker).set_params(verbose=False)
    return RankingOnly(quiet) if isinstance(ranker, AutoAUCClassifier) else quiet


def labelled_only(quiet: Any, held_out: CrossFit) -> list[Any]:
    """For each fold the same ranker without unlabelled rows.

    A committee keeps the members and weights that it has with them, found without the fold, so
    that nothing but the rows differs.
    """
    if not isinstance(quiet, RankingOnly):
        return [clone(quiet).set_params(risk="pn", prior=None)] * len(held_out.folds)
    alone = clone(quiet.committee).set_params(prior=None, max_unlabeled=0)
    return [RankingOnly(alone, fitted.weights_) for _, fitted in held_out.folds]


@dataclasses.dataclass(eq=False, repr=False)
class LabelledTrees(BaseEstimator):
    """scikit-learn's ExtraTreesClassifier on the labelled rows, dense, with fewer checks.

    Parameters
    ----------
    n_trees : int, default=300
    random_state : int
    """

    n_trees: int = 300
    random_state: int = 0

    def fit(self, X: Any, y: Roles) -> LabelledTrees:
        """Fit to rows X, shape (n, d), and their roles."""
        rows = np.sort(np.concatenate([y.positive, y.negative]))
        samples = [np.arange(len(rows))] * self.n_trees
        rng = np.random.RandomState(self.random_state)
        self.forest_ = Forest.from_trees(grow_trees(X[rows], samples, y.codes[rows], rng))
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Mean share of positives in the leaves reached, shape (n,)."""
        return self.forest_.score(X)


def rival_findings(
    quiet: Any, X: Any, held_out: CrossFit, prior: Any, method: str, n_folds: int, settings: Any
) -> list[dict[str, Any]]:
    """Held-out AUC of the committee and of what one would do instead, on the same folds.

    The paper's PNU-AUC and, where both classes are labelled, ExtraTrees on the labelled rows; the
    difference to each is paired, with its interval, by the ``method`` of the headline. Both AUCs
    of a line come from the pair's own weights, so that they subtract to it, unless one is moved
    into [0, 1]; they are those of refits, without the headline's allowance for the rows that each
    refit lacked. By "pu_raw" or "nu_raw" they are shares of pairs won. Nothing for other models.
    """
    if not isinstance(quiet, RankingOnly):
        return []
    seed = settings.random_state
    rivals: dict[str, Any] = {
        f"{held_out.roles.setting}-AUC of the paper": AUCClassifierCV(
            selection="paper",
            basis="linear" if sparse.issparse(X) else "gaussian",
            prior=prior,
            n_jobs=settings.n_jobs,
            verbose=False,
            random_state=seed,
        )
    }
    roles = held_out.roles
    if roles.n_positive and roles.n_negative:
        rivals["ExtraTrees, labelled rows"] = (
            LabeledOnly(ExtraTreesClassifier(300, random_state=seed))
            if sparse.issparse(X)
            else LabelledTrees(300, seed)
        )
    found = []
    for name, rival in rivals.items():
        # the evaluated rows are the table of the rival: the folds come out the same
        alone = cross_fit(
            rival,
            X[held_out.rows],
            roles,
            np.arange(len(roles)),
            n_folds=n_folds,
            seed=seed,
            copies=held_out.copies,
        )
        try:
            pair = compare_auc(roles, held_out.scores, alone.scores, prior, method, settings.level)
        except ValueError:  # no estimate from these roles: nothing to compare
            continue
        line = {"name": name, "auc": pair.value_b, "committee": pair.value_a, "method": pair.method}
        found.append(line | {key: getattr(pair, key) for key in ("difference", "low", "high")})
    return found
