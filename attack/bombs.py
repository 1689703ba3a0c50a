"""The costliest model files that were thought of: ``python -m attack.bombs`` prints their cost.

Every one is opened in a process of its own; the promise is one sentence or a model, below 1 GB and
within 5 seconds of processor time.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attack.containers import join, sealed, split
from attack.targets import sound_models
from pnuauc.exceptions import ModelFileError
from pnuauc.io import load_model

__all__ = ["BOMBS", "cost_of"]


def _changed(change: Callable[[dict, dict], None], which: int = 0) -> bytes:
    manifest, arrays = split(sound_models()[which][0])
    change(manifest, arrays)
    return join(manifest, arrays)


def _ids(manifest: dict, arrays: dict) -> None:
    manifest["card"] = {"label": "y", "ids": [f"a{i}" for i in range(1_500_000)]}


def _levels(manifest: dict, arrays: dict) -> None:
    levels = manifest["encoder"]["levels"]
    levels[0] = [f"l{i}" for i in range(1_500_000)]
    arrays["encoder/ranks"] = np.concatenate([np.arange(len(kept)) for kept in levels])


def _wide(manifest: dict, arrays: dict) -> None:
    n = 2**24 - 100_000
    manifest["card"] = {}
    arrays["encoder/scale"], arrays["scorer/coef"] = np.ones(n), np.ones(n)


#: Name -> the file.
BOMBS: dict[str, Callable[[], bytes]] = {
    "short strings": lambda: sealed(b'{"card":[' + b'"abcdefghi",' * 1_990_000 + b'"x"]}'),
    "strings of four-byte letters": lambda: sealed(
        ('{"card":[' + '"abcdefg\U0001f600",' * 1_990_000 + '"x"]}').encode()
    ),
    "empty lists": lambda: sealed(b'{"card":[' + b"[]," * 1_300_000 + b"[]]}"),
    "nested lists": lambda: sealed(b"[" * 16_000_000 + b"]" * 16_000_000),
    "quotes": lambda: sealed(b'""' * 16_000_000),
    "fewer quotes": lambda: sealed(b'"abcdefg"' * 1_990_000),
    "backslashes": lambda: sealed(b'"' + b"\\" * 33_000_000 + b'"'),
    "a card of 1,500,000 ids": lambda: _changed(_ids),
    "1,500,000 categories": lambda: _changed(_levels),
    "16,600,000 sparse columns": lambda: _changed(_wide, which=5),
}


def cost_of(data: bytes) -> tuple[str, int, float]:
    """(what was said, MB of memory in all, processor seconds) of opening a file."""
    folder = tempfile.mkdtemp(prefix="pnuauc-attack-")
    path = Path(folder) / "m.pnuauc"
    path.write_bytes(data)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the other process
        said = "crashed"
        started = time.process_time()
        try:
            load_model(path)
            said = "a model"
        except ModelFileError as error:
            said = str(error).split(": ", 1)[-1]
        finally:
            seconds = time.process_time() - started
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            os.write(writer, f"{memory}\n{seconds}\n{said}".encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        memory, seconds, said = stream.read().split("\n", 2)
    os.waitpid(child, 0)
    path.unlink()
    return said, int(memory), float(seconds)


def main() -> None:
    print("| file | MB | memory in all, MB | processor seconds | outcome |")
    print("|---|---:|---:|---:|---|")
    for name, make in BOMBS.items():
        # made in a process of its own too, so that its memory is not counted
        data = _in_child(make)
        said, memory, seconds = cost_of(data)
        print(
            f"| {name} | {len(data) / 1e6:.0f} | {memory:,} | {seconds:.1f} | {said} |", flush=True
        )
        del data


def _in_child(make: Callable[[], bytes]) -> bytes:
    with tempfile.NamedTemporaryFile(prefix="pnuauc-attack-") as file:
        child = os.fork()
        if child == 0:  # pragma: no cover - the other process
            Path(file.name).write_bytes(make())
            os._exit(0)
        os.waitpid(child, 0)
        return Path(file.name).read_bytes()


if __name__ == "__main__":
    main()
