"""The costliest model files that were thought of: ``python -m attack.bombs`` prints their cost.

Every one is inspected, then loaded to score 300 rows, in a process of its own (models of more than
1,000 columns are only loaded: their table would be the cost). The law: one sentence or a result,
within :data:`FREE_MB` and :data:`TIMES` the size of the file, and 5 seconds of processor time for
either command and a file of up to 30 MB.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attack.containers import join, sealed, split
from attack.runner import Target
from attack.targets import sound_models
from pnuauc import fit_table
from pnuauc._utils.show import dump_json
from pnuauc.exceptions import InputError

__all__ = ["BOMBS", "BOMB_TARGET", "FREE_MB", "TIMES", "Cost", "cost_of"]

#: Memory that a file may take: so many MB, the interpreter and its libraries included, and so many
#: times its own size.
FREE_MB, TIMES = 500, 8
_N = 300


def _changed(change: Callable[[dict, dict], None], which: int = 3) -> bytes:
    """A sound model (3 is the committee on a table, 6 on sparse rows), changed."""
    manifest, arrays = split(sound_models()[which][0])
    table = {**_full_card()["table"], **manifest["card"]["table"]}
    manifest["card"] = {**_full_card(), "label": "y", "ids": ["id"], "table": table}
    change(manifest, arrays)
    return join(manifest, arrays)


@cache
def _full_card() -> dict:
    """That of a fit, which ``inspect`` shows."""
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=80), "y": np.where(np.arange(80) < 20, np.arange(80) % 2, np.nan)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit_table(pa.table(table), "y", prior=0.4, n_centers=5, folds=2, n_jobs=1)
    card = json.loads(dump_json(found.model.card))
    del card["table"]["columns"]
    return card


def _part_with(arrays: dict, name: str) -> str:
    """Where the first part that holds this array is."""
    return next(key for key in arrays if key.endswith(f"/{name}")).removesuffix(name)


def _kernel_widths(n: int) -> Callable[[dict, dict], None]:
    def change(manifest: dict, arrays: dict) -> None:
        at = _part_with(arrays, "powers")
        arrays[f"{at}centers"] = arrays[f"{at}centers"][:1]
        arrays[f"{at}widths"] = 1.0 + np.arange(n) / 7.3
        arrays[f"{at}powers"] = np.full(n, 2)
        arrays[f"{at}coef"] = np.ones((n, 1))

    return change


def _kernel_centers(manifest: dict, arrays: dict) -> None:
    """As many as 30 MB hold: a block of rows times all of them would be gigabytes."""
    at = _part_with(arrays, "powers")
    d = arrays[f"{at}centers"].shape[1]
    n = 30_000_000 // (8 * (d + len(arrays[f"{at}widths"])))
    arrays[f"{at}centers"] = np.zeros((n, d))
    arrays[f"{at}coef"] = np.ones((len(arrays[f"{at}widths"]), n))


def _one_leaf_trees(n: int) -> Callable[[dict, dict], None]:
    def change(manifest: dict, arrays: dict) -> None:
        at = _part_with(arrays, "roots")
        for name in ("left", "right", "roots"):
            arrays[at + name] = np.arange(n, dtype=np.int32)
        for name in ("threshold", "value"):
            arrays[at + name] = np.zeros(n)
        arrays[at + "feature"] = np.zeros(n, dtype=np.int32)
        arrays[at + "missing_left"] = np.zeros(n, dtype=np.uint8)

    return change


def _holes(manifest: dict, arrays: dict) -> None:
    """One column said to have missing values a million times."""
    d, h = len(arrays["scorer/view/mean"]), 500_000
    arrays["scorer/view/holes"] = np.zeros(h, dtype=np.int64)
    for name in ("hole_mean", "hole_deviation"):
        arrays[f"scorer/view/{name}"] = np.ones(h)
    for name in ("squashed_mean", "squashed_deviation"):
        arrays[f"scorer/view/{name}"] = np.ones(d + h)
    arrays["scorer/view/lengths"] = np.ones(1)
    arrays["scorer/view/axes"] = np.ones((d + h, 1))


def _levels(n: int) -> Callable[[dict, dict], None]:
    def change(manifest: dict, arrays: dict) -> None:
        levels = manifest["encoder"]["levels"]
        levels[0] = [f"l{i}" for i in range(n)]
        arrays["encoder/ranks"] = np.concatenate([np.arange(len(kept)) for kept in levels])
        manifest["card"] = {}
        width = len(arrays["scorer/coef"]) + n - 4
        arrays["scorer/coef"], arrays["typical"] = np.ones(width), np.ones(width)

    return change


def _columns(n: int) -> Callable[[dict, dict], None]:
    def change(manifest: dict, arrays: dict) -> None:
        kind = {"kind": "number", "type": "double", "lenient": False, "form": ""}
        columns = [{"name": f"c{i}", **kind} for i in range(n)]
        manifest["encoder"] |= {"columns": columns, "levels": [], "rare": [], "n_blocks": 0}
        del manifest["encoder"]["block0"]
        for name in [name for name in arrays if name.startswith("encoder/block0/")]:
            del arrays[name]
        manifest["card"] = {}
        for name in ("fill", "mean", "scale", "low", "high", "missing"):
            arrays[f"encoder/{name}"] = np.ones(n)
        arrays["encoder/boolean_fill"] = np.zeros(0)
        for name in ("flagged", "ranks"):
            arrays[f"encoder/{name}"] = np.zeros(0, dtype=np.int64)
        arrays["scorer/coef"], arrays["typical"] = np.ones(n), np.ones(n)

    return change


def _curves(n: int) -> Callable[[dict, dict], None]:
    def change(manifest: dict, arrays: dict) -> None:
        at = _part_with(arrays, "curves")
        wide = arrays[at + "curves"]
        arrays[at + "curves"] = np.repeat(wide[:1], n, axis=0)
        for name in ("weights", "shares"):
            arrays[at + name] = np.full(n, 1.0 / n)

    return change


def _card(**more: Any) -> Callable[[dict, dict], None]:
    def change(manifest: dict, arrays: dict) -> None:
        manifest["card"] |= more

    return change


def _sparse_columns(n: int) -> Callable[[dict, dict], None]:
    def change(manifest: dict, arrays: dict) -> None:
        manifest["card"] = {}
        arrays["encoder/scale"], arrays["scorer/coef"] = np.ones(n), np.ones(n)

    return change


#: Name -> the file.
BOMBS: dict[str, Callable[[], bytes]] = {
    "short strings": lambda: sealed(b'{"card":[' + b'"abcdefghi",' * 450_000 + b'"x"]}'),
    "long strings": lambda: sealed(
        ('{"card":[' + '"abcdefghabcdefghabcd\U0001f600",' * 450_000 + '"x"]}').encode()
    ),
    "empty lists": lambda: sealed(b'{"card":[' + b"[]," * 450_000 + b"[]]}"),
    "nested lists": lambda: sealed(b"[" * 8_000_000 + b"]" * 8_000_000),
    "quotes": lambda: sealed(b'""' * 8_000_000),
    "backslashes": lambda: sealed(b'"' + b"\\" * 16_000_000 + b'"'),
    "900,000 ids": lambda: _changed(_card(ids=[f"a{i}" for i in range(900_000)])),
    "a command of 15 MB": lambda: _changed(_card(command="x" * 15_000_000)),
    "450,000 warnings": lambda: _changed(_card(warnings=["w" * 20] * 450_000)),
    "a warning of 15 MB": lambda: _changed(_card(warnings=["w " * 7_500_000])),
    "5,000 widths of kernels": lambda: _changed(_kernel_widths(5000)),
    "100 widths of kernels": lambda: _changed(_kernel_widths(100)),
    "30 MB of centres": lambda: _changed(_kernel_centers),
    "300,000 trees of one leaf": lambda: _changed(_one_leaf_trees(300_000)),
    "19,000 trees of one leaf": lambda: _changed(_one_leaf_trees(19_000)),
    "one hole 500,000 times": lambda: _changed(_holes),
    "900,000 categories": lambda: _changed(_levels(900_000), which=2),
    "10,000 categories": lambda: _changed(_levels(10_000), which=2),
    "150,000 columns": lambda: _changed(_columns(150_000), which=2),
    "50,000 columns": lambda: _changed(_columns(50_000), which=2),
    "225,000 curves": lambda: _changed(_curves(225_000)),
    "400 curves": lambda: _changed(_curves(400)),
    "16,600,000 sparse columns": lambda: _changed(_sparse_columns(16_600_000), which=5),
}


class Cost(tuple[str, int, float]):
    """(what was said, MB of memory in all, processor seconds of the longer command)."""

    said = property(lambda self: self[0])
    megabytes = property(lambda self: self[1])
    seconds = property(lambda self: self[2])


def cost_of(make: Callable[[], bytes]) -> tuple[Cost, int]:
    """What inspecting the file and scoring 300 rows with it takes; and its size in bytes."""
    with tempfile.TemporaryDirectory(prefix="pnuauc-attack-") as folder:
        path = Path(folder) / "m.pnuauc"
        path.write_bytes(make())
        size = path.stat().st_size
        # A process of its own: a forked child would count what this one has in memory.
        done = subprocess.run(
            [sys.executable, "-m", "attack.bombs", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
    memory, longer, said = (
        done.stdout.split("\n", 2) if not done.returncode else ("0", "0", f"crashed: {done.stderr}")
    )
    return Cost((said.strip(), int(memory), float(longer))), size


def _use(path: Path) -> None:
    """Print the memory, the longer of the two times and what was said of one file."""
    seconds = [time.process_time()]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            said = _used(path, seconds)
        except InputError as error:
            said = str(error).split(": ", 1)[-1]
    longer = np.diff([*seconds, time.process_time()]).max()
    # ru_maxrss would include the parent's memory: it outlives fork and exec.
    status = Path("/proc/self/status").read_text()
    memory = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024
    print(f"{memory}\n{longer}\n{said[:500]}")


def _used(path: Path, seconds: list[float]) -> str:
    from pnuauc.cli.console import Voice
    from pnuauc.cli.work import inspect_model
    from pnuauc.io import load_model
    from pnuauc.model.scoring import score_file

    inspected = "inspected"
    try:
        inspect_model(Voice(), path)
    except InputError as error:
        if "the model itself can be used" not in str(error):
            raise
        inspected = "its card is not shown"
    seconds.append(time.process_time())
    model = load_model(path)
    if len(model.encoder.columns_) > 1000:
        return f"{inspected}, loads"
    table = path.with_name("t.libsvm" if model.encoder.is_sparse else "t.csv")
    with table.open("w", newline="") as stream:
        if model.encoder.is_sparse:
            stream.writelines("0 1:1 3:2\n" for _ in range(_N))
        else:
            writer = csv.writer(stream)
            writer.writerow([column.name for column in model.encoder.columns_])
            writer.writerows([[""] * len(model.encoder.columns_)] * _N)
    score_file(model, table, path.with_name("scores.csv"))
    return f"{inspected}, scores"


def _bombs() -> Callable[[int], str]:
    sound_models()

    def case(number: int) -> str:
        (said, memory, seconds), size = cost_of(list(BOMBS.values())[number])
        assert "crashed" not in said, said
        assert memory < FREE_MB + TIMES * size / 1e6, f"{memory} MB for {size:,} bytes"
        assert seconds < 5 or size > 30e6, f"{seconds} seconds"
        return "used" if said.endswith(("scores", "loads")) else "refused"

    return case


BOMB_TARGET = Target("model files that cost the most", _bombs, measured=False)


def main() -> None:
    if sys.argv[1:]:
        _use(Path(sys.argv[1]))
        return
    print("| file | MB | memory in all, MB | processor seconds | outcome |")
    print("|---|---:|---:|---:|---|")
    sound_models()
    for name, make in BOMBS.items():
        (said, memory, seconds), size = cost_of(make)
        print(f"| {name} | {size / 1e6:.2g} | {memory:,} | {seconds:.1f} | {said} |", flush=True)


if __name__ == "__main__":
    main()
