"""Several ways of choosing among the same candidates, for the price of one fit.

AUCClassifierCV with selection "paper", with "average", and with the PN risk alone (eta = 0) train
and validate the same candidates on the same folds from the same seed; only what is then made of
the validation counts differs. Here the grid is trained once, from the public parts of
``pnuauc.selection``; a test holds each result against AUCClassifierCV's own. (They agree to the
last digits, but for the average of the eta = 0 candidates: its scores are standardised over all
training rows here and over P and N alone there, and correlate above .999.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pnuauc._estimators_cv import PAPER_ALPHAS, PAPER_ETAS, PAPER_WIDTHS
from pnuauc.basis import LinearKernelBasis, MultiscaleBasis
from pnuauc.risks import pnu_risk
from pnuauc.selection import (
    Candidates,
    Choice,
    Criterion,
    Engine,
    average,
    fold_rows,
    pick,
    validation_risks,
)

__all__ = ["TrainedGrid"]

N_BASIS = 200
TEMPERATURE = 0.5


class _OneScale:
    """A basis without widths, as the engine wants it."""

    n_scales = 1
    widths_ = np.array([np.nan])

    def __init__(self, basis: Any, n_features: int) -> None:
        self.basis, self.n_features = basis, n_features

    def scales(self, X: Any) -> list[tuple[int, Any]]:
        return [(0, self.basis.features(X))]


@dataclass(frozen=True, eq=False)
class Chosen:
    """A linear model: per scale its coefficients; and the best candidate's parameters."""

    scales: Any
    coef: dict[int, NDArray[np.float64]]
    best: dict[str, float]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """sum_j features_j(x)'w_j, shape (n,)."""
        X = X if X.dtype.kind == "f" and X.dtype.itemsize == 8 else X.astype(np.float64)
        parts = [f @ self.coef[j] for j, f in self.scales.scales(X) if j in self.coef]
        return np.sum(parts, axis=0)


class TrainedGrid:
    """All candidates of the paper's grid on all folds, for rows X and labels y (1, 0, NaN)."""

    def __init__(self, X: Any, y: NDArray[np.float64], prior: float, linear: bool, seed: int):
        X = X.astype(np.float64)
        self.prior = prior
        rows = {
            "P": np.flatnonzero(y == 1),
            "N": np.flatnonzero(y == 0),
            "U": np.flatnonzero(np.isnan(y)),
        }
        rng = check_random_state(seed)
        basis_seed = int(rng.randint(2**31 - 1))
        folded = fold_rows(rows, 5, X, y, rng)
        if linear:
            plain = LinearKernelBasis(N_BASIS, random_state=basis_seed).fit(X)
            self.scales: Any = _OneScale(plain, int(plain.features(X[:1]).shape[1]))
        else:
            self.scales = MultiscaleBasis(N_BASIS, PAPER_WIDTHS, random_state=basis_seed).fit(X)
        self.candidates = Candidates.from_grid(self.scales.widths_, PAPER_ETAS, PAPER_ALPHAS)
        risks = [pnu_risk(eta, prior) for eta in PAPER_ETAS]
        self.engine = Engine(X, folded, self.scales, risks, PAPER_ALPHAS)
        fitted = self.engine.fit_folds()
        self.counts = self.engine.held_out(fitted)
        self.usable = ~np.any([np.isnan(f.coef[:, 0]) for f in fitted], axis=0)

    def choose(self, selection: str, validation: str) -> Chosen:
        """``selection`` "paper" or "average"; ``validation`` a criterion, or "pn": eta = 0 only."""
        if validation == "pn":
            index, candidates, criterion = self._plain()
        else:
            index, candidates = np.arange(len(self.candidates)), self.candidates
            criterion = validation_risks(
                self.counts, candidates.eta, "PNU", self.prior, validation, self.usable
            )
        if selection == "paper":
            choice = pick(criterion.mean, candidates)
        else:
            choice = average(criterion, candidates, TEMPERATURE)
        return self._combined(Choice(index[choice.kept], choice.weights))

    def _plain(self) -> tuple[NDArray[np.intp], Candidates, Criterion]:
        """The candidates that leave U out, judged by labelled pairs alone."""
        mask = self.candidates.eta == 0
        counts = [c.of(mask) for c in self.counts]
        candidates = Candidates.from_grid(self.scales.widths_, [0.0], PAPER_ALPHAS)
        criterion = validation_risks(counts, candidates.eta, "PN", None, "paper", self.usable[mask])
        return np.flatnonzero(mask), candidates, criterion

    def _combined(self, choice: Choice) -> Chosen:
        """sum_c weight_c w_c / spread_c, scale by scale; one candidate keeps its own spread."""
        final = self.engine.fit_all(choice.kept)
        spread = np.where(final.spread > 0, final.spread, 1.0) if len(choice.kept) > 1 else 1.0
        shares = (choice.weights / spread)[:, None] * final.coef
        scale = choice.kept // (len(self.candidates) // self.scales.n_scales)
        coef = {int(j): shares[scale == j].sum(axis=0) for j in np.unique(scale)}
        best = int(choice.kept[0])
        c = self.candidates
        names = {"width": c.width, "eta": c.eta, "alpha": c.alpha}
        return Chosen(self.scales, coef, {k: float(v[best]) for k, v in names.items()})
