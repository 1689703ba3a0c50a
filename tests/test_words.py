"""Tests of words."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tokenize
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.main import get_command

import pnuauc
from pnuauc import AUCClassifier, auc_estimate, read_roles
from pnuauc.baselines import RankSVM
from pnuauc.cli.app import app
from pnuauc.exceptions import (
    CorrectionWarning,
    LabelReadingWarning,
    MissingRoleError,
    PnuaucWarning,
)
from pnuauc.priors import EnergyDistancePrior

pytest.importorskip("typer")

SOURCES = Path(pnuauc.__file__).parent
DOCS = SOURCES.parents[1] / "docs"


@cache
def commands():
    return get_command(app).commands


@cache
def options():
    """Every option of every command, without --help."""
    found = set()
    for command in commands().values():
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


#: Words that are not the usual terms, and what there is to say instead.
UNUSUAL = {
    r"\btold\b": "said, stated, known",
    r"\bso many\b": "a number, or as many",
    r"\bfrom (?!now )\S+ on\b(?! (?:a|the|all|its|many|file)\b)": "after, since",
    r"(?<!there )\b(?:is|are) none\b": "there is none",
    r"\breach(?:es|ed|ing)?\b": "get to, attain",
    r"(?<!those )(?<!anybody )(?<!somebody )(?<!users )(?<!people )\bwho\b": "which, of rows",
}


def written(path):
    """Text for readers with its line: strings and comments of code, all of a page or template."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        shown = re.sub(r"{%.*?%}|{{.*?}}|class=\"\w+\"", "", text)
        yield from enumerate(shown.splitlines(), 1)
        return
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", None)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds and not token.string.strip("\"'").isidentifier():
            lines = re.sub(r"{[^{}]*}", "", token.string).splitlines()
            yield from ((token.start[0] + k, line) for k, line in enumerate(lines))


def test_usual_words_in_messages_comments_and_pages():
    pages = [*SOURCES.rglob("*.py"), *SOURCES.rglob("*.j2")]
    pages += [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")] if DOCS.is_dir() else []
    assert len(pages) > 100
    found = [
        f"{path}:{number}: {line.strip()} (say: {instead})"
        for path in pages
        for number, line in written(path)
        for unusual, instead in UNUSUAL.items()
        if re.search(unusual, line)
    ]
    assert not found, "\n".join(found)


def test_library_does_not_name_options():
    assert {"--prior", "--drop", "--label"} <= options()
    named = re.compile("|".join(rf"{re.escape(name)}\b" for name in sorted(options())))
    for path in SOURCES.rglob("*.py"):
        if "cli" in path.parts:
            continue
        for text in sentences(path):
            assert not named.findall(text), f"{path.relative_to(SOURCES)}: {text}"
    for path in SOURCES.rglob("*.j2"):
        assert not named.findall(path.read_text(encoding="utf-8")), path.name


def test_choices_are_named_in_the_help_and_refused_before_any_file_is_read():
    from typer.testing import CliRunner

    from pnuauc.evaluation.estimate import METHODS
    from pnuauc.priors import PRIORS

    helped = {name: command.params for name, command in commands().items()}
    for command, option, names in (
        ("evaluate", "method", METHODS),
        ("prior", "method", ("auto", *PRIORS)),
    ):
        text = next(p.help for p in helped[command] if p.name == option)
        assert set(re.findall(r"\w+", text)) - {"or"} == set(names)
    for command, option in (("fit", "--basis"), ("evaluate", "--method"), ("prior", "--method")):
        result = CliRunner().invoke(app, [command, "there-is-no-such-file.csv", option, "magic"])
        assert result.exit_code == 2
        assert f"{option} must be one of" in result.output
        assert "no file" not in result.output


@pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not beside the sources")
def test_documentation_names_options_and_commands_that_exist():
    others = {"--install-completion", "--help", "--version"}
    for page in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        for line in text.splitlines():
            if any(
                word in line for word in ("experiments", "mutants", "attack", "--only", "ARGS=")
            ):
                continue  # they have options of their own
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", line))
            assert named <= options() | others, f"{page.name}: {named - options()}"
        for command in re.findall(r"`pnuauc (\w+)", text) + re.findall(
            r"^\$ pnuauc (\w+)", text, re.M
        ):
            assert command in commands(), f"{page.name}: {command}"
    listed = re.findall(r"^\| `pnuauc (\w+)", (DOCS / "cli.md").read_text(encoding="utf-8"), re.M)
    assert sorted(listed) == sorted(commands())
    told = set(re.findall(r"--[a-z][a-z-]+", (DOCS / "cli.md").read_text(encoding="utf-8")))
    assert options() <= told, f"docs/cli.md does not name {sorted(options() - told)}"


def test_warnings_name_the_line_that_called_the_package():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((120, 2)), np.repeat([1, -1], [20, 100])
    missing = np.where(codes == 1, 1.0, np.nan)
    same = np.random.default_rng(1).standard_normal((160, 3))  # one law: no prior can be told
    three = np.repeat([1.0, 0.0, np.nan], [30, 30, 100])
    stopped = AUCClassifier(prior=0.2, loss="logistic", max_iter=1, random_state=0)
    doubted = EnergyDistancePrior(on_unidentified="warn", random_state=0)
    for warned, call in (
        (LabelReadingWarning, lambda: read_roles(codes)),
        (LabelReadingWarning, lambda: auc_estimate(codes, X[:, 0], 0.1)),
        (LabelReadingWarning, lambda: AUCClassifier(prior=0.1, random_state=0).fit(X, codes)),
        (LabelReadingWarning, lambda: RankSVM(pairs="pn", random_state=0).fit(X, codes)),
        (CorrectionWarning, lambda: AUCClassifier(prior=0.9, random_state=0).fit(X, missing)),
        (ConvergenceWarning, lambda: stopped.fit(same, three)),
        (PnuaucWarning, lambda: doubted.fit(same, three)),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.suppress(MissingRoleError):
                call()
        assert any(issubclass(w.category, warned) for w in caught)
        assert {w.filename for w in caught} == {__file__}
