"""Fit, score and evaluate tables in Spark: ``pip install 'pnuauc[spark]'``.

Names are loaded when they are asked for: without pyspark, that is the error.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pnuauc._utils.extras import need

if TYPE_CHECKING:
    from pnuauc.spark.estimator import SparkAUCClassifierCV, SparkAUCEvaluator, SparkAUCModel

__all__ = ["SparkAUCClassifierCV", "SparkAUCEvaluator", "SparkAUCModel"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pnuauc.spark' has no attribute {name!r}")
    need("pyspark.ml", "spark")
    return getattr(importlib.import_module("pnuauc.spark.estimator"), name)
