"""The prior of a study: given or estimated, with its interval and where it comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pnuauc._study._crossfit import evaluation_rows
from pnuauc.exceptions import InputError
from pnuauc.labels import Roles
from pnuauc.priors import PRIORS, ClassPrior, default_prior, prior_in_population, read_prior

__all__ = ["find_prior", "parse_prior", "prior_findings"]

#: Unlabelled rows that an estimate rests on: with few labelled rows more would not sharpen it.
PRIOR_ROWS = 20_000


def parse_prior(text: str | None) -> float | tuple[float, float] | None:
    """A number ("0.1", "10%") or an interval ("0.05:0.15"); None or "auto" means: estimate.

    Examples
    --------
    >>> parse_prior("10%"), parse_prior("0.05:0.15"), parse_prior("auto")
    (0.1, (0.05, 0.15), None)
    """
    if text is None or text.strip().lower() == "auto":
        return None
    try:
        values = [
            float(part.strip().rstrip("%")) / (100.0 if part.strip().endswith("%") else 1.0)
            for part in text.split(":")
        ]
    except ValueError:
        values = []
    inside = all(0.0 < value < 1.0 for value in values)
    if len(values) not in (1, 2) or not inside or values != sorted(values):
        raise InputError(
            f"--prior takes the share of positives among the unlabelled rows, a number between 0 "
            f"and 1 (0.1 or 10%), an interval (0.05:0.15) or auto; got {text!r}."
        )
    return values[0] if len(values) == 1 else (values[0], values[1])


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
        raise InputError(f"--method must be auto, {', '.join(PRIORS)}; got {method!r}.")
    settings: dict[str, Any] = {"level": level, "on_unidentified": "ignore"}
    estimator = (
        default_prior(roles.setting, **settings) if method == "auto" else PRIORS[method](**settings)
    )
    rows = evaluation_rows(roles, PRIOR_ROWS, random_state)
    estimator.set_params(random_state=random_state).fit(X[rows], roles.take(rows))
    if len(rows) == len(roles):
        return estimator.estimate_
    sampled = f"on {PRIOR_ROWS:,} of the unlabelled rows, drawn at random"
    return replace(estimator.estimate_, source=f"{estimator.estimate_.source} {sampled}")


def prior_findings(prior: ClassPrior | None, roles: Roles) -> dict[str, Any] | None:
    """The prior inside U, and what it makes of all rows if U is what was left unlabelled."""
    if prior is None:
        return None
    return {**prior.to_dict(), "population": prior_in_population(prior.value, *roles.counts)}
