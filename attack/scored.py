"""Tables that are scored: columns written in another way than at fit, and of any type.

The law: one sentence, or one finite score a row; a refused table leaves no file; the spreadsheet
option leaves no formula.
"""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import re
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from attack.runner import Target
from pnuauc.core.basis import IdentityBasis
from pnuauc.exceptions import InputError
from pnuauc.io import OutputChoice, TableEncoder, TableModel, read_table, score_file
from pnuauc.model.model import LinearScorer

__all__ = ["SCORED"]

_N = 40
#: What a cell, or every cell of a column, may become.
_CHANGES: list[Callable[[str], str]] = [
    lambda x: x.replace(",", "."),
    lambda x: x.replace(".", ","),
    lambda x: x.replace("%", ""),
    lambda x: x + " %",
    lambda x: "€ " + x,
    lambda x: "-".join(reversed(x.split("."))),
    lambda x: "",
    lambda x: "NA",
    lambda x: x + "000",
    lambda x: "0" + x,
    lambda x: x.upper(),
    lambda x: "=1+" + x,
    lambda x: "maybe",
    lambda x: "31.12.9999",
    lambda x: "1e308",
    lambda x: "\u2212" + x,
    lambda x: "13:45",
    lambda x: "P1DT2H",
]


class _Ranker:
    def __init__(self, width: int) -> None:
        self.basis_, self.threshold_ = IdentityBasis.from_parts(width), 0.0
        self.scorer_ = LinearScorer(self.basis_, np.ones(width))


def _cells(rng: np.random.Generator, n: int) -> dict[str, list[str]]:
    def dates() -> list[str]:
        return [f"{d + 1:02d}.{m + 1:02d}.2024" for d, m in rng.integers(0, (28, 12), (n, 2))]

    return {
        "id": [f"r{i}" for i in range(n)],
        "height": [f"{x:.2f}".replace(".", ",") for x in rng.normal(170, 10, n)],
        "rate": [f"{x:.1f} %".replace(".", ",") for x in rng.uniform(1, 12, n)],
        "income": [f"{x:,.0f}".replace(",", ".") for x in np.exp(rng.normal(9, 1, n))],
        "when": dates(),
        "paid": rng.choice(["yes", "no"], n).tolist(),
        "shop": rng.choice(list("abcd"), n).tolist(),
        "clock": [f"{h:02d}:{m:02d}" for h, m in rng.integers(0, (24, 60), (n, 2))],
        "plain": [f"{x:.3f}" for x in rng.normal(size=n)],
    }


def _write(path: Path, cells: dict[str, list[str]]) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter=";")
        writer.writerow(cells)
        writer.writerows(zip(*cells.values(), strict=True))


def _messy() -> Callable[[int], str]:
    folder = Path(tempfile.mkdtemp(prefix="pnuauc-attack-"))
    _write(folder / "old.csv", _cells(np.random.default_rng(0), 400))
    table = read_table(folder / "old.csv").drop_columns(["id"])
    encoder = TableEncoder().fit(table)
    X = encoder.transform(table)
    model = TableModel.from_fitted(encoder, _Ranker(X.shape[1]), X, {"ids": ["id"]})

    def case(number: int) -> str:
        rng = np.random.default_rng([7, number])
        cells = _cells(rng, _N)
        for name in rng.choice(list(cells), rng.integers(1, 4), replace=False):
            change = _CHANGES[rng.integers(len(_CHANGES))]
            share = rng.choice([0.03, 0.3, 1.0])
            cells[name] = [change(x) if rng.random() < share else x for x in cells[name]]
        _write(folder / "new.csv", cells)
        choice = OutputChoice(strict=number % 3 == 0, spreadsheet=number % 2 == 0)
        return _scored(model, folder / "new.csv", folder / "out.csv", choice)

    return case


