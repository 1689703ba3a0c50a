"""Rankers on test rows: draw the sample, fit, score; a row for each method with AUC and time."""

from __future__ import annotations

import contextlib
import functools
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_random_state

from experiments import tables
from experiments.config import Job, Method, Setting
from experiments.hard_sets import HARD_SETS
from experiments.kinds import Kind
from experiments.paper_sets import TEXT, load
from pnuauc import AUCClassifierCV, AutoAUCClassifier
from pnuauc.baselines import BASELINES
from pnuauc.core.basis import LinearKernelBasis, MultiscaleBasis
from pnuauc.datasets import GENERATORS, PNUSample, sample_pnu
from pnuauc.priors import PRIORS
from pnuauc.selection import PAPER_ALPHAS, PAPER_ETAS, PAPER_WIDTHS, TrainedGrid, deal_folds

__all__ = ["RANKERS", "VALIDATION", "data_of", "draw", "paper_grid", "prior_of"]

Rows = list[dict[str, Any]]
#: Validation criteria that are stored under another name in the committed results.
VALIDATION = {"paper": "simple"}


@functools.lru_cache(maxsize=32)
def _data(name: str, options: str) -> tuple[Any, NDArray[np.int8]]:
    if not options:
        return load(name)
    line = json.loads(options)
    return (GENERATORS | HARD_SETS)[line.pop("generator", name.removeprefix("make_"))](**line)


def data_of(job: Job) -> tuple[Any, NDArray[np.int8]]:
    """Rows and classes (1, 0) of the job's data set: a file, or a generator under [generated]."""
    line = job.experiment.generated.get(job.data_set)
    return _data(job.data_set, "" if line is None else json.dumps(line))


def draw(job: Job) -> PNUSample:
    """The sample of one trial; the same for every method, since it depends on the seed alone."""
    protocol, setting = job.experiment.protocol, job.setting
    X, y = data_of(job)
    wanted = setting.n_unlabeled
    if setting.fill != "all_real":
        wanted = min(wanted, _available(y, setting, protocol["test_share"]))
    sample = sample_pnu(
        X,
        y,
        setting.n_positive,
        setting.n_negative,
        wanted,
        setting.prior,
        random_state=job.seed,
        unlabeled_draw=protocol["unlabeled_draw"],
        n_test=protocol["n_test"],
        scale=job.scale(),
    )
    if setting.fill == "resample" and wanted < setting.n_unlabeled:
        return _resampled(sample, setting, job.seed)
    return sample


def _available(y: NDArray[np.int8], setting: Setting, test_share: float) -> int:
    """Unlabelled rows that can be drawn while ``test_share`` of each class stays out."""
    positive, negative = ((1 - test_share) * np.count_nonzero(y == k) for k in (1, 0))
    return int(
        min(
            (positive - setting.n_positive) / setting.prior,
            (negative - setting.n_negative) / (1 - setting.prior),
        )
    )


def _resampled(sample: PNUSample, setting: Setting, seed: int) -> PNUSample:
    """The same labelled and test rows; U drawn with replacement from the U rows there are."""
    rng = np.random.RandomState(seed)
    n_labeled = setting.n_positive + setting.n_negative
    hidden = round(setting.prior * setting.n_unlabeled)
    pools = [np.flatnonzero(sample.y_unlabeled == k) for k in (1, 0)]
    sizes = (hidden, setting.n_unlabeled - hidden)
    chosen = np.concatenate([rng.choice(*drawn) for drawn in zip(pools, sizes, strict=True)])
    rows = np.concatenate([np.arange(n_labeled), n_labeled + rng.permutation(chosen)])
    return sample._replace(
        X=sample.X[rows],
        y=sample.y[rows],
        y_unlabeled=sample.y_unlabeled[rows[n_labeled:] - n_labeled],
        rows=sample.rows[rows],
    )


