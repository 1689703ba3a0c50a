"""Tests of tools/ and benchmarks/walk."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from benchmarks.walk import Walk, sizes

ROOT = Path(__file__).resolve().parents[1]


def test_every_mutant_is_another_program(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import mutants

    for file in ("src/pnuauc/core/risks.py", "src/pnuauc/labels.py"):
        text = (ROOT / file).read_text(encoding="utf-8")
        found = list(mutants.mutants(Path(file)))
        assert len(found) > 30
        for mutant in found[::5]:
            changed = mutants.applied(mutant, text)
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), mutant
    assert {m.room for m in mutants.sample(200, 0, None)} >= {"core", "io", "study"}
    assert mutants.sample(20, 1, None) == mutants.sample(30, 1, None)[:20]


def test_a_walk_counts_functions_and_switches(tmp_path):
    for room, text in (
        ("one", "from two import g\ndef f(n):\n    return [g(k) for k in range(n)]\n"),
        ("two", "class A:\n    x = 1\ndef g(k):\n    return h(k)\ndef h(k):\n    return k\n"),
    ):
        (tmp_path / f"{room}.py").write_text(text)
    sys.path.insert(0, str(tmp_path))
    walk = Walk(str(tmp_path))
    before = sys.getprofile()
    sys.setprofile(walk)
    try:
        import one

        one.f(3)
    finally:
        sys.setprofile(before)
        sys.path.remove(str(tmp_path))
    assert sorted(name for _, name, _ in walk.functions) == ["f", "g", "h"]
    assert sum(walk.functions.values()) == 7
    assert (walk.switches, walk.edges) == (3, {("one.py", "two.py")})


def test_sizes_are_those_of_the_files():
    lines = sum(len(p.read_text().splitlines()) for p in (ROOT / "src/pnuauc").rglob("*.py"))
    assert sum(n for _, n in sizes(ROOT / "src").values()) == lines
