"""Quantifiers of the QuaPy package on our samples: the extra ``quantification`` installs it.

A method's line says ``estimator = "quapy.EMQ"`` (or another aggregative method of QuaPy). It gets
the labelled rows, the package's own cross-validation for the scores it needs, and U to quantify;
the classifier is a forest of extremely randomised trees, like the scores our own estimators use.
"""

from __future__ import annotations

import importlib
from typing import Any

from sklearn.ensemble import ExtraTreesClassifier

from pnuauc.datasets import PNUSample

__all__ = ["PREFIX", "quantify"]

PREFIX = "quapy."


def quantify(name: str, sample: PNUSample, seed: int, **options: Any) -> float:
    """Share of positives in U by QuaPy's method ``name``, "quapy." left off or not."""
    try:
        methods = importlib.import_module("quapy.method.aggregative")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error}; install it with pip install 'pnuauc[quantification]'."
        ) from error
    forest = ExtraTreesClassifier(
        120, min_samples_leaf=2, class_weight="balanced", random_state=seed
    )
    model = getattr(methods, name.removeprefix(PREFIX))(classifier=forest, **options)
    labelled = sample.y >= 0
    model.fit(sample.X[labelled], sample.y[labelled].astype(int))
    shares = model.predict(sample.X[~labelled])
    return float(shares[list(model.classes_).index(1)])
