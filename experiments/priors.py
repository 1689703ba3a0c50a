"""Class priors, measured: Tables 1 and 3 of the paper beside ours, and what the paper lacks.

``python -m experiments table1`` (``table3``, ``prior_heldout``, ``prior_high``, ``prior_balanced``,
``prior_coverage``). A method is a line of ``config.toml`` with the name of an estimator in
``pnuauc.priors.PRIORS`` and its parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.config import Experiment, Job
from experiments.kinds import Kind
from experiments.quapy_methods import PREFIX, quantify
from experiments.rankers import draw
from experiments.summary import PAPER, finished, markdown_table
from pnuauc.priors import PRIORS as ESTIMATORS

__all__ = ["BY_SETTING", "COVERAGE", "INTERVALS", "PRIORS"]

COLUMNS = ("estimate", "low", "high", "std_error", "identified", "seconds")


def run(job: Job) -> list[dict[str, Any]]:
    """One estimator on one sample; doubts are recorded, not raised."""
    sample = draw(job)
    (method,) = job.methods
    options = dict(method.settings)
    name = options.pop("estimator")
    options.pop("version", None)  # tells rows of an earlier one apart, nothing else
    start = time.perf_counter()
    if name.startswith(PREFIX):  # these give no interval
        found = {"estimate": quantify(name, sample, 0, **options)}
        return [{"method": method.name, "seconds": time.perf_counter() - start, **found}]
    estimator = ESTIMATORS[name](
        **options, unlabeled_label=-1, random_state=0, on_unidentified="ignore"
    )
    start = time.perf_counter()
    estimator.fit(sample.X, sample.y)
    return [
        {
            "method": method.name,
            "seconds": time.perf_counter() - start,
            "estimate": estimator.prior_,
            "low": estimator.interval_[0],
            "high": estimator.interval_[1],
            "std_error": estimator.std_error_,
            "identified": int(estimator.diagnostics_["identified"]),
        }
    ]


def frame(experiment: Experiment, results: Path) -> pd.DataFrame:
    """All finished rows, numbers as numbers, with sizes and prior of their setting."""
    settings = {s.key: s for s in experiment.settings}
    rows = pd.DataFrame(finished(experiment, results))
    if rows.empty:
        return rows
    for name in (*COLUMNS, "seed"):
        rows[name] = pd.to_numeric(rows[name])
    for name in ("n_positive", "n_negative", "prior"):
        rows[name] = [getattr(settings[key], name) for key in rows.setting]
    rows["n_labeled"] = rows.n_positive + rows.n_negative
    return rows


def _kind(show: Callable[[pd.DataFrame, Experiment], str]) -> Kind:
    """A kind that shows the finished rows so, once there are any."""

    def shown(experiment: Experiment, results: Path) -> str:
        rows = frame(experiment, results)
        return "*Not run yet.*" if rows.empty else show(rows, experiment)

    return Kind(run, shown, COLUMNS)


def beside_paper(rows: pd.DataFrame, experiment: Experiment) -> str:
    """Errors over the cells, then every cell beside the paper's."""
    text = f"{errors(rows, experiment)}\n\n{side_by_side(rows, experiment)}"
    return text.replace("nan (nan)", "not run").replace("(nan)", "(–)")


def printed(experiment: Experiment) -> dict[tuple[Any, ...], float]:
    """The paper's means: (data set, [labelled rows,] prior) -> estimate."""
    if experiment.paper is None:
        return {}
    lines = pd.read_csv(PAPER / experiment.paper)
    names = [name for name in ("n_labeled", "theta_p") if name in lines]
    keys = zip(lines.dataset.str.lower(), *(lines[name] for name in names), strict=True)
    return dict(zip(keys, lines.estimate, strict=True))


def side_by_side(rows: pd.DataFrame, experiment: Experiment) -> str:
    """Mean estimate (standard error) of every cell, beside the paper's."""
    paper = printed(experiment)
    keys = (
        ["data_set", "prior"] if rows.n_negative.max() == 0 else ["data_set", "n_labeled", "prior"]
    )
    methods = list(dict.fromkeys(rows.method))
    lines: list[dict[str, object]] = []
    for key, cell in rows.groupby(keys, sort=False):
        line: dict[str, object] = dict(zip(("dataset", *keys[1:]), key, strict=True))
        if paper:
            line["paper"] = paper.get(key, "")
        for m in methods:
            e = cell[cell.method == m].estimate
            line[m] = f"{e.mean():.2f} ({e.std() / np.sqrt(len(e)):.2f})"
        line["trials"] = cell[cell.method == methods[0]].seed.nunique()
        lines.append(line)
    return markdown_table(lines)


