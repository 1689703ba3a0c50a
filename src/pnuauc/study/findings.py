"""What there is to say about a fitted ranker, each finding a dict of JSON values.

Every number that is stated is a question to one posterior (:mod:`pnuauc.evaluation.posterior`) or
a paired difference on the held-out rows behind it (:mod:`pnuauc.evaluation.heldout`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from pnuauc._utils.arrays import Floats, Indices
from pnuauc._utils.label_values import RoleCounts
from pnuauc.committee import AutoAUCClassifier
from pnuauc.core.rows import row_groups
from pnuauc.evaluation.heldout import HeldOut, cross_fit
from pnuauc.evaluation.posterior import Posterior
from pnuauc.exceptions import InputError
from pnuauc.labels import ROLES, Roles
from pnuauc.prior import ClassPrior
from pnuauc.priors import PRIORS, default_prior, prior_in_population, read_prior
from pnuauc.priors.base import prior_in_rows, read_belief
from pnuauc.priors.resolve import resolve_prior
from pnuauc.selection import deal_folds
from pnuauc.tuning import POSTERIOR

__all__ = [
    "PRIOR_ROWS",
    "Evidence",
    "check_belief",
    "effect_findings",
    "evidence_of",
    "find_prior",
    "label_findings",
    "prior_findings",
    "rival_findings",
    "selection_findings",
    "stated_findings",
]

#: Counts in the top that are listed beside the one that was asked for.
_TOPS = (20, 50, 100, 500)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Held-out scores of a ranker and what they say.

    held_out : HeldOut; weights : ndarray, shape (n_folds, n_models), of its columns
    posterior : Posterior; prior : ClassPrior or None, of U
    """

    held_out: HeldOut
    weights: Floats
    posterior: Posterior
    prior: ClassPrior | None

    @cached_property
    def places(self) -> Floats:
        """Of the held-out rows, shape (m,)."""
        return self.held_out.places(self.weights)

    @property
    def doubt(self) -> str | None:
        """One sentence where the labelled rows are no fair sample: nothing can be stated."""
        above, n_positive = self._above_all()
        picked = above >= 5 and above >= POSTERIOR.picked.value * n_positive
        if self.posterior.misfit >= POSTERIOR.misfit.value and not picked:
            return None
        if picked:
            return (
                f"{above} of {n_positive} labelled positives score above every unlabelled row: "
                "were they labelled because they scored high? Then the share of positives would "
                "read too low and the AUC too high, so these and the probabilities are withheld. "
                "Rows drawn by 'pnuauc review' have known odds, and its status states these "
                "numbers; or label rows drawn at random."
            )
        return (
            "The labelled rows are not typical of their class: they stand where random rows of it "
            "could not (were they picked for their score, or is the given share wrong?). So AUC, "
            "share of positives and probabilities are withheld. Rows drawn by 'pnuauc review' "
            "have known odds, and its status states these numbers; or label rows drawn at random."
        )

    def _above_all(self) -> tuple[int, int]:
        """Labelled positives above every unlabelled row that places are counted among, and all."""
        sizes = [len(rows) for rows in self.held_out.reference]
        n = sum(sizes) if self.held_out.together else max(sizes)
        own = self.places[self.held_out.codes == 1]
        has_unlabeled = bool((self.held_out.codes == -1).any())
        return int((own > 1.0 - 0.75 / n).sum()) if has_unlabeled else 0, len(own)


def evidence_of(
    ranker: Any,
    X: Any,
    roles: Roles,
    *,
    belief: Any = None,
    prior: Any = None,
    groups: Indices | None = None,
    weights: Floats | None = None,
    cv: int = 5,
    sampling: str | None = None,
    seed: int = 0,
) -> Evidence:
    """The evidence that a committee made while it was fitted, or that of refits of another model.

    ValueError where no row of a class can be held out.
    """
    if isinstance(ranker, AutoAUCClassifier):
        kept, own, stated = ranker.held_out_, ranker.fold_weights_, ranker.posterior_
        assert kept is not None and own is not None and stated is not None  # noqa: PT018
        return Evidence(kept, own, stated, ranker.class_prior_)
    rows = {role: index for role, index in roles.by_letter.items() if len(index)}
    folds = deal_folds(rows, cv, X, random_state=seed, groups=groups)
    alike = row_groups(X) if groups is None else groups
    held_out = cross_fit([ranker], X, roles, folds.splits, groups=alike, weights=weights)
    share = roles.n_positive / max(roles.n_positive + roles.n_negative, 1)
    known = read_prior(prior) if roles.n_unlabeled else ClassPrior.known(share)
    beta = read_belief(belief)
    ones = np.ones((folds.n_folds, 1))
    posterior = held_out.posterior(
        ones,
        known,
        (beta.a, beta.b),
        n_unlabeled=roles.n_unlabeled,
        random_labels=sampling == "random",
        seed=seed,
    )
    found = known if known is not None and known.std_error == 0 else posterior.class_prior()
    return Evidence(held_out, ones, posterior, found if roles.n_unlabeled else None)


