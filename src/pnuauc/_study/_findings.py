"""Single findings, each a plain dict that JSON can say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._estimators_cv import AUCClassifierCV
from pnuauc._study._crossfit import CrossFit, cross_fit
from pnuauc.exceptions import MissingRoleError, PriorNotIdentifiedError
from pnuauc.io import TableModel
from pnuauc.labels import ROLES, Roles
from pnuauc.metrics import (
    auc_estimate,
    compare_auc,
    prior_sensitivity,
    roc_curve_estimate,
    threshold_estimate,
)

__all__ = [
    "auc_findings",
    "importance_findings",
    "label_findings",
    "review_findings",
    "score_histograms",
    "selection_findings",
    "top_rows",
    "unlabelled_effect",
]

Floats = NDArray[np.float64]
#: Values of a reviewed row that are shown beside its score.
_SHOWN_COLUMNS = 6


def label_findings(roles: Roles) -> dict[str, Any]:
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
    if isinstance(label, float) and label == int(label):
        return str(int(label))
    return str(label)


def selection_findings(ranker: AUCClassifierCV) -> dict[str, Any]:
    """What was chosen, out of what, and the validation risk along each parameter."""
    chosen = ranker.selection_.to_dict()
    return {
        "risk": ranker.risk_,
        "loss": str(ranker.loss),
        "basis": ranker.basis,
        "n_centers": int(getattr(ranker.basis_, "centers_", np.empty((0, 0))).shape[0]),
        "n_candidates": len(ranker.cv_results_["mean_test_risk"]),
        "n_kept": int(np.count_nonzero(ranker.cv_results_["weight"])),
        "n_corrected": int(ranker.n_corrected_),
        "best": {k: v for k, v in ranker.best_params_.items() if np.isfinite(v)},
        **chosen,
    }


def auc_findings(roles: Roles, scores: Floats, prior: Any, level: float) -> dict[str, Any]:
    """AUC by every method the roles allow, ROC curve and sensitivity to the prior."""
    estimates = {}
    for method in ("combined", "pn", "pu", "nu"):
        try:
            estimate = auc_estimate(roles, scores, prior, method, level)
        except (MissingRoleError, PriorNotIdentifiedError, ValueError):
            continue
        estimates[estimate.method] = estimate.to_dict()
    try:
        best = auc_estimate(roles, scores, prior, "auto", level)
    except (MissingRoleError, PriorNotIdentifiedError, ValueError) as error:
        return {"auc": None, "auc_reason": str(error)}
    out: dict[str, Any] = {"auc": best.to_dict(), "auc_methods": estimates}
    out["roc"] = _roc(roles, scores, prior, level)
    if prior is not None and best.method != "pn":
        out["sensitivity"] = _sensitivity(roles, scores, prior, level)
    return out


def _roc(roles: Roles, scores: Floats, prior: Any, level: float) -> dict[str, Any] | None:
    if not roles.n_positive:
        return None
    roc = roc_curve_estimate(roles, scores, prior, level=level, max_points=200)
    names = ("fpr", "tpr", "band_low", "band_high")
    curve = {name: np.round(getattr(roc, name), 5).tolist() for name in names}
    return {**curve, "method": roc.method, "level": level}


def _sensitivity(roles: Roles, scores: Floats, prior: Any, level: float) -> dict[str, Any]:
    value, error = prior.value, prior.std_error
    low = max(0.002, min(value / 3, value - 3 * error))
    high = min(0.95, max(3 * value, value + 3 * error))
    grid = np.linspace(low, max(high, low + 0.01), 25)
    curve = prior_sensitivity(roles, scores, grid, level=level).to_dict()
    return {**curve, "at": value}


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


def unlabelled_effect(
    ranker: AUCClassifierCV,
    quiet: AUCClassifierCV,
    X: Any,
    roles: Roles,
    held_out: CrossFit,
    prior: Any,
    n_folds: int,
    seed: int,
) -> dict[str, Any]:
    """What the unlabelled rows changed: paired difference to labelled rows only, same folds."""
    out: dict[str, Any] = {"message": ranker.selection_.message, "difference": None}
    if roles.setting != "PNU":
        without = "negatives" if roles.setting == "PU" else "positives"
        if roles.n_unlabeled:
            out["message"] = (
                f"There are no labelled {without}: without the unlabelled rows there would be no "
                "model."
            )
        else:
            out["message"] = "There are no unlabelled rows."
        return out
    from sklearn.base import clone

    plain = clone(quiet).set_params(risk="pn", prior=None)
    alone = cross_fit(plain, X, roles, held_out.rows, n_folds=n_folds, seed=seed)
    result = compare_auc(held_out.roles, held_out.scores, alone.scores, prior)
    out |= {key: getattr(result, key) for key in ("difference", "low", "high", "p_value", "method")}
    out["with"], out["without"] = result.value_a, result.value_b
    return out


def importance_findings(importance: list[dict[str, Any]], n_columns: int) -> dict[str, Any]:
    """The columns, most informative first, and how it was measured."""
    return {
        "columns": importance,
        "procedure": (
            "Fall of the held-out AUC estimate when the column's values are shuffled among the "
            "held-out rows; mean and standard deviation of 3 shuffles."
            if importance
            else f"Not measured ({n_columns} columns: only tables of up to 60 columns are)."
        ),
    }


def top_rows(
    model: TableModel, X: Any, table: Any, ids: Any, roles: Roles, n_top: int
) -> dict[str, Any]:
    """The unlabelled rows with the highest scores, to review next, and what to expect of them."""
    rows = roles.unlabeled
    if not len(rows) or n_top < 1:
        return {"header": [], "rows": []}
    scores = np.concatenate(
        [model.score_encoded(X[part]) for part in np.array_split(rows, -(-len(rows) // 65_536))]
    )
    order = np.argsort(-scores, kind="stable")[:n_top]
    chosen = rows[order]
    percent = model.percentile(scores[order])
    header = ["row", *(ids.column_names if ids is not None else []), "score", "percentile"]
    shown = [c.name for c in model.encoder.columns_][:_SHOWN_COLUMNS]
    picked = table.select(shown).take(chosen) if shown else None
    named = ids.take(chosen) if ids is not None else None
    out = []
    for i, row in enumerate(chosen):
        line: list[Any] = [int(row) + 1]
        if named is not None:
            line += [_cell(named.column(name)[i].as_py()) for name in named.column_names]
        line += [float(scores[order[i]]), float(percent[i])]
        if picked is not None:
            line += [_cell(picked.column(name)[i].as_py()) for name in shown]
        out.append(line)
    return {"header": [*header, *shown], "rows": out}


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)[:60]


def review_findings(
    roles: Roles, scores: Floats, prior: Any, n_unlabeled: int, k: int
) -> dict[str, Any] | None:
    """Expected harvest among the highest-scored unlabelled rows, from held-out scores.

    The held-out rows may be a sample of U, so k of all n_unlabeled rows is taken as the same share
    of the sample (at least 10 rows of it, or the estimate would be noise).
    """
    n = roles.n_unlabeled
    if not roles.n_positive or n == 0:
        return None
    k_sample = min(n, max(10, round(k * n / n_unlabeled)))
    at = threshold_estimate(roles, scores, prior, k=k_sample)
    parts = {"recall": at.recall, "lift": at.lift, "precision": at.precision}
    limits: dict[str, Any] = {
        name: None if part is None else {"value": part.value, "low": part.low, "high": part.high}
        for name, part in parts.items()
    }
    limits["share"] = at.n_flagged / n
    limits["n_rows"] = round(limits["share"] * n_unlabeled)
    return limits
