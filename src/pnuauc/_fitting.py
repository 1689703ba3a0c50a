"""Risk and rows -> coefficients: where risks, designs and solvers meet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pnuauc._arrays import Floats
from pnuauc._design import Design
from pnuauc._risks import Risk
from pnuauc._solvers import Minimum, PartAt, RidgeSolution, minimise, solve_ridge
from pnuauc.losses import Loss

__all__ = ["fit_iteratively", "fit_squared"]

#: Widths of the smoothing that hinge and absolute loss go through, each started from the last.
SMOOTHING = (0.5, 0.1, 0.01, 0.001)


def fit_squared(risk: Risk, design: Design, alphas: Sequence[float]) -> RidgeSolution:
    """argmin_w R(w) + alpha |w|^2 for every alpha, squared loss, in one pass over the rows."""
    return solve_ridge(risk.quadratic_form(design.moments()), alphas)


def fit_iteratively(
    risk: Risk,
    loss: Loss,
    design: Design,
    alpha: float,
    start: Floats | None = None,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> Minimum:
    """argmin_w R(w) + alpha |w|^2 by L-BFGS, for any loss that can be trained on.

    A loss with corners is replaced by its smoothed version (exact outside a width of 0.001 around
    each corner), reached over a few widths, each started from the last. Started from a known
    solution the widest stages are left out.
    """
    coef = np.zeros(design.n_features) if start is None else start
    widths = SMOOTHING if start is None else SMOOTHING[-2:]
    stages = [loss] if loss.differentiable else [loss.smoothed(width) for width in widths]
    n_iter = 0
    for stage in stages:

        def parts_at(w: Floats, stage: Loss = stage) -> list[PartAt]:
            found = risk.part_gradients(stage, design.scores(w), design.weights)
            return [
                PartAt(part.weight, value, design.pullback(gradient), part.bounded)
                for part, value, gradient in found
            ]

        minimum = minimise(parts_at, coef, alpha, max_iter, tol)
        coef, n_iter = minimum.coef, n_iter + minimum.n_iter
    return Minimum(coef, n_iter, minimum.converged, minimum.correction)
