"""Trials that ``experiments.baselines`` has run already, taken over as rows of an experiment.

Both draw the same sample from the same seed, by the same protocol, so a competitor need not be run
twice.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from experiments.config import Config, Experiment, Method, Setting
from experiments.store import KEY, Store

__all__ = ["adopt"]

_N_TEST = "10000"


def adopt(config: Config, experiment: Experiment, store: Store, results: Path) -> int:
    """Append what fits and is missing; return how many rows that were."""
    path = results / "baselines.csv"
    if not path.exists() or str(config.protocol["n_test"]) != _N_TEST:
        return 0
    methods = [m for m in experiment.methods if m.settings["kind"] == "baseline"]
    sizes = {_sizes(s): s for s in experiment.settings if s.fill == "all_real" and s.noise == 0}
    rows = []
    with open(path, newline="") as file:
        for line in csv.DictReader(file):
            setting = sizes.get(tuple(line[k] for k in _SIZES))
            if setting is None or line["data_set"] not in experiment.data_sets:
                continue
            for method in methods:
                if line["method"] != method.settings["name"]:
                    continue
                if line["scale"] != config.scale(method, line["data_set"]):
                    continue
                row = _row(config, experiment, line, method, setting)
                if store.status(tuple(row[k] for k in KEY), row["fingerprint"]) is None:
                    rows.append(row)
    store.append(rows)
    return len(rows)


_SIZES = ("n_positive", "n_negative", "n_unlabeled", "prior")


def _sizes(setting: Setting) -> tuple[str, ...]:
    return (
        str(setting.n_positive),
        str(setting.n_negative),
        str(setting.n_unlabeled),
        f"{setting.prior:g}",
    )


def _row(
    config: Config, experiment: Experiment, line: dict[str, str], method: Method, setting: Setting
) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "data_set": line["data_set"],
        "setting": setting.key,
        "method": method.name,
        "seed": line["trial"],
        "fingerprint": config.fingerprint(method, line["data_set"]),
        "status": "ok",
        "auc": float(line["auc"]),
        "cpu_seconds": "" if line["cpu_seconds"] == "nan" else line["cpu_seconds"],
        "n_unlabeled": line["n_unlabeled"],
        "n_test": line["n_test"],
        "chosen": line["chosen"],
        "run": "baselines",
    }
