"""Tables 2, 4 and 5: ours beside the paper's, as Markdown and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.config import Experiment, Setting
from experiments.summary import (
    Cell,
    Printed,
    best_or_comparable,
    cells,
    paper_methods,
    printed,
    trials_of,
    write_csv,
)

__all__ = ["Table", "make_table", "show"]

_NOTHING = Cell(())
#: "PU-AUC within 1.5 points of the paper": what this reproduction set itself.
TOLERANCE = 1.5


@dataclass(frozen=True)
class Table:
    """Everything a printed table needs."""

    experiment: Experiment
    ours: dict[tuple[str, Setting, str], Cell]
    theirs: dict[tuple[str, Setting, str], Printed]

    def cell(self, data_set: str, setting: Setting, method: str) -> Cell:
        return self.ours.get((data_set, setting, method), _NOTHING)

    def bold(self, data_set: str, setting: Setting, methods: Sequence[str] = ()) -> set[str]:
        """Best and comparable among ``methods``, the paper's by default; none without a rival."""
        methods = methods or [m.name for m in paper_methods(self.experiment)]
        found = {name: self.cell(data_set, setting, name) for name in methods}
        rivals = sum(cell.n > 1 for cell in found.values())
        return best_or_comparable(found) if rivals > 1 else set()

    def column(self, setting: Setting, method: str) -> list[Cell]:
        return [self.cell(d, setting, method) for d in self.experiment.data_sets]

    def mean(self, setting: Setting, method: str) -> float:
        """Mean over the data sets; NaN while one of them has no trial yet."""
        return float(np.mean([c.mean for c in self.column(setting, method)]))

    def paper_mean(self, setting: Setting, name: str | None) -> float:
        printed = self.printed(setting, name)
        return float(np.mean([p.mean for p in printed.values()])) if printed else float("nan")

    def printed(self, setting: Setting, name: str | None) -> dict[str, Printed]:
        """What the paper prints of one of its methods, by data set; none of other methods."""
        keys = {d: (d, setting, name or "") for d in self.experiment.data_sets}
        return {d: self.theirs[key] for d, key in keys.items() if key in self.theirs}


def make_table(experiment: Experiment, results: Path) -> Table:
    return Table(experiment, cells(experiment, results), printed(experiment))


def show(experiment: Experiment, results: Path) -> str:
    """Write NAME_summary.csv; return the Markdown."""
    table = make_table(experiment, results)
    write_csv(results / f"{experiment.name}_summary.csv", summary_lines(table))
    return markdown(table)


def summary_lines(table: Table) -> list[dict[str, object]]:
    """One line a cell: ours, the paper's, difference, boldface, time."""
    lines = []
    for setting in table.experiment.settings:
        for data_set in table.experiment.data_sets:
            bold = table.bold(data_set, setting)
            for method in table.experiment.methods:
                ours = table.cell(data_set, setting, method.name)
                theirs = table.theirs.get((data_set, setting, method.paper or ""))
                lines.append(
                    {
                        "data_set": data_set,
                        "setting": setting.key,
                        "method": method.name,
                        "trials": ours.n,
                        "failures": len(ours.failures),
                        "auc_percent": _number(ours.mean, 2),
                        "std_err": _number(ours.std_error, 2),
                        "best_or_comparable": int(method.name in bold) if method.paper else "",
                        "paper_auc_percent": "" if theirs is None else theirs.mean,
                        "paper_std_err": "" if theirs is None else theirs.std_error,
                        "paper_best_or_comparable": "" if theirs is None else int(theirs.best),
                        "mean_cpu_seconds": _number(_mean(ours.cpu_seconds), 3),
                        "mean_prior_used": _number(_mean(ours.prior_used), 3),
                        "n_unlabeled": int(_mean(ours.n_unlabeled)) if ours.n_unlabeled else "",
                    }
                )
    return lines


def markdown(table: Table) -> str:
    experiment = table.experiment
    parts = [f"### {heading(experiment)}\n"]
    for setting in experiment.settings:
        parts += [_paper_part(table, setting), ""]
    parts += [_totals(table), ""]
    if len(paper_methods(experiment)) < len(experiment.methods):
        parts += [_extra_part(table), ""]
    parts += [_failures(table)]
    return "\n".join(part for part in parts if part is not None).rstrip()


def _paper_part(table: Table, setting: Setting) -> str:
    """The paper's methods in one setting; each column "ours (se) / paper (se)"."""
    methods = paper_methods(table.experiment)
    counts = [f"{m.label} {trials_of(table.column(setting, m.name))}" for m in methods]
    n_unlabeled = f"n_U = {setting.n_unlabeled:,}"
    if setting.fill == "as_many_as_there_are":
        n_unlabeled += " or as many as there are (last column)"
    lines = [
        f"prior {setting.prior:g}, n_P = {setting.n_positive}, n_N = {setting.n_negative}, "
        f"{n_unlabeled}; AUC in %, ours (standard error) / paper's. Trials: {', '.join(counts)}.\n",
    ]
    extra = ["n_U"] if setting.fill != "all_real" else []
    lines += _header(["data set", *(m.label for m in methods), *extra])
    for data_set in table.experiment.data_sets:
        bold = table.bold(data_set, setting)
        values = [
            _pair(
                table.cell(data_set, setting, m.name),
                m.name in bold,
                table.theirs.get((data_set, setting, m.paper or "")),
            )
            for m in methods
        ]
        if extra:
            used = [c for m in methods for c in table.cell(data_set, setting, m.name).n_unlabeled]
            values.append(f"{max(used):,}" if used else "")
        lines.append(_line([data_set, *values]))
    means = [
        f"{_show(table.mean(setting, m.name))} / {_show(table.paper_mean(setting, m.paper))}"
        for m in methods
    ]
    lines.append(_line(["**mean**", *means, *([""] * len(extra))]))
    counts = []
    rivals = any(table.bold(d, setting) for d in table.experiment.data_sets)
    for m in methods:
        here = sum(m.name in table.bold(d, setting) for d in table.experiment.data_sets)
        there = sum(p.best for p in table.printed(setting, m.paper).values())
        run = any(c.n for c in table.column(setting, m.name))
        counts.append(f"{here if run and rivals else '–'} / {there}")
    lines.append(_line(["**best or comparable**", *counts, *([""] * len(extra))]))
    return "\n".join(lines)


