"""Margin losses l(m) and their registry (:mod:`pnuauc.core.losses`)."""

from pnuauc.core.losses import *  # noqa: F403
from pnuauc.core.losses import __all__ as __all__
