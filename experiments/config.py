"""The configuration file, read into plan: which rows there are to compute.

A row of results is one (experiment, data set, setting, method, seed). Rows of methods that share
one fit form a job; a job is what a worker is given, and holds everything it needs to know.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found,no-redef]

from experiments.paper_sets import TEXT

__all__ = ["CONFIG", "Config", "Experiment", "Job", "Method", "Setting"]

CONFIG = Path(__file__).with_name("config.toml")


@dataclass(frozen=True)
class Setting:
    """Sizes of the three roles, the share of positives inside U, and how U is filled.

    fill : "all_real" (an error where rows run out), "as_many_as_there_are" (fewer unlabelled
    rows) or "resample" (unlabelled rows drawn with replacement).
    noise : added to the true prior before a method is told it.
    more : what else an experiment's settings differ in, as (name, value) pairs.
    """

    n_positive: int
    n_negative: int
    n_unlabeled: int
    prior: float
    fill: str = "all_real"
    noise: float = 0.0
    more: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def read(cls, line: dict[str, Any]) -> Setting:
        """Keys that are not a field's name go to ``more``."""
        known = {f.name for f in dataclasses.fields(cls)} - {"more"}
        rest = tuple(
            (k, tuple(v) if isinstance(v, list) else v) for k, v in line.items() if k not in known
        )
        return cls(**{k: v for k, v in line.items() if k in known}, more=rest)

    def __getitem__(self, name: str) -> Any:
        """``setting["shift"]``: one of ``more``."""
        return dict(self.more)[name]

    @property
    def key(self) -> str:
        name = f"P{self.n_positive} N{self.n_negative} U{self.n_unlabeled} prior={self.prior:g}"
        extra = [("noise", f"{self.noise:+g}")] if self.noise else []
        return " ".join([name, *(f"{k}={v}" for k, v in (*extra, *self.more))])


@dataclass(frozen=True)
class Method:
    """One line under [methods], or under the experiment's own methods.

    settings : what its kind needs to know; ``prior_rule``: the line of [priors] that
    ``settings["prior"]`` names, if it names one.
    """

    name: str
    label: str
    paper: str | None
    trials: int | None
    scale: str | None
    settings: dict[str, Any]
    prior_rule: dict[str, Any] | None = None

    @property
    def first(self) -> int:
        """The first trial; among the settings, so that rows of another are not taken for these."""
        return int(self.settings.get("first", 0))

    @classmethod
    def read(cls, name: str, line: dict[str, Any], priors: dict[str, Any]) -> Method:
        around = {"label": name, "paper": None, "trials": None, "scale": None}
        settings = {k: v for k, v in line.items() if k not in around}
        known = {k: line.get(k, default) for k, default in around.items()}
        return cls(name, **known, settings=settings, prior_rule=priors.get(settings.get("prior")))


@dataclass(frozen=True)
class Job:
    """Work for one process: one seed of one setting on one data set, one row for each method."""

    experiment: Experiment
    data_set: str
    setting: Setting
    seed: int
    methods: tuple[Method, ...]

    def key(self, method: Method) -> tuple[str, ...]:
        """What tells a row from every other."""
        cell = (self.data_set, self.setting.key, method.name, str(self.seed))
        return (self.experiment.rows_of, *cell)

    def scale(self) -> str:
        """How columns are scaled: the same for all methods of a job."""
        return self.experiment.scale(self.methods[0], self.data_set)


