"""Kinds of experiment: how one job is computed, and how its rows are shown.

A new experiment is a module with a ``Kind``, a line in ``KINDS`` and a part of ``config.toml``; see
README.md in this folder.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.config import Experiment, Job, Method

__all__ = ["KINDS", "Kind", "kind_of"]


def together(method: Method) -> str:
    """For ``Kind.group``: all methods of a trial in one job, on the same draw."""
    return ""


@dataclass(frozen=True)
class Kind:
    """What the runner needs to know.

    run : job -> rows, one dictionary for each of the job's methods: "method" and the ``columns``.
    show : (experiment, folder of results) -> the text that is printed, and printed in reports. It
    is written to NAME.md in that folder; pictures and tables beside it are up to the function.
    columns : what a row holds beside its key, its status and its note.
    group : methods with equal values share a job; by default every method has its own.
    """

    run: Callable[[Job], Iterable[dict[str, Any]]]
    show: Callable[[Experiment, Path], str]
    columns: tuple[str, ...]
    group: Callable[[Method], str] = operator.attrgetter("name")


#: name in the configuration -> "module:attribute", imported when it is asked for.
KINDS = {
    "rankers": "experiments.rankers:RANKERS",
    "times": "experiments.figures:TIMES",
    "sensitivity": "experiments.figures:SENSITIVITY",
    "scalability": "experiments.figures:SCALABILITY",
    "priors": "experiments.priors:PRIORS",
    "prior_coverage": "experiments.priors:COVERAGE",
    "prior_settings": "experiments.priors:BY_SETTING",
    "prior_intervals": "experiments.priors:INTERVALS",
    "variance": "experiments.variance:VARIANCE",
    "variance_check": "experiments.variance:CHECK",
    "coverage": "experiments.coverage:COVERAGE",
    "weights": "experiments.coverage:WEIGHTS",
    "selection": "experiments.selection:SELECTION",
    "indefinite": "experiments.indefinite:INDEFINITE",
    "truth": "experiments.truth:TRUTH",
    "auto": "experiments.auto:AUTO",
    "everyday": "experiments.everyday:EVERYDAY",
    "loop": "experiments.loop:LOOP",
    "loop_proven": "experiments.loop:PROVEN",
    "text": "experiments.text:TEXT",
    "together": "experiments.together:TOGETHER",
}


def kind_of(experiment: Experiment) -> Kind:
    """The experiment's kind; an error where there is none of that name."""
    if experiment.kind not in KINDS:
        raise ValueError(
            f"experiments.{experiment.name} is of kind {experiment.kind!r}; there are "
            f"{', '.join(KINDS)}."
        )
    module, _, attribute = KINDS[experiment.kind].partition(":")
    found: Kind = getattr(importlib.import_module(module), attribute)
    return found
