"""The paper's experiments, run again: ``python -m experiments table4`` (see ``__main__``)."""

from __future__ import annotations

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """What ``python -m experiments`` does with the arguments ``argv``; returns its exit code."""
    from experiments.__main__ import main as command

    return command(argv)
