"""Words: options are named by the command line only, and hints reach the user."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

import pnuauc
from pnuauc.exceptions import InputError, MissingRoleError, PriorNotIdentifiedError

pytest.importorskip("typer")
from typer.main import get_command

from pnuauc._cli._app import app
from pnuauc._cli._hints import _HINTS, hints_for, with_hint

SOURCES = Path(pnuauc.__file__).parent


def options():
    """Every option of every command, without --help."""
    found = set()
    for command in get_command(app).commands.values():
        for parameter in command.params:
            found |= {name for name in parameter.opts if name.startswith("--")}
    return found - {"--help"}


def sentences(path):
    """Texts in the code; docstrings may quote a command."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    quoted = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in quoted:
            yield node.value


def test_library_does_not_name_options():
    assert {"--prior", "--drop", "--label"} <= options()
    named = re.compile("|".join(rf"{re.escape(name)}\b" for name in sorted(options())))
    for path in SOURCES.rglob("*.py"):
        if "_cli" in path.parts:
            continue
        for text in sentences(path):
            assert not named.findall(text), f"{path.relative_to(SOURCES)}: {text}"
    for path in SOURCES.rglob("*.j2"):
        assert not named.findall(path.read_text(encoding="utf-8")), path.name


def test_hints_name_options_that_exist():
    for hint in _HINTS.values():
        named = re.findall(r"--[a-z-]+", hint)
        assert set(named) <= options()


@pytest.mark.parametrize("kind", [InputError, MissingRoleError, PriorNotIdentifiedError])
def test_an_error_knows_what_it_is_about(kind):
    error = kind("No  prior\nhere.", about="prior")
    assert str(error) == "No  prior\nhere."
    assert with_hint(error) == f"No prior here. {_HINTS['prior']}"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.about) == (str(error), "prior")
    assert with_hint(kind("Plain.")) == "Plain."
    assert with_hint(kind("Odd.", about="something else")) == "Odd."


def test_doubts_of_findings_have_hints():
    quiet = {"labels": {"announcement": None}, "prior": {"doubt": None}}
    assert hints_for(quiet) == []
    assert hints_for({"labels": {"announcement": None}, "prior": None}) == []
    doubtful = {"labels": {"announcement": "x"}, "prior": {"doubt": "y"}, "leaks": ["z"]}
    assert hints_for(doubtful) == [_HINTS["labels"], _HINTS["prior"], _HINTS["drop"]]
