"""A month later: have columns and scores drifted, and is the ranking still as good?

The model file holds what this needs and no rows: means of the encoded columns over the rows that
the model was placed by, in units of their deviations, and quantiles of their scores.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse, stats

from pnuauc._utils.arrays import Floats
from pnuauc._utils.extras import need
from pnuauc._utils.show import ShownAsTable, visible
from pnuauc.evaluation import auc_estimate
from pnuauc.io.readers import as_table
from pnuauc.model.model import TableModel, encode_views, grouped_columns
from pnuauc.study.rows import LabelCodes, read_labels

__all__ = ["Drift", "Monitoring", "monitor_table", "monitoring_page"]

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
    refit : whether to fit again, and ``reasons`` in sentences
    """

    n_rows: int
    scores: Drift
    columns: tuple[Drift, ...]
    n_columns: int
    share_then: float | None
    share_now: float | None
    auc_then: tuple[float, float, float] | None
    auc_now: tuple[float, float, float] | None
    level: float
    reasons: tuple[str, ...]

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
            then = "" if self.auc_then is None else f"; then {self.auc_then[0]:.3f}"
            out.append(
                f"AUC now: {self.auc_now[0]:.3f} ({self.auc_now[1]:.3f} to "
                f"{self.auc_now[2]:.3f}){then}."
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
    table = as_table(data)
    given = None if label is None or sparse.issparse(table) else label
    X = encode_views(model.encoder, table, model.scorer.views)
    scores = model.score_encoded(X)
    labels = model.card.get("labels") or {}
    n_old = int(labels.get("unlabeled") or labels.get("positive", 0) + labels.get("negative", 0))
    drift = _score_drift(model.quantiles, scores, max(n_old, 2), level)
    columns = [] if model.typical is None else _column_drift(model, X, max(n_old, 2), level)
    now = None
    if given is not None:
        codes = LabelCodes(positive_label, negative_label, unlabeled_label)
        roles = read_labels(table, given, codes)
        if min(roles.n_positive, roles.n_negative) >= 2:
            found = auc_estimate(roles.as_float(), scores, method="pn", level=level)
            now = (float(found.value), float(found.low), float(found.high))
    auc = model.card.get("auc") or {}
    then = None if "value" not in auc else tuple(float(auc[k]) for k in ("value", "low", "high"))
    chances = model.probability(scores)
    prior = (model.card.get("prior") or {}).get("value")
    return Monitoring(
        n_rows=len(scores),
        scores=drift,
        columns=tuple(columns[:_SHOWN]),
        n_columns=len(columns),
        share_then=None if prior is None else float(prior),
        share_now=None if chances is None else float(chances[:, 0].mean()),
        auc_then=then,  # type: ignore[arg-type]
        auc_now=now,
        level=level,
        reasons=_reasons(drift, columns, then, now),
    )


def _score_drift(quantiles: Floats, scores: Floats, n_old: int, level: float) -> Drift:
    """P(new > old) - 1/2 with the quantiles for the old scores; DeLong's variance."""
    n = len(scores)
    below = (np.searchsorted(quantiles, scores) + np.searchsorted(quantiles, scores, "right")) / 2
    new = below / len(quantiles)
    ordered = np.sort(scores)
    above = 1 - (
        np.searchsorted(ordered, quantiles) + np.searchsorted(ordered, quantiles, "right")
    ) / (2 * n)
    error = np.sqrt(new.var() / max(n - 1, 1) + above.var() / max(n_old - 1, 1))
    return _drift("score", float(new.mean() - 0.5), float(error), level, SCORE_EFFECT)


def _column_drift(model: TableModel, X: Floats, n_old: int, level: float) -> list[Drift]:
    """Of each table column the encoded column whose mean moved most, in deviations."""
    typical = np.asarray(model.typical)
    width = model.encoder.encoding_.width("kernels")  # the view that is scaled comes first
    there = ~np.isnan(X[:, :width])
    n = np.maximum(there.sum(axis=0), 1)
    mean = np.sum(X[:, :width], axis=0, where=there, dtype=np.float64) / n
    square = np.sum(X[:, :width] ** 2, axis=0, where=there, dtype=np.float64) / n
    variance = np.maximum(square - mean**2, 0.0)
    # a column of 0 and 1 has the deviation that belongs to its mean; numbers were scaled to 1
    binary = np.all((X[:, :width] == 0) | (X[:, :width] == 1) | ~there, axis=0)
    share = np.clip(typical[:width], 0.0, 1.0)
    old = np.where(binary, np.maximum(share * (1 - share), 1.0 / n_old), 1.0)
    effect = (mean - typical[:width]) / np.sqrt(old)
    error = np.sqrt((variance / n + old / n_old) / old)
    together = 1 - (1 - level) / max(width, 1)
    out = []
    for name, places in grouped_columns(model.encoder, ("kernels",)).items():
        j = max(places, key=lambda j: abs(effect[j]))
        out.append(_drift(name, float(effect[j]), float(error[j]), together, COLUMN_EFFECT))
    return sorted(out, key=lambda drift: -abs(drift.effect))


def _drift(name: str, effect: float, error: float, level: float, limit: float) -> Drift:
    z = float(stats.norm.ppf(0.5 + level / 2))
    low, high = effect - z * error, effect + z * error
    return Drift(name, effect, low, high, low > limit or high < -limit)


def _reasons(scores: Drift, columns: list[Drift], then: Any, now: Any) -> tuple[str, ...]:
    out = []
    moved = [drift.name for drift in columns if drift.matters]
    if scores.matters:
        way = "higher" if scores.effect > 0 else "lower"
        out.append(f"Scores are {way} than those of the rows that the model was fitted on.")
    if moved:
        more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
        names = ", ".join(f"'{name}'" for name in moved[:3])
        out.append(f"Columns have drifted: {names}{more}.")
    if then is not None and now is not None and now[2] < then[1]:
        out.append(f"The AUC has fallen: at most {now[2]:.3f} now, at least {then[1]:.3f} then.")
    return tuple(out)


def monitoring_page(found: Monitoring, name: str) -> str:
    """One self-contained HTML file: no scripts, nothing fetched, light and dark."""
    jinja2 = need("jinja2")
    loaders = [jinja2.PackageLoader(f"pnuauc.{room}", "templates") for room in ("review", "report")]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    first, *rest = found.sentences()
    page: str = environment.get_template("monitor.html.j2").render(
        name=name, first=first, rest=rest, found=found, limit=COLUMN_EFFECT
    )
    return visible(page)
