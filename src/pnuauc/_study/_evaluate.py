"""The AUC of any model's scores, and the comparison of two columns of them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._prior import ClassPrior
from pnuauc._role_counts import RoleCounts
from pnuauc._sources import Batch, MemorySource, RowKeys, Source, draw_rows, is_source
from pnuauc._study._census import LabelReader, read_source_labels
from pnuauc._study._data import LabelCodes, collected, label_values
from pnuauc._study._findings import label_findings
from pnuauc._study._prior import PRIOR_ROWS, find_prior, prior_findings
from pnuauc.exceptions import InputError
from pnuauc.io import as_table
from pnuauc.io._columns import Column, numbers
from pnuauc.labels import UNLABELED, Roles
from pnuauc.metrics import ScoreCounts, auc_from_counts
from pnuauc.metrics._compare import LabeledPairs, PairCounts, compare_counted
from pnuauc.metrics._sensitivity import sensitivity_from_counts

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
) -> dict[str, Any]:
    """AUC of each score column by every method the roles allow; two columns are compared.

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
        chosen = source.select(list(dict.fromkeys([label, *names])))
        columns = _ScoreColumns(tuple(names), reader)
        columns.check(chosen)
        drawn = draw_rows(chosen, RowKeys(tuple(names)), reader, PRIOR_ROWS, roles.n_unlabeled)
        rows = Roles(drawn.codes, roles.positive_label, roles.negative_label)
        values = columns.read(Batch(drawn.table))
        known = _known_prior(prior, estimate_prior, values[0], rows, roles.n_unlabeled, level)
        labelled = np.flatnonzero(drawn.codes != UNLABELED)
        pair = LabeledPairs(rows.take(labelled), values[0][labelled], values[-1][labelled])
        counted = columns.count(chosen, pair)
        models = {
            name: _one(roles, _counts(pair, counted, j), known, method, level)
            for j, name in enumerate(names)
        }
        comparison = _compare(names, pair, counted, known, method, level)
    return {
        "labels": label_findings(roles),
        "prior": prior_findings(known, roles),
        "scores": models,
        "comparison": comparison,
        "warnings": messages,
    }


@dataclass(frozen=True, eq=False)
class _ScoreColumns:
    """One or two columns of scores: read, and counted where they are."""

    names: tuple[str, ...]
    labels: LabelReader

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

    def count(self, source: Source, pair: LabeledPairs) -> PairCounts:
        """How all unlabelled rows lie among the labelled ones; one column counts as two alike."""
        nothing = pair.count(np.empty(0), np.empty(0))
        return source.reduce(
            functools.partial(_count, columns=self, pair=pair), operator.add, nothing
        )


def _add_empty(
    a: dict[str, tuple[int, str]], b: dict[str, tuple[int, str]]
) -> dict[str, tuple[int, str]]:
    return {**b, **a, **{k: (a[k][0] + b[k][0], a[k][1]) for k in a.keys() & b.keys()}}


def _count(batch: Batch, columns: _ScoreColumns, pair: LabeledPairs) -> PairCounts:
    scores = columns.read(batch)
    unlabeled = columns.labels(batch.table) == UNLABELED
    return pair.count(scores[0][unlabeled], scores[-1][unlabeled])


def _counts(pair: LabeledPairs, counted: PairCounts, j: int) -> ScoreCounts:
    """Counts of one column."""
    return replace(ScoreCounts.from_roles(pair.roles, pair.columns[j]), unlabeled=counted.cells[j])


def _names(scores: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(scores))
    if not 1 <= len(names) <= 2:
        raise InputError(f"Give one score column, or two to compare; got {len(names)}.")
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
    roles: RoleCounts, counts: ScoreCounts, prior: ClassPrior | None, method: str, level: float
) -> dict[str, Any]:
    out: dict[str, Any] = {"methods": {}}
    for name in ("pn", "pu", "nu", "combined", "pu_raw", "nu_raw"):
        try:
            estimate = auc_from_counts(counts, prior, name, level)
        except ValueError:
            continue
        if estimate.method == name:
            out["methods"][name] = estimate.to_dict()
    untold = method == "auto" and prior is None and roles.setting in {"PU", "NU"}
    out["auc"] = None if untold else auc_from_counts(counts, prior, method, level).to_dict()
    if untold or prior is not None:
        used = set() if prior is None else {round(prior.value, 4)}
        grid = sorted({*_SHOWN_PRIORS, *used})
        out["sensitivity"] = sensitivity_from_counts(counts, grid, level=level).to_dict()
    return out


def _compare(
    names: Sequence[str],
    pair: LabeledPairs,
    counted: PairCounts,
    prior: Any,
    method: str,
    level: float,
) -> dict[str, Any] | None:
    if len(names) < 2:
        return None
    result = compare_counted(pair, counted, prior, method, level)
    return {"a": names[0], "b": names[1], **result.to_dict()}
