"""Extreme numbers through every public estimator and function that the registries know.

The law: finite results, or a ``ValueError`` with a sentence; never a NaN that nobody announced, an
``IndexError``, ``StopIteration``, ``OverflowError`` or ``ZeroDivisionError``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

import pnuauc
from attack.runner import Target
from pnuauc import evaluation as metrics
from pnuauc import priors
from pnuauc.baselines import BASELINES
from pnuauc.basis import BASES
from pnuauc.core import theory
from pnuauc.losses import LOSSES
from pnuauc.priors import PRIORS

__all__ = ["NUMBERS", "call", "calls"]

_SCALES = [1e-320, 1e-200, 1e-160, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e100, 1e153, 1e160, 1e300, 1e308]
#: Legal results that may be infinite: limits of a curve, thresholds beyond all scores.
_MAY_BE_INFINITE = {"thresholds", "threshold"}


def rows(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """(X, y) with something extreme about them."""
    n_p, n_n, n_u = (int(rng.choice([0, 1, 2, 12, 12, 12])) for _ in range(3))
    n_u = n_u or 2
    n, d = n_p + n_n + n_u, int(rng.choice([1, 2, 5]))
    y = np.r_[np.ones(n_p), np.zeros(n_n), np.full(n_u, np.nan)]
    X = rng.normal(size=(n, d)) + np.r_[np.ones(n_p), -np.ones(n_n), np.zeros(n_u)][:, None]
    draw = rng.integers(12)
    with np.errstate(all="ignore"):
        if draw < 4:
            X = X * _SCALES[rng.integers(len(_SCALES))]
        elif draw == 4:
            X[rng.integers(n)] = _SCALES[rng.integers(len(_SCALES))]
        elif draw == 5:
            X = X + _SCALES[rng.integers(len(_SCALES))]
        elif draw == 6:
            X[:] = X[0]
        elif draw == 7:
            X = X * np.array([_SCALES[rng.integers(len(_SCALES))] for _ in range(d)])
        elif draw == 8:
            X.flat[rng.integers(X.size)] = rng.choice([np.nan, np.inf, -np.inf])
        elif draw == 9:
            X = X.astype(np.float32) * np.float32(1e30)
        elif draw == 10:
            X = sparse.csr_matrix(X * (rng.random(X.shape) < 0.5) * _SCALES[rng.integers(13)])
        else:
            X = (X * 2.0**60).astype(np.int64) + 2**62
    return X, y


def scores_of(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """(scores, y), as a metric gets them."""
    X, y = rows(rng)
    s: Any = np.asarray(X.todense() if sparse.issparse(X) else X)[:, 0]
    draw = rng.integers(6)
    if draw == 0:
        s = np.arange(len(s)) + 2**53 + 1
    elif draw == 1:
        s = np.ma.masked_array(s, mask=rng.random(len(s)) < 0.2)
    elif draw == 2:
        s = np.round(np.clip(s, -2, 2))
    return s, y


def _prior(rng: np.random.Generator) -> Any:
    known = [None, 0.0, 1e-300, 1e-9, 0.1, 0.5, 0.999999, 1.0, (0.1, 0.2), (0.0, 1.0), "auto"]
    return known[rng.integers(len(known))]


def _estimator(make: Callable[[np.random.Generator], Any]) -> Callable[[np.random.Generator], Any]:
    def run(rng: np.random.Generator) -> Any:
        X, y = rows(rng)
        model = make(rng).fit(X, y)
        score = getattr(model, "decision_function", None) or getattr(model, "predict_proba", None)
        return score(X) if score is not None else model.transform(X)

    return run


def _fitted_prior(name: str) -> Callable[[np.random.Generator], Any]:
    small = {"n_bootstrap": 5, "n_trees": 5, "n_draws": 2, "n_centers": 10, "n_iterations": 5}

    def run(rng: np.random.Generator) -> Any:
        X, y = rows(rng)
        estimator = PRIORS[name](random_state=0)
        known = {k: v for k, v in small.items() if k in estimator.get_params()}
        fitted = estimator.set_params(**known).fit(X, y)
        assert 0 <= fitted.prior_ <= 1, "a prior outside [0, 1]"
        low, high = fitted.interval_
        assert 0 <= low <= high <= 1, "an interval outside [0, 1]"
        return [fitted.prior_, low, high]

    return run


def _conversion(name: str) -> Callable[[np.random.Generator], Any]:
    function = getattr(priors, name)

    def run(rng: np.random.Generator) -> Any:
        share = [1e-320, 1e-9, 0.1, 0.5, 1 - 1e-12, 1.0, np.nan, 2.0][rng.integers(8)]
        result = function(share, *(int(rng.choice([0, 1, 7, 10**9, 10**18])) for _ in range(3)))
        assert 0 <= result <= 1, "a prior outside [0, 1]"
        return result

    return run


def _metric(name: str) -> Callable[[np.random.Generator], Any]:
    function = getattr(metrics, name)

    def fitted(rng: np.random.Generator) -> Any:
        """Those that score rows by an estimator of their own."""
        X, y = rows(rng)
        estimator = pnuauc.AUCClassifier(n_centers=8, prior=_prior(rng), random_state=0)
        if name == "held_out_scores":
            return function(estimator, X, y, cv=2)
        return function(prior=_prior(rng))(estimator.fit(X, y), X, y)

    def run(rng: np.random.Generator) -> Any:
        s, y = scores_of(rng)
        options: dict[str, Any] = {"prior": _prior(rng)}
        if name == "prior_sensitivity":
            options = {}
        if name == "threshold_estimate":
            options |= {"k": int(rng.integers(0, len(y) + 2))}
        if name == "compare_auc":
            result = function(y, s, scores_of(rng)[0][: len(y)], **options)
        elif name == "auc_from_counts":
            result = function(metrics.ScoreCounts.from_rows(y, s), **options)
        else:
            result = function(y, s, **options)
        value = np.asarray(getattr(result, "value", 0.5))
        if name == "prior_sensitivity":
            # a prior that the rows refute has no AUC: NaN there, as its docstring says
            value, result = value[~np.isnan(value)], None
        assert np.all((value >= 0) & (value <= 1)), f"an AUC of {value}"
        return result

    return fitted if name in {"held_out_scores", "make_auc_scorer"} else run


def _theory(name: str) -> Callable[[np.random.Generator], Any]:
    function = getattr(theory, name)

    def run(rng: np.random.Generator) -> Any:
        scale = _SCALES[rng.integers(len(_SCALES))]
        share = float(rng.choice([1e-12, 0.1, 0.5, 1 - 1e-12]))
        sizes = {"n_positive": int(rng.choice([1, 2, 10**9])), "n_negative": 5}
        if name == "gamma_bar":
            return function(share, sizes["n_positive"], 5)
        if name in {"bound_constants", "h_delta", "confidence_term", "generalization_bound"}:
            constants = theory.bound_constants(str(rng.choice(["squared", "logistic"])), scale, 1.0)
            if name == "bound_constants":
                return constants
            if name == "h_delta":
                return function(share, constants)
            options = {**sizes, "n_unlabeled": 7, "prior": share}
            setting = str(rng.choice(["pu", "nu", "pnpu", "pnnu"]))
            if name == "confidence_term":
                return function(setting, constants, **options)
            return function(0.1, setting, constants, **options)
        positive, negative = (rng.normal(size=5) * scale for _ in range(2))
        options = {**sizes, "prior": share}
        if name == "printed_variance":
            return function(positive, negative, **options)
        options["n_unlabeled"] = 7
        if name == "variance_ratio":
            return function(0.5, positive, negative, **options)
        return function(positive, negative, **options)

    return run


def calls() -> dict[str, Callable[[np.random.Generator], Any]]:
    """Everything that is called, by name; what a registry or a face gains is found here."""
    found: dict[str, Callable[[np.random.Generator], Any]] = {}
    for loss in LOSSES:
        for basis in BASES:
            found[f"AUCClassifier {loss} {basis}"] = _estimator(
                lambda rng, loss=loss, basis=basis: pnuauc.AUCClassifier(
                    loss=loss,
                    basis=basis,
                    n_centers=8,
                    prior=_prior(rng),
                    random_state=0,
                    max_iter=20,
                )
            )
    for basis in ("gaussian", "linear", "identity"):
        found[f"AUCClassifierCV {basis}"] = _estimator(
            lambda rng, basis=basis: pnuauc.AUCClassifierCV(
                basis=basis, n_centers=8, prior=_prior(rng), cv=2, random_state=0
            )
        )
    for name, basis_class in BASES.items():
        found[f"basis {name}"] = _estimator(lambda rng, c=basis_class: c())
    for name, baseline in BASELINES.items():
        found[f"baseline {name}"] = _estimator(lambda rng, b=baseline: b.make(0))
    for name in PRIORS:
        found[f"prior {name}"] = _fitted_prior(name)
    found["AutoAUCClassifier"] = _estimator(
        lambda rng: pnuauc.AutoAUCClassifier(prior=_prior(rng), cv=2, n_jobs=1, random_state=0)
    )
    for room, attacked in ((metrics, _metric), (theory, _theory)):
        for name in room.__all__:
            if name[0].islower() and "odds" not in name and name != "cross_fit_auc":
                # those about odds take no prior, cross_fit_auc takes a model
                found[f"{room.__name__.removeprefix('pnuauc.')}.{name}"] = attacked(name)
    for name in ("prior_in_population", "prior_in_unlabeled"):
        found[f"priors.{name}"] = _conversion(name)
    found["priors.read_prior"] = lambda rng: priors.read_prior(
        [_SCALES[rng.integers(13)], (0.1, _SCALES[rng.integers(13)]), np.nan, -1, 2][
            rng.integers(5)
        ]
    )
    return found


def call(name: str, function: Callable[[np.random.Generator], Any], seed: int) -> str:
    """ "value" or "refused"; anything else raises."""
    try:
        with np.errstate(all="ignore"):
            result = function(np.random.default_rng([5, seed]))
    except (ValueError, ImportError) as error:
        sentence = str(error)
    except Exception as error:
        # as in scikit-learn, a sparse matrix where none is taken is a TypeError
        if isinstance(error, TypeError) and "sparse" in str(error).lower():
            return "refused"
        raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
    else:
        sentence = ""
    if sentence:
        assert len(sentence) > 10, f"{name}: no sentence but {sentence!r}"
        return "refused"
    bad = _not_numbers(result)
    assert not bad, f"{name}: not a number: {bad}"
    return "value"


def _not_numbers(result: Any, name: str = "result") -> list[str]:
    if is_dataclass(result) and not isinstance(result, type):
        found: list[str] = []
        for item in fields(result):
            found += _not_numbers(getattr(result, item.name), item.name)
        return found
    if isinstance(result, (list, tuple)):
        return [bad for item in result for bad in _not_numbers(item, name)]
    if sparse.issparse(result):
        result = result.data
    if isinstance(result, (float, np.floating, np.ndarray)):
        values = np.asarray(result)
        if values.dtype.kind != "f":
            return []
        legal = ~np.isnan(values) if name in _MAY_BE_INFINITE else np.isfinite(values)
        return [] if legal.all() else [name]
    return []


def _numbers() -> Callable[[int], str]:
    found = sorted(calls().items())

    def case(number: int) -> str:
        name, function = found[number % len(found)]
        return call(name, function, number)

    return case


NUMBERS = Target("extreme numbers", _numbers)
