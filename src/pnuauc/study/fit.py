"""From a table to a model and everything there is to say about it, as one dict."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special
from sklearn.base import clone

from pnuauc import __version__
from pnuauc._utils.arrays import Floats
from pnuauc._utils.label_values import RoleCounts
from pnuauc._utils.progress import progress_bar
from pnuauc._utils.show import few
from pnuauc._utils.threads import one_thread_for_few
from pnuauc.committee import AutoAUCClassifier
from pnuauc.core.rows import row_groups
from pnuauc.estimators import AUCClassifierCV
from pnuauc.exceptions import InputError
from pnuauc.io.cells import pa
from pnuauc.io.encode import TableEncoder
from pnuauc.labels import Roles
from pnuauc.model.model import SeenRows, TableModel, encode_views, kernels_of, scorer_of
from pnuauc.study.everywhere import Leaders, place_among_all
from pnuauc.study.findings import (
    Evidence,
    check_belief,
    effect_findings,
    evidence_of,
    label_findings,
    prior_findings,
    rival_findings,
    selection_findings,
    stated_findings,
)
from pnuauc.study.groups import find_groups
from pnuauc.study.importance import column_importance, importance_findings
from pnuauc.study.leaks import find_leaks
from pnuauc.study.review import top_rows
from pnuauc.study.rows import (
    NO_GROUPS,
    SAMPLE_ROWS,
    ColumnRoles,
    StudyRows,
    collected,
    study_rows,
)
from pnuauc.study.timed import timed_findings

__all__ = ["FIT_STAGES", "FitSettings", "Study", "fit_study"]

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
#: What ``FitSettings.model`` may be.
MODELS = ("auto", "average", "paper")


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
    findings: dict[str, Any]
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
    data : any frame, a source (see :mod:`pnuauc._sources`), or (CSR, labels)
    columns : ColumnRoles
    name : what to call the table in the report
    command : the command line that asked for this, for the report
    """
    settings = settings or FitSettings()
    started = time.perf_counter()
    messages: list[str] = []
    with collected(messages), ExitStack() as limits:
        tick = limits.enter_context(progress_bar("Fit", None, FIT_STAGES))
        tick("looking at columns", 0.0)
        rows = study_rows(data, columns, settings.max_unlabeled, settings.random_state)
        roles = rows.roles
        limits.enter_context(one_thread_for_few(len(roles)))
        _check_setting(rows.counts, columns.label)
        encoder = columns.encoder().fit(rows.table)
        encoder.notes_.extend(rows.notes)
        encoder.ids_.extend(rows.numbering)
        leaks = [] if encoder.is_sparse else find_leaks(rows.table, encoder.columns_, roles)
        views = _views(settings, encoder)
        X = encode_views(encoder, rows.table, views)
        if np.isinf(X.data if encoder.is_sparse else X).any():
            raise InputError("The table holds numbers too large to compute with; rescale them.")
        ranker = _ranker(settings, _folds(X, rows, encoder, settings))
        if isinstance(ranker, AutoAUCClassifier):
            ranker.set_params(**encoder.layout(views))
        tick("choosing and fitting models", 0.0)
        _fit_ranker(ranker, X, rows, encoder, settings)
        scores = _known_scores(ranker)
        model = TableModel.from_fitted(encoder, ranker, _reference_rows(X, roles), scores=scores)
        leaders = _place(model, ranker, X, rows, settings, columns, tick)
        findings = _header(name, command, rows, columns, encoder, settings)
        findings["selection"] = selection_findings(ranker)
        evidence = _judge(findings, ranker, X, rows, encoder, settings, tick)
        if rows.grouping and not columns.groups:
            messages.append(_repeated(rows))
        if evidence is not None and columns.groups != NO_GROUPS and rows.groups is None:
            tick("keeping rows together", 0.0)
            messages += _suspected(findings, ranker, X, rows, encoder, settings)
        if evidence is not None and columns.time is not None:
            tick("judging later rows", 0.0)
            timed = timed_findings(ranker, X, rows, columns.time, findings["auc"], settings)
            findings["timed"] = timed
        if evidence is not None and evidence.doubt is not None:
            messages.append(evidence.doubt)
            _withhold(model, ranker)
        if model.unstorable is not None:
            messages.append(model.unstorable)
        findings["top"] = _top(model, X, rows, scores, leaders, findings, settings)
    findings["leaks"] = leaks
    findings["warnings"] = [*leaks, *messages]
    findings["seconds"] = round(time.perf_counter() - started, 1)
    model.card = _card(findings, columns, encoder)
    held_out = _held_out_table(evidence, rows, columns.label)
    if not encoder.is_sparse:
        model.seen = _seen_rows(model, evidence, rows)
    return Study(model, findings, ranker, encoder, evidence, held_out)


