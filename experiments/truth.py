"""Is what ``pnuauc fit`` prints true? The whole tool on many tables, against rows it never saw.

``python -m experiments truth``. A trial draws a table of P, N and U rows from a set, runs the study
behind ``pnuauc fit`` (columns are not shuffled, rivals not fitted) and keeps every number that the
report states with its interval, beside the truth: the final model's AUC on up to 2,500 other rows
of each class, the share of positives inside U, and the positives among the 20 highest rows.

Versions: "posterior" is the default. The rows of the others are kept from earlier ways to state the
same numbers: "now" (refits of the whole committee, corrected), "average" (the kernel model with
100 centres), "before" (commit b617541). What the posterior is told beforehand was chosen on trials
900 and 901 and by looking at misses on trials 20 to 22; it runs on trials 23 to 25, which no choice
had seen.
"""

from __future__ import annotations

import functools
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.config import Experiment, Job, Setting
from experiments.kinds import Kind
from experiments.paper_sets import load
from experiments.store import Row
from experiments.summary import finished, markdown_table, share_below
from experiments.truth_tables import TABLES
from pnuauc.datasets import sample_pnu
from pnuauc.labels import Roles
from pnuauc.metrics import auc_estimate

__all__ = ["STATED", "TRUTH", "line_of", "study_row", "table_of"]

_TOP = 20
_POOL = 9000
_TEST = 2500

#: What a row holds beside its key.
STATED = (
    *("true_prior", "true_auc", "true_se", "top_hits", "seconds"),
    *("auc_value", "auc_low", "auc_high", "auc_method"),
    *("prior_value", "prior_low", "prior_high", "prior_told"),
    *("top_value", "top_low", "top_high", "top_told", "identical"),
    *("pn_low", "pn_high", "pu_low", "pu_high", "combined_low", "combined_high"),
    *("plain_low", "plain_high", "chances"),
)
#: Stated probabilities of single rows are counted between these.
_EDGES = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)

Table = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


@functools.lru_cache(maxsize=2)
def _real(name: str) -> tuple[Any, Any]:
    return load(name)


def _pool(name: str, trial: int) -> tuple[Any, Any]:
    if name in TABLES:
        return TABLES[name](_POOL, np.random.default_rng([7, trial]))
    return _real(name)


