"""Would the tests notice? One-place changes of the source, and which of them a test kills.

    python tools/mutants.py --seed 7           # a sample of every room, as far as not tried yet
    python tools/mutants.py metrics --seed 7   # of one room
    python tools/mutants.py --seed 7 --again   # its survivors once more, after tests were added
    python tools/mutants.py --named            # the changes with a name, chosen for their meaning
    python tools/mutants.py --report           # docs/mutants.md from the results

A room is a part of the package with the tests that speak for it (``mutants.toml``). Its tests run
once under coverage, to learn which tests reach which line. Then a seeded sample of the possible
changes is tried: each is written into a copy of the source, and the tests that reach its statement
run, short ones of few lines first, until one fails or the time for one change is used up. A change
that no test notices survives. Survivors that cannot change a result are explained in
``mutants.toml``; the others want a test. Every trial is a line of ``mutants.jsonl``: the first one
of a change says what the tests were worth when its sample was drawn, the last one what they are
worth now.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import copy
import functools
import hashlib
import importlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found,no-redef]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_suffix(".jsonl")
CACHE = ROOT / "build" / "mutants"
#: Processor seconds of a test that may take part.
LONGEST_TEST = 10
#: Loaded once, before the children start.
LIBRARIES = (
    *("scipy.optimize", "scipy.sparse", "scipy.stats", "sklearn.ensemble", "sklearn.linear_model"),
    *("sklearn.model_selection", "pandas", "polars", "narwhals", "pyarrow.csv", "pyarrow.parquet"),
    *("typer.testing", "rich.table", "jinja2", "hypothesis.extra.numpy", "openpyxl", "pytest"),
)
#: Plugins of pytest that cost time; that of hypothesis also warns of its being loaded before.
NOT_NEEDED = ("xdist", "cacheprovider", "hypothesispytest", "pytest_cov", "anyio", "faulthandler")
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}

# --- what is changed ----------------------------------------------------------------------------

COMPARE = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
TERMS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "any": "all",
    "all": "any",
    "mean": "sum",
    "sum": "mean",
    "zeros": "ones",
    "ones": "zeros",
    "floor": "ceil",
    "ceil": "floor",
    "left": "right",
    "right": "left",
}
#: Keywords without which a result is the same: they say how, not what.
QUIET = {"stacklevel", "copy", "strict", "encoding", "dtype", "check_finite", "overwrite_a"}
#: Calls whose arguments are not worth swapping: the same result, or no program at all.
SYMMETRIC = {"min", "max", "minimum", "maximum", "isinstance", "getattr", "hasattr", "zip"}
#: Functions whose product is words.
WORDS = {"__repr__", "__str__", "_repr_html_", "__sklearn_tags__", "_more_tags"}


@dataclass(frozen=True)
class Mutant:
    """One change: where, by which operator, from what to what."""

    file: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    twin: int  # among equal changes of one function, which
    span: tuple[int, int]  # lines of the statement; of a default value those of its function

    @property
    def id(self) -> str:
        """The same while the function's own text stays; lines may move."""
        parts = (self.file, self.function, self.operator, self.before, self.after, str(self.twin))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(operator, changed node) for everything that can be done to one node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARE[type(node.ops[0])]:
            yield "comparison", _with(node, ops=[other()])
    elif isinstance(node, ast.BinOp):
        if type(node.op) in ARITHMETIC:
            yield "arithmetic", _with(node, op=ARITHMETIC[type(node.op)]())
        if isinstance(node.op, TERMS):
            yield "dropped term", node.left
            if not isinstance(node.op, (ast.Sub, ast.Div)):
                yield "dropped term", node.right
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield "arithmetic", _with(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield "boolean", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield "removed sign or not", node.operand
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield "negated condition", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        yield "constant", ast.Constant(_other(node.value))
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Return) and not isinstance(node.value, (ast.Constant, type(None))):
        yield "return value", ast.Return(ast.Constant(None))


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    """Arguments swapped or left out, and another function of the same shape."""
    plain = not any(isinstance(a, ast.Starred) for a in node.args)
    plain = plain and ast.unparse(node.func).removeprefix("np.") not in SYMMETRIC
    if plain and len(node.args) > 1 and ast.dump(node.args[0]) != ast.dump(node.args[1]):
        first, second, *rest = node.args
        yield "swapped arguments", _with(node, args=[second, first, *rest])
    for k, keyword in enumerate(node.keywords):
        if keyword.arg is not None and keyword.arg not in QUIET:
            kept = node.keywords[:k] + node.keywords[k + 1 :]
            yield "dropped argument", _with(node, keywords=kept)
    if isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield "other function", _with(node, func=ast.Name(NAMES[node.func.id], ast.Load()))
    elif isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
        func = _with(node.func, attr=NAMES[node.func.attr])
        yield "other function", _with(node, func=func)


