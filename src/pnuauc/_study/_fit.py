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

from pnuauc import __version__
from pnuauc._committee import AutoAUCClassifier
from pnuauc._committee._calibration import Calibration
from pnuauc._estimators_cv import AUCClassifierCV
from pnuauc._placement import Placement
from pnuauc._prior import ClassPrior
from pnuauc._role_counts import RoleCounts
from pnuauc._study._committee import quietly, rival_findings
from pnuauc._study._copies import find_copies
from pnuauc._study._crossfit import CrossFit, cross_fit, evaluation_rows, fold_count
from pnuauc._study._data import ColumnRoles, collected
from pnuauc._study._everywhere import placed_among_all
from pnuauc._study._findings import (
    auc_findings,
    copies_findings,
    held_out_placement,
    label_findings,
    review_findings,
    score_histograms,
    selection_findings,
    unlabeled_effect,
)
from pnuauc._study._importance import column_importance, importance_findings
from pnuauc._study._prior import check_belief, find_prior, prior_findings
from pnuauc._study._reference import Leaders, place_among_all
from pnuauc._study._review import top_rows
from pnuauc._study._rows import SAMPLE_ROWS, StudyRows, study_rows
from pnuauc._threads import one_thread_for_few
from pnuauc.exceptions import InputError, MissingRoleError, PriorNotIdentifiedError
from pnuauc.io import TableEncoder, TableModel
from pnuauc.io._encoding import SparseEncoding
from pnuauc.io._leaks import find_leaks
from pnuauc.io._model import encode_views, kernels_of
from pnuauc.io._parts import scorer_of
from pnuauc.labels import Roles

__all__ = ["FitSettings", "Study", "fit_study"]

Tick = Callable[[str, float], None]
#: What ``FitSettings.model`` may be.
MODELS = ("auto", "average", "paper")


@dataclass(frozen=True)
class FitSettings:
    """How to fit and how to judge; the defaults are for a table at hand and little time.

    Attributes
    ----------
    prior : None (estimate), a number, or (low, high); the share of positives inside U
    belief : what is known of that share before it is estimated, None, (low, high) or a Beta, as in
        :class:`pnuauc.priors.PlacementPrior`
    model : "auto" (the committee), "average" or "paper" (AUCClassifierCV); None: "auto", unless
        ``basis`` or ``n_centers`` is given, which only the other two have
    basis, n_centers : feature map and number of centres; None: "gaussian", 200
    folds : folds of the held-out AUC estimate
    evaluation_unlabeled : unlabelled rows that take part in that estimate
    max_unlabeled : unlabelled rows that are drawn for fitting, or "all"
    top : unlabelled rows to list for review
    importance : whether columns are shuffled in turn
    comparisons : whether rivals and the model without unlabelled rows are judged as well
    n_jobs, random_state
    """

    prior: float | tuple[float, float] | None = None
    belief: Any = None
    model: str | None = None
    basis: str | None = None
    n_centers: int | None = None
    folds: int = 5
    evaluation_unlabeled: int = 5000
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

    ``held_out`` are the scores that the findings rest on; None where no row could be held back.
    """

    model: TableModel
    findings: dict[str, Any]
    ranker: AutoAUCClassifier | AUCClassifierCV
    encoder: TableEncoder
    held_out: CrossFit | None = None


def fit_study(
    data: Any,
    columns: ColumnRoles,
    settings: FitSettings | None = None,
    *,
    name: str = "table",
    command: str | None = None,
    verbose: bool | None = False,
    tick: Tick | None = None,
) -> Study:
    """Encode, estimate the prior, select and fit, evaluate on held-out rows, describe.

    Parameters
    ----------
    data : any frame, a source (see :mod:`pnuauc._sources`), or (CSR, labels)
    columns : ColumnRoles
    name : what to call the table in the report
    command : the command line that asked for this, for the report
    verbose : whether the ranker draws a progress bar (None: in a terminal)
    tick : called with (stage, share done)
    """
    settings = settings or FitSettings()
    tick = tick or (lambda stage, share: None)
    started = time.perf_counter()
    messages: list[str] = []
    with collected(messages), ExitStack() as limits:
        tick("columns", 0.0)
        rows = study_rows(data, columns, settings.max_unlabeled, settings.random_state)
        roles = rows.roles
        limits.enter_context(one_thread_for_few(len(roles)))
        _check_setting(rows.counts, columns.label)
        encoder = columns.encoder().fit(rows.table)
        encoder.notes_.extend(rows.notes)
        leaks = [] if encoder.is_sparse else find_leaks(rows.table, encoder.columns_, roles)
        views = _views(settings, encoder)
        X = encode_views(encoder, rows.table, views)
        if np.isinf(X.data if encoder.is_sparse else X).any():
            raise InputError("The table holds numbers too large to compute with; rescale them.")
        tick("prior", 0.0)
        prior = _prior(settings, kernels_of(X, encoder), rows, messages)
        ranker = _ranker(settings, prior, verbose)
        if len(views) > 1:
            ranker.set_params(n_tree_columns=encoder.encoding_.width("trees"))
        tick("model", 0.0)
        _fit_ranker(ranker, X, rows, encoder, settings)
        model = TableModel.from_fitted(encoder, ranker, _reference_rows(X, roles))
        leaders = _place(model, ranker, X, rows, settings, columns, tick)
        findings = _header(name, command, rows, columns, encoder, settings)
        findings["prior"] = prior_findings(prior, rows.counts)
        findings["selection"] = selection_findings(ranker)
        held_out = _judge(findings, ranker, X, rows, prior, encoder, settings, tick)
        if held_out is not None and prior is not None:
            _calibrate(model, ranker, held_out_placement(held_out, prior))
        findings["top"] = _top(model, X, rows, leaders, findings, settings)
    findings["leaks"] = leaks
    findings["warnings"] = [*leaks, *messages]
    findings["seconds"] = round(time.perf_counter() - started, 1)
    model.card = _card(findings, columns)
    return Study(model, findings, ranker, encoder, held_out)


def _fit_ranker(
    ranker: Any, X: Any, rows: StudyRows, encoder: TableEncoder, settings: FitSettings
) -> None:
    """On the rows in memory, or with all unlabelled rows where they are."""
    if settings.max_unlabeled != "all" or rows.origin is None:
        ranker.fit(X, rows.roles)
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
    tick: Tick,
) -> Leaders | None:
    """Threshold, quantiles and the rows of highest score from all rows, where some were drawn."""
    if rows.origin is None:
        return None
    tick("all rows", 0.0)
    scores = model.score_encoded(X[rows.roles.unlabeled])
    before = model.threshold
    leaders = place_among_all(model, rows.origin, scores, ranker.prior_, settings.top, columns.ids)
    ranker.threshold_ += model.threshold - before
    ranker.intercept_ = -ranker.threshold_
    return leaders


def _calibrate(model: TableModel, ranker: Any, placement: Placement) -> None:
    """One posterior for the report's top rows, their probabilities and those of new rows."""
    if isinstance(ranker, AutoAUCClassifier):
        calibration = Calibration.of_placement(placement)
        ranker.scorer_ = replace(ranker.scorer_, calibration=calibration)
        model.scorer = scorer_of(ranker)


