"""Rows to cells: means, standard errors, the paper's t-test, and the paper's printed numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.config import Experiment, Method, Setting
from experiments.store import Row, read_rows

__all__ = [
    *("NAMES", "PAPER", "Cell", "Printed", "best_or_comparable", "cells", "finished"),
    *("markdown_table", "paper_methods", "printed", "rows_by_cell", "share_below", "trials_of"),
    "write_csv",
]

PAPER = Path(__file__).with_name("paper")
#: How the paper writes the names that differ from ours by more than case.
NAMES = {"reuters21578": "rcv1"}


@dataclass(frozen=True)
class Cell:
    """All trials of one method in one setting of one data set; AUC in per cent."""

    auc: tuple[float, ...]
    cpu_seconds: tuple[float, ...] = ()
    prior_used: tuple[float, ...] = ()
    n_unlabeled: tuple[int, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.auc)

    @property
    def mean(self) -> float:
        return float(np.mean(self.auc)) if self.auc else float("nan")

    @property
    def std_error(self) -> float:
        """s / sqrt(n), with n - 1 in s; NaN for a single trial."""
        return float(np.std(self.auc, ddof=1) / np.sqrt(self.n)) if self.n > 1 else float("nan")


@dataclass(frozen=True)
class Printed:
    """A number of the paper's table."""

    mean: float
    std_error: float
    best: bool


CellKey = tuple[str, Setting, str]


def rows_by_cell(experiment: Experiment, results: Path) -> dict[CellKey, list[Row]]:
    """(data set, setting, method name) -> rows by seed, of the present configuration only.

    Failed rows are among them, with their reason as "note"; a retry that went well replaces one.
    """
    prints = {
        (d, m.name): experiment.fingerprint(m, d)
        for d in experiment.data_sets
        for m in experiment.methods
    }
    settings = {s.key: s for s in experiment.settings}
    by_seed: dict[CellKey, dict[int, Row]] = {}
    for row in read_rows(results / f"{experiment.rows_of}.csv"):
        if (
            prints.get((row["data_set"], row["method"])) != row["fingerprint"]
            or row["setting"] not in settings
        ):
            continue
        key = (row["data_set"], settings[row["setting"]], row["method"])
        seeds = by_seed.setdefault(key, {})
        if int(row["seed"]) not in seeds or row["status"] == "ok":
            seeds[int(row["seed"])] = row
    return {key: [seeds[k] for k in sorted(seeds)] for key, seeds in by_seed.items()}


def finished(experiment: Experiment, results: Path) -> list[Row]:
    """All rows that went well, cell by cell in the order of the configuration."""
    found = rows_by_cell(experiment, results)
    return [
        row
        for data_set in experiment.data_sets
        for setting in experiment.settings
        for method in experiment.methods
        for row in found.get((data_set, setting, method.name), [])
        if row["status"] == "ok"
    ]


def cells(experiment: Experiment, results: Path) -> dict[CellKey, Cell]:
    """(data set, setting, method name) -> Cell."""
    return {key: _cell(rows) for key, rows in rows_by_cell(experiment, results).items()}


def _cell(rows: list[Row]) -> Cell:
    ok = [row for row in rows if row["status"] == "ok"]
    return Cell(
        auc=tuple(100 * float(row["auc"]) for row in ok),
        cpu_seconds=tuple(float(row["cpu_seconds"]) for row in ok if row["cpu_seconds"]),
        prior_used=tuple(float(row["prior_used"]) for row in ok if row["prior_used"]),
        n_unlabeled=tuple(int(row["n_unlabeled"]) for row in ok if row["n_unlabeled"]),
        failures=tuple(row["note"] for row in rows if row["status"] == "failed"),
    )


def best_or_comparable(values: dict[str, Cell], level: float = 0.05) -> set[str]:
    """The method of highest mean and those the t-test at ``level`` does not tell from it.

    Welch's test, one-sided, on the trials of both. The paper does not say which t-test it used;
    this one, fed the paper's own means and errors, gives 238 of the 240 boldfaces of its Table 4
    (two-sided: 235).
    """
    usable = {name: cell for name, cell in values.items() if cell.n > 1}
    if not usable:
        return set()
    best = max(usable, key=lambda name: usable[name].mean)
    chosen = {best}
    for name, cell in usable.items():
        if name != best:
            test = stats.ttest_ind(
                usable[best].auc, cell.auc, equal_var=False, alternative="greater"
            )
            if not test.pvalue < level:  # NaN: both constant and equal
                chosen.add(name)
    return chosen


def printed(experiment: Experiment) -> dict[tuple[str, Setting, str], Printed]:
    """The paper's numbers under our keys: (data set, setting, name of the method there)."""
    if experiment.paper is None:
        return {}
    with open(PAPER / experiment.paper, newline="") as file:
        lines = list(csv.DictReader(file))
    return {
        (data_set, setting, line["method"]): Printed(
            float(line["auc_percent"]), float(line["std_err"]), line["best_or_comparable"] == "1"
        )
        for data_set in experiment.data_sets
        for setting in experiment.settings
        for line in lines
        if _matches(line, data_set, setting)
    }


def _matches(line: dict[str, Any], data_set: str, setting: Setting) -> bool:
    if line["dataset"].lower() != NAMES.get(data_set, data_set):
        return False
    if float(line.get("theta_p", setting.prior)) != setting.prior:
        return False
    n_labeled = setting.n_positive + setting.n_negative
    return int(line.get("n_labeled", n_labeled)) == n_labeled


def share_below(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Of each of ``a`` the share of ``b`` that is smaller, ties one half; the shape of ``a``."""
    b = np.sort(b)
    return np.asarray((np.searchsorted(b, a, "left") + np.searchsorted(b, a, "right")) / 2 / len(b))


def trials_of(values: Iterable[Cell]) -> str:
    """ "50", or "3 to 10" where cells differ, or "0"."""
    counts = [cell.n for cell in values]
    if not counts or max(counts) == 0:
        return "0"
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def paper_methods(experiment: Experiment) -> list[Method]:
    return [m for m in experiment.methods if m.paper is not None]


def markdown_table(lines: Sequence[dict[str, object]]) -> str:
    """Lines with equal keys as a Markdown table; where there are none, a sentence."""
    if not lines:
        return "*Not run yet.*"
    head, *body = (f"| {' | '.join(map(str, v))} |" for v in (lines[0], *map(dict.values, lines)))
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])


def write_csv(path: Path, lines: Sequence[dict[str, object]]) -> None:
    """Lines with equal keys as a CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
