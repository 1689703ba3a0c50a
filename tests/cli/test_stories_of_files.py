"""Messy files at the command line: what is said, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from pnuauc.io import read_table
from tests.conftest import run_tool as run


def export(seed, n=160):
    """A Windows export: a title, semicolons, decimal commas, an id that nobody names, and dates of
    which the day or the month may come first."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    lines = ["Kunden, Auszug", "", "nummer;größe;rate;bezahlt;tag;ziel"]
    for k in range(n):
        size, rate = rng.normal(10 + 2 * y[k]), rng.uniform(1, 9)
        known = str(int(y[k])) if k < 60 else ""
        numbers = f"{size:.2f};{rate:.1f} %".replace(".", ",")
        day = f"0{1 + k % 9}/0{1 + k % 7}/2024"
        lines.append(f"K{seed}{k:05d};{numbers};{'ja' if k % 3 else 'nö'};{day};{known}")
    return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_a_windows_export_with_a_title_is_fitted_and_scored(tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_bytes(export(0).encode("cp1252"))
    new.write_bytes(export(1).replace(" %", "").encode("cp1252"))
    fit = ("fit", old, "-l", "ziel", "--prior", "0.4", "--model", "paper", "--folds", "2")
    asked = run(*fit)
    assert asked.exit_code == 2
    assert "--date-format day-first or --date-format month-first" in asked.stderr
    made = run(*fit, "--date-format", "day-first")
    assert made.exit_code == 0, made.output
    assert "dates with the day first" in made.stderr
    assert "'rate' is read as percents with a decimal comma" in made.stderr
    assert made.output.count("is read as cp1252") == 1
    assert "above the names in line 3 left out as a title" in made.output
    assert "Use --encoding" in made.output
    assert "Use --header" in made.output
    for name in ("old.review.csv", "old.heldout.csv"):  # an id that was recognised
        assert read_table(tmp_path / name)["nummer"][0].as_py().startswith("K0"), name
    model = tmp_path / "old.pnuauc"
    listed = run("score", model, new, "--columns", "id,score", "-o", tmp_path / "c.csv")
    assert listed.exit_code == 0, listed.output
    assert read_table(tmp_path / "c.csv").column_names == ["nummer", "score", "seen"]
    piped = run("score", model, "-", "-o", "-", "--top", "3", input=old.read_bytes())
    assert piped.exit_code == 0, piped.stderr
    lines = piped.stdout.replace('"', "").splitlines()
    assert lines[0] == "nummer,ziel,seen,score,percentile"
    assert len(lines) == 4
    assert all(line.startswith("K00") for line in lines[1:])
    result = run("score", model, new, "--keep", "rate")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "Columns that look different from the table that was fitted: 'rate' (" in said
    out = read_table(tmp_path / "new.scored.csv")
    assert out.column_names[:3] == ["nummer", "ziel", "rate"]
    refused = run("score", model, new, "--strict", "-o", tmp_path / "s.csv")
    assert refused.exit_code == 2
    assert not (tmp_path / "s.csv").exists()
    wrong = run("fit", old, "-l", "zeil")
    assert "did you mean 'ziel'?" in " ".join(wrong.output.split())
