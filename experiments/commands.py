"""What each name on the command line does."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments import figures, report, runner, tables
from experiments.config import Config

__all__ = ["run"]

#: Figures of computation time, and the table whose rows hold it.
TIMES = {"figure3": "table2", "figure4": "table4", "figure5": "table5"}


def run(options: argparse.Namespace) -> int:
    """Dispatch on ``options.name``; returns the exit code."""
    config = Config.read(options.config)
    name = options.name.lower().replace(" ", "")
    if name == "list":
        print(_overview(config))
    elif name == "report":
        print(f"Wrote {report.write(config, options.results)}.")
    elif name in ("table1", "table3"):
        _priors(name[-1], options)
    elif name in ("figure1", "figure2"):
        figures.draw_variance(options.results, options.trials)
        print(report.differences(name))
    elif name in TIMES:
        _run_experiment(config, TIMES[name], options)
        print(figures.draw_times(config, name, TIMES[name], options.results))
        print(f"\n{report.differences(name)}")
    elif name in config.experiments:
        _run_experiment(config, name, options)
        if name in figures.DRAW:
            print(figures.DRAW[name](config, options.results))
        else:
            table = tables.make_table(config, name, options.results)
            print(tables.write_table(table, options.results))
        print(f"\n{report.differences(name)}")
    else:
        raise ValueError(f"There is no experiment {options.name!r}.\n{_overview(config)}")
    return 0


def _run_experiment(config: Config, name: str, options: argparse.Namespace) -> Path | None:
    if options.show:
        return None
    return runner.run(
        config,
        name,
        options.results,
        options.jobs,
        options.trials,
        options.data_set,
        options.method,
        options.setting,
        options.retry,
    )


def _priors(table: str, options: argparse.Namespace) -> None:
    """Tables 1 and 3 have their own runner, with estimators instead of rankers."""
    from experiments import priors

    priors.RESULTS = options.results / "priors.csv"
    if not options.show:
        priors.run(table, 50 if options.trials is None else options.trials)
    text = report.priors_part(table, options.results)
    (options.results / f"table{table}.md").write_text(text + "\n", encoding="utf-8")
    print(f"{text}\n\n{report.differences(f'table{table}')}")


def _overview(config: Config) -> str:
    known = {
        "table1": "Class priors from positive and unlabelled rows",
        "table3": "Class priors from all three roles",
        "figure1": "Variance ratio over eta, three sizes",
        "figure2": "Variance ratio over eta, three priors",
        "figure3": "Computation time of Table 2",
        "figure4": "Computation time of Table 4",
        "figure5": "Computation time of Table 5",
        **{name: e.title for name, e in config.experiments.items()},
        "report": "docs/reproduction.md from the results that are there",
    }
    return "\n".join(f"{name:9s} {known[name]}" for name in sorted(known))
