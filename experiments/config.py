"""The configuration file, read into plan: which rows there are to compute.

A row of results is one (experiment, data set, setting, method, seed). Rows of methods that share
one fit form a job; a job is what a worker is given.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found,no-redef]

from pnuauc.datasets import TEXT

__all__ = ["CONFIG", "Config", "Experiment", "Job", "Method", "Setting"]

CONFIG = Path(__file__).with_name("config.toml")
#: What does not belong to the estimator itself.
_AROUND = ("label", "paper", "trials", "scale")


@dataclass(frozen=True)
class Setting:
    """Sizes of the three roles, the share of positives inside U, and how U is filled.

    fill : "all_real" (an error where rows run out), "as_many_as_there_are" (fewer unlabelled
    rows) or "resample" (unlabelled rows drawn with replacement).
    noise : added to the true prior before a method is told it.
    """

    n_positive: int
    n_negative: int
    n_unlabeled: int
    prior: float
    fill: str = "all_real"
    noise: float = 0.0

    @property
    def key(self) -> str:
        name = f"P{self.n_positive} N{self.n_negative} U{self.n_unlabeled} prior={self.prior:g}"
        return name if self.noise == 0 else f"{name} noise={self.noise:+g}"


@dataclass(frozen=True)
class Method:
    """One line under [methods]; ``settings`` is what its kind needs to know."""

    name: str
    label: str
    paper: str | None
    trials: int | None
    scale: str | None
    settings: dict[str, Any]

    @property
    def fit_key(self) -> str:
        """Methods with equal keys can be read off one fit."""
        free = (
            ("selection", "validation") if self.settings["kind"] == "auc_grid" else ("selection",)
        )
        shared = {k: v for k, v in self.settings.items() if k not in free}
        return json.dumps([self.scale, shared], sort_keys=True)


@dataclass(frozen=True)
class Job:
    """Work for one process: one sample, one fit, one row for each method."""

    experiment: str
    data_set: str
    setting: Setting
    seed: int
    methods: tuple[Method, ...]

    def key(self, method: Method) -> tuple[str, ...]:
        """What tells a row from every other."""
        return (self.experiment, self.data_set, self.setting.key, method.name, str(self.seed))


@dataclass(frozen=True)
class Experiment:
    """One table or figure."""

    name: str
    title: str
    trials: int
    data_sets: tuple[str, ...]
    settings: tuple[Setting, ...]
    methods: tuple[Method, ...]
    paper: str | None = None
    text_trials: int | None = None

    @property
    def timed(self) -> Setting:
        """The setting whose times are drawn: lowest prior, most labelled rows, as in the paper."""
        return min(self.settings, key=lambda s: (s.prior, -s.n_positive - s.n_negative))

    def jobs(
        self,
        trials: int | None = None,
        data_sets: Sequence[str] = (),
        methods: Sequence[str] = (),
        settings: Sequence[str] = (),
    ) -> Iterator[Job]:
        """All jobs, trial by trial, so that a run cut short leaves equal counts everywhere."""
        wanted = [m for m in self.methods if not methods or m.name in methods]
        for seed in range(self.trials if trials is None else trials):
            due = [m for m in wanted if m.trials is None or seed < m.trials]
            groups: dict[str, list[Method]] = {}
            for method in due:
                groups.setdefault(method.fit_key, []).append(method)
            for setting, data_set, group in itertools.product(
                self.settings, self.data_sets, groups.values()
            ):
                if data_sets and data_set not in data_sets:
                    continue
                if settings and setting.key not in settings:
                    continue
                if data_set in TEXT and self.text_trials is not None and seed >= self.text_trials:
                    continue
                yield Job(self.name, data_set, setting, seed, tuple(group))


@dataclass(frozen=True)
class Config:
    """The whole file."""

    protocol: dict[str, Any]
    generated: dict[str, dict[str, Any]]
    priors: dict[str, dict[str, Any]]
    experiments: dict[str, Experiment]

    @classmethod
    def read(cls, path: Path = CONFIG) -> Config:
        with open(path, "rb") as file:
            raw = tomllib.load(file)
        methods = {name: _method(name, line) for name, line in raw["methods"].items()}
        experiments = {
            name: _experiment(name, part, methods) for name, part in raw["experiments"].items()
        }
        return cls(raw["protocol"], raw.get("generated", {}), raw.get("priors", {}), experiments)

    def scale(self, method: Method, data_set: str) -> str:
        """The method's own, else the protocol's; text stays as it is (scaling would fill it)."""
        return "none" if data_set in TEXT else str(method.scale or self.protocol["scale"])

    def fingerprint(self, method: Method, data_set: str) -> str:
        """Eight characters that change when the protocol or the method's own line does."""
        protocol = {**self.protocol, "scale": self.scale(method, data_set)}
        prior = self.priors.get(method.settings.get("prior", ""))
        text = json.dumps([protocol, prior, method.settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def _method(name: str, line: dict[str, Any]) -> Method:
    settings = {k: v for k, v in line.items() if k not in _AROUND}
    return Method(
        name,
        line.get("label", name),
        line.get("paper"),
        line.get("trials"),
        line.get("scale"),
        settings,
    )


def _experiment(name: str, part: dict[str, Any], methods: dict[str, Method]) -> Experiment:
    unknown = [m for m in part["methods"] if m not in methods]
    if unknown:
        raise ValueError(
            f"experiments.{name} asks for the method {unknown[0]!r}, which has no line under "
            "[methods]: add one, or take the name out."
        )
    settings = tuple(
        Setting(**line, noise=noise)
        for line in part["settings"]
        for noise in part.get("noise", [0.0])
    )
    return Experiment(
        name,
        part["title"],
        int(part["trials"]),
        tuple(part["data_sets"]),
        settings,
        tuple(methods[m] for m in part["methods"]),
        part.get("paper"),
        part.get("text_trials"),
    )
