"""Tables for tests of engines: partitions that count their visits and kill their readers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pnuauc import AUCClassifierCV, load_model
from pnuauc.engines import FEATURES, LABEL, WEIGHT, fit_on_source, matrix_table
from pnuauc.estimators import label_codes
from pnuauc.io.sources import MemorySource
from tests.conftest import run_tool

#: Small, but every part of a fit takes part: several widths, folds, both signs of eta.
SETTINGS = {"prior": 0.3, "n_centers": 15, "random_state": 0}


def slow_engines(test):
    """Real clusters and sessions: a part of ``make test-all``."""
    skip = pytest.mark.skipif(not os.environ.get("PNUAUC_ENGINES"), reason="run make test-all")
    return pytest.mark.system(skip(test))


def a_table(n=1200, n_labeled=90, seed=0, d=3, dtype=np.float64):
    """Rows, and labels 1, 0 and NaN of the first of them, in no order."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.3
    X = (rng.standard_normal((n, d)) + hidden[:, None]).astype(dtype)
    y = np.where(np.arange(n) < n_labeled, hidden, np.nan)
    order = rng.permutation(n)
    return X[order], y[order]


def fitted_in_memory(X, y, weight=None, **settings):
    """The fit of an engine, from a table in memory."""
    model = AUCClassifierCV(**{**SETTINGS, **settings})
    columns = {FEATURES: X, LABEL: y} | ({} if weight is None else {WEIGHT: weight})
    table = matrix_table(columns, list(columns))
    return fit_on_source(model, MemorySource(table), label_codes(model))


def assert_same_model(one, other, tolerance=1e-9):
    """Everything that a fit decides, to rounding."""
    for name in ("coef_", "threshold_", "prior_", "n_corrected_", "best_index_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=tolerance)
    np.testing.assert_allclose(one.basis_.centers_, other.basis_.centers_, rtol=tolerance)
    for name in ("mean_test_risk", "weight"):
        np.testing.assert_allclose(
            one.cv_results_[name], other.cv_results_[name], rtol=tolerance, atol=1e-12
        )


def digest(model):
    """Bytes of all numbers of a model."""
    arrays = (model.coef_, model.basis_.centers_, model.cv_results_["mean_test_risk"])
    return b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)


def visited(folder, number):
    """How often a partition was read, this time included; by whatever process."""
    with open(Path(folder) / f"visits-{number}", "ab") as stream:
        stream.write(b"x")
        return stream.tell()


def die_at(folder, number, visit, process=os.getpid):
    """Kill a process, this one by default, at the given visit of a partition."""
    if visited(folder, number) == visit:
        os.kill(process(), signal.SIGKILL)


def within(seconds, function, *arguments, **options):
    """The result or error of a call that must end in time; a hang is a failure, not a wait."""
    found = []

    def run():
        try:
            found.append((function(*arguments, **options), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, f"still running after {seconds} seconds"
    result, error = found[0]
    if error is not None:
        raise error
    return result


#: A fit of the tool in which all unlabelled rows take part.
FIT = ("fit", "--model", "average", "--centers", "15", "--max-unlabeled", "all", "--quiet")


def write_files(folder):
    """``a_table`` with a column of words, as four Parquet files."""
    folder.mkdir()
    X, y = a_table(1600, 200)
    words = np.where(X[:, 0] > 0, "high", "low")
    for i in range(4):
        rows = slice(400 * i, 400 * (i + 1))
        columns = {"a": X[rows, 0], "b": X[rows, 1], "word": words[rows]}
        table = pa.table({**columns, "label": pa.array(y[rows], from_pandas=True)})
        pq.write_table(table, folder / f"{i}.parquet")


def listening(process="self"):
    """Addresses on which a process accepts connections, as the kernel writes them."""
    own = set()
    for handle in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            own.add(os.readlink(handle))
    lines = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    return {line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in own}


def assert_same_files(folder, name):
    """Model and numbers of NAME.pnuauc are those of a fit of the same table on this machine."""
    done = run_tool(*FIT, folder / "table", "-o", folder / "here.pnuauc")
    assert done.exit_code == 0, done.output
    table = pq.read_table(folder / "table")
    one, two = (load_model(folder / f"{n}.pnuauc") for n in (name, "here"))
    np.testing.assert_allclose(one.score(table), two.score(table), rtol=1e-9, atol=1e-12)
    ours, theirs = (json.loads((folder / f"{n}.json").read_text()) for n in (name, "here"))
    for part in ("auc", "prior", "top"):
        assert rounded(ours[part]) == rounded(theirs[part])


def rounded(found):
    """Nested findings with numbers to nine digits."""
    if isinstance(found, dict):
        return {name: rounded(value) for name, value in found.items()}
    if isinstance(found, list):
        return [rounded(value) for value in found]
    return float(f"{found:.9g}") if isinstance(found, float) else found
