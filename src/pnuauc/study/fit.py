"""From a table to a model and everything there is to say about it."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from pnuauc import __version__
from pnuauc._utils.arrays import Floats
from pnuauc._utils.label_values import RoleCounts
from pnuauc._utils.progress import progress_bar
from pnuauc._utils.show import jsonable
from pnuauc._utils.threads import one_thread_for_few
from pnuauc.committee import AutoAUCClassifier
from pnuauc.core.rows import row_groups
from pnuauc.estimators import AUCClassifierCV
from pnuauc.exceptions import InputError
from pnuauc.io.cells import pa
from pnuauc.io.encode import TableEncoder, kernels_of
from pnuauc.io.write import GROUP_COLUMN, new_run_id
from pnuauc.model.model import SeenRows, TableModel
from pnuauc.study.evidence import (
    Evidence,
    check_belief,
    compare_findings,
    evidence_of,
    label_findings,
    prior_findings,
    selection_findings,
    state_findings,
)
from pnuauc.study.findings import Findings, Groups, TableFacts
from pnuauc.study.groups import suspect_groups
from pnuauc.study.importance import importance_findings
from pnuauc.study.leaks import find_leaks
from pnuauc.study.rows import (
    NO_GROUPS,
    SAMPLE_ROWS,
    ColumnRoles,
    StudyRows,
    collected,
    repeated_ids,
    study_rows,
)
from pnuauc.study.timed import timed_findings
from pnuauc.study.top import place_among_all, top_rows

#: Stages of a fit and the share of the time that they take.
FIT_STAGES = {
    "reading": 0.05,
    "looking at columns": 0.05,
    "choosing and fitting models": 0.6,
    "scoring all unlabelled rows": 0.1,
    "measuring columns": 0.1,
    "keeping rows together": 0.05,
    "judging later rows": 0.05,
}
_MODELS = ("auto", "average", "paper")
#: Findings about single rows, which a model file does not hold.
_NOT_ON_CARD = {"scores", "roc", "top", "leaks", "labels_look_random", "seconds"}


@dataclass(frozen=True)
class FitSettings:
    """How to fit and how to judge; the defaults are for a table at hand and little time.

    Attributes
    ----------
    prior : None (estimate), a number, or (low, high); the share of positives inside U
    belief : what is known of that share before it is estimated, None, (low, high) or a Beta, as in
        :class:`pnuauc.AutoAUCClassifier`
    sampling : "random" where the labelled rows were drawn at random
    model : "auto" (the committee), "average" or "paper" (AUCClassifierCV); None: "auto", unless
        ``basis`` or ``n_centers`` is given, which only the other two have
    estimator : a scikit-learn classifier, judged in place of a model of ours, and compared with
        "auto"; the model cannot be written to a file then
    basis, n_centers : feature map and number of centres; None: "gaussian", 200
    folds : folds of the held-out AUC estimate
    max_unlabeled : unlabelled rows that are drawn for fitting, or "all"
    top : unlabelled rows to list for review
    importance : whether columns are shuffled in turn
    comparisons : whether rivals and the model without unlabelled rows are judged as well
    n_jobs, random_state
    """

    prior: float | tuple[float, float] | None = None
    belief: Any = None
    sampling: str | None = None
    model: str | None = None
    estimator: Any = None
    basis: str | None = None
    n_centers: int | None = None
    folds: int = 5
    max_unlabeled: int | str = SAMPLE_ROWS
    top: int = 20
    importance: bool = True
    comparisons: bool = True
    level: float = 0.95
    n_jobs: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        check_belief(self.belief, self.prior)


@dataclass(frozen=True, eq=False)
class Study:
    """A fitted model, the findings about it, and the encoded pipeline parts behind it.

    ``evidence`` is what the findings rest on; None where no row could be held back. ``held_out`` is
    a table of the rows behind it: id or row, label, fold, score, probability.
    """

    model: TableModel
    findings: Findings
    ranker: AutoAUCClassifier | AUCClassifierCV
    encoder: TableEncoder
    evidence: Evidence | None = None
    held_out: Any = None


def fit_study(
    data: Any,
    columns: ColumnRoles,
    settings: FitSettings | None = None,
    *,
    name: str = "table",
    command: str | None = None,
) -> Study:
    """Encode, estimate the prior, select and fit, evaluate on held-out rows, describe.

    Parameters
    ----------
    data : any frame, a source (see :mod:`pnuauc.io.sources`), or (CSR, labels)
    columns : ColumnRoles
    name : what to call the table in the report
    command : the command line that asked for this, for the report
    """
    settings = settings or FitSettings()
    started = time.perf_counter()
    messages: list[str] = []
    with collected(messages), ExitStack() as stack:
        tick = stack.enter_context(progress_bar("Fit", None, FIT_STAGES))
        tick("looking at columns", 0.0)
        rows = study_rows(data, columns, settings.max_unlabeled, settings.random_state)
        _check_setting(rows.counts, columns.label)
        stack.enter_context(one_thread_for_few(len(rows.roles)))
        fit = _Fit(columns, settings, rows, columns.encoder().fit(rows.table), _ranker(settings))
        encoder = fit.encoder
        leaks = [] if encoder.is_sparse else find_leaks(rows.table, encoder.columns_, rows.roles)
        tick("choosing and fitting models", 0.0)
        fit.learn()
        tick("scoring all unlabelled rows", 0.0)
        model, highest = fit.placed()
        found = Findings(
            new_run_id(),
            __version__,
            datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            command,
            fit.table_facts(name),
            label_findings(rows.counts),
            jsonable(vars(settings)),
            selection_findings(fit.ranker),
        )
        fit.judge(found, messages, tick)
        if model.unstorable is not None:
            messages.append(model.unstorable)
        if fit.evidence is not None and fit.evidence.doubt is not None and fit.is_committee:
            # no probabilities are stated
            fit.ranker.scorer_ = model.scorer = replace(fit.ranker.scorer_, posterior=None)
        important = [c.column for c in found.importance.columns] if found.importance else []
        X = encoder.views_of(highest.table, model.scorer.views) if rows.origin else fit.X
        found.top = top_rows(model, X, highest, settings.top, important, scores=fit.scores)
    found.leaks, found.warnings = leaks, [*leaks, *messages]
    found.seconds = round(time.perf_counter() - started, 1)
    card = {name: item for name, item in found.to_dict().items() if name not in _NOT_ON_CARD}
    model.card = card | {"label": columns.label, "ids": list(fit.ids)}
    model.seen = fit.seen_rows(model)
    return Study(model, found, fit.ranker, encoder, fit.evidence, fit.held_out_table(model))


class _Fit:
    """Rows, encoder and ranker of a fit, which all its steps read; the evidence when it is there.

    scores : those of the unlabelled rows, where they are few enough that the fit kept them
    """

    def __init__(
        self,
        columns: ColumnRoles,
        settings: FitSettings,
        rows: StudyRows,
        encoder: TableEncoder,
        ranker: Any,
    ) -> None:
        self.columns, self.settings, self.encoder = columns, settings, encoder
        self.rows = rows.named_by(encoder.ids_)
        self.ranker, self.is_committee = ranker, isinstance(ranker, AutoAUCClassifier)
        self.evidence: Evidence | None = None
        self.scores: Floats | None = None
        encoder.notes_.extend(rows.notes)
        encoder.ids_.extend(rows.numbering)
        self.ids = (*columns.ids, *encoder.ids_)
        views = encoder.views if self.is_committee else ("kernels",)
        self.X = encoder.views_of(rows.table, views)
        if np.isinf(self.X.data if encoder.is_sparse else self.X).any():
            raise InputError("The table holds numbers too large to compute with; rescale them.")
        self.kernels = kernels_of(self.X, encoder)
        self.folds = _n_folds(self.kernels, rows, settings.folds)
        if rows.weights is not None and not (self.is_committee and self.folds):
            raise InputError(
                "A propensity needs the model 'auto', and labels enough to hold some out."
            )
        if self.is_committee:
            ranker.set_params(cv=self.folds, **encoder.layout(views))

    def learn(self) -> None:
        """Fit the ranker, to all unlabelled rows where they are if so asked, and judge it."""
        rows, ranker = self.rows, self.ranker
        if self.settings.max_unlabeled != "all" or rows.origin is None:
            weights = {} if rows.weights is None else {"sample_weight": rows.weights}
            # without folds there is nothing to keep apart
            ranker.fit(self.X, rows.roles, groups=rows.groups if ranker.cv else None, **weights)
        elif self.is_committee:
            everything = rows.origin.everything(self.encoder)
            ranker._fit_with(self.X, rows.roles, everything, None, rows.weights)
        else:
            ranker._fit_with(self.X, rows.roles, None, rows.origin.everything(self.encoder))
        if self.folds:
            self.evidence = evidence_of(
                ranker, self.X, rows.roles, self.settings, cv=self.folds, groups=rows.groups
            )

    def placed(self) -> tuple[TableModel, StudyRows]:
        """The model, and the rows among which the highest are: of a draw all, wherever they are.

        As many unlabelled rows are above its threshold as are positive by the share that is stated.
        """
        rows, roles, ranker = self.rows, self.rows.roles, self.ranker
        # rows that scores are placed among; the fit has scored them unless they are many
        reference = roles.unlabeled if roles.n_unlabeled else np.arange(len(roles))
        reference = reference[:: -(-len(reference) // 50_000)]
        self.scores = getattr(ranker, "_placed", None)
        if self.scores is not None:
            self.scores = self.scores - ranker.threshold_
        model = TableModel.from_fitted(self.encoder, ranker, self.X[reference], scores=self.scores)
        before, highest = model.threshold, rows
        prior = None if self.evidence is None else self.evidence.prior
        share = ranker.prior_ if prior is None else prior.value
        if rows.origin is not None:
            drawn = model.score_encoded(self.X[roles.unlabeled])
            highest = place_among_all(
                model, rows.origin, drawn, share or 0.0, self.settings.top, self.ids, rows.counts
            )
            self.scores = None
        elif share != ranker.prior_:
            places = np.linspace(0.0, 1.0, len(model.quantiles))
            step = float(np.interp(1.0 - share, places, model.quantiles))
            model.threshold += step
            model.quantiles = model.quantiles - step
        ranker.threshold_ += model.threshold - before
        ranker.intercept_ = -ranker.threshold_
        return model, highest

    def table_facts(self, name: str) -> TableFacts:
        """How the table was read."""
        encoder, columns = self.encoder, self.columns
        kinds = dict(Counter(column.kind for column in encoder.columns_))
        return TableFacts(
            name,
            len(self.rows.counts),
            columns.label,
            list(columns.ids),
            list(columns.drop),
            list(encoder.columns_),
            {"sparse feature": encoder.n_features_in_} if encoder.is_sparse else kinds,
            len(encoder.get_feature_names_out()),
            list(encoder.notes_),
        )

    def judge(self, found: Findings, messages: list[str], tick: Any) -> None:
        """State what the held-out rows say; warnings go to ``messages``."""
        rows, settings, columns, evidence = self.rows, self.settings, self.columns, self.evidence
        if rows.grouping and not columns.groups:
            messages.append(repeated_ids(rows.grouping, rows.groups))
        if evidence is None:
            found.prior = prior_findings(getattr(self.ranker, "class_prior_", None), rows.counts)
            units = "rows" if rows.groups is None else "groups"
            found.auc = None
            found.auc_reason = (
                "Too few labelled rows to hold any back: the AUC of this model cannot be estimated "
                f"({rows.roles.describe()}; at least 3 different {units} of each are needed)."
            )
            return
        sizes = np.bincount(row_groups(self.kernels))
        found.copies = {"identical": int(sizes[sizes > 1].sum())}
        found.groups = _groups(evidence, rows)
        found.folds = evidence.held_out.n_folds
        state_findings(found, evidence, rows.counts, settings.top, settings.level)
        if settings.comparisons:
            compare_findings(found, self.ranker, rows.counts.setting)
        tick("measuring columns", 0.0)
        found.importance = None
        if settings.importance and evidence.doubt is None:
            found.importance = importance_findings(
                evidence, self.X, self.encoder, settings.random_state
            )
        if columns.groups != NO_GROUPS and rows.groups is None and rows.spare is not None:
            tick("keeping rows together", 0.0)
            suspected = suspect_groups(
                rows, self.X, self.encoder, self.ranker, found.auc, settings, self.folds
            )
            if suspected is not None:
                found.suspected = suspected
                messages.append(suspected.message)
        if columns.time is not None:
            tick("judging later rows", 0.0)
            found.timed = timed_findings(
                self.ranker, self.X, rows, columns.time, found.auc, settings
            )
        if evidence.doubt is not None:
            messages.append(evidence.doubt)

    def seen_rows(self, model: TableModel) -> SeenRows:
        """Hashes of the labelled rows, and the score that the model has at their held-out place.

        One that equals an unlabelled row in all features keeps the model's own score: both rows
        have one probability then, that of the rows to review.
        """
        rows, places = self.rows, np.full(len(self.rows.roles), np.nan)
        if self.evidence is not None:
            places[self.evidence.held_out.rows] = self.evidence.places
        scores = np.interp(places, np.linspace(0.0, 1.0, len(model.quantiles)), model.quantiles)
        keys, is_labeled = model.row_keys(rows.table), rows.roles.codes >= 0
        shared = np.flatnonzero(is_labeled & np.isin(keys, keys[~is_labeled]))
        if len(shared):
            scores[shared] = model.score_encoded(self.X[shared])
        return SeenRows.of(keys[is_labeled], scores[is_labeled])

    def held_out_table(self, model: TableModel) -> Any:
        """Scores of rows by models that did not see them, in the order of the file."""
        rows, number = self.rows, np.empty(0, dtype=np.intp)
        fold, places = number, np.empty(0)
        if self.evidence is not None:
            held = self.evidence.held_out
            order = np.argsort(rows.numbers[held.rows], kind="stable")
            number, fold = held.rows[order], held.fold[order]
            places = self.evidence.places[order]
        if rows.ids is None:
            columns = {"row": pa.array(rows.numbers[number] + 1)}
        else:
            table = rows.ids.take(pa.array(number))
            columns = {name: table.column(name) for name in table.column_names}
        codes = rows.roles.codes[number]
        columns[self.columns.label] = pa.array(codes, mask=codes < 0)
        columns["fold"] = pa.array(fold)
        columns["score"] = pa.array(special.ndtri(places))
        # where the model states probabilities
        if self.evidence is not None and model.probability(np.zeros(1)) is not None:
            columns["probability"] = pa.array(self.evidence.posterior.probability(places))
        if rows.groups is not None:
            columns[GROUP_COLUMN] = pa.array(rows.groups[number])
        return pa.table(columns)


def _check_setting(roles: RoleCounts, label: str) -> None:
    needs = "every role that occurs needs at least 2 rows" if 1 in roles.counts else None
    if roles.setting not in {"PN", "PU", "NU", "PNU"}:
        needs = "a ranking needs at least two of positive, negative and unlabelled rows"
    if needs is not None:
        raise InputError(f"Label column '{label}' holds {roles.describe()}; {needs}.")


def _ranker(settings: FitSettings) -> AutoAUCClassifier | AUCClassifierCV:
    """The model that is asked for; one of the committee's folds are set later."""
    own = settings.basis is not None or settings.n_centers is not None
    model = settings.model or ("average" if own else "auto")
    refused = None
    if model not in _MODELS:
        refused = f"There is no model {model!r}; choose from {', '.join(map(repr, _MODELS))}."
    elif model == "auto" and own:
        refused = (
            "The committee has no basis or centres to choose; ask for the model 'average' or "
            "'paper', or leave them out."
        )
    elif settings.estimator is not None and model != "auto":
        refused = "An estimator goes without model, basis and centres."
    if refused is not None:
        raise InputError(refused, about="model")
    common: dict[str, Any] = {
        "prior": settings.prior,
        "n_jobs": settings.n_jobs,
        "random_state": settings.random_state,
    }
    if model == "auto":
        return AutoAUCClassifier(
            members=None if settings.estimator is None else [settings.estimator],
            belief=settings.belief,
            sampling=settings.sampling,
            rivals=settings.comparisons,
            **common,
        )
    return AUCClassifierCV(
        selection=model,
        basis=settings.basis or "gaussian",
        n_centers=settings.n_centers or 200,
        **common,
    )


def _n_folds(kernels: Any, rows: StudyRows, wanted: int) -> int:
    """Folds that the labelled rows allow: 0 where none can be held out."""
    codes = rows.roles.codes
    labeled = np.concatenate([rows.roles.positive, rows.roles.negative])
    alike = row_groups(kernels[labeled]) if rows.groups is None else rows.groups[labeled]
    different = [len(np.unique(alike[codes[labeled] == c])) for c in (1, 0) if (codes == c).any()]
    # a training part needs two rows of every class: three different ones are held out one by one
    most = min(different)
    return min(wanted if most > 3 else 3, most) if most > 2 else 0


def _groups(evidence: Evidence, rows: StudyRows) -> Groups | None:
    if rows.groups is None:
        return None
    held, own = evidence.held_out, evidence.held_out.labeled
    n_groups, worth = len(np.unique(held.groups[own])), float(held.worth[own].sum())
    return Groups(list(rows.grouping), n_groups, len(own), worth)
