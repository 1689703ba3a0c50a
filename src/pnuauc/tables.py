"""What the command line does, from Python: fit a table, evaluate the scores of a table."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs

from pnuauc._utils.extras import need
from pnuauc._utils.label_values import did_you_mean
from pnuauc._utils.show import html_table
from pnuauc.exceptions import InputError
from pnuauc.io.sources import FileSource
from pnuauc.io.write import write_text, written_by_us
from pnuauc.model.files import save_model
from pnuauc.model.model import TableModel
from pnuauc.report.page import review_columns, to_html
from pnuauc.report.words import headline, next_steps, role_words, summary_rows, to_json, to_text
from pnuauc.study.evaluate import evaluate_table as _evaluate
from pnuauc.study.fit import FitSettings, Study, fit_study
from pnuauc.study.rows import ColumnRoles, LabelCodes

__all__ = ["FitSettings", "TableFit", "evaluate_table", "fit_table"]


class TableFit:
    """What :func:`fit_table` made of a table.

    Attributes
    ----------
    model : TableModel
        Scores any table with the same columns: ``model.score(table)``.
    findings : dict
        Everything there is to say: labels, prior, selection, AUC with interval, what the
        unlabelled rows changed, rows to review, warnings. The numbers of the report.
    ranker, encoder
        The fitted parts behind the model.
    held_out : pyarrow.Table
        Scores of rows by models that did not see them: id or row, label, fold, score, probability.
    """

    def __init__(self, study: Study) -> None:
        self.model: TableModel = study.model
        self._found = study.findings
        self.ranker = study.ranker
        self.encoder = study.encoder
        self.held_out = study.held_out

    @cached_property
    def findings(self) -> dict[str, Any]:
        return self._found.to_dict()

    @property
    def review(self) -> Any:
        """The unlabelled rows to look at next, highest score first, as a pandas frame."""
        return need("pandas").DataFrame(review_columns(self._found.top))

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the report: HTML, or the bare numbers where ``path`` ends in ``.json``.

        A file that pnuauc did not write is replaced only with ``overwrite``.
        """
        where = _writable(path, overwrite)
        as_json = where.suffix == ".json"
        write_text(where, to_json(self._found) if as_json else to_html(self._found))
        return where

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the model file, for :func:`pnuauc.load_model` and ``pnuauc score``."""
        where = _writable(path, overwrite)
        save_model(self.model, where)
        return where

    def __str__(self) -> str:
        return to_text(self._found)

    def __repr__(self) -> str:
        auc = self._found.auc
        quality = "AUC not estimated" if auc is None else f"AUC {auc.value:.3f}"
        return f"TableFit({role_words(self._found.labels)} rows, {quality})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Any]] = list(summary_rows(self._found))
        if self._found.warnings:
            rows.append(("Warnings", tuple(self._found.warnings)))
        rows.append(("What to do next", tuple(next_steps(self._found))))
        return html_table(" ".join(headline(self._found)), rows)


def _writable(path: str | os.PathLike[str], overwrite: bool) -> Path:
    where = Path(path)
    if where.exists() and not (overwrite or written_by_us(where)):
        raise InputError(
            f"'{where}' already exists and was not written by pnuauc; name another file, or "
            "replace it with overwrite=True."
        )
    return where


#: Options of the command line whose parameter has the name that scikit-learn gives it.
_OPTIONS = {
    "id": "ids",
    "group": "groups",
    "seed": "random_state",
    "jobs": "n_jobs",
    "centers": "n_centers",
    "max_unlabelled": "max_unlabeled",
}


def fit_table(
    data: Any,
    label: str = "label",
    *,
    ids: Sequence[str] = (),
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    embedding: Sequence[str] = (),
    groups: Sequence[str] = (),
    time: str | None = None,
    propensity: str | None = None,
    positive_label: Any = None,
    negative_label: Any = None,
    unlabeled_label: Any = None,
    prior: Any = None,
    name: str = "table",
    **settings: Any,
) -> TableFit:
    """Learn a ranking from a table: ``pnuauc fit`` as a function.

    Parameters
    ----------
    data : pandas, polars or pyarrow frame, a pair (CSR matrix, labels), or files
        Files are a path, a folder, a pattern or a list of these; they are visited, not loaded.
    label : str
        Column of labels: 1 positive, 0 negative, missing unlabelled.
    ids, drop, categorical : names of columns
        Columns that identify rows; columns to leave out; numeric columns that hold codes.
    embedding : what the names of columns that are one vector begin with: "e" for e0, e1, ...
    groups : names of columns
        Rows that share a value of one of them belong together: they never stand on both sides of a
        split, and count for fewer in every interval. Ids that repeat are groups, unless "none".
    time : name of a column of dates or numbers, optional
        Later rows are judged by models of earlier ones as well.
    propensity : name of a column of chances e in (0, 1], optional
        With what chance a labelled row was picked to be labelled: what is stated weighs it by
        (1 - e) / e, the unlabelled rows that it stands for. Rows without it learn with the others.
    positive_label, negative_label, unlabeled_label : value or list of values, optional
        As in :func:`pnuauc.read_roles`.
    prior : float, (low, high), or "auto", optional
        Share of positives among the unlabelled rows; estimated where it is not given.
    name : str
        What the report calls the table.
    **settings
        Fields of :class:`pnuauc.tables.FitSettings`, such as ``folds``, ``level``, ``top``,
        ``max_unlabeled`` (200,000 unlabelled rows are drawn for fitting; "all"), ``n_jobs`` and
        ``random_state``.

    Returns
    -------
    TableFit
        ``model``, ``findings``, ``review``, ``report(path)``, ``save(path)``.
    """
    known = [f.name for f in fields(FitSettings) if f.name != "prior"]
    unknown = next((key for key in settings if key not in known), None)
    if unknown is not None:
        here, named = _OPTIONS.get(unknown), inspect.signature(fit_table).parameters
        near = f" (here it is {here})" if here else did_you_mean(unknown, [*known, *named])
        raise TypeError(
            f"fit_table has no setting {unknown!r}{near}; there are {', '.join(sorted(known))}."
        )
    columns = ColumnRoles(
        label,
        tuple(_names(ids)),
        tuple(_names(drop)),
        tuple(_names(categorical)),
        LabelCodes(positive_label, negative_label, unlabeled_label),
        embedding=tuple(_names(embedding)),
        groups=tuple(_names(groups)),
        time=time,
        propensity=propensity,
    )
    given = None if isinstance(prior, str) and prior == "auto" else prior
    chosen = FitSettings(prior=given, **settings)
    return TableFit(fit_study(_opened(data, chosen.n_jobs), columns, chosen, name=name))


def evaluate_table(
    data: Any,
    label: str,
    scores: str | Sequence[str],
    *,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    groups: Sequence[str] = (),
    positive_label: Any = None,
    negative_label: Any = None,
    unlabeled_label: Any = None,
) -> dict[str, Any]:
    """AUC with interval of any model's score column; two columns are compared.

    ``pnuauc evaluate`` as a function.

    Parameters
    ----------
    data : pandas, polars or pyarrow frame, or files as in :func:`fit_table`
    label : str
        Column of labels: 1 positive, 0 negative, missing unlabelled.
    scores : str, or several of them
        Columns of scores, higher for positives.
    prior : float, (low, high), or "auto", optional
        Share of positives among the unlabelled rows. "auto" estimates it from the scores; None
        does so only where there are positive and negative labels, and otherwise gives the AUC
        for a range of priors.
    method, level
        As in :func:`pnuauc.auc_estimate`.
    groups : names of columns
        Rows that share a value of one of them are not independent.
    positive_label, negative_label, unlabeled_label : value or list of values, optional
        As in :func:`pnuauc.read_roles`.

    Returns
    -------
    dict
        ``labels``, ``prior``, ``scores`` (by column), ``comparisons`` (every pair of columns,
        ``p_adjusted`` for their number), ``comparison`` (of just two columns), ``warnings``.
    """
    return _evaluate(
        _opened(data),
        label,
        _names(scores),
        codes=LabelCodes(positive_label, negative_label, unlabeled_label),
        prior=prior,
        method=method,
        level=level,
        groups=_names(groups),
    ).to_dict()


def _opened(data: Any, n_jobs: int | None = None) -> Any:
    """Files as a source of rows; anything else as it is."""
    paths = [data] if isinstance(data, (str, os.PathLike)) else data
    named = isinstance(paths, (list, tuple)) and paths
    if not named or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        return data
    return FileSource.open(paths, n_threads=effective_n_jobs(n_jobs))


def _names(columns: str | Sequence[str]) -> Sequence[str]:
    """A single name is a list of one: tuple("id") would be two columns, i and d."""
    return [columns] if isinstance(columns, str) else columns
