"""The AUC of any model's scores, and the comparison of columns of them, two by two."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from pnuauc._utils.label_values import RoleCounts
from pnuauc.engines import ScoreColumns, count_pairs
from pnuauc.evaluation import ScoreCounts, auc_from_counts
from pnuauc.evaluation.compare import compare_counted, holm
from pnuauc.evaluation.estimate import design_effects
from pnuauc.evaluation.sensitivity import sensitivity_from_counts
from pnuauc.exceptions import InputError
from pnuauc.io.columns import Column, numbers
from pnuauc.io.draw import RowKeys, draw_rows
from pnuauc.io.frames import as_table
from pnuauc.io.labels import LabelReader
from pnuauc.io.sources import Batch, MemorySource, Source, is_source
from pnuauc.io.write import CHANCE_COLUMNS, GROUP_COLUMN, SCORE_COLUMNS
from pnuauc.labels import UNLABELED, Roles
from pnuauc.prior import ClassPrior
from pnuauc.study.evidence import PRIOR_ROWS, find_prior, label_findings, prior_findings
from pnuauc.study.findings import ColumnComparison, Evaluation, ScoreFinding
from pnuauc.study.rows import (
    ColumnRoles,
    LabelCodes,
    collected,
    grouping_of,
    need_column,
    read_source_labels,
    repeated_ids,
)

#: Priors at which the AUC is given when none is known.
_SHOWN_PRIORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def evaluate_table(
    data: Any,
    label: str,
    scores: Sequence[str],
    *,
    codes: LabelCodes | None = None,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    groups: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> Evaluation:
    """AUC of each score column by every method the roles allow; columns are compared in pairs.

    Rows that share a value of one of ``groups`` belong together, or else rows of one id; held-out
    scores of a fit have the groups of the fit. Scores that a model gave to rows that it was fitted
    to (column ``seen``) are refused. The p-values of more than two columns are also given adjusted
    for their number, by Holm.

    Without a prior, data with P, N and U have it estimated from the first score column; data
    without negatives or positives only if it is "auto", for there an assumption carries it.
    Otherwise the AUC is given for a range of priors.
    """
    source = data if is_source(data) else MemorySource(as_table(data))
    names = list(dict.fromkeys(scores))
    if not groups and GROUP_COLUMN in source.schema.names:
        groups = (GROUP_COLUMN,)
    columns = ColumnRoles(label, tuple(ids), groups=tuple(groups))
    if not names:
        raise InputError("Give one score column, or several to compare.")
    messages: list[str] = []
    with collected(messages):
        reader, roles = read_source_labels(source, label, codes or LabelCodes())
        for name in (*names, *columns.apart):
            need_column(name, source.schema.names)
        _refuse_seen(source, reader, names)
        chosen = source.select(list(dict.fromkeys([label, *names, *columns.apart])))
        # refuses the first bad cell
        chosen.reduce(partial(_n_scored, names=names), operator.add, 0)
        keys = RowKeys(columns.apart[:1] or tuple(names), named=bool(columns.apart))
        drawn = draw_rows(chosen, keys, reader, PRIOR_ROWS, roles.n_unlabeled)
        rows = Roles(drawn.codes, roles.positive_label, roles.negative_label)
        values = _read_scores(Batch(drawn.table), names)
        grouping, together = grouping_of(drawn, columns)
        if grouping and not columns.grouping:
            messages.append(repeated_ids(grouping, together))
        given = None if isinstance(prior, str) and prior == "auto" else prior
        few = min(rows.n_positive or 2, rows.n_negative or 2) < 2
        known = None
        if given is not None or (not few and (prior is not None or rows.setting == "PNU")):
            n = roles.n_unlabeled
            X = values[0][:, None]
            known = find_prior(given, X, rows, level=level, n_unlabeled=n, groups=together)
        labelled = np.stack([drawn.codes, *values])[:, drawn.codes != UNLABELED]
        scored = ScoreColumns(reader, partial(_read_scores, names=names))
        counted = count_pairs(chosen, scored, labelled)

        def effects(of: Any) -> tuple[float, float, float] | None:
            return None if together is None else design_effects(rows, of, together)

        models, comparisons = {}, []
        for (i, j), pair, cells in counted:
            for k, counts in zip((i, j), pair.score_counts(cells), strict=True):
                if names[k] not in models:
                    own = effects(values[k])
                    models[names[k]] = _one(roles, counts, known, method, level, own)
            if i != j:
                own = effects(rankdata(values[i]) - rankdata(values[j]))
                result = compare_counted(pair, cells, known, method, level, design_effects=own)
                comparisons.append(ColumnComparison(**vars(result), a=names[i], b=names[j]))
        adjusted = holm([result.p_value for result in comparisons]).tolist()
    comparisons = [
        replace(result, p_adjusted=p) for result, p in zip(comparisons, adjusted, strict=True)
    ]
    return Evaluation(
        label_findings(roles),
        prior_findings(known, roles),
        models,
        comparisons[0] if len(comparisons) == 1 else None,
        comparisons,
        messages,
    )


def _refuse_seen(source: Source, labels: LabelReader, names: Sequence[str]) -> None:
    """Refuse a model's score on rows that it was fitted to, as ``pnuauc score`` marked them."""
    if "seen" not in source.schema.names or not {*SCORE_COLUMNS, *CHANCE_COLUMNS} & {*names}:
        return
    marked = source.select([labels.label, "seen"])
    n = marked.reduce(partial(_count_seen, labels=labels), operator.add, 0)
    if n:
        raise InputError(
            f"{n:,} labelled rows were labelled when this model was fitted (column seen): their "
            "score knows the label, and an AUC of them would be too high. Judge the held-out "
            "scores that the fit wrote beside the model, in the file that ends in .heldout.csv; "
            "other scores of these rows are compared with them when both files are given and "
            "joined by id. New rows that equal a labelled one in every column look the same: if "
            "all of these are new, leave the column seen out."
        )


def _count_seen(batch: Batch, labels: LabelReader) -> int:
    cells = batch.table.column("seen").cast("string").to_pylist()
    seen = np.array([str(cell).strip().lower() in {"true", "1"} for cell in cells], dtype=bool)
    return int((seen & (labels(batch.table) != UNLABELED)).sum())


def _read_scores(batch: Batch, names: Sequence[str]) -> list[NDArray[np.float64]]:
    """Scores of the rows, shape (n,) each; empty cells are refused."""
    found = []
    for name in names:
        values = numbers(Column(name, "number", ""), batch.table.column(name), batch.first_row)
        missing = np.flatnonzero(np.isnan(values))
        if len(missing):
            where = "" if batch.name == "table" else f" of '{batch.name}'"
            raise InputError(
                f"Score column '{name}' has {len(missing)} empty cells (first in row "
                f"{batch.first_row + int(missing[0]) + 1}{where}); score these rows or leave them "
                "out."
            )
        found.append(values)
    return found


def _n_scored(batch: Batch, names: Sequence[str]) -> int:
    return len(_read_scores(batch, names)[0])


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