def _totals(table: Table) -> str:
    """How near we came to the paper's own method, setting by setting."""
    (ours, *_) = paper_methods(table.experiment)
    lines = [f"{ours.label}, ours against the paper's:\n"]
    lines += _header(
        ["setting", "mean, ours", "mean, paper", "difference", f"sets within {TOLERANCE} points"]
    )
    for setting in table.experiment.settings:
        mean, theirs = table.mean(setting, ours.name), table.paper_mean(setting, ours.paper)
        near, total = within(table, setting, TOLERANCE)
        shown = [_show(mean), _show(theirs), _show(mean - theirs, "+.1f")]
        lines.append(_line([setting.key, *shown, f"{near} of {total}"]))
    return "\n".join(lines)


def within(table: Table, setting: Setting, tolerance: float) -> tuple[int, int]:
    """Data sets on which ours is within ``tolerance`` points of the paper's number, or above it
    by less, and data sets with both numbers."""
    (ours, *_) = paper_methods(table.experiment)
    printed = table.printed(setting, ours.paper)
    run = {d: cell for d in printed if (cell := table.cell(d, setting, ours.name)).n}
    gaps = [abs(cell.mean - printed[d].mean) for d, cell in run.items()]
    return sum(gap <= tolerance for gap in gaps), len(gaps)


def _extra_part(table: Table) -> str:
    """Columns that the paper lacks: means over the data sets, and gaps to its method."""
    experiment = table.experiment
    reference, *_ = paper_methods(experiment)
    lines = [
        "With the columns the paper lacks: mean AUC in % over the sets, in brackets the mean "
        f"difference to our {reference.label} with its standard error over the sets (and the "
        "number of sets where not all have been run).\n"
    ]
    lines += _header(["method", *(s.key for s in experiment.settings), "trials"])
    for method in experiment.methods:
        values = [_mean_and_gap(table, s, method.name, reference.name) for s in experiment.settings]
        every = [c for s in experiment.settings for c in table.column(s, method.name) if c.n]
        if every:
            lines.append(_line([method.label, *values, trials_of(every)]))
    return "\n".join(lines)


def _mean_and_gap(table: Table, setting: Setting, method: str, reference: str) -> str:
    columns = (table.column(setting, name) for name in (method, reference))
    pairs = [(a.mean, b.mean) for a, b in zip(*columns, strict=True) if a.n and b.n]
    if not pairs:
        return "not run"
    means, others = np.array(pairs).T
    sets = "" if len(pairs) == len(table.experiment.data_sets) else f"; {len(pairs)} sets"
    if method == reference:
        return f"{means.mean():.1f}{sets}"
    gaps = means - others
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else float("nan")
    return f"{means.mean():.1f} ({_show(gaps.mean(), '+.1f')} ± {_show(error)}{sets})"


def _failures(table: Table) -> str:
    found = [
        f"- {data_set}, {setting.key}, {method}: {len(cell.failures)} times, e.g. "
        f'"{cell.failures[0]}"'
        for (data_set, setting, method), cell in table.ours.items()
        if cell.failures
    ]
    return "\n".join(["Failed trials (left out above):\n", *found]) if found else ""


def heading(experiment: Experiment) -> str:
    """ "table4" -> "Table 4: ..."; a name of another kind stays as it is."""
    name = experiment.name
    return f"{f'Table {name[5]}' if name.startswith('table') else name}: {experiment.title}"


def _pair(ours: Cell, bold: bool, theirs: Printed | None) -> str:
    left = f"{_show(ours.mean)} ({_show(ours.std_error)})" if ours.n else "not run"
    left = f"**{left}**" if bold else left
    if theirs is None:
        return left
    right = f"{theirs.mean:.1f} ({theirs.std_error:.1f})"
    return f"{left} / {f'**{right}**' if theirs.best else right}"


def _header(names: list[str]) -> list[str]:
    return [_line(names), _line(["---"] * len(names))]


def _line(values: list[str]) -> str:
    return "| " + " | ".join(values) + " |"


def _show(value: float, form: str = ".1f") -> str:
    return "–" if np.isnan(value) else format(value, form)


def _number(value: float, digits: int) -> object:
    return "" if np.isnan(value) else round(value, digits)


def _mean(values: tuple[float, ...] | tuple[int, ...]) -> float:
    return float(np.mean(values)) if values else float("nan")
