"""From held-out counts to one validation risk per candidate.

All of R_PN, R_PU and R_NU with the zero-one loss estimate 1 - AUC without bias, so any weights
that sum to one are legal; they differ in variance only.

- ``"simple"``: (1 - g) R_PN + g R_PU for candidates of eta >= 0, (1 - g') R_PN + g' R_NU for
  eta < 0, with the paper's simple weights g, g' (``gamma_bar``). Candidates of different sign are
  then compared on two different criteria, as in the paper.
- ``"variance"``: the same with g, g' from the estimated covariance of the three risks.
- ``"combined"``: one criterion for all candidates, the combination of R_PN, R_PU and R_NU of
  least variance with non-negative weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from pnuauc._arrays import Floats, Mask
from pnuauc._risks import gamma_bar
from pnuauc.selection._counts import FoldCounts

__all__ = ["CRITERIA", "Criterion", "held_out_covariance", "validation_risks"]

CRITERIA = ("simple", "variance", "combined")
PARTS = ("PN", "PU", "NU")


@dataclass(frozen=True, eq=False)
class Criterion:
    """Validation risks and how they were weighted.

    name : str
    fold_risks : ndarray, shape (n_folds, n_candidates)
        NaN where a fold lacks the rows for it, and for candidates that are out of the running.
    weights : dict of "eta >= 0" / "eta < 0" / "all" -> (w_PN, w_PU, w_NU)
    noise : float
        Standard error of a candidate's validation risk (root mean square over candidates), by
        Hoeffding projections: what a difference must be measured against.
    """

    name: str
    fold_risks: Floats
    weights: dict[str, tuple[float, float, float]]
    noise: float

    @property
    def mean(self) -> Floats:
        """Mean over the folds that have a value, shape (n_candidates,); NaN where none has."""
        n = (~np.isnan(self.fold_risks)).sum(axis=0)
        return np.where(n > 0, np.nansum(self.fold_risks, axis=0) / np.maximum(n, 1), np.nan)

    @property
    def std(self) -> Floats:
        """Standard deviation over the folds that have a value, shape (n_candidates,)."""
        n = np.maximum((~np.isnan(self.fold_risks)).sum(axis=0), 1)
        return np.asarray(np.sqrt(np.nansum((self.fold_risks - self.mean) ** 2, axis=0) / n))

    @property
    def std_error(self) -> Floats:
        """Standard error over folds, shape (n_candidates,); zero with a single fold."""
        n = np.maximum((~np.isnan(self.fold_risks)).sum(axis=0), 1)
        return np.asarray(self.std / np.sqrt(np.maximum(n - 1, 1)))

    def without(self, fold: int) -> Criterion:
        """The same from the other folds; the noise grows with the square root of their number."""
        kept = np.arange(len(self.fold_risks)) != fold
        noise = self.noise * np.sqrt(len(kept) / max(kept.sum(), 1))
        return replace(self, fold_risks=self.fold_risks[kept], noise=float(noise))

    def among(self, candidates: Mask) -> Criterion:
        """The same with the other candidates out of the running."""
        return replace(self, fold_risks=np.where(candidates, self.fold_risks, np.nan))


def validation_risks(
    counts: Sequence[FoldCounts],
    etas: Floats,
    setting: str,
    prior: float | None,
    name: str,
    usable: Mask | None = None,
) -> Criterion:
    """One risk per fold and candidate.

    etas : ndarray, shape (n_candidates,)
    setting : "PN", "PU", "NU" or "PNU"; the first three leave no choice of weights
    prior : share of positives among the unlabelled rows
    usable : ndarray of bool, shape (n_candidates,), optional
        False takes a candidate out of the running: its risks are NaN and it has no say in weights.
    """
    if name not in CRITERIA:
        known = ", ".join(map(repr, CRITERIA))
        raise ValueError(f"validation must be one of {known}; got {name!r}.")
    found = [c.risks(prior) for c in counts]
    parts = np.array([[risks[part] for part in PARTS] for risks in found])  # (K, 3, c)
    if usable is not None and usable.any():
        counts = [c.of(usable) for c in counts]
        parts[:, :, ~usable] = np.nan
    covariance = held_out_covariance(counts, prior)
    if setting != "PNU" or prior is None:
        only = setting if setting in PARTS else "PN"
        weights = {"all": (float(only == "PN"), float(only == "PU"), float(only == "NU"))}
    else:
        weights = _weights(name, counts, prior, covariance)
    per_candidate = np.array(
        [weights.get("all") or weights["eta >= 0" if eta >= 0 else "eta < 0"] for eta in etas]
    )
    # a part of weight zero must not turn the sum into NaN where its rows are missing
    used = per_candidate.T[None] * np.where(per_candidate.T[None] == 0, 0.0, parts)
    if usable is not None:
        used[:, :, ~usable] = np.nan
    typical = np.array(weights.get("all") or weights["eta >= 0"])
    noise = float(np.sqrt(max(typical @ covariance @ typical, 0.0)))
    return Criterion(name, used.sum(axis=1), weights, noise)


def _weights(
    name: str, counts: Sequence[FoldCounts], prior: float, covariance: Floats
) -> dict[str, tuple[float, float, float]]:
    if name == "combined":
        return {"all": _least_variance_simplex(covariance)}
    if name == "simple":
        n_p = sum(c.positive_mass.sum() for c in counts)
        n_n = sum(c.negative_mass.sum() for c in counts)
        pnpu, pnnu = gamma_bar(prior, n_p, n_n)
    else:
        pnpu, pnnu = (_least_variance(covariance, other) for other in (1, 2))
    return {"eta >= 0": (1 - pnpu, pnpu, 0.0), "eta < 0": (1 - pnnu, 0.0, pnnu)}


def held_out_covariance(counts: Sequence[FoldCounts], prior: float | None) -> Floats:
    """Covariance matrix of (R_PN, R_PU, R_NU), mean over candidates, by Hoeffding projections.

    Var = sum over roles of Var(projection on that role's rows) / n_role. A row's projection is
    its placement among the rows it is compared with; placements are pooled over folds, since a
    fold may hold a single positive. Entries of a risk whose roles are missing are zero.
    """
    total = np.zeros((3, 3))
    have_p = any(c.positive.shape[1] for c in counts)
    have_n = any(c.negative.shape[1] for c in counts)
    have_u = prior is not None and all(c.n_unlabeled for c in counts)
    n_p = [c.positive.shape[1] for c in counts]
    both = [c for c in counts if c.positive.shape[1] and c.negative.shape[1]]
    p_rows = {0: [(c.pn_placements(), c.positive_mass) for c in both]}
    n_rows = {0: [(c.np_placements(), c.negative_mass) for c in both]}
    if prior is not None and have_u:
        p_rows[1] = [
            (c.unlabeled_below[:, :n] / (1.0 - prior), c.positive_mass)
            for c, n in zip(counts, n_p, strict=True)
        ]
        n_rows[2] = [
            ((1.0 - c.unlabeled_below[:, n:]) / prior, c.negative_mass)
            for c, n in zip(counts, n_p, strict=True)
        ]
    for rows, present in ((p_rows, have_p), (n_rows, have_n)):
        if present:
            _add_projection(total, {part: _joined(r) for part, r in rows.items() if r})
    if prior is not None and have_u and (have_p or have_n):
        spread = np.mean([c.unlabeled_spread().mean(axis=0) for c in counts], axis=0)
        scale = np.array([1.0 / (1.0 - prior), 1.0 / prior])
        n_u = sum(c.n_unlabeled for c in counts)
        total[np.ix_([1, 2], [1, 2])] += spread * np.outer(scale, scale) / n_u
    return total


_Placements = tuple[Floats, Floats]


def _joined(parts: Sequence[_Placements]) -> _Placements:
    """Placements, shape (c, n), and weights, shape (n,), of several folds as one."""
    values, weights = zip(*parts, strict=True)
    return np.concatenate(values, axis=1), np.concatenate(weights)


def _add_projection(total: Floats, placements: dict[int, _Placements]) -> None:
    """Add the covariance of placements over one role's rows, divided by the number of rows."""
    sizes = {values.shape[1] for values, _ in placements.values()}
    if len(sizes) != 1:  # a fold without the other labelled class: each part on its own
        for part, values in placements.items():
            _add_projection(total, {part: values})
        return
    parts = list(placements)
    weight = placements[parts[0]][1]
    n = float(weight.sum())
    stacked = np.stack([placements[part][0] for part in parts])
    stacked = stacked - np.average(stacked, axis=2, weights=weight)[:, :, None]
    found = np.einsum("icn,jcn,n->ij", stacked, stacked, weight, optimize=True)
    found /= stacked.shape[1] * max(n - 1, 1) * n
    total[np.ix_(parts, parts)] += found


def _least_variance(s: Floats, other: int) -> float:
    """argmin_g in [0, 1] of Var((1 - g) R_PN + g R_other)."""
    gap = s[0, 0] + s[other, other] - 2 * s[0, other]
    if gap <= 0:
        return 0.0
    return float(np.clip((s[0, 0] - s[0, other]) / gap, 0.0, 1.0))


def _least_variance_simplex(s: Floats) -> tuple[float, float, float]:
    """argmin w'Sw over weights >= 0 that sum to one; negative ones were rejected: they are right
    for one known covariance, but here it is an average over candidates."""
    scale = float(np.trace(s)) or 1.0
    result = minimize(
        lambda w: w @ s @ w / scale,
        np.full(3, 1 / 3),
        jac=lambda w: 2 * s @ w / scale,
        bounds=[(0.0, 1.0)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones(3)},
        method="SLSQP",
    )
    w = np.clip(result.x, 0.0, 1.0)
    w /= w.sum()
    return float(w[0]), float(w[1]), float(w[2])
