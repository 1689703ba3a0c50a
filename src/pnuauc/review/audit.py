"""How many positives are left: a bound that holds whatever the ranking is worth.

Let m be the number of positives in the pool when a review starts, found_t those found before draw
t, and r_t the rows left. A row drawn uniformly from the rows left is positive with probability
mu_t(m) = (m - found_t) / r_t; rows that are picked for their score only leave the pool. A bet
against "there are m" that is fixed before the draw,

    K_t(m) = K_{t-1}(m) (1 + lambda_t (mu_t(m) - y_t)),   0 <= lambda_t <= 1 / (1 - mu_t(m)),

is a martingale under m. By Ville's inequality it ever attains 1 / alpha with probability at most
alpha: the m that were never rejected hold the truth at all times with probability 1 - alpha.
Waudby-Smith and Ramdas (2020), Confidence sequences for sampling without replacement.

With lambda_t = (1 - c_t) / (1 - mu_t) a hit multiplies K by c_t and a miss by
1 + (1 - c_t) mu_t / (1 - mu_t): c_t is the number that the bettor expects to be hidden, divided by
m - found_t. The expectation is a posterior mean over a coarse grid of totals; a poor guess costs
draws and never validity. With c = 0 and no hit, 1 / K is the hypergeometric probability of no hit.
"""

from __future__ import annotations

import numpy as np

#: Totals that the bettor believes in, geometric between 1 and the size of the pool, beside 0.
_N_TOTALS = 65


class Audit:
    """Upper bound of the number of positives, updated with every random draw.

    Parameters
    ----------
    n_rows : rows of the pool when the review starts
    alpha : the probability with which the bound may ever be wrong
    """

    def __init__(self, n_rows: int, alpha: float = 0.05) -> None:
        self.alpha = alpha
        self._alive = np.arange(n_rows + 1)  # totals m that are not rejected
        self._wealth = np.zeros(n_rows + 1)  # log K of each
        self._totals = np.append(0.0, np.geomspace(1.0, max(n_rows, 1), _N_TOTALS))
        self._belief = np.zeros(len(self._totals))

    @property
    def upper(self) -> int:
        """Largest number of positives in the pool that is not rejected."""
        return int(self._alive[-1])

    def update(self, n_left: int, found: int, positive: bool) -> None:
        """Take in one draw: rows left and positives found just before it, and what it was."""
        hidden = np.clip(self._totals - found, 0.0, n_left)
        weight = np.exp(self._belief - self._belief.max())
        expected = float(weight @ hidden / weight.sum())
        left = self._alive - found
        # a total must hold what was found and fit into what is left: all others are refuted
        possible = (left >= positive) & (left <= n_left - (not positive))
        alive, left, wealth = self._alive[possible], left[possible], self._wealth[possible]
        share = np.minimum(expected / np.maximum(left, 1), 1.0)  # c_t; nothing is bet on m = found
        with np.errstate(divide="ignore"):  # what cannot be is not believed any more
            wealth = wealth + (
                np.log(share) if positive else np.log1p((1.0 - share) * left / (n_left - left))
            )
            rate = hidden / n_left
            self._belief += np.log(rate if positive else 1.0 - rate)
        if not np.isfinite(self._belief).any():  # every total is refuted: believe in any again
            self._belief[:] = 0.0
        kept = wealth < -np.log(self.alpha)
        self._alive, self._wealth = alive[kept], wealth[kept]
        if not kept.any():  # the event of probability alpha: only what was found is certain
            self._alive, self._wealth = np.array([found + positive]), np.zeros(1)
