"""Tests of project."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pnuauc

tomllib = pytest.importorskip("tomllib", reason="tomllib comes with Python 3.11")

ROOT = Path(__file__).resolve().parents[1]

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

EXTRAS = PYPROJECT["project"]["optional-dependencies"]


def test_all_holds_every_extra_that_is_not_for_developers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import lowest

    (line,) = EXTRAS["all"]
    named = set(re.fullmatch(r"pnuauc\[([\w,-]+)\]", line)[1].split(","))
    assert named == set(EXTRAS) - {"all", *lowest.DEVELOPERS}


def test_the_version_stands_in_one_place():
    assert "version" not in PYPROJECT["project"]
    source = (ROOT / PYPROJECT["tool"]["hatch"]["version"]["path"]).read_text()
    assert f'__version__ = "{pnuauc.__version__}"' in source
    for name in ("pyproject.toml", "CITATION.cff"):
        assert pnuauc.__version__ not in re.findall(
            r'^version\W+"?([\d.]+)', (ROOT / name).read_text(), re.MULTILINE
        )


def test_every_python_that_is_claimed_is_tested():
    workflow = ROOT / ".github" / "workflows" / "test.yml"
    if not workflow.exists():
        pytest.skip("the source distribution has no workflow")
    listed = re.search(r"python: \[(.*)\]", workflow.read_text())[1]
    tested = re.findall(r"3\.\d+", listed)
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PYPROJECT["project"]["classifiers"]))
    assert tested == claimed
    assert PYPROJECT["project"]["requires-python"] == f">={tested[0]}"


def test_lowest_versions_are_those_admitted(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import lowest

    found = list(lowest.pins(ROOT / "pyproject.toml"))
    names = [pin.partition("==")[0] for pin in found]
    assert len(set(names)) == len(names), "two lowest versions of one package"
    for line in PYPROJECT["project"]["dependencies"]:
        assert line.replace(">=", "==") in found


def test_relative_links_of_the_root_files_hold():
    for page in ROOT.glob("*.md"):
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
            assert (ROOT / target).exists(), f"{page.name} links {target}"


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_no_module_imports_a_private_name_of_another(folder):
    found = [
        f"{path.name}: {node.module}.{alias.name}"
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pnuauc")
        for alias in node.names
        if re.match(r"_(?!_|utils\b)", alias.name)
    ]
    assert not found
