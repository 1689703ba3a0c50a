"""Groups, time and rows already seen, through the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from pnuauc.model.files import load_model
from tests.conftest import run_tool as run

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A table of 40 labelled and 120 unlabelled rows of customers, fitted by group and by time."""
    folder = tmp_path_factory.mktemp("together")
    rng = np.random.default_rng(0)
    customer = np.repeat(np.arange(40), 4)
    y = rng.random(160) < 0.4
    table = pd.DataFrame(rng.normal(size=(160, 3)), columns=list("abc"))
    table["a"] += 1.5 * y
    table["id"], table["customer"] = np.arange(160) + 1000, customer
    table["day"] = rng.permutation(160)
    table["y"] = np.where(rng.random(160) < 0.5, y.astype(float), np.nan)
    table.to_csv(folder / "t.csv", index=False)
    found = run(
        "fit", folder / "t.csv", "--label", "y", "--id", "id", "--group", "customer", "--time",
        "day", "--folds", 3, "--model", "average", "--centers", 20, "-o", folder / "m", "--json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    return folder, table, json.loads(found.stdout)


def test_the_fit_tells_groups_and_time_and_writes_held_out_scores(fitted):
    folder, table, findings = fitted
    labeled = table["y"].notna()
    assert findings["groups"]["columns"] == ["customer"]
    assert findings["groups"]["n_groups"] == table["customer"][labeled].nunique()
    assert findings["timed"]["auc"]["low"] < findings["timed"]["auc"]["high"]
    assert "later rows" in findings["timed"]["believe"]
    held = pd.read_csv(folder / "m.heldout.csv")
    known = held[held["y"].notna()].merge(table, on="id", suffixes=("", "_t"))
    assert len(known) == labeled.sum()
    assert (known["y"] == known["y_t"]).all()
    assert known.groupby("customer")["fold"].nunique().max() == 1


def test_scores_of_rows_that_were_seen_are_marked_and_not_judged(fitted):
    folder, table, _ = fitted
    fresh = table.assign(a=table["a"] + 0.1234, id=table["id"] + 1000)
    both = pd.concat([table, fresh])
    both.to_csv(folder / "both.csv", index=False)
    assert run("score", folder / "m.pnuauc", folder / "both.csv").exit_code == 0
    scored = pd.read_csv(folder / "both.scored.csv")
    assert (scored["seen"].to_numpy() == np.append(table["y"].notna(), np.zeros(160, bool))).all()
    refused = run("evaluate", folder / "both.scored.csv", "--label", "y")
    assert refused.exit_code == 2
    assert "heldout.csv" in refused.output
    assert "AUC of 'score'" not in refused.output
    # neither the choice of columns nor a join loses the mark
    few = ("--columns", "id,score", "-o", folder / "few.csv")
    assert run("score", folder / "m.pnuauc", folder / "both.csv", *few).exit_code == 0
    assert list(pd.read_csv(folder / "few.csv")) == ["id", "score", "seen"]
    both[["id", "y"]].to_csv(folder / "labels.csv", index=False)
    for name in ("few.csv", "both.scored.csv"):
        files = (folder / name, folder / "labels.csv")
        again = run("evaluate", *files, "--label", "y", "--id", "id")
        assert again.exit_code == 2
        assert "heldout.csv" in again.output
    scored[~scored["seen"]].to_csv(folder / "new.csv", index=False)
    assert run("evaluate", folder / "new.csv", "--label", "y").exit_code == 0


def test_seen_rows_are_known_however_they_are_written(fitted):
    folder, table, _ = fitted
    table.to_parquet(folder / "typed.parquet")
    table.to_csv(folder / "comma.csv", sep=";", decimal=",", index=False)
    table.to_json(folder / "lines.jsonl", orient="records", lines=True)
    for name in ("typed.parquet", "comma.csv", "lines.jsonl"):
        assert run(
            "score", folder / "m.pnuauc", folder / name, "-o", folder / "o.csv", "--overwrite"
        )
        seen = pd.read_csv(folder / "o.csv")["seen"]
        assert (seen.to_numpy() == table["y"].notna()).all(), name


def test_held_out_scores_are_compared_with_others_by_id(fitted):
    folder, table, _ = fitted
    mine = table.sample(frac=1, random_state=0)[["id"]].assign(mine=table["a"])
    mine.to_csv(folder / "mine.csv", index=False)
    found = run(
        "evaluate", folder / "m.heldout.csv", folder / "mine.csv", "--id", "id", "--label", "y",
        "--json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert set(told["scores"]) == {"score", "mine"}
    both = table["y"].notna()
    honest = roc_auc_score(table["y"][both], table["a"][both])
    assert told["scores"]["mine"]["methods"]["pn"]["value"] == pytest.approx(honest, abs=1e-6)


def test_a_model_file_keeps_hashes_and_no_rows(fitted):
    folder, table, _ = fitted
    seen = load_model(folder / "m.pnuauc").seen
    assert len(seen.hashes) == table["y"].notna().sum()
    assert np.isfinite(seen.scores).all()


def test_held_out_scores_know_the_groups_of_the_fit(fitted):
    """Judged as if rows were independent, intervals of alike rows would be too narrow."""
    folder, table, _ = fitted
    held = pd.read_csv(folder / "m.heldout.csv")
    assert held["pnuauc group"].nunique() == table["customer"].nunique()
    alike = held.assign(score=held["pnuauc group"] % 11)
    alike.to_csv(folder / "alike.csv", index=False)
    alike.drop(columns="pnuauc group").to_csv(folder / "untold.csv", index=False)
    alike[["id"]].assign(mine=alike["score"]).to_csv(folder / "mine.csv", index=False)
    told, untold, joined = (
        json.loads(run("evaluate", *names, "--label", "y", "--id", "id", "--json").stdout)
        for names in (
            [folder / "alike.csv"],
            [folder / "untold.csv"],
            [folder / "m.heldout.csv", folder / "mine.csv"],
        )
    )
    errors = [one["scores"]["score"]["auc"]["std_error"] for one in (told, untold)]
    assert errors[0] > 1.2 * errors[1]
    assert joined["scores"]["mine"]["methods"]["pn"]["std_error"] == pytest.approx(
        told["scores"]["score"]["methods"]["pn"]["std_error"]
    )


def test_groups_of_an_evaluation_widen_its_intervals(fitted):
    folder, table, _ = fitted
    many = table[table["y"].notna()].assign(score=table["a"])
    pd.concat([many] * 5).to_csv(folder / "five.csv", index=False)
    widths = []
    ids = ("--id", "id")
    for more in ((), ("--group", "id"), ids, (*ids, "--group", "none")):
        found = run("evaluate", folder / "five.csv", "--label", "y", "--json", *more)
        auc = json.loads(found.stdout)["scores"]["score"]["auc"]
        widths.append(auc["high"] - auc["low"])
    assert widths[1] == pytest.approx(widths[0] * np.sqrt(5), rel=0.15)
    assert (widths[2], widths[3]) == pytest.approx((widths[1], widths[0]))
