"""Feature maps phi as scikit-learn transformers, for ``basis=`` of the estimators."""

from pnuauc.core.basis import (
    BASES,
    GaussianBasis,
    IdentityBasis,
    LinearKernelBasis,
    MultiscaleBasis,
)

__all__ = ["BASES", "GaussianBasis", "IdentityBasis", "LinearKernelBasis", "MultiscaleBasis"]
