"""Which words of a text move a row's score: each is left out in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pnuauc._utils.arrays import Floats
from pnuauc.io.encode import TableEncoder, grouped_columns
from pnuauc.io.text import TextBlock

__all__ = ["name_words"]

#: Words of a row that are tried, the rarest; and words that are named at most.
_TRIED, _NAMED = 60, 4


def name_words(
    found: list[list[Any]],
    score: Callable[[Any], Floats],
    X: Floats,
    table: Any,
    encoder: TableEncoder,
    views: Sequence[str],
) -> list[list[Any]]:
    """The same reasons; those that are a text name its words, the strongest first.

    Parameters
    ----------
    found : for each row its reasons
    score : encoded rows -> scores
    X : encoded rows, shape (n, d)
    table : arrow table of the same rows
    """
    blocks = {block.name: block for block in getattr(encoder.encoding_, "blocks", ())}
    columns = grouped_columns(encoder, views)
    out = []
    for i, reasons in enumerate(found):
        named = []
        for reason in reasons:
            block = blocks.get(reason.column)
            if isinstance(block, TextBlock):
                words = _words(reason.effect, block, columns[block.name], score, X[i], table, i)
                reason = replace(reason, words=words or ("(no word of its own)",))
            elif block is not None:
                reason = replace(reason, words=("(vector)",))
            named.append(reason)
        out.append(named)
    return out


def _words(
    effect: float,
    block: TextBlock,
    columns: Sequence[int],
    score: Callable[[Any], Floats],
    x: Floats,
    table: Any,
    row: int,
) -> tuple[str, ...]:
    """Words whose loss moves the score as the loss of the text does."""
    words, without = block.without_words(table, row, _TRIED)
    if not words:
        return ()
    changed = np.repeat(x[None], len(words), axis=0)
    changed[:, list(columns)] = without
    moved = np.sign(effect) * (score(x[None]) - score(changed))
    strongest = np.argsort(-moved, kind="stable")[:_NAMED]
    return tuple(words[j] for j in strongest if moved[j] > 0)