def table_of(name: str, setting: Setting, trial: int) -> Table | None:
    """X, y (1, 0, -1), hidden labels of U, and other rows; None where the set has too few rows.

    A setting with ``labelled="random"`` labels so many rows at random; "stacked" is a table of half
    the size, twice.
    """
    X, y = _pool(name, trial)
    n_p, n_n, n_u = setting.n_positive, setting.n_negative, setting.n_unlabeled
    random = dict(setting.more).get("labelled") == "random"
    total = n_p + n_n
    key = ("random", total, setting.prior) if random else (n_p, n_n, setting.prior)
    seed = zlib.crc32(f"{name}{key}{trial}".encode()) % 2**31
    if random:
        n_p = max(int(np.random.RandomState(seed).binomial(total, setting.prior)), 3)
        n_n = total - n_p
    n_u = 500 if name == "usps" else n_u
    copies = 2 if name == "stacked" else 1
    n_p, n_n, n_u = max(n_p // copies, 3), n_n // copies, n_u // copies
    if (y == 1).sum() < n_p + setting.prior * n_u * 1.3 + 60:
        return None
    s = sample_pnu(X, y, n_p, n_n, n_u, setting.prior, seed, unlabeled_draw="binomial")
    rng = np.random.RandomState(seed + 1)
    kept = [rng.permutation(np.flatnonzero(s.y_test == label))[:_TEST] for label in (1, 0)]
    rows = np.concatenate(kept)
    return (
        np.vstack([s.X] * copies),
        np.concatenate([s.y] * copies),
        np.concatenate([s.y_unlabeled] * copies),
        s.X_test[rows],
        s.y_test[rows],
    )


def _auc(positive: NDArray[Any], negative: NDArray[Any]) -> tuple[float, float]:
    """Share of pairs won, and its standard error."""
    f, g = share_below(positive, negative), share_below(negative, positive)
    return float(f.mean()), float(np.sqrt(f.var() / len(f) + g.var() / len(g)))


def run(job: Job) -> list[dict[str, Any]]:
    """One fit by each version that is present; the rows of "before" are kept as they are."""
    drawn = table_of(job.data_set, job.setting, job.seed)
    return [
        {"method": method.name, **_one_fit(drawn, method.settings)}
        for method in job.methods
        if drawn is not None and method.name == "posterior"
    ]


def _one_fit(drawn: Table, options: dict[str, Any]) -> dict[str, Any]:
    """What a study states, and the truth."""
    import pandas as pd

    X, y, hidden, X_test, y_test = drawn

    def frame(rows: Any) -> Any:
        names = [f"c{j}" for j in range(X.shape[1])]
        return pd.DataFrame(np.asarray(rows, float), columns=names)

    parts = frame(X[y != -1]), frame(X[y == -1]), frame(X_test)
    known = np.concatenate([y[y != -1], y[y == -1]])
    return study_row(parts, (known, hidden, y_test), options)


def study_row(
    frames: tuple[Any, Any, Any], classes: tuple[Any, Any, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """What a study of a table states, and the truth: the columns ``STATED``.

    frames : labelled rows, unlabelled rows and other rows, pandas frames without a label
    classes : labels as the tool gets them (of labelled, then unlabelled rows), hidden ones of U
    and those of the other rows
    options : settings of the fit; "version" is raised when the tool changes, so that rows of an
    earlier one do not count, and "first" is the first trial of a method
    """
    import pandas as pd
    import pyarrow as pa

    from pnuauc.study.fit import FitSettings, fit_study
    from pnuauc.study.rows import ColumnRoles, LabelCodes

    labelled, unlabeled, test = frames
    y, hidden, y_test = classes
    table = pd.concat([labelled, unlabeled], ignore_index=True).assign(label=y.astype(int))
    codes = LabelCodes(positive=1, negative=0 if (y == 0).any() else None, unlabeled=-1)
    asked = {name: value for name, value in options.items() if name not in ("version", "first")}
    settings = FitSettings(importance=False, comparisons=False, top=_TOP, **asked)
    start = time.process_time()
    study = fit_study(table, ColumnRoles("label", codes=codes), settings)
    seconds = time.process_time() - start

    def scores(frame: Any) -> NDArray[Any]:
        return np.asarray(study.model.score(pa.Table.from_pandas(frame, preserve_index=False)))

    of_test = scores(test)
    truth, error = _auc(of_test[y_test == 1], of_test[y_test == 0])
    of_unlabeled = scores(unlabeled)
    order = np.argsort(-of_unlabeled, kind="stable")[:_TOP]
    row = {"chances": _chances(study.model.probability(of_unlabeled), hidden)}
    row |= {"true_prior": float(hidden.mean()), "true_auc": truth, "true_se": error}
    row |= {"top_hits": int(hidden[order].sum()), "seconds": seconds}
    return row | _stated(study.findings.to_dict()) | _alternatives(study)


def _chances(stated: NDArray[Any] | None, hidden: NDArray[Any]) -> str:
    """Unlabelled rows by stated probability: "rows, sum of probabilities, positives; ..."."""
    if stated is None:
        return ""
    place = np.clip(np.searchsorted(_EDGES, stated[:, 0], "right") - 1, 0, len(_EDGES) - 2)
    counts = [
        np.bincount(place, weights, len(_EDGES) - 1) for weights in (None, stated[:, 0], hidden)
    ]
    return "; ".join(
        f"{n:.0f} {total:.4f} {hits:.0f}" for n, total, hits in zip(*counts, strict=True)
    )


def _alternatives(study: Any) -> dict[str, Any]:
    """Another interval for the same AUC: DeLong's, as one would take it."""
    out: dict[str, Any] = {}
    held = study.evidence
    if held is not None and {0, 1} <= set(held.held_out.codes.tolist()):
        plain = auc_estimate(Roles(held.held_out.codes), held.places, method="pn")
        half = 1.96 * plain.std_error
        out |= {"plain_low": max(plain.value - half, 0.0), "plain_high": min(plain.value + half, 1)}
    return out


def _stated(findings: dict[str, Any]) -> dict[str, Any]:
    """Every number that the report states, with its interval."""
    auc, prior, review, copies = (
        findings.get(k) or {} for k in ("auc", "prior", "review", "copies")
    )
    top = review.get("expected", {})
    out = {f"auc_{k}": auc.get(k, "") for k in ("value", "low", "high", "method")}
    for name, found in (("prior", prior), ("top", top)):
        out |= {f"{name}_{k}": found.get(k, "") for k in ("value", "low", "high", "told")}
    return {**out, "identical": copies.get("identical", "")}


# --- the table ----------------------------------------------------------------------------------

GROUPS: dict[str, Callable[[Row], bool]] = {
    "10 P or more, with N": lambda r: _alone(r) and _count(r, "P") >= 10 and _count(r, "N") > 0,
    "10 P or more, no N": lambda r: _alone(r) and _count(r, "P") >= 10 and _count(r, "N") == 0,
    "5 P": lambda r: _alone(r) and _count(r, "P") < 10,
    "every row twice": lambda r: not _alone(r),
}


def _alone(row: Row) -> bool:
    return row["data_set"] != "stacked"


def _count(row: Row, role: str) -> int:
    return int(next(part[1:] for part in row["setting"].split() if part[0] == role))


def _numbers(rows: list[Row], *names: str) -> NDArray[Any]:
    """Columns of the rows that have all of them, shape (names, rows)."""
    full = [r for r in rows if all(r[name] != "" for name in names)]
    return np.array([[float(r[name]) for r in full] for name in names]).reshape(len(names), -1)


def line_of(rows: list[Row]) -> dict[str, object]:
    """Coverage, width and error of one group."""
    value, low, high, truth, error = _numbers(
        rows, "auc_value", "auc_low", "auc_high", "true_auc", "true_se"
    )
    p_low, p_high, share = _numbers(rows, "prior_low", "prior_high", "true_prior")
    t_low, t_high, hits = _numbers(rows, "top_low", "top_high", "top_hits")
    strict = np.mean((low <= truth) & (truth <= high))
    # the truth is itself an estimate from other rows: half of its error on either side
    fair = np.mean((low - error / 2 <= truth) & (truth <= high + error / 2))
    # a count is whole: an interval from 2.7 to 8.1 holds the 3 to 8 between
    top = np.mean((np.floor(t_low) <= hits) & (hits <= np.ceil(t_high)))
    return {
        "fits": len(rows),
        "AUC stated": len(value),
        "AUC covers %": f"{100 * strict:.0f} ({100 * fair:.0f})",
        "AUC width": f"{np.mean(high - low):.3f}",
        "AUC rms error": f"{np.sqrt(np.mean((value - truth) ** 2)):.3f}",
        "AUC outside [0, 1]": int(((value < 0) | (value > 1)).sum()),
        # rows whose limits were moved by a formula do not state the prior's
        "prior covers %": f"{100 * np.mean((p_low <= share) & (share <= p_high)):.0f}"
        if len(share)
        else "",
        "prior width": f"{np.mean(p_high - p_low):.2f}" if len(share) else "",
        "top 20 covers %": f"{100 * top:.0f}",
        "top 20 width": f"{np.mean(t_high - t_low):.1f}",
    }


def show(experiment: Experiment, results: Path) -> str:
    """Every version by labels; widths beside those of other intervals; then by set."""
    rows = finished(experiment, results)
    versions = {m.name: [r for r in rows if r["method"] == m.name] for m in experiment.methods}
    every = markdown_table(_lines(versions, "labels", GROUPS))
    del versions["before"]
    tables = {
        "Other intervals for the same AUCs, where both are stated:": _beside(versions),
        "Unlabelled rows by the probability that is stated of each, stacked tables left out:": (
            _by_chance(versions)
        ),
        "By setting, stacked tables left out:": _by_setting(experiment, versions),
        "By set, 10 positives or more:": _by_set(versions),
    }
    return "\n\n".join([every, *(f"{k}\n\n{markdown_table(v)}" for k, v in tables.items())])


def _lines(
    versions: dict[str, list[Row]],
    column: str,
    groups: dict[str, Callable[[Row], bool]],
    kept: tuple[str, ...] = (),
) -> list[dict[str, object]]:
    """A line for each group and version that has rows; of its numbers those ``kept``, or all."""
    lines: list[dict[str, object]] = []
    for name, version, part in _parts(versions, groups):
        line = line_of(part)
        lines.append({column: name, "version": version} | {k: line[k] for k in kept or line})
    return lines


def _parts(
    versions: dict[str, list[Row]], groups: dict[str, Callable[[Row], bool]]
) -> Iterator[tuple[str, str, list[Row]]]:
    """(group, version, rows) wherever there are rows."""
    for name, belongs in groups.items():
        for version, rows in versions.items():
            if part := [r for r in rows if belongs(r)]:
                yield name, version, part


def _beside(versions: dict[str, list[Row]]) -> list[dict[str, object]]:
    """Coverage and width of each interval and of the stated one, on the same fits."""
    lines: list[dict[str, object]] = []
    for name, version, part in _parts(versions, GROUPS):
        for other in ("pn", "pu", "combined", "plain"):
            low, high, own_low, own_high, truth = _numbers(
                part, f"{other}_low", f"{other}_high", "auc_low", "auc_high", "true_auc"
            )
            if not len(low):
                continue
            shares = [
                100 * np.mean((ends[0] <= truth) & (truth <= ends[1]))
                for ends in ((low, high), (own_low, own_high))
            ]
            width, own_width = (high - low).mean(), (own_high - own_low).mean()
            lines.append(
                {"labels": name, "version": version, "interval": other, "fits": len(low)}
                | {"covers %": f"{shares[0]:.0f}", "width": f"{width:.3f}"}
                | {"stated covers %": f"{shares[1]:.0f}"}
                | {"stated width over its": f"{own_width / width:.2f}"}
            )
    return lines


def _by_chance(versions: dict[str, list[Row]]) -> list[dict[str, object]]:
    """Stated probability and share of positives, bin by bin, over all fits of a group."""
    lines: list[dict[str, object]] = []
    for name, version, rows in _parts(versions, GROUPS):
        texts = [r["chances"] for r in rows if _alone(r) and r.get("chances")]
        if not texts:
            continue
        counts = np.array([[part.split() for part in text.split(";")] for text in texts], float)
        for k, (n, total, hits) in enumerate(counts.sum(axis=0)):
            if n:
                of_fits = counts[counts[:, k, 0] > 0, k]
                over = (of_fits[:, 2] - of_fits[:, 1]).std() * np.sqrt(len(of_fits)) / n
                lines.append(
                    {"labels": name, "version": version}
                    | {"probability": f"{_EDGES[k]:g} to {_EDGES[k + 1]:g}", "rows": int(n)}
                    | {"stated": f"{total / n:.3f}", "positives": f"{hits / n:.3f}"}
                    | {"error of that": f"{over:.3f}"}
                )
    return lines


#: Columns of the tables by setting and by set.
_KEPT = ("fits", "AUC covers %", "AUC width", "prior covers %", "top 20 covers %")


def _by_setting(experiment: Experiment, versions: dict[str, list[Row]]) -> list[dict[str, object]]:
    keys = [s.key for s in experiment.settings]
    groups = {key: lambda r, key=key: r["setting"] == key and _alone(r) for key in keys}
    return _lines(versions, "setting", groups, _KEPT)


def _by_set(versions: dict[str, list[Row]]) -> list[dict[str, object]]:
    names = sorted({r["data_set"] for rows in versions.values() for r in rows})
    groups = {n: lambda r, name=n: r["data_set"] == name and _count(r, "P") >= 10 for n in names}
    return _lines(versions, "set", groups, _KEPT)


TRUTH = Kind(run, show, STATED)