def fit_key(method: Method) -> str:
    """Methods with equal keys can be read off one fit."""
    free = ("selection", "validation") if method.settings["kind"] == "auc_grid" else ("selection",)
    shared = {k: v for k, v in method.settings.items() if k not in free}
    return json.dumps([method.scale, shared], sort_keys=True)


def run(job: Job) -> Rows:
    """Rows for all methods of the job."""
    sample = draw(job)
    rows = _KINDS[job.methods[0].settings["kind"]](job, sample)
    sizes = {"n_test": len(sample.y_test), "n_unlabeled": int(np.count_nonzero(sample.y == -1))}
    return [row | sizes for row in rows]


def _auc_cv(job: Job, sample: PNUSample) -> Rows:
    """AUCClassifierCV, once for all ways of choosing among its candidates.

    The averaged model is fitted whenever it is asked for; the paper's choice is its
    ``best_estimator_``, so the time stated for that row then holds the averaging as well.
    """
    options = {k: v for k, v in job.methods[0].settings.items() if k != "kind"}
    selections = {m.name: m.settings.get("selection", "average") for m in job.methods}
    options.pop("prior", None)
    as_negative = options.pop("unlabeled_as", None)
    options["selection"] = "average" if "average" in selections.values() else "paper"
    options["validation"] = _validation(job.methods[0])
    if job.data_set in TEXT:
        options["basis"] = "linear"
    X, y = sample.X, _labels(sample)
    if as_negative:
        keep = sample.y != 0
        X, y = X[keep], (sample.y[keep] == 1).astype(float)
    with _timed() as times:
        prior = prior_of(X, y, job)
        model = AUCClassifierCV(prior=prior, verbose=False, random_state=job.seed, **options)
        model.fit(X, y)
    rankers = {
        name: model if selection == options["selection"] else model.best_estimator_
        for name, selection in selections.items()
    }
    chosen = _digits(model.best_params_)
    return [_row(name, ranker, sample, times, chosen, prior) for name, ranker in rankers.items()]


def _digits(parameters: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in parameters.items()}


def _labels(sample: PNUSample) -> NDArray[np.float64]:
    """1, 0, and NaN for unlabelled rows."""
    return np.where(sample.y == -1, np.nan, sample.y.astype(float))


@contextlib.contextmanager
def _timed() -> Iterator[dict[str, float]]:
    """What the block took, once it is done: "seconds" and "cpu_seconds"."""
    times: dict[str, float] = {}
    start, cpu = time.perf_counter(), time.process_time()
    yield times
    times |= {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}


def _row(
    name: str,
    ranker: Any,
    sample: PNUSample,
    times: dict[str, float],
    chosen: dict[str, Any],
    prior: float | None = None,
) -> dict[str, Any]:
    X = sample.X_test
    X = sparse.csr_matrix(X) if sparse.issparse(X) else X
    auc = float(roc_auc_score(sample.y_test, ranker.decision_function(X)))
    used = "" if prior is None else prior
    return {"method": name, "auc": auc, "prior_used": used, "chosen": json.dumps(chosen), **times}


def paper_grid(
    X: Any, y: NDArray[np.float64], prior: float, linear: bool, seed: int
) -> TrainedGrid:
    """All candidates of the paper's grid, trained on the folds and centres of AUCClassifierCV.

    AUCClassifierCV with either selection and with the PN risk alone (eta = 0) trains the same
    candidates on the same folds from the same seed; here the grid is trained once for all of
    them. A test compares each choice with AUCClassifierCV's own. (They agree to the last digits,
    but for the average of the eta = 0 candidates: its scores are standardised over all training
    rows here and over P and N alone there, and correlate above .999.)
    """
    X = X.astype(np.float64)
    rows = {"P": y == 1, "N": y == 0, "U": np.isnan(y)}
    rng = check_random_state(seed)
    basis_seed = int(rng.randint(2**31 - 1))
    folds = deal_folds({r: np.flatnonzero(of) for r, of in rows.items()}, 5, random_state=rng)
    basis = (
        LinearKernelBasis(random_state=basis_seed)
        if linear
        else MultiscaleBasis(widths=PAPER_WIDTHS, random_state=basis_seed)
    ).fit(X)
    return TrainedGrid.from_arrays(X, folds, basis, PAPER_ETAS, PAPER_ALPHAS, prior).train()


