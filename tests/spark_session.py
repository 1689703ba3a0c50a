"""``python -m tests.spark_session MASTER FOLDER VISIT``: a fit in a session of its own, as JSON.

MASTER is that of a classic session, or ``connect:`` and one for a Connect server. At the given
visit of partition 1 the process named by the last word dies: ``python`` (the Python worker) or
``executor`` (its JVM); visit 0 leaves all alone.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.engine_tables import SETTINGS, a_table, die_at, digest

#: Rows of a partition of :func:`dying_frame`.
ROWS = 300


def session(master):
    """A small session; Python workers are those of this environment."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "700m",
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "false",
    }
    builder = SparkSession.builder.appName("pnuauc")
    for name, value in settings.items():
        builder = builder.config(name, value)
    if master.startswith("connect:"):
        return builder.remote(master.removeprefix("connect:")).getOrCreate()
    return builder.master(master).getOrCreate()


def executor_process():
    """The JVM above this Python worker: worker, daemon, JVM."""
    pid = os.getpid()
    while "java" not in Path(f"/proc/{pid}/exe").resolve().name:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid


def _rows(batches, folder, visit, victim):
    from pyspark import TaskContext

    number = TaskContext.get().partitionId()
    list(batches)
    if number == 1 and folder:
        die_at(folder, number, visit, executor_process if victim == "executor" else os.getpid)
    X, y = a_table()
    X, y = X[number * ROWS : (number + 1) * ROWS], y[number * ROWS : (number + 1) * ROWS]
    flat = pa.array(X.ravel())
    ends = pa.array(np.arange(0, len(flat) + 1, X.shape[1]), pa.int32())
    columns = [pa.ListArray.from_arrays(ends, flat), pa.array(y, from_pandas=True)]
    yield pa.RecordBatch.from_arrays(columns, names=["features", "label"])


def dying_frame(spark, folder="", visit=0, victim="python"):
    """``a_table`` in four partitions, made where they are read."""
    made = functools.partial(_rows, folder=str(folder), visit=visit, victim=victim)
    schema = "features array<double>, label double"
    return spark.range(0, 4, 1, 4).mapInArrow(made, schema)


def main(master, folder, visit, victim):
    from pnuauc.spark import SparkAUCClassifierCV, SparkAUCEvaluator, SparkAUCModel

    spark = session(master)
    frame = dying_frame(spark, folder, int(visit), victim)
    model = SparkAUCClassifierCV(**SETTINGS).fit(frame)
    found = {"digest": hashlib.sha256(digest(model.summary)).hexdigest()}
    if master.startswith("connect:"):
        quiet = dying_frame(spark)
        path = f"{folder}/stored"
        model.save(path)
        model.write().overwrite().save(path)
        again = SparkAUCModel.load(path)
        scores = [m.transform(quiet).select("rawPrediction").toArrow() for m in (model, again)]
        found["same_scores"] = scores[0].equals(scores[1])
        found["scores"] = scores[0].column(0).to_pylist()
        found["auc"] = SparkAUCEvaluator(prior=0.3).evaluate(again.transform(quiet))
    print("FOUND " + json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
