"""Tests of attack."""

from __future__ import annotations

import os
import re
import signal
import time
import warnings

import numpy as np
import pytest

from attack.bombs import BOMBS, FREE_MB, TIMES, cost_of
from attack.containers import join, split
from attack.models import bent_model
from attack.readers import bent_file, read_and_judge, sound_files
from attack.report import report
from attack.runner import Tally, Target, run_cases
from attack.scored import SCORED
from attack.targets import FILE_TARGETS, sound_models
from pnuauc import AutoAUCClassifier
from pnuauc.exceptions import InputError
from pnuauc.io import load_model

pytestmark = pytest.mark.system

FILES = sound_files()

#: Cases that once broke a promise: (file, case).
BROKEN = [
    *(("t.csv", number) for number in (1890, 2806, 16810, 39680, 44150)),
    *(("t.arrow", 432), ("t.feather", 454), ("t.csv.zip", 25)),
]


def judge(name, number, tmp_path):
    path = tmp_path / name
    path.write_bytes(bent_file(name, FILES, number))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_and_judge(path, deep=True)


@pytest.mark.parametrize("name", sorted(FILES))
def test_sound_files_are_read(name, tmp_path):
    (tmp_path / name).write_bytes(FILES[name])
    assert read_and_judge(tmp_path / name, deep=True) == "read"


@pytest.mark.parametrize("name", sorted(FILES))
def test_bent_files_are_read_or_refused(name, tmp_path):
    assert {judge(name, number, tmp_path) for number in range(60)} <= {"read", "refused"}


@pytest.mark.parametrize(("name", "number"), BROKEN)
def test_what_broke_once(name, number, tmp_path):
    assert judge(name, number, tmp_path) in {"read", "refused"}


def test_every_kind_of_table_is_attacked():
    """A format that is read is attacked, and so is every compression."""
    from pnuauc.io.formats import COMPRESSIONS, FORMATS

    endings = [name.split(".")[1:] for name in FILES]
    assert {FORMATS[f".{first}"] for first, *_ in endings} == set(FORMATS.values())
    assert {f".{more}" for _, *rest in endings for more in rest} == set(COMPRESSIONS)
    assert {t.name for t in FILE_TARGETS} >= {f"table {name}" for name in FILES}
    assert sum((FILE_TARGETS | SCORED).values()) == pytest.approx(1.0)


def test_every_kind_of_scorer_is_attacked():
    """A kind that a model file can hold is among the models that are bent."""
    from pnuauc.model.model import SCORERS

    kinds = {split(data)[0]["scorer"]["kind"] for data, _ in sound_models()}
    assert kinds == set(SCORERS)


def test_bent_models_score_or_are_refused(tmp_path):
    path = tmp_path / "m.pnuauc"
    models = sound_models()
    for number in range(280):
        data, rows = models[number % len(models)]
        path.write_bytes(bent_model(data, np.random.default_rng([1, number])))
        try:
            scores = load_model(path).score(rows)
        except InputError:
            continue
        assert np.isfinite(scores).all(), number


def test_chains_for_trees_are_refused(tmp_path):
    """A tree of a million levels would be walked for half a minute."""
    data = next(d for d, _ in sound_models() if b'"forest"' in d)
    manifest, arrays = split(data)
    prefix = next(name for name in arrays if name.endswith("/left")).removesuffix("left")
    n = 20_001  # every second node a leaf
    own = np.arange(n)
    inner = (own % 2 == 0) & (own < n - 2)
    arrays[f"{prefix}left"] = np.where(inner, own + 1, own).astype(np.int32)
    arrays[f"{prefix}right"] = np.where(inner, own + 2, own).astype(np.int32)
    for name, kind in (("feature", np.int32), ("threshold", float), ("value", float)):
        arrays[f"{prefix}{name}"] = np.zeros(n, dtype=kind)
    arrays[f"{prefix}missing_left"] = np.zeros(n, dtype=np.uint8)
    arrays[f"{prefix}roots"] = np.zeros(1, dtype=np.int32)
    (tmp_path / "m.pnuauc").write_bytes(join(manifest, arrays))
    with pytest.raises(InputError, match="more than 1000 levels deep"):
        load_model(tmp_path / "m.pnuauc")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("5,000 widths of kernels", "widths of .* longer than any fit"),
        ("300,000 trees of one leaf", "more than 20,000 trees"),
        ("30 MB of centres", "no centres, or more than 20,000"),
        ("one hole 500,000 times", "not named once each"),
        ("225,000 curves", "curves of .* longer than any fit"),
        ("900,000 categories", "values|10,000 categories"),
        ("150,000 columns", "values|50,000 columns"),
        ("a command of 15 MB", "longer than any fit"),
        ("450,000 warnings", "scores"),
        ("10,000 categories", "scores"),
        ("19,000 trees of one leaf", "scores"),
    ],
)
def test_a_small_model_file_is_cheap_to_use(name, said):
    """Inspected, and 300 rows scored: within a small multiple of the file, or refused."""
    sound_models()
    cost, size = cost_of(BOMBS[name])
    assert re.search(said, cost.said), cost.said
    assert cost.megabytes < FREE_MB + TIMES * size / 1e6
    assert cost.seconds < 5 or size > 30e6


def crash(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 4:
        raise IndexError("law broken")
    if number == 6:
        while True:
            time.monotonic()
    return "fine"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_crashes_hangs_and_errors_are_findings(tmp_path, monkeypatch):
    monkeypatch.setattr("attack.runner.CASE_SECONDS", 0.5)
    tally = Tally(tmp_path / "state.json")
    run_cases(Target("toy", lambda: crash), tally, 0, 9)
    entry = Tally(tmp_path / "state.json").of("toy")
    assert entry["done"] == 9
    found = {finding["case"]: finding["what"] for finding in entry["findings"]}
    assert found.keys() == {2, 4, 6}
    assert "SIGSEGV" in found[2]
    assert "IndexError: law broken (test_attack.py" in found[4]
    assert "SIGPROF" in found[6]
    assert "9 cases, 3 findings" in report(tally)


def test_one_row_very_far_away_leaves_scores_finite():
    """Widths of Gaussian processes are then below what single precision holds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 5))
    X[6] = 1e30
    y = np.r_[np.ones(2), np.zeros(12), np.nan, np.nan]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoAUCClassifier(prior=1e-9, cv=2, n_jobs=1, random_state=0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
