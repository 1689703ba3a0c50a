"""Does every place say the same, and is it true? The command line played on everyday tables.

``python -m experiments.stories [TABLE ...] [--folder DIR]``. For each table of
:mod:`experiments.everyday` and each story (positives and negatives, positives alone, rare
positives) a file is written (CSV, Parquet or Excel), then ``fit``, ``score``, ``evaluate``,
``inspect`` and a second ``fit`` are run as commands. What is stated in the printed text, the JSON,
the HTML, the rows to review, the model's card and the scores is compared with each other: a
difference is listed and the exit code is 1. What is stated is also set beside the truth: AUC on
other rows, share of positives and positives in the top among the unlabelled rows.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from experiments.config import Setting
from experiments.everyday import TABLES, Draw, draw
from experiments.summary import markdown_table

__all__ = ["STORIES", "Story", "play"]


class Story(NamedTuple):
    """Labelled positives and negatives, unlabelled rows and positives among them, and a format."""

    n_positive: int
    n_negative: int
    n_unlabeled: int
    prior: float
    ending: str


STORIES = {
    "PNU": Story(40, 60, 1500, 0.2, ".csv"),
    "PU": Story(40, 0, 1500, 0.2, ".parquet"),
    "rare": Story(15, 45, 1500, 0.03, ".xlsx"),
}
_WRITERS = {".csv": "to_csv", ".parquet": "to_parquet", ".xlsx": "to_excel"}
#: Chances are read at the places of rows, counts at evenly spaced ones: so much they may differ.
_PLACES = 0.004


class Checks:
    """Differences between places, in words."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.n = 0

    def same(self, what: str, a: float, b: float, within: float = 1e-9) -> None:
        self.n += 1
        if not abs(a - b) <= within:
            self.found.append(f"{what}: {a:.6g} and {b:.6g}")

    def holds(self, what: str, true: bool) -> None:
        self.n += 1
        if not true:
            self.found.append(what)


def command(*words: Any) -> str:
    """What ``pnuauc`` prints."""
    call = [sys.executable, "-m", "pnuauc", *map(str, words)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(call)}: {done.stderr}")
    return done.stdout


def play(name: str, story: Story, folder: Path, seed: int = 0) -> tuple[dict[str, Any], list[str]]:
    """Run one story; a row of what was stated beside the truth, and the differences found."""
    setting = Setting(*story[:4])
    drawn = draw(name, setting, seed)
    table = folder / f"{name}{story.ending}"
    _write(_labelled(drawn), table)
    printed = command("fit", table, "--label", "y", "--id", "key", "--jobs", 1)
    stated = json.loads(table.with_suffix(".json").read_text())
    checks = Checks()
    _texts_agree(checks, stated, printed, table)
    scores = _scores_agree(checks, stated, table)
    _refit_agrees(checks, stated, table, folder)
    row = _beside_truth(checks, drawn, stated, scores, table, folder)
    return {
        "table": name,
        "checks": checks.n,
        "differences": len(checks.found),
        **row,
    }, checks.found


def _labelled(drawn: Draw) -> Any:
    whole = pd.concat([drawn.labelled, drawn.unlabeled], ignore_index=True)
    y = pd.array(np.where(drawn.y < 0, None, drawn.y), dtype="Int64")
    return whole.assign(y=y, key=[f"r{i:05d}" for i in range(len(whole))])


def _write(frame: Any, path: Path) -> None:
    getattr(frame, _WRITERS[path.suffix])(path, index=False)


def _texts_agree(checks: Checks, stated: dict[str, Any], printed: str, table: Path) -> None:
    """Text, page and card repeat the numbers of the JSON."""
    card = json.loads(command("inspect", table.with_suffix(".pnuauc"), "--json"))["card"]
    for key in ("auc", "prior", "review", "labels"):
        checks.holds(f"card and JSON differ in {key}", card.get(key) == stated.get(key))
    page = table.with_suffix(".html").read_text()
    page = unescape(re.sub(r"<[^>]*>", " ", page[page.index("<body") :]))
    for number in _numbers(stated):
        checks.holds(f"not printed: {number}", number in printed)
        checks.holds(f"not in the report: {number}", number in page)


def _numbers(stated: dict[str, Any]) -> Iterator[str]:
    """As they are to be read wherever the finding is told."""
    auc, prior, review = (stated.get(key) for key in ("auc", "prior", "review"))
    if auc:
        yield from (f"{auc[key]:.3f}" for key in ("value", "low", "high"))
    if prior:
        yield from (f"{100 * prior[key]:.1f}%" for key in ("value", "low", "high"))
    if review:
        yield f"{review['expected']['value']:,.1f}"
        yield f"{review['rows_for_half']:,}"


