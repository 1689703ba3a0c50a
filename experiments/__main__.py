"""``python -m experiments NAME``: run what is missing, then print ours beside the paper's.

python -m experiments table4 --trials 10 --data DIR
python -m experiments figure6
python -m experiments report         # docs/reproduction.md from the committed results
python -m experiments list
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

__all__ = ["main"]

_THEIRS = {"table1": "1", "table3": "3"}


def main(argv: list[str] | None = None) -> int:
    """Run one experiment, or write the report; return the exit code."""
    options = _parser().parse_args(argv)
    if options.data is not None:
        if not options.data.is_dir():
            print(f"The data folder {options.data} does not exist.", file=sys.stderr)
            return 2
        os.environ["PNUAUC_DATA"] = str(options.data)  # worker processes inherit it
    from experiments import commands  # after PNUAUC_DATA is set

    try:
        return commands.run(options)
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    from experiments.config import CONFIG
    from experiments.runner import RESULTS

    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="table1 .. table5, figure1 .. figure7, report or list")
    parser.add_argument("--trials", type=int, help="trials a cell; default as configured")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--data-set", nargs="+", default=[], help="only these data sets")
    parser.add_argument("--method", nargs="+", default=[], help="only these methods")
    parser.add_argument("--setting", nargs="+", default=[], help="only these settings, as printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--retry", action="store_true", help="compute failed rows again")
    parser.add_argument("--show", action="store_true", help="run nothing; show what is there")
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