def _seen_rows(model: TableModel, evidence: Evidence | None, rows: StudyRows) -> SeenRows:
    """Hashes of the labelled rows, and the score that the model has at their held-out place."""
    labeled = np.flatnonzero(rows.roles.codes >= 0)
    places = np.full(len(rows.roles), np.nan)
    if evidence is not None:
        places[evidence.held_out.rows] = evidence.places
    scores = np.interp(places, np.linspace(0.0, 1.0, len(model.quantiles)), model.quantiles)
    names = [column.name for column in model.encoder.columns_]
    return SeenRows.of(rows.table.select(names).take(pa.array(labeled)), names, scores[labeled])


def _held_out_table(evidence: Evidence | None, rows: StudyRows, label: str) -> Any:
    """Scores of rows by models that did not see them, in the order of the file."""
    if evidence is None:
        number = np.empty(0, dtype=np.intp)
        places = np.empty(0)
        fold = number
    else:
        held = evidence.held_out
        order = np.argsort(rows.numbers[held.rows], kind="stable")
        number, fold, places = held.rows[order], held.fold[order], evidence.places[order]
    table = None if rows.ids is None else rows.ids.take(pa.array(number))
    columns = {} if table is None else {n: table.column(n) for n in table.column_names}
    if not columns:
        columns["row"] = pa.array(rows.numbers[number] + 1)
    codes = rows.roles.codes[number]
    columns[label] = pa.array(codes, mask=codes < 0)
    columns["fold"] = pa.array(fold)
    columns["score"] = pa.array(special.ndtri(places))
    if evidence is not None and evidence.doubt is None:
        columns["probability"] = pa.array(evidence.posterior.probability(places))
    return pa.table(columns)


def _fit_ranker(
    ranker: Any, X: Any, rows: StudyRows, encoder: TableEncoder, settings: FitSettings
) -> None:
    """On the rows in memory, or with all unlabelled rows where they are."""
    if settings.max_unlabeled != "all" or rows.origin is None:
        # without folds there is nothing to keep apart
        ranker.fit(X, rows.roles, groups=rows.groups if ranker.cv else None)
        return
    everything = rows.origin.everything(encoder)
    if isinstance(ranker, AutoAUCClassifier):
        ranker._fit_with(X, rows.roles, everything)
    else:
        ranker._fit_with(X, rows.roles, None, everything)


def _place(
    model: TableModel,
    ranker: Any,
    X: Any,
    rows: StudyRows,
    settings: FitSettings,
    columns: ColumnRoles,
    tick: Callable[..., None],
) -> Leaders | None:
    """Threshold, quantiles and the rows of highest score from all rows, where some were drawn."""
    if rows.origin is None:
        return None
    tick("scoring all unlabelled rows", 0.0)
    scores = model.score_encoded(X[rows.roles.unlabeled])
    before = model.threshold
    leaders = place_among_all(model, rows.origin, scores, ranker.prior_, settings.top, columns.ids)
    ranker.threshold_ += model.threshold - before
    ranker.intercept_ = -ranker.threshold_
    return leaders


def _withhold(model: TableModel, ranker: Any) -> None:
    """No probabilities where nothing can be stated."""
    if isinstance(ranker, AutoAUCClassifier):
        ranker.scorer_ = replace(ranker.scorer_, posterior=None)
        model.scorer = scorer_of(ranker)


def _top(
    model: TableModel,
    X: Any,
    rows: StudyRows,
    scores: Floats | None,
    leaders: Leaders | None,
    findings: dict[str, Any],
    settings: FitSettings,
) -> dict[str, Any]:
    """The rows to review next, of those in memory or of all."""
    measured = (findings.get("importance") or {}).get("columns") or []
    candidates, encoded = rows, X
    if leaders is not None and rows.origin is not None:
        scores = None
        candidates = leaders.rows(rows.counts, findings["table"]["ids"], rows.origin.source)
        encoded = encode_views(model.encoder, candidates.table, model.scorer.views)
    return top_rows(
        model,
        encoded,
        candidates.table,
        candidates.ids,
        candidates.roles,
        settings.top,
        [item["column"] for item in measured],
        numbers=candidates.numbers,
        scores=scores,
    )


def _check_setting(roles: RoleCounts, label: str) -> None:
    needs = "every role that occurs needs at least 2 rows" if 1 in roles.counts else None
    if roles.setting not in {"PN", "PU", "NU", "PNU"}:
        needs = "a ranking needs at least two of positive, negative and unlabelled rows"
    if needs is not None:
        raise InputError(f"Label column '{label}' holds {roles.describe()}; {needs}.")


def _model(settings: FitSettings) -> str:
    own = settings.basis is not None or settings.n_centers is not None
    return settings.model or ("average" if own else "auto")


