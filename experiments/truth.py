"""Is what ``pnuauc fit`` prints true? The whole tool on many tables, against rows it never saw.

``python -m experiments truth``. A trial draws a table of P, N and U rows from a set, runs the study
behind ``pnuauc fit`` (100 centres; columns are not shuffled) and keeps every number that the report
states with its interval, beside the truth: the final model's AUC on up to 2,500 other rows of each
class, the share of positives inside U, and the positives among the 20 highest rows. Rows of the
method "before" were made from the same draws by the version before this study (commit b617541);
those of "again" are its held-out scores, evaluated by the present estimators.
"""

from __future__ import annotations

import functools
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.config import Experiment, Job, Setting
from experiments.kinds import Kind, together
from experiments.store import Row
from experiments.summary import finished, markdown_table
from experiments.truth_tables import TABLES
from pnuauc.datasets import load, sample_pnu

__all__ = ["TRUTH", "table_of"]

_TOP = 20
_POOL = 9000
_TEST = 2500

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

    def below(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        b = np.sort(b)
        return np.asarray((np.searchsorted(b, a, "left") + np.searchsorted(b, a, "right")) / 2) / (
            len(b)
        )

    f, g = below(positive, negative), below(negative, positive)
    return float(f.mean()), float(np.sqrt(f.var() / len(f) + g.var() / len(g)))


def run(job: Job) -> list[dict[str, Any]]:
    """One fit by the present version; nothing for the other methods, whose rows are kept."""
    import pandas as pd
    import pyarrow as pa

    from pnuauc._study import ColumnRoles, FitSettings, LabelCodes, fit_study

    drawn = table_of(job.data_set, job.setting, job.seed)
    if drawn is None or all(method.name != "now" for method in job.methods):
        return []
    X, y, hidden, X_test, y_test = drawn
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(np.asarray(X, float), columns=names).assign(label=y.astype(int))
    codes = LabelCodes(positive=1, negative=0 if (y == 0).any() else None, unlabeled=-1)
    settings = FitSettings(importance=False, n_centers=100, top=_TOP)
    start = time.perf_counter()
    study = fit_study(frame, ColumnRoles("label", codes=codes), settings)
    seconds = time.perf_counter() - start

    def scores(rows: Any) -> NDArray[Any]:
        table = pa.table({name: np.asarray(rows[:, j], float) for j, name in enumerate(names)})
        return np.asarray(study.ranker.decision_function(study.encoder.transform(table)))

    of_test = scores(X_test)
    truth, error = _auc(of_test[y_test == 1], of_test[y_test == 0])
    order = np.argsort(-scores(X[y == -1]), kind="stable")[:_TOP]
    row = {"true_prior": float(hidden.mean()), "true_auc": truth, "true_se": error}
    row |= {"top_hits": int(hidden[order].sum()), "seconds": seconds}
    return [{"method": "now", **row, **_stated(study.findings)}]


def _stated(findings: dict[str, Any]) -> dict[str, Any]:
    """Every number that the report states, with its interval."""
    out: dict[str, Any] = {}
    auc, prior, review = (findings.get(k) or {} for k in ("auc", "prior", "review"))
    for name in ("value", "low", "high", "method"):
        out[f"auc_{name}"] = auc.get(name, "")
    for name in ("value", "low", "high", "told"):
        out[f"prior_{name}"] = prior.get(name, "")
    for name in ("value", "low", "high"):
        out[f"top_{name}"] = review.get("expected", {}).get(name, "")
    out["top_told"] = review.get("told", "")
    out["identical"] = (findings.get("copies") or {}).get("identical", "")
    return out


# --- the table ----------------------------------------------------------------------------------

GROUPS: dict[str, Callable[[Row], bool]] = {
    "10 P or more, with N": lambda r: _count(r, "P") >= 10 and _count(r, "N") > 0,
    "10 P or more, no N": lambda r: _count(r, "P") >= 10 and _count(r, "N") == 0,
    "5 P": lambda r: _count(r, "P") < 10,
}


def _count(row: Row, role: str) -> int:
    return int(next(part[1:] for part in row["setting"].split() if part[0] == role))


def _numbers(rows: list[Row], *names: str) -> NDArray[Any]:
    """Columns of the rows that have all of them, shape (names, rows)."""
    full = [r for r in rows if all(r[name] != "" for name in names)]
    return np.array([[float(r[name]) for r in full] for name in names]).reshape(len(names), -1)


def _line(rows: list[Row]) -> dict[str, object]:
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
        "prior covers %": f"{100 * np.mean((p_low <= share) & (share <= p_high)):.0f}",
        "prior width": f"{np.mean(p_high - p_low):.2f}",
        "top 20 covers %": f"{100 * top:.0f}",
        "top 20 width": f"{np.mean(t_high - t_low):.1f}",
    }


def _pairs(experiment: Experiment, results: Path, version: str) -> dict[str, list[Row]]:
    """Rows of "before" and of another version, on the draws that both have finished."""
    found: dict[str, dict[tuple[str, ...], Row]] = {"before": {}, version: {}}
    for row in finished(experiment, results):
        if row["method"] in found:
            found[row["method"]][row["data_set"], row["setting"], row["seed"]] = row
    both = found["before"].keys() & found[version].keys()
    return {name: [rows[key] for key in sorted(both)] for name, rows in found.items()}


def show(experiment: Experiment, results: Path) -> str:
    """Before and after on the same draws, by labels and by set."""
    parts = []
    for method in experiment.methods:
        pairs = _pairs(experiment, results, method.name)
        if method.name == "before" or not pairs["before"]:
            continue
        parts.append(markdown_table(_by_labels(pairs)))
        if method.name == "again":
            parts += ["By set, 10 positives or more:", markdown_table(_by_set(pairs))]
    return "\n\n".join(parts) or "No draw has been finished by two versions yet."


def _by_labels(pairs: dict[str, list[Row]]) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for name, belongs in GROUPS.items():
        for version, rows in pairs.items():
            part = [r for r in rows if belongs(r) and r["data_set"] != "stacked"]
            if part:
                lines.append({"labels": name, "version": version, **_line(part)})
    for version, rows in pairs.items():
        part = [r for r in rows if r["data_set"] == "stacked"]
        # "again" has the folds of "before", in which copies were apart
        if part and "again" not in pairs:
            lines.append({"labels": "every row twice", "version": version, **_line(part)})
    return lines


def _by_set(pairs: dict[str, list[Row]]) -> list[dict[str, object]]:
    kept = ("fits", "AUC covers %", "AUC width", "prior covers %", "top 20 covers %")
    lines: list[dict[str, object]] = []
    for data_set in sorted({r["data_set"] for r in pairs["before"]} - {"stacked"}):
        for version, rows in pairs.items():
            part = [r for r in rows if r["data_set"] == data_set and _count(r, "P") >= 10]
            if part:
                line = _line(part)
                lines.append({"set": data_set, "version": version, **{k: line[k] for k in kept}})
    return lines


TRUTH = Kind(
    run,
    show,
    columns=(
        *("true_prior", "true_auc", "true_se", "top_hits", "seconds"),
        *("auc_value", "auc_low", "auc_high", "auc_method"),
        *("prior_value", "prior_low", "prior_high", "prior_told"),
        *("top_value", "top_low", "top_high", "top_told", "identical"),
    ),
    group=together,
)
