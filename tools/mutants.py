"""Do the tests notice a wrong line? Random mutants of src/pnuauc, one at a time, in a copy.

    python tools/mutants.py --sample 150 --seed 1    # make mutants ARGS="--sample 150 --seed 1"
    python tools/mutants.py --report                 # counts by room, and the survivors

A mutant is one changed comparison, operator, constant, condition or return value. Rooms are drawn
by their number of such places. The tests of the module run first, then those of its room, and with
``--wide`` all tests; ``--all`` includes those marked slow or system. Results are appended to
build/mutants.jsonl; a mutant that is in the file is not run again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/pnuauc")
RESULTS = ROOT / "build" / "mutants.jsonl"
COPY = ROOT / "build" / "mutants"
TIMEOUT = 600

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """``before`` at a line and column of a file becomes ``after``."""

    file: str
    line: int
    column: int
    before: str
    after: str

    @property
    def room(self) -> str:
        return Path(self.file).parts[2].removesuffix(".py")

    @property
    def key(self) -> tuple[str, int, int, str]:
        return self.file, self.line, self.column, self.after


def mutated(node: ast.AST) -> ast.AST | None:
    """The node changed in one way, or None where there is none."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [_SWAPS[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(_SWAPS[type(node.op)](), node.values)
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPS:
        return ast.BinOp(node.left, _SWAPS[type(node.op)](), node.right)
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        return node.operand
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            return ast.Constant(not node.value)
        if isinstance(node.value, (int, float)):
            return ast.Constant(node.value * 2 or node.value + 1)
    return None


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file; annotations, docstrings and f-strings are left alone."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = [line.encode() for line in text.splitlines()]
    todo: list[ast.AST] = [ast.parse(text)]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.JoinedStr, ast.arg)):
            continue
        if isinstance(node, ast.AnnAssign):
            todo += [node.value] if node.value else []
            continue
        todo += [
            child
            for child in ast.iter_child_nodes(node)
            if child is not getattr(node, "returns", 0)
        ]
        changed = mutated(node)
        if changed is not None and isinstance(node, ast.expr) and node.lineno == node.end_lineno:
            before = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
            after = f"({ast.unparse(ast.fix_missing_locations(changed))})"
            yield Mutant(str(path), node.lineno, node.col_offset, before, after)


def sample(count: int, seed: int, only: str | None) -> list[Mutant]:
    """Mutants drawn at random; a larger sample of the same seed begins with the smaller one."""
    files = sorted(p.relative_to(ROOT) for p in (ROOT / SOURCE).rglob("*.py"))
    found = [m for path in files for m in mutants(path) if only in (None, m.room)]
    random.Random(seed).shuffle(found)
    return found[:count]


def stages(mutant: Mutant, wide: bool) -> list[str]:
    """Tests to run, the nearest first."""
    parts = Path(mutant.file).parts[2:]
    module, room = Path("tests", *parts[:-1], f"test_{parts[-1]}"), Path("tests", parts[0])
    near = [str(p) for p in (module, room) if p != Path("tests") and (ROOT / p).exists()]
    return near + (["tests"] if wide or not near else [])


def applied(mutant: Mutant, text: str) -> str:
    """The text of its file with the mutant in it."""
    lines = text.splitlines(keepends=True)
    row = lines[mutant.line - 1].encode()
    begin, rest = row[: mutant.column].decode(), row[mutant.column :].decode()
    assert rest.startswith(mutant.before), f"{mutant}: the file has changed"
    lines[mutant.line - 1] = begin + mutant.after + rest[len(mutant.before) :]
    return "".join(lines)


@cache
def passes(tests: str, marks: tuple[str, ...]) -> bool:
    """Whether these tests pass on the copy as it is; remembered for the tree without a mutant."""
    return tests_pass(tests, marks)


def tests_pass(tests: str, marks: tuple[str, ...]) -> bool:
    paths = {"PYTHONPATH": f"{COPY / 'src'}:{COPY}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *marks, tests],
        cwd=COPY,
        env={**os.environ, **paths},
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    return done.returncode in (0, 5)  # 5: no test has these marks


def run(mutant: Mutant, marks: tuple[str, ...], wide: bool) -> str:
    """Apply the mutant to the copy, run the tests; what killed it, or "survived"."""
    found = stages(mutant, wide)
    for tests in found:
        if not passes(tests, marks):
            raise SystemExit(f"{tests} fails without a mutant")
    target = COPY / mutant.file
    text = target.read_text(encoding="utf-8")
    target.write_text(applied(mutant, text), encoding="utf-8")
    try:
        for tests in found:
            if not tests_pass(tests, marks):
                return f"killed by {tests}"
        return "survived"
    except subprocess.TimeoutExpired:
        return "killed by time"
    finally:
        target.write_text(text, encoding="utf-8")


def report() -> None:
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    total, dead = Counter[str](), Counter[str]()
    for row in rows:
        room = Mutant(**row["mutant"]).room
        total[room] += 1
        dead[room] += row["outcome"] != "survived"
    print("| room | mutants | killed |\n|---|---:|---:|")
    for room in sorted(total):
        print(f"| `{room}` | {total[room]} | {dead[room]} |")
    print(f"| all | {total.total()} | {dead.total()} |")
    for row in rows:
        if row["outcome"] == "survived":
            m = Mutant(**row["mutant"])
            print(f"{m.file}:{m.line}: {m.before} -> {m.after}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Do the tests notice a wrong line?")
    parser.add_argument("--sample", type=int, default=30, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", help="only this room")
    parser.add_argument("--wide", action="store_true", help="survivors of a room meet all tests")
    parser.add_argument("--all", action="store_true", help="tests marked slow or system too")
    parser.add_argument("--report", action="store_true", help="show the results so far")
    given = parser.parse_args()
    if given.report:
        return report()
    RESULTS.parent.mkdir(exist_ok=True)
    shutil.rmtree(COPY, ignore_errors=True)
    skip = shutil.ignore_patterns(".git", "build", "dist", ".venv*", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, COPY, ignore=skip)
    known = set()
    if RESULTS.exists():
        known = {
            Mutant(**json.loads(line)["mutant"]).key for line in RESULTS.read_text().splitlines()
        }
    marks = () if given.all else ("-m", "not slow and not system")
    for mutant in sample(given.sample, given.seed, given.room):
        if mutant.key in known:
            continue
        outcome = run(mutant, marks, given.wide)
        with RESULTS.open("a") as stream:
            stream.write(json.dumps({"mutant": asdict(mutant), "outcome": outcome}) + "\n")
        print(f"{outcome}: {mutant.file}:{mutant.line}: {mutant.before} -> {mutant.after}")
    return report()


if __name__ == "__main__":
    main()
