"""``pnuauc review`` from the first round to the labelled table."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from tests.conftest import run_tool as run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    hidden = np.arange(150) % 5 == 0
    frame = pd.DataFrame({"id": [f"{k:03d}" for k in range(150)]})
    frame["x"] = rng.normal(size=150) + 3 * hidden
    frame["kind"] = rng.choice(["a", "b"], 150)
    frame["y"] = np.where(np.arange(150) < 20, np.where(hidden, "1", "0"), "")
    frame.to_csv("table.csv", index=False)
    return tmp_path


BEGIN = ("review", "table.csv", "--label", "y", "--id", "id", "--batch", "20", "--seed", "0")


def decided(folder, name="d.csv"):
    """The sheet, filled in with the truth."""
    sheet = pd.read_csv(folder / "table.review" / "review.csv", dtype=str)
    sheet["decision"] = np.where(sheet["id"].astype(int) % 5 == 0, "positive", "negative")
    sheet[["id", "decision"]].to_csv(folder / name, index=False)
    return sheet


def test_rounds(folder):
    first = run(*BEGIN)
    assert first.exit_code == 0, first.output
    assert "Go on: a recall of 95% is not yet proven." in first.output
    assert "review.html" in first.output
    again = run(*BEGIN)
    assert "20 rows of round 1 wait for a decision" in again.output
    sheet = decided(folder)
    assert len(sheet) == 20
    added = json.loads(run("review", "--add", "d.csv", "--json").output)
    assert added["n_open"] == 0
    assert added["found"] == int((sheet["decision"] == "positive").sum())
    labelled = pd.read_parquet(added["files"]["labelled"])
    assert labelled["y"].notna().sum() == 40
    assert json.loads(run("review", "--status", "--json").output)["round"] == 1
    second = json.loads(run(*BEGIN, "--explore", "auto", "--json").output)
    assert second["round"] == 2
    assert second["files"]["page"].endswith("review.html")
    decided(folder)
    assert (
        json.loads(run("review", "--add", "d.csv", "--json").output)["expected"]["auc"]["low"] > 0.5
    )


def test_what_to_run_next_is_printed_and_works(folder):
    """A round is drawn, decided in the sheet, taken in, and the next one drawn as it says."""

    def after(output, word):
        line = next(line for line in output.splitlines() if line.startswith(word))
        return shlex.split(line.removeprefix(word).partition(" (")[0])[1:]

    drawn = run(*BEGIN)
    decided(folder).assign(decision="negative").to_csv("table.review/review.csv", index=False)
    added = run(*after(drawn.output, "Then: "))
    assert added.exit_code == 0, added.output
    further = run(*after(added.output, "For the next rows: "))
    assert "20 rows of round 2 wait for a decision" in further.output


def test_relabel(folder):
    run(*BEGIN)
    sheet = decided(folder)
    run("review", "--add", "d.csv")
    sheet["decision"] = "no"
    sheet.to_csv("d.csv", index=False)
    refused = run("review", "--add", "d.csv")
    assert refused.exit_code == 2
    assert "Use --relabel" in refused.output
    taken = run("review", "--add", "d.csv", "--relabel")
    assert taken.exit_code == 0
    assert "replaced" in taken.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("review",), "There are 0 reviews in this folder"),
        (("review", "table.csv", "--explore", "lots"), "--explore takes a share"),
        (("review", "table.csv", "--label", "y", "--id", "kind"), "have the same 'kind'"),
        (("review", "--add", "no.csv", "-o", "nowhere"), "holds no review"),
        (("review", "none.csv"), "none.csv"),
    ],
)
def test_bad_requests(folder, arguments, sentence):
    result = run(*arguments)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
    assert not list(folder.glob("*.review"))