def errors(rows: pd.DataFrame, experiment: Experiment) -> str:
    """Errors over the cells, with coverage of the intervals; generated sets apart if mixed in."""
    real = np.array([name not in experiment.generated for name in rows.data_set])
    part = rows[real] if real.any() else rows
    lines: list[dict[str, object]] = []
    if paper := printed(experiment):
        gaps = np.array([estimate - key[-1] for key, estimate in paper.items()])
        lines.append(
            {"method": "paper (printed means)", "cells": len(gaps), "rows": "50 trials a cell"}
            | {"MAE of cell means": f"{np.abs(gaps).mean():.4f}", "MAE": "", "RMSE": ""}
            | {"90% interval covers": "", "identified": "", "seconds": ""}
        )
    for method, sub in part.groupby("method", sort=False):
        gap = sub.estimate - sub.prior
        cell = gap.groupby([sub.data_set, sub.n_positive, sub.n_negative, sub.prior]).mean()
        lines.append(
            {
                "method": method,
                "cells": len(cell),
                "rows": len(sub),
                "MAE of cell means": f"{cell.abs().mean():.4f}",
                "MAE": f"{gap.abs().mean():.4f}",
                "RMSE": f"{_rms(gap):.4f}",
                "90% interval covers": f"{_covers(sub).mean():.3f}",
                "identified": "" if sub.identified.isna().all() else f"{sub.identified.mean():.2f}",
                "seconds": f"{sub.seconds.median():.3f}",
            }
        )
    return markdown_table(lines)


def coverage(rows: pd.DataFrame, experiment: Experiment) -> str:
    """Share of intervals that hold the truth, by data set and labelled rows."""
    lines: list[dict[str, object]] = []
    cells = rows.groupby(["data_set", "n_positive", "n_negative"], sort=False)
    for (name, n_p, n_n), cell in cells:
        covers = (cell.low <= cell.prior) & (cell.prior <= cell.high)
        lines.append(
            {
                "data": name,
                "nP": n_p,
                "nN": n_n,
                "draws": len(cell),
                "covered": f"{covers.mean():.3f}",
                "mean length": f"{(cell.high - cell.low).mean():.2f}",
            }
        )
    return markdown_table(lines)


def _covers(rows: pd.DataFrame) -> pd.Series:
    """Whether the interval holds the share that U was drawn with (to the rounding of a row)."""
    return (rows.low <= rows.prior + 5e-4) & (rows.prior - 5e-4 <= rows.high)


def by_setting(rows: pd.DataFrame, experiment: Experiment) -> str:
    """Errors of every method in every setting, beside the first method's on the same draws."""
    rows["gap"] = rows.estimate - rows.prior
    first = experiment.methods[0].name
    ours = rows[rows.method == first].set_index(["data_set", "setting", "seed"]).gap
    lines: list[dict[str, object]] = []
    for (n_p, n_n, prior), part in rows.groupby(["n_positive", "n_negative", "prior"], sort=False):
        for method, cell in part.groupby("method", sort=False):
            same = ours.reindex(pd.MultiIndex.from_frame(cell[["data_set", "setting", "seed"]]))
            known = cell.low.notna().any()
            lines.append(
                {"nP, nN, prior": f"{n_p}, {n_n}, {prior:g}", "method": method}
                | {"trials": cell.seed.nunique(), "draws": len(cell)}
                | {"RMSE": f"{_rms(cell.gap):.4f}"}
                | {f"{first} on these": f"{_rms(same.dropna()):.4f}"}
                | {"bias": f"{cell.gap.mean():+.3f}"}
                | {"90% covers": f"{_covers(cell).mean():.3f}" if known else ""}
                | {"seconds": f"{cell.seconds.median():.3f}"}
            )
    return markdown_table(lines) + "\n\n" + by_data_set(rows)


def _rms(values: pd.Series) -> float:
    return float(np.sqrt((values**2).mean()))


def by_data_set(rows: pd.DataFrame) -> str:
    """RMSE of every method on every data set, one line for each setting and set."""
    lines: list[dict[str, object]] = []
    methods = list(dict.fromkeys(rows.method))
    keys = ["n_positive", "n_negative", "prior", "data_set"]
    for (n_p, n_n, prior, name), cell in rows.groupby(keys, sort=False):
        line: dict[str, object] = {"nP, nN, prior": f"{n_p}, {n_n}, {prior:g}", "data": name}
        for method in methods:
            gap = (cell.estimate - cell.prior)[cell.method == method]
            line[method] = f"{_rms(gap):.3f}" if len(gap) else ""
        lines.append(line)
    return markdown_table(lines)


def intervals(rows: pd.DataFrame, experiment: Experiment) -> str:
    """Coverage in every setting, all data sets together and in the worst one."""
    rows = rows.assign(covers=_covers(rows))
    lines: list[dict[str, object]] = []
    for (n_p, n_n, prior), cell in rows.groupby(["n_positive", "n_negative", "prior"], sort=False):
        by_set = cell.groupby("data_set").covers.mean()
        gap = cell.estimate - cell.prior
        lines.append(
            {
                "nP": n_p,
                "nN": n_n,
                "prior": f"{prior:g}",
                "draws": len(cell),
                "covered": f"{cell.covers.mean():.3f}",
                "worst set": f"{by_set.idxmin()} {by_set.min():.2f}",
                "mean length": f"{(cell.high - cell.low).mean():.3f}",
                "lower end below one row": f"{(cell.low < 1e-3).mean():.2f}",
                "RMSE": f"{_rms(gap):.3f}",
                "bias": f"{gap.mean():+.3f}",
                "identified": f"{cell.identified.mean():.2f}",
                "covered where identified": f"{cell.covers[cell.identified == 1].mean():.3f}",
            }
        )
    return markdown_table(lines)


PRIORS = _kind(beside_paper)
BY_SETTING = _kind(by_setting)
INTERVALS = _kind(intervals)
COVERAGE = _kind(coverage)