@dataclass(frozen=True)
class Experiment:
    """One table, figure or study.

    kind : a name of ``kinds.KINDS``, which says how its rows are computed and shown.
    rows_of : the experiment whose rows these are: its own name, unless it is a further view.
    first_seed : trials have the seeds from this one on.
    protocol : the file's [protocol] with the experiment's own changes.
    options : all further keys of its part of the file, for its kind to read.
    """

    name: str
    rows_of: str
    kind: str
    title: str
    trials: int
    data_sets: tuple[str, ...]
    settings: tuple[Setting, ...]
    methods: tuple[Method, ...]
    protocol: dict[str, Any] = field(default_factory=dict)
    generated: dict[str, dict[str, Any]] = field(default_factory=dict)
    paper: str | None = None
    text_trials: int | None = None
    first_seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def timed(self) -> Setting:
        """The setting whose times are drawn: lowest prior, most labelled rows, as in the paper."""
        return min(self.settings, key=lambda s: (s.prior, -s.n_positive - s.n_negative))

    def scale(self, method: Method, data_set: str) -> str:
        """The method's own, else the protocol's; text stays as it is (scaling would fill it)."""
        return "none" if data_set in TEXT else str(method.scale or self.protocol["scale"])

    def fingerprint(self, method: Method, data_set: str) -> str:
        """Eight characters that change when the protocol, an option or the method's line does."""
        protocol = {**self.protocol, "scale": self.scale(method, data_set)}
        parts = [protocol, method.prior_rule, method.settings]
        parts += [self.options] if self.options else []
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def jobs(
        self,
        group: Callable[[Method], str],
        trials: int | None = None,
        data_sets: Sequence[str] = (),
        methods: Sequence[str] = (),
        settings: Sequence[str] = (),
    ) -> Iterator[Job]:
        """All jobs, trial by trial, so that a run cut short leaves equal counts everywhere.

        Methods of the same ``group`` share a job.
        """
        wanted = [m for m in self.methods if not methods or m.name in methods]
        for trial in range(self.trials if trials is None else trials):
            seed = self.first_seed + trial
            groups: dict[str, list[Method]] = {}
            for method in wanted:
                if method.first <= trial and (method.trials is None or trial < method.trials):
                    groups.setdefault(group(method), []).append(method)
            enough = self.text_trials is not None and trial >= self.text_trials
            sets = [d for d in self.data_sets if not data_sets or d in data_sets]
            sets = [d for d in sets if not (enough and d in TEXT)]
            chosen = [s for s in self.settings if not settings or s.key in settings]
            for setting, data_set, members in itertools.product(chosen, sets, groups.values()):
                yield Job(self, data_set, setting, seed, tuple(members))


@dataclass(frozen=True)
class Config:
    """The whole file."""

    experiments: dict[str, Experiment]

    @classmethod
    def read(cls, path: Path = CONFIG) -> Config:
        with open(path, "rb") as file:
            raw = tomllib.load(file)
        return cls({name: _experiment(name, part, raw) for name, part in _parts(raw)})

    def __getitem__(self, name: str) -> Experiment:
        return self.experiments[name]


def _parts(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """An experiment with ``rows_of = OTHER`` is another view of that one's rows."""
    parts = raw["experiments"]
    for name, part in parts.items():
        yield name, {**parts[part["rows_of"]], **part} if "rows_of" in part else part


#: Keys that are read into fields of their own; the others are the experiment's options.
_READ = (
    *("kind", "title", "trials", "data_sets", "settings", "methods", "protocol"),
    *("paper", "text_trials", "first_seed", "noise", "rows_of"),
)


def _experiment(name: str, part: dict[str, Any], raw: dict[str, Any]) -> Experiment:
    lines, priors = raw.get("methods", {}), raw.get("priors", {})
    listed = part["methods"]
    own = listed if isinstance(listed, dict) else {}
    unknown = [m for m in listed if m not in own and m not in lines]
    if unknown:
        raise ValueError(
            f"experiments.{name} asks for the method {unknown[0]!r}, which has no line under "
            "[methods]: add one, or take the name out."
        )
    settings = tuple(
        dataclasses.replace(Setting.read(line), noise=noise)
        for line in part["settings"]
        for noise in part.get("noise", [0.0])
    )
    return Experiment(
        name,
        part.get("rows_of", name),
        part.get("kind", "rankers"),
        part["title"],
        int(part["trials"]),
        tuple(part["data_sets"]),
        settings,
        tuple(Method.read(m, own.get(m) or lines.get(m, {}), priors) for m in listed),
        {**raw["protocol"], **part.get("protocol", {})},
        raw.get("generated", {}),
        part.get("paper"),
        part.get("text_trials"),
        int(part.get("first_seed", 0)),
        {k: v for k, v in part.items() if k not in _READ},
    )
