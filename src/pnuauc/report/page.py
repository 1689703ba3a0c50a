"""Findings -> one self-contained HTML file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from pnuauc._utils.extras import need
from pnuauc._utils.show import visible
from pnuauc.io.write import CHANCE_COLUMNS, RUN_COLUMN
from pnuauc.report import charts, words

__all__ = ["review_columns", "review_csv", "safe_cell", "to_html"]

# The rows to review as CSV: the same rows as in the report, all their columns.


def review_columns(top: dict[str, Any]) -> dict[str, list[Any]]:
    """The rows to review as columns: row number, ids, score, chances, reason, all that is known."""
    names = ["row", *top["ids"], "score", "percentile"]
    out = {name: [line[j] for line in top["rows"]] for j, name in enumerate(names)}
    out |= {name: top[name] for name in CHANCE_COLUMNS if top.get(name)}
    out["reason"] = list(top["reasons"])
    for j, name in enumerate(top["columns"]):
        out[name if name not in out else f"{name} (column)"] = [line[j] for line in top["cells"]]
    return out


def review_csv(top: dict[str, Any], run: str = "") -> str:
    """:func:`review_columns` and the run id as CSV.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    columns = review_columns(top)
    if run:
        columns[RUN_COLUMN] = [run] * len(top["rows"])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in (columns, *zip(*columns.values(), strict=True)):
        writer.writerow([safe_cell(cell) if isinstance(cell, str) else cell for cell in line])
    return out.getvalue()


def safe_cell(cell: str) -> str:
    """Text that begins like a formula is made text for good; negative numbers stay numbers."""
    if cell[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        try:
            float(cell)
        except ValueError:
            return f"'{cell}"
    return cell


# Findings -> one self-contained HTML file.


#: Findings and charts that some data have no use for.
_OPTIONAL = (
    *("prior", "auc", "roc", "scores", "review"),
    *("unlabeled_effect", "importance", "run"),
)
_CHARTS = (
    *("roc", "scores", "posterior", "importance"),
    *("eta", "width", "alpha"),
)


def to_html(findings: dict[str, Any]) -> str:
    """The report as HTML: no scripts, nothing fetched, light and dark."""
    jinja2 = need("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pnuauc.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    environment.filters["marked"] = _marked
    environment.filters["filename"] = lambda path: PurePath(path).name
    template = environment.get_template("report.html.j2")
    return visible(
        template.render(
            f={**dict.fromkeys(_OPTIONAL), **findings},
            headline=words.headline(findings),
            steps=words.next_steps(findings),
            setting=words.setting_words(findings["labels"]["setting"]),
            effect=words.effect_words(findings.get("unlabeled_effect") or {"message": ""}),
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


def _marked(text: str, named: Sequence[str]) -> Any:
    """The text with these words in <mark>; all else is escaped."""
    markup = need("jinja2").utils.markupsafe.Markup
    # scripts without blanks have no ends of words
    parts = [rf"\b{re.escape(w)}\b" if w.isascii() else re.escape(w) for w in named]
    found = re.split(f"({'|'.join(parts)})", text, flags=re.IGNORECASE) if parts else [text]
    return markup().join(
        markup("<mark>{}</mark>").format(p) if j % 2 else p for j, p in enumerate(found)
    )


def _draw(findings: dict[str, Any]) -> dict[str, str]:
    """The charts there are findings for."""
    out: dict[str, str | None] = {}
    auc, roc = (findings.get(name) or {} for name in ("auc", "roc"))
    if auc and roc:
        out["roc"] = charts.roc_chart(roc, auc)
    if findings.get("scores"):
        out["scores"] = charts.histogram_chart(findings["scores"])
    prior = findings.get("prior") or {}
    if prior.get("posterior"):
        out["posterior"] = charts.posterior_chart(prior)
    if columns := (findings.get("importance") or {}).get("columns"):
        out["importance"] = charts.importance_chart(columns)
    for name, curve in findings["selection"].get("curves", {}).items():
        out[name] = charts.selection_chart(name, curve)
    return {name: chart for name, chart in out.items() if chart}