def _other(value: bool | int | float) -> bool | int | float:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) or value == 0 else value * 1.5


def _with(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def mutants(path: Path) -> Iterator[tuple[Mutant, Callable[[], str]]]:
    """Every change of one file, each with a function that gives the changed source."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = path.relative_to(ROOT).as_posix()
    seen: collections.Counter[tuple[str, ...]] = collections.Counter()
    for parent, field, index, node, function, span in _nodes(tree, "", (1, 1)):
        for operator, changed in variants(node):
            before, after = _text(node), _text(changed)
            key = (function, operator, before, after)
            seen[key] += 1
            mutant = Mutant(name, function, node.lineno, operator, before, after, seen[key], span)
            yield mutant, functools.partial(_changed, tree, parent, field, index, node, changed)


def _changed(
    tree: ast.Module, parent: ast.AST, field: str, index: int | None, node: ast.AST, new: ast.AST
) -> str:
    _put(parent, field, index, new)
    source = ast.unparse(ast.fix_missing_locations(tree))
    _put(parent, field, index, node)
    return source


def _text(node: ast.AST) -> str:
    """One line that tells the change: of a compound statement the head alone."""
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    return " ".join(text.split("\n", 1)[0].split())


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _nodes(
    node: ast.AST, function: str, span: tuple[int, int]
) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, str, tuple[int, int]]]:
    """All nodes that may be changed: no words, annotations, decorators or error messages."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_words(child) or _is_quiet(child):
                continue
            inside = function
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                if child.name in WORDS:
                    continue
                inside = f"{function}.{child.name}".lstrip(".")
            lines = _span(child) if isinstance(child, ast.stmt) else span
            yield node, field, index, child, inside, lines
            yield from _nodes(child, inside, lines)


def _span(node: ast.stmt) -> tuple[int, int]:
    """Lines of a statement: its head alone if it has a body of its own, unless it is a function."""
    if isinstance(node, (ast.If, ast.For, ast.While, ast.With)):
        return node.lineno, max(node.lineno, node.body[0].lineno - 1)
    return node.lineno, node.end_lineno or node.lineno


def _is_quiet(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg in QUIET


def _is_words(node: ast.AST) -> bool:
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)):
        return True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return True
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "TypeVar")


# --- which tests reach which line ---------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """For every (file, line) the tests that run it, and how long each test takes."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def of(self, mutant: Mutant) -> list[str]:
        """Short tests of few lines first; a line that runs at import time only belongs to all.

        A module may be imported by a test, which then seems to be the only one that reaches it.
        """
        lines = self.tests.get(mutant.file, {})
        first, last = mutant.span
        found = {test for line in range(first, last + 1) for test in lines.get(line, [])}
        everybody = found == {""} or not mutant.function
        chosen = set(self.seconds) if everybody else found & set(self.seconds)
        return sorted(chosen, key=lambda test: (self.seconds[test] + 0.01) * self.breadth[test])

    @functools.cached_property
    def breadth(self) -> collections.Counter[str]:
        """Lines that each test reaches: what reaches few is about them."""
        every = (names for lines in self.tests.values() for names in lines.values())
        return collections.Counter(itertools.chain.from_iterable(every))

    def within(self, mutant: Mutant, seconds: float) -> list[str]:
        """The first of them, as many as fit into the time; one at least."""
        tests = self.of(mutant)
        totals = itertools.accumulate(self.seconds[test] for test in tests)
        return tests[: max(1, sum(total <= seconds for total in totals))]


def reach(part: dict[str, list[str]]) -> Reach:
    """Run the room's tests once under coverage, file by file; kept while room and tests stay."""
    every = Reach({}, {})
    state = "".join(path.read_text(encoding="utf-8") for path in _files(part["source"]))
    for test in _files(part["tests"]):
        text = state + test.read_text(encoding="utf-8")
        kept = CACHE / f"{test.stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        if not kept.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(_run_covered(test)), encoding="utf-8")
        found = json.loads(kept.read_text(encoding="utf-8"))
        every.seconds.update(found["seconds"])
        for file, lines in found["tests"].items():
            for line, names in lines.items():
                every.tests.setdefault(file, {}).setdefault(int(line), []).extend(names)
    return every


def _run_covered(test: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        data, timing = Path(folder) / "coverage.db", Path(folder) / "junit.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"),
            *("--cov=pnuauc", "--cov-context=test", "--cov-report=", f"--junitxml={timing}"),
            *("-o", "junit_family=xunit1", "-p", Path(__file__).stem, str(test)),
        ]
        environment = {**os.environ, **THREADS, "COVERAGE_FILE": str(data)}
        folders = [ROOT / "src", ROOT, Path(__file__).parent]
        environment["PYTHONPATH"] = os.pathsep.join(map(str, folders))
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{test.name} cannot be run:\n{done.stdout[-3000:]}")
        if done.returncode == 1:
            print(f"Left out, for it fails without any change:\n{done.stdout[-600:]}")
        return {"tests": _lines(data), "seconds": _seconds(timing)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """A hook of pytest: a test of many seconds is ended, as it would hardly ever get its turn."""
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_TEST)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: Any) -> None:
    """Another: processor time in place of that of a clock, as the machine may be busy."""
    now = sum(os.times()[:4])
    report.duration, _CLOCK[0] = now - _CLOCK[0], now


