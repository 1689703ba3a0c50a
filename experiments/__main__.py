"""``python -m experiments NAME``: run what is missing, then show what is there.

python -m experiments table4 --trials 10 --data DIR
python -m experiments figure6 --show  # run nothing
python -m experiments table4 --again 5  # five stored jobs once more, compared value by value
python -m experiments report          # docs/ from the committed results
python -m experiments list
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run one experiment, or write the report; return the exit code."""
    options = _parser().parse_args(argv)
    if options.data is not None:
        if not options.data.is_dir():
            print(f"The data folder {options.data} does not exist.", file=sys.stderr)
            return 2
        os.environ["PNUAUC_DATA"] = str(options.data)  # worker processes inherit it
    try:
        _run(options)
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    from experiments.config import CONFIG
    from experiments.runner import RESULTS

    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="table1 .. table5, figure1 .. figure7, ..., report or list")
    parser.add_argument("--trials", type=int, help="trials a cell; default as configured")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--data-set", nargs="+", default=[], help="only these data sets")
    parser.add_argument("--method", nargs="+", default=[], help="only these methods")
    parser.add_argument("--setting", nargs="+", default=[], help="only these settings, as printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--retry", action="store_true", help="compute failed rows again")
    parser.add_argument("--show", action="store_true", help="run nothing; show what is there")
    parser.add_argument("--again", type=int, help="compute so many stored jobs again and compare")
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")
    return parser


def _run(options: argparse.Namespace) -> None:
    from experiments import again, report, runner
    from experiments.config import Config

    config = Config.read(options.config)
    name = options.name.lower().replace(" ", "")
    if name == "list":
        print(_overview(config.experiments))
    elif name == "report":
        for path in report.write(config, options.results):
            print(f"Wrote {path}.")
    elif name in config.experiments:
        experiment = config[name]
        wanted = runner.Wanted(
            options.trials, options.data_set, options.method, options.setting, options.retry
        )
        if options.again:
            print(again.compare_again(experiment, options.results, options.again, wanted))
            return
        if not options.show:
            runner.run(experiment, options.results, options.jobs, wanted)
        print(report.show(experiment, options.results))
        if known := report.differences(name):
            print(f"\n{known}")
    else:
        known = _overview(config.experiments)
        raise ValueError(f"There is no experiment {options.name!r}.\n{known}")


def _overview(experiments: dict) -> str:
    known = {name: e.title for name, e in experiments.items()}
    known["report"] = "docs/ from the results that are there"
    width = max(map(len, known))
    return "\n".join(f"{name:{width}s} {known[name]}" for name in sorted(known))


if __name__ == "__main__":
    sys.exit(main())
