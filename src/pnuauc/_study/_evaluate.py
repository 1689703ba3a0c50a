"""The AUC of any model's scores, and the comparison of two columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pnuauc._prior import ClassPrior
from pnuauc._study._data import LabelCodes, collected, label_values, read_labels
from pnuauc._study._findings import label_findings
from pnuauc._study._prior import find_prior, prior_findings
from pnuauc.exceptions import InputError
from pnuauc.io import as_table
from pnuauc.io._columns import Column, numbers
from pnuauc.labels import Roles
from pnuauc.metrics import auc_estimate, compare_auc, prior_sensitivity

__all__ = ["evaluate_table"]

#: Priors at which the AUC is given when none is known.
_SHOWN_PRIORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def evaluate_table(
    data: Any,
    label: str,
    scores: Sequence[str],
    *,
    codes: LabelCodes | None = None,
    prior: float | tuple[float, float] | None = None,
    estimate_prior: bool = False,
    method: str = "auto",
    level: float = 0.95,
) -> dict[str, Any]:
    """AUC of each score column by every method the roles allow; two columns are compared.

    Without a prior, data with P, N and U have it estimated from the first score column (energy
    distance of its values); data without negatives or positives only if ``estimate_prior``, for
    there an assumption carries it. Otherwise the AUC is given for a range of priors.
    """
    table = as_table(data)
    messages: list[str] = []
    with collected(messages):
        roles = read_labels(table, label, codes or LabelCodes())
        columns = {name: _scores(table, name, roles) for name in _names(scores)}
        known = _known_prior(prior, estimate_prior, columns, roles, level)
        models = {
            name: _one(roles, values, known, method, level) for name, values in columns.items()
        }
        comparison = _compare(columns, roles, known, method, level)
    return {
        "labels": label_findings(roles),
        "prior": prior_findings(known, roles),
        "scores": models,
        "comparison": comparison,
        "warnings": messages,
    }


def _names(scores: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(scores))
    if not 1 <= len(names) <= 2:
        raise InputError(f"Give one score column, or two to compare; got {len(names)}.")
    return names


def _scores(table: Any, name: str, roles: Roles) -> Any:
    label_values(table.slice(0, 0), name)  # says which columns there are, if this is not one
    values = numbers(Column(name, "number", ""), table.column(name))
    missing = np.isnan(values)
    if missing.any():
        row = int(np.flatnonzero(missing)[0]) + 1
        raise InputError(
            f"Score column '{name}' has {int(missing.sum())} empty cells (first in row {row}); "
            "score these rows or leave them out."
        )
    return values


def _known_prior(
    given: Any, estimate: bool, columns: dict[str, Any], roles: Roles, level: float
) -> ClassPrior | None:
    if given is None and not estimate and roles.setting != "PNU":
        return None
    if given is None and min(roles.n_positive or 2, roles.n_negative or 2) < 2:
        return None
    first = next(iter(columns.values()))
    return find_prior(given, first[:, None], roles, level=level)


def _one(
    roles: Roles, values: Any, prior: ClassPrior | None, method: str, level: float
) -> dict[str, Any]:
    out: dict[str, Any] = {"methods": {}}
    for name in ("pn", "pu", "nu", "combined", "pu_raw", "nu_raw"):
        try:
            estimate = auc_estimate(roles, values, prior, name, level)
        except ValueError:
            continue
        if estimate.method == name:
            out["methods"][name] = estimate.to_dict()
    if method == "auto" and prior is None and roles.setting in {"PU", "NU"}:
        out["auc"] = None
        curve = prior_sensitivity(roles, values, _SHOWN_PRIORS, level=level)
        out["sensitivity"] = curve.to_dict()
        return out
    out["auc"] = auc_estimate(roles, values, prior, method, level).to_dict()
    if prior is not None:
        grid = sorted({*_SHOWN_PRIORS, round(prior.value, 4)})
        out["sensitivity"] = prior_sensitivity(roles, values, grid, level=level).to_dict()
    return out


def _compare(
    columns: dict[str, Any], roles: Roles, prior: Any, method: str, level: float
) -> dict[str, Any] | None:
    if len(columns) < 2:
        return None
    (name_a, a), (name_b, b) = columns.items()
    result = compare_auc(roles, a, b, prior, method, level)
    return {"a": name_a, "b": name_b, **result.to_dict()}
