"""The same questions as :class:`Engine`, answered by fitting every candidate on its own.

For losses without a closed form, and for linear models in more columns than can be squared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from pnuauc._design import Design
from pnuauc._fitting import fit_iteratively, fit_squared
from pnuauc.losses import Loss
from pnuauc.risks import Risk
from pnuauc.selection._counts import FoldCounts, count_below, with_next_above
from pnuauc.selection._engine import Fitted
from pnuauc.selection._folds import FoldedRows

__all__ = ["RefitEngine"]


class RefitEngine:
    """Fits every candidate by itself; parameters as :class:`Engine`, and a loss.

    bases : one fitted basis per scale
    """

    def __init__(
        self,
        X: Any,
        folded: FoldedRows,
        bases: Sequence[Any],
        n_features: int,
        risks: Sequence[Risk],
        alphas: Sequence[float],
        loss: Loss,
        n_threads: int = 1,
        max_iter: int = 500,
        tol: float = 1e-6,
        tick: Callable[[str, float], None] = lambda stage, share: None,
    ) -> None:
        self.X, self.folded, self.bases, self.n_features = X, folded, bases, n_features
        self.risks, self.alphas, self.loss = list(risks), list(alphas), loss
        self.n_threads, self.max_iter, self.tol = n_threads, max_iter, tol
        self._tick = tick
        self._done = 0

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_scales, n_etas, n_alphas)."""
        return len(self.bases), len(self.risks), len(self.alphas)

    def fit_folds(self) -> list[Fitted]:
        """Every candidate with each fold left out in turn."""
        everything = np.arange(np.prod(self.shape))
        return [self._fit(out, everything) for out in range(self.folded.n_folds)]

    def fit_all(self, kept: NDArray[np.intp]) -> Fitted:
        """The kept candidates on all rows."""
        return self._fit(None, kept)

    def _fit(self, out: int | None, wanted: NDArray[np.intp]) -> Fitted:
        places = list(zip(*np.unravel_index(wanted, self.shape), strict=True))
        jobs = sorted({(int(j), int(e)) for j, e, _ in places})
        run = Parallel(n_jobs=self.n_threads, prefer="threads")
        found = dict(
            zip(jobs, run(delayed(self._fit_path)(out, j, e) for j, e in jobs), strict=True)
        )
        rows = [(found[int(j), int(e)], int(a)) for j, e, a in places]
        return Fitted(
            np.array([f.coef[a] for f, a in rows]),
            np.array([f.spread[a] for f, a in rows]),
            np.array([f.corrected[a] for f, a in rows]),
            max(f.n_iter for f in found.values()),
        )

    def _fit_path(self, out: int | None, j: int, e: int) -> Fitted:
        """All ridges of one (scale, eta), from the largest down, each started from the last."""
        rows = {
            role: np.concatenate([f for k, f in enumerate(folds) if k != out])
            for role, folds in self.folded.rows.items()
        }
        design = Design(self.X, rows, self.bases[j], self.n_features)
        coef = np.empty((len(self.alphas), self.n_features))
        corrected = np.zeros(len(self.alphas), dtype=bool)
        n_iter = 1
        if self.loss.name == "squared":
            solution = fit_squared(self.risks[e], design, self.alphas)
            coef, corrected[:] = solution.coef, bool(solution.correction)
            n_iter = max(n_iter, solution.n_iter)
        else:
            start = None
            for a in np.argsort(self.alphas)[::-1]:
                minimum = fit_iteratively(
                    self.risks[e], self.loss, design, self.alphas[a], start, self.max_iter, self.tol
                )
                start = coef[a] = minimum.coef
                corrected[a] = bool(minimum.correction)
                n_iter = max(n_iter, minimum.n_iter)
        spread = [np.std(np.concatenate(list(design.scores(w).values()))) for w in coef]
        self._done += 1
        self._tick(
            "fitting", self._done / (len(self.bases) * len(self.risks) * self.folded.n_folds)
        )
        return Fitted(coef, np.array(spread), corrected, n_iter)

    def held_out(self, fitted: list[Fitted]) -> list[FoldCounts]:
        """How the held-out rows of each fold rank under every candidate of that fold."""
        return [self._count_fold(k, fitted[k].coef) for k in range(self.folded.n_folds)]

    def _count_fold(self, k: int, coef: NDArray[np.float64]) -> FoldCounts:
        rows = {role: folds[k] for role, folds in self.folded.rows.items()}
        per_scale = coef.reshape(len(self.bases), -1, self.n_features)
        scores: dict[str, list[Any]] = {role: [] for role in "PNU"}
        for basis, block in zip(self.bases, per_scale, strict=True):
            design = Design(self.X, rows, basis, self.n_features)
            for w in block:
                found = design.scores(w)
                for role in "PNU":
                    scores[role].append(found.get(role, np.empty(0)))
        positive, negative, unlabeled = (np.array(scores[role]) for role in "PNU")
        if not unlabeled.shape[1]:
            return FoldCounts.from_labelled(positive, negative)
        marks = with_next_above(np.concatenate([positive, negative], axis=1))
        below, upto = np.split(count_below(marks, unlabeled), 2, axis=1)
        return FoldCounts(positive, negative, below, upto, unlabeled.shape[1])
