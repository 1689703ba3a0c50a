"""Shared by test files: rows and scores with a known truth, pairs by brute force, the tool."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from pnuauc.datasets import GENERATORS, PNUSample, sample_pnu
from pnuauc.io import _after_kill

os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window

# the same examples in every run: a test that fails at random tells a newcomer nothing
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


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


def wins(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """All pairs (a_i, b_j): 1 where a_i > b_j, 1/2 where they are equal. Shape (len(a), len(b))."""
    return (a[:, None] > b) + 0.5 * (a[:, None] == b)


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
