"""Trials that ``experiments.baselines`` has run already, taken over as rows of an experiment.

Both draw the same sample from the same seed, by the same protocol, so a competitor need not be run
twice. Their file has wall-clock times only; the processor time of adopted rows stays empty.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from experiments.config import Config, Experiment, Method, Setting
from experiments.store import Store

__all__ = ["adopt"]

_N_TEST = "10000"


def adopt(config: Config, experiment: Experiment, store: Store, results: Path) -> int:
    """Append what fits and is missing; return how many rows that were."""
    path = results / "baselines.csv"
    if not path.exists() or str(config.protocol["n_test"]) != _N_TEST:
        return 0
    methods = {m.settings["name"]: m for m in experiment.methods if "name" in m.settings}
    sizes = {_sizes(s): s for s in experiment.settings if s.fill == "all_real" and s.noise == 0}
    rows = []
    with open(path, newline="") as file:
        for line in csv.DictReader(file):
            method = methods.get(line["method"])
            setting = sizes.get(tuple(line[k] for k in _SIZES))
            if method is None or setting is None or line["data_set"] not in experiment.data_sets:
                continue
            row = _row(config, experiment, line, method, setting)
            key = tuple(row[k] for k in ("experiment", "data_set", "setting", "method", "seed"))
            known = store.status(key, row["fingerprint"])
            if line["scale"] == config.scale(line["data_set"]) and known is None:
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
        "seconds": float(line["seconds"]),
        "n_unlabeled": line["n_unlabeled"],
        "n_test": line["n_test"],
        "chosen": line["chosen"],
        "run": "baselines",
    }
