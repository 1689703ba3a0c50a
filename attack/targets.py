"""What is attacked: one line a target."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from attack.models import bent_model
from attack.readers import bent_bytes, bent_file, read_and_judge, sound_files
from attack.runner import Target
from pnuauc import AUCClassifierCV, AutoAUCClassifier
from pnuauc.exceptions import InputError
from pnuauc.io import TableEncoder, TableModel, load_model, save_model
from pnuauc.model.model import SeenRows

__all__ = ["FILE_TARGETS", "sound_models"]


def _scratch() -> Path:
    """A folder in memory, if there is one."""
    base = "/dev/shm" if os.path.isdir("/dev/shm") else None
    return Path(tempfile.mkdtemp(prefix="pnuauc-attack-", dir=base))


@cache
def sound_models() -> list[tuple[bytes, object]]:
    """(bytes of a model, rows it can score): every kind of scorer, dense and sparse rows."""
    rng = np.random.default_rng(0)
    n = 120
    table = pa.table(
        {
            "a": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "day": pa.array(np.arange(n).astype("datetime64[D]")),
            "shop": rng.choice(["x", "y", "z", "é"], n),
            "many": [f"k{i % 15}" for i in range(n)],
            "yes": pa.array([None if i % 7 == 0 else i % 3 == 0 for i in range(n)]),
            "words": [f"the {i} words of {i % 11}" for i in range(n)],
        }
    )
    y = np.where(np.arange(n) < 40, np.arange(n) % 2, np.nan)
    matrix = sparse.csr_matrix(rng.random((n, 9)) * (rng.random((n, 9)) < 0.5))
    found = []
    folder = _scratch()
    rankers = [(table, basis) for basis in ("gaussian", "linear", "identity", "committee")]
    rankers += [(matrix, "gaussian"), (matrix, "identity"), (matrix, "committee")]
    for rows, kind in rankers:
        encoder = TableEncoder().fit(rows)
        X = encoder.transform(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker = _ranker(kind).fit(X, y)
        card = {"label": "y", "ids": ["id"], "table": {"name": "t", "n_encoded": X.shape[1]}}
        model = TableModel.from_fitted(encoder, ranker, X, card)
        model.seen = SeenRows.of(model.row_keys(rows)[:40], np.linspace(-1.0, 1.0, 40))
        save_model(model, folder / "m.pnuauc")
        found.append(((folder / "m.pnuauc").read_bytes(), rows[:8]))
    return found


def _ranker(kind: str) -> Any:
    if kind == "committee":
        return AutoAUCClassifier(prior=0.4, cv=2, n_jobs=1, random_state=0)
    return AUCClassifierCV(prior=0.4, n_centers=6, basis=kind, etas=(0.0, 0.5), random_state=0)


def _models() -> Callable[[int], str]:
    models = sound_models()
    path = _scratch() / "m.pnuauc"

    def case(number: int) -> str:
        data, rows = models[number % len(models)]
        path.write_bytes(bent_model(data, np.random.default_rng([1, number])))
        refusal = ""
        try:
            model = load_model(path)
            scores, seen = model.score(rows), model.find_seen(rows)
        except InputError as error:
            refusal = str(error)
        if refusal:
            assert "\n" not in refusal, "more than one line"
            return "refused"
        assert np.isfinite(scores).all(), "a score is no number"
        assert seen is None or len(seen[0]) == len(scores)
        return "scored"

    return case


def _damaged_models() -> Callable[[int], str]:
    """Damage, not malice: no damaged file may score, let alone differently."""
    models = sound_models()
    path = _scratch() / "m.pnuauc"

    def case(number: int) -> str:
        data, _ = models[number % len(models)]
        bent = bent_bytes(data, np.random.default_rng([2, number]), [data])
        if bent == data:
            return "unchanged"
        path.write_bytes(bent)
        try:
            load_model(path)
        except InputError:
            return "refused"
        raise AssertionError("a damaged file was taken for a model")

    return case


def _table(name: str) -> Callable[[int], str]:
    files = sound_files()
    path = _scratch() / name

    def case(number: int) -> str:
        path.write_bytes(bent_file(name, files, number))
        return read_and_judge(path, deep=number % 10 == 0)

    return case


#: Shares of the inputs: cheap readers get more.
FILE_TARGETS: dict[Target, float] = {
    Target("model file, rewritten", _models): 0.13,
    Target("model file, damaged", _damaged_models): 0.08,
    **{
        Target(f"table {name}", partial(_table, name)): share
        for name, share in (
            ("t.csv", 0.09),
            ("t.tsv", 0.05),
            ("t.csv.gz", 0.05),
            ("t.csv.zip", 0.03),
            ("t.csv.xz", 0.02),
            ("t.csv.bz2", 0.02),
            ("t.csv.zst", 0.02),
            ("wide.csv", 0.02),
            ("t.parquet", 0.07),
            ("plain.parquet", 0.07),
            ("t.arrow", 0.07),
            ("t.feather", 0.06),
            ("t.libsvm", 0.05),
            ("t.jsonl", 0.05),
            ("t.xlsx", 0.02),
        )
    },
}
