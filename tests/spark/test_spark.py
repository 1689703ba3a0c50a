"""Tests of spark/spark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pnuauc import auc_estimate
from pnuauc.evaluation.estimate import unbiased_auc
from pnuauc.exceptions import (
    EngineError,
    InputError,
    LabelReadingWarning,
    MissingExtraError,
    ModelFileError,
)
from pnuauc.metrics import ScoreCounts
from tests.engine_tables import (
    FIT,
    SETTINGS,
    a_table,
    assert_same_files,
    assert_same_model,
    digest,
    fitted_in_memory,
    slow_engines,
    within,
    write_files,
)

ROOT = Path(__file__).parents[2]


def test_without_pyspark_the_extra_is_named(monkeypatch):
    import pnuauc.spark

    for name in [m for m in sys.modules if m.split(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("estimator",):
        monkeypatch.delitem(sys.modules, f"pnuauc.spark.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for name in pnuauc.spark.__all__:
        with pytest.raises(MissingExtraError, match=r"pip install 'pnuauc\[spark\]'"):
            getattr(pnuauc.spark, name)
    with pytest.raises(AttributeError):
        pnuauc.spark.SparkAUC  # noqa: B018


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'pnuauc[spark]'")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("needs Java 17 for Spark")
    from tests.spark_session import session

    made = session("local[2,4]")
    yield made
    made.stop()


pyspark_warnings = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)


@pytest.fixture
def frame(spark):
    X, y = a_table()
    return frame_of(spark, X, y)


def frame_of(spark, X, y, partitions=3, **more):
    import pyarrow as pa

    names = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    columns = {**names, "label": pa.array(y, from_pandas=True), **more}
    columns["features"] = pa.array(X.tolist(), pa.list_(pa.from_numpy_dtype(X.dtype)))
    return spark.createDataFrame(pa.table(columns)).repartition(partitions)


@pyspark_warnings
@slow_engines
class TestSession:
    def test_arrays_columns_and_vectors_give_the_model_of_memory(self, spark, frame):
        from pyspark.ml.functions import array_to_vector

        from pnuauc.spark import SparkAUCClassifierCV

        X, y = a_table()
        here = fitted_in_memory(X, y)
        vectors = frame.withColumn("features", array_to_vector("features")).coalesce(1)
        three = [f"x{j}" for j in range(3)]
        for table, features in ((frame, "features"), (frame, three), (vectors, "features")):
            model = SparkAUCClassifierCV(featuresCol=features, **SETTINGS).fit(table)
            assert_same_model(model.summary, here)
        scored = model.setFeaturesCol(three).transform(frame).toArrow()
        rows = np.column_stack([scored.column(name).to_numpy() for name in three])
        raw = scored.column("rawPrediction").to_numpy()
        np.testing.assert_allclose(raw, here.decision_function(rows), rtol=1e-7, atol=1e-9)
        np.testing.assert_array_equal(scored.column("prediction").to_numpy(), here.predict(rows))

    def test_many_partitions_are_merged_by_executors(self, spark, frame, monkeypatch):
        from pnuauc.spark import SparkAUCClassifierCV
        from pnuauc.spark import source as _source

        X, y = a_table()
        monkeypatch.setattr(_source, "TREE_ABOVE", 2)
        monkeypatch.setattr(_source, "TREE_WIDTH", 2)
        model = SparkAUCClassifierCV(**SETTINGS).fit(frame.repartition(7))
        assert_same_model(model.summary, fitted_in_memory(X, y))

    def test_ids_weights_and_words(self, spark):
        from pnuauc.spark import SparkAUCClassifierCV

        X, y = a_table(600)
        weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
        words = [{1.0: "fraud", 0.0: "ok"}.get(value) for value in y.tolist()]
        table = frame_of(spark, X, y, weight=weight, id=np.arange(len(X)), word=words)
        weighted = SparkAUCClassifierCV(weightCol="weight", labelCol="word", **SETTINGS)
        with pytest.warns(LabelReadingWarning, match="'fraud' as positive"):
            model = weighted.fit(table)
        assert_same_model(model.summary, fitted_in_memory(X, y, weight))
        assert model.to_local().classes_.tolist() == ["ok", "fraud"]
        named = SparkAUCClassifierCV(idCol="id", **SETTINGS)
        first, second = named.fit(table), named.fit(table.repartition(5, "x0"))
        assert_same_model(first.summary, second.summary)
        other = fitted_in_memory(X, y).decision_function(X)
        assert np.abs(first.to_local().decision_function(X) - other).max() > 1e-3

    def test_pipeline_params_copy_and_storage(self, spark, frame, tmp_path):
        from pyspark.ml import Pipeline, PipelineModel
        from pyspark.ml.feature import VectorAssembler

        from pnuauc.spark import SparkAUCClassifierCV, SparkAUCModel

        assembler = VectorAssembler(inputCols=["x0", "x1", "x2"], outputCol="together")
        ranker = SparkAUCClassifierCV(featuresCol="together", rawPredictionCol="s", **SETTINGS)
        other = ranker.copy({ranker.n_centers: 7})
        assert (ranker.getOrDefault("n_centers"), other.getOrDefault("n_centers")) == (15, 7)
        assert "n_centers" in ranker.explainParams()
        with pytest.raises(TypeError, match="n_centres"):
            SparkAUCClassifierCV(n_centres=3)
        ranker.save(str(tmp_path / "ranker"))
        again = SparkAUCClassifierCV.load(str(tmp_path / "ranker"))
        assert {p.name: v for p, v in again.extractParamMap().items()}["prior"] == 0.3
        fitted = Pipeline(stages=[assembler, again]).fit(frame)
        fitted.write().overwrite().save(str(tmp_path / "pipeline"))
        back = PipelineModel.load(str(tmp_path / "pipeline"))
        one, two = (m.transform(frame).select("x0", "s").toArrow() for m in (fitted, back))
        assert one.equals(two)
        model = back.stages[1]
        assert isinstance(model, SparkAUCModel)
        assert not model.hasSummary
        with pytest.raises(RuntimeError, match="not stored"):
            _ = model.summary
        stored = b"".join(p.read_bytes() for p in (tmp_path / "pipeline").rglob("*.parquet"))
        assert b"sklearn" not in stored
        self._damage(model, spark, tmp_path)

    def _damage(self, model, spark, tmp_path):
        """A model whose bytes were changed is refused."""
        from pnuauc.spark import SparkAUCModel

        path = tmp_path / "damaged"
        model.save(str(path))
        with pytest.raises(Exception, match=r"already exists|ALREADY_EXISTS"):
            model.save(str(path))
        model.write().overwrite().save(str(path))
        content = bytearray(spark.read.parquet(str(path / "model")).collect()[0].value)
        content[len(content) // 2] ^= 1
        shutil.rmtree(path / "model")
        rows = spark.createDataFrame([(content,)], "value binary")
        rows.write.parquet(str(path / "model"))
        with pytest.raises(ModelFileError, match="cannot be used as a model"):
            SparkAUCModel.load(str(path))

    def test_evaluator_is_auc_estimate(self, spark, frame):
        from pyspark.ml.functions import array_to_vector
        from pyspark.sql import functions as sf

        from pnuauc.spark import SparkAUCEvaluator

        X, y = a_table()
        expected = auc_estimate(y, X[:, 0], (0.2, 0.4))
        evaluator = SparkAUCEvaluator(rawPredictionCol="x0", prior=(0.2, 0.4))
        assert evaluator.estimate(frame) == expected
        counts = ScoreCounts.from_rows(y, X[:, 0])
        unbiased = unbiased_auc(counts, (0.2, 0.4))
        assert evaluator.evaluate(frame) == pytest.approx(unbiased, rel=1e-12)
        assert evaluator.isLargerBetter()
        vectors = frame.withColumn("v", array_to_vector(sf.array(-sf.col("x0"), sf.col("x0"))))
        assert evaluator.copy().setRawPredictionCol("v").estimate(vectors) == expected
        positives = frame.withColumn("label", sf.when(sf.col("label") == 1, 1.0))
        raw = SparkAUCEvaluator(rawPredictionCol="x0").evaluate(positives)
        kept = np.where(y == 1, 1.0, np.nan)
        assert raw == pytest.approx(auc_estimate(kept, X[:, 0], method="pu_raw").value)

    def test_what_is_refused(self, spark, frame):
        from pyspark.sql import functions as sf

        from pnuauc.spark import SparkAUCClassifierCV

        ranker = SparkAUCClassifierCV(**SETTINGS)
        with pytest.raises(InputError, match="no column 'z'"):
            ranker.copy().setFeaturesCol(["z"]).fit(frame)
        text = frame.withColumn("x1", sf.lit("a"))
        with pytest.raises(InputError, match="not a number"):
            ranker.copy().setFeaturesCol(["x0", "x1"]).fit(text)
        holes = sf.when(sf.col("x1") > 2, sf.lit(None)).otherwise(sf.col("x1"))
        with pytest.raises(InputError, match=r"Spark partition \d holds missing values"):
            ranker.copy().setFeaturesCol(["x0", "x1"]).fit(frame.withColumn("x1", holes))
        infinite = sf.when(sf.col("x1") > 2, sf.lit(float("inf"))).otherwise(sf.col("x1"))
        with pytest.raises(InputError, match=r"Spark partition \d holds NaN, infinity"):
            ranker.copy().setFeaturesCol(["x0", "x1"]).fit(frame.withColumn("x1", infinite))

    @pytest.mark.parametrize("visit", [3, 4], ids=["moments", "counts"])
    def test_a_killed_python_worker_changes_nothing(self, spark, tmp_path, visit):
        from pnuauc.spark import SparkAUCClassifierCV
        from tests.spark_session import dying_frame

        ranker = SparkAUCClassifierCV(**SETTINGS)
        expected = digest(ranker.fit(dying_frame(spark)).summary)
        disturbed = within(300, ranker.fit, dying_frame(spark, tmp_path, visit))
        assert (tmp_path / "visits-1").stat().st_size == 5, "nobody died, or more than once"
        assert digest(disturbed.summary) == expected

    def test_a_partition_that_kills_every_worker_is_told(self, spark):
        from pnuauc.spark import SparkAUCClassifierCV

        def lethal(batches):
            os.kill(os.getpid(), 9)
            yield from batches

        frame = spark.range(4).mapInArrow(lethal, "id long")
        frame = frame.selectExpr("array(cast(id as double)) features", "1.0 label")
        with pytest.raises(EngineError, match=r"gave up task \d.*after 4 attempts.*Raise the mem"):
            within(300, SparkAUCClassifierCV(**SETTINGS).fit, frame)


def in_a_session(master, folder, visit=0, victim="python"):
    """What :mod:`tests.spark_session` finds in a process of its own; a hang is a failure."""
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'pnuauc[spark]'")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("needs Java 17 for Spark")
    command = [sys.executable, "-m", "tests.spark_session", master, str(folder), str(visit), victim]
    # workers of a Connect server do not look for modules in this folder by themselves
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, env=env)
    lines = [line for line in done.stdout.splitlines() if "FOUND " in line]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[-1].split("FOUND ", 1)[1])


@slow_engines
def test_connect_gives_the_model_of_memory(tmp_path):
    found = in_a_session("connect:local[2,4]", tmp_path)
    X, y = a_table()
    here = fitted_in_memory(X, y)
    np.testing.assert_allclose(found["scores"], here.decision_function(X), rtol=1e-7, atol=1e-9)
    assert found["same_scores"]
    assert found["auc"] == pytest.approx(here.score(X, y), rel=1e-6)


@slow_engines
def test_a_killed_executor_changes_nothing(tmp_path):
    (tmp_path / "quiet").mkdir()
    quiet = in_a_session("local-cluster[2,1,1024]", tmp_path / "quiet")
    found = in_a_session("local-cluster[2,1,1024]", tmp_path, 3, "executor")
    assert (tmp_path / "visits-1").stat().st_size >= 5, "nobody died"
    assert found["digest"] == quiet["digest"]


LISTENING = """
import sys
from pathlib import Path
from pyspark import SparkContext
from pnuauc.io.sources import FileSource
from pnuauc.spark.source import spark_files
from tests.engine_tables import listening
with spark_files(FileSource.open([Path(sys.argv[1])]), None):
    print("FOUND", *listening(SparkContext._gateway.proc.pid), *listening())
"""


@slow_engines
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the kernel's tables")
def test_without_a_master_nothing_listens_beyond_loopback(tmp_path):
    """No page of Spark's own, and no driver that other machines reach or that asks for nothing."""
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'pnuauc[spark]'")
    write_files(tmp_path / "table")
    command = [sys.executable, "-c", LISTENING, str(tmp_path / "table")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert "FOUND" in done.stdout, done.stderr[-3000:]
    found = done.stdout.split("FOUND", 1)[1].split()
    assert found
    assert {place.partition(":")[0][-8:] for place in found} == {"0100007F"}


@slow_engines
def test_the_tool_fits_files_on_spark(tmp_path):
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'pnuauc[spark]'")
    write_files(tmp_path / "table")
    fit = [sys.executable, "-m", "pnuauc", *FIT, "table", "--engine", "spark", "-o", "s.pnuauc"]
    command = [*fit, "--master", "local[2,4]"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_same_files(tmp_path, "s")
