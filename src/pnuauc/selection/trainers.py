"""Coefficients of all candidates of one scale on one training set: two ways to the same thing.

:class:`MomentsTrainer` (squared loss) visits the rows once; the moments it finds serve every
ridge, eta and prior, and every training set is a sum of them. :class:`RefitTrainer` fits every
candidate by itself, for losses without a closed form and for linear models in more columns than
can be squared.
"""

from __future__ import annotations

import bisect
import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.core.design import Design, joined
from pnuauc.core.losses import Loss
from pnuauc.core.moments import Moments, moments_of
from pnuauc.core.risks import QuadraticForm, Risk, quadratic_forms
from pnuauc.core.rows import Block, Rows, SomeRows, add_by_fold
from pnuauc.core.solvers import fit_risk, solve_ridge


@dataclass(frozen=True, eq=False)
class Fitted:
    """Some candidates on one training set.

    coef : shape (n_candidates, b); NaN where the empirical risk has no minimum
    spread : shape (n_candidates,), standard deviation of the scores over all training rows
    corrected : shape (n_candidates,), whether the risk had no minimum
    n_iter : iterations of the longest fit; 1 for a closed form
    """

    coef: NDArray[np.float64]
    spread: NDArray[np.float64]
    corrected: NDArray[np.bool_]
    n_iter: int = 1

    @classmethod
    def joined(cls, parts: Sequence[Fitted]) -> Fitted:
        return cls(
            np.concatenate([p.coef for p in parts]),
            np.concatenate([p.spread for p in parts]),
            np.concatenate([p.corrected for p in parts]),
            max(p.n_iter for p in parts),
        )

    def take(self, index: NDArray[np.intp]) -> Fitted:
        return Fitted(self.coef[index], self.spread[index], self.corrected[index], self.n_iter)


@dataclass(eq=False)
class MomentsTrainer:
    """Squared loss: one pass over the rows, whatever the grid.

    A candidate whose risk has no minimum on some fold is left NaN. Where the grid lacks eta = 0,
    the one that always has a minimum, it is corrected instead.
    """

    rows: Mapping[str, Rows]
    basis: Any
    risks: Sequence[Risk]
    alphas: Sequence[float]

    def __post_init__(self) -> None:
        summarise = functools.partial(_moments_by_fold, basis=self.basis)
        #: Of each role's rows by fold and scale, in one pass: {fold: [scale 0, ...]}.
        self.moments: dict[str, dict[int, NDArray[Any]]] = {}
        nothing: dict[int, NDArray[Any]] = {}
        for role, visitor in self.rows.items():
            found = visitor.reduce(summarise, add_by_fold, nothing)
            self.moments[role] = dict(sorted(found.items()))
        self._droppable = any(risk.roles == "PN" for risk in self.risks)

    def train(self, out: Sequence[int], scale: int, etas: Sequence[int]) -> Fitted:
        """All ridges of the given etas (by their place in the grid), in the order (eta, ridge).

        ``out`` are the folds that are left out; with none all rows are trained on and risks
        without a minimum are corrected (see :mod:`pnuauc.core.solvers`).
        """
        moments: dict[str, Moments] = {}
        for role, by_fold in self.moments.items():
            kept = [parts[scale] for k, parts in by_fold.items() if k not in out]
            if kept:
                moments[role] = functools.reduce(operator.add, kept)
        drop = bool(out) and self._droppable
        return _solve([self.risks[e] for e in etas], self.alphas, moments, drop)


def _moments_by_fold(block: Block, basis: Any) -> dict[int, NDArray[Any]]:
    found = {}
    for k, part in block.by_fold():
        found[k] = np.array([Moments.zero(basis.n_features)] * basis.n_scales)  # of objects
        for j, features in part.scales(basis):
            found[k][j] = moments_of(features, part.weight, basis)
    return found


