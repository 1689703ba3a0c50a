"""Figures 3 to 7 as PNG and SVG, with the numbers behind them as CSV; 1 and 2 in ``variance``.

The paper's figures are drawings: no numbers of theirs are at hand, so what its text says of each
figure is what ours is held against (see ``report``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.config import Experiment, Setting
from experiments.rankers import RANKERS
from experiments.summary import Cell, CellKey, cells, paper_methods, write_csv

__all__ = ["SCALABILITY", "SENSITIVITY", "TIMES", "pyplot", "save"]


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "pnuauc"  # the same file from the same numbers
    import matplotlib.pyplot as plt

    return plt


def save(figure: Any, name: str, lines: list[dict[str, object]], results: Path) -> str:
    """NAME.png, NAME.svg and NAME_summary.csv; returns the numbers as a Markdown table."""
    if figure.get_layout_engine() is None:
        figure.tight_layout()
    for kind, meta in (("png", {}), ("svg", {"Date": None})):
        figure.savefig(results / f"{name}.{kind}", dpi=120, metadata=meta)
    pyplot().close(figure)
    write_csv(results / f"{name}_summary.csv", lines)
    names = list(lines[0])
    rows = [" | ".join("–" if line[n] == "nan" else str(line[n]) for n in names) for line in lines]
    return "\n".join([" | ".join(names), " | ".join(["---"] * len(names)), *rows])


def draw_times(experiment: Experiment, results: Path) -> str:
    """Processor seconds of one fit with its whole model selection, on a logarithmic axis.

    Figure 3: Table 2 at prior 0.1; Figure 4: Table 4 at prior 0.1 and 100 labelled rows; Figure 5:
    Table 5.
    """
    setting = experiment.timed
    found = cells(experiment, results)
    sets = experiment.data_sets
    methods = [
        m for m in paper_methods(experiment) if any(found.get((d, setting, m.name)) for d in sets)
    ]
    lines: list[dict[str, object]] = []
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(9, 3.8))
    width = 0.8 / max(1, len(methods))
    for k, method in enumerate(methods):
        times = [_times(found.get((d, setting, method.name), Cell(()))) for d in sets]
        position = np.arange(len(times)) + (k - (len(methods) - 1) / 2) * width
        axis.bar(position, [t[0] for t in times], width, label=method.label)
        lines += [
            {
                "data_set": d,
                "method": method.label,
                "trials": n,
                "cpu_seconds": f"{mean:.3g}",
                "std_error": f"{error:.2g}",
            }
            for d, (mean, error, n) in zip(sets, times, strict=True)
            if n
        ]
    if not lines:
        plt.close(figure)
        return "*Not run yet.*"
    axis.set_xticks(range(len(sets)), sets, rotation=45, ha="right")
    axis.set(ylabel="processor seconds", yscale="log", title=setting.key)
    axis.legend(fontsize=8)
    return save(figure, experiment.name, lines, results)


def _times(cell: Cell) -> tuple[float, float, int]:
    values = np.array(cell.cpu_seconds)
    if not len(values):
        return float("nan"), float("nan"), 0
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return float(values.mean()), float(error), len(values)


def _points(
    found: dict[CellKey, Cell], data_set: str, settings: Iterable[Setting], method: str
) -> list[tuple[Setting, Cell]]:
    """Settings in which the method has run, each with its cell."""
    both = ((s, found.get((data_set, s, method), Cell(()))) for s in settings)
    return [(setting, cell) for setting, cell in both if cell.n]


def _auc_curve(axis: Any, x: list[float], points: list[tuple[Setting, Cell]], **look: Any) -> None:
    """Mean AUC against x, with standard errors."""
    means, errors = ([getattr(c, name) for _, c in points] for name in ("mean", "std_error"))
    axis.errorbar(x, means, errors, capsize=2, **look)


def draw_sensitivity(experiment: Experiment, results: Path) -> str:
    """Figure 6: AUC against the noise put on the prior; one panel a data set."""
    found = cells(experiment, results)
    plt = pyplot()
    size = (11, 4.2)
    figure, axes = plt.subplots(1, len(experiment.data_sets), figsize=size, layout="constrained")
    lines: list[dict[str, object]] = []
    styles = {m.name: style for m, style in zip(experiment.methods, ("-", ":"), strict=False)}
    for axis, data_set in zip(np.atleast_1d(axes), experiment.data_sets, strict=True):
        for k, prior in enumerate(sorted({s.prior for s in experiment.settings})):
            for method in experiment.methods:
                settings = (s for s in experiment.settings if s.prior == prior)
                points = _points(found, data_set, settings, method.name)
                if not points:
                    continue
                label, look = f"prior {prior:g}, {method.label}", styles[method.name]
                noise = [s.noise for s, _ in points]
                _auc_curve(axis, noise, points, label=label, color=f"C{k}", ls=look)
                start = {"data_set": data_set, "prior": prior, "method": method.label}
                lines += [
                    start
                    | {"noise": s.noise, "trials": c.n, "auc_percent": f"{c.mean:.2f}"}
                    | {"std_error": f"{c.std_error:.2f}"}
                    for s, c in points
                ]
        axis.set(title=data_set, xlabel="noise on the prior", ylabel="AUC (%)")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7)
    return save(figure, experiment.name, lines, results)


def draw_scalability(experiment: Experiment, results: Path) -> str:
    """Figure 7: AUC and processor time against the number of unlabelled rows."""
    found = cells(experiment, results)
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    lines: list[dict[str, object]] = []
    for data_set in experiment.data_sets:
        for method in experiment.methods:
            points = _points(found, data_set, experiment.settings, method.name)
            sizes = [s.n_unlabeled for s, _ in points]
            label = data_set if len(experiment.methods) == 1 else f"{data_set}, {method.label}"
            _auc_curve(left, sizes, points, label=label)
            right.plot(sizes, [_times(c)[0] for _, c in points], marker="o", label=label)
            lines += [_scale_line(data_set, method.label, s, c) for s, c in points]
    left.set(xscale="log", xlabel="unlabelled rows", ylabel="AUC (%)")
    right.set(xscale="log", yscale="log", xlabel="unlabelled rows", ylabel="processor seconds")
    left.legend()
    return save(figure, experiment.name, lines, results)


def _scale_line(data_set: str, label: str, setting: Setting, cell: Cell) -> dict[str, object]:
    mean, error, _ = _times(cell)
    return {
        "data_set": data_set,
        "method": label,
        "n_unlabeled": setting.n_unlabeled,
        "trials": cell.n,
        "auc_percent": f"{cell.mean:.2f}",
        "auc_std_error": f"{cell.std_error:.2f}",
        "cpu_seconds": f"{mean:.3g}",
        "cpu_std_error": f"{error:.2g}",
    }


TIMES = replace(RANKERS, show=draw_times)
SENSITIVITY = replace(RANKERS, show=draw_sensitivity)
SCALABILITY = replace(RANKERS, show=draw_scalability)
