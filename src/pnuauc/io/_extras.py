"""Optional dependencies, see :mod:`pnuauc._extras`."""

from pnuauc._extras import need

__all__ = ["need"]
