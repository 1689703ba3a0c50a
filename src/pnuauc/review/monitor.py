"""A month later: have columns and scores drifted, and is the ranking still as good?

The model file holds what this needs and no rows: means of the encoded columns over the rows that
the model was placed by, in units of their standard deviations, and quantiles of their scores.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse, stats

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable, visible
from pnuauc.evaluation import auc_estimate
from pnuauc.io.frames import as_table
from pnuauc.model.model import TableModel
from pnuauc.report.page import fill_template
from pnuauc.study.rows import LabelCodes, read_labels

#: Drift that matters: of a column in standard deviations of its training rows, of the scores in
#: P(new score > old score) - 1/2. The first is what Cohen (1988) calls a small effect; a shift of
#: that size in a Gaussian score moves the second by .056.
COLUMN_EFFECT, SCORE_EFFECT = 0.2, 0.056
_SHOWN = 20


@dataclass(frozen=True)
class Drift:
    """How far something has moved, with an interval; ``matters`` where all of it is beyond."""

    name: str
    effect: float
    low: float
    high: float
    matters: bool


@dataclass(frozen=True, repr=False)
class Monitoring(ShownAsTable):
    """What :func:`monitor_table` found.

    Attributes
    ----------
    scores : drift of P(new score > old score) from 1/2
    columns : the columns that moved most, first the most; effects in standard deviations
    share_then, share_now : positives among unlabelled rows by the model's calibration, or None
    auc_then, auc_now : value, low, high; None if missing, or with too few labels
    n_seen : labelled rows that were labelled at the fit, which ``auc_now`` leaves out
    refit : whether to fit again, and ``reasons`` in sentences
    """

    n_rows: int
    scores: Drift
    columns: tuple[Drift, ...]
    share_then: float | None
    share_now: float | None
    auc_then: tuple[float, ...] | None
    auc_now: tuple[float, ...] | None
    level: float
    reasons: tuple[str, ...]
    n_seen: int = 0

    @property
    def refit(self) -> bool:
        return bool(self.reasons)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "refit": self.refit}

    def sentences(self) -> list[str]:
        """The answer in words, the decision first."""
        s = self.scores
        out = [
            "Fit again." if self.refit else "No reason to fit again.",
            *self.reasons,
            f"A new row outscores an old one in {0.5 + s.effect:.1%} of pairs "
            f"({0.5 + s.low:.1%} to {0.5 + s.high:.1%}); without drift it is 50%.",
        ]
        if self.share_then is not None and self.share_now is not None:
            out.append(
                f"Positives among unlabelled rows, if probabilities still hold: "
                f"{self.share_now:.1%} now, {self.share_then:.1%} then."
            )
        if self.auc_now is None:
            out.append("AUC now: not known, for want of new labels of both classes.")
        else:
            value, low, high = self.auc_now
            then = "" if self.auc_then is None else f"; then {self.auc_then[0]:.3f}"
            out.append(f"AUC now: {value:.3f} ({low:.3f} to {high:.3f}){then}.")
        if self.n_seen:
            out.append(
                f"{self.n_seen:,} rows were labelled when the model was fitted and are not in the "
                "AUC now: their score knows the label."
            )
        return out


def monitor_table(
    model: TableModel,
    data: Any,
    label: str | None = None,
    *,
    level: float = 0.95,
    positive_label: Any = None,
    negative_label: Any = None,
    unlabeled_label: Any = None,
) -> Monitoring:
    """Compare new rows with those that a model was fitted on: ``pnuauc monitor`` as a function.

    Parameters
    ----------
    model : TableModel, from :func:`pnuauc.load_model` or :func:`pnuauc.fit_table`
    data : frame, or CSR matrix
    label : column of new labels, optional
        A fair sample of each class, such as the random rows of a review.
    level : confidence of each interval; those of columns hold together
    positive_label, negative_label, unlabeled_label
        As in :func:`pnuauc.read_roles`.
    """
    table, card = as_table(data), model.card
    X = model.encoder.views_of(table, model.scorer.views)
    scores = model.score_encoded(X)
    labels = card.get("labels") or {}
    n_old = int(labels.get("unlabeled") or labels.get("positive", 0) + labels.get("negative", 0))
    n_old = max(n_old, 2)
    new, old = _share_below(scores, model.quantiles), _share_below(model.quantiles, np.sort(scores))
    error = np.sqrt(new.var() / max(len(new) - 1, 1) + old.var() / (n_old - 1))  # DeLong's
    drift = _drift("score", new.mean() - 0.5, error, level, SCORE_EFFECT)
    columns = [] if model.typical is None else _column_drift(model, X, n_old, level)
    now, then, n_seen = None, None, 0
    if label is not None and not sparse.issparse(table):
        codes = LabelCodes(positive_label, negative_label, unlabeled_label)
        roles, known = read_labels(table, label, codes), model.find_seen(table)
        fresh = np.ones(len(scores), dtype=bool) if known is None else ~known[0]
        n_seen = int((~fresh & (roles.codes >= 0)).sum())
        roles = roles.take(np.flatnonzero(fresh))
        if min(roles.n_positive, roles.n_negative) >= 2:
            found = auc_estimate(roles.as_float(), scores[fresh], method="pn", level=level)
            now = (float(found.value), float(found.low), float(found.high))
    if "value" in (card.get("auc") or {}):
        then = tuple(float(card["auc"][key]) for key in ("value", "low", "high"))
    chances = model.probability(scores)
    prior = (card.get("prior") or {}).get("value")
    return Monitoring(
        n_rows=len(scores),
        scores=drift,
        columns=tuple(columns[:_SHOWN]),
        share_then=None if prior is None else float(prior),
        share_now=None if chances is None else float(chances[:, 0].mean()),
        auc_then=then,
        auc_now=now,
        level=level,
        reasons=_reasons(drift, columns, then, now),
        n_seen=n_seen,
    )


def _reasons(
    drift: Drift, columns: list[Drift], then: tuple[float, ...] | None, now: Any
) -> tuple[str, ...]:
    """Why to fit again, in sentences."""
    reasons = []
    if drift.matters:
        way = "higher" if drift.effect > 0 else "lower"
        reasons.append(f"Scores are {way} than those of the rows that the model was fitted on.")
    if moved := [column.name for column in columns if column.matters]:
        more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
        names = ", ".join(f"'{name}'" for name in moved[:3])
        reasons.append(f"Columns have drifted: {names}{more}.")
    if then is not None and now is not None and now[2] < then[1]:
        reasons.append(
            f"The AUC has fallen: at most {now[2]:.3f} now, at least {then[1]:.3f} then."
        )
    return tuple(reasons)


def _share_below(values: Floats, ordered: Floats) -> Floats:
    """For each value the share of the others that are smaller, equal ones counted half."""
    sides = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray(sum(sides) / (2 * len(ordered)))


def _column_drift(model: TableModel, X: Floats, n_old: int, level: float) -> list[Drift]:
    """Of each table column the encoded column whose mean moved most, in standard deviations."""
    width = model.encoder.encoding_.width("kernels")  # the view that is scaled comes first
    X, typical = np.asarray(X[:, :width], dtype=np.float64), np.asarray(model.typical)[:width]
    there = ~np.isnan(X)
    n = np.maximum(there.sum(axis=0), 1)
    mean, square = (np.sum(X**k, axis=0, where=there) / n for k in (1, 2))
    # a column of 0 and 1 has the variance that belongs to its mean; numbers were scaled to 1
    share = np.clip(typical, 0.0, 1.0)
    old = np.maximum(share * (1 - share), 1.0 / n_old)
    old = np.where(np.all((X == 0) | (X == 1) | ~there, axis=0), old, 1.0)
    effect = (mean - typical) / np.sqrt(old)
    error = np.sqrt((np.maximum(square - mean**2, 0.0) / n + old / n_old) / old)
    together = 1 - (1 - level) / max(width, 1)
    out = []
    for name, places in model.encoder.groups_.items():
        j = max(places, key=lambda j: abs(effect[j]))
        out.append(_drift(name, effect[j], error[j], together, COLUMN_EFFECT))
    return sorted(out, key=lambda drift: -abs(drift.effect))


def _drift(name: str, effect: float, error: float, level: float, limit: float) -> Drift:
    z = float(stats.norm.ppf(0.5 + level / 2))
    low, high = float(effect - z * error), float(effect + z * error)
    return Drift(name, float(effect), low, high, low > limit or high < -limit)


def monitoring_page(found: Monitoring, name: str) -> str:
    """One self-contained HTML file: no scripts, nothing fetched, light and dark."""
    first, *rest = found.sentences()
    values = {"name": name, "first": first, "rest": rest, "found": found, "limit": COLUMN_EFFECT}
    return visible(fill_template("monitor.html.j2", **values))
