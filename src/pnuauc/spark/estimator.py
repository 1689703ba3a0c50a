"""Estimator, Model and Evaluator of pyspark.ml."""

from __future__ import annotations

import inspect
import io
import tempfile
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
from pyspark.ml import Estimator, Model
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasLabelCol,
    HasPredictionCol,
    HasRawPredictionCol,
    HasWeightCol,
)
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)

from pnuauc._utils.extras import need
from pnuauc._utils.stored import Parts, refuse
from pnuauc.core.ranks import ScoreCounts
from pnuauc.core.solvers import LinearModel
from pnuauc.engines import (
    FEATURES,
    ID,
    LABEL,
    SCORE,
    WEIGHT,
    as_matrix,
    count_scores,
    fit_on_source,
)
from pnuauc.estimators import AUCClassifier, AUCClassifierCV, label_codes
from pnuauc.evaluation import AUCEstimate, auc_from_counts
from pnuauc.evaluation.estimate import unbiased_auc
from pnuauc.exceptions import ModelFileError
from pnuauc.io.container import read_container, write_container
from pnuauc.labels import Roles
from pnuauc.model.model import LinearScorer, read_scorer
from pnuauc.spark.source import feature_column, frame_source, named, plain, score_column

_FORMAT = "pnuauc-spark-model"


def _names(value: Any) -> Any:
    """The name of one column, or names of several."""
    if isinstance(value, str):
        return value
    return [TypeConverters.toString(name) for name in TypeConverters.toList(value)]


class _Given(HasLabelCol, HasRawPredictionCol):
    """Parameters by their names, and the columns of labels and scores."""

    def setParams(self, **given: Any) -> Any:
        """Set several parameters by their names."""
        unknown = [name for name in given if not self.hasParam(name)]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {unknown[0]!r}.")
        return self._set(**given)

    def setLabelCol(self, value: str) -> Any:
        return self._set(labelCol=value)

    def setRawPredictionCol(self, value: str) -> Any:
        return self._set(rawPredictionCol=value)


class _Columns(_Given, HasPredictionCol):
    """Which columns are read and written."""

    featuresCol: Any = Param(
        Params._dummy(),
        "featuresCol",
        "array or vector column, or a list of columns of numbers",
        typeConverter=_names,
    )

    def getFeaturesCol(self) -> Any:
        return self.getOrDefault("featuresCol")

    def setFeaturesCol(self, value: Any) -> Any:
        """An array or vector column, or a list of columns."""
        return self._set(featuresCol=value)

    def setPredictionCol(self, value: str) -> Any:
        return self._set(predictionCol=value)


class SparkAUCClassifierCV(
    Estimator, _Columns, HasWeightCol, DefaultParamsReadable, DefaultParamsWritable
):
    """:class:`pnuauc.AUCClassifierCV` as a ``pyspark.ml`` Estimator.

    Labelled rows and a draw of 20,000 unlabelled ones come to the driver: prior, centres and
    threshold rest on them, as in memory. Moments and held-out counts are summed over all
    unlabelled rows on the executors, in two visits, and merged in the order of the partitions.
    Rows fall into folds by a hash of their id or content, so that partitions change nothing but
    rounding.

    Parameters
    ----------
    featuresCol : str or list of str, default="features"
        A column of arrays or vectors, or several columns of numbers.
    labelCol : str, default="label"
        1 positive, 0 negative, -1 or null unlabelled; other codes by ``positive_label``,
        ``negative_label`` and ``unlabeled_label``.
    idCol : str, optional
        A column that names rows, or groups of rows such as customers: which are drawn and which
        fold they fall in follows from it, instead of from their features. Rows of one id share a
        fold, labelled or not.
    weightCol : str, optional
        Weights as repetitions.
    rawPredictionCol, predictionCol : str, default="rawPrediction", "prediction"
        Columns that the model adds: the score, and the label where it is cut at zero.
    **parameters
        Those of :class:`pnuauc.AUCClassifierCV`, under their names there.
    """

    idCol: Any = Param(
        Params._dummy(), "idCol", "column that names rows", typeConverter=TypeConverters.toString
    )

    def __init__(self, **parameters: Any) -> None:
        super().__init__()
        self._setDefault(featuresCol="features", **_SETTINGS)
        self.setParams(**parameters)

    def setIdCol(self, value: str) -> Any:
        return self._set(idCol=value)

    def setWeightCol(self, value: str) -> Any:
        return self._set(weightCol=value)

    def _fit(self, dataset: Any) -> SparkAUCModel:
        values = {name: self.getOrDefault(name) for name in _SETTINGS}
        if isinstance(values["prior"], list):
            values["prior"] = tuple(values["prior"])
        fitted = AUCClassifierCV(**values)
        fitted._check_settings()
        columns: dict[str, Any] = {
            FEATURES: feature_column(dataset, self.getFeaturesCol()),
            LABEL: named(self.getLabelCol()),
        }
        if self.isSet("weightCol"):
            columns[WEIGHT] = named(self.getWeightCol()).cast("double")
        if self.isSet("idCol"):
            columns[ID] = named(self.getOrDefault("idCol"))
        fit_on_source(fitted, frame_source(dataset, columns), label_codes(fitted))
        model = SparkAUCModel(_as_classifier(fitted), fitted)
        return self._copyValues(model)  # type: ignore[no-any-return]


