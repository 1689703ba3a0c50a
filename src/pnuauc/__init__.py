"""pnuauc: rank rare positives when almost nothing is labelled.

What most users need is importable from here; nothing is imported before it is asked for, so that
``import pnuauc`` needs neither the extras nor the time to load them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pnuauc._committee import AutoAUCClassifier
    from pnuauc._estimators import AUCClassifier
    from pnuauc._estimators_cv import AUCClassifierCV
    from pnuauc._prior import ClassPrior
    from pnuauc.io import load_model
    from pnuauc.labels import read_roles
    from pnuauc.metrics import auc_estimate, compare_auc, make_auc_scorer
    from pnuauc.tables import evaluate_table, fit_table

__version__ = "0.1.0"

__all__ = [
    "AUCClassifier",
    "AUCClassifierCV",
    "AutoAUCClassifier",
    "ClassPrior",
    "__version__",
    "auc_estimate",
    "compare_auc",
    "evaluate_table",
    "fit_table",
    "load_model",
    "make_auc_scorer",
    "read_roles",
]

#: Where each name lives.
_HOMES = {
    "AUCClassifier": "pnuauc._estimators",
    "AUCClassifierCV": "pnuauc._estimators_cv",
    "AutoAUCClassifier": "pnuauc._committee",
    "ClassPrior": "pnuauc._prior",
    "auc_estimate": "pnuauc.metrics",
    "compare_auc": "pnuauc.metrics",
    "evaluate_table": "pnuauc.tables",
    "fit_table": "pnuauc.tables",
    "load_model": "pnuauc.io",
    "make_auc_scorer": "pnuauc.metrics",
    "read_roles": "pnuauc.labels",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pnuauc' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