def _solve(
    risks: Sequence[Risk], alphas: Sequence[float], moments: dict[str, Moments], drop: bool
) -> Fitted:
    """All (eta, ridge) of one scale; ``drop``: leave risks without a minimum NaN."""
    b = len(next(iter(moments.values())).mean)
    coef = np.full((len(risks), len(alphas), b), np.nan)
    corrected = np.ones((len(risks), len(alphas)), dtype=bool)
    if drop:
        forms = _with_minimum(risks, moments)
    else:
        forms = dict(enumerate(quadratic_forms(risks, moments)))
    for i, form in forms.items():
        minima = solve_ridge(form, alphas)
        coef[i], corrected[i] = [m.coef for m in minima], bool(minima[0].correction)
    flat = coef.reshape(-1, b)
    total = Moments.zero(b)
    for part in moments.values():
        total = total + part
    variance = np.einsum("cb,cb->c", flat @ total.covariance, flat)
    return Fitted(flat, np.sqrt(np.maximum(variance, 0.0)), corrected.ravel())


def _with_minimum(risks: Sequence[Risk], moments: dict[str, Moments]) -> dict[int, QuadraticForm]:
    """The forms that have a minimum, by their place among the risks, marked as convex.

    PNU risks of one sign of eta lie on a line that starts at the PN risk, which has a minimum:
    where one has, so have all between. So the last one that has is found by bisection.
    """
    counts = {role: m.n for role, m in moments.items()}
    usable = [i for i, risk in enumerate(risks) if risk.has_roles(counts)]
    forms = dict(zip(usable, quadratic_forms([risks[i] for i in usable], moments), strict=True))
    kept = [i for i in usable if forms[i].convex]
    for role in "PN":  # eta > 0 adds pairs of positives among themselves, eta < 0 of negatives
        side = [i for i in usable if i not in kept and _share_within(risks[i], role)]
        side.sort(key=lambda i: _share_within(risks[i], role))
        n_good = bisect.bisect_left(side, True, key=lambda i: not forms[i].is_semidefinite())
        kept += side[:n_good]
    return {i: replace(forms[i], convex=True) for i in sorted(kept)}


def _share_within(risk: Risk, role: str) -> float:
    """How much a risk subtracts of the pairs within a role."""
    return -sum(t.coefficient for t in risk.terms if t.first == t.second == role)


@dataclass(eq=False)
class RefitTrainer:
    """Any loss: every candidate is fitted by itself, and corrected where it has no minimum."""

    rows: Mapping[str, Rows]
    basis: Any
    risks: Sequence[Risk]
    alphas: Sequence[float]
    loss: Loss
    max_iter: int = 500
    tol: float = 1e-6

    def __post_init__(self) -> None:
        # made once: visitors keep the features of a basis by its identity
        self.bases = [self.basis.scale(j) for j in range(self.basis.n_scales)]

    def train(self, out: Sequence[int], scale: int, etas: Sequence[int]) -> Fitted:
        """As :meth:`MomentsTrainer.train`."""
        rows: Mapping[str, Rows] = self.rows
        if out:
            rows = {
                r: SomeRows(v, lambda b: ~np.isin(np.asarray(b.fold), out)) for r, v in rows.items()
            }
        design = Design(rows, self.bases[scale])
        return Fitted.joined([self._fit_path(self.risks[e], design) for e in etas])

    def _fit_path(self, risk: Risk, design: Design) -> Fitted:
        """All ridges of one risk."""
        minima = fit_risk(risk, self.loss, design, self.alphas, self.max_iter, self.tol)
        weight = joined(design.weights[role] for role in design.rows)
        spread = []
        for minimum in minima:
            scores = np.concatenate(list(design.scores(minimum.coef).values()))
            centered = scores - np.average(scores, weights=weight)
            spread.append(np.sqrt(np.average(centered**2, weights=weight)))
        return Fitted(
            np.array([m.coef for m in minima]),
            np.array(spread),
            np.array([bool(m.correction) for m in minima]),
            max(m.n_iter for m in minima),
        )
