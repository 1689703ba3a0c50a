"""Engines that a command may visit its table with; each is loaded when it is asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

__all__ = ["Engine"]


@dataclass(frozen=True)
class Engine:
    """Where a table is visited, if not in this process: "dask" or "spark", and its address."""

    name: str
    address: str | None = None

    def files(self, source: Any) -> AbstractContextManager[Any]:
        """The files as a source of the engine."""
        if self.name == "dask":
            from pnuauc.dask._source import dask_files

            return dask_files(source, self.address)
        from pnuauc.spark._source import spark_files

        return spark_files(source, self.address)
