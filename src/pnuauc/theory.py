"""The paper's bounds and variance theorem (:mod:`pnuauc.core.theory`)."""

from pnuauc.core.theory import (
    BoundConstants,
    PrintedVariance,
    RiskCovariance,
    bound_constants,
    confidence_term,
    gamma_bar,
    generalization_bound,
    h_delta,
    printed_variance,
    risk_covariance,
    variance_ratio,
)

__all__ = [
    "BoundConstants",
    "PrintedVariance",
    "RiskCovariance",
    "bound_constants",
    "confidence_term",
    "gamma_bar",
    "generalization_bound",
    "h_delta",
    "printed_variance",
    "risk_covariance",
    "variance_ratio",
]