def _auc_grid(job: Job, sample: PNUSample) -> Rows:
    """The paper's grid trained once, and what each method makes of its validation.

    The time is that of the prior, the grid and all choices together, the same in every row.
    """
    X, y = sample.X, _labels(sample)
    with _timed() as times:
        prior = prior_of(X, y, job)
        assert prior is not None  # "prior" is required of this kind
        grid = paper_grid(X, y, prior, job.data_set in TEXT, job.seed)
        models = {
            m.name: grid.choose(m.settings["selection"], _validation(m)).model for m in job.methods
        }
    sample = sample._replace(X_test=sample.X_test.astype(np.float64))
    return [
        _row(name, model, sample, times, _digits(model.parameters), prior)
        for name, model in models.items()
    ]


def _validation(method: Method) -> Any:
    name = method.settings.get("validation")
    return VALIDATION.get(name, name)


def prior_of(X: Any, y: Any, job: Job) -> float | None:
    """The prior the method is told: estimated from the rows, or given, right or wrong."""
    method = job.methods[0]
    if "prior" not in method.settings:
        return None
    if method.settings["prior"] == "given":
        return job.setting.prior + job.setting.noise
    if method.prior_rule is None:
        raise ValueError(f"[priors] has no line {method.settings['prior']!r}.")
    options = dict(method.prior_rule)
    estimator = PRIORS[options.pop("estimator")](
        **options, on_unidentified="ignore", random_state=job.seed
    )
    return float(np.clip(estimator.fit(X, y).prior_, *job.experiment.protocol["prior_bounds"]))


def _baseline(job: Job, sample: PNUSample) -> Rows:
    """One competitor with its own cross-validation."""
    (method,) = job.methods
    baseline = BASELINES[method.settings["name"]]
    if job.data_set in TEXT:
        baseline = baseline.on_text()
    if "grid" in method.settings:
        baseline = replace(baseline, grid=method.settings["grid"])
    with _timed() as times:
        search = baseline.search(sample.X, random_state=job.seed)
        model = search.fit(sample.X, _labels(sample))
    return [_row(method.name, model, sample, times, getattr(model, "best_params_", {}))]


def _auto(job: Job, sample: PNUSample) -> Rows:
    """The committee; ``chosen`` holds its weights and what it said of the top of U, and the truth.

    ``curve``: for ten equal parts of U by score, lowest first, the mean probability stated and the
    share of positives there is.
    """
    (method,) = job.methods
    X, y = sample.X, _labels(sample)
    with _timed() as times:
        prior = prior_of(X, y, job)
        model = AutoAUCClassifier(prior=prior, verbose=False, random_state=job.seed).fit(X, y)
    chances = model.predict_proba(sample.X[sample.y == -1])[:, 1]
    order = np.argsort(-model.decision_function(sample.X[sample.y == -1]), kind="stable")
    top = []
    for said in model.top_positives((20, 100, 500)):
        truth = int(sample.y_unlabeled[order[: said.k]].sum())
        top.append([said.k, round(said.expected, 2), said.low, said.high, truth])
    curve = [
        [round(float(values[part].mean()), 4) for values in (chances, sample.y_unlabeled)]
        for part in np.array_split(order[::-1], 10)
    ]
    weights = {m.name: round(m.weight, 3) for m in model.members_}
    chosen = {"weights": weights, "top": top, "curve": curve}
    return [_row(method.name, model, sample, times, chosen, prior)]


_KINDS = {"auc_cv": _auc_cv, "auc_grid": _auc_grid, "baseline": _baseline, "auto": _auto}

COLUMNS = ("auc", "prior_used", "seconds", "cpu_seconds", "n_unlabeled", "n_test", "chosen")
RANKERS = Kind(run, tables.show, COLUMNS, fit_key)
