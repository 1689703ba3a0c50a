"""How many of the unlabelled rows are positive? Estimators of the prior inside U.

All share one interface: ``fit(X, y)`` -> ``prior_``, ``interval_`` (at ``level``), ``std_error_``,
``diagnostics_``; :class:`~pnuauc.exceptions.PriorNotIdentifiedError` when the data cannot tell.
"""

from __future__ import annotations

from typing import Any

from pnuauc.exceptions import MissingRoleError
from pnuauc.priors._base import BasePrior
from pnuauc.priors.conversion import prior_in_population, prior_in_unlabelled
from pnuauc.priors.energy import EnergyDistancePrior
from pnuauc.priors.matching import PearsonPrior, PenalizedL1Prior
from pnuauc.priors.placement import PlacementPrior

__all__ = [
    "PRIORS",
    "BasePrior",
    "EnergyDistancePrior",
    "PearsonPrior",
    "PenalizedL1Prior",
    "PlacementPrior",
    "default_prior",
    "prior_in_population",
    "prior_in_unlabelled",
]

# A new estimator is one class and one line here; tests and experiments pick it up.
PRIORS: dict[str, type[BasePrior]] = {
    "energy": EnergyDistancePrior,
    "placement": PlacementPrior,
    "penalized_l1": PenalizedL1Prior,
    "pearson": PearsonPrior,
}

_DEFAULTS = {"PNU": "energy", "PU": "placement", "NU": "placement"}


def default_prior(setting: str, **parameters: Any) -> BasePrior:
    """The estimator for a setting ("PNU", "PU" or "NU", as ``Roles.setting`` spells it).

    Examples
    --------
    >>> default_prior("PU", level=0.95)
    PlacementPrior(level=0.95)
    """
    if setting not in _DEFAULTS:
        raise MissingRoleError(
            f"No prior can be estimated from {setting or 'no'} data: unlabelled rows and labelled "
            'rows of at least one class are needed (settings "PNU", "PU", "NU").'
        )
    return PRIORS[_DEFAULTS[setting]](**parameters)
