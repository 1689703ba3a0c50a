"""Tests of docs."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pnuauc.cli.app import app

pytest.importorskip("typer")

ROOT = Path(__file__).resolve().parents[1]

#: What a user reads, and the lab book.
USER = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
PAGES = [*USER, *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs/lab").glob("*.md"))]

#: Pages that use the files of another one.
AFTER = {"docs/howto-dask.md": "docs/scale.md", "docs/howto-spark.md": "docs/scale.md"}

#: Libraries that a page is about; without them its examples are not run.
NEEDED = {
    "docs/howto-boosting.md": ("lightgbm", "xgboost", "catboost"),
    "docs/howto-torch.md": ("torch",),
}


FENCE = re.compile(r"^```(python|console)\n(.*?)^```", re.S | re.M)

#: (kind, code) of the pages that have any.
EXAMPLES = {
    page: examples
    for page in PAGES
    if (examples := FENCE.findall((ROOT / page).read_text(encoding="utf-8")))
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """One folder for all pages, as a reader has; commands that were run are not run again."""
    folder = tmp_path_factory.mktemp("reader")
    before = Path.cwd()
    os.chdir(folder)
    yield set()
    os.chdir(before)


def run_command(line, done):
    if line in done:
        return
    done.add(line)
    words = shlex.split(line)
    assert words[0] == "pnuauc", f"only pnuauc is run: {line}"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.system
@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_run(page, reader):
    for library in NEEDED.get(page, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    text = (ROOT / page).read_text(encoding="utf-8")
    if "pyspark" in text and not os.environ.get("PNUAUC_ENGINES"):
        pytest.skip("Spark runs with PNUAUC_ENGINES=1")
    # pages that continue the quick start need its files, also when run alone
    if "pnuauc-demo/" in text or "model.pnuauc" in text:
        for kind, code in EXAMPLES["docs/index.md"]:
            if kind == "console":
                run_block(code, reader)
    names: dict = {"__name__": "example"}
    examples = [*EXAMPLES.get(AFTER.get(page), ())[:1], *EXAMPLES[page]]
    if "pyspark" in text:  # in a process of its own: a session keeps the folder it began in
        code = "\n".join(code for _, code in examples)
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=600)
        return
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        for kind, code in examples:
            if kind == "console":
                run_block(code, reader)
            else:
                exec(compile(code, page, "exec"), names)


def run_block(code, done):
    for line in code.splitlines():
        if line.startswith("$ "):
            run_command(line[2:].strip(), done)


def test_every_block_of_code_is_run():
    """Fences are python, console or sh; a user page shows code in no other way but formulas."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert set(re.findall(r"^```(\w+)$", text, re.M)) <= {"python", "console", "sh"}, page
        assert not re.findall(r"^    (?:pnuauc |from |import )", text, re.M), page
    for page in ("README.md", "docs/index.md", "docs/situations.md", "docs/howto-sklearn.md"):
        assert len(EXAMPLES[page]) >= 2


def test_user_pages_can_be_read_in_an_hour():
    # for contributors; a list of names to look up
    others = ("docs/architecture.md", "docs/api.md")
    pages = [page for page in USER[1:] if page not in others]
    words = sum(len((ROOT / page).read_text(encoding="utf-8").split()) for page in pages)
    assert words <= 12_000


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not re.match(r"https?:|mailto:", target):
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_make_targets_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set()
    for page in (*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        named |= set(re.findall(r"`make ([\w-]+)", text))
        for code in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M):
            named |= set(re.findall(r"^make ([\w-]+)", code, re.M))
    assert {"demo", "test", "mutants"} <= named
    assert named <= set(re.findall(r"^([\w-]+):", makefile, re.M))


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in USER[1:]:
        assert f": {Path(page).name}" in navigation, page
    book = (ROOT / "docs/lab/index.md").read_text(encoding="utf-8")
    for page in PAGES[len(USER) :]:
        assert f"({Path(page).name})" in book or page.endswith("index.md"), page


def test_every_public_name_of_the_command_line_is_documented():
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"`pnuauc {command.callback.__name__}" in page
