"""AUC from partly labelled scores as an Evaluator of pyspark.ml."""

from __future__ import annotations

from typing import Any

from pnuauc._extras import need
from pnuauc._sources._matrix import LABEL
from pnuauc._sources._metrics import SCORE, count_scores, unbiased_score
from pnuauc.metrics import AUCEstimate, auc_from_counts
from pnuauc.metrics._counts import ScoreCounts
from pnuauc.spark._columns import frame_source, named, plain, score_column

need("pyspark.ml", "spark")

from pyspark.ml.evaluation import Evaluator  # noqa: E402
from pyspark.ml.param import Param, Params  # noqa: E402
from pyspark.ml.param.shared import HasLabelCol, HasRawPredictionCol  # noqa: E402
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable  # noqa: E402

__all__ = ["SparkAUCEvaluator"]

_DEFAULTS = {
    "prior": None,
    "method": "auto",
    "level": 0.95,
    "positive_label": None,
    "negative_label": None,
    "unlabeled_label": None,
}


class SparkAUCEvaluator(
    Evaluator, HasLabelCol, HasRawPredictionCol, DefaultParamsReadable, DefaultParamsWritable
):
    """AUC of a score column, from whatever labels there are; null labels are unlabelled rows.

    ``evaluate`` gives the unbiased estimate, as :func:`pnuauc.metrics.make_auc_scorer` does, for
    ``CrossValidator`` and the like; on P and U without a prior it is the share of pairs won, which
    ranks models as the AUC does. ``estimate`` gives the whole :class:`AUCEstimate`.

    Parameters
    ----------
    labelCol, rawPredictionCol : str, default="label", "rawPrediction"
        Scores are numbers, or vectors of two as those of pyspark's classifiers.
    prior : float or (low, high), optional
        Share of positives inside the unlabelled rows.
    method, level, positive_label, negative_label, unlabeled_label
        As in :func:`pnuauc.metrics.auc_estimate`.
    """

    def __init__(self, **parameters: Any) -> None:
        super().__init__()
        self._setDefault(**_DEFAULTS)
        unknown = [name for name in parameters if not self.hasParam(name)]
        if unknown:
            raise TypeError(f"SparkAUCEvaluator has no parameter {unknown[0]!r}.")
        self._set(**parameters)

    def estimate(self, dataset: Any) -> AUCEstimate:
        """The estimate with its interval, the same as of the scores in memory."""
        return auc_from_counts(self._counts(dataset), *self._question)

    def isLargerBetter(self) -> bool:
        return True

    def setLabelCol(self, value: str) -> Any:
        return self._set(labelCol=value)

    def setRawPredictionCol(self, value: str) -> Any:
        return self._set(rawPredictionCol=value)

    def _evaluate(self, dataset: Any) -> float:
        prior, method, _ = self._question
        return unbiased_score(self._counts(dataset), prior, method)

    @property
    def _question(self) -> tuple[Any, str, float]:
        prior = self.getOrDefault("prior")
        prior = tuple(prior) if isinstance(prior, list) else prior
        return prior, self.getOrDefault("method"), self.getOrDefault("level")

    def _counts(self, dataset: Any) -> ScoreCounts:
        columns = {
            LABEL: named(self.getLabelCol()),
            SCORE: score_column(dataset, self.getRawPredictionCol()),
        }
        codes = {name: self.getOrDefault(name) for name in _DEFAULTS if name.endswith("_label")}
        return count_scores(frame_source(dataset, columns), **codes)


for _name in _DEFAULTS:
    setattr(
        SparkAUCEvaluator,
        _name,
        Param(Params._dummy(), _name, f"as in pnuauc.metrics.auc_estimate: {_name}", plain),
    )