def _views(settings: FitSettings, encoder: TableEncoder) -> tuple[str, ...]:
    """What the ranker reads."""
    return encoder.views if _model(settings) == "auto" else ("kernels",)


def _folds(X: Any, rows: StudyRows, encoder: TableEncoder, settings: FitSettings) -> int:
    """Folds that the labelled rows allow: 0 where none can be held out."""
    roles = rows.roles
    labelled = np.concatenate([roles.positive, roles.negative])
    alike = rows.groups[labelled] if rows.groups is not None else None
    if alike is None:
        alike = row_groups(kernels_of(X[labelled], encoder))
    codes = roles.codes[labelled]
    different = [len(np.unique(alike[codes == c])) for c in (1, 0) if (codes == c).any()]
    # a training part needs two rows of every class: three different ones are held out one by one
    wanted = settings.folds if min(different) > 3 else 3
    return min(wanted, *different) if min(different) > 2 else 0


def _ranker(settings: FitSettings, folds: int) -> AutoAUCClassifier | AUCClassifierCV:
    own = settings.basis is not None or settings.n_centers is not None
    model = _model(settings)
    if model not in MODELS:
        known = ", ".join(map(repr, MODELS))
        raise InputError(f"There is no model {model!r}; choose from {known}.", about="model")
    if model == "auto" and own:
        raise InputError(
            "The committee has no basis or centres to choose; ask for the model 'average' or "
            "'paper', or leave them out.",
            about="model",
        )
    if settings.estimator is not None and (model != "auto" or own):
        raise InputError("An estimator goes without model, basis and centres.", about="model")
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
            cv=folds,
            **common,
        )
    return AUCClassifierCV(
        selection=model,
        basis=settings.basis or "gaussian",
        n_centers=settings.n_centers or 200,
        **common,
    )


def _known_scores(ranker: Any) -> Floats | None:
    """Of the rows that scores are placed among, which the fit has scored unless they are many."""
    placed: Floats | None = getattr(ranker, "_placed", None)
    return None if placed is None else placed - ranker.threshold_


