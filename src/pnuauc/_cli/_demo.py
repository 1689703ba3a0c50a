"""``pnuauc demo``: fit, score, evaluate, on data whose truth is known and kept aside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pnuauc._cli._console import Voice
from pnuauc._cli._score import score_table
from pnuauc._cli._work import evaluate_file, fit_file
from pnuauc._extras import need
from pnuauc._study import ColumnRoles, FitSettings, LabelCodes, make_payments
from pnuauc.exceptions import InputError
from pnuauc.io import OutputChoice, ReadOptions
from pnuauc.io._signs import SIGN, written_by_us
from pnuauc.io._writing import atomic_file

__all__ = ["run_demo"]

#: Seeds of the reviewed table and of the month after.
_SEED, _NEXT_SEED = 1, 2


def run_demo(voice: Voice, folder: Path, jobs: int) -> None:
    """Write the demo's files into ``folder`` and run every command on them."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'{folder}' is a file; name a folder for the demo (--folder).")
    folder.mkdir(parents=True, exist_ok=True)
    table, _ = make_payments(seed=_SEED)
    later, later_fraud = make_payments(3000, labelled=0, seed=_NEXT_SEED)
    first, second = folder / "payments.parquet", folder / "next_month.csv"
    _write(table, first)
    _write(later.drop_columns(["is_fraud"]), second)
    labels = table.column("is_fraud").to_pylist()
    voice.say(
        f"A bank has {len(table):,} card payments. Reviewers looked at "
        f"{sum(v is not None for v in labels)} and found {labels.count(1)} frauds; nobody looked "
        "at the rest.\n"
    )
    command = f"pnuauc fit {first} --label is_fraud --id payment_id"
    voice.say(f"$ {command}", style="cyan")
    findings = fit_file(
        voice,
        first,
        ColumnRoles("is_fraud", ids=("payment_id",)),
        FitSettings(n_jobs=jobs),
        reading=ReadOptions(),
        command=command,
    )
    scored = folder / "next_month.scored.csv"
    model = Path(findings["files"]["model"])
    voice.say(f"\n$ pnuauc score {model} {second}", style="cyan")
    score_table(
        voice, model, second, scored, choice=OutputChoice(), reading=ReadOptions(), jobs=jobs
    )
    _tell_truth(voice, scored, later_fraud, folder, findings)
    voice.say(f"\nOpen {findings['files']['report']} in a browser.", style="bold green")


def _tell_truth(
    voice: Voice, scored: Path, truth: Any, folder: Path, findings: dict[str, Any]
) -> None:
    """The data are made up, so for once the answer can be checked."""
    table = need("pyarrow.csv").read_csv(scored)
    checked = folder / "next_month.checked.csv"
    _write(table.append_column("is_fraud", [np.asarray(truth, dtype=np.int8)]), checked)
    voice.say("\nThe payments are made up, so the truth about the next month is known:")
    voice.say(f"$ pnuauc evaluate {checked} --label is_fraud --negative 0", style="cyan")
    codes = LabelCodes(negative=["0"])
    evaluate_file(voice, checked, "is_fraud", ["score"], codes=codes, reading=ReadOptions())
    auc = findings["auc"]
    voice.say(
        f"The fit, which saw {findings['labels']['positive'] + findings['labels']['negative']} "
        f"labels, had estimated {auc['value']:.3f} ({auc['low']:.3f} to {auc['high']:.3f})."
    )


def _write(table: Any, path: Path) -> None:
    if path.exists() and not (written_by_us(path) or _same_header(table, path)):
        raise InputError(f"'{path}' was not written by the demo; name another folder (--folder).")
    with atomic_file(path) as stream:
        if path.suffix == ".parquet":
            signed = table.replace_schema_metadata({SIGN: SIGN})
            need("pyarrow.parquet").write_table(signed, stream)
        else:
            need("pyarrow.csv").write_csv(table, stream)


def _same_header(table: Any, path: Path) -> bool:
    with path.open("rb") as stream:
        first = stream.readline(10_000).decode("utf-8", "replace")
    return first.strip().replace('"', "") == ",".join(table.column_names)
