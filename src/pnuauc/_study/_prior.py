"""The prior of a study: given or estimated, with its interval and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pnuauc._study._crossfit import evaluation_rows
from pnuauc.exceptions import InputError
from pnuauc.labels import Roles
from pnuauc.priors import (
    PRIORS,
    BasePrior,
    EnergyDistancePrior,
    default_prior,
    prior_in_population,
)

__all__ = ["KnownPrior", "find_prior", "parse_prior"]

#: The risks divide by prior and 1 - prior; an estimate nearer to 0 or 1 is moved here.
_NEAREST = 0.001
#: Unlabelled rows that an estimate rests on: with few labelled rows more would not sharpen it.
PRIOR_ROWS = 20_000


@dataclass(frozen=True)
class KnownPrior:
    """Share of positives inside U. ``prior_`` and ``std_error_`` as the metrics read them."""

    value: float
    std_error: float
    low: float
    high: float
    level: float
    source: str
    doubt: str | None = None
    population: float | None = None

    @property
    def prior_(self) -> float:
        return self.value

    @property
    def std_error_(self) -> float:
        return self.std_error

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


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
) -> KnownPrior | None:
    """The prior as given, or estimated on the rows; None without unlabelled rows."""
    if roles.n_unlabeled == 0:
        return None
    counts = (roles.n_positive, roles.n_negative, roles.n_unlabeled)
    if given is not None:
        low, high = given if isinstance(given, tuple) else (given, given)
        value = (low + high) / 2
        # half the width of a 95% interval is 1.96 standard errors
        error = (high - low) / 2 / 1.959964
        population = prior_in_population(value, *counts)
        return KnownPrior(value, error, low, high, 0.95, "given", population=population)
    settings: dict[str, Any] = {
        "level": level,
        "on_unidentified": "ignore",
        "random_state": random_state,
    }
    if method == "energy" or (method == "auto" and roles.setting == "PNU"):
        # the "V" statistic pulls towards the share of positives among the labelled rows, which in
        # a user's table says little about U: reviewers look at suspicious rows first. On 20 draws
        # of make_payments(3000) its bias is .044 (rmse .055), that of "U" .008 (rmse .036).
        estimator: BasePrior = EnergyDistancePrior(statistic="U", **settings)
    elif method == "auto":
        estimator = default_prior(roles.setting, **settings)
    elif method in PRIORS:
        estimator = PRIORS[method](**settings)
    else:
        raise InputError(f"--method must be auto, {', '.join(PRIORS)}; got {method!r}.")
    rows = evaluation_rows(roles, PRIOR_ROWS, random_state)
    estimator.fit(X[rows], roles.codes[rows])
    sampled = (
        f" on {PRIOR_ROWS:,} of the unlabelled rows, drawn at random"
        if roles.n_unlabeled > PRIOR_ROWS
        else ""
    )
    value = min(max(estimator.prior_, _NEAREST), 1 - _NEAREST)
    low, high = estimator.interval_
    return KnownPrior(
        value,
        estimator.std_error_,
        low,
        high,
        level,
        f"estimated by {type(estimator).__name__}{sampled}",
        estimator.diagnostics_.get("doubt"),
        prior_in_population(value, *counts),
    )
