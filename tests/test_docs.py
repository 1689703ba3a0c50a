"""Every example of README and docs runs, in the order a reader meets them; links hold."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import warnings
from pathlib import Path

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from pnuauc._cli._app import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    "README.md",
    "docs/index.md",
    *sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md") if path.stem != "index"
    ),
]
#: What a page takes for granted, names that its text introduces in words: by number of the example.
SETUP = {
    "docs/howto-dask.md": {
        0: """
import numpy as np
import pandas as pd
from pathlib import Path
rng = np.random.default_rng(0)
hidden = rng.random(600) < 0.2
claims = pd.DataFrame(rng.normal(size=(600, 3)) + hidden[:, None])
claims.columns = ["amount", "age", "n_calls"]
claims["fraud"] = np.where(np.arange(600) < 200, hidden, np.nan)
Path("claims").mkdir()
for i in range(3):
    claims[200 * i : 200 * (i + 1)].to_parquet(f"claims/{i}.parquet")
""",
    },
    "docs/metrics.md": {
        0: """
import numpy as np
rng = np.random.default_rng(0)
hidden = rng.random(600) < 0.2
y = np.where(np.arange(600) < 200, hidden, np.nan)
scores = scores_a = hidden + rng.normal(size=600)
scores_b = rng.normal(size=600)
""",
        3: """
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV
grid = {"max_iter": [5]}
X = rng.normal(size=(600, 3)) + hidden[:, None]
y = np.where(np.nan_to_num(y) == 1, 1, 0)
""",
        4: """
y = np.where(np.arange(600) < 200, hidden, np.nan)
labelled_scores = scores[:200]
blocks = [(y[:300], scores[:300]), (y[300:], scores[300:])]
""",
    },
    "docs/priors.md": {
        0: """
import numpy as np
rng = np.random.default_rng(0)
hidden = rng.random(600) < 0.2
X = rng.normal(size=(600, 3)) + 2 * hidden[:, None]
y = np.where(np.arange(600) < 200, hidden, np.nan)
""",
        1: "from pnuauc.priors import prior_in_population, prior_in_unlabeled",
    },
    "docs/theory.md": {
        0: """
import numpy as np
risk = 0.2
rng = np.random.default_rng(0)
scores_P, scores_N = rng.normal(1, 1, 50), rng.normal(0, 1, 50)
"""
    },
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


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_run(page, reader):
    text = (ROOT / page).read_text(encoding="utf-8")
    # pages that go on from the quick start need its files, also when run alone
    if "pnuauc-demo/" in text or "model.pnuauc" in text:
        for kind, code in EXAMPLES["docs/index.md"]:
            if kind == "console":
                run_block(code, reader)
    names: dict = {"__name__": "example"}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        for number, (kind, code) in enumerate(EXAMPLES[page]):
            exec(SETUP.get(page, {}).get(number, ""), names)
            if kind == "console":
                run_block(code, reader)
            else:
                exec(compile(code, page, "exec"), names)


def run_block(code, done):
    for line in code.splitlines():
        if line.startswith("$ "):
            run_command(line[2:].strip(), done)


def test_pages_have_examples():
    """The fences above are found at all."""
    for page in ("README.md", "docs/index.md", "docs/situations.md", "docs/howto-sklearn.md"):
        assert len(EXAMPLES[page]) >= 2


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
    for page in PAGES[1:]:
        assert f": {Path(page).name}" in navigation, page


def test_every_public_name_of_the_command_line_is_documented():
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"`pnuauc {command.callback.__name__}" in page
