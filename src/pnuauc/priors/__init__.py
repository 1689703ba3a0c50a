"""How many of the unlabelled rows are positive? Estimators of the prior inside U.

All share one interface: ``fit(X, y)`` -> ``estimate_`` (a :class:`ClassPrior`), ``prior_``,
``interval_`` (at ``level``), ``std_error_``, ``diagnostics_``;
:class:`~pnuauc.exceptions.PriorNotIdentifiedError` when the data cannot tell.
"""

from __future__ import annotations

from pnuauc._prior import ClassPrior, read_prior
from pnuauc.priors._base import BasePrior
from pnuauc.priors._belief import Beta
from pnuauc.priors._conversion import prior_in_population, prior_in_unlabeled
from pnuauc.priors._energy import EnergyDistancePrior
from pnuauc.priors._matching import PearsonPrior, PenalizedL1Prior
from pnuauc.priors._placement import PlacementPrior
from pnuauc.priors._quantification import EMPrior, HellingerPrior
from pnuauc.priors._resolve import PRIORS, default_prior

__all__ = [
    "PRIORS",
    "BasePrior",
    "Beta",
    "ClassPrior",
    "EMPrior",
    "EnergyDistancePrior",
    "HellingerPrior",
    "PearsonPrior",
    "PenalizedL1Prior",
    "PlacementPrior",
    "default_prior",
    "prior_in_population",
    "prior_in_unlabeled",
    "read_prior",
]
