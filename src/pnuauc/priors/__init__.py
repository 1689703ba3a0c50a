"""How many of the unlabelled rows are positive? Estimators of the prior inside U.

All share one interface: ``fit(X, y)`` -> ``estimate_`` (a :class:`ClassPrior`), ``prior_``,
``interval_`` (at ``level``), ``std_error_``, ``diagnostics_``;
:class:`~pnuauc.exceptions.PriorNotIdentifiedError` when the data cannot identify it.
"""

from __future__ import annotations

from pnuauc.prior import ClassPrior, read_prior
from pnuauc.priors.base import BasePrior, Beta, prior_in_population, prior_in_unlabeled
from pnuauc.priors.energy import EnergyDistancePrior
from pnuauc.priors.matching import PenalizedL1Prior
from pnuauc.priors.placement import PlacementPrior
from pnuauc.priors.resolve import PRIORS, default_prior

__all__ = [
    "PRIORS",
    "BasePrior",
    "Beta",
    "ClassPrior",
    "EnergyDistancePrior",
    "PenalizedL1Prior",
    "PlacementPrior",
    "default_prior",
    "prior_in_population",
    "prior_in_unlabeled",
    "read_prior",
]
