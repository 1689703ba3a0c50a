"""pnuauc: rank rare positives when almost nothing is labelled.

What most users need is importable from here; nothing is imported before it is asked for, so that
``import pnuauc`` needs neither the extras nor the time to load them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pnuauc.committee import AutoAUCClassifier
    from pnuauc.estimators import AUCClassifier, AUCClassifierCV
    from pnuauc.evaluation import auc_estimate, compare_auc, cross_fit_auc, make_auc_scorer
    from pnuauc.labels import read_roles
    from pnuauc.model.files import load_model
    from pnuauc.prior import ClassPrior
    from pnuauc.review import Review, monitor_table
    from pnuauc.tables import evaluate_table, fit_table

__version__ = "0.1.0"

__all__ = [
    "AUCClassifier",
    "AUCClassifierCV",
    "AutoAUCClassifier",
    "ClassPrior",
    "Review",
    "__version__",
    "auc_estimate",
    "compare_auc",
    "cross_fit_auc",
    "evaluate_table",
    "fit_table",
    "load_model",
    "make_auc_scorer",
    "monitor_table",
    "read_roles",
]

#: Where each name lives.
_HOMES = {
    "AUCClassifier": "pnuauc.estimators",
    "AUCClassifierCV": "pnuauc.estimators",
    "AutoAUCClassifier": "pnuauc.committee",
    "ClassPrior": "pnuauc.prior",
    "Review": "pnuauc.review",
    "auc_estimate": "pnuauc.metrics",
    "compare_auc": "pnuauc.metrics",
    "cross_fit_auc": "pnuauc.metrics",
    "evaluate_table": "pnuauc.tables",
    "fit_table": "pnuauc.tables",
    "load_model": "pnuauc.io",
    "make_auc_scorer": "pnuauc.metrics",
    "monitor_table": "pnuauc.review",
    "read_roles": "pnuauc.labels",
}


#: Public packages; ``pnuauc.metrics`` works without an import of its own.
_PACKAGES = (
    *("baselines", "basis", "boosting", "dask", "datasets", "estimators", "exceptions", "io"),
    *("labels", "losses", "metrics", "priors", "review", "spark", "tables", "theory", "torch"),
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"pnuauc.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'pnuauc' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES})
