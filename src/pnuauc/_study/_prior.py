"""The prior of a study: given or estimated, with its interval and where it comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pnuauc._study._crossfit import evaluation_rows
from pnuauc.exceptions import InputError
from pnuauc.labels import Roles
from pnuauc.priors import PRIORS, ClassPrior, default_prior, prior_in_population, read_prior
from pnuauc.priors._resolve import resolve_prior

__all__ = ["find_prior", "prior_findings"]

#: Unlabelled rows that an estimate rests on: with few labelled rows more would not sharpen it.
PRIOR_ROWS = 20_000


def find_prior(
    given: float | tuple[float, float] | None,
    X: Any,
    roles: Roles,
    *,
    method: str = "auto",
    level: float = 0.95,
    random_state: int = 0,
) -> ClassPrior | None:
    """The prior as given, or estimated on the rows; None without unlabelled rows."""
    if roles.n_unlabeled == 0:
        return None
    if given is not None:
        return read_prior(given)
    if method not in {"auto", *PRIORS}:
        raise InputError(f"method must be auto, {', '.join(PRIORS)}; got {method!r}.")
    settings: dict[str, Any] = {"level": level, "on_unidentified": "ignore"}
    estimator = (
        default_prior(roles.setting, **settings) if method == "auto" else PRIORS[method](**settings)
    )
    rows = evaluation_rows(roles, PRIOR_ROWS, random_state)
    prior, _ = resolve_prior(estimator, X[rows], roles.take(rows), random_state=random_state)
    if len(rows) == len(roles):
        return prior
    sampled = f"on {PRIOR_ROWS:,} of the unlabelled rows, drawn at random"
    return replace(prior, source=f"{prior.source} {sampled}")


def prior_findings(prior: ClassPrior | None, roles: Roles) -> dict[str, Any] | None:
    """The prior inside U, and what it makes of all rows if U is what was left unlabelled."""
    if prior is None:
        return None
    return {**prior.to_dict(), "population": prior_in_population(prior.value, *roles.counts)}
