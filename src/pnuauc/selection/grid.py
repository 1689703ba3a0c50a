"""The trained grid: the one place where candidates are fitted and judged."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from pnuauc._utils.show import ShownAsTable
from pnuauc._utils.threads import one_blas_thread
from pnuauc.core.design import Design, is_matrix_free, ranking_threshold, thinned
from pnuauc.core.losses import Loss, get_loss
from pnuauc.core.risks import pnu_risk
from pnuauc.core.rows import (
    Rows,
    RowsElsewhere,
    array_rows,
    block_length,
    count_rows,
    map_blocks,
)
from pnuauc.core.solvers import LinearModel, check_alpha
from pnuauc.exceptions import MissingRoleError
from pnuauc.selection.choice import (
    Candidates,
    Choice,
    Gain,
    SelectionReport,
    average,
    explain,
    held_out_gain,
    pick,
)
from pnuauc.selection.criterion import Criterion, FoldCounts, validation_risks
from pnuauc.selection.folds import FoldedRows
from pnuauc.selection.heldout import count_held_out
from pnuauc.selection.trainers import Fitted, MomentsTrainer, RefitTrainer

#: Rows of the rarer labelled class below which a fold is judged by candidates that it had no part
#: in choosing at all, and unlabelled rows by which they are chosen. What the other folds prefer
#: is 1.3 points of AUC too optimistic with five positives, .2 with ten and with twenty.
_FEW_ROWS, _JUDGING_ROWS = 50, 2000


@dataclass(eq=False, repr=False)
class TrainedGrid:
    """All combinations of scale, eta and ridge, each trained without one fold and judged on it.

    Parameters
    ----------
    rows : dict of role letter ("P", "N", "U") -> visitor of its rows, with folds
    basis : fitted basis; its scales are candidates
    etas : weights of U in the PNU risk; with two roles the one that uses both (PN 0, PU 1, NU -1)
    alphas : ridges
    prior : share of positives among the unlabelled rows, or None
    sample : as ``rows``: those that thresholds are read off

    Attributes
    ----------
    candidates : Candidates
    fitted, counts : lists of Fitted and of FoldCounts
        After :meth:`train`: the candidates trained without each fold, and how its rows rank.
    usable : ndarray of bool, shape (n_candidates,)
        Whether a candidate had a minimum on every fold.
    """

    rows: Mapping[str, Rows]
    basis: Any
    etas: Sequence[float]
    alphas: Sequence[float]
    prior: float | None
    n_folds: int
    sample: Mapping[str, Rows]
    loss: str | Loss = "squared"
    n_threads: int = 1
    max_iter: int = 500
    tol: float = 1e-6

    def __post_init__(self) -> None:
        self.risks = [pnu_risk(float(eta), self.prior) for eta in self.etas]
        self.alphas = [check_alpha(alpha) for alpha in self.alphas]
        self.candidates = Candidates.from_grid(self.basis.scale_widths, self.etas, self.alphas)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        folds: FoldedRows,
        basis: Any,
        etas: Sequence[float],
        alphas: Sequence[float],
        prior: float | None,
        *,
        weight: NDArray[np.float64] | None = None,
        block_size: int | None = None,
        n_threads: int = 1,
        tick: Callable[[str, float], None] = lambda stage, share: None,
        elsewhere: RowsElsewhere | None = None,
        **options: Any,
    ) -> TrainedGrid:
        """A grid on rows in memory, X of shape (n, d), dealt to folds by :func:`deal_folds`.

        With ``elsewhere`` the unlabelled rows in memory are a draw of those that are visited.
        """
        total, done = 2 * sum(map(folds.size, folds.rows)), 0

        def meter(n: int) -> None:  # two visits of every row are the whole work
            nonlocal done
            done += n
            if done <= total:
                tick("rows", done / total)

        rows = array_rows(
            X, folds.rows, basis, weight, block_size=block_size, n_threads=n_threads, seen=meter
        )
        visited: dict[str, Rows] = dict(rows)
        if elsewhere is not None:
            visited["U"] = elsewhere.rows(folds.n_folds, block_length(X, basis))
        parts = visited, basis, etas, alphas, prior, folds.n_folds, rows
        return cls(*parts, n_threads=n_threads, **options)

    def __repr__(self) -> str:
        size = f"{len(self.candidates)} candidates, {self.n_folds} folds"
        return f"TrainedGrid({size}, {self.setting})"

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_scales, n_etas, n_alphas)."""
        return self.basis.n_scales, len(self.risks), len(self.alphas)

    @property
    def setting(self) -> str:
        """Letters of the roles that have rows: "PN", "PU", "NU" or "PNU"."""
        return "".join(role for role in "PNU" if role in self.rows)

    def train(self) -> TrainedGrid:
        """Fit every candidate without each fold, and judge it on that fold."""
        loss, parts = get_loss(self.loss), (self.rows, self.basis, self.risks, self.alphas)
        self._trainer: MomentsTrainer | RefitTrainer
        if loss.name == "squared" and not is_matrix_free(self.basis):
            self._trainer = MomentsTrainer(*parts)
        else:
            self._trainer = RefitTrainer(*parts, loss, self.max_iter, self.tol)
        self.fitted: list[Fitted] = self._train_without([(k,) for k in range(self.n_folds)])
        self.counts: list[FoldCounts] = count_held_out(
            self.rows, self.basis, dict(enumerate(self.fitted))
        )
        self.usable = _have_minimum(self.fitted)
        return self

    def _train_without(self, folds: Sequence[tuple[int, ...]]) -> list[Fitted]:
        """Every candidate, once for each of these sets of folds that are left out."""
        n_scales, n_etas, _ = self.shape
        parts = self._run([(out, j, range(n_etas)) for out in folds for j in range(n_scales)])
        ends = range(n_scales, len(parts) + 1, n_scales)
        return [Fitted.joined(parts[end - n_scales : end]) for end in ends]

    def choose(
        self, selection: str = "average", validation: str = "combined", temperature: float = 0.5
    ) -> ChosenModel:
        """The model that the validation prefers, fitted on all rows.

        Parameters
        ----------
        selection : "average" (all candidates, weighted) or "paper" (the single best)
        validation : a criterion (see :func:`validation_risks`), or "pn": only candidates of
            eta = 0, judged by labelled pairs alone
        temperature : of the average, in standard errors of a validation risk
        """
        criterion = self.judge(validation)
        candidates = self.candidates
        if selection == "paper":
            one = functools.partial(pick, candidates=candidates)
            return ChosenModel(self, criterion, validation, lambda c: one(c.mean), None)
        decide = functools.partial(average, candidates=candidates, temperature=temperature)
        gain = held_out_gain(criterion, candidates, temperature)
        return ChosenModel(self, criterion, validation, decide, gain)

    def judge(self, validation: str) -> Criterion:
        """One validation risk per candidate and fold."""
        return self._judged(self.counts, validation, self.usable)

    def judge_apart(self, fold: int, validation: str) -> Criterion:
        """The same by the other folds, of candidates that were trained without ``fold`` as well.

        In :meth:`judge` the candidates that another fold judges were trained on this one, so that
        those win under which rows of this fold and of the others are alike: what is chosen
        without looking at a fold still fits it. Here no row of the fold has any part.
        """
        others = [k for k in range(self.n_folds) if k != fold]
        fitted = {k: self._without_two[min(k, fold), max(k, fold)] for k in others}
        counts = count_held_out(self._judging, self.basis, fitted)
        return self._judged(
            counts, validation, _have_minimum([*fitted.values(), self.fitted[fold]])
        )

    @functools.cached_property
    def _without_two(self) -> dict[tuple[int, ...], Fitted]:
        """Candidates trained without two folds, for every pair of folds."""
        pairs = list(itertools.combinations(range(self.n_folds), 2))
        return dict(zip(pairs, self._train_without(pairs), strict=True))

    @functools.cached_property
    def _judging(self) -> dict[str, Rows]:
        """Labelled rows, and the unlabelled ones that are needed to rank them."""
        rows = dict(self.sample)
        if "U" in rows:
            rows["U"] = thinned(rows["U"], _JUDGING_ROWS)
        return rows

    def _judged(
        self, counts: Sequence[FoldCounts], validation: str, usable: NDArray[np.bool_]
    ) -> Criterion:
        setting, prior = self.setting, self.prior
        if validation == "pn":
            usable, setting, prior = usable & (self.candidates.eta == 0), "PN", None
            validation = "simple"
        return validation_risks(counts, self.candidates.eta, setting, prior, validation, usable)

    def fit_all(self, kept: NDArray[np.intp]) -> Fitted:
        """The given candidates on all rows, corrected where there is no minimum."""
        scale, eta, ridge = np.unravel_index(kept, self.shape)
        jobs = [((), int(j), np.unique(eta[scale == j]).tolist()) for j in np.unique(scale)]
        place = {
            (j, e): first * len(self.alphas)
            for first, (j, e) in enumerate((j, e) for _, j, etas in jobs for e in etas)
        }
        everything = Fitted.joined(self._run(jobs))
        return everything.take(
            np.array([place[j, e] + a for j, e, a in zip(scale, eta, ridge, strict=True)])
        )

    def _run(self, jobs: Sequence[Any]) -> list[Fitted]:
        # many small systems: BLAS threads cost more than they give, threads over systems do not
        with one_blas_thread():
            return list(map_blocks(lambda job: self._trainer.train(*job), jobs, self.n_threads))

    def threshold(self, model: LinearModel) -> float:
        """The score that a share ``prior`` of the unlabelled rows exceeds."""
        return ranking_threshold(Design(self.sample, model.basis), model.coef, self.prior)


