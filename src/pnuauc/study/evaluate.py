"""The AUC of any model's scores, and the comparison of columns of them, two by two."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from pnuauc._utils.label_values import RoleCounts
from pnuauc.evaluation import ScoreCounts, auc_from_counts
from pnuauc.evaluation.compare import LabeledPairs, PairCounts, compare_counted, holm
from pnuauc.evaluation.estimate import design_effects
from pnuauc.evaluation.sensitivity import sensitivity_from_counts
from pnuauc.exceptions import InputError
from pnuauc.io.columns import Column, numbers
from pnuauc.io.draw import RowKeys, draw_rows
from pnuauc.io.readers import as_table
from pnuauc.io.sources import Batch, MemorySource, Source, is_source
from pnuauc.io.write import CHANCE_COLUMNS, SCORE_COLUMNS
from pnuauc.labels import UNLABELED, Roles
from pnuauc.prior import ClassPrior
from pnuauc.study.evidence import PRIOR_ROWS, find_prior, label_findings, prior_findings
from pnuauc.study.findings import ColumnComparison, Evaluation, ScoreFinding
from pnuauc.study.rows import (
    LabelCodes,
    LabelReader,
    collected,
    groups_of,
    label_values,
    read_source_labels,
)

__all__ = ["evaluate_table"]

#: Priors at which the AUC is given when none is known.
_SHOWN_PRIORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def evaluate_table(
    data: Any,
    label: str,
    scores: Sequence[str],
    *,
    codes: LabelCodes | None = None,
    prior: float | tuple[float, float] | None = None,
    estimate_prior: bool = False,
    method: str = "auto",
    level: float = 0.95,
    groups: Sequence[str] = (),
) -> Evaluation:
    """AUC of each score column by every method the roles allow; columns are compared in pairs.

    Rows that share a value of one of ``groups`` belong together. Scores that a model gave to rows
    that it was fitted to (column ``seen``) are refused. The p-values of more than two columns are
    also given adjusted for their number, by Holm.

    Without a prior, data with P, N and U have it estimated from the first score column (energy
    distance of its values); data without negatives or positives only if ``estimate_prior``, for
    there an assumption carries it. Otherwise the AUC is given for a range of priors.
    """
    source = data if is_source(data) else MemorySource(as_table(data))
    messages: list[str] = []
    with collected(messages):
        reader, roles = read_source_labels(source, label, codes or LabelCodes())
        names = _names(scores)
        for name in names:  # says which columns there are, if this is not one
            label_values(source.schema.empty_table(), name)
        _refuse_seen(source, reader, names)
        for name in groups:
            label_values(source.schema.empty_table(), name)
        chosen = source.select(list(dict.fromkeys([label, *names, *groups])))
        columns = _ScoreColumns(tuple(names), reader)
        columns.check(chosen)
        keys = RowKeys(tuple(groups[:1]) or tuple(names), named=bool(groups))
        drawn = draw_rows(chosen, keys, reader, PRIOR_ROWS, roles.n_unlabeled)
        rows = Roles(drawn.codes, roles.positive_label, roles.negative_label)
        values = columns.read(Batch(drawn.table))
        known = _known_prior(prior, estimate_prior, values[0], rows, roles.n_unlabeled, level)
        labelled = np.flatnonzero(drawn.codes != UNLABELED)
        known_rows = rows.take(labelled)
        pairs = [
            LabeledPairs(known_rows, (values[i][labelled], values[j][labelled]))
            for i, j in columns.pairs
        ]
        counted = columns.count(chosen, pairs)
        together = groups_of(drawn.table, groups) if groups else None
        models = {
            name: _one(
                roles,
                columns.counts(pairs, counted, j),
                known,
                method,
                level,
                _effects(rows, values[j], together),
            )
            for j, name in enumerate(names)
        }
        effects = [
            _effects(rows, rankdata(values[i]) - rankdata(values[j]), together)
            for i, j in columns.pairs
        ]
        comparisons = _compare(columns, pairs, counted, known, method, level, effects)
    return Evaluation(
        label_findings(roles),
        prior_findings(known, roles),
        models,
        comparisons[0] if len(comparisons) == 1 else None,
        comparisons,
        messages,
    )


def _effects(rows: Roles, values: Any, groups: Any) -> tuple[float, float, float] | None:
    return None if groups is None else design_effects(rows, values, groups)


def _refuse_seen(source: Source, labels: LabelReader, names: Sequence[str]) -> None:
    """Refuse a model's score on rows that it was fitted to, as ``pnuauc score`` marked them."""
    if "seen" not in source.schema.names or not {*SCORE_COLUMNS, *CHANCE_COLUMNS} & {*names}:
        return
    marked = source.select([labels.label, "seen"])
    n = marked.reduce(functools.partial(_count_seen, labels=labels), operator.add, 0)
    if n:
        raise InputError(
            f"{n:,} labelled rows were labelled when this model was fitted (column seen): their "
            "score knows the label, and an AUC of them would be too high. Judge the held-out "
            "scores that the fit wrote beside the model, in the file that ends in .heldout.csv; "
            "other scores of these rows are compared with them when both files are given and "
            "joined by id."
        )


def _count_seen(batch: Batch, labels: LabelReader) -> int:
    cells = batch.table.column("seen").cast("string").to_pylist()
    seen = np.array([str(cell).strip().lower() in {"true", "1"} for cell in cells], dtype=bool)
    return int((seen & (labels(batch.table) != UNLABELED)).sum())


