"""Texts of options -> values, and the engine that they name."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pnuauc.exceptions import InputError

__all__ = ["Engine", "check_choice", "parse_belief", "parse_count", "parse_engine", "parse_prior"]


@dataclass(frozen=True)
class Engine:
    """Where a table is visited, if not in this process: "dask" or "spark", and its address."""

    name: str
    address: str | None = None

    def files(self, source: Any) -> AbstractContextManager[Any]:
        """The files as a source of the engine, which is loaded when it is asked for."""
        if self.name == "dask":
            from pnuauc.dask._source import dask_files

            return dask_files(source, self.address)
        from pnuauc.spark._source import spark_files

        return spark_files(source, self.address)


def check_choice(option: str, value: str | None, choices: Iterable[str]) -> None:
    """Refuse a value that is not among the choices, before any file is read; None is no value.

    Examples
    --------
    >>> check_choice("--basis", "linear", ["gaussian", "linear"])
    """
    known = list(choices)
    if value is not None and value not in known:
        raise InputError(f"{option} must be one of {', '.join(known)}; got {value!r}.")


def parse_prior(text: str | None) -> float | tuple[float, float] | None:
    """A number ("0.1", "10%") or an interval ("0.05:0.15"); None or "auto" means: estimate.

    Examples
    --------
    >>> parse_prior("10%"), parse_prior("0.05:0.15"), parse_prior("auto")
    (0.1, (0.05, 0.15), None)
    """
    if text is None or text.strip().lower() == "auto":
        return None
    values = _shares(text)
    if len(values) not in (1, 2) or not 0.0 < values[0] <= values[-1] < 1.0:
        raise InputError(
            f"--prior takes the share of positives among the unlabelled rows, a number between 0 "
            f"and 1 (0.1 or 10%), an interval (0.05:0.15) or auto; got {text!r}."
        )
    return values[0] if len(values) == 1 else (values[0], values[1])


def parse_belief(text: str | None) -> tuple[float, float] | None:
    """An interval of 95% ("0.01:0.2", "1%:20%"), whose ends may be 0 and 1.

    Examples
    --------
    >>> parse_belief("0:20%")
    (0.0, 0.2)
    """
    if text is None:
        return None
    values = _shares(text)
    if len(values) != 2 or not 0.0 <= values[0] < values[1] <= 1.0:
        raise InputError(
            "--belief takes what is known beforehand of the share of positives among the "
            f"unlabelled rows, an interval inside 0 and 1 (0.01:0.2 or 1%:20%); got {text!r}."
        )
    return values[0], values[1]


def _shares(text: str) -> list[float]:
    """Numbers between colons, 10% for 0.1; none where one of them is no number."""
    try:
        return [
            float(part.strip().rstrip("%")) / (100.0 if part.strip().endswith("%") else 1.0)
            for part in text.split(":")
        ]
    except ValueError:
        return []


def parse_engine(engine: str | None, address: str | None, master: str | None) -> Engine | None:
    """Where to visit the table; None: here."""
    check_choice("--engine", engine, ("dask", "spark"))
    for option, value, needed in (("--address", address, "dask"), ("--master", master, "spark")):
        if value is not None and engine != needed:
            raise InputError(f"{option} goes with --engine {needed}.")
    return None if engine is None else Engine(engine, address or master)


def parse_count(text: str, option: str) -> int | str:
    """A whole number of at least 2, or "all".

    Examples
    --------
    >>> parse_count("1000", "--max-unlabeled"), parse_count("all", "--max-unlabeled")
    (1000, 'all')
    """
    word = text.strip().lower().replace("_", "")
    if word == "all":
        return word
    if not word.isdecimal() or int(word) < 2:
        raise InputError(f"{option} takes a number of rows, 2 or more, or all; got {text!r}.")
    return int(word)