def _scored(model: TableModel, source: Path, target: Path, choice: OutputChoice) -> str:
    target.unlink(missing_ok=True)
    try:
        summary = score_file(model, source, target, choice=choice)
    except InputError as error:
        refusal = str(error)
        assert "\n" not in refusal, "more than one line"
        assert not target.exists(), "a refused table left a file"
        return "refused"
    with target.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == summary.n_rows == _N, "rows were lost"
    assert all(np.isfinite(float(row["score"])) for row in rows), "a score is no number"
    if choice.spreadsheet:
        cells = [cell for row in rows for cell in row.values()]
        bad = [c for c in cells if re.match(r"[=+@\t\r-]", c) and not re.match(r"[-+][\d.,]", c)]
        assert not bad, f"a formula: {bad[0]!r}"
    return "scored, named" if summary.different else "scored"


def _column(rng: np.random.Generator) -> Any:
    """An arrow column of any type, at the ends of its range and between."""
    n = _N
    whole = rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1, 7], n)
    small = rng.integers(-5, 5, n)
    text = [f"{'=+-@'[i % 4]}{i % 7}x" for i in range(n)]
    kinds: list[Callable[[], Any]] = [
        lambda: pa.array(whole).cast(pa.timestamp(str(rng.choice(["s", "ms", "us", "ns"])))),
        lambda: pa.array(small).cast(pa.timestamp("us", str(rng.choice(["UTC", "Mars/Base"])))),
        lambda: pa.array(whole).cast(pa.duration(str(rng.choice(["s", "ms", "us", "ns"])))),
        lambda: pa.array((whole % 2**31).astype(np.int32)).cast(pa.date32()),
        lambda: pa.array(small % 9 * 86_400_000).cast(pa.date64()),
        lambda: pa.array(small % 9).cast(pa.time64("us")),
        lambda: pa.array([decimal.Decimal(int(x)) for x in small], pa.decimal128(9, 2)),
        lambda: pa.array([decimal.Decimal(int(x)) for x in small]).cast(pa.decimal128(38, 4)),
        lambda: pa.array([{"a": int(x)} for x in small]),
        lambda: pa.array([[int(x)] * (1 + int(rng.random() < 0.02)) for x in small]),
        lambda: pa.array(text).cast(pa.binary()),
        lambda: pa.array([t[:2].encode() for t in text], pa.binary(2)),
        lambda: pa.array(text, pa.binary_view()),
        lambda: pa.array(text, pa.string_view()),
        lambda: pa.array(text).cast(pa.binary()).dictionary_encode(),
        lambda: pa.array(text).dictionary_encode(),
        lambda: pa.array([uuid.UUID(int=int(x) % 2**64).bytes for x in whole], pa.binary(16)),
        lambda: pa.array(small.astype(np.float16)),
        lambda: pa.array(rng.choice([1e308, -1e308, 1e-308, 0.0, np.nan, 1.0], n)),
        lambda: pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)] * (n // 2)),
        lambda: pa.nulls(n),
        lambda: pa.array(small, mask=rng.random(n) < 0.5),
    ]
    return kinds[rng.integers(len(kinds))]()


def _typed() -> Callable[[int], str]:
    folder = Path(tempfile.mkdtemp(prefix="pnuauc-attack-"))

    def case(number: int) -> str:
        rng = np.random.default_rng([8, number])
        names = ["id", *(f"c{j}" for j in range(4))]
        try:
            columns = [_column(rng) for _ in names]
            table = pa.table(dict(zip(names, columns, strict=True)))
            pa.parquet.write_table(table, folder / "t.parquet")
        except (pa.ArrowException, OSError):  # what arrow cannot make or write, nobody sends
            return "not made"
        try:
            encoder = TableEncoder(categorical=names[1:] if number % 2 else ()).fit(
                read_table(folder / "t.parquet").drop_columns(["id"])
            )
            X = encoder.transform(read_table(folder / "t.parquet"))
        except InputError as error:
            refusal = str(error)
            assert "\n" not in refusal, "more than one line"
            return "refused"
        model = TableModel.from_fitted(encoder, _Ranker(X.shape[1]), X, {"ids": ["id"]})
        choice = OutputChoice(spreadsheet=True)
        return _scored(model, folder / "t.parquet", folder / "out.csv", choice)

    return case


#: Shares of the inputs.
SCORED: dict[Target, float] = {
    Target("score a table written otherwise", _messy): 0.05,
    Target("score columns of any type", _typed): 0.05,
}
