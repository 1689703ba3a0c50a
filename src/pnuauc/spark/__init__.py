"""Fit, score and evaluate tables in Spark: ``pip install 'pnuauc[spark]'``.

Names are loaded when they are asked for: without pyspark, that is the error.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pnuauc.spark._estimator import SparkAUCClassifierCV, SparkAUCModel
    from pnuauc.spark._evaluator import SparkAUCEvaluator

__all__ = ["SparkAUCClassifierCV", "SparkAUCEvaluator", "SparkAUCModel"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pnuauc.spark' has no attribute {name!r}")
    home = "_evaluator" if name == "SparkAUCEvaluator" else "_estimator"
    return getattr(importlib.import_module(f"pnuauc.spark.{home}"), name)