def stated_findings(
    evidence: Evidence, roles: Roles | RoleCounts, top: int, level: float
) -> dict[str, Any]:
    """AUC with its interval, ROC curve, positives in the top, histograms of held-out scores."""
    held_out, posterior = evidence.held_out, evidence.posterior
    scores = special.ndtri(evidence.places)
    out: dict[str, Any] = {"scores": _histograms(held_out.codes, scores)}
    if evidence.doubt is not None:
        return {**out, "auc": None, "auc_reason": evidence.doubt, "review": None}
    auc = posterior.auc(level)
    out["auc"] = {**auc._asdict(), "level": level, "notes": _notes(held_out)}
    curve = posterior.roc(level)
    out["roc"] = {name: np.round(values, 5).tolist() for name, values in curve.items()}
    out["roc"]["level"] = level
    out["review"] = _review(evidence, roles.n_unlabeled, top, level)
    out["labels_look_random"] = _look_random(evidence, roles)
    return out


def _notes(held_out: HeldOut) -> list[str]:
    own = held_out.labeled
    n, worth = len(own), float(held_out.worth[own].sum())
    if worth > 0.98 * n:
        return []
    return [f"{n:,} labelled rows count as {worth:,.0f}: rows that are alike or belong together."]


def _review(evidence: Evidence, n_unlabeled: int, top: int, level: float) -> dict[str, Any] | None:
    """Positives to expect among the k unlabelled rows with the highest scores."""
    k, posterior = min(top, n_unlabeled), evidence.posterior
    if evidence.prior is None or k < 1:
        return None
    counts = sorted({k, *(c for c in _TOPS if c <= n_unlabeled)})
    return {
        "k": k,
        "n_unlabeled": n_unlabeled,
        "level": level,
        "expected": posterior.top(k, n_unlabeled, level)._asdict(),
        "recall": posterior.recall(k, n_unlabeled, level)._asdict(),
        "by_chance": k * evidence.prior.value,
        "counts": [{"k": c, **posterior.top(c, n_unlabeled, level)._asdict()} for c in counts],
        "rows_for_half": posterior.rows_for_recall(0.5, n_unlabeled),
    }


def _look_random(evidence: Evidence, roles: Roles | RoleCounts) -> bool:
    """Whether the labelled share of positives could be that of U: the labels of a random draw."""
    if evidence.prior is None or evidence.prior.is_given:
        return False
    n = roles.n_positive + roles.n_negative
    share = roles.n_positive / n
    return bool(
        roles.n_positive and roles.n_negative and evidence.prior.low <= share <= evidence.prior.high
    )


def label_findings(roles: Roles | RoleCounts) -> dict[str, Any]:
    """How the labels were read."""
    return {
        "setting": roles.setting,
        "positive": roles.n_positive,
        "negative": roles.n_negative,
        "unlabeled": roles.n_unlabeled,
        "positive_label": _spelled(roles.positive_label),
        "negative_label": _spelled(roles.negative_label),
        "announcement": roles.announcement,
    }


def _spelled(label: Any) -> str:
    """1.0 is written 1: a column of 1, 0 and nothing arrives as floats."""
    return str(int(label) if isinstance(label, float) and label == int(label) else label)


def _histograms(codes: Any, scores: Floats, bins: int = 24) -> dict[str, Any]:
    """Share of each role's rows by score; the ends of the axis gather the tails."""
    low, high = np.quantile(scores, [0.005, 0.995])
    low, high = (
        min(low, scores[np.flatnonzero(codes == 1)].min(initial=low)),
        max(high, scores[np.flatnonzero(codes == 1)].max(initial=high)),
    )
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    inside = np.clip(scores, edges[0], edges[-1])
    out: dict[str, Any] = {"edges": edges.tolist()}
    for role in ROLES:
        part = inside[codes == {"P": 1, "N": 0, "U": -1}[role.letter]]
        if len(part):
            out[role.name] = (np.histogram(part, edges)[0] / len(part)).tolist()
    return out


