"""Findings -> one self-contained HTML file; the rows to review -> CSV."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pnuauc._utils.extras import need
from pnuauc._utils.show import visible
from pnuauc.io.write import CHANCE_COLUMNS, RUN_COLUMN
from pnuauc.report import charts, words

if TYPE_CHECKING:
    from pnuauc.study.findings import Findings, TopRows


def review_columns(top: TopRows) -> dict[str, list[Any]]:
    """The rows to review as columns: row number, ids, score, chances, reason, all that is known."""
    out = {name: [line[j] for line in top.rows] for j, name in enumerate(top.header)}
    out |= {name: getattr(top, name) for name in CHANCE_COLUMNS if getattr(top, name)}
    out["reason"] = list(top.reasons)
    for j, name in enumerate(top.columns):
        out[name if name not in out else f"{name} (column)"] = [line[j] for line in top.cells]
    return out


def review_csv(top: TopRows, run: str = "") -> str:
    """:func:`review_columns` and the run id as CSV."""
    columns = review_columns(top)
    if run:
        columns[RUN_COLUMN] = [run] * len(top.rows)
    return csv_text((columns, *zip(*columns.values(), strict=True)))


def csv_text(lines: Iterable[Iterable[Any]]) -> str:
    """CSV; a cell that a spreadsheet would take for a formula gets an apostrophe in front."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_safe, line) for line in lines)
    return out.getvalue()


def _safe(cell: Any) -> Any:
    """Text that begins like a formula is made text for good; negative numbers stay numbers."""
    if isinstance(cell, str) and cell[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        try:
            float(cell)
        except ValueError:
            return f"'{cell}"
    return cell


def to_html(found: Findings) -> str:
    """The report as HTML: no scripts, nothing fetched, light and dark."""
    effect = found.unlabeled_effect
    return visible(
        fill_template(
            "report.html.j2",
            f=found,
            headline=words.headline(found),
            steps=words.next_steps(found),
            setting=words.SETTINGS[found.labels.setting],
            effect=words.effect_words(effect) if effect else "",
            percent=words.percent,
            groups=words.groups_words(found.groups) if found.groups else "",
            charts=charts.all_charts(found),
        )
    )


def fill_template(template: str, **values: Any) -> str:
    """One self-contained HTML file from a template of this package; text is never markup."""
    jinja2 = need("jinja2")
    rooms = [jinja2.PackageLoader(f"pnuauc.{room}", "templates") for room in ("report", "review")]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(rooms),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = _marked
    environment.filters["filename"] = lambda path: PurePath(path).name
    environment.filters["link"] = lambda path: quote(os.fsencode(PurePath(path).name))
    return str(environment.get_template(template).render(values))


def _marked(text: str, named: Sequence[str]) -> Any:
    """The text with these words in <mark>; all else is escaped."""
    markup = need("jinja2").utils.markupsafe.Markup
    # scripts without blanks have no ends of words
    parts = [rf"\b{re.escape(w)}\b" if w.isascii() else re.escape(w) for w in named]
    found = re.split(f"({'|'.join(parts)})", text, flags=re.IGNORECASE) if parts else [text]
    return markup().join(
        markup("<mark>{}</mark>").format(p) if j % 2 else p for j, p in enumerate(found)
    )
