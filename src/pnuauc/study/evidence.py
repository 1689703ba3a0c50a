"""What is stated about a fitted ranker, and the held-out rows that it rests on.

Every number is a question to one posterior (:mod:`pnuauc.evaluation.posterior`) or a paired
difference on the held-out rows behind it (:mod:`pnuauc.evaluation.heldout`).
"""

from __future__ import annotations

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
from pnuauc.study.findings import (
    AUCFinding,
    Effect,
    Findings,
    Labels,
    MemberFinding,
    PriorFinding,
    Review,
    Rival,
    Roc,
    Selection,
    TopCount,
)
from pnuauc.tuning import POSTERIOR

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

    @cached_property
    def doubt(self) -> str | None:
        """One sentence where the labelled rows are no fair sample: nothing can be stated."""
        found = self.posterior.doubt
        return found and (
            f"{found}. So AUC, share of positives and probabilities are withheld. Rows drawn by "
            "'pnuauc review' have known odds, and its status states these numbers; or label rows "
            "drawn at random."
        )


def posterior_of(held: HeldOut, roles: Roles, settings: Any, n_unlabeled: int = 0) -> Posterior:
    """Share and curve of one model that was fitted fold by fold, with the settings of a fit."""
    labeled = roles.n_positive + roles.n_negative
    known = (
        read_prior(settings.prior)
        if roles.n_unlabeled
        else ClassPrior.known(roles.n_positive / max(labeled, 1))
    )
    belief = read_belief(settings.belief)
    return held.posterior(
        np.ones((held.n_folds, 1)),
        known,
        (belief.a, belief.b),
        n_unlabeled=n_unlabeled,
        random_labels=settings.sampling == "random",
        seed=settings.random_state,
    )


def evidence_of(
    ranker: Any, X: Any, roles: Roles, settings: Any, *, cv: int, groups: Indices | None = None
) -> Evidence:
    """The evidence that a committee made while it was fitted, or that of refits of another model.

    ValueError where no row of a class can be held out.
    """
    if isinstance(ranker, AutoAUCClassifier):
        kept, own, stated = ranker.held_out_, ranker.fold_weights_, ranker.posterior_
        assert kept is not None and own is not None and stated is not None  # noqa: PT018
        return Evidence(kept, own, stated, ranker.class_prior_)
    rows = {role: index for role, index in roles.by_letter.items() if len(index)}
    folds = deal_folds(rows, cv, X, random_state=settings.random_state, groups=groups)
    alike = row_groups(X) if groups is None else groups
    held_out = cross_fit([ranker], X, roles, folds.splits, groups=alike)
    posterior = posterior_of(held_out, roles, settings, roles.n_unlabeled)
    prior = None
    if roles.n_unlabeled:
        known = read_prior(settings.prior)
        exact = known is not None and known.std_error == 0
        prior = known if exact else posterior.class_prior()
    return Evidence(held_out, np.ones((folds.n_folds, 1)), posterior, prior)


def auc_finding(posterior: Posterior, level: float) -> AUCFinding:
    """The AUC with its interval."""
    return AUCFinding(*posterior.auc(level), level=level)


def state_findings(
    found: Findings, evidence: Evidence, roles: RoleCounts, top: int, level: float
) -> None:
    """AUC with its interval, ROC curve, positives in the top, histograms of held-out scores."""
    held, posterior, prior = evidence.held_out, evidence.posterior, evidence.prior
    found.scores = _histograms(held.codes, special.ndtri(evidence.places))
    if evidence.doubt is not None:
        found.auc, found.auc_reason = None, evidence.doubt
        found.review, found.prior = None, None
        return
    found.auc = auc_finding(posterior, level)
    n, worth = len(held.labeled), float(held.worth[held.labeled].sum())
    found.auc.notes = (
        [f"{n:,} labelled rows count as {worth:,.0f}: rows that are alike or belong together."]
        if worth <= 0.98 * n
        else []
    )
    curve = posterior.roc(level)
    found.roc = Roc(**{k: np.round(v, 5).tolist() for k, v in curve.items()}, level=level)
    n, k = roles.n_unlabeled, min(top, roles.n_unlabeled)
    found.review = None
    if prior is not None and k >= 1:
        counts = sorted({k, *(c for c in _TOPS if c <= n)})
        found.review = Review(
            k,
            n,
            level,
            posterior.top(k, n, level),
            posterior.recall(k, n, level),
            k * prior.value,
            [TopCount(c, *posterior.top(c, n, level)) for c in counts],
            posterior.rows_for_recall(0.5, n),
        )
    # whether the labelled share of positives could be that of U: the labels of a random draw
    share = roles.n_positive / max(roles.n_positive + roles.n_negative, 1)
    found.labels_look_random = (
        prior is not None
        and not prior.is_given
        and 0 < share < 1
        and bool(prior.low <= share <= prior.high)
    )
    found.prior = prior_findings(prior, roles)


def _histograms(codes: Any, scores: Floats, bins: int = 24) -> dict[str, list[float]]:
    """Share of each role's rows by score; the ends of the axis gather the tails."""
    low, high = np.quantile(scores, [0.005, 0.995])
    low, high = scores[codes == 1].min(initial=low), scores[codes == 1].max(initial=high)
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    inside = np.clip(scores, edges[0], edges[-1])
    out: dict[str, list[float]] = {"edges": edges.tolist()}
    for role in ROLES:
        part = inside[codes == {"P": 1, "N": 0, "U": -1}[role.letter]]
        if len(part):
            out[role.name] = (np.histogram(part, edges)[0] / len(part)).tolist()
    return out


