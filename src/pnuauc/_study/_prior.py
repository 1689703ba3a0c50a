"""The prior of a study: given or estimated, with its interval and where it comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pnuauc._role_counts import RoleCounts
from pnuauc._study._crossfit import evaluation_rows
from pnuauc._study._findings import prior_verdict
from pnuauc.exceptions import InputError
from pnuauc.labels import Roles
from pnuauc.priors import PRIORS, ClassPrior, default_prior, prior_in_population, read_prior
from pnuauc.priors._belief import read_belief
from pnuauc.priors._conversion import prior_in_rows
from pnuauc.priors._resolve import resolve_prior

__all__ = ["PRIOR_ROWS", "check_belief", "find_prior", "prior_findings"]

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
) -> ClassPrior | None:
    """The prior as given, or estimated on the rows; None without unlabelled rows.

    ``n_unlabeled`` says how many unlabelled rows there are where these are a draw; ``belief`` is
    what the default method starts from (:func:`check_belief`).
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
    rows = evaluation_rows(roles, PRIOR_ROWS, random_state)
    prior, _ = resolve_prior(estimator, X[rows], roles.take(rows), random_state=random_state)
    if belief is not None:
        prior = replace(prior, source=f"{prior.source} with the belief {belief}")
    used = roles.take(rows).n_unlabeled
    if used == (n_unlabeled or roles.n_unlabeled):
        return prior
    sampled = f"on {used:,} of the unlabelled rows, drawn at random"
    return replace(prior, source=f"{prior.source} {sampled}")


def prior_findings(prior: ClassPrior | None, roles: Roles | RoleCounts) -> dict[str, Any] | None:
    """The prior inside U, that in all rows if U is what was left, and whether labels tell it."""
    if prior is None:
        return None
    return {
        **prior.to_dict(),
        **prior_in_rows(prior, roles.n_positive, roles.n_unlabeled),
        "population": prior_in_population(prior.value, *roles.counts),
        "note": prior.note,
        "posterior": _posterior(prior),
        **prior_verdict(prior, roles),
    }


def _posterior(prior: ClassPrior) -> dict[str, list[float]] | None:
    """The posterior's density on a few points for a chart, on the scale of its highest."""
    if prior.shares is None or prior.weights is None:
        return None
    shares, weights = prior.shares, prior.weights
    density = weights / np.gradient(shares)
    kept = density > 1e-3 * density.max()
    step = max(1, int(kept.sum()) // _POSTERIOR_POINTS)
    return {
        "shares": [round(float(share), 6) for share in shares[kept][::step]],
        "density": [round(float(d), 6) for d in (density / density.max())[kept][::step]],
    }
