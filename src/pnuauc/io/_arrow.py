"""pyarrow under its usual names, imported when something of it is first used: it is an extra."""

from __future__ import annotations

from typing import Any

from pnuauc._extras import need

__all__ = ["pa", "pc"]


class _Later:
    """A module that :func:`need` looks up whenever something of it is asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(need(self._module), name)


pa: Any = _Later("pyarrow")
pc: Any = _Later("pyarrow.compute")