def _top(
    model: TableModel,
    X: Any,
    rows: StudyRows,
    leaders: Leaders | None,
    findings: dict[str, Any],
    settings: FitSettings,
) -> dict[str, Any]:
    """The rows to review next, of those in memory or of all."""
    measured = (findings.get("importance") or {}).get("columns") or []
    candidates, encoded = rows, X
    if leaders is not None and rows.origin is not None:
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
    )


def _check_setting(roles: RoleCounts, label: str) -> None:
    needs = "every role that occurs needs at least 2 rows" if 1 in roles.counts else None
    if roles.setting not in {"PN", "PU", "NU", "PNU"}:
        needs = "a ranking needs at least two of positive, negative and unlabelled rows"
    if needs is not None:
        raise InputError(f"Label column '{label}' holds {roles.describe()}; {needs}.")


def _prior(
    settings: FitSettings, X: Any, rows: StudyRows, messages: list[str]
) -> ClassPrior | None:
    try:
        prior = find_prior(
            settings.prior,
            X,
            rows.roles,
            belief=settings.belief,
            level=settings.level,
            random_state=settings.random_state,
            n_unlabeled=rows.counts.n_unlabeled,
        )
    except (PriorNotIdentifiedError, MissingRoleError) as error:
        raise InputError(f"{error} Or give the prior yourself.", about="prior") from error
    if prior is not None and prior.doubt:
        messages.append(f"The prior is doubtful: {prior.doubt} Give it if you know it.")
    return prior


def _model(settings: FitSettings) -> str:
    own = settings.basis is not None or settings.n_centers is not None
    return settings.model or ("average" if own else "auto")


def _views(settings: FitSettings, encoder: TableEncoder) -> tuple[str, ...]:
    """What the ranker reads; trees get a view of their own where it differs by more than scale."""
    encoding = encoder.encoding_
    same = isinstance(encoding, SparseEncoding) or encoding.same_for_trees
    return ("kernels",) if same or _model(settings) != "auto" else ("kernels", "trees")