def _add_params(owner: type, names: Iterable[str], source: str) -> None:
    for name in names:
        setattr(owner, name, Param(Params._dummy(), name, f"as in {source}: {name}", plain))


def _parameters() -> dict[str, Any]:
    signature = inspect.signature(AUCClassifierCV.__init__)
    return {p.name: plain(p.default) for p in signature.parameters.values() if p.name != "self"}


#: Parameters of AUCClassifierCV and their defaults; each is a Param of its own.
_SETTINGS = _parameters()
_add_params(SparkAUCClassifierCV, _SETTINGS, "pnuauc.AUCClassifierCV")


def _as_classifier(fitted: Any) -> AUCClassifier:
    """What scoring needs of a fitted ranker."""
    model = LinearModel(fitted.basis_, fitted.coef_)
    return AUCClassifier()._from_model(model, fitted.threshold_, fitted)


class SparkAUCModel(Model, _Columns, MLReadable[Any], MLWritable):
    """What :class:`SparkAUCClassifierCV` fits: adds scores and labels to a DataFrame.

    ``write()`` and ``read()`` keep it in the package's own model format, JSON and plain arrays:
    nothing in it is executed.
    """

    def __init__(self, local: AUCClassifier | None = None, summary: Any = None) -> None:
        super().__init__()
        self._setDefault(featuresCol="features")
        self._local, self._summary = local, summary

    @property
    def hasSummary(self) -> bool:
        """Whether the fit is still at hand; it is not stored."""
        return self._summary is not None

    @property
    def summary(self) -> AUCClassifierCV:
        """The fitted :class:`AUCClassifierCV`, with selection, prior and candidates."""
        if self._summary is None:
            raise RuntimeError("A model that was read has no summary: the fit is not stored.")
        return self._summary  # type: ignore[no-any-return]

    def to_local(self) -> AUCClassifier:
        """The same model for rows in memory, no Spark in it."""
        if self._local is None:
            raise RuntimeError("This model was not fitted.")
        return self._local

    def _transform(self, dataset: Any) -> Any:
        sf, local = need("pyspark.sql.functions", "spark"), self.to_local()
        score = sf.arrow_udf(_scorer(local), "double")
        raw, prediction = self.getRawPredictionCol(), self.getPredictionCol()
        column = score(feature_column(dataset, self.getFeaturesCol()))
        raw_name = raw or "__pnuauc_score__"
        scored = dataset.withColumn(raw_name, column)
        if prediction:
            negative, positive = local.classes_.tolist()
            label = sf.when(named(raw_name) > 0, sf.lit(positive)).otherwise(sf.lit(negative))
            scored = scored.withColumn(prediction, label)
        return scored if raw else scored.drop(raw_name)

    def write(self) -> MLWriter:
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        return _ModelReader(cls)


def _scorer(model: AUCClassifier) -> Any:
    """A column of arrays -> scores, on the executors; Spark takes nothing but a function."""

    pa = need("pyarrow")

    def score(features: Any) -> Any:
        found: Any = model.decision_function(as_matrix(features)) if len(features) else []
        return pa.array(found, pa.float64())

    score.__annotations__ = {"features": pa.Array, "return": pa.Array}  # its kind, for Spark
    return score