def _reference_rows(X: Any, roles: Roles, at_most: int = 50_000) -> Any:
    """Rows among whose scores new scores are placed: the unlabelled ones, or all."""
    rows = roles.unlabeled if roles.n_unlabeled else np.arange(len(roles))
    return X[rows[:: -(-len(rows) // at_most)]]


def _header(
    name: str,
    command: str | None,
    rows: StudyRows,
    columns: ColumnRoles,
    encoder: TableEncoder,
    settings: FitSettings,
) -> dict[str, Any]:
    kinds = dict(Counter(column.kind for column in encoder.columns_))
    if encoder.is_sparse:
        kinds = {"sparse feature": encoder.n_features_in_}
    return {
        "pnuauc": __version__,
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command,
        "table": {
            "name": name,
            "rows": len(rows.counts),
            "label": columns.label,
            "ids": list(columns.ids),
            "dropped": list(columns.drop),
            "columns": [c.to_dict() for c in encoder.columns_],
            "kinds": kinds,
            "n_encoded": len(encoder.get_feature_names_out()),
            "notes": list(encoder.notes_),
        },
        "labels": label_findings(rows.counts),
        "settings": dict(vars(settings)),
    }


def _judge(
    findings: dict[str, Any],
    ranker: AutoAUCClassifier | AUCClassifierCV,
    X: Any,
    rows: StudyRows,
    encoder: TableEncoder,
    settings: FitSettings,
    tick: Callable[..., None],
) -> Evidence | None:
    """Everything that rests on held-out scores; left out, with a reason, where there are none."""
    roles = rows.roles
    given = getattr(ranker, "class_prior_", None)
    folds = _folds(X, rows, encoder, settings)
    if not folds:
        findings["prior"] = prior_findings(given, rows.counts)
        findings["auc"] = None
        findings["auc_reason"] = (
            "Too few labelled rows to hold any back: the AUC of this model cannot be estimated "
            f"({roles.describe()}; at least 3 different {_units(rows)} of each are needed)."
        )
        return None
    evidence = evidence_of(
        ranker,
        X,
        roles,
        belief=settings.belief,
        prior=settings.prior,
        groups=rows.groups,
        cv=folds,
        sampling=settings.sampling,
        seed=settings.random_state,
    )
    sizes = np.bincount(row_groups(kernels_of(X, encoder)))
    findings["copies"] = {"identical": int(sizes[sizes > 1].sum())}
    findings["groups"] = _group_findings(evidence, rows)
    findings["auc_procedure"] = _procedure(evidence, findings)
    findings |= stated_findings(evidence, rows.counts, settings.top, settings.level)
    prior = None if evidence.doubt is not None else evidence.prior
    findings["prior"] = prior_findings(prior, rows.counts)
    if settings.comparisons:
        findings["rivals"] = rival_findings(ranker, findings["auc"])
        findings["unlabeled_effect"] = effect_findings(ranker, rows.counts, findings["auc"])
    tick("measuring columns", 0.0)
    importance = []
    if settings.importance and evidence.doubt is None:
        importance = column_importance(evidence, X, encoder, seed=settings.random_state)
    findings["importance"] = importance_findings(importance, encoder.n_features_in_)
    return evidence


def _procedure(evidence: Evidence, findings: dict[str, Any]) -> str:
    n_folds, groups = evidence.held_out.n_folds, findings["groups"]
    said = [
        f"{n_folds} folds by role: every labelled row is placed among unlabelled rows by models "
        "that were fitted, chosen and weighed without its fold. One posterior over the share of "
        "positives and the curve of chances explains these places; AUC, share, counts and "
        "probabilities are read from it. It allows for what the final model gains from the rows "
        "that each of those models lacked."
    ]
    if groups is not None:
        said += ["Rows of one group are in one fold, and unlabelled ones of it with them."]
    elif findings["copies"]["identical"]:
        said += [
            f"{findings['copies']['identical']:,} rows have an identical twin; identical labelled "
            "rows are kept in one fold and count as one."
        ]
    return " ".join(said)


def _units(rows: StudyRows) -> str:
    return "rows" if rows.groups is None else "groups"


def _group_findings(evidence: Evidence, rows: StudyRows) -> dict[str, Any] | None:
    """Labelled rows and groups, and how many independent rows they count as."""
    if rows.groups is None:
        return None
    held = evidence.held_out
    own = held.labeled
    return {
        "columns": list(rows.grouping),
        "n_groups": len(np.unique(held.groups[own])),
        "n_labeled": len(own),
        "worth": float(held.worth[own].sum()),
        "n_all": len(np.unique(rows.groups)),
    }


def _repeated(rows: StudyRows) -> str:
    assert rows.groups is not None
    named = few([f"'{name}'" for name in rows.grouping])
    return (
        f"The id {named} names several rows ({len(np.unique(rows.groups)):,} ids for "
        f"{len(rows.roles):,} rows): rows of one id are taken as a group. Name no groups ('none') "
        "if they are independent."
    )


def _suspected(
    findings: dict[str, Any],
    ranker: Any,
    X: Any,
    rows: StudyRows,
    encoder: TableEncoder,
    settings: FitSettings,
) -> list[str]:
    """What may belong together, and the AUC if it does beside the one that is stated."""
    if rows.spare is None:  # a matrix has no columns with names
        return []
    own, X_kernels = encoder.groups("kernels"), kernels_of(X, encoder)
    suspect = find_groups(rows.table, rows.spare, X_kernels, rows.roles, own)
    if suspect is None:
        return []
    name = suspect.column
    if name is None:
        said = [
            f"Some rows seem to belong together: {suspect.n:,} labelled rows lie far nearer to "
            "another one than rows lie elsewhere."
        ]
    else:
        said = [
            f"Column '{name}' seems to name groups: rows of one value are alike, and "
            f"{suspect.n:,} labelled rows share theirs."
        ]
    auc = None
    again = clone(ranker)
    if isinstance(again, AutoAUCClassifier) and findings["auc"] is not None:
        try:
            again.set_params(rivals=False).fit(X, rows.roles, groups=suspect.groups)
        except ValueError:  # the rows of a class are one group
            said.append("No AUC can be estimated with them kept together.")
        else:
            assert again.posterior_ is not None  # it has folds
            auc = {**again.posterior_.auc(settings.level)._asdict(), "level": settings.level}
            said.append(
                f"AUC {findings['auc']['value']:.3f} as stated, {auc['value']:.3f} "
                f"({auc['low']:.3f} to {auc['high']:.3f}) with them kept together: believe the "
                "second for rows of groups that were never labelled."
            )
    column = "the column that says so" if name is None else f"'{name}'"
    said.append(f"Give {column} as the group, or 'none' if there are no groups.")
    findings["suspected"] = {
        "column": name,
        "rows": suspect.n,
        "auc": auc,
        "message": " ".join(said),
    }
    return [findings["suspected"]["message"]]


def _card(findings: dict[str, Any], columns: ColumnRoles, encoder: TableEncoder) -> dict[str, Any]:
    """What the model file tells about itself: no rows of the table, no ids."""
    wanted = (
        *("pnuauc", "created", "command", "labels", "prior", "auc", "auc_procedure", "auc_reason"),
        *(
            "copies",
            "groups",
            "suspected",
            "timed",
            "review",
            "unlabeled_effect",
            "rivals",
            "importance",
            "warnings",
            "settings",
        ),
    )
    card = {key: findings[key] for key in wanted if key in findings}
    card["label"], card["ids"] = columns.label, list(columns.ids or encoder.ids_)
    return card | {key: findings[key] for key in ("table", "selection")}
