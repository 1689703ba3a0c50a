"""Shared by test files: rows and scores with a known truth, pairs by brute force, the tool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from sklearn.base import BaseEstimator

from pnuauc.datasets import GENERATORS, PNUSample, sample_pnu
from pnuauc.labels import Roles

os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window

# A background shell hands down an ignored SIGINT, under which no interruption can be tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# the same examples in every run: a test that fails at random tells a newcomer nothing
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Whatever has random_state=None draws alike in every run, whichever tests ran before it.

    A hook, not a fixture: fixtures of a module are made before those of its first test.
    """
    np.random.seed(0)  # noqa: NPY002  the state that check_random_state(None) gives


class FirstColumn(BaseEstimator):
    """A ranker whose scores are the first encoded column."""

    def fit(self, X: Any, y: Any) -> FirstColumn:
        self.fitted_ = True
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return X[:, 0]


class Scored:
    """A model whose scores are a column of the table."""

    def encode(self, table: Any, first_row: int = 0) -> np.ndarray:
        return np.asarray(table.column("s"))

    def score_encoded(self, X: np.ndarray) -> np.ndarray:
        return X


def wins(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """All pairs (a_i, b_j): 1 where a_i > b_j, 1/2 where they are equal. Shape (len(a), len(b))."""
    return (a[:, None] > b) + 0.5 * (a[:, None] == b)


def roles_of(n_p: int, n_n: int, n_u: int) -> Roles:
    """Positive rows first, then negative, then unlabelled ones."""
    return Roles(np.repeat(np.array([1, 0, -1], np.int8), [n_p, n_n, n_u]))


def gaussian_scores(
    seed: int,
    sizes: tuple[int, int, int],
    prior: float,
    distance: float = 1.0,
    digits: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels (1, 0, NaN), scores of two unit Gaussians, and who is positive in U.

    Rounding to ``digits`` makes ties.
    """
    n_p, n_n, n_u = sizes
    rng = np.random.default_rng(seed)
    hidden = rng.random(n_u) < prior
    parts = [rng.normal(distance, 1, n_p), rng.normal(0, 1, n_n), rng.normal(distance * hidden, 1)]
    scores = np.concatenate(parts)
    scores = scores if digits is None else np.round(scores, digits)
    return np.repeat([1.0, 0.0, np.nan], sizes), scores, hidden


def generated_sample(
    name: str, sizes: tuple[int, int, int], prior: float, seed: int = 0, **options: Any
) -> PNUSample:
    """P, N, U and test rows of a generator, labels 1, 0, -1."""
    X, y = GENERATORS[name](4000, prior=0.5, random_state=1000 + seed)
    return sample_pnu(X, y, *sizes, prior, seed, **options)


def run_tool(*arguments: object, input: bytes | None = None) -> Any:
    """``pnuauc ARGUMENTS``, in this process."""
    from typer.testing import CliRunner

    from pnuauc.cli.app import app

    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)


def start_tool(*arguments: object, code: str = "", **options: Any) -> subprocess.Popen[bytes]:
    """The command in a process of its own, as from a shell; ``code`` runs before it."""
    program = f"import sys; sys.argv = ['pnuauc', *sys.argv[1:]]\n{code}\n"
    program += "from pnuauc.cli import main\nmain()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file and gives its path."""

    def write(content: bytes | str, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """t.csv of 60 rows, whose ids a spreadsheet would run, and everything that ``fit`` makes of it.

    Not to be written to.
    """
    import pandas as pd

    folder: Path = tmp_path_factory.mktemp("fitted")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=60), rng.normal(size=60)
    labels = pd.array([k % 2 if k < 20 else None for k in range(60)], "Int8")
    a[1:20:2] += 1
    table = pd.DataFrame({"id": [f"={k}" for k in range(60)], "a": a, "b": b, "y": labels})
    table.to_csv(folder / "t.csv", index=False)
    options = ("--id", "id", "--prior", 0.4, "--centers", 5, "--folds", 2, "--jobs", 1)
    result = run_tool("fit", folder / "t.csv", "-l", "y", *options)
    assert result.exit_code == 0, result.output
    return folder
