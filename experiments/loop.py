"""The working loop: how much must be read, and how often is the proven stop wrong?

``python -m experiments loop``: reviews and tables are read in batches of 3%, beginning with a few
labelled rows; each method ranks anew after every batch. ``read_to_95`` is the share of rows read
when 95% of the positives are found, ``found_after_10`` the share of the positives found in ten
rounds. Where rows are explored, a run goes on to the *expected* stop: ``read_at_stop`` and
``recall_at_stop``, and beside it ``read_at_buscar``, the stop of Callaghan and Mueller-Hansen
(2020) on the same rows in the same order (after the expected stop in that of the last scores).
``*_held`` says for each round of ``LOOKED`` whether the 95% interval holds the truth: of the share
of positives, of the AUC of the round's held-out ranking, and both again with the same posterior and
labels taken for fair samples of their class (``*_plain``).

``linear_svc`` is scikit-learn's ``LinearSVC`` on ``TfidfVectorizer`` (tables: standardised
columns) with the settings they come with; ``words_svc`` is the same on the words and pairs of words
that the review reads.

Not an independent test: the members that read text, their ridge and the weights of unlabelled rows
were chosen among some twenty variants on these six reviews (three draws), the kernels' widths on
banana and magic (one draw), all with seeds that are used here. ``words_svc`` tells how much of the
gain is due to reading pairs of words.

``python -m experiments loop_proven``: no fitting; scores of a given quality ("data sets"). A row
sums up ``draws`` reviews to the first proven "stop": how often the recall was then below the
target, and how much was read.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.stats import hypergeom, rankdata
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from experiments.config import Experiment, Job
from experiments.figures import pyplot, save
from experiments.kinds import Kind, together
from experiments.rankers import data_of
from experiments.summary import finished, markdown_table
from pnuauc.evaluation.posterior import place_scores
from pnuauc.review.audit import Audit
from pnuauc.review.expected import outlook
from pnuauc.review.rank import PoolRanker, Ranking, draw_batch, explore_share
from pnuauc.study.rows import ColumnRoles

__all__ = ["LOOP", "PROVEN"]

TARGET = 0.95
Floats = NDArray[np.float64]


def run(job: Job) -> list[dict[str, Any]]:
    """All methods from the same first labels."""
    table, truth = _table(job)
    rng = np.random.default_rng(job.seed)
    start = np.concatenate(
        [
            rng.choice(np.flatnonzero(truth == k), n, replace=False)
            for k, n in ((1, job.setting.n_positive), (0, job.setting.n_negative))
        ]
    )
    methods = [m for m in job.methods if m.name != "words_svc" or _is_text(table)]
    return [_one(job, m.name, m.settings, table, truth, start) for m in methods]


def _is_text(table: Any) -> bool:
    return "abstract" in table.column_names


def _table(job: Job) -> tuple[Any, NDArray[np.int64]]:
    """A review as it is; of a table n_unlabeled rows at the wanted share of positives."""
    path = Path(os.environ.get("PNUAUC_DATA", "data")) / "reviews" / f"{job.data_set}.parquet"
    if path.exists():
        table = pq.read_table(path)
        return table.drop_columns(["truth"]), np.array(table["truth"].to_pylist())
    X, y = data_of(job)
    rng = np.random.default_rng([job.seed, 1])
    n_positive = round(job.setting.prior * job.setting.n_unlabeled)
    sizes = ((1, n_positive), (0, job.setting.n_unlabeled - n_positive))
    rows = np.concatenate(
        [
            rng.choice(np.flatnonzero(y == k), min(n, np.sum(y == k)), replace=False)
            for k, n in sizes
        ]
    )
    rows = rng.permutation(rows)
    columns = np.asarray(X[rows], dtype=np.float64).T
    return pa.table({f"x{j}": c for j, c in enumerate(columns)}), y[rows].astype(np.int64)


def _baseline(table: Any, **words: Any) -> Callable[[Floats], Floats]:
    if _is_text(table):
        cells = ([text or "" for text in column.to_pylist()] for column in table.columns)
        texts = [" ".join(both) for both in zip(*cells, strict=True)]
        X = TfidfVectorizer(**words).fit_transform(texts)
    else:
        X = StandardScaler().fit_transform(np.column_stack([c.to_numpy() for c in table.columns]))

    def scores(y: Floats) -> Floats:
        known = ~np.isnan(y)
        return np.asarray(LinearSVC().fit(X[known], y[known]).decision_function(X))

    return scores


def _ranking(name: str, table: Any) -> Callable[[Floats], Floats | Ranking | None]:
    if name == "linear_svc":
        return _baseline(table)
    if name == "words_svc":
        return _baseline(table, sublinear_tf=True, min_df=2, max_df=0.5, ngram_range=(1, 2))
    return PoolRanker(table, ColumnRoles("label")).rank


def _one(
    job: Job, name: str, settings: dict[str, Any], table: Any, truth: NDArray[Any], start: Any
) -> dict[str, Any]:
    before = time.process_time()
    ranking = _ranking(name, table)
    encoding = time.process_time() - before
    n, n_positive = len(truth), int(truth.sum())
    y = np.full(n, np.nan)
    y[start] = truth[start]
    size, order, rounds, spent = max(round(0.03 * n), 1), list(start), 0, 0.0
    rng = np.random.default_rng([job.seed, 2])
    after_10 = 1.0
    watch = _Watch(truth, start) if "explore" in settings else None
    while truth[order].sum() < TARGET * n_positive or rounds < 10 or (watch and not watch.stop):
        pool = np.flatnonzero(np.isnan(y))
        if not len(pool):
            break
        begun = time.process_time()
        now = ranking(y)
        spent += time.process_time() - begun
        assert now is not None
        scores = now.scores if isinstance(now, Ranking) else now
        rows, _, random = draw_batch(scores, pool, size, settings.get("explore", 0.0), rng)
        y[rows] = truth[rows]
        order += rows.tolist()
        rounds += 1
        if watch:
            assert isinstance(now, Ranking)
            watch.look(now, rows, random, rounds)
        if rounds == 10:
            after_10 = truth[order].sum() / n_positive
    found = np.cumsum(truth[order])
    return {
        "method": name,
        "n_rows": n,
        "positives": n_positive,
        "read_to_95": (np.argmax(found >= TARGET * n_positive) + 1) / n,
        "found_after_10": after_10,
        "encoding_seconds": encoding,
        "round_seconds": spent / rounds,
        "rounds": rounds,
        **(watch.row(order, scores, size) if watch else dict.fromkeys(WATCHED, "")),
    }


#: Rounds in which intervals are compared with the truth.
LOOKED = (1, 2, 3, 4, 6, 8, 10, 13, 16, 20, 25, 30)
HELD = ("share_held", "auc_held", "share_plain", "auc_plain")
WATCHED = ("read_at_stop", "recall_at_stop", "read_at_buscar", "recall_at_buscar", *HELD)


class _Watch:
    """What the review says after each round, beside the truth."""

    def __init__(self, truth: NDArray[Any], start: NDArray[Any]) -> None:
        self.truth, self.n_start = truth, len(start)
        self.by = np.full(len(truth), "", dtype=object)
        self.by[start] = "table"
        self.stop: tuple[float, float] | None = None
        self.held: dict[str, list[int | None]] = {name: [] for name in HELD}

    def look(self, now: Ranking, rows: NDArray[Any], random: NDArray[np.bool_], round: int) -> None:
        self.by[rows] = np.where(random, "explore", "score")
        pool = self.by != "table"
        held_out, true, by = now.held_out[pool], self.truth[pool], self.by[pool]
        y = np.where(by == "", np.nan, true)
        said = outlook(held_out, y, by, batch=len(rows))
        found = int(self.truth[self.by != ""].sum())
        enough = said and said.holds and found >= TARGET * (found + said.hidden.high)
        if self.stop is None and enough:
            self.stop = (np.mean(self.by != ""), found / self.truth.sum())
        if round not in LOOKED:
            return
        wanted = {"share": true.mean(), "auc": said and roc_auc_score(true, held_out)}
        u = (rankdata(held_out) - 0.5) / len(held_out)
        plain = said and place_scores(u[y == 1], u[y == 0])
        for name in HELD:
            what, how = name.split("_")
            interval = getattr(said if how == "held" else plain, what, None)
            interval = interval() if callable(interval) else interval
            inside = interval and int(interval.low <= wanted[what] <= interval.high)
            self.held[name].append(inside)

    def row(self, order: list[int], scores: Floats, size: int) -> dict[str, Any]:
        """``order``: rows as they were read; the rest follows by the last scores."""
        rest = np.flatnonzero(self.by == "")
        rest = rest[np.argsort(-scores[rest], kind="stable")]
        stop = self.stop or (1.0, 1.0)
        buscar = _buscar(self.truth[[*order, *rest]], self.n_start, size)
        return {**dict(zip(WATCHED, (*stop, *buscar), strict=False)), **self.held}


def _buscar(labels: NDArray[Any], n_start: int, size: int) -> tuple[float, float]:
    """(share read, recall) where first, for some i, "recall is below the target" is refuted at 5%
    by taking the rows from the i-th on for a random sample of the rows then left."""
    known, n_pool = labels[:n_start].sum(), len(labels) - n_start
    for read in range(n_start + size, len(labels), size):
        hits = np.cumsum(labels[n_start:read][::-1])
        n, found = np.arange(1, len(hits) + 1), known + hits[-1]
        missing = np.floor(found / TARGET) + 1 - (found - hits)
        if (hypergeom.cdf(hits, n_pool - len(hits) + n, missing, n) < 0.05).any():
            return read / len(labels), found / labels.sum()
    return 1.0, 1.0


def show(experiment: Experiment, results: Path) -> str:
    """Means by data set and method, and over all data sets."""
    rows = finished(experiment, results)
    lines = []
    for data_set in (*experiment.data_sets, "mean"):
        line: dict[str, object] = {"data": data_set}
        for column, scale in (("read_to_95", 100), ("found_after_10", 100), ("round_seconds", 1)):
            for method in experiment.methods:
                means = [
                    np.mean(values)
                    for one in (experiment.data_sets if data_set == "mean" else [data_set])
                    if (
                        values := [
                            float(r[column])
                            for r in rows
                            if (r["data_set"], r["method"]) == (one, method.name)
                        ]
                    )
                ]
                shown = f"{scale * np.mean(means):.{1 if scale > 1 else 2}f}" if means else ""
                line[f"{column}, {method.label}"] = shown
        lines.append(line)
    watched = [r for r in rows if r["read_at_stop"]]
    tables = [markdown_table(lines), markdown_table(_stops(experiment, watched))]
    return "\n".join([*tables, _by_round(experiment, watched, results)])


def _stops(experiment: Experiment, rows: list[Any]) -> list[dict[str, object]]:
    """Stops and intervals by data set, and pooled over all runs."""
    out: list[dict[str, object]] = []
    for data_set in (*experiment.data_sets, "all"):
        own = [r for r in rows if data_set in ("all", r["data_set"])]
        if not own:
            continue
        of = {
            name: np.array([float(r[name]) for r in own]) for name in ("read_to_95", *WATCHED[:4])
        }
        line: dict[str, object] = {"data": data_set, "runs": len(own)}
        line["wrong"] = f"{np.sum(of['recall_at_stop'] < TARGET)}"
        line["read to 95%"] = f"{100 * np.median(of['read_to_95']):.1f}"
        for rule, shown in (("stop", "expected"), ("buscar", "buscar")):
            extra = np.median(of[f"read_at_{rule}"] - of["read_to_95"])
            line[f"extra, {shown}"] = f"{100 * extra:.1f}"
        line["buscar wrong"] = f"{np.sum(of['recall_at_buscar'] < TARGET)}"
        for name in HELD:
            inside = [x for r in own for x in json.loads(r[name]) if x is not None]
            line[name] = f"{100 * np.mean(inside):.0f}%" if inside else ""
        out.append(line)
    return out


def _by_round(experiment: Experiment, rows: list[Any], results: Path) -> str:
    """Share of runs whose interval holds, by round: table and picture."""
    figure, axes = pyplot().subplots(1, 2, figsize=(8, 3), sharey=True)
    lines: list[dict[str, object]] = []
    shown: dict[str, list[tuple[int, float]]] = {name: [] for name in HELD}
    for k, round in enumerate(LOOKED):
        line: dict[str, object] = {"round": round}
        for name in HELD:
            all_rounds = (json.loads(r[name]) for r in rows)
            inside = [one[k] for one in all_rounds if len(one) > k and one[k] is not None]
            line["runs"] = len(inside)
            line[name] = f"{100 * np.mean(inside):.0f}%" if inside else "nan"
            if inside:
                shown[name].append((round, 100 * float(np.mean(inside))))
        lines.append(line)
    for name in HELD:
        what, how = name.split("_")
        axis = axes[("share", "auc").index(what)]
        label = "as the review reads its labels" if how == "held" else "labels as fair samples"
        axis.plot(*np.array(shown[name]).reshape(-1, 2).T, marker="o", markersize=3, label=label)
    for axis, title in zip(axes, ("share of positives", "AUC of the ranking"), strict=True):
        axis.axhspan(90, 98, color="0.9")
        axis.set(title=title, xlabel="round", ylim=(-3, 103))
    axes[0].set_ylabel("95% intervals that hold, %")
    axes[0].legend(fontsize=7)
    name = f"{experiment.name}_rounds"
    numbers = save(figure, name, lines, results)
    picture = f"![{name}](figures/{name}.svg)"
    return f"Intervals that hold, by round, over all runs:\n\n{numbers}\n\n{picture}"


# The proven stop on scores of known quality.


def simulate(
    y: NDArray[np.bool_], scores: Floats, explore: float | str, alpha: float, rng: Any
) -> tuple[float, float]:
    """(share read, recall) at the first proven stop."""
    n, pool = len(y), np.arange(len(y))
    audit, size, found, share = Audit(n, alpha), max(round(0.03 * n), 1), 0, 0.1
    while len(pool):
        share = float(explore) if explore != "auto" else share
        rows, _, random = draw_batch(scores, pool, size, share, rng)
        by_score = y[rows[~random]]
        found += int(by_score.sum())
        left = len(pool) - len(by_score)
        for positive in y[rows[random]]:
            audit.update(left, found, bool(positive))
            left -= 1
            found += int(positive)
        pool = np.setdiff1d(pool, rows, assume_unique=True)
        if found >= TARGET * audit.upper:
            break
        rates = [np.mean(y[part]) if len(part) else 0.0 for part in (rows[~random], rows[random])]
        share = explore_share(*rates)
    return 1 - len(pool) / n, found / max(y.sum(), 1)


#: Quality of a ranking: the mean score of positives, in deviations of the scores.
SHIFT = {"perfect": np.inf, "good": 2.5, "useless": 0.0, "reversed": -np.inf}


def run_proven(job: Job) -> list[dict[str, Any]]:
    """All methods on the same pools and scores."""
    setting, options = job.setting, job.experiment.options
    n, n_positive = setting.n_unlabeled, round(setting.prior * setting.n_unlabeled)
    shift = SHIFT[job.data_set]
    out = []
    for method in job.methods:
        rng = np.random.default_rng([job.seed, n, n_positive, list(SHIFT).index(job.data_set)])
        found = []
        for _ in range(options["draws"]):
            y = rng.permutation(np.arange(n) < n_positive)
            scores = rng.normal(size=n) + np.where(y, np.clip(shift, -1e3, 1e3), 0.0)
            explore = method.settings["explore"]
            found.append(simulate(y, scores, explore, options["alpha"], rng))
        read, recall = np.array(found).T
        out.append(
            {
                "method": method.name,
                "wrong": np.mean(recall < TARGET),
                "read_median": np.median(read),
                "read_mean": read.mean(),
                "recall_mean": recall.mean(),
            }
        )
    return out


def show_proven(experiment: Experiment, results: Path) -> str:
    """Every row."""
    return markdown_table(
        [
            {"ranking": row["data_set"], "setting": row["setting"], "explore": row["method"]}
            | {c: f"{100 * float(row[c]):.1f}%" for c in PROVEN.columns}
            for row in finished(experiment, results)
        ]
    )


LOOP = Kind(
    run,
    show,
    (
        *("n_rows", "positives", "read_to_95", "found_after_10"),
        *("encoding_seconds", "round_seconds", "rounds"),
        *WATCHED,
    ),
    together,
)
PROVEN = Kind(
    run_proven, show_proven, ("wrong", "read_median", "read_mean", "recall_mean"), together
)
