"""Single findings, each a dict of JSON values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._committee import AutoAUCClassifier
from pnuauc._placement import CROSS_FIT_DISCOUNT, Placement, place_scores
from pnuauc._prior import ClassPrior
from pnuauc._role_counts import RoleCounts
from pnuauc._study._committee import committee_findings, labelled_only, selection_message
from pnuauc._study._crossfit import CrossFit, cross_fit
from pnuauc.exceptions import PriorNotIdentifiedError
from pnuauc.labels import ROLES, Roles
from pnuauc.metrics import (
    AUCEstimate,
    auc_estimate,
    compare_auc,
    prior_sensitivity,
    roc_curve_estimate,
)

__all__ = [
    "auc_findings",
    "copies_findings",
    "held_out_placement",
    "label_findings",
    "prior_verdict",
    "review_findings",
    "score_histograms",
    "selection_findings",
    "unlabeled_effect",
]

Floats = NDArray[np.float64]
#: An interval that covers this share of what is possible says nothing.
_SAYS_NOTHING = 0.8
_FEW_ROWS = 10
#: Two rows of a role look like anything.
_FEWEST_LABELS = 3
#: So many random labels tell a share to within 1.96 sqrt(.25 / 100) = .098.
_RANDOM_LABELS = 100
#: Powers of the training share by which the error of refits exceeds that of the final model: the
#: least to count on, the usual and the largest, with both classes labelled and with one. Refits of
#: the committee on four fifths of the rows gave powers of .6 and .3 (docs/truth.md), those of the
#: kernel model .25 throughout.
_GAINS = {True: (0.25, 0.5, 1.25), False: (0.0, 0.25, 0.75)}
#: Shares of the way from the value to the lower and to the upper limit that are gone, with both
#: classes labelled and with one. Nominal limits are too far out on one side or both: in 1,984 fits
#: with ten positives or more the truth was below the lower one in .4% and above the upper one in
#: 2.9% with both classes, in 2.4 and .2% with one, 2.5% asked. The shares bring both tails near
#: 2 to 3% (docs/truth.md).
_REACH = {True: (0.8, 1.0), False: (0.9, 0.85)}
_NOT_TOLD = (
    "The AUC cannot be told from these labels: it rests on the share of positives among the "
    "unlabelled rows, and that cannot be told either."
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


def selection_findings(ranker: Any) -> dict[str, Any]:
    """What was chosen, out of what, and the validation risk along each parameter."""
    if isinstance(ranker, AutoAUCClassifier):
        return committee_findings(ranker)
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


def prior_verdict(prior: ClassPrior | None, roles: Roles | RoleCounts) -> dict[str, Any]:
    """Whether these labels tell the prior, why not, and what would."""
    if prior is None:
        return {}
    fewest = min((n for n in roles.counts[:2] if n), default=0)
    narrow = prior.high - prior.low < _SAYS_NOTHING and fewest >= _FEWEST_LABELS
    told = prior.is_given or (prior.identified and narrow)
    out: dict[str, Any] = {"told": told}
    if not told:
        few = [
            role.word
            for role, n in zip(ROLES, roles.counts, strict=True)
            if role.letter != "U" and n < _FEW_ROWS
        ]
        labels = f"With {roles.describe()}" if few else "With these columns"
        out["reason"] = prior.doubt or f"{labels} very different shares fit the rows as well."
        wanted = (
            f"{_RANDOM_LABELS} of the unlabelled rows, drawn at random: their share of positives "
            "tells it to within 10 points"
            if roles.n_unlabeled > _RANDOM_LABELS
            else "the unlabelled rows"
        )
        out["needed"] = f"Label {wanted}. Or state it, if you know it."
    return out


def auc_findings(held_out: CrossFit, prior: ClassPrior | None, level: float) -> dict[str, Any]:
    """AUC by every method the roles allow, ROC curve and sensitivity to the prior."""
    roles, scores, factor = held_out.roles, held_out.scores, held_out.variance_factor
    estimates, raw = {}, None
    told = prior_verdict(prior, roles).get("told", False)
    for method in ("combined", "pn", "pu", "nu"):
        try:
            estimate = auc_estimate(roles, scores, prior, method, level, variance_factor=factor)
        except ValueError:  # a role or the prior is missing, or the prior is refuted
            continue
        if told or method == "pn":
            final = _of_final_model(estimate, held_out)
            estimates[estimate.method] = final.to_dict()
    if roles.n_unlabeled and (roles.n_positive or roles.n_negative):
        name = "pu_raw" if roles.n_positive else "nu_raw"
        raw = auc_estimate(roles, scores, None, name, level, variance_factor=factor).to_dict()
    try:
        # a prior that these labels do not tell must not carry an AUC: with P and N it is left out
        known = prior if told or roles.setting == "PNU" else None
        known = known if told else _doubted(known)
        best = auc_estimate(roles, scores, known, "auto", level, variance_factor=factor)
    except PriorNotIdentifiedError:
        return {"auc": None, "auc_reason": _NOT_TOLD, "auc_methods": {}, "auc_raw": raw}
    except ValueError as error:
        return {"auc": None, "auc_reason": str(error), "auc_methods": estimates, "auc_raw": raw}
    best = _of_final_model(best, held_out)
    out: dict[str, Any] = {"auc": best.to_dict(), "auc_methods": estimates, "auc_raw": raw}
    out["roc"] = _roc(roles, scores, prior, "pn" if best.method == "pn" else "auto", level)
    if prior is not None and best.method != "pn":
        curve = _sensitivity(held_out, prior, best.method, level)
        if curve is not None:
            out["sensitivity"] = curve
    return out


def trained_on_all(auc: Any, training_share: float, power: float) -> Any:
    """AUC of the model that is trained on all rows, from that of refits on a share of them.

    a + (1 - a) (2 a - 1) (1 - share^power): more rows cut the error, the more so the more there is
    to learn, and do nothing for a coin (a <= 1/2). Any shape.
    """
    gain = 1.0 - training_share**power
    return auc + (1.0 - auc) * np.maximum(2.0 * auc - 1.0, 0.0) * gain


def _of_final_model(estimate: AUCEstimate, held_out: CrossFit) -> AUCEstimate:
    """The same estimate for the model that the user gets."""
    low, value, high = _limits_of_final_model(held_out, estimate.low, estimate.value, estimate.high)
    return replace(estimate, low=float(low), value=float(value), high=float(high))


def _limits_of_final_model(
    held_out: CrossFit, low: Any, value: Any, high: Any
) -> tuple[Any, Any, Any]:
    """Each moved by a gain of its own: the limits allow for the least and for the largest.

    Then each limit goes its share of the way from the value (``_REACH``), on the scale of
    arcsin(sqrt(AUC)): the scatter of an AUC near one is small, and this scale is finite there.
    """
    both = bool(held_out.roles.n_positive and held_out.roles.n_negative)
    low, value, high = (
        trained_on_all(auc, held_out.training_share, power)
        for auc, power in zip((low, value, high), _GAINS[both], strict=True)
    )
    middle = np.arcsin(np.sqrt(value))
    low, high = (
        np.sin(middle + share * (np.arcsin(np.sqrt(limit)) - middle)) ** 2
        for share, limit in zip(_REACH[both], (low, np.maximum(high, value)), strict=True)
    )
    # the sine of an arcsine is the same number but for its last digits
    return np.minimum(low, value), value, np.maximum(high, value)


def _doubted(prior: ClassPrior | None) -> ClassPrior | None:
    """The same prior, not identified: the AUC is then taken from P and N alone."""
    if prior is None or not prior.identified:
        return prior
    return replace(prior, doubt="These labels do not tell the prior.")


def _roc(
    roles: Roles, scores: Floats, prior: Any, method: str, level: float
) -> dict[str, Any] | None:
    if not roles.n_positive:
        return None
    try:
        roc = roc_curve_estimate(roles, scores, prior, method, level=level, max_points=200)
    except ValueError:
        return None
    names = ("fpr", "tpr", "band_low", "band_high")
    curve = {name: np.round(getattr(roc, name), 5).tolist() for name in names}
    return {**curve, "method": roc.method, "level": level}


def _sensitivity(
    held_out: CrossFit, prior: ClassPrior, method: str, level: float
) -> dict[str, Any] | None:
    """The same method with the prior taken as known, over the prior's interval and beyond.

    Priors that the scores refute are left out; ``refuted`` says how many of the grid.
    """
    low, high = max(0.002, min(prior.low, prior.value / 3)), min(0.95, max(prior.high, 0.02))
    grid = np.union1d(np.linspace(low, high, 25), np.clip(prior.value, low, 0.95))
    curve = prior_sensitivity(
        held_out.roles,
        held_out.scores,
        grid,
        method,
        level,
        variance_factor=held_out.variance_factor,
    )
    kept = np.isfinite(curve.value)
    if kept.sum() < 2:
        return None
    names = ("priors", "value", "std_error", "low", "high")
    columns = {name: getattr(curve, name)[kept] for name in names}
    moved = ("low", "value", "high")
    limits = _limits_of_final_model(held_out, *(columns[name] for name in moved))
    columns |= dict(zip(moved, limits, strict=True))
    out: dict[str, Any] = {name: column.tolist() for name, column in columns.items()}
    at = float(np.clip(prior.value, out["priors"][0], out["priors"][-1]))
    refuted = int((~kept).sum())
    return {**out, "method": curve.method, "level": level, "at": at, "refuted": refuted}


def copies_findings(held_out: CrossFit) -> dict[str, Any]:
    """Identical rows among those that were evaluated, and how many rows count as one."""
    copies = held_out.copies
    return {
        "identical": copies.n_rows,
        "near": copies.n_near,
        "rows_per_observation": copies.design_effect(held_out.roles),
    }


def score_histograms(roles: Roles, scores: Floats, bins: int = 24) -> dict[str, Any]:
    """Share of each role's rows by score; the ends of the axis gather the tails."""
    low, high = np.quantile(scores, [0.005, 0.995])
    low, high = (
        min(low, scores[roles.positive].min(initial=low)),
        max(high, scores[roles.positive].max(initial=high)),
    )
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    inside = np.clip(scores, edges[0], edges[-1])
    out: dict[str, Any] = {"edges": edges.tolist()}
    for role in ROLES:
        part = inside[roles.by_letter[role.letter]]
        if len(part):
            out[role.name] = (np.histogram(part, edges)[0] / len(part)).tolist()
    return out


