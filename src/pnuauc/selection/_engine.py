"""Two passes over the rows, whatever the grid (squared loss).

Pass 1: moments per role, fold and scale. They serve every ridge, eta and prior, and every
training set is a sum of them. Pass 2: all candidates of a fold score its held-out rows, and the
scores are counted against one another. Memory is bounded by a block of features and the moments;
where all features fit a budget they are kept for the second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pnuauc._moments import Moments, fold, row_blocks
from pnuauc._solvers import solve_ridge
from pnuauc.risks import Risk, quadratic_forms
from pnuauc.selection._counts import FoldCounts, count_below, with_next_above
from pnuauc.selection._folds import FoldedRows

__all__ = ["Engine", "Fitted"]

#: Bytes of one block of features of one scale: measured best of 1.5, 3 and 6 MiB.
BLOCK_BYTES = 6 * 2**20
#: Features of all scales are kept for the second pass while they fit this many bytes.
CACHE_BYTES = 512 * 2**20


@dataclass(frozen=True, eq=False)
class Fitted:
    """Every candidate on one training set, candidates in the order (scale, eta, alpha).

    coef : ndarray, shape (n_candidates, b)
        NaN for a candidate whose empirical risk has no minimum and that was not corrected.
    spread : ndarray, shape (n_candidates,)
        Standard deviation of the candidate's scores over all training rows.
    corrected : ndarray of bool, shape (n_candidates,)
        Whether the risk had no minimum.
    n_iter : int
        Iterations of the longest fit; 1 for a closed form.
    """

    coef: NDArray[np.float64]
    spread: NDArray[np.float64]
    corrected: NDArray[np.bool_]
    n_iter: int = 1


class Engine:
    """The grid's arithmetic for the squared loss.

    Parameters
    ----------
    X : validated rows
    folded : FoldedRows
    basis : basis with ``scales(X_block)``, ``n_scales``, ``n_features``
    risks : one Risk per eta
    alphas : ridges
    n_threads : int
    block_size : int, optional
    tick : callable(done_fraction), for progress
    """

    def __init__(
        self,
        X: Any,
        folded: FoldedRows,
        basis: Any,
        risks: Sequence[Risk],
        alphas: Sequence[float],
        n_threads: int = 1,
        block_size: int | None = None,
        tick: Callable[[str, float], None] = lambda stage, share: None,
    ) -> None:
        self.X, self.folded, self.basis = X, folded, basis
        self.risks, self.alphas = list(risks), list(alphas)
        self.n_threads = n_threads
        b = basis.n_features
        item = np.dtype(X.dtype).itemsize
        self.block_size = block_size or int(np.clip(BLOCK_BYTES // (item * b), 256, 8192))
        n = sum(map(folded.size, folded.rows))
        keep = item * n * b * basis.n_scales <= CACHE_BYTES
        self._cache: dict[tuple[str, int, int], list[tuple[int, Any]]] | None = {} if keep else None
        self._moments: dict[tuple[str, int], list[Moments]] | None = None
        self._tick = tick

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_scales, n_etas, n_alphas)."""
        return self.basis.n_scales, len(self.risks), len(self.alphas)

    # -- pass 1 ------------------------------------------------------------------------------

    def moments(self) -> dict[tuple[str, int], list[Moments]]:
        """Moments per (role, fold), one for each scale; computed once."""
        if self._moments is None:
            self._moments = self._visit_all_rows()
        return self._moments

    def _visit_all_rows(self) -> dict[tuple[str, int], list[Moments]]:
        zero = [Moments.zero(self.basis.n_features)] * self.basis.n_scales
        summarise = (
            Moments.from_bounded_rows
            if getattr(self.basis, "bounded", False)
            else Moments.from_rows
        )
        found = {}
        done, n = 0, sum(map(self.folded.size, self.folded.rows))
        for role, folds in self.folded.rows.items():
            for k, index in enumerate(folds):

                def visit(block: slice, role: str = role, k: int = k) -> list[Moments]:
                    out = list(zero)
                    for j, features in self._features(role, k, block):
                        out[j] = summarise(features)
                    return out

                blocks = row_blocks(len(index), self.block_size)
                found[role, k] = fold(visit, blocks, _add_lists, zero, self.n_threads)
                done += len(index)
                self._tick("moments", done / n)
        return found

    def _features(self, role: str, k: int, block: slice) -> Any:
        """(scale, features) of one block, from the cache where there is one."""
        if self._cache is None:
            return self.basis.scales(self.X[self.folded.rows[role][k][block]])
        key = (role, k, block.start)
        if key not in self._cache:
            rows = self.X[self.folded.rows[role][k][block]]
            self._cache[key] = [(j, f.copy()) for j, f in self.basis.scales(rows)]
        return self._cache[key]

    # -- solving -----------------------------------------------------------------------------

    def fit_folds(self) -> list[Fitted]:
        """Every candidate with each fold left out in turn.

        A candidate whose risk has no minimum is left NaN. Where the grid lacks eta = 0, the one
        that always has a minimum, it is corrected instead (see :mod:`pnuauc._solvers`).
        """
        n_scales = self.shape[0]
        self.moments()  # before any thread asks for them
        jobs = [(out, j) for out in range(self.folded.n_folds) for j in range(n_scales)]

        def solve(job: tuple[int, int]) -> Fitted:
            moments = self._training(*job)
            return _solve_all(self.risks, self.alphas, moments, self._indefinite)

        solved = self._map(solve, jobs)
        self._tick("solving", 1.0)
        return [
            _stack(solved[k * n_scales : (k + 1) * n_scales]) for k in range(self.folded.n_folds)
        ]

    def fit_all(self, kept: NDArray[np.intp]) -> Fitted:
        """The kept candidates on all rows, corrected where there is no minimum."""
        places = np.array(np.unravel_index(kept, self.shape)).T
        jobs = sorted({(int(j), int(e)) for j, e, _ in places})

        def solve(job: tuple[int, int]) -> Fitted:
            j, e = job
            moments = self._training(None, j)
            return _solve_all([self.risks[e]], self.alphas, moments, "correct")

        solved = dict(zip(jobs, self._map(solve, jobs), strict=True))
        rows = [(solved[int(j), int(e)], int(a)) for j, e, a in places]
        return Fitted(
            np.array([f.coef[a] for f, a in rows]),
            np.array([f.spread[a] for f, a in rows]),
            np.array([f.corrected[a] for f, a in rows]),
        )

    @property
    def _indefinite(self) -> str:
        """What to do with a risk that has no minimum: with other etas to choose from, drop it."""
        return "drop" if any(risk.roles == "PN" for risk in self.risks) else "correct"

    def _map(self, function: Callable[[Any], Fitted], jobs: list[Any]) -> list[Fitted]:
        # many small systems: BLAS threads cost more than they give, threads over systems do not
        with threadpool_limits(1, user_api="blas"):
            if self.n_threads <= 1:
                return [function(job) for job in jobs]
            with ThreadPoolExecutor(self.n_threads) as pool:
                return list(pool.map(function, jobs))

    def _training(self, out: int | None, scale: int) -> dict[str, Moments]:
        """Moments by role of all folds but ``out``, for one scale."""
        total: dict[str, Moments] = {}
        for (role, k), parts in self.moments().items():
            if k != out and parts[scale].n:
                total[role] = total[role] + parts[scale] if role in total else parts[scale]
        return total

    # -- pass 2 ------------------------------------------------------------------------------

    def held_out(self, fitted: list[Fitted]) -> list[FoldCounts]:
        """How the held-out rows of each fold rank under every candidate of that fold."""
        results = []
        for k in range(self.folded.n_folds):
            results.append(self._count_fold(k, fitted[k].coef))
            self._tick("validation", (k + 1) / self.folded.n_folds)
        return results

    def _count_fold(self, k: int, coef: NDArray[np.float64]) -> FoldCounts:
        """Candidates without coefficients are not scored; all their scores are zero."""
        n_scales = self.basis.n_scales
        usable = np.flatnonzero(~np.isnan(coef[:, 0]))
        scale = usable // (len(coef) // n_scales)
        places = [usable[scale == j] for j in range(n_scales)]
        weights = [coef[index].astype(self.X.dtype) for index in places]

        def scores(role: str, block: slice) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
            """(candidates of a scale, their scores on a block, shape (candidates, rows))."""
            for j, features in self._features(role, k, block):
                if isinstance(features, np.ndarray):
                    yield places[j], weights[j] @ features.T
                else:
                    yield places[j], np.ascontiguousarray((features @ weights[j].T).T)

        def whole(role: str) -> NDArray[Any]:
            """Scores of all rows of a role, shape (n_candidates, rows)."""
            n = len(self.folded.rows[role][k]) if role in self.folded.rows else 0
            out = np.zeros((len(coef), n), dtype=self.X.dtype)
            for block in row_blocks(n, self.block_size):
                for index, block_scores in scores(role, block):
                    out[index, block] = block_scores
            return out

        positive, negative = whole("P"), whole("N")
        if "U" not in self.folded.rows:
            return FoldCounts.from_labelled(positive, negative)
        marks = with_next_above(np.concatenate([positive, negative], axis=1))

        def count(block: slice) -> NDArray[np.int64]:
            # scale by scale: the scores of one scale still sit in the cache when they are sorted
            found = np.zeros(marks.shape, dtype=np.int64)
            for index, block_scores in scores("U", block):
                found[index] = count_below(marks[index], block_scores)
            return found

        n_unlabeled = len(self.folded.rows["U"][k])
        zero = np.zeros(marks.shape, dtype=np.int64)
        blocks = row_blocks(n_unlabeled, self.block_size)
        total = fold(count, blocks, np.add, zero, self.n_threads)
        below, upto = np.split(total, 2, axis=1)
        return FoldCounts(positive, negative, below, upto, n_unlabeled)