class _ModelWriter(MLWriter):
    def __init__(self, instance: SparkAUCModel) -> None:
        super().__init__()
        self.instance = instance

    def _handleOverwrite(self, path: str) -> None:
        """No-op: what is written replaces what is there; pyspark's version needs the JVM."""

    def saveImpl(self, path: str) -> None:
        spark = self.sparkSession
        content = bytearray(_to_bytes(self.instance.to_local()))
        metadata = DefaultParamsWriter._get_metadata_to_save(self.instance, spark)
        mode = "overwrite" if self.shouldOverwrite else "error"
        for name, value, kind in (("metadata", metadata, "string"), ("model", content, "binary")):
            frame = spark.createDataFrame([(value,)], f"value {kind}").coalesce(1)
            write = frame.write.mode(mode)
            write.text(f"{path}/{name}") if kind == "string" else write.parquet(f"{path}/{name}")


class _ModelReader(MLReader[Any]):
    def __init__(self, cls: type[SparkAUCModel]) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> SparkAUCModel:
        spark = self.sparkSession
        name = f"{self.cls.__module__}.{self.cls.__name__}"
        metadata = DefaultParamsReader.loadMetadata(path, spark, name)
        rows = spark.read.parquet(f"{path}/model").collect()
        if len(rows) != 1:
            raise ModelFileError(f"'{path}' holds {len(rows)} models instead of one.")
        instance = self.cls(_from_bytes(bytes(rows[0]["value"]), path))
        instance._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance


def _to_bytes(local: AUCClassifier) -> bytes:
    scorer = LinearScorer(local.basis_, local.coef_)
    manifest = {
        "format": _FORMAT,
        "version": 1,
        "n_features": int(local.basis_.n_features_in_),
        "threshold": float(local.threshold_),
        "classes": local.classes_.tolist(),
        "scorer": scorer.spec(),
    }
    stream = io.BytesIO()
    arrays = {f"scorer/{key}": np.asarray(value) for key, value in scorer.arrays().items()}
    write_container(stream, manifest, arrays)
    return stream.getvalue()


def _from_bytes(content: bytes, path: str) -> AUCClassifier:
    """The model that was written; everything is asked for by name, type and range."""
    with tempfile.NamedTemporaryFile() as stream:
        stream.write(content)
        stream.flush()
        try:
            return _rebuilt(*read_container(stream.name))
        except ModelFileError as error:
            raise ModelFileError(f"'{path}' cannot be used as a model: {error}.") from None


def _rebuilt(manifest: dict[str, Any], arrays: dict[str, Any]) -> AUCClassifier:
    parts = Parts(manifest, arrays)
    parts.text("format", [_FORMAT])
    parts.integer("version", 1, 1)
    n_features = parts.integer("n_features", 1, 10**7)
    threshold = parts.number("threshold")
    classes = parts.items("classes", 2)
    if len(classes) != 2 or any(type(label) not in (bool, int, float, str) for label in classes):
        raise refuse("its classes are not two labels")
    scorer = read_scorer(parts.sub("scorer"), {"kernels": n_features})
    parts.finish()
    assert isinstance(scorer, LinearScorer)
    fitted = SimpleNamespace(
        classes_=Roles(np.empty(0, np.int8), classes[1], classes[0]).classes,
        n_features_in_=n_features,
        class_prior_=None,
    )
    return AUCClassifier()._from_model(LinearModel(scorer.basis, scorer.coef), threshold, fitted)


_DEFAULTS = {
    "prior": None,
    "method": "auto",
    "level": 0.95,
    "positive_label": None,
    "negative_label": None,
    "unlabeled_label": None,
}


class SparkAUCEvaluator(Evaluator, _Given, DefaultParamsReadable, DefaultParamsWritable):
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
        self.setParams(**parameters)

    def estimate(self, dataset: Any) -> AUCEstimate:
        """The estimate with its interval, the same as of the scores in memory."""
        return auc_from_counts(self._counts(dataset), *self._question)

    def isLargerBetter(self) -> bool:
        return True

    def _evaluate(self, dataset: Any) -> float:
        prior, method, _ = self._question
        return unbiased_auc(self._counts(dataset), prior, method)

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


_add_params(SparkAUCEvaluator, _DEFAULTS, "pnuauc.metrics.auc_estimate")