_SAID = {
    "kernels": "AUC risk on Gaussians",
    "whitened": "AUC risk on whitened components",
    "trees": "randomised trees",
    "forest": "a random forest",
    "processes": "Gaussian processes",
    "boosting": "gradient boosting",
    "linear": "a linear logistic regression",
    "logistic": "logistic regression",
    "latent": "logistic regression on latent components",
    "words": "naive Bayes",
    "text": "a logistic regression on text",
    "text_kernels": "AUC risk on text",
}


_RIVALS = {
    "paper": "the single model that the paper selects",
    "default": "what pnuauc fits by itself",
    "extra_trees": "ExtraTrees on the labelled rows",
}


def selection_findings(ranker: Any) -> dict[str, Any]:
    """What was chosen, out of what, and the validation risk along each parameter."""
    if isinstance(ranker, AutoAUCClassifier):
        members = [
            {**dataclasses.asdict(member), "title": _SAID.get(member.name, member.name)}
            for member in ranker.members_
        ]
        return {"model": "auto", "members": members, "message": _message(ranker)}
    if not hasattr(ranker, "selection_"):
        return {"model": "estimator", "message": type(ranker).__name__}
    return {
        "model": ranker.selection,
        "risk": ranker.risk_,
        "loss": str(ranker.loss),
        "basis": ranker.basis,
        "n_centers": int(getattr(ranker.basis_, "centers_", np.empty((0, 0))).shape[0]),
        "n_candidates": len(ranker.cv_results_["mean_test_risk"]),
        "n_kept": int(np.count_nonzero(ranker.cv_results_["weight"])),
        "n_corrected": int(ranker.n_corrected_),
        "best": {k: v for k, v in ranker.best_params_.items() if np.isfinite(v)},
        **ranker.selection_.to_dict(),
    }


def _message(ranker: Any) -> str:
    """One sentence on how the model was chosen."""
    if not isinstance(ranker, AutoAUCClassifier):
        selection = getattr(ranker, "selection_", None)
        return type(ranker).__name__ if selection is None else str(selection.message)
    names = [_SAID.get(member.name, member.name) for member in ranker.members_]
    if ranker.scorer_.foreign == tuple(names):
        return f"{' and '.join(names)}, as given."
    listed = ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
    return f"{listed}: members that suit the table, their scores summed."