def _scores_agree(checks: Checks, stated: dict[str, Any], table: Path) -> Any:
    """Scores of the same table: order, counts, chances; the rows to review are their head."""
    target = table.with_suffix(".scored.parquet")
    said = json.loads(
        command("score", table.with_suffix(".pnuauc"), table, "-o", target, "--json", "--overwrite")
    )
    scores = pd.read_parquet(target)
    checks.same("rows scored", said["rows"], len(scores))
    checks.same("rows above the threshold", said["above_threshold"], (scores["score"] > 0).sum())
    open_rows = scores[pd.to_numeric(scores["y"]).isna()].sort_values(
        "score", ascending=False, kind="stable"
    )
    review = pd.read_csv(table.with_suffix(".review.csv"), dtype={"key": str})
    head = open_rows.head(len(review))
    tied = open_rows["score"].iloc[len(review) - 1]
    sure = review["score"] > tied + 1e-9
    checks.holds("rows to review", set(review["key"][sure]) <= set(head["key"]))
    byname = open_rows.set_index("key").loc[review["key"]]
    for column in ("score", "probability", "probability_low", "probability_high"):
        checks.holds(f"{column} in one place only", (column in review) == (column in scores))
        if column in review and column in scores:
            gap = np.abs(byname[column].to_numpy() - review[column].to_numpy()).max()
            checks.same(f"{column} of the rows to review", gap, 0.0, 1e-6)
    prior, count = stated.get("prior"), stated.get("review")
    if not prior:
        checks.holds("a share withheld, chances stated", "probability" not in scores)
        return open_rows
    share = float((open_rows["score"] > 0).mean())
    checks.same("share above the threshold", share, prior["value"], 0.02)
    chances = open_rows["probability"].to_numpy()
    checks.same("mean chance and share", chances.mean(), prior["value"], _PLACES)
    checks.holds(
        "a chance outside its interval",
        bool((open_rows["probability_low"] <= chances + 1e-9).all())
        and bool((chances <= open_rows["probability_high"] + 1e-9).all()),
    )
    for line in count["counts"] if count else []:
        expected = chances[: line["k"]].sum()
        checks.same(f"top {line['k']}", expected, line["value"], 0.3 + _PLACES * line["k"])
    return open_rows


def _refit_agrees(checks: Checks, stated: dict[str, Any], table: Path, folder: Path) -> None:
    """The same rows in another order and format give the same numbers."""
    frame = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".xlsx": pd.read_excel}[
        table.suffix
    ](table)
    other = folder / f"again-{table.stem}.parquet"
    _write(frame.sample(frac=1.0, random_state=1), other)
    again = json.loads(command("fit", other, "--label", "y", "--id", "key", "--jobs", 1, "--json"))
    for key in ("auc", "prior"):
        a, b = stated.get(key) or {}, again.get(key) or {}
        for name in ("value", "low", "high"):
            checks.same(f"{key} {name}, again", a.get(name, 0.0), b.get(name, 0.0), 1e-6)


def _beside_truth(
    checks: Checks, drawn: Draw, stated: dict[str, Any], scores: Any, table: Path, folder: Path
) -> dict[str, Any]:
    """Other rows are scored and evaluated; the hidden classes of U are counted."""
    fresh = folder / f"fresh-{table.stem}{table.suffix}"
    _write(drawn.test, fresh)
    target = fresh.with_suffix(".scored.csv")
    command("score", table.with_suffix(".pnuauc"), fresh, "-o", target, "--overwrite")
    # in a table of few values new rows may equal labelled ones, which are marked as seen
    scored = pd.read_csv(target).drop(columns="seen").assign(truth=drawn.y_test)
    scored.to_csv(target.with_suffix(".truth.csv"), index=False)
    judged = json.loads(
        command(
            *("evaluate", target.with_suffix(".truth.csv"), "--label", "truth"),
            *("--negative", 0, "--json"),
        )
    )
    true_auc = roc_auc_score(scored["truth"], scored["score"])
    checks.same("AUC by evaluate", judged["scores"]["score"]["auc"]["value"], true_auc, 1e-6)
    auc, prior, review = (stated.get(key) for key in ("auc", "prior", "review"))
    hidden = dict(zip(_labelled(drawn)["key"][drawn.y < 0], drawn.hidden, strict=True))
    hits = sum(hidden[key] for key in scores["key"].head(20))
    top = review["counts"][0] if review else None
    return {
        "AUC": _said(auc, true_auc),
        "true AUC": f"{true_auc:.3f}",
        "share": _said(prior, drawn.hidden.mean()),
        "true share": f"{drawn.hidden.mean():.3f}",
        "top 20": _said(top, hits, ".1f"),
        "true top 20": hits,
    }


def _said(stated: dict[str, Any] | None, truth: float, form: str = ".3f") -> str:
    """Value and limits; "!" where the truth lies outside."""
    if not stated:
        return "withheld"
    missed = "" if stated["low"] <= truth <= stated["high"] else " !"
    value, low, high = (format(stated[key], form) for key in ("value", "low", "high"))
    return f"{value} ({low} to {high}){missed}"


def main() -> int:
    """Play the stories; print a table and the differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=[], help=f"of {', '.join(TABLES)}")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    options = parser.parse_args()
    rows, differences = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for name in options.tables or TABLES:
            for title, story in STORIES.items():
                place = folder / f"{title}-{name}"
                place.mkdir(parents=True, exist_ok=True)
                row, found = play(name, story, place)
                rows.append({"story": title, **row})
                differences += [f"{title}, {name}: {line}" for line in found]
                print(f"{title:5s} {name:10s} {row}", file=sys.stderr, flush=True)
    print(markdown_table(rows))
    print("\n".join(differences) or "No place contradicts another.")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
