"""The next rows to review: most of them by score, a stated share uniformly at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats

__all__ = ["draw_batch", "explore_share"]


def draw_batch(
    scores: Floats, pool: NDArray[np.intp], size: int, explore: float, rng: Any
) -> tuple[NDArray[np.intp], Floats, NDArray[np.bool_]]:
    """Rows of the pool to review next.

    Of k rows round(explore k), at least one where ``explore`` is above 0, are drawn uniformly from
    the rows that are left when the k - e rows of highest score are taken out:

        P(row is drawn) = 1 for the k - e rows on top, e / (r - (k - e)) for the others.

    Parameters
    ----------
    scores : shape (n,)
    pool : places of the r rows that can be drawn
    explore : share, from 0 to 1

    Returns
    -------
    rows : shape (k,), the rows by score first, then the random ones in the order of their draws
    probability : shape (k,)
    random : shape (k,), True for rows drawn at random
    """
    if not 0.0 <= explore <= 1.0:
        raise ValueError(f"explore must lie between 0 and 1, got {explore}.")
    k = min(size, len(pool))
    e = min(max(round(explore * k), 1), k) if explore > 0 else 0
    # equal scores in an order of chance, not in that of the table
    shuffled = rng.permutation(pool)
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    top, rest = order[: k - e], order[k - e :]
    drawn = rng.choice(rest, e, replace=False, shuffle=True) if e else rest[:0]
    probability = np.append(np.ones(k - e), np.full(e, e / max(len(rest), 1)))
    return np.append(top, drawn), probability, np.arange(k) >= k - e


def explore_share(found_by_score: float, found_at_random: float, least: float = 0.1) -> float:
    """Which share of the next batch to draw at random, from the positives per row of the last.

    While rows picked for their score hold more positives than random ones, as few random rows as
    are allowed; later as many, since only random rows can prove that little is left.
    """
    return least if found_by_score > found_at_random else 1.0 - least