def rival_findings(ranker: Any, auc: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What one would do instead, on the same folds: its AUC, and the paired difference."""
    if auc is None:
        return []
    return [
        {
            "name": _RIVALS[rival.name],
            "auc": rival.auc,
            "committee": auc["value"],
            **_difference(rival.difference),
        }
        for rival in getattr(ranker, "rivals_", [])
        if rival.name in _RIVALS
    ]


def effect_findings(ranker: Any, roles: Roles | RoleCounts, auc: Any) -> dict[str, Any] | None:
    """What the unlabelled rows changed: paired difference to the same model without them.

    None where they did what an estimator from elsewhere makes of them.
    """
    is_ours = not isinstance(ranker, AutoAUCClassifier) or not ranker.scorer_.foreign
    if roles.setting == "PNU" and not is_ours:
        return None
    out: dict[str, Any] = {"message": _message(ranker), "difference": None}
    if roles.setting != "PNU":
        without = "negatives" if roles.setting == "PU" else "positives"
        out["message"] = (
            f"There are no labelled {without}: without the unlabelled rows there would be no model."
            if roles.n_unlabeled
            else "There are no unlabelled rows."
        )
        return out
    for rival in getattr(ranker, "rivals_", []):
        if rival.name == "labeled_only" and auc is not None:
            out |= _difference(rival.difference)
            out["with"], out["without"] = auc["value"], rival.auc
    return out


def _difference(found: Any) -> dict[str, float]:
    return {
        "difference": found.value,
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
    }


# The share of positives among the unlabelled rows.


#: Unlabelled rows that an estimate rests on: with few labelled rows more would not sharpen it.
PRIOR_ROWS = 20_000
_POSTERIOR_POINTS = 80


def check_belief(belief: Any, given: Any = None, method: str = "auto") -> None:
    """Refuse a belief that cannot be read, or that nothing would use."""
    if belief is None:
        return
    if given is not None:
        raise InputError("A prior that is given is not estimated, so it takes no belief.")
    if method not in {"auto", "placement"}:
        raise InputError(f"The method {method!r} takes no belief; placement, the default, does.")
    try:
        read_belief(belief)
    except ValueError as error:
        raise InputError(str(error)) from error


def find_prior(
    given: float | tuple[float, float] | None,
    X: Any,
    roles: Roles,
    *,
    method: str = "auto",
    belief: Any = None,
    level: float = 0.95,
    random_state: int = 0,
    n_unlabeled: int | None = None,
    groups: Indices | None = None,
) -> ClassPrior | None:
    """The prior as given, or estimated on the rows; None without unlabelled rows.

    ``n_unlabeled`` says how many unlabelled rows there are where these are a draw; ``belief`` is
    what the default method starts from (:func:`check_belief`). That rows of one group are not
    independent, only this method allows for.
    """
    if roles.n_unlabeled == 0:
        return None
    if given is not None:
        return read_prior(given)
    if method not in {"auto", *PRIORS}:
        raise InputError(f"method must be auto, {', '.join(PRIORS)}; got {method!r}.")
    settings: dict[str, Any] = {"level": level, "on_unidentified": "ignore"}
    if belief is not None:
        settings["belief"] = belief
    estimator = (
        default_prior(roles.setting, **settings) if method == "auto" else PRIORS[method](**settings)
    )
    rows = _some_rows(roles, PRIOR_ROWS, random_state)
    own = None if groups is None else groups[rows]
    prior, _ = resolve_prior(
        estimator, X[rows], roles.take(rows), random_state=random_state, groups=own
    )
    if belief is not None:
        prior = replace(prior, source=f"{prior.source} with the belief {belief}")
    used = roles.take(rows).n_unlabeled
    if used == (n_unlabeled or roles.n_unlabeled):
        return prior
    sampled = f"on {used:,} of the unlabelled rows, drawn at random"
    return replace(prior, source=f"{prior.source} {sampled}")


def _some_rows(roles: Roles, max_unlabeled: int, seed: int) -> Indices:
    """All labelled rows and at most ``max_unlabeled`` unlabelled ones, drawn at random."""
    unlabeled = roles.unlabeled
    if len(unlabeled) > max_unlabeled:
        unlabeled = np.random.default_rng(seed).choice(unlabeled, max_unlabeled, replace=False)
    return np.sort(np.concatenate([roles.positive, roles.negative, unlabeled]))


def prior_findings(prior: ClassPrior | None, roles: Roles | RoleCounts) -> dict[str, Any] | None:
    """The share inside U, that in all rows if U is what was left, and what it means in rows."""
    if prior is None:
        return None
    return {
        **prior.to_dict(),
        **prior_in_rows(prior, roles.n_positive, roles.n_unlabeled),
        "population": prior_in_population(prior.value, *roles.counts),
        "note": prior.note or _vague(prior),
        "posterior": _posterior(prior),
    }


def _vague(prior: ClassPrior) -> str | None:
    """A remark where the labels have said little: the interval is still the belief's."""
    a, b = POSTERIOR.belief.value
    if prior.is_given or prior.std_error == 0:
        return None
    spread = np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1.0)))
    if prior.std_error < 0.8 * spread:
        return None
    return (
        "These labels say little about it: the interval is mostly what is assumed beforehand "
        "(positives are rare). Labels of rows drawn at random would say more."
    )


def _posterior(prior: ClassPrior) -> dict[str, list[float]] | None:
    """The posterior's density for a chart, on the scale of its highest.

    Gaussian kernels around its points (Silverman's width), reflected at 0 and 1.
    """
    if prior.shares is None or prior.weights is None:
        return None
    shares, weights = prior.shares, prior.weights / prior.weights.sum()
    spread = float(np.sqrt(weights @ (shares - weights @ shares) ** 2))
    width = max(1.06 * spread * (weights**2).sum() ** 0.2, 1e-6)
    ends = np.clip([shares.min() - 2 * width, shares.max() + 2 * width], 0.0, 1.0)
    grid = np.linspace(ends[0], ends[1], _POSTERIOR_POINTS)
    images = np.concatenate([shares, -shares, 2.0 - shares])
    density = np.exp(-0.5 * ((grid[:, None] - images) / width) ** 2) @ np.tile(weights, 3)
    kept = density > 1e-3 * density.max()
    return {
        "shares": np.round(grid[kept], 6).tolist(),
        "density": np.round((density / density.max())[kept], 6).tolist(),
    }