@dataclass(frozen=True, eq=False)
class _ScoreColumns:
    """Columns of scores: read, and counted where they are, two by two."""

    names: tuple[str, ...]
    labels: LabelReader

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Numbers of the columns of every pair; one column counts as two alike."""
        return list(itertools.combinations(range(len(self.names)), 2)) or [(0, 0)]

    def read(self, batch: Batch) -> list[NDArray[np.float64]]:
        """Scores of the rows, shape (n,) each."""
        return [
            numbers(Column(name, "number", ""), batch.table.column(name), batch.first_row)
            for name in self.names
        ]

    def check(self, source: Source) -> None:
        """Refuse empty cells; the message says how many there are and where the first is."""
        nothing: dict[str, tuple[int, str]] = {}
        for name, (n, first) in source.reduce(self._empty, _add_empty, nothing).items():
            raise InputError(
                f"Score column '{name}' has {n} empty cells (first in {first}); score these rows "
                "or leave them out."
            )

    def _empty(self, batch: Batch) -> dict[str, tuple[int, str]]:
        """By column the number of empty cells and the place of the first, where there are any."""
        where = "" if batch.name == "table" else f" of '{batch.name}'"
        found = {}
        for name, values in zip(self.names, self.read(batch), strict=True):
            missing = np.flatnonzero(np.isnan(values))
            if len(missing):
                found[name] = len(missing), f"row {batch.first_row + int(missing[0]) + 1}{where}"
        return found

    def count(self, source: Source, pairs: list[LabeledPairs]) -> list[PairCounts]:
        """How all unlabelled rows lie among the labelled ones, for every pair of columns."""
        nothing = [pair.count(np.empty(0), np.empty(0)) for pair in pairs]
        return source.reduce(
            functools.partial(_count, columns=self, pairs=pairs), _add_counts, nothing
        )

    def counts(self, pairs: list[LabeledPairs], counted: list[PairCounts], j: int) -> ScoreCounts:
        """Counts of one column, from the first pair that it is in."""
        k, side = next((k, pair.index(j)) for k, pair in enumerate(self.pairs) if j in pair)
        own = ScoreCounts.from_roles(pairs[k].roles, pairs[k].columns[side])
        return replace(own, unlabeled=counted[k].cells[side])


def _add_empty(
    a: dict[str, tuple[int, str]], b: dict[str, tuple[int, str]]
) -> dict[str, tuple[int, str]]:
    return {**b, **a, **{k: (a[k][0] + b[k][0], a[k][1]) for k in a.keys() & b.keys()}}


def _count(batch: Batch, columns: _ScoreColumns, pairs: list[LabeledPairs]) -> list[PairCounts]:
    unlabeled = columns.labels(batch.table) == UNLABELED
    scores = [column[unlabeled] for column in columns.read(batch)]
    return [
        pair.count(scores[i], scores[j]) for pair, (i, j) in zip(pairs, columns.pairs, strict=True)
    ]


def _add_counts(a: list[PairCounts], b: list[PairCounts]) -> list[PairCounts]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _names(scores: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(scores))
    if not names:
        raise InputError("Give one score column, or several to compare.")
    return names


def _known_prior(
    given: Any,
    estimate: bool,
    first: NDArray[np.float64],
    roles: Roles,
    n_unlabeled: int,
    level: float,
) -> ClassPrior | None:
    few = min(roles.n_positive or 2, roles.n_negative or 2) < 2
    if given is None and (few or not (estimate or roles.setting == "PNU")):
        return None
    return find_prior(given, first[:, None], roles, level=level, n_unlabeled=n_unlabeled)


def _one(
    roles: RoleCounts,
    counts: ScoreCounts,
    prior: ClassPrior | None,
    method: str,
    level: float,
    effects: tuple[float, float, float] | None,
) -> ScoreFinding:
    out = ScoreFinding({})
    for name in ("pn", "pu", "nu", "combined", "pu_raw", "nu_raw"):
        try:
            estimate = auc_from_counts(counts, prior, name, level, design_effects=effects)
        except ValueError:
            continue
        if estimate.method == name:
            out.methods[name] = estimate
    untold = method == "auto" and prior is None and roles.setting in {"PU", "NU"}
    if not untold:
        out.auc = auc_from_counts(counts, prior, method, level, design_effects=effects)
    if untold or prior is not None:
        used = set() if prior is None else {round(prior.value, 4)}
        grid = sorted({*_SHOWN_PRIORS, *used})
        out.sensitivity = sensitivity_from_counts(counts, grid, level=level)
    return out


def _compare(
    columns: _ScoreColumns,
    pairs: list[LabeledPairs],
    counted: list[PairCounts],
    prior: Any,
    method: str,
    level: float,
    effects: Sequence[tuple[float, float, float] | None],
) -> list[ColumnComparison]:
    if len(columns.names) < 2:
        return []
    results = [
        compare_counted(pair, cells, prior, method, level, design_effects=own)
        for pair, cells, own in zip(pairs, counted, effects, strict=True)
    ]
    adjusted = holm([result.p_value for result in results]).tolist()
    return [
        ColumnComparison(**vars(result), a=columns.names[i], b=columns.names[j], p_adjusted=p)
        for (i, j), result, p in zip(columns.pairs, results, adjusted, strict=True)
    ]