def _ranker(
    settings: FitSettings, prior: ClassPrior | None, verbose: bool | None
) -> AutoAUCClassifier | AUCClassifierCV:
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
    common: dict[str, Any] = {
        "prior": prior,
        "n_jobs": settings.n_jobs,
        "verbose": verbose,
        "random_state": settings.random_state,
    }
    if model == "auto":
        return AutoAUCClassifier(**common)
    return AUCClassifierCV(
        selection=model,
        basis=settings.basis or "gaussian",
        n_centers=settings.n_centers or 200,
        **common,
    )


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
    prior: ClassPrior | None,
    encoder: TableEncoder,
    settings: FitSettings,
    tick: Tick,
) -> CrossFit | None:
    """Everything that rests on held-out scores; left out, with a reason, where there are none."""
    roles = rows.roles
    used = evaluation_rows(roles, settings.evaluation_unlabeled, settings.random_state)
    copies = find_copies(kernels_of(X[used], encoder), roles.take(used), settings.random_state)
    # a training part needs two rows of every role: three different ones are held back one by one
    different = fold_count(roles.take(used), copies, 4)
    n_folds = fold_count(roles.take(used), copies, settings.folds if different > 3 else 3)
    if n_folds < 2 or different < 3:
        findings["auc"] = None
        findings["auc_reason"] = (
            "Too few labelled rows to hold any back: the AUC of this model cannot be estimated "
            f"honestly ({roles.describe()}; at least 3 different rows of each are needed)."
        )
        return None
    quiet = quietly(ranker)
    held_out = cross_fit(
        quiet, X, roles, used, n_folds=n_folds, seed=settings.random_state, copies=copies, tick=tick
    )
    if settings.max_unlabeled == "all" and rows.origin is not None:
        tick("held-out rows", 0.0)
        held_out = placed_among_all(held_out, X, rows.origin, encoder, _views(settings, encoder))
    findings["auc_procedure"] = _procedure(n_folds, held_out, rows.counts)
    findings["copies"] = copies_findings(held_out)
    findings |= auc_findings(held_out, prior, settings.level)
    findings["review"] = review_findings(
        held_out, prior, rows.counts.n_unlabeled, settings.top, settings.level
    )
    findings["scores"] = score_histograms(held_out.roles, held_out.scores)
    best = findings["auc"] or findings.get("auc_raw")
    if settings.comparisons:
        tick("rivals", 0.0)
        method = best["method"] if best else "auto"
        findings["rivals"] = rival_findings(
            quiet, kernels_of(X, encoder), held_out, prior, method, n_folds, settings
        )
        findings["unlabeled_effect"] = unlabeled_effect(
            ranker, quiet, X, roles, held_out, prior, n_folds, settings.random_state
        )
    tick("importance", 0.0)
    importance = []
    if settings.importance and best is not None:
        importance = column_importance(
            held_out, X, encoder, prior, best["method"], seed=settings.random_state
        )
    findings["importance"] = importance_findings(importance, encoder.n_features_in_)
    return held_out


def _procedure(n_folds: int, held_out: CrossFit, roles: RoleCounts) -> str:
    n_used, n_all = held_out.roles.n_unlabeled, roles.n_unlabeled
    identical, among = held_out.copies.n_rows, held_out.n_reference
    told = [
        f"{n_folds} folds by role: the whole selection is repeated without each fold and the fold "
        "is scored by that refit, so no row is judged by a model that saw its label."
    ]
    if n_used < n_all:
        told += [f"{n_used:,} of {n_all:,} unlabelled rows, drawn at random, take part."]
    if among is not None:
        told += [f"Labelled rows are placed among all {among:,} unlabelled ones."]
    if identical:
        told += [f"{identical:,} rows have an identical twin; identical rows are kept in one fold."]
    told += [
        "A score counts by its place among the unlabelled scores of its fold; the prior and the "
        "encoding come from all rows. The interval allows for the scatter of refits and for what "
        "the final model gains from the rows that each of them lacked."
    ]
    return " ".join(told)


def _card(findings: dict[str, Any], columns: ColumnRoles) -> dict[str, Any]:
    """What the model file tells about itself: no rows of the table, no ids."""
    wanted = (
        *("pnuauc", "created", "command", "labels", "prior", "auc", "auc_procedure", "auc_reason"),
        *("copies", "review", "unlabeled_effect", "rivals", "importance", "warnings", "settings"),
    )
    card = {key: findings[key] for key in wanted if key in findings}
    card["label"], card["ids"] = columns.label, list(columns.ids)
    return card | {key: findings[key] for key in ("table", "selection")}