def unlabeled_effect(
    ranker: Any,
    quiet: Any,
    X: Any,
    roles: Roles,
    held_out: CrossFit,
    prior: Any,
    n_folds: int,
    seed: int,
) -> dict[str, Any]:
    """What the unlabelled rows changed: paired difference to labelled rows only, same folds."""
    out: dict[str, Any] = {"message": selection_message(ranker), "difference": None}
    if roles.setting != "PNU":
        without = "negatives" if roles.setting == "PU" else "positives"
        out["message"] = (
            f"There are no labelled {without}: without the unlabelled rows there would be no model."
            if roles.n_unlabeled
            else "There are no unlabelled rows."
        )
        return out
    plain = labelled_only(quiet, held_out)
    alone = cross_fit(
        plain, X, roles, held_out.rows, n_folds=n_folds, seed=seed, copies=held_out.copies
    )
    # without a prior: positives and negatives alone
    known = prior if prior_verdict(prior, roles).get("told") else None
    result = compare_auc(held_out.roles, held_out.scores, alone.scores, known)
    out |= {key: getattr(result, key) for key in ("difference", "low", "high", "p_value", "method")}
    out["with"], out["without"] = result.value_a, result.value_b
    return out


def held_out_placement(held_out: CrossFit, prior: ClassPrior) -> Placement:
    """What the held-out scores say of single unlabelled rows."""
    roles, places = held_out.roles, held_out.places
    return place_scores(
        places[roles.positive],
        places[roles.negative],
        prior,
        discount=CROSS_FIT_DISCOUNT * held_out.copies.design_effect(roles),
    )


def review_findings(
    held_out: CrossFit, prior: ClassPrior | None, n_unlabeled: int, k: int, level: float
) -> dict[str, Any] | None:
    """Positives to expect among the k unlabelled rows with the highest scores.

    From the places of labelled rows among the unlabelled ones, all held out
    (:mod:`pnuauc._placement`); ``told`` is False where the interval says next to nothing.
    """
    k = min(k, n_unlabeled)
    if prior is None or k < 1:
        return None
    placement = held_out_placement(held_out, prior)
    expected = placement.top(k, n_unlabeled, level)
    return {
        "k": k,
        "n_unlabeled": n_unlabeled,
        "level": level,
        "expected": expected._asdict(),
        "recall": placement.recall(k, n_unlabeled, level)._asdict(),
        "by_chance": k * prior.value,
        # a wide interval still says something if it begins above what k rows at random may hold
        "told": expected.high - expected.low < _SAYS_NOTHING * k or expected.low > k * prior.high,
    }
