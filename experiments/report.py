"""docs/reproduction.md from the results (written next)."""

from __future__ import annotations

from pathlib import Path

from experiments.config import Config


def write(config: Config, results: Path) -> Path:
    raise ValueError("not yet")
