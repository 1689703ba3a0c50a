"""Findings -> one self-contained HTML file."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from pnuauc._extras import need
from pnuauc._json import visible
from pnuauc._report import _charts as charts
from pnuauc._report import _words as words

__all__ = ["to_html"]

#: Findings and charts that some data have no use for.
_OPTIONAL = (
    *("prior", "auc", "roc", "scores", "review", "sensitivity"),
    *("unlabeled_effect", "importance"),
)
_CHARTS = (
    *("roc", "methods", "scores", "posterior", "sensitivity", "importance"),
    *("eta", "width", "alpha"),
)


def to_html(findings: dict[str, Any]) -> str:
    """The report as HTML: no scripts, nothing fetched, light and dark."""
    jinja2 = need("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pnuauc._report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    environment.filters["filename"] = lambda path: PurePath(path).name
    template = environment.get_template("report.html.j2")
    return visible(
        template.render(
            f={**dict.fromkeys(_OPTIONAL), **findings},
            headline=words.headline(findings),
            summary=words.summary_rows(findings),
            setting=words.setting_words(findings["labels"]["setting"]),
            effect=words.effect_words(findings.get("unlabeled_effect") or {"message": ""}),
            measure=words.rival_measure,
            percent=words.percent,
            charts={**dict.fromkeys(_CHARTS), **_draw(findings)},
        )
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _draw(findings: dict[str, Any]) -> dict[str, str]:
    """The charts there are findings for."""
    out: dict[str, str | None] = {}
    auc, roc, methods = (findings.get(name) or {} for name in ("auc", "roc", "auc_methods"))
    if auc and roc:
        out["roc"] = charts.roc_chart(roc, methods.get(roc["method"], auc))
    if auc and len(methods) > 1:
        out["methods"] = charts.interval_chart(methods)
    if findings.get("scores"):
        out["scores"] = charts.histogram_chart(findings["scores"])
    prior = findings.get("prior") or {}
    if curve := findings.get("sensitivity"):
        out["sensitivity"] = charts.sensitivity_chart(curve, (prior["low"], prior["high"]))
    if prior.get("posterior") and prior.get("told", True):
        out["posterior"] = charts.posterior_chart(prior)
    if columns := (findings.get("importance") or {}).get("columns"):
        out["importance"] = charts.importance_chart(columns)
    for name, curve in findings["selection"].get("curves", {}).items():
        out[name] = charts.selection_chart(name, curve)
    return {name: chart for name, chart in out.items() if chart}
