"""The paper's bounds and variance theorem (:mod:`pnuauc.core.theory`)."""

from pnuauc.core.theory import *  # noqa: F403
from pnuauc.core.theory import __all__ as __all__
