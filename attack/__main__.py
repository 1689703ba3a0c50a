"""``python -m attack``: fuzzed inputs, faults, kills and extreme numbers; counts and findings.

Resumable: counts are kept in ``--state``, and a second run goes on where the first stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from attack.report import report
from attack.runner import Tally, Target, run_cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000, help="fuzzed files in all")
    parser.add_argument("--numbers", type=int, default=20_000, help="calls with extreme numbers")
    parser.add_argument("--kills", type=int, default=200, help="killed or stopped commands")
    parser.add_argument("--minutes", type=float, default=120.0, help="stop after so long")
    parser.add_argument("--state", type=Path, default=Path("build/attack.json"))
    parser.add_argument("--show", type=Path, nargs="+", help="only print what these states hold")
    parser.add_argument("--only", help="run one target, by the beginning of its name")
    parser.add_argument("--from", dest="first", type=int, help="first case (with --only)")
    parser.add_argument("--count", type=int, default=1, help="number of cases (with --from)")
    options = parser.parse_args()
    if options.show:
        tally = Tally(None)
        for state in options.show:
            tally.data |= Tally(state).data
        print(report(tally))
        return 0
    plan = planned(options.inputs, options.numbers, options.kills)
    if options.only:
        plan = {t: n for t, n in plan.items() if t.name.startswith(options.only)}
    if options.first is not None:
        tally = Tally(None)
        for target in plan:
            run_cases(target, tally, options.first, options.first + options.count)
        print(report(tally))
        return 0
    options.state.parent.mkdir(parents=True, exist_ok=True)
    tally = Tally(options.state)
    attack(plan, tally, time.monotonic() + 60 * options.minutes)
    print(report(tally))
    return int(any(entry["findings"] for entry in tally.data.values()))


def planned(inputs: int, numbers: int, kills: int) -> dict[Target, int]:
    """Cases by target."""
    from attack.bombs import BOMB_TARGET, BOMBS
    from attack.faults import FAULT_CASES, FAULTS
    from attack.kills import KILLS
    from attack.numbers import NUMBERS
    from attack.scored import SCORED
    from attack.targets import FILE_TARGETS

    plan = {target: round(share * inputs) for target, share in (FILE_TARGETS | SCORED).items()}
    return plan | {BOMB_TARGET: len(BOMBS), FAULTS: FAULT_CASES, NUMBERS: numbers, KILLS: kills}


def attack(plan: dict[Target, int], tally: Tally, until: float) -> None:
    """A share of every target in turn, so that a run that is cut short saw all of them."""
    while time.monotonic() < until:
        left = {t: n - tally.of(t.name)["done"] for t, n in plan.items()}
        if not any(n > 0 for n in left.values()):
            return
        for target, remaining in left.items():
            if remaining > 0 and time.monotonic() < until:
                step = min(remaining, max(25, plan[target] // 40))
                first = tally.of(target.name)["done"]
                run_cases(target, tally, first, first + step)
                print(f"{target.name}: {first + step:,} of {plan[target]:,}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
