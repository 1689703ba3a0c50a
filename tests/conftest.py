"""Shared by test files: rows and scores with a known truth, pairs by brute force, the tool."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from sklearn.base import BaseEstimator

from pnuauc.datasets import GENERATORS, PNUSample, sample_pnu
from pnuauc.io import _after_kill
from pnuauc.labels import Roles

os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window

# the same examples in every run: a test that fails at random tells a newcomer nothing
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Whatever has random_state=None draws alike in every run, whichever tests ran before it.

    A hook, not a fixture: fixtures of a module are made before those of its first test.
    """
    np.random.seed(0)  # noqa: NPY002  the state that check_random_state(None) gives


class Clock:
    """Time that passes by waiting only."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that whoever waits for locks and dying processes looks at."""
    clock = Clock()
    monkeypatch.setattr(_after_kill, "time", clock)
    return clock


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


def final_limits(ends: Sequence[float], share: float, both: bool) -> list[float]:
    """(low, value, high) of the model of all rows, from those of refits on a share of them.

    a + (1 - a) (2 a - 1) (1 - share^power) with the powers of docs/truth.md; then each limit goes
    its part of the way from the value, on the scale of arcsin(sqrt(AUC)).
    """
    powers, reach = ((0.25, 0.5, 1.25), (0.8, 1.0)) if both else ((0.0, 0.25, 0.75), (0.9, 0.85))
    low, value, high = (
        a + (1 - a) * max(2 * a - 1, 0) * (1 - share**power) for a, power in zip(ends, powers)
    )
    angles = [math.asin(math.sqrt(a)) for a in (low, value, max(high, value))]
    bottom, top = (angles[1] + r * (angles[k] - angles[1]) for r, k in zip(reach, (0, 2)))
    return [math.sin(bottom) ** 2, value, math.sin(top) ** 2]


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

    from pnuauc._cli._app import app

    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)