def label_findings(roles: RoleCounts) -> Labels:
    """How the labels were read."""
    # 1.0 is written 1: a column of 1, 0 and nothing arrives as floats
    positive, negative = (
        str(int(label) if isinstance(label, float) and label == int(label) else label)
        for label in (roles.positive_label, roles.negative_label)
    )
    return Labels(roles.setting, *roles.counts, positive, negative, roles.announcement)


# What was chosen, and what one would do instead.


_TITLES = {
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


def selection_findings(ranker: Any) -> Selection:
    """What was chosen, out of what, and the validation risk along each parameter."""
    if isinstance(ranker, AutoAUCClassifier):
        names = [_TITLES.get(member.name, member.name) for member in ranker.members_]
        if ranker.scorer_.foreign == tuple(names):
            message = f"{' and '.join(names)}, as given."
        else:
            listed = ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
            message = f"{listed}: members that suit the table, their scores summed."
        found = Selection("auto", message)
        found.members = [
            MemberFinding(**vars(member), title=title)
            for member, title in zip(ranker.members_, names, strict=True)
        ]
        return found
    found = Selection(ranker.selection, ranker.selection_.message)
    found.risk, found.loss, found.basis = ranker.risk_, str(ranker.loss), ranker.basis
    found.n_centers = getattr(ranker.basis_, "centers_", np.empty((0, 0))).shape[0]
    found.n_candidates = len(ranker.cv_results_["mean_test_risk"])
    found.n_kept = int(np.count_nonzero(ranker.cv_results_["weight"]))
    found.n_corrected = int(ranker.n_corrected_)
    found.best = {k: v for k, v in ranker.best_params_.items() if np.isfinite(v)}
    vars(found).update(ranker.selection_.to_dict())
    return found


def compare_findings(found: Findings, ranker: Any, setting: str) -> None:
    """What one would do instead, and what the unlabelled rows changed: paired differences."""
    found.rivals, auc, effect = [], found.auc, Effect(found.selection.message, None)
    found.unlabeled_effect = effect
    if setting == "PN":
        effect.message = "There are no unlabelled rows."
    elif setting != "PNU":
        without = "negatives" if setting == "PU" else "positives"
        effect.message = (
            f"There are no labelled {without}: without the unlabelled rows there would be no model."
        )
    elif isinstance(ranker, AutoAUCClassifier) and (
        auc is None or ranker.scorer_.foreign or not ranker.rivals_
    ):
        # nothing can be compared, or they did what an estimator from elsewhere makes of them
        found.unlabeled_effect = None
    for rival in [] if auc is None else getattr(ranker, "rivals_", []):
        assert auc is not None
        value, _, low, high, p_value = rival.difference
        if rival.name in _RIVALS:
            said = _RIVALS[rival.name]
            found.rivals.append(Rival(said, rival.auc, auc.value, value, low, high, p_value))
        elif setting == "PNU":  # the model without unlabelled rows
            effect.difference, effect.low, effect.high, effect.p_value = value, low, high, p_value
            effect.with_, effect.without = auc.value, rival.auc


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
    read_belief(belief)


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

    ``n_unlabeled`` says how many unlabelled rows there are where these are a draw. Only the default
    method starts from ``belief``, and allows for rows of one group that are not independent.
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
    unlabeled = roles.unlabeled
    at_most = min(PRIOR_ROWS, getattr(estimator, "max_rows", None) or PRIOR_ROWS)
    if len(unlabeled) > at_most:
        rng = np.random.default_rng(random_state)
        unlabeled = rng.choice(unlabeled, at_most, replace=False)
    rows = np.sort(np.concatenate([roles.positive, roles.negative, unlabeled]))
    own = None if groups is None else groups[rows]
    prior, _ = resolve_prior(
        estimator, X[rows], roles.take(rows), random_state=random_state, groups=own
    )
    source = prior.source
    if belief is not None:
        source += f" with the belief {belief}"
    if len(unlabeled) != (n_unlabeled or roles.n_unlabeled):
        source += f" on {len(unlabeled):,} of the unlabelled rows, drawn at random"
    return replace(prior, source=source)


def prior_findings(prior: ClassPrior | None, roles: Roles | RoleCounts) -> PriorFinding | None:
    """The share inside U, that in all rows if U is what was left, and what it means in rows."""
    if prior is None:
        return None
    a, b = POSTERIOR.belief.value
    spread = np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1.0)))
    note = prior.note
    if not note and not prior.is_given and prior.std_error >= 0.8 * spread:
        note = (
            "These labels say little about it: the interval is mostly what is assumed beforehand "
            "(positives are rare). Labels of rows drawn at random would say more."
        )
    return PriorFinding(
        **prior.to_dict(),
        **prior_in_rows(prior, roles.n_positive, roles.n_unlabeled),
        population=prior_in_population(prior.value, *roles.counts),
        note=note,
        posterior=_density(prior),
    )


def _density(prior: ClassPrior) -> dict[str, list[float]] | None:
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