def _add_lists(a: list[Moments], b: list[Moments]) -> list[Moments]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _stack(parts: list[Fitted]) -> Fitted:
    return Fitted(
        np.concatenate([p.coef for p in parts]),
        np.concatenate([p.spread for p in parts]),
        np.concatenate([p.corrected for p in parts]),
    )


def _solve_all(
    risks: Sequence[Risk], alphas: Sequence[float], moments: dict[str, Moments], indefinite: str
) -> Fitted:
    """All (eta, alpha) of one scale on one training set; ``indefinite`` is "drop" or "correct"."""
    b = len(next(iter(moments.values())).mean)
    coef = np.full((len(risks), len(alphas), b), np.nan)
    corrected = np.ones((len(risks), len(alphas)), dtype=bool)
    counts = {role: m.n for role, m in moments.items()}
    usable = [i for i, r in enumerate(risks) if indefinite != "drop" or r.has_roles(counts)]
    forms = quadratic_forms([risks[i] for i in usable], moments)
    for i, form in zip(usable, forms, strict=True):
        if indefinite == "drop" and not form.convex and not form.is_semidefinite():
            continue
        if indefinite == "drop":
            form = replace(form, convex=True)
        solution = solve_ridge(form, alphas)
        coef[i], corrected[i] = solution.coef, bool(solution.correction)
    flat = coef.reshape(-1, b)
    total = Moments.zero(b)
    for part in moments.values():
        total = total + part
    variance = np.einsum("cb,cb->c", flat @ total.covariance, flat)
    return Fitted(flat, np.sqrt(np.maximum(variance, 0.0)), corrected.ravel())
