"""One ``pnuauc fit`` as data: which modules and functions run, and how often rooms change.

    PYTHONPATH=src python -m benchmarks.walk [--src OTHER/src]

A table of 400 rows and 6 columns with 80 labels is fitted with one thread under ``sys.setprofile``.
A room is a module or package at the top of ``src/pnuauc``. A switch is a call from a function of
one room to a function of another. ``--src`` measures another tree, for example a git worktree of
an earlier commit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent

#: Runs in a process of its own: what was imported before would not be counted.
_TRACED = """
import sys
from benchmarks.walk import Walk
walk = Walk(sys.argv[1])
sys.setprofile(walk)
try:
    from pnuauc.cli import main
except ImportError:
    from pnuauc._cli import main
sys.argv = ["pnuauc", *sys.argv[3:]]
try:
    main()
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    walk.write(%r)
"""


class Walk:
    """Counts the calls of functions whose file is below ``source``."""

    def __init__(self, source: str) -> None:
        self.source = source.rstrip("/") + "/"
        self.functions: Counter[tuple[str, str, int]] = Counter()
        self.crossings = self.switches = 0
        self.edges: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(self.source):
            return
        if code.co_name.startswith("<") or not code.co_flags & CO_OPTIMIZED:
            return  # a module, a class body, a comprehension
        here = code.co_filename[len(self.source) :]
        self.functions[here, code.co_name, code.co_firstlineno] += 1
        there = self._caller(frame)
        if there is not None and there != here:
            self.crossings += 1
            self.edges.add((there, here))
            self.switches += _room(there) != _room(here)

    def _caller(self, frame: FrameType) -> str | None:
        """The nearest function of ours below in the stack."""
        below = frame.f_back
        while below is not None:
            code = below.f_code
            if code.co_filename.startswith(self.source) and code.co_flags & CO_OPTIMIZED:
                return code.co_filename[len(self.source) :]
            below = below.f_back
        return None

    def write(self, path: str) -> None:
        counts = {
            "modules whose functions run": len({file for file, _, _ in self.functions}),
            "distinct functions": len(self.functions),
            "calls": sum(self.functions.values()),
            "calls into another module": self.crossings,
            "distinct module to module edges": len(self.edges),
            "switches between rooms": self.switches,
            "calls of read_roles": sum(
                n for (_, name, _), n in self.functions.items() if name == "read_roles"
            ),
        }
        Path(path).write_text(json.dumps(counts))


def _room(path: str) -> str:
    return path.split("/")[0].removesuffix(".py")


def make_table(path: Path) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.random(400) < 0.2
    X = rng.standard_normal((400, 6)) + hidden[:, None]
    y = [str(int(h)) if i < 80 else "" for i, h in enumerate(hidden)]
    lines = [",".join([*(f"{v:.6f}" for v in row), label]) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,e,f,y", *lines]) + "\n")


def walk(source: Path) -> dict[str, int]:
    """The counts of one fit with the package in ``source``/pnuauc."""
    with tempfile.TemporaryDirectory() as folder:
        table, counts = Path(folder) / "t.csv", Path(folder) / "counts.json"
        make_table(table)
        options = ["fit", str(table), "--label", "y", "--jobs", "1", "--quiet"]
        subprocess.run(
            [sys.executable, "-c", _TRACED % str(counts), str(source / "pnuauc"), "--", *options],
            env={"PYTHONPATH": f"{source}:{HERE.parent}", "OMP_NUM_THREADS": "1"},
            check=True,
        )
        return dict(json.loads(counts.read_text()))


def sizes(source: Path) -> dict[str, tuple[int, int]]:
    """(files, lines) of every room."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted((source / "pnuauc").rglob("*.py")):
        room = _room(str(path.relative_to(source / "pnuauc")))
        files, lines = found.get(room, (0, 0))
        found[room] = (files + 1, lines + len(path.read_text().splitlines()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="One pnuauc fit as data.")
    parser.add_argument("--src", type=Path, default=HERE.parent / "src", help="tree to measure")
    source = parser.parse_args().src.resolve()
    print("| one `pnuauc fit` | |\n|---|---:|")
    for name, count in walk(source).items():
        print(f"| {name} | {count:,} |")
    print("\n| room | files | lines |\n|---|---:|---:|")
    rooms = sizes(source)
    for room, (files, lines) in rooms.items():
        print(f"| `{room}` | {files} | {lines:,} |")
    totals = [sum(column) for column in zip(*rooms.values(), strict=True)]
    print(f"| all | {totals[0]} | {totals[1]:,} |")


if __name__ == "__main__":
    main()