def _have_minimum(fitted: Sequence[Fitted]) -> NDArray[np.bool_]:
    """Whether a candidate had a minimum in every one of these fits, shape (n_candidates,)."""
    return np.asarray(np.all([~np.isnan(f.coef[:, 0]) for f in fitted], axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class ChosenModel(ShownAsTable):
    """What :meth:`TrainedGrid.choose` answers: models and their report."""

    grid: TrainedGrid
    criterion: Criterion
    validation: str
    decide: Callable[[Criterion], Choice]
    gain: Gain | None

    def _shown(self) -> list[tuple[str, Any]]:
        best = self.grid.candidates.parameters(int(self.choice.kept[0]))
        shown = {"grid": self.grid, "n_kept": len(self.choice.kept), "best": best}
        return list(shown.items())

    @functools.cached_property
    def choice(self) -> Choice:
        """The kept candidates and their weights, by all folds."""
        return self.decide(self.criterion)

    @functools.cached_property
    def _fitted(self) -> Fitted:
        return self.grid.fit_all(self.choice.kept)

    @functools.cached_property
    def model(self) -> LinearModel:
        """The kept candidates' standardised scores, averaged: sum_c weight_c w_c / spread_c."""
        return self._combined(self._fitted, self.choice)

    def fold_models(self) -> list[LinearModel]:
        """For each fold the candidates trained without it, kept and weighted without it too.

        Weights by all folds would have seen the rows that these models are judged by, see
        :meth:`TrainedGrid.judge_apart`. With many rows, or where two folds less leave nothing to
        train on, the candidates are those that the other folds prefer.
        """
        models = []
        for k, fitted in enumerate(self.grid.fitted):
            rest = self._without(k)
            choice = self.choice if np.isnan(rest.mean).all() else self.decide(rest)
            models.append(self._combined(fitted.take(choice.kept), choice))
        return models

    def _without(self, fold: int) -> Criterion:
        rows = self.grid.sample
        rarer = min(count_rows(rows[role]) for role in "PN" if role in rows)
        if self.grid.n_folds > 2 and rarer < _FEW_ROWS:
            with contextlib.suppress(MissingRoleError):
                apart = self.grid.judge_apart(fold, self.validation)
                if not np.isnan(apart.mean).all():
                    return apart
        return self.criterion.without(fold)

    def _combined(self, fitted: Fitted, choice: Choice) -> LinearModel:
        kept = choice.kept
        scale = np.unravel_index(kept, self.grid.shape)[0]
        # one candidate keeps its own scale; several are brought to one scale first
        spread = np.where(fitted.spread > 0, fitted.spread, 1.0) if len(kept) > 1 else 1.0
        shares = (choice.weights / spread)[:, None] * fitted.coef
        wanted = np.unique(scale)
        coef = np.concatenate([shares[scale == j].sum(axis=0) for j in wanted])
        basis = self.grid.basis.keep(wanted.tolist())
        return LinearModel(basis, coef, self.best.parameters, bool(self.n_corrected))

    @functools.cached_property
    def best(self) -> LinearModel:
        """The candidate of lowest validation risk alone."""
        index, fitted = int(self.choice.kept[0]), self._fitted
        basis = self.grid.basis.scale(int(np.unravel_index(index, self.grid.shape)[0]))
        parameters = self.grid.candidates.parameters(index)
        return LinearModel(basis, fitted.coef[0], parameters, bool(fitted.corrected[0]))

    @property
    def n_corrected(self) -> int:
        """Kept candidates whose empirical risk had no minimum and was corrected."""
        return int(self._fitted.corrected.sum())

    @property
    def n_iter(self) -> int:
        return self._fitted.n_iter

    @functools.cached_property
    def report(self) -> SelectionReport:
        """Why this model, and what the unlabelled rows changed."""
        return explain(self.criterion, self.grid.candidates, self.choice, self.gain)

    def table(self) -> dict[str, Any]:
        """Every candidate with its validation risks and weight: ``cv_results_``."""
        mean, candidates = self.criterion.mean, self.grid.candidates
        rank = rankdata(np.where(np.isnan(mean), np.inf, mean), method="min")
        weight = np.zeros(len(mean))
        weight[self.choice.kept] = self.choice.weights
        return {
            "param_width": candidates.width,
            "param_eta": candidates.eta,
            "param_alpha": candidates.alpha,
            "params": [candidates.parameters(i) for i in range(len(mean))],
            **{f"split{k}_test_risk": r for k, r in enumerate(self.criterion.fold_risks)},
            "mean_test_risk": mean,
            "std_test_risk": self.criterion.std,
            "mean_test_score": 1.0 - mean,
            "rank_test_risk": rank.astype(np.int32),
            "weight": weight,
        }
