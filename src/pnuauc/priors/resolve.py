"""From what a user passes as ``prior`` to a :class:`ClassPrior`: read it, or estimate it."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.utils import check_random_state

from pnuauc.exceptions import MissingRoleError
from pnuauc.labels import Roles
from pnuauc.prior import ClassPrior, read_prior
from pnuauc.priors.base import BasePrior
from pnuauc.priors.energy import EnergyDistancePrior
from pnuauc.priors.matching import PenalizedL1Prior
from pnuauc.priors.placement import PlacementPrior

# A new estimator is one class and one line here; tests and experiments pick it up.
PRIORS: dict[str, type[BasePrior]] = {
    "placement": PlacementPrior,
    "energy": EnergyDistancePrior,
    "penalized_l1": PenalizedL1Prior,
}


def default_prior(setting: str, **parameters: Any) -> BasePrior:
    """The estimator for a setting ("PNU", "PU" or "NU", as ``Roles.setting`` spells it).

    Examples
    --------
    >>> default_prior("PU", level=0.95)
    PlacementPrior(level=0.95)
    """
    if setting not in {"PNU", "PU", "NU"}:
        raise MissingRoleError(
            f"No prior can be estimated from {setting or 'no'} data: unlabelled rows and labelled "
            'rows of at least one class are needed (settings "PNU", "PU", "NU").',
            about="prior",
        )
    return PlacementPrior(**parameters)


def resolve_prior(
    prior: Any, X: Any, roles: Roles, *, random_state: Any = None, groups: Any = None
) -> tuple[ClassPrior, Any | None]:
    """The prior, and the fitted estimator where it was estimated on the rows.

    Parameters
    ----------
    prior : float, (low, high), ClassPrior, fitted or unfitted estimator, "auto" or None
        What can be read without rows is read (:func:`pnuauc.prior.read_prior`). An unfitted
        estimator is cloned and fitted; "auto" and None take :func:`default_prior`.
    X : ndarray or CSR matrix, shape (n, d)
    roles : Roles
    random_state : int, RandomState or None
        Handed to an estimator that has none of its own.
    groups : ndarray of int, shape (n,), optional
        Rows of one group are not independent.

    Where the rows cannot identify the prior, a warning says so if there are positive and negative
    rows, which carry the fit on their own (eta = 0); without them it is an error. The same holds
    for the default and for a given estimator, unless its ``on_unidentified`` says "warn" or
    "ignore".
    """
    automatic = prior is None or (isinstance(prior, str) and prior == "auto")
    if not automatic and (not hasattr(prior, "fit") or hasattr(prior, "prior_")):
        known = read_prior(prior)
        assert known is not None  # only None and "auto" are read as None
        return known, None
    estimator = default_prior(roles.setting) if automatic else clone(prior, safe=False)
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    if "random_state" in parameters and parameters["random_state"] is None:
        # drawn afresh from an int, so that nothing else that is drawn from it changes
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        estimator.set_params(random_state=seed)
    asked = parameters.get("on_unidentified")
    if not isinstance(estimator, BasePrior):
        estimator.fit(X, roles.as_float())
    elif asked == "raise" and roles.setting == "PNU":
        estimator.set_params(on_unidentified="warn").fit(X, roles, groups)
        estimator.set_params(on_unidentified=asked)
    else:
        estimator.fit(X, roles, groups)
    known = read_prior(estimator)
    assert known is not None
    return known, estimator
