"""Why a row scores as it does, in words: columns, their values, what they do to the score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pnuauc._committee import Reason

__all__ = ["cell_of", "cell_text", "spell_reasons"]


def spell_reasons(reasons: Sequence[Reason], cell: Callable[[str], Any] | None) -> str:
    """ "income = 900 (+1.2), shop = b (-0.3)": what the score would lose at a typical value.

    ``cell`` gives the row's value in a table column, as the table holds it; None: rows have no
    named columns, and the encoded value is shown.
    """
    told = []
    for reason in reasons:
        value = reason.value if cell is None else cell(reason.column)
        told.append(f"{reason.column} = {cell_text(value) or '(missing)'} ({reason.effect:+.2g})")
    return ", ".join(told)


def cell_of(table: Any, row: int, name: str) -> Any:
    """The value of one cell."""
    return table.column(name)[row].as_py()


def cell_text(value: Any) -> str:
    """A cell as the table holds it."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