_CLOCK = [sum(os.times()[:4])]


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError(f"more than {LONGEST_TEST} seconds")


def _lines(data: Path) -> dict[str, dict[int, list[str]]]:
    from coverage import CoverageData

    found = CoverageData(str(data))
    found.read()
    return {
        Path(file).relative_to(ROOT).as_posix(): {
            line: sorted({context.partition("|")[0] for context in contexts})
            for line, contexts in found.contexts_by_lineno(file).items()
        }
        for file in found.measured_files()
        if Path(file).is_relative_to(ROOT)
    }


def _seconds(timing: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for case in xml.etree.ElementTree.parse(timing).iter("testcase"):
        if all(case.find(ending) is None for ending in ("skipped", "failure", "error")):
            module = (case.get("file") or "").replace(os.sep, "/")
            inside = (case.get("classname") or "").replace(".", "/").partition(module[:-3])[2]
            test = "::".join([module, *inside.strip("/").split("/"), case.get("name") or ""])
            found[test.replace("::::", "::")] = float(case.get("time") or 0)
    return found


# --- trying -------------------------------------------------------------------------------------


class Laboratory:
    """A copy of the source; changed files are put into it and taken out again."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("__pycache__"))
        for name in LIBRARIES:  # once: every child starts with them
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    def killed(self, file: str, source: str, tests: list[str], known: Reach) -> str:
        """ "killed", "timeout" (also a kill) or "survived"."""
        if not tests:
            return "survived"
        path = self.source / Path(file).relative_to("src")
        original = path.read_text(encoding="utf-8")
        path.write_text(source, encoding="utf-8")
        try:
            return self.run(tests, known)
        finally:
            path.write_text(original, encoding="utf-8")

    def run(self, tests: list[str], known: Reach) -> str:
        child = os.fork()
        if child == 0:
            self._child(tests, known)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        endings = {0: "survived", -signal.SIGALRM: "timeout", -signal.SIGPROF: "timeout"}
        return endings.get(code, "killed")

    def _child(self, tests: list[str], known: Reach) -> None:
        code = 1
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            os.chdir(ROOT)
            sys.dont_write_bytecode = True
            sys.path[:0] = [str(self.source), str(ROOT)]
            os.environ["PYTHONPATH"] = os.pathsep.join([str(self.source), str(ROOT)])
            arguments = [
                "-x",
                "-q",
                "--assert=plain",
                *(f"-pno:{name}" for name in NOT_NEEDED),
                *tests,
            ]
            code = int(pytest.main(arguments, plugins=[Patience(known.seconds)]))
        finally:
            os._exit(code)


class Patience:
    """Ends the process when one test takes far longer than it did on the unchanged source."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self._allow(60)  # for importing and collecting

    def pytest_runtest_setup(self, item: Any) -> None:
        self._allow(10 + 5 * self.seconds.get(item.nodeid, 30))

    @staticmethod
    def _allow(seconds: float) -> None:
        """Processor time, as the machine may be busy; and five times that of waiting."""
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(int(5 * seconds))


def try_room(room: str, part: dict[str, list[str]], options: argparse.Namespace) -> None:
    """The room's sample, as far as it has not been tried; results are appended one by one."""
    found = [m for file in _files(part["source"], part) for m in mutants(file)]
    seed = str(options.seed).encode()
    found.sort(key=lambda m: hashlib.sha256(seed + m[0].id.encode()).digest())
    trials = [t for t in read(RESULTS) if (t["room"], t["seed"]) == (room, options.seed)]
    last = {trial["id"]: trial["status"] for trial in trials}
    sample = found[: options.sample]
    if options.again:
        due = [(m, source) for m, source in found if last.get(m.id) == "survived"]
    else:
        due = [(m, source) for m, source in sample if m.id not in last]
    print(f"{room}: {len(found)} possible, {len(sample)} in the sample, {len(due)} to try.")
    if not due:
        return
    known = reach({**part, "tests": options.tests} if options.tests else part)
    with laboratory(sorted(known.seconds, key=known.seconds.__getitem__)[:20], known) as bench:
        for mutant, changed in due:
            if time.monotonic() > options.end:
                print(f"{room}: stopped; the next run goes on here.")
                return
            tests = known.within(mutant, options.seconds)
            start = time.monotonic()
            status = bench.killed(mutant.file, changed(), tests, known)
            line = {"id": mutant.id, "room": room, "seed": options.seed, "of": len(found)}
            line |= {"status": status, "tests": len(tests)} | asdict(mutant)
            line["seconds"] = round(time.monotonic() - start, 1)
            with open(RESULTS, "a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            if status == "survived":
                print(
                    f"  {mutant.id} {mutant.file}:{mutant.line} {mutant.function}, "
                    f"{mutant.operator}: {mutant.before} -> {mutant.after}",
                    flush=True,
                )


@contextlib.contextmanager
def laboratory(tests: Iterable[str], known: Reach) -> Iterator[Laboratory]:
    """A laboratory in which the unchanged source passes the tests."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Laboratory(Path(folder))
        if bench.run(sorted(tests), known) != "survived":
            raise SystemExit("The unchanged copy fails too: no result would mean anything.")
        yield bench


def try_named(named: list[dict[str, str]]) -> list[dict[str, str]]:
    """Each change with a name against the tests that should notice it; none may survive."""
    results, known = [], Reach({}, {})
    with laboratory({t for change in named for t in change["tests"].split()}, known) as bench:
        for change in named:
            source = (ROOT / change["file"]).read_text(encoding="utf-8")
            if source.count(change["before"]) != 1:
                raise SystemExit(f"{change['name']}: its line is not in {change['file']} once.")
            source = source.replace(change["before"], change["after"])
            status = bench.killed(change["file"], source, change["tests"].split(), known)
            print(f"{status}: {change['name']}", flush=True)
            results.append(change | {"status": status})
    return results


def _files(patterns: list[str], part: dict[str, list[str]] | None = None) -> list[Path]:
    """Files of the patterns, without those that the room leaves out."""
    left = {ROOT / name for name in (part or {}).get("without", [])}
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern)} - left)


def read(path: Path) -> list[dict[str, Any]]:
    """Every trial, in order."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- telling ------------------------------------------------------------------------------------


def report(config: dict[str, Any]) -> str:
    """Shares by room and sample, at its first trial and now, and every survivor with the reason."""
    explained: dict[str, str] = config.get("explained", {})
    table = [
        "| room | seed | possible changes | tried | cannot change a result | killed at first | "
        "killed now | share at first | share now |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    survivors: dict[str, dict[str, Any]] = {}
    trials = read(RESULTS)
    for room in config["rooms"]:
        for seed in sorted({t["seed"] for t in trials if t["room"] == room}):
            mine = [t for t in trials if (t["room"], t["seed"]) == (room, seed)]
            first = {t["id"]: t for t in reversed(mine)}
            last = {t["id"]: t for t in mine}
            idle = [i for i, t in last.items() if t["status"] == "survived" and i in explained]
            killed = [sum(t["status"] != "survived" for t in ts.values()) for ts in (first, last)]
            shares = [f"{100 * k / max(1, len(last) - len(idle)):.0f}%" for k in killed]
            counts = [len(last), len(idle), *killed, *shares]
            cells = [room, seed, f"{mine[0]['of']:,}", *counts]
            table.append(f"| {' | '.join(map(str, cells))} |")
            survivors |= {i: t for i, t in last.items() if t["status"] == "survived"}
    lines = ["", "| where | change | why it survives |", "|---|---|---|"]
    for r in survivors.values():
        where = f"`{r['file'].removeprefix('src/pnuauc/')}`, `{r['function'] or 'module'}`"
        change = f"`{r['before']}` → `{r['after']}`".replace("|", "\\|")
        why = explained.get(r["id"], f"**open** ({r['id']})")
        lines.append(f"| {where} | {change} | {why} |")
    return "\n".join([*table, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="*")
    parser.add_argument("--sample", type=int, default=40, help="changes a room")
    parser.add_argument("--seconds", type=float, default=30, help="of tests for one change")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", help="these files in place of the room's")
    parser.add_argument("--again", action="store_true", help="try survivors once more")
    parser.add_argument("--named", action="store_true", help="the changes with a name")
    parser.add_argument("--report", action="store_true", help="write docs/mutants.md")
    options = parser.parse_args()
    options.end = time.monotonic() + 60 * options.minutes
    os.environ.update(THREADS)
    with open(Path(__file__).with_suffix(".toml"), "rb") as file:
        config = tomllib.load(file)
    if options.named:
        sys.exit(any(r["status"] == "survived" for r in try_named(config["named"])))
    if not options.report:
        for room in options.rooms or config["rooms"]:
            try_room(room, config["rooms"][room], options)
    text = report(config)
    print(text)
    if options.report:
        page = ROOT / "docs" / "mutants.md"
        head = page.read_text(encoding="utf-8").partition("<!-- results -->")[0]
        page.write_text(f"{head}<!-- results -->\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
