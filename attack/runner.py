"""Runs cases in child processes with limits; survives their crashes; remembers where it was.

A case is a function of its number alone, so that every finding can be repeated:
``python -m attack --only NAME --from NUMBER --count 1``.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Tally", "Target", "run_cases"]

#: Processor seconds, and bytes beyond what an idle child has, that one case may take.
CASE_SECONDS = 5
CASE_BYTES = 10**9
#: Cases that one child does before it is replaced.
PER_CHILD = 20_000


@dataclass(frozen=True)
class Target:
    """``case(number)`` gives the name of a legal outcome or raises; ``setup()`` comes first.

    ``measured``: whether the memory of this process counts; not where a case measures another.
    """

    name: str
    setup: Callable[[], Callable[[int], str]]
    measured: bool = True


class Tally:
    """Counts and findings by target, kept in a JSON file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        there = path is not None and path.exists()
        self.data: dict[str, Any] = json.loads(path.read_text()) if there and path else {}

    def of(self, name: str) -> dict[str, Any]:
        return self.data.setdefault(
            name,
            {
                "done": 0,
                "outcomes": {},
                "findings": [],
                "processor_seconds": 0.0,
                "most_megabytes": 0,
            },
        )

    def save(self) -> None:
        if self.path is not None:
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.data, indent=1, sort_keys=True))
            part.replace(self.path)


def run_cases(target: Target, tally: Tally, first: int, last: int) -> None:
    """Cases ``first`` to ``last - 1``; crashes, hangs and broken laws become findings."""
    entry = tally.of(target.name)
    number = first
    while number < last:
        stop = min(last, number + PER_CHILD)
        reached, outcomes, findings, kilobytes, seconds, status = _child(target, number, stop)
        entry["outcomes"] = dict(Counter(entry["outcomes"]) + Counter(outcomes))
        entry["findings"] += findings
        if status != 0:
            how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else status
            entry["findings"].append({"case": reached, "what": f"the process died: {how}"})
            reached += 1
        entry["most_megabytes"] = max(entry["most_megabytes"], round(kilobytes / 1024))
        entry["done"] += reached - number
        entry["processor_seconds"] = round(entry["processor_seconds"] + seconds, 1)
        number = reached
        tally.save()


def _child(
    target: Target, first: int, last: int
) -> tuple[int, dict[str, int], list[Any], int, float, int]:
    """(first case not done, outcomes, findings, most KB, processor seconds, exit status)."""
    shared = mmap.mmap(-1, 16)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the other process
        status = 1
        try:
            os.close(reader)
            _work(target, first, last, shared, writer)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = [json.loads(line) for line in stream]
    _, status, usage = os.wait4(child, 0)
    reached = struct.unpack_from("q", shared, 0)[0] if status else last
    kilobytes = struct.unpack_from("q", shared, 8)[0] or usage.ru_maxrss
    outcomes: Counter[str] = Counter()
    findings = []
    for item in said:
        if "outcomes" in item:
            outcomes.update(item["outcomes"])
        else:
            findings.append(item)
    seconds = usage.ru_utime + usage.ru_stime
    return reached, dict(outcomes), findings, kilobytes, seconds, status


def _work(target: Target, first: int, last: int, shared: mmap.mmap, writer: int) -> None:
    warnings.simplefilter("ignore")
    faulthandler.disable()  # a crash is told by the parent, in one line
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the life of this process
    case = target.setup()
    idle = _peak()
    outcomes: Counter[str] = Counter()

    def tell(item: dict[str, Any]) -> None:
        os.write(writer, (json.dumps(item) + "\n").encode())

    for number in range(first, last):
        struct.pack_into("q", shared, 0, number)
        # processor time, as the machine may have other work; the signal's default is to kill
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
        before = _peak()
        try:
            outcomes[case(number)] += 1
        except Exception as error:
            last_line = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last_line.filename).name}:{last_line.lineno}"
            what = f"{type(error).__name__}: {str(error)[:200]} ({where})"
            tell({"case": number, "what": what})
            outcomes["broken"] += 1
        signal.setitimer(signal.ITIMER_PROF, 0)
        if target.measured and _peak() > before and (_peak() - idle) * 1024 > CASE_BYTES:
            tell({"case": number, "what": f"took {(_peak() - idle) // 1024} MB"})
        if number % 250 == 249 or number == last - 1:
            tell({"outcomes": dict(outcomes)})
            outcomes.clear()
    struct.pack_into("q", shared, 8, _peak() - idle)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
